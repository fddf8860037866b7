//! The keys of what a probe sends.

use super::{Table, key};

pub(in crate::config) const WORKLOAD: Table = Table {
    at: "probes[].workload",
    keys: &[
        key(
            "synthetic",
            "a section, as in `{ input_tokens: 128, output_tokens: 64 }`",
        ),
        key("file", "a section, as in `{ path: trace.jsonl }`"),
        key(
            "known_answers",
            "a section, as in `{}` or `{ kinds: [arithmetic] }`",
        ),
        key("cache", "`cold`, `warm` or `paired`"),
        key("cache_salt", "`true` or `false`"),
    ],
    later: &["sharegpt", "questions"],
};

pub(in crate::config) const KNOWN_ANSWERS: Table = Table {
    at: "probes[].workload.known_answers",
    keys: &[
        key(
            "kinds",
            "a list of `arithmetic`, `backwards` and `counting`",
        ),
        key("output_tokens", TOKENS),
    ],
    later: &[],
};

pub(in crate::config) const SYNTHETIC: Table = Table {
    at: "probes[].workload.synthetic",
    keys: &[
        key("input_tokens", LENGTHS),
        key("output_tokens", LENGTHS),
        key(
            "sizes",
            "pairs of lengths, as in `128,64:70;4096,256:30`, or `1024x1024`",
        ),
        key("style", "`words`, `prose`, `code` or `dialogue`"),
        key("count", "`auto`, `words`, `tokenizer` or `server`"),
        key("system_tokens", TOKENS),
        key("system_prompt", "a text"),
        key("prefixes", "a section, as in `{ count: 10, tokens: 512 }`"),
        key("context_tokens", TOKENS),
        key("images", "a section, as in `{ width: 512, height: 512 }`"),
        key("audio", "a section, as in `{ length: 5s }`"),
        key("tools", "a whole number from `0` to `128`"),
    ],
    later: &["video"],
};

pub(in crate::config) const PREFIXES: Table = Table {
    at: "probes[].workload.synthetic.prefixes",
    keys: &[
        key("count", "a whole number from `1` to `100000`"),
        key("tokens", TOKENS),
    ],
    later: &[],
};

pub(in crate::config) const IMAGES: Table = Table {
    at: "probes[].workload.synthetic.images",
    keys: &[
        key("count", "a whole number from `1` to `100`"),
        key("width", PIXELS),
        key("height", PIXELS),
    ],
    later: &["format"],
};

pub(in crate::config) const AUDIO: Table = Table {
    at: "probes[].workload.synthetic.audio",
    keys: &[
        key("count", "a whole number from `1` to `100`"),
        key("length", "a duration, as in `5s`"),
    ],
    later: &["format", "sample_rate"],
};

pub(in crate::config) const PROMPT_FILE: Table = Table {
    at: "probes[].workload.file",
    keys: &[
        key("path", "the path of a data set or a trace"),
        key("format", "the name of a format, as in `mooncake_trace`"),
        key("block_size", TOKENS),
        key("sampling", "`sequential`, `random` or `shuffle`"),
        key("skip_bad_rows", "`true` or `false`"),
        key("output_tokens", TOKENS),
        key("count", "`auto`, `words` or `tokenizer`"),
        key("replies", "`live` or `recorded`"),
        key("delay_ratio", "a number from `0` to `1000`"),
        key("delay_cap", "a duration, as in `10s`"),
    ],
    later: &["max_input_tokens", "max_output_tokens"],
};

const LENGTHS: &str =
    "a number of tokens from `1` to `1000000`, or lengths as in `normal(512, 64)`";
const PIXELS: &str = "a whole number of pixels from `1` to `8192`";
const TOKENS: &str = "a whole number of tokens from `1` to `1000000`";
