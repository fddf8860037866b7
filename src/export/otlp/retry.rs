//! How long to wait before a batch is tried again, and when to give it up. Pure.

use std::time::Duration;

/// Doubling waits between the tries of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Backoff {
    /// The first wait.
    pub(super) first: Duration,
    /// No wait of our own is longer.
    pub(super) longest: Duration,
    /// Tries of one batch, the first included.
    pub(super) tries: u32,
}

impl Backoff {
    /// 0.5 s, 1, 2, 4, then 5 each: a batch is given up after a good half minute of refusals,
    /// and a receiver that is back is noticed within 5 s. Meanwhile the queue takes what comes,
    /// and what it cannot take is counted.
    pub(super) const USUAL: Self = Self {
        first: Duration::from_millis(500),
        longest: Duration::from_secs(5),
        tries: 10,
    };

    /// The longest wait that a receiver may ask for; a minute's queue is all we would hold.
    const ASKED_AT_MOST: Duration = Duration::from_mins(1);

    /// The wait after `done` tries have failed, or `None` to give up. `asked` is the wait that
    /// the receiver asked for; ours is never shorter.
    pub(super) fn wait(&self, done: u32, asked: Option<Duration>) -> Option<Duration> {
        if done >= self.tries {
            return None;
        }
        let doubled = 2_u32.saturating_pow(done.saturating_sub(1));
        let own = self.first.saturating_mul(doubled).min(self.longest);
        Some(own.max(asked.unwrap_or_default().min(Self::ASKED_AT_MOST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_end() {
        let waits: Vec<_> = (1..=10)
            .map(|done| Backoff::USUAL.wait(done, None).map(|wait| wait.as_millis()))
            .collect();
        assert_eq!(
            waits,
            [
                Some(500),
                Some(1_000),
                Some(2_000),
                Some(4_000),
                Some(5_000),
                Some(5_000),
                Some(5_000),
                Some(5_000),
                Some(5_000),
                None
            ]
        );
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_and_not_for_less() {
        let wait = |asked| Backoff::USUAL.wait(3, Some(Duration::from_secs(asked)));
        assert_eq!(wait(0), Some(Duration::from_secs(2)));
        assert_eq!(wait(7), Some(Duration::from_secs(7)));
        assert_eq!(wait(u64::MAX), Some(Duration::from_mins(1)));
    }
}
