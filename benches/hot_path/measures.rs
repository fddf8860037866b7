//! The measurements themselves: which server, which load, how often, and what is taken of it.

use std::time::Duration;

use super::clients::{Found, Task};
use super::proc::Part;
use super::server::Pace;

/// Runs of each client, taking turns.
const TURNS: usize = 5;
/// The core that client and server share where they share one.
const CORE: usize = 1;

/// Tokens of an answer where CPU is counted.
const TOKENS: u32 = 256;
const ITL: Duration = Duration::from_millis(10);
const TTFT: Duration = Duration::from_millis(100);

/// Results of both clients, in turn.
pub(crate) struct Both {
    pub(crate) bare: Vec<Found>,
    pub(crate) ours: Vec<Found>,
    /// Chunks of each run.
    pub(crate) chunks: f64,
}

/// A load, and the machine it is put on.
#[derive(Clone, Copy)]
struct Load {
    streams: usize,
    rounds: usize,
    pace: Pace,
    turns: usize,
    /// Client and server on one core.
    pinned: bool,
    /// Processes that keep all cores busy.
    busy: bool,
    times: bool,
}

/// Zero delay, 50 streams, client and server on one core.
pub(crate) fn unpaced() -> Both {
    let pace = Pace {
        tokens: TOKENS,
        ttft: Duration::ZERO,
        itl: Duration::ZERO,
    };
    both(Load {
        streams: 50,
        rounds: 80,
        pace,
        turns: TURNS,
        pinned: true,
        busy: false,
        times: false,
    })
}

/// 500 streams of 10 ms.
pub(crate) fn paced() -> Both {
    let pace = Pace {
        tokens: TOKENS,
        ttft: TTFT,
        itl: ITL,
    };
    both(Load {
        streams: 500,
        rounds: 2,
        pace,
        turns: TURNS,
        pinned: false,
        busy: false,
        times: false,
    })
}

/// TTFT and stamps at `streams`, with the server's own times. One stream alone meets a machine
/// that sleeps between any two events and wakes late by a millisecond or not at all, so it takes
/// many short requests to see a difference.
pub(crate) fn timed(streams: usize, busy: bool) -> Both {
    let (tokens, rounds, turns) = if streams == 1 {
        (16, 40, 5)
    } else {
        (128, 4, 3)
    };
    let pace = Pace {
        tokens,
        ttft: TTFT,
        itl: ITL,
    };
    both(Load {
        streams,
        rounds,
        pace,
        turns,
        pinned: false,
        busy,
        times: true,
    })
}

/// KiB for each of 2,000 streams in flight: bare and ours.
pub(crate) fn memory() -> Both {
    let pace = Pace {
        tokens: 128,
        ttft: Duration::from_secs(1),
        itl: Duration::from_millis(50),
    };
    let run = |ours| {
        let mut server = start_server(pace, false, None);
        let address = server.address();
        let task = Task {
            ours,
            address,
            streams: 2000,
            rounds: 1,
            ramp: Duration::from_secs(1),
            weigh_after: Some(Duration::from_secs(4)),
            times: false,
        };
        vec![client(task, None)]
    };
    Both {
        bare: run(false),
        ours: run(true),
        chunks: 2000.0 * 128.0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "some millions")]
fn both(load: Load) -> Both {
    let core = load.pinned.then_some(CORE);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let spinners = if load.busy { cores } else { 0 };
    let _busy: Vec<Part> = (0..spinners)
        .map(|_| Part::start(&["part:spin".to_owned()], None))
        .collect();
    let mut server = start_server(load.pace, load.times, core);
    let address = server.address();
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..load.turns {
        for (is_ours, found) in [(false, &mut bare), (true, &mut ours)] {
            let task = Task {
                ours: is_ours,
                address,
                streams: load.streams,
                rounds: load.rounds,
                ramp: load.pace.ttft + load.pace.itl * load.pace.tokens,
                weigh_after: None,
                times: load.times,
            };
            found.push(client(task, core));
        }
    }
    let requests = load.streams * load.rounds;
    Both {
        bare,
        ours,
        chunks: requests as f64 * f64::from(load.pace.tokens),
    }
}

fn start_server(pace: Pace, keeps: bool, core: Option<usize>) -> Part {
    let arguments = [
        "part:server".to_owned(),
        pace.tokens.to_string(),
        pace.ttft.as_millis().to_string(),
        pace.itl.as_millis().to_string(),
        keeps.to_string(),
    ];
    Part::start(&arguments, core)
}

fn client(task: Task, core: Option<usize>) -> Found {
    let task = serde_json::to_string(&task).expect("plain values");
    let mut client = Part::start(&["part:client".to_owned(), task], core);
    serde_json::from_str(&client.line()).expect("what a client prints")
}
