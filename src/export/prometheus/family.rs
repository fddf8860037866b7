//! The content of a page, before it has a format: families of series, borrowed from the live
//! state.
//!
//! All writers walk this, so they cannot show different things. Families come in the order
//! of the catalog, then our own registry's.

use std::borrow::Cow;

use prometheus::proto;

use super::View;
use crate::aggregate::slo::SUCCESS;
use crate::aggregate::{Convention, Distribution, Live, Measure, StreamLive, classic_bounds};
use crate::export::catalog::{self, Kind, Metric};
use crate::export::genai::{operation, provider};
use crate::measurement::{Outcome, RefusedReason, Stream};

/// A label.
pub(in crate::export) type Label<'a> = (Cow<'a, str>, Cow<'a, str>);

/// All series of one metric.
pub(in crate::export) struct Family<'a> {
    pub(in crate::export) name: Cow<'a, str>,
    pub(in crate::export) help: Cow<'a, str>,
    pub(in crate::export) kind: Kind,
    /// When its counters were at 0, nanoseconds since the Unix epoch; absent for gauges, and where
    /// nobody knows.
    pub(in crate::export) created_unix_ns: Option<u64>,
    /// Classic bounds of all its series, +Inf not among them.
    pub(in crate::export) bounds: Vec<f64>,
    pub(in crate::export) series: Vec<Series<'a>>,
}

impl Family<'_> {
    /// Whether it says what all the others are of.
    pub(super) fn is_target_info(&self) -> bool {
        self.name == catalog::TARGET_INFO.prometheus
    }

    /// The name of the family in `OpenMetrics`: a counter's is that of its sample without
    /// `_total`.
    pub(super) fn base(&self) -> &str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(&self.name),
            Kind::Gauge | Kind::Histogram(_) => &self.name,
        }
    }

    /// The unit that its name ends in.
    pub(super) fn unit(&self) -> Option<&'static str> {
        let (_, last) = self.base().rsplit_once('_')?;
        ["seconds", "bytes", "ratio"]
            .into_iter()
            .find(|unit| *unit == last)
    }
}

/// One series: the labels of its stream, its own, and its value.
pub(in crate::export) struct Series<'a> {
    /// Which of the page's label sets comes before `labels`.
    pub(in crate::export) stream: Option<usize>,
    pub(in crate::export) labels: Vec<Label<'a>>,
    pub(in crate::export) value: Value<'a>,
}

/// The value of one series.
pub(in crate::export) enum Value<'a> {
    Count(u64),
    Number(f64),
    Distribution(Distribution<'a>),
}

/// The labels of each stream, in the order of streams.
pub(in crate::export) fn stream_labels(live: &Live) -> Vec<Vec<Label<'_>>> {
    let of_one = |one| {
        let labels = labels_of(StreamLive::stream(one)).into_iter();
        let named = labels.map(|(name, value)| -> Label<'_> { (Cow::Borrowed(name), value) });
        named.collect()
    };
    live.exported().0.iter().map(of_one).collect()
}

/// The labels of `stream`, in the order of the catalog; those without a value are left out.
#[must_use]
pub fn labels_of(stream: &Stream) -> Vec<(&'static str, Cow<'_, str>)> {
    catalog::STREAM_LABELS
        .into_iter()
        .zip([
            Cow::Owned(stream.target.to_string()),
            Cow::Owned(stream.endpoint.to_string()),
            Cow::Owned(stream.probe.to_string()),
            Cow::Owned(stream.model().to_owned()),
            Cow::Borrowed(stream.api.name()),
            Cow::Borrowed(stream.cache.name()),
            Cow::Borrowed(stream.connection.name()),
        ])
        .filter(|(_, value): &(&str, Cow<'_, str>)| !value.is_empty())
        .collect()
}

/// Hands the families of `view` to `take`, one at a time. A family without series is left out.
pub(in crate::export) fn for_each<'a>(view: &View<'a>, mut take: impl FnMut(&Family<'a>)) {
    for metric in catalog::ALL {
        let family = Family {
            name: metric.prometheus.into(),
            help: metric.help.into(),
            kind: metric.kind,
            created_unix_ns: created(view, metric.kind).filter(|_| is_ours(metric)),
            bounds: bounds(view.live, metric),
            series: live_series(view.live, metric)
                .into_iter()
                .chain(gauge_series(view, metric))
                .collect(),
        };
        if !family.series.is_empty() {
            take(&family);
        }
    }
    for own in view.own {
        let Some(mut family) = own_family(own) else {
            continue;
        };
        // What the process used before this run began is among its own.
        if !family.name.starts_with("process_") {
            family.created_unix_ns = created(view, family.kind);
        }
        take(&family);
    }
}

/// Whether its counters were at 0 when this run began: those of a machine began with it.
fn is_ours(metric: &Metric) -> bool {
    let of_machine = ["tokencanary.host.", "tokencanary.cgroup."];
    !of_machine
        .iter()
        .any(|begin| metric.name.starts_with(begin))
}

/// When the counters of a family of `kind` were at 0.
fn created(view: &View<'_>, kind: Kind) -> Option<u64> {
    (kind != Kind::Gauge).then_some(view.started_unix_ns)
}

/// The measure that `metric` shows, if it is a distribution.
fn measure_of(metric: &Metric) -> Option<Measure> {
    Measure::ALL
        .into_iter()
        .find(|measure| catalog::of(*measure) == metric)
}

fn bounds(live: &Live, metric: &Metric) -> Vec<f64> {
    match (metric.kind, measure_of(metric)) {
        (Kind::Histogram(range), Some(measure)) => {
            classic_bounds(range, live.bounds().at(measure)).collect()
        }
        (Kind::Histogram(range), None) => range.bounds().collect(),
        _ => Vec::new(),
    }
}

/// The series of `metric` that come from the live state.
fn live_series<'a>(live: &'a Live, metric: &Metric) -> Vec<Series<'a>> {
    let (streams, left_out) = live.exported();
    let of_program = |value| {
        vec![Series {
            stream: None,
            labels: Vec::new(),
            value,
        }]
    };
    if metric == &catalog::STRAYS {
        return of_program(Value::Count(live.strays()));
    }
    if metric == &catalog::STREAMS_LEFT_OUT {
        return of_program(Value::Count(left_out as u64));
    }
    let measure = measure_of(metric);
    let mut series = Vec::new();
    if metric.name.starts_with(CONVENTIONS) {
        for (position, stream) in streams.iter().enumerate() {
            convention_series(stream, metric, &mut |labels, value| {
                series.push(Series {
                    stream: Some(position),
                    labels,
                    value,
                });
            });
        }
        return series;
    }
    for (position, stream) in streams.iter().enumerate() {
        let mut push = |labels: Vec<Label<'a>>, value| {
            series.push(Series {
                stream: Some(position),
                labels,
                value,
            });
        };
        match measure {
            Some(measure) => {
                let shown = stream.totals().distribution(measure);
                // Absent is absent: without the kernel's stamps nobody knows this lag.
                if measure == Measure::ReadLag && shown.count() == 0 {
                    continue;
                }
                push(Vec::new(), Value::Distribution(shown));
            }
            None if metric == &catalog::CERTIFICATE_EXPIRY => {
                if let Some(expiry) = stream.totals().wire().certificate_expiry() {
                    push(Vec::new(), Value::Number(seconds(expiry)));
                }
            }
            None if metric == &catalog::SLO_OBJECTIVE || metric == &catalog::SLO_LIMIT => {
                slo_gauges(stream, metric, &mut push);
            }
            None => counters(stream, metric, &mut |labels, count| {
                push(labels, Value::Count(count));
            }),
        }
    }
    series
}

/// Names of the `GenAI` conventions begin so.
const CONVENTIONS: &str = "gen_ai.";

/// Hands what `metric` of the conventions shows of `stream` to `push`. A failure that has not
/// happened has no series.
fn convention_series<'a>(
    stream: &'a StreamLive,
    metric: &Metric,
    push: &mut dyn FnMut(Vec<Label<'a>>, Value<'a>),
) {
    let (api, totals) = (stream.stream().api, stream.totals());
    let labels = |more: Option<(&'static str, &'static str)>| -> Vec<Label<'a>> {
        [
            ("gen_ai_operation_name", operation(api)),
            ("gen_ai_provider_name", provider(api)),
        ]
        .into_iter()
        .chain(more)
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
    };
    let convention = Convention::ALL
        .into_iter()
        .find(|convention| catalog::of_convention(*convention) == metric);
    if let Some(convention) = convention {
        for (error, histogram) in totals.conventions().histograms(convention) {
            let error = error.map(|outcome| ("error_type", outcome.name()));
            push(
                labels(error),
                Value::Distribution(Distribution::plain(histogram)),
            );
        }
        return;
    }
    let used = totals.conventions();
    let count = [
        (&catalog::GENAI_USAGE_INPUT, totals.input_tokens()),
        (&catalog::GENAI_USAGE_OUTPUT, totals.output_tokens()),
        (&catalog::GENAI_USAGE_CACHED, used.cached()),
        (&catalog::GENAI_USAGE_REASONING, used.reasoning()),
    ]
    .into_iter()
    .find(|(of, _)| *of == metric);
    if let Some((_, count)) = count {
        // A server does not say which part of its count is text.
        let modality = ("gen_ai_token_modality", "unknown");
        push(labels(Some(modality)), Value::Count(count));
    }
}

/// Hands what `stream` is held to to `push`.
fn slo_gauges<'a>(
    stream: &'a StreamLive,
    metric: &Metric,
    push: &mut dyn FnMut(Vec<Label<'a>>, Value<'a>),
) {
    let slo = stream.totals().slo().slo();
    let is_limit = metric == &catalog::SLO_LIMIT;
    let limits = slo.limits().filter_map(|(of, limit)| {
        let value = if is_limit {
            Some(limit.at_most.as_secs_f64())
        } else {
            limit.objective
        };
        Some((of.name(), value?))
    });
    let success = slo.success().filter(|_| !is_limit);
    for (name, value) in limits.chain(success.map(|share| (SUCCESS, share))) {
        push(vec![("slo".into(), name.into())], Value::Number(value));
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact until long after any certificate has expired"
)]
const fn seconds(unix: i64) -> f64 {
    unix as f64
}

fn by_outcome<'a>(outcome: Outcome, status: Option<u16>) -> Vec<Label<'a>> {
    let status = status.map(|code| ("http_response_status_code".into(), code.to_string().into()));
    std::iter::once(("outcome".into(), outcome.name().into()))
        .chain(status)
        .collect()
}

/// Hands the counters that `metric` shows of `stream` to `push`.
fn counters<'a>(
    stream: &'a StreamLive,
    metric: &Metric,
    push: &mut dyn FnMut(Vec<Label<'a>>, u64),
) {
    let totals = stream.totals();
    let one = |name: &'static str, value: &'static str| vec![(name.into(), value.into())];
    if metric == &catalog::ARRIVALS {
        push(Vec::new(), totals.arrivals());
    } else if metric == &catalog::ARRIVALS_REFUSED {
        for reason in RefusedReason::ALL {
            push(one("reason", reason.name()), totals.refused(reason));
        }
    } else if metric == &catalog::REQUESTS {
        for (outcome, status, count) in totals.requests() {
            push(by_outcome(outcome, status), count);
        }
    } else if metric == &catalog::REQUESTS_LAGGED {
        push(Vec::new(), totals.lagged());
    } else if metric == &catalog::REQUESTS_EXCUSED {
        for (result, count) in ["ok", "failed"].into_iter().zip(totals.excused()) {
            push(one("result", result), count);
        }
    } else if metric == &catalog::CONNECTIONS_REPLACED {
        push(Vec::new(), totals.replaced());
    } else if metric == &catalog::STATUSES_DROPPED {
        push(Vec::new(), totals.statuses_dropped());
    } else if metric == &catalog::CHUNKS {
        push(one("kind", "exact"), totals.wire().exact());
        push(one("kind", "merged"), totals.wire().merged());
    } else if metric == &catalog::STAMPS {
        for (clock, count) in totals.wire().clocks() {
            push(one("clock", clock.name()), count);
        }
    } else if metric == &catalog::RESPONSES_NOTED {
        for (note, count) in totals.wire().notes() {
            push(one("note", note.name()), count);
        }
    } else if metric == &catalog::OUTPUT_LENGTH {
        let (requested, delivered) = totals.wire().output();
        push(one("of", "requested"), requested);
        push(one("of", "delivered"), delivered);
    } else if metric == &catalog::KNOWN_ANSWERS && stream.rules().knows_answers {
        for (result, count) in totals.answers().results() {
            push(one("result", result.name()), count);
        }
    } else if metric == &catalog::SLO_GOOD {
        for (name, count) in totals.slo().good() {
            push(one("slo", name), count);
        }
    } else if metric == &catalog::SLO_EVENTS {
        for (name, _) in totals.slo().good() {
            push(one("slo", name), totals.slo().events());
        }
    } else if metric == &catalog::STALLS {
        push(Vec::new(), totals.stalls());
    } else if metric == &catalog::TOKENS {
        push(one("type", "input"), totals.input_tokens());
        push(one("type", "output"), totals.output_tokens());
    } else if metric == &catalog::WINDOWS_INCOMPLETE || metric == &catalog::WINDOWS_LATE {
        for windows in stream.windows() {
            let label = format!("{}s", windows.span().as_secs());
            let count = if metric == &catalog::WINDOWS_LATE {
                windows.late()
            } else {
                windows.incomplete()
            };
            push(vec![("window".into(), label.into())], count);
        }
    } else if metric == &catalog::VALUES_REFUSED {
        push(Vec::new(), totals.values_refused());
    } else if metric == &catalog::VALUES_CLAMPED {
        push(one("end", "low"), totals.values_underflown());
        push(one("end", "high"), totals.values_overflown());
    }
}

fn gauge_series<'a>(
    view: &View<'a>,
    metric: &'static Metric,
) -> impl Iterator<Item = Series<'a>> + use<'a> {
    view.gauges
        .iter()
        .filter(move |gauge| gauge.metric == metric)
        .map(|gauge| Series {
            stream: None,
            labels: gauge
                .labels
                .iter()
                .map(|(name, value)| (Cow::Borrowed(*name), Cow::Borrowed(value.as_str())))
                .collect(),
            value: Value::Number(gauge.value),
        })
}

/// A family of our own registry, which holds counters and gauges only.
fn own_family(family: &proto::MetricFamily) -> Option<Family<'_>> {
    let kind = match family.get_field_type() {
        proto::MetricType::COUNTER => Kind::Counter,
        proto::MetricType::GAUGE => Kind::Gauge,
        _ => return None,
    };
    let series = family.get_metric().iter().map(|metric| Series {
        stream: None,
        labels: metric
            .get_label()
            .iter()
            .map(|label| (label.name().into(), label.value().into()))
            .collect(),
        value: Value::Number(match kind {
            Kind::Counter => metric.get_counter().get_value(),
            _ => metric.get_gauge().get_value(),
        }),
    });
    Some(Family {
        name: family.name().into(),
        help: family.help().into(),
        kind,
        created_unix_ns: None,
        bounds: Vec::new(),
        series: series.collect(),
    })
}
