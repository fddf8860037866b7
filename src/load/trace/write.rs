//! Traces as files: five formats that are plain rows. What a format cannot carry is counted by
//! kind, so that whoever converts is told what is gone.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::error::Fault;
use super::file_ids::FileIds;
use super::format::{Clock, Format};
use super::number::{Unit, write_duration};
use super::reblock::reblock;
use super::row::{Body, TraceRow};
use super::stamp::write_instant;
use super::traces::Bad;

/// What was lost, and in how many rows.
pub type Losses = BTreeMap<&'static str, u64>;

/// Writes rows in one format.
pub struct TraceWriter<W: Write> {
    out: W,
    format: Format,
    from: Clock,
    block_tokens: u32,
    losses: Losses,
    rows: u64,
    /// Instant of the first row, where the new clock begins there.
    zero: Option<Duration>,
    chains: Chains,
    ids: FileIds,
}

/// Why a row was not written.
#[derive(Debug)]
pub enum WriteError {
    /// The row has not what the format needs.
    Row(Box<Fault>),
    /// The file cannot be written.
    File(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<Bad> for WriteError {
    fn from(fault: Bad) -> Self {
        Self::Row(fault)
    }
}

impl Format {
    /// Formats that can be written.
    pub const WRITTEN: [Self; 5] = [
        Self::Mooncake,
        Self::Bailian,
        Self::BurstGpt,
        Self::Azure,
        Self::Minimal,
    ];
}

impl<W: Write> TraceWriter<W> {
    /// Writes rows whose times are on the clock `from` to `out`, with blocks of `block_tokens`.
    ///
    /// `None` if the format is none of [`Format::WRITTEN`].
    pub fn new(format: Format, from: Clock, block_tokens: u32, out: W) -> Option<Self> {
        Format::WRITTEN.contains(&format).then(|| Self {
            out,
            format,
            from,
            block_tokens,
            losses: Losses::new(),
            rows: 0,
            zero: None,
            chains: Chains::default(),
            ids: FileIds::default(),
        })
    }

    /// Writes one row, which is changed on the way.
    ///
    /// # Errors
    /// If the row has not what the format needs, or the file cannot be written.
    pub fn write(&mut self, row: &mut TraceRow) -> Result<(), WriteError> {
        self.set_clock(row)?;
        self.set_blocks(row);
        let line = match self.format {
            Format::Bailian => self.bailian(row)?,
            Format::BurstGpt => self.burst_gpt(row)?,
            Format::Azure => self.azure(row)?,
            Format::Minimal => self.minimal(row)?,
            _ => self.mooncake(row)?,
        };
        self.rows += 1;
        self.out.write_all(line.as_bytes())?;
        Ok(())
    }

    /// Ends the file and says what was lost.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<(u64, Losses)> {
        self.out.flush()?;
        Ok((self.rows, self.losses))
    }

    fn lost(&mut self, what: &'static str, when: bool) {
        if when {
            *self.losses.entry(what).or_default() += 1;
        }
    }

    /// Times on the clock of the new file.
    fn set_clock(&mut self, row: &mut TraceRow) -> Result<(), Bad> {
        let to = self.format.clock();
        match (self.from, to) {
            (Clock::Unix, Clock::Start) => {
                let Some(at) = row.at else { return Ok(()) };
                let zero = *self.zero.get_or_insert(at);
                self.lost(
                    "time of day: times count from the first row",
                    self.rows == 0,
                );
                row.at = Some(at.checked_sub(zero).ok_or_else(|| {
                    Fault::new(
                        "timestamp",
                        &format!(
                            "{} s before the first row",
                            zero.saturating_sub(at).as_secs_f64()
                        ),
                        "rows in the order of their times",
                    )
                })?);
            }
            (Clock::Start | Clock::Session, Clock::Unix) => {
                self.lost(
                    "(there is no time of day: times count from 1970)",
                    self.rows == 0,
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn set_blocks(&mut self, row: &mut TraceRow) {
        let carries = matches!(self.format, Format::Mooncake | Format::Bailian);
        if !carries {
            self.lost("ids of blocks", !row.blocks.is_empty());
            return;
        }
        self.ids.widen(row);
        let coarser = !row.blocks.is_empty() && row.block_tokens < self.block_tokens;
        self.lost(
            "ids of smaller blocks: one for each larger block is kept",
            coarser,
        );
        if !reblock(row, self.block_tokens) {
            self.lost(
                "ids of blocks, whose size does not go into the new one",
                true,
            );
        }
    }

    /// What no format that is written carries.
    fn lost_facts(&mut self, row: &TraceRow) {
        self.lost("time to the first token", row.first_token.is_some());
        self.lost(
            "sub-agents: their requests are turns of the session",
            row.agent.is_some(),
        );
        let known = row.input_tokens.is_some();
        self.lost("text of prompts", row.body.is_some() && known);
        if self.format != Format::BurstGpt {
            self.lost("time the recorded server took", row.service.is_some());
            self.lost("name of the model", row.model.is_some());
        }
        self.lost(
            "number of images",
            row.images.is_some() && self.format != Format::Azure,
        );
    }

    fn mooncake(&mut self, row: &TraceRow) -> Result<String, Bad> {
        self.lost_facts(row);
        self.lost("that the request failed", row.failed);
        let mut object = serde_json::Map::new();
        // Sessions on clocks of their own follow their first request by pauses.
        let by_pause = self.from == Clock::Session && self.chains.follows(row.session.as_deref());
        let delay = if by_pause {
            row.delay.or_else(|| self.chains.pause(row))
        } else {
            row.delay
        };
        if self.from == Clock::Session {
            self.chains.note(row);
        }
        if let (Some(at), false) = (row.at, by_pause) {
            object.insert("timestamp".to_owned(), time(at, Unit::Milliseconds));
        }
        if let Some(delay) = delay {
            object.insert("delay".to_owned(), time(delay, Unit::Milliseconds));
        }
        match (row.input_tokens, &row.body) {
            (Some(tokens), _) => object.insert("input_length".to_owned(), json!(tokens)),
            (None, Some(Body::Text(text))) => object.insert("text_input".to_owned(), json!(text)),
            (None, Some(Body::Messages(raw))) => {
                object.insert("messages".to_owned(), parsed("messages", raw.get())?)
            }
            (None, Some(Body::Payload(raw))) => {
                object.insert("payload".to_owned(), parsed("payload", raw.get())?)
            }
            (None, None) => return Err(Fault::missing("input_length", "a length of the prompt")),
        };
        if let Some(tokens) = row.output_tokens {
            object.insert("output_length".to_owned(), json!(tokens));
        }
        if !row.blocks.is_empty() {
            object.insert("hash_ids".to_owned(), json!(row.blocks));
        }
        if let Some(session) = &row.session {
            object.insert("session_id".to_owned(), json!(session));
        }
        Ok(Value::Object(object).to_string() + "\n")
    }

    fn bailian(&mut self, row: &TraceRow) -> Result<String, Bad> {
        self.lost_facts(row);
        self.lost("that the request failed", row.failed);
        self.lost("pauses before turns", row.delay.is_some());
        self.lost("names of sessions", row.session.is_some());
        let (parent, turn) = self.chains.chain(row.session.as_deref(), self.rows);
        let mut object = serde_json::Map::new();
        object.insert("chat_id".to_owned(), json!(self.rows));
        object.insert(
            "parent_chat_id".to_owned(),
            parent.map_or(json!(-1), |it| json!(it)),
        );
        object.insert("timestamp".to_owned(), time(needed_at(row)?, Unit::Seconds));
        object.insert("input_length".to_owned(), json!(needed_input(row)?));
        if let Some(tokens) = row.output_tokens {
            object.insert("output_length".to_owned(), json!(tokens));
        }
        object.insert("type".to_owned(), json!("text"));
        object.insert("turn".to_owned(), json!(turn + 1));
        object.insert("hash_ids".to_owned(), json!(row.blocks));
        Ok(Value::Object(object).to_string() + "\n")
    }

    fn minimal(&mut self, row: &TraceRow) -> Result<String, Bad> {
        self.lost_facts(row);
        self.lost("that the request failed", row.failed);
        self.lost("pauses before turns", row.delay.is_some());
        self.lost("sessions", row.session.is_some());
        let mut object = serde_json::Map::new();
        object.insert("timestamp".to_owned(), time(needed_at(row)?, Unit::Seconds));
        object.insert("input_length".to_owned(), json!(needed_input(row)?));
        object.insert("output_length".to_owned(), json!(needed_output(row)?));
        Ok(Value::Object(object).to_string() + "\n")
    }

    fn burst_gpt(&mut self, row: &TraceRow) -> Result<String, Bad> {
        self.lost_facts(row);
        self.lost("pauses before turns", row.delay.is_some());
        let unknown = row.output_tokens.is_none() && !row.failed;
        self.lost(
            "that the length of the answer is unknown: it is 0, as of a failure",
            unknown,
        );
        let at = write_duration(needed_at(row)?, Unit::Seconds);
        let (input, output) = (
            row.input_tokens.unwrap_or(0),
            row.output_tokens.unwrap_or(0),
        );
        if input == 0 && !row.failed {
            needed_input(row)?;
        }
        let elapsed = row.service.map(|it| write_duration(it, Unit::Seconds));
        let kind = match row.session {
            Some(_) => "Conversation log",
            None => "API log",
        };
        let total = u64::from(input) + u64::from(output);
        let line = cells(&[
            &at,
            row.session.as_deref().unwrap_or_default(),
            elapsed.as_deref().unwrap_or_default(),
            row.model.as_deref().unwrap_or_default(),
            &input.to_string(),
            &output.to_string(),
            &total.to_string(),
            kind,
        ]);
        let head = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
        Ok(self.below(head, line))
    }

    fn azure(&mut self, row: &TraceRow) -> Result<String, Bad> {
        self.lost_facts(row);
        self.lost("that the request failed", row.failed);
        self.lost("pauses before turns", row.delay.is_some());
        self.lost("sessions", row.session.is_some());
        let at = needed_at(row)?;
        self.lost(
            "what is below 100 ns of a time",
            !at.subsec_nanos().is_multiple_of(100),
        );
        let line = cells(&[
            &write_instant(at),
            &row.images.unwrap_or(0).to_string(),
            &needed_input(row)?.to_string(),
            &needed_output(row)?.to_string(),
        ]);
        Ok(self.below("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n", line))
    }

    /// The header before the first row.
    fn below(&self, head: &str, line: String) -> String {
        if self.rows == 0 {
            head.to_owned() + &line
        } else {
            line
        }
    }
}

/// A time as a JSON number with all its places.
fn time(at: Duration, unit: Unit) -> Value {
    let text = write_duration(at, unit);
    serde_json::from_str(&text).expect("a decimal number is JSON")
}

fn parsed(name: &str, raw: &str) -> Result<Value, Bad> {
    serde_json::from_str(raw).map_err(|_| Fault::new(name, raw, "JSON that can be written again"))
}

fn needed_at(row: &TraceRow) -> Result<Duration, Bad> {
    row.at
        .ok_or_else(|| Fault::missing("timestamp", "a time, which this format needs"))
}

fn needed_input(row: &TraceRow) -> Result<u32, Bad> {
    row.input_tokens.ok_or_else(|| {
        Fault::missing(
            "input_length",
            "a length of the prompt, which this format needs",
        )
    })
}

fn needed_output(row: &TraceRow) -> Result<u32, Bad> {
    row.output_tokens.ok_or_else(|| {
        Fault::missing(
            "output_length",
            "a length of the answer, which this format needs",
        )
    })
}

/// A line of CSV; cells are quoted where they have to be.
fn cells(cells: &[&str]) -> String {
    let mut out = String::new();
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&cell.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(cell);
        }
    }
    out.push('\n');
    out
}

/// Sessions that are remembered while writing.
const REMEMBERED: usize = 500_000;

/// The last request of each session.
#[derive(Debug, Default)]
struct Chains {
    last: HashMap<String, Last>,
    order: VecDeque<String>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    row: u64,
    turn: u32,
    /// When it ended, as far as the file says.
    end: Option<Duration>,
}

impl Chains {
    /// The request before this one in its session, and which turn this one is.
    fn chain(&mut self, session: Option<&str>, row: u64) -> (Option<u64>, u32) {
        let Some(session) = session else {
            return (None, 0);
        };
        let before = self.last.get(session).copied();
        let turn = before.map_or(0, |last| last.turn + 1);
        self.set(
            session,
            Last {
                row,
                turn,
                end: None,
            },
        );
        (before.map(|last| last.row), turn)
    }

    fn follows(&self, session: Option<&str>) -> bool {
        session.is_some_and(|session| self.last.contains_key(session))
    }

    /// From the end of the request before to this one.
    fn pause(&self, row: &TraceRow) -> Option<Duration> {
        let end = self.last.get(row.session.as_deref()?)?.end?;
        Some(row.at?.saturating_sub(end))
    }

    fn note(&mut self, row: &TraceRow) {
        if let Some(session) = &row.session {
            let end = row.at.map(|at| at + row.service.unwrap_or_default());
            self.set(
                session,
                Last {
                    row: 0,
                    turn: 0,
                    end,
                },
            );
        }
    }

    fn set(&mut self, session: &str, last: Last) {
        if self.last.insert(session.to_owned(), last).is_none() {
            self.order.push_back(session.to_owned());
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.last.remove(&oldest);
            }
        }
    }
}
