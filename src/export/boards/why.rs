//! The board of causes: what a stream met, what its server, the GPUs and we ourselves did then,
//! on one time axis.

use super::Board;
use super::board::{Head, Row, build, one_stream};
use super::panel::Panel;
use super::query::{self, STREAM, TARGET};
use crate::export::catalog::{
    DIAGNOSIS, GPU_DRAM_ACTIVE, GPU_ENERGY_PER_REQUEST, GPU_ENERGY_PER_TOKEN, GPU_IMBALANCE,
    GPU_POWER, GPU_SM_CLOCK, GPU_TENSOR_ACTIVE, GPU_THROTTLED, GPU_XID, HOST_PRESSURE,
    HW_GPU_MEMORY_LIMIT, HW_GPU_MEMORY_USAGE, HW_GPU_UTILIZATION, IN_FLIGHT, ITL, Metric,
    NODE_OFF_NODE, SCHEDULE_LAG, SERVER_CPU_LIMIT, SERVER_CPU_PERIODS,
    SERVER_CPU_THROTTLED_PERIODS, SERVER_GROUP_MEMORY, SERVER_GROUP_MEMORY_LIMIT, SERVER_KV_USAGE,
    SERVER_KV_USAGE_MAX, SERVER_LATENCY, SERVER_OOM_KILLS, SERVER_OUTSIDE, SERVER_OUTSIDE_ERROR,
    SERVER_PREEMPTIONS, SERVER_PREFIX_HIT, SERVER_PRESSURE, SERVER_PROCESS_CPU,
    SERVER_PROCESS_MEMORY, SERVER_RUNNING, SERVER_SUSPECT, SERVER_SWAPPED, SERVER_TOKENS,
    SERVER_WAITING, TTFT,
};
use crate::export::rules::Quantile;

pub(super) fn board() -> Board {
    let head = Head {
        name: "why",
        title: "tokencanary / Why",
        description: "One stream, its server, the GPUs and the canary itself on one time axis, with the causes that were found.",
    };
    let row = |title, panels| Row { title, panels };
    let rows = [
        row("Causes", causes()),
        row("Client and server", times()),
        row("Engine", engine()),
        row("GPUs", gpus()),
        row("The server's processes", processes()),
        row("The canary and what it reads", own()),
    ];
    build(&head, &one_stream(), &rows)
}

/// The largest value of the target by some labels.
fn of(metric: &Metric, by: &str) -> String {
    format!("max by ({by}) ({}{TARGET})", metric.prometheus)
}

fn causes() -> Vec<Panel> {
    vec![
        Panel::lines(
            "none",
            "Causes",
            "1 possible, 2 likely, 3 strong; 0 not any more. A cause that was never found has no line. docs/diagnosis.md says what each one takes.",
        )
        .query(
            "{{cause}}",
            format!("max by (cause) ({}{STREAM})", DIAGNOSIS.prometheus),
        )
        .wide(24),
    ]
}

/// What a mean of the server is called.
fn mean(kind: &str) -> String {
    format!(
        "max({}{{target=~\"$target\", of=\"{kind}\"}})",
        SERVER_LATENCY.prometheus
    )
}

fn times() -> Vec<Panel> {
    let stream = |metric| (metric, STREAM);
    vec![
        Panel::lines(
            "s",
            "Time to first token",
            "Ours as a median, the server's own as a mean over all its users. Where only ours rises, look outside the server.",
        )
        .quantile(("ours, p50", Quantile::P50), stream(&TTFT), &[])
        .query("server, mean", mean("ttft"))
        .query("queue, mean", mean("queue"))
        .query("prefill, mean", mean("prefill")),
        Panel::lines(
            "s",
            "Outside the server",
            "Mean time to first token of ours less its own: network, gateway, proxy. The dashed lines say how far it may be off.",
        )
        .query("outside", of(&SERVER_OUTSIDE, "target"))
        .query(
            "at most",
            format!(
                "max({0}{TARGET}) + max({1}{TARGET})",
                SERVER_OUTSIDE.prometheus, SERVER_OUTSIDE_ERROR.prometheus
            ),
        )
        .query(
            "at least",
            format!(
                "max({0}{TARGET}) - max({1}{TARGET})",
                SERVER_OUTSIDE.prometheus, SERVER_OUTSIDE_ERROR.prometheus
            ),
        ),
        Panel::lines(
            "s",
            "Time between tokens",
            "Ours as a median, the server's own as a mean over all its users.",
        )
        .quantile(("ours, p50", Quantile::P50), stream(&ITL), &[])
        .query("server, mean", mean("itl"))
        .query("server, mean per request", mean("tpot")),
    ]
}

fn engine() -> Vec<Panel> {
    vec![
        Panel::lines(
            "none",
            "Running and waiting",
            "Requests the server says it executes, queues and has moved to its host; and ours in flight.",
        )
        .query("running", of(&SERVER_RUNNING, "target"))
        .query("waiting", of(&SERVER_WAITING, "target"))
        .query("swapped", of(&SERVER_SWAPPED, "target"))
        .query("ours in flight", of(&IN_FLIGHT, "target")),
        Panel::lines("percentunit", "KV cache", SERVER_KV_USAGE.help)
            .query("used", of(&SERVER_KV_USAGE, "target"))
            .query("of the fullest rank", of(&SERVER_KV_USAGE_MAX, "target")),
        Panel::lines("none", "Preemptions", SERVER_PREEMPTIONS.help)
            .query("in a minute", of(&SERVER_PREEMPTIONS, "target")),
        Panel::lines("none", "Tokens per second", SERVER_TOKENS.help)
            .query("{{type}}", of(&SERVER_TOKENS, "type")),
        Panel::lines("percentunit", "Prefix cache", SERVER_PREFIX_HIT.help)
            .query("hits", of(&SERVER_PREFIX_HIT, "target")),
    ]
}

fn gpus() -> Vec<Panel> {
    let each = |metric: &Metric| of(metric, "gpu");
    let line = |unit, title, metric: &Metric| {
        Panel::lines(unit, title, metric.help).query("{{gpu}}", each(metric))
    };
    vec![
        line("percentunit", "Utilisation", &HW_GPU_UTILIZATION),
        Panel::lines("percentunit", "Memory in use", "Of each GPU's memory.").query(
            "{{gpu}}",
            format!(
                "{} / {}",
                each(&HW_GPU_MEMORY_USAGE),
                each(&HW_GPU_MEMORY_LIMIT)
            ),
        ),
        line("hertz", "Clock", &GPU_SM_CLOCK),
        Panel::lines("none", "Held down, and errors", "1 while clocks are lowered for heat, by a power brake or by hardware; and the number of the last XID.")
            .query("held down {{gpu}}", each(&GPU_THROTTLED))
            .query("XID {{gpu}}", each(&GPU_XID)),
        Panel::lines("percentunit", "Memory and tensor cores", "Shares of cycles. Memory near 0.8 and tensor cores low: decoding is bound by bandwidth.")
            .query("memory {{gpu}}", each(&GPU_DRAM_ACTIVE))
            .query("tensor cores {{gpu}}", each(&GPU_TENSOR_ACTIVE)),
        Panel::lines("percentunit", "Imbalance", GPU_IMBALANCE.help)
            .query("{{of}}", of(&GPU_IMBALANCE, "of")),
        line("watt", "Power", &GPU_POWER),
        Panel::lines("joule", "Energy per output token", "Of all GPUs of the target, idle or not, over all tokens that its server counts, in the last minute. Our own requests are some of these.")
            .query("from {{source}}", of(&GPU_ENERGY_PER_TOKEN, "source")),
        Panel::lines("joule", "Energy per request", "Of all GPUs of the target, idle or not, over all requests that ended in the last minute.")
            .query("from {{source}}", of(&GPU_ENERGY_PER_REQUEST, "source")),
    ]
}

/// What is known of a server on the machine of its canary (`node: this`).
fn processes() -> Vec<Panel> {
    let grows = |metric, by: &str| query::rate(metric, TARGET, &[by]);
    vec![
        Panel::lines("none", "Processors of the server", "How many its processes use, and how many their control group may.")
            .query("used", grows(&SERVER_PROCESS_CPU, "target"))
            .query("limit", of(&SERVER_CPU_LIMIT, "target")),
        Panel::lines("percentunit", "Server held back", "Share of the periods of that limit in which it was throttled.").query(
            "of periods",
            format!(
                "{} / {}",
                grows(&SERVER_CPU_THROTTLED_PERIODS, "target"),
                grows(&SERVER_CPU_PERIODS, "target")
            ),
        ),
        Panel::lines("percentunit", "Server waiting", SERVER_PRESSURE.help)
            .query("for {{resource}}", grows(&SERVER_PRESSURE, "resource")),
        Panel::lines("bytes", "Memory of the server", "Of its processes, where what several share counts for each; of its control group; and the limit of that.")
            .query("processes", of(&SERVER_PROCESS_MEMORY, "target"))
            .query("control group", of(&SERVER_GROUP_MEMORY, "target"))
            .query("limit", of(&SERVER_GROUP_MEMORY_LIMIT, "target")),
        Panel::lines("none", "Killed for want of memory", SERVER_OOM_KILLS.help)
            .query("processes", query::increase(&SERVER_OOM_KILLS, TARGET, &["target"])),
        Panel::lines("percentunit", "Memory from another node", NODE_OFF_NODE.help)
            .query("{{of}}", of(&NODE_OFF_NODE, "of")),
    ]
}

fn own() -> Vec<Panel> {
    vec![
        Panel::lines(
            "s",
            "Own lag",
            "How late we were ourselves. Where this is not far below the latencies, the server is not to blame.",
        )
        .quantile(("p50", Quantile::P50), (&SCHEDULE_LAG, STREAM), &[])
        .quantile(("p95", Quantile::P95), (&SCHEDULE_LAG, STREAM), &[]),
        Panel::lines("percentunit", "Pressure on our machine", HOST_PRESSURE.help).query(
            "{{of}} {{resource}} {{waiting}}",
            query::rate(&HOST_PRESSURE, "", &["of", "resource", "waiting"]),
        ),
        Panel::lines("none", "Pages that cannot be believed", SERVER_SUSPECT.help)
            .query("{{mark}}", of(&SERVER_SUSPECT, "mark")),
    ]
}
