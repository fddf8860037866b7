//! What machine and model do to the engine, against times computed by hand.

use super::*;

fn impose(engine: &mut Engine, kind: ConditionKind, from: u64, until: u64) {
    engine.impose(Condition {
        kind,
        from: at(from),
        until: at(until),
    });
}

/// When the tokens of one job of two tokens come that arrives at `arrival`.
fn tokens(engine: &mut Engine, id: u64, arrival: u64) -> Vec<u64> {
    let mut all = engine.advance(at(arrival));
    engine
        .submit(at(arrival), &job(id, 10, 2))
        .expect("there is room");
    all.extend(engine.advance(at(arrival + 900)));
    times(&all, id).split_off(1)
}

#[test]
fn every_factor_makes_steps_longer_while_it_lasts() {
    let factor = 3.0;
    for kind in [
        ConditionKind::Throttle { factor },
        ConditionKind::GpuFull { factor },
        ConditionKind::HostStall { factor },
        ConditionKind::HostPressure { factor },
        ConditionKind::Model { factor },
    ] {
        let mut engine = engine(Profile::fixed(ms(100), ms(10)));
        impose(&mut engine, kind, 1_000, 2_000);
        assert_eq!(tokens(&mut engine, 1, 0), [100, 110], "{kind:?}");
        assert_eq!(tokens(&mut engine, 2, 1_000), [1_300, 1_330], "{kind:?}");
        assert_eq!(tokens(&mut engine, 3, 2_000), [2_100, 2_110], "{kind:?}");
        assert_eq!(*engine.machine(), Machine::HEALTHY);
    }
}

#[test]
fn what_holds_at_once_multiplies() {
    let mut engine = engine(Profile::fixed(ms(100), ms(10)));
    impose(&mut engine, ConditionKind::Throttle { factor: 2.0 }, 0, 500);
    impose(
        &mut engine,
        ConditionKind::HostStall { factor: 1.5 },
        0,
        500,
    );
    assert_eq!(tokens(&mut engine, 1, 0), [300, 330]);
}

#[test]
fn a_narrow_memory_hurts_large_batches_most() {
    let profile = Profile {
        decode_per_extra_sequence: ms(1),
        ..Profile::fixed(ms(100), ms(10))
    };
    let gap = |batch: u64, factor: f64| {
        let mut engine = engine(profile);
        impose(
            &mut engine,
            ConditionKind::DecodeBandwidth { factor },
            0,
            9_000,
        );
        for id in 0..batch {
            engine
                .submit(at(0), &job(id, 10, 3))
                .expect("there is room");
        }
        let all = engine.advance(at(9_000));
        // Steps at whose begin all others run too.
        let times = times(&all, batch - 1);
        times[2] - times[1]
    };
    assert_eq!((gap(1, 1.0), gap(20, 1.0)), (10, 29));
    assert_eq!((gap(1, 3.0), gap(20, 3.0)), (12, 69));
}

#[test]
fn a_smaller_cache_makes_others_wait_and_the_last_give_way() {
    let mut engine = engine(Profile {
        kv_blocks: 40,
        block_tokens: 10,
        prefix_caching: false,
        ..Profile::fixed(ms(10), ms(10))
    });
    impose(
        &mut engine,
        ConditionKind::SmallKv { share: 0.5 },
        100,
        1_000,
    );
    let mut all = Vec::new();
    for id in 0..3 {
        submit((&mut engine, &mut all), 0, job(id, 80, 40));
    }
    all.extend(engine.advance(at(99)));
    assert_eq!((engine.state().running, engine.kv_blocks()), (3, 40));
    all.extend(engine.advance(at(100)));
    // Each holds 9 blocks of 20.
    let state = engine.state();
    assert_eq!(
        (state.running, state.waiting, engine.kv_blocks()),
        (2, 1, 20)
    );
    assert!((state.kv_usage - 0.9).abs() < 1e-12);
    let preempted = |e: &&Emission| e.kind == EmissionKind::Preempted;
    assert!(all.iter().filter(preempted).all(|e| e.at == at(100)));
    all.extend(engine.advance(at(10_000)));
    for id in 0..3 {
        let count = all
            .iter()
            .filter(|e| e.job == JobId(id) && matches!(e.kind, EmissionKind::Token { .. }))
            .count();
        assert_eq!(count, 40, "of {id}: nothing is lost");
    }
    assert_eq!(engine.kv_blocks(), 40);
    assert!(engine.state().kv_usage.abs() < 1e-12);
}

/// Prompt tokens of `job` that were found when it was admitted.
fn cached(engine: &mut Engine, arrival: u64, job: &Job) -> u32 {
    engine.advance(at(arrival));
    engine.submit(at(arrival), job).expect("there is room");
    let all = engine.advance(at(arrival + 90));
    all.iter()
        .find_map(|emission| match emission.kind {
            EmissionKind::Admitted { cached_tokens } => Some(cached_tokens),
            _ => None,
        })
        .expect("it was admitted")
}

#[test]
fn a_flushed_prefix_cache_stays_empty_and_then_fills_again() {
    let mut engine = engine(Profile {
        block_tokens: 10,
        ..Profile::fixed(ms(10), ms(10))
    });
    impose(&mut engine, ConditionKind::NoPrefixCache, 250, 500);
    let same = |id| Job {
        prompt: text(9, 100),
        ..job(id, 0, 1)
    };
    let found: Vec<u32> = (0..8)
        .map(|turn| cached(&mut engine, turn * 100, &same(turn)))
        .collect();
    assert_eq!(found, [0, 90, 90, 0, 0, 0, 90, 90]);
}

#[test]
fn a_late_host_idles_the_gpu_and_an_error_is_remembered() {
    let mut engine = engine(Profile::fixed(ms(10), ms(10)));
    impose(
        &mut engine,
        ConditionKind::HostStall { factor: 5.0 },
        2_000,
        4_000,
    );
    impose(
        &mut engine,
        ConditionKind::GpuError { xid: 79 },
        3_000,
        3_500,
    );
    engine
        .submit(at(0), &job(1, 10, 1_000))
        .expect("there is room");
    let mut busy = Vec::new();
    for second in 1..=5 {
        engine.advance(at(second * 1_000));
        busy.push(engine.last_second().busy);
    }
    let wanted = [1.0, 1.0, 0.2, 0.2, 1.0];
    for (got, wanted) in busy.iter().zip(wanted) {
        assert!((got - wanted).abs() < 1e-9, "{busy:?}");
    }
    assert_eq!(engine.last_xid(), Some(79));
    engine.restart();
    assert_eq!(engine.last_xid(), Some(79), "the driver was not reloaded");
    let calm = engine.sums().busy;
    engine.advance(at(9_000));
    assert!((engine.sums().busy - calm).abs() < 1e-9, "nothing runs");
}

#[test]
fn the_parts_of_a_request_are_its_whole() {
    let mut engine = engine(Profile {
        max_running: 1,
        ..Profile::fixed(ms(100), ms(10))
    });
    let mut all = Vec::new();
    for id in 0..2 {
        submit((&mut engine, &mut all), 0, job(id, 10, 3));
    }
    engine.advance(at(1_000));
    let stats = engine.stats();
    // The second waits for the first: 100 + 2 * 10 ms.
    assert_eq!(stats.queue.sum(), ms(120));
    assert_eq!(stats.prefill.sum(), ms(200));
    assert_eq!(stats.decode.sum(), ms(40));
    assert_eq!(stats.inference.sum(), ms(240));
    assert_eq!(stats.e2e.sum(), ms(360));
}
