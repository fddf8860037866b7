//! How fast the processor is while something is measured.
//!
//! On a virtual machine the processor can run at a tenth of its speed for tens of milliseconds,
//! all cores at once, because the host's is throttled: no counter of the machine tells. So a
//! thread counts a little, a thousand times a second, and notes how much time of its own that took.
//! Time in which another thread had the core is not in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::count;

const EVERY: Duration = Duration::from_millis(1);
/// Steps of one count, which take some microseconds.
const STEPS: u32 = 15_000;
/// The fewest of so many counts is taken, since an interrupt may fall into one.
const COUNTS: usize = 3;
/// Slower than this many times the usual is slow.
const SLOW: f64 = 1.5;
/// What was put off while it was slow is not done at once when it is over.
const AFTER: Duration = Duration::from_millis(100);

/// Watches the processor until it is asked for what it saw.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

/// When, in time since the Unix epoch, and how long a count took, in seconds.
type Sample = (Duration, f64);

impl Watch {
    #[expect(
        clippy::disallowed_methods,
        reason = "the machine is looked at, whose time is real"
    )]
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let watch = move || {
            let mut samples = Vec::new();
            while !stopped.load(Relaxed) {
                std::thread::sleep(EVERY);
                let shortest = (0..COUNTS).map(|_| counted()).fold(f64::INFINITY, f64::min);
                samples.push((now(), shortest));
            }
            samples
        };
        Self {
            stop,
            thread: std::thread::spawn(watch),
        }
    }

    pub(crate) fn stop(self) -> Speed {
        self.stop.store(true, Relaxed);
        let samples = self.thread.join().expect("it does not panic");
        let mut taken: Vec<f64> = samples.iter().map(|(_, taken)| *taken).collect();
        taken.sort_by(f64::total_cmp);
        let usual = taken.get(taken.len() / 10).copied().unwrap_or(f64::NAN);
        let slow = samples.iter().filter(|(_, taken)| *taken > usual * SLOW);
        Speed {
            slow: slow.map(|(at, _)| *at).collect(),
            samples: samples.len(),
            slowest: taken.last().copied().unwrap_or(f64::NAN) / usual,
        }
    }
}

/// How fast the processor was.
pub(crate) struct Speed {
    /// When it was slow, in order.
    slow: Vec<Duration>,
    samples: usize,
    /// The longest count as a multiple of the usual one.
    slowest: f64,
}

impl Speed {
    /// Whether the processor was at its speed from some time before `from` until `to`, both since
    /// the Unix epoch.
    pub(crate) fn was_full(&self, from: Duration, to: Duration) -> bool {
        let from = from.saturating_sub(AFTER);
        let first = self.slow.partition_point(|at| *at < from);
        // A slow moment is seen at its end.
        self.slow.get(first).is_none_or(|at| *at > to + 2 * EVERY)
    }

    pub(crate) fn told(&self) -> String {
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let share = self.slow.len() as f64 / self.samples.max(1) as f64 * 100.0;
        format!(
            "the processor took {SLOW} times as long as usual or more, at worst {:.0} times, in {share:.1} % of {} looks",
            self.slowest, self.samples
        )
    }
}

/// Seconds of the processor that one count takes.
fn counted() -> f64 {
    let used = || {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        let whole = u64::try_from(used.tv_sec).unwrap_or(0);
        let part = u32::try_from(used.tv_nsec).unwrap_or(0);
        Duration::new(whole, part)
    };
    let start = used();
    count(STEPS);
    used().saturating_sub(start).as_secs_f64()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the machine is looked at, whose time is real"
)]
fn now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("the clock is past 1970")
}
