//! What is sent: prompts of a known length, and how long their answers are to be.
//!
//! Token counts are exact with a tokenizer, and else those of words, which a server may be asked
//! to calibrate. A cold prompt differs from every earlier one at position 0, also from those of
//! earlier runs with the same seed, since its first words come from a source that is not seeded.
//! A warm prompt is the same each time but for its end.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `load/workload` | `Workload`: gives `Prompt` | choose what is sent, with known token counts | know time or wire format |

mod calibration;
mod draws;
mod file;
mod known;
mod lengths;
mod media;
mod prompt;
mod size;
mod synthetic;
mod text;
mod tokenizer;
mod tools;
mod words;

use rand::rngs::StdRng;

use self::known::KnownMaker;
use self::synthetic::Maker;
use crate::config::{Counting, PromptSource, WorkloadConfig};

pub use self::calibration::Calibration;
pub use self::file::{
    After, Carry, Entries, Gather, Joined, Pool, RowTexts, Script, Step, block_text,
};
pub use self::known::Known;
pub use self::lengths::{LengthSource, PairSource};
pub use self::media::{Picture, Sound};
pub use self::prompt::{Media, Message, Prompt, Role, Verbatim, WrittenBody};
pub use self::size::{Measure, Seeds, Writer, Written};
pub use self::tokenizer::{Pattern, Tokenizer, TokenizerError};
pub use self::tools::{MOST_TOOLS, tool_definitions};

/// Where a workload's randomness comes from.
#[derive(Debug)]
pub struct Sources {
    /// Seeded: the words of every prompt.
    pub seeded: StdRng,
    /// Not seeded: the beginning of cold prompts.
    pub fresh: StdRng,
}

/// An endless supply of prompts.
#[derive(Debug)]
pub struct Workload {
    source: Source,
    /// Whether a server is to be asked how it counts.
    asks_server: bool,
}

/// What makes prompts.
#[derive(Debug)]
enum Source {
    Synthetic(Box<Maker>),
    Known(Box<KnownMaker>),
}

impl Workload {
    /// Prompts as `config` describes them, whose tokens are counted by `measure`.
    ///
    /// # Panics
    ///
    /// If they come from a file: those are read, and become [`Script`]s.
    #[must_use]
    pub fn new(config: &WorkloadConfig, measure: Measure, sources: Sources) -> Self {
        match &config.source {
            PromptSource::Synthetic(synthetic) => Self {
                source: Source::Synthetic(Box::new(Maker::new(
                    (config, synthetic),
                    measure,
                    sources,
                ))),
                asks_server: synthetic.count == Counting::Server,
            },
            PromptSource::Known(known) => Self {
                source: Source::Known(Box::new(KnownMaker::new(known, measure, sources.seeded))),
                asks_server: false,
            },
            PromptSource::File(_) => unreachable!("the prompts of a file are read, not made"),
        }
    }

    /// The next prompt, for a request of `session`.
    pub fn prompt(&mut self, session: Option<u64>) -> Prompt {
        match &mut self.source {
            Source::Synthetic(maker) => maker.next(session),
            Source::Known(maker) => maker.next(),
        }
    }

    /// Two prompts that a server is to count, if it is to be asked, see [`Calibration::found`].
    pub fn to_calibrate(&mut self) -> Option<[Prompt; 2]> {
        match &mut self.source {
            Source::Synthetic(maker) if self.asks_server => {
                Some(calibration::WORDS.map(|words| maker.bare(words)))
            }
            _ => None,
        }
    }

    /// Sizes prompts as `calibration` says from now on.
    pub fn calibrate(&mut self, calibration: Calibration) {
        if let Source::Synthetic(maker) = &mut self.source {
            maker.calibrate(calibration);
        }
    }
}

#[cfg(test)]
mod tests;
