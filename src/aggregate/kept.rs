//! Which requests have a span: those of the ratio, and by the tail rules some of the others.

use std::time::Duration;

use crate::config::{TailRules, TraceSampling};
use crate::measurement::RequestRecord;

/// Why a request has a span, or that it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// As decided before it was sent: the server was told to trace it too.
    Head,
    /// For what became of it: the span is ours alone.
    Tail,
    /// It has none.
    Not,
}

impl Kept {
    /// By `sampling`, once `record` is complete.
    #[must_use]
    pub fn of(record: &RequestRecord, sampling: &TraceSampling) -> Self {
        if record.traced {
            Self::Head
        } else if sampling.tail.keeps(record) {
            Self::Tail
        } else {
            Self::Not
        }
    }
}

impl TailRules {
    fn keeps(&self, record: &RequestRecord) -> bool {
        let above = |limit: Option<Duration>, value: Option<Duration>| {
            limit.zip(value).is_some_and(|(limit, value)| value > limit)
        };
        self.failures && record.is_failure()
            || above(self.ttft, record.ttft())
            || above(self.itl, record.itl())
            || above(self.response_time, record.response_time())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::fixture;
    use crate::measurement::Outcome;

    /// Nothing by the ratio.
    fn tail(failures: bool, ttft: Option<u64>, response_time: Option<u64>) -> TraceSampling {
        TraceSampling {
            ratio: 0.0,
            tail: TailRules {
                failures,
                ttft: ttft.map(Duration::from_millis),
                itl: None,
                response_time: response_time.map(Duration::from_millis),
            },
        }
    }

    #[test]
    fn everything_is_kept_by_default() {
        let observed = fixture::ok(&fixture::stream(0), 0, &[100, 110]);
        assert_eq!(
            Kept::of(&observed.record, &TraceSampling::default()),
            Kept::Head
        );
    }

    #[test]
    fn outside_the_ratio_failures_and_exceedances_are_kept() {
        // Due at 0, its first token at 101, its last at 111.
        let stream = fixture::stream(0);
        let mut ok = fixture::ok(&stream, 0, &[100, 110]).record;
        let mut failed = fixture::failed(&stream, 0, Outcome::TimeoutTotal, None).record;
        ok.traced = false;
        failed.traced = false;
        for (sampling, record, kept) in [
            (tail(true, None, None), &ok, Kept::Not),
            (tail(true, None, None), &failed, Kept::Tail),
            (tail(false, None, None), &failed, Kept::Not),
            (tail(false, Some(99), None), &ok, Kept::Tail),
            (tail(false, Some(100), None), &ok, Kept::Not),
            (tail(false, None, Some(110)), &ok, Kept::Tail),
            (tail(false, None, Some(111)), &ok, Kept::Not),
        ] {
            assert_eq!(Kept::of(record, &sampling), kept, "{sampling:?}");
        }
    }
}
