//! The live state as OTLP metrics: all that a page of Prometheus shows, under the names, units and
//! attributes of OpenTelemetry.
//!
//! Cumulative values are those of the state. A delta is the difference from what was last taken by
//! the receiver, so that a message that was lost costs resolution and no counts. Nothing is sent
//! here.

use std::collections::HashMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogram, Gauge, Histogram as ExplicitHistogram, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use prost::Message;

use super::attributes::{PageLabels, resource, scope};
use super::points::{self, Place};
use crate::aggregate::grid::ClassicRange;
use crate::aggregate::{Distribution, Histogram};
use crate::config::{Conventions, HistogramForm, OtlpConfig, Temporality};
use crate::export::catalog::{self, Kind, Scope};
use crate::export::prometheus::View;
use crate::export::prometheus::family::{self, Family, Value};

/// A message is closed when it is this long: receivers of gRPC take 4 MiB.
const LONG: usize = 2 * 1024 * 1024;

/// A series: its metric and its attributes as one text.
type Key = (&'static str, String);

/// What a series was at when the receiver last took it.
#[derive(Debug, Clone)]
struct Former {
    value: Held,
    unix_ns: u64,
}

#[derive(Debug, Clone)]
enum Held {
    Count(u64),
    Number(f64),
    Distribution(Histogram),
}

/// Makes messages of the live state.
#[derive(Debug)]
pub(super) struct Collector {
    temporality: Temporality,
    form: HistogramForm,
    conventions: Conventions,
    resource: Vec<(String, String)>,
    started_unix_ns: u64,
    former: HashMap<Key, Former>,
}

/// One message, and what to remember of it once it was taken.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) request: ExportMetricsServiceRequest,
    pub(super) points: u64,
    formers: Vec<(Key, Former)>,
}

/// One metric, and the same.
struct Made {
    metric: Metric,
    points: u64,
    formers: Vec<(Key, Former)>,
}

impl Collector {
    /// Of a program that began to count at `started_unix_ns` and says of itself `resource`.
    pub(super) fn new(
        config: &OtlpConfig,
        resource: Vec<(String, String)>,
        started_unix_ns: u64,
    ) -> Self {
        Self {
            temporality: config.temporality,
            form: config.histograms,
            conventions: config.conventions,
            resource,
            started_unix_ns,
            former: HashMap::new(),
        }
    }

    /// The messages that hold `view` as it is at `unix_ns`.
    pub(super) fn collect(&self, view: &View<'_>, unix_ns: u64) -> Vec<Batch> {
        let labels = PageLabels::new(view.live);
        let mut made: Vec<Made> = Vec::new();
        family::for_each(view, |family| {
            let Some(one) = self.metric(family, (&labels, unix_ns)) else {
                return;
            };
            // Two families may have one name in the legacy dialect.
            match made
                .iter_mut()
                .find(|other| other.metric.name == one.metric.name)
            {
                Some(other) => other.add(one),
                None => made.push(one),
            }
        });
        self.batches(made)
    }

    /// Remembers what the receiver has taken.
    pub(super) fn taken(&mut self, batch: Batch) {
        self.former.extend(batch.formers);
    }

    fn metric(&self, family: &Family<'_>, (page, unix_ns): (&PageLabels, u64)) -> Option<Made> {
        let metric = catalog::ALL
            .iter()
            .find(|metric| metric.prometheus == family.name)?;
        let (metric, token_type) = match self.conventions {
            Conventions::Current => (*metric, None),
            Conventions::Legacy => catalog::legacy(metric)?,
        };
        let is_delta = match self.temporality {
            Temporality::Cumulative => false,
            Temporality::Delta => true,
            Temporality::LowMemory => metric.scope == Scope::Stream,
        } && metric.kind != Kind::Gauge;
        // The resource says it.
        if metric.name == catalog::TARGET_INFO.name {
            return None;
        }
        let mut points = Points::new(metric.kind, self.form);
        for series in &family.series {
            let labels = page.of(series, metric, token_type);
            let mut place = Place {
                start: self.started_unix_ns,
                end: unix_ns,
                ..Place::default()
            };
            if !is_delta {
                place.labels = labels;
                points.add(&series.value, place);
                continue;
            }
            let key = (metric.name, labels.text());
            place.labels = labels;
            let former = self.former.get(&key);
            place.start = former.map_or(place.start, |former| former.unix_ns);
            points.add_since(&series.value, former.map(|former| &former.value), place);
            let value = Held::of(&series.value);
            points.formers.push((key, Former { value, unix_ns }));
        }
        let temporality = if is_delta {
            AggregationTemporality::Delta
        } else {
            AggregationTemporality::Cumulative
        };
        Some(points.finish(metric, temporality))
    }

    /// `made` in messages that are not too long.
    fn batches(&self, made: Vec<Made>) -> Vec<Batch> {
        let mut groups: Vec<Vec<Made>> = Vec::new();
        let mut length = LONG;
        for one in made {
            let more = one.metric.encoded_len();
            if length + more > LONG {
                groups.push(Vec::new());
                length = 0;
            }
            length += more;
            groups
                .last_mut()
                .expect("one was pushed at first")
                .push(one);
        }
        groups.into_iter().map(|group| self.batch(group)).collect()
    }

    fn batch(&self, group: Vec<Made>) -> Batch {
        let points = group.iter().map(|one| one.points).sum();
        let mut formers = Vec::new();
        let mut metrics = Vec::with_capacity(group.len());
        for one in group {
            formers.extend(one.formers);
            metrics.push(one.metric);
        }
        let scope_metrics = ScopeMetrics {
            scope: Some(scope()),
            metrics,
            ..ScopeMetrics::default()
        };
        let resource_metrics = ResourceMetrics {
            resource: Some(resource(&self.resource)),
            scope_metrics: vec![scope_metrics],
            ..ResourceMetrics::default()
        };
        Batch {
            request: ExportMetricsServiceRequest {
                resource_metrics: vec![resource_metrics],
            },
            points,
            formers,
        }
    }
}

impl Held {
    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Count(count) => Self::Count(*count),
            Value::Number(number) => Self::Number(*number),
            Value::Distribution(shown) => Self::Distribution(shown.histogram().clone()),
        }
    }
}

impl Made {
    /// Adds the points of another metric of the same name.
    fn add(&mut self, other: Self) {
        self.points += other.points;
        self.formers.extend(other.formers);
        match (&mut self.metric.data, other.metric.data) {
            (Some(Data::ExponentialHistogram(own)), Some(Data::ExponentialHistogram(more))) => {
                own.data_points.extend(more.data_points);
            }
            (Some(Data::Histogram(own)), Some(Data::Histogram(more))) => {
                own.data_points.extend(more.data_points);
            }
            _ => {}
        }
    }
}

/// The points of one metric.
struct Points {
    data: Data,
    count: u64,
    formers: Vec<(Key, Former)>,
    kind: Kind,
}

impl Points {
    fn new(kind: Kind, form: HistogramForm) -> Self {
        let data = match (kind, form) {
            (Kind::Gauge, _) => Data::Gauge(Gauge::default()),
            (Kind::Counter, _) => Data::Sum(Sum::default()),
            (Kind::Histogram(_), HistogramForm::Exponential) => {
                Data::ExponentialHistogram(ExponentialHistogram::default())
            }
            (Kind::Histogram(_), HistogramForm::Explicit) => {
                Data::Histogram(ExplicitHistogram::default())
            }
        };
        Self {
            data,
            count: 0,
            formers: Vec::new(),
            kind,
        }
    }

    /// Adds `value` as it is.
    fn add(&mut self, value: &Value<'_>, place: Place) {
        match value {
            Value::Count(count) => self.number(points::whole(*count, place)),
            Value::Number(number) => self.number(points::number(*number, place)),
            Value::Distribution(shown) => {
                let place = place.with(shown.exemplars());
                let classic = self.range().map(|range| shown.classic(range).collect());
                self.distribution(shown.histogram(), classic, place);
            }
        }
    }

    /// Adds what came on top of `former`. A value that went back began anew.
    fn add_since(&mut self, value: &Value<'_>, former: Option<&Held>, place: Place) {
        match (value, former) {
            (Value::Count(now), Some(Held::Count(then))) if now >= then => {
                self.number(points::whole(now - then, place));
            }
            (Value::Number(now), Some(Held::Number(then))) if now >= then => {
                self.number(points::number(now - then, place));
            }
            (Value::Distribution(now), Some(Held::Distribution(then))) => {
                let place = place.with(now.exemplars());
                let later = now.histogram().since(then);
                let classic = self
                    .range()
                    .map(|range| Distribution::plain(&later).classic(range).collect());
                self.distribution(&later, classic, place);
            }
            _ => self.add(value, place),
        }
    }

    fn range(&self) -> Option<ClassicRange> {
        match self.kind {
            Kind::Histogram(range) => Some(range),
            Kind::Counter | Kind::Gauge => None,
        }
    }

    fn number(&mut self, point: NumberDataPoint) {
        let list = match &mut self.data {
            Data::Gauge(gauge) => &mut gauge.data_points,
            Data::Sum(sum) => &mut sum.data_points,
            // A series is of the kind that the catalog says.
            _ => return,
        };
        self.count += 1;
        list.push(point);
    }

    /// Adds a histogram; `classic` are its bounds with the counts up to them.
    fn distribution(
        &mut self,
        histogram: &Histogram,
        classic: Option<Vec<(f64, u64)>>,
        place: Place,
    ) {
        match (&mut self.data, classic) {
            (Data::ExponentialHistogram(list), _) => {
                list.data_points.push(points::exponential(histogram, place));
            }
            (Data::Histogram(list), Some(classic)) => {
                let point = points::explicit(histogram, classic, place);
                list.data_points.push(point);
            }
            _ => return,
        }
        self.count += 1;
    }

    fn finish(mut self, metric: &catalog::Metric, temporality: AggregationTemporality) -> Made {
        let temporality = temporality.into();
        match &mut self.data {
            Data::Sum(sum) => {
                sum.is_monotonic = true;
                sum.aggregation_temporality = temporality;
            }
            Data::Histogram(histogram) => histogram.aggregation_temporality = temporality,
            Data::ExponentialHistogram(histogram) => {
                histogram.aggregation_temporality = temporality;
            }
            Data::Gauge(_) | Data::Summary(_) => {}
        }
        Made {
            metric: Metric {
                name: metric.name.to_owned(),
                description: metric.help.to_owned(),
                unit: metric.unit.to_owned(),
                data: Some(self.data),
                ..Metric::default()
            },
            points: self.count,
            formers: self.formers,
        }
    }
}
