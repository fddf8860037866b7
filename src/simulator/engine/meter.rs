//! What the GPUs and the host have done so far, and in the last whole second.
//!
//! Between two events of the engine nothing changes, so all of it is sums of spans times levels:
//! exact, whoever looks and when. A server that begins anew does not begin them anew, as counters
//! of a driver and of a kernel do not. What the sums mean in watts and clocks is in `wire`.

use super::condition::Machine;
use crate::clock::MonoTime;

/// Sums over time, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    /// Time that passed.
    pub elapsed: f64,
    /// The GPU that has most to do computed.
    pub busy: f64,
    /// Each of the other GPUs computed.
    pub busy_others: f64,
    /// Of `busy`, while some prompt was prefilled.
    pub prefill: f64,
    /// Sequences that ran, times the time they computed.
    pub sequences: f64,
    /// Share of the KV cache in use, times time.
    pub kv: f64,
    /// What sequences read of the KV cache beyond the normal, as a share of `busy`.
    pub strained: f64,
    /// Clocks were lowered.
    pub throttled: f64,
    /// Of `busy`, with lowered clocks.
    pub throttled_busy: f64,
    /// The host had too few processors.
    pub pressed: f64,
}

impl Sums {
    fn add(&mut self, rates: &Self, seconds: f64) {
        self.for_each(rates, |sum, rate| *sum += rate * seconds);
    }

    /// These less earlier ones.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        self.for_each(earlier, |sum, before| *sum -= before);
        self
    }

    fn for_each(&mut self, other: &Self, mut each: impl FnMut(&mut f64, f64)) {
        each(&mut self.elapsed, other.elapsed);
        each(&mut self.busy, other.busy);
        each(&mut self.busy_others, other.busy_others);
        each(&mut self.prefill, other.prefill);
        each(&mut self.sequences, other.sequences);
        each(&mut self.kv, other.kv);
        each(&mut self.strained, other.strained);
        each(&mut self.throttled, other.throttled);
        each(&mut self.throttled_busy, other.throttled_busy);
        each(&mut self.pressed, other.pressed);
    }
}

/// What the engine does between two events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    pub(super) running: usize,
    pub(super) prefilling: usize,
    pub(super) frozen: bool,
    pub(super) kv_usage: f64,
    pub(super) machine: Machine,
}

impl Level {
    /// Per second.
    #[expect(clippy::cast_precision_loss, reason = "at most 65,536 sequences")]
    fn rates(&self) -> Sums {
        let machine = &self.machine;
        let on = |condition: bool, rate: f64| if condition { rate } else { 0.0 };
        let works = self.running > 0 && !self.frozen;
        let busy = on(works, 1.0 / machine.host.max(1.0));
        let throttled = machine.throttle > 1.0;
        Sums {
            elapsed: 1.0,
            busy,
            busy_others: busy / machine.one_full.unwrap_or(1.0).max(1.0),
            prefill: on(self.prefilling > 0, busy),
            sequences: busy * self.running as f64,
            kv: self.kv_usage,
            strained: busy * (1.0 - 1.0 / machine.bandwidth.max(1.0)),
            throttled: on(throttled, 1.0),
            throttled_busy: on(throttled, busy),
            pressed: on(machine.pressed, 1.0),
        }
    }
}

/// The sums so far.
#[derive(Debug)]
pub(super) struct Meter {
    now: MonoTime,
    sums: Sums,
    /// As they were at the last whole second, and one before it.
    at_second: Sums,
    before: Sums,
}

const SECOND: u64 = 1_000_000_000;

impl Meter {
    pub(super) fn new() -> Self {
        Self {
            now: MonoTime::ZERO,
            sums: Sums::default(),
            at_second: Sums::default(),
            before: Sums::default(),
        }
    }

    pub(super) const fn sums(&self) -> &Sums {
        &self.sums
    }

    /// What was done in the last whole second: shares of it.
    pub(super) fn last_second(&self) -> Sums {
        self.at_second.since(&self.before)
    }

    /// It was at `level` from the last instant until `to`.
    pub(super) fn pass(&mut self, to: MonoTime, level: &Level) {
        if to <= self.now {
            return;
        }
        let rates = level.rates();
        let (from, end) = (self.now.as_nanos(), to.as_nanos());
        let (first, last) = (from / SECOND, end / SECOND);
        if first == last {
            self.sums.add(&rates, seconds(end - from));
        } else {
            self.sums.add(&rates, seconds((first + 1) * SECOND - from));
            self.turn();
            if last > first + 1 {
                // All of these seconds were alike, so only the last of them matters.
                self.sums.add(&rates, seconds((last - first - 2) * SECOND));
                self.turn();
                self.sums.add(&rates, 1.0);
                self.turn();
            }
            self.sums.add(&rates, seconds(end - last * SECOND));
        }
        self.now = to;
    }

    const fn turn(&mut self) {
        self.before = self.at_second;
        self.at_second = self.sums;
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 104 days")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> MonoTime {
        MonoTime::from_nanos(millis * 1_000_000)
    }

    fn level(running: usize) -> Level {
        Level {
            running,
            prefilling: 0,
            frozen: false,
            kv_usage: 0.25,
            machine: Machine::HEALTHY,
        }
    }

    fn near(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn the_last_whole_second_is_told_whoever_looks() {
        let mut meter = Meter::new();
        meter.pass(ms(500), &level(0));
        meter.pass(ms(800), &level(2));
        near(meter.last_second().busy, 0.0);
        meter.pass(ms(1000), &level(0));
        near(meter.last_second().busy, 0.3);
        near(meter.last_second().sequences, 0.6);
        meter.pass(ms(1700), &level(1));
        near(meter.last_second().busy, 0.3);
        meter.pass(ms(60_400), &level(0));
        near(meter.last_second().busy, 0.0);
        near(meter.last_second().elapsed, 1.0);
        near(meter.sums().busy, 1.0);
        near(meter.sums().elapsed, 60.4);
        near(meter.sums().kv, 15.1);
        meter.pass(ms(61_000), &level(1));
        near(meter.last_second().busy, 0.6);
    }

    #[test]
    fn a_late_host_leaves_the_gpus_idle_and_one_full_gpu_the_others() {
        let mut meter = Meter::new();
        let late = Machine {
            host: 4.0,
            ..Machine::HEALTHY
        };
        let level = |machine| Level {
            machine,
            ..level(1)
        };
        meter.pass(ms(1000), &level(late));
        near(meter.last_second().busy, 0.25);
        let full = Machine {
            one_full: Some(2.0),
            ..Machine::HEALTHY
        };
        meter.pass(ms(2000), &level(full));
        near(meter.last_second().busy, 1.0);
        near(meter.last_second().busy_others, 0.5);
    }
}
