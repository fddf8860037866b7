//! Answers that are known at once: models, version, health, metrics, faults, refusals.

use std::io::Write as _;
use std::time::Duration;

use serde_json::json;

use super::ask::{Api, Refusal};
use super::http::Request;
use super::{Simulator, frames, gpu_page, metrics_page, node_page};
use crate::clock::MonoTime;
use crate::simulator::fault_json;
use crate::simulator::faults::{Fault, FaultKind};
use crate::simulator::hardware::Activity;

const JSON: &str = "application/json";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const RESET: &str = "/reset_prefix_cache";
const GPUS: &str = "/dcgm/metrics";
const NODE: &str = "/node/metrics";
const FAULTS: &str = "/sim/faults";

/// A whole answer.
#[derive(Debug)]
pub(super) struct Page {
    status: u16,
    content_type: &'static str,
    retry_after: Option<Duration>,
    allow: Option<&'static str>,
    body: String,
}

impl Page {
    /// A JSON body under `status`.
    pub(super) const fn json(status: u16, body: String) -> Self {
        Self {
            status,
            content_type: JSON,
            retry_after: None,
            allow: None,
            body,
        }
    }

    /// An error in vLLM's shape.
    pub(super) fn error(status: u16, message: &str) -> Self {
        Self::refusal(&Refusal {
            status,
            message: message.to_owned(),
            param: None,
        })
    }

    /// A refusal in vLLM's shape.
    pub(super) fn refusal(refusal: &Refusal) -> Self {
        Self::json(refusal.status, frames::error(refusal))
    }

    /// What the fault `status` answers.
    pub(super) fn status_fault(code: u16, retry_after: Option<Duration>) -> Self {
        Self {
            retry_after,
            ..Self::error(code, "refused by an injected fault")
        }
    }

    /// Writes head and body.
    pub(super) fn write(&self, out: &mut Vec<u8>, close: bool) {
        const NEVER: &str = "writing to a vector cannot fail";
        let (status, reason) = (self.status, reason(self.status));
        let (content_type, length) = (self.content_type, self.body.len());
        write!(
            out,
            "HTTP/1.1 {status} {reason}\r\nserver: tokencanary-simulator\r\n\
             content-type: {content_type}\r\ncontent-length: {length}\r\n"
        )
        .expect(NEVER);
        if let Some(span) = self.retry_after {
            let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
            write!(out, "retry-after: {seconds}\r\n").expect(NEVER);
        }
        if let Some(methods) = self.allow {
            write!(out, "allow: {methods}\r\n").expect(NEVER);
        }
        if close {
            out.extend_from_slice(b"connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body.as_bytes());
    }
}

/// Where an answer comes from.
#[derive(Debug)]
pub(super) enum Answer {
    /// It is known.
    Page(Page),
    /// From the engine, to be asked for in this protocol.
    Generated(Api),
}

/// What a request is answered with.
pub(super) fn answer(simulator: &Simulator, request: &Request) -> Answer {
    let path = request.path.as_str();
    // The exporters are other processes, which do not begin anew with the server.
    if ![FAULTS, GPUS, NODE].contains(&path)
        && let Some(left) = simulator.change(|state, now| state.faults.loading(now))
    {
        return Answer::Page(Page {
            retry_after: Some(left),
            ..Page::error(503, "the model is loading")
        });
    }
    let allowed = match path {
        CHAT | COMPLETIONS | RESET => "POST",
        "/v1/models" | "/version" | "/health" | "/metrics" | GPUS | NODE => "GET",
        FAULTS => "GET, POST",
        _ => {
            let body = json!({"detail": "Not Found"}).to_string();
            return Answer::Page(Page::json(404, body));
        }
    };
    if !allowed.split(", ").any(|method| method == request.method) {
        let body = json!({"detail": "Method Not Allowed"}).to_string();
        return Answer::Page(Page {
            allow: Some(allowed),
            ..Page::json(405, body)
        });
    }
    Answer::Page(match (path, request.method.as_str()) {
        (CHAT, _) => return Answer::Generated(Api::Chat),
        (COMPLETIONS, _) => return Answer::Generated(Api::Completions),
        (RESET, _) => reset_prefix_cache(simulator),
        ("/v1/models", _) => models(simulator),
        ("/version", _) => version(simulator),
        ("/metrics", _) => metrics(simulator),
        (FAULTS, "POST") => add_fault(simulator, &request.body),
        (GPUS, _) => gpus(simulator),
        (NODE, _) => node(simulator),
        (FAULTS, _) => list_faults(simulator),
        _ => empty(),
    })
}

/// Fine, and nothing to say.
fn empty() -> Page {
    Page {
        content_type: "text/plain",
        ..Page::json(200, String::new())
    }
}

/// Now, in whole seconds since the Unix epoch.
pub(super) fn unix_seconds(simulator: &Simulator) -> u64 {
    let wall = simulator.inner.anchor.wall();
    wall.unix_ns(simulator.now()) / 1_000_000_000
}

fn models(simulator: &Simulator) -> Page {
    let created = unix_seconds(simulator);
    Page::json(200, frames::models(&simulator.served(), created))
}

fn version(simulator: &Simulator) -> Page {
    let version = simulator.change(|state, now| state.version(now).to_owned());
    Page::json(200, json!({ "version": version }).to_string())
}

fn metrics(simulator: &Simulator) -> Page {
    let wall = simulator.inner.wall;
    let served = simulator.served();
    let body = simulator.change(|state, now| {
        state.pump(now);
        let started = Duration::from_nanos(wall.unix_ns(state.started));
        metrics_page::render(&metrics_page::Page {
            model: &served.model,
            state: state.engine.state(),
            profile: state.engine.profile(),
            stats: state.engine.stats(),
            process_start: started.as_secs_f64(),
            process_cpu: node_page::server_cpu(&state.engine.sums().since(&state.sums_at_start)),
            kv_blocks: state.engine.kv_blocks(),
        })
    });
    text(body)
}

/// What a DCGM exporter on the server's node says.
fn gpus(simulator: &Simulator) -> Page {
    text(simulator.change(|state, now| {
        state.pump(now);
        let activity = Activity {
            machine: state.engine.machine(),
            second: state.engine.last_second(),
            sums: state.engine.sums(),
            last_xid: state.engine.last_xid(),
        };
        gpu_page::render(simulator.inner.hardware, &activity)
    }))
}

/// What a node exporter there says.
fn node(simulator: &Simulator) -> Page {
    let wall = simulator.inner.wall;
    let booted = Duration::from_nanos(wall.unix_ns(MonoTime::ZERO)).as_secs_f64();
    text(simulator.change(|state, now| {
        state.pump(now);
        node_page::render(&node_page::Host {
            second: state.engine.last_second(),
            sums: state.engine.sums(),
            booted,
        })
    }))
}

fn text(body: String) -> Page {
    Page {
        content_type: METRICS,
        ..Page::json(200, body)
    }
}

/// Answers 200 whether it could or not, as vLLM does.
fn reset_prefix_cache(simulator: &Simulator) -> Page {
    let emptied = simulator.change(|state, now| {
        state.pump(now);
        state.engine.reset_prefix_cache()
    });
    if !emptied {
        tracing::warn!("the prefix cache was not emptied, since requests are running");
    }
    empty()
}

fn add_fault(simulator: &Simulator, body: &[u8]) -> Page {
    let fault = match fault_json::parse(body, simulator.now()) {
        Ok(fault) => fault,
        Err(message) => return Page::error(400, &message),
    };
    if let Some(message) = too_long(simulator, &fault) {
        return Page::error(400, &message);
    }
    match simulator.inject(fault) {
        Ok(()) => list_faults(simulator),
        Err(full) => Page::error(503, &full.to_string()),
    }
}

/// Requests that the server would refuse one by one are no load.
fn too_long(simulator: &Simulator, fault: &Fault) -> Option<String> {
    let most = simulator.inner.served.max_model_len;
    match fault.kind {
        FaultKind::Load {
            input_tokens,
            output_tokens,
            ..
        } if input_tokens.saturating_add(output_tokens) > most => Some(format!(
            "`input_tokens` and `output_tokens` are {} together; wanted at most {most}, the longest context of this server",
            input_tokens.saturating_add(output_tokens)
        )),
        _ => None,
    }
}

fn list_faults(simulator: &Simulator) -> Page {
    let list = simulator
        .change(|state, now| fault_json::list(state.faults.on_or_to_come(now), now).to_string());
    Page::json(200, list)
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Injected",
    }
}
