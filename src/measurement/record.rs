//! The record of one arrival: raw instants and counts, nothing computed.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::{
    Answer, Chunks, Counts, Note, Notes, Outcome, Phase, RefusedReason, Stream, TargetState,
};
use crate::clock::MonoTime;

/// The identifiers that tie a record, its span and the server's log together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceIds {
    /// W3C trace id, never zero.
    pub trace: u128,
    /// W3C span id, never zero.
    pub span: u64,
}

impl TraceIds {
    /// The trace id as 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn trace_hex(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The span id as 16 lower-case hexadecimal digits.
    #[must_use]
    pub fn span_hex(&self) -> String {
        format!("{:016x}", self.span)
    }

    /// The unique `x-request-id`; its prefix marks the request as synthetic.
    #[must_use]
    pub fn request_id(&self) -> String {
        format!("tokencanary-{:032x}", self.trace)
    }
}

/// An earlier request that belongs to one, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Why it belongs to it.
    pub kind: LinkKind,
    /// Its ids.
    pub ids: TraceIds,
}

/// Why two requests belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// The cold one of a pair and the warm one after it.
    Pair,
    /// Two turns of one conversation, one after the other.
    Turn,
}

impl LinkKind {
    /// The name in span links.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Turn => "turn",
        }
    }
}

/// What the kernel knew of a request's TCP connection when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpFacts {
    /// Smoothed round trip time.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rtt_deviation: Duration,
    /// Segments that we had to send again since the request before it on the same connection;
    /// `None` if the kernel was not asked then.
    pub retransmits: Option<u32>,
}

/// Instants of one request, in the order in which they happen. What was not reached is `None`.
///
/// For a refused arrival everything from `start` on is `None`.
#[derive(Debug, Clone, Copy)]
pub struct Timeline {
    /// When it was due. Never rewritten.
    pub intended: MonoTime,
    /// When a slot was free for it; equals `intended` if one was free already.
    pub slot_free: Option<MonoTime>,
    /// When the client began the exchange: before resolving and connecting on a new
    /// connection, before writing on a reused one.
    pub start: Option<MonoTime>,
    /// The host name was resolved (new connections only).
    pub resolved: Option<MonoTime>,
    /// TCP was connected (new connections only).
    pub connected: Option<MonoTime>,
    /// The TLS handshake was done (new TLS connections only).
    pub tls_done: Option<MonoTime>,
    /// The first byte of the request was written.
    pub sent_first: Option<MonoTime>,
    /// The last byte of the request was written.
    pub sent: Option<MonoTime>,
    /// The read with the first byte of the response head returned.
    pub headers: Option<MonoTime>,
    /// The read with the first body byte returned.
    pub first_byte: Option<MonoTime>,
    /// The first complete event of any kind.
    pub first_event: Option<MonoTime>,
    /// The first token of any channel.
    pub first_token: Option<MonoTime>,
    /// The first token that is not reasoning.
    pub first_output: Option<MonoTime>,
    /// The last token of any channel.
    pub last_token: Option<MonoTime>,
    /// The end of the stream, or the instant of the failure.
    pub end: Option<MonoTime>,
}

impl Timeline {
    /// The timeline of a request that is due at `intended` and has not moved yet.
    #[must_use]
    pub const fn due(intended: MonoTime) -> Self {
        Self {
            intended,
            slot_free: None,
            start: None,
            resolved: None,
            connected: None,
            tls_done: None,
            sent_first: None,
            sent: None,
            headers: None,
            first_byte: None,
            first_event: None,
            first_token: None,
            first_output: None,
            last_token: None,
            end: None,
        }
    }
}

/// Where a token count comes from: the best source that was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// Usage on each chunk.
    ChunkUsage,
    /// Token ids in each chunk.
    TokenIds,
    /// Log probabilities, one per token, in each chunk.
    Logprobs,
    /// The usage object at the end of the response.
    Usage,
    /// A local tokenizer over the whole text.
    Tokenizer,
    /// An estimate from the number of words.
    Words,
    /// Chunks counted as if each were a token; ITL is absent then.
    Chunks,
}

impl TokenSource {
    /// The name in records and span attributes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChunkUsage => "chunk_usage",
            Self::TokenIds => "token_ids",
            Self::Logprobs => "logprobs",
            Self::Usage => "usage",
            Self::Tokenizer => "tokenizer",
            Self::Words => "words",
            Self::Chunks => "chunks",
        }
    }
}

/// How the number of tokens in the first chunk is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstChunk {
    /// Taken to be 1.
    Assumed,
    /// The server said so.
    Counted,
}

/// Caches keep whole blocks of up to 64 tokens, and the template of a chat is the same for all:
/// so few tokens say nothing.
const SMALL_PREFIX: u32 = 128;

/// Token counts: asked for, and as the server reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Prompt tokens the workload meant to send; absent if no prompt was made.
    pub requested_input: Option<u32>,
    /// Output tokens the workload asked for; absent also where the server was left to decide.
    pub requested_output: Option<u32>,
    /// Prompt tokens as counted by the server.
    pub input: Option<u32>,
    /// Output tokens, reasoning included.
    pub output: Option<u32>,
    /// Reasoning tokens among `output`.
    pub reasoning: Option<u32>,
    /// Whether reasoning came in chunks; else such tokens were made but not delivered.
    pub reasoning_came: bool,
    /// Prompt tokens that came from the prefix cache.
    pub cached: Option<u32>,
    /// Prompt tokens that a prefix cache can serve, since the stream has sent them before; absent
    /// where the workload does not know.
    pub requested_cached: Option<u32>,
    /// Where `output` comes from.
    pub source: Option<TokenSource>,
    /// Tokens in the first token-bearing chunk, where the server said so.
    pub in_first_chunk: Option<u32>,
}

impl TokenCounts {
    /// What is odd about what the prefix cache served, if both sides are known: more than half of
    /// what was sent before was not there, or more than half of what is new was.
    #[must_use]
    pub fn cache_note(&self) -> Option<Note> {
        let (cached, before) = self.cached.zip(self.requested_cached)?;
        let input = self.input.or(self.requested_input)?;
        let new = input.saturating_sub(before);
        if before > SMALL_PREFIX && cached < before / 2 {
            Some(Note::CacheMissed)
        } else if new > SMALL_PREFIX && cached.saturating_sub(before) > new / 2 {
            Some(Note::CacheHit)
        } else {
            None
        }
    }
}

/// Which clock the chunk instants were read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The kernel's stamp of the last segment of the read.
    Kernel,
    /// The kernel's stamp of a read that may also have brought later bytes of other streams of
    /// the connection.
    Read,
    /// Ours, right after the socket read returned.
    User,
}

impl ClockSource {
    /// Every clock, the best first.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Read, Self::User];

    /// The name in records and span attributes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Read => "read",
            Self::User => "user",
        }
    }
}

/// What went wrong, in the words of whoever said it. Bounded by whoever fills it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestError {
    /// A short class: the error type in the body, or an I/O error kind.
    pub kind: Box<str>,
    /// The message, at most a few hundred bytes of it.
    pub message: Box<str>,
}

/// Several answers to one request, interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// How many carried tokens.
    pub count: u32,
    /// The sum of their times from first to last token.
    pub spans: Duration,
}

/// What became of one arrival. Every arrival ends as exactly one of these.
#[derive(Debug, Clone)]
pub struct RequestRecord {
    /// Number of the arrival in its run, from 0.
    pub sequence: u64,
    /// The stream it belongs to.
    pub stream: Arc<Stream>,
    /// The phase it belongs to, if its probe has several or a named one.
    pub phase: Option<Arc<Phase>>,
    /// Trace, span and request ids.
    pub ids: TraceIds,
    /// Whether the server was told to trace it.
    pub traced: bool,
    /// The request before it that belongs to it.
    pub link: Option<Link>,
    /// Raw instants.
    pub timeline: Timeline,
    /// Whether the connection had carried a request before; `None` if none was chosen.
    pub reused: Option<bool>,
    /// What the kernel knew of the connection at the end; `None` if it was not asked.
    pub tcp: Option<TcpFacts>,
    /// Whether a pooled connection turned out to be closed by the server and was replaced by a
    /// new one: the time that took is part of all times from start.
    pub replaced_connection: bool,
    /// Token counts.
    pub tokens: TokenCounts,
    /// The chunks that carried tokens.
    pub chunks: Chunks,
    /// What was odd about the response, though it was read.
    pub notes: Notes,
    /// Choices that carried tokens, if more than one did.
    pub choices: Option<Choices>,
    /// Time from the kernel's receipt to our read, the longer of the reads of the first and of
    /// the last token; `None` without kernel stamps.
    pub read_lag: Option<Duration>,
    /// The text of the answer, where it is kept for a local tokenizer.
    pub text: Option<Box<str>>,
    /// What the next turn of a conversation carries as the answer, where it is kept for that;
    /// gone before the record is handed on.
    pub reply: Option<Box<str>>,
    /// What became of its question, if the answer to it is known.
    pub answer: Option<Answer>,
    /// When the server's certificate expires, in seconds of Unix time (new TLS connections).
    pub certificate_expiry: Option<i64>,
    /// Body bytes received.
    pub bytes: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it was refused, if it was.
    pub refused: Option<RefusedReason>,
    /// HTTP status, if a response head came.
    pub http_status: Option<u16>,
    /// Finish reason as the server spelled it.
    pub finish_reason: Option<Box<str>>,
    /// The error, for outcomes that have one.
    pub error: Option<RequestError>,
    /// Clock of the chunk instants.
    pub clock: ClockSource,
    /// How its target stood once it had ended; `None` until that is looked at.
    pub target_state: Option<TargetState>,
    /// Whether it counts, as far as starts of the server go.
    pub counts: Counts,
}

impl RequestRecord {
    /// A record of an arrival about which nothing but its due time is known yet.
    #[must_use]
    pub fn due(sequence: u64, stream: Arc<Stream>, ids: TraceIds, intended: MonoTime) -> Self {
        Self {
            sequence,
            stream,
            phase: None,
            ids,
            traced: true,
            link: None,
            timeline: Timeline::due(intended),
            reused: None,
            tcp: None,
            replaced_connection: false,
            tokens: TokenCounts::default(),
            chunks: Chunks::default(),
            notes: Notes::default(),
            choices: None,
            read_lag: None,
            text: None,
            reply: None,
            answer: None,
            certificate_expiry: None,
            bytes: 0,
            outcome: Outcome::Cancelled,
            refused: None,
            http_status: None,
            finish_reason: None,
            error: None,
            clock: ClockSource::User,
            target_state: None,
            counts: Counts::Now,
        }
    }
}
