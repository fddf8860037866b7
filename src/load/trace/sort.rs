//! Rows in the order of their times, as far as a bounded memory reaches: captures are written
//! when requests end, and agents' rounds session by session.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::row::TraceRow;

/// Memory of the rows that wait, in bytes.
pub const SORTED_IN: usize = 64 << 20;

/// Puts rows in order.
#[derive(Debug)]
pub struct Sorter {
    waiting: BinaryHeap<Waiting>,
    weight: usize,
    most: usize,
    sequence: u64,
    /// Latest time that came in, for rows without one.
    latest: Duration,
    /// Time of the row given last.
    given: Duration,
}

#[derive(Debug)]
struct Waiting {
    at: Duration,
    sequence: u64,
    weight: usize,
    row: TraceRow,
}

/// A row came so late that rows after it had gone already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLate {
    /// Its time.
    pub at: Duration,
    /// The time of a row that had gone.
    pub after: Duration,
}

impl Sorter {
    /// Rows wait while they take less than `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            waiting: BinaryHeap::new(),
            weight: 0,
            most,
            sequence: 0,
            latest: Duration::ZERO,
            given: Duration::ZERO,
        }
    }

    /// Takes a row; rows without a time stay behind the ones before them.
    pub fn push(&mut self, row: TraceRow) {
        let at = row.at.unwrap_or(self.latest);
        self.latest = self.latest.max(at);
        let text = row.session.as_ref().map_or(0, String::len);
        let weight = size_of::<Waiting>() + row.blocks.len() * size_of::<u64>() + text;
        self.weight += weight;
        self.sequence += 1;
        self.waiting.push(Waiting {
            at,
            sequence: self.sequence,
            weight,
            row,
        });
    }

    /// Whether a row has to go before another may come.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.weight > self.most
    }

    /// Gives the first of the rows that wait.
    ///
    /// # Errors
    /// If a later one was given before.
    pub fn pop(&mut self) -> Result<Option<TraceRow>, TooLate> {
        let Some(first) = self.waiting.pop() else {
            return Ok(None);
        };
        self.weight -= first.weight;
        if first.at < self.given {
            return Err(TooLate {
                at: first.at,
                after: self.given,
            });
        }
        self.given = first.at;
        Ok(Some(first.row))
    }
}

impl Ord for Waiting {
    /// The heap gives the greatest: the earliest, and of several the one that came first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: Option<u64>, input: u32) -> TraceRow {
        TraceRow {
            at: at.map(Duration::from_secs),
            input_tokens: Some(input),
            ..TraceRow::default()
        }
    }

    #[test]
    fn rows_come_out_in_order() {
        let mut sorter = Sorter::new(1 << 20);
        for (at, input) in [(Some(3), 1), (None, 2), (Some(1), 3), (Some(3), 4)] {
            sorter.push(row(at, input));
            assert!(!sorter.is_full());
        }
        let mut found = Vec::new();
        while let Some(row) = sorter.pop().expect("in order") {
            found.push(row.input_tokens.expect("given"));
        }
        assert_eq!(found, [3, 1, 2, 4]);
    }

    #[test]
    fn a_row_that_comes_too_late_is_told() {
        let mut sorter = Sorter::new(0);
        sorter.push(row(Some(5), 1));
        assert!(sorter.is_full());
        assert!(sorter.pop().expect("the first").is_some());
        sorter.push(row(Some(4), 2));
        let late = TooLate {
            at: Duration::from_secs(4),
            after: Duration::from_secs(5),
        };
        assert_eq!(sorter.pop().expect_err("too late"), late);
    }
}
