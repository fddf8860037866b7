//! Conversations: how many, how many turns, how long between turns.
//!
//! Each is a small entry by the hash of its name. Above a quarter of a million a sample of them is
//! kept, each whole, and the number is an estimate.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use super::ceiling::Estimate;
use super::lengths::{LengthCounter, Lengths};
use crate::load::trace::hash::Sampling;
use crate::load::trace::row::TraceRow;

/// Most that are followed: about 12 MB.
const FOLLOWED: usize = 250_000;

/// Counts conversations.
#[derive(Debug, Default)]
pub(super) struct SessionCounter {
    sessions: HashMap<u64, Session>,
    sampling: Sampling,
    gaps_ms: LengthCounter,
    delays_ms: LengthCounter,
}

#[derive(Debug, Default)]
struct Session {
    turns: u32,
    last_ns: Option<u64>,
}

/// Conversations of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sessions {
    /// How many.
    pub count: Estimate,
    /// Turns of each.
    pub turns: Lengths,
    /// From one turn to the next of a conversation, in milliseconds.
    pub gap_ms: Option<Lengths>,
    /// Pauses between the end of a turn and the next, where the file says, in milliseconds.
    pub delay_ms: Option<Lengths>,
}

impl SessionCounter {
    pub(super) fn add(&mut self, hash: u64, row: &TraceRow) {
        if let Some(delay) = row.delay {
            self.delays_ms.add(millis(delay));
        }
        if !self.sampling.keeps(hash) {
            return;
        }
        let session = self.sessions.entry(hash).or_default();
        session.turns += 1;
        if let Some(at) = row.at {
            let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
            if let Some(gap) = session.last_ns.and_then(|last| at.checked_sub(last)) {
                self.gaps_ms.add(millis(Duration::from_nanos(gap)));
            }
            session.last_ns = Some(at);
        }
        if self.sessions.len() > FOLLOWED && self.sampling.halvings < Sampling::MOST {
            self.sampling.halvings += 1;
            let sampling = self.sampling;
            self.sessions.retain(|hash, _| sampling.keeps(*hash));
        }
    }

    pub(super) fn finish(self) -> Option<Sessions> {
        let mut turns = LengthCounter::default();
        for session in self.sessions.values() {
            turns.add(session.turns);
        }
        let kept = self.sessions.len() as f64;
        let part = 1.0 / self.sampling.weight();
        let sampled = self.sampling != Sampling::default();
        Some(Sessions {
            count: Estimate {
                value: kept / part,
                error: sampled.then(|| 1.96 * (kept * (1.0 - part)).sqrt() / part),
            },
            turns: turns.finish()?,
            gap_ms: self.gaps_ms.finish(),
            delay_ms: self.delays_ms.finish(),
        })
    }
}

/// Whole milliseconds; 49 days are the most.
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
