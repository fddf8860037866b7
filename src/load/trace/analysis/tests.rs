//! Small traces whose figures can be worked out by hand.

use std::time::Duration;

use super::*;
use crate::load::trace::row::BlockScope;

fn row(input_tokens: u32, block_tokens: u32, blocks: &[u64]) -> TraceRow {
    TraceRow {
        input_tokens: Some(input_tokens),
        block_tokens,
        blocks: blocks.to_vec(),
        ..TraceRow::default()
    }
}

fn analysed(cache: Option<CacheSize>, rows: &[TraceRow]) -> Analysis {
    let mut analyzer = Analyzer::new(Format::Mooncake, cache);
    for row in rows {
        analyzer.add(row);
    }
    analyzer.finish()
}

#[track_caller]
fn near(found: Option<Estimate>, wanted: f64) {
    let found = found.expect("there is a number");
    assert!(
        (found.value - wanted).abs() < 1e-9,
        "{found:?} and not {wanted}"
    );
    assert_eq!(found.error, None, "it is exact");
}

#[test]
fn only_the_beginning_of_a_prompt_is_served() {
    let told = analysed(
        None,
        &[
            row(30, 10, &[1, 2, 3]),
            // Two leading blocks, then a new one; 3 is known and does not count behind it.
            row(40, 10, &[1, 2, 9, 3]),
            // All known, and yet the last token is computed: its block is not served.
            row(30, 10, &[1, 2, 3]),
            // A part block is known, but is never kept.
            row(35, 10, &[1, 2, 3, 7]),
            row(35, 10, &[1, 2, 3, 7]),
        ],
    );
    let ceiling = told.infinite_cache.expect("there are blocks");
    assert_eq!(ceiling.blocks, 18);
    near(ceiling.distinct_blocks, 5.0);
    // Leading ids seen: 0, 2, 3, 3, 4 of 18.
    near(ceiling.block_share, 12.0 / 18.0);
    // Served: 0, 20, 20, 30, 30 of 170 tokens.
    near(ceiling.token_share, 100.0 / 170.0);
    let mean = (0.0 + 0.5 + 1.0 + 0.75 + 1.0) / 5.0;
    assert!((ceiling.mean_block_share.expect("exact") - mean).abs() < 1e-9);
    assert_eq!(ceiling.sampled_one_in, 1);
}

#[test]
fn a_small_cache_forgets_the_end_of_prompts_first() {
    let rows = [
        row(31, 10, &[1, 2, 3]),
        row(21, 10, &[4, 5]),
        // The last token of each takes a block too, which goes first. A cache of four keeps 4, 5,
        // what came after them, and the first of the others.
        row(31, 10, &[1, 2, 3]),
    ];
    let told = analysed(Some(CacheSize::Blocks(4)), &rows).lru_cache;
    let told = told.expect("there are blocks");
    assert_eq!(told.cache_blocks, Some(4));
    near(told.token_share, 10.0 / 83.0);
    let told = analysed(Some(CacheSize::Tokens(59)), &rows).lru_cache;
    let told = told.expect("there are blocks");
    assert_eq!(told.cache_blocks, Some(5));
    near(told.token_share, 20.0 / 83.0);
    let told = analysed(Some(CacheSize::Blocks(6)), &rows).lru_cache;
    near(told.expect("there are blocks").token_share, 30.0 / 83.0);
    let told = analysed(Some(CacheSize::Blocks(2)), &rows).lru_cache;
    near(told.expect("there are blocks").token_share, 0.0);
}

#[test]
fn an_answer_takes_room_in_a_small_cache() {
    let answered = TraceRow {
        output_tokens: Some(20),
        ..row(21, 10, &[4, 5])
    };
    // Of 40 tokens, the last of which is never computed on, two blocks are no use to anybody.
    let rows = [row(20, 10, &[1, 2]), answered, row(20, 10, &[1, 2])];
    let served = |blocks| {
        let told = analysed(Some(CacheSize::Blocks(blocks)), &rows).lru_cache;
        told.expect("there are blocks").token_share
    };
    near(served(4), 0.0);
    near(served(5), 10.0 / 61.0);
}

#[test]
fn a_prompt_longer_than_the_cache_leaves_its_beginning() {
    let rows = [row(51, 10, &[1, 2, 3, 4, 5]), row(51, 10, &[1, 2, 3, 4, 5])];
    let told = analysed(Some(CacheSize::Blocks(3)), &rows).lru_cache;
    near(told.expect("there are blocks").token_share, 30.0 / 102.0);
}

#[test]
fn ids_of_a_session_mean_nothing_in_another() {
    let in_session = |session: &str| TraceRow {
        session: Some(session.to_owned()),
        scope: BlockScope::Session,
        ..row(21, 10, &[1, 2])
    };
    let told = analysed(None, &[in_session("a"), in_session("b"), in_session("a")]);
    let ceiling = told.infinite_cache.expect("there are blocks");
    near(ceiling.token_share, 20.0 / 63.0);
    near(ceiling.distinct_blocks, 4.0);
    let sessions = told.sessions.expect("there are sessions");
    near(Some(sessions.count), 2.0);
    assert_eq!((sessions.turns.min, sessions.turns.max), (1, 2));
}

#[test]
fn gaps_of_a_session_are_from_turn_to_turn() {
    let turn = |at_ms, session: &str, delay: Option<u64>| TraceRow {
        at: Some(Duration::from_millis(at_ms)),
        session: Some(session.to_owned()),
        delay: delay.map(Duration::from_millis),
        ..row(5, 10, &[])
    };
    let told = analysed(
        None,
        &[
            turn(0, "a", None),
            turn(100, "b", None),
            turn(400, "a", Some(50)),
            turn(900, "a", None),
        ],
    );
    let sessions = told.sessions.expect("there are sessions");
    let gaps = sessions.gap_ms.expect("there are gaps");
    assert_eq!((gaps.count, gaps.min, gaps.max), (2, 400, 500));
    assert_eq!(sessions.delay_ms.expect("there is one").max, 50);
    assert!(told.infinite_cache.is_none());
}

#[test]
fn beyond_its_limit_the_share_is_an_estimate_whose_error_holds() {
    // 4,000 prompts of 20 blocks in 400 trees: each tree's first ten blocks are shared, so that
    // 10 of 20 blocks are served from the second prompt of a tree on: 3,600 of 4,000 times.
    let mut cache = InfiniteCache::new(4_000);
    for prompt in 0..4_000_u64 {
        let tree = prompt % 400;
        let shared = (0..10).map(|block| tree * 100 + block);
        let own = (0..10).map(|block| 1_000_000 + prompt * 10 + block);
        let blocks: Vec<u64> = shared.chain(own).collect();
        cache.add(&row(201, 10, &blocks));
    }
    let told = cache.finish().expect("there are blocks");
    assert_eq!(told.blocks, 80_000);
    assert_eq!(told.sampled_one_in, 16);
    let share = told.block_share.expect("there is a number");
    let error = share.error.expect("it is an estimate");
    assert!((share.value - 0.45).abs() <= 1.5 * error, "{share:?}");
    assert!(error < 0.05, "{share:?}");
    // 44,000 blocks.
    let distinct = told.distinct_blocks.expect("there is a number");
    let off = (distinct.value - 44_000.0).abs();
    assert!(
        off <= 1.5 * distinct.error.expect("an estimate"),
        "{distinct:?}"
    );
    assert_eq!(told.mean_block_share, None);
}
