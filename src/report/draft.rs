//! A configuration file for one server, with a comment for each key and what a look at the server
//! showed above them.
//!
//! Only text: whoever has looked hands in what was seen, and reads the text as any other
//! configuration before it is written anywhere. What a server or a command line said stands in it
//! as a quoted value, or in a comment that cannot end before its line does.

mod page;

use self::page::Page;
use super::yaml::{remark, scalar};
use crate::measurement::Api;
use crate::measurement::server::Engine;

/// Input tokens of a request.
const INPUT_TOKENS: u32 = 128;
/// Output tokens of a request; more than a few, so that the time between them is known.
const OUTPUT_TOKENS: u32 = 32;
/// Other models that are named.
const SHOWN: usize = 10;

/// What goes into the file.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Name of the target.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// Where its API key is.
    pub key: Option<KeyFrom>,
    /// File of the certificates that are trusted instead of the system's.
    pub ca: Option<String>,
    /// Its protocol.
    pub api: Api,
    /// The model to ask for.
    pub model: Option<String>,
    /// What requests look like.
    pub manner: Manner,
    /// How often it is asked, and how long is waited.
    pub pace: Pace,
    /// What the look showed, if there was one.
    pub seen: Option<Seen>,
    /// What a day takes, in sentences.
    pub plan: Vec<String>,
}

/// Where a secret is. It never stands in the file itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFrom {
    /// In the environment variable of this name.
    Env(String),
    /// In this file.
    File(String),
}

/// What requests look like, where that can differ from server to server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// Whether a stream is asked for, where the protocol has that.
    pub streaming: bool,
    /// Whether a stream is asked for usage.
    pub usage: bool,
    /// Whether an answer of exactly so many tokens is asked for.
    pub exact_length: bool,
    /// What the length is called in `chat`.
    pub length: LengthName,
}

/// What the length of an answer is called in `chat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthName {
    /// `max_tokens`.
    Tokens,
    /// `max_completion_tokens`.
    CompletionTokens,
}

impl Manner {
    /// That of a file which says nothing of it.
    pub const USUAL: Self = Self {
        streaming: true,
        usage: true,
        exact_length: true,
        length: LengthName::Tokens,
    };
}

/// How often a server is asked, by how fast it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As often as a p95 over five minutes needs.
    Usual,
    /// A request takes several seconds.
    Slow,
    /// A request takes more than a quarter of a minute.
    Rare,
}

impl Pace {
    const fn rate(self) -> &'static str {
        match self {
            Self::Usual => "6/min",
            Self::Slow => "1/min",
            Self::Rare => "10/h",
        }
    }

    const fn rate_why(self) -> &'static str {
        match self {
            Self::Usual => "at random instants, six a minute on average",
            Self::Slow => "few, since a request took more than 2 s",
            Self::Rare => "few, since a request took more than 15 s",
        }
    }

    const fn limits(self) -> &'static str {
        match self {
            Self::Usual => "{ connect: 5s, first_token: 10s, gap: 15s, total: 60s }",
            Self::Slow => "{ connect: 5s, first_token: 30s, gap: 30s, total: 2m }",
            Self::Rare => "{ connect: 5s, first_token: 5m, gap: 1m, total: 10m }",
        }
    }

    /// Requests and tokens per day, with some room above what the rate comes to.
    const fn budget(self) -> (&'static str, &'static str) {
        match self {
            Self::Usual => ("10000", "2M"),
            Self::Slow => ("2000", "300k"),
            Self::Rare => ("400", "60k"),
        }
    }
}

/// What a look at the server showed.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Which engine it is.
    pub engine: Option<Engine>,
    /// Its version.
    pub version: Option<String>,
    /// Models that it lists, beside the one that is asked for.
    pub others: Vec<String>,
    /// Its metrics page.
    pub page: PageSaid,
    /// What its answer said about the length; `None` where the protocol's answers have none.
    pub length: Option<LengthSaid>,
}

/// What became of reading the metrics page.
#[derive(Debug, Clone)]
pub enum PageSaid {
    /// It is read.
    Read {
        /// Its URL.
        url: String,
        /// Roles that the engine publishes elsewhere and this page lacks, each with the causes
        /// that cannot be told without.
        lacks: Vec<(&'static str, Vec<&'static str>)>,
        /// Likewise, those that the engine never publishes.
        never: Vec<(&'static str, Vec<&'static str>)>,
    },
    /// It is not.
    NotRead {
        /// What was asked for first.
        url: String,
        /// What came.
        result: &'static str,
    },
}

/// What an answer said about its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthSaid {
    /// It was as long as asked for.
    Exact,
    /// It was shorter, though the server took the request.
    Ignored,
    /// The server refuses to be asked.
    Refused,
    /// The protocol has no way to ask.
    NotAsked,
    /// Nobody counted its tokens.
    Untold,
}

/// The file.
#[must_use]
pub fn canary_file(draft: &Draft) -> String {
    let mut page = Page::default();
    page.say("", "Written by `tokencanary init`. `tokencanary check -c FILE` asks the server again and prints the plan, `tokencanary run -c FILE` is the daemon. docs/configuration.md describes every key.");
    if let Some(seen) = &draft.seen {
        page.rule();
        page.say("", "What a look at the server showed:");
        for told in told(draft, seen) {
            page.say("- ", &told);
        }
    }
    if !draft.plan.is_empty() {
        page.rule();
        page.say(
            "",
            "What it costs, if all is answered; a price per token is not known here:",
        );
        for sentence in &draft.plan {
            page.say("- ", sentence);
        }
    }
    page.gap();
    target(&mut page, draft);
    page.gap();
    probe(&mut page, draft);
    page.gap();
    let (requests, tokens) = draft.pace.budget();
    page.key("governor:", "what keeps the canary harmless");
    page.key(
        &format!("  requests_per_day: {requests}"),
        "per UTC day; what is above is refused",
    );
    page.key(
        &format!("  tokens_per_day: {tokens}"),
        "input and output together",
    );
    page.key("  in_flight: 4", "at once, at most");
    page.gap();
    page.key("export:", "where results go");
    page.key(
        "  http: { listen: 127.0.0.1:9464 }",
        "page, API and /metrics",
    );
    page.finish()
}

/// What the look showed, a sentence each.
fn told(draft: &Draft, seen: &Seen) -> Vec<String> {
    let mut told = vec![match (seen.engine, &seen.version) {
        (Some(engine), Some(version)) => format!("engine: {} {}", engine.name(), remark(version)),
        (Some(engine), None) => format!(
            "engine: {}, of a version that it does not tell",
            engine.name()
        ),
        (None, Some(version)) => format!("engine: not known, of version {}", remark(version)),
        (None, None) => "engine: not known".to_owned(),
    }];
    match &draft.model {
        Some(model) => told.push(format!(
            "model: `{}`{}",
            remark(model),
            beside(&seen.others)
        )),
        None => told.push("model: requests of this protocol name none".to_owned()),
    }
    told.push(format!("protocol: `{}` was answered", draft.api.name()));
    told.extend(seen.length.map(|length| length_told(length, draft.api)));
    match &seen.page {
        PageSaid::Read { url, lacks, never } => {
            told.push(format!("metrics: {}", remark(url)));
            told.extend(lacking("not on that page: ", lacks));
            told.extend(lacking("never published by this engine: ", never));
        }
        PageSaid::NotRead { url, result } => told.push(format!(
            "metrics: none are read ({} gives `{result}`), so no finding can say what the server was busy with{}",
            remark(url),
            advice(seen.engine)
        )),
    }
    told
}

/// The further models of a list.
fn beside(others: &[String]) -> String {
    let shown: Vec<String> = others
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{}`", remark(name)))
        .collect();
    let more = if others.len() > SHOWN { ", …" } else { "" };
    match others.len() {
        0 => String::new(),
        1 => format!("; the server lists another one: {}", shown.join(", ")),
        count => format!(
            "; the server lists {count} others: {}{more}",
            shown.join(", ")
        ),
    }
}

fn length_told(length: LengthSaid, api: Api) -> String {
    match length {
        LengthSaid::Exact => {
            format!("length: an answer has the {OUTPUT_TOKENS} tokens that are asked for")
        }
        LengthSaid::Ignored => format!("length: the answer had fewer than the {OUTPUT_TOKENS} tokens asked for; `output_tokens` is a limit"),
        LengthSaid::Refused => "length: the server refuses `ignore_eos` and `min_tokens`, so `exact_length` is off and `output_tokens` is a limit".to_owned(),
        LengthSaid::NotAsked => format!(
            "length: `{}` knows no exact length; `output_tokens` is a limit",
            api.name()
        ),
        LengthSaid::Untold => "length: the server does not say how many tokens an answer has".to_owned(),
    }
}

/// The roles with what cannot be told without them; nothing if there are none.
fn lacking(what: &str, roles: &[(&str, Vec<&str>)]) -> Option<String> {
    let named: Vec<String> = roles
        .iter()
        .map(|(role, causes)| match &causes[..] {
            [] => format!("`{role}`"),
            causes => format!("`{role}` (so never told: `{}`)", causes.join("`, `")),
        })
        .collect();
    (!named.is_empty()).then(|| format!("{what}{}", named.join(", ")))
}

/// What gives the engine a page.
const fn advice(engine: Option<Engine>) -> &'static str {
    match engine {
        Some(Engine::LlamaCpp) => "; llama.cpp has one if it is started with `--metrics`",
        Some(Engine::Sglang) => "; SGLang has one if it is started with `--enable-metrics`",
        Some(Engine::Triton) => "; that of Triton is on its port 8002: put its URL below",
        _ => "",
    }
}

fn target(page: &mut Page, draft: &Draft) {
    page.key("targets:", "the services under test");
    page.key(
        &format!("  - name: {}", scalar(&draft.name)),
        "a label of every metric",
    );
    page.key(
        &format!("    url: {}", scalar(&draft.url)),
        "paths of the protocol are appended",
    );
    page.key(
        &format!("    api: {}", draft.api.name()),
        "docs/protocols.md lists the others",
    );
    if let Some(model) = &draft.model {
        page.key(
            &format!("    model: {}", scalar(model)),
            "what is asked for",
        );
    }
    match &draft.key {
        None => {}
        Some(KeyFrom::Env(name)) => page.key(
            &format!("    api_key: {{ env: {} }}", scalar(name)),
            "read from the environment at the start",
        ),
        Some(KeyFrom::File(path)) => page.key(
            &format!("    api_key: {{ file: {} }}", scalar(path)),
            "read from this file at the start",
        ),
    }
    if let Some(ca) = &draft.ca {
        page.key(
            &format!("    tls: {{ ca: {} }}", scalar(ca)),
            "trusted instead of the system's certificates",
        );
    }
    request(page, draft.manner);
    page.key(
        "    server_metrics: auto",
        "found at the usual paths; `off`, or a URL",
    );
    page.say_at(
        4,
        "gpu: { dcgm: http://HOST:9400/metrics }   # the GPUs behind it, docs/gpus.md",
    );
}

/// What differs from the usual request.
fn request(page: &mut Page, manner: Manner) {
    if (Manner {
        streaming: true,
        ..manner
    }) == Manner::USUAL
    {
        return;
    }
    page.key("    request:", "what this server wants otherwise than most");
    if !manner.exact_length {
        page.key(
            "      exact_length: false",
            "it refuses `ignore_eos` and `min_tokens`",
        );
    }
    if !manner.usage {
        page.key("      usage: false", "it refuses `stream_options`");
    }
    if manner.length == LengthName::CompletionTokens {
        page.key(
            "      length: max_completion_tokens",
            "it refuses `max_tokens`",
        );
    }
}

fn probe(page: &mut Page, draft: &Draft) {
    let Draft { api, pace, .. } = draft;
    let (output_tokens, tokens) = if api.makes_tokens() {
        (OUTPUT_TOKENS, "of the prompt, and of the answer")
    } else {
        (
            1,
            "of the prompt; its answer has none, and the key is required",
        )
    };
    page.key("probes:", "what is sent to them, and when");
    page.key(&format!("  - name: short-{}", api.name()), "a label too");
    page.key(
        &format!("    targets: [{}]", scalar(&draft.name)),
        "by name",
    );
    if api.can_stream() && !draft.manner.streaming {
        page.key(
            "    streaming: false",
            "it sends no streams, so tokens have no times",
        );
    }
    page.key(
        &format!(
            "    arrivals: {{ process: poisson, rate: {} }}",
            pace.rate()
        ),
        pace.rate_why(),
    );
    page.key("    workload:", "texts of our own making, by token count");
    page.key(
        &format!(
            "      synthetic: {{ input_tokens: {INPUT_TOKENS}, output_tokens: {output_tokens} }}"
        ),
        tokens,
    );
    page.key("      cache: cold", "no prompt begins like an earlier one");
    page.key(
        &format!("    limits: {}", pace.limits()),
        "when a request is given up",
    );
    let wanted = if api.can_stream() && draft.manner.streaming {
        "slo: { ttft: 1s at p95, success: 99% }"
    } else {
        "slo: { service_time: 5s at p95, success: 99% }"
    };
    page.say_at(
        4,
        &format!("{wanted}   # what you want of it, for burn rates"),
    );
}

#[cfg(test)]
mod tests;
