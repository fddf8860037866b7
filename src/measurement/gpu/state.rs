//! All GPUs of a target as one: what a record shows, and what is compared over time.

use serde::Serialize;

use super::{Gpu, GpuField, GpuFields, GpuSample, THROTTLING};
use crate::clock::MonoTime;

/// All GPUs of one target at one moment. A number over those that say it; `None` if none does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct GpuState {
    /// How many there are.
    pub gpus: u32,
    /// Mean share of time in which any kernel ran.
    pub utilization: Option<f64>,
    /// The same of the least busy one.
    pub utilization_min: Option<f64>,
    /// The same of the busiest.
    pub utilization_max: Option<f64>,
    /// Share of memory in use of the emptiest one.
    pub memory_min: Option<f64>,
    /// The same of the fullest.
    pub memory_max: Option<f64>,
    /// Lowest clock of the multiprocessors, hertz.
    pub sm_clock_hz: Option<f64>,
    /// Power of all together, watts; `None` if one does not say.
    pub power_w: Option<f64>,
    /// Energy of all together since their drivers were loaded, joules; `None` if one does not say.
    pub energy_j: Option<f64>,
    /// Temperature of the hottest.
    pub temperature_c: Option<f64>,
    /// Whether the clocks of any are lowered for a reason that is no everyday one.
    pub throttled: Option<bool>,
    /// Number of the last error of any, the highest if several had one; 0 for none.
    pub xid: Option<u32>,
    /// Mean share of multiprocessors and cycles that had work.
    pub sm_active: Option<f64>,
    /// Mean share of cycles in which tensor cores worked.
    pub tensor_active: Option<f64>,
    /// Mean share of cycles in which memory moved data.
    pub dram_active: Option<f64>,
}

impl GpuState {
    /// Of all `gpus`.
    #[must_use]
    pub fn of(gpus: &[Gpu]) -> Self {
        let each = |field: GpuField| Values::of(gpus.iter().map(move |gpu| gpu.fields.get(field)));
        let memory = Values::of(gpus.iter().map(|gpu| gpu.fields.memory_share()));
        let busy = each(GpuField::Utilization);
        // Instances have no utilisation of their own, but a share of time of their engine.
        let busy = if busy.count == 0 {
            each(GpuField::EngineActive)
        } else {
            busy
        };
        let reasons = gpus.iter().filter_map(|gpu| gpu.fields.clock_reasons());
        Self {
            gpus: u32::try_from(gpus.len()).unwrap_or(u32::MAX),
            utilization: busy.mean(),
            utilization_min: busy.min(),
            utilization_max: busy.max(),
            memory_min: memory.min(),
            memory_max: memory.max(),
            sm_clock_hz: each(GpuField::SmClock).min(),
            power_w: each(GpuField::Power).sum_of(gpus.len()),
            energy_j: each(GpuField::Energy).sum_of(gpus.len()),
            temperature_c: each(GpuField::Temperature).max(),
            throttled: reasons
                .map(|reasons| reasons & THROTTLING != 0)
                .reduce(|one, other| one | other),
            xid: gpus.iter().filter_map(|gpu| gpu.fields.xid()).max(),
            sm_active: each(GpuField::SmActive).mean(),
            tensor_active: each(GpuField::TensorActive).mean(),
            dram_active: each(GpuField::DramActive).mean(),
        }
    }

    /// How much busier the busiest is than the least busy: a share of time. `None` for one GPU.
    #[must_use]
    pub fn utilization_imbalance(&self) -> Option<f64> {
        self.apart(self.utilization_min, self.utilization_max)
    }

    /// How much fuller the fullest is than the emptiest: a share of memory. `None` for one GPU.
    #[must_use]
    pub fn memory_imbalance(&self) -> Option<f64> {
        self.apart(self.memory_min, self.memory_max)
    }

    fn apart(&self, least: Option<f64>, most: Option<f64>) -> Option<f64> {
        (self.gpus > 1).then_some(most? - least?)
    }
}

/// The values of those that say one.
struct Values {
    count: usize,
    sum: f64,
    least: f64,
    most: f64,
}

impl Values {
    fn of(values: impl Iterator<Item = Option<f64>>) -> Self {
        let none = Self {
            count: 0,
            sum: 0.0,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
        };
        values.flatten().fold(none, |all, value| Self {
            count: all.count + 1,
            sum: all.sum + value,
            least: all.least.min(value),
            most: all.most.max(value),
        })
    }

    fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.least)
    }

    fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.most)
    }

    #[expect(clippy::cast_precision_loss, reason = "no host has 2^52 GPUs")]
    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The sum, if all of `wanted` say a value: a sum over some would look like a fall.
    fn sum_of(&self, wanted: usize) -> Option<f64> {
        (self.count == wanted && wanted > 0).then_some(self.sum)
    }
}

/// A state as seen from one instant of a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GpuAt {
    /// What was known.
    #[serde(flatten)]
    pub state: GpuState,
    /// The instant minus the end of the reading, milliseconds.
    pub age_ms: f64,
}

impl GpuAt {
    /// What was read at `at`, as seen from `instant`, which is not before it.
    #[must_use]
    pub fn new(at: MonoTime, state: &GpuState, instant: MonoTime) -> Self {
        Self {
            state: *state,
            age_ms: nanos_as_ms(instant.since(at).as_nanos()),
        }
    }
}

/// The quotient is correctly rounded, so its shortest form has no noise.
#[expect(clippy::cast_precision_loss, reason = "exact up to 104 days")]
fn nanos_as_ms(nanos: u128) -> f64 {
    nanos as f64 / 1e6
}

impl GpuSample {
    /// All of them as one.
    #[must_use]
    pub fn state(&self) -> GpuState {
        GpuState::of(&self.gpus)
    }
}

/// The GPUs at three instants of a request: each the last good reading at or before it; `None` if
/// there was none, or it was older than three intervals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct GpuStates {
    /// When it was due.
    pub intended: Option<GpuAt>,
    /// At its first token.
    pub first_token: Option<GpuAt>,
    /// At its end.
    pub end: Option<GpuAt>,
}

impl Gpu {
    /// One of which nothing is known but its name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            uuid: "".into(),
            model: "".into(),
            fields: GpuFields::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(values: &[(GpuField, f64)]) -> Gpu {
        let mut gpu = Gpu::named("0");
        for (field, value) in values {
            gpu.fields.set(*field, Some(*value));
        }
        gpu
    }

    #[test]
    fn several_are_one_and_what_stands_out_stays_visible() {
        let gpus = [
            gpu(&[
                (GpuField::Utilization, 1.0),
                (GpuField::Power, 500.0),
                (GpuField::SmClock, 1.4e9),
                (GpuField::ClockReasons, 64.0),
                (GpuField::Xid, 0.0),
                (GpuField::MemoryUsed, 9.0),
                (GpuField::MemoryFree, 1.0),
            ]),
            gpu(&[
                (GpuField::Utilization, 0.5),
                (GpuField::Power, 300.0),
                (GpuField::SmClock, 1.9e9),
                (GpuField::ClockReasons, 1.0),
                (GpuField::Xid, 79.0),
                (GpuField::MemoryUsed, 6.0),
                (GpuField::MemoryFree, 4.0),
            ]),
        ];
        let state = GpuState::of(&gpus);
        assert_eq!(state.gpus, 2);
        assert_eq!(state.utilization, Some(0.75));
        assert_eq!(state.utilization_imbalance(), Some(0.5));
        assert!((state.memory_imbalance().expect("both say it") - 0.3).abs() < 1e-12);
        assert_eq!(state.power_w, Some(800.0));
        assert_eq!(state.sm_clock_hz, Some(1.4e9));
        assert_eq!((state.throttled, state.xid), (Some(true), Some(79)));
        assert_eq!((state.energy_j, state.dram_active), (None, None));
    }

    #[test]
    fn a_sum_over_some_is_no_sum_and_one_gpu_has_no_balance() {
        let some = [gpu(&[(GpuField::Power, 500.0)]), gpu(&[])];
        assert_eq!(GpuState::of(&some).power_w, None);
        let one = [gpu(&[
            (GpuField::Utilization, 0.5),
            (GpuField::ClockReasons, 4.0),
        ])];
        let state = GpuState::of(&one);
        assert_eq!(state.utilization_imbalance(), None);
        assert_eq!(
            state.throttled,
            Some(false),
            "the power cap is an everyday reason"
        );
        assert_eq!(GpuState::of(&[]), GpuState::default());
    }

    #[test]
    fn instances_are_as_busy_as_their_engine() {
        let instances = [gpu(&[(GpuField::EngineActive, 0.25)])];
        assert_eq!(GpuState::of(&instances).utilization, Some(0.25));
    }
}
