//! Waits for what is told, and for what must not be.

use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::notices::Notice;
use super::report::{NearMiss, Told, Unexpected};
use super::{Harmless, PATIENCE, QUIET, RECOVERY, SLOW, Stage};
use crate::clock::MonoTime;

/// How often states are asked for, which is how exact their times are.
const POLL: Duration = Duration::from_millis(250);

/// The webhook, as seen from the rehearsal.
pub(super) struct Watch {
    notices: mpsc::Receiver<Notice>,
}

impl Watch {
    pub(super) const fn new(notices: mpsc::Receiver<Notice>) -> Self {
        Self { notices }
    }

    /// Waits a moment, or until a notice arrives.
    pub(super) async fn pause(&mut self) -> Option<Notice> {
        timeout(POLL, self.notices.recv()).await.ok().flatten()
    }

    /// Lets go of what has arrived.
    pub(super) fn forget(&mut self) {
        while self.notices.try_recv().is_ok() {}
    }
}

impl Stage {
    /// Makes prefills `factor` times as long and follows `alert` until it was told and is over.
    pub(super) async fn regression(&mut self, factor: f64, alert: &str) -> anyhow::Result<Told> {
        let lasts = SLOW / self.compress;
        let fault = json!({
            "fault": "slow_prefill",
            "factor": factor,
            "for": format!("{}ms", lasts.as_millis()),
        });
        let onset = self.anchor.now();
        self.asking.fault(&self.server_url(), &fault).await?;
        let mut told = Told::default();
        let deadline = onset + PATIENCE / self.compress;
        while told.page.is_none() && self.anchor.now() < deadline {
            self.follow((alert, onset), &mut told).await?;
        }
        if told.page.is_none() {
            return Ok(told);
        }
        let deadline = self.anchor.now() + lasts + RECOVERY / self.compress;
        while told.over.is_none() && self.anchor.now() < deadline {
            self.follow((alert, onset), &mut told).await?;
        }
        Ok(told)
    }

    /// One look at where `alert` is, and at what has arrived.
    async fn follow(
        &mut self,
        (alert, onset): (&str, MonoTime),
        told: &mut Told,
    ) -> anyhow::Result<()> {
        self.stack.check()?;
        self.check_canary()?;
        let url = &self.stack.prometheus.url;
        for (state, since) in [("pending", &mut told.pending), ("firing", &mut told.firing)] {
            if since.is_some() {
                continue;
            }
            let query = format!("ALERTS{{alertname=\"{alert}\",alertstate=\"{state}\"}}");
            // A Prometheus that does not answer this time is asked again the next.
            let found = self.asking.values(url, &query).await;
            if found.is_ok_and(|found| !found.is_empty()) {
                *since = Some(self.anchor.now().since(onset));
            }
        }
        let Some(notice) = self.watch.pause().await else {
            return Ok(());
        };
        let after = notice.at.since(onset);
        match (notice.alert == alert, notice.resolved) {
            (true, false) => {
                told.page.get_or_insert(after);
                told.summary.get_or_insert(notice.summary);
            }
            (true, true) => {
                told.over.get_or_insert(after);
            }
            (false, false) => told.others.push(Unexpected {
                alert: notice.alert,
                summary: notice.summary,
                after,
            }),
            (false, true) => {}
        }
        Ok(())
    }

    /// Makes a change that is to be told nobody, and waits for what is told.
    pub(super) async fn near_miss(&mut self, harmless: &Harmless) -> anyhow::Result<NearMiss> {
        let lasts = harmless.lasts / self.compress;
        let milliseconds = u32::try_from(lasts.as_millis()).unwrap_or(u32::MAX).max(1);
        let onset = self.anchor.now();
        self.asking
            .fault(&self.server_url(), &(harmless.fault)(milliseconds))
            .await?;
        let mut alerts = Vec::new();
        let end = onset + lasts + QUIET / self.compress;
        while self.anchor.now() < end {
            self.stack.check()?;
            self.check_canary()?;
            if let Some(notice) = self.watch.pause().await
                && !notice.resolved
            {
                alerts.push(Unexpected {
                    after: notice.at.since(onset),
                    alert: notice.alert,
                    summary: notice.summary,
                });
            }
        }
        Ok(NearMiss {
            what: harmless.what,
            alerts,
        })
    }

    fn server_url(&self) -> String {
        format!("http://{}", self.server.address)
    }
}
