//! The simulator's prefix cache against what `trace analyze` says of the same trace: both are
//! models of a server's cache, written apart from each other, and have to agree.
//!
//! The trace is made here, in the manner of Mooncake's: blocks of 512 tokens with chained ids,
//! few system prompts, sessions that grow from turn to turn. Tokens go into the engine directly.

use std::time::Duration;

use tokencanary::clock::MonoTime;
use tokencanary::load::trace::{Analyzer, CacheSize, Format, TraceRow};
use tokencanary::simulator::Profile;
use tokencanary::simulator::engine::{Engine, Job, JobId};

/// Tokens of a block of the trace.
const BLOCK: u32 = 512;

/// One request of the trace.
struct Row {
    at_ms: u64,
    input_tokens: u32,
    output_tokens: u32,
    /// The last one stands for what is left over, if that is not a whole block.
    ids: Vec<u64>,
}

/// Numbers that look random (Knuth's constants for 64 bits), the same each time.
struct Draw(u64);

impl Draw {
    /// From `least` to `most`.
    fn between(&mut self, least: u32, most: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let high = u32::try_from(self.0 >> 33).expect("31 bits");
        least + high % (most - least + 1)
    }
}

/// 300 requests of 40 conversations that begin with one of 4 system prompts.
fn trace() -> Vec<Row> {
    let mut draw = Draw(11);
    let mut next_id = 0;
    let mut fresh = |count: u32| {
        next_id += u64::from(count);
        next_id - u64::from(count)..next_id
    };
    let systems: Vec<Vec<u64>> = (1..=4).map(|blocks| fresh(blocks * 4).collect()).collect();
    let mut sessions: Vec<Vec<u64>> = (0..40).map(|n| systems[n % 4].clone()).collect();
    let mut at_ms = 0;
    let mut rows = Vec::new();
    for _ in 0..300 {
        at_ms += u64::from(draw.between(0, 2000));
        let session = &mut sessions[draw.between(0, 39) as usize];
        session.extend(fresh(draw.between(0, 12)));
        let mut ids = session.clone();
        let whole = u32::try_from(ids.len()).expect("few") * BLOCK;
        // One in ten ends at the end of a block.
        let rest = draw.between(0, 569).saturating_sub(58);
        if rest > 0 {
            ids.extend(fresh(1));
        }
        rows.push(Row {
            at_ms,
            input_tokens: whole + rest,
            output_tokens: draw.between(20, 400),
            ids,
        });
    }
    rows
}

/// What the analysis says that a cache of so many blocks serves, in points; `None`: of any number.
/// `answers` says whether they are as long as in the trace, or the shortest there are.
fn predicted(rows: &[Row], blocks: Option<u64>, answers: bool) -> f64 {
    let mut analyzer = Analyzer::new(Format::Mooncake, blocks.map(CacheSize::Blocks));
    for row in rows {
        analyzer.add(&TraceRow {
            at: Some(Duration::from_millis(row.at_ms)),
            input_tokens: Some(row.input_tokens),
            output_tokens: Some(if answers { row.output_tokens } else { 1 }),
            blocks: row.ids.clone(),
            block_tokens: BLOCK,
            ..TraceRow::default()
        });
    }
    let analysis = analyzer.finish();
    let ceiling = match blocks {
        Some(_) => analysis.lru_cache,
        None => analysis.infinite_cache,
    };
    let share = ceiling.and_then(|ceiling| ceiling.token_share);
    share.expect("the rows have ids").value * 100.0
}

/// How the trace is replayed.
#[derive(Debug, Clone, Copy)]
struct Replay {
    /// Of the trace, which are cut into blocks of `block_tokens`; `None`: more than it needs.
    blocks: Option<u32>,
    block_tokens: u32,
    /// As in the trace, or the least there is.
    answers: bool,
    /// At the times of the trace, or one after the other.
    at_once: bool,
}

/// Prompt tokens that the engine found in its cache, in points.
fn replayed(rows: &[Row], replay: Replay) -> f64 {
    let mut engine = Engine::new(
        Profile {
            kv_blocks: replay.blocks.unwrap_or(5000) * (BLOCK / replay.block_tokens),
            block_tokens: replay.block_tokens,
            ..Profile::large()
        },
        1,
    );
    let mut most_running = 0;
    for (number, row) in (0..).zip(rows) {
        let now = MonoTime::ZERO
            + if replay.at_once {
                Duration::from_millis(row.at_ms)
            } else {
                Duration::from_secs(number * 1000)
            };
        engine.advance(now);
        most_running = most_running.max(engine.state().running);
        let tokens = row
            .ids
            .iter()
            .flat_map(|id| (0..BLOCK).map(move |at| id << 16 | u64::from(at)));
        let output = if replay.answers { row.output_tokens } else { 1 };
        let job = Job {
            id: JobId(number),
            prompt: tokens.take(row.input_tokens as usize).collect(),
            cache_salt: None,
            answer: Vec::new(),
            min_tokens: output,
            max_tokens: output,
        };
        engine.submit(now, &job).expect("it fits");
    }
    engine.advance(MonoTime::ZERO + Duration::from_secs(10_000_000));
    let all_tokens: u64 = rows.iter().map(|row| u64::from(row.input_tokens)).sum();
    let stats = engine.stats();
    assert_eq!(stats.prefix_queries, all_tokens);
    assert_eq!(stats.reached_length, 300);
    match (replay.at_once, replay.answers) {
        (false, _) => assert_eq!(most_running, 0, "each ends before the next"),
        (true, false) => {}
        (true, true) => assert!(most_running >= 5, "{most_running}"),
    }
    let tokens = |count| f64::from(u32::try_from(count).expect("a few millions"));
    100.0 * tokens(stats.prefix_hits) / tokens(stats.prefix_queries)
}

/// Whether answers are as in the trace, and whether its times are.
const WAYS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

#[test]
fn a_cache_without_a_limit_finds_what_the_analysis_says() {
    let rows = trace();
    let ceiling = predicted(&rows, None, true);
    assert!((60.0..95.0).contains(&ceiling), "{ceiling}");
    for (answers, at_once) in WAYS {
        let replay = |block_tokens| Replay {
            blocks: None,
            block_tokens,
            answers,
            at_once,
        };
        // Nothing differs: the same blocks, and all of them stay.
        let same = replayed(&rows, replay(BLOCK));
        assert!((same - ceiling).abs() < 1e-9, "{same}, predicted {ceiling}");
        // Where a prompt ends with a block of the trace that was seen, the analysis gives up
        // the whole of it, since the last token is always computed; a server with smaller
        // blocks gives up one of those.
        let finer = replayed(&rows, replay(16));
        let more = finer - ceiling;
        crate::program::tell(&format!("{more:.3} points more with blocks of 16"));
        assert!((0.0..1.0).contains(&more), "{finer}, predicted {ceiling}");
    }
}

#[test]
fn a_cache_of_some_size_finds_what_the_analysis_says() {
    let rows = trace();
    let mut far = Vec::new();
    for blocks in [600_u32, 1000, 1400] {
        let size = Some(u64::from(blocks));
        for block_tokens in [BLOCK, 16] {
            for (answers, at_once) in WAYS {
                let replay = Replay {
                    blocks: Some(blocks),
                    block_tokens,
                    answers,
                    at_once,
                };
                let expected = predicted(&rows, size, answers);
                let found = replayed(&rows, replay);
                let seen = format!("{replay:?}: {found:.2}, predicted {expected:.2}");
                crate::program::tell(&seen);
                // What is left over takes a whole block of the trace in the analysis, and less
                // than that in a server with smaller ones.
                let most = if block_tokens == BLOCK { 1.0 } else { 1.25 };
                let near = (found - expected).abs() < most;
                if !near {
                    far.push(seen);
                }
            }
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}
