//! Shared prefixes, from the file to the server's cache: what it serves is what the analysis
//! of the trace says.

use super::*;
use tokencanary::load::trace::{Analyzer, Format as Known, TraceRow};

/// 190 rows of 30 conversations that begin with one of 3 system prompts, half a second apart:
/// the lines of the file, and the rows.
fn sample(block: u32) -> (String, Vec<TraceRow>) {
    let mut state = 5_u64;
    let mut draw = |most: u32| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(state >> 33).expect("31 bits") % (most + 1)
    };
    let mut next = 0_u64;
    let mut fresh = |count: u32| {
        let ids: Vec<u64> = (next..next + u64::from(count)).collect();
        next += u64::from(count);
        ids
    };
    let systems: Vec<Vec<u64>> = (2..5).map(&mut fresh).collect();
    let mut sessions: Vec<Vec<u64>> = (0..30).map(|n| systems[n % 3].clone()).collect();
    let (mut text, mut rows) = (String::new(), Vec::new());
    for number in 0..190_u64 {
        let session = &mut sessions[draw(29) as usize];
        session.extend(fresh(draw(2)));
        let mut ids = session.clone();
        let rest = draw(block - 1);
        let input = u32::try_from(ids.len()).expect("few") * block + rest;
        if rest > 0 {
            ids.extend(fresh(1));
        }
        let line = format!(
            "{{\"timestamp\": {}, \"input_length\": {input}, \"output_length\": 1, \"hash_ids\": {ids:?}}}\n",
            number * 500
        );
        text.push_str(&line);
        rows.push(TraceRow {
            at: Some(Duration::from_millis(number * 500)),
            input_tokens: Some(input),
            output_tokens: Some(1),
            blocks: ids,
            block_tokens: block,
            ..TraceRow::default()
        });
    }
    (text, rows)
}

async fn served_and_said(block: u32, flags: &str) -> (f64, f64) {
    let (text, rows) = sample(block);
    let mut analyzer = Analyzer::new(Known::Mooncake, None);
    for row in &rows {
        analyzer.add(row);
    }
    let ceiling = analyzer.finish().infinite_cache.expect("there are ids");
    let said = ceiling.token_share.expect("there are tokens").value * 100.0;
    let played = bench(&text, flags).await;
    assert_eq!(played.records.len(), 190);
    let sum = |of: fn(&RequestRecord) -> Option<u32>| {
        let each = played
            .records
            .iter()
            .map(|record| f64::from(of(record).expect("counted")));
        each.sum::<f64>()
    };
    let input = sum(|record| record.tokens.input);
    let sent: u32 = rows.iter().filter_map(|row| row.input_tokens).sum();
    assert!(
        (input - f64::from(sent)).abs() < 0.5,
        "each prompt is as long as its row says"
    );
    (sum(|record| record.tokens.cached) / input * 100.0, said)
}

#[tokio::test(start_paused = true)]
async fn the_server_serves_of_a_trace_what_the_analysis_says() {
    for block in [16, 512] {
        let (served, said) = served_and_said(block, &format!("--isl-block-size {block}")).await;
        assert!(said > 50.0, "there is something to serve: {said}");
        assert!(
            (served - said).abs() < 1.0,
            "{block}: {served} served, {said} said"
        );
    }
}
