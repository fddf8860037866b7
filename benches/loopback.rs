//! What the canary's own clock adds, over loopback: TTFT against a bare reader of the same
//! server, ITL against the server's own clock. Prints one table.
//!
//! `cargo bench --bench loopback`. Absolute times are for orientation; the differences are what
//! counts. The same measurement runs in the tests with loose bounds.

mod metrology;

use std::path::Path;

use metrology::{Load, Measured, measure};

const LOADS: [Load; 2] = [
    Load {
        streams: 1,
        rounds: 60,
    },
    Load {
        streams: 50,
        rounds: 12,
    },
];

#[expect(clippy::print_stdout, reason = "a benchmark prints its table")]
#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("server: 128 tokens, first after 100 ms, then every 10 ms; interleaved; microseconds");
    println!("{}", Measured::HEADER);
    for load in LOADS {
        let measured = measure(Path::new(env!("CARGO_BIN_EXE_tokencanary")), load).await;
        println!("{}", measured.row(load));
    }
}
