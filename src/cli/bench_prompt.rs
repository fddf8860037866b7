//! The flags of `bench` that say what is sent: how long prompts and answers are, what prompts
//! share, and what is beside their text.
//!
//! Named as `AIPerf` names them. Lengths may be distributions by themselves (`normal(512, 64)`),
//! for which the flags of standard deviations and ratios are other spellings.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::{
    Audio, CacheModes, Counting, Images, KnownAnswers, Lengths, PrefixPool, PromptSource,
    SizePairs, Sizes, Synthetic, SystemPrompt, TextStyle, TokenizerConfig, WorkloadConfig,
};
use crate::measurement::{CacheMode, KnownKind};

/// Prompt tokens where nothing is said.
const DEFAULT_INPUT: u32 = 550;
/// Pixels of a side where only the other is given.
const DEFAULT_SIDE: u32 = 512;
/// A warm prompt ends with so many new tokens.
const WARM_TAIL: u32 = 16;

/// Which requests there are, as to the server's prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Cache {
    /// Each prompt differs from every earlier one from its first token on.
    Cold,
    /// All but the last 16 tokens are always the same.
    Warm,
    /// Each cold prompt is followed by a warm one: equal but for its last 16 tokens.
    Paired,
}

/// Flags that say what texts of our own making are like.
pub(super) const NOT_MADE: [&str; 19] = [
    "isl",
    "isl_stddev",
    "osl_stddev",
    "seq_dist",
    "random_range_ratio",
    "prompt_style",
    "cache",
    "cache_salt",
    "system_prompt",
    "shared_system_prompt_length",
    "user_context_prompt_length",
    "prefix_pool",
    "prefix_prompt_length",
    "image_width_mean",
    "image_height_mean",
    "image_batch_size",
    "audio_length_mean",
    "audio_batch_size",
    "tools",
];

/// What is said of texts that stand for the lengths and blocks of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileTexts {
    /// Output tokens to ask for where a row does not say.
    pub(super) output_tokens: Option<u32>,
    /// How their tokens are counted.
    pub(super) count: Counting,
}

/// How tokens are counted before a prompt is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Count {
    /// By `--tokenizer` if it is given, else by words.
    Auto,
    /// A word or a mark is a token.
    Words,
    /// By `--tokenizer`, exactly.
    Tokenizer,
    /// By words, with the tokens of a word that the server counts in two requests at the start.
    Server,
}

/// What the range of `--random-range-ratio` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RangeStyle {
    /// From mean·(1 − ratio) to mean·(1 + ratio).
    Vllm,
    /// From length·ratio to length.
    Sglang,
}

/// What is sent.
#[derive(Debug, clap::Args)]
pub(super) struct Prompts {
    /// Prompt tokens: a number, or `normal(512, 64)`, `log_normal(512, 256)`, `uniform(64, 256)`,
    /// `one_of(128:3, 512:1)` or `mix(70: 128, 30: normal(2048, 64))`; default 550.
    #[arg(
        long,
        visible_aliases = ["prompt-input-tokens-mean", "synthetic-input-tokens-mean"],
        value_parser = lengths,
        value_name = "TOKENS"
    )]
    pub(super) isl: Option<Lengths>,
    /// Their standard deviation: normal lengths.
    #[arg(
        long,
        visible_aliases = ["prompt-input-tokens-stddev", "synthetic-input-tokens-stddev"],
        value_parser = deviation,
        value_name = "TOKENS"
    )]
    isl_stddev: Option<f64>,
    /// Output tokens to ask for, as `--isl`; absent: as many as the server likes.
    #[arg(
        long,
        visible_aliases = ["prompt-output-tokens-mean", "output-tokens-mean"],
        value_parser = lengths,
        value_name = "TOKENS"
    )]
    pub(super) osl: Option<Lengths>,
    /// Their standard deviation: normal lengths.
    #[arg(
        long,
        visible_aliases = ["prompt-output-tokens-stddev", "output-tokens-stddev"],
        value_parser = deviation,
        requires = "osl",
        value_name = "TOKENS"
    )]
    osl_stddev: Option<f64>,
    /// Prompt and output tokens together: `ISL,OSL:percent;…` with `|stddev` behind a number, or
    /// `short-short`, `short-long`, `long-short`, `long-long`, `512x512`, `1024x1024`, `4096x1024`.
    #[arg(
        long,
        visible_aliases = ["sequence-distribution", "sizes"],
        value_parser = pairs,
        value_name = "PAIRS",
        conflicts_with_all = ["isl", "isl_stddev", "osl", "osl_stddev", "random_range_ratio"]
    )]
    seq_dist: Option<SizePairs>,
    /// Lengths spread evenly around `--isl` and `--osl`, or up to them; for both, or `ISL,OSL`.
    #[arg(
        long,
        value_parser = ratio,
        value_delimiter = ',',
        num_args = 1..=2,
        value_name = "RATIO",
        conflicts_with_all = ["isl_stddev", "osl_stddev"]
    )]
    random_range_ratio: Vec<f64>,
    /// What the ratio means.
    #[arg(
        long,
        value_enum,
        default_value = "vllm",
        requires = "random_range_ratio"
    )]
    random_corpus_style: RangeStyle,
    /// What the text is like: `words`, `prose`, `code` or `dialogue`.
    #[arg(long, visible_alias = "prompt-corpus", value_parser = style, default_value = "words", value_name = "STYLE")]
    prompt_style: TextStyle,
    /// Which requests there are, as to the server's prefix cache.
    #[arg(long, value_enum, default_value = "cold")]
    pub(super) cache: Cache,
    /// Give cold prompts a `cache_salt` each, for servers that know it.
    #[arg(long)]
    cache_salt: bool,
    /// Counts tokens: a `tokenizer.json` or a file of tiktoken ranks; also the answer's, where
    /// the server does not count them.
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// How tokens are counted before a prompt is sent.
    #[arg(long, value_enum, default_value = "auto")]
    prompt_count: Count,
    /// Instructions before every prompt, beyond `--isl`.
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "shared_system_prompt_length"
    )]
    system_prompt: Option<String>,
    /// The same, made, of so many tokens.
    #[arg(long, value_parser = tokens(), value_name = "TOKENS")]
    shared_system_prompt_length: Option<u32>,
    /// A text of each session's own before the prompt, beyond `--isl`.
    #[arg(long, value_parser = tokens(), value_name = "TOKENS")]
    user_context_prompt_length: Option<u32>,
    /// Beginnings of prompts, beyond `--isl`: so many; each prompt has one of them.
    #[arg(
        long = "num-prefix-prompts",
        visible_aliases = ["prefix-prompt-pool-size", "prompt-prefix-pool-size"],
        value_parser = clap::value_parser!(u32).range(1..=100_000),
        requires = "prefix_prompt_length",
        value_name = "N"
    )]
    prefix_pool: Option<u32>,
    /// Tokens of each.
    #[arg(
        long,
        visible_alias = "prompt-prefix-length",
        value_parser = tokens(),
        requires = "prefix_pool",
        value_name = "TOKENS"
    )]
    prefix_prompt_length: Option<u32>,
    /// Pixels across of the pictures beside each prompt.
    #[arg(long, value_parser = pixels(), value_name = "PIXELS")]
    image_width_mean: Option<u32>,
    /// Pixels down.
    #[arg(long, value_parser = pixels(), value_name = "PIXELS")]
    image_height_mean: Option<u32>,
    /// Pictures beside each prompt.
    #[arg(long, visible_alias = "batch-size-image", value_parser = clap::value_parser!(u32).range(1..=100), default_value_t = 1, value_name = "N")]
    image_batch_size: u32,
    /// Seconds of the sounds beside each prompt.
    #[arg(long, value_parser = sound, value_name = "SECONDS")]
    audio_length_mean: Option<Duration>,
    /// Sounds beside each prompt.
    #[arg(long, visible_alias = "batch-size-audio", value_parser = clap::value_parser!(u32).range(1..=100), default_value_t = 1, value_name = "N")]
    audio_batch_size: u32,
    /// Questions of which the answer is known, instead of texts: `arithmetic`, `backwards` and
    /// `counting`, or some of them; how many are answered rightly is said. `--osl` is the most
    /// that an answer may have [default: 64].
    #[arg(
        long,
        value_parser = known_kind,
        value_delimiter = ',',
        num_args = 0..=3,
        require_equals = true,
        value_name = "KINDS",
        conflicts_with_all = NOT_MADE.into_iter().chain(["prompt_count"])
    )]
    known_answers: Option<Vec<KnownKind>>,
    /// Tools that the model may call.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=128), default_value_t = 0, value_name = "N")]
    tools: u32,
}

impl Prompts {
    /// What is sent.
    pub(super) fn workload(&self) -> Result<WorkloadConfig, String> {
        if let Some(kinds) = &self.known_answers {
            return self.questions(kinds);
        }
        let sizes = self.sizes()?;
        let cache = match self.cache {
            Cache::Cold => CacheModes::Only(CacheMode::Cold),
            Cache::Warm => CacheModes::Only(CacheMode::Warm),
            Cache::Paired => CacheModes::Paired,
        };
        let longest = sizes.most_input();
        if self.cache != Cache::Cold && longest <= WARM_TAIL {
            return Err(format!(
                "--isl: prompts of at most {longest} tokens\n  wanted: more than {WARM_TAIL} for warm ones\n  hint: the last 16 tokens of a warm prompt are always new"
            ));
        }
        let count = self.counting()?;
        let synthetic = Synthetic {
            style: self.prompt_style,
            count,
            system: self.system(),
            prefixes: self.prefixes(),
            context_tokens: self.user_context_prompt_length,
            images: self.images(),
            audio: self.audio_length_mean.map(|length| Audio {
                count: self.audio_batch_size,
                length,
            }),
            tools: self.tools,
            ..Synthetic::new(sizes)
        };
        Ok(WorkloadConfig {
            source: PromptSource::Synthetic(Box::new(synthetic)),
            cache,
            cache_salt: self.cache_salt,
        })
    }

    /// Questions of `kinds`; empty: of all.
    fn questions(&self, kinds: &[KnownKind]) -> Result<WorkloadConfig, String> {
        let mut known = KnownAnswers::default();
        if !kinds.is_empty() {
            let is_new = |(at, kind): &(usize, &KnownKind)| !kinds[..*at].contains(kind);
            let once = kinds.iter().enumerate().filter(is_new);
            known.kinds = once.map(|(_, kind)| *kind).collect();
        }
        match &self.osl {
            None => {}
            Some(Lengths::Fixed(tokens)) => known.output_tokens = *tokens,
            Some(lengths) => {
                return Err(format!(
                    "--osl: `{lengths}` beside `--known-answers`\n  wanted: a number of tokens"
                ));
            }
        }
        Ok(WorkloadConfig {
            source: PromptSource::Known(known),
            cache: CacheModes::Only(CacheMode::Cold),
            cache_salt: false,
        })
    }

    /// Whether there are questions of known answer.
    pub(super) const fn has_questions(&self) -> bool {
        self.known_answers.is_some()
    }

    /// What is said of the texts of a file.
    pub(super) fn of_file(&self) -> Result<FileTexts, String> {
        let output_tokens = match &self.osl {
            None => None,
            Some(Lengths::Fixed(tokens)) => Some(*tokens),
            Some(lengths) => {
                return Err(format!(
                    "--osl: `{lengths}` beside `--input-file`\n  wanted: a number of tokens"
                ));
            }
        };
        let count = self.counting()?;
        if count == Counting::Server {
            return Err(
                "--prompt-count: `server` beside `--input-file`\n  wanted: `auto`, `words` or `tokenizer`"
                    .to_owned(),
            );
        }
        Ok(FileTexts {
            output_tokens,
            count,
        })
    }

    /// How tokens are counted before a prompt is sent.
    fn counting(&self) -> Result<Counting, String> {
        if self.prompt_count == Count::Tokenizer && self.tokenizer.is_none() {
            return Err(
                "--prompt-count: `tokenizer` without one\n  wanted: `--tokenizer FILE` beside it"
                    .to_owned(),
            );
        }
        Ok(match self.prompt_count {
            Count::Auto => Counting::Auto,
            Count::Words => Counting::Words,
            Count::Tokenizer => Counting::Tokenizer,
            Count::Server => Counting::Server,
        })
    }

    /// What counts tokens locally.
    pub(super) fn tokenizer(&self) -> Option<TokenizerConfig> {
        let path = self.tokenizer.clone()?;
        let is_json = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        Some(if is_json {
            TokenizerConfig::Json(path)
        } else {
            TokenizerConfig::Tiktoken(path)
        })
    }

    fn sizes(&self) -> Result<Sizes, String> {
        if let Some(pairs) = &self.seq_dist {
            return Ok(Sizes::Pairs(pairs.clone()));
        }
        let mut ratios = self.random_range_ratio.iter().copied();
        let input_ratio = ratios.next();
        let output_ratio = ratios.next().or(input_ratio);
        let input = self.isl.clone().unwrap_or(Lengths::Fixed(DEFAULT_INPUT));
        let input = self.spread("--isl", input, (self.isl_stddev, input_ratio))?;
        let output = match self.osl.clone() {
            Some(output) => Some(self.spread("--osl", output, (self.osl_stddev, output_ratio))?),
            None => None,
        };
        Ok(Sizes::Apart { input, output })
    }

    /// `lengths` with a deviation or a ratio, which only a number can have.
    fn spread(
        &self,
        flag: &str,
        lengths: Lengths,
        (deviation, ratio): (Option<f64>, Option<f64>),
    ) -> Result<Lengths, String> {
        if deviation.is_none() && ratio.is_none() {
            return Ok(lengths);
        }
        let Lengths::Fixed(mean) = lengths else {
            return Err(format!(
                "{flag}: `{lengths}` is spread already\n  wanted: a number, with a standard deviation or a ratio beside it"
            ));
        };
        Ok(match (deviation, ratio) {
            (Some(deviation), _) => Lengths::normal(f64::from(mean), deviation),
            (None, Some(ratio)) => match self.random_corpus_style {
                RangeStyle::Vllm => Lengths::around(mean, ratio),
                RangeStyle::Sglang => Lengths::up_to(mean, ratio),
            },
            (None, None) => Lengths::Fixed(mean),
        })
    }

    fn system(&self) -> Option<SystemPrompt> {
        let made = self.shared_system_prompt_length.map(SystemPrompt::Tokens);
        made.or_else(|| self.system_prompt.clone().map(SystemPrompt::Text))
    }

    fn prefixes(&self) -> Option<PrefixPool> {
        let (count, tokens) = self.prefix_pool.zip(self.prefix_prompt_length)?;
        Some(PrefixPool { count, tokens })
    }

    fn images(&self) -> Option<Images> {
        let (width, height) = (self.image_width_mean, self.image_height_mean);
        width.or(height)?;
        Some(Images {
            count: self.image_batch_size,
            width: width.unwrap_or(DEFAULT_SIDE),
            height: height.unwrap_or(DEFAULT_SIDE),
        })
    }
}

fn known_kind(text: &str) -> Result<KnownKind, String> {
    let known = || {
        let names = KnownKind::ALL.map(KnownKind::name);
        format!("wanted one of {}", names.join(", "))
    };
    KnownKind::named(text).ok_or_else(known)
}

fn tokens() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=1_000_000)
}

fn pixels() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=8_192)
}

fn lengths(text: &str) -> Result<Lengths, String> {
    Lengths::parse(text)
}

fn pairs(text: &str) -> Result<SizePairs, String> {
    SizePairs::parse(text)
}

fn within(text: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
    let wanted = || format!("wanted a number from {} to {}", range.start(), range.end());
    let number: f64 = text.parse().map_err(|_| wanted())?;
    range.contains(&number).then_some(number).ok_or_else(wanted)
}

fn deviation(text: &str) -> Result<f64, String> {
    within(text, 0.0..=1_000_000.0)
}

fn ratio(text: &str) -> Result<f64, String> {
    within(text, 0.0..=1.0)
}

fn sound(text: &str) -> Result<Duration, String> {
    within(text, 0.1..=600.0).map(Duration::from_secs_f64)
}

/// A style by our name, or by the one that `AIPerf` has for its corpora.
fn style(text: &str) -> Result<TextStyle, String> {
    let name = match text {
        "sonnet" => "prose",
        "coding" => "code",
        "random" => "words",
        name => name,
    };
    let known = || {
        let names = TextStyle::ALL.map(TextStyle::name);
        format!("wanted one of {}", names.join(", "))
    };
    TextStyle::named(name).ok_or_else(known)
}
