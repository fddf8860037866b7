//! Which protocols are tried, in which order, and what is changed where one is refused. Pure: the
//! asking is done elsewhere.

use std::time::Duration;

use serde::Deserialize;

use crate::client::models_path;
use crate::measurement::server::Engine;
use crate::measurement::{Api, Outcome, RequestRecord, TokenSource, plain};
use crate::report::{LengthName, LengthSaid, Manner, Pace};

/// A request that takes longer than this is slow.
const SLOW: Duration = Duration::from_secs(2);
/// And longer than this, very.
const VERY_SLOW: Duration = Duration::from_secs(15);
/// Longest name of a model that is taken.
const MAX_NAME: usize = 256;

/// Protocols to try at a server that is `engine`, the likeliest first. Without a model only those
/// that name none.
pub(super) fn candidates(engine: Option<Engine>, has_model: bool) -> Vec<Api> {
    let own: &[Api] = match engine {
        Some(Engine::Tgi) => &[Api::Chat, Api::Tgi, Api::Completions],
        Some(Engine::LlamaCpp) => &[Api::Chat, Api::Completions, Api::Llamacpp, Api::Embeddings],
        Some(Engine::Ollama) => &[Api::Chat, Api::Completions, Api::Ollama, Api::Embeddings],
        Some(Engine::Triton) => &[Api::Chat, Api::Triton, Api::Kserve],
        Some(_) => &[Api::Chat, Api::Completions, Api::Embeddings, Api::Rerank],
        None => &[
            Api::Chat,
            Api::Completions,
            Api::Embeddings,
            Api::Messages,
            Api::Responses,
            Api::Tgi,
            Api::Llamacpp,
            Api::Ollama,
            Api::TeiEmbed,
            Api::Rerank,
            Api::TeiRerank,
            Api::Triton,
        ],
    };
    let is_usable =
        |api: &Api| has_model || (models_path(*api).is_none() && !api.names_model_in_path());
    own.iter().copied().filter(is_usable).collect()
}

/// Whether a server that answered so may speak another protocol.
pub(super) fn may_speak_another(record: &RequestRecord) -> bool {
    match record.outcome {
        Outcome::HttpStatus => {
            matches!(record.http_status, Some(400 | 404 | 405 | 415 | 422 | 501))
        }
        Outcome::Malformed | Outcome::NotAStream | Outcome::Empty => true,
        _ => false,
    }
}

/// What to change about a request that was not answered; `None` if nothing in the answer says.
/// `refuses_length` is whether the same one was answered without an exact length.
pub(super) fn changed(
    manner: Manner,
    (api, record): (Api, &RequestRecord),
    refuses_length: bool,
) -> Option<Manner> {
    if refuses_length {
        return Some(Manner {
            exact_length: false,
            ..manner
        });
    }
    if record.outcome == Outcome::NotAStream && manner.streaming {
        return Some(Manner {
            streaming: false,
            ..manner
        });
    }
    let message = match (&record.error, record.http_status) {
        (Some(error), Some(400 | 422)) => &*error.message,
        _ => return None,
    };
    let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if api == Api::Chat && manner.length == LengthName::Tokens && names(&["max_completion_tokens"])
    {
        Some(Manner {
            length: LengthName::CompletionTokens,
            ..manner
        })
    } else if manner.usage && names(&["stream_options"]) {
        Some(Manner {
            usage: false,
            ..manner
        })
    } else if manner.exact_length && names(&["ignore_eos", "min_tokens"]) {
        Some(Manner {
            exact_length: false,
            ..manner
        })
    } else {
        None
    }
}

/// How often a server may be asked whose answer took so long.
pub(super) fn pace(took: Duration) -> Pace {
    if took > VERY_SLOW {
        Pace::Rare
    } else if took > SLOW {
        Pace::Slow
    } else {
        Pace::Usual
    }
}

/// What the answer in `record` says about its length, of which `asked` tokens were wanted.
pub(super) fn length_said(
    manner: Manner,
    (api, record): (Api, &RequestRecord),
    asked: Option<u32>,
) -> Option<LengthSaid> {
    if !api.makes_tokens() {
        return None;
    }
    Some(if !api.takes_exact_length() {
        LengthSaid::NotAsked
    } else if !manner.exact_length {
        LengthSaid::Refused
    } else {
        // Chunks are no tokens.
        let counted = record.tokens.source != Some(TokenSource::Chunks);
        match (record.tokens.output.filter(|_| counted), asked) {
            (Some(given), Some(asked)) if given >= asked => LengthSaid::Exact,
            (Some(_), Some(_)) => LengthSaid::Ignored,
            _ => LengthSaid::Untold,
        }
    })
}

/// The model that `/info` of text-generation-inference and text-embeddings-inference names.
pub(super) fn model_of_info(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Info {
        model_id: String,
    }
    let info: Info = serde_json::from_slice(body).ok()?;
    let is_usable = !info.model_id.is_empty() && info.model_id.len() <= MAX_NAME;
    is_usable.then(|| plain(&info.model_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::fixture::{failed, stream};
    use crate::measurement::RequestError;

    fn refused(outcome: Outcome, status: Option<u16>, message: &str) -> RequestRecord {
        let mut record = failed(&stream(0), 0, outcome, None).record;
        record.http_status = status;
        record.error = Some(RequestError {
            kind: "invalid_request_error".into(),
            message: message.into(),
        });
        record
    }

    #[test]
    fn chat_comes_first_and_what_needs_a_model_only_with_one() {
        for engine in Engine::ALL.map(Some).into_iter().chain([None]) {
            assert_eq!(candidates(engine, true)[0], Api::Chat);
            for api in candidates(engine, false) {
                assert!(models_path(api).is_none(), "{api:?}");
                assert!(!api.names_model_in_path(), "{api:?}");
            }
        }
        assert_eq!(
            candidates(None, false),
            [Api::Tgi, Api::Llamacpp, Api::TeiEmbed, Api::TeiRerank]
        );
        assert_eq!(candidates(Some(Engine::Vllm), false), []);
    }

    #[test]
    fn what_a_refusal_names_is_changed() {
        let usual = Manner::USUAL;
        let told = |message: &str| refused(Outcome::HttpStatus, Some(400), message);
        let change = |record: &RequestRecord, refuses| changed(usual, (Api::Chat, record), refuses);
        let exact = Manner {
            exact_length: false,
            ..usual
        };
        assert_eq!(change(&told(""), true), Some(exact));
        assert_eq!(change(&told("unknown: ignore_eos"), false), Some(exact));
        let completion = Manner {
            length: LengthName::CompletionTokens,
            ..usual
        };
        let message = "Use 'max_completion_tokens' instead";
        assert_eq!(change(&told(message), false), Some(completion));
        assert_eq!(
            changed(usual, (Api::Completions, &told(message)), false),
            None
        );
        assert_eq!(
            changed(completion, (Api::Chat, &told(message)), false),
            None
        );
        let usage = Manner {
            usage: false,
            ..usual
        };
        assert_eq!(change(&told("stream_options: extra"), false), Some(usage));
        let whole = refused(Outcome::NotAStream, Some(200), "");
        let streaming = Manner {
            streaming: false,
            ..usual
        };
        assert_eq!(change(&whole, false), Some(streaming));
        assert_eq!(changed(streaming, (Api::Chat, &whole), false), None);
        let failing = refused(Outcome::HttpStatus, Some(500), "ignore_eos");
        assert_eq!(change(&failing, false), None);
    }

    #[test]
    fn who_has_no_such_path_may_have_another() {
        for (outcome, status, expected) in [
            (Outcome::HttpStatus, Some(404), true),
            (Outcome::HttpStatus, Some(405), true),
            (Outcome::HttpStatus, Some(400), true),
            (Outcome::Malformed, Some(200), true),
            (Outcome::HttpStatus, Some(401), false),
            (Outcome::HttpStatus, Some(307), false),
            (Outcome::HttpStatus, Some(503), false),
            (Outcome::Connect, None, false),
            (Outcome::TimeoutFirstToken, None, false),
        ] {
            let record = refused(outcome, status, "");
            assert_eq!(
                may_speak_another(&record),
                expected,
                "{outcome:?} {status:?}"
            );
        }
    }

    #[test]
    fn a_slow_server_is_asked_less_often() {
        for (millis, expected) in [
            (50, Pace::Usual),
            (2_000, Pace::Usual),
            (2_001, Pace::Slow),
            (15_001, Pace::Rare),
        ] {
            assert_eq!(pace(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn the_length_is_what_the_answer_had() {
        let mut record = refused(Outcome::Ok, Some(200), "");
        let said =
            |manner, api, record: &RequestRecord| length_said(manner, (api, record), Some(32));
        let usual = Manner::USUAL;
        record.tokens.output = Some(32);
        assert_eq!(said(usual, Api::Chat, &record), Some(LengthSaid::Exact));
        assert_eq!(
            said(usual, Api::Ollama, &record),
            Some(LengthSaid::NotAsked)
        );
        assert_eq!(said(usual, Api::Embeddings, &record), None);
        let advisory = Manner {
            exact_length: false,
            ..usual
        };
        assert_eq!(
            said(advisory, Api::Chat, &record),
            Some(LengthSaid::Refused)
        );
        record.tokens.output = Some(7);
        assert_eq!(said(usual, Api::Chat, &record), Some(LengthSaid::Ignored));
        record.tokens.source = Some(TokenSource::Chunks);
        assert_eq!(said(usual, Api::Chat, &record), Some(LengthSaid::Untold));
        record.tokens.output = None;
        assert_eq!(said(usual, Api::Chat, &record), Some(LengthSaid::Untold));
    }

    #[test]
    fn info_names_a_model_or_nothing() {
        let named = br#"{"model_id":"BAAI/bge-small-en\n","version":"1.8"}"#;
        assert_eq!(model_of_info(named).as_deref(), Some("BAAI/bge-small-en "));
        for body in [
            &b"<html>"[..],
            b"{}",
            br#"{"model_id":""}"#,
            br#"{"model_id":7}"#,
        ] {
            assert_eq!(model_of_info(body), None);
        }
    }
}
