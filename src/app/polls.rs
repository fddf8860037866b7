//! Which metrics pages of servers are read beside the load, and how.

use anyhow::Context;
use hyper::HeaderMap;

use super::aside::{Asking, page_at, page_elsewhere};
use super::streams::headers;
use crate::clock::TimeAnchor;
use crate::config::{Config, ServerMetrics, TargetConfig};
use crate::scrape::{PATHS, Poll};
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
    let (fetch, urls, headers) = match &target.server_metrics {
        ServerMetrics::Off => return Ok(None),
        ServerMetrics::Auto => {
            let pages = PATHS
                .iter()
                .map(|path| page_at(target, (&target.urls[0], path), asking))
                .collect::<anyhow::Result<Vec<_>>>()?;
            let fetch = pages.first().context("a page has a path")?.fetch.clone();
            let urls = pages.into_iter().map(|page| page.url).collect();
            (fetch, urls, headers(target)?)
        }
        // Another host may not see the target's credentials.
        ServerMetrics::Url(url) => {
            let page = page_elsewhere(target, url, asking)?;
            // Some answer at the same path with a slash only.
            let slashed = (!url.contains('?') && !url.ends_with('/')).then(|| format!("{url}/"));
            let urls = std::iter::once(page.url).chain(slashed).collect();
            (page.fetch, urls, HeaderMap::new())
        }
    };
    Ok(Some(Poll {
        target_index,
        target: target.name.clone(),
        urls,
        model: target.model.clone(),
        headers,
        every: target.server_metrics_every,
        anchor: asking.anchor,
        fetch,
        own: own.clone(),
    }))
}
