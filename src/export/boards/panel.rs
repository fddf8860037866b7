//! One panel: what it shows, and its JSON.

use serde_json::{Value, json};

use super::query;
use crate::export::catalog::Metric;
use crate::export::rules::{Form, Quantile};

/// How a panel draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Lines over time.
    Lines,
    /// Areas over time, one on the other.
    Stacked,
    /// One number.
    Stat,
    /// One row for each series.
    Table,
    /// Buckets over time.
    Heatmap,
}

/// One query of a panel.
#[derive(Debug, Clone)]
pub(super) struct Target {
    expr: String,
    legend: String,
    exemplars: bool,
}

/// One panel.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    kind: Kind,
    title: String,
    description: String,
    unit: &'static str,
    targets: Vec<Target>,
    width: u8,
    height: u8,
    /// Further rules of `fieldConfig`.
    overrides: Vec<Value>,
    /// Bounds of colours: from the second on, each value with its colour.
    thresholds: Vec<(&'static str, Option<f64>)>,
    below_zero: bool,
}

/// The data source of every query.
pub(super) fn datasource() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

impl Panel {
    pub(super) fn new(kind: Kind, unit: &'static str, title: &str, description: &str) -> Self {
        let (width, height) = match kind {
            Kind::Stat => (4, 4),
            Kind::Table => (24, 8),
            Kind::Lines | Kind::Stacked | Kind::Heatmap => (8, 8),
        };
        Self {
            kind,
            title: title.to_owned(),
            description: description.to_owned(),
            unit,
            targets: Vec::new(),
            width,
            height,
            overrides: Vec::new(),
            thresholds: Vec::new(),
            below_zero: false,
        }
    }

    pub(super) fn lines(unit: &'static str, title: &str, description: &str) -> Self {
        Self::new(Kind::Lines, unit, title, description)
    }

    pub(super) fn stat(unit: &'static str, title: &str, description: &str) -> Self {
        Self::new(Kind::Stat, unit, title, description)
    }

    /// Adds a query.
    pub(super) fn query(mut self, legend: &str, expr: impl Into<String>) -> Self {
        self.targets.push(Target {
            expr: expr.into(),
            legend: legend.to_owned(),
            exemplars: false,
        });
        self
    }

    /// Adds a quantile in both forms, with the exemplars behind it as dots.
    pub(super) fn quantile(
        mut self,
        (legend, quantile): (&str, Quantile),
        (metric, selector): (&Metric, &str),
        by: &[&str],
    ) -> Self {
        for form in [Form::Classic, Form::Native] {
            self.targets.push(Target {
                expr: query::quantile(form, quantile, (metric, selector), by),
                legend: legend.to_owned(),
                exemplars: self.kind == Kind::Lines && quantile == Quantile::P95,
            });
        }
        self
    }

    /// The median, p95 and p99 in both forms.
    pub(super) fn quantiles(self, metric: &Metric, selector: &str) -> Self {
        Quantile::ALL.into_iter().fold(self, |panel, quantile| {
            panel.quantile((quantile.name(), quantile), (metric, selector), &[])
        })
    }

    /// The buckets of `metric` in both forms, as a heatmap.
    pub(super) fn heatmap(title: &str, metric: &Metric, selector: &str) -> Self {
        let description = format!(
            "{}. One column for each step, one cell for each bucket.",
            metric.help
        );
        let mut panel = Self::new(Kind::Heatmap, "s", title, &description);
        for form in [Form::Classic, Form::Native] {
            panel.targets.push(Target {
                expr: query::heatmap(form, metric, selector),
                legend: if form == Form::Classic { "{{le}}" } else { "" }.to_owned(),
                exemplars: false,
            });
        }
        panel
    }

    /// Width in columns of 24.
    pub(super) const fn wide(mut self, width: u8) -> Self {
        self.width = width;
        self
    }

    pub(super) const fn size(&self) -> (u8, u8) {
        (self.width, self.height)
    }

    /// Colours from a value on; the first has none.
    pub(super) fn coloured(mut self, steps: &[(&'static str, Option<f64>)]) -> Self {
        self.thresholds = steps.to_vec();
        self
    }

    /// A rule for the series called `name`.
    pub(super) fn series(mut self, name: &str, properties: &[(&str, Value)]) -> Self {
        let properties: Vec<Value> = properties
            .iter()
            .map(|(id, value)| json!({ "id": id, "value": value }))
            .collect();
        self.overrides.push(json!({
            "matcher": { "id": "byName", "options": name },
            "properties": properties,
        }));
        self
    }

    /// Draws the series whose names match `pattern` as dashes.
    pub(super) fn dashed(mut self, pattern: &str) -> Self {
        self.overrides.push(json!({
            "matcher": { "id": "byRegexp", "options": pattern },
            "properties": [{
                "id": "custom.lineStyle", "value": { "fill": "dash", "dash": [10, 10] },
            }],
        }));
        self
    }

    /// Lets the axis go below zero.
    pub(super) const fn below_zero(mut self) -> Self {
        self.below_zero = true;
        self
    }

    /// Gives the column or series called `name` a unit of its own.
    pub(super) fn unit_of(self, name: &str, unit: &str) -> Self {
        self.series(name, &[("unit", json!(unit))])
    }

    /// Fills between the series `high` and `low`, whose own lines are not drawn.
    pub(super) fn band(self, low: &str, high: &str) -> Self {
        let plain = [
            ("custom.lineWidth", json!(0)),
            ("color", json!({ "mode": "fixed", "fixedColor": "green" })),
        ];
        let mut filled = plain.to_vec();
        filled.push(("custom.fillBelowTo", json!(low)));
        filled.push(("custom.fillOpacity", json!(15)));
        self.series(high, &filled).series(low, &plain)
    }

    /// The panel at its place on a board.
    pub(super) fn json(&self, id: usize, [x, y]: [u32; 2]) -> Value {
        let targets: Vec<Value> = self
            .targets
            .iter()
            .enumerate()
            .map(|(index, target)| self.target(index, target))
            .collect();
        let mut panel = json!({
            "id": id,
            "type": self.type_name(),
            "title": self.title,
            "description": self.description,
            "datasource": datasource(),
            "gridPos": { "x": x, "y": y, "w": self.width, "h": self.height },
            "fieldConfig": { "defaults": self.defaults(), "overrides": self.overrides },
            "options": self.options(),
            "targets": targets,
        });
        if self.kind == Kind::Table {
            panel["transformations"] = transformations(&self.targets);
        }
        panel
    }

    const fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Lines | Kind::Stacked => "timeseries",
            Kind::Stat => "stat",
            Kind::Table => "table",
            Kind::Heatmap => "heatmap",
        }
    }

    fn target(&self, index: usize, target: &Target) -> Value {
        let instant = matches!(self.kind, Kind::Stat | Kind::Table);
        let format = match self.kind {
            Kind::Table => "table",
            Kind::Heatmap => "heatmap",
            _ => "time_series",
        };
        json!({
            "refId": ref_id(index),
            "datasource": datasource(),
            "editorMode": "code",
            "expr": target.expr,
            "legendFormat": target.legend,
            "format": format,
            "instant": instant,
            "range": !instant,
            "exemplar": target.exemplars,
        })
    }

    fn defaults(&self) -> Value {
        let mut defaults = json!({ "unit": self.unit, "color": { "mode": "palette-classic" } });
        if !self.thresholds.is_empty() {
            let steps: Vec<Value> = self
                .thresholds
                .iter()
                .map(|(color, value)| json!({ "color": color, "value": value }))
                .collect();
            defaults["color"] = json!({ "mode": "thresholds" });
            defaults["thresholds"] = json!({ "mode": "absolute", "steps": steps });
        }
        if matches!(self.kind, Kind::Lines | Kind::Stacked) && !self.below_zero {
            defaults["min"] = json!(0);
        }
        match self.kind {
            Kind::Lines => {
                // A gap is a gap: nothing was measured.
                defaults["custom"] = json!({
                    "drawStyle": "line", "lineWidth": 1, "fillOpacity": 0,
                    "showPoints": "auto", "spanNulls": false,
                });
            }
            Kind::Stacked => {
                defaults["custom"] = json!({
                    "drawStyle": "line", "lineWidth": 1, "fillOpacity": 40,
                    "showPoints": "never", "spanNulls": false,
                    "stacking": { "mode": "normal", "group": "A" },
                });
            }
            Kind::Stat | Kind::Table | Kind::Heatmap => {}
        }
        defaults
    }

    /// What one number shows: itself, or what it stands for where its name says that.
    fn shown(&self) -> &'static str {
        let named = self.targets.iter().any(|target| !target.legend.is_empty());
        if named { "name" } else { "auto" }
    }

    fn options(&self) -> Value {
        match self.kind {
            Kind::Lines | Kind::Stacked => json!({
                "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": [] },
                "tooltip": { "mode": "multi", "sort": "desc" },
            }),
            Kind::Stat => json!({
                "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
                "colorMode": if self.thresholds.is_empty() { "none" } else { "background" },
                "graphMode": "none", "justifyMode": "auto", "orientation": "auto",
                "textMode": self.shown(), "wideLayout": true,
            }),
            Kind::Table => json!({ "showHeader": true, "cellHeight": "sm" }),
            Kind::Heatmap => json!({
                "calculate": false,
                "cellGap": 1,
                "color": { "mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "reverse": false },
                "exemplars": { "color": "rgba(255,0,255,0.7)" },
                "filterValues": { "le": 1e-9 },
                "legend": { "show": true },
                "rowsFrame": { "layout": "auto" },
                "tooltip": { "mode": "single", "yHistogram": false, "showColorScale": false },
                "yAxis": { "axisPlacement": "left", "reverse": false, "unit": self.unit },
            }),
        }
    }
}

/// Letters as Grafana gives them: A to Z, then AA.
fn ref_id(index: usize) -> String {
    let letter = |at: usize| char::from(b'A' + u8::try_from(at % 26).unwrap_or_default());
    match index / 26 {
        0 => letter(index).to_string(),
        more => format!("{}{}", letter(more - 1), letter(index)),
    }
}

/// One row for each stream, one column for each query: the legend is its name.
fn transformations(targets: &[Target]) -> Value {
    let mut names = serde_json::Map::new();
    let mut hidden = serde_json::Map::new();
    hidden.insert("Time".to_owned(), json!(true));
    for (index, target) in targets.iter().enumerate() {
        names.insert(format!("Value #{}", ref_id(index)), json!(target.legend));
    }
    json!([
        { "id": "merge", "options": {} },
        { "id": "organize", "options": {
            "excludeByName": hidden, "indexByName": {}, "renameByName": names,
        } },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_letters_like_columns() {
        let ids: Vec<String> = [0, 1, 25, 26, 27, 52].map(ref_id).to_vec();
        assert_eq!(ids, ["A", "B", "Z", "AA", "AB", "BA"]);
    }
}
