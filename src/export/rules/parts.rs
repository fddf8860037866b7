//! Which probes and targets share a window: as many requests have to fall into it as a p95 needs.
//!
//! A rule for all would have to wait for the slowest probe. So each probe gets the shortest
//! window that is long enough for its rate, and each length of window its own rules.

use std::collections::BTreeMap;
use std::time::Duration;

use super::promql::{any_of, quoted};
use super::{Settings, span_text};
use crate::config::{Config, ProbeConfig, TargetConfig};

/// Lengths of windows, in minutes: those of the boards, each about twice the one before.
const WINDOWS: [u64; 7] = [5, 10, 15, 30, 60, 120, 360];

/// Requests expected in a window for each that has to be there: Poisson arrivals with a mean of
/// 30 are at least 20 in 98 of 100 windows.
const MARGIN: f64 = 1.5;

/// Requests that a target has to have been sent in a window for its silence to mean something,
/// with room for chance.
const FOR_A_TARGET: f64 = 6.0;

/// Series that share a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Its length.
    pub(super) window: Duration,
    /// Which: a label and its values; `None` is all.
    only: Option<(&'static str, Vec<String>)>,
}

impl Part {
    /// All series.
    pub(super) const fn all(window: Duration) -> Self {
        Self { window, only: None }
    }

    /// What distinguishes the names of its groups.
    pub(super) fn suffix(&self) -> String {
        match &self.only {
            None => String::new(),
            Some(_) => format!("-{}", span_text(self.window)),
        }
    }

    /// The braces of a selector with `more` matchers.
    pub(super) fn selector(&self, more: &[&str]) -> String {
        let own = self.only.iter().map(|(label, values)| match &values[..] {
            [one] => format!("{label}={}", quoted(one)),
            several => format!("{label}=~{}", quoted(&any_of(several))),
        });
        let all: Vec<String> = own
            .chain(more.iter().map(|one| (*one).to_owned()))
            .collect();
        if all.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", all.join(", "))
        }
    }
}

/// Probes by the window that their slowest stream needs.
pub(super) fn by_probe(settings: &Settings, config: &Config) -> Vec<Part> {
    let needed = f64::from(settings.least_requests) * MARGIN;
    let named = config.probes.iter().map(|probe| {
        let slowest = streams_of(config, probe)
            .map(|(_, rate)| rate)
            .min_by(f64::total_cmp);
        (window(settings, slowest, needed).0, probe.name.clone())
    });
    parts("probe", named)
}

/// Targets by the window in which they are sent enough.
pub(super) fn by_target(settings: &Settings, config: &Config) -> Vec<Part> {
    let named = config.targets.iter().map(|target| {
        let sent = |probe: &ProbeConfig| -> Option<f64> {
            probe
                .targets
                .contains(&target.name)
                .then(|| rate(probe, target))
        };
        // A closed loop sends as fast as it is answered: one of it is enough.
        let all: f64 = config.probes.iter().filter_map(sent).sum();
        let rate = Some(all).filter(|rate| *rate > 0.0);
        (window(settings, rate, FOR_A_TARGET).0, target.name.clone())
    });
    parts("target", named)
}

/// Probes whose streams get too few requests in even the longest window: no p95 of theirs is
/// recorded or judged.
#[must_use]
pub fn unwatched<'a>(settings: &Settings, config: &'a Config) -> Vec<&'a str> {
    let needed = f64::from(settings.least_requests);
    let too_slow = |probe: &&ProbeConfig| {
        streams_of(config, probe).any(|(_, rate)| !window(settings, Some(rate), needed).1)
    };
    let slow = config.probes.iter().filter(too_slow);
    slow.map(|probe| probe.name.as_str()).collect()
}

/// The targets of `probe`, with the rate at each of their addresses.
fn streams_of<'a>(
    config: &'a Config,
    probe: &'a ProbeConfig,
) -> impl Iterator<Item = (&'a TargetConfig, f64)> {
    let named = |name: &String| config.targets.iter().find(|target| target.name == *name);
    let targets = probe.targets.iter().filter_map(named);
    targets.map(move |target| (target, rate(probe, target)))
}

/// Mean arrivals per second at one address; a closed loop is taken for endless.
fn rate(probe: &ProbeConfig, target: &TargetConfig) -> f64 {
    let addresses = u32::try_from(target.urls.len().max(1)).unwrap_or(u32::MAX);
    probe.mean_rate().unwrap_or(f64::INFINITY) / f64::from(addresses)
}

/// The shortest window in which `needed` requests are expected, and whether they are.
fn window(settings: &Settings, rate: Option<f64>, needed: f64) -> (Duration, bool) {
    let rate = rate.unwrap_or(f64::INFINITY);
    let longer = WINDOWS.map(Duration::from_mins);
    let longer = longer.into_iter().filter(|one| *one > settings.window);
    let mut last = settings.window;
    for one in std::iter::once(settings.window).chain(longer) {
        last = one;
        if rate * one.as_secs_f64() >= needed {
            return (one, true);
        }
    }
    (last, false)
}

fn parts(label: &'static str, named: impl Iterator<Item = (Duration, String)>) -> Vec<Part> {
    let mut by_window: BTreeMap<Duration, Vec<String>> = BTreeMap::new();
    for (window, name) in named {
        by_window.entry(window).or_default().push(name);
    }
    let parts = by_window.into_iter().map(|(window, names)| Part {
        window,
        only: Some((label, names)),
    });
    parts.collect()
}
