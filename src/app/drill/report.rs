//! What a rehearsal came to.

use std::time::Duration;

/// How long a notification may take after a regression began, in production times.
const LIMIT: Duration = Duration::from_mins(6);

/// What a rehearsal came to. All durations are as they passed; a production set-up takes
/// [`compress`](Self::compress) times as long.
#[derive(Debug, Clone, PartialEq)]
pub struct DrillReport {
    /// By how much all times were divided.
    pub compress: u32,
    /// How many times as long prefills lasted.
    pub factor: f64,
    /// The alert that had to come.
    pub alert: String,
    /// How long it took until there was a baseline.
    pub learned: Duration,
    /// What was told of the regression.
    pub told: Told,
    /// What was told of harmless changes.
    pub near_misses: Vec<NearMiss>,
}

/// What was told of a regression, and how long after its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The rule held for the first time.
    pub pending: Option<Duration>,
    /// It had held long enough.
    pub firing: Option<Duration>,
    /// The notification arrived.
    pub page: Option<Duration>,
    /// What it said.
    pub summary: Option<String>,
    /// The notification arrived that it was over.
    pub over: Option<Duration>,
    /// Other alerts that arrived.
    pub others: Vec<Unexpected>,
}

/// A harmless change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMiss {
    /// What was done, in production times.
    pub what: &'static str,
    /// What was told all the same.
    pub alerts: Vec<Unexpected>,
}

/// An alert that ought not to have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unexpected {
    /// Its name.
    pub alert: String,
    /// What it said.
    pub summary: String,
    /// When it arrived, from the change on.
    pub after: Duration,
}

impl DrillReport {
    /// How long the notification may take.
    #[must_use]
    pub fn limit(&self) -> Duration {
        LIMIT / self.compress
    }

    /// Whether the regression was told in time and is over, and nothing else was told.
    #[must_use]
    pub fn passed(&self) -> bool {
        let in_time = self.told.page.is_some_and(|page| page <= self.limit());
        in_time
            && self.told.over.is_some()
            && self.told.others.is_empty()
            && self.near_misses.iter().all(|one| one.alerts.is_empty())
    }
}
