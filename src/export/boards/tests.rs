//! Form of the boards. That their queries answer is tested against a real Prometheus, and what
//! they name against the catalog (`tests/it`).

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

fn panels(board: &Board) -> &[Value] {
    board.json["panels"].as_array().expect("a list")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn panels_lie_side_by_side_and_have_ids_of_their_own() {
    for board in boards() {
        let ids: BTreeSet<u64> = panels(&board)
            .iter()
            .map(|one| number(&one["id"]))
            .collect();
        assert_eq!(ids.len(), panels(&board).len(), "{}", board.name);
        let mut taken = BTreeSet::new();
        for panel in panels(&board) {
            let place = &panel["gridPos"];
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| number(&place[key]));
            assert!(x + w <= 24, "{}: {}", board.name, panel["title"]);
            for column in x..x + w {
                for row in y..y + h {
                    let free = taken.insert((column, row));
                    assert!(free, "{}: {} overlaps", board.name, panel["title"]);
                }
            }
        }
    }
}

#[test]
fn every_panel_says_what_it_shows_and_where_from() {
    for board in boards() {
        for panel in panels(&board) {
            let title = panel["title"].as_str().expect("a title");
            if panel["type"] == "row" {
                continue;
            }
            let said = panel["description"].as_str().expect("a sentence");
            assert!(said.ends_with('.') || said.len() > 10, "{title}: {said}");
            let targets = panel["targets"].as_array().expect("a list");
            assert!(!targets.is_empty(), "{title}");
            for target in targets {
                assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            }
        }
    }
}

#[test]
fn data_sources_are_variables() {
    for board in boards() {
        let text = board.json.to_string();
        for found in text.split("\"datasource\":{").skip(1) {
            let (source, _) = found.split_once("\"}").expect("it ends");
            let known = source.contains("\"uid\":\"${datasource}")
                // Grafana's own, which every Grafana has under this name.
                || source.contains("\"uid\":\"-- Grafana --");
            assert!(known, "{}: {source}", board.name);
        }
    }
}

#[test]
fn quantiles_and_heatmaps_come_in_both_forms() {
    let mut both = 0;
    for board in boards() {
        for panel in panels(&board) {
            let targets = panel["targets"].as_array().into_iter().flatten();
            let texts: Vec<&str> = targets.filter_map(|one| one["expr"].as_str()).collect();
            let of = |form: &str| {
                let gate = format!("\"form\", \"{form}\"");
                texts.iter().filter(|text| text.contains(&gate)).count()
            };
            let drawn = texts
                .iter()
                .filter(|text| text.contains("histogram_quantile") || text.contains("_bucket"))
                .count();
            assert_eq!(of("classic"), of("native"), "{}", panel["title"]);
            assert!(drawn <= of("classic") + of("native"), "{}", panel["title"]);
            both += of("classic");
        }
    }
    assert!(both >= 50, "{both}");
}

#[test]
fn a_quantile_is_drawn_where_enough_values_carry_it() {
    let classic = query::quantile(
        crate::export::rules::Form::Classic,
        crate::export::rules::Quantile::P95,
        (&crate::export::catalog::ITL, "{probe=\"p\"}"),
        &["target"],
    );
    assert_eq!(
        classic,
        "histogram_quantile(0.95, sum by (le, target) (rate(tokencanary_request_itl_seconds_bucket{probe=\"p\"}[$window])))\n\
         and sum by (target) (increase(tokencanary_request_itl_seconds_count{probe=\"p\"}[$window])) >= 20\n\
         and on () (label_replace(vector(1), \"form\", \"$histograms\", \"\", \"\") and on (form) label_replace(vector(1), \"form\", \"classic\", \"\", \"\"))"
    );
}
