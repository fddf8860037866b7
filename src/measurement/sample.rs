//! What a server said of itself at one moment, in canonical roles.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::server::{GaugeRole, ServerPage};
use crate::clock::MonoTime;

/// The gauges read from one metrics page. What is not on the page is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerState {
    /// Requests in the executing batch.
    pub running: Option<f64>,
    /// Requests queued before execution.
    pub waiting: Option<f64>,
    /// Requests whose KV cache was moved to the host.
    pub swapped: Option<f64>,
    /// Occupancy of the KV cache, 0 to 1.
    pub kv_usage: Option<f64>,
    /// The same of the fullest rank.
    pub kv_usage_max: Option<f64>,
    /// Share of prompt tokens found in the prefix cache, as the server computes it.
    pub prefix_hit_rate: Option<f64>,
    /// Most requests in the executing batch.
    pub running_limit: Option<f64>,
    /// Blocks of the KV cache.
    pub kv_blocks: Option<f64>,
    /// Those in use.
    pub kv_blocks_used: Option<f64>,
    /// Tokens of one block.
    pub block_tokens: Option<f64>,
    /// Tokens that the KV cache holds.
    pub kv_tokens: Option<f64>,
    /// Those in use.
    pub kv_tokens_used: Option<f64>,
}

impl ServerState {
    /// The gauge of `role`.
    #[must_use]
    pub const fn get(&self, role: GaugeRole) -> Option<f64> {
        match role {
            GaugeRole::Running => self.running,
            GaugeRole::Waiting => self.waiting,
            GaugeRole::Swapped => self.swapped,
            GaugeRole::KvUsage => self.kv_usage,
            GaugeRole::KvUsageMax => self.kv_usage_max,
            GaugeRole::PrefixHitRate => self.prefix_hit_rate,
            GaugeRole::RunningLimit => self.running_limit,
            GaugeRole::KvBlocks => self.kv_blocks,
            GaugeRole::KvBlocksUsed => self.kv_blocks_used,
            GaugeRole::BlockTokens => self.block_tokens,
            GaugeRole::KvTokens => self.kv_tokens,
            GaugeRole::KvTokensUsed => self.kv_tokens_used,
        }
    }

    /// Sets the gauge of `role`.
    pub const fn set(&mut self, role: GaugeRole, value: Option<f64>) {
        *match role {
            GaugeRole::Running => &mut self.running,
            GaugeRole::Waiting => &mut self.waiting,
            GaugeRole::Swapped => &mut self.swapped,
            GaugeRole::KvUsage => &mut self.kv_usage,
            GaugeRole::KvUsageMax => &mut self.kv_usage_max,
            GaugeRole::PrefixHitRate => &mut self.prefix_hit_rate,
            GaugeRole::RunningLimit => &mut self.running_limit,
            GaugeRole::KvBlocks => &mut self.kv_blocks,
            GaugeRole::KvBlocksUsed => &mut self.kv_blocks_used,
            GaugeRole::BlockTokens => &mut self.block_tokens,
            GaugeRole::KvTokens => &mut self.kv_tokens,
            GaugeRole::KvTokensUsed => &mut self.kv_tokens_used,
        } = value;
    }
}

/// One good scrape of one target's metrics page.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// When the page was asked for: what it says was so at some instant from here to `at`.
    pub asked: MonoTime,
    /// When the last byte of the page was read.
    pub at: MonoTime,
    /// Its gauges.
    pub state: ServerState,
    /// All else on it.
    pub page: Arc<ServerPage>,
}

/// A sample as seen from one instant of a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StateAt {
    /// Requests in the executing batch.
    pub running: Option<f64>,
    /// Requests queued before execution.
    pub waiting: Option<f64>,
    /// Requests whose KV cache was moved to the host.
    pub swapped: Option<f64>,
    /// Occupancy of the KV cache, 0 to 1.
    pub kv_usage: Option<f64>,
    /// Share of prompt tokens found in the prefix cache, as the server computes it.
    pub prefix_hit_rate: Option<f64>,
    /// The instant minus the end of the page's read, milliseconds.
    pub age_ms: f64,
}

impl StateAt {
    /// What a page read at `at` said, as seen from `instant`, which is not before it.
    #[must_use]
    pub fn new(at: MonoTime, state: &ServerState, instant: MonoTime) -> Self {
        let age: Duration = instant.since(at);
        Self {
            running: state.running,
            waiting: state.waiting,
            swapped: state.swapped,
            kv_usage: state.kv_usage,
            prefix_hit_rate: state.prefix_hit_rate,
            age_ms: age.as_secs_f64() * 1e3,
        }
    }
}

/// A record together with what was known of its server.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The record.
    pub record: super::RequestRecord,
    /// The last good sample at or before the intended instant; `None` if there was none, or
    /// it was older than three scrape intervals.
    pub at_intended: Option<StateAt>,
    /// The same of its first token.
    pub at_first_token: Option<StateAt>,
    /// The same of its end.
    pub at_end: Option<StateAt>,
    /// The GPUs of its target at three instants; `None` if none are read.
    pub gpu: Option<Box<super::GpuStates>>,
}
