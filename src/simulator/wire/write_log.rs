//! The server's own clock before each write, as JSON lines in a file.
//!
//! The hot path reads the clock and pushes into a bounded buffer; a writer drains it to the
//! file some time later. A full buffer drops lines and counts them; the count is the file's
//! last line if it is not zero.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use crate::clock::TimeAnchor;

/// Lines held at most between two drains: more than a second of 500 streams at 10 ms.
const MAX_LINES: usize = 131_072;
/// How long lines wait for company before they are written.
const DRAIN_EVERY: Duration = Duration::from_millis(200);

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// A request was read to its end.
    Read,
    Headers,
    Role,
    Token,
    Finish,
    Usage,
    Done,
    Body,
}

/// Who writes: which request of the client's, and the how-manieth write of its answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Writing {
    pub(super) request: Option<Arc<str>>,
    pub(super) write: u32,
}

#[derive(Debug)]
struct Line {
    writing: Writing,
    moment: Moment,
    unix_ns: u64,
    mono_ns: u64,
}

/// The log, if one is kept.
#[derive(Debug)]
pub(super) struct WriteLog {
    anchor: TimeAnchor,
    pending: Mutex<Pending>,
    filled: Notify,
    file: tokio::sync::Mutex<tokio::fs::File>,
}

#[derive(Debug, Default)]
struct Pending {
    lines: Vec<Line>,
    lost: u64,
}

impl WriteLog {
    /// A log into a new file at `path`.
    pub(super) fn create(path: &Path, anchor: TimeAnchor) -> io::Result<Self> {
        let file = tokio::fs::File::from_std(File::create(path)?);
        Ok(Self {
            anchor,
            pending: Mutex::new(Pending::default()),
            filled: Notify::new(),
            file: tokio::sync::Mutex::new(file),
        })
    }

    /// Notes this moment.
    pub(super) fn note(&self, writing: &Writing, moment: Moment) {
        let now = self.anchor.now();
        let line = Line {
            writing: writing.clone(),
            moment,
            unix_ns: self.anchor.wall().unix_ns(now),
            mono_ns: now.as_nanos(),
        };
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.lines.len() >= MAX_LINES {
            pending.lost += 1;
            return;
        }
        pending.lines.push(line);
        if pending.lines.len() == 1 {
            self.filled.notify_one();
        }
    }

    /// Writes lines as they gather, for ever or until the file cannot be written.
    pub(super) async fn write_out(&self) -> io::Result<()> {
        loop {
            self.filled.notified().await;
            tokio::time::sleep(DRAIN_EVERY).await;
            self.drain().await?;
        }
    }

    /// Writes what has gathered, and how much was lost.
    pub(super) async fn finish(&self) -> io::Result<()> {
        self.drain().await?;
        let lost = self.lock().lost;
        let mut file = self.file.lock().await;
        if lost > 0 {
            let line = format!("{}\n", json!({"kind": "lost", "lines": lost}));
            file.write_all(line.as_bytes()).await?;
        }
        file.flush().await
    }

    async fn drain(&self) -> io::Result<()> {
        let lines = std::mem::take(&mut self.lock().lines);
        let mut text = String::with_capacity(lines.len() * 128);
        for line in &lines {
            text.push_str(&line.json());
            text.push('\n');
        }
        let mut file = self.file.lock().await;
        file.write_all(text.as_bytes()).await?;
        file.flush().await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn json(&self) -> String {
        json!({
            "request": self.writing.request.as_deref(),
            "write": self.writing.write,
            "kind": self.moment.name(),
            "unix_ns": self.unix_ns,
            "mono_ns": self.mono_ns,
        })
        .to_string()
    }
}

impl Moment {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Headers => "headers",
            Self::Role => "role",
            Self::Token => "token",
            Self::Finish => "finish",
            Self::Usage => "usage",
            Self::Done => "done",
            Self::Body => "body",
        }
    }
}
