//! What holds for any arrivals, freezes and departures.

use proptest::prelude::*;

use super::*;

/// Something that happens to the engine.
#[derive(Debug, Clone)]
enum Deed {
    Submit { prompt: u32, output: u32 },
    Cancel(u64),
    Freeze { after: u64, lasts: u64 },
    Slow { factor: u32, lasts: u64 },
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (0..2000_u32, 1..20_u32).prop_map(|(prompt, output)| Deed::Submit { prompt, output }),
        2 => (0..40_u64).prop_map(Deed::Cancel),
        1 => (0..50_u64, 1..500_u64).prop_map(|(after, lasts)| Deed::Freeze { after, lasts }),
        1 => (1..5_u32, 1..500_u64).prop_map(|(factor, lasts)| Deed::Slow { factor, lasts }),
    ]
}

fn profile() -> impl Strategy<Value = Profile> {
    (1..6_usize, 0..30_u64, 0..10_u64, 0..3_u64).prop_map(|(slots, prefill, decode, extra)| {
        Profile {
            max_running: slots,
            prefill_per_1k_tokens: ms(10),
            decode_per_extra_sequence: ms(extra),
            jitter: 0.2,
            ..Profile::fixed(ms(prefill), ms(decode))
        }
    })
}

proptest! {
    #[test]
    fn every_job_that_stays_gets_all_its_tokens_in_order(
        profile in profile(),
        deeds in prop::collection::vec((0..40_u64, deed()), 1..60),
    ) {
        let mut engine = Engine::new(profile, 3);
        let (mut now, mut submitted, mut cancelled) = (0, Vec::new(), Vec::new());
        let mut all = Vec::new();
        for (wait, deed) in deeds {
            now += wait;
            all.extend(engine.advance(at(now)));
            prop_assert!(engine.state().running <= profile.max_running);
            prop_assert!(engine.next_event().is_none_or(|next| next > at(now)));
            match deed {
                Deed::Submit { prompt, output } => {
                    let id = u64::try_from(submitted.len()).expect("a small number");
                    engine.submit(at(now), &job(id, prompt, output)).expect("there is room");
                    submitted.push((id, output));
                }
                Deed::Cancel(id) => {
                    engine.cancel(JobId(id));
                    cancelled.push(id);
                }
                Deed::Freeze { after, lasts } => {
                    engine.freeze(at(now + after), at(now + after + lasts));
                }
                Deed::Slow { factor, lasts } => engine.slow(Slowdown {
                    phase: Phase::Decode,
                    factor: f64::from(factor),
                    from: at(now),
                    until: at(now + lasts),
                }),
            }
        }
        all.extend(engine.advance(at(1_000_000)));
        prop_assert!(all.is_sorted_by_key(|emission| emission.at));
        for (id, output) in submitted.into_iter().filter(|(id, _)| !cancelled.contains(id)) {
            let expected = usize::try_from(output).expect("a small number") + 1;
            prop_assert_eq!(times(&all, id).len(), expected);
        }
        let state = engine.state();
        prop_assert_eq!((state.running, state.waiting, engine.next_event()), (0, 0, None));
        prop_assert!(state.kv_usage.abs() < 1e-12);
    }
}

/// Prompts out of a few families, which share beginnings of some length.
fn family_prompt(family: u64, tokens: u64) -> Vec<u64> {
    (0..tokens)
        .map(|at| if at < 20 { at } else { family << 32 | at })
        .collect()
}

/// Something that is so for a while.
fn condition() -> impl Strategy<Value = Condition> {
    let kind = prop_oneof![
        (0.05..1.0_f64).prop_map(|share| ConditionKind::SmallKv { share }),
        Just(ConditionKind::NoPrefixCache),
        (0.5..4.0_f64).prop_map(|factor| ConditionKind::HostStall { factor }),
        (0.5..4.0_f64).prop_map(|factor| ConditionKind::DecodeBandwidth { factor }),
        (1..100_u32).prop_map(|xid| ConditionKind::GpuError { xid }),
    ];
    (0..900_u64, 0..600_u64, kind).prop_map(|(from, lasts, kind)| Condition {
        kind,
        from: at(from),
        until: at(from + lasts),
    })
}

proptest! {
    #[test]
    fn a_small_cache_delays_jobs_and_loses_nothing(
        (kv_blocks, block_tokens, slots, caching) in (8..30_u32, 4..9_u32, 1..8_usize, any::<bool>()),
        jobs in prop::collection::vec((0..60_u64, 0..4_u64, 0..24_u64, 1..9_u32), 1..60),
        leaves in prop::collection::vec(0..60_u64, 0..6),
        conditions in prop::collection::vec(condition(), 0..5),
    ) {
        let mut engine = Engine::new(
            Profile {
                max_running: slots,
                kv_blocks,
                block_tokens,
                prefix_caching: caching,
                prefill_per_1k_tokens: ms(1000),
                ..Profile::fixed(ms(3), ms(5))
            },
            3,
        );
        for condition in conditions {
            engine.impose(condition);
        }
        let (mut now, mut all) = (0, Vec::new());
        for (id, (wait, family, tokens, output)) in (0..).zip(&jobs) {
            now += wait % 30;
            all.extend(engine.advance(at(now)));
            prop_assert!(engine.state().running <= slots);
            prop_assert!(engine.next_event().is_none_or(|next| next > at(now)));
            let job = Job { prompt: family_prompt(*family, *tokens), ..job(id, 0, *output) };
            engine.submit(at(now), &job).expect("at least 32 tokens fit");
            if leaves.contains(&id) {
                engine.cancel(JobId(id / 2));
            }
        }
        all.extend(engine.advance(at(1_000_000)));
        prop_assert!(all.is_sorted_by_key(|emission| emission.at));
        for (id, (.., output)) in (0..).zip(&jobs) {
            if leaves.iter().any(|leave| leave / 2 == id) {
                continue;
            }
            let indices: Vec<u32> = all
                .iter()
                .filter(|emission| emission.job == JobId(id))
                .filter_map(|emission| match emission.kind {
                    EmissionKind::Token { index, .. } => Some(index),
                    _ => None,
                })
                .collect();
            prop_assert_eq!(indices, (0..*output).collect::<Vec<_>>());
        }
        let state = engine.state();
        prop_assert_eq!((state.running, state.waiting, engine.next_event()), (0, 0, None));
        prop_assert!(state.kv_usage.abs() < 1e-12);
        let stats = engine.stats();
        prop_assert!(stats.prefix_hits <= stats.prefix_queries);
        prop_assert!(caching || stats.prefix_hits == 0);
        prop_assert_eq!((*engine.machine(), engine.kv_blocks()), (Machine::HEALTHY, kv_blocks));
        let sums = engine.sums();
        prop_assert!((sums.elapsed - 1_000.0).abs() < 1e-6);
        prop_assert!(sums.busy_others <= sums.busy + 1e-9 && sums.busy <= sums.elapsed);
        prop_assert!(sums.prefill <= sums.busy + 1e-9);
    }
}
