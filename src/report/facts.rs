//! Facts about many things as text: one to a line with its name, and spreads as a table.

use std::time::Duration;

use super::number::{UNKNOWN, decimal, grouped, percent, span};
use super::table::{table, text};
use crate::measurement::plain;

/// A name and what is known of it.
#[derive(Debug, Clone)]
pub struct Fact {
    name: &'static str,
    value: FactValue,
}

/// What is known.
#[derive(Debug, Clone)]
pub enum FactValue {
    /// How many.
    Count(u64),
    /// A number, shown with two places.
    Number(Option<f64>),
    /// A number that may be off by the second.
    Estimate(f64, Option<f64>),
    /// A share that may be off by the second.
    Share(f64, Option<f64>),
    /// How long.
    Span(Duration),
    /// Words, also of others.
    Words(String),
}

impl Fact {
    /// `name` has this value.
    #[must_use]
    pub fn new(name: &'static str, value: FactValue) -> Self {
        Self { name, value }
    }
}

/// A line for each fact, values in one column.
#[must_use]
pub fn fact_lines(facts: &[Fact]) -> String {
    let width = facts.iter().map(|fact| fact.name.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut out = String::new();
    for fact in facts {
        let value = match &fact.value {
            FactValue::Count(count) => grouped(*count),
            FactValue::Number(value) => {
                value.map_or_else(|| UNKNOWN.to_owned(), |value| decimal(value, 2))
            }
            FactValue::Estimate(value, None) => decimal(*value, 0),
            FactValue::Estimate(value, Some(error)) => {
                format!("{} ± {}", decimal(*value, 0), decimal(*error, 0))
            }
            FactValue::Share(value, None) => format!("{} %", decimal(value * 100.0, 2)),
            FactValue::Share(value, Some(error)) => {
                format!("{} % ± {}", decimal(value * 100.0, 2), percent(*error))
            }
            FactValue::Span(time) => span(*time),
            FactValue::Words(words) => plain(words),
        };
        let line = format!("{:width$}  {value}\n", fact.name);
        out.push_str(&line);
    }
    out
}

/// Values of one kind by their quantiles.
#[derive(Debug, Clone)]
pub struct SpreadRow {
    /// What they are.
    pub name: &'static str,
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Smallest, p10, p50, p90, p95, p99, largest.
    pub marks: [u32; 7],
}

/// A table of spreads.
#[must_use]
pub fn spread_table(rows: &[SpreadRow]) -> String {
    let head = [
        "", "n", "mean", "min", "p10", "p50", "p90", "p95", "p99", "max",
    ];
    let mut table = table(head, 1);
    for row in rows {
        let mut cells = vec![
            row.name.to_owned(),
            grouped(row.count),
            decimal(row.mean, 1),
        ];
        cells.extend(row.marks.iter().map(|mark| grouped(u64::from(*mark))));
        table.add_row(cells);
    }
    text(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_stand_in_a_column() {
        let facts = [
            Fact::new("rows", FactValue::Count(12_031)),
            Fact::new("gap cv", FactValue::Number(None)),
            Fact::new("blocks", FactValue::Estimate(1e7, Some(1_234.0))),
            Fact::new("served", FactValue::Share(0.3661, None)),
            Fact::new("of it", FactValue::Share(0.4, Some(0.002))),
            Fact::new("span", FactValue::Span(Duration::from_secs(95))),
            Fact::new("why", FactValue::Words("a\u{1b}b".to_owned())),
        ];
        assert_eq!(
            fact_lines(&facts),
            "rows    12,031\ngap cv  –\nblocks  10,000,000 ± 1,234\nserved  36.61 %\nof it   40.00 % ± 0.2 %\nspan    1 min 35 s\nwhy     a b\n"
        );
    }

    #[test]
    fn spreads_are_a_table() {
        let rows = [SpreadRow {
            name: "prompt",
            count: 1_000,
            mean: 12.5,
            marks: [1, 2, 3, 4, 5, 6, 7_000],
        }];
        let told = spread_table(&rows);
        let lines: Vec<Vec<&str>> = told
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let head = ["n", "mean", "min", "p10", "p50", "p90", "p95", "p99", "max"];
        let row = [
            "prompt", "1,000", "12.5", "1", "2", "3", "4", "5", "6", "7,000",
        ];
        assert_eq!(lines.len(), 3, "{told}");
        assert_eq!(lines[0], head);
        assert_eq!(lines[2], row);
    }
}
