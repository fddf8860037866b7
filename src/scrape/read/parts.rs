//! The series of a page, sorted by engine, model and rank.

use std::borrow::Cow;

use crate::scrape::engine::{
    DIALECTS, Dialect, Hit, MOST_COPIES, MOST_RANKS, Piece, Reason, Role, hits, marked,
};
use crate::scrape::page::{Labels, Line};

/// Most parts of one page: engines, models and ranks. Beyond them it is not read.
const MOST_PARTS: usize = 256;
/// Most bounds of one histogram; the most seen are 35.
const MOST_BOUNDS: usize = 512;
/// Most reasons of one part.
const MOST_REASONS: usize = 32;
/// When a process began; the name is everybody's.
const PROCESS_START: &str = "process_start_time_seconds";

/// Everything of a page that has a role.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    pub(super) list: Vec<Part<'a>>,
    /// Whether the page has names of this dialect.
    seen: [bool; DIALECTS.len()],
    /// When the process began, as each series says it.
    pub(super) process_start: Amount,
    /// What the last name is, since the series of a family stand together.
    name: Cow<'a, str>,
    hits: &'static [Hit],
    /// Position of the part of the last series.
    last: usize,
    cut: bool,
}

/// One engine, model and rank.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) dialect: usize,
    pub(super) key: Key<'a>,
    /// By the position of the family.
    pub(super) cells: Vec<Option<Cell>>,
    /// Requests that ended, by family and reason.
    pub(super) finished: Vec<(usize, &'a str, Amount)>,
    /// Labels of the info families, by family.
    pub(super) told: Vec<(usize, &'a str, &'a str)>,
}

/// What tells parts apart; still escaped.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Key<'a> {
    pub(super) model: &'a str,
    pub(super) ranks: [&'a str; MOST_RANKS],
    /// The address that a scraper in between read.
    pub(super) instance: &'a str,
    /// Copies of one rank; the last one is the scraper's own name for what it does.
    pub(super) copies: [&'a str; MOST_COPIES + 1],
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        // Most labels are empty, and to compare nothing with nothing is slow where memory is
        // compared under a mask: it would take more time than all else.
        let same = |a: &str, b: &str| a.len() == b.len() && (a.is_empty() || a == b);
        let all = |a: &[&str], b: &[&str]| a.iter().zip(b).all(|(a, b)| same(a, b));
        same(self.model, other.model)
            && all(&self.ranks, &other.ranks)
            && same(self.instance, other.instance)
            && all(&self.copies, &other.copies)
    }
}

/// What one family says.
#[derive(Debug, Clone)]
pub(super) enum Cell {
    Value(Amount),
    Buckets(Box<Buckets>),
}

/// Values added up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Amount {
    pub(super) series: u32,
    pub(super) total: f64,
    /// One of them is no amount: what they say as a whole is unknown then.
    pub(super) unusable: bool,
}

impl Amount {
    pub(super) fn add(&mut self, value: f64) {
        self.series += 1;
        self.total += value;
        self.unusable |= !value.is_finite() || value < 0.0;
    }
}

/// A histogram as the page writes it.
#[derive(Debug, Clone, Default)]
pub(super) struct Buckets {
    /// Bound, values at or below it, and how many series have it.
    pub(super) below: Vec<(f64, Amount)>,
    pub(super) sum: Amount,
    pub(super) count: Amount,
    pub(super) all: Amount,
    /// Where the next bound is expected.
    next: usize,
    pub(super) broken: bool,
}

impl Buckets {
    fn bucket(&mut self, le: Option<&str>, (value, unit): (f64, f64)) {
        let bound = le.and_then(|le| le.parse::<f64>().ok());
        let Some(bound) = bound.filter(|bound| !bound.is_nan()) else {
            self.broken = true;
            return;
        };
        if bound == f64::INFINITY {
            self.all.add(value);
            self.next = 0;
            return;
        }
        let bound = bound * unit;
        let is_it = |entry: &(f64, Amount)| entry.0.to_bits() == bound.to_bits();
        let at = match self.below.get(self.next) {
            Some(entry) if is_it(entry) => self.next,
            _ => match self.below.iter().position(is_it) {
                Some(at) => at,
                None if self.below.len() < MOST_BOUNDS => {
                    self.below.push((bound, Amount::default()));
                    self.below.len() - 1
                }
                None => {
                    self.broken = true;
                    return;
                }
            },
        };
        self.below[at].1.add(value);
        self.next = at + 1;
    }
}

impl<'a> Parts<'a> {
    /// Whether there were more parts than are read.
    pub(super) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// The dialect that counts: the first that says something of `model`, or else anything, or
    /// else is on the page.
    pub(super) fn engine(&self, model: Option<&str>) -> Option<usize> {
        let says = |at: usize| self.seen[at] && self.list.iter().any(|part| part.dialect == at);
        let of_model = |at: usize| {
            model.is_some_and(|model| {
                let mut parts = self.list.iter().filter(|part| part.dialect == at);
                parts.any(|part| part.key.model.eq_ignore_ascii_case(model))
            })
        };
        let all = 0..DIALECTS.len();
        all.clone()
            .find(|at| says(*at) && of_model(*at))
            .or_else(|| all.clone().find(|at| says(*at)))
            .or_else(|| all.clone().find(|at| self.seen[*at]))
    }

    /// Takes one series of the page.
    pub(super) fn add(&mut self, line: &Line<'a>) {
        if line.name != self.name {
            self.hits = hits(&line.name);
            for dialect in marked(&line.name) {
                self.seen[dialect] = true;
            }
            self.name.clone_from(&line.name);
        }
        let Some(first) = self.hits.first() else {
            if line.name == PROCESS_START {
                self.process_start.add(line.value);
            }
            return;
        };
        let mut gathered = (
            first.dialect,
            Gathered::of(line.labels, DIALECTS[first.dialect]),
        );
        for hit in self.hits {
            if gathered.0 != hit.dialect {
                gathered = (
                    hit.dialect,
                    Gathered::of(line.labels, DIALECTS[hit.dialect]),
                );
            }
            self.take(line, *hit, &gathered.1);
        }
    }

    fn take(&mut self, line: &Line<'a>, hit: Hit, gathered: &Gathered<'a>) {
        let family = hit.row;
        if let Some((label, wanted)) = family.only
            && !line.labels.raw().any(|found| found == (label, wanted))
        {
            return;
        }
        let Some(part) = self.part(hit.dialect, gathered.key) else {
            return;
        };
        match family.role {
            Role::Info(_) => part.tell(hit.family, line.labels),
            Role::Finished(reason) => {
                let reason = match reason {
                    Reason::Is(reason) => reason,
                    Reason::Label(label) => {
                        let mut labels = line.labels.raw();
                        labels
                            .find_map(|(name, value)| (name == label).then_some(value))
                            .unwrap_or("")
                    }
                };
                part.finish(hit.family, reason, line.value);
            }
            _ => part.cell(hit, gathered.le, (line.value, family.unit)),
        }
    }

    /// The part of `key`; `None` if there are too many.
    fn part(&mut self, dialect: usize, key: Key<'a>) -> Option<&mut Part<'a>> {
        let is_it = |part: &Part<'_>| part.dialect == dialect && part.key == key;
        if !self.list.get(self.last).is_some_and(is_it) {
            self.last = match self.list.iter().position(is_it) {
                Some(at) => at,
                None if self.list.len() < MOST_PARTS => {
                    self.list.push(Part::new(dialect, key));
                    self.list.len() - 1
                }
                None => {
                    self.cut = true;
                    return None;
                }
            };
        }
        self.list.get_mut(self.last)
    }
}

impl<'a> Part<'a> {
    fn new(dialect: usize, key: Key<'a>) -> Self {
        Self {
            dialect,
            key,
            cells: vec![None; DIALECTS[dialect].families().count()],
            finished: Vec::new(),
            told: Vec::new(),
        }
    }

    fn tell(&mut self, family: usize, labels: Labels<'a>) {
        self.told
            .extend(labels.raw().map(|(name, value)| (family, name, value)));
    }

    fn finish(&mut self, family: usize, reason: &'a str, value: f64) {
        let same = |(at, one, _): &&mut (usize, &str, Amount)| *at == family && *one == reason;
        if let Some((_, _, amount)) = self.finished.iter_mut().find(same) {
            amount.add(value);
        } else {
            // What is too much is added up under no name.
            let reason = if self.finished.len() < MOST_REASONS {
                reason
            } else {
                ""
            };
            let mut amount = Amount::default();
            amount.add(value);
            self.finished.push((family, reason, amount));
        }
    }

    fn cell(&mut self, hit: Hit, le: Option<&str>, (value, unit): (f64, f64)) {
        let cell = &mut self.cells[hit.family];
        if hit.piece == Piece::Value {
            let cell = cell.get_or_insert_with(|| Cell::Value(Amount::default()));
            if let Cell::Value(amount) = cell {
                amount.add(value * unit);
            }
            return;
        }
        let cell = cell.get_or_insert_with(|| Cell::Buckets(Box::default()));
        let Cell::Buckets(buckets) = cell else { return };
        match hit.piece {
            Piece::Bucket => buckets.bucket(le, (value, unit)),
            Piece::Sum => buckets.sum.add(value * unit),
            Piece::Count => buckets.count.add(value),
            Piece::Value => {}
        }
    }
}

/// The labels of one series that say where it belongs.
struct Gathered<'a> {
    key: Key<'a>,
    le: Option<&'a str>,
}

impl<'a> Gathered<'a> {
    fn of(labels: Labels<'a>, dialect: &Dialect) -> Self {
        let mut key = Key::default();
        let mut le = None;
        let mut of_model = usize::MAX;
        for (name, value) in labels.raw() {
            let place = |names: &[&str]| names.iter().position(|one| *one == name);
            if name == "le" {
                le = Some(value);
            } else if let Some(at) = place(dialect.models) {
                if at < of_model {
                    (of_model, key.model) = (at, value);
                }
            } else if let Some(at) = place(dialect.ranks) {
                key.ranks[at] = value;
            } else if let Some(at) = place(dialect.copies) {
                key.copies[at] = value;
            } else if name == "instance" {
                key.instance = value;
            } else if name == "job" {
                key.copies[MOST_COPIES] = value;
            }
        }
        Self { key, le }
    }
}
