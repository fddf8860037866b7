//! The ladder of token counts: the best source that the response itself offers.
//!
//! Usage on each chunk, if it grows as it should → token ids or log probabilities listed in each
//! chunk → the last usage → the number of chunks. A local tokenizer comes later and elsewhere.
//!
//! A count that the response cannot hold is none: far more output tokens than bytes came, and
//! more than were asked for.

use crate::client::protocol::{Said, Usage};
use crate::measurement::{Note, RequestRecord, TokenSource};

/// No prompt and no answer has more tokens.
const MAX_COUNT: u32 = 100_000_000;
/// What a server may put before a prompt, or count beside it: instructions, tools, a template.
const MAX_ADDED_INPUT: u32 = 1 << 18;
/// The prompt itself may be counted so many times as long as we estimate it.
const MAX_INPUT_FACTOR: u32 = 16;
/// Numbers of tokens, one on each chunk, whose growth says something.
const LEAST_NUMBERS: u32 = 3;
/// So many tokens may show no text, though nobody says so and nobody asked for them.
const MAX_SILENT: u64 = 4096;
/// Each byte of a compressed body stands for no more than so many.
const MAX_UNPACKED: u64 = 1000;

/// What was counted so far.
#[derive(Debug, Default)]
pub(super) struct Ladder {
    usage: Option<Usage>,
    on_chunks: OnChunks,
    listed: Listed,
    /// The last count came with a token, or before one: it need not be of the whole.
    partial: Partial,
    /// Reasoning came in pieces of its own.
    pub(super) reasoning: bool,
}

/// How far the last count of output tokens covers the response.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Partial {
    /// No token came after it.
    #[default]
    No,
    /// No token came after it, but one with it.
    WithToken,
    /// A token came after it, without a count.
    Stale,
}

/// Counts of output tokens that came together with text.
#[derive(Debug, Default)]
struct OnChunks {
    /// Token-bearing chunks that had a count.
    seen: u32,
    /// How often the count grew.
    grown: u32,
    /// Count on the first token-bearing chunk.
    first: Option<u32>,
    last: u32,
    /// Largest growth at once.
    step: u32,
    /// It went down.
    fell: bool,
}

/// Tokens that the chunks listed one by one.
#[derive(Debug, Default)]
struct Listed {
    tokens: u32,
    /// Those up to and with the first token-bearing chunk.
    first: Option<u32>,
    source: Option<TokenSource>,
    /// A token-bearing chunk listed nothing.
    missing: bool,
    /// The last number, how many there were, and whether each was larger than the one before.
    last: u32,
    numbers: u32,
    fell: bool,
}

/// What a response must be known for before its tokens are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    /// At least one token came.
    pub(super) tokens: bool,
    /// Usage was asked for, or cannot be.
    pub(super) usage_asked: bool,
    /// How many answers there are, at least one.
    pub(super) answers: u32,
}

impl Ladder {
    /// Takes one event, or a whole response; `first` if it is the first with a token.
    pub(super) fn take(&mut self, said: &Said<'_>, first: bool) {
        let bearing = said.has_token();
        let counted = said.usage.is_some_and(|usage| usage.output.is_some());
        self.partial = match (bearing, counted) {
            (true, false) => Partial::Stale,
            (true, true) => Partial::WithToken,
            (false, true) => Partial::No,
            (false, false) => self.partial,
        };
        if let Some(usage) = said.usage {
            let usage = possible(usage);
            self.usage = Some(usage.over(self.usage));
            if let Some(count) = usage.output
                && (bearing || said.finish.is_some())
            {
                self.on_chunks.take(count, bearing);
                if first && count > 0 {
                    self.on_chunks.first = Some(count);
                }
            }
        }
        if let Some((count, source)) = said.listed {
            self.listed.take(count, source);
        }
        if first {
            self.listed.first = Some(self.listed.tokens);
        }
        if bearing && said.listed.is_none() {
            self.listed.missing = true;
        }
    }

    /// The response ended: fills the counts of `record`.
    pub(super) fn finish(&self, counted: Counted, record: &mut RequestRecord) {
        let mut usage = self.usage.unwrap_or_default();
        let largest = largest_output(record, counted.answers);
        // Thoughts that were counted and not sent left no bytes.
        let hidden = usage.reasoning.filter(|_| !self.reasoning).unwrap_or(0);
        let fits = |count: &u32| u64::from(count.saturating_sub(hidden)) <= largest;
        let largest_input = record.tokens.requested_input.map(|asked| {
            asked
                .saturating_mul(MAX_INPUT_FACTOR)
                .saturating_add(MAX_ADDED_INPUT)
        });
        let told = usage;
        usage.output = usage.output.filter(fits);
        usage.input = usage
            .input
            .filter(|count| largest_input.is_none_or(|most| *count <= most));
        let listed = self.listed.total();
        let listed_fit = fits(&listed);
        if usage.bad || usage != told || !listed_fit {
            record.notes.add(Note::BadUsage);
        }
        if self.usage.is_some() && !counted.usage_asked {
            record.notes.add(Note::UsageUnasked);
        }
        // No tokens where tokens came is no count; nor is one that was taken before the last.
        let possible =
            |count: &u32| (*count > 0 || !counted.tokens) && self.partial != Partial::Stale;
        let total = usage.output.filter(possible);
        let by_chunks = total.filter(|total| self.on_chunks.ends_at(*total));
        let mut total = total;
        if self.on_chunks.seen > 1 && by_chunks.is_none() {
            record.notes.add(Note::UsageNotCumulative);
            total = total.filter(|_| self.partial != Partial::WithToken);
        }
        let by_list = self
            .listed
            .source
            .filter(|_| self.listed.is_whole() && listed_fit);
        let chunks = u32::try_from(record.chunks.len())
            .ok()
            .filter(|count| *count > 0);
        let tokens = &mut record.tokens;
        (tokens.output, tokens.source, tokens.in_first_chunk) = match (by_chunks, by_list, total) {
            (Some(total), _, _) => (
                Some(total),
                Some(TokenSource::ChunkUsage),
                self.on_chunks.first,
            ),
            (None, Some(source), _) => (Some(listed), Some(source), self.listed.first),
            (None, None, Some(total)) => (Some(total), Some(TokenSource::Usage), None),
            (None, None, None) => (chunks, chunks.map(|_| TokenSource::Chunks), None),
        };
        tokens.input = usage.input;
        tokens.cached = usage.cached;
        // A part above the whole is no count either.
        tokens.reasoning = usage.reasoning.filter(|part| Some(*part) <= tokens.output);
        tokens.reasoning_came = self.reasoning;
    }
}

/// No response like `record`, with so many answers, holds more output tokens: each leaves a byte,
/// or was asked for, or is one of a few that show nothing.
fn largest_output(record: &RequestRecord, answers: u32) -> u64 {
    let factor = if record.notes.has(Note::Compressed) {
        MAX_UNPACKED
    } else {
        1
    };
    let asked = u64::from(record.tokens.requested_output.unwrap_or(0)) * u64::from(answers);
    let bytes = record.bytes.saturating_mul(factor);
    bytes.saturating_add(MAX_SILENT).max(asked)
}

/// `usage` without counts that cannot be.
fn possible(usage: Usage) -> Usage {
    let possible = |count: &u32| *count <= MAX_COUNT;
    let kept = Usage {
        input: usage.input.filter(possible),
        output: usage.output.filter(possible),
        reasoning: usage.reasoning.filter(possible),
        cached: usage.cached.filter(possible),
        bad: usage.bad,
    };
    Usage {
        bad: usage.bad || kept != usage,
        ..kept
    }
}

impl OnChunks {
    fn take(&mut self, count: u32, bearing: bool) {
        self.seen += u32::from(bearing);
        self.fell |= count < self.last;
        if count > self.last {
            self.grown += 1;
            self.step = self.step.max(count - self.last);
        }
        self.last = count;
    }

    /// Whether the counts grew to `total`. What shows no text, as an end-of-sequence token or a
    /// stop text that was held back, may be missing, but no more than came at once before.
    fn ends_at(&self, total: u32) -> bool {
        self.seen > 1
            && self.grown > 1
            && !self.fell
            && total
                .checked_sub(self.last)
                .is_some_and(|rest| rest <= self.step)
    }
}

impl Listed {
    fn take(&mut self, count: u32, source: TokenSource) {
        self.tokens = self.tokens.saturating_add(count);
        self.source = Some(source);
        self.fell |= self.numbers > 0 && count <= self.last;
        self.numbers += 1;
        self.last = count;
    }

    /// All tokens. Numbers that a model gives with its text are of the event, or, where each is
    /// larger than the one before, of all so far; two of them would be so too often by chance.
    fn total(&self) -> u32 {
        let of_whole = self.source == Some(TokenSource::ChunkUsage)
            && self.numbers >= LEAST_NUMBERS
            && !self.fell;
        if of_whole { self.last } else { self.tokens }
    }

    const fn is_whole(&self) -> bool {
        self.tokens > 0 && !self.missing
    }
}
