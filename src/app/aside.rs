//! Clients for what is asked beside the measured requests: a target's pages and lists.
//!
//! They go the way of the measured requests, so that a target behind a proxy, an own CA or a
//! Unix socket is reached. A page elsewhere is trusted likewise, and shown nothing of ours.

use std::time::Duration;

use anyhow::Context;

use crate::clock::TimeAnchor;
use crate::config::{BaseUrl, Limits, NetworkConfig, Scheme, TargetConfig, TlsConfig};
use crate::transport::Endpoint;
use crate::transport::fetch::{Fetch, FetchTimeouts};

/// A page must come within this time.
pub(super) const ASIDE: Duration = Duration::from_secs(5);

/// The clock, and when what is asked aside is given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking {
    pub(super) anchor: TimeAnchor,
    timeouts: FetchTimeouts,
}

impl Asking {
    /// In a run, where nobody waits for it.
    pub(super) const fn beside(anchor: TimeAnchor) -> Self {
        let timeouts = FetchTimeouts {
            connect: ASIDE,
            total: ASIDE,
        };
        Self { anchor, timeouts }
    }

    /// Before a request with these `limits`: it is not waited for longer than for a first token.
    pub(super) fn within(limits: &Limits, anchor: TimeAnchor) -> Self {
        let connect = limits.connect.min(ASIDE);
        let first = limits.first_token.unwrap_or(ASIDE);
        let total = first.min(limits.total).min(ASIDE);
        let timeouts = FetchTimeouts { connect, total };
        Self { anchor, timeouts }
    }
}

/// What a page is read with, and its URL.
pub(super) struct Page {
    pub(super) fetch: Fetch,
    pub(super) url: String,
}

/// The page at `path` of the address `url` of `target`.
pub(super) fn page_at(
    target: &TargetConfig,
    (url, path): (&BaseUrl, &str),
    asking: Asking,
) -> anyhow::Result<Page> {
    let whole = match url.scheme() {
        // All that is asked of it goes to the socket, whatever the host.
        Scheme::Unix => format!("http://localhost{path}"),
        Scheme::Http | Scheme::Https => format!("{url}{path}"),
    };
    Ok(Page {
        fetch: fetch(url.clone(), target.network.clone(), asking)?,
        url: whole,
    })
}

/// The page at `url`, of `target` or of another host.
pub(super) fn page_elsewhere(
    target: &TargetConfig,
    url: &str,
    asking: Asking,
) -> anyhow::Result<Page> {
    let without_query = url.split('?').next().unwrap_or_default();
    let base = BaseUrl::parse(without_query).with_context(|| format!("`{url}`"))?;
    let network = NetworkConfig {
        tls: TlsConfig {
            ca: target.network.tls.ca.clone(),
            ..TlsConfig::default()
        },
        family: target.network.family,
        ..NetworkConfig::default()
    };
    Ok(Page {
        fetch: fetch(base, network, asking)?,
        url: url.to_owned(),
    })
}

fn fetch(url: BaseUrl, network: NetworkConfig, asking: Asking) -> anyhow::Result<Fetch> {
    Ok(Fetch::beside(
        &Endpoint::new(url, network)?,
        asking.anchor,
        asking.timeouts,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_aside_is_waited_for_longer_than_for_a_first_token() {
        let seconds = Duration::from_secs;
        for (first_token, total, expected) in [
            (Some(seconds(2)), seconds(60), seconds(2)),
            (Some(seconds(10)), seconds(60), seconds(5)),
            (None, seconds(3), seconds(3)),
            (None, seconds(60), seconds(5)),
        ] {
            let limits = Limits {
                connect: seconds(1),
                first_token,
                gap: None,
                total,
            };
            let asking = Asking::within(&limits, TimeAnchor::start());
            let timeouts = FetchTimeouts {
                connect: seconds(1),
                total: expected,
            };
            assert_eq!(asking.timeouts, timeouts);
        }
    }
}
