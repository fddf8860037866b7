//! What is measured on every request and kept as a histogram: a closed set, and what one
//! record adds to each.
//!
//! Latencies are taken from `ok` records only. The failure-aware ones hold a failure as +∞.
//! Times of single tokens are taken from streams only, and not from one that something between
//! held back until its end: its first token is that of the buffer.
//! Our own lag and the wait for a slot are taken from every record that has them. A cancelled
//! request says nothing about anyone and is in none.

use std::time::Duration;

use crate::measurement::{Outcome, RequestRecord};

/// One histogram kept per stream. Seconds, but for [`Measure::OutputRate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Start to first token.
    Ttft,
    /// Start to first token that is not reasoning.
    Ttfo,
    /// Mean time between tokens of one request.
    Itl,
    /// Time between two successive token-bearing chunks.
    ChunkGap,
    /// Start to last token.
    ServiceTime,
    /// Intended time to first token.
    ResponseTtft,
    /// Intended time to last token.
    ResponseTime,
    /// DNS, TCP and TLS of a new connection.
    ConnectTime,
    /// TTFT, a failure being +∞.
    TtftOrFailure,
    /// Response time, a failure being +∞.
    ResponseTimeOrFailure,
    /// Output tokens per second of the decode phase.
    OutputRate,
    /// From when a request could have started to its start: our own delay.
    ScheduleLag,
    /// From the kernel's receive to our read: our own delay.
    ReadLag,
    /// From the intended time to a free slot: the server's delay.
    SlotWait,
}

/// What one record adds to one measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// Nothing.
    Absent,
    /// A value.
    Value(f64),
    /// A failure.
    Never,
}

impl Measure {
    /// Every measure, in the order of exported pages.
    pub const ALL: [Self; 14] = [
        Self::Ttft,
        Self::Ttfo,
        Self::Itl,
        Self::ChunkGap,
        Self::ServiceTime,
        Self::ResponseTtft,
        Self::ResponseTime,
        Self::ConnectTime,
        Self::TtftOrFailure,
        Self::ResponseTimeOrFailure,
        Self::OutputRate,
        Self::ScheduleLag,
        Self::ReadLag,
        Self::SlotWait,
    ];

    /// What `record` adds. Chunk gaps are many per record and are not read here.
    #[must_use]
    pub fn read(self, record: &RequestRecord) -> Reading {
        match self {
            Self::ScheduleLag | Self::ReadLag | Self::SlotWait => self.read_waits(record),
            Self::TtftOrFailure if record.is_failure() => {
                // A unary response has no first token that could have come too late.
                if record.stream.streaming {
                    Reading::Never
                } else {
                    Reading::Absent
                }
            }
            Self::ResponseTimeOrFailure if record.is_failure() => Reading::Never,
            _ if record.outcome == Outcome::Ok
                && (!self.is_of_tokens() || record.shows_tokens()) =>
            {
                self.read_latency(record)
            }
            _ => Reading::Absent,
        }
    }

    /// Whether it tells when single tokens came.
    const fn is_of_tokens(self) -> bool {
        matches!(
            self,
            Self::Ttft
                | Self::Ttfo
                | Self::Itl
                | Self::ChunkGap
                | Self::ResponseTtft
                | Self::TtftOrFailure
                | Self::OutputRate
        )
    }

    fn read_waits(self, record: &RequestRecord) -> Reading {
        if record.outcome == Outcome::Cancelled {
            return Reading::Absent;
        }
        Reading::of(match self {
            Self::ScheduleLag => record.schedule_lag(),
            Self::ReadLag => record.read_lag(),
            _ => record.slot_wait(),
        })
    }

    fn read_latency(self, record: &RequestRecord) -> Reading {
        Reading::of(match self {
            Self::Ttft | Self::TtftOrFailure => record.ttft(),
            Self::Ttfo => record.ttfo(),
            Self::Itl => record.itl(),
            Self::ServiceTime => record.service_time(),
            Self::ResponseTtft => record.response_ttft(),
            Self::ResponseTime | Self::ResponseTimeOrFailure => record.response_time(),
            Self::ConnectTime => record.connect_time(),
            Self::OutputRate => {
                return record.output_rate().map_or(Reading::Absent, Reading::Value);
            }
            Self::ChunkGap | Self::ScheduleLag | Self::ReadLag | Self::SlotWait => None,
        })
    }
}

impl Reading {
    fn of(span: Option<Duration>) -> Self {
        span.map_or(Self::Absent, |span| Self::Value(span.as_secs_f64()))
    }
}
