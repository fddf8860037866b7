//! Causes in the GPUs and in the machine beside them.

use super::view::{Case, Change, View};
use super::{Diagnosis, Unit};
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
        .close()
        .into()
}

pub(super) fn server_host(view: &View) -> Option<Diagnosis> {
    let pressure: fn(&Evidence) -> Option<f64> = |evidence| evidence.host.pressure;
    let more = |change: Change| change.now - change.before >= PRESSED / 2.0;
    if pressure(view.now)? < PRESSED || !view.change(pressure).is_none_or(more) {
        return None;
    }
    Case::open(Cause::ServerHost, view.is_ill())?
        .with(view.fact(("time waiting for a CPU", Unit::Share), pressure))
        .and(view.server_is_slower(), None)
        .close()
        .into()
}
