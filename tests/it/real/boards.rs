//! Every query of every panel against a real Prometheus that holds a day of data.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokencanary::export::boards::boards;
use tokencanary::export::rules::{Form, Rule, Settings, rules};

use super::components::Prometheus;
use super::day::{DAY, STEP, pages, recorded, write_pages};
use super::remote_write::write;
use crate::program::{http_client, scratch, tell};

/// For what takes an instant.
const SOON: Duration = Duration::from_mins(1);

/// Asks Prometheus. `path` is `query` or `query_range`.
async fn ask(url: &str, path: &str, arguments: &[(&str, &str)]) -> Result<Vec<Value>, String> {
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(arguments)
        .finish();
    let answer = http_client()
        .build()
        .expect("the options are fixed")
        .post(format!("{url}/api/v1/{path}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
        .send()
        .await
        .expect("it is ready");
    let answer: Value = answer.json().await.expect("it answers with JSON");
    match answer["data"]["result"].as_array() {
        Some(result) => Ok(result.clone()),
        None => Err(answer.to_string()),
    }
}

/// The time that is queried, in seconds since the epoch.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    end: u64,
}

impl Span {
    async fn range(self, url: &str, expr: &str, step: &str) -> Result<Vec<Value>, String> {
        let (start, end) = (self.start.to_string(), self.end.to_string());
        let span = [
            ("query", expr),
            ("start", &start),
            ("end", &end),
            ("step", step),
        ];
        ask(url, "query_range", &span).await
    }

    async fn instant(self, url: &str, expr: &str) -> Result<Vec<Value>, String> {
        let end = self.end.to_string();
        ask(url, "query", &[("query", expr), ("time", &end)]).await
    }
}

/// Lets Prometheus evaluate the recording rules of the form `form` over `span`, and keeps what
/// they record if it is `keep`.
async fn record(url: &str, span: Span, form: Form, keep: bool) -> Vec<(String, Vec<Value>)> {
    let settings = Settings {
        form,
        ..Settings::default()
    };
    let groups = rules(&settings, None).groups;
    let all: Vec<Rule> = groups.into_iter().flat_map(|group| group.rules).collect();
    let mut found = Vec::new();
    for rule in all {
        let Some(name) = &rule.record else { continue };
        let step = STEP.as_secs().to_string();
        let matrix = span.range(url, &rule.expr.0, &step).await;
        let matrix = matrix.unwrap_or_else(|error| panic!("{name}: {error}"));
        if keep {
            for series in recorded(name, &matrix) {
                write(url, vec![series]).await;
            }
        }
        found.push((name.clone(), matrix));
    }
    found
}

/// One query of a board.
struct Query {
    board: String,
    panel: String,
    /// Which panel of the board, and which of its queries.
    place: [usize; 2],
    expr: String,
    instant: bool,
}

/// The queries of all panels, and of annotations.
fn queries() -> Vec<Query> {
    let mut found = Vec::new();
    for board in boards() {
        let panels = board.json["panels"].as_array().expect("a list");
        for (panel_index, panel) in panels.iter().enumerate() {
            let targets = panel["targets"].as_array().into_iter().flatten();
            for (index, target) in targets.enumerate() {
                found.push(Query {
                    place: [panel_index, index],
                    board: board.name.to_owned(),
                    panel: panel["title"].as_str().expect("a title").to_owned(),
                    expr: target["expr"].as_str().expect("a query").to_owned(),
                    instant: target["instant"] == true,
                });
            }
        }
        let marks = board.json["annotations"]["list"]
            .as_array()
            .expect("a list");
        for mark in marks.iter().filter(|mark| mark["expr"].is_string()) {
            found.push(Query {
                place: [usize::MAX; 2],
                board: board.name.to_owned(),
                panel: format!("annotation {}", mark["name"]),
                expr: mark["expr"].as_str().expect("a query").to_owned(),
                instant: false,
            });
        }
    }
    found
}

/// `expr` as Grafana sends it for these choices of a reader.
fn filled(expr: &str, board: &str, histograms: &str) -> String {
    let one = ["stream", "why"].contains(&board);
    [
        ("$__rate_interval", "4m"),
        ("$__range", "24h"),
        ("$histograms", histograms),
        ("$window", "5m"),
        ("$target", if one { "sim" } else { ".*" }),
        ("$endpoint", ".*"),
        ("$probe", if one { "new" } else { ".*" }),
        ("$cache", ".*"),
    ]
    .into_iter()
    .fold(expr.to_owned(), |expr, (name, value)| {
        expr.replace(name, value)
    })
}

/// Whether a query is for the other form of histograms, and draws nothing by intention.
fn is_for_another(expr: &str, histograms: &str) -> bool {
    let other = if histograms == "classic" {
        "native"
    } else {
        "classic"
    };
    expr.contains("$histograms") && expr.contains(&format!("\"form\", \"{other}\""))
}

fn unix_seconds() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test's own clock, beside a real server"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_panel_of_every_board_shows_a_day_of_data() {
    let folder = scratch("boards_day");
    // The rules evaluate the past, so what they record is older than what is held already.
    let text =
        "storage: { tsdb: { out_of_order_time_window: 48h } }\nrule_files: ['rules/*.yaml']\n";
    // The whole day stays in the head: a query that comes while a block is cut from it can find a
    // part of the day only.
    let flags = [
        "--web.enable-remote-write-receiver",
        "--web.enable-lifecycle",
        "--storage.tsdb.min-block-duration=3d",
        "--storage.tsdb.max-block-duration=3d",
    ];
    let mut prometheus = Prometheus::start_with(&folder, text, &flags).await;
    let url = prometheus.url.clone();

    let start = unix_seconds() - DAY.as_secs();
    let began = tokio::time::Instant::now();
    #[expect(clippy::cast_precision_loss, reason = "seconds are exact")]
    let pages = tokio::task::spawn_blocking(move || pages(start as f64))
        .await
        .expect("no panic");
    assert_eq!(pages.len(), 1_440);
    tell(&format!("a day in {:?}", began.elapsed()));
    let first = i64::try_from((start + STEP.as_secs()) * 1_000).expect("small");
    let written = write_pages(&url, first, &pages).await;
    tell(&format!("{written} samples"));
    let span = Span {
        start,
        end: start + DAY.as_secs(),
    };

    let classic = record(&url, span, Form::Classic, true).await;
    let native = record(&url, span, Form::Native, false).await;
    agree(&classic, &native);

    let rules = folder.join("rules");
    fs::create_dir_all(&rules).expect("the folder is ours");
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/dashboards/rules/classic.yaml");
    fs::copy(committed, rules.join("classic.yaml")).expect("it is committed");
    prometheus.program.signal("HUP");
    let alerts = "ALERTS{alertname=\"TokencanaryNoSuccess\", probe=\"forgotten\"}";
    prometheus
        .program
        .until("alert of Prometheus itself", SOON, async || {
            ask(&url, "query", &[("query", alerts)])
                .await
                .ok()
                .filter(|found| !found.is_empty())
        })
        .await;
    // The last step is now: the alert is a moment old.
    let end = unix_seconds() + 1;
    let span = Span {
        start: end - DAY.as_secs(),
        end,
    };

    let mut wrong = Vec::new();
    let mut asked = 0;
    let mut answers = Vec::new();
    for histograms in ["classic", "native"] {
        for query in queries() {
            let expr = filled(&query.expr, &query.board, histograms);
            let found = if query.instant {
                span.instant(&url, &expr).await
            } else {
                span.range(&url, &expr, "300").await
            };
            asked += 1;
            let wanted = !is_for_another(&query.expr, histograms);
            if let (true, Ok(result)) = (wanted, &found) {
                answers.push(json!({
                    "board": query.board, "histograms": histograms, "result": result,
                    "panel": query.place[0], "query": query.place[1],
                }));
            }
            match found {
                Ok(found) if found.is_empty() != wanted => {}
                found => wrong.push(format!(
                    "{} / {} ({histograms}): {}\n{expr}",
                    query.board,
                    query.panel,
                    found.map_or_else(|error| error, |found| format!("{} series", found.len())),
                )),
            }
        }
    }
    tell(&format!("{asked} queries"));
    keep(&json!({ "start": span.start, "end": span.end, "answers": answers }));
    assert!(
        wrong.is_empty(),
        "{} of {asked}:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

/// Writes the answers to the file that `tests/pictures` draws from, if it asked for them.
fn keep(answers: &Value) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests' own setting, not the product's"
    )]
    let file = std::env::var("TOKENCANARY_ANSWERS");
    if let Ok(file) = file {
        fs::write(file, answers.to_string()).expect("it can be written");
    }
}

/// Holds what both forms of the rules record against each other: the same series at the same
/// times, and quantiles within a classic bucket.
fn agree(classic: &[(String, Vec<Value>)], native: &[(String, Vec<Value>)]) {
    const BUCKET: f64 = std::f64::consts::SQRT_2;
    assert_eq!(classic.len(), native.len());
    let (mut compared, mut apart) = (0, Vec::new());
    for ((name, ours), (_, theirs)) in classic.iter().zip(native) {
        assert!(!ours.is_empty(), "{name} records nothing");
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for one in ours {
            let other = theirs
                .iter()
                .find(|other| other["metric"] == one["metric"])
                .unwrap_or_else(|| panic!("{name}: {}", one["metric"]));
            let numbers = |series: &Value| -> Vec<(f64, f64)> {
                let pairs = series["values"].as_array().expect("numbers");
                let pairs = pairs.iter().map(|pair| {
                    let value = pair[1].as_str().and_then(|text| text.parse().ok());
                    (pair[0].as_f64().expect("a time"), value.expect("a number"))
                });
                pairs.collect()
            };
            let (ours, theirs) = (numbers(one), numbers(other));
            assert_eq!(ours.len(), theirs.len(), "{name}");
            let quantile = [":p50", ":p95", ":p99"]
                .iter()
                .any(|end| name.ends_with(end));
            for ((at, a), (_, b)) in ours.into_iter().zip(theirs) {
                // A failure is beyond the last classic bound, which is what is shown for it.
                let never = name.contains("_or_failure") && b > 90.0;
                if quantile && !never {
                    if a / b >= BUCKET || b / a >= BUCKET {
                        apart.push(format!("{name} at {at}: {a} {b}"));
                    }
                    compared += 1;
                }
            }
        }
    }
    tell(&format!(
        "of {compared} quantiles {} are apart",
        apart.len()
    ));
    // A rank right between two values far from each other is that of either one, as the last bit
    // of a division has it.
    assert!(apart.len() * 200 <= compared, "{apart:#?}");
    assert!(compared > 10_000);
}
