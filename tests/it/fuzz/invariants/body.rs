//! Bodies of responses: every protocol, streamed or whole, cut anywhere.
//!
//! A case of the fuzzer is text where it can be, so that seeds are written by hand: a letter
//! for the protocol, a digit for how it is read, a digit for the number of cuts, two bytes for
//! each cut, then the body.

use tokencanary::client::Ended;
use tokencanary::measurement::{Api, Outcome, RequestRecord, TokenSource};

use super::relaid::relaid;
use super::view::{self, How, View};

/// Longest texts that a record may hold, in bytes.
const MAX_KIND: usize = 100;
const MAX_MESSAGE: usize = 500;
const MAX_FINISH: usize = 100;
const MAX_TEXT: usize = 1024 * 1024;

/// One body, how to read it, and where to cut it.
pub(crate) struct Case<'a> {
    pub(crate) how: How,
    pub(crate) cuts: Vec<usize>,
    pub(crate) body: &'a [u8],
}

impl<'a> Case<'a> {
    /// The case that `data` stands for, of one of `apis`; `None` if it is too short.
    pub(crate) fn parse(data: &'a [u8], apis: &[Api]) -> Option<Self> {
        let (&[api, flags, cuts], rest) = data.split_first_chunk()?;
        let api = apis[usize::from(api.wrapping_sub(b'a')) % apis.len()];
        let wanted = usize::from(cuts & 7).min(rest.len() / 2);
        let (positions, body) = rest.split_at(wanted * 2);
        let (positions, _) = positions.as_chunks();
        let mut cuts: Vec<usize> = positions
            .iter()
            .map(|position| usize::from(u16::from_le_bytes(*position)) % (body.len() + 1))
            .collect();
        cuts.sort_unstable();
        let ended = if flags & 2 == 0 {
            Ended::Complete
        } else {
            Ended::Broken
        };
        let how = How {
            protocol: view::protocol(api),
            streaming: flags & 1 == 0,
            ended,
            encoding: None,
            text: flags & 4 != 0,
        };
        Some(Self { how, cuts, body })
    }

    /// The body, cut.
    pub(crate) fn pieces(&self) -> Vec<&'a [u8]> {
        let mut pieces = Vec::with_capacity(self.cuts.len() + 1);
        let mut from = 0;
        for cut in &self.cuts {
            pieces.push(&self.body[from..*cut]);
            from = *cut;
        }
        pieces.push(&self.body[from..]);
        pieces
    }
}

/// All that holds for every body.
pub(crate) fn holds(case: &Case<'_>) {
    let seen = cuts_do_not_matter(case);
    layout_does_not_matter(case, &seen);
}

/// What holds for encoded bodies too: what they say, however they come.
pub(crate) fn cuts_do_not_matter(case: &Case<'_>) -> View {
    let Case { how, body, .. } = case;
    let whole = view::read(how, [*body]);
    is_sound(&whole, case);
    let seen = View::of(&whole);
    if !case.cuts.is_empty() {
        let cut = view::read(how, case.pieces());
        is_sound(&cut, case);
        let cuts = format!("cut at {:?}", case.cuts);
        assert_same(&View::of(&cut), &seen, &cuts);
    }
    let bytes = view::read(how, body.chunks(1));
    is_sound(&bytes, case);
    assert_same(&View::of(&bytes), &seen, "byte by byte");
    if let Some(settled) = view::read_until_settled(how, body.chunks(1)) {
        assert_eq!(settled.outcome, bytes.outcome, "settled, then another");
    }
    seen
}

/// Where an encoding is damaged, its decoder may give out more of what came before if it is given
/// less at once, and of several encodings another may notice. So what the server told before the
/// damage may be known or not; that it is no answer does not depend on it.
fn assert_same(view: &View, seen: &View, how: &str) {
    let damaged = |view: &View| {
        let error = view.error.as_ref();
        error.is_some_and(|error| &*error.kind == "content encoding")
    };
    if damaged(view) || damaged(seen) {
        for outcome in [view.outcome, seen.outcome] {
            let failed = matches!(outcome, Outcome::Malformed | Outcome::StreamError);
            assert!(failed, "{how}: {outcome:?}");
        }
    } else {
        assert_eq!(view, seen, "{how}");
    }
}

/// Blanks between the parts of JSON, line ends and comments between events say nothing.
fn layout_does_not_matter(case: &Case<'_>, seen: &View) {
    let Some(other) = relaid(case.how.protocol.api(), case.how.streaming, case.body) else {
        return;
    };
    let other = View::of(&view::read(&case.how, [&other[..]]));
    // A message may name a position in the event, or show its beginning.
    let kinds = |view: &View| view.error.as_ref().map(|error| error.kind.clone());
    assert_eq!(kinds(&other), kinds(seen), "laid out otherwise");
    let other = View {
        error: seen.error.clone(),
        ..other
    };
    assert_eq!(other, *seen, "laid out otherwise");
}

/// What every finished record of a body keeps to.
fn is_sound(record: &RequestRecord, case: &Case<'_>) {
    assert_eq!(record.bytes, case.body.len() as u64);
    outcome_is_sound(record, case.how.streaming);
    times_are_sound(record);
    tokens_are_sound(record);
    if case.how.encoding.is_none() {
        counts_are_possible(record, case.body);
    }
    if let Some(error) = &record.error {
        is_plain(&error.kind, MAX_KIND);
        is_plain(&error.message, MAX_MESSAGE);
    }
    if let Some(finish) = &record.finish_reason {
        assert!(!finish.is_empty());
        is_plain(finish, MAX_FINISH);
    }
    if let Some(text) = &record.text {
        assert!(case.how.text, "a text that nobody asked for");
        assert!(text.len() <= MAX_TEXT);
    }
}

fn outcome_is_sound(record: &RequestRecord, streaming: bool) {
    let has_error = match record.outcome {
        Outcome::Ok | Outcome::Empty => false,
        Outcome::NotAStream => {
            assert!(streaming, "no stream was asked for");
            false
        }
        Outcome::StreamError | Outcome::StreamCut | Outcome::Malformed => true,
        other => panic!("{other:?} is no outcome of a body"),
    };
    assert_eq!(record.error.is_some(), has_error, "{record:?}");
}

fn times_are_sound(record: &RequestRecord) {
    let times = &record.timeline;
    let marks = [
        times.first_byte,
        times.first_event,
        times.first_token,
        times.first_output,
        times.last_token,
    ];
    let reached: Vec<_> = marks.into_iter().flatten().collect();
    assert!(reached.is_sorted(), "{times:?}");
    let chunks = record.chunks.as_slice();
    assert!(chunks.is_sorted_by_key(|chunk| chunk.at));
    assert!(chunks.is_sorted_by_key(|chunk| chunk.read));
    assert_eq!(chunks.first().map(|chunk| chunk.at), times.first_token);
    if let Some(last) = chunks.last() {
        assert_eq!(Some(last.at), times.last_token);
    }
}

fn tokens_are_sound(record: &RequestRecord) {
    let tokens = &record.tokens;
    let chunks = record.chunks.as_slice().len();
    assert_eq!(tokens.source.is_some(), tokens.output.is_some());
    if tokens.reasoning.is_some() {
        assert!(tokens.reasoning <= tokens.output, "a part above the whole");
    }
    assert_ne!(tokens.in_first_chunk, Some(0));
    if chunks > 0 {
        assert_ne!(tokens.output, Some(0), "no tokens, though tokens came");
    }
    if tokens.source == Some(TokenSource::Chunks) {
        assert_eq!(tokens.output.map(|count| count as usize), Some(chunks));
    }
    if let Some(choices) = record.choices {
        assert!(choices.count > 1);
    }
}

/// Whatever is counted stands in `body`.
fn counts_are_possible(record: &RequestRecord, body: &[u8]) {
    // An event needs an end of line or a brace, and a chunk an event.
    let marks = |byte: &&u8| matches!(byte, b'\n' | b'\r' | b'{');
    let events = 1 + body.iter().filter(marks).count();
    assert!(record.chunks.as_slice().len() <= events);
    let tokens = &record.tokens;
    let listed = [
        TokenSource::TokenIds,
        TokenSource::Logprobs,
        TokenSource::Words,
    ];
    if tokens.source.is_some_and(|source| listed.contains(&source)) {
        assert!(
            tokens
                .output
                .is_some_and(|count| count as usize <= body.len())
        );
    }
    let choices = record.choices.map_or(0, |choices| choices.count);
    assert!(choices as usize <= body.len());
    // A byte that is not UTF-8 becomes a character of three.
    let text = record.text.as_ref().map_or(0, |text| text.len());
    assert!(text <= 3 * body.len());
}

fn is_plain(text: &str, limit: usize) {
    assert!(text.len() <= limit, "{} bytes", text.len());
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
