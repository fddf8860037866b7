//! Who waits for blocks, who gives way, and what a cached prefix saves. Blocks have 4 tokens, a
//! prompt token takes 1 ms and an output token 10 ms.

use super::*;

fn small(kv_blocks: u32) -> Engine {
    engine(Profile {
        prefill_per_1k_tokens: ms(1000),
        kv_blocks,
        block_tokens: 4,
        ..Profile::fixed(ms(0), ms(10))
    })
}

fn prompt(id: u64, prompt: Vec<u64>, output_tokens: u32) -> Job {
    Job {
        prompt,
        ..job(id, 0, output_tokens)
    }
}

/// What happened to job `id`, each with its instant in milliseconds.
fn told(emissions: &[Emission], id: u64) -> Vec<(u64, String)> {
    let mine = emissions.iter().filter(|e| e.job == JobId(id));
    mine.map(|e| {
        let what = match e.kind {
            EmissionKind::Admitted { cached_tokens } => format!("admitted {cached_tokens}"),
            EmissionKind::Preempted => "preempted".to_owned(),
            EmissionKind::Resumed { cached_tokens } => format!("resumed {cached_tokens}"),
            EmissionKind::Token { index, finish } => match finish {
                None => format!("{index}"),
                Some(_) => format!("{index} end"),
            },
        };
        (e.at.as_nanos() / 1_000_000, what)
    })
    .collect()
}

fn expect(emissions: &[Emission], id: u64, expected: &[(u64, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(at, what)| (*at, (*what).to_owned()))
        .collect();
    assert_eq!(told(emissions, id), expected, "job {id}");
}

#[test]
fn only_tokens_that_are_not_cached_are_prefilled() {
    let mut all = Vec::new();
    let mut engine = small(100);
    let text = |tokens: u64| (0..tokens).collect::<Vec<u64>>();
    submit((&mut engine, &mut all), 0, prompt(1, text(10), 1));
    submit((&mut engine, &mut all), 100, prompt(2, text(10), 1));
    // The last token is computed in any case, and with it the rest of its block.
    submit((&mut engine, &mut all), 200, prompt(3, text(8), 1));
    let salted = Job {
        cache_salt: Some(5),
        ..prompt(4, text(10), 1)
    };
    submit((&mut engine, &mut all), 300, salted);
    all.extend(engine.advance(at(400)));
    expect(&all, 1, &[(0, "admitted 0"), (10, "0 end")]);
    expect(&all, 2, &[(100, "admitted 8"), (102, "0 end")]);
    expect(&all, 3, &[(200, "admitted 4"), (204, "0 end")]);
    expect(&all, 4, &[(300, "admitted 0"), (310, "0 end")]);
    let stats = engine.stats();
    assert_eq!((stats.prefix_queries, stats.prefix_hits), (38, 12));

    assert!(engine.reset_prefix_cache());
    submit((&mut engine, &mut all), 500, prompt(5, text(10), 1));
    engine.advance(at(500));
    assert!(!engine.reset_prefix_cache(), "job 5 is running");
    all.extend(engine.advance(at(600)));
    assert_eq!(engine.stats().prefix_hits, 12);
}

#[test]
fn without_a_prefix_cache_every_prompt_is_prefilled() {
    let mut all = Vec::new();
    let mut engine = Engine::new(
        Profile {
            prefix_caching: false,
            ..*small(100).profile()
        },
        7,
    );
    for id in 0..2 {
        submit(
            (&mut engine, &mut all),
            id * 100,
            prompt(id, vec![1; 10], 1),
        );
    }
    all.extend(engine.advance(at(400)));
    expect(&all, 1, &[(100, "admitted 0"), (110, "0 end")]);
    assert_eq!(engine.stats().prefix_queries, 0);
}

#[test]
fn an_answer_is_cached_too_but_for_its_last_token() {
    let mut all = Vec::new();
    let mut engine = small(100);
    submit((&mut engine, &mut all), 0, prompt(1, text(1, 6), 6));
    // 6 + 5 tokens were computed: two full blocks. The next turn has 6 + 6 + 2.
    let mut next = text(1, 6);
    next.extend((0..6).map(|index| tokens::token(tokens::word(1, index))));
    next.extend([88, 99]);
    submit((&mut engine, &mut all), 200, prompt(2, next, 1));
    all.extend(engine.advance(at(400)));
    expect(&all, 2, &[(200, "admitted 8"), (206, "0 end")]);
}

#[test]
fn equal_prompts_at_once_share_their_blocks() {
    let mut all = Vec::new();
    let mut engine = small(6);
    for id in 0..3 {
        submit((&mut engine, &mut all), 0, prompt(id, (0..13).collect(), 1));
    }
    all.extend(engine.advance(at(0)));
    // Three shared blocks and one of each.
    let state = engine.state();
    assert_eq!((state.running, state.waiting), (3, 0));
    assert!((state.kv_usage - 1.0).abs() < 1e-9, "{}", state.kv_usage);
}

#[test]
fn the_first_in_the_queue_waits_for_blocks_and_the_others_behind_it() {
    let run = |cancel: bool| {
        let mut all = Vec::new();
        let mut engine = small(4);
        submit((&mut engine, &mut all), 0, job(1, 12, 2));
        submit((&mut engine, &mut all), 0, job(2, 8, 1));
        submit((&mut engine, &mut all), 0, job(3, 4, 1));
        all.extend(engine.advance(at(5)));
        assert_eq!((engine.state().running, engine.state().waiting), (1, 2));
        if cancel {
            engine.cancel(JobId(2));
        }
        all.extend(engine.advance(at(100)));
        all
    };
    // Job 1 has 3 of 4 blocks, and all of them from 12 until it ends at 22.
    let all = run(false);
    expect(&all, 1, &[(0, "admitted 0"), (12, "0"), (22, "1 end")]);
    expect(&all, 2, &[(22, "admitted 0"), (30, "0 end")]);
    expect(&all, 3, &[(22, "admitted 0"), (26, "0 end")]);
    // Without job 2, job 3 gets the fourth block at once and is done before job 1 needs it.
    let all = run(true);
    expect(&all, 3, &[(5, "admitted 0"), (9, "0 end")]);
    expect(&all, 1, &[(0, "admitted 0"), (12, "0"), (22, "1 end")]);
}

#[test]
fn who_was_admitted_last_gives_way_and_goes_on_later() {
    let mut all = Vec::new();
    let mut engine = small(4);
    submit((&mut engine, &mut all), 0, job(1, 7, 3));
    submit((&mut engine, &mut all), 0, job(2, 5, 4));
    submit((&mut engine, &mut all), 1, job(3, 1, 1));
    all.extend(engine.advance(at(20)));
    // At 17 job 1 has 9 tokens and needs a third block. Job 2 has 7 tokens; its second block
    // goes to job 1. One block is free, which is not enough for job 2, and job 3 is behind it.
    let state = engine.state();
    assert_eq!((state.running, state.waiting), (1, 2));
    all.extend(engine.advance(at(1000)));
    expect(
        &all,
        1,
        &[(0, "admitted 0"), (7, "0"), (17, "1"), (27, "2 end")],
    );
    // Its first block is still there: 3 of 7 tokens are computed again, which gives the third.
    expect(
        &all,
        2,
        &[
            (0, "admitted 0"),
            (5, "0"),
            (15, "1"),
            (17, "preempted"),
            (27, "resumed 4"),
            (30, "2"),
            (40, "3 end"),
        ],
    );
    expect(&all, 3, &[(27, "admitted 0"), (28, "0 end")]);
    let totals = engine.stats();
    assert_eq!((totals.preemptions, totals.generation_tokens), (1, 8));
    // The lookup of a resumed job is not counted.
    assert_eq!((totals.prefix_queries, totals.prefix_hits), (13, 0));
    assert_eq!(totals.prompt_tokens, 13);
    assert_eq!(
        (totals.itl.count(), totals.itl.sum()),
        (5, ms(10 + 10 + 10 + 15 + 10))
    );
}

#[test]
fn a_sequence_that_is_itself_the_last_gives_way_to_nobody_and_waits() {
    let mut all = Vec::new();
    let mut engine = small(4);
    submit((&mut engine, &mut all), 0, job(1, 4, 8));
    submit((&mut engine, &mut all), 0, job(2, 6, 6));
    all.extend(engine.advance(at(1000)));
    // At 26 job 2 has 9 tokens and no block is free, so it goes itself. At 44 job 1 takes the
    // second of its blocks; the first is found again at 74.
    expect(
        &all,
        2,
        &[
            (0, "admitted 0"),
            (6, "0"),
            (16, "1"),
            (26, "2"),
            (26, "preempted"),
            (74, "resumed 4"),
            (79, "3"),
            (89, "4"),
            (99, "5 end"),
        ],
    );
    let last = told(&all, 1);
    assert_eq!(last.last(), Some(&(74, "7 end".to_owned())));
    assert_eq!(engine.stats().preemptions, 1);
    assert!(engine.state().kv_usage.abs() < 1e-12);
}

#[test]
fn a_job_that_can_never_fit_is_refused() {
    let mut engine = small(4);
    assert_eq!(
        engine.submit(at(0), &job(1, 10, 7)),
        Err(Refused::TooLong {
            tokens: 17,
            most: 16
        })
    );
    assert_eq!(engine.submit(at(0), &job(2, 10, 6)), Ok(()));
}

#[test]
fn a_restart_empties_the_cache() {
    let mut all = Vec::new();
    let mut engine = small(4);
    submit((&mut engine, &mut all), 0, prompt(1, vec![1; 9], 2));
    engine.advance(at(5));
    engine.restart();
    assert!(engine.state().kv_usage.abs() < 1e-12);
    submit((&mut engine, &mut all), 10, prompt(2, vec![1; 9], 1));
    all.extend(engine.advance(at(100)));
    expect(&all, 2, &[(10, "admitted 0"), (19, "0 end")]);
}
