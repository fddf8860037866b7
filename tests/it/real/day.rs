//! A day of the canary in Prometheus: the whole pipeline runs 24 hours against the simulator in
//! virtual time, its page is rendered every minute, and the pages are written in time order
//! through the remote-write receiver, classic and native histograms side by side. Then Prometheus
//! itself evaluates the recording rules over that day, one after the other.
//!
//! What an in-memory pipe does not have is put in: receive stamps of a kernel, a certificate, the
//! state of a server with a metrics page; and odd responses, which the simulator does not give.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prost::Message;
use serde_json::Value;
use tokencanary::aggregate::Live;
use tokencanary::clock::TimeAnchor;
use tokencanary::config::{Arrivals, Config, WhenFull};
use tokencanary::export::catalog::{self, Metric};
use tokencanary::export::prometheus::message::{LabelPair, MetricFamily};
use tokencanary::export::prometheus::{Format, Gauge, View, labels_of, render};
use tokencanary::measurement::{ConnectionPolicy, Slo, SloLimit, SloMetric};
use tokencanary::simulator::{Fault, FaultKind, Profile, Simulator, SimulatorConfig};
use tokencanary::telemetry::SelfMetrics;

use super::remote_write::{Histogram, Sample, TimeSeries, write};
use crate::virtual_time::{at, before, config};

/// From one page to the next.
pub(super) const STEP: Duration = Duration::from_mins(1);
/// How much is simulated.
pub(super) const DAY: Duration = Duration::from_hours(24);
/// Pages that are written at once.
const AT_ONCE: usize = 30;
/// The probe whose last success is made to look old.
const FORGOTTEN: &str = "forgotten";

/// The pages of the day, as Prometheus would have scraped them, the first at `start`, seconds
/// since the epoch.
pub(super) fn pages(start: f64) -> Vec<Vec<u8>> {
    // A runtime of its own: its clock is paused, that of the caller meets real sockets.
    let day = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("no resource is used");
        runtime.block_on(Box::pin(simulated(start)))
    });
    day.join().expect("the day passes")
}

/// Four streams of one server: pooled connections, new ones, a slow one, a slow one more.
fn probes() -> Config {
    let mut config = config(Arrivals::Poisson { rate: 0.25 }, WhenFull::Refuse, 8);
    "pooled".clone_into(&mut config.probes[0].name);
    let limit = |at_most, objective| SloLimit {
        at_most,
        objective: Some(objective),
    };
    config.probes[0].slo = Slo::NONE
        .with_limit(SloMetric::Ttft, limit(Duration::from_millis(500), 0.95))
        .with_limit(SloMetric::Itl, limit(Duration::from_millis(50), 0.95))
        .with_success(0.99);
    let like = |name: &str, rate: f64| {
        let mut probe = config.probes[0].clone();
        name.clone_into(&mut probe.name);
        probe.phases[0].arrivals = Arrivals::Poisson { rate };
        probe
    };
    let (mut new, slow) = (like("new", 0.25), like(FORGOTTEN, 0.02));
    new.connection = ConnectionPolicy::New;
    config.probes.extend([new, slow]);
    config
}

/// What happens in the day: slower for an hour, errors, cut streams, and short freezes.
fn faults() -> Vec<Fault> {
    let hour = |hours: f64| {
        let time = Duration::from_secs_f64(hours * 3_600.0);
        at(u64::try_from(time.as_millis()).expect("a day"))
    };
    let fault = |kind, from: f64, lasts| Fault {
        kind,
        from: hour(from),
        lasts: Duration::from_secs(lasts),
    };
    vec![
        fault(FaultKind::SlowPrefill { factor: 1.5 }, 8.0, 3_600),
        fault(
            FaultKind::Status {
                code: 500,
                retry_after: None,
            },
            12.0,
            600,
        ),
        fault(FaultKind::Cut { after_chunks: 1 }, 14.0, 300),
        fault(FaultKind::Freeze, 16.0, 20),
        fault(FaultKind::Freeze, 23.9, 10),
    ]
}

async fn simulated(start: f64) -> Vec<Vec<u8>> {
    let anchor = TimeAnchor::start();
    let profile = Profile::demo();
    let simulator = Simulator::new(SimulatorConfig::new(profile), anchor).expect("no log file");
    for fault in faults() {
        simulator.inject(fault).expect("few faults");
    }
    let (app, engine) = before((&simulator, anchor), probes());
    let live = app.live();
    let own = SelfMetrics::new().expect("no names collide");
    let running = tokio::spawn(Box::pin(app.run(tokio::time::sleep(DAY))));
    let mut pages = Vec::new();
    for minute in 0..u32::try_from(DAY.as_secs() / STEP.as_secs()).expect("few") {
        tokio::time::sleep(STEP).await;
        count(&own);
        let now = start + (f64::from(minute) + 1.0) * STEP.as_secs_f64();
        pages.push(page(&live, &own, now));
    }
    running.await.expect("no panic").expect("no task dies");
    engine.abort();
    pages
}

/// What happens to our own counters in a minute.
fn count(own: &SelfMetrics) {
    let spans = own.export("otlp_traces");
    spans.accepted.inc_by(50);
    spans.sent.inc_by(49);
    spans.dropped.inc();
    spans.failed_try("timeout");
    own.scrapes("sim", "ok").inc_by(12);
}

fn page(live: &Mutex<Live>, own: &SelfMetrics, now: f64) -> Vec<u8> {
    let live = live.lock().unwrap_or_else(PoisonError::into_inner);
    let gauges = gauges(&live, now);
    let view = View {
        live: &live,
        gauges: &gauges,
        own: &own.gather(),
        started_unix_ns: 0,
    };
    render(Format::Protobuf, &view)
}

/// What the program reads from other places than its streams.
fn gauges(live: &Live, now: f64) -> Vec<Gauge> {
    let one = |metric: &'static Metric, target: bool, value: f64| Gauge {
        metric,
        labels: if target {
            vec![("target", "sim".to_owned())]
        } else {
            Vec::new()
        },
        value,
    };
    let mut gauges = vec![
        one(&catalog::SERVER_RUNNING, true, 3.0),
        one(&catalog::SERVER_WAITING, true, 1.0),
        one(&catalog::SERVER_KV_USAGE, true, 0.4),
        one(&catalog::SERVER_SAMPLE_AGE, true, 2.5),
        one(&catalog::IN_FLIGHT, true, 2.0),
        one(&catalog::IN_FLIGHT_LIMIT, true, 8.0),
        one(&catalog::BUDGET_REQUESTS_USED, false, 1_000.0),
        one(&catalog::BUDGET_REQUESTS_LIMIT, false, 50_000.0),
        one(&catalog::BUDGET_TOKENS_USED, false, 100_000.0),
        one(&catalog::BUDGET_TOKENS_LIMIT, false, 5_000_000.0),
    ];
    gauges.extend(context());
    gauges.extend(processes(now));
    for stream in live.streams() {
        let labels: Vec<_> = labels_of(stream.stream())
            .into_iter()
            .map(|(name, value)| (name, value.into_owned()))
            .collect();
        let forgotten = labels.contains(&("probe", FORGOTTEN.to_owned()));
        gauges.push(Gauge {
            metric: &catalog::DIAGNOSIS,
            labels: labels
                .iter()
                .cloned()
                .chain([("cause", "prefill_bound".to_owned())])
                .collect(),
            value: 2.0,
        });
        for (metric, value) in [
            (
                &catalog::LAST_SUCCESS,
                if forgotten { now - 7_200.0 } else { now - 1.0 },
            ),
            (&catalog::CERTIFICATE_EXPIRY, now + 60.0 * 86_400.0),
        ] {
            gauges.push(Gauge {
                metric,
                labels: labels.clone(),
                value,
            });
        }
    }
    gauges
}

/// What the kernel says of the processes of a server beside us.
fn processes(now: f64) -> impl Iterator<Item = Gauge> {
    let plain = [
        (&catalog::SERVER_PROCESS_CPU, 1.4 * now),
        (&catalog::SERVER_PROCESS_MEMORY, 12e9),
        (&catalog::SERVER_CPU_LIMIT, 2.0),
        (&catalog::SERVER_CPU_PERIODS, 10.0 * now),
        (&catalog::SERVER_CPU_THROTTLED_PERIODS, 0.8 * now),
        (&catalog::SERVER_GROUP_MEMORY, 11e9),
        (&catalog::SERVER_GROUP_MEMORY_LIMIT, 16e9),
        (&catalog::SERVER_OOM_KILLS, 0.0),
    ];
    let pressure = &catalog::SERVER_PRESSURE;
    let labelled = [
        (pressure, ("resource", "cpu"), 0.06 * now),
        (pressure, ("resource", "memory"), 0.0),
        (&catalog::NODE_OFF_NODE, ("of", "wanted"), 0.002),
        (&catalog::NODE_OFF_NODE, ("of", "task"), 0.04),
    ];
    let plain = plain.map(|(metric, value)| (metric, None, value));
    let labelled = labelled.map(|(metric, label, value)| (metric, Some(label), value));
    plain
        .into_iter()
        .chain(labelled)
        .map(|(metric, more, value)| Gauge {
            metric,
            labels: std::iter::once(("target", "sim"))
                .chain(more)
                .map(|(name, value)| (name, value.to_owned()))
                .collect(),
            value,
        })
}

/// What a server with a whole metrics page, its GPUs and our machine have, and a cause.
fn context() -> Vec<Gauge> {
    let of = |metric: &'static Metric, more: &[(&'static str, &str)], value| Gauge {
        metric,
        labels: std::iter::once(("target", "sim".to_owned()))
            .chain(
                more.iter()
                    .map(|(name, value)| (*name, (*value).to_owned())),
            )
            .collect(),
        value,
    };
    let counted = [("source", "energy_counter")];
    let mut gauges = vec![
        of(&catalog::SERVER_SWAPPED, &[], 0.0),
        of(&catalog::SERVER_KV_USAGE_MAX, &[], 0.5),
        of(&catalog::SERVER_PREEMPTIONS, &[], 2.0),
        of(&catalog::SERVER_PREFIX_HIT, &[], 0.3),
        of(&catalog::SERVER_OUTSIDE, &[], 0.004),
        of(&catalog::SERVER_OUTSIDE_ERROR, &[], 0.001),
        of(&catalog::MARK_TIME, &[("kind", "version")], 1.79e9),
        of(
            &catalog::TARGET_STATE,
            &[("endpoint", "http://sim"), ("state", "serving")],
            1.0,
        ),
        of(&catalog::SERVER_SUSPECT, &[("mark", "frozen_gauges")], 0.0),
        of(&catalog::SERVER_TOKENS, &[("type", "input")], 900.0),
        of(&catalog::SERVER_TOKENS, &[("type", "output")], 400.0),
        of(&catalog::GPU_IMBALANCE, &[("of", "utilization")], 0.1),
        of(&catalog::GPU_ENERGY_PER_TOKEN, &counted, 2.25),
        of(&catalog::GPU_ENERGY_PER_REQUEST, &counted, 450.0),
    ];
    let latencies = [
        ("ttft", 0.1),
        ("queue", 0.01),
        ("prefill", 0.08),
        ("itl", 0.01),
        ("tpot", 0.01),
    ];
    for (kind, value) in latencies {
        gauges.push(of(&catalog::SERVER_LATENCY, &[("of", kind)], value));
    }
    for gpu in ["0", "1"] {
        for (metric, value) in [
            (&catalog::HW_GPU_UTILIZATION, 0.7),
            (&catalog::HW_GPU_MEMORY_USAGE, 70e9),
            (&catalog::HW_GPU_MEMORY_LIMIT, 80e9),
            (&catalog::GPU_SM_CLOCK, 1.98e9),
            (&catalog::GPU_THROTTLED, 0.0),
            (&catalog::GPU_POWER, 450.0),
            (&catalog::GPU_XID, 0.0),
            (&catalog::GPU_TENSOR_ACTIVE, 0.2),
            (&catalog::GPU_DRAM_ACTIVE, 0.6),
        ] {
            gauges.push(of(metric, &[("gpu", gpu), ("hw_id", "GPU-0")], value));
        }
    }
    let pressure = [("of", "host"), ("resource", "cpu"), ("waiting", "some")];
    gauges.push(Gauge {
        metric: &catalog::HOST_PRESSURE,
        labels: pressure
            .map(|(name, value)| (name, value.to_owned()))
            .into(),
        value: 12.0,
    });
    gauges
}

/// Series being put together, by their labels.
#[derive(Default)]
struct Batch(BTreeMap<Vec<(String, String)>, TimeSeries>);

impl Batch {
    /// The series called `name` with `labels` and, maybe, one more.
    fn series(
        &mut self,
        name: &str,
        labels: &[LabelPair],
        more: Option<(&str, String)>,
    ) -> &mut TimeSeries {
        let own = labels
            .iter()
            .map(|label| (label.name.clone(), label.value.clone()));
        let mut all: Vec<(String, String)> = own.collect();
        all.extend(more.map(|(name, value)| (name.to_owned(), value)));
        all.extend([
            ("__name__".to_owned(), name.to_owned()),
            ("job".to_owned(), "tokencanary".to_owned()),
            ("instance".to_owned(), "canary:9464".to_owned()),
        ]);
        all.sort();
        self.0.entry(all).or_insert_with_key(|labels| TimeSeries {
            labels: labels
                .iter()
                .map(|(name, value)| LabelPair {
                    name: name.clone(),
                    value: value.clone(),
                })
                .collect(),
            ..TimeSeries::default()
        })
    }

    fn number(
        &mut self,
        name: &str,
        (labels, more): (&[LabelPair], Option<(&str, String)>),
        sample: Sample,
    ) {
        self.series(name, labels, more).samples.push(sample);
    }

    #[expect(clippy::cast_precision_loss, reason = "a day has few requests")]
    fn add(&mut self, family: &MetricFamily, timestamp: i64) {
        let name = &family.name;
        for metric in &family.metric {
            let labels = &metric.label;
            let at = |value: f64| Sample { value, timestamp };
            let counter = metric.counter.as_ref().map(|counter| counter.value);
            let gauge = metric.gauge.as_ref().map(|gauge| gauge.value);
            if let Some(value) = counter.or(gauge) {
                self.number(name, (labels, None), at(value));
            }
            let Some(histogram) = &metric.histogram else {
                continue;
            };
            let native = Histogram::of(histogram, timestamp);
            self.series(name, labels, None).histograms.push(native);
            let all = histogram.sample_count as f64;
            self.number(&format!("{name}_count"), (labels, None), at(all));
            self.number(
                &format!("{name}_sum"),
                (labels, None),
                at(histogram.sample_sum),
            );
            let bounds = histogram.bucket.iter();
            let buckets = bounds
                .map(|bucket| {
                    (
                        bucket.upper_bound.to_string(),
                        bucket.cumulative_count as f64,
                    )
                })
                .filter(|(bound, _)| bound != "inf")
                .chain([("+Inf".to_owned(), all)]);
            for (bound, below) in buckets {
                let bucket = format!("{name}_bucket");
                self.number(&bucket, (labels, Some(("le", bound))), at(below));
            }
        }
    }
}

/// Families of a page, with one that an in-memory pipe cannot have.
fn families(page: &[u8]) -> Vec<MetricFamily> {
    let mut rest = page;
    let mut families = Vec::new();
    while !rest.is_empty() {
        let family = MetricFamily::decode_length_delimited(&mut rest).expect("we made it");
        if family.name == catalog::SCHEDULE_LAG.prometheus {
            let mut stands_in = family.clone();
            catalog::READ_LAG.prometheus.clone_into(&mut stands_in.name);
            families.push(stands_in);
        }
        if family.name == catalog::REQUESTS.prometheus {
            for (metric, label) in [
                (&catalog::RESPONSES_NOTED, ("note", "compressed")),
                (&catalog::KNOWN_ANSWERS, ("result", "right")),
            ] {
                families.push(standing_for(metric, label, family.clone()));
            }
        }
        families.push(family);
    }
    families
}

/// Requests as responses that had a note each, or as questions that were answered.
fn standing_for(
    metric: &Metric,
    (name, value): (&str, &str),
    mut family: MetricFamily,
) -> MetricFamily {
    metric.prometheus.clone_into(&mut family.name);
    for metric in &mut family.metric {
        metric.label.push(LabelPair {
            name: name.to_owned(),
            value: value.to_owned(),
        });
    }
    family
}

/// Writes `pages`, the first of which is as of `start`, to the Prometheus at `url`. Returns how
/// many samples that were.
pub(super) async fn write_pages(url: &str, start: i64, pages: &[Vec<u8>]) -> usize {
    let step = i64::try_from(STEP.as_millis()).expect("short");
    let mut timestamp = start;
    let mut written = 0;
    for some in pages.chunks(AT_ONCE) {
        let mut batch = Batch::default();
        for page in some {
            for family in families(page) {
                batch.add(&family, timestamp);
            }
            timestamp += step;
        }
        let series: Vec<TimeSeries> = batch.0.into_values().collect();
        written += series
            .iter()
            .map(|one| one.samples.len() + one.histograms.len())
            .sum::<usize>();
        write(url, series).await;
    }
    written
}

/// The samples of a range query, as series called `name`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "milliseconds of this century"
)]
pub(super) fn recorded(name: &str, matrix: &[Value]) -> Vec<TimeSeries> {
    let series = matrix.iter().map(|result| {
        let labels = result["metric"].as_object().expect("labels");
        let mut labels: BTreeMap<String, String> = labels
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        labels.insert("__name__".to_owned(), name.to_owned());
        let values = result["values"].as_array().expect("numbers");
        let samples = values.iter().map(|pair| Sample {
            timestamp: (pair[0].as_f64().expect("a time") * 1_000.0) as i64,
            value: pair[1]
                .as_str()
                .and_then(|text| text.parse().ok())
                .expect("a number"),
        });
        TimeSeries {
            labels: labels
                .into_iter()
                .map(|(name, value)| LabelPair { name, value })
                .collect(),
            samples: samples.collect(),
            histograms: Vec::new(),
        }
    });
    series.collect()
}
