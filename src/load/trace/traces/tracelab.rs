//! `TraceLab`: JSON lines, one for each round of a coding agent, with how much of its prompt the
//! provider served from its cache, and events with instants.
//!
//! There are no ids of blocks. They are made from what is known: a round shares the first
//! `prefix_tokens` with the round before it in its session, and the rest is new. A round is sent
//! when its last input event has come, and takes until its last output event.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;

use super::fields::{Bad, Raw, length, length_of, object, required, text};
use crate::load::trace::error::Fault;
use crate::load::trace::number;
use crate::load::trace::row::TraceRow;
use crate::load::trace::rows::ReadOptions;
use crate::load::trace::stamp;

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    session_id: Raw<'a>,
    #[serde(borrow)]
    round_index: Raw<'a>,
    #[serde(borrow)]
    model: Raw<'a>,
    #[serde(borrow)]
    input_tokens_total: Raw<'a>,
    #[serde(borrow)]
    prefix_tokens: Raw<'a>,
    #[serde(borrow)]
    output_tokens: Raw<'a>,
    #[serde(borrow, default)]
    timing_events: Option<Vec<Event<'a>>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    event_type: Raw<'a>,
    #[serde(borrow)]
    timestamp: Raw<'a>,
}

/// Sessions whose last round is remembered.
const REMEMBERED: usize = 65_536;

/// The blocks of the last round of each session, as ranges of ids.
#[derive(Debug, Default)]
pub(in crate::load::trace) struct Rounds {
    last: HashMap<String, Vec<Range<u64>>>,
    order: VecDeque<String>,
    next_id: u64,
}

impl Rounds {
    /// Blocks of a round: of the one before the first `shared`, then new ones up to `all`.
    fn blocks(&mut self, session: &str, (shared, all): (u64, u64), into: &mut Vec<u64>) {
        if !self.last.contains_key(session) {
            self.order.push_back(session.to_owned());
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.last.remove(&oldest);
            }
        }
        let ranges = self.last.entry(session.to_owned()).or_default();
        let mut left = shared.min(all);
        let mut kept = Vec::new();
        for range in ranges.iter() {
            let length = left.min(range.end - range.start);
            if length == 0 {
                break;
            }
            kept.push(range.start..range.start + length);
            left -= length;
        }
        let have: u64 = kept.iter().map(|range| range.end - range.start).sum();
        if all > have {
            kept.push(self.next_id..self.next_id + (all - have));
            self.next_id += all - have;
        }
        into.extend(kept.iter().cloned().flatten());
        *ranges = kept;
    }
}

/// One line.
pub(in crate::load::trace) fn read(
    line: &[u8],
    rounds: &mut Rounds,
    options: &ReadOptions,
    row: &mut TraceRow,
) -> Result<(), Bad> {
    let given: Row = object(line)?;
    let session = required("session_id", text("session_id", given.session_id)?)?;
    let input = length("input_tokens_total", given.input_tokens_total)?;
    let input = required("input_tokens_total", input)?;
    if !prompt_is_possible(input) {
        let wanted = format!("at most {LONGEST_PROMPT} tokens");
        return Err(Fault::new("input_tokens_total", &input.to_string(), wanted));
    }
    row.input_tokens = Some(input);
    row.output_tokens = match given.output_tokens.map(serde_json::value::RawValue::get) {
        // Rounds that only called a tool are counted as 0 by some providers.
        None | Some("0") => None,
        Some(tokens) => Some(length_of("output_tokens", tokens)?),
    };
    if let Some(round) = text("round_index", given.round_index)? {
        row.turn = Some(
            number::tokens(&round)
                .ok_or_else(|| Fault::new("round_index", &round, "a whole number, 0 or more"))?,
        );
    }
    row.model = text("model", given.model)?;
    let prefix = match given.prefix_tokens.map(serde_json::value::RawValue::get) {
        None => 0,
        Some(tokens) => number::tokens(tokens).ok_or_else(|| {
            Fault::new(
                "prefix_tokens",
                tokens,
                "a whole number of tokens, 0 or more",
            )
        })?,
    };
    if prefix > input {
        return Err(Fault::new(
            "prefix_tokens",
            &prefix.to_string(),
            format!("at most the {input} tokens of the prompt"),
        ));
    }
    times(given.timing_events.as_deref().unwrap_or_default(), row)?;
    row.block_tokens = options.block_tokens;
    let size = options.block_tokens;
    let (shared, all) = (u64::from(prefix / size), u64::from(input / size));
    rounds.blocks(&session, (shared, all), &mut row.blocks);
    row.session = Some(session);
    Ok(())
}

/// Longest prompt for which blocks are made; the longest contexts of today have a few million.
const LONGEST_PROMPT: u32 = 100_000_000;

const fn prompt_is_possible(tokens: u32) -> bool {
    tokens <= LONGEST_PROMPT
}

fn times(events: &[Event], row: &mut TraceRow) -> Result<(), Bad> {
    let mut last_input: Option<Duration> = None;
    let mut outputs: Option<(Duration, Duration)> = None;
    for event in events {
        let Some(at) = text("timing_events.timestamp", event.timestamp)? else {
            continue;
        };
        let at = stamp::instant(&at).ok_or_else(|| {
            Fault::new(
                "timing_events.timestamp",
                &at,
                "an instant as `2026-08-25T00:00:00.010Z`",
            )
        })?;
        match text("timing_events.event_type", event.event_type)?.as_deref() {
            Some("user_message" | "tool_result") => {
                last_input = Some(last_input.map_or(at, |last| last.max(at)));
            }
            Some("text" | "reasoning" | "tool_call") => {
                outputs =
                    Some(outputs.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
            }
            _ => {}
        }
    }
    row.at = last_input.or(outputs.map(|(first, _)| first));
    if let (Some(at), Some((_, last))) = (row.at, outputs) {
        row.service = last.checked_sub(at);
    }
    Ok(())
}
