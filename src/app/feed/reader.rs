//! Reads a file of prompts pass by pass, in batches. Blocking: it runs where nothing is measured.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;

use super::open::{Opened, UnusableFile, open};
use super::pass::Pass;
use super::tally::Tally;
use crate::client::BodyWriter;
use crate::config::{Pauses, PromptFile, Replay, Sampling};
use crate::load::trace::{Clock, Detected, Format};
use crate::load::workload::{Entries, Measure, Pool, RowTexts, Script, Sources};

/// A batch ends with this many conversations,
const BATCH: usize = 64;
/// or when it has this many bytes.
const BATCH_BYTES: usize = 4 << 20;

/// What a file is read for.
#[derive(Debug, Clone, Copy)]
pub(in crate::app) struct Timing {
    /// Its rows are due at their times; `None`: times only say how far apart turns are.
    pub(in crate::app) replay: Option<Replay>,
    /// What becomes of pauses.
    pub(in crate::app) pauses: Pauses,
}

impl Timing {
    pub(super) const fn is_fixed(&self) -> bool {
        self.replay.is_some()
    }

    /// Whether a row of this time is played.
    pub(super) fn holds(&self, at: Duration) -> bool {
        self.replay.is_none_or(|Replay { from, to, .. }| {
            from.is_none_or(|from| at >= from) && to.is_none_or(|to| at <= to)
        })
    }

    /// Pauses between turns: a recording that is played faster has shorter ones.
    pub(super) fn pauses(&self) -> Pauses {
        let speed = self.replay.map_or(1.0, |replay| replay.speed);
        Pauses {
            ratio: self.pauses.ratio / speed,
            ..self.pauses
        }
    }
}

/// What the prompts of a file are made with.
pub(in crate::app) struct FromFile {
    /// Decides the texts of blocks.
    pub(in crate::app) seed: u64,
    /// Other texts.
    pub(in crate::app) sources: Sources,
    /// An order by chance.
    pub(in crate::app) order: StdRng,
    /// How tokens are counted.
    pub(in crate::app) measure: Measure,
    /// Writes their requests, if they are sent.
    pub(in crate::app) writer: Option<BodyWriter>,
}

/// What makes prompts of rows and of entries.
pub(in crate::app) struct Texts {
    pub(super) rows: RowTexts,
    pub(super) entries: Entries,
}

/// Reads one file.
pub(in crate::app) struct FileReader {
    file: PromptFile,
    timing: Timing,
    pass: Option<Pass>,
    pool: Pool,
    texts: Texts,
    writer: Option<BodyWriter>,
    tally: Arc<Tally>,
    detected: Detected,
    /// Conversations in this pass.
    given: u64,
    /// The next one is the first of a further pass.
    again: bool,
}

/// Some conversations.
pub(super) struct Batch {
    pub(super) scripts: Vec<Script>,
    /// There are no more.
    pub(super) last: bool,
}

impl FileReader {
    /// Opens `file`.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or is of no format that is known.
    pub(in crate::app) fn open(
        file: &PromptFile,
        timing: Timing,
        making: FromFile,
    ) -> Result<Self, UnusableFile> {
        let opened = open(file)?;
        let Opened { name, detected, .. } = &opened;
        if timing.is_fixed() && detected.format.clock() == Clock::Session {
            return Err(UnusableFile(format!(
                "{name}: `{}`: times count from the start of each session\n  wanted: a trace whose times have one start, for a fixed schedule",
                detected.format.name()
            )));
        }
        let sampling = match file.sampling {
            _ if timing.is_fixed() => Sampling::Sequential,
            Some(sampling) => sampling,
            None if detected.format == Format::RandomPool => Sampling::Random,
            None => Sampling::Sequential,
        };
        Ok(Self {
            tally: Arc::new(Tally::new(
                file.path.display().to_string(),
                file.skip_bad_rows,
            )),
            detected: detected.clone(),
            texts: Texts {
                rows: RowTexts::new(
                    making.seed,
                    making.sources,
                    (making.measure, file.output_tokens),
                ),
                entries: Entries::new(file.output_tokens, timing.pauses()),
            },
            writer: making.writer,
            pool: Pool::new(sampling, making.order),
            file: file.clone(),
            timing,
            pass: Some(Pass::new(file, opened, timing)),
            given: 0,
            again: false,
        })
    }

    /// The same, read for a warm-up: what becomes of it is counted apart.
    pub(in crate::app) fn of_warm_up(mut self) -> Self {
        let name = format!("{} (warm-up)", self.file.path.display());
        self.tally = Arc::new(Tally::new(name, self.file.skip_bad_rows));
        self
    }

    /// Says in the log which file it is, and how its format is known.
    pub(in crate::app) fn tell(&self) {
        tracing::info!(
            file = %self.file.path.display(),
            format = self.detected.format.name(),
            reason = self.detected.reason,
            "prompts come from a file"
        );
    }

    /// Where what becomes of the file is counted.
    pub(super) fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// The next conversations. An end of the file is the last of a fixed schedule; else it is
    /// begun again, unless nothing in it could be sent.
    pub(super) fn batch(&mut self) -> Batch {
        let mut batch = Batch {
            scripts: Vec::new(),
            last: false,
        };
        let mut weight = 0;
        while batch.scripts.len() < BATCH && weight < BATCH_BYTES {
            if let Some(mut script) = self.next() {
                script.again = std::mem::take(&mut self.again);
                // A batch takes tens of milliseconds; whoever measures does not wait for its end.
                std::thread::yield_now();
                // What later turns ask for depends on how the first are answered.
                if let (Some(writer), Some(step)) = (&self.writer, script.steps.front_mut()) {
                    writer.write(&mut step.prompt);
                    std::thread::yield_now();
                }
                weight += script.weight();
                batch.scripts.push(script);
                self.given += 1;
                continue;
            }
            if self.timing.is_fixed() || self.given == 0 || self.pass.is_none() {
                batch.last = true;
                break;
            }
            self.given = 0;
            self.again = true;
            self.tally.wrapped();
        }
        batch
    }

    fn next(&mut self) -> Option<Script> {
        let Self {
            file,
            timing,
            pass,
            texts,
            tally,
            ..
        } = self;
        let read = || {
            let Some(open) = pass else {
                return Ok::<_, std::convert::Infallible>(None);
            };
            let script = open.next(texts, tally);
            if script.is_none() && !timing.is_fixed() {
                *pass = again(file, *timing, tally);
            }
            Ok(script)
        };
        let Ok(script) = self.pool.next(read);
        script
    }
}

/// Another pass, if the file can still be read.
fn again(file: &PromptFile, timing: Timing, tally: &Tally) -> Option<Pass> {
    if tally.is_broken() {
        return None;
    }
    open(file)
        .map(|opened| Pass::new(file, opened, timing))
        .map_err(|error| tally.broke(error.to_string()))
        .ok()
}
