//! Each cause by the numbers that stand for it, and a near miss of each.

mod hardware;

use super::*;
use crate::analysis::evidence::{
    Build, ClientSide, Estimate, Gauge, GpuSide, HostSide, OwnSide, ServerSide, Spread,
};
use crate::measurement::SloMetric;

#[expect(clippy::unnecessary_wraps, reason = "as the fields are")]
const fn spread(p50: f64, p95: f64) -> Option<Spread> {
    Some(Spread {
        mean: p50,
        p50,
        p95,
    })
}

#[expect(clippy::unnecessary_wraps, reason = "as the fields are")]
const fn gauge(mean: f64) -> Option<Gauge> {
    Some(Gauge { mean, max: mean })
}

const GPUS: GpuSide = GpuSide {
    busy: Some(0.8),
    busy_apart: Some(0.05),
    memory: Some(0.85),
    memory_apart: Some(0.02),
    clock: Some(1.98e9),
    throttled: Some(0.0),
    xid: None,
    memory_active: Some(0.5),
};

fn healthy() -> Evidence {
    Evidence {
        client: ClientSide {
            requests: 60,
            ttft: spread(0.3, 0.4),
            itl: spread(0.012, 0.014),
            arrivals: Some(1.0),
            ends: Some(1.0),
            in_flight: Some(2.0),
            tokens: Some(600.0),
            cached: Some(0.5),
            rtt: Some(0.001),
            retransmits: Some(0.0),
            ..ClientSide::default()
        },
        server: ServerSide {
            running: gauge(6.0),
            waiting: gauge(0.0),
            kv_usage: gauge(0.4),
            kv_tokens: Some(100_000.0),
            preemptions: Some(0.0),
            finished: Some(2.0),
            prompt_tokens: Some(1_000.0),
            output_tokens: Some(400.0),
            prefix_hits: Some(0.4),
            ttft: spread(0.28, 0.38),
            queue: spread(0.002, 0.005),
            prefill: spread(0.27, 0.37),
            itl: spread(0.012, 0.014),
            outside: Some(Estimate {
                value: 0.01,
                error: 0.005,
            }),
        },
        gpu: GPUS,
        host: HostSide {
            cpu: Some(0.4),
            pressure: Some(0.01),
            throttled: Some(0.0),
            server_pressure: Some(0.02),
            off_node: Some(0.01),
        },
        own: OwnSide {
            lagged: Some(0.0),
            lag: spread(0.000_1, 0.000_4),
            pressure: Some(0.0),
        },
        build: Build {
            version: Some("0.10.1".to_owned()),
            model: Some("qwen".to_owned()),
            options: Some("bf16".to_owned()),
        },
    }
}

fn found(change: impl FnOnce(&mut Evidence)) -> Vec<(Cause, Confidence)> {
    let before = healthy();
    let mut now = healthy();
    change(&mut now);
    let finding = diagnose(&now, Some(&before));
    finding
        .causes
        .into_iter()
        .map(|one| (one.cause, one.confidence))
        .collect()
}

fn slow_first(now: &mut Evidence) {
    now.client.ttft = spread(0.9, 1.4);
}

fn slow_server(now: &mut Evidence) {
    slow_first(now);
    now.server.ttft = spread(0.88, 1.35);
}

fn slow_tokens(now: &mut Evidence) {
    now.client.itl = spread(0.03, 0.04);
    now.server.itl = spread(0.03, 0.04);
}

#[test]
fn a_healthy_server_has_nothing_whatever_it_is_held_against() {
    assert_eq!(found(|_| {}), []);
    assert_eq!(diagnose(&healthy(), None), Finding::default());
    assert_eq!(diagnose(&Evidence::default(), None), Finding::default());
    let empty = Evidence::default();
    assert_eq!(
        diagnose(&empty, Some(&healthy())),
        Finding::default(),
        "nothing is known now"
    );
}

#[test]
fn waiting_requests_are_a_queue_if_it_is_felt() {
    let queue = |now: &mut Evidence| {
        slow_server(now);
        now.server.waiting = gauge(5.0);
        now.server.queue = spread(0.5, 1.0);
    };
    assert_eq!(found(queue), [(Cause::Queueing, Confidence::Strong)]);
    assert_eq!(found(|now| now.server.waiting = gauge(5.0)), []);
    let without_baseline = {
        let mut now = healthy();
        queue(&mut now);
        diagnose(&now, None).causes
    };
    assert_eq!(without_baseline.len(), 1);
    assert_eq!(without_baseline[0].confidence, Confidence::Possible);
}

#[test]
fn a_full_cache_is_told_from_a_queue_and_from_one_that_is_too_small() {
    let full = |now: &mut Evidence| {
        slow_server(now);
        now.server.waiting = gauge(5.0);
        now.server.kv_usage = gauge(0.97);
    };
    assert_eq!(found(full), [(Cause::KvCachePressure, Confidence::Strong)]);
    let small = |now: &mut Evidence| {
        full(now);
        now.server.kv_tokens = Some(4_000.0);
    };
    assert_eq!(found(small)[0].0, Cause::NoRoomForCache);
    // Full, and nobody waits: well used.
    assert_eq!(found(|now| now.server.kv_usage = gauge(0.97)), []);
}

#[test]
fn a_median_that_goes_from_one_kind_of_request_to_the_other_is_not_slower() {
    let mut now = healthy();
    let before = now.client.ttft.expect("it has one");
    let median = 1.3 * before.p50;
    now.client.ttft = Some(Spread {
        p50: median,
        mean: 1.05 * before.mean,
        ..before
    });
    assert_eq!(diagnose(&now, Some(&healthy())).symptoms, []);
    now.client.ttft = spread(median, before.p95);
    let slower = diagnose(&now, Some(&healthy()));
    assert_eq!(slower.symptoms, [Symptom::SlowFirstToken]);
}

#[test]
fn preemptions_count_by_request_that_ended() {
    let thrash = |now: &mut Evidence| {
        slow_tokens(now);
        now.server.preemptions = Some(1.0);
        now.server.kv_usage = gauge(0.99);
    };
    let causes = found(thrash);
    assert!(causes.contains(&(Cause::Preemption, Confidence::Strong)));
    assert!(causes.contains(&(Cause::KvCachePressure, Confidence::Strong)));
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert_eq!(
        found(|now| {
            thrash(now);
            now.server.preemptions = Some(0.01);
        }),
        [(Cause::DecodeBound, Confidence::Strong)]
    );
}

#[test]
fn a_slow_first_token_without_a_queue_is_prefill() {
    let prefill = |now: &mut Evidence| {
        slow_server(now);
        now.server.prefill = spread(0.87, 1.3);
    };
    assert_eq!(found(prefill), [(Cause::PrefillBound, Confidence::Strong)]);
    assert_eq!(
        found(|now| {
            prefill(now);
            now.server.prefill = None;
        }),
        [(Cause::PrefillBound, Confidence::Strong)]
    );
    // Nothing is known of the engine but that it is slow.
    let unknown = {
        let mut now = healthy();
        prefill(&mut now);
        now.server = ServerSide::default();
        diagnose(&now, Some(&healthy()))
    };
    assert!(unknown.is_unknown(), "{unknown:?}");
    assert_eq!(unknown.symptoms, [Symptom::SlowFirstToken]);
}

#[test]
fn slow_tokens_without_another_reason_are_decode() {
    assert_eq!(
        found(slow_tokens),
        [(Cause::DecodeBound, Confidence::Strong)]
    );
    // The engine is as fast as it was, so it is not the engine.
    assert_eq!(found(|now| now.client.itl = spread(0.03, 0.04)), []);
}

#[test]
fn what_was_always_slow_with_one_request_is_slow_alone() {
    let alone = |now: &mut Evidence| {
        now.server.running = gauge(1.0);
        now.client.limits = vec![(SloMetric::Itl, 0.01)];
    };
    assert_eq!(found(alone), [(Cause::SlowAlone, Confidence::Strong)]);
    // Others run beside it, so it is not alone.
    let beside = found(|now| {
        alone(now);
        now.server.running = gauge(4.0);
    });
    assert!(beside.iter().all(|(cause, _)| *cause != Cause::SlowAlone));
    assert_eq!(
        found(|now| {
            alone(now);
            now.client.limits = vec![(SloMetric::Itl, 0.02)];
        }),
        []
    );
}

#[test]
fn a_cache_that_serves_no_more_is_lost() {
    let lost = |now: &mut Evidence| {
        slow_first(now);
        now.client.cached = Some(0.0);
        now.server.prefix_hits = Some(0.02);
    };
    assert_eq!(found(lost)[0], (Cause::PrefixCacheLoss, Confidence::Strong));
    let one_user = |now: &mut Evidence| {
        slow_first(now);
        now.server.prefix_hits = Some(0.02);
    };
    assert_eq!(found(one_user), [], "ours are served as before");
}

#[test]
fn time_outside_the_server_is_the_networks() {
    let far = |now: &mut Evidence| {
        now.client.ttft = spread(0.8, 0.9);
        now.server.outside = Some(Estimate {
            value: 0.5,
            error: 0.01,
        });
    };
    assert_eq!(found(far), [(Cause::Network, Confidence::Strong)]);
    let unsure = |now: &mut Evidence| {
        far(now);
        now.server.outside = Some(Estimate {
            value: 0.5,
            error: 0.6,
        });
    };
    assert_eq!(found(unsure), [], "it may be nothing");
}

#[test]
fn what_piles_up_before_the_engine_is_the_front_ends() {
    let pile = |now: &mut Evidence| {
        now.client.ttft = spread(3.0, 5.0);
        now.server.outside = Some(Estimate {
            value: 2.7,
            error: 0.1,
        });
        now.client.in_flight = Some(30.0);
        now.client.arrivals = Some(10.0);
        now.client.ends = Some(6.0);
    };
    assert_eq!(found(pile), [(Cause::FrontendBound, Confidence::Strong)]);
    // As many end as come: a long way, not a queue.
    let long_way = |now: &mut Evidence| {
        pile(now);
        now.client.ends = Some(10.0);
    };
    assert_eq!(found(long_way), [(Cause::Network, Confidence::Strong)]);
}

#[test]
fn answers_in_one_burst_are_a_proxys() {
    let bursts = |now: &mut Evidence| {
        now.client.buffered = 59;
        now.client.ttft = None;
        now.client.itl = None;
    };
    assert_eq!(found(bursts), [(Cause::BufferingProxy, Confidence::Strong)]);
    assert_eq!(found(|now| now.client.buffered = 5), []);
}

#[test]
fn silence_with_work_in_hand_is_a_hang() {
    let hang = |now: &mut Evidence| {
        now.client.failed = 60;
        now.client.silent = 60;
        now.client.ttft = None;
        now.client.itl = None;
        now.server.output_tokens = Some(0.0);
        now.server.waiting = gauge(20.0);
    };
    assert_eq!(found(hang), [(Cause::HungEngine, Confidence::Strong)]);
    // Others are answered.
    let ours_only = |now: &mut Evidence| {
        hang(now);
        now.server.output_tokens = Some(400.0);
        now.server.waiting = gauge(0.0);
    };
    let finding = {
        let mut now = healthy();
        ours_only(&mut now);
        diagnose(&now, Some(&healthy()))
    };
    assert!(finding.is_unknown(), "{finding:?}");
    assert_eq!(finding.symptoms, [Symptom::Failures]);
}

#[test]
fn another_release_is_a_cause_only_where_something_is_wrong() {
    let release = |now: &mut Evidence| now.build.version = Some("0.11.0".to_owned());
    assert_eq!(found(release), []);
    let causes = found(|now| {
        release(now);
        slow_tokens(now);
    });
    assert_eq!(causes, [(Cause::ModelChange, Confidence::Strong)]);
}

#[test]
fn our_own_lag_silences_every_other_cause() {
    let causes = found(|now| {
        slow_server(now);
        slow_tokens(now);
        now.server.waiting = gauge(5.0);
        now.own.lagged = Some(0.3);
        now.own.pressure = Some(0.5);
    });
    assert_eq!(causes, [(Cause::OwnClient, Confidence::Strong)]);
    assert_eq!(found(|now| now.own.lagged = Some(0.01)), []);
}

#[test]
fn few_requests_say_nothing() {
    assert_eq!(
        found(|now| {
            slow_server(now);
            slow_tokens(now);
            now.server.waiting = gauge(5.0);
            now.client.requests = 3;
        }),
        []
    );
}

#[test]
fn a_cause_is_untold_where_the_page_lacks_what_its_rule_looks_at() {
    fn pile(now: &mut Evidence) {
        now.client.ttft = spread(3.0, 5.0);
        now.client.in_flight = Some(30.0);
        now.client.arrivals = Some(10.0);
        now.client.ends = Some(6.0);
    }
    fn idle(now: &mut Evidence) {
        slow_server(now);
        slow_tokens(now);
        now.server.waiting = gauge(4.0);
        now.gpu.busy = Some(0.2);
    }
    type Set = fn(&mut Evidence);
    let lacking: [(&str, Set); 5] = [
        ("running", |now| now.server.running = None),
        ("waiting", |now| now.server.waiting = None),
        ("kv_usage", |now| now.server.kv_usage = None),
        ("preemptions", |now| now.server.preemptions = None),
        ("ttft", |now| now.server.outside = None),
    ];
    let provoked: [(Cause, Set); 7] = [
        (Cause::Queueing, |now| {
            slow_server(now);
            now.server.waiting = gauge(5.0);
        }),
        (Cause::KvCachePressure, |now| {
            slow_server(now);
            now.server.waiting = gauge(5.0);
            now.server.preemptions = Some(1.0);
            now.server.kv_usage = gauge(0.97);
        }),
        (Cause::Preemption, |now| {
            slow_tokens(now);
            now.server.preemptions = Some(1.0);
        }),
        (Cause::SlowAlone, |now| {
            now.server.running = gauge(1.0);
            now.client.limits = vec![(SloMetric::Itl, 0.01)];
        }),
        (Cause::FrontendBound, pile),
        (Cause::HostBound, idle),
        (Cause::Network, |now| {
            now.client.ttft = spread(0.8, 0.9);
            now.server.outside = Some(Estimate {
                value: 0.5,
                error: 0.01,
            });
        }),
    ];
    for (cause, provoke) in provoked {
        for (role, take) in lacking {
            let causes = found(|now| {
                provoke(now);
                take(now);
            });
            let told = causes.iter().any(|(one, _)| *one == cause);
            let untold = Cause::untold_without(role).contains(&cause);
            assert_eq!(told, !untold, "{cause:?} without `{role}`: {causes:?}");
        }
    }
    assert_eq!(Cause::untold_without("queue"), []);
}
