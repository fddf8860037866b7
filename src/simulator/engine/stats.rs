//! What the engine counts for its metrics page: totals and latency histograms.
//!
//! Bounds are vLLM's. Sums are whole nanoseconds, so they are exact. The page itself is written
//! in `wire`.

use std::time::Duration;

use super::job::Finish;
use super::sequence::Times;

/// Upper bounds of vLLM's TTFT buckets, in seconds.
const TTFT_BOUNDS: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
/// Upper bounds of vLLM's inter-token latency buckets, in seconds.
const ITL_BOUNDS: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
/// Upper bounds of vLLM's buckets for a whole request and its parts, in seconds.
const E2E_BOUNDS: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

/// Counts of durations by bucket.
#[derive(Debug, Clone)]
pub struct BucketCounts {
    bounds: &'static [f64],
    counts: Vec<u64>,
    count: u64,
    sum: Duration,
}

impl BucketCounts {
    fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len()],
            count: 0,
            sum: Duration::ZERO,
        }
    }

    fn observe(&mut self, value: Duration) {
        let seconds = value.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.count += 1;
        self.sum += value;
    }

    /// Each finite upper bound in seconds with how many values were at or below it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let mut below = 0;
        self.bounds.iter().zip(&self.counts).map(move |(bound, n)| {
            below += n;
            (*bound, below)
        })
    }

    /// How many values there were.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> Duration {
        self.sum
    }
}

/// Totals since the engine started.
#[derive(Debug, Clone)]
pub struct Stats {
    /// From the request's arrival to its first token.
    pub ttft: BucketCounts,
    /// From one token to the next, one value per pair.
    pub itl: BucketCounts,
    /// From the request's arrival to its last token.
    pub e2e: BucketCounts,
    /// In the queue, of requests that ended.
    pub queue: BucketCounts,
    /// From the queue to the first token, of requests that ended.
    pub prefill: BucketCounts,
    /// From the first token to the last, of requests that ended.
    pub decode: BucketCounts,
    /// The two before, together.
    pub inference: BucketCounts,
    /// Prompt tokens whose prefill ended, cached ones included.
    pub prompt_tokens: u64,
    /// Prompt tokens that were looked up in the prefix cache, once for each request.
    pub prefix_queries: u64,
    /// Of these, how many were found.
    pub prefix_hits: u64,
    /// How often a sequence lost its blocks to another.
    pub preemptions: u64,
    /// Tokens produced.
    pub generation_tokens: u64,
    /// Requests that ended with `stop`.
    pub stopped: u64,
    /// Requests that ended with `length`.
    pub reached_length: u64,
    /// Requests whose client went away.
    pub aborted: u64,
}

impl Stats {
    pub(super) fn new() -> Self {
        Self {
            ttft: BucketCounts::new(&TTFT_BOUNDS),
            itl: BucketCounts::new(&ITL_BOUNDS),
            e2e: BucketCounts::new(&E2E_BOUNDS),
            queue: BucketCounts::new(&E2E_BOUNDS),
            prefill: BucketCounts::new(&E2E_BOUNDS),
            decode: BucketCounts::new(&E2E_BOUNDS),
            inference: BucketCounts::new(&E2E_BOUNDS),
            prompt_tokens: 0,
            prefix_queries: 0,
            prefix_hits: 0,
            preemptions: 0,
            generation_tokens: 0,
            stopped: 0,
            reached_length: 0,
            aborted: 0,
        }
    }

    pub(super) fn looked_up(&mut self, prompt_tokens: u32, found: u32) {
        self.prefix_queries += u64::from(prompt_tokens);
        self.prefix_hits += u64::from(found);
    }

    pub(super) fn first_token(&mut self, since_arrival: Duration, prompt_tokens: u32) {
        self.ttft.observe(since_arrival);
        self.prompt_tokens += u64::from(prompt_tokens);
        self.generation_tokens += 1;
    }

    pub(super) fn next_token(&mut self, since_last: Duration) {
        self.itl.observe(since_last);
        self.generation_tokens += 1;
    }

    pub(super) fn finished(&mut self, times: &Times, finish: Finish) {
        self.e2e.observe(times.whole());
        self.queue.observe(times.queue);
        self.prefill.observe(times.prefill);
        self.decode.observe(times.decode);
        self.inference.observe(times.prefill + times.decode);
        match finish {
            Finish::Stop => self.stopped += 1,
            Finish::Length => self.reached_length += 1,
        }
    }
}
