//! Causes on the way between us and the engine, at both its ends.

use super::view::{Case, View};
use super::{Diagnosis, Fact, Unit};
use crate::analysis::cause::Cause;
use crate::analysis::evidence::Evidence;

/// So many of our requests were late by ourselves.
const LAGGED: f64 = 0.05;
/// Something of ours waits for a processor for this share of the time.
const PRESSED: f64 = 0.2;
/// So many of the requests got no first token in time.
const SILENT: f64 = 0.5;
/// More time outside the server than this is felt, seconds.
const OUTSIDE: f64 = 0.02;
/// And this share of the whole time to first token.
const OF_ALL: f64 = 0.2;
/// A round trip this many times as long.
const FARTHER: f64 = 1.5;
/// Requests of ours that the engine does not know of.
const UNKNOWN_TO_ENGINE: f64 = 2.0;

pub(super) fn own_client(view: &View) -> Option<Diagnosis> {
    let own = &view.now.own;
    if own.lagged? < LAGGED {
        return None;
    }
    Case::open(Cause::OwnClient, Some(true))?
        .with(
            view.fact(("requests that we sent or read late", Unit::Share), |e| {
                e.own.lagged
            }),
        )
        .with(view.fact(("own lag, 95 %", Unit::Seconds), |e| Some(e.own.lag?.p95)))
        .and(
            own.pressure.map(|pressure| pressure >= PRESSED),
            view.fact(("time that we waited for a CPU", Unit::Share), |e| {
                e.own.pressure
            }),
        )
        .close()
        .into()
}

pub(super) fn hung_engine(view: &View) -> Option<Diagnosis> {
    let client = &view.now.client;
    let silent = |evidence: &Evidence| evidence.client.share(evidence.client.silent);
    let works = view.now.server.running.map(|running| running.max >= 1.0);
    let stands = view.now.server.output_tokens.map(|rate| rate <= 0.0);
    let mute = silent(view.now).is_some_and(|share| share >= SILENT) && client.silent >= 3;
    // A silent server that produces answers for others does not hang.
    if !mute || stands == Some(false) {
        return None;
    }
    // Without a word from the server it may be unreachable behind something that takes requests.
    let said = stands.is_some() || works.is_some();
    Case::open(Cause::HungEngine, said.then_some(true))?
        .with(view.fact(
            ("requests without a first token in time", Unit::Share),
            silent,
        ))
        .and(
            stands,
            view.fact(("tokens produced", Unit::Rate), |e| e.server.output_tokens),
        )
        .and(
            works,
            view.fact(("requests running", Unit::Count), |e| {
                Some(e.server.running?.max)
            }),
        )
        .close()
        .into()
}

pub(super) fn buffering_proxy(view: &View) -> Option<Diagnosis> {
    let bursts = |evidence: &Evidence| evidence.client.share(evidence.client.buffered);
    if !view.come_in_bursts() {
        return None;
    }
    let between = |evidence: &Evidence| Some(evidence.server.itl?.p50);
    Case::open(Cause::BufferingProxy, Some(true))?
        .with(view.fact(("answers in one burst at their end", Unit::Share), bursts))
        .and(
            between(view.now).map(|seconds| seconds > 0.0),
            view.fact(
                ("time between tokens by the server, mean", Unit::Seconds),
                between,
            ),
        )
        .close()
        .into()
}

fn outside(evidence: &Evidence) -> Option<f64> {
    Some(evidence.server.outside?.value)
}

/// Whether the time outside the server grew by more than it may be off, and matters.
fn is_farther(view: &View) -> Option<bool> {
    let now = view.now.server.outside?;
    let total = view.now.client.ttft?.p50;
    // Where it was not known before, all of it counts: a way that is so long is one to look at.
    let (more, error) = match view.before.and_then(|before| before.server.outside) {
        Some(before) => (now.value - before.value, now.error + before.error),
        None => (now.value, now.error),
    };
    Some(more >= OUTSIDE.max(error) && more >= OF_ALL * total)
}

/// Requests of ours that are in flight and that the engine neither runs nor queues.
fn before_engine(evidence: &Evidence) -> Option<f64> {
    let server = &evidence.server;
    let known = server.running?.mean + server.waiting?.mean;
    Some((evidence.client.in_flight? - known).max(0.0))
}

/// Whether requests pile up before the engine: more come than end, or most of what is in flight
/// is unknown to it while the way is as it was.
fn piles_up(view: &View) -> Option<bool> {
    let client = &view.now.client;
    let unknown = before_engine(view.now)?;
    let falls_behind = client.ends? < 0.95 * client.arrivals?;
    let room = view.cache_is_full() != Some(true) && view.waits() != Some(true);
    Some(unknown >= UNKNOWN_TO_ENGINE && unknown >= client.in_flight? / 2.0 && falls_behind && room)
}

pub(super) fn network(view: &View) -> Option<Diagnosis> {
    if !is_farther(view)? || view.come_in_bursts() || piles_up(view) == Some(true) {
        return None;
    }
    let rtt = |evidence: &Evidence| evidence.client.rtt;
    let again = |evidence: &Evidence| evidence.client.retransmits;
    Case::open(Cause::Network, view.first_is_slow())?
        .with(view.fact(
            (
                "time to first token outside the server, mean",
                Unit::Seconds,
            ),
            outside,
        ))
        .and(
            view.server_is_slower().map(|slower| !slower),
            view.fact(
                ("time to first token by the server, mean", Unit::Seconds),
                |e| Some(e.server.ttft?.p50),
            ),
        )
        .and(
            view.change(rtt)
                .map(|rtt| rtt.factor() >= FARTHER && rtt.is_slower()),
            view.fact(("round trip time", Unit::Seconds), rtt),
        )
        .and(
            again(view.now).map(|segments| segments >= 0.1),
            view.fact(("segments sent again per request", Unit::Count), again),
        )
        .close()
        .into()
}

pub(super) fn frontend_bound(view: &View) -> Option<Diagnosis> {
    if !piles_up(view)? {
        return None;
    }
    Case::open(Cause::FrontendBound, view.first_is_slow())?
        .with(view.fact(
            (
                "requests in flight that the engine does not know of",
                Unit::Count,
            ),
            before_engine,
        ))
        .with(view.fact(("arrivals", Unit::Rate), |e| e.client.arrivals))
        .with(view.fact(("ends", Unit::Rate), |e| e.client.ends))
        .and(view.waits().map(|waits| !waits), None)
        .close()
        .into()
}

pub(super) fn model_change(view: &View) -> Option<Diagnosis> {
    let changes = view.now.build.changes(&view.before?.build);
    if changes.is_empty() {
        return None;
    }
    let facts = changes.into_iter().map(|(what, before, now)| Fact {
        what: format!("{what} changed from {before} to {now}"),
        now: 1.0,
        before: Some(0.0),
        unit: Unit::Count,
    });
    facts
        .fold(
            Case::open(Cause::ModelChange, view.is_ill())?,
            |case, fact| case.with(Some(fact)),
        )
        .and(view.server_is_slower(), None)
        .close()
        .into()
}
