//! Prompts of our own making: what they share, how long they are, what is beside their text.
//!
//! A prompt is, in the order of its tokens: the system message, the session's context, one of the
//! prefixes, the body. The body of a cold prompt begins with words that no run sends twice; that
//! of a warm one is the same each time but for its last tokens. A pair is a cold prompt and a
//! second one that differs from it in these last tokens only.
//!
//! What was sent before is remembered, so that each prompt says how much of it a prefix cache
//! can have.

use std::collections::HashSet;
use std::sync::Arc;

use rand::{Rng, RngExt};
use serde_json::value::RawValue;

use super::lengths::{LengthSource, PairSource};
use super::media::{Picture, Sound};
use super::prompt::{Media, Message, Prompt, Role};
use super::size::{Seeds, Writer, Written};
use super::tools::tool_definitions;
use super::{Calibration, Measure, Sources};
use crate::config::{
    Audio, CacheModes, Images, PrefixPool, Sizes, Synthetic, SystemPrompt, WorkloadConfig,
};
use crate::measurement::CacheMode;

/// Tokens at the end of a warm prompt that change from request to request.
const TAIL_TOKENS: u32 = 16;
/// Sessions whose context is known to have been sent; more than are at work at a time.
const MOST_SESSIONS: usize = 100_000;
/// Samples of a sound per second, as models of speech take them.
const SAMPLE_RATE: u32 = 16_000;

/// Makes prompts.
#[derive(Debug)]
pub(super) struct Maker {
    config: Synthetic,
    cache: CacheModes,
    salted: bool,
    lengths: Drawn,
    writer: Writer,
    sources: Sources,
    /// Decides what warm prompts share.
    warm: u64,
    /// With the number of a session, decides its context.
    contexts: u64,
    shared: Shared,
    before: Before,
    /// The warm half of a pair whose cold half was given.
    twin: Option<Twin>,
    /// The salt of all warm prompts.
    salt: Arc<str>,
}

/// Lengths of prompt and answer.
#[derive(Debug)]
enum Drawn {
    Apart(LengthSource, Option<LengthSource>),
    Pairs(PairSource),
}

/// What many prompts have in common.
#[derive(Debug, Default)]
struct Shared {
    system: Option<(Arc<str>, Option<u32>)>,
    prefixes: Vec<Written>,
    tools: Option<Arc<RawValue>>,
    media: Vec<Media>,
}

/// What was sent before.
#[derive(Debug)]
struct Before {
    any: bool,
    sessions: HashSet<u64>,
    /// For each prefix: the tokens of the longest fixed body that was sent after it; `None`: it
    /// was not sent.
    bodies: Vec<Option<u32>>,
}

/// The second prompt of a pair.
#[derive(Debug)]
struct Twin {
    /// The first one.
    cold: Prompt,
    /// Its user's message without the last tokens, and how many they are.
    head: Written,
    /// Tokens that the whole message is to have.
    tokens: u32,
}

impl Maker {
    /// Prompts as `config` says, whose tokens are counted by `measure`.
    pub(super) fn new(
        (config, synthetic): (&WorkloadConfig, &Synthetic),
        measure: Measure,
        mut sources: Sources,
    ) -> Self {
        let lengths = match &synthetic.sizes {
            Sizes::Apart { input, output } => Drawn::Apart(
                LengthSource::new(input),
                output.as_ref().map(LengthSource::new),
            ),
            Sizes::Pairs(pairs) => Drawn::Pairs(PairSource::new(pairs)),
        };
        let seeded = &mut sources.seeded;
        let (warm, contexts) = (seeded.next_u64(), seeded.next_u64());
        let salt = format!("{:016x}", sources.fresh.next_u64()).into();
        let mut maker = Self {
            config: synthetic.clone(),
            cache: config.cache,
            salted: config.cache_salt,
            lengths,
            writer: Writer::new(synthetic.style, measure),
            sources,
            warm,
            contexts,
            shared: Shared::default(),
            before: Before::nothing(synthetic),
            twin: None,
            salt,
        };
        maker.make_shared();
        maker
    }

    /// Counts words from now on as `calibration` says.
    pub(super) fn calibrate(&mut self, calibration: Calibration) {
        self.writer = Writer::new(
            self.config.style,
            Measure::Units {
                tokens_per_unit: calibration.tokens_per_word,
            },
        );
        self.make_shared();
    }

    /// A prompt of `words` and nothing else, unlike any other.
    pub(super) fn bare(&mut self, words: u32) -> Prompt {
        let body = self.cold_body(&nothing(), words);
        Prompt {
            text: body.text,
            input_tokens: body.tokens,
            output_tokens: Some(1),
            ..Prompt::default()
        }
    }

    /// The next prompt, for a request of `session`.
    pub(super) fn next(&mut self, session: Option<u64>) -> Prompt {
        if let Some(twin) = self.twin.take() {
            return self.second(twin);
        }
        let (input, output) = self.draw();
        let mut prompt = Prompt {
            tools: self.shared.tools.clone(),
            output_tokens: output,
            ..Prompt::default()
        };
        // What cannot be counted makes the total unknown, and is not expected of a cache.
        let (mut total, mut shared) = (Some(0), 0);
        let mut known = self.before.any;
        self.before.any = true;
        if let Some((text, tokens)) = &self.shared.system {
            prompt.system = Some(Arc::clone(text));
            add(&mut total, *tokens);
            shared += tokens.filter(|_| known).unwrap_or(0);
        }
        if let Some(tokens) = self.config.context_tokens {
            let context = self.context(session, tokens);
            add(&mut total, context.tokens);
            known &= session.is_some_and(|session| self.before.is_known(session));
            shared += context.tokens.filter(|_| known).unwrap_or(0);
            prompt.history.push(Message {
                role: Role::User,
                text: context.text.into(),
            });
        }
        let place = self.pick_prefix();
        let prefix = self.shared.prefixes.get(place).cloned();
        let prefix = prefix.unwrap_or_else(nothing);
        let before = prefix.tokens.unwrap_or(0);
        let sent = self.before.bodies[place].filter(|_| known);
        let (body, fixed) = self.body(&prefix, before + input);
        shared += sent.map_or(0, |longest| before + longest.min(fixed));
        let longest = self.before.bodies[place].unwrap_or(0).max(fixed);
        self.before.bodies[place] = Some(longest);
        add(&mut total, body.tokens);
        prompt.text = body.text;
        prompt.input_tokens = total;
        prompt.shared_tokens = Some(shared);
        prompt.media = self.media();
        prompt.cache_salt = self.salt();
        if let Some(twin) = &mut self.twin {
            twin.cold = prompt.clone();
        }
        prompt
    }

    fn draw(&mut self) -> (u32, Option<u32>) {
        let random = &mut self.sources.seeded;
        match &self.lengths {
            Drawn::Apart(input, output) => {
                let input = input.next(random);
                (input, output.as_ref().map(|output| output.next(random)))
            }
            Drawn::Pairs(pairs) => {
                let (input, output) = pairs.next(random);
                (input, Some(output))
            }
        }
    }

    /// A user's message of `tokens` that begins with `prefix`, and how many of its tokens after
    /// that are the same each time.
    fn body(&mut self, prefix: &Written, tokens: u32) -> (Written, u32) {
        match self.cache {
            CacheModes::Only(CacheMode::Cold) => (self.cold_body(prefix, tokens), 0),
            CacheModes::Only(CacheMode::Warm) => {
                let seeds = Seeds {
                    text: self.warm,
                    fresh: None,
                };
                let head = head_of(prefix, tokens);
                let head = continued(&mut self.writer, prefix, (head, seeds));
                let ahead = prefix.tokens.unwrap_or(0);
                let fixed = head.tokens.unwrap_or(0).saturating_sub(ahead);
                (self.tail(&head, tokens), fixed)
            }
            CacheModes::Paired => {
                let head = self.cold_body(prefix, head_of(prefix, tokens));
                let whole = self.tail(&head, tokens);
                self.twin = Some(Twin {
                    cold: Prompt::default(),
                    head,
                    tokens,
                });
                (whole, 0)
            }
        }
    }

    /// Words of no other run, then words of the seed: `tokens` in all, `prefix` among them.
    fn cold_body(&mut self, prefix: &Written, tokens: u32) -> Written {
        let seeds = Seeds {
            text: self.sources.seeded.next_u64(),
            fresh: Some(self.sources.fresh.next_u64()),
        };
        continued(&mut self.writer, prefix, (tokens, seeds))
    }

    /// `head` and new words, `tokens` in all.
    fn tail(&mut self, head: &Written, tokens: u32) -> Written {
        let seeds = Seeds {
            text: self.sources.fresh.next_u64(),
            fresh: None,
        };
        continued(&mut self.writer, head, (tokens, seeds))
    }

    fn second(&mut self, twin: Twin) -> Prompt {
        let Twin { cold, head, tokens } = twin;
        let first = self.writer.given(cold.text.clone()).tokens;
        let whole = self.tail(&head, tokens);
        let around = cold
            .input_tokens
            .zip(first)
            .map(|(all, own)| all - own.min(all));
        let with = |own: Option<u32>| Some(around? + own?);
        Prompt {
            input_tokens: with(whole.tokens),
            shared_tokens: with(head.tokens),
            text: whole.text,
            ..cold
        }
    }

    fn context(&mut self, session: Option<u64>, tokens: u32) -> Written {
        let Some(session) = session else {
            return self.cold_body(&nothing(), tokens);
        };
        let seeds = Seeds {
            text: self.contexts ^ session.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            fresh: None,
        };
        self.writer.text(tokens, seeds)
    }

    /// Position of the prefix of the next prompt; 0 if there is none.
    fn pick_prefix(&mut self) -> usize {
        match self.shared.prefixes.len() {
            0 | 1 => 0,
            count => self.sources.seeded.random_range(0..count),
        }
    }

    fn salt(&mut self) -> Option<Arc<str>> {
        if !self.salted {
            return None;
        }
        Some(match self.cache {
            CacheModes::Only(CacheMode::Warm) => Arc::clone(&self.salt),
            _ => format!("{:016x}", self.sources.fresh.next_u64()).into(),
        })
    }

    /// Pictures and sounds: new ones, but for warm prompts.
    fn media(&mut self) -> Vec<Media> {
        if self.cache == CacheModes::Only(CacheMode::Warm) {
            return self.shared.media.clone();
        }
        made_media(&self.config, self.sources.fresh.next_u64())
    }

    fn make_shared(&mut self) {
        let (writer, config) = (&mut self.writer, &self.config);
        let seeded = &mut self.sources.seeded;
        let mut made = |tokens: u32| {
            let seeds = Seeds {
                text: seeded.next_u64(),
                fresh: None,
            };
            writer.text(tokens, seeds)
        };
        let PrefixPool { count, tokens } = config.prefixes.unwrap_or(PrefixPool {
            count: 0,
            tokens: 0,
        });
        let prefixes = (0..count).map(|_| made(tokens)).collect();
        let system = match &config.system {
            None => None,
            Some(SystemPrompt::Tokens(tokens)) => Some(made(*tokens)),
            Some(SystemPrompt::Text(text)) => Some(writer.given(text.clone())),
        };
        let tools = config.tools;
        self.shared = Shared {
            system: system.map(|made| (made.text.into(), made.tokens)),
            prefixes,
            tools: (tools > 0).then(|| tool_definitions(tools, self.warm)),
            media: made_media(config, self.warm),
        };
    }
}

impl Before {
    fn nothing(config: &Synthetic) -> Self {
        let prefixes = config.prefixes.map_or(1, |pool| pool.count as usize);
        Self {
            any: false,
            sessions: HashSet::new(),
            bodies: vec![None; prefixes],
        }
    }

    /// Whether the context of `session` was sent; from now on it was. Sessions are forgotten when
    /// there are too many: then less is expected of the cache than it has.
    fn is_known(&mut self, session: u64) -> bool {
        if self.sessions.len() >= MOST_SESSIONS {
            self.sessions.clear();
        }
        !self.sessions.insert(session)
    }
}

fn nothing() -> Written {
    Written {
        text: String::new(),
        tokens: Some(0),
    }
}

/// `before` and what comes after it, `tokens` in all.
fn continued(writer: &mut Writer, before: &Written, (tokens, seeds): (u32, Seeds)) -> Written {
    let after = writer.continue_text(before, tokens, seeds);
    Written {
        text: format!("{}{}", before.text, after.text),
        tokens: after.tokens,
    }
}

/// Tokens of a message of `tokens` without its tail, at least those of `prefix`.
fn head_of(prefix: &Written, tokens: u32) -> u32 {
    let head = tokens.saturating_sub(TAIL_TOKENS);
    head.max(prefix.tokens.unwrap_or(0)).min(tokens)
}

fn add(total: &mut Option<u32>, tokens: Option<u32>) {
    *total = total
        .zip(tokens)
        .map(|(total, tokens)| total.saturating_add(tokens));
}

/// Pictures and sounds that `seed` decides, each another.
fn made_media(config: &Synthetic, seed: u64) -> Vec<Media> {
    let mut media = Vec::new();
    let seeds = |count: u32| (0..u64::from(count)).map(move |number| seed.wrapping_add(number));
    if let Some(Images {
        count,
        width,
        height,
    }) = config.images
    {
        let picture = Picture { width, height };
        media.extend(seeds(count).map(|seed| picture.image(seed)));
    }
    if let Some(Audio { count, length }) = config.audio {
        let sound = Sound {
            milliseconds: u32::try_from(length.as_millis()).unwrap_or(u32::MAX),
            rate: SAMPLE_RATE,
        };
        media.extend(seeds(count).map(|seed| sound.audio(seed)));
    }
    media
}
