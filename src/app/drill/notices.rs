//! What arrived at the webhook, and when.

use serde::Deserialize;
use tokio::sync::mpsc;

use crate::clock::{MonoTime, TimeAnchor};
use crate::web::Take;

/// Notices that wait to be looked at; far more than a rehearsal has alerts.
const WAITING: usize = 256;

/// One alert of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    /// When it arrived.
    pub(super) at: MonoTime,
    /// Name of the alert.
    pub(super) alert: String,
    /// Its summary.
    pub(super) summary: String,
    /// Whether it says that all is well again.
    pub(super) resolved: bool,
}

/// A notification as Alertmanager 0.25 and later post it (webhook version 4); the rest of it is
/// not needed.
#[derive(Debug, Deserialize)]
struct Posted {
    alerts: Vec<Alert>,
}

#[derive(Debug, Deserialize)]
struct Alert {
    status: String,
    labels: Labels,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Debug, Deserialize)]
struct Labels {
    alertname: String,
}

#[derive(Debug, Default, Deserialize)]
struct Annotations {
    #[serde(default)]
    summary: String,
}

/// What takes notifications, and where their alerts come out.
pub(super) fn notices(anchor: TimeAnchor) -> (Take, mpsc::Receiver<Notice>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let take = move |body: &[u8]| {
        let at = anchor.now();
        let posted: Posted = match serde_json::from_slice(body) {
            Ok(posted) => posted,
            Err(error) => {
                // Sending it again would not help.
                tracing::warn!(%error, "a notification was not understood");
                return true;
            }
        };
        let Ok(places) = sender.try_reserve_many(posted.alerts.len()) else {
            return false;
        };
        for (place, alert) in places.zip(posted.alerts) {
            place.send(Notice {
                at,
                alert: alert.labels.alertname,
                summary: alert.annotations.summary,
                resolved: alert.status == "resolved",
            });
        }
        true
    };
    (std::sync::Arc::new(take), receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Alertmanager 0.25 posted it, shortened.
    const POSTED: &str = r#"{"receiver":"drill","status":"firing","alerts":[
        {"status":"firing","labels":{"alertname":"One","target":"t"},
         "annotations":{"summary":"p95 is up"},"startsAt":"2026-11-30T08:00:00Z",
         "endsAt":"0001-01-01T00:00:00Z","fingerprint":"a"},
        {"status":"resolved","labels":{"alertname":"Other"},"annotations":{}}],
        "groupLabels":{},"version":"4","groupKey":"{}","truncatedAlerts":0}"#;

    #[test]
    fn each_alert_of_a_notification_is_one_notice() {
        let (take, mut notices) = notices(TimeAnchor::start());
        assert!(take(POSTED.as_bytes()));
        let mut next = || {
            let Notice {
                alert,
                summary,
                resolved,
                ..
            } = notices.try_recv().expect("it was sent");
            (alert, summary, resolved)
        };
        assert_eq!(next(), ("One".to_owned(), "p95 is up".to_owned(), false));
        assert_eq!(next(), ("Other".to_owned(), String::new(), true));
        assert!(take(b"not json"), "it would not be better the next time");
        assert!(notices.try_recv().is_err());
    }

    #[test]
    fn what_finds_no_place_is_asked_for_again() {
        let (take, mut notices) = notices(TimeAnchor::start());
        for _ in 0..WAITING / 2 {
            assert!(take(POSTED.as_bytes()));
        }
        assert!(!take(POSTED.as_bytes()));
        notices.try_recv().expect("one is there");
        assert!(!take(POSTED.as_bytes()), "half a notification is none");
        notices.try_recv().expect("another");
        assert!(take(POSTED.as_bytes()));
    }
}
