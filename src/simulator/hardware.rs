//! The modelled GPUs and what they draw, hold and run at, worked out from what the engine did.
//!
//! The figures are those of an accelerator with 80 GB (as H100 SXM): 700 W, 1,980 MHz, 3.35 TB/s.
//! How much of it a prefill or a decode step takes is a model, not a measurement; what is asked of
//! it is that every value moves as a real one would. Not here: the pages these stand on.

use super::engine::{Machine, Sums};

/// What the server runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hardware {
    /// GPUs of the server, at least 1.
    pub gpus: u32,
}

impl Default for Hardware {
    fn default() -> Self {
        Self { gpus: 1 }
    }
}

/// Memory of one GPU, MiB, and what its driver keeps of it.
const MEMORY: f64 = 81_559.0;
const RESERVED: f64 = 613.0;
/// Share of the memory that a server takes where vLLM is not told otherwise, and which part of
/// that is weights and buffers.
const TAKEN: f64 = 0.9;
const WEIGHTS: f64 = 0.3;
/// Clocks, MHz: highest of the cores, idle, of the memory.
const CLOCK: f64 = 1980.0;
const IDLE_CLOCK: f64 = 345.0;
const MEMORY_CLOCK: f64 = 2619.0;
/// Watts at rest, and what decoding and prefilling add.
const IDLE_WATTS: f64 = 72.0;
const BUSY_WATTS: f64 = 330.0;
const PREFILL_WATTS: f64 = 260.0;

/// One GPU at one moment. Shares are of the last whole second, sums since the driver was loaded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gpu {
    /// Share of time in which anything ran.
    pub(super) utilization: f64,
    /// Share of time in which memory was read or written.
    pub(super) memory_activity: f64,
    /// MiB.
    pub(super) memory_used: f64,
    pub(super) memory_reserved: f64,
    pub(super) memory_free: f64,
    /// MHz.
    pub(super) clock: f64,
    pub(super) memory_clock: f64,
    pub(super) watts: f64,
    pub(super) joules: f64,
    /// Degrees Celsius.
    pub(super) temperature: f64,
    pub(super) memory_temperature: f64,
    /// Last error, 0 for none.
    pub(super) xid: u32,
    /// Bits as NVML has them.
    pub(super) clock_reasons: u32,
    /// Seconds in which clocks were lowered for heat.
    pub(super) thermal_seconds: f64,
    /// Shares of cycles.
    pub(super) sm_active: f64,
    pub(super) tensor_active: f64,
    pub(super) dram_active: f64,
    /// Bytes a second.
    pub(super) pcie_sent: f64,
    pub(super) pcie_received: f64,
    pub(super) nvlink: f64,
}

/// Reasons for lowered clocks.
const GPU_IDLE: u32 = 0x1;
const SW_THERMAL: u32 = 0x20;
const HW_THERMAL: u32 = 0x40;

/// What the engine tells of itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Activity<'a> {
    pub(super) machine: &'a Machine,
    pub(super) second: Sums,
    pub(super) sums: &'a Sums,
    pub(super) last_xid: Option<u32>,
}

impl Hardware {
    /// GPU number `index` of the server.
    pub(super) fn gpu(self, index: u32, of: &Activity<'_>) -> Gpu {
        let first = index == 0;
        let last = index + 1 == self.gpus.max(1);
        let own = |sums: &Sums| if first { sums.busy } else { sums.busy_others };
        let (busy, all) = (own(&of.second), own(of.sums));
        let prefill = share(of.second.prefill, of.second.busy);
        let batch = share(of.second.sequences, of.second.busy);
        let strained = share(of.second.strained, of.second.busy);
        let full = first && of.machine.one_full.is_some();
        let used = if full {
            MEMORY - RESERVED - 8.0
        } else {
            (MEMORY * TAKEN - RESERVED) * (WEIGHTS + (1.0 - WEIGHTS) * of.machine.kv_share)
        };
        let throttled = of.machine.throttle > 1.0;
        let watts = watts(&of.second, busy);
        Gpu {
            utilization: busy,
            memory_activity: busy * (0.55 + 0.3 * strained - 0.25 * prefill),
            memory_used: used,
            memory_reserved: RESERVED,
            memory_free: MEMORY - RESERVED - used,
            clock: match (throttled, busy > 0.0) {
                (true, _) => (CLOCK / of.machine.throttle).max(IDLE_CLOCK),
                (false, true) => CLOCK,
                (false, false) => IDLE_CLOCK,
            },
            memory_clock: MEMORY_CLOCK,
            watts,
            joules: watts_to_joules(of.sums, all),
            temperature: 34.0 + watts / 15.0 + if throttled { 24.0 } else { 0.0 },
            memory_temperature: 41.0 + watts / 16.0 + if throttled { 26.0 } else { 0.0 },
            xid: of.last_xid.filter(|_| last).unwrap_or(0),
            clock_reasons: match (throttled, busy > 0.0) {
                (true, _) => SW_THERMAL | HW_THERMAL,
                (false, true) => 0,
                (false, false) => GPU_IDLE,
            },
            thermal_seconds: of.sums.throttled,
            sm_active: busy * (0.5 + 0.4 * prefill),
            tensor_active: busy * (0.04 + (batch / 512.0).min(0.3) + 0.5 * prefill),
            dram_active: (busy * (0.62 - 0.3 * prefill + 0.28 * strained)).min(0.92),
            pcie_sent: 2e5 + 4e6 * busy,
            pcie_received: 3e5 + 9e6 * busy,
            nvlink: if self.gpus > 1 {
                1e6 + 6e10 * busy * (0.2 + prefill)
            } else {
                0.0
            },
        }
    }
}

/// Mean watts of one second.
fn watts(second: &Sums, busy: f64) -> f64 {
    watts_to_joules(second, busy) / second.elapsed.max(1e-9)
}

/// Joules of a span in which a GPU was busy for so many seconds. Lowered clocks draw less.
fn watts_to_joules(sums: &Sums, busy: f64) -> f64 {
    let part = share(busy, sums.busy);
    let prefill = sums.prefill * part;
    let saved = sums.throttled_busy * part * 0.35;
    IDLE_WATTS * sums.elapsed.max(1e-9)
        + BUSY_WATTS * (busy - saved).max(0.0)
        + PREFILL_WATTS * prefill
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(busy: f64) -> Sums {
        Sums {
            elapsed: 1.0,
            busy,
            busy_others: busy,
            sequences: busy * 4.0,
            ..Sums::default()
        }
    }

    fn gpu(hardware: Hardware, index: u32, machine: Machine, second: Sums) -> Gpu {
        hardware.gpu(
            index,
            &Activity {
                machine: &machine,
                second,
                sums: &second,
                last_xid: machine.xid,
            },
        )
    }

    #[test]
    fn an_idle_gpu_is_cool_and_slow_and_a_busy_one_is_not() {
        let one = Hardware::default();
        let idle = gpu(one, 0, Machine::HEALTHY, sums(0.0));
        let busy = gpu(one, 0, Machine::HEALTHY, sums(1.0));
        assert!((idle.watts - IDLE_WATTS).abs() < 1e-9);
        assert_eq!(idle.clock_reasons, GPU_IDLE);
        assert!(idle.clock < busy.clock && idle.temperature < busy.temperature);
        assert!(busy.watts > 350.0 && busy.watts < 700.0);
        let memory = busy.memory_used + busy.memory_free + busy.memory_reserved;
        assert!((memory - MEMORY).abs() < 1e-6);
    }

    #[test]
    fn lowered_clocks_show_in_clocks_reasons_heat_and_watts() {
        let machine = Machine {
            throttle: 2.0,
            ..Machine::HEALTHY
        };
        let second = Sums {
            throttled: 1.0,
            throttled_busy: 1.0,
            ..sums(1.0)
        };
        let cool = gpu(Hardware::default(), 0, Machine::HEALTHY, sums(1.0));
        let hot = gpu(Hardware::default(), 0, machine, second);
        assert!((hot.clock - CLOCK / 2.0).abs() < 1e-9);
        assert_eq!(hot.clock_reasons, SW_THERMAL | HW_THERMAL);
        assert!(hot.temperature > cool.temperature && hot.watts < cool.watts);
    }

    #[test]
    fn one_full_gpu_is_the_first_and_an_error_is_of_the_last() {
        let four = Hardware { gpus: 4 };
        let machine = Machine {
            one_full: Some(4.0),
            xid: Some(79),
            ..Machine::HEALTHY
        };
        let second = Sums {
            busy_others: 0.25,
            ..sums(1.0)
        };
        let all: Vec<Gpu> = (0..4)
            .map(|index| gpu(four, index, machine, second))
            .collect();
        assert!(all[0].memory_free < 10.0 && all[1].memory_free > 5_000.0);
        assert!(all[0].utilization > 0.99 && (all[3].utilization - 0.25).abs() < 1e-9);
        assert_eq!(
            all.iter().map(|gpu| gpu.xid).collect::<Vec<_>>(),
            [0, 0, 0, 79]
        );
    }
}
