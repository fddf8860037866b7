//! Pages of real servers. The values were taken from the pages by hand.

use super::check;
use crate::measurement::server::HistogramRole;
use crate::scrape::read_page;

const LLAMA: &str = include_str!("../../../../tests/fixtures/metrics/llama-server.txt");
const WORKER: &str = include_str!("../../../../tests/fixtures/metrics/dynamo-mocker-worker.txt");
const FRONTEND: &str = include_str!("../../../../tests/fixtures/metrics/dynamo-frontend.txt");
const LITELLM: &str = include_str!("../../../../tests/fixtures/metrics/litellm.txt");

#[test]
fn llama_server() {
    check(
        LLAMA,
        "engine llama_cpp
running 0
waiting 0
prompt_tokens 53 in all
generation_tokens 54 in all
prefix_queries 110 in all
prefix_hits 57 in all
prefill_time 0.068194 in all
decode_time 0.014655 in all
draft_tokens 0 in all
accepted_tokens 0 in all
",
    );
}

#[test]
fn a_worker_of_dynamo_says_what_its_engine_says() {
    check(
        WORKER,
        "engine vllm
running 0
waiting 0
kv_usage 0
kv_usage_max 0
preemptions 0 in all
ttft 4 values, 0.06821772699999999 s, 22 bounds
itl 38 values, 0.217751342 s, 19 bounds
e2e 4 values, 0.286004515 s, 21 bounds
models mocker
",
    );
    let read = read_page(WORKER, None);
    let ttft = read.page.totals.histogram(HistogramRole::Ttft);
    let ttft = ttft.expect("it is on the page");
    assert_eq!(ttft.bounds[..4], [0.001, 0.005, 0.01, 0.02]);
    assert_eq!(ttft.below[..4], [0.0, 0.0, 0.0, 4.0]);
}

#[test]
fn the_frontend_of_dynamo() {
    check(
        FRONTEND,
        "engine dynamo_frontend
running 0
waiting 0
running_limit 256
kv_blocks 16384
block_tokens 64
prompt_tokens 40 in all
generation_tokens 42 in all
prefix_queries 40 in all
prefix_hits 0 in all
requests 6 in all
ttft 4 values, 0.075355334 s, 18 bounds
itl 38 values, 0.21813526700000002 s, 20 bounds
e2e 6 values, 0.5286264940000001 s, 10 bounds
finished \"error\" 2
finished \"success\" 4
rank mocker: running 0 waiting 0 running_limit 256 kv_blocks 16384 block_tokens 64
rank unknown_model: running 0 waiting 0
models mocker unknown_model
",
    );
}

#[test]
fn of_a_frontend_with_several_models_ours_counts() {
    let read = read_page(FRONTEND, Some("Mocker"));
    let e2e = read.page.totals.histogram(HistogramRole::E2e);
    let e2e = e2e.expect("it is on the page");
    assert_eq!((e2e.count, e2e.sum), (5.0, 0.528_519_658));
    let finished: Vec<_> = read.page.totals.finished;
    assert_eq!(finished, [("error".into(), 1.0), ("success".into(), 4.0)]);
}

#[test]
fn litellm() {
    check(
        LITELLM,
        "engine litellm
prompt_tokens 71 in all
generation_tokens 42 in all
prefix_queries 71 in all
prefix_hits 67 in all
requests 8 in all
ttft 3 values, 0.263024 s, 17 bounds
tpot 4 values, 0.05139333333333333 s, 14 bounds
e2e 4 values, 0.9205589429321289 s, 17 bounds
queue 4 values, 0.1974649429321289 s, 17 bounds
finished \"200\" 4
finished \"400\" 4
models other tiny
",
    );
    let read = read_page(LITELLM, None);
    assert_eq!(read.page.totals.process_start, Some(1_795_968_727.36));
}
