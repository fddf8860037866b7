//! One page per engine, with values that are all different: servers around engines, and the rest.

use super::{check, histogram};
use crate::measurement::server::HistogramRole;
use crate::scrape::read_page;

#[test]
fn triton_with_its_tensorrt_llm_backend() {
    let l = "model=\"tensorrt_llm\",version=\"1\"";
    let page = format!(
        "nv_inference_request_success{{{l}}} 20
nv_inference_request_failure{{model=\"tensorrt_llm\",reason=\"REJECTED\",version=\"1\"}} 2
nv_inference_pending_request_count{{{l}}} 9
nv_inference_request_duration_us{{{l}}} 5000000
nv_inference_queue_duration_us{{{l}}} 250000
nv_trt_llm_request_metrics{{{l},request_type=\"waiting\"}} 2
nv_trt_llm_request_metrics{{{l},request_type=\"scheduled\"}} 3
nv_trt_llm_request_metrics{{{l},request_type=\"context\"}} 1
nv_trt_llm_request_metrics{{{l},request_type=\"active\"}} 5
nv_trt_llm_request_metrics{{{l},request_type=\"max\"}} 64
nv_trt_llm_kv_cache_block_metrics{{{l},kv_cache_block_type=\"used\"}} 30
nv_trt_llm_kv_cache_block_metrics{{{l},kv_cache_block_type=\"free\"}} 90
nv_trt_llm_kv_cache_block_metrics{{{l},kv_cache_block_type=\"max\"}} 120
nv_trt_llm_kv_cache_block_metrics{{{l},kv_cache_block_type=\"tokens_per\"}} 64
nv_trt_llm_kv_cache_block_metrics{{{l},kv_cache_block_type=\"fraction\"}} 0.25
nv_inference_first_response_histogram_ms_bucket{{{l},le=\"100\"}} 15
nv_inference_first_response_histogram_ms_bucket{{{l},le=\"5000\"}} 20
nv_inference_first_response_histogram_ms_bucket{{{l},le=\"+Inf\"}} 20
nv_inference_first_response_histogram_ms_sum{{{l}}} 1500
nv_inference_first_response_histogram_ms_count{{{l}}} 20
nv_gpu_utilization{{gpu_uuid=\"GPU-1\"}} 0.5
"
    );
    check(
        &page,
        "engine triton
running 3
waiting 2
kv_usage 0.25
kv_usage_max 0.25
running_limit 64
kv_blocks 120
kv_blocks_used 30
block_tokens 64
requests 22 in all
ttft 20 values, 1.5 s, 2 bounds
e2e 20 values, 5 s, 0 bounds
queue 20 values, 0.25 s, 0 bounds
finished \"REJECTED\" 2
finished \"success\" 20
models tensorrt_llm
",
    );
    let ttft = read_page(&page, None).page.totals;
    let ttft = ttft.histogram(HistogramRole::Ttft).expect("it is there");
    assert_eq!(*ttft.bounds, [0.1, 5.0], "milliseconds are seconds");
}

#[test]
fn triton_with_another_backend() {
    check(
        "nv_inference_request_success{model=\"a\",version=\"1\"} 3
nv_inference_request_success{model=\"b\",version=\"1\"} 4
nv_inference_pending_request_count{model=\"a\",version=\"1\"} 1
nv_inference_pending_request_count{model=\"b\",version=\"1\"} 2
",
        "engine triton
waiting 3
requests 7 in all
finished \"success\" 7
rank a/1: waiting 1
rank b/1: waiting 2
models a b
",
    );
}

#[test]
fn nim() {
    let l = "model_name=\"m\"";
    let page = format!(
        "gpu_cache_usage_perc{{{l}}} 0.4
num_requests_running{{{l}}} 3
num_requests_waiting{{{l}}} 2
num_request_max{{{l}}} 2048
prompt_tokens_total{{{l}}} 1000
generation_tokens_total{{{l}}} 2000
request_success_total{{{l}}} 14
request_failure_total{{{l}}} 1
request_finish_total{{{l},finished_reason=\"stop\"}} 9
request_finish_total{{{l},finished_reason=\"length\"}} 5
{}{}{}",
        histogram("time_to_first_token_seconds", l, (1, 2, 0.5)),
        histogram("time_per_output_token_seconds", l, (9, 9, 0.18)),
        histogram("e2e_request_latency_seconds", l, (0, 2, 1.5)),
    );
    check(
        &page,
        "engine nim
running 3
waiting 2
kv_usage 0.4
kv_usage_max 0.4
running_limit 2048
prompt_tokens 1000 in all
generation_tokens 2000 in all
requests 14 in all
ttft 2 values, 0.5 s, 2 bounds
itl 9 values, 0.18 s, 2 bounds
e2e 2 values, 1.5 s, 2 bounds
finished \"length\" 5
finished \"stop\" 9
models m
",
    );
}

#[test]
fn a_worker_of_dynamo_without_an_engine() {
    let l = "dynamo_component=\"backend\",dynamo_namespace=\"d\",worker_id=\"w\"";
    check(
        &format!(
            "dynamo_component_inflight_requests{{{l},dynamo_endpoint=\"generate\"}} 3
dynamo_component_inflight_requests{{{l},dynamo_endpoint=\"other\"}} 40
dynamo_component_requests_total{{{l},dynamo_endpoint=\"generate\"}} 12
dynamo_component_requests_total{{{l},dynamo_endpoint=\"other\"}} 13
dynamo_component_kvstats_gpu_cache_usage_percent{{{l}}} 0.4
"
        ),
        "engine dynamo_worker
running 3
kv_usage 0.4
kv_usage_max 0.4
requests 12 in all
finished \"finished\" 12
",
    );
}

#[test]
fn llama_cpp_before_2025_and_a_fork() {
    check(
        "llamacpp:kv_cache_usage_ratio 0.5
llamacpp:kv_cache_tokens 2048
llamacpp:requests_processing 1
llamacpp:requests_deferred 2
llamacpp:predicted_tokens_seconds 33.3
",
        "engine llama_cpp
running 1
waiting 2
kv_usage 0.5
kv_usage_max 0.5
kv_tokens_used 2048
",
    );
    check(
        "llama_requests_processing 1\nllama_tokens_predicted_total 20\n",
        "engine llama_cpp\nrunning 1\ngeneration_tokens 20 in all\n",
    );
}

#[test]
fn lmdeploy() {
    let l = "engine=\"0\",model_name=\"m\"";
    let page = format!(
        "lmdeploy:num_requests_running{{{l}}} 3.0
lmdeploy:num_requests_waiting{{{l}}} 2.0
lmdeploy:num_requests_succeeded{{{l}}} 9.0
lmdeploy:gpu_cache_usage_perc{{{l}}} 0.4
lmdeploy:prefix_cache_hit_rate{{{l}}} 0.3
lmdeploy:prompt_tokens_total{{{l}}} 1000.0
lmdeploy:cached_tokens_total{{{l}}} 300.0
lmdeploy:generation_tokens_total{{{l}}} 2000.0
lmdeploy:request_success_total{{{l},finished_reason=\"stop\"}} 9.0
{}{}{}",
        histogram("lmdeploy:iter_token_latency", l, (9, 9, 0.18)),
        histogram("lmdeploy:time_per_output_token_seconds", l, (2, 2, 0.04)),
        histogram("lmdeploy:iteration_tokens_total", l, (2, 2, 8.0)),
    );
    check(
        &page,
        "engine lmdeploy
running 3
waiting 2
kv_usage 0.4
kv_usage_max 0.4
prefix_hit_rate 0.3
prompt_tokens 1000 in all
generation_tokens 2000 in all
prefix_queries 1000 in all
prefix_hits 300 in all
requests 9 in all
itl 9 values, 0.18 s, 2 bounds
tpot 2 values, 0.04 s, 2 bounds
finished \"stop\" 9
models m
",
    );
}

#[test]
fn ray_serve() {
    let of = |worker: &str| format!("ReplicaId=\"r\",WorkerId=\"{worker}\",model_name=\"m\"");
    let (a, b) = (of("a"), of("b"));
    let engine = format!(
        "ray_vllm_num_requests_running{{{a}}} 3.0
ray_vllm_num_requests_running{{{b}}} 4.0
ray_vllm_kv_cache_usage_perc{{{a}}} 0.25
ray_vllm_kv_cache_usage_perc{{{b}}} 0.75
ray_vllm_generation_tokens_total{{{a}}} 10.0
{}{}",
        histogram("ray_vllm_time_to_first_token_seconds", &a, (1, 2, 0.5)),
        histogram("ray_vllm_time_to_first_token_seconds", &b, (0, 3, 1.5)),
    );
    let serve = "ray_serve_replica_processing_queries{deployment=\"llm\"} 9.0
ray_serve_deployment_queued_queries{deployment=\"llm\"} 5.0
";
    check(
        &format!("{engine}{serve}"),
        "engine ray_serve
running 7
waiting 5
kv_usage 0.5
kv_usage_max 0.75
generation_tokens 10 in all
ttft 5 values, 2 s, 2 bounds
rank m/r/a: running 3 kv_usage 0.25 kv_usage_max 0.25
rank m/r/b: running 4 kv_usage 0.75 kv_usage_max 0.75
models m
",
    );
}

#[test]
fn kserve() {
    let page = histogram("request_predict_seconds", "model_name=\"m\"", (1, 2, 0.5))
        + &histogram(
            "request_preprocess_seconds",
            "model_name=\"m\"",
            (2, 2, 0.001),
        );
    check(
        &page,
        "engine kserve\nrequests 2 in all\ne2e 2 values, 0.5 s, 2 bounds\nmodels m\n",
    );
}
