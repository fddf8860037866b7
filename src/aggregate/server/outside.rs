//! How much of our time to first token arose outside the server: on the network, in gateways and
//! proxies.
//!
//! Both sides are means over the same requests, as far as that can be had: the server's over what
//! it counted between two pages, ours over the requests whose first token came between them.
//! Means, since the sums of a histogram are exact and its quantiles are not.

use std::time::Duration;

use super::HistogramWindow;
use super::marks::as_float;
use crate::clock::MonoTime;
use crate::measurement::Sample;

/// Own requests without which no difference is stated.
const ENOUGH: usize = 3;

/// The part of our time to first token that the server does not know of; seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outside {
    /// Mean time to first token of our requests.
    pub client_mean: f64,
    /// Mean time to first token of all requests, as the server counts it.
    pub server_mean: f64,
    /// Our mean minus the server's. Below zero where other requests are slower than ours.
    pub seconds: f64,
    /// How far it may be off: requests near the two pages may be counted on one side only, and
    /// ours are a sample of all that the server counts.
    pub error: f64,
    /// Our requests.
    pub own: u64,
    /// Requests the server counted, those of others included.
    pub served: f64,
}

/// The first token of one of our requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstToken {
    pub(super) at: MonoTime,
    pub(super) ttft: Duration,
}

/// The difference between our `tokens` and what the server `took` in between the pages `first`
/// and `last`.
pub(super) fn outside(
    tokens: impl Iterator<Item = FirstToken>,
    took: &HistogramWindow,
    (first, last): (&Sample, &Sample),
) -> Option<Outside> {
    let mut inside = Vec::new();
    let mut at_edges = Vec::new();
    for token in tokens {
        // The server saw its token at most one TTFT before we did: how long the way is, is what
        // is asked.
        let left = token.at.minus(token.ttft);
        let seconds = token.ttft.as_secs_f64();
        if left >= first.at && token.at <= last.asked {
            inside.push(seconds);
        } else if token.at >= first.asked && left <= last.at {
            inside.push(seconds);
            at_edges.push(seconds);
        }
    }
    // A server that counted fewer than ours counts something else, or another server's requests.
    let surely = as_float((inside.len() - at_edges.len()) as u64);
    if inside.len() < ENOUGH || took.count < surely {
        return None;
    }
    let server_mean = took.mean()?;
    let n = as_float(inside.len() as u64);
    let client_mean = inside.iter().sum::<f64>() / n;
    let spread = |seconds: &f64| (seconds - client_mean).powi(2);
    let deviation = (inside.iter().map(spread).sum::<f64>() / (n - 1.0)).sqrt();
    let away = |seconds: &f64| (seconds - client_mean).abs() / n;
    let edges: f64 = at_edges.iter().map(away).sum();
    // The requests at the edges may not be among those that the server counted, nor those that
    // it counted be ours: the more of them, the less the two means are of the same thing.
    let others = (1.0 / n - 1.0 / took.count.max(n)).max(0.0);
    Some(Outside {
        client_mean,
        server_mean,
        seconds: client_mean - server_mean,
        error: edges + 2.0 * deviation * others.sqrt(),
        own: inside.len() as u64,
        served: took.count,
    })
}
