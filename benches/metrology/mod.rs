//! One server, two clients in turn: a bare reader and the canary's client, and the server's own
//! log of when it wrote.

pub(crate) mod bare;
pub(crate) mod canary;
mod server;

use std::path::Path;
use std::time::Duration;

use futures_util::future::join;
use tokio::time::sleep;

use server::{Neighbours, Server, WriteTimes};

/// Tokens per answer.
pub(crate) const TOKENS: u32 = 128;
/// Time to the first token at the server.
pub(crate) const TTFT: Duration = Duration::from_millis(100);
/// Time between tokens at the server.
pub(crate) const ITL: Duration = Duration::from_millis(10);

/// How much is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Requests under way at once.
    pub(crate) streams: usize,
    /// Rounds of so many requests, by each client.
    pub(crate) rounds: usize,
    /// Streams of a third process, which keep an idle machine awake.
    pub(crate) neighbours: usize,
}

/// What was found, in microseconds.
///
/// The server's timer has steps of a millisecond, so a raw TTFT depends on where in a step the
/// request fell. What a client adds is its TTFT minus the server's own of the same request.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Requests of each client.
    pub(crate) requests: usize,
    /// Median TTFT of the bare reader, and what it adds to the server's own.
    pub(crate) bare: (f64, f64),
    /// The same of the canary.
    pub(crate) canary: (f64, f64),
    /// Median and 99th percentile of |ITL at the canary − ITL at the server|.
    pub(crate) itl_error: (f64, f64),
}

impl Measured {
    /// How much more the canary adds than the bare reader does.
    pub(crate) fn ttft_difference(&self) -> f64 {
        self.canary.1 - self.bare.1
    }
}

/// Runs `load` with both clients in turn against a server of `binary`.
///
/// # Panics
///
/// If a request fails, or the server's log lacks one.
pub(crate) async fn measure(binary: &Path, load: Load) -> Measured {
    let server = Server::start(binary).await;
    let neighbours = Neighbours::start(binary, server.address, load.neighbours);
    let mut readers = bare::Readers::connect(server.address, load.streams).await;
    let client = canary::Canary::new(server.address);
    // Connections of both are open and warm before anything counts.
    readers.round().await;
    client.round(load.streams).await;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..load.rounds {
        // Side by side, half a step apart: whatever the machine does meets both alike.
        let (theirs, own) = join(readers.round(), async {
            sleep(stagger(1, 2 * load.streams)).await;
            client.round(load.streams).await
        })
        .await;
        bare.extend(theirs);
        ours.extend(own);
    }
    drop(readers);
    neighbours.stop().await;
    let times = server.stop().await;
    let errors = sorted(ours.iter().map(|one| one.itl_error(&times)).collect());
    Measured {
        requests: ours.len(),
        bare: medians(&bare, &times),
        canary: medians(&ours, &times),
        itl_error: (quantile(&errors, 50), quantile(&errors, 99)),
    }
}

/// One request, in microseconds.
#[derive(Debug)]
pub(crate) struct One {
    pub(crate) request: String,
    pub(crate) ttft: f64,
    /// Not measured by the bare reader.
    itl: Option<f64>,
}

impl One {
    fn itl_error(&self, times: &WriteTimes) -> f64 {
        let itl = self.itl.expect("the canary measures it");
        (itl - times.itl_us(&self.request)).abs()
    }
}

/// The medians of TTFT and of TTFT over the server's own.
fn medians(requests: &[One], times: &WriteTimes) -> (f64, f64) {
    let ttft = requests.iter().map(|one| one.ttft).collect();
    let added = requests
        .iter()
        .map(|one| one.ttft - times.ttft_us(&one.request))
        .collect();
    (quantile(&sorted(ttft), 50), quantile(&sorted(added), 50))
}

/// When the request at `place` of `count` begins: evenly over the time that one lasts, as in a
/// steady load.
#[expect(clippy::cast_precision_loss, reason = "a few dozen streams")]
fn stagger(place: usize, count: usize) -> Duration {
    let answer = TTFT + ITL * (TOKENS - 1);
    answer.mul_f64(place as f64 / count as f64)
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The ⌈p·n/100⌉-th smallest.
fn quantile(sorted: &[f64], p: usize) -> f64 {
    sorted[(sorted.len() * p).div_ceil(100) - 1]
}
