//! Prompts that are got ready off the runtime that measures: those of a file, read ahead, and
//! those that take a while to make.
//!
//! Of a file, a blocking task reads and prepares one batch at a time; the next is begun when there is room
//! in a queue of two, so that a file of any size takes the memory of four batches. The first is
//! read while the run is built: what is wrong with it ends the run before it begins.

mod ahead;
mod look;
mod open;
mod parts;
mod pass;
mod reader;
mod tally;

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;

pub(super) use self::ahead::Making;
pub use self::look::{Look, look};
pub use self::open::UnusableFile;
pub use self::parts::{not_a_part, parts};
pub(super) use self::reader::{FileReader, FromFile, Timing};
pub use self::tally::FileReport;
pub(super) use self::tally::Tally;
use crate::load::workload::Script;

/// Batches that wait.
const BATCHES: usize = 2;

/// The conversations of a file, in the order in which they are sent.
pub(super) struct Feed {
    ready: VecDeque<Script>,
    batches: mpsc::Receiver<Vec<Script>>,
    tally: Arc<Tally>,
}

/// What gets prompts ready.
pub(super) enum FeedTask {
    /// Reads them.
    Reading(Box<Reading>),
    /// Makes them.
    Making(Making),
}

/// What fills a feed.
pub(super) struct Reading {
    reader: FileReader,
    batches: mpsc::Sender<Vec<Script>>,
}

impl Feed {
    /// A feed of what `reader` gives, and what fills it, if there is more than a first batch.
    ///
    /// # Errors
    ///
    /// If a row of the first batch cannot be used, and is not to be passed over; if there is
    /// nothing to send.
    pub(super) fn begin(mut reader: FileReader) -> Result<(Self, Option<FeedTask>), UnusableFile> {
        let first = reader.batch();
        let tally = reader.tally();
        tally.check_first(first.scripts.is_empty())?;
        let (sender, batches) = mpsc::channel(BATCHES);
        let feed = Self {
            ready: first.scripts.into(),
            batches,
            tally,
        };
        let task = FeedTask::Reading(Box::new(Reading {
            reader,
            batches: sender,
        }));
        Ok((feed, (!first.last).then_some(task)))
    }

    /// The next conversation; `None` when there are no more.
    pub(super) async fn next(&mut self) -> Option<Script> {
        while self.ready.is_empty() {
            self.ready = self.batches.recv().await?.into();
        }
        self.ready.pop_front()
    }

    /// Where what becomes of the file is counted.
    pub(super) const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}

impl FeedTask {
    /// Runs until there are no more prompts or nobody wants more.
    pub(super) async fn run(self) {
        match self {
            Self::Reading(reading) => reading.run().await,
            Self::Making(making) => making.run().await,
        }
    }
}

impl Reading {
    async fn run(mut self) {
        while let Ok(place) = self.batches.reserve().await {
            let mut reader = self.reader;
            let read = tokio::task::spawn_blocking(move || {
                let batch = reader.batch();
                (reader, batch)
            });
            let Ok((reader, batch)) = read.await else {
                tracing::error!("the reading of a file of prompts broke off");
                return;
            };
            self.reader = reader;
            place.send(batch.scripts);
            if batch.last {
                return;
            }
        }
    }
}
