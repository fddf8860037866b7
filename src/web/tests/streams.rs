//! The streams in the API: quantiles, and objectives.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Exposure, get, send, state};
use crate::aggregate::fixture::{RULES, failed, ms, ok, stream};
use crate::aggregate::{Live, StreamRules};
use crate::measurement::{Outcome, Slo, SloLimit, SloMetric};

#[tokio::test]
async fn streams_hold_quantiles_where_there_are_values_enough() {
    let answer = get("/api/v1/streams").await.json();
    let row = &answer["streams"][0];
    assert_eq!(row["probe"], "p");
    assert_eq!(row["cache"], "cold");
    let whole = &row["since_start"];
    assert_eq!(whole["requests"], 23);
    assert_eq!(whole["errors"], 2);
    let share = whole["error_share"].as_f64().expect("22 records count");
    assert!((share - 2.0 / 22.0).abs() < 1e-12, "{share}");
    for (metric, quantile, expected) in [
        ("ttft", "p50_ms", 10.0),
        ("ttft", "p95_ms", 10.0),
        ("itl", "p50_ms", 5.0),
    ] {
        // Right to one bucket of the grid.
        let value = whole[metric][quantile]
            .as_f64()
            .expect("20 values are enough");
        assert!(
            (value / expected - 1.0).abs() < 0.022,
            "{metric} {quantile}: {value}"
        );
    }
    let recent = &row["last_minute"];
    assert_eq!(recent["requests"], 0, "no window has closed yet");
    assert_eq!(recent["error_share"], Value::Null);
    assert_eq!(
        recent["ttft"],
        json!({"n": 0, "p50_ms": null, "p95_ms": null})
    );
}

#[tokio::test]
async fn objectives_are_shown_with_what_they_cost() {
    let stream = stream(0);
    let limit = SloLimit {
        at_most: Duration::from_millis(10),
        objective: Some(0.95),
    };
    let rules = StreamRules {
        slo: Slo::NONE
            .with_limit(SloMetric::Ttft, limit)
            .with_success(0.9),
        ..RULES
    };
    let mut live = Live::new(vec![(Arc::clone(&stream), rules)], 1);
    // Nine in time, one 1 ms late, one that failed; the windows of the first ten have closed.
    for due in 0..9 {
        live.observe(Arc::new(ok(&stream, due, &[10, 15])), None);
    }
    live.observe(Arc::new(ok(&stream, 9, &[11, 15])), None);
    live.settle(ms(60_000), ms(60_000));
    let late = failed(&stream, 61_000, Outcome::HttpStatus, Some(503));
    live.observe(Arc::new(late), None);
    let lines = "GET /api/v1/streams HTTP/1.1";
    let answer = send(state(live, true), Exposure::Loopback, lines)
        .await
        .json();
    let rows = answer["streams"][0]["slo"].as_array().expect("a list");
    let names: Vec<&Value> = rows.iter().map(|row| &row["slo"]).collect();
    assert_eq!(names, ["ttft", "success", "all"]);
    let ttft = &rows[0];
    assert_eq!(
        (&ttft["limit_ms"], &ttft["objective"]),
        (&json!(10.0), &json!(0.95))
    );
    let recent = &ttft["last_hour"];
    assert_eq!(
        (&recent["good"], &recent["requests"]),
        (&json!(9), &json!(10))
    );
    let close = |value: &Value, wanted: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value - wanted).abs() < 1e-9, "{value} is not {wanted}");
    };
    close(&recent["good_share"], 0.9);
    // A tenth is bad, a twentieth may be.
    close(&recent["burn_rate"], 2.0);
    let whole = &ttft["since_start"];
    assert_eq!(
        (&whole["good"], &whole["requests"]),
        (&json!(9), &json!(11))
    );
    close(&rows[1]["since_start"]["good_share"], 10.0 / 11.0);
    close(&rows[1]["since_start"]["burn_rate"], 10.0 / 11.0);
    let all = &rows[2];
    assert_eq!(
        (&all["limit_ms"], &all["objective"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(all["last_hour"]["burn_rate"], Value::Null);
    let plain = get("/api/v1/streams").await.json();
    assert_eq!(plain["streams"][0]["slo"], json!([]), "nothing is wanted");
}

#[tokio::test]
async fn a_tail_of_too_few_values_is_null_beside_its_count() {
    let stream = stream(0);
    let mut live = Live::new(vec![(Arc::clone(&stream), RULES)], 1);
    for due in 0..19 {
        live.observe(Arc::new(ok(&stream, due, &[10, 15])), None);
    }
    let lines = "GET /api/v1/streams HTTP/1.1";
    let answer = send(state(live, true), Exposure::Loopback, lines)
        .await
        .json();
    let row = &answer["streams"][0];
    let ttft = &row["since_start"]["ttft"];
    assert_eq!(ttft["n"], 19);
    assert!(ttft["p50_ms"].is_number());
    assert_eq!(ttft["p95_ms"], Value::Null);
    assert_eq!(row["server"], Value::Null, "no page was read");
}
