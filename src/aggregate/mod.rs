//! Many records together: histograms, windows, joined samples.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `aggregate` | `Window` | histograms, windows, goodput, step functions, joining samples by time | call anything good or bad |

mod answers;
mod conventions;
mod distribution;
mod energy;
mod exemplars;
mod gpu;
pub mod grid;
mod histogram;
mod join;
mod kept;
mod live;
mod measure;
mod node;
mod phases;
pub mod rank;
pub mod server;
pub mod slo;
mod stats;
pub mod summary;
pub mod target;
mod totals;
mod window;
pub mod wire;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod histogram_tests;
#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod window_tests;

pub use answers::{AnswerTotals, Answers};
pub use conventions::{Convention, ConventionTotals};
pub use distribution::{Distribution, classic_bounds};
pub use energy::EnergyUse;
pub use exemplars::{Exemplar, Exemplars, ExportedSpan, MOST_EXEMPLARS};
pub use gpu::{Drawn, GpuHistory, GpuRules, GpuWindow, PowerSource};
pub use histogram::{Histogram, Native};
pub use join::SampleRing;
pub use kept::Kept;
pub use live::{Address, LAST_REQUESTS, Live, MOST_EXPORTED, SPANS, StreamLive, StreamRules};
pub use measure::{Measure, Reading};
pub use node::{NodeHistory, NodeWindow, ProcessWindow};
pub use phases::{PhaseSummary, Phases};
pub use rank::Quantile;
pub use slo::{ExactBounds, SloTotals, Standing};
pub use stats::Stats;
pub use summary::{Summary, SummaryBuilder};
pub use totals::Totals;
pub use window::{KEPT, Window, Windows};
