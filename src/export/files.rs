//! Records as JSON lines in `requests.jsonl`, rotated by size or not.
//!
//! Lines go out in batches, each at most a second old. A batch that cannot be written counts
//! as failed and the next one tries again, from opening the file on: a full disk or a
//! directory that vanished costs the lines of that time and nothing else. It is logged when
//! this starts and when it ends.
//!
//! Invariants: every line is whole. A write that failed half-way is cut off again, or, where
//! even that fails, ended by a line break before the next line. The live file is never larger
//! than `max_size`, unless one line alone is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::feed::{Batching, Fate, Feed};
use super::record::{RecordOptions, to_json_line};
use super::{Exporter, StallRules};
use crate::clock::TimeAnchor;
use crate::config::FilesConfig;
use crate::measurement::Observed;
use crate::telemetry::ExportCounters;

mod rotated;

use rotated::{Rotated, Rotation};

const BATCHING: Batching = Batching {
    // A few hundred kilobytes: one write for many lines, and little memory.
    size: 256,
    linger: Duration::from_secs(1),
};

/// Bytes written at once. Small, so that a file ends close to its limit.
const CHUNK: usize = 64 * 1024;

/// What the writer needs besides its place.
#[derive(Debug, Clone)]
pub struct RecordWriting {
    /// Turns instants into wall time.
    pub anchor: TimeAnchor,
    /// When a chunk gap is a stall, per stream.
    pub stalls: StallRules,
    /// Whether the gaps of each request are written out.
    pub gaps: bool,
    /// What became of the records.
    pub counters: ExportCounters,
}

/// Writes each record as one line.
#[derive(Debug)]
pub struct RecordFiles {
    writing: RecordWriting,
    file: Rotated,
    /// Whether the last write failed.
    failing: bool,
}

impl RecordFiles {
    /// In `config.dir`, rotated to `requests.1.jsonl` … `requests.{keep}.jsonl`, the highest
    /// number the oldest.
    #[must_use]
    pub fn rotating(config: &FilesConfig, writing: RecordWriting) -> Self {
        let rotation = Rotation {
            max_size: config.max_size,
            keep: config.keep,
        };
        Self::new(config.dir.clone(), Some(rotation), writing)
    }

    /// In `dir`, as one file however long it gets.
    #[must_use]
    pub fn single(dir: PathBuf, writing: RecordWriting) -> Self {
        Self::new(dir, None, writing)
    }

    fn new(dir: PathBuf, rotation: Option<Rotation>, writing: RecordWriting) -> Self {
        Self {
            writing,
            file: Rotated::new(dir, rotation),
            failing: false,
        }
    }

    async fn write_all(mut self, mut feed: Feed) {
        let deadline = feed.deadline();
        while let Some(batch) = feed.batch(BATCHING).await {
            let written = deadline
                .run_until_cancelled(self.write_batch(&batch, &mut feed))
                .await;
            if written.is_none() {
                break;
            }
        }
        feed.close().await;
    }

    async fn write_batch(&mut self, batch: &[Arc<Observed>], feed: &mut Feed) {
        let mut chunk = Vec::with_capacity(CHUNK);
        let mut lines = 0;
        let limit = self.file.max_size().map_or(CHUNK, |max| max.min(CHUNK));
        for observed in batch {
            let line = self.line(observed);
            if lines > 0 && chunk.len() + line.len() > limit {
                feed.settle(self.write_chunk(&chunk, lines).await);
                chunk.clear();
                lines = 0;
            }
            chunk.extend_from_slice(line.as_bytes());
            lines += 1;
        }
        feed.settle(self.write_chunk(&chunk, lines).await);
    }

    fn line(&self, observed: &Observed) -> String {
        let options = RecordOptions {
            stall: self.writing.stalls.of(&observed.record.stream),
            gaps: self.writing.gaps,
        };
        let mut line = to_json_line(observed, &self.writing.anchor.wall(), options);
        line.push('\n');
        line
    }

    async fn write_chunk(&mut self, chunk: &[u8], lines: u64) -> Fate {
        let result = self.file.append(chunk).await;
        let path = self.file.path().display();
        match &result {
            Ok(()) if self.failing => tracing::info!(%path, "records are written again"),
            Err(error) if !self.failing => {
                tracing::warn!(%path, %error, "records cannot be written; they are counted as failed");
            }
            _ => {}
        }
        self.failing = result.is_err();
        if self.failing {
            Fate {
                failed: lines,
                ..Fate::default()
            }
        } else {
            Fate {
                sent: lines,
                ..Fate::default()
            }
        }
    }
}

impl Exporter for RecordFiles {
    fn name(&self) -> &'static str {
        "files"
    }

    fn run(
        self: Box<Self>,
        input: mpsc::Receiver<Arc<Observed>>,
        deadline: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        let feed = Feed::new(input, self.writing.counters.clone(), deadline);
        Box::pin(self.write_all(feed))
    }
}

#[cfg(test)]
mod tests;
