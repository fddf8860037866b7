//! What was known of server and GPUs at the instants of a request, as attributes.

use super::Attributes;
use crate::measurement::{GpuAt, GpuStates, Observed, StateAt};

/// Names of running and waiting requests, of the occupancy of the KV cache, and of the age of
/// the reading.
const AT_INTENDED: [&str; 4] = [
    "tokencanary.server.running",
    "tokencanary.server.waiting",
    "tokencanary.server.kv_usage",
    "tokencanary.server.age",
];
const AT_FIRST_TOKEN: [&str; 4] = [
    "tokencanary.server.first_token.running",
    "tokencanary.server.first_token.waiting",
    "tokencanary.server.first_token.kv_usage",
    "tokencanary.server.first_token.age",
];
const AT_END: [&str; 4] = [
    "tokencanary.server.end.running",
    "tokencanary.server.end.waiting",
    "tokencanary.server.end.kv_usage",
    "tokencanary.server.end.age",
];
/// Names of what is told of GPUs at one instant.
struct GpuKeys([&'static str; 9]);

const GPU_INTENDED: GpuKeys = GpuKeys([
    "tokencanary.gpu.utilization",
    "tokencanary.gpu.imbalance",
    "tokencanary.gpu.memory",
    "tokencanary.gpu.sm_clock",
    "tokencanary.gpu.power",
    "tokencanary.gpu.temperature",
    "tokencanary.gpu.throttled",
    "tokencanary.gpu.xid",
    "tokencanary.gpu.age",
]);
const GPU_FIRST_TOKEN: GpuKeys = GpuKeys([
    "tokencanary.gpu.first_token.utilization",
    "tokencanary.gpu.first_token.imbalance",
    "tokencanary.gpu.first_token.memory",
    "tokencanary.gpu.first_token.sm_clock",
    "tokencanary.gpu.first_token.power",
    "tokencanary.gpu.first_token.temperature",
    "tokencanary.gpu.first_token.throttled",
    "tokencanary.gpu.first_token.xid",
    "tokencanary.gpu.first_token.age",
]);

impl Attributes {
    /// The GPUs when the request was due, and at its first token.
    pub(super) fn gpus(&mut self, states: &GpuStates) {
        let told = [
            (&GPU_INTENDED, states.intended),
            (&GPU_FIRST_TOKEN, states.first_token),
        ];
        for (keys, state) in told {
            if let Some(state) = state {
                self.gpu(keys, &state);
            }
        }
    }

    fn gpu(&mut self, keys: &GpuKeys, at: &GpuAt) {
        let state = &at.state;
        let [
            utilization,
            imbalance,
            memory,
            clock,
            power,
            temperature,
            throttled,
            xid,
            age,
        ] = keys.0;
        self.number(utilization, state.utilization);
        self.number(imbalance, state.utilization_imbalance());
        self.number(memory, state.memory_max);
        self.number(clock, state.sm_clock_hz);
        self.number(power, state.power_w);
        self.number(temperature, state.temperature_c);
        if let Some(lowered) = state.throttled {
            self.put(throttled, lowered);
        }
        if let Some(number) = state.xid {
            self.put(xid, i64::from(number));
        }
        self.put(age, at.age_ms / 1e3);
    }
}

impl Attributes {
    /// The server when the request was due, at its first token and at its end.
    pub(super) fn servers(&mut self, observed: &Observed) {
        if let Some(state) = &observed.at_intended {
            self.server(state, &AT_INTENDED);
            self.number("tokencanary.server.swapped", state.swapped);
            let hits = state.prefix_hit_rate;
            self.number("tokencanary.server.prefix_hit_rate", hits);
        }
        if let Some(state) = &observed.at_first_token {
            self.server(state, &AT_FIRST_TOKEN);
        }
        if let Some(state) = &observed.at_end {
            self.server(state, &AT_END);
        }
    }

    fn server(&mut self, state: &StateAt, names: &[&'static str; 4]) {
        let [running, waiting, kv_usage, age] = *names;
        self.number(running, state.running);
        self.number(waiting, state.waiting);
        self.number(kv_usage, state.kv_usage);
        self.put(age, state.age_ms / 1e3);
    }
}
