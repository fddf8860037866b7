//! What became of the arrivals of each phase of a run, warm-ups included: counts only.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::measurement::{PhaseKind, RequestRecord};

/// One phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhaseSummary {
    /// What it was for.
    pub kind: PhaseKind,
    /// Its records.
    pub records: u64,
    /// Its records by outcome, those that occurred.
    pub outcomes: BTreeMap<&'static str, u64>,
}

/// The phases that had records, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Phases(BTreeMap<Box<str>, PhaseSummary>);

impl Phases {
    /// Counts `record`, if its phase has a name.
    pub(super) fn observe(&mut self, record: &RequestRecord) {
        let Some(phase) = &record.phase else {
            return;
        };
        // A run has few phases; names are copied once each.
        if !self.0.contains_key(&phase.name) {
            self.0.insert(
                phase.name.clone(),
                PhaseSummary {
                    kind: phase.kind,
                    records: 0,
                    outcomes: BTreeMap::new(),
                },
            );
        }
        if let Some(found) = self.0.get_mut(&phase.name) {
            found.records += 1;
            *found.outcomes.entry(record.outcome.name()).or_default() += 1;
        }
    }

    /// Whether no phase with a name had records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each phase by its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &PhaseSummary)> {
        self.0.iter().map(|(name, phase)| (&**name, phase))
    }

    /// Records of phases that are not measured.
    #[must_use]
    pub fn beside(&self) -> u64 {
        let beside = self.0.values().filter(|phase| !phase.kind.is_measured());
        beside.map(|phase| phase.records).sum()
    }
}
