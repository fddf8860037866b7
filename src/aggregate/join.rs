//! What was known of a server at the instant a request was due.
//!
//! One bounded ring of good scrapes per target; the answer is the last one at or before the
//! instant, never interpolated, and none if that one is too old.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::MonoTime;
use crate::measurement::{Sample, ServerState, StateAt};

/// The latest scrapes of one target, ascending in time.
#[derive(Debug, Clone)]
pub struct SampleRing {
    samples: VecDeque<(MonoTime, ServerState)>,
    capacity: usize,
    disordered: u64,
}

impl SampleRing {
    /// An empty ring for the last `capacity` samples (at least one). To serve records at their
    /// end it must reach back as far as a request may last: total limit ÷ scrape interval,
    /// plus four.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            samples: VecDeque::with_capacity(capacity),
            capacity,
            disordered: 0,
        }
    }

    /// Adds the gauges of the newest sample. One that is older than the newest is dropped and
    /// counted.
    pub fn push(&mut self, sample: &Sample) {
        if self
            .samples
            .back()
            .is_some_and(|(last, _)| *last > sample.at)
        {
            self.disordered += 1;
            return;
        }
        if self.samples.len() == self.capacity {
            self.samples.pop_front();
        }
        self.samples.push_back((sample.at, sample.state));
    }

    /// The last sample at or before `instant`; `None` if there is none, or if it is more than
    /// `max_age` older than `instant` (three scrape intervals).
    #[must_use]
    pub fn at(&self, instant: MonoTime, max_age: Duration) -> Option<StateAt> {
        let after = self.samples.partition_point(|(at, _)| *at <= instant);
        let (at, state) = self.samples.get(after.checked_sub(1)?)?;
        (instant.since(*at) <= max_age).then(|| StateAt::new(*at, state, instant))
    }

    /// Samples dropped because a newer one was there.
    #[must_use]
    pub const fn disordered(&self) -> u64 {
        self.disordered
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn ms(value: u64) -> MonoTime {
        MonoTime::from_nanos(value * 1_000_000)
    }

    fn sample(at: u64, running: f64) -> Sample {
        Sample {
            target_index: 0,
            asked: ms(at),
            at: ms(at),
            page: Arc::default(),
            state: ServerState {
                running: Some(running),
                ..ServerState::default()
            },
        }
    }

    fn running_at(ring: &SampleRing, at: u64) -> Option<(f64, f64)> {
        ring.at(ms(at), Duration::from_millis(300))
            .map(|state| (state.running.expect("each sample has it"), state.age_ms))
    }

    #[test]
    fn the_last_sample_at_or_before_the_instant_counts() {
        let mut ring = SampleRing::new(8);
        assert_eq!(running_at(&ring, 100), None);
        ring.push(&sample(100, 1.0));
        ring.push(&sample(200, 2.0));
        assert_eq!(running_at(&ring, 99), None, "a later page is not known yet");
        assert_eq!(running_at(&ring, 100), Some((1.0, 0.0)));
        assert_eq!(running_at(&ring, 199), Some((1.0, 99.0)));
        assert_eq!(running_at(&ring, 200), Some((2.0, 0.0)));
        assert_eq!(running_at(&ring, 500), Some((2.0, 300.0)));
        assert_eq!(running_at(&ring, 501), None, "three intervals old");
    }

    #[test]
    fn the_ring_is_bounded_and_ordered() {
        let mut ring = SampleRing::new(2);
        for (at, running) in [(100, 1.0), (200, 2.0), (300, 3.0)] {
            ring.push(&sample(at, running));
        }
        ring.push(&sample(250, 9.0));
        assert_eq!(ring.disordered(), 1);
        assert_eq!(running_at(&ring, 150), None, "no longer held");
        assert_eq!(running_at(&ring, 299), Some((2.0, 99.0)));
        assert_eq!(running_at(&ring, 300), Some((3.0, 0.0)));
    }
}
