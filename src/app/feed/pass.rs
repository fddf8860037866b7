//! One pass over a file: its rows in the order in which they are due, as conversations.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use super::open::{Given, Opened, open_part};
use super::parts::not_a_part;
use super::reader::{Texts, Timing};
use super::tally::Tally;
use crate::config::PromptFile;
use crate::load::trace::{Clock, FileIds, Format, SORTED_IN, Sorter, TraceRow};
use crate::load::workload::{Gather, Joined, Script};

/// The state of one pass.
pub(super) struct Pass {
    file: PromptFile,
    /// The file that is open.
    name: String,
    format: Format,
    given: Given,
    /// Those after it.
    rest: VecDeque<PathBuf>,
    /// What was odd in those before it.
    noted: BTreeMap<&'static str, u64>,
    /// The time of the last row as it was read.
    last: Option<Duration>,
    /// Rows of a file that follows another are looked at: they have to go on from there.
    follows: bool,
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
    pub(super) fn new(file: &PromptFile, opened: Opened, timing: Timing) -> Self {
        let format = opened.detected.format;
        let joined = if timing.is_fixed() {
            Joined::Untimed
        } else {
            Joined::All
        };
        let sorts = format.clock() == Clock::Unix && format != Format::Azure;
        Self {
            file: file.clone(),
            name: opened.name,
            format,
            given: opened.given,
            rest: opened.rest,
            noted: BTreeMap::new(),
            last: None,
            follows: false,
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
        loop {
            let Given::Entries(entries) = &mut self.given else {
                return None;
            };
            let read = entries.next();
            tally.note(&self.noted, entries.notes());
            let Some(read) = read else {
                for (what, count) in entries.notes() {
                    *self.noted.entry(what).or_default() += count;
                }
                if self.next_part(tally) {
                    continue;
                }
                return None;
            };
            let entry = match read {
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
                    None => format!("{}: {why}", self.file.path.display()),
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
                    self.file.path.display(),
                    late.at.as_secs_f64(),
                    late.after.as_secs_f64(),
                    SORTED_IN >> 20,
                )),
            }
        }
    }

    /// The next row as it stands in the file.
    fn read(&mut self, tally: &Tally) -> Option<(TraceRow, u64)> {
        while !self.ended {
            let Given::Rows(rows) = &mut self.given else {
                return None;
            };
            let mut row = TraceRow::default();
            match rows.read_into(&mut row) {
                Ok(true) => {
                    let line = rows.line();
                    if let Some(why) = self.goes_back(&row) {
                        tally.broke(why);
                        self.ended = true;
                        return None;
                    }
                    self.ids.widen(&mut row);
                    return Some((row, line));
                }
                Ok(false) => self.ended = !self.next_part(tally),
                Err(error) if error.can_go_on() => tally.bad(error.to_string()),
                Err(error) => {
                    tally.broke(error.to_string());
                    self.ended = true;
                }
            }
        }
        None
    }

    /// Opens the next file of a directory. False if there is none, or it cannot be used.
    fn next_part(&mut self, tally: &Tally) -> bool {
        let Some(path) = self.rest.pop_front() else {
            return false;
        };
        match open_part(&self.file, &path, Some(self.format)) {
            Ok((_, given)) => {
                self.name = path.display().to_string();
                self.given = given;
                self.follows = true;
                true
            }
            Err(error) => {
                tally.broke(error.to_string());
                false
            }
        }
    }

    /// What is wrong if `row` is the first of a file and came before the end of the one before,
    /// though rows are sent at their times, and not put in order.
    fn goes_back(&mut self, row: &TraceRow) -> Option<String> {
        let at = row.at?;
        let last = self.last.replace(at)?;
        let follows = std::mem::take(&mut self.follows);
        let is_wrong = follows && self.timing.is_fixed() && self.sorter.is_none() && at < last;
        is_wrong.then(|| not_a_part(&self.name, (at, last)))
    }
}
