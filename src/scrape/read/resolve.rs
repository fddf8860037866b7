//! One answer for the whole page, out of its parts.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::parts::{Amount, Buckets, Cell, Key, Part, Parts};
use crate::measurement::ServerState;
use crate::measurement::server::{
    CounterRole, GaugeRole, HistogramRole, Rank, ServerHistogram, ServerInfo, ServerPage,
    ServerTotals,
};
use crate::scrape::engine::{DIALECTS, Family, Role};
use crate::scrape::page::unescaped;

/// Most ranks that are told apart to others.
const MOST_TOLD: usize = 64;
/// Most models that are named.
const MOST_MODELS: usize = 64;
/// Most labels of info families that are kept, and most bytes of one.
const MOST_FLAGS: usize = 64;
const LONGEST_FLAG: usize = 256;
/// Shares a little above 1 are 1: they are quotients of floats.
const ROUNDING: f64 = 1e-6;

/// What the parts of the dialect at `at` say together.
pub(super) fn resolve(
    parts: Parts<'_>,
    at: usize,
    model: Option<&str>,
) -> (ServerState, ServerPage) {
    let process_start = Some(parts.process_start)
        .filter(|start| start.series == 1 && !start.unusable)
        .map(|start| start.total);
    let groups = groups(parts, at);
    let models = models(&groups);
    let of_model = |group: &Group<'_>| {
        let is = |model: &str| unescaped(group.key.model).eq_ignore_ascii_case(model);
        group.key.model.is_empty() || model.is_some_and(is)
    };
    let is_there =
        model.is_some_and(|model| models.iter().any(|one| one.eq_ignore_ascii_case(model)));
    let groups: Vec<Group<'_>> = groups
        .into_iter()
        .filter(|group| !is_there || of_model(group))
        .collect();
    let families: Vec<&'static Family> = DIALECTS[at].families().collect();
    let all: Vec<&Group<'_>> = groups.iter().collect();
    let whole = View {
        families: &families,
        all: &all,
        groups: &all,
    };
    let state = whole.state();
    let mut totals = whole.totals();
    totals.process_start = process_start;
    let page = ServerPage {
        engine: None,
        totals,
        ranks: ranks(&whole),
        info: ServerInfo {
            models,
            flags: whole.flags(),
        },
        bad_lines: 0,
    };
    (state, page)
}

/// One rank: of several copies that tell the same, the lowest that tells it.
struct Group<'a> {
    key: Key<'a>,
    cells: Vec<Option<Cell>>,
    finished: Vec<(usize, &'a str, Amount)>,
    told: Vec<(usize, &'a str, &'a str)>,
}

fn groups<'a>(parts: Parts<'a>, at: usize) -> Vec<Group<'a>> {
    let mut parts: Vec<Part<'a>> = parts.list;
    parts.retain(|part| part.dialect == at);
    parts.sort_by(|a, b| {
        let place = |key: &Key<'a>| (key.model, key.ranks, key.instance);
        place(&a.key)
            .cmp(&place(&b.key))
            .then_with(|| copies(&a.key, &b.key))
    });
    let mut groups: Vec<Group<'_>> = Vec::new();
    for part in parts {
        let same = |group: &&mut Group<'_>| {
            let (a, b) = (&group.key, &part.key);
            (a.model, a.ranks, a.instance) == (b.model, b.ranks, b.instance)
        };
        match groups.last_mut().filter(same) {
            Some(group) => group.complete(part),
            None => groups.push(Group {
                key: part.key,
                cells: part.cells,
                finished: part.finished,
                told: part.told,
            }),
        }
    }
    groups
}

/// Workers by their numbers, where they have some.
fn copies(a: &Key<'_>, b: &Key<'_>) -> Ordering {
    let number = |text: &str| text.parse::<u32>().map_err(|_| text.to_owned());
    let order = a.copies.iter().zip(&b.copies);
    order
        .map(|(a, b)| match (number(a), number(b)) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            _ => a.cmp(b),
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

impl<'a> Group<'a> {
    /// Adds what `copy` tells and none before it did.
    fn complete(&mut self, copy: Part<'a>) {
        for (cell, copied) in self.cells.iter_mut().zip(copy.cells) {
            if cell.is_none() {
                *cell = copied;
            }
        }
        let has = |family: usize| self.finished.iter().any(|(one, ..)| *one == family);
        let new: Vec<_> = copy
            .finished
            .into_iter()
            .filter(|(family, ..)| !has(*family))
            .collect();
        self.finished.extend(new);
        self.told.extend(copy.told);
    }
}

fn models(groups: &[Group<'_>]) -> Vec<Box<str>> {
    let named = groups.iter().map(|group| group.key.model);
    let mut models: Vec<Box<str>> = named
        .filter(|model| !model.is_empty() && model.len() <= LONGEST_FLAG)
        .map(|model| unescaped(model).into())
        .collect();
    models.sort_unstable();
    models.dedup();
    models.truncate(MOST_MODELS);
    models
}

/// The gauges of each rank, where there are several.
fn ranks(whole: &View<'_, '_>) -> Vec<Rank> {
    let state = |group| {
        let view = View {
            groups: &[group],
            ..*whole
        };
        view.state()
    };
    let told: Vec<Rank> = whole
        .all
        .iter()
        .filter(|group| group.cells.iter().any(Option::is_some))
        .map(|group| (group, state(group)))
        .filter(|(group, state)| !name(&group.key).is_empty() && *state != ServerState::default())
        .take(MOST_TOLD)
        .map(|(group, state)| Rank {
            name: name(&group.key).into(),
            state,
        })
        .collect();
    if told.len() > 1 { told } else { Vec::new() }
}

fn name(key: &Key<'_>) -> String {
    let all = [key.model, key.instance].into_iter().chain(key.ranks);
    let known: Vec<_> = all
        .filter(|text| !text.is_empty() && text.len() <= LONGEST_FLAG)
        .map(unescaped)
        .collect();
    known.join("/")
}

/// Some of the groups, seen as one server.
struct View<'g, 'a> {
    families: &'g [&'static Family],
    /// All groups of the page: which of several names counts is settled by them.
    all: &'g [&'g Group<'a>],
    groups: &'g [&'g Group<'a>],
}

impl View<'_, '_> {
    /// The families of `role`, of the lowest order that is on the page.
    fn of(&self, role: Role) -> Vec<usize> {
        let is_there = |at: usize| self.all.iter().any(|group| group.cells[at].is_some());
        let all = self.families.iter().enumerate();
        let there: Vec<(usize, u8)> = all
            .filter(|(at, family)| family.role == role && is_there(*at))
            .map(|(at, family)| (at, family.order))
            .collect();
        let lowest = there.iter().map(|(_, order)| *order).min();
        there
            .into_iter()
            .filter(|(_, order)| Some(*order) == lowest)
            .map(|(at, _)| at)
            .collect()
    }

    /// What each group says of `role`.
    fn amounts(&self, role: Role) -> Vec<Amount> {
        let families = self.of(role);
        let of_group = |group: &&Group<'_>| {
            let mut whole = Amount::default();
            for at in &families {
                if let Some(Cell::Value(amount)) = &group.cells[*at] {
                    whole.series += amount.series;
                    whole.total += amount.total;
                    whole.unusable |= amount.unusable;
                }
            }
            (whole.series > 0).then_some(whole)
        };
        self.groups.iter().filter_map(of_group).collect()
    }

    fn sum(&self, role: Role) -> Option<f64> {
        let amounts = self.amounts(role);
        let usable = !amounts.is_empty() && !amounts.iter().any(|amount| amount.unusable);
        usable.then(|| amounts.iter().map(|amount| amount.total).sum())
    }

    /// The mean over series, as they weigh the same.
    fn mean(&self, role: Role) -> Option<f64> {
        let series: u32 = self.amounts(role).iter().map(|amount| amount.series).sum();
        Some(self.sum(role)? / f64::from(series))
    }

    fn state(&self) -> ServerState {
        let mut state = ServerState::default();
        for role in GaugeRole::ALL {
            let gauge = Role::Gauge(role);
            let value = if role.is_share() {
                self.mean(gauge).and_then(share)
            } else if role == GaugeRole::BlockTokens {
                self.mean(gauge)
            } else {
                self.sum(gauge)
            };
            state.set(role, value.or_else(|| self.told(role)));
        }
        let quotient = |used: Option<f64>, of: Option<f64>| {
            let (used, of) = used.zip(of)?;
            (of > 0.0).then(|| used / of).and_then(share)
        };
        state.kv_usage = state
            .kv_usage
            .or_else(|| quotient(state.kv_blocks_used, state.kv_blocks))
            .or_else(|| quotient(state.kv_tokens_used, state.kv_tokens));
        state.kv_usage_max = state.kv_usage.map(|mean| {
            let shares = self.amounts(Role::Gauge(GaugeRole::KvUsage));
            let each = shares
                .iter()
                .filter_map(|amount| share(amount.total / f64::from(amount.series)));
            each.fold(mean, f64::max)
        });
        state
    }

    /// A gauge that stands in labels.
    fn told(&self, role: GaugeRole) -> Option<f64> {
        let mut amount = Amount::default();
        for group in self.groups {
            for (family, name, value) in &group.told {
                let Role::Info(gauges) = self.families[*family].role else {
                    continue;
                };
                if gauges.contains(&(*name, role))
                    && let Ok(value) = value.parse()
                {
                    amount.add(value);
                }
            }
        }
        let parts = if role == GaugeRole::BlockTokens {
            f64::from(amount.series)
        } else {
            1.0
        };
        (amount.series > 0 && !amount.unusable).then(|| amount.total / parts)
    }

    fn totals(&self) -> ServerTotals {
        let mut totals = ServerTotals::default();
        let (finished, is_complete) = self.finished();
        for role in CounterRole::ALL {
            totals.set_counter(role, self.sum(Role::Counter(role)));
        }
        if totals.counter(CounterRole::Requests).is_none() && is_complete && !finished.is_empty() {
            let all = finished.iter().map(|(_, count)| count).sum();
            totals.set_counter(CounterRole::Requests, Some(all));
        }
        // Lookups are known by what they found.
        if totals.counter(CounterRole::PrefixHits).is_none() {
            totals.set_counter(CounterRole::PrefixQueries, None);
        }
        for role in HistogramRole::ALL {
            totals.set_histogram(role, self.histogram(role));
        }
        totals.finished = finished;
        totals
    }

    /// Requests by reason, and whether all reasons have a usable number.
    fn finished(&self) -> (Vec<(Box<str>, f64)>, bool) {
        let all = || self.groups.iter().flat_map(|group| &group.finished);
        let order = |family: usize| self.families[family].order;
        let lowest = all().map(|(family, ..)| order(*family)).min();
        let mut reasons: BTreeMap<Box<str>, Amount> = BTreeMap::new();
        for (family, reason, amount) in all() {
            if Some(order(*family)) == lowest && reason.len() <= LONGEST_FLAG {
                let whole = reasons.entry(unescaped(reason).into()).or_default();
                whole.total += amount.total;
                whole.unusable |= amount.unusable;
            }
        }
        let all = reasons.len();
        let usable = reasons.into_iter().filter(|(_, amount)| !amount.unusable);
        let usable: Vec<_> = usable
            .map(|(reason, amount)| (reason, amount.total))
            .collect();
        let is_complete = usable.len() == all;
        (usable, is_complete)
    }

    fn histogram(&self, role: HistogramRole) -> Option<ServerHistogram> {
        let mut whole: Option<Buckets> = None;
        for at in self.of(Role::Histogram(role)) {
            for group in self.groups {
                if let Some(Cell::Buckets(buckets)) = &group.cells[at] {
                    whole.get_or_insert_default().merge(buckets);
                }
            }
        }
        if let Some(whole) = whole {
            return whole.finish();
        }
        let sum = self.sum(Role::Sum(role))?;
        Some(ServerHistogram {
            count: self.sum(Role::Count(role))?,
            sum,
            ..ServerHistogram::default()
        })
    }

    fn flags(&self) -> Vec<(Box<str>, Box<str>)> {
        let mut flags: BTreeMap<Box<str>, Box<str>> = BTreeMap::new();
        for (_, name, value) in self.groups.iter().flat_map(|group| &group.told) {
            let short = name.len() <= LONGEST_FLAG && value.len() <= LONGEST_FLAG;
            if short && flags.len() < MOST_FLAGS {
                let name = unescaped(name).into();
                flags.entry(name).or_insert_with(|| unescaped(value).into());
            }
        }
        flags.into_iter().collect()
    }
}

/// `value` as a share; what is above 1 is none.
fn share(value: f64) -> Option<f64> {
    (value <= 1.0 + ROUNDING).then(|| value.min(1.0))
}

impl Buckets {
    fn merge(&mut self, other: &Self) {
        let add = |to: &mut Amount, from: &Amount| {
            to.series += from.series;
            to.total += from.total;
            to.unusable |= from.unusable;
        };
        add(&mut self.sum, &other.sum);
        add(&mut self.count, &other.count);
        add(&mut self.all, &other.all);
        self.broken |= other.broken;
        for (at, (bound, amount)) in other.below.iter().enumerate() {
            let same = |entry: &(f64, Amount)| entry.0.to_bits() == bound.to_bits();
            // Ranks of one engine have the same bounds in the same order.
            let found = match self.below.get(at) {
                Some(entry) if same(entry) => Some(at),
                _ => self.below.iter().position(same),
            };
            match found {
                Some(at) => add(&mut self.below[at].1, amount),
                None => self.below.push((*bound, *amount)),
            }
        }
    }

    /// The histogram, if it has a sum and a count. Bounds that not all series have, and buckets
    /// that do not grow, are left out: what remains is true.
    fn finish(mut self) -> Option<ServerHistogram> {
        let count = if self.count.series > 0 {
            self.count
        } else {
            self.all
        };
        if self.sum.series == 0 || count.series == 0 || self.sum.unusable || count.unusable {
            return None;
        }
        let series = self.below.iter().map(|(_, amount)| amount.series).max();
        self.below
            .retain(|(_, amount)| Some(amount.series) == series);
        self.below.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut before = 0.0;
        let grows = self.below.iter().all(|(_, amount)| {
            let fine = amount.total >= before && !amount.unusable;
            before = amount.total;
            fine
        });
        if self.broken || !grows || before > count.total {
            self.below.clear();
        }
        Some(ServerHistogram {
            bounds: self.below.iter().map(|(bound, _)| *bound).collect(),
            below: self.below.iter().map(|(_, amount)| amount.total).collect(),
            count: count.total,
            sum: self.sum.total,
        })
    }
}
