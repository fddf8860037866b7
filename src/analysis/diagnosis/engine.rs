//! Causes inside the engine: queue, cache, batch, prefill, decode.

use super::view::{Case, Change, View};
use super::{Diagnosis, Unit};
use crate::analysis::cause::Cause;
use crate::analysis::evidence::Evidence;

/// Fewer requests than this fit in the cache at once: it hardly batches.
const FEW_FIT: f64 = 8.0;
/// So many sequences lose their place for each that ends.
const PREEMPTED: f64 = 0.05;
/// A cache that served at least this much before is missed when it is gone.
const SERVED: f64 = 0.1;
/// It serves this much of what it did before, or less.
const LOST: f64 = 0.5;
/// On average no more than about one request is worked on.
const ALONE: f64 = 1.3;
/// The batch has grown by so much.
const GROWN: f64 = 1.3;
/// So much of the time the memory is read: near what it can do.
const MEMORY_BOUND: f64 = 0.6;

const SERVER_TTFT: (&str, Unit) = ("time to first token by the server, mean", Unit::Seconds);
const RUNNING: (&str, Unit) = ("requests running", Unit::Count);
const WAITING: (&str, Unit) = ("requests waiting", Unit::Count);
const KV_USAGE: (&str, Unit) = ("KV cache in use", Unit::Share);

fn running(evidence: &Evidence) -> Option<f64> {
    Some(evidence.server.running?.mean)
}

fn waiting(evidence: &Evidence) -> Option<f64> {
    Some(evidence.server.waiting?.mean)
}

fn kv_usage(evidence: &Evidence) -> Option<f64> {
    Some(evidence.server.kv_usage?.mean)
}

/// Requests of the usual length that fit in the cache at once.
fn fitting(evidence: &Evidence) -> Option<f64> {
    let tokens = evidence.client.tokens.filter(|tokens| *tokens > 0.0)?;
    Some(evidence.server.kv_tokens? / tokens)
}

fn has_little_room(view: &View) -> Option<bool> {
    Some(fitting(view.now)? < FEW_FIT)
}

/// Sequences that lost their place for each request that ended.
fn preempted(evidence: &Evidence) -> Option<f64> {
    let preempted = evidence.server.preemptions?;
    let ended = evidence.server.finished?;
    Some(if preempted > 0.0 {
        preempted / ended.max(f64::MIN_POSITIVE)
    } else {
        0.0
    })
}

pub(super) fn queueing(view: &View) -> Option<Diagnosis> {
    let full = view.cache_is_full() == Some(true) || has_little_room(view) == Some(true);
    let produces = view.now.server.output_tokens != Some(0.0);
    if !view.waits()? || full || !produces || super::hardware::idles(view) == Some(true) {
        return None;
    }
    let queued = |evidence: &Evidence| Some(evidence.server.queue?.p50);
    let longer = view.is_slower(|evidence| evidence.server.queue);
    Case::open(Cause::Queueing, view.first_is_slow())?
        .with(view.fact(WAITING, waiting))
        .with(view.fact(RUNNING, running))
        .with(view.fact(KV_USAGE, kv_usage))
        .and(
            longer,
            view.fact(("time in the queue, mean", Unit::Seconds), queued),
        )
        .and(view.tokens_are_slow().map(|slow| !slow), None)
        .close()
        .into()
}

/// Whether requests wait or lose their place.
fn is_held_up(view: &View) -> bool {
    let loses = preempted(view.now).is_some_and(|share| share >= PREEMPTED);
    view.waits() == Some(true) || loses
}

pub(super) fn kv_cache_pressure(view: &View) -> Option<Diagnosis> {
    let is_full = view.cache_is_full()?;
    if !is_full || !is_held_up(view) || has_little_room(view) == Some(true) {
        return None;
    }
    let fuller = view
        .change(kv_usage)
        .map(|usage| usage.now - usage.before > 0.1);
    Case::open(Cause::KvCachePressure, view.is_ill())?
        .with(view.fact(KV_USAGE, kv_usage))
        .with(view.fact(WAITING, waiting))
        .with(view.fact(RUNNING, running))
        .and(
            fuller,
            view.fact(("requests that fit", Unit::Count), fitting),
        )
        .close()
        .into()
}

pub(super) fn no_room_for_cache(view: &View) -> Option<Diagnosis> {
    // So few fit that it is the cache, full or not, which makes one wait.
    if !is_held_up(view) || !has_little_room(view)? {
        return None;
    }
    let memory = |evidence: &Evidence| evidence.gpu.memory;
    Case::open(Cause::NoRoomForCache, view.is_ill())?
        .with(view.fact(("requests that fit", Unit::Count), fitting))
        .with(view.fact(KV_USAGE, kv_usage))
        .with(view.fact(WAITING, waiting))
        .and(
            memory(view.now).map(|used| used >= 0.9),
            view.fact(("GPU memory in use", Unit::Share), memory),
        )
        .close()
        .into()
}

pub(super) fn preemption(view: &View) -> Option<Diagnosis> {
    let more = view
        .change(preempted)
        .is_none_or(|share| share.factor() >= 2.0);
    if preempted(view.now)? < PREEMPTED || !more {
        return None;
    }
    Case::open(Cause::Preemption, view.is_ill())?
        .with(view.fact(
            ("preemptions per request that ended", Unit::Share),
            preempted,
        ))
        .with(view.fact(("preemptions", Unit::Rate), |e| e.server.preemptions))
        .and(view.cache_is_full(), view.fact(KV_USAGE, kv_usage))
        .close()
        .into()
}

pub(super) fn prefix_cache_loss(view: &View) -> Option<Diagnosis> {
    // What our own requests were given is surer than what all users were.
    let of_server = view.change(|evidence| evidence.server.prefix_hits);
    let of_ours = view.change(|evidence| evidence.client.cached);
    let lost = |hits: Change| hits.before >= SERVED && hits.now <= LOST * hits.before;
    let known = of_ours.or(of_server)?;
    if !lost(known) {
        return None;
    }
    Case::open(Cause::PrefixCacheLoss, view.first_is_slow())?
        .with(
            view.fact(("our prompt tokens from the cache", Unit::Share), |e| {
                e.client.cached
            }),
        )
        .and(
            of_server.map(lost),
            view.fact(("all prompt tokens from the cache", Unit::Share), |e| {
                e.server.prefix_hits
            }),
        )
        .close()
        .into()
}

pub(super) fn prefill_bound(view: &View) -> Option<Diagnosis> {
    let computes = |evidence: &Evidence| Some(evidence.server.prefill?.p50);
    let first = |evidence: &Evidence| Some(evidence.server.ttft?.p50);
    let longer = view.is_slower(|evidence| evidence.server.prefill);
    let slower = match longer {
        Some(longer) => longer,
        // Without that histogram: the server's first token, which did not wait.
        None => view.is_slower(|evidence| evidence.server.ttft)? && view.waits() == Some(false),
    };
    if !slower || view.first_is_slow() != Some(true) {
        return None;
    }
    let prompts = |evidence: &Evidence| evidence.server.prompt_tokens;
    Case::open(Cause::PrefillBound, view.first_is_slow())?
        .with(view.fact(("time in prefill, mean", Unit::Seconds), computes))
        .with(view.fact(SERVER_TTFT, first))
        .and(
            view.waits().map(|waits| !waits),
            view.fact(WAITING, waiting),
        )
        .and(
            view.change(prompts).map(|change| change.factor() >= GROWN),
            view.fact(("prompt tokens of all users", Unit::Rate), prompts),
        )
        .close()
        .into()
}

pub(super) fn decode_bound(view: &View) -> Option<Diagnosis> {
    let by_server = view.is_slower(|evidence| evidence.server.itl);
    let slower = by_server.or_else(|| view.is_slower(|evidence| evidence.client.itl));
    if view.tokens_are_slow() != Some(true) || slower != Some(true) || view.come_in_bursts() {
        return None;
    }
    let step = |evidence: &Evidence| Some(evidence.server.itl?.p50);
    let memory = |evidence: &Evidence| evidence.gpu.memory_active;
    Case::open(Cause::DecodeBound, view.tokens_are_slow())?
        .with(view.fact(
            ("time between tokens by the server, mean", Unit::Seconds),
            step,
        ))
        .and(
            view.change(running).map(|change| change.factor() >= GROWN),
            view.fact(RUNNING, running),
        )
        .and(
            memory(view.now).map(|read| read >= MEMORY_BOUND),
            view.fact(("time that memory is read", Unit::Share), memory),
        )
        .and(by_server, None)
        .close()
        .into()
}

pub(super) fn slow_alone(view: &View) -> Option<Diagnosis> {
    // Slower than before has another reason: this is about what was always so.
    let changed = view.is_slower(|evidence| evidence.client.itl) == Some(true)
        || view.is_slower(|evidence| evidence.client.ttft) == Some(true);
    if changed || running(view.now)? > ALONE || view.waits() == Some(true) {
        return None;
    }
    if view.tokens_are_slow() != Some(true) && view.first_is_slow() != Some(true) {
        return None;
    }
    let outside = view.now.server.outside;
    let total = view.now.client.ttft?;
    if outside.is_some_and(|outside| outside.value > total.p50 / 2.0) {
        return None;
    }
    Case::open(Cause::SlowAlone, Some(true))?
        .with(view.fact(RUNNING, running))
        .with(
            view.fact(("time to first token, 95 %", Unit::Seconds), |e| {
                Some(e.client.ttft?.p95)
            }),
        )
        .with(
            view.fact(("time between tokens, 95 %", Unit::Seconds), |e| {
                Some(e.client.itl?.p95)
            }),
        )
        .and(
            view.now.gpu.busy.map(|busy| busy >= 0.5),
            view.fact(("GPU busy", Unit::Share), |e| e.gpu.busy),
        )
        .close()
        .into()
}
