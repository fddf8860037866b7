//! What a reader writes down who has the recorded responses on paper.
//!
//! Nothing here was made by a program: each text was put together from the pieces in the file,
//! each count taken from its usage, each event counted.

use tokencanary::measurement::{Api, Outcome, TokenSource};

/// One recorded response.
pub(super) struct Recorded {
    /// Name of the file: server, API and case.
    pub(super) file: &'static str,
    pub(super) api: Api,
    pub(super) streaming: bool,
    pub(super) status: u16,
    pub(super) outcome: Outcome,
    pub(super) tokens: Tokens,
    pub(super) finish: Option<&'static str>,
    /// The text of the answer.
    pub(super) text: Option<&'static str>,
    /// Numbers of the first and the last event with a token, from 1. Each between has one too.
    pub(super) token_events: Option<(usize, usize)>,
    /// Type and message of the error.
    pub(super) error: Option<(&'static str, &'static str)>,
}

/// Token counts: input, output, reasoning among it, input from the cache, and the source.
pub(super) type Tokens = (
    Option<u32>,
    Option<u32>,
    Option<u32>,
    Option<u32>,
    Option<TokenSource>,
);

const NO_TOKENS: Tokens = (None, None, None, None, None);

/// As `usage` says.
const fn usage(input: u32, output: u32, reasoning: Option<u32>, cached: u32) -> Tokens {
    let source = Some(TokenSource::Usage);
    (Some(input), Some(output), reasoning, Some(cached), source)
}

/// No usage: as many as there were chunks with text.
const fn chunks(count: u32) -> Tokens {
    (None, Some(count), None, None, Some(TokenSource::Chunks))
}

/// A stream that went well and ended because the answer had its length.
const fn stream(
    file: &'static str,
    api: Api,
    tokens: Tokens,
    (token_events, text): ((usize, usize), &'static str),
) -> Recorded {
    Recorded {
        file,
        api,
        streaming: true,
        status: 200,
        outcome: Outcome::Ok,
        tokens,
        finish: Some("length"),
        text: Some(text),
        token_events: Some(token_events),
        error: None,
    }
}

/// A whole answer.
const fn whole(file: &'static str, tokens: Tokens, text: &'static str) -> Recorded {
    Recorded {
        file,
        api: Api::Chat,
        streaming: false,
        status: 200,
        outcome: Outcome::Ok,
        tokens,
        finish: Some("length"),
        text: Some(text),
        token_events: None,
        error: None,
    }
}

/// A request that was refused.
const fn refused(
    file: &'static str,
    status: u16,
    kind: &'static str,
    message: &'static str,
) -> Recorded {
    Recorded {
        file,
        api: Api::Chat,
        streaming: true,
        status,
        outcome: Outcome::HttpStatus,
        tokens: NO_TOKENS,
        finish: None,
        text: None,
        token_events: None,
        error: Some((kind, message)),
    }
}

pub(super) const RECORDED: &[Recorded] = &[
    whole(
        "dynamo-mocker_chat_nonstream",
        usage(12, 12, None, 0),
        " act needepsive &arkianiceianublicnext does",
    ),
    // The role comes with the first text.
    stream(
        "dynamo-mocker_chat_stream",
        Api::Chat,
        usage(12, 12, None, 0),
        (
            (1, 12),
            "raise hand ser does chunkenumroundcy IPvThe cacheync",
        ),
    ),
    stream(
        "dynamo-mocker_chat_stream_nousage",
        Api::Chat,
        chunks(6),
        ((1, 6), " execut matchglob wouldveryift"),
    ),
    stream(
        "dynamo-mocker_completions_stream",
        Api::Completions,
        usage(4, 12, None, 0),
        (
            (1, 12),
            " res Con... NotImplemented[: where OSErroretimeresultcpython these limit",
        ),
    ),
    refused(
        "dynamo-mocker_err_bad_json",
        400,
        "Bad Request",
        "Failed to deserialize the JSON body into the target type: EOF while parsing a value at line 1 column 43",
    ),
    refused(
        "dynamo-mocker_err_bad_model",
        404,
        "Not Found",
        "Model not found",
    ),
    refused(
        "dynamo-mocker_err_no_messages",
        400,
        "Bad Request",
        "Failed to deserialize the JSON body into the target type: missing field `messages` at line 1 column 32",
    ),
    // The status says that all is well, the only event that it is not.
    Recorded {
        outcome: Outcome::StreamError,
        ..refused(
            "dynamo-mocker_err_too_long",
            200,
            "internal_server_error",
            "Internal server error",
        )
    },
    whole(
        "litellm_chat_nonstream",
        usage(22, 12, None, 21),
        "wb al alllwD matO alll mat",
    ),
    // A frame with the role alone comes first.
    stream(
        "litellm_chat_stream",
        Api::Chat,
        usage(22, 12, Some(0), 21),
        ((2, 13), "wD all sheub wD allb wD"),
    ),
    stream(
        "litellm_chat_stream_nousage",
        Api::Chat,
        chunks(6),
        ((2, 7), "wbT matO all"),
    ),
    // The last two frames have a choice without text.
    stream(
        "litellm_completions_stream",
        Api::Completions,
        usage(5, 12, Some(0), 4),
        ((1, 12), "';h' thi thi whi whi whi whi whi whi"),
    ),
    refused(
        "litellm_err_bad_json",
        400,
        "invalid_request_error",
        "Invalid JSON payload: unexpected end of data: line 1 column 42 (char 41)",
    ),
    refused(
        "litellm_err_bad_model",
        400,
        "invalid_request_error",
        "/chat/completions: Invalid model name passed in model=no-such-model. Call `/v1/models` to view available models for your key.",
    ),
    // Line ends in messages become blanks.
    refused(
        "litellm_err_dead_backend",
        500,
        "internal_server_error",
        "litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.  LiteLLM: model group 'dead' failed with the error above. No fallback was attempted.",
    ),
    // No JSON, and no word of what is wrong.
    refused(
        "litellm_err_no_auth",
        500,
        "status",
        "Internal Server Error",
    ),
    refused(
        "litellm_err_no_messages",
        400,
        "invalid_request_error",
        "/chat/completions: Missing required parameter: 'messages'.",
    ),
    refused(
        "litellm_err_too_long",
        400,
        "invalid_request_error",
        "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - request (36019 tokens) exceeds the available context size (1024 tokens), try increasing it model=tiny. context_window_fallbacks=None. fallbacks=None.  Set 'context_window_fallback' - https://docs.litellm.ai/docs/routing#fallbacks  LiteLLM: model group 'tiny' failed with the error above. No fallback was attempted.",
    ),
    whole(
        "llama-server_chat_nonstream",
        usage(22, 12, None, 21),
        "wb wD all sheu ca ha wD all",
    ),
    // The role comes first, with a null for its text.
    stream(
        "llama-server_chat_stream",
        Api::Chat,
        usage(22, 12, None, 8),
        ((2, 13), "wbT matO all sheu ha cab w"),
    ),
    stream(
        "llama-server_chat_stream_nousage",
        Api::Chat,
        chunks(6),
        ((2, 7), "wb wn matO"),
    ),
    // Usage comes with the finish reason.
    stream(
        "llama-server_completions_stream",
        Api::Completions,
        usage(5, 12, None, 1),
        ((1, 12), "D; youGDD fr do n wil frD"),
    ),
    refused(
        "llama-server_err_bad_json",
        400,
        "invalid_request_error",
        "[json.exception.parse_error.101] parse error at line 1, column 42: syntax error while parsing value - unexpected end of input; expected '[', '{', or a literal",
    ),
    // It serves the model it has, whatever the name.
    stream(
        "llama-server_err_bad_model",
        Api::Chat,
        chunks(4),
        ((2, 5), "wlwl"),
    ),
    refused(
        "llama-server_err_no_messages",
        400,
        "invalid_request_error",
        "'messages' is required",
    ),
    refused(
        "llama-server_err_too_long",
        400,
        "exceed_context_size_error",
        "request (36019 tokens) exceeds the available context size (1024 tokens), try increasing it",
    ),
    // Four events that announce, six of text, three that repeat it, and the end. No `[DONE]`.
    Recorded {
        finish: Some("completed"),
        ..stream(
            "llama-server_responses_stream",
            Api::Responses,
            usage(20, 6, None, 19),
            ((5, 10), "wD then cawb"),
        )
    },
];
