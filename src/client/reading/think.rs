//! Finds thoughts that a server without a reasoning parser leaves in the answer:
//! `<think>…</think>` at its very beginning.
//!
//! The tags may be cut anywhere between two chunks. A template that opens the block itself shows
//! only the closing tag: that cannot be told from an answer before it comes, so it is left alone.

const OPEN: &[u8] = b"<think>";
const CLOSE: &[u8] = b"</think>";

/// What a piece of answer text turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Blank, or the beginning of the opening tag: not known yet.
    Undecided,
    /// Inside the block, or one of its tags.
    Thought,
    /// Answer, and so was all that was undecided before.
    Answer,
}

/// How far the answer of one choice has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Think {
    /// So many bytes of the opening tag came, after nothing but blanks.
    Before(usize),
    /// In the block; so many bytes of the closing tag came.
    Inside(usize),
    /// The block was closed; only blanks came since.
    Closed,
    /// There is no block, or no more.
    Answering,
}

impl Default for Think {
    fn default() -> Self {
        Self::Before(0)
    }
}

impl Think {
    /// Takes the next piece of answer text, never empty.
    pub(super) fn hear(&mut self, text: &str) -> Heard {
        if *self == Self::Answering {
            return Heard::Answer;
        }
        let mut rest = text.as_bytes();
        if let Self::Before(matched) = *self {
            let (next, after) = opening(matched, rest);
            (*self, rest) = (next, after);
            match next {
                Self::Before(_) => return Heard::Undecided,
                Self::Answering => return Heard::Answer,
                Self::Inside(_) | Self::Closed => {}
            }
        }
        if let Self::Inside(matched) = *self {
            (*self, rest) = closing(matched, rest);
        }
        if *self == Self::Closed && !rest.trim_ascii_start().is_empty() {
            *self = Self::Answering;
            return Heard::Answer;
        }
        Heard::Thought
    }
}

fn opening(mut matched: usize, text: &[u8]) -> (Think, &[u8]) {
    let mut rest = if matched == 0 {
        text.trim_ascii_start()
    } else {
        text
    };
    while let Some((byte, after)) = rest.split_first() {
        if *byte != OPEN[matched] {
            return (Think::Answering, rest);
        }
        matched += 1;
        rest = after;
        if matched == OPEN.len() {
            return (Think::Inside(0), rest);
        }
    }
    (Think::Before(matched), rest)
}

fn closing(mut matched: usize, mut rest: &[u8]) -> (Think, &[u8]) {
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        // The tag's first byte comes only once in it, so a mismatch can only begin it anew.
        matched = match *byte {
            byte if byte == CLOSE[matched] => matched + 1,
            byte => usize::from(byte == CLOSE[0]),
        };
        if matched == CLOSE.len() {
            return (Think::Closed, rest);
        }
    }
    (Think::Inside(matched), rest)
}

#[cfg(test)]
mod tests {
    use super::Heard::{Answer, Thought, Undecided};
    use super::*;

    fn check(pieces: &[&str], expected: &[Heard]) {
        let mut think = Think::default();
        let heard: Vec<Heard> = pieces.iter().map(|piece| think.hear(piece)).collect();
        assert_eq!(heard, expected, "{pieces:?}");
    }

    #[test]
    fn text_before_the_closing_tag_is_thought() {
        check(
            &["<think>", "hm", "</think>", "\n\n", "yes"],
            &[Thought, Thought, Thought, Thought, Answer],
        );
        check(&["<think>hm</think>yes", "no"], &[Answer, Answer]);
        check(&["<think>\n\n</think>\n\n", "yes"], &[Thought, Answer]);
    }

    #[test]
    fn tags_may_be_cut_anywhere() {
        check(
            &["\n", "<th", "ink>a", "</th", "ink", "> ", "b"],
            &[
                Undecided, Undecided, Thought, Thought, Thought, Thought, Answer,
            ],
        );
        check(&["<think>a<", "</think>b"], &[Thought, Answer]);
        check(&["<think>a</thi</think>", "b"], &[Thought, Answer]);
    }

    #[test]
    fn what_is_no_tag_is_answer() {
        check(&["a", "<think>"], &[Answer, Answer]);
        check(&["\n", "<", "three"], &[Undecided, Undecided, Answer]);
        check(&["a</think>b"], &[Answer]);
    }
}
