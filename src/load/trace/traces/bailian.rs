//! Bailian (Qwen): JSON lines with `timestamp` in seconds, `hash_ids` of blocks of 16 tokens, and
//! conversations as chains: each request names the one before it.
//!
//! A conversation is called by its first request. Parents may lie outside the recording; then
//! the parent that is named stands for the first. Only the last quarter million requests are
//! remembered as parents.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;

use super::fields::{Bad, Raw, blocks, fits, length, object, required, text, time};
use crate::load::trace::error::Fault;
use crate::load::trace::number::Unit;
use crate::load::trace::row::TraceRow;
use crate::load::trace::rows::ReadOptions;

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    chat_id: Raw<'a>,
    #[serde(borrow)]
    parent_chat_id: Raw<'a>,
    #[serde(borrow)]
    timestamp: Raw<'a>,
    #[serde(borrow)]
    input_length: Raw<'a>,
    #[serde(borrow)]
    output_length: Raw<'a>,
    #[serde(borrow)]
    turn: Raw<'a>,
    #[serde(borrow)]
    hash_ids: Raw<'a>,
}

/// Requests that may still be named as parents: about 20 MB.
const REMEMBERED: usize = 250_000;

/// Which conversation each request belongs to.
#[derive(Debug, Default)]
pub(in crate::load::trace) struct Chains {
    roots: HashMap<i64, i64>,
    order: VecDeque<i64>,
}

impl Chains {
    fn root(&mut self, chat: i64, parent: Option<i64>) -> i64 {
        let root = parent.map_or(chat, |parent| *self.roots.get(&parent).unwrap_or(&parent));
        if self.roots.insert(chat, root).is_none() {
            self.order.push_back(chat);
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.roots.remove(&oldest);
            }
        }
        root
    }
}

/// One line.
pub(in crate::load::trace) fn read(
    line: &[u8],
    chains: &mut Chains,
    options: &ReadOptions,
    row: &mut TraceRow,
) -> Result<(), Bad> {
    let given: Row = object(line)?;
    row.at = Some(required(
        "timestamp",
        time("timestamp", given.timestamp, Unit::Seconds)?,
    )?);
    row.input_tokens = Some(required(
        "input_length",
        length("input_length", given.input_length)?,
    )?);
    row.output_tokens = length("output_length", given.output_length)?;
    row.block_tokens = options.block_tokens;
    blocks("hash_ids", given.hash_ids, row)?;
    fits(row, options.fit())?;
    let chat = required("chat_id", id("chat_id", given.chat_id)?)?;
    // −1 is the first of a conversation.
    let parent = id("parent_chat_id", given.parent_chat_id)?.filter(|parent| *parent >= 0);
    if let Some(turn) = text("turn", given.turn)? {
        let from_one: u32 = turn
            .parse()
            .map_err(|_| Fault::new("turn", &turn, "a whole number, 0 or more"))?;
        row.turn = Some(from_one.saturating_sub(1));
    }
    row.session = Some(chains.root(chat, parent).to_string());
    Ok(())
}

fn id(name: &str, raw: Raw) -> Result<Option<i64>, Bad> {
    raw.map(|raw| {
        raw.get()
            .parse()
            .map_err(|_| Fault::new(name, raw.get(), "a whole number"))
    })
    .transpose()
}
