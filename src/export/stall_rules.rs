//! Which stall rule holds for which stream: it is a setting of the probe, and exporters see
//! only records.

use std::sync::Arc;

use crate::config::DEFAULT_STALL;
use crate::measurement::{StallRule, Stream};

/// The stall rule of each stream of a run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StallRules(Arc<[StallRule]>);

impl StallRules {
    /// The rules in the order of the run's list of streams.
    #[must_use]
    pub fn new(by_stream: Vec<StallRule>) -> Self {
        Self(by_stream.into())
    }

    /// The rule of `stream`; the default for a stream that is not on the list.
    #[must_use]
    pub fn of(&self, stream: &Stream) -> StallRule {
        self.0
            .get(usize::from(stream.id.0))
            .copied()
            .unwrap_or(DEFAULT_STALL)
    }
}
