//! One request to one target, outside any schedule: what `check` shows.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use super::build::{fresh_ids, headers, poll, streams, unseeded};
use super::discover::{DiscoverError, served};
use crate::aggregate::SampleRing;
use crate::client::{Call, Cancel, Client, ClientSetup, Protocol};
use crate::clock::TimeAnchor;
use crate::config::Config;
use crate::export::record::{RecordOptions, to_json_line};
use crate::load::workload::Workload;
use crate::measurement::{Observed, RequestRecord, StallRule};
use crate::telemetry::SelfMetrics;
use crate::transport::fetch::{Fetch, FetchTimeouts};
use crate::transport::{Connect, Endpoint};

/// The list of models and the metrics page must come within this time.
const ASIDE: Duration = Duration::from_secs(5);

/// What one request to a target showed.
#[derive(Debug)]
pub struct Checked {
    /// What is wrong with the model's name, if the server lists its models.
    pub model: Option<DiscoverError>,
    /// The request, with the server's state before it.
    pub observed: Observed,
    /// The stall rule of its probe.
    pub stall: StallRule,
}

impl Checked {
    /// The record as one line of JSON, chunk gaps included.
    #[must_use]
    pub fn json_line(&self, anchor: TimeAnchor) -> String {
        let options = RecordOptions {
            stall: self.stall,
            gaps: true,
        };
        to_json_line(&self.observed, &anchor.wall(), options)
    }
}

/// Sends one request to the target at `target_index`, as its first probe would. `None` if no
/// probe uses the target.
///
/// # Errors
///
/// If the request cannot be made, as with a header that HTTP does not allow.
pub async fn check_target(
    config: &Config,
    target_index: usize,
    connect: Arc<dyn Connect>,
    anchor: TimeAnchor,
) -> anyhow::Result<Option<Checked>> {
    let plans = streams(config)?;
    let Some(plan) = plans
        .iter()
        .find(|plan| plan.stream.target_index == target_index)
    else {
        return Ok(None);
    };
    let fetch = Fetch::new(
        anchor,
        FetchTimeouts {
            connect: ASIDE,
            total: ASIDE,
        },
    )?;
    let model = match served(&fetch, plan.target).await {
        Ok(name) => {
            plan.stream.model.get_or_init(|| name.into());
            None
        }
        Err(error) => Some(error),
    };
    let own = SelfMetrics::new().context("self metrics")?;
    let mut ring = SampleRing::new(1);
    if let Some(poll) = poll(target_index, plan.target, (&fetch, &own))?
        && let Some(sample) = poll.once().await
    {
        ring.push(sample);
    }
    let client = Client::new(ClientSetup {
        endpoint: Endpoint::new(plan.target.urls[0].clone(), plan.target.network.clone())?,
        protocol: Protocol::new(plan.target.api, plan.target.request.clone())?,
        headers: headers(plan.target)?,
        limits: plan.probe.limits,
        connect,
        anchor,
    })?;
    let prompt = Workload::new(plan.probe.workload, unseeded()).prompt();
    let now = anchor.now();
    let ids = fresh_ids();
    let mut record = RequestRecord::due(0, Arc::clone(&plan.stream), ids, now);
    record.timeline.slot_free = Some(now);
    let record = client
        .send(
            Call {
                record,
                prompt,
                session: None,
            },
            &Cancel::default(),
        )
        .await;
    let at_intended = ring.at(now, ASIDE);
    Ok(Some(Checked {
        model,
        observed: Observed {
            record,
            at_intended,
        },
        stall: plan.probe.stall,
    }))
}
