//! Hands results to other programs: Prometheus, OTLP, files.
//!
//! An [`Exporter`] that takes records runs beside the load and gets them from a bounded queue,
//! filled by [`offer`], which never waits. Every record offered ends as exactly one of sent,
//! rejected, dropped, failed.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `export` | `Exporter` | Prometheus, OTLP, files, Alertmanager, webhooks | compute a statistic |

pub mod boards;
pub mod catalog;
mod feed;
pub mod files;
mod genai;
pub mod kubernetes;
pub mod otlp;
pub mod prometheus;
pub mod record;
pub mod reference;
pub mod rules;
mod stall_rules;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;

use crate::measurement::Observed;
use crate::telemetry::ExportCounters;

pub use stall_rules::StallRules;

/// Something that hands records to another program. Several unlike ones run side by side, and
/// each may fail alone.
pub trait Exporter: Send {
    /// Its name in our own metrics and logs.
    fn name(&self) -> &'static str;

    /// Hands on what comes from `input` until all senders are gone and the rest is out, or
    /// until `deadline` is cancelled: what is left then counts as failed.
    fn run(
        self: Box<Self>,
        input: mpsc::Receiver<Arc<Observed>>,
        deadline: CancellationToken,
    ) -> BoxFuture<'static, ()>;
}

/// Offers `observed` to the exporter behind `queue` without waiting: a full queue drops it, one
/// whose exporter has ended fails it. Both are counted.
pub fn offer(
    queue: &mpsc::Sender<Arc<Observed>>,
    counters: &ExportCounters,
    observed: Arc<Observed>,
) {
    counters.accepted.inc();
    match queue.try_send(observed) {
        Ok(()) => {}
        Err(TrySendError::Full(_)) => counters.dropped.inc(),
        Err(TrySendError::Closed(_)) => counters.failed.inc(),
    }
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{counters, observed};

    #[tokio::test]
    async fn what_finds_no_place_is_counted_by_the_reason() {
        let counters = counters();
        let (queue, input) = mpsc::channel(2);
        for _ in 0..3 {
            offer(&queue, &counters, observed());
        }
        assert_eq!(
            (counters.accepted.get(), counters.dropped.get()),
            (3, 1),
            "two fit"
        );
        drop(input);
        offer(&queue, &counters, observed());
        assert_eq!((counters.accepted.get(), counters.failed.get()), (4, 1));
    }
}
