//! What the canary's own clock adds, over loopback: TTFT against a bare reader of the same
//! server, ITL against the server's own clock. Prints one table.
//!
//! `cargo bench --bench loopback`. Absolute times are for orientation; the differences are what
//! counts. The same measurement runs in the tests with loose bounds.

mod metrology;

use std::path::Path;

use metrology::{Load, Measured, measure};

const LOADS: [Load; 3] = [
    Load {
        streams: 1,
        rounds: 30,
        neighbours: 0,
    },
    Load {
        streams: 1,
        rounds: 30,
        neighbours: 10,
    },
    Load {
        streams: 50,
        rounds: 8,
        neighbours: 0,
    },
];

const HEADER: &str = "streams  neighbours  requests    TTFT p50 bare  canary    added p50 bare  canary  difference    |ITL error| p50  p99";

fn row(load: Load, measured: &Measured) -> String {
    format!(
        "{:>7} {:>11} {:>9} {:>16.0} {:>7.0} {:>17.1} {:>7.1} {:>11.1} {:>18.2} {:>5.1}",
        load.streams,
        load.neighbours,
        measured.requests,
        measured.bare.0,
        measured.canary.0,
        measured.bare.1,
        measured.canary.1,
        measured.ttft_difference(),
        measured.itl_error.0,
        measured.itl_error.1
    )
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its table")]
#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!(
        "128 tokens, the first after 100 ms, then one every 10 ms; clients side by side; microseconds"
    );
    println!("added = TTFT at the client - TTFT by the server's own log of the same request");
    println!("{HEADER}");
    for load in LOADS {
        let measured = measure(Path::new(env!("CARGO_BIN_EXE_tokencanary")), load).await;
        println!("{}", row(load, &measured));
    }
}
