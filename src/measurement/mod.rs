//! The shared vocabulary: what a request was, what became of it, what a server said of itself.
//!
//! Everything raw is stored; every latency is derived from it by a pure function in
//! [`derive`](self), each definition stated once. Absent is `None`, never zero.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `measurement` | `RequestRecord`, `Sample` | the shared vocabulary and its pure derivations | I/O, `async`, reading a clock |

mod answer;
mod chunks;
mod derive;
mod gpu;
mod node;
mod notes;
mod outcome;
mod phase;
mod plain;
mod process;
mod record;
mod sample;
pub mod server;
mod slo;
mod stream;
mod target;

pub use answer::{Answer, AnswerResult, KnownKind, Wanted};
pub use chunks::{Chunk, Chunks};
pub use derive::{StallRule, is_own_lag};
pub use gpu::{Gpu, GpuAt, GpuField, GpuFields, GpuSample, GpuState, GpuStates, THROTTLING};
pub use node::{MemoryPlaces, NodeSample, NodeState};
pub use notes::{Note, Notes};
pub use outcome::{Outcome, RefusedReason};
pub use phase::{Phase, PhaseKind};
pub use plain::{plain, plain_lines, screen};
pub use process::{ProcessGroup, ProcessState};
pub use record::{
    Choices, ClockSource, FirstChunk, Link, LinkKind, RequestError, RequestRecord, TcpFacts,
    Timeline, TokenCounts, TokenSource, TraceIds,
};
pub use sample::{Observed, Sample, ServerState, StateAt};
pub use slo::{Judged, Slo, SloLimit, SloMetric};
pub use stream::{Api, CacheMode, ConnectionPolicy, LengthMode, Stream, StreamId};
pub use target::{
    Counts, IdentitySample, LONGEST_MARK, Mark, MarkKind, NamedImages, PodInfo, TargetState,
};
