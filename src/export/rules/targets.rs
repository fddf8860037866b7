//! Alerts on targets as a whole: one that is away, one that comes and goes, one whose certificate
//! ends.

use std::time::Duration;

use super::Settings;
use super::alerts::{Alert, AlertKind, Severity};
use super::parts::Part;
use super::promql::{PLACE, PROBING};
use crate::export::catalog::{CERTIFICATE_EXPIRY, MARK_TIME, REQUESTS, TARGET_STATE};

const MINUTE: Duration = Duration::from_mins(1);
/// Restarts are counted over this long.
const HOUR: Duration = Duration::from_hours(1);
/// So many of them are no release any more.
const MOST_RESTARTS: u32 = 3;
/// Seconds of a day, which no rehearsal shortens: certificates expire in real time.
const DAY_SECONDS: u32 = 86_400;
const STARTING: &str = "{state=\"starting\"}";

/// All that was sent to a target failed; not while it starts.
pub(super) fn down(settings: &Settings, part: &Part) -> Alert {
    let window = settings.span(part.window);
    let grown = |outcomes: &str| {
        let metric = REQUESTS.prometheus;
        let selector = part.selector(&[outcomes]);
        format!(
            "sum without ({PLACE}, {PROBING}, outcome, http_response_status_code) (increase({metric}{selector}[{window}]))"
        )
    };
    Alert {
        kind: AlertKind::TargetDown,
        severity: Severity::Critical,
        expr: format!(
            "{} >= 3\nunless {} > 0\nunless on (target, endpoint)\n  max by (target, endpoint) ({}{}) == 1",
            grown("outcome!~\"ok|cancelled|refused\""),
            grown("outcome=\"ok\""),
            TARGET_STATE.prometheus,
            STARTING,
        ),
        hold: MINUTE,
        summary: "{{ $labels.target }} answers nothing".to_owned(),
        description: format!(
            "All of the last {{{{ $value | printf \"%.0f\" }}}} requests to {{{{ $labels.target }}}} ({{{{ $labels.endpoint }}}}) failed, none in {window} was good."
        ),
    }
}

/// A target whose process begins anew again and again.
pub(super) fn restarts(settings: &Settings) -> Alert {
    let window = settings.span(HOUR);
    Alert {
        kind: AlertKind::TargetRestarts,
        severity: Severity::Warning,
        expr: format!(
            "max without ({PLACE}) (changes({}{{kind=\"restart\"}}[{window}])) >= {MOST_RESTARTS}",
            MARK_TIME.prometheus
        ),
        hold: Duration::ZERO,
        summary: "{{ $labels.target }} starts again and again".to_owned(),
        description: format!(
            "The server of {{{{ $labels.target }}}} began anew {{{{ $value | printf \"%.0f\" }}}} times within {window}. What fails while it starts counts for nobody."
        ),
    }
}

/// A certificate that ends in less than so many `days`.
pub(super) fn certificate(days: u32, severity: Severity) -> Alert {
    Alert {
        kind: AlertKind::CertificateExpires,
        severity,
        expr: format!(
            "min without ({PLACE}, {PROBING}) ({}) - time() < {}",
            CERTIFICATE_EXPIRY.prometheus,
            days * DAY_SECONDS
        ),
        hold: 10 * MINUTE,
        summary: "The certificate of {{ $labels.target }} expires".to_owned(),
        description: format!(
            "The certificate of {{{{ $labels.target }}}} ({{{{ $labels.endpoint }}}}) expires in {{{{ $value | humanizeDuration }}}}. Told {days} days before."
        ),
    }
}
