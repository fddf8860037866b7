//! The GPUs of a target over a window: means by time, and what happened in it.

use std::time::Duration;

use crate::clock::MonoTime;
use crate::measurement::GpuState;

/// The GPUs of one target over a span of time. Means are weighted by time, over the time in which
/// the value was known; `None` if it never was.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GpuWindow {
    /// How much of the window a reading covers, seconds.
    pub covered_s: f64,
    /// Readings of which something holds within it.
    pub readings: usize,
    /// Most GPUs at once.
    pub gpus: u32,
    /// Mean share of time in which any kernel ran.
    pub utilization: Option<f64>,
    /// How much busier the busiest is than the least busy: a share of time.
    pub utilization_imbalance: Option<f64>,
    /// How much fuller the fullest is than the emptiest: a share of memory.
    pub memory_imbalance: Option<f64>,
    /// Share of memory in use of the fullest.
    pub memory_max: Option<f64>,
    /// Clock of the slowest, hertz.
    pub sm_clock_hz: Option<f64>,
    /// The lowest of these.
    pub sm_clock_min_hz: Option<f64>,
    /// Power of all together, watts.
    pub power_w: Option<f64>,
    /// For how long that is known, seconds.
    pub power_known_s: f64,
    /// Temperature of the hottest.
    pub temperature_c: Option<f64>,
    /// Share of time in which the clocks of any were lowered for a reason that is no everyday one.
    pub throttled: Option<f64>,
    /// An error that was not there before, if one came.
    pub new_xid: Option<u32>,
    /// Mean share of multiprocessors and cycles that had work.
    pub sm_active: Option<f64>,
    /// Mean share of cycles in which tensor cores worked.
    pub tensor_active: Option<f64>,
    /// Mean share of cycles in which memory moved data.
    pub dram_active: Option<f64>,
}

impl GpuWindow {
    /// Of `states`, ascending, the first of which may lie before the window.
    pub(super) fn of<'a>(
        states: impl Iterator<Item = (MonoTime, &'a GpuState)>,
        (from, until): (MonoTime, MonoTime),
        max_age: Duration,
    ) -> Self {
        let states: Vec<_> = states.take_while(|(at, _)| *at < until).collect();
        let mut window = Self::default();
        let mut means = Means::default();
        for (place, (at, state)) in states.iter().enumerate() {
            let next = states.get(place + 1).map_or(until, |(next, _)| *next);
            let begin = (*at).max(from);
            let end = next.min(until).min(*at + max_age);
            if end <= begin {
                continue;
            }
            let seconds = end.since(begin).as_secs_f64();
            window.covered_s += seconds;
            window.readings += 1;
            window.gpus = window.gpus.max(state.gpus);
            means.add(state, seconds);
        }
        means.give(&mut window);
        window
    }
}

/// A mean by time, while it is made.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    seconds: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>, seconds: f64) {
        if let Some(value) = value {
            self.sum += value * seconds;
            self.seconds += seconds;
        }
    }

    fn get(self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.sum / self.seconds)
    }
}

#[derive(Debug, Default)]
struct Means {
    utilization: Mean,
    utilization_imbalance: Mean,
    memory_imbalance: Mean,
    memory_max: Mean,
    sm_clock: Mean,
    sm_clock_min: Option<f64>,
    power: Mean,
    temperature: Mean,
    throttled: Mean,
    sm_active: Mean,
    tensor_active: Mean,
    dram_active: Mean,
}

impl Means {
    fn add(&mut self, state: &GpuState, seconds: f64) {
        let throttled = state.throttled.map(|lowered| f64::from(u8::from(lowered)));
        for (mean, value) in [
            (&mut self.utilization, state.utilization),
            (
                &mut self.utilization_imbalance,
                state.utilization_imbalance(),
            ),
            (&mut self.memory_imbalance, state.memory_imbalance()),
            (&mut self.memory_max, state.memory_max),
            (&mut self.sm_clock, state.sm_clock_hz),
            (&mut self.power, state.power_w),
            (&mut self.temperature, state.temperature_c),
            (&mut self.throttled, throttled),
            (&mut self.sm_active, state.sm_active),
            (&mut self.tensor_active, state.tensor_active),
            (&mut self.dram_active, state.dram_active),
        ] {
            mean.add(value, seconds);
        }
        self.sm_clock_min = match (self.sm_clock_min, state.sm_clock_hz) {
            (Some(known), Some(clock)) => Some(known.min(clock)),
            (known, clock) => known.or(clock),
        };
    }

    fn give(self, window: &mut GpuWindow) {
        window.utilization = self.utilization.get();
        window.utilization_imbalance = self.utilization_imbalance.get();
        window.memory_imbalance = self.memory_imbalance.get();
        window.memory_max = self.memory_max.get();
        window.sm_clock_hz = self.sm_clock.get();
        window.sm_clock_min_hz = self.sm_clock_min;
        window.power_w = self.power.get();
        window.power_known_s = self.power.seconds;
        window.temperature_c = self.temperature.get();
        window.throttled = self.throttled.get();
        window.sm_active = self.sm_active.get();
        window.tensor_active = self.tensor_active.get();
        window.dram_active = self.dram_active.get();
    }
}
