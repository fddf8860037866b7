//! What the surface shows that nobody counts up: slots and budgets, read when somebody looks.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;

use super::App;
use super::diagnosis::UNKNOWN;
use super::server_gauges::Server;
use super::starts;
use crate::aggregate::Live;
use crate::analysis::{Confidence, Watch};
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::Config;
use crate::control::{Governor, Slots};
use crate::export::catalog::{self, Metric};
use crate::export::otlp::Events;
use crate::export::prometheus::{Gauge, labels_of};
use crate::measurement::{Mark, TargetState};
use crate::telemetry::HostFiles;
use crate::web::{Exposure, RunInfo, SurfaceState, router};

impl App {
    /// The page, the API and `/metrics`, with the listener they are served on.
    pub(super) fn surface(
        &mut self,
        ready: &Arc<AtomicBool>,
    ) -> Option<(TcpListener, axum::Router)> {
        let listener = self.listener.take()?;
        let loopback = listener
            .local_addr()
            .is_ok_and(|address| address.ip().is_loopback());
        let exposure = if loopback {
            Exposure::Loopback
        } else {
            Exposure::Beyond
        };
        let state = SurfaceState {
            live: Arc::clone(&self.live),
            watch: Arc::clone(&self.join.diagnosing.watch),
            anchor: self.anchor,
            own: self.own.clone(),
            gauges: self.gauges(),
            marked: self.marked(),
            ready: Arc::clone(ready),
            info: RunInfo {
                version: env!("CARGO_PKG_VERSION"),
                command: self.command,
                seed: self.seed,
                started_unix_ns: self.anchor.wall().unix_ns(MonoTime::ZERO),
            },
        };
        Some((listener, router(state, exposure)))
    }

    /// Keeps a mark that somebody posts.
    fn marked(&self) -> Arc<dyn Fn(Mark) + Send + Sync> {
        let live = Arc::clone(&self.live);
        // The page must not keep the exporter of events going.
        let events = self.join.diagnosing.events.as_ref().map(Events::weak);
        Arc::new(move |mark| starts::tell(&live, events.as_ref(), mark))
    }

    /// What is read when somebody looks.
    pub(super) fn gauges(&self) -> Arc<dyn Fn() -> Vec<Gauge> + Send + Sync> {
        let reader = Reader {
            anchor: self.anchor,
            governor: Arc::clone(&self.shared.governor),
            slots: slots_by_name(&self.config, &self.slots),
            live: Arc::clone(&self.live),
            watch: Arc::clone(&self.join.diagnosing.watch),
            instance: self.instance.clone(),
            host: HostFiles::default(),
            config: self.config.clone(),
            max_ages: self.join.known.iter().map(|known| known.max_age).collect(),
        };
        Arc::new(move || reader.read())
    }
}

fn slots_by_name(config: &Config, slots: &[Slots]) -> Vec<(String, Slots)> {
    let names = config.targets.iter().map(|target| target.name.clone());
    names.zip(slots.iter().cloned()).collect()
}

/// What the gauges are read from.
struct Reader {
    anchor: TimeAnchor,
    governor: Arc<Governor>,
    /// Per target, in the order of targets.
    slots: Vec<(String, Slots)>,
    live: Arc<Mutex<Live>>,
    watch: Arc<Mutex<Watch>>,
    /// What tells this run from others of its kind.
    instance: String,
    /// How old a server's state may be, per target.
    max_ages: Vec<Duration>,
    /// Our own machine.
    host: HostFiles,
    config: Config,
}

impl Reader {
    fn read(&self) -> Vec<Gauge> {
        let mut gauges = vec![target_info(&self.instance)];
        let mut add = |metric: &'static Metric, target: Option<&str>, value: Option<f64>| {
            if let Some(value) = value {
                let labels = target
                    .map(|name| ("target", name.to_owned()))
                    .into_iter()
                    .collect();
                gauges.push(Gauge {
                    metric,
                    labels,
                    value,
                });
            }
        };
        for (name, slots) in &self.slots {
            add(
                &catalog::IN_FLIGHT,
                Some(name),
                Some(f64::from(slots.in_use())),
            );
            add(
                &catalog::IN_FLIGHT_LIMIT,
                Some(name),
                Some(f64::from(slots.cap())),
            );
        }
        let used = self.governor.used(super::dispatch::unix_day(self.anchor));
        add(
            &catalog::BUDGET_REQUESTS_USED,
            None,
            Some(count(used.requests)),
        );
        add(
            &catalog::BUDGET_REQUESTS_LIMIT,
            None,
            used.requests_limit.map(count),
        );
        add(&catalog::BUDGET_TOKENS_USED, None, Some(count(used.tokens)));
        add(
            &catalog::BUDGET_TOKENS_LIMIT,
            None,
            used.tokens_limit.map(count),
        );
        gauges.extend(self.servers());
        gauges.extend(self.last_successes());
        gauges.extend(self.diagnoses());
        gauges.extend(self.targets());
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.slots.iter().map(|(name, _)| &**name);
        gauges.extend(super::gpus::gauges(&live, names, self.anchor.now()));
        gauges.extend(super::nodes::gauges(&live, &self.config, self.anchor.now()));
        drop(live);
        gauges.extend(super::host::gauges(&self.host.read()));
        gauges
    }

    /// How sure each cause is that was found since the start.
    fn diagnoses(&self) -> Vec<Gauge> {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let known = watch.found().filter_map(|(stream, cause, confidence)| {
            let stream = live.streams().get(stream)?.stream();
            let labels = labels_of(stream).into_iter();
            let cause = cause.map_or(UNKNOWN, |cause| cause.name());
            Some(Gauge {
                metric: &catalog::DIAGNOSIS,
                labels: labels
                    .map(|(name, value)| (name, value.into_owned()))
                    .chain([("cause", cause.to_owned())])
                    .collect(),
                value: confidence.map_or(0.0, Confidence::level),
            })
        });
        known.collect()
    }

    /// How targets stand, and when something last changed on them.
    fn targets(&self) -> Vec<Gauge> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gauges = Vec::new();
        for address in live.addresses() {
            let Some((now, _)) = address.state else {
                continue;
            };
            for state in TargetState::ALL {
                gauges.push(Gauge {
                    metric: &catalog::TARGET_STATE,
                    labels: vec![
                        ("target", address.target.to_string()),
                        ("endpoint", address.endpoint.to_string()),
                        ("state", state.name().to_owned()),
                    ],
                    value: if state == now { 1.0 } else { 0.0 },
                });
            }
        }
        gauges.extend(live.marks().newest().map(|(target, kind, unix_ns)| {
            Gauge {
                metric: &catalog::MARK_TIME,
                labels: target
                    .map(|target| ("target", target.to_owned()))
                    .into_iter()
                    .chain([("kind", kind.name().to_owned())])
                    .collect(),
                value: Duration::from_nanos(unix_ns).as_secs_f64(),
            }
        }));
        gauges
    }

    /// When each stream last had a good answer; absent before the first.
    fn last_successes(&self) -> Vec<Gauge> {
        let wall = self.anchor.wall();
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let known = live.streams().iter().filter_map(|stream| {
            let at = wall.unix_ns(stream.totals().last_success()?);
            let labels = labels_of(stream.stream()).into_iter();
            Some(Gauge {
                metric: &catalog::LAST_SUCCESS,
                labels: labels
                    .map(|(name, value)| (name, value.into_owned()))
                    .collect(),
                value: Duration::from_nanos(at).as_secs_f64(),
            })
        });
        known.collect()
    }

    /// What each target's server says of itself.
    fn servers(&self) -> Vec<Gauge> {
        let now = self.anchor.now();
        let servers: Vec<Server> = {
            let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            let all = 0..self.slots.len();
            all.map(|index| Server::of(&live, index, now)).collect()
        };
        let named = self.slots.iter().zip(&self.max_ages).zip(servers);
        named
            .flat_map(|(((name, _), max_age), server)| server.gauges(name, (now, *max_age)))
            .collect()
    }
}

/// What all metrics of this run are of: the resource of its spans.
fn target_info(instance: &str) -> Gauge {
    let labels = [
        ("service_name", "tokencanary"),
        ("service_version", env!("CARGO_PKG_VERSION")),
        ("service_instance_id", instance),
    ];
    Gauge {
        metric: &catalog::TARGET_INFO,
        labels: labels.map(|(name, value)| (name, value.to_owned())).into(),
        value: 1.0,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "metrics are floats; no budget is near 2^53"
)]
fn count(value: u64) -> f64 {
    value as f64
}
