//! Which metrics pages of servers are read beside the load, and how.

use hyper::HeaderMap;

use super::aside::{Asking, page_at, page_elsewhere};
use super::streams::headers;
use crate::clock::TimeAnchor;
use crate::config::{Config, ServerMetrics, TargetConfig};
use crate::scrape::Poll;
use crate::telemetry::SelfMetrics;

/// Those of all targets that have one.
pub(super) fn polls(
    config: &Config,
    (anchor, own): (TimeAnchor, &SelfMetrics),
) -> anyhow::Result<Vec<Poll>> {
    let with = (Asking::beside(anchor), own);
    let targets = config.targets.iter().enumerate();
    targets
        .filter_map(|(index, target)| poll(index, target, with).transpose())
        .collect()
}

/// The reading of the metrics page of the target at `target_index`, if it has one.
pub(super) fn poll(
    target_index: usize,
    target: &TargetConfig,
    (asking, own): (Asking, &SelfMetrics),
) -> anyhow::Result<Option<Poll>> {
    let (page, headers) = match &target.server_metrics {
        ServerMetrics::Off => return Ok(None),
        ServerMetrics::Auto => {
            let at = (&target.urls[0], "/metrics");
            (page_at(target, at, asking)?, headers(target)?)
        }
        // Another host may not see the target's credentials.
        ServerMetrics::Url(url) => (page_elsewhere(target, url, asking)?, HeaderMap::new()),
    };
    Ok(Some(Poll {
        target_index,
        target: target.name.clone(),
        url: page.url,
        headers,
        every: target.server_metrics_every,
        fetch: page.fetch,
        own: own.clone(),
    }))
}
