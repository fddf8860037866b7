//! The flags of `bench` that say which file prompts come from, and what is done with its times.
//!
//! Named as `AIPerf` names them, with three of our own: `--skip-bad-rows`, `--speed` and
//! `--replies`. A first look is taken at the file while the run is planned: whether it is a fixed
//! schedule decides what the run is.

use std::path::PathBuf;
use std::time::Duration;

use super::bench_prompt::{FileTexts, NOT_MADE};
use crate::app::{Look, look};
use crate::config::{
    Arrivals, CacheModes, Pauses, PhaseConfig, PromptFile, PromptSource, Replay, Replies, Sampling,
    WorkloadConfig,
};
use crate::load::trace::Format;
use crate::measurement::CacheMode;

/// In which order the entries of a file are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Order {
    /// As they stand there.
    Sequential,
    /// Any, as often as it is drawn.
    Random,
    /// Each once in an order by chance, then anew.
    Shuffle,
}

/// Whose answers later turns of a conversation carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Answers {
    /// Those of the server.
    Live,
    /// Those of the file.
    Recorded,
}

/// The file that prompts come from.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct Input {
    /// File of prompts: a data set or a trace, also packed with gzip or zstd; or a directory of
    /// such files.
    #[arg(
        long = "input-file",
        id = "input_file",
        value_name = "FILE",
        conflicts_with_all = NOT_MADE.into_iter().chain(["known_answers"])
    )]
    path: Option<PathBuf>,
    /// Format of the file [default: what its first row shows].
    #[arg(long, value_name = "NAME", requires = "input_file")]
    custom_dataset_type: Option<String>,
    /// Send rows when they were recorded; so it is for traces with times unless something else
    /// says when requests are due.
    #[arg(long, requires = "input_file", conflicts_with = "no_fixed_schedule")]
    fixed_schedule: bool,
    /// Do not send rows when they were recorded.
    #[arg(long, requires = "input_file")]
    no_fixed_schedule: bool,
    /// The first row that is sent is due at once; so it is without a start offset.
    #[arg(long, requires = "input_file")]
    fixed_schedule_auto_offset: bool,
    /// Only rows from this time of the recording on, in milliseconds.
    #[arg(long, value_name = "MS", requires = "input_file")]
    fixed_schedule_start_offset: Option<u64>,
    /// Only rows up to this time of the recording, in milliseconds.
    #[arg(long, value_name = "MS", requires = "input_file")]
    fixed_schedule_end_offset: Option<u64>,
    /// How many times faster a recording is played, pauses between turns included.
    #[arg(long, visible_alias = "synthesis-speedup-ratio", value_parser = speed, value_name = "RATIO", requires = "input_file")]
    speed: Option<f64>,
    /// Longer gaps of a recording are played as if they had this many seconds.
    #[arg(long, value_parser = span, value_name = "SECONDS", requires = "input_file")]
    trace_idle_gap_cap_seconds: Option<Duration>,
    /// In which order entries are sent, where they have no times [default: sequential].
    #[arg(long, value_enum, value_name = "ORDER", requires = "input_file")]
    dataset_sampling_strategy: Option<Order>,
    /// Pass over rows that cannot be used; count them, and list the first of them.
    #[arg(long, requires = "input_file")]
    skip_bad_rows: bool,
    /// No times and no pauses: each turn is due when the one before has ended.
    #[arg(long, requires = "input_file", conflicts_with = "fixed_schedule")]
    ignore_trace_delays: bool,
    /// Pauses between the turns of a conversation are this many times as long.
    #[arg(
        long,
        visible_aliases = ["conversation-turn-delay-ratio", "session-turn-delay-ratio"],
        value_parser = ratio,
        value_name = "RATIO",
        requires = "input_file"
    )]
    session_delay_ratio: Option<f64>,
    /// No pause between turns is longer than this many seconds.
    #[arg(long, value_parser = span, value_name = "SECONDS", requires = "input_file")]
    inter_turn_delay_cap_seconds: Option<Duration>,
    /// Tokens of a block of a trace [default: what the file or its format says].
    #[arg(long, value_name = "N", requires = "input_file", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    isl_block_size: Option<u32>,
    /// Whose answers later turns of a conversation carry.
    #[arg(
        long,
        value_enum,
        default_value = "live",
        value_name = "WHOSE",
        requires = "input_file"
    )]
    replies: Answers,
}

/// A file, and when it is played.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) workload: WorkloadConfig,
    /// Rows are due when they were recorded.
    pub(super) fixed: Option<Replay>,
    /// Its sessions may have sub-agents, which are at work beside them.
    pub(super) has_agents: bool,
    /// What was found out about the file.
    pub(super) note: String,
}

impl Input {
    /// Whether there is one.
    pub(super) const fn is_given(&self) -> bool {
        self.path.is_some()
    }

    /// The file these flags name, if they do, with texts as `texts` says; `is_paced` if other
    /// flags say when requests are due.
    pub(super) fn chosen(
        &self,
        (texts, is_paced): (FileTexts, bool),
    ) -> Result<Option<Chosen>, String> {
        let Some(path) = &self.path else {
            return Ok(None);
        };
        let file = self.file(path.clone(), texts);
        let Look {
            format,
            reason,
            is_timed_trace,
        } = look(&file).map_err(|error| format!("--input-file: {error}"))?;
        let by_itself = is_timed_trace && !is_paced && !self.ignore_trace_delays;
        let is_fixed = self.fixed_schedule || by_itself && !self.no_fixed_schedule;
        if let Some(flag) = self.stray(is_fixed) {
            return Err(flag);
        }
        if self.fixed_schedule && is_paced {
            return Err("--fixed-schedule: other flags say when requests are due
  wanted: no rate, no users and no `--no-fixed-schedule` beside it"
                .to_owned());
        }
        Ok(Some(Chosen {
            note: format!(
                "{}: {}: {reason}{}",
                path.display(),
                format.name(),
                if is_fixed {
                    "; rows are sent when they were recorded"
                } else {
                    ""
                }
            ),
            fixed: is_fixed.then(|| self.replay()),
            has_agents: format == Format::Weka,
            workload: WorkloadConfig {
                source: PromptSource::File(file),
                cache: CacheModes::Only(CacheMode::Cold),
                cache_salt: false,
            },
        }))
    }

    /// A flag that has no meaning where rows are or are not sent at their times.
    fn stray(&self, is_fixed: bool) -> Option<String> {
        let only_fixed = [
            (
                "--fixed-schedule-auto-offset",
                self.fixed_schedule_auto_offset,
            ),
            (
                "--fixed-schedule-start-offset",
                self.fixed_schedule_start_offset.is_some(),
            ),
            (
                "--fixed-schedule-end-offset",
                self.fixed_schedule_end_offset.is_some(),
            ),
            ("--speed", self.speed.is_some()),
            (
                "--trace-idle-gap-cap-seconds",
                self.trace_idle_gap_cap_seconds.is_some(),
            ),
        ];
        let never_fixed = [(
            "--dataset-sampling-strategy",
            self.dataset_sampling_strategy.is_some(),
        )];
        let (flags, wanted) = if is_fixed {
            (&never_fixed[..], "a file that is no fixed schedule")
        } else {
            (&only_fixed[..], "a fixed schedule")
        };
        let (flag, _) = flags.iter().find(|(_, given)| *given)?;
        let hint = if is_fixed {
            "`--no-fixed-schedule` leaves the times of a trace out"
        } else {
            "a trace with times is one by itself; `--fixed-schedule` makes one of other files"
        };
        Some(format!("{flag}: given\n  wanted: {wanted}\n  hint: {hint}"))
    }

    fn file(&self, path: PathBuf, texts: FileTexts) -> PromptFile {
        let mut pauses = Pauses {
            ratio: self.session_delay_ratio.unwrap_or(1.0),
            cap: self.inter_turn_delay_cap_seconds,
        };
        if self.ignore_trace_delays {
            pauses.ratio = 0.0;
        }
        PromptFile {
            format: self.custom_dataset_type.clone(),
            block_tokens: self.isl_block_size,
            sampling: self.dataset_sampling_strategy.map(|order| match order {
                Order::Sequential => Sampling::Sequential,
                Order::Random => Sampling::Random,
                Order::Shuffle => Sampling::Shuffle,
            }),
            skip_bad_rows: self.skip_bad_rows,
            output_tokens: texts.output_tokens,
            count: texts.count,
            replies: match self.replies {
                Answers::Live => Replies::Live,
                Answers::Recorded => Replies::Recorded,
            },
            pauses,
            ..PromptFile::at(path)
        }
    }

    fn replay(&self) -> Replay {
        let from = self.fixed_schedule_start_offset.map(Duration::from_millis);
        Replay {
            from,
            to: self.fixed_schedule_end_offset.map(Duration::from_millis),
            shift: self.fixed_schedule_auto_offset || from.is_none(),
            speed: self.speed.unwrap_or(1.0),
            gap_cap: self.trace_idle_gap_cap_seconds,
        }
    }
}

impl Chosen {
    /// Makes `phases` those of this file: the measured one sends rows at their times if they are
    /// a fixed schedule, and then ends with them unless it was given another end.
    pub(super) fn apply(
        &self,
        phases: &mut [PhaseConfig],
        (has_end, concurrency): (bool, Option<u32>),
    ) {
        for phase in phases {
            if let Arrivals::Users { turns, .. } = &mut phase.arrivals {
                *turns = None;
            }
            if let Some(replay) = self.fixed
                && phase.kind.is_measured()
            {
                phase.arrivals = Arrivals::Trace { replay };
                phase.concurrency = concurrency;
                if !has_end {
                    phase.bounds.requests = None;
                }
            }
        }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.001..=1e6).contains(&value) => Ok(value),
        _ => Err("wanted a ratio from 0.001 to 1000000".to_owned()),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1_000.0).contains(&value) => Ok(value),
        _ => Err("wanted a ratio from 0 to 1000".to_owned()),
    }
}

fn span(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1e7).contains(&value) => Ok(Duration::from_secs_f64(value)),
        _ => Err("wanted seconds, from 0 to 10000000".to_owned()),
    }
}
