//! The key table: every key of this version with what it wants, and the keys that are planned.
//!
//! A key that is in neither list is unknown. One that is planned is refused too, with other
//! words, so that nothing is accepted and ignored. `docs/configuration.md` describes each key
//! of this table; a test holds the two together.

mod otlp;
mod workload;

pub(super) use otlp::{OTLP, OTLP_LOGS, OTLP_METRICS, OTLP_TLS, OTLP_TRACES, SAMPLING, TAIL};
pub(super) use workload::{
    AUDIO, IMAGES, KNOWN_ANSWERS, PREFIXES, PROMPT_FILE, SYNTHETIC, WORKLOAD,
};

/// A key that can be set.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What its value must be, for messages.
    pub(super) wanted: &'static str,
}

/// The keys of one section.
pub(super) struct Table {
    /// Where the section stands, for messages; empty at the top.
    pub(super) at: &'static str,
    pub(super) keys: &'static [Key],
    /// Planned keys.
    pub(super) later: &'static [&'static str],
}

const fn key(name: &'static str, wanted: &'static str) -> Key {
    Key { name, wanted }
}

pub(super) const TOP: Table = Table {
    at: "",
    keys: &[
        key("seed", "a whole number from `0` to `18446744073709551615`"),
        key("drain", "a duration, as in `4s`"),
        key("targets", "a list with at least one target"),
        key("probes", "a list with at least one probe"),
        key("governor", "a section"),
        key("export", "a section"),
    ],
    later: &[
        "state",
        "detection",
        "tap",
        "reload",
        "baselines",
        "alerts",
        "gpu",
        "node",
        "dashboards",
    ],
};

pub(super) const TARGET: Table = Table {
    at: "targets[]",
    keys: &[
        key("name", NAME),
        key("url", URL),
        key(
            "urls",
            "a list of URLs, as in `[http://a:8000, http://b:8000]`",
        ),
        key("balance", "`round_robin`, `random` or `least_in_flight`"),
        key("http", "`1.1`, `2` or `auto`"),
        key("tls", "a section, as in `{ ca: /etc/tls/ca.pem }`"),
        key("proxy", "a URL, as in `http://proxy:3128`, or a section"),
        key("address_family", "`any`, `ipv4` or `ipv6`"),
        key("reuse_for", "a duration, as in `5m`"),
        key("api", "the name of a protocol, as in `chat`"),
        key(
            "request",
            "a section, as in `{ length: max_completion_tokens }`",
        ),
        key(
            "tokenizer",
            "`words`, `{ json: PATH }` or `{ tiktoken: PATH }`",
        ),
        key("model", "the name of a model, as a text"),
        key("api_key", SECRET),
        key("headers", "a section of header names and their values"),
        key(
            "server_metrics",
            "`auto`, `off` or a URL, as in `http://127.0.0.1:8000/metrics`",
        ),
        key("server_metrics_every", "a duration, as in `5s`"),
        key(
            "gpu",
            "a section, as in `{ dcgm: http://node-7:9400/metrics, pod: vllm-0 }`",
        ),
        key(
            "node",
            "a URL, as in `http://node-7:9100/metrics`, or `this`",
        ),
        key("node_every", "a duration, as in `15s`"),
        key(
            "pod_info",
            "the path of a directory, as in `/etc/podinfo`, or a section",
        ),
        key("startup_grace", "a duration, as in `10m`, or `0s`"),
        key("warm_up", "a whole number from `0` to `1000`"),
    ],
    later: &["engine"],
};

pub(super) const GPU: Table = Table {
    at: "targets[].gpu",
    keys: &[
        key("dcgm", "a URL, as in `http://node-7:9400/metrics`"),
        key("amd", "a URL, as in `http://node-7:5000/metrics`"),
        key("nvml", "`true`"),
        key("pod", "the name of a pod, as in `vllm-0` or `vllm-*`"),
        key("namespace", "the namespace of the pod, as in `inference`"),
        key("host", "the name of a host, as in `node-7`"),
        key("index", "a list of numbers, as in `[0, 1]`"),
        key("every", "a duration, as in `10s`"),
    ],
    later: &["select", "container"],
};

pub(super) const POD_INFO: Table = Table {
    at: "targets[].pod_info",
    keys: &[
        key("dir", "the path of a directory"),
        key(
            "image_keys",
            "a list of keys, as in `[image, example.com/image-tag]`",
        ),
    ],
    later: &[],
};

pub(super) const TLS: Table = Table {
    at: "targets[].tls",
    keys: &[
        key("ca", PEM_CERTIFICATES),
        key("cert", PEM_CERTIFICATES),
        key("key", PEM_KEY),
        key("server_name", "a host name, as in `vllm.internal`"),
    ],
    later: &["insecure", "min_version"],
};

pub(super) const PROXY: Table = Table {
    at: "targets[].proxy",
    keys: &[
        key("url", "a URL, as in `http://proxy:3128`"),
        key("authorization", SECRET),
    ],
    later: &["no_proxy"],
};

pub(super) const REQUEST: Table = Table {
    at: "targets[].request",
    keys: &[
        key("path", "a path below the URL, as in `/v1/chat/completions`"),
        key("usage", "`true` or `false`"),
        key("length", "`max_tokens` or `max_completion_tokens`"),
        key("exact_length", "`true` or `false`"),
        key("extra", "a section of further fields of the body"),
        key("body", "the path of a text file"),
        key("text", "a JSON path, as in `$.choices[*].text`"),
    ],
    later: &[],
};

pub(super) const TOKENIZER: Table = Table {
    at: "targets[].tokenizer",
    keys: &[
        key("json", "the path of a `tokenizer.json`"),
        key("tiktoken", "the path of a file of tiktoken ranks"),
    ],
    later: &["gguf", "sentencepiece"],
};

pub(super) const PROBE: Table = Table {
    at: "probes[]",
    keys: &[
        key("name", NAME),
        key("targets", "a list of names of targets, as in `[qwen]`"),
        key("streaming", "`true` or `false`"),
        key("when_full", "`refuse` or `wait`"),
        key("connection", "`pooled`, `new` or `per_session`"),
        key("arrivals", A_PROCESS),
        key("prefill_concurrency", IN_FLIGHT),
        key("ramp", "a section, as in `{ rate: { over: 30s } }`"),
        key("cancel", "a section, as in `{ share: 10%, after: 2s }`"),
        key("phases", "a list with at least one phase"),
        key(
            "workload",
            "a section, as in `{ synthetic: { input_tokens: 128, output_tokens: 64 } }`",
        ),
        key(
            "limits",
            "a section, as in `{ first_token: 10s, total: 60s }`",
        ),
        key("stall", "a section, as in `{ factor: 10, floor: 250ms }`"),
        key(
            "slo",
            "a section, as in `{ ttft: 500ms at p95, success: 99% }`",
        ),
    ],
    later: &["expect", "quality", "priority"],
};

pub(super) const ARRIVALS: Table = Table {
    at: "probes[].arrivals",
    keys: &[
        key(
            "process",
            "`constant`, `poisson`, `gamma`, `burst`, `jitter`, `series`, `diurnal`, `users`, `fixed`, `trace` or `closed`",
        ),
        key("rate", "a rate, as in `0.2/s`, `12/min` or `100/h`"),
        key("smoothness", "a number from `0.001` to `1000`"),
        key("concurrency", IN_FLIGHT),
        key("size", IN_FLIGHT),
        key("every", "a duration, as in `30s`"),
        key("jitter", "a duration, as in `5s`"),
        key(
            "points",
            "a list, as in `[{ at: 0s, rate: 1/s }, { at: 10m, rate: 5/s }]`",
        ),
        key("rates", "a list of 24 rates, as in `0.2/s`"),
        key("gaps", "`constant`, `poisson` or `gamma`"),
        key("users", IN_FLIGHT),
        key("turns", "a whole number from `1` to `1000000`"),
        key("times", "a list of durations, as in `[0s, 1.5s, 2s]`"),
        key("from", "a duration, as in `10m`"),
        key("to", "a duration, as in `20m`"),
        key("shift", "`true` or `false`"),
        key("speed", "a number from `0.001` to `1000000`"),
        key("gap_cap", "a duration, as in `10s`"),
    ],
    later: &["think_time"],
};

pub(super) const POINT: Table = Table {
    at: "probes[].arrivals.points[]",
    keys: &[
        key("at", "a duration, as in `10m`"),
        key("rate", "a rate, as in `5/s`, or `0/s`"),
    ],
    later: &[],
};

pub(super) const PHASE: Table = Table {
    at: "probes[].phases[]",
    keys: &[
        key("name", NAME),
        key("kind", "`warm_up`, `profiling` or `cool_down`"),
        key("arrivals", A_PROCESS),
        key("prefill_concurrency", IN_FLIGHT),
        key("ramp", "a section, as in `{ rate: { over: 30s } }`"),
        key("cancel", "a section, as in `{ share: 10%, after: 2s }`"),
        key("requests", "a count, as in `500` or `50k`"),
        key("duration", "a duration, as in `10m`"),
        key("sessions", "a count, as in `500` or `50k`"),
        key("grace", "a duration, as in `30s`"),
        key("seamless", "`true` or `false`"),
    ],
    later: &["workload"],
};

pub(super) const RAMP: Table = Table {
    at: "probes[].ramp",
    keys: &[
        key("rate", A_RAMP),
        key("concurrency", A_RAMP),
        key("prefill_concurrency", A_RAMP),
    ],
    later: &[],
};

pub(super) const RAMP_OF: Table = Table {
    at: "probes[].ramp.rate",
    keys: &[
        key("from", "where it begins, in the unit of what it leads to"),
        key("over", "a duration, as in `30s`"),
        key("shape", "`linear`, `exponential` or `stepped`"),
        key("steps", "a whole number from `1` to `10000`"),
    ],
    later: &[],
};

pub(super) const CANCEL: Table = Table {
    at: "probes[].cancel",
    keys: &[
        key("share", "a percentage, as in `10%`"),
        key("after", "a duration, as in `2s`"),
    ],
    later: &[],
};

pub(super) const LIMITS: Table = Table {
    at: "probes[].limits",
    keys: &[
        key("connect", "a duration, as in `5s`"),
        key("first_token", "a duration, as in `10s`"),
        key("gap", "a duration, as in `15s`"),
        key("total", "a duration, as in `60s`"),
    ],
    later: &[],
};

pub(super) const STALL: Table = Table {
    at: "probes[].stall",
    keys: &[
        key("factor", "a number from `1` to `1000`"),
        key("floor", "a duration, as in `250ms`"),
    ],
    later: &[],
};

pub(super) const SLO: Table = Table {
    at: "probes[].slo",
    keys: &[
        key("ttft", A_LIMIT),
        key("ttfo", A_LIMIT),
        key("itl", A_LIMIT),
        key("service_time", A_LIMIT),
        key("response_ttft", A_LIMIT),
        key("response_time", A_LIMIT),
        key("success", "a percentage, as in `99%`"),
    ],
    later: &["chunk_gap", "output_rate"],
};

pub(super) const GOVERNOR: Table = Table {
    at: "governor",
    keys: &[
        key("requests_per_day", "a count, as in `50000` or `50k`"),
        key("tokens_per_day", "a count, as in `5000000` or `5M`"),
        key("in_flight", "a whole number from `1` to `100000`"),
    ],
    later: &[
        "yield_when",
        "breaker",
        "money_per_day",
        "hold_off",
        "heartbeat",
    ],
};

pub(super) const EXPORT: Table = Table {
    at: "export",
    keys: &[
        key("http", "a section, as in `{ listen: 127.0.0.1:9464 }`"),
        key(
            "otlp",
            "a section, as in `{ endpoint: http://127.0.0.1:4318 }`",
        ),
        key(
            "files",
            "a section, as in `{ dir: /var/lib/tokencanary/records }`",
        ),
    ],
    later: &["alertmanager", "webhooks", "prometheus"],
};

pub(super) const HTTP: Table = Table {
    at: "export.http",
    keys: &[key(
        "listen",
        "an address and a port, as in `127.0.0.1:9464`",
    )],
    later: &["tls", "auth", "bearer", "basic", "tap", "reload"],
};

pub(super) const FILES: Table = Table {
    at: "export.files",
    keys: &[
        key("dir", "the path of a directory"),
        key("max_size", "a size, as in `100MB` or `64KiB`"),
        key("keep", "a whole number from `1` to `10000`"),
    ],
    later: &["compress"],
};

/// What a name is made of.
pub(super) const NAME: &str = "1 to 64 letters, digits, `.`, `_` or `-`";
/// The two ways to name a secret.
pub(super) const SECRET: &str = "`{ env: NAME }` or `{ file: PATH }`";
const A_PROCESS: &str = "a section, as in `{ process: poisson, rate: 0.2/s }`";
const A_LIMIT: &str = "a limit and its objective, as in `500ms at p95`";
const A_RAMP: &str = "a section, as in `{ over: 30s, shape: exponential }`";
const IN_FLIGHT: &str = "a whole number from `1` to `100000`";
const URL: &str = "a URL, as in `http://127.0.0.1:8000`";
const PEM_CERTIFICATES: &str = "the path of a PEM file with certificates";
const PEM_KEY: &str = "the path of a PEM file with a private key";

/// All sections, to say where a key that stands in the wrong place belongs.
pub(super) const TABLES: [&Table; 36] = [
    &TOP,
    &TARGET,
    &GPU,
    &POD_INFO,
    &TLS,
    &PROXY,
    &REQUEST,
    &TOKENIZER,
    &PROBE,
    &ARRIVALS,
    &POINT,
    &PHASE,
    &RAMP,
    &RAMP_OF,
    &CANCEL,
    &WORKLOAD,
    &KNOWN_ANSWERS,
    &SYNTHETIC,
    &PROMPT_FILE,
    &PREFIXES,
    &IMAGES,
    &AUDIO,
    &LIMITS,
    &STALL,
    &SLO,
    &GOVERNOR,
    &EXPORT,
    &HTTP,
    &OTLP,
    &OTLP_TRACES,
    &OTLP_METRICS,
    &OTLP_LOGS,
    &OTLP_TLS,
    &SAMPLING,
    &TAIL,
    &FILES,
];

impl Table {
    /// What the value of `name` must be.
    pub(super) fn wanted(&self, name: &str) -> &'static str {
        let key = self.keys.iter().find(|key| key.name == name);
        key.map_or("", |key| key.wanted)
    }

    /// What someone who wrote the unknown key `name` here may have meant.
    pub(super) fn hint(&self, name: &str) -> String {
        let names = || self.keys.iter().map(|key| key.name);
        if let Some(near) = nearest(name, names()) {
            return format!("did you mean `{near}`");
        }
        let elsewhere = TABLES
            .iter()
            .find(|table| table.keys.iter().any(|key| key.name == name));
        match elsewhere {
            Some(table) if table.at.is_empty() => format!("`{name}` belongs to the top level"),
            Some(table) => format!("`{name}` belongs to `{}`", table.at),
            None => {
                let known: Vec<String> = names().map(|name| format!("`{name}`")).collect();
                format!("known here: {}", known.join(", "))
            }
        }
    }
}

/// The candidate with the fewest edits from `given`, if it is near enough to be meant.
pub(super) fn nearest<'a>(
    given: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    /// Longer texts are no slips of a known name.
    const LONGEST: usize = 64;
    if given.len() > LONGEST {
        return None;
    }
    candidates
        .map(|candidate| (distance(given, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= 1 + candidate.len() / 5)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and substitutions from `a` to `b`; letters of either case are alike.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(!x.eq_ignore_ascii_case(y));
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["targets", "probes", "governor", "export"];
        for (given, expected) in [
            ("target", Some("targets")),
            ("Probes", Some("probes")),
            ("goverment", None),
            ("govenor", Some("governor")),
            ("x", None),
        ] {
            assert_eq!(nearest(given, names.into_iter()), expected, "{given}");
        }
    }
}
