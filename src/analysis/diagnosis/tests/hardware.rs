//! Causes in the GPUs and in the host of the server.

use super::*;

#[test]
fn held_down_clocks_are_told_from_saved_power() {
    let held = |now: &mut Evidence| {
        slow_tokens(now);
        now.gpu.throttled = Some(0.8);
        now.gpu.clock = Some(1.2e9);
    };
    assert_eq!(found(held), [(Cause::GpuThrottled, Confidence::Strong)]);
    // A clock that fell although it is busy says the same without reasons.
    let slowed = |now: &mut Evidence| {
        slow_tokens(now);
        now.gpu.throttled = None;
        now.gpu.clock = Some(1.2e9);
    };
    assert_eq!(found(slowed), [(Cause::GpuThrottled, Confidence::Strong)]);
    let idle = |now: &mut Evidence| {
        now.gpu.clock = Some(0.3e9);
        now.gpu.busy = Some(0.0);
    };
    assert!(
        !found(idle)
            .iter()
            .any(|(cause, _)| *cause == Cause::GpuThrottled)
    );
    // Felt by nobody.
    assert_eq!(found(|now| now.gpu.throttled = Some(0.8)), []);
}

#[test]
fn an_error_of_a_gpu_is_named() {
    let error = |now: &mut Evidence| {
        slow_tokens(now);
        now.gpu.xid = Some(79);
    };
    assert_eq!(found(error), [(Cause::GpuError, Confidence::Strong)]);
    assert_eq!(
        found(|now| now.gpu.xid = Some(79)),
        [(Cause::GpuError, Confidence::Possible)]
    );
    let mut now = healthy();
    error(&mut now);
    let facts = diagnose(&now, Some(&healthy())).causes.remove(0).facts;
    assert_eq!(facts[0].what, "XID");
    assert!((facts[0].now - 79.0).abs() < f64::EPSILON);
}

#[test]
fn uneven_gpus_count_if_they_were_even() {
    let uneven = |now: &mut Evidence| {
        slow_tokens(now);
        now.gpu.busy_apart = Some(0.5);
    };
    assert_eq!(found(uneven), [(Cause::GpuImbalance, Confidence::Strong)]);
    let mut before = healthy();
    let mut now = healthy();
    uneven(&mut now);
    before.gpu = now.gpu;
    let causes = diagnose(&now, Some(&before)).causes;
    assert!(causes.iter().all(|one| one.cause != Cause::GpuImbalance));
}

#[test]
fn idle_gpus_with_work_to_do_are_the_hosts() {
    let stall = |now: &mut Evidence| {
        slow_server(now);
        slow_tokens(now);
        now.server.waiting = gauge(4.0);
        now.gpu.busy = Some(0.2);
    };
    assert_eq!(found(stall), [(Cause::HostBound, Confidence::Strong)]);
    // Nothing to do: quiet, not stalled.
    let quiet = |now: &mut Evidence| {
        now.gpu.busy = Some(0.2);
        now.server.running = gauge(0.5);
    };
    assert_eq!(found(quiet), []);
    let pressed = |now: &mut Evidence| {
        stall(now);
        now.host.pressure = Some(0.4);
    };
    let causes: Vec<Cause> = found(pressed).into_iter().map(|(cause, _)| cause).collect();
    assert_eq!(causes, [Cause::ServerHost, Cause::HostBound]);
}

fn throttled(now: &mut Evidence) {
    slow_server(now);
    slow_tokens(now);
    now.host.throttled = Some(0.34);
}

#[test]
fn a_container_that_is_throttled_is_short_of_processors() {
    assert_eq!(found(throttled), [(Cause::ServerHost, Confidence::Strong)]);
    let mut now = healthy();
    throttled(&mut now);
    now.host.server_pressure = Some(0.6);
    let diagnosis = diagnose(&now, Some(&healthy())).causes.remove(0);
    let facts = diagnosis.facts.iter();
    let facts = facts.map(|fact| (fact.what.as_str(), fact.now, fact.before));
    let expected = [
        (
            "periods in which the server's container was throttled",
            0.34,
            Some(0.0),
        ),
        ("time waiting for a CPU", 0.01, Some(0.01)),
        ("time in which the server waited for a CPU", 0.6, Some(0.02)),
    ];
    assert_eq!(facts.collect::<Vec<_>>(), expected);
    assert!(diagnosis.cause.advice().contains("CPU limit"));
}

#[test]
fn a_container_that_is_hardly_or_always_throttled_is_not_why() {
    let is_host = |before: &Evidence, change: fn(&mut Evidence)| {
        let mut now = healthy();
        throttled(&mut now);
        change(&mut now);
        let causes = diagnose(&now, Some(before)).causes;
        causes.iter().any(|one| one.cause == Cause::ServerHost)
    };
    assert!(is_host(&healthy(), |_| {}));
    assert!(!is_host(&healthy(), |now| now.host.throttled = Some(0.08)));
    assert!(!is_host(&healthy(), |now| now.host.throttled = None));
    let mut before = healthy();
    before.host.throttled = Some(0.32);
    assert!(!is_host(&before, |_| {}), "as it was when all was well");
    // Felt by nobody.
    assert_eq!(found(|now| now.host.throttled = Some(0.34)), []);
}

#[test]
fn a_container_that_is_throttled_speaks_for_gpus_that_wait_for_the_host() {
    let mut now = healthy();
    throttled(&mut now);
    now.gpu.busy = Some(0.2);
    let causes = diagnose(&now, Some(&healthy())).causes;
    let names: Vec<Cause> = causes.iter().map(|one| one.cause).collect();
    assert_eq!(names, [Cause::ServerHost, Cause::HostBound]);
    let mut facts = causes[1].facts.iter();
    assert!(
        facts.any(|fact| fact.what.contains("throttled")),
        "{causes:?}"
    );
    // Memory from elsewhere confirms a host that is short of processors, and is no cause alone.
    let elsewhere = |now: &mut Evidence| {
        slow_tokens(now);
        now.host.off_node = Some(0.5);
    };
    assert_eq!(found(elsewhere), [(Cause::DecodeBound, Confidence::Strong)]);
    let mut now = healthy();
    elsewhere(&mut now);
    now.host.pressure = Some(0.4);
    let causes = diagnose(&now, Some(&healthy())).causes;
    assert_eq!(causes[0].cause, Cause::ServerHost);
    assert_eq!(causes[0].facts[2].what, "memory from another NUMA node");
}
