//! What the canary's own clock adds, over loopback, with bounds that a busy machine keeps. The
//! figures themselves come from `cargo bench --bench loopback`.

#[path = "../../../benches/metrology/mod.rs"]
mod metrology;

use std::path::Path;

use metrology::{Load, measure};

#[tokio::test]
async fn the_client_adds_little_to_what_a_bare_reader_sees() {
    for load in [
        Load {
            streams: 1,
            rounds: 5,
            neighbours: 0,
        },
        Load {
            streams: 50,
            rounds: 2,
            neighbours: 0,
        },
    ] {
        let measured = measure(Path::new(env!("CARGO_BIN_EXE_tokencanary")), load).await;
        assert_eq!(measured.requests, load.streams * load.rounds);
        let difference = measured.ttft_difference();
        assert!(difference.abs() < 5_000.0, "{load:?}: {measured:?}");
        assert!(measured.itl_error.0 < 500.0, "{load:?}: {measured:?}");
        assert!(measured.itl_error.1 < 5_000.0, "{load:?}: {measured:?}");
    }
}
