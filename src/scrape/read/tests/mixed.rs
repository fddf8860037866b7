//! Several engines, models and ranks on one page, and values that are none.

use proptest::prelude::*;

use super::{check, check_model};
use crate::measurement::ServerState;
use crate::measurement::server::{CounterRole, Engine, HistogramRole, ServerTotals};
use crate::scrape::read_page;

#[test]
fn ranks_are_told_apart_and_added_up() {
    check(
        "vllm:num_requests_running{engine=\"0\"} 3
vllm:num_requests_running{engine=\"1\"} 4
vllm:num_requests_waiting{engine=\"0\"} 0
vllm:num_requests_waiting{engine=\"1\"} 2
vllm:kv_cache_usage_perc{engine=\"0\"} 0.25
vllm:kv_cache_usage_perc{engine=\"1\"} 0.75
vllm:cache_config_info{engine=\"0\",block_size=\"16\",num_gpu_blocks=\"100\"} 1
vllm:cache_config_info{engine=\"1\",block_size=\"16\",num_gpu_blocks=\"300\"} 1
",
        "engine vllm
running 7
waiting 2
kv_usage 0.5
kv_usage_max 0.75
kv_blocks 400
block_tokens 16
rank 0: running 3 waiting 0 kv_usage 0.25 kv_usage_max 0.25 kv_blocks 100 block_tokens 16
rank 1: running 4 waiting 2 kv_usage 0.75 kv_usage_max 0.75 kv_blocks 300 block_tokens 16
flag block_size=16
flag engine=0
flag num_gpu_blocks=100
",
    );
}

#[test]
fn tensor_parallel_workers_tell_the_same_of_one_rank() {
    check(
        "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"10\"} 3
sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"2\"} 3
sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"4\"} 5
sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"5\"} 5
sglang:generation_tokens_total{dp_rank=\"0\",tp_rank=\"10\"} 70
",
        "engine sglang
running 8
generation_tokens 70 in all
rank 0: running 3
rank 1: running 5
",
    );
}

#[test]
fn buckets_of_several_ranks_are_added_where_all_have_them() {
    let page = "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.1\"} 1
vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"1\"} 4
vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} 5
vllm:time_to_first_token_seconds_sum{engine=\"0\"} 9
vllm:time_to_first_token_seconds_count{engine=\"0\"} 5
vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"0.5\"} 1
vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"1.0\"} 2
vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"+Inf\"} 2
vllm:time_to_first_token_seconds_sum{engine=\"1\"} 1
vllm:time_to_first_token_seconds_count{engine=\"1\"} 2
";
    let totals = read_page(page, None).page.totals;
    let ttft = totals.histogram(HistogramRole::Ttft).expect("both have it");
    assert_eq!((&*ttft.bounds, &*ttft.below), (&[1.0][..], &[6.0][..]));
    assert_eq!((ttft.count, ttft.sum), (7.0, 10.0));
}

#[test]
fn of_several_models_ours_counts_whatever_its_case() {
    let page = "vllm:num_requests_running{model_name=\"Qwen/Qwen3-8B\"} 3
vllm:num_requests_running{model_name=\"other\"} 4
";
    check_model(
        page,
        Some("qwen/qwen3-8b"),
        "engine vllm\nrunning 3\nmodels Qwen/Qwen3-8B other\n",
    );
    // An adapter has a name of its own that is on no page.
    check_model(
        page,
        Some("my-lora"),
        "engine vllm
running 7
rank Qwen/Qwen3-8B: running 3
rank other: running 4
models Qwen/Qwen3-8B other
",
    );
}

#[test]
fn what_stands_before_an_engine_is_not_counted_beside_it() {
    let engine = "vllm:num_requests_running{engine=\"0\",model=\"m\",model_name=\"m\"} 3\n";
    for before in [
        "dynamo_component_inflight_requests{dynamo_endpoint=\"generate\"} 9\n",
        "dynamo_frontend_inflight_requests{model=\"m\"} 9\n",
        "nv_inference_pending_request_count{model=\"m\"} 9\n",
        "litellm_requests_metric_total 9\n",
        "request_predict_seconds_count{model_name=\"m\"} 9\n",
    ] {
        let expected = "engine vllm\nrunning 3\nmodels m\n";
        check(&format!("{before}{engine}"), expected);
        check(&format!("{engine}{before}"), expected);
    }
}

#[test]
fn of_two_engines_the_one_with_our_model_counts() {
    let page = "vllm:num_requests_running{model_name=\"a\"} 3
sglang:num_running_reqs{model_name=\"b\"} 4
";
    check_model(page, Some("b"), "engine sglang\nrunning 4\nmodels b\n");
    check_model(page, None, "engine vllm\nrunning 3\nmodels a\n");
}

#[test]
fn row_34_a_page_of_two_scrapers_counts_once() {
    let series = |job: &str, instance: &str, value: u32| {
        format!("vllm:generation_tokens_total{{instance=\"{instance}\",job=\"{job}\"}} {value}\n")
    };
    let page = [
        series("pods", "10.0.0.1:8000", 100),
        series("auto", "10.0.0.1:8000", 100),
        series("pods", "10.0.0.2:8000", 7),
    ];
    let totals = read_page(&page.concat(), None).page.totals;
    assert_eq!(totals.counter(CounterRole::GenerationTokens), Some(107.0));
}

#[test]
fn row_15_tokens_are_counted_per_step_and_not_per_request() {
    let page = "vllm:request_generation_tokens_sum 40\nvllm:generation_tokens_total 55\n";
    let totals = read_page(page, None).page.totals;
    assert_eq!(totals.counter(CounterRole::GenerationTokens), Some(55.0));
}

#[test]
fn row_12_and_37_families_that_are_missing_are_absent() {
    check("vllm:num_requests_running 0\n", "engine vllm\nrunning 0\n");
    check("vllm:lora_requests_info 1\n", "engine vllm\n");
}

#[test]
fn row_13_an_empty_page_says_nothing() {
    check("", "engine none\n");
    check("\n\r\n", "engine none\n");
    check("python_info{version=\"3.12\"} 1\n", "engine none\n");
}

#[test]
fn what_is_no_amount_is_unknown_and_never_zero() {
    check(
        "vllm:num_requests_running NaN
vllm:num_requests_waiting{engine=\"0\"} 1
vllm:num_requests_waiting{engine=\"1\"} +Inf
vllm:kv_cache_usage_perc -1
vllm:prompt_tokens_total NaN
vllm:generation_tokens_total -5
vllm:request_success_total{finished_reason=\"stop\"} NaN
vllm:request_success_total{finished_reason=\"length\"} 3
vllm:time_to_first_token_seconds_sum NaN
vllm:time_to_first_token_seconds_count 3
vllm:e2e_request_latency_seconds_count 3
",
        "engine vllm\nfinished \"length\" 3\n",
    );
}

#[test]
fn a_share_above_one_is_none_but_for_rounding() {
    check("vllm:kv_cache_usage_perc 41\n", "engine vllm\n");
    check(
        "vllm:kv_cache_usage_perc 1.0000000001\n",
        "engine vllm\nkv_usage 1\nkv_usage_max 1\n",
    );
}

#[test]
fn buckets_that_do_not_grow_are_left_out_and_the_sum_stands() {
    let page = |low: u32, high: u32, le: &str| {
        format!(
            "vllm:time_to_first_token_seconds_bucket{{le=\"0.1\"}} {low}
vllm:time_to_first_token_seconds_bucket{{le=\"{le}\"}} {high}
vllm:time_to_first_token_seconds_sum 2
vllm:time_to_first_token_seconds_count 4
"
        )
    };
    let bounds = |page: String| {
        let totals = read_page(&page, None).page.totals;
        let ttft = totals
            .histogram(HistogramRole::Ttft)
            .expect("a sum and a count");
        assert_eq!((ttft.count, ttft.sum), (4.0, 2.0));
        ttft.bounds.len()
    };
    assert_eq!(bounds(page(1, 4, "1")), 2);
    assert_eq!(bounds(page(3, 2, "1")), 0, "it falls");
    assert_eq!(bounds(page(3, 5, "1")), 0, "it is above the count");
    assert_eq!(bounds(page(3, 4, "x")), 0, "no bound");
    assert_eq!(bounds(page(3, 4, "NaN")), 0, "no bound");
}

#[test]
fn a_page_that_is_too_long_or_of_too_many_parts_says_nothing() {
    let long = format!("vllm:num_requests_running 3\n{}", "\n".repeat(500_000));
    let parts: Vec<String> = (0..300)
        .map(|n| format!("vllm:num_requests_running{{engine=\"{n}\"}} 1\n"))
        .collect();
    for page in [long, parts.concat()] {
        let read = read_page(&page, None);
        assert!(read.cut);
        assert_eq!(read.engine(), Some(Engine::Vllm));
        assert_eq!(read.state, ServerState::default());
        assert_eq!(read.page.totals, ServerTotals::default());
    }
}

#[test]
fn labels_of_a_megabyte_cost_their_line_only() {
    let huge = "x".repeat(1 << 20);
    let page = format!(
        "vllm:num_requests_running{{model_name=\"{huge}\"}} 3\nvllm:num_requests_waiting 2\n"
    );
    let read = read_page(&page, None);
    assert_eq!((read.state.running, read.state.waiting), (None, Some(2.0)));
    assert_eq!(read.page.bad_lines, 1);
    // Just short enough to be read, and too long to be kept.
    let page = format!(
        "vllm:num_requests_running{{model_name=\"{}\"}} 3\n",
        &huge[..60_000]
    );
    let read = read_page(&page, None);
    assert_eq!((read.state.running, read.page.bad_lines), (Some(3.0), 0));
    assert!(read.page.info.models.is_empty());
}

proptest! {
    #[test]
    fn no_page_makes_it_panic(
        page in "(vllm:num_requests_running|vllm:kv_cache_usage_perc|vllm:e2e_request_latency_seconds_bucket|\\{le=\"|\"\\}|[ -~\\n]){0,40}"
    ) {
        let read = read_page(&page, Some("m"));
        prop_assert!(read.engine().is_some() || read.state == ServerState::default());
    }
}
