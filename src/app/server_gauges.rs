//! What the surface shows of a target's server: its newest page, and its last minute.

use std::time::Duration;

use crate::aggregate::Live;
use crate::aggregate::server::{HistogramWindow, ServerMark, ServerWindow};
use crate::clock::MonoTime;
use crate::export::catalog::{self, Metric};
use crate::export::prometheus::Gauge;
use crate::measurement::Sample;
use crate::measurement::server::{CounterRole, Engine, HistogramRole};

/// The span of rates and means.
const MINUTE: Duration = Duration::from_mins(1);

/// What is known of one target's server.
pub(super) struct Server {
    sample: Option<Sample>,
    minute: Option<ServerWindow>,
}

impl Server {
    /// The server of the target at `target_index`, as it is `now`.
    pub(super) fn of(live: &Live, target_index: usize, now: MonoTime) -> Self {
        let history = live.servers().get(target_index);
        Self {
            sample: history.and_then(|history| history.latest()).cloned(),
            minute: live.server(target_index, (now.minus(MINUTE), now)),
        }
    }

    /// Its gauges, for the target called `name`. A page older than `max_age` is not the state now:
    /// absent, and its age says why.
    pub(super) fn gauges(&self, name: &str, (now, max_age): (MonoTime, Duration)) -> Vec<Gauge> {
        let mut gauges = Gauges {
            name,
            list: Vec::new(),
        };
        if let Some(sample) = &self.sample {
            let age = now.since(sample.at);
            gauges.add(&catalog::SERVER_SAMPLE_AGE, Some(age.as_secs_f64()));
            if age <= max_age {
                gauges.page(sample);
            }
        }
        if let Some(minute) = &self.minute {
            gauges.minute(minute);
        }
        gauges.list
    }
}

struct Gauges<'a> {
    name: &'a str,
    list: Vec<Gauge>,
}

impl Gauges<'_> {
    fn add(&mut self, metric: &'static Metric, value: Option<f64>) {
        self.labelled(metric, None, value);
    }

    fn labelled(
        &mut self,
        metric: &'static Metric,
        label: Option<(&'static str, &'static str)>,
        value: Option<f64>,
    ) {
        let Some(value) = value else { return };
        let target = ("target", self.name.to_owned());
        let label = label.map(|(name, value)| (name, value.to_owned()));
        self.list.push(Gauge {
            metric,
            labels: std::iter::once(target).chain(label).collect(),
            value,
        });
    }

    fn page(&mut self, sample: &Sample) {
        let state = &sample.state;
        self.add(&catalog::SERVER_RUNNING, state.running);
        self.add(&catalog::SERVER_WAITING, state.waiting);
        self.add(&catalog::SERVER_SWAPPED, state.swapped);
        self.add(&catalog::SERVER_KV_USAGE, state.kv_usage);
        self.add(&catalog::SERVER_KV_USAGE_MAX, state.kv_usage_max);
        if let Some(engine) = sample.page.engine.map(Engine::name) {
            self.labelled(&catalog::SERVER_INFO, Some(("engine", engine)), Some(1.0));
        }
    }

    fn minute(&mut self, minute: &ServerWindow) {
        self.add(&catalog::SERVER_PREFIX_HIT, minute.prefix_hit_ratio());
        let tokens = [
            (CounterRole::PromptTokens, "input"),
            (CounterRole::GenerationTokens, "output"),
        ];
        for (role, kind) in tokens {
            let rate = minute.counter(role).map(|counter| counter.per_second());
            self.labelled(&catalog::SERVER_TOKENS, Some(("type", kind)), rate);
        }
        let preemptions = minute.counter(CounterRole::Preemptions);
        let preemptions = preemptions.map(|counter| counter.delta);
        self.add(&catalog::SERVER_PREEMPTIONS, preemptions);
        for role in HistogramRole::ALL {
            let mean = minute.histogram(role).and_then(HistogramWindow::mean);
            self.labelled(&catalog::SERVER_LATENCY, Some(("of", role.name())), mean);
        }
        let outside = minute.outside;
        self.add(
            &catalog::SERVER_OUTSIDE,
            outside.map(|outside| outside.seconds),
        );
        self.add(
            &catalog::SERVER_OUTSIDE_ERROR,
            outside.map(|outside| outside.error),
        );
        if minute.pages == 0 {
            return;
        }
        for mark in ServerMark::ALL {
            let holds = if minute.has(mark) { 1.0 } else { 0.0 };
            let label = ("mark", mark.name());
            self.labelled(&catalog::SERVER_SUSPECT, Some(label), Some(holds));
        }
    }
}
