//! Causes in the GPUs and in the machine beside them.

use super::view::{Case, Change, View};
use super::{Diagnosis, Fact, Unit};
use crate::analysis::cause::Cause;
use crate::analysis::evidence::Evidence;

/// Clocks held down for so much of the time are felt.
const THROTTLED: f64 = 0.1;
/// Clocks of busy GPUs that fell to this share of what they were.
const SLOWED: f64 = 0.9;
/// Busy GPUs: below this, clocks fall to save power.
const BUSY: f64 = 0.5;
/// GPUs of one group differ by this share of the time, or of their memory.
const APART: f64 = 0.3;
/// Something runs for at least this share of the time: else GPUs may well idle.
const SOMETHING: f64 = 0.2;
/// GPUs that are busy for less than this share of the time in which something runs wait for it.
const IDLE: f64 = 0.6;
/// And for so much less than before.
const FELL: f64 = 0.75;
/// Something waits for a processor for this share of the time.
const PRESSED: f64 = 0.2;
/// Being held back in so many of the periods, of 100 ms each as a rule, is felt.
const HELD_BACK: f64 = 0.1;
/// So much of the memory from other nodes: bound processes have next to none.
const OFF_NODE: f64 = 0.1;

/// Shares of a host or of the server on it.
type OfHost = fn(&Evidence) -> Option<f64>;
const PRESSURE: OfHost = |evidence| evidence.host.pressure;
const THROTTLED_PERIODS: OfHost = |evidence| evidence.host.throttled;
const SERVER_PRESSURE: OfHost = |evidence| evidence.host.server_pressure;
const FROM_OTHERS: OfHost = |evidence| evidence.host.off_node;

pub(super) fn gpu_error(view: &View) -> Option<Diagnosis> {
    let number = |evidence: &Evidence| evidence.gpu.xid.map(f64::from);
    number(view.now)?;
    // It is worth a word before anybody feels it.
    Case::open(Cause::GpuError, view.is_ill().filter(|ill| *ill))?
        .with(view.fact(("XID", Unit::Count), number))
        .and(view.server_is_slower(), None)
        .close()
        .into()
}

/// Whether busy GPUs run at a lower clock than before.
fn is_slowed(view: &View) -> Option<bool> {
    let busy = view.change(|evidence| evidence.gpu.busy)?;
    let clock = view.change(|evidence| evidence.gpu.clock)?;
    Some(busy.before >= BUSY && busy.now >= BUSY && clock.factor() <= SLOWED)
}

pub(super) fn gpu_throttled(view: &View) -> Option<Diagnosis> {
    let held = view.now.gpu.throttled.map(|share| share >= THROTTLED);
    if held != Some(true) && is_slowed(view) != Some(true) {
        return None;
    }
    Case::open(Cause::GpuThrottled, view.is_ill())?
        .with(view.fact(("time with clocks held down", Unit::Share), |e| {
            e.gpu.throttled
        }))
        .with(view.fact(("clock of the slowest GPU", Unit::Hertz), |e| e.gpu.clock))
        .and(view.server_is_slower(), None)
        .close()
        .into()
}

pub(super) fn gpu_imbalance(view: &View) -> Option<Diagnosis> {
    let work: fn(&Evidence) -> Option<f64> = |evidence| evidence.gpu.busy_apart;
    let memory: fn(&Evidence) -> Option<f64> = |evidence| evidence.gpu.memory_apart;
    let is_apart = |of: fn(&Evidence) -> Option<f64>| {
        let now = of(view.now)?;
        let before = view.before.and_then(of);
        // Groups that were never even do their work like that.
        Some(now >= APART && before.is_none_or(|before| now - before >= APART / 2.0))
    };
    if is_apart(work) != Some(true) && is_apart(memory) != Some(true) {
        return None;
    }
    Case::open(Cause::GpuImbalance, view.is_ill())?
        .with(view.fact(("busiest less idlest GPU", Unit::Share), work))
        .with(view.fact(("fullest less emptiest GPU memory", Unit::Share), memory))
        .and(view.server_is_slower(), None)
        .close()
        .into()
}

/// How much of the time in which something runs the GPUs are busy. With requests that come at
/// random something runs for a share of 1 − e^(−n) of the time, if n run on average.
fn used(evidence: &Evidence) -> Option<f64> {
    let running = evidence.server.running?.mean;
    let some_run = 1.0 - (-running).exp();
    (some_run >= SOMETHING).then_some(evidence.gpu.busy? / some_run)
}

/// Whether the GPUs stand still for long while there is work, and did not before.
pub(super) fn idles(view: &View) -> Option<bool> {
    Some(used(view.now)? <= IDLE && view.change(used)?.factor() <= FELL)
}

pub(super) fn host_bound(view: &View) -> Option<Diagnosis> {
    let slower = view.server_is_slower();
    if !idles(view)? || slower == Some(false) || view.now.server.output_tokens == Some(0.0) {
        return None;
    }
    Case::open(Cause::HostBound, view.is_ill())?
        .with(view.fact(("GPU busy", Unit::Share), |e| e.gpu.busy))
        .with(view.fact(("requests waiting", Unit::Count), |e| {
            Some(e.server.waiting?.mean)
        }))
        .and(
            view.waits(),
            view.fact(("requests running", Unit::Count), |e| {
                Some(e.server.running?.mean)
            }),
        )
        .and(
            view.now.host.cpu.map(|cpu| cpu >= 0.9),
            view.fact(("CPU in use", Unit::Share), |e| e.host.cpu),
        )
        .and(
            rose(view, THROTTLED_PERIODS, HELD_BACK),
            throttled_fact(view),
        )
        .close()
        .into()
}

/// Whether a share is `least` or more, and was not before; `None` if it is not known.
fn rose(view: &View, of: OfHost, least: f64) -> Option<bool> {
    let more = |change: Change| change.now - change.before >= least / 2.0;
    Some(of(view.now)? >= least && view.change(of).is_none_or(more))
}

fn throttled_fact(view: &View) -> Option<Fact> {
    let what = "periods in which the server's container was throttled";
    view.fact((what, Unit::Share), THROTTLED_PERIODS)
}

pub(super) fn server_host(view: &View) -> Option<Diagnosis> {
    let is_throttled = rose(view, THROTTLED_PERIODS, HELD_BACK) == Some(true);
    if !is_throttled && rose(view, PRESSURE, PRESSED) != Some(true) {
        return None;
    }
    let mut facts = [
        view.fact(("time waiting for a CPU", Unit::Share), PRESSURE),
        throttled_fact(view),
    ];
    // The strongest first.
    facts.rotate_left(usize::from(is_throttled));
    let [first, second] = facts;
    Case::open(Cause::ServerHost, view.is_ill())?
        .with(first)
        .with(second)
        .and(view.server_is_slower(), None)
        .and(
            rose(view, SERVER_PRESSURE, PRESSED),
            view.fact(
                ("time in which the server waited for a CPU", Unit::Share),
                SERVER_PRESSURE,
            ),
        )
        .and(
            rose(view, FROM_OTHERS, OFF_NODE),
            view.fact(("memory from another NUMA node", Unit::Share), FROM_OTHERS),
        )
        .close()
        .into()
}
