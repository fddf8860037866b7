//! The answers to one request, usually one: when each began and ended, and its text if it is kept.

use super::think::{Heard, Think};
use crate::client::protocol::{Channel, Piece, Said};
use crate::clock::MonoTime;
use crate::measurement::{Choices, RequestRecord};

/// Answers told apart; what further ones bring counts for the whole only.
const MAX_CHOICES: usize = 128;
/// Text that is kept; a longer one is not, since a part of it would give a wrong count.
const MAX_TEXT: usize = 1024 * 1024;

/// All answers that carried a token.
#[derive(Debug, Default)]
pub(super) struct Answers {
    all: Vec<Answer>,
    text: Keep,
    /// What the first answer says to the one who asked, if that is kept.
    reply: Option<String>,
}

/// Whether text is kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Keep {
    #[default]
    No,
    /// This much more.
    Room(usize),
    /// It was too long.
    Overflow,
}

/// What an event brought.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heed {
    /// Reasoning was among it.
    pub(super) reasoning: bool,
    /// When the first text came that is known now to be no reasoning.
    pub(super) output: Option<MonoTime>,
}

#[derive(Debug)]
struct Answer {
    index: u32,
    first: MonoTime,
    last: MonoTime,
    think: Think,
    /// When text came of which it is not known yet what it is.
    undecided: Option<MonoTime>,
    text: String,
}

impl Answers {
    /// From now on the text is kept.
    pub(super) const fn keep_text(&mut self) {
        self.text = Keep::Room(MAX_TEXT);
    }

    /// From now on what is said to the one who asked is kept.
    pub(super) fn keep_reply(&mut self) {
        self.reply = Some(String::new());
    }

    /// How many carried a token.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.all.len()).expect("there are at most `MAX_CHOICES`")
    }

    /// Takes what came at `at`, from an event that carried a token.
    pub(super) fn take(&mut self, said: &Said<'_>, at: MonoTime) -> Heed {
        let mut heed = Heed::default();
        for piece in said.pieces() {
            let Some(place) = self.place(piece.choice, at) else {
                continue;
            };
            self.keep(place, piece);
            self.all[place].hear(piece, at, &mut heed);
        }
        if said.pieces().next().is_none() {
            self.place(0, at);
        }
        heed
    }

    /// Takes the text of a whole response that came at `at`.
    pub(super) fn take_whole(&mut self, said: &Said<'_>, at: MonoTime) {
        for piece in said.pieces() {
            if let Some(place) = self.place(piece.choice, at) {
                self.keep(place, piece);
            }
        }
    }

    /// Where the answer `index` stands, of which something came at `at`.
    fn place(&mut self, index: u32, at: MonoTime) -> Option<usize> {
        let known = self.all.iter().position(|answer| answer.index == index);
        if let Some(place) = known {
            self.all[place].last = at;
            return known;
        }
        (self.all.len() < MAX_CHOICES).then(|| {
            self.all.push(Answer::new(index, at));
            self.all.len() - 1
        })
    }

    fn keep(&mut self, place: usize, piece: &Piece<'_>) {
        if let Some(reply) = &mut self.reply
            && place == 0
            && matches!(piece.channel, Channel::Output | Channel::Refusal)
            && reply.len() + piece.text.len() <= MAX_TEXT
        {
            reply.push_str(&piece.text);
        }
        let Keep::Room(room) = self.text else {
            return;
        };
        if piece.channel == Channel::Tool {
            return; // its tokens are more than its text
        }
        self.text = match room.checked_sub(piece.text.len()) {
            Some(left) => {
                self.all[place].text.push_str(&piece.text);
                Keep::Room(left)
            }
            None => Keep::Overflow,
        };
    }

    /// The response ended: fills spans and text of `record`. When text came that turned out to
    /// be the answer.
    pub(super) fn finish(&mut self, record: &mut RequestRecord) -> Option<MonoTime> {
        if self.all.len() > 1 {
            record.choices = Some(Choices {
                count: self.count(),
                spans: self
                    .all
                    .iter()
                    .map(|answer| answer.last.since(answer.first))
                    .sum(),
            });
        }
        record.reply = self
            .reply
            .take()
            .map(|reply| behind_thoughts(&reply).into());
        if matches!(self.text, Keep::Room(_)) {
            let texts: Vec<&str> = self.all.iter().map(|answer| &*answer.text).collect();
            record.text = Some(texts.join("\n").into());
        }
        self.all.iter().filter_map(|answer| answer.undecided).min()
    }
}

/// `reply` without thoughts that were not told apart from it.
fn behind_thoughts(reply: &str) -> &str {
    match reply.split_once("</think>") {
        Some((_, answer)) => answer.trim_start(),
        None if reply.trim_start().starts_with("<think>") => "",
        None => reply,
    }
}

impl Answer {
    fn new(index: u32, at: MonoTime) -> Self {
        Self {
            index,
            first: at,
            last: at,
            think: Think::default(),
            undecided: None,
            text: String::new(),
        }
    }

    fn hear(&mut self, piece: &Piece<'_>, at: MonoTime, heed: &mut Heed) {
        let heard = match piece.channel {
            Channel::Reasoning => Heard::Thought,
            Channel::Tool | Channel::Refusal => Heard::Answer,
            Channel::Output => self.think.hear(&piece.text),
        };
        match heard {
            Heard::Undecided => {
                self.undecided.get_or_insert(at);
            }
            Heard::Thought => {
                heed.reasoning = true;
                if piece.channel == Channel::Output {
                    self.undecided = None;
                }
            }
            Heard::Answer => {
                let since = self.undecided.take().unwrap_or(at);
                heed.output = Some(heed.output.map_or(since, |before| before.min(since)));
            }
        }
    }
}
