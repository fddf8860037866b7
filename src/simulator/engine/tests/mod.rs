//! The engine against times computed by hand. All instants are in milliseconds.

mod cache;
mod conditions;
mod property;

use std::time::Duration;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> MonoTime {
    MonoTime::ZERO + ms(millis)
}

fn engine(profile: Profile) -> Engine {
    Engine::new(profile, 7)
}

/// Prefill 1 ms, then a token each millisecond.
fn quick() -> Engine {
    engine(Profile::fixed(ms(1), ms(1)))
}

fn job(id: u64, prompt_tokens: u32, output_tokens: u32) -> Job {
    Job {
        id: JobId(id),
        prompt: text(id, prompt_tokens),
        cache_salt: None,
        min_tokens: output_tokens,
        answer: Vec::new(),
        max_tokens: output_tokens,
    }
}

/// Tokens of a text that has nothing in common with those of another number.
fn text(number: u64, tokens: u32) -> Vec<u64> {
    let first = number << 32;
    (first..first + u64::from(tokens)).collect()
}

/// Advances to `now`, keeps what came, then submits.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a job is made where it is submitted"
)]
fn submit((engine, all): (&mut Engine, &mut Vec<Emission>), now: u64, job: Job) {
    all.extend(engine.advance(at(now)));
    engine.submit(at(now), &job).expect("the engine has room");
}

/// When job `id` was admitted (first) and when its tokens came.
fn times(emissions: &[Emission], id: u64) -> Vec<u64> {
    emissions
        .iter()
        .filter(|emission| emission.job == JobId(id))
        .map(|emission| emission.at.as_nanos() / 1_000_000)
        .collect()
}

#[test]
fn the_first_token_comes_at_the_end_of_the_prefill() {
    let mut all = Vec::new();
    let mut engine = quick();
    submit((&mut engine, &mut all), 5, job(1, 10, 2));
    all.extend(engine.advance(at(1000)));
    let expected = [
        (at(5), EmissionKind::Admitted { cached_tokens: 0 }),
        (
            at(6),
            EmissionKind::Token {
                index: 0,
                finish: None,
            },
        ),
        (
            at(7),
            EmissionKind::Token {
                index: 1,
                finish: Some(Finish::Length),
            },
        ),
    ];
    let got: Vec<_> = all.iter().map(|e| (e.at, e.kind)).collect();
    assert_eq!(got, expected);
    assert_eq!(engine.next_event(), None);
}

#[test]
fn next_event_names_each_instant() {
    let mut all = Vec::new();
    let mut engine = quick();
    assert_eq!(engine.next_event(), None);
    submit((&mut engine, &mut all), 5, job(1, 10, 2));
    assert_eq!(engine.next_event(), Some(at(5)));
    assert_eq!(engine.advance(at(5)).len(), 1);
    assert_eq!(engine.next_event(), Some(at(6)));
    assert_eq!(engine.advance(at(6)).len(), 1);
    assert_eq!(engine.next_event(), Some(at(7)));
}

#[test]
fn a_fixed_profile_does_not_feel_the_batch() {
    let mut all = Vec::new();
    let mut engine = engine(Profile::fixed(ms(100), ms(10)));
    for id in 0..50 {
        submit((&mut engine, &mut all), 0, job(id, 500, 128));
    }
    all.extend(engine.advance(at(10_000)));
    for id in 0..50 {
        let times = times(&all, id);
        assert_eq!(times.len(), 129);
        assert_eq!((times[0], times[1], times[2]), (0, 100, 110));
        assert_eq!(times[128], 100 + 127 * 10);
    }
}

#[test]
fn prefill_grows_with_the_prompt() {
    let mut all = Vec::new();
    let mut engine = engine(Profile {
        prefill_per_1k_tokens: ms(100),
        ..Profile::fixed(ms(10), ms(1))
    });
    submit((&mut engine, &mut all), 0, job(1, 0, 1));
    submit((&mut engine, &mut all), 0, job(2, 500, 1));
    all.extend(engine.advance(at(1000)));
    assert_eq!(times(&all, 1), [0, 10]);
    assert_eq!(times(&all, 2), [0, 60]);
}

#[test]
fn decode_slows_down_while_others_run() {
    let mut all = Vec::new();
    let mut engine = engine(Profile {
        decode_per_extra_sequence: ms(2),
        ..Profile::fixed(ms(10), ms(5))
    });
    // Alone until 12, beside job 2 until job 2 ends, then alone again.
    submit((&mut engine, &mut all), 0, job(1, 0, 6));
    submit((&mut engine, &mut all), 12, job(2, 0, 2));
    all.extend(engine.advance(at(1000)));
    // 10 + 5 (planned alone) = 15; then beside job 2: + 7 = 22, + 7 = 29. At 29 job 2's step
    // was planned first, so it has left when job 1 plans its next: + 5 = 34, + 5 = 39.
    assert_eq!(times(&all, 2), [12, 22, 29]);
    assert_eq!(times(&all, 1), [0, 10, 15, 22, 29, 34, 39]);
}

#[test]
fn the_queue_is_served_in_order_as_slots_become_free() {
    let mut all = Vec::new();
    let mut engine = engine(Profile {
        max_running: 2,
        ..Profile::fixed(ms(10), ms(10))
    });
    for (id, tokens) in [(1, 1), (2, 3), (3, 1), (4, 1)] {
        submit((&mut engine, &mut all), 0, job(id, 0, tokens));
    }
    all.extend(engine.advance(at(0)));
    let state = engine.state();
    assert_eq!((state.running, state.waiting), (2, 2));
    all.extend(engine.advance(at(1000)));
    assert_eq!(times(&all, 1), [0, 10]);
    assert_eq!(times(&all, 2), [0, 10, 20, 30]);
    assert_eq!(times(&all, 3), [10, 20]);
    assert_eq!(times(&all, 4), [20, 30]);
}

#[test]
fn a_freeze_postpones_every_step_by_its_length() {
    let mut all = Vec::new();
    let mut engine = quick();
    engine.freeze(at(10), at(60));
    submit((&mut engine, &mut all), 8, job(1, 0, 5));
    submit((&mut engine, &mut all), 30, job(2, 0, 2));
    all.extend(engine.advance(at(1000)));
    // Job 1: tokens due at 9, 10, 11, 12, 13. The one due at 10 comes when the freeze ends.
    assert_eq!(times(&all, 1), [8, 9, 60, 61, 62, 63]);
    assert_eq!(times(&all, 2), [60, 61, 62]);
}

#[test]
fn overlapping_freezes_count_once() {
    let mut all = Vec::new();
    let mut engine = quick();
    engine.freeze(at(10), at(20));
    engine.freeze(at(15), at(30));
    engine.freeze(at(16), at(18));
    submit((&mut engine, &mut all), 9, job(1, 0, 2));
    all.extend(engine.advance(at(1000)));
    // Due at 10 and 11, late by the 20 ms from 10 to 30.
    assert_eq!(times(&all, 1), [9, 30, 31]);
}

#[test]
fn a_freeze_of_five_seconds_hurts_fifty_arrivals() {
    let mut engine = quick();
    engine.freeze(at(9_950), at(14_950));
    let mut all = Vec::new();
    for arrival in 0..200 {
        submit((&mut engine, &mut all), arrival * 100, job(arrival, 0, 2));
    }
    all.extend(engine.advance(at(30_000)));
    let late = (0..200)
        .filter(|id| times(&all, *id)[2] - id * 100 > 25)
        .count();
    assert_eq!(late, 50);
}

#[test]
fn a_slowdown_stretches_the_steps_that_begin_in_it() {
    let mut all = Vec::new();
    let mut engine = engine(Profile::fixed(ms(10), ms(10)));
    for (phase, factor) in [(Phase::Prefill, 3.0), (Phase::Decode, 2.0)] {
        engine.slow(Slowdown {
            phase,
            factor,
            from: at(15),
            until: at(45),
        });
    }
    submit((&mut engine, &mut all), 0, job(1, 0, 5));
    submit((&mut engine, &mut all), 20, job(2, 0, 1));
    all.extend(engine.advance(at(1000)));
    // 10, +10 = 20 (begun before), +20 = 40, +20 = 60 (begun at 40), +10 = 70.
    assert_eq!(times(&all, 1), [0, 10, 20, 40, 60, 70]);
    assert_eq!(times(&all, 2), [20, 50]);
}

#[test]
fn a_cancelled_job_frees_its_slot_at_once() {
    let mut all = Vec::new();
    let mut engine = engine(Profile {
        max_running: 1,
        kv_blocks: 100,
        block_tokens: 1,
        ..Profile::fixed(ms(10), ms(10))
    });
    submit((&mut engine, &mut all), 0, job(1, 20, 9));
    submit((&mut engine, &mut all), 0, job(2, 30, 1));
    submit((&mut engine, &mut all), 0, job(3, 0, 1));
    all.extend(engine.advance(at(25)));
    let usage = engine.state().kv_usage;
    assert!((usage - 0.22).abs() < 1e-9, "20 + 2 tokens of 100: {usage}");
    engine.cancel(JobId(3));
    engine.cancel(JobId(1));
    all.extend(engine.advance(at(1000)));
    assert_eq!(times(&all, 1), [0, 10, 20]);
    assert_eq!(times(&all, 2), [25, 35]);
    assert_eq!(times(&all, 3), [0; 0]);
    let state = engine.state();
    assert_eq!((state.running, state.waiting), (0, 0));
    assert!(state.kv_usage.abs() < 1e-9);
    assert_eq!(engine.stats().aborted, 2);
}

#[test]
fn totals_and_histograms_hold_what_happened() {
    let mut all = Vec::new();
    let mut engine = engine(Profile::fixed(ms(100), ms(10)));
    submit((&mut engine, &mut all), 0, job(1, 40, 3));
    engine.advance(at(1000));
    let stats = engine.stats();
    assert_eq!((stats.prompt_tokens, stats.generation_tokens), (40, 3));
    assert_eq!((stats.reached_length, stats.stopped), (1, 0));
    assert_eq!((stats.ttft.count(), stats.ttft.sum()), (1, ms(100)));
    assert_eq!((stats.itl.count(), stats.itl.sum()), (2, ms(20)));
    assert_eq!((stats.e2e.count(), stats.e2e.sum()), (1, ms(120)));
    // 100 ms lies in the bucket up to 0.1 s, and 10 ms in the one up to 0.01 s.
    let below = |counts: &BucketCounts, bound: f64| {
        counts
            .cumulative()
            .find(|(upper, _)| (upper - bound).abs() < 1e-12)
            .map(|(_, below)| below)
    };
    assert_eq!(below(&stats.ttft, 0.08), Some(0));
    assert_eq!(below(&stats.ttft, 0.1), Some(1));
    assert_eq!(below(&stats.itl, 0.01), Some(2));
    assert_eq!(below(&stats.e2e, 7680.0), Some(1));
}

#[test]
fn a_restart_forgets_jobs_and_totals() {
    let mut all = Vec::new();
    let mut engine = quick();
    engine.freeze(at(1), at(500));
    engine.freeze(at(100), at(110));
    submit((&mut engine, &mut all), 0, job(1, 5, 9));
    engine.advance(at(50));
    engine.restart();
    assert_eq!(engine.stats().generation_tokens, 0);
    submit((&mut engine, &mut all), 60, job(2, 5, 1));
    all.extend(engine.advance(at(1000)));
    assert_eq!(times(&all, 1), [0; 0]);
    assert_eq!(times(&all, 2), [60, 61]);
}

#[test]
fn the_same_seed_gives_the_same_times_and_jitter_stays_in_whole_milliseconds() {
    let run = |seed| {
        let mut engine = Engine::new(Profile::demo(), seed);
        let mut all = Vec::new();
        for id in 0..20 {
            submit((&mut engine, &mut all), id * 7, job(id, 128, 64));
        }
        all.extend(engine.advance(at(100_000)));
        all
    };
    let first = run(1);
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
    assert!(first.iter().all(|e| e.at.as_nanos() % 1_000_000 == 0));
    for id in 0..20 {
        let times = times(&first, id);
        let ttft = times[1] - times[0];
        assert!((40..=80).contains(&ttft), "{ttft}");
    }
}

#[test]
fn a_profile_that_stops_early_keeps_between_least_and_most() {
    let mut all = Vec::new();
    let mut engine = engine(Profile {
        stops_early: true,
        ..Profile::instant()
    });
    for id in 0..200 {
        let job = Job {
            min_tokens: 3,
            answer: Vec::new(),
            max_tokens: 6,
            ..job(id, 1, 6)
        };
        submit((&mut engine, &mut all), 0, job);
    }
    all.extend(engine.advance(at(0)));
    for id in 0..200 {
        let tokens = times(&all, id).len() - 1;
        assert!((3..=6).contains(&tokens), "{tokens}");
    }
    let stats = engine.stats();
    assert_eq!(stats.stopped + stats.reached_length, 200);
    assert!(stats.stopped > 100 && stats.reached_length > 20);
}

#[test]
fn the_engine_refuses_more_jobs_than_it_holds() {
    let mut engine = quick();
    for id in 0..65_536 {
        engine.submit(at(0), &job(id, 0, 1)).expect("there is room");
    }
    assert_eq!(
        engine.submit(at(0), &job(65_536, 0, 1)),
        Err(Refused::Full(65_536))
    );
}
