//! What the machine and the model under the engine are like for a while: a throttled GPU, a host
//! that is late, a smaller KV cache.
//!
//! A condition holds from an instant until another; what holds at once multiplies. [`Machine`] is
//! what all of them come to at one instant. Not here: what the engine does about it.

use crate::clock::MonoTime;

/// Something that is so for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// What.
    pub kind: ConditionKind,
    /// First instant.
    pub from: MonoTime,
    /// First instant that is normal again.
    pub until: MonoTime,
}

/// What may be so. Factors are finite and positive: steps last so many times as long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ConditionKind {
    /// The GPUs' clocks are lowered.
    Throttle {
        /// Of all steps.
        factor: f64,
    },
    /// One GPU has all to do, and the others wait for it.
    GpuFull {
        /// Of all steps.
        factor: f64,
    },
    /// The host launches steps late; the GPUs are idle in the meantime.
    HostStall {
        /// Of all steps.
        factor: f64,
    },
    /// The host has too few processors, and the server's share of them is throttled.
    HostPressure {
        /// Of all steps.
        factor: f64,
    },
    /// What each sequence of a batch adds to a decode step lasts longer.
    DecodeBandwidth {
        /// Of that part.
        factor: f64,
    },
    /// Another model or format runs.
    Model {
        /// Of all steps.
        factor: f64,
    },
    /// A GPU reports this error.
    GpuError {
        /// Its XID.
        xid: u32,
    },
    /// The prefix cache is empty and stays so.
    NoPrefixCache,
    /// The KV cache has fewer blocks.
    SmallKv {
        /// Of all blocks, in (0, 1].
        share: f64,
    },
}

/// What all conditions of one instant come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Of all steps, because of lowered clocks.
    pub throttle: f64,
    /// Of all steps, because one GPU has all to do; `None`: none has.
    pub one_full: Option<f64>,
    /// Of all steps, because the host is late, for whatever reason.
    pub host: f64,
    /// Whether the host has too few processors.
    pub pressed: bool,
    /// Of what each sequence adds to a decode step.
    pub bandwidth: f64,
    /// Of all steps, because of the model.
    pub model: f64,
    /// The error that a GPU reports.
    pub xid: Option<u32>,
    /// Whether there is no prefix cache.
    pub no_prefix_cache: bool,
    /// Share of the KV cache's blocks that are there.
    pub kv_share: f64,
}

impl Machine {
    /// Nothing is wrong.
    pub const HEALTHY: Self = Self {
        throttle: 1.0,
        one_full: None,
        host: 1.0,
        pressed: false,
        bandwidth: 1.0,
        model: 1.0,
        xid: None,
        no_prefix_cache: false,
        kv_share: 1.0,
    };

    /// How many times as long a step lasts.
    pub(super) fn step_factor(&self) -> f64 {
        self.throttle * self.one_full.unwrap_or(1.0) * self.host * self.model
    }

    fn with(mut self, kind: ConditionKind) -> Self {
        match kind {
            ConditionKind::Throttle { factor } => self.throttle *= factor,
            ConditionKind::GpuFull { factor } => {
                self.one_full = Some(self.one_full.unwrap_or(1.0) * factor);
            }
            ConditionKind::HostStall { factor } => self.host *= factor,
            ConditionKind::HostPressure { factor } => {
                self.host *= factor;
                self.pressed = true;
            }
            ConditionKind::DecodeBandwidth { factor } => self.bandwidth *= factor,
            ConditionKind::Model { factor } => self.model *= factor,
            ConditionKind::GpuError { xid } => self.xid = Some(xid),
            ConditionKind::NoPrefixCache => self.no_prefix_cache = true,
            ConditionKind::SmallKv { share } => self.kv_share *= share,
        }
        self
    }
}

/// All conditions on and to come.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    known: Vec<Condition>,
    /// Instants at which one begins or ends, latest first.
    changes: Vec<MonoTime>,
}

impl Conditions {
    pub(super) fn plan(&mut self, condition: Condition) {
        if condition.until > condition.from {
            self.known.push(condition);
            self.changes.extend([condition.from, condition.until]);
            self.changes.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// When one next begins or ends.
    pub(super) fn next_change(&self) -> Option<MonoTime> {
        self.changes.last().copied()
    }

    /// What holds from `now` on, if anything begins or ends by then.
    pub(super) fn change(&mut self, now: MonoTime) -> Option<Machine> {
        let due = self.changes.partition_point(|at| *at > now);
        if due == self.changes.len() {
            return None;
        }
        self.changes.truncate(due);
        self.known.retain(|condition| condition.until > now);
        let on = self.known.iter().filter(|c| c.from <= now);
        Some(on.fold(Machine::HEALTHY, |machine, c| machine.with(c.kind)))
    }
}
