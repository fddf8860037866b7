//! Another trace made from one: faster, with longer or shorter shared prefixes, prompts and
//! answers, and more independent trees of prefixes.
//!
//! Blocks that occur in two prompts or more are shared; the leading shared blocks of a prompt are
//! its prefix, the rest is its own. Which blocks are shared is known only at the end of the file,
//! so it is read twice. Each prefix block becomes as many as its place says, the same ones for
//! every prompt, so that what was shared before is shared after. As `AIPerf` and Dynamo do it, but
//! for three things: a fraction of a block is spread over the prefix and not added as blocks of
//! the prompt's own; pauses are shortened like times; and caps hold for the result.

use std::time::Duration;

use super::analysis::BlockSet;
use super::format::Clock;
use super::hash::{self, mix, near};
use super::reblock::derived;
use super::row::TraceRow;

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synthesis {
    /// Times and pauses are divided by this.
    pub speedup: f64,
    /// Length of prefixes.
    pub prefix_len: f64,
    /// Independent trees over which rows are spread; rows of a session stay together.
    pub prefix_roots: u32,
    /// Length of what is not prefix.
    pub prompt_len: f64,
    /// Length of answers.
    pub output_len: f64,
    /// Rows with longer prompts are left out.
    pub max_input: Option<u32>,
    /// Answers are cut to this.
    pub max_output: Option<u32>,
    /// Decides which row goes to which tree.
    pub seed: u64,
}

impl Default for Synthesis {
    /// Changes nothing.
    fn default() -> Self {
        Self {
            speedup: 1.0,
            prefix_len: 1.0,
            prefix_roots: 1,
            prompt_len: 1.0,
            output_len: 1.0,
            max_input: None,
            max_output: None,
            seed: 0,
        }
    }
}

/// Most different blocks of a file: the two tables then have 270 MB.
pub const MOST_BLOCKS: usize = 10_000_000;

/// Which blocks are shared: the first reading.
#[derive(Debug)]
pub struct SharedBlocks {
    seen: BlockSet,
    shared: BlockSet,
    largest: u64,
}

impl Default for SharedBlocks {
    fn default() -> Self {
        Self {
            seen: BlockSet::new(usize::MAX),
            shared: BlockSet::new(usize::MAX),
            largest: 0,
        }
    }
}

impl SharedBlocks {
    /// Takes the blocks of one row; false if there are too many.
    #[must_use]
    pub fn add(&mut self, row: &TraceRow) -> bool {
        for id in &row.blocks {
            self.largest = self.largest.max(*id);
            if !self.seen.insert(near(*id)) {
                self.shared.insert(near(*id));
            }
        }
        self.seen.len() <= MOST_BLOCKS
    }
}

/// Changes rows: the second reading.
#[derive(Debug)]
pub struct Synthesizer {
    how: Synthesis,
    blocks: SharedBlocks,
    clock: Clock,
    first: Option<Duration>,
    rows: u64,
    fresh: u64,
}

impl Synthesizer {
    /// Changes rows whose times are on `clock` as `how` says.
    #[must_use]
    pub fn new(how: Synthesis, blocks: SharedBlocks, clock: Clock) -> Self {
        Self {
            how,
            blocks,
            clock,
            first: None,
            rows: 0,
            fresh: 0,
        }
    }

    /// Changes `row`; false if it is left out.
    #[must_use]
    pub fn change(&mut self, row: &mut TraceRow) -> bool {
        self.times(row);
        if row.blocks.is_empty() || row.block_tokens == 0 {
            row.input_tokens = row.input_tokens.map(|it| scaled(it, self.how.prompt_len));
        } else {
            self.prompt(row);
        }
        self.rows += 1;
        if let Some(output) = row.output_tokens {
            let output = scaled(output, self.how.output_len);
            row.output_tokens = Some(self.how.max_output.map_or(output, |most| output.min(most)));
        }
        let most = self.how.max_input.unwrap_or(u32::MAX);
        row.input_tokens.is_none_or(|input| input <= most)
    }

    fn times(&mut self, row: &mut TraceRow) {
        let speedup = self.how.speedup;
        if let Some(at) = row.at {
            // An instant keeps its day: what is scaled is the distance from the first row.
            let zero = match self.clock {
                Clock::Unix => *self.first.get_or_insert(at),
                Clock::Start | Clock::Session => Duration::ZERO,
            };
            row.at = Some(match at.checked_sub(zero) {
                Some(behind) => zero.saturating_add(faster(behind, speedup)),
                None => zero.saturating_sub(faster(zero.saturating_sub(at), speedup)),
            });
        }
        // Pauses are what is left between requests, so what lies within one shrinks as well.
        for time in [&mut row.delay, &mut row.service, &mut row.first_token] {
            *time = time.map(|time| faster(time, speedup));
        }
    }

    fn prompt(&mut self, row: &mut TraceRow) {
        let size = row.block_tokens;
        let shared = |id: &&u64| self.blocks.shared.contains(near(**id));
        let leading = row.blocks.iter().take_while(shared).count();
        let covered = row.blocks.len() as u64 * u64::from(size);
        let input = row.input_tokens.map_or(covered, u64::from);
        // Part blocks belong to no prefix: nothing can be behind them.
        let prefix = leading.min(usize::try_from(input / u64::from(size)).unwrap_or(usize::MAX));
        let own_tokens = input - prefix as u64 * u64::from(size);
        let has_part = covered > input;
        let tree = self.tree(row);
        let copies = self.copies();
        let mut blocks = Vec::with_capacity(row.blocks.len());
        for (place, id) in row.blocks[..prefix].iter().enumerate() {
            let (from, to) = (self.reaches(place), self.reaches(place + 1));
            let count = u32::try_from(to - from).unwrap_or(u32::MAX);
            blocks.extend((0..count).map(|copy| self.in_tree(derived(*id, copies, copy), tree)));
        }
        if let (true, Some(id)) = (blocks.is_empty(), row.blocks[..prefix].first()) {
            blocks.push(self.in_tree(derived(*id, copies, 0), tree));
        }
        let prefix_tokens = blocks.len() as u64 * u64::from(size);
        let own = u32::try_from(own_tokens).unwrap_or(u32::MAX);
        let own = if own == 0 {
            0
        } else {
            scaled(own, self.how.prompt_len)
        };
        if self.how.prompt_len.to_bits() == 1.0_f64.to_bits() {
            let rest = &row.blocks[prefix..];
            blocks.extend(
                rest.iter()
                    .map(|id| self.in_tree(derived(*id, copies, 0), tree)),
            );
        } else {
            let count = if has_part {
                own.div_ceil(size)
            } else {
                own / size
            };
            blocks.extend((0..count).map(|_| self.fresh_id()));
        }
        let total = prefix_tokens.saturating_add(u64::from(own));
        row.input_tokens = Some(u32::try_from(total).unwrap_or(u32::MAX));
        row.blocks = blocks;
    }

    /// Copies of a block that ids have room for.
    fn copies(&self) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "multipliers are checked to be from 0 to 1,000"
        )]
        let copies = self.how.prefix_len.ceil() as u32;
        copies.max(1)
    }

    /// Blocks that the first `places` of a prefix become.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "places are those of one prompt, multipliers are checked"
    )]
    fn reaches(&self, places: usize) -> u64 {
        (places as f64 * self.how.prefix_len).floor() as u64
    }

    /// Which tree a row goes to: all rows of a session to the same.
    fn tree(&self, row: &TraceRow) -> u64 {
        let of = match &row.session {
            Some(session) => hash::of(session.as_bytes()),
            None => mix(self.rows),
        };
        mix(of ^ self.how.seed) % u64::from(self.how.prefix_roots.max(1))
    }

    /// Ids above those of all blocks of a tree.
    fn span(&self) -> Option<u64> {
        self.blocks
            .largest
            .checked_add(1)?
            .checked_mul(u64::from(self.copies()))
    }

    /// The id of a block in its tree.
    fn in_tree(&self, id: u64, tree: u64) -> u64 {
        if tree == 0 {
            return id;
        }
        self.span()
            .and_then(|span| span.checked_mul(tree))
            .and_then(|base| base.checked_add(id))
            .unwrap_or_else(|| mix(mix(id) ^ tree))
    }

    /// An id that no block has.
    fn fresh_id(&mut self) -> u64 {
        self.fresh += 1;
        self.span()
            .and_then(|span| span.checked_mul(u64::from(self.how.prefix_roots.max(1))))
            .and_then(|base| base.checked_add(self.fresh))
            .unwrap_or_else(|| mix(!self.fresh))
    }
}

/// A multiplier that can be used: 0 gives lengths of 1.
#[must_use]
pub fn is_multiplier(value: f64) -> bool {
    (0.0..=1_000.0).contains(&value)
}

/// A speed-up that can be used.
#[must_use]
pub fn is_speedup(value: f64) -> bool {
    (1e-6..=1e9).contains(&value)
}

fn faster(time: Duration, speedup: f64) -> Duration {
    if speedup.to_bits() == 1.0_f64.to_bits() {
        return time;
    }
    Duration::try_from_secs_f64(time.as_secs_f64() / speedup).unwrap_or(Duration::MAX)
}

/// Rounded, at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
fn scaled(tokens: u32, by: f64) -> u32 {
    ((f64::from(tokens) * by).round() as u32).max(1)
}
