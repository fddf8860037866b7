//! `trace analyze`: what a trace is like.

use std::time::Duration;

use super::trace::{Input, Trace, Unusable};
use super::{Exit, Output, print, say};
use crate::load::trace::{
    Analysis, Analyzer, Arrivals, CacheSize, Ceiling, Estimate, Lengths, Sessions, TraceRow,
};
use crate::report::{Fact, FactValue, SpreadRow, fact_lines, spread_table};

/// Arguments of `trace analyze`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    input: Input,
    /// Also say what a cache of so many blocks could serve, which gives up what was not used for
    /// longest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "cache_tokens")]
    cache_blocks: Option<u64>,
    /// The same for a cache of so many tokens.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cache_tokens: Option<u64>,
    /// How results are printed.
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Result<Exit, Unusable>> {
    let cache = match (args.cache_blocks, args.cache_tokens) {
        (Some(blocks), _) => Some(CacheSize::Blocks(blocks)),
        (None, Some(tokens)) => Some(CacheSize::Tokens(tokens)),
        (None, None) => None,
    };
    let mut trace = match args.input.open() {
        Ok(trace) => trace,
        Err(unusable) => return Ok(Err(unusable)),
    };
    let mut analyzer = Analyzer::new(trace.detected.format, cache);
    let mut row = TraceRow::default();
    loop {
        match trace.read(&mut row) {
            Ok(true) => analyzer.add(&row),
            Ok(false) => break,
            Err(unusable) => return Ok(Err(unusable)),
        }
    }
    let analysis = analyzer.finish();
    match args.output {
        Output::Text => print(&text(&trace, &analysis))?,
        Output::Json => print(&json(&trace, &analysis)?)?,
    }
    if trace.bad_rows > 0 {
        say(&format!("{} rows were passed over", trace.bad_rows));
    }
    Ok(Ok(Exit::Fine))
}

fn json(trace: &Trace, analysis: &Analysis) -> anyhow::Result<String> {
    let mut value = serde_json::json!({
        "schema": "tokencanary.trace_analysis/1",
        "file": trace.name,
        "format": trace.detected.format.name(),
        "reason": trace.detected.reason,
        "encoding": trace.encoding(),
        "bad_rows": trace.bad_rows,
    });
    let figures = serde_json::to_value(analysis)?;
    if let (Some(value), serde_json::Value::Object(figures)) = (value.as_object_mut(), figures) {
        value.extend(figures);
    }
    Ok(serde_json::to_string_pretty(&value)?)
}

fn text(trace: &Trace, analysis: &Analysis) -> String {
    let format = trace.detected.format.name();
    let mut facts = vec![
        Fact::new("file", FactValue::Words(trace.name.clone())),
        Fact::new(
            "format",
            FactValue::Words(format!("{format}: {}", trace.detected.reason)),
        ),
        Fact::new("rows", FactValue::Count(analysis.rows)),
    ];
    if trace.bad_rows > 0 {
        facts.push(Fact::new("passed over", FactValue::Count(trace.bad_rows)));
    }
    if analysis.failed > 0 {
        facts.push(Fact::new("failed", FactValue::Count(analysis.failed)));
    }
    let mut parts = vec![fact_lines(&facts)];
    let spreads = spreads(analysis);
    if !spreads.is_empty() {
        parts.push(spread_table(&spreads));
    }
    let mut facts = Vec::new();
    if let Some(arrivals) = &analysis.arrivals {
        facts.extend(of_arrivals(arrivals));
    }
    if let Some(sessions) = &analysis.sessions {
        facts.push(Fact::new("sessions", estimate(sessions.count)));
    }
    if !facts.is_empty() {
        parts.push(fact_lines(&facts));
    }
    let caches = [&analysis.infinite_cache, &analysis.lru_cache];
    parts.extend(
        caches
            .into_iter()
            .flatten()
            .map(|it| fact_lines(&of_cache(it))),
    );
    parts.join("\n").trim_end().to_owned()
}

fn spreads(analysis: &Analysis) -> Vec<SpreadRow> {
    let spread = |name, lengths: &Lengths| SpreadRow {
        name,
        count: lengths.count,
        mean: lengths.mean,
        marks: [
            lengths.min,
            lengths.p10,
            lengths.p50,
            lengths.p90,
            lengths.p95,
            lengths.p99,
            lengths.max,
        ],
    };
    let sessions = analysis.sessions.as_ref();
    let delays = |sessions: &Sessions| sessions.delay_ms.clone();
    [
        ("prompt tokens", analysis.input_tokens.clone()),
        ("answer tokens", analysis.output_tokens.clone()),
        ("turns of a session", sessions.map(|it| it.turns.clone())),
        (
            "ms from turn to turn",
            sessions.and_then(|it| it.gap_ms.clone()),
        ),
        ("ms of pause before a turn", sessions.and_then(delays)),
    ]
    .iter()
    .filter_map(|(name, lengths)| lengths.as_ref().map(|lengths| spread(name, lengths)))
    .collect()
}

fn of_arrivals(arrivals: &Arrivals) -> Vec<Fact> {
    let number = |name, value| Fact::new(name, FactValue::Number(value));
    let mut facts = vec![
        Fact::new(
            "from first to last",
            FactValue::Span(Duration::try_from_secs_f64(arrivals.duration_s).unwrap_or_default()),
        ),
        number("requests per second", arrivals.rate),
        Fact::new("busiest second", FactValue::Count(arrivals.busiest_second)),
        Fact::new(
            "at the same instant as the one before",
            FactValue::Share(arrivals.same_instant_share, None),
        ),
        number("cv of gaps (Poisson: 1)", arrivals.gap_cv),
        number("gamma shape (burstiness of vLLM)", arrivals.gamma_shape),
        number(
            "dispersion of counts in 1 s (Poisson: 1)",
            arrivals.dispersion_1s,
        ),
        number("dispersion of counts in 10 s", arrivals.dispersion_10s),
        number("dispersion of counts in 60 s", arrivals.dispersion_60s),
    ];
    if arrivals.out_of_order > 0 {
        facts.push(Fact::new(
            "times too late to be put in order",
            FactValue::Count(arrivals.out_of_order),
        ));
    }
    facts
}

fn of_cache(ceiling: &Ceiling) -> Vec<Fact> {
    let share = |name, share: Option<Estimate>| {
        share.map(|share| Fact::new(name, FactValue::Share(share.value, share.error)))
    };
    let size = ceiling
        .cache_blocks
        .map_or(FactValue::Words("no limit".to_owned()), FactValue::Count);
    let mut facts = vec![
        Fact::new("prefix cache, blocks", size),
        Fact::new("blocks asked for", FactValue::Count(ceiling.blocks)),
    ];
    facts.extend(
        ceiling
            .distinct_blocks
            .map(|blocks| Fact::new("different blocks", estimate(blocks))),
    );
    facts.extend(share(
        "served at most, of all prompt tokens",
        ceiling.token_share,
    ));
    facts.extend(share(
        "leading blocks seen before, of all blocks",
        ceiling.block_share,
    ));
    facts.extend(ceiling.mean_block_share.map(|share| {
        Fact::new(
            "the same, mean of rows (AIPerf)",
            FactValue::Share(share, None),
        )
    }));
    if ceiling.sampled_one_in > 1 {
        facts.push(Fact::new(
            "looked at one block in",
            FactValue::Count(ceiling.sampled_one_in),
        ));
    }
    facts
}

fn estimate(estimate: Estimate) -> FactValue {
    FactValue::Estimate(estimate.value, estimate.error)
}
