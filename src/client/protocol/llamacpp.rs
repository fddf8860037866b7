//! `/completion` of llama.cpp: each event lists its tokens and counts all so far.
//!
//! `tokens_cached` is not what it seems: it is all that the slot holds at the end, answer
//! included. What came from the prefix cache is `timings.cache_n`, or, in builds without it,
//! the part of the prompt that was not processed.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::asked::flat;
use super::count::Count;
use super::several::Several;
use super::text::Text;
use super::{Ask, Channel, Said, Usage, fault};
use crate::client::framing::Event;
use crate::measurement::TokenSource;

#[derive(Serialize)]
struct Body<'a> {
    prompt: &'a str,
    stream: bool,
    /// Lists the tokens of each event.
    return_tokens: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    n_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
}

pub(super) fn path(_ask: &Ask<'_>) -> String {
    "/completion".to_owned()
}

pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let length = ask.prompt.output_tokens;
    let body = Body {
        prompt: &flat(ask.prompt),
        stream: ask.streaming,
        return_tokens: true,
        n_predict: length,
        ignore_eos: length.filter(|_| ask.style.exact_length).map(|_| true),
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow)]
    content: Option<Text<'a>>,
    tokens: Option<Vec<IgnoredAny>>,
    stop: Option<bool>,
    #[serde(borrow)]
    stop_type: Option<Text<'a>>,
    stopped_eos: Option<bool>,
    stopped_limit: Option<bool>,
    stopped_word: Option<bool>,
    #[serde(default)]
    tokens_predicted: Count,
    #[serde(default)]
    tokens_evaluated: Count,
    timings: Option<Timings>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct Timings {
    cache_n: Count,
    prompt_n: Count,
}

pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    // A whole answer to several prompts is an array.
    let answers: Several<Incoming<'a>> = serde_json::from_slice(event.data)?;
    for incoming in answers {
        let tells = incoming.error.is_some() || incoming.detail.is_some();
        fault::note(event, tells, said)?;
        incoming.say(said);
    }
    Ok(())
}

impl<'a> Incoming<'a> {
    fn say(self, said: &mut Said<'a>) {
        let stops = self.stop == Some(true);
        let reason = self.reason();
        said.usage = self.usage();
        let listed = self.tokens.map_or(0, |tokens| tokens.len());
        if listed > 0 {
            said.listed = u32::try_from(listed)
                .ok()
                .map(|count| (count, TokenSource::TokenIds));
        }
        match self.content.filter(|text| !text.0.is_empty()) {
            Some(text) => said.say(self.index.value.unwrap_or(0), Channel::Output, text.0),
            None if listed > 0 => said.hidden_token = true,
            None => {}
        }
        if stops {
            said.done = true;
            let reason = self.stop_type.as_ref().map_or(reason, |kind| &kind.0);
            said.finish(reason);
        }
    }

    /// The reason in the way of builds before the end of 2024.
    fn reason(&self) -> &'static str {
        let stopped = [
            (self.stopped_eos, "eos"),
            (self.stopped_limit, "limit"),
            (self.stopped_word, "word"),
        ];
        let by = stopped.into_iter().find(|(by, _)| *by == Some(true));
        by.map_or("", |(_, reason)| reason)
    }

    fn usage(&self) -> Option<Usage> {
        let timings = self.timings.unwrap_or_default();
        let reused = self.tokens_evaluated.minus(timings.prompt_n);
        let usage = Usage::of(
            self.tokens_evaluated,
            self.tokens_predicted,
            Count::default(),
            timings.cache_n.or(reused),
        );
        (usage != Usage::default()).then_some(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::{asked, asked_in, replay};
    use crate::config::RequestConfig;
    use crate::measurement::{Api, Outcome};

    const FIRST: &str = "data: {\"index\":0,\"content\":\"Hi\",\"tokens\":[17],\"stop\":false,\
         \"id_slot\":0,\"tokens_predicted\":1,\"tokens_evaluated\":9}\n\n";
    const SECOND: &str = "data: {\"index\":0,\"content\":\" all\",\"tokens\":[18,19],\"stop\":\
         false,\"id_slot\":0,\"tokens_predicted\":3,\"tokens_evaluated\":9}\n\n";
    const LAST: &str = "data: {\"index\":0,\"content\":\"\",\"tokens\":[],\"stop\":true,\
         \"model\":\"m\",\"tokens_predicted\":3,\"tokens_evaluated\":9,\"truncated\":false,\
         \"stop_type\":\"limit\",\"tokens_cached\":11,\"timings\":{\"cache_n\":4,\
         \"prompt_n\":5,\"prompt_ms\":1.5,\"predicted_n\":3}}\n\n";

    #[test]
    fn an_exact_length_is_asked_for_unless_it_may_not_be() {
        assert_eq!(
            asked(Api::Llamacpp, true, Some(8)),
            (
                "/completion".to_owned(),
                r#"{"prompt":"hi","stream":true,"return_tokens":true,"n_predict":8,"ignore_eos":true}"#.to_owned()
            )
        );
        let (_, body) = asked(Api::Llamacpp, false, None);
        assert_eq!(
            body,
            r#"{"prompt":"hi","stream":false,"return_tokens":true}"#
        );
        let loose = RequestConfig {
            exact_length: false,
            ..RequestConfig::default()
        };
        let (_, body) = asked_in(loose, Api::Llamacpp, true, Some(8));
        assert!(!body.contains("ignore_eos"), "{body}");
    }

    #[test]
    fn a_stream_has_its_tokens_usage_and_reason() {
        let record = replay(Api::Llamacpp, true, &format!(":\n\n{FIRST}{SECOND}{LAST}"));
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.chunks.len(), 2);
        assert_eq!(record.finish_reason.as_deref(), Some("limit"));
        let tokens = record.tokens;
        assert_eq!((tokens.input, tokens.output), (Some(9), Some(3)));
        assert_eq!((tokens.cached, tokens.in_first_chunk), (Some(4), Some(1)));
    }

    #[test]
    fn old_builds_stop_by_flags_and_do_not_count_what_was_reused() {
        let last = LAST
            .replace(
                r#""stop_type":"limit""#,
                r#""stopped_eos":true,"stopped_limit":false,"stopped_word":false"#,
            )
            .replace("\"cache_n\":4,", "");
        let record = replay(Api::Llamacpp, true, &format!("{FIRST}{last}"));
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.finish_reason.as_deref(), Some("eos"));
        assert_eq!(record.tokens.cached, Some(4));
    }

    #[test]
    fn errors_inside_a_success_are_errors_in_both_spellings() {
        let error = "{\"code\":500,\"message\":\"out of slots\",\"type\":\"server_error\"}";
        for line in [
            format!("error: {error}\n\n"),
            format!("data: {{\"error\":{error}}}\n\n"),
        ] {
            for body in [line.clone(), format!("{FIRST}{line}")] {
                let record = replay(Api::Llamacpp, true, &body);
                assert_eq!(record.outcome, Outcome::StreamError, "{body}");
                let error = record.error.expect("an error");
                assert_eq!(
                    (&*error.kind, &*error.message),
                    ("server_error", "out of slots")
                );
            }
        }
    }

    #[test]
    fn a_stream_without_stop_is_cut() {
        let record = replay(Api::Llamacpp, true, FIRST);
        assert_eq!(record.outcome, Outcome::StreamCut);
    }

    #[test]
    fn a_whole_answer_is_read() {
        let record = replay(
            Api::Llamacpp,
            false,
            r#"{"index":0,"content":"Hi all","tokens":[17,18,19],"stop":true,"stop_type":"eos",
                "tokens_predicted":3,"tokens_evaluated":9,"timings":{"cache_n":0}}"#,
        );
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.finish_reason.as_deref(), Some("eos"));
        let tokens = record.tokens;
        assert_eq!((tokens.input, tokens.output), (Some(9), Some(3)));
        assert_eq!(tokens.cached, Some(0));
    }
}
