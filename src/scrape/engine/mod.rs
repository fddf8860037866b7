//! What the engines call things: one file per engine, a table from wire names to roles.
//!
//! Names stand without the prefix of the engine. Counters are known with and without `_total`,
//! histograms by their three series. Where an engine has several names for one thing, the first
//! in order counts and the others are left out, so that nothing is counted twice.

mod dynamo;
mod kserve;
mod litellm;
mod llama_cpp;
mod lmdeploy;
mod nim;
pub(super) mod ollama;
mod ray_serve;
mod sglang;
mod tensorrt_llm;
mod tgi;
mod triton;
mod vllm;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole};

/// What one family is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    Gauge(GaugeRole),
    Counter(CounterRole),
    Histogram(HistogramRole),
    /// A counter that is the sum of a histogram without buckets.
    Sum(HistogramRole),
    /// A counter that is the count of a histogram without buckets.
    Count(HistogramRole),
    /// Requests that ended; why.
    Finished(Reason),
    /// Told in labels, some of which are gauges.
    Info(&'static [(&'static str, GaugeRole)]),
}

/// Why requests of a family ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reason {
    /// What the label of this name says.
    Label(&'static str),
    /// Always this.
    Is(&'static str),
}

/// One family of an engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Family {
    /// Its name without the engine's prefix, and without `_total`.
    pub(super) name: &'static str,
    pub(super) role: Role,
    /// Only series with this label, which says this.
    pub(super) only: Option<(&'static str, &'static str)>,
    /// What its values are multiplied with to be seconds, bytes or shares.
    pub(super) unit: f64,
    /// Of several families with one role the lowest that is on the page counts.
    pub(super) order: u8,
}

impl Family {
    const fn new(name: &'static str, role: Role) -> Self {
        Self {
            name,
            role,
            only: None,
            unit: 1.0,
            order: 0,
        }
    }

    /// Only its series whose label `label` says `value`.
    const fn only(mut self, label: &'static str, value: &'static str) -> Self {
        self.only = Some((label, value));
        self
    }

    /// In this part of a second.
    const fn unit(mut self, unit: f64) -> Self {
        self.unit = unit;
        self
    }

    /// Only where no family of a lower order is on the page.
    const fn order(mut self, order: u8) -> Self {
        self.order = order;
        self
    }
}

const MILLIS: f64 = 1e-3;
const MICROS: f64 = 1e-6;

const fn gauge(name: &'static str, role: GaugeRole) -> Family {
    Family::new(name, Role::Gauge(role))
}

const fn counter(name: &'static str, role: CounterRole) -> Family {
    Family::new(name, Role::Counter(role))
}

const fn histogram(name: &'static str, role: HistogramRole) -> Family {
    Family::new(name, Role::Histogram(role))
}

const fn finished(name: &'static str, reason: Reason) -> Family {
    Family::new(name, Role::Finished(reason))
}

const fn info(name: &'static str, gauges: &'static [(&'static str, GaugeRole)]) -> Family {
    Family::new(name, Role::Info(gauges))
}

/// How one engine writes its page.
#[derive(Debug)]
pub(super) struct Dialect {
    pub(super) engine: Engine,
    /// What its names begin with.
    pub(super) prefixes: &'static [&'static str],
    /// A name that begins so is this engine's, whatever it is for.
    pub(super) marks: &'static [&'static str],
    /// Tables of families; those of another engine may be among them.
    pub(super) tables: &'static [&'static [Family]],
    /// Labels that name the model; the first that is there counts.
    pub(super) models: &'static [&'static str],
    /// Labels that tell engines, replicas and data-parallel ranks apart, at most [`MOST_RANKS`].
    pub(super) ranks: &'static [&'static str],
    /// Labels of workers that each tell the same of one rank, at most [`MOST_COPIES`]: the lowest
    /// counts.
    pub(super) copies: &'static [&'static str],
}

/// Most labels of either kind.
pub(super) const MOST_RANKS: usize = 3;
pub(super) const MOST_COPIES: usize = 3;

impl Dialect {
    /// Every family, in the order of their positions.
    pub(super) fn families(&self) -> impl Iterator<Item = &'static Family> + use<> {
        self.tables.iter().flat_map(|table| table.iter())
    }
}

/// All dialects. Of several on one page the first counts: an engine before what stands in front
/// of it, so that no request is counted by both.
pub(super) static DIALECTS: [&Dialect; 13] = [
    &vllm::DIALECT,
    &sglang::DIALECT,
    &tensorrt_llm::DIALECT,
    &lmdeploy::DIALECT,
    &tgi::DIALECT,
    &llama_cpp::DIALECT,
    &ray_serve::DIALECT,
    &nim::DIALECT,
    &triton::DIALECT,
    &dynamo::WORKER,
    &dynamo::FRONTEND,
    &litellm::DIALECT,
    &kserve::DIALECT,
];

/// Which part of a family a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Value,
    Bucket,
    Sum,
    Count,
}

/// What a wire name is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    /// Position in [`DIALECTS`].
    pub(super) dialect: usize,
    /// Position among the families of the dialect.
    pub(super) family: usize,
    /// That family.
    pub(super) row: &'static Family,
    pub(super) piece: Piece,
}

static HITS: LazyLock<HashMap<String, Vec<Hit>>> = LazyLock::new(|| {
    let mut hits: HashMap<String, Vec<Hit>> = HashMap::new();
    for (dialect, of) in DIALECTS.iter().enumerate() {
        for (family, row) in of.families().enumerate() {
            for prefix in of.prefixes {
                for (suffix, piece) in pieces(row.role) {
                    let hit = Hit {
                        dialect,
                        family,
                        row,
                        piece: *piece,
                    };
                    let name = format!("{prefix}{}{suffix}", row.name);
                    hits.entry(name).or_default().push(hit);
                }
            }
        }
    }
    hits
});

const fn pieces(role: Role) -> &'static [(&'static str, Piece)] {
    match role {
        Role::Gauge(_) => &[("", Piece::Value)],
        Role::Counter(_) | Role::Sum(_) | Role::Count(_) | Role::Finished(_) => {
            &[("", Piece::Value), ("_total", Piece::Value)]
        }
        Role::Histogram(_) => &[
            ("_bucket", Piece::Bucket),
            ("_sum", Piece::Sum),
            ("_count", Piece::Count),
        ],
        // An info family has its suffix in `OpenMetrics`, and bears it in its name elsewhere.
        Role::Info(_) => &[("", Piece::Value), ("_info", Piece::Value)],
    }
}

/// What the series called `name` is; nothing if no engine calls one so.
pub(super) fn hits(name: &str) -> &'static [Hit] {
    HITS.get(name).map_or(&[], Vec::as_slice)
}

/// Positions in [`DIALECTS`] of those that a name like `name` belongs to.
pub(super) fn marked(name: &str) -> impl Iterator<Item = usize> + use<'_> {
    DIALECTS
        .iter()
        .enumerate()
        .filter(|(_, dialect)| dialect.marks.iter().any(|mark| name.starts_with(mark)))
        .map(|(at, _)| at)
}

/// Whether some version of `engine` publishes the role called `role`.
#[must_use]
pub fn publishes(engine: Engine, role: &str) -> bool {
    let named = |family: &Family| match family.role {
        Role::Gauge(of) => of.name() == role,
        Role::Counter(of) => of.name() == role,
        Role::Histogram(of) | Role::Sum(of) => {
            // Either tells how fast tokens come.
            of.name() == role || (of == HistogramRole::Tpot && role == "itl")
        }
        Role::Info(gauges) => gauges.iter().any(|(_, of)| of.name() == role),
        Role::Count(_) | Role::Finished(_) => false,
    };
    let mut dialects = DIALECTS.iter().filter(|dialect| dialect.engine == engine);
    dialects.any(|dialect| dialect.families().any(named))
}

/// How `engine` writes its page; `None` if it has no page of this kind.
#[cfg(test)]
pub(super) fn dialect(engine: Engine) -> Option<&'static Dialect> {
    DIALECTS
        .iter()
        .copied()
        .find(|dialect| dialect.engine == engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_table_has_more_labels_than_fit() {
        for dialect in DIALECTS {
            assert!(dialect.ranks.len() <= MOST_RANKS, "{:?}", dialect.engine);
            assert!(dialect.copies.len() <= MOST_COPIES, "{:?}", dialect.engine);
            assert!(!dialect.marks.is_empty(), "{:?}", dialect.engine);
        }
    }

    #[test]
    fn no_name_is_in_a_table_twice_for_the_same_end() {
        for dialect in DIALECTS {
            let mut seen = Vec::new();
            for family in dialect.families() {
                let key = format!("{} {:?} {:?}", family.name, family.role, family.only);
                assert!(!seen.contains(&key), "{:?}: {key}", dialect.engine);
                seen.push(key);
            }
        }
    }

    #[test]
    fn every_engine_with_a_page_has_a_table() {
        for engine in Engine::ALL {
            let has_table = dialect(engine).is_some();
            assert_eq!(has_table, engine != Engine::Ollama, "{}", engine.name());
        }
    }

    #[test]
    fn names_are_known_with_and_without_total_and_types_do_not_mix() {
        assert_eq!(hits("vllm:prompt_tokens"), hits("vllm:prompt_tokens_total"));
        assert_eq!(hits("vllm:prompt_tokens_total").len(), 1);
        // Its name ends like a counter's, and it is a histogram of something else.
        assert!(hits("vllm:iteration_tokens_total").is_empty());
        assert!(hits("vllm:prompt_tokens_created").is_empty());
        assert!(hits("vllm:time_to_first_token_seconds").is_empty());
        assert_eq!(
            hits("vllm:time_to_first_token_seconds_sum")[0].piece,
            Piece::Sum
        );
    }
}
