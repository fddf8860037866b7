//! Causes in the GPUs and in the machine beside them.

use super::view::{Case, View};
use super::{Diagnosis, Fact, Unit};
use crate::analysis::cause::Cause;
use crate::analysis::evidence::{Evidence, GpuSide};

/// Clocks held down for so much of the time are felt.
const THROTTLED: f64 = 0.1;
/// Clocks of a busy GPU that fell to this share of what they were.
const SLOWED: f64 = 0.9;
/// A busy GPU: below this, clocks fall to save power.
const BUSY: f64 = 0.5;
/// GPUs of one group differ by this share of the time, or of their memory.
const APART: f64 = 0.3;
/// GPUs that are busy for less than this have little to do.
const IDLE: f64 = 0.5;
/// They were busy for so much longer before.
const FELL: f64 = 0.75;
/// A control group held back for this share of its periods.
const HELD_BACK: f64 = 0.05;
/// Something waits for a processor for this share of the time.
const PRESSED: f64 = 0.2;

pub(super) fn gpu_error(view: &View) -> Option<Diagnosis> {
    let (gpu, xid) = view.now.gpus.iter().find_map(|gpu| Some((gpu, gpu.xid?)))?;
    let fact = Fact {
        what: format!("XID of GPU {}", gpu.name),
        now: f64::from(xid),
        before: None,
        unit: Unit::Count,
    };
    Case::open(Cause::GpuError, view.is_ill())?
        .with(Some(fact))
        .and(view.server_is_slower(), None)
        .close()
        .into()
}

/// The GPU of before with the same name.
fn earlier<'e>(view: &View<'e>, gpu: &GpuSide) -> Option<&'e GpuSide> {
    let gpus = &view.before?.gpus;
    gpus.iter().find(|earlier| earlier.name == gpu.name)
}

fn is_slowed(view: &View, gpu: &GpuSide) -> Option<bool> {
    let before = earlier(view, gpu)?;
    let both_busy = gpu.busy? >= BUSY && before.busy? >= BUSY;
    Some(both_busy && gpu.clock? <= SLOWED * before.clock?)
}

pub(super) fn gpu_throttled(view: &View) -> Option<Diagnosis> {
    let held = |gpu: &&GpuSide| {
        gpu.throttled.is_some_and(|share| share >= THROTTLED) || is_slowed(view, gpu) == Some(true)
    };
    let gpu = view.now.gpus.iter().find(held)?;
    let before = earlier(view, gpu);
    let of = |what: &str, unit, of: fn(&GpuSide) -> Option<f64>| {
        Some(Fact {
            what: format!("{what} of GPU {}", gpu.name),
            now: of(gpu)?,
            before: before.and_then(of),
            unit,
        })
    };
    Case::open(Cause::GpuThrottled, view.is_ill())?
        .with(of("time with clocks held down", Unit::Share, |gpu| {
            gpu.throttled
        }))
        .with(of("clock", Unit::Hertz, |gpu| gpu.clock))
        .and(view.server_is_slower(), None)
        .close()
        .into()
}

/// The highest and the lowest of a number over the GPUs, if there are two that have it.
fn extremes(evidence: &Evidence, of: fn(&GpuSide) -> Option<f64>) -> Option<(f64, f64)> {
    let known: Vec<f64> = evidence.gpus.iter().filter_map(of).collect();
    let highest = known.iter().copied().reduce(f64::max)?;
    let lowest = known.iter().copied().reduce(f64::min)?;
    (known.len() > 1).then_some((highest, lowest))
}

fn apart(evidence: &Evidence, of: fn(&GpuSide) -> Option<f64>) -> Option<f64> {
    let (highest, lowest) = extremes(evidence, of)?;
    Some(highest - lowest)
}

pub(super) fn gpu_imbalance(view: &View) -> Option<Diagnosis> {
    let work: fn(&GpuSide) -> Option<f64> = |gpu| gpu.busy;
    let memory: fn(&GpuSide) -> Option<f64> = |gpu| gpu.memory;
    let is_apart = |of: fn(&GpuSide) -> Option<f64>| {
        let now = apart(view.now, of)?;
        let before = view.before.and_then(|before| apart(before, of));
        // Groups that were never even do their work like that.
        Some(now >= APART && before.is_none_or(|before| now - before >= APART / 2.0))
    };
    let (by_work, by_memory) = (is_apart(work), is_apart(memory));
    if by_work != Some(true) && by_memory != Some(true) {
        return None;
    }
    Case::open(Cause::GpuImbalance, view.is_ill())?
        .with(view.fact(("busiest less idlest GPU", Unit::Share), |e| {
            apart(e, |gpu| gpu.busy)
        }))
        .with(
            view.fact(("fullest less emptiest GPU memory", Unit::Share), |e| {
                apart(e, |gpu| gpu.memory)
            }),
        )
        .and(view.server_is_slower(), None)
        .close()
        .into()
}

/// Whether the GPUs have little to do although there is work.
pub(super) fn idles(view: &View) -> Option<bool> {
    let busy = View::busy(view.now)?;
    let fell = view.change(View::busy)?.factor() <= FELL;
    let running = view.now.server.running.map(|running| running.mean >= 1.0);
    Some(busy < IDLE && fell && (view.waits() == Some(true) || running == Some(true)))
}

pub(super) fn host_bound(view: &View) -> Option<Diagnosis> {
    let slower = view.server_is_slower();
    if !idles(view)? || slower == Some(false) || view.now.server.output_tokens == Some(0.0) {
        return None;
    }
    Case::open(Cause::HostBound, view.is_ill())?
        .with(view.fact(("GPU busy", Unit::Share), View::busy))
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
    let more = |of: fn(&Evidence) -> Option<f64>, bar: f64| {
        let now = of(view.now)?;
        let before = view.before.and_then(of).unwrap_or(0.0);
        Some(now >= bar && now - before >= bar / 2.0)
    };
    let held_back = more(|e| e.host.throttled, HELD_BACK);
    let pressed = more(|e| e.host.pressure, PRESSED);
    if held_back != Some(true) && pressed != Some(true) {
        return None;
    }
    Case::open(Cause::ServerHost, view.is_ill())?
        .with(view.fact(("CPU periods held back", Unit::Share), |e| e.host.throttled))
        .with(view.fact(("time waiting for a CPU", Unit::Share), |e| e.host.pressure))
        .and(view.server_is_slower(), None)
        .close()
        .into()
}
