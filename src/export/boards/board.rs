//! A board: its variables, its rows, and where each panel lies.

use serde_json::{Value, json};

use super::Board;
use super::panel::{Panel, datasource};
use crate::export::catalog::MARK_TIME;

/// Columns of a board.
const COLUMNS: u32 = 24;

/// Height of the title of a row.
const ROW_HEIGHT: u32 = 1;

/// A row of panels under a title.
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: Vec<Panel>,
}

/// A choice the reader has.
pub(super) enum Variable {
    /// Values of a label: its name, the series it is read from, and how many may be chosen.
    Label(&'static str, &'static str, Choice),
    /// Which form of histograms is drawn.
    Histograms,
    /// Over how much time rates and quantiles are taken.
    Window,
}

/// How many values of a variable may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Any number; all at first.
    Many,
    /// One.
    One,
}

/// The choices of a board of one stream.
pub(super) const fn one_stream() -> [Variable; 6] {
    [
        Variable::Histograms,
        Variable::Window,
        Variable::Label("target", "tokencanary_arrivals_total", Choice::One),
        Variable::Label(
            "endpoint",
            "tokencanary_arrivals_total{target=~\"$target\"}",
            Choice::Many,
        ),
        Variable::Label(
            "probe",
            "tokencanary_arrivals_total{target=~\"$target\", endpoint=~\"$endpoint\"}",
            Choice::One,
        ),
        Variable::Label(
            "cache",
            "tokencanary_arrivals_total{target=~\"$target\", endpoint=~\"$endpoint\", probe=~\"$probe\"}",
            Choice::Many,
        ),
    ]
}

/// What tells a board from others.
pub(super) struct Head {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
}

/// The board.
pub(super) fn build(head: &Head, variables: &[Variable], rows: &[Row]) -> Board {
    let mut list = vec![json!({
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        "current": {}, "hide": 0, "includeAll": false, "multi": false, "options": [],
        "refresh": 1, "regex": "", "skipUrlSync": false,
    })];
    list.extend(variables.iter().map(variable));
    let json = json!({
        "uid": format!("tokencanary-{}", head.name),
        "title": head.title,
        "description": head.description,
        "tags": ["tokencanary"],
        "schemaVersion": 39,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": { "from": "now-3h", "to": "now" },
        "annotations": { "list": annotations() },
        "links": [{
            "title": "tokencanary", "type": "dashboards", "tags": ["tokencanary"],
            "asDropdown": false, "icon": "external link", "includeVars": true,
            "keepTime": true, "targetBlank": false, "tooltip": "", "url": "",
        }],
        "templating": { "list": list },
        "panels": placed(rows),
    });
    Board {
        name: head.name,
        json,
    }
}

/// What is marked on all panels: deploys, changes of servers, alerts, and starts of the canary.
fn annotations() -> Value {
    json!([
        {
            "name": "Deploys", "enable": true, "hide": false, "iconColor": "blue", "type": "tags",
            "datasource": { "type": "grafana", "uid": "-- Grafana --" },
            "target": { "type": "tags", "tags": ["deploy"], "limit": 100, "matchAny": true },
        },
        {
            "name": "Changes", "enable": true, "hide": false, "iconColor": "yellow",
            "datasource": datasource(),
            "expr": format!("{} * 1000", MARK_TIME.prometheus),
            "titleFormat": "{{kind}} {{target}}", "textFormat": "{{kind}} {{target}}",
            "tagKeys": "kind", "useValueForTime": true, "step": "60s",
        },
        {
            "name": "Alerts", "enable": true, "hide": false, "iconColor": "red",
            "datasource": datasource(),
            "expr": "ALERTS{alertname=~\"Tokencanary.+\", alertstate=\"firing\"}",
            "titleFormat": "{{alertname}}", "textFormat": "{{target}} {{probe}}",
            "tagKeys": "severity", "useValueForTime": false, "step": "60s",
        },
        {
            "name": "Starts of the canary", "enable": true, "hide": false, "iconColor": "purple",
            "datasource": datasource(),
            "expr": "process_start_time_seconds * on (job, instance) group_left (version) tokencanary_build_info * 1000",
            "titleFormat": "canary {{version}}", "textFormat": "{{instance}}",
            "tagKeys": "version", "useValueForTime": true, "step": "60s",
        },
    ])
}

fn variable(variable: &Variable) -> Value {
    match variable {
        Variable::Label(label, series, choice) => {
            let many = *choice == Choice::Many;
            let query = format!("label_values({series}, {label})");
            let current = if many {
                json!({ "selected": true, "text": ["All"], "value": ["$__all"] })
            } else {
                json!({})
            };
            json!({
                "name": label, "label": label, "type": "query", "datasource": datasource(),
                "definition": query, "query": { "query": query, "refId": "Variable" },
                "current": current, "hide": 0, "includeAll": many, "multi": many, "options": [],
                "allValue": if many { json!(".*") } else { Value::Null },
                "refresh": 2, "regex": "", "skipUrlSync": false, "sort": 1,
            })
        }
        Variable::Histograms => chosen_from(
            ["histograms", "Histograms", "custom"],
            &["classic", "native"],
            "classic",
        ),
        Variable::Window => {
            let mut window = chosen_from(
                ["window", "Window", "interval"],
                &["1m", "5m", "10m", "30m", "1h", "6h"],
                "5m",
            );
            window["auto"] = json!(false);
            window
        }
    }
}

/// A variable with fixed values, one of which is chosen at first.
fn chosen_from([name, label, kind]: [&str; 3], values: &[&str], first: &str) -> Value {
    let option = |value: &str| json!({ "selected": value == first, "text": value, "value": value });
    let options: Vec<Value> = values.iter().map(|value| option(value)).collect();
    json!({
        "name": name, "label": label, "type": kind, "query": values.join(","),
        "current": option(first), "options": options, "hide": 0, "includeAll": false,
        "multi": false, "skipUrlSync": false,
    })
}

/// The panels of all rows, each where the ones before leave room.
fn placed(rows: &[Row]) -> Vec<Value> {
    let mut placed = Vec::new();
    let mut top = 0;
    for row in rows {
        placed.push(json!({
            "id": placed.len() + 1, "type": "row", "title": row.title, "collapsed": false,
            "gridPos": { "x": 0, "y": top, "w": COLUMNS, "h": ROW_HEIGHT }, "panels": [],
        }));
        top += ROW_HEIGHT;
        let (mut left, mut highest) = (0, 0);
        for panel in &row.panels {
            let (width, height) = panel.size();
            if left + u32::from(width) > COLUMNS {
                top += highest;
                (left, highest) = (0, 0);
            }
            placed.push(panel.json(placed.len() + 1, [left, top]));
            left += u32::from(width);
            highest = highest.max(u32::from(height));
        }
        top += highest;
    }
    placed
}
