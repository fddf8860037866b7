//! One page per engine and version, with values that are all different; more in `others`.

use super::{check, histogram};
use crate::measurement::server::HistogramRole;
use crate::scrape::read_page;

#[test]
fn vllm_v1() {
    let l = "engine=\"0\",model_name=\"m\"";
    let page = format!(
        "vllm:num_requests_running{{{l}}} 3.0
vllm:num_requests_waiting{{{l}}} 2.0
vllm:kv_cache_usage_perc{{{l}}} 0.25
vllm:prefix_cache_queries_total{{{l}}} 100.0
vllm:prefix_cache_hits_total{{{l}}} 40.0
vllm:prefix_cache_hits_created{{{l}}} 1.7e9
vllm:num_preemptions_total{{{l}}} 5.0
vllm:prompt_tokens_total{{{l}}} 1000.0
vllm:generation_tokens_total{{{l}}} 2000.0
vllm:request_success_total{{{l},finished_reason=\"stop\"}} 7.0
vllm:request_success_total{{{l},finished_reason=\"length\"}} 8.0
vllm:spec_decode_num_draft_tokens_total{{{l}}} 60.0
vllm:spec_decode_num_accepted_tokens_total{{{l}}} 30.0
vllm:cache_config_info{{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"2048\"}} 1.0
vllm:lora_requests_info{{max_lora=\"4\"}} 1.7e9
process_start_time_seconds 1.79e9
{}{}{}{}{}{}{}{}",
        histogram("vllm:time_to_first_token_seconds", l, (1, 2, 0.5)),
        histogram("vllm:inter_token_latency_seconds", l, (9, 9, 0.18)),
        histogram(
            "vllm:request_time_per_output_token_seconds",
            l,
            (2, 2, 0.04)
        ),
        histogram("vllm:e2e_request_latency_seconds", l, (0, 2, 1.5)),
        histogram("vllm:request_queue_time_seconds", l, (2, 2, 0.01)),
        histogram("vllm:request_prefill_time_seconds", l, (2, 2, 0.02)),
        histogram("vllm:request_decode_time_seconds", l, (0, 2, 1.25)),
        // Its name ends like a counter's.
        histogram("vllm:iteration_tokens_total", l, (5, 6, 99.0)),
    );
    let expected = "engine vllm
running 3
waiting 2
kv_usage 0.25
kv_usage_max 0.25
kv_blocks 2048
block_tokens 16
prompt_tokens 1000 in all
generation_tokens 2000 in all
prefix_queries 100 in all
prefix_hits 40 in all
preemptions 5 in all
requests 15 in all
draft_tokens 60 in all
accepted_tokens 30 in all
ttft 2 values, 0.5 s, 2 bounds
itl 9 values, 0.18 s, 2 bounds
tpot 2 values, 0.04 s, 2 bounds
e2e 2 values, 1.5 s, 2 bounds
queue 2 values, 0.01 s, 2 bounds
prefill 2 values, 0.02 s, 2 bounds
decode 2 values, 1.25 s, 2 bounds
finished \"length\" 8
finished \"stop\" 7
flag block_size=16
flag engine=0
flag num_gpu_blocks=2048
models m
";
    check(&page, expected);
    // OpenMetrics of the same, without `_total` on the wire, and from a collector without colons.
    check(&page.replace("_total{", "{"), expected);
    check(&page.replace("vllm:", "vllm_"), expected);
    assert_eq!(
        read_page(&page, None).page.totals.process_start,
        Some(1.79e9)
    );
}

#[test]
fn vllm_v0() {
    let l = "model_name=\"m\"";
    let page = format!(
        "vllm:num_requests_running{{{l}}} 3.0
vllm:num_requests_swapped{{{l}}} 4.0
vllm:num_requests_waiting{{{l}}} 2.0
vllm:gpu_cache_usage_perc{{{l}}} 0.5
vllm:cpu_cache_usage_perc{{{l}}} 0.125
vllm:gpu_prefix_cache_hit_rate{{{l}}} -1.0
vllm:cpu_prefix_cache_hit_rate{{{l}}} -1.0
vllm:num_preemptions_total{{{l}}} 5.0
vllm:avg_generation_throughput_toks_per_s{{{l}}} 77.0
{}{}",
        histogram("vllm:time_per_output_token_seconds", l, (9, 9, 0.18)),
        histogram("vllm:time_in_queue_requests", l, (2, 2, 0.01)),
    );
    check(
        &page,
        "engine vllm
running 3
waiting 2
swapped 4
kv_usage 0.5
kv_usage_max 0.5
preemptions 5 in all
itl 9 values, 0.18 s, 2 bounds
queue 2 values, 0.01 s, 2 bounds
models m
",
    );
}

#[test]
fn vllm_with_old_and_new_names_counts_the_new_ones_only() {
    let page = format!(
        "vllm:gpu_cache_usage_perc 0.5\nvllm:kv_cache_usage_perc 0.75
vllm:gpu_prefix_cache_queries_total 10\nvllm:prefix_cache_queries_total 20
vllm:gpu_prefix_cache_hits_total 1\nvllm:prefix_cache_hits_total 2\n{}{}",
        histogram("vllm:time_per_output_token_seconds", "", (9, 9, 0.18)),
        histogram("vllm:inter_token_latency_seconds", "", (9, 9, 0.18)),
    );
    check(
        &page,
        "engine vllm
kv_usage 0.75
kv_usage_max 0.75
prefix_queries 20 in all
prefix_hits 2 in all
itl 9 values, 0.18 s, 2 bounds
",
    );
}

#[test]
fn sglang() {
    let l = "engine_type=\"unified\",model_name=\"m\",pp_rank=\"0\",tp_rank=\"0\"";
    let page = format!(
        "sglang:num_running_reqs{{{l}}} 3.0
sglang:num_queue_reqs{{{l}}} 2.0
sglang:num_grammar_queue_reqs{{{l}}} 1.0
sglang:token_usage{{{l}}} 0.28
sglang:num_used_tokens{{{l}}} 123859.0
sglang:max_total_num_tokens{{{l}}} 442353.0
sglang:cache_hit_rate{{{l}}} 0.0075
sglang:prompt_tokens_total{{{l}}} 8128902.0
sglang:cached_tokens_total{{{l}}} 20000.0
sglang:generation_tokens_total{{{l}}} 7.557572e+06
sglang:num_requests_total{{{l}}} 900.0
sglang:num_retracted_requests_total{{{l}}} 6.0
sglang:gen_throughput{{{l}}} 86.5
sglang:cache_config_info{{{l},page_size=\"64\",num_pages=\"6911\"}} 1.0
sglang:kv_transfer_latency_ms{{{l}}} 3.0
{}{}{}{}",
        histogram("sglang:time_to_first_token_seconds", l, (1, 2, 0.5)),
        histogram("sglang:inter_token_latency_seconds", l, (9, 9, 0.18)),
        histogram("sglang:e2e_request_latency_seconds", l, (0, 2, 1.5)),
        histogram("sglang:queue_time_seconds", l, (2, 2, 0.01)),
    );
    check(
        &page,
        "engine sglang
running 3
waiting 3
kv_usage 0.28
kv_usage_max 0.28
prefix_hit_rate 0.0075
kv_blocks 6911
block_tokens 64
kv_tokens 442353
kv_tokens_used 123859
prompt_tokens 8128902 in all
generation_tokens 7557572 in all
prefix_queries 8128902 in all
prefix_hits 20000 in all
preemptions 6 in all
requests 900 in all
ttft 2 values, 0.5 s, 2 bounds
itl 9 values, 0.18 s, 2 bounds
e2e 2 values, 1.5 s, 2 bounds
queue 2 values, 0.01 s, 2 bounds
finished \"finished\" 900
flag engine_type=unified
flag model_name=m
flag num_pages=6911
flag page_size=64
flag pp_rank=0
flag tp_rank=0
models m
",
    );
    let old = page
        .replace("model_name=", "name=")
        .replace("inter_token_latency", "time_per_output_token");
    let read = read_page(&old, None);
    assert_eq!(*read.page.info.models, ["m".into()]);
    let itl = read.page.totals.histogram(HistogramRole::Itl);
    assert_eq!(itl.map(|itl| itl.count), Some(9.0));
}

#[test]
fn tgi() {
    let page = format!(
        "tgi_queue_size 2
tgi_batch_current_size 3
tgi_batch_current_max_tokens 4000
tgi_batch_max_total_tokens 16000
tgi_request_count 50
tgi_request_success 45
tgi_request_failure{{err=\"overloaded\"}} 4
tgi_request_failure{{err=\"validation\"}} 1
tgi_request_skipped_tokens{{quantile=\"0.5\"}} 0
tgi_request_skipped_tokens_sum 0
tgi_request_skipped_tokens_count 45
{}{}{}{}{}{}{}",
        histogram("tgi_request_duration", "", (0, 45, 90.5)),
        histogram("tgi_request_queue_duration", "", (45, 45, 0.9)),
        histogram(
            "tgi_request_mean_time_per_token_duration",
            "",
            (45, 45, 1.35)
        ),
        histogram("tgi_request_input_length", "", (0, 0, 5400.0)),
        histogram("tgi_request_generated_tokens", "", (0, 0, 4500.0)),
        histogram(
            "tgi_batch_inference_duration",
            "method=\"prefill\"",
            (40, 41, 2.5)
        ),
        histogram(
            "tgi_batch_inference_duration",
            "method=\"decode\"",
            (900, 901, 30.0)
        ),
    );
    check(
        &page,
        "engine tgi
running 3
waiting 2
kv_usage 0.25
kv_usage_max 0.25
kv_tokens 16000
kv_tokens_used 4000
prompt_tokens 5400 in all
generation_tokens 4500 in all
requests 50 in all
tpot 45 values, 1.35 s, 2 bounds
e2e 45 values, 90.5 s, 2 bounds
queue 45 values, 0.9 s, 2 bounds
prefill 41 values, 2.5 s, 2 bounds
finished \"overloaded\" 4
finished \"success\" 45
finished \"validation\" 1
",
    );
}

#[test]
fn tensorrt_llm() {
    let l = "engine_type=\"pytorch\",model_name=\"m\"";
    let page = format!(
        "trtllm_num_requests_running{{{l}}} 3
trtllm_num_requests_waiting{{{l}}} 2
trtllm_num_requests_completed_total{{{l}}} 15
trtllm_max_num_active_requests{{{l}}} 2048
trtllm_kv_cache_utilization{{{l}}} 0.375
trtllm_kv_cache_hit_rate{{{l}}} 0.5
trtllm_kv_cache_reused_blocks_total{{{l}}} 11
trtllm_kv_cache_max_blocks{{{l}}} 800
trtllm_kv_cache_used_blocks{{{l}}} 300
trtllm_kv_cache_tokens_per_block{{{l}}} 32
trtllm_prompt_tokens_total{{{l}}} 1000
trtllm_prompt_cached_tokens_total{{{l}}} 250
trtllm_generation_tokens_total{{{l}}} 2000
trtllm_request_success_total{{{l},finished_reason=\"stop\"}} 14
trtllm_request_error_total{{{l}}} 1
{}{}{}",
        histogram("trtllm_time_to_first_token_seconds", l, (1, 2, 0.5)),
        histogram("trtllm_time_per_output_token_seconds", l, (2, 2, 0.04)),
        histogram("trtllm_request_queue_time_seconds", l, (2, 2, 0.01)),
    );
    check(
        &page,
        "engine tensorrt_llm
running 3
waiting 2
kv_usage 0.375
kv_usage_max 0.375
prefix_hit_rate 0.5
running_limit 2048
kv_blocks 800
kv_blocks_used 300
block_tokens 32
prompt_tokens 1000 in all
generation_tokens 2000 in all
prefix_queries 1000 in all
prefix_hits 250 in all
requests 15 in all
ttft 2 values, 0.5 s, 2 bounds
tpot 2 values, 0.04 s, 2 bounds
queue 2 values, 0.01 s, 2 bounds
finished \"error\" 1
finished \"stop\" 14
models m
",
    );
}
