//! What can be seen of the engine from outside; nothing here changes it.

use super::{Engine, EngineState, Machine, Profile, Stats, Sums};

impl Engine {
    /// What the gauges show now.
    #[must_use]
    pub fn state(&self) -> EngineState {
        EngineState {
            running: self.running.len(),
            waiting: self.waiting.len(),
            kv_usage: self.kv.usage(),
        }
    }

    /// Seed of everything drawn.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// What is wrong with machine and model now.
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The last error a GPU reported, if any did.
    #[must_use]
    pub const fn last_xid(&self) -> Option<u32> {
        self.last_xid
    }

    /// Blocks that the KV cache has now.
    #[must_use]
    pub fn kv_blocks(&self) -> u32 {
        self.kv.blocks()
    }

    /// What GPUs and host have done so far.
    #[must_use]
    pub const fn sums(&self) -> &Sums {
        self.meter.sums()
    }

    /// What they did in the last whole second.
    #[must_use]
    pub fn last_second(&self) -> Sums {
        self.meter.last_second()
    }

    /// How fast and how large it is.
    #[must_use]
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Totals since the start or the last restart.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }
}
