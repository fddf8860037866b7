//! What a configuration will send per day, against its budget.
//!
//! Only arithmetic on what the operator wrote: a rate times a day. What cannot be known before
//! it runs (the pace of a closed loop, an answer of any length) is `–`, and so is every total
//! that would have to hold it.

use std::time::Duration;

use super::number::{UNKNOWN, decimal, grouped, span};
use super::table::{table, text};

const DAY_S: f64 = 86_400.0;

/// One probe against one of its targets.
#[derive(Debug, Clone)]
pub struct PlanRow {
    /// Name of the probe.
    pub probe: String,
    /// Name of the target.
    pub target: String,
    /// Mean arrivals per second; `None` in a closed loop, which goes as fast as the server.
    pub rate: Option<f64>,
    /// Mean prompt tokens per request; `None`: not known in advance.
    pub input_tokens: Option<f64>,
    /// Mean output tokens per request; `None`: as many as the server likes.
    pub output_tokens: Option<f64>,
}

impl PlanRow {
    fn requests_per_day(&self) -> Option<f64> {
        Some(self.rate? * DAY_S)
    }

    fn input_per_day(&self) -> Option<f64> {
        Some(self.requests_per_day()? * self.input_tokens?)
    }

    fn output_per_day(&self) -> Option<f64> {
        Some(self.requests_per_day()? * self.output_tokens?)
    }

    fn tokens_per_day(&self) -> Option<f64> {
        Some(self.input_per_day()? + self.output_per_day()?)
    }
}

/// What may be sent per UTC day; `None` is no limit.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Requests, over all targets.
    pub requests_per_day: Option<u64>,
    /// Input and output tokens, over all targets.
    pub tokens_per_day: Option<u64>,
}

/// The plan as a table, and below it a sentence for each budget that ends before the day does.
#[must_use]
pub fn plan_table(rows: &[PlanRow], budget: Budget) -> String {
    let requests = total(rows.iter().map(PlanRow::requests_per_day));
    let tokens = total(rows.iter().map(PlanRow::tokens_per_day));
    let head = [
        "probe",
        "target",
        "rate",
        "tokens in → out",
        "requests/day",
        "tokens/day",
    ];
    let mut table = table(head, 2);
    for row in rows {
        table.add_row([
            row.probe.clone(),
            row.target.clone(),
            row.rate.map_or("closed loop".to_owned(), rate),
            format!("{} → {}", whole(row.input_tokens), whole(row.output_tokens)),
            whole(row.requests_per_day()),
            whole(row.tokens_per_day()),
        ]);
    }
    let line = |name: &str, requests: String, tokens: String| {
        [
            name.to_owned(),
            String::new(),
            String::new(),
            String::new(),
            requests,
            tokens,
        ]
    };
    table.add_row(line("all together", whole(requests), whole(tokens)));
    table.add_row(line(
        "budget",
        limit(budget.requests_per_day),
        limit(budget.tokens_per_day),
    ));
    let mut out = text(&table);
    for told in verdicts(rows, budget) {
        out.push_str(&told);
        out.push('\n');
    }
    out
}

/// The plan in sentences: what a day takes, what the budget allows, and what becomes of a budget
/// that ends before the day does.
#[must_use]
pub fn plan_sentences(rows: &[PlanRow], budget: Budget) -> Vec<String> {
    let sum = |of: fn(&PlanRow) -> Option<f64>| whole(total(rows.iter().map(of)));
    let mut said = vec![
        format!(
            "a day takes {} requests with {} input and {} output tokens, {} together",
            sum(PlanRow::requests_per_day),
            sum(PlanRow::input_per_day),
            sum(PlanRow::output_per_day),
            sum(PlanRow::tokens_per_day),
        ),
        format!(
            "the budget of a day: requests {}, tokens {}",
            limit(budget.requests_per_day),
            limit(budget.tokens_per_day),
        ),
    ];
    said.extend(verdicts(rows, budget));
    said
}

/// A sentence for each budget that ends before the day does, or may.
fn verdicts(rows: &[PlanRow], budget: Budget) -> Vec<String> {
    let mut out = Vec::new();
    let known = |values: Vec<Option<f64>>| values.into_iter().flatten().sum::<f64>();
    let closed = rows.iter().any(|row| row.rate.is_none());
    for (what, plan, budget) in [
        (
            "requests",
            known(rows.iter().map(PlanRow::requests_per_day).collect()),
            budget.requests_per_day,
        ),
        (
            "tokens",
            known(rows.iter().map(PlanRow::tokens_per_day).collect()),
            budget.tokens_per_day,
        ),
    ] {
        out.extend(verdict(what, plan, budget));
    }
    if closed && (budget.requests_per_day.is_some() || budget.tokens_per_day.is_some()) {
        out.push("a closed loop goes as fast as the server and may use up what the other probes leave of the budget".to_owned());
    }
    out
}

/// The sum, or `None` if one of the values is not known.
fn total(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.sum()
}

fn rate(per_second: f64) -> String {
    if per_second < 0.1 {
        format!("{}/min", decimal(per_second * 60.0, 2))
    } else {
        format!("{}/s", decimal(per_second, 2))
    }
}

fn whole(value: Option<f64>) -> String {
    value.map_or(UNKNOWN.to_owned(), |value| decimal(value, 0))
}

fn limit(value: Option<u64>) -> String {
    value.map_or("none".to_owned(), grouped)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a budget above 2^53 per day is not told apart"
)]
fn verdict(what: &str, plan: f64, budget: Option<u64>) -> Option<String> {
    let budget = budget?;
    // Where nothing is known the plan is zero, and nothing is to be divided by it.
    if plan <= budget as f64 {
        return None;
    }
    let lasts = span(Duration::from_secs_f64(DAY_S * budget as f64 / plan));
    Some(format!(
        "the budget of {} {what} a day is used up after about {lasts}; from then on arrivals are refused, reason `budget`",
        grouped(budget)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rate: Option<f64>, output_tokens: Option<f64>) -> PlanRow {
        PlanRow {
            probe: "short-chat".to_owned(),
            target: "qwen-prod".to_owned(),
            rate,
            input_tokens: Some(128.0),
            output_tokens,
        }
    }

    #[test]
    fn a_plan_within_its_budget_is_only_a_table() {
        let budget = Budget {
            requests_per_day: Some(50_000),
            tokens_per_day: Some(5_000_000),
        };
        let text = plan_table(&[row(Some(0.2), Some(64.0))], budget);
        insta::assert_snapshot!(text, @r"
         probe          target        rate  tokens in → out  requests/day  tokens/day
        ─────────────────────────────────────────────────────────────────────────────
         short-chat     qwen-prod   0.20/s         128 → 64        17,280   3,317,760
         all together                                              17,280   3,317,760
         budget                                                    50,000   5,000,000
        ");
    }

    #[test]
    fn in_sentences_it_says_what_the_table_says() {
        let budget = Budget {
            requests_per_day: Some(10_000),
            tokens_per_day: None,
        };
        let rows = [row(Some(0.2), Some(64.0)), row(Some(0.1), Some(1.0))];
        assert_eq!(
            plan_sentences(&rows, budget),
            [
                "a day takes 25,920 requests with 3,317,760 input and 1,114,560 output tokens, 4,432,320 together",
                "the budget of a day: requests 10,000, tokens none",
                "the budget of 10,000 requests a day is used up after about 9 h 15 min; from then on arrivals are refused, reason `budget`",
            ]
        );
        let unknown = plan_sentences(&[row(None, None)], budget);
        assert_eq!(
            unknown[0],
            "a day takes – requests with – input and – output tokens, – together"
        );
        assert_eq!(unknown.len(), 3, "{unknown:?}");
        assert!(unknown[2].starts_with("a closed loop"), "{unknown:?}");
    }

    #[test]
    fn a_budget_that_ends_early_says_when() {
        let budget = Budget {
            requests_per_day: Some(43_200),
            tokens_per_day: None,
        };
        let text = plan_table(&[row(Some(1.0), None)], budget);
        assert!(
            text.ends_with(
                "the budget of 43,200 requests a day is used up after about 12 h 0 min; from then on arrivals are refused, reason `budget`\n"
            ),
            "{text}"
        );
        let tokens: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("all together"))
            .collect();
        assert!(
            tokens[0].contains("86,400") && tokens[0].ends_with('–'),
            "{text}"
        );
    }

    #[test]
    fn a_closed_loop_leaves_the_totals_unknown() {
        let budget = Budget {
            requests_per_day: Some(1),
            tokens_per_day: Some(1),
        };
        let text = plan_table(&[row(Some(0.2), Some(64.0)), row(None, Some(64.0))], budget);
        assert!(text.contains("closed loop"), "{text}");
        let totals = text.lines().find(|line| line.contains("all together"));
        assert_eq!(
            totals.map(|line| line.matches('–').count()),
            Some(2),
            "{text}"
        );
        // The known part alone, 17,280 requests, is more than the budget.
        assert!(
            text.contains("the budget of 1 requests a day is used up"),
            "{text}"
        );
        assert!(text.contains("a closed loop goes as fast"), "{text}");
    }
}
