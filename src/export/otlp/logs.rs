//! The logs exporter: events from their queue, as log records.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::attributes::{attribute, resource, scope};
use super::courier::{Courier, Parcel};
use super::encode::encoded;
use super::event::Event;
use super::sender::Sender;
use super::signal::Signal;
use super::span::SpanRules;
use super::traces::BATCHING;
use super::{OtlpError, OtlpSetup};
use crate::aggregate::Kept;
use crate::clock::{MonoTime, TimeAnchor, WallAnchor};
use crate::config::OtlpReceiver;
use crate::export::feed::{Fate, Feed};
use crate::measurement::{Mark, Observed, Stream, TargetState};
use crate::telemetry::ExportCounters;

/// Sends events as log records.
#[derive(Debug)]
pub struct OtlpLogs {
    courier: Courier,
    anchor: TimeAnchor,
    rules: SpanRules,
    resource: Vec<(String, String)>,
}

impl OtlpLogs {
    /// An exporter to `receiver`. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// If the URL, a header or a certificate cannot be used.
    pub fn new(
        receiver: &OtlpReceiver,
        setup: &OtlpSetup<'_>,
        rules: SpanRules,
    ) -> Result<Self, OtlpError> {
        let sender = Sender::new(Signal::Logs, receiver, setup.anchor)?;
        let counters = setup.own.export(Signal::Logs.exporter());
        Ok(Self {
            courier: Courier::new(Signal::Logs, sender, counters),
            anchor: setup.anchor,
            rules,
            resource: setup.resource(),
        })
    }

    /// Its name in our own metrics and logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        Signal::Logs.exporter()
    }

    /// Counts what becomes of its events.
    #[must_use]
    pub const fn counters(&self) -> &ExportCounters {
        &self.courier.counters
    }

    /// Exports what comes from `input` until all senders are gone and the rest is out, or until
    /// `deadline`: what is left then counts as failed.
    pub async fn run(mut self, input: mpsc::Receiver<Event>, deadline: CancellationToken) {
        let mut feed = Feed::new(input, self.courier.counters.clone(), deadline.clone());
        while let Some(batch) = feed.batch(BATCHING).await {
            let sending = self.send_batch(&batch, &feed);
            match deadline.run_until_cancelled(sending).await {
                Some(fate) => feed.settle(fate),
                None => break,
            }
        }
        feed.close().await;
    }

    async fn send_batch(&mut self, batch: &[Event], feed: &Feed<Event>) -> Fate {
        let wall = self.anchor.wall();
        let records = batch
            .iter()
            .map(|event| to_log_record(event, &wall, &self.rules))
            .collect();
        let scope_logs = ScopeLogs {
            scope: Some(scope()),
            log_records: records,
            ..ScopeLogs::default()
        };
        let request = ExportLogsServiceRequest {
            resource_logs: vec![ResourceLogs {
                resource: Some(resource(&self.resource)),
                scope_logs: vec![scope_logs],
                ..ResourceLogs::default()
            }],
        };
        let parcel = Parcel {
            message: encoded(self.courier.sender.protocol(), &request),
            items: batch.len() as u64,
            until: None,
        };
        self.courier.deliver(parcel, &|| feed.is_ended()).await
    }
}

fn to_log_record(event: &Event, wall: &WallAnchor, rules: &SpanRules) -> LogRecord {
    match event {
        Event::Failed { observed, untold } => failed(observed, *untold, (wall, rules)),
        Event::Target {
            at,
            target,
            endpoint,
            state,
        } => stands(wall.unix_ns(*at), (target, endpoint), *state),
        Event::Mark(mark) => marked(mark),
        Event::Diagnosis {
            at,
            stream,
            cause,
            evidence,
        } => diagnosis((*at, wall), stream, (*cause, evidence.as_deref())),
        Event::Exporter {
            at,
            exporter,
            trouble,
        } => {
            let state = if trouble.is_none() {
                "taking"
            } else {
                "failing"
            };
            let mut attributes = vec![
                text("tokencanary.exporter", *exporter),
                text("tokencanary.state", state),
            ];
            let body = match trouble {
                Some((reason, said)) => {
                    attributes.push(text("tokencanary.reason", *reason));
                    format!("the receiver of {exporter} does not take what it is sent: {said}")
                }
                None => format!("the receiver of {exporter} takes what it is sent again"),
            };
            Told {
                at: wall.unix_ns(*at),
                severity: severity(trouble.is_none()),
                name: "tokencanary.exporter.state",
                body,
            }
            .record(attributes)
        }
    }
}

/// How an address of a target stands.
fn stands(at: u64, (target, endpoint): (&str, &str), state: TargetState) -> LogRecord {
    let attributes = vec![
        text("tokencanary.target", target),
        text("tokencanary.endpoint", endpoint),
        text("tokencanary.state", state.name()),
    ];
    Told {
        at,
        severity: severity(!matches!(state, TargetState::Down | TargetState::Gone)),
        name: "tokencanary.target.state",
        body: format!("target {target} is {}", state.name()),
    }
    .record(attributes)
}

fn marked(mark: &Mark) -> LogRecord {
    let target = mark.target.as_deref();
    let attributes = target
        .map(|target| text("tokencanary.target", target))
        .into_iter()
        .chain([text("tokencanary.mark", mark.kind.name())]);
    Told {
        at: mark.unix_ns,
        severity: SeverityNumber::Info,
        name: "tokencanary.mark",
        body: mark.text.to_string(),
    }
    .record(attributes.collect())
}

const fn severity(is_good: bool) -> SeverityNumber {
    if is_good {
        SeverityNumber::Info
    } else {
        SeverityNumber::Warn
    }
}

/// What every record has.
struct Told {
    /// Nanoseconds since the Unix epoch.
    at: u64,
    severity: SeverityNumber,
    name: &'static str,
    body: String,
}

impl Told {
    fn record(self, attributes: Vec<KeyValue>) -> LogRecord {
        let level = match self.severity {
            SeverityNumber::Error => "ERROR",
            SeverityNumber::Warn => "WARN",
            _ => "INFO",
        };
        LogRecord {
            time_unix_nano: self.at,
            observed_time_unix_nano: self.at,
            severity_number: self.severity.into(),
            severity_text: level.to_owned(),
            body: Some(AnyValue {
                value: Some(Any::StringValue(self.body)),
            }),
            attributes,
            event_name: self.name.to_owned(),
            ..LogRecord::default()
        }
    }
}

fn diagnosis(
    (at, wall): (MonoTime, &WallAnchor),
    stream: &Stream,
    (cause, evidence): (&'static str, Option<&str>),
) -> LogRecord {
    let (target, probe) = (&*stream.target, &*stream.probe);
    let attributes = vec![
        text("tokencanary.target", target),
        text("tokencanary.endpoint", &*stream.endpoint),
        text("tokencanary.probe", probe),
        text("tokencanary.cause", cause),
        text(
            "tokencanary.state",
            if evidence.is_some() { "began" } else { "over" },
        ),
    ];
    let body = match evidence {
        Some(evidence) => format!("{cause} at {target} ({probe}): {evidence}"),
        None => format!("{cause} at {target} ({probe}) is over"),
    };
    Told {
        at: wall.unix_ns(at),
        severity: severity(evidence.is_none()),
        name: "tokencanary.diagnosis",
        body,
    }
    .record(attributes)
}

fn failed(observed: &Observed, untold: u64, (wall, rules): (&WallAnchor, &SpanRules)) -> LogRecord {
    let record = &observed.record;
    let (stream, time) = (&record.stream, &record.timeline);
    let outcome = record.outcome.name();
    let mut attributes = vec![
        text("error.type", outcome),
        text("tokencanary.outcome", outcome),
        text("tokencanary.target", &*stream.target),
        text("tokencanary.endpoint", &*stream.endpoint),
        text("tokencanary.probe", &*stream.probe),
        text("tokencanary.request_id", record.ids.request_id()),
        whole("tokencanary.sequence", record.sequence),
    ];
    let status = record.http_status;
    attributes.extend(status.map(|code| whole("http.response.status_code", code.into())));
    let refused = record.refused;
    attributes.extend(refused.map(|reason| text("tokencanary.refused_reason", reason.name())));
    let mut body = format!("a request to {} failed: {outcome}", stream.target);
    if let Some(error) = &record.error {
        attributes.push(text("tokencanary.error.kind", &*error.kind));
        attributes.push(text("tokencanary.error.message", &*error.message));
        body = format!("{body}: {}", error.message);
    }
    if untold > 0 {
        attributes.push(whole("tokencanary.untold", untold));
    }
    let told = Told {
        at: wall.unix_ns(time.end.or(time.start).unwrap_or(time.intended)),
        severity: SeverityNumber::Error,
        name: "tokencanary.request.failed",
        body,
    };
    let kept = Kept::of(record, &rules.sampling);
    LogRecord {
        trace_id: record.ids.trace.to_be_bytes().to_vec(),
        span_id: record.ids.span.to_be_bytes().to_vec(),
        flags: u32::from(kept == Kept::Head),
        ..told.record(attributes)
    }
}

fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Any::StringValue(value.into()))
}

fn whole(key: &str, value: u64) -> KeyValue {
    attribute(key, Any::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::export::fixture::{no_connection, us, wall};
    use crate::export::otlp::fixture::rules;
    use crate::measurement::MarkKind;

    fn attributes(record: &LogRecord) -> Vec<(String, String)> {
        let value = |pair: &KeyValue| match pair.value.clone().and_then(|value| value.value) {
            Some(Any::StringValue(text)) => text,
            Some(Any::IntValue(number)) => number.to_string(),
            other => panic!("{other:?}"),
        };
        record
            .attributes
            .iter()
            .map(|pair| (pair.key.clone(), value(pair)))
            .collect()
    }

    fn body(record: &LogRecord) -> String {
        match record.body.clone().and_then(|body| body.value) {
            Some(Any::StringValue(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failed_request_is_an_error_with_the_ids_of_its_span() {
        let event = Event::Failed {
            observed: Arc::new(no_connection()),
            untold: 3,
        };
        let record = to_log_record(&event, &wall(), &rules());
        assert_eq!(record.event_name, "tokencanary.request.failed");
        assert_eq!(
            (record.severity_number, &*record.severity_text),
            (17, "ERROR")
        );
        assert_eq!(record.time_unix_nano, 1_795_953_601_000_960_000);
        assert_eq!(
            body(&record),
            "a request to qwen-prod failed: connect: tcp connect: \"refused\""
        );
        assert_eq!(record.trace_id.len(), 16);
        assert_eq!(record.flags, 1);
        let found = attributes(&record);
        for (name, value) in [
            ("error.type", "connect"),
            ("tokencanary.target", "qwen-prod"),
            ("tokencanary.error.kind", "connection refused"),
            ("tokencanary.untold", "3"),
        ] {
            let pair = (name.to_owned(), value.to_owned());
            assert!(found.contains(&pair), "{name} in {found:?}");
        }
    }

    #[test]
    fn changes_of_state_say_what_and_why() {
        let event = Event::Exporter {
            at: us(1_000_000),
            exporter: "otlp_traces",
            trouble: Some(("timeout", "timed out".to_owned())),
        };
        let record = to_log_record(&event, &wall(), &rules());
        assert_eq!(record.event_name, "tokencanary.exporter.state");
        assert_eq!(record.severity_text, "WARN");
        assert_eq!(
            body(&record),
            "the receiver of otlp_traces does not take what it is sent: timed out"
        );
        assert!(record.trace_id.is_empty());
        let event = Event::Target {
            at: us(2_000_000),
            target: "qwen".into(),
            endpoint: "http://a:1".into(),
            state: TargetState::Warming,
        };
        let record = to_log_record(&event, &wall(), &rules());
        assert_eq!(record.severity_text, "INFO");
        assert_eq!(body(&record), "target qwen is warming");
        assert_eq!(record.time_unix_nano, 1_795_953_602_000_000_000);
        let mark = Mark::new(7, None, (MarkKind::Posted, "all new"));
        let record = to_log_record(&Event::Mark(mark), &wall(), &rules());
        assert_eq!(record.event_name, "tokencanary.mark");
        assert_eq!(body(&record), "all new");
        assert_eq!(record.time_unix_nano, 7);
    }
}
