//! The one list of all metrics that leave the program.
//!
//! Each has one OpenTelemetry name; its Prometheus name is the standard translation of name,
//! unit and kind (a test derives it). Every renderer takes names, types and help from here;
//! nothing that is not here is exported. `docs/metrics.md` shows the same list. The values are
//! made in `aggregate` and `telemetry`.

use crate::aggregate::grid::ClassicRange;
use crate::aggregate::{Convention, Measure};

/// What a metric's values do over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution; its classic bounds.
    Histogram(ClassicRange),
}

/// Which labels all series of a metric carry before their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// [`STREAM_LABELS`].
    Stream,
    /// [`TARGET_LABELS`].
    Target,
    /// None: it is about the whole program.
    Program,
}

/// The labels of a stream; `model` is left out while it is not known.
pub const STREAM_LABELS: [&str; 7] = [
    "target",
    "endpoint",
    "probe",
    "model",
    "api",
    "cache",
    "connection",
];

/// The labels of a target.
pub const TARGET_LABELS: [&str; 1] = ["target"];

/// The labels of one GPU: its number, and what its maker calls it where that is known.
const GPU_LABELS: [&str; 2] = ["gpu", "hw_id"];

/// What the conventions want of a client's histogram, beside what a stream's labels say already.
const GENAI_LABELS: [&str; 3] = [
    "gen_ai_operation_name",
    "gen_ai_provider_name",
    "error_type",
];
const GENAI_USAGE_LABELS: [&str; 3] = [
    "gen_ai_operation_name",
    "gen_ai_provider_name",
    "gen_ai_token_modality",
];
const LEGACY_USAGE_LABELS: [&str; 4] = [
    "gen_ai_operation_name",
    "gen_ai_provider_name",
    "error_type",
    "gen_ai_token_type",
];

/// One metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// OpenTelemetry name.
    pub name: &'static str,
    /// Prometheus name.
    pub prometheus: &'static str,
    /// What its values do over time.
    pub kind: Kind,
    /// Unit in UCUM; empty for 0/1 flags and plain numbers.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Labels of all its series.
    pub scope: Scope,
    /// Further Prometheus label names.
    pub labels: &'static [&'static str],
}

impl Metric {
    const fn new(kind: Kind, scope: Scope, names: [&'static str; 3], help: &'static str) -> Self {
        let [name, unit, prometheus] = names;
        Self {
            name,
            prometheus,
            kind,
            unit,
            help,
            scope,
            labels: &[],
        }
    }

    /// A histogram per stream with classic bounds from 2^(`from`/2) to 2^(`to`/2).
    const fn per_stream(
        (from, to): (i16, i16),
        names: [&'static str; 3],
        help: &'static str,
    ) -> Self {
        let kind = Kind::Histogram(ClassicRange::new(from, to));
        Self::new(kind, Scope::Stream, names, help)
    }

    const fn counter(scope: Scope, names: [&'static str; 3], help: &'static str) -> Self {
        Self::new(Kind::Counter, scope, names, help)
    }

    const fn gauge(scope: Scope, names: [&'static str; 3], help: &'static str) -> Self {
        Self::new(Kind::Gauge, scope, names, help)
    }

    const fn with(mut self, labels: &'static [&'static str]) -> Self {
        self.labels = labels;
        self
    }
}

macro_rules! metrics {
    ($($name:ident = $metric:expr;)*) => {
        $(
            #[doc = concat!("See [`Metric::help`] of `", stringify!($name), "`.")]
            pub static $name: Metric = $metric;
        )*

        /// Every metric, in the order of exported pages.
        pub static ALL: &[&Metric] = &[$(&$name),*];
    };
}

use Scope::{Program, Stream, Target};

metrics! {
    TTFT = Metric::per_stream((-16, 13), ["tokencanary.request.ttft", "s", "tokencanary_request_ttft_seconds"],
        "Time from start to the first token of any channel, ok requests");
    TTFO = Metric::per_stream((-16, 13), ["tokencanary.request.ttfo", "s", "tokencanary_request_ttfo_seconds"],
        "Time from start to the first token that is not reasoning, ok requests");
    ITL = Metric::per_stream((-24, 4), ["tokencanary.request.itl", "s", "tokencanary_request_itl_seconds"],
        "Mean time between the tokens of one request, ok requests");
    CHUNK_GAP = Metric::per_stream((-22, 7), ["tokencanary.request.chunk_gap", "s", "tokencanary_request_chunk_gap_seconds"],
        "Time between two successive chunks that carry tokens, ok requests");
    SERVICE_TIME = Metric::per_stream((-12, 17), ["tokencanary.request.service_time", "s", "tokencanary_request_service_time_seconds"],
        "Time from start to the last token, ok requests");
    RESPONSE_TTFT = Metric::per_stream((-16, 13), ["tokencanary.request.response_ttft", "s", "tokencanary_request_response_ttft_seconds"],
        "Time from when the request was due to its first token, ok requests");
    RESPONSE_TIME = Metric::per_stream((-12, 17), ["tokencanary.request.response_time", "s", "tokencanary_request_response_time_seconds"],
        "Time from when the request was due to its last token, ok requests");
    CONNECT_TIME = Metric::per_stream((-26, 3), ["tokencanary.request.connect_time", "s", "tokencanary_request_connect_time_seconds"],
        "DNS, TCP and TLS of new connections, ok requests");
    TTFT_OR_FAILURE = Metric::per_stream((-16, 13), ["tokencanary.request.ttft_or_failure", "s", "tokencanary_request_ttft_or_failure_seconds"],
        "TTFT where a failed request counts as infinite");
    RESPONSE_TIME_OR_FAILURE = Metric::per_stream((-12, 17), ["tokencanary.request.response_time_or_failure", "s", "tokencanary_request_response_time_or_failure_seconds"],
        "Response time where a failed request counts as infinite");
    OUTPUT_RATE = Metric::per_stream((0, 24), ["tokencanary.request.output_rate", "{token}/s", "tokencanary_request_output_rate_per_second"],
        "Output tokens per second of the decode phase, ok requests");
    SCHEDULE_LAG = Metric::per_stream((-30, -1), ["tokencanary.schedule.lag", "s", "tokencanary_schedule_lag_seconds"],
        "Our own delay: from when a request could have started to its start");
    READ_LAG = Metric::per_stream((-30, -1), ["tokencanary.read.lag", "s", "tokencanary_read_lag_seconds"],
        "Our own delay: from the kernel's receive to our read");
    SLOT_WAIT = Metric::per_stream((-20, 9), ["tokencanary.slot_wait", "s", "tokencanary_slot_wait_seconds"],
        "The server's delay: from when a request was due to a free slot");
    GENAI_DURATION = Metric::per_stream((-12, 17), ["gen_ai.client.inference.duration", "s", "gen_ai_client_inference_duration_seconds"],
        "Duration of a request, start to the end of its stream, failed ones too").with(&GENAI_LABELS);
    GENAI_FIRST_CHUNK = Metric::per_stream((-16, 13), ["gen_ai.client.inference.time_to_first_chunk", "s", "gen_ai_client_inference_time_to_first_chunk_seconds"],
        "Time from start to the first event of any kind, streams only").with(&GENAI_LABELS);
    GENAI_OUTPUT_CHUNK = Metric::per_stream((-22, 7), ["gen_ai.client.inference.time_per_output_chunk", "s", "gen_ai_client_inference_time_per_output_chunk_seconds"],
        "Time from the end of one output chunk to the end of the next, streams only").with(&GENAI_LABELS);
    GENAI_INPUT_TOKENS = Metric::per_stream((0, 29), ["gen_ai.client.inference.operation.input_tokens", "{token}", "gen_ai_client_inference_operation_input_tokens"],
        "Input tokens of one request as the server counted them").with(&GENAI_LABELS);
    GENAI_OUTPUT_TOKENS = Metric::per_stream((0, 29), ["gen_ai.client.inference.operation.output_tokens", "{token}", "gen_ai_client_inference_operation_output_tokens"],
        "Output tokens of one request as the server counted them").with(&GENAI_LABELS);
    GENAI_USAGE_INPUT = Metric::counter(Stream, ["gen_ai.client.inference.usage.input_tokens", "{token}", "gen_ai_client_inference_usage_input_tokens_total"],
        "Input tokens of all requests").with(&GENAI_USAGE_LABELS);
    GENAI_USAGE_OUTPUT = Metric::counter(Stream, ["gen_ai.client.inference.usage.output_tokens", "{token}", "gen_ai_client_inference_usage_output_tokens_total"],
        "Output tokens of all requests").with(&GENAI_USAGE_LABELS);
    GENAI_USAGE_CACHED = Metric::counter(Stream, ["gen_ai.client.inference.usage.cache_read.input_tokens", "{token}", "gen_ai_client_inference_usage_cache_read_input_tokens_total"],
        "Input tokens that came from the server's prefix cache").with(&GENAI_USAGE_LABELS);
    GENAI_USAGE_REASONING = Metric::counter(Stream, ["gen_ai.client.inference.usage.reasoning.output_tokens", "{token}", "gen_ai_client_inference_usage_reasoning_output_tokens_total"],
        "Output tokens that are reasoning").with(&GENAI_USAGE_LABELS);
    LEGACY_DURATION = Metric::per_stream((-12, 17), ["gen_ai.client.operation.duration", "s", "gen_ai_client_operation_duration_seconds"],
        "Legacy name of gen_ai.client.inference.duration, by option in OTLP").with(&GENAI_LABELS);
    LEGACY_FIRST_CHUNK = Metric::per_stream((-16, 13), ["gen_ai.client.operation.time_to_first_chunk", "s", "gen_ai_client_operation_time_to_first_chunk_seconds"],
        "Legacy name of gen_ai.client.inference.time_to_first_chunk, by option in OTLP").with(&GENAI_LABELS);
    LEGACY_OUTPUT_CHUNK = Metric::per_stream((-22, 7), ["gen_ai.client.operation.time_per_output_chunk", "s", "gen_ai_client_operation_time_per_output_chunk_seconds"],
        "Legacy name of gen_ai.client.inference.time_per_output_chunk, by option in OTLP").with(&GENAI_LABELS);
    LEGACY_TOKEN_USAGE = Metric::per_stream((0, 29), ["gen_ai.client.token.usage", "{token}", "gen_ai_client_token_usage"],
        "Legacy form of the two histograms of tokens of one request, by option in OTLP").with(&LEGACY_USAGE_LABELS);
    ARRIVALS = Metric::counter(Stream, ["tokencanary.arrivals", "{request}", "tokencanary_arrivals_total"],
        "Requests that were due; each ends as exactly one record");
    ARRIVALS_REFUSED = Metric::counter(Stream, ["tokencanary.arrivals.refused", "{request}", "tokencanary_arrivals_refused_total"],
        "Arrivals that we held back").with(&["reason"]);
    REQUESTS = Metric::counter(Stream, ["tokencanary.requests", "{request}", "tokencanary_requests_total"],
        "Records by what became of them").with(&["outcome", "http_response_status_code"]);
    REQUESTS_LAGGED = Metric::counter(Stream, ["tokencanary.requests.lagged", "{request}", "tokencanary_requests_lagged_total"],
        "Records whose own lag is too large for a verdict");
    REQUESTS_EXCUSED = Metric::counter(Stream, ["tokencanary.requests.excused", "{request}", "tokencanary_requests_excused_total"],
        "Records that count for nobody, since they belong to a start of the server").with(&["result"]);
    CONNECTIONS_REPLACED = Metric::counter(Stream, ["tokencanary.connections.replaced", "{connection}", "tokencanary_connections_replaced_total"],
        "Pooled connections that the server had closed when a request was written on them, replaced by new ones");
    STATUSES_DROPPED = Metric::counter(Stream, ["tokencanary.requests.status_dropped", "{request}", "tokencanary_requests_status_dropped_total"],
        "Records counted without their HTTP status, because there were too many different ones");
    CHUNKS = Metric::counter(Stream, ["tokencanary.chunks", "{chunk}", "tokencanary_chunks_total"],
        "Chunks that carry tokens, by whether their instant is their own or that of later bytes of the same read").with(&["kind"]);
    STAMPS = Metric::counter(Stream, ["tokencanary.stamps", "{request}", "tokencanary_stamps_total"],
        "Records of responses by the clock of their instants").with(&["clock"]);
    RESPONSES_NOTED = Metric::counter(Stream, ["tokencanary.responses.noted", "{request}", "tokencanary_responses_noted_total"],
        "Records of responses that were odd in some way, once for each note").with(&["note"]);
    OUTPUT_LENGTH = Metric::counter(Stream, ["tokencanary.output_length", "{token}", "tokencanary_output_length_total"],
        "Output tokens of ok requests that asked for a number of them: asked for, and delivered").with(&["of"]);
    KNOWN_ANSWERS = Metric::counter(Stream, ["tokencanary.known_answers", "{request}", "tokencanary_known_answers_total"],
        "Questions of known answer by what their answers were worth; unjudged are those whose request did not end well").with(&["result"]);
    SLO_GOOD = Metric::counter(Stream, ["tokencanary.slo.good", "{request}", "tokencanary_slo_good_total"],
        "Requests that were good by one limit, by being answered (success), or by all of it: goodput (all)").with(&["slo"]);
    SLO_EVENTS = Metric::counter(Stream, ["tokencanary.slo.events", "{request}", "tokencanary_slo_events_total"],
        "Requests that count for or against the server: all but cancelled ones and refusals that are our doing").with(&["slo"]);
    SLO_OBJECTIVE = Metric::gauge(Stream, ["tokencanary.slo.objective", "1", "tokencanary_slo_objective_ratio"],
        "Share of requests that are to be good").with(&["slo"]);
    SLO_LIMIT = Metric::gauge(Stream, ["tokencanary.slo.limit", "s", "tokencanary_slo_limit_seconds"],
        "The most that a latency of a good request may be").with(&["slo"]);
    CERTIFICATE_EXPIRY = Metric::gauge(Stream, ["tokencanary.tls.certificate.expiry", "s", "tokencanary_tls_certificate_expiry_seconds"],
        "When the server's certificate expires, in seconds since the Unix epoch");
    LAST_SUCCESS = Metric::gauge(Stream, ["tokencanary.last_success.time", "s", "tokencanary_last_success_time_seconds"],
        "When the last ok request ended, in seconds since the Unix epoch");
    STALLS = Metric::counter(Stream, ["tokencanary.stalls", "{stall}", "tokencanary_stalls_total"],
        "Chunk gaps far above the median gap of their own request");
    TOKENS = Metric::counter(Stream, ["tokencanary.tokens", "{token}", "tokencanary_tokens_total"],
        "Tokens as the server counted them").with(&["type"]);
    WINDOWS_INCOMPLETE = Metric::counter(Stream, ["tokencanary.windows.incomplete", "{window}", "tokencanary_windows_incomplete_total"],
        "Windows of time that were closed before their last record came").with(&["window"]);
    WINDOWS_LATE = Metric::counter(Stream, ["tokencanary.windows.late", "{request}", "tokencanary_windows_late_total"],
        "Records that came after their window of time was closed").with(&["window"]);
    VALUES_REFUSED = Metric::counter(Stream, ["tokencanary.values.refused", "{value}", "tokencanary_values_refused_total"],
        "Values no histogram took, because they were negative or not a number");
    VALUES_CLAMPED = Metric::counter(Stream, ["tokencanary.values.clamped", "{value}", "tokencanary_values_clamped_total"],
        "Values outside the range of the histograms, counted in the first or last bucket").with(&["end"]);
    STRAYS = Metric::counter(Program, ["tokencanary.strays", "{item}", "tokencanary_strays_total"],
        "Records and samples of a stream or target that is not configured");
    STREAMS_LEFT_OUT = Metric::gauge(Program, ["tokencanary.streams.left_out", "{stream}", "tokencanary_streams_left_out"],
        "Streams that are in none of the metrics above, because there are more than 1000");
    DIAGNOSIS = Metric::gauge(Stream, ["tokencanary.diagnosis.confidence", "", "tokencanary_diagnosis_confidence"],
        "How surely a cause explains what is wrong with a stream now: 0 not any more, 1 possibly, 2 likely, 3 strongly; only causes that were found since the start").with(&["cause"]);
    SERVER_RUNNING = Metric::gauge(Target, ["tokencanary.server.running", "{request}", "tokencanary_server_running"],
        "Requests the server says it is executing");
    SERVER_WAITING = Metric::gauge(Target, ["tokencanary.server.waiting", "{request}", "tokencanary_server_waiting"],
        "Requests the server says are queued");
    SERVER_KV_USAGE = Metric::gauge(Target, ["tokencanary.server.kv_usage", "1", "tokencanary_server_kv_usage_ratio"],
        "Occupancy of the server's KV cache");
    SERVER_KV_USAGE_MAX = Metric::gauge(Target, ["tokencanary.server.kv_usage.max", "1", "tokencanary_server_kv_usage_max_ratio"],
        "Occupancy of the KV cache of the server's fullest rank");
    SERVER_SWAPPED = Metric::gauge(Target, ["tokencanary.server.swapped", "{request}", "tokencanary_server_swapped"],
        "Requests whose KV cache the server moved to the host");
    SERVER_PREFIX_HIT = Metric::gauge(Target, ["tokencanary.server.prefix_hit", "1", "tokencanary_server_prefix_hit_ratio"],
        "Share of prompt tokens that the server found in its prefix cache, over the last minute");
    SERVER_TOKENS = Metric::gauge(Target, ["tokencanary.server.tokens", "{token}/s", "tokencanary_server_tokens_per_second"],
        "Tokens of all its requests as the server counts them, over the last minute").with(&["type"]);
    SERVER_PREEMPTIONS = Metric::gauge(Target, ["tokencanary.server.preemptions", "{preemption}", "tokencanary_server_preemptions"],
        "Requests that the server took out of its batch for lack of memory, in the last minute");
    SERVER_LATENCY = Metric::gauge(Target, ["tokencanary.server.latency.mean", "s", "tokencanary_server_latency_mean_seconds"],
        "Mean of the server's own latencies over the last minute, all its requests").with(&["of"]);
    SERVER_OUTSIDE = Metric::gauge(Target, ["tokencanary.server.outside", "s", "tokencanary_server_outside_seconds"],
        "Our mean TTFT minus the server's over the last minute: what network, gateways and proxies take");
    SERVER_OUTSIDE_ERROR = Metric::gauge(Target, ["tokencanary.server.outside.error", "s", "tokencanary_server_outside_error_seconds"],
        "How far that difference may be off");
    SERVER_SUSPECT = Metric::gauge(Target, ["tokencanary.server.suspect", "", "tokencanary_server_suspect"],
        "1 where the server's metrics page is not plausible, by what is odd about it, over the last minute").with(&["mark"]);
    TARGET_STATE = Metric::gauge(Target, ["tokencanary.target.state", "", "tokencanary_target_state"],
        "1 for the state that an address of the target is in, 0 for the others").with(&["endpoint", "state"]);
    MARK_TIME = Metric::gauge(Target, ["tokencanary.mark.time", "s", "tokencanary_mark_time_seconds"],
        "When something last changed on the target, in seconds since the Unix epoch, by what it was").with(&["kind"]);
    SERVER_INFO = Metric::gauge(Target, ["tokencanary.server.info", "", "tokencanary_server_info"],
        "Always 1; whose metrics page the server has").with(&["engine"]);
    SERVER_SAMPLE_AGE = Metric::gauge(Target, ["tokencanary.server.sample.age", "s", "tokencanary_server_sample_age_seconds"],
        "Time since the server's metrics page was last read");
    GPU_COUNT = Metric::gauge(Target, ["tokencanary.gpus", "{gpu}", "tokencanary_gpus"],
        "GPUs that serve the target, or their instances");
    HW_GPU_UTILIZATION = Metric::gauge(Target, ["hw.gpu.utilization", "1", "hw_gpu_utilization_ratio"],
        "Share of time in which any kernel ran on the GPU").with(&GPU_LABELS);
    HW_GPU_MEMORY_USAGE = Metric::gauge(Target, ["hw.gpu.memory.usage", "By", "hw_gpu_memory_usage_bytes"],
        "Memory of the GPU in use").with(&GPU_LABELS);
    HW_GPU_MEMORY_LIMIT = Metric::gauge(Target, ["hw.gpu.memory.limit", "By", "hw_gpu_memory_limit_bytes"],
        "Memory of the GPU").with(&GPU_LABELS);
    GPU_MEMORY_ACTIVITY = Metric::gauge(Target, ["tokencanary.gpu.memory.activity", "1", "tokencanary_gpu_memory_activity_ratio"],
        "Share of time in which the GPU's memory was read or written").with(&GPU_LABELS);
    GPU_SM_CLOCK = Metric::gauge(Target, ["tokencanary.gpu.sm_clock", "Hz", "tokencanary_gpu_sm_clock_hertz"],
        "Clock of the GPU's multiprocessors").with(&GPU_LABELS);
    GPU_MEMORY_CLOCK = Metric::gauge(Target, ["tokencanary.gpu.memory_clock", "Hz", "tokencanary_gpu_memory_clock_hertz"],
        "Clock of the GPU's memory").with(&GPU_LABELS);
    GPU_THROTTLED = Metric::gauge(Target, ["tokencanary.gpu.throttled", "", "tokencanary_gpu_throttled"],
        "1 while the GPU's clocks are lowered for heat, by a power brake or by its hardware, 0 otherwise").with(&GPU_LABELS);
    GPU_POWER = Metric::gauge(Target, ["tokencanary.gpu.power", "W", "tokencanary_gpu_power_watts"],
        "Power of the GPU").with(&GPU_LABELS);
    GPU_TEMPERATURE = Metric::gauge(Target, ["tokencanary.gpu.temperature", "Cel", "tokencanary_gpu_temperature_celsius"],
        "Temperature of the GPU").with(&GPU_LABELS);
    GPU_XID = Metric::gauge(Target, ["tokencanary.gpu.xid", "", "tokencanary_gpu_xid"],
        "Number of the last error that the GPU's driver reported, 0 for none").with(&GPU_LABELS);
    GPU_SM_ACTIVE = Metric::gauge(Target, ["tokencanary.gpu.sm_active", "1", "tokencanary_gpu_sm_active_ratio"],
        "Share of the GPU's multiprocessors and cycles that had work").with(&GPU_LABELS);
    GPU_TENSOR_ACTIVE = Metric::gauge(Target, ["tokencanary.gpu.tensor_active", "1", "tokencanary_gpu_tensor_active_ratio"],
        "Share of cycles in which the GPU's tensor cores worked").with(&GPU_LABELS);
    GPU_DRAM_ACTIVE = Metric::gauge(Target, ["tokencanary.gpu.dram_active", "1", "tokencanary_gpu_dram_active_ratio"],
        "Share of cycles in which the GPU's memory moved data").with(&GPU_LABELS);
    GPU_IMBALANCE = Metric::gauge(Target, ["tokencanary.gpu.imbalance", "1", "tokencanary_gpu_imbalance_ratio"],
        "Difference between the GPU with the most and the one with the least, in share of time or of memory; absent with one GPU").with(&["of"]);
    GPU_ENERGY = Metric::counter(Target, ["tokencanary.gpu.energy", "J", "tokencanary_gpu_energy_joules_total"],
        "Energy of all GPUs of the target, as far as readings cover it");
    GPU_ENERGY_PER_TOKEN = Metric::gauge(Target, ["tokencanary.gpu.energy.per_output_token", "J/{token}", "tokencanary_gpu_energy_per_output_token_joules"],
        "Energy of all GPUs of the target, idle or not, for each output token of all its requests as the server counts them, over the last minute").with(&["source"]);
    GPU_ENERGY_PER_REQUEST = Metric::gauge(Target, ["tokencanary.gpu.energy.per_request", "J/{request}", "tokencanary_gpu_energy_per_request_joules"],
        "The same for each of all its requests that ended").with(&["source"]);
    GPU_SAMPLE_AGE = Metric::gauge(Target, ["tokencanary.gpu.sample.age", "s", "tokencanary_gpu_sample_age_seconds"],
        "Time since the state of the target's GPUs was last read");
    NODE_CPU_BUSY = Metric::gauge(Target, ["tokencanary.node.cpu.busy", "1", "tokencanary_node_cpu_busy_ratio"],
        "Share of the processors of the target's host that worked between the last two readings");
    NODE_CPU_WAITING = Metric::gauge(Target, ["tokencanary.node.cpu.waiting", "1", "tokencanary_node_cpu_waiting_ratio"],
        "Share of time in which some task of that host waited for a processor");
    NODE_MEMORY_WAITING = Metric::gauge(Target, ["tokencanary.node.memory.waiting", "1", "tokencanary_node_memory_waiting_ratio"],
        "Share of time in which some task of that host waited for memory");
    NODE_LOAD = Metric::gauge(Target, ["tokencanary.node.load", "{task}", "tokencanary_node_load"],
        "Tasks of that host that ran or wanted to, for each processor, mean of a minute");
    NODE_MEMORY_AVAILABLE = Metric::gauge(Target, ["tokencanary.node.memory.available", "1", "tokencanary_node_memory_available_ratio"],
        "Share of that host's memory that could be had without swapping");
    NODE_OFF_NODE = Metric::gauge(Target, ["tokencanary.node.numa.off_node", "1", "tokencanary_node_numa_off_node_ratio"],
        "Share of the memory pages given out on that host between the last two readings that came from another memory node than was wanted, or than the task ran on; absent with one node").with(&["of"]);
    NODE_SAMPLE_AGE = Metric::gauge(Target, ["tokencanary.node.sample.age", "s", "tokencanary_node_sample_age_seconds"],
        "Time since the target's host was last read");
    SERVER_PROCESSES = Metric::gauge(Target, ["tokencanary.server.processes", "{process}", "tokencanary_server_processes"],
        "Processes of the server, where it is on our machine");
    SERVER_PROCESS_START = Metric::gauge(Target, ["tokencanary.server.process.start_time", "s", "tokencanary_server_process_start_time_seconds"],
        "When the process of the server that listens was started, in seconds since the Unix epoch");
    SERVER_PROCESS_CPU = Metric::counter(Target, ["tokencanary.server.process.cpu.time", "s", "tokencanary_server_process_cpu_time_seconds_total"],
        "CPU time of the server's processes");
    SERVER_PROCESS_MEMORY = Metric::gauge(Target, ["tokencanary.server.process.memory", "By", "tokencanary_server_process_memory_bytes"],
        "Resident memory of the server's processes; what several share counts for each");
    SERVER_PROCESS_THREADS = Metric::gauge(Target, ["tokencanary.server.process.threads", "{thread}", "tokencanary_server_process_threads"],
        "Threads of the server's processes");
    SERVER_PROCESS_NODES = Metric::gauge(Target, ["tokencanary.server.process.numa_nodes", "{node}", "tokencanary_server_process_numa_nodes"],
        "Memory nodes that the least bound of the server's processes may use, for its processors or its memory; absent with one node").with(&["of"]);
    SERVER_CPU_LIMIT = Metric::gauge(Target, ["tokencanary.server.cgroup.cpu.limit", "{cpu}", "tokencanary_server_cgroup_cpu_limit"],
        "Processors that the server's control group may use; absent without a limit");
    SERVER_CPU_PERIODS = Metric::counter(Target, ["tokencanary.server.cgroup.cpu.periods", "{period}", "tokencanary_server_cgroup_cpu_periods_total"],
        "Periods in which that limit was enforced");
    SERVER_CPU_THROTTLED_PERIODS = Metric::counter(Target, ["tokencanary.server.cgroup.cpu.throttled_periods", "{period}", "tokencanary_server_cgroup_cpu_throttled_periods_total"],
        "Periods in which the server's control group was held back");
    SERVER_CPU_THROTTLED = Metric::counter(Target, ["tokencanary.server.cgroup.cpu.throttled", "s", "tokencanary_server_cgroup_cpu_throttled_seconds_total"],
        "Time for which the server's control group was held back");
    SERVER_GROUP_MEMORY = Metric::gauge(Target, ["tokencanary.server.cgroup.memory.usage", "By", "tokencanary_server_cgroup_memory_usage_bytes"],
        "Memory that the server's control group uses");
    SERVER_GROUP_MEMORY_LIMIT = Metric::gauge(Target, ["tokencanary.server.cgroup.memory.limit", "By", "tokencanary_server_cgroup_memory_limit_bytes"],
        "Memory that the server's control group may use; absent without a limit");
    SERVER_OOM_KILLS = Metric::counter(Target, ["tokencanary.server.cgroup.oom_kills", "{process}", "tokencanary_server_cgroup_oom_kills_total"],
        "Processes of the server's control group that were killed for want of memory");
    SERVER_PRESSURE = Metric::counter(Target, ["tokencanary.server.cgroup.pressure", "s", "tokencanary_server_cgroup_pressure_seconds_total"],
        "Time in which some task of the server's control group waited for a resource").with(&["resource"]);
    IN_FLIGHT = Metric::gauge(Target, ["tokencanary.in_flight", "{request}", "tokencanary_in_flight"],
        "Our requests in flight");
    IN_FLIGHT_LIMIT = Metric::gauge(Target, ["tokencanary.governor.in_flight.limit", "{request}", "tokencanary_governor_in_flight_limit"],
        "Most of our requests in flight at once");
    BUDGET_REQUESTS_USED = Metric::gauge(Program, ["tokencanary.budget.requests.used", "{request}", "tokencanary_budget_requests_used"],
        "Requests of this UTC day");
    BUDGET_REQUESTS_LIMIT = Metric::gauge(Program, ["tokencanary.budget.requests.limit", "{request}", "tokencanary_budget_requests_limit"],
        "Most requests per UTC day");
    BUDGET_TOKENS_USED = Metric::gauge(Program, ["tokencanary.budget.tokens.used", "{token}", "tokencanary_budget_tokens_used"],
        "Input and output tokens of this UTC day, reserved ones included");
    BUDGET_TOKENS_LIMIT = Metric::gauge(Program, ["tokencanary.budget.tokens.limit", "{token}", "tokencanary_budget_tokens_limit"],
        "Most input and output tokens per UTC day");
    EXPORT_ITEMS = Metric::counter(Program, ["tokencanary.export.items", "{item}", "tokencanary_export_items_total"],
        "Values by exporter and by what became of them; accepted = sent + rejected + dropped + failed once all is settled").with(&["exporter", "result"]);
    EXPORT_FAILURES = Metric::counter(Program, ["tokencanary.export.failures", "{request}", "tokencanary_export_failures_total"],
        "Tries to hand values to a receiver that failed, by reason").with(&["exporter", "reason"]);
    SCRAPES = Metric::counter(Program, ["tokencanary.scrapes", "{scrape}", "tokencanary_scrapes_total"],
        "Reads of a target's metrics page by result").with(&["target", "result"]);
    GPU_SCRAPES = Metric::counter(Program, ["tokencanary.gpu.scrapes", "{scrape}", "tokencanary_gpu_scrapes_total"],
        "Reads of the state of a target's GPUs by result").with(&["target", "result"]);
    NODE_SCRAPES = Metric::counter(Program, ["tokencanary.node.scrapes", "{scrape}", "tokencanary_node_scrapes_total"],
        "Reads of the page of a target's host by result").with(&["target", "result"]);
    SERVER_PROCESS_READS = Metric::counter(Program, ["tokencanary.server.process.reads", "{read}", "tokencanary_server_process_reads_total"],
        "Reads of the processes of a target's server by result").with(&["target", "result"]);
    BUILD_INFO = Metric::gauge(Program, ["tokencanary.build.info", "", "tokencanary_build_info"],
        "Always 1; the version is in its label").with(&["version"]);
    TARGET_INFO = Metric::gauge(Program, ["target.info", "", "target_info"],
        "Always 1; what all other metrics are of, as resource attributes of OpenTelemetry").with(&["service_name", "service_version", "service_instance_id"]);
    HOST_CPU_TIME = Metric::counter(Program, ["tokencanary.host.cpu.time", "s", "tokencanary_host_cpu_time_seconds_total"],
        "CPU time of the machine that tokencanary runs on, since that started, by mode").with(&["mode"]);
    HOST_CPUS = Metric::gauge(Program, ["tokencanary.host.cpus", "{cpu}", "tokencanary_host_cpus"],
        "Processors of the machine that tokencanary runs on");
    HOST_LOAD = Metric::gauge(Program, ["tokencanary.host.load", "{task}", "tokencanary_host_load"],
        "Tasks of that machine that run or want to, mean of a minute");
    HOST_MEMORY_TOTAL = Metric::gauge(Program, ["tokencanary.host.memory.total", "By", "tokencanary_host_memory_total_bytes"],
        "Memory of that machine");
    HOST_MEMORY_AVAILABLE = Metric::gauge(Program, ["tokencanary.host.memory.available", "By", "tokencanary_host_memory_available_bytes"],
        "Memory of that machine that could be had without swapping");
    HOST_PRESSURE = Metric::counter(Program, ["tokencanary.host.pressure", "s", "tokencanary_host_pressure_seconds_total"],
        "Time in which some tasks, or all that could run, waited for a resource, on the whole machine or in our control group").with(&["of", "resource", "waiting"]);
    HOST_NETWORK_IO = Metric::counter(Program, ["tokencanary.host.network.io", "By", "tokencanary_host_network_io_bytes_total"],
        "Bytes of all network interfaces of that machine but loopback").with(&["direction"]);
    HOST_NETWORK_LOST = Metric::counter(Program, ["tokencanary.host.network.lost", "{packet}", "tokencanary_host_network_lost_total"],
        "Packets of these interfaces that were dropped or broken").with(&["direction"]);
    HOST_TCP_SEGMENTS = Metric::counter(Program, ["tokencanary.host.tcp.segments", "{segment}", "tokencanary_host_tcp_segments_total"],
        "TCP segments that were sent from our network namespace");
    HOST_TCP_RETRANSMITS = Metric::counter(Program, ["tokencanary.host.tcp.retransmits", "{segment}", "tokencanary_host_tcp_retransmits_total"],
        "Those of them that had to be sent again");
    CGROUP_CPU_LIMIT = Metric::gauge(Program, ["tokencanary.cgroup.cpu.limit", "{cpu}", "tokencanary_cgroup_cpu_limit"],
        "Processors that our control group may use; absent without a limit");
    CGROUP_CPU_PERIODS = Metric::counter(Program, ["tokencanary.cgroup.cpu.periods", "{period}", "tokencanary_cgroup_cpu_periods_total"],
        "Periods in which that limit was enforced");
    CGROUP_CPU_THROTTLED_PERIODS = Metric::counter(Program, ["tokencanary.cgroup.cpu.throttled_periods", "{period}", "tokencanary_cgroup_cpu_throttled_periods_total"],
        "Periods in which our control group was held back");
    CGROUP_CPU_THROTTLED = Metric::counter(Program, ["tokencanary.cgroup.cpu.throttled", "s", "tokencanary_cgroup_cpu_throttled_seconds_total"],
        "Time for which our control group was held back");
    CGROUP_MEMORY_USAGE = Metric::gauge(Program, ["tokencanary.cgroup.memory.usage", "By", "tokencanary_cgroup_memory_usage_bytes"],
        "Memory that our control group uses");
    CGROUP_MEMORY_LIMIT = Metric::gauge(Program, ["tokencanary.cgroup.memory.limit", "By", "tokencanary_cgroup_memory_limit_bytes"],
        "Memory that our control group may use; absent without a limit");
    PROCESS_CPU = Metric::counter(Program, ["process.cpu", "s", "process_cpu_seconds_total"],
        "Total user and system CPU time spent in seconds.");
    PROCESS_MAX_FDS = Metric::gauge(Program, ["process.max_fds", "", "process_max_fds"],
        "Maximum number of open file descriptors.");
    PROCESS_OPEN_FDS = Metric::gauge(Program, ["process.open_fds", "", "process_open_fds"],
        "Number of open file descriptors.");
    PROCESS_RESIDENT_MEMORY = Metric::gauge(Program, ["process.resident_memory", "By", "process_resident_memory_bytes"],
        "Resident memory size in bytes.");
    PROCESS_START_TIME = Metric::gauge(Program, ["process.start_time", "s", "process_start_time_seconds"],
        "Start time of the process since unix epoch in seconds.");
    PROCESS_THREADS = Metric::gauge(Program, ["process.threads", "", "process_threads"],
        "Number of OS threads in the process.");
    PROCESS_VIRTUAL_MEMORY = Metric::gauge(Program, ["process.virtual_memory", "By", "process_virtual_memory_bytes"],
        "Virtual memory size in bytes.");
}

/// The metric that shows `measure`.
#[must_use]
pub fn of(measure: Measure) -> &'static Metric {
    match measure {
        Measure::Ttft => &TTFT,
        Measure::Ttfo => &TTFO,
        Measure::Itl => &ITL,
        Measure::ChunkGap => &CHUNK_GAP,
        Measure::ServiceTime => &SERVICE_TIME,
        Measure::ResponseTtft => &RESPONSE_TTFT,
        Measure::ResponseTime => &RESPONSE_TIME,
        Measure::ConnectTime => &CONNECT_TIME,
        Measure::TtftOrFailure => &TTFT_OR_FAILURE,
        Measure::ResponseTimeOrFailure => &RESPONSE_TIME_OR_FAILURE,
        Measure::OutputRate => &OUTPUT_RATE,
        Measure::ScheduleLag => &SCHEDULE_LAG,
        Measure::ReadLag => &READ_LAG,
        Measure::SlotWait => &SLOT_WAIT,
    }
}

/// The metric that shows `convention`.
#[must_use]
pub fn of_convention(convention: Convention) -> &'static Metric {
    match convention {
        Convention::Duration => &GENAI_DURATION,
        Convention::FirstChunk => &GENAI_FIRST_CHUNK,
        Convention::OutputChunk => &GENAI_OUTPUT_CHUNK,
        Convention::InputTokens => &GENAI_INPUT_TOKENS,
        Convention::OutputTokens => &GENAI_OUTPUT_TOKENS,
    }
}

/// What `metric` was in the conventions up to 1.41 of the core repository, and the type of tokens
/// that one metric of two is told apart by then. Metrics that are not of the conventions stay.
/// `None` for what was not there.
#[must_use]
pub fn legacy(metric: &'static Metric) -> Option<(&'static Metric, Option<&'static str>)> {
    let is = |other: &Metric| metric.name == other.name;
    match metric {
        _ if is(&GENAI_DURATION) => Some((&LEGACY_DURATION, None)),
        _ if is(&GENAI_FIRST_CHUNK) => Some((&LEGACY_FIRST_CHUNK, None)),
        _ if is(&GENAI_OUTPUT_CHUNK) => Some((&LEGACY_OUTPUT_CHUNK, None)),
        _ if is(&GENAI_INPUT_TOKENS) => Some((&LEGACY_TOKEN_USAGE, Some("input"))),
        _ if is(&GENAI_OUTPUT_TOKENS) => Some((&LEGACY_TOKEN_USAGE, Some("output"))),
        _ if metric.name.starts_with("gen_ai.") => None,
        _ => Some((metric, None)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The standard translation of an OpenTelemetry name to a Prometheus one.
    fn translated(metric: &Metric) -> String {
        let mut name = metric.name.replace('.', "_");
        let gauge = metric.kind == Kind::Gauge;
        let suffix = match metric.unit {
            "s" => "_seconds",
            "By" => "_bytes",
            "Hz" => "_hertz",
            "W" => "_watts",
            "J" | "J/{token}" | "J/{request}" => "_joules",
            "Cel" => "_celsius",
            "{token}/s" => "_per_second",
            "1" if gauge => "_ratio",
            "1" | "" => "",
            other if other.starts_with('{') => "",
            other => panic!("no translation of unit `{other}`"),
        };
        name.push_str(suffix);
        if metric.kind == Kind::Counter {
            name.push_str("_total");
        }
        name
    }

    #[test]
    fn prometheus_names_are_the_standard_translation() {
        for metric in ALL {
            assert_eq!(metric.prometheus, translated(metric), "of {}", metric.name);
        }
    }

    #[test]
    fn names_are_unique_and_every_measure_has_one() {
        let names: BTreeSet<_> = ALL.iter().map(|metric| metric.prometheus).collect();
        assert_eq!(names.len(), ALL.len());
        let shown: BTreeSet<_> = Measure::ALL.into_iter().map(|one| of(one).name).collect();
        assert_eq!(shown.len(), Measure::ALL.len());
    }
}
