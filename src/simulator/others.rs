//! Requests of other users: they arrive in the engine at random instants, with prompts that have
//! nothing in common, and nobody reads their answers.
//!
//! The gaps are exponential, drawn by seed; an arrival is at the next whole millisecond, as
//! everything in the engine. Not here: what becomes of them.

use std::time::Duration;

use super::engine::{Job, JobId};
use super::tokens::mix;
use crate::clock::MonoTime;

/// Numbers from here on are requests of others; those of connections never get there.
const FIRST: u64 = 1 << 63;

/// One stream of requests.
#[derive(Debug)]
struct Load {
    /// The next arrival, before rounding, in seconds since the origin.
    due: f64,
    until: MonoTime,
    rate: f64,
    input_tokens: u32,
    output_tokens: u32,
}

/// All streams of requests on and to come.
#[derive(Debug)]
pub(super) struct Others {
    seed: u64,
    loads: Vec<Load>,
    drawn: u64,
}

impl Others {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            seed,
            loads: Vec::new(),
            drawn: 0,
        }
    }

    /// Lets so many requests a second of so many tokens in and out arrive within a span.
    pub(super) fn plan(
        &mut self,
        (from, until): (MonoTime, MonoTime),
        rate: f64,
        (input_tokens, output_tokens): (u32, u32),
    ) {
        let due = from.since(MonoTime::ZERO).as_secs_f64() + self.gap(rate);
        self.loads.push(Load {
            due,
            until,
            rate,
            input_tokens,
            output_tokens,
        });
        self.loads.retain(|load| at(load.due) < load.until);
    }

    /// When the next one arrives.
    pub(super) fn next(&self) -> Option<MonoTime> {
        self.loads.iter().map(|load| at(load.due)).min()
    }

    /// The request that arrives next, if any does.
    pub(super) fn take(&mut self) -> Option<Job> {
        let all = self.loads.iter().enumerate();
        let (place, soonest) = all.min_by(|(_, a), (_, b)| a.due.total_cmp(&b.due))?;
        let (rate, tokens) = (soonest.rate, (soonest.input_tokens, soonest.output_tokens));
        let gap = self.gap(rate);
        self.loads[place].due += gap;
        self.loads.retain(|load| at(load.due) < load.until);
        let number = FIRST | self.drawn;
        let named = mix(self.seed ^ mix(number));
        Some(Job {
            id: JobId(number),
            prompt: (0..u64::from(tokens.0))
                .map(|token| mix(named ^ token))
                .collect(),
            cache_salt: None,
            answer: Vec::new(),
            min_tokens: tokens.1,
            max_tokens: tokens.1,
        })
    }

    /// Seconds to the next arrival at this rate.
    #[expect(clippy::cast_precision_loss, reason = "53 of the bits are drawn")]
    fn gap(&mut self, rate: f64) -> f64 {
        self.drawn += 1;
        let bits = mix(self.seed ^ mix(self.drawn ^ FIRST)) >> 11;
        let share = (bits as f64 + 0.5) / (1_u64 << 53) as f64;
        -share.ln() / rate
    }
}

/// The next whole millisecond.
fn at(seconds: f64) -> MonoTime {
    let millis = Duration::try_from_secs_f64(seconds).map_or(u128::from(u32::MAX), |due| {
        due.as_nanos().div_ceil(1_000_000)
    });
    // Longer than any fault.
    MonoTime::ZERO + Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX / 2_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(seed: u64, rate: f64, seconds: u64) -> Vec<u64> {
        let mut others = Others::new(seed);
        let end = MonoTime::ZERO + Duration::from_secs(seconds);
        others.plan((MonoTime::ZERO, end), rate, (10, 3));
        let mut all = Vec::new();
        while let Some(at) = others.next() {
            assert!(at < end);
            let job = others.take().expect("one is due");
            assert_eq!((job.prompt.len(), job.max_tokens), (10, 3));
            all.push(at.as_nanos());
        }
        all
    }

    #[test]
    fn they_come_at_the_rate_and_as_the_seed_has_it() {
        let all = arrivals(1, 20.0, 500);
        // 10,000 on average, with a deviation of 100.
        assert!((9_600..10_400).contains(&all.len()), "{}", all.len());
        assert!(all.is_sorted() && all.iter().all(|at| at % 1_000_000 == 0));
        let gaps: Vec<u64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Of exponential gaps of 50 ms a share of 1/e is longer than that.
        let long = gaps.iter().filter(|gap| **gap > 50_000_000).count();
        assert!((3_400..3_950).contains(&long), "{long}");
        assert_eq!(all, arrivals(1, 20.0, 500));
        assert_ne!(all, arrivals(2, 20.0, 500));
    }

    #[test]
    fn several_streams_come_in_order_and_no_two_requests_are_one() {
        let mut others = Others::new(3);
        let ms = |millis| MonoTime::ZERO + Duration::from_millis(millis);
        others.plan((ms(0), ms(1000)), 50.0, (4, 1));
        others.plan((ms(500), ms(2000)), 30.0, (5, 1));
        let (mut last, mut seen) = (MonoTime::ZERO, std::collections::BTreeSet::new());
        while let Some(at) = others.next() {
            assert!(at >= last);
            last = at;
            let job = others.take().expect("one is due");
            assert!(seen.insert(job.id) && job.id.0 >= FIRST);
        }
        assert!(last > ms(1500), "the second one goes on");
    }
}
