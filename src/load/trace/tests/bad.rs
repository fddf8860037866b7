//! Bad input: each is told with line, field, value and what was wanted, and reading goes on.

use std::io::Write;

use super::*;

#[track_caller]
fn check(text: &str, wanted: &[&str]) {
    assert_eq!(lines(text), wanted);
}

const GOOD: &str = "{\"timestamp\":1,\"input_length\":5,\"output_length\":2,\"hash_ids\":[1]}\n";

#[track_caller]
fn second(bad: &str, wanted: &str) {
    // The third row is read all the same.
    let text = format!("{GOOD}{bad}\n{GOOD}");
    check(&text, &["0.001 5/2 [1]x512", wanted, "0.001 5/2 [1]x512"]);
}

#[test]
fn broken_json_is_told_with_its_line() {
    second(
        "{\"timestamp\":1,\"input_length\":5",
        "t:2: row: `\":1,\"input_length\":5`\n  wanted: one JSON object; at column 31: EOF while parsing an object",
    );
    second(
        "{\"timestamp\":NaN,\"input_length\":5}",
        "t:2: row: `{\"timestamp\":NaN,\"input_length\":5}`\n  wanted: one JSON object; at column 14: expected value\n  hint: `NaN` is no JSON; such a value cannot be used",
    );
    second("[1,2]", "t:2: row: `[1,2]`\n  wanted: one JSON object");
}

#[test]
fn a_bad_value_is_told_with_its_field() {
    second(
        "{\"timestamp\":-5,\"input_length\":5,\"hash_ids\":[1]}",
        "t:2: timestamp: `-5`\n  wanted: milliseconds of 0 or more",
    );
    second(
        "{\"timestamp\":\"5\",\"input_length\":5,\"hash_ids\":[1]}",
        "t:2: timestamp: `\"5\"`\n  wanted: milliseconds of 0 or more",
    );
    second(
        "{\"timestamp\":1,\"input_length\":0,\"hash_ids\":[1]}",
        "t:2: input_length: `0`\n  wanted: a whole number of tokens, 1 or more",
    );
    second(
        "{\"timestamp\":1,\"input_length\":5,\"output_length\":0}",
        "t:2: output_length: `0`\n  wanted: a whole number of tokens, 1 or more",
    );
    second(
        "{\"timestamp\":1,\"input_length\":2.5}",
        "t:2: input_length: `2.5`\n  wanted: a whole number of tokens, 1 or more",
    );
    second(
        "{\"timestamp\":1,\"input_length\":5,\"hash_ids\":[-1]}",
        "t:2: hash_ids: `-1`\n  wanted: a list of whole numbers of 0 or more",
    );
    second(
        "{\"timestamp\":1,\"output_length\":5}",
        "t:2: input_length: `(nothing)`\n  wanted: a whole number of tokens, 1 or more; or one of `text_input`, `messages`, `payload`",
    );
    second(
        "{\"input_length\":5,\"output_length\":5}",
        "t:2: timestamp: `(nothing)`\n  wanted: milliseconds of 0 or more; or `delay` in a session",
    );
}

#[test]
fn the_number_of_ids_has_to_fit_the_length() {
    second(
        "{\"timestamp\":1,\"input_length\":513,\"hash_ids\":[1]}",
        // One id for 512 tokens is the whole of the blocks: the rest is a part of one.
        "0.001 513/? [1]x512",
    );
    second(
        "{\"timestamp\":1,\"input_length\":512,\"hash_ids\":[1,2]}",
        "t:2: hash_ids: `2 ids for 512 tokens`\n  wanted: 1 ids, one for each 512 tokens\n  hint: blocks of 256 tokens would fit",
    );
    second(
        "{\"timestamp\":1,\"input_length\":2000,\"hash_ids\":[1,2]}",
        "t:2: hash_ids: `2 ids for 2000 tokens`\n  wanted: 4 ids, one for each 512 tokens\n  hint: blocks of 1024 tokens would fit",
    );
    let options = ReadOptions {
        prefix_hashes: true,
        ..ReadOptions::of(Format::Mooncake)
    };
    let text = b"{\"timestamp\":1,\"input_length\":2000,\"hash_ids\":[1,2]}";
    assert_eq!(
        lines_as(Format::Mooncake, &options, text),
        ["0.001 2000/? [1, 2]x512"]
    );
}

#[test]
fn times_that_go_back_or_mix_units_are_told() {
    let row = |at: &str| format!("{{\"timestamp\":{at},\"input_length\":5,\"hash_ids\":[1]}}\n");
    let text = row("2000") + &row("1999") + &row("2000");
    check(
        &text,
        &[
            "2 5/? [1]x512",
            "t:2: timestamp: `1.999 s after 2 s`\n  wanted: rows in the order of their times\n  hint: sort the file by its times first",
            "2 5/? [1]x512",
        ],
    );
    let text = row("61114") + &row("61.9");
    check(
        &text,
        &[
            "61.114 5/? [1]x512",
            "t:2: timestamp: `0.0619 s after 61.114 s`\n  wanted: all times in one unit\n  hint: the file seems to mix seconds and milliseconds",
        ],
    );
    let chat = |at: &str| {
        format!("{{\"chat_id\":1,\"timestamp\":{at},\"input_length\":5,\"hash_ids\":[]}}\n")
    };
    let text = chat("61.5") + &chat("61900") + &chat("62");
    check(
        &text,
        &[
            "61.5 5/? 1",
            "t:2: timestamp: `61900 s after 61.5 s`\n  wanted: all times in one unit\n  hint: the file seems to mix seconds and milliseconds",
            "62 5/? 1",
        ],
    );
    // A gap is no change of unit.
    check(
        &(row("12") + &row("12500")),
        &["0.012 5/? [1]x512", "12.5 5/? [1]x512"],
    );
}

#[test]
fn a_bailian_file_read_as_mooncake_is_told() {
    let text =
        b"{\"chat_id\":1,\"timestamp\":61.114,\"input_length\":100,\"hash_ids\":[1,2,3,4,5,6,7]}";
    assert_eq!(
        lines_as(Format::Mooncake, &ReadOptions::of(Format::Mooncake), text),
        [
            "t:1: hash_ids: `7 ids for 100 tokens`\n  wanted: 1 ids, one for each 512 tokens\n  hint: blocks of 16 tokens would fit"
        ]
    );
}

#[test]
fn wrong_columns_of_a_table_are_told() {
    let options = ReadOptions::of(Format::BurstGpt);
    assert_eq!(
        lines_as(
            Format::BurstGpt,
            &options,
            b"Timestamp,Request tokens\n5,472\n"
        ),
        ["t:2: header: `Timestamp,Request tokens`\n  wanted: a column `Response tokens`"]
    );
    check(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n\
         2023-11-16 18:15:46.6805900,374\n\
         yesterday,374,4\n\
         2023-11-16 18:15:46.6805900,,4\n\
         2023-11-16 18:15:46.6805900,3,-4\n\
         2023-11-16 18:15:46.6805900,3,4\n",
        &[
            "t:2: row: `2 columns`\n  wanted: 3 columns, as the header has",
            "t:3: TIMESTAMP: `yesterday`\n  wanted: an instant as `2023-11-16 18:15:46.6805900`",
            "t:4: ContextTokens: `(nothing)`\n  wanted: a value in this column",
            "t:5: GeneratedTokens: `-4`\n  wanted: a whole number of tokens, 1 or more",
            "1700158546.68059 3/4",
        ],
    );
    check(
        "Timestamp,Model,Request tokens,Response tokens\nnan,m,1,1\n-1,m,1,1\n5,m,0,1\n",
        &[
            "t:2: Timestamp: `nan`\n  wanted: seconds of 0 or more",
            "t:3: Timestamp: `-1`\n  wanted: seconds of 0 or more",
            "t:4: Request tokens: `0`\n  wanted: a whole number of tokens, 1 or more",
        ],
    );
}

#[test]
fn a_very_long_line_is_told_in_bounded_memory() {
    let options = ReadOptions {
        longest_line: 100,
        ..ReadOptions::of(Format::Mooncake)
    };
    let text = format!("{GOOD}{}\n{GOOD}", "x".repeat(5_000));
    assert_eq!(
        lines_as(Format::Mooncake, &options, text.as_bytes()),
        [
            "0.001 5/2 [1]x512",
            "t:2: row: `longer than 100 bytes`\n  wanted: one row on each line",
            "0.001 5/2 [1]x512",
        ]
    );
    // In a table an open quote could hold the rest of the file.
    let options = ReadOptions {
        longest_line: 100_000,
        ..ReadOptions::of(Format::Azure)
    };
    let text = format!(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n\"{}",
        "x\n".repeat(500_000)
    );
    assert_eq!(
        lines_as(Format::Azure, &options, text.as_bytes()),
        ["t: after line 1: a row longer than 100000 bytes"]
    );
}

#[test]
fn a_truncated_file_is_told_after_its_last_row() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder
        .write_all(GOOD.as_bytes())
        .expect("memory can be written");
    let mut packed = encoder.finish().expect("memory can be written");
    packed.truncate(packed.len() - 3);
    let told = lines_as(
        Format::Mooncake,
        &ReadOptions::of(Format::Mooncake),
        &packed,
    );
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], "0.001 5/2 [1]x512");
    assert!(
        told[1].starts_with("t: after line 1: ")
            && told[1].ends_with("the compressed data ends too early, as after a broken download"),
        "{told:?}"
    );
}

#[test]
fn what_is_wrong_within_a_session_is_told_with_its_place() {
    check(
        "{\"id\":\"a\",\"block_size\":64,\"hash_id_scope\":\"local\",\"requests\":[\n\
         {\"t\":-1,\"in\":5},{\"t\":1,\"in\":64,\"hash_ids\":[1,2]},\n\
         {\"t\":1,\"type\":\"subagent\",\"agent_id\":\"x\",\"requests\":[{\"t\":2,\"in\":0}]},{\"t\":1,\"in\":5}]}\n\
         {\"id\":\"b\",\"block_size\":0,\"requests\":[]}\n\
         {\"id\":\"c\",\"block_size\":64,\"hash_id_scope\":\"global\",\"requests\":[]}\n\
         {\"id\":\"d\",\"block_size\":64,\"requests\":[",
        &[
            "t:1: requests[0].t: `-1`\n  wanted: seconds of 0 or more",
            "t:1: requests[1].hash_ids: `2 ids for 64 tokens`\n  wanted: 1 ids, one for each 64 tokens\n  hint: blocks of 32 tokens would fit",
            "t:1: requests[2].requests[0].in: `0`\n  wanted: a whole number of tokens, 1 or more",
            "1 5/? own a",
            "t:4: block_size: `0`\n  wanted: a whole number of tokens, 1 or more",
            "t:5: hash_id_scope: `global`\n  wanted: `local`",
            "t:6: row: `the end of the file`\n  wanted: the end of the session that begins here",
        ],
    );
}

#[test]
fn captures_and_rounds_tell_what_they_lack() {
    check(
        "{\"captureData\":{},\"eventMetadata\":{\"inferenceTime\":\"soon\"}}\n\
         {\"captureData\":{},\"eventMetadata\":{\"inferenceTime\":\"2026-04-29T00:00:00Z\"}}\n\
         {\"captureData\":{\"endpointInput\":{\"data\":\"1,2\",\"encoding\":\"CSV\"}},\"eventMetadata\":{\"inferenceTime\":\"2026-04-29T00:00:00Z\"}}\n\
         {\"captureData\":{\"endpointInput\":{\"data\":\"*\"}},\"eventMetadata\":{\"inferenceTime\":\"2026-04-29T00:00:00Z\"}}\n\
         {\"captureData\":{\"endpointInput\":{\"data\":\"{}\",\"encoding\":\"JSON\"}},\"eventMetadata\":{\"inferenceTime\":\"2026-04-29T00:00:00Z\"}}\n",
        &[
            "t:1: eventMetadata.inferenceTime: `soon`\n  wanted: an instant as `2026-04-29T00:00:00Z`",
            "t:2: captureData.endpointInput.data: `(nothing)`\n  wanted: a value",
            "t:3: encoding: `CSV`\n  wanted: `JSON` or `BASE64`",
            "t:4: captureData.endpointInput.data: `*`\n  wanted: base64, as `encoding` says",
            "t:5: captureData.endpointInput.data: `{}`\n  wanted: a body of chat completions, with `messages`",
        ],
    );
    check(
        "{\"round_index\":1,\"input_tokens_total\":5}\n\
         {\"session_id\":\"a\",\"round_index\":1,\"input_tokens_total\":5,\"prefix_tokens\":6}\n\
         {\"session_id\":\"a\",\"round_index\":1,\"input_tokens_total\":4000000000}\n",
        &[
            "t:1: session_id: `(nothing)`\n  wanted: a value",
            "t:2: prefix_tokens: `6`\n  wanted: at most the 5 tokens of the prompt",
            "t:3: input_tokens_total: `4000000000`\n  wanted: at most 100000000 tokens",
        ],
    );
}

#[test]
fn prompts_have_no_rows_of_a_trace() {
    let options = ReadOptions::of(Format::ShareGpt);
    let refused = Rows::open(Format::ShareGpt, options, Cursor::new(Vec::new()), "t");
    let error = refused.err().expect("refused").to_string();
    assert_eq!(error, "`sharegpt` has no rows of a trace in a text file");
}
