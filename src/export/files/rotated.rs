//! One file that is appended to, watched and rotated.
//!
//! Before each write the file is looked up by its path: a file that someone deleted, moved or
//! cut is opened anew, since bytes written to a file without a name are lost.

use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};

use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

const STEM: &str = "requests";

/// When a file is closed and how many closed ones stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rotation {
    /// Bytes of a file at most.
    pub(super) max_size: u64,
    /// Closed files kept.
    pub(super) keep: u32,
}

#[derive(Debug)]
pub(super) struct Rotated {
    dir: PathBuf,
    path: PathBuf,
    rotation: Option<Rotation>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Bytes in it, all of them whole lines.
    len: u64,
}

impl Rotated {
    pub(super) fn new(dir: PathBuf, rotation: Option<Rotation>) -> Self {
        Self {
            path: dir.join(format!("{STEM}.jsonl")),
            dir,
            rotation,
            open: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The limit of a file, if it has one that memory can hold.
    pub(super) fn max_size(&self) -> Option<usize> {
        usize::try_from(self.rotation?.max_size).ok()
    }

    /// Appends whole lines. After an error none of them is in the file, or the last one is torn
    /// and will be ended by a line break.
    pub(super) async fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut open = self.current(lines.len() as u64).await?;
        let written = async {
            open.file.write_all(lines).await?;
            open.file.flush().await
        }
        .await;
        match written {
            Ok(()) => {
                open.len += lines.len() as u64;
                self.open = Some(open);
                Ok(())
            }
            Err(error) => {
                if let Err(torn) = open.file.set_len(open.len).await {
                    tracing::debug!(%torn, "a torn line could not be cut off");
                }
                Err(error)
            }
        }
    }

    /// The file to append `more` bytes to: the open one if it is still the one at the path.
    async fn current(&mut self, more: u64) -> io::Result<Open> {
        let open = match self.open.take() {
            Some(open) if self.is_at_path(&open).await => open,
            _ => self.reopen().await?,
        };
        match self.rotation {
            Some(rotation) if open.len > 0 && open.len + more > rotation.max_size => {
                drop(open);
                self.rotate(rotation.keep).await?;
                self.reopen().await
            }
            _ => Ok(open),
        }
    }

    /// Compares by length, which every system has: whoever replaces the file changes it.
    async fn is_at_path(&self, open: &Open) -> bool {
        fs::metadata(&self.path)
            .await
            .is_ok_and(|found| found.is_file() && found.len() == open.len)
    }

    async fn reopen(&self) -> io::Result<Open> {
        fs::create_dir_all(&self.dir).await?;
        // Opening a pipe would wait for somebody who reads it.
        if fs::metadata(&self.path)
            .await
            .is_ok_and(|found| !found.is_file())
        {
            return Err(io::Error::other(
                "something is in its place that is no file",
            ));
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&self.path)
            .await?;
        let mut len = file.metadata().await?.len();
        if len > 0 {
            file.seek(SeekFrom::Start(len - 1)).await?;
            if file.read_u8().await? != b'\n' {
                file.write_all(b"\n").await?;
                file.flush().await?;
                len += 1;
            }
        }
        Ok(Open { file, len })
    }

    /// Moves each closed file up by one number, up to the first gap, and the live one to 1.
    async fn rotate(&self, keep: u32) -> io::Result<()> {
        if keep == 0 {
            return fs::remove_file(&self.path).await;
        }
        let mut gap = 1;
        while gap < keep && fs::try_exists(self.numbered(gap)).await? {
            gap += 1;
        }
        for number in (1..gap).rev() {
            fs::rename(self.numbered(number), self.numbered(number + 1)).await?;
        }
        fs::rename(&self.path, self.numbered(1)).await
    }

    fn numbered(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{STEM}.{number}.jsonl"))
    }
}
