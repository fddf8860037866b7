//! Prompts that a file gives: a data set or a trace.

use std::path::PathBuf;
use std::time::Duration;

use super::Counting;

/// A file of prompts, and what is done with it.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptFile {
    /// Where it is.
    pub path: PathBuf,
    /// Name of its format; `None`: what its first row shows.
    pub format: Option<String>,
    /// Tokens of a block, at least 1; `None`: as the file or its format says.
    pub block_tokens: Option<u32>,
    /// In which order its entries are sent; `None`: as its format wants.
    pub sampling: Option<Sampling>,
    /// Whether rows that cannot be used are passed over.
    pub skip_bad_rows: bool,
    /// Output tokens to ask for where a row does not say.
    pub output_tokens: Option<u32>,
    /// How the tokens of texts are counted that stand for what the file does not have.
    pub count: Counting,
    /// Whose answers later turns of a conversation carry.
    pub replies: Replies,
    /// What becomes of pauses between turns.
    pub pauses: Pauses,
}

impl PromptFile {
    /// The file at `path`, with nothing said about it.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            format: None,
            block_tokens: None,
            sampling: None,
            skip_bad_rows: false,
            output_tokens: None,
            count: Counting::default(),
            replies: Replies::default(),
            pauses: Pauses::default(),
        }
    }
}

/// In which order the entries of a file are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// As they stand there, again from the beginning when all were sent.
    Sequential,
    /// Any, each with the same chance, as often as it is drawn.
    Random,
    /// Each once in an order by chance, then anew.
    Shuffle,
}

/// Whose answers later turns of a conversation carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replies {
    /// Those of the server under test.
    #[default]
    Live,
    /// Those that the file has.
    Recorded,
}

/// What becomes of the pauses of a file, between the end of one turn and the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pauses {
    /// They are this many times as long, finite and not negative; at 0 there are none.
    pub ratio: f64,
    /// None is longer than this.
    pub cap: Option<Duration>,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            ratio: 1.0,
            cap: None,
        }
    }
}

impl Pauses {
    /// How long a pause of `recorded` is.
    #[must_use]
    pub fn of(&self, recorded: Duration) -> Duration {
        let scaled = if (self.ratio - 1.0).abs() < f64::EPSILON {
            recorded
        } else {
            Duration::try_from_secs_f64(recorded.as_secs_f64() * self.ratio)
                .unwrap_or(Duration::MAX)
        };
        self.cap.map_or(scaled, |cap| scaled.min(cap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_scaled_before_they_are_capped() {
        let second = Duration::from_secs(1);
        for (ratio, cap, expected) in [
            (1.0, None, 1_000),
            (0.5, None, 500),
            (0.0, None, 0),
            (3.0, Some(2_000), 2_000),
            (0.5, Some(2_000), 500),
        ] {
            let cap = cap.map(Duration::from_millis);
            let pause = Pauses { ratio, cap }.of(second);
            assert_eq!(pause, Duration::from_millis(expected), "{ratio} {cap:?}");
        }
    }
}
