//! What one streamed chunk costs the canary, how true its stamps are, and what a stream weighs.
//!
//! `cargo bench --bench hot_path` prints one table; with `-- --strict` it fails if a bar is
//! missed. `-- --only cpu,paced,ttft,stamps,memory` runs a part. Every client and every server
//! is a process of its own, so that CPU and memory are the client's alone; the bare reader and
//! the canary take turns, so that whatever the machine does meets both.

#[path = "../metrology/mod.rs"]
#[allow(
    dead_code,
    reason = "shared with a benchmark and a test that use other parts"
)]
mod metrology;

mod clients;
mod measures;
mod proc;
mod server;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use server::Pace;
use tokencanary::transport::{thread_parks, thread_unparks};
use tokio::runtime::Builder;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match texts[..] {
        ["part:server", tokens, ttft_ms, itl_ms, keeps] => {
            let pace = Pace {
                tokens: tokens.parse().expect("a number"),
                ttft: Duration::from_millis(ttft_ms.parse().expect("a number")),
                itl: Duration::from_millis(itl_ms.parse().expect("a number")),
            };
            on_one_thread(server::serve(pace, keeps == "true"));
        }
        ["part:client", task] => {
            let task = serde_json::from_str(task).expect("made by the parent");
            on_one_thread(clients::run(task));
        }
        // Keeps a core busy until it is killed.
        ["part:spin"] => loop {
            std::hint::spin_loop();
        },
        _ => return table::run(&texts),
    }
    ExitCode::SUCCESS
}

/// As the daemon does it for its clients: one thread, whose sleeps are known.
fn on_one_thread(future: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(thread_parks)
        .on_thread_unpark(thread_unparks)
        .build();
    runtime.expect("a runtime").block_on(future);
}
