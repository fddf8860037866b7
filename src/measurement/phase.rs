//! The phase of a run that an arrival belongs to, and whether it is meant to be measured.

use serde::{Deserialize, Serialize};

/// What a phase is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// Brings the server into its usual state; counts for nobody.
    WarmUp,
    /// What is measured.
    Profiling,
    /// Keeps the load up while the last measured requests end; counts for nobody.
    CoolDown,
}

impl PhaseKind {
    /// The name in records and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm_up",
            Self::Profiling => "profiling",
            Self::CoolDown => "cool_down",
        }
    }

    /// Whether its records are what the run is about.
    #[must_use]
    pub const fn is_measured(self) -> bool {
        matches!(self, Self::Profiling)
    }
}

/// A phase of a probe that has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Its name, unique within the probe.
    pub name: Box<str>,
    /// What it is for.
    pub kind: PhaseKind,
}
