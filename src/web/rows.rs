//! The API's answers: the live state as JSON.
//!
//! Names end in their unit. A quantile with too few values is null, with its `n` beside it;
//! nothing unknown is ever zero. A request is the same object as a line of `requests.jsonl`.
//! All numbers are read from `aggregate`, none is made here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::server::ServerRow;
use super::surface::RunInfo;
use crate::aggregate::summary::WireSummary;
use crate::aggregate::{
    Address, Drawn, EnergyUse, Histogram, Live, Measure, Quantile, SPANS, Standing, StreamLive,
    StreamRules, Totals, Window,
};
use crate::clock::{MonoTime, WallAnchor};
use crate::export::catalog;
use crate::export::prometheus::Gauge;
use crate::export::record::{RecordOptions, to_json_line};
use crate::measurement::{GpuAt, Observed, Outcome, RefusedReason, Sample, StateAt, TargetState};

/// The span that the page calls the last minute.
const RECENT: Duration = SPANS[1];
/// The span over which an error budget is looked at: that of the alert on a fast burn.
const HOUR: Duration = Duration::from_hours(1);

/// What is known of ourselves beside the live state.
pub(super) struct OwnState<'a> {
    pub(super) info: &'a RunInfo,
    pub(super) ready: bool,
    pub(super) gauges: &'a [Gauge],
}

/// `/api/v1/status`.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    version: &'static str,
    command: &'static str,
    seed: u64,
    started_unix_ms: u64,
    uptime_s: f64,
    ready: bool,
    targets: Vec<Target>,
    counts: Counts,
}

#[derive(Debug, Serialize)]
struct Target {
    name: Box<str>,
    endpoint: Box<str>,
    model: Option<Box<str>>,
    /// How each of its addresses stands.
    states: Vec<StateRow>,
    /// Our own requests in flight, where the dispatcher says so.
    in_flight: Option<f64>,
    server: Option<StateAt>,
    /// What else it says of itself.
    said: ServerRow,
    /// All its GPUs together, and each; where they are read.
    gpu: Option<Gpus>,
}

#[derive(Debug, Serialize)]
struct StateRow {
    endpoint: Box<str>,
    /// Null before the first request has ended.
    state: Option<TargetState>,
    /// For how long it has been so.
    for_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Gpus {
    #[serde(flatten)]
    all: GpuAt,
    /// What a token and a request cost, over the last minute; null where it is not known.
    energy: Option<Energy>,
    each: Vec<GpuRow>,
}

/// Of all GPUs of a target and all its requests.
#[derive(Debug, Serialize)]
struct Energy {
    source: &'static str,
    /// The span that readings allow.
    span_s: f64,
    power_w: f64,
    per_output_token_j: Option<f64>,
    per_request_j: Option<f64>,
}

impl Energy {
    fn of(used: &EnergyUse) -> Self {
        let Drawn {
            watts,
            source,
            from,
            until,
            ..
        } = used.drawn;
        Self {
            source: source.name(),
            span_s: until.since(from).as_secs_f64(),
            power_w: watts,
            per_output_token_j: used.per_output_token_j,
            per_request_j: used.per_request_j,
        }
    }
}

#[derive(Debug, Serialize)]
struct GpuRow {
    gpu: Box<str>,
    model: Box<str>,
    /// What is known of it, by name; units as in `docs/gpus.md`.
    fields: BTreeMap<&'static str, f64>,
}

/// Records over all streams since the start.
#[derive(Debug, Serialize)]
struct Counts {
    requests: u64,
    ok: u64,
    failed: u64,
    refused: u64,
    cancelled: u64,
    lagged: u64,
}

impl Status {
    pub(super) fn of(live: &Live, own: &OwnState<'_>, now: MonoTime) -> Self {
        let info = own.info;
        Self {
            version: info.version,
            command: info.command,
            seed: info.seed,
            started_unix_ms: info.started_unix_ns / 1_000_000,
            uptime_s: now.since(MonoTime::ZERO).as_secs_f64(),
            ready: own.ready,
            targets: targets(live, own.gauges, now),
            counts: Counts::of(live),
        }
    }
}

/// Every target once, in the order of targets. One without a stream has no row.
fn targets(live: &Live, gauges: &[Gauge], now: MonoTime) -> Vec<Target> {
    let states = live.samples().enumerate();
    states
        .filter_map(|(index, sample)| {
            let mut streams = live.streams().iter().map(StreamLive::stream);
            let stream = streams.find(|stream| stream.target_index == index)?;
            Some(Target {
                name: stream.target.clone(),
                endpoint: stream.endpoint.clone(),
                model: stream.model.get().cloned(),
                states: standing(live, index, now),
                in_flight: in_flight(gauges, &stream.target),
                server: state(sample, now),
                said: ServerRow::of(live, index, now),
                gpu: gpus(live, index, now),
            })
        })
        .collect()
}

fn standing(live: &Live, target_index: usize, now: MonoTime) -> Vec<StateRow> {
    let addresses = live.addresses().iter();
    let of_target = addresses.filter(|address| address.target_index == target_index);
    let row = |address: &Address| StateRow {
        endpoint: address.endpoint.clone(),
        state: address.state.map(|(state, _)| state),
        for_s: address.state.map(|(_, at)| now.since(at).as_secs_f64()),
    };
    of_target.map(row).collect()
}

fn in_flight(gauges: &[Gauge], target: &str) -> Option<f64> {
    let of_target = |gauge: &&Gauge| {
        gauge.metric.name == catalog::IN_FLIGHT.name
            && gauge
                .labels
                .iter()
                .any(|(name, value)| *name == "target" && value == target)
    };
    Some(gauges.iter().find(of_target)?.value)
}

fn state(sample: Option<&Sample>, now: MonoTime) -> Option<StateAt> {
    let sample = sample?;
    Some(StateAt::new(sample.at, &sample.state, now))
}

fn gpus(live: &Live, target_index: usize, now: MonoTime) -> Option<Gpus> {
    let history = live.gpus().get(target_index)?.as_ref()?;
    let newest = history.newest()?;
    let used = live.energy(target_index, (now.minus(RECENT), now));
    let each = newest.gpus.iter().map(|gpu| GpuRow {
        gpu: gpu.name.clone(),
        model: gpu.model.clone(),
        fields: gpu
            .fields
            .known()
            .map(|(field, value)| (field.name(), value))
            .collect(),
    });
    Some(Gpus {
        all: GpuAt::new(newest.at, &newest.state(), now),
        energy: used.as_ref().map(Energy::of),
        each: each.collect(),
    })
}

impl Counts {
    fn of(live: &Live) -> Self {
        let sum = |count: fn(&Totals) -> u64| {
            live.streams()
                .iter()
                .map(|stream| count(stream.totals()))
                .sum()
        };
        Self {
            requests: sum(Totals::arrivals),
            ok: sum(|totals| totals.by_outcome(Outcome::Ok)),
            failed: sum(|totals| totals.failures() - totals.refused(RefusedReason::InFlight)),
            refused: sum(|totals| totals.by_outcome(Outcome::Refused)),
            cancelled: sum(|totals| totals.by_outcome(Outcome::Cancelled)),
            lagged: sum(Totals::lagged),
        }
    }
}

/// `/api/v1/streams`.
#[derive(Debug, Serialize)]
pub(super) struct Streams {
    streams: Vec<StreamRow>,
}

#[derive(Debug, Serialize)]
struct StreamRow {
    target: Box<str>,
    endpoint: Box<str>,
    probe: Box<str>,
    model: Option<Box<str>>,
    api: &'static str,
    cache: &'static str,
    connection: &'static str,
    length: &'static str,
    closed_loop: bool,
    last_minute: Part,
    since_start: Part,
    /// What is wanted of its requests, and how it stands; empty if nothing is.
    slo: Vec<Wanted>,
    /// How well its bytes could be timed, and what was odd about them, since the start.
    wire: WireSummary,
    server: Option<StateAt>,
}

/// One objective of one stream.
#[derive(Debug, Serialize)]
struct Wanted {
    slo: &'static str,
    limit_ms: Option<f64>,
    /// Share of requests that is to be good.
    objective: Option<f64>,
    last_hour: Held,
    since_start: Held,
}

/// How it was held in one span of time.
#[derive(Debug, Serialize)]
struct Held {
    good: u64,
    /// Requests that count for or against the server.
    requests: u64,
    good_share: Option<f64>,
    burn_rate: Option<f64>,
}

/// One span of time of one stream.
#[derive(Debug, Serialize)]
struct Part {
    /// All records.
    requests: u64,
    /// Records that count against the server.
    errors: u64,
    /// Those as a share of the records that count for or against it.
    error_share: Option<f64>,
    ttft: Quantiles,
    itl: Quantiles,
}

#[derive(Debug, Serialize)]
struct Quantiles {
    n: u64,
    p50_ms: Option<Millis>,
    p95_ms: Option<Millis>,
}

/// A quantile of seconds, shown as milliseconds.
#[derive(Debug, Clone, Copy)]
struct Millis(Quantile);

impl Serialize for Millis {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Quantile::Value(seconds) => serializer.serialize_f64(seconds * 1e3),
            Quantile::Never => Quantile::Never.serialize(serializer),
        }
    }
}

impl Streams {
    pub(super) fn of(live: &Live, now: MonoTime) -> Self {
        let row = |stream| StreamRow::of(live, stream, now);
        Self {
            streams: live.streams().iter().map(row).collect(),
        }
    }
}

impl StreamRow {
    fn of(live: &Live, live_stream: &StreamLive, now: MonoTime) -> Self {
        let stream = live_stream.stream();
        let sample = live.samples().nth(stream.target_index).flatten();
        Self {
            target: stream.target.clone(),
            endpoint: stream.endpoint.clone(),
            probe: stream.probe.clone(),
            model: stream.model.get().cloned(),
            api: stream.api.name(),
            cache: stream.cache.name(),
            connection: stream.connection.name(),
            length: stream.length.name(),
            closed_loop: stream.closed_loop,
            last_minute: Part::of_window(&live_stream.recent(RECENT)),
            since_start: Part::of_totals(live_stream.totals()),
            slo: Wanted::all(live_stream),
            wire: WireSummary::of(live_stream.totals().wire()),
            server: state(sample, now),
        }
    }
}

impl Wanted {
    fn all(live_stream: &StreamLive) -> Vec<Self> {
        let recent = live_stream.recent_slo(HOUR);
        let since_start = live_stream.totals().slo();
        let both = recent.standings().zip(since_start.standings());
        both.map(|(recent, since_start)| Self {
            slo: recent.name,
            limit_ms: recent.limit.map(|limit| limit.as_secs_f64() * 1e3),
            objective: recent.objective,
            last_hour: Held::of(&recent),
            since_start: Held::of(&since_start),
        })
        .collect()
    }
}

impl Held {
    fn of(standing: &Standing) -> Self {
        Self {
            good: standing.good,
            requests: standing.events,
            good_share: standing.share(),
            burn_rate: standing.burn_rate(),
        }
    }
}

impl Part {
    fn of_window(window: &Window) -> Self {
        Self {
            requests: window.records(),
            errors: window.failures(),
            error_share: window.failure_share(),
            ttft: Quantiles::of(window.ttft()),
            itl: Quantiles::of(window.itl()),
        }
    }

    fn of_totals(totals: &Totals) -> Self {
        Self {
            requests: totals.arrivals(),
            errors: totals.failures(),
            error_share: totals.failure_share(),
            ttft: Quantiles::of(totals.histogram(Measure::Ttft)),
            itl: Quantiles::of(totals.histogram(Measure::Itl)),
        }
    }
}

impl Quantiles {
    fn of(histogram: &Histogram) -> Self {
        Self {
            n: histogram.count(),
            p50_ms: histogram.stated(0.5).map(Millis),
            p95_ms: histogram.stated(0.95).map(Millis),
        }
    }
}

/// `/api/v1/requests`: the last ones, newest first.
#[derive(Debug, Serialize)]
pub(super) struct Requests {
    requests: Vec<Box<RawValue>>,
}

impl Requests {
    /// Each request with the rules of its stream.
    pub(super) fn of(last: &[(Arc<Observed>, StreamRules)], wall: &WallAnchor) -> Self {
        let row = |(observed, rules): &(Arc<Observed>, StreamRules)| {
            let options = RecordOptions {
                stall: rules.stall,
                gaps: false,
            };
            RawValue::from_string(to_json_line(observed, wall, options))
                .expect("a line of a record is one JSON object")
        };
        Self {
            requests: last.iter().map(row).collect(),
        }
    }

    /// The handles of the last `limit` requests, for [`Self::of`].
    pub(super) fn last(live: &Live, limit: usize) -> Vec<(Arc<Observed>, StreamRules)> {
        live.last_requests()
            .take(limit)
            .filter_map(|observed| {
                let id = usize::from(observed.record.stream.id.0);
                let rules = live.streams().get(id)?.rules();
                Some((Arc::clone(observed), rules))
            })
            .collect()
    }
}
