//! One pass over a file: its rows in the order in which they are due, as conversations.

use std::time::Duration;

use super::open::{Given, Opened};
use super::reader::{Texts, Timing};
use super::tally::Tally;
use crate::load::trace::{Clock, FileIds, Format, SORTED_IN, Sorter, TraceRow};
use crate::load::workload::{Gather, Joined, Script};

/// The state of one pass.
pub(super) struct Pass {
    name: String,
    given: Given,
    timing: Timing,
    gather: Gather,
    ids: FileIds,
    sorter: Option<Sorter>,
    is_absolute: bool,
    /// When the first row came, where times count from somewhere else.
    first: Option<Duration>,
    /// The session of the last row that lay outside the window.
    outside: Option<String>,
    ended: bool,
}

impl Pass {
    /// A pass over what was `opened`.
    pub(super) fn new(opened: Opened, timing: Timing) -> Self {
        let format = opened.detected.format;
        let joined = if timing.is_fixed() {
            Joined::Untimed
        } else {
            Joined::All
        };
        let sorts = format.clock() == Clock::Unix && format != Format::Azure;
        Self {
            name: opened.name,
            given: opened.given,
            gather: Gather::new(joined, timing.pauses()),
            timing,
            ids: FileIds::default(),
            // Sessions that are not put on one clock stay together.
            sorter: (sorts && timing.is_fixed()).then(|| Sorter::new(SORTED_IN)),
            is_absolute: format.clock() == Clock::Unix,
            first: None,
            outside: None,
            ended: false,
        }
    }

    /// The next conversation; `None` at the end.
    pub(super) fn next(&mut self, texts: &mut Texts, tally: &Tally) -> Option<Script> {
        match &mut self.given {
            Given::Entries(_) => self.next_entry(texts, tally),
            Given::Rows(_) => self.next_rows(texts, tally),
        }
    }

    fn next_entry(&mut self, texts: &Texts, tally: &Tally) -> Option<Script> {
        let Given::Entries(entries) = &mut self.given else {
            return None;
        };
        loop {
            let read = entries.next();
            tally.note(entries.notes());
            let entry = match read? {
                Ok(entry) => entry,
                Err(error) if error.can_go_on() => {
                    tally.bad(error.to_string());
                    continue;
                }
                Err(error) => {
                    tally.broke(error.to_string());
                    return None;
                }
            };
            let told = |why: String| format!("{}:{}: {why}", self.name, entries.line());
            match texts.entries.script(entry) {
                Err(why) => tally.bad(told(why)),
                Ok(script) if !self.timing.is_fixed() => return Some(script),
                Ok(script) => match script.at {
                    None => tally.bad(told(
                        "timestamp: `(nothing)`\n  wanted: a time in each row, for a fixed schedule"
                            .to_owned(),
                    )),
                    Some(at) if self.timing.holds(at) => return Some(script),
                    Some(_) => {}
                },
            }
        }
    }

    fn next_rows(&mut self, texts: &mut Texts, tally: &Tally) -> Option<Script> {
        while let Some((mut row, line)) = self.next_row(tally) {
            if self.is_outside(&row) {
                continue;
            }
            let pushed = texts
                .rows
                .step(&mut row)
                .and_then(|step| self.gather.push(&row, step));
            match pushed {
                Ok(Some(script)) => return Some(script),
                Ok(None) => {}
                Err(why) => tally.bad(match line {
                    Some(line) => format!("{}:{line}: {why}", self.name),
                    None => format!("{}: {why}", self.name),
                }),
            }
        }
        self.gather.finish()
    }

    /// Whether `row` lies outside the window, or follows one that does.
    fn is_outside(&mut self, row: &TraceRow) -> bool {
        let outside = match row.at {
            Some(at) => self.timing.is_fixed() && !self.timing.holds(at),
            None => row.session.is_some() && row.session == self.outside,
        };
        if outside {
            self.outside.clone_from(&row.session);
        } else {
            self.outside = None;
        }
        outside
    }

    /// The next row in order, and its line where that is known.
    fn next_row(&mut self, tally: &Tally) -> Option<(TraceRow, Option<u64>)> {
        let (mut row, line) = if self.sorter.is_some() {
            (self.sorted(tally)?, None)
        } else {
            let (row, line) = self.read(tally)?;
            (row, Some(line))
        };
        if self.is_absolute
            && let Some(at) = row.at
        {
            let first = *self.first.get_or_insert(at);
            row.at = Some(at.saturating_sub(first));
        }
        Some((row, line))
    }

    fn sorted(&mut self, tally: &Tally) -> Option<TraceRow> {
        loop {
            while self.sorter.as_ref().is_some_and(|sorter| !sorter.is_full()) {
                let Some((row, _)) = self.read(tally) else {
                    break;
                };
                self.sorter.as_mut()?.push(row);
            }
            match self.sorter.as_mut()?.pop() {
                Ok(first) => return first,
                Err(late) => tally.bad(format!(
                    "{}: a row of {} s comes after rows up to {} s\n  wanted: rows that can be put in order within {} MB",
                    self.name,
                    late.at.as_secs_f64(),
                    late.after.as_secs_f64(),
                    SORTED_IN >> 20,
                )),
            }
        }
    }

    /// The next row as it stands in the file.
    fn read(&mut self, tally: &Tally) -> Option<(TraceRow, u64)> {
        let Given::Rows(rows) = &mut self.given else {
            return None;
        };
        while !self.ended {
            let mut row = TraceRow::default();
            match rows.read_into(&mut row) {
                Ok(true) => {
                    self.ids.widen(&mut row);
                    return Some((row, rows.line()));
                }
                Ok(false) => self.ended = true,
                Err(error) if error.can_go_on() => tally.bad(error.to_string()),
                Err(error) => {
                    tally.broke(error.to_string());
                    self.ended = true;
                }
            }
        }
        None
    }
}
