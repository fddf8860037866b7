//! The `/metrics` page in text format 0.0.4, as vLLM's Python client writes it.
//!
//! Labels in alphabetical order, whole numbers with `.0`. One engine, so `engine` is always "0".

use std::fmt::Write as _;

use crate::simulator::engine::{BucketCounts, EngineState, Stats};
use crate::simulator::profile::Profile;

const NEVER: &str = "writing to a `String` cannot fail";

/// What the page shows.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) model: &'a str,
    pub(super) state: EngineState,
    pub(super) profile: &'a Profile,
    pub(super) stats: &'a Stats,
    /// Unix seconds.
    pub(super) process_start: f64,
    /// Seconds of processors that the process used.
    pub(super) process_cpu: f64,
    /// Blocks of the KV cache now.
    pub(super) kv_blocks: u32,
}

/// One family's name without prefix, type and help.
type Family = (&'static str, &'static str, &'static str);

/// The whole page.
pub(super) fn render(page: &Page<'_>) -> String {
    let model = page
        .model
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    let mut text = Text {
        out: String::with_capacity(12 * 1024),
        model,
    };
    let state = &page.state;
    text.simple(
        (
            "num_requests_running",
            "gauge",
            "Number of requests in model execution batches.",
        ),
        &format!("{}.0", state.running),
    );
    text.simple(
        (
            "num_requests_waiting",
            "gauge",
            "Number of requests waiting to be processed.",
        ),
        &format!("{}.0", state.waiting),
    );
    text.simple(
        (
            "kv_cache_usage_perc",
            "gauge",
            "KV-cache usage. 1 means 100 percent usage.",
        ),
        &format!("{:?}", state.kv_usage),
    );
    text.cache_config(page.profile, page.kv_blocks);
    text.cache_totals(page.stats);
    text.totals(page.stats);
    text.histograms(page.stats);
    let (start, cpu) = (page.process_start, page.process_cpu);
    let out = &mut text.out;
    write!(
        out,
        "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n\
         # TYPE process_start_time_seconds gauge\n\
         process_start_time_seconds {start:?}\n\
         # HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.\n\
         # TYPE process_cpu_seconds_total counter\n\
         process_cpu_seconds_total {cpu:?}\n"
    )
    .expect(NEVER);
    text.out
}

struct Text {
    out: String,
    /// Escaped.
    model: String,
}

impl Text {
    /// What the KV cache is like, told in labels.
    fn cache_config(&mut self, profile: &Profile, blocks: u32) {
        self.head((
            "cache_config_info",
            "gauge",
            "Information of the LLMEngine CacheConfig",
        ));
        let block = profile.block_tokens;
        let reuses = if profile.prefix_caching {
            "True"
        } else {
            "False"
        };
        writeln!(
            self.out,
            r#"vllm:cache_config_info{{block_size="{block}",enable_prefix_caching="{reuses}",engine="0",num_gpu_blocks="{blocks}"}} 1.0"#
        )
        .expect(NEVER);
    }

    fn cache_totals(&mut self, stats: &Stats) {
        let totals = [
            (
                "prefix_cache_queries_total",
                "Prefix cache queries, in terms of number of queried tokens.",
                stats.prefix_queries,
            ),
            (
                "prefix_cache_hits_total",
                "Prefix cache hits, in terms of number of cached tokens.",
                stats.prefix_hits,
            ),
            (
                "num_preemptions_total",
                "Cumulative number of preemption from the engine.",
                stats.preemptions,
            ),
        ];
        for (name, help, count) in totals {
            self.simple((name, "counter", help), &format!("{count}.0"));
        }
    }

    fn totals(&mut self, stats: &Stats) {
        self.simple(
            (
                "prompt_tokens_total",
                "counter",
                "Number of prefill tokens processed.",
            ),
            &format!("{}.0", stats.prompt_tokens),
        );
        self.simple(
            (
                "generation_tokens_total",
                "counter",
                "Number of generation tokens processed.",
            ),
            &format!("{}.0", stats.generation_tokens),
        );
        self.head((
            "request_success_total",
            "counter",
            "Count of successfully processed requests.",
        ));
        let reasons = [
            ("stop", stats.stopped),
            ("length", stats.reached_length),
            ("abort", stats.aborted),
            ("error", 0),
        ];
        for (reason, count) in reasons {
            let model = &self.model;
            writeln!(
                self.out,
                r#"vllm:request_success_total{{engine="0",finished_reason="{reason}",model_name="{model}"}} {count}.0"#
            )
            .expect(NEVER);
        }
    }

    fn histograms(&mut self, stats: &Stats) {
        self.histogram(
            (
                "time_to_first_token_seconds",
                "histogram",
                "Histogram of time to first token in seconds.",
            ),
            &stats.ttft,
        );
        self.histogram(
            (
                "inter_token_latency_seconds",
                "histogram",
                "Histogram of inter-token latency in seconds.",
            ),
            &stats.itl,
        );
        self.histogram(
            (
                "e2e_request_latency_seconds",
                "histogram",
                "Histogram of e2e request latency in seconds.",
            ),
            &stats.e2e,
        );
        let parts = [
            (
                "request_queue_time_seconds",
                "Histogram of time spent in WAITING phase for request.",
                &stats.queue,
            ),
            (
                "request_inference_time_seconds",
                "Histogram of time spent in RUNNING phase for request.",
                &stats.inference,
            ),
            (
                "request_prefill_time_seconds",
                "Histogram of time spent in PREFILL phase for request.",
                &stats.prefill,
            ),
            (
                "request_decode_time_seconds",
                "Histogram of time spent in DECODE phase for request.",
                &stats.decode,
            ),
        ];
        for (name, help, values) in parts {
            self.histogram((name, "histogram", help), values);
        }
    }

    fn head(&mut self, (name, kind, help): Family) {
        write!(
            self.out,
            "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}\n"
        )
        .expect(NEVER);
    }

    fn simple(&mut self, family: Family, value: &str) {
        self.head(family);
        let (name, model) = (family.0, &self.model);
        writeln!(
            self.out,
            r#"vllm:{name}{{engine="0",model_name="{model}"}} {value}"#
        )
        .expect(NEVER);
    }

    fn histogram(&mut self, family: Family, values: &BucketCounts) {
        self.head(family);
        let (name, model, out) = (family.0, &self.model, &mut self.out);
        let count = values.count();
        for (bound, below) in values.cumulative() {
            writeln!(
                out,
                r#"vllm:{name}_bucket{{engine="0",le="{bound:?}",model_name="{model}"}} {below}.0"#
            )
            .expect(NEVER);
        }
        let sum = values.sum().as_secs_f64();
        write!(
            out,
            "vllm:{name}_bucket{{engine=\"0\",le=\"+Inf\",model_name=\"{model}\"}} {count}.0\n\
             vllm:{name}_count{{engine=\"0\",model_name=\"{model}\"}} {count}.0\n\
             vllm:{name}_sum{{engine=\"0\",model_name=\"{model}\"}} {sum:?}\n"
        )
        .expect(NEVER);
    }
}
