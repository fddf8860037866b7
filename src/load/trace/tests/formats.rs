//! Good files of every format.

use super::*;

#[track_caller]
fn check(text: &str, wanted: &[&str]) {
    assert_eq!(lines(text), wanted);
}

#[test]
fn mooncake_is_in_milliseconds_and_blocks_of_512() {
    check(
        "{\"timestamp\": 0, \"input_length\": 1025, \"output_length\": 500, \"hash_ids\": [0, 1, 2]}\n\
         {\"timestamp\": 0, \"input_length\": 512, \"output_length\": 1, \"hash_ids\": [46]}\n\
         {\"timestamp\": 3001, \"input_length\": 13, \"output_length\": 893, \"hash_ids\": [46]}\n",
        &[
            "0 1025/500 [0, 1, 2]x512",
            "0 512/1 [46]x512",
            "3.001 13/893 [46]x512",
        ],
    );
}

#[test]
fn mooncake_may_have_sessions_pauses_and_prompts() {
    let text = "{\"session_id\":\"a\",\"input_length\":7,\"timestamp\":1.5}\n\
         {\"session_id\":\"a\",\"input_length\":9,\"output_length\":2,\"delay\":250}\n\
         {\"timestamp\":4,\"text_input\":\"h\\u00e9\",\"output_length\":3}\n\
         {\"timestamp\":5,\"messages\":[{\"role\":\"user\"}]}\n\
         {\"timestamp\":6,\"payload\":{\"a\":1},\"hash_ids\":null}\n";
    check(
        text,
        &[
            "0.0015 7/? a",
            "? 9/2 a +0.25",
            "0.004 ?/3",
            "0.005 ?/?",
            "0.006 ?/?",
        ],
    );
    let options = ReadOptions {
        bodies: Bodies::Keep,
        ..ReadOptions::of(Format::Mooncake)
    };
    assert_eq!(
        lines_as(Format::Mooncake, &options, text.as_bytes())[2..],
        [
            "0.004 ?/3 text hé",
            "0.005 ?/? messages [{\"role\":\"user\"}]",
            "0.006 ?/? payload {\"a\":1}",
        ]
    );
}

#[test]
fn bailian_is_in_seconds_and_blocks_of_16_and_has_chains() {
    check(
        "{\"chat_id\": 159, \"parent_chat_id\": -1, \"timestamp\": 61.114, \"input_length\": 33, \"output_length\": 132, \"type\": \"text\", \"turn\": 1, \"hash_ids\": [8, 9, 10]}\n\
         {\"chat_id\": 160, \"parent_chat_id\": 159, \"timestamp\": 61.114, \"input_length\": 16, \"output_length\": 1, \"type\": \"search\", \"turn\": 2, \"hash_ids\": [8]}\n\
         {\"chat_id\": 161, \"parent_chat_id\": 160, \"timestamp\": 70, \"input_length\": 15, \"output_length\": 1, \"type\": \"text\", \"turn\": 3, \"hash_ids\": [8]}\n\
         {\"chat_id\": 162, \"parent_chat_id\": 7, \"timestamp\": 70.25, \"input_length\": 1, \"output_length\": 1, \"type\": \"file\", \"turn\": 4, \"hash_ids\": []}\n",
        &[
            "61.114 33/132 [8, 9, 10]x16 159.0",
            "61.114 16/1 [8]x16 159.1",
            "70 15/1 [8]x16 159.2",
            "70.25 1/1 7.3",
        ],
    );
}

#[test]
fn burst_gpt_is_found_by_its_columns_and_keeps_failures() {
    check(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
         5,ChatGPT,472,18,490,Conversation log\n\
         45,ChatGPT,1087,0,1087,Conversation log\n\
         118.5,GPT-4,0,0,0,API log\n",
        &[
            "5 472/18 ChatGPT",
            "45 1087/? ChatGPT failed",
            "118.5 ?/? GPT-4 failed",
        ],
    );
    check(
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\r\n\
         5,17,3.5,\"GPT-4, new\",472.0,18.0,490,Conversation log\r\n\
         6,,,ChatGPT,1,2,3,API log",
        &["5 472/18 17 took 3.5 GPT-4, new", "6 1/2 ChatGPT"],
    );
}

#[test]
fn azure_has_seven_digits_and_no_last_line_end() {
    check(
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
         2023-11-16 18:15:46.6805900,374,44\r\n\
         2023-11-16 18:15:50.9951690,2,109",
        &["1700158546.68059 374/44", "1700158550.995169 2/109"],
    );
    check(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n\
         2024-05-10 00:00:00.009930+00:00,2162,5\n\
         2024-05-10 00:00:01+00:00,2,6\n",
        &["1715299200.00993 2162/5", "1715299201 2/6"],
    );
    check(
        "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n\
         2025-01-02 00:00:00.1234567,2,2162,5\n",
        &["1735776000.1234567 2162/5 2 images"],
    );
}

#[test]
fn the_minimal_trace_is_in_seconds() {
    check(
        "{\"timestamp\":0.25,\"input_length\":10,\"output_length\":5}\n",
        &["0.25 10/5"],
    );
    // The same as milliseconds, if one says so.
    let options = ReadOptions::of(Format::Mooncake);
    let text = b"{\"timestamp\":250,\"input_length\":10,\"output_length\":5}";
    assert_eq!(lines_as(Format::Mooncake, &options, text), ["0.25 10/5"]);
}

#[test]
fn captures_of_sagemaker_are_texts_within_texts() {
    // {"messages":[{"role":"user","content":"hi"}],"max_tokens":50} and its answer.
    let request = "{\\\"model\\\":\\\"m\\\",\\\"messages\\\":[{\\\"role\\\":\\\"user\\\",\\\"content\\\":\\\"hi\\\"}],\\\"max_tokens\\\":50}";
    let answer = "{\\\"usage\\\":{\\\"prompt_tokens\\\":11,\\\"completion_tokens\\\":7}}";
    let stream = "data: {\\\"usage\\\":null}\\n\\ndata: {\\\"usage\\\":{\\\"prompt_tokens\\\":12,\\\"completion_tokens\\\":8}}\\n\\ndata: [DONE]\\n\\n";
    let row = |output: &str, at: &str| {
        format!(
            "{{\"captureData\":{{\"endpointInput\":{{\"observedContentType\":\"application/json\",\"mode\":\"INPUT\",\"data\":\"{request}\",\"encoding\":\"JSON\"}}{output}}},\"eventMetadata\":{{\"eventId\":\"e\",\"inferenceTime\":\"{at}\"}},\"eventVersion\":\"0\"}}\n"
        )
    };
    let output =
        |text: &str| format!(",\"endpointOutput\":{{\"data\":\"{text}\",\"encoding\":\"JSON\"}}");
    // {"messages":[],"max_completion_tokens":9} in base64.
    let base64 = "{\"captureData\":{\"endpointInput\":{\"data\":\"eyJtZXNzYWdlcyI6W10sIm1heF9jb21wbGV0aW9uX3Rva2VucyI6OX0=\",\"encoding\":\"BASE64\"}},\"eventMetadata\":{\"inferenceTime\":\"1970-01-01T00:00:03Z\"}}";
    let text = row(&output(answer), "1970-01-01T00:00:02Z")
        + &row(&output(stream), "1970-01-01T00:00:01Z")
        + &row("", "1970-01-01T00:00:01Z")
        + &row(&output("<html>"), "1970-01-01T00:00:01Z")
        + base64;
    check(
        &text,
        &["2 11/7 m", "1 12/8 m", "1 ?/50 m", "1 ?/50 m", "3 ?/9"],
    );
}

#[test]
fn weka_sessions_have_ids_and_agents_of_their_own() {
    let text = "{\n  \"id\": \"s1\", \"models\": [\"m\"], \"block_size\": 64, \"hash_id_scope\": \"local\",\n  \"requests\": [\n\
        {\"t\": 0.0, \"type\": \"n\", \"model\": \"m\", \"in\": 130, \"out\": 5, \"hash_ids\": [1, 2], \"api_time\": 1.5},\n\
        {\"t\": 2.0, \"type\": \"subagent\", \"agent_id\": \"a1\", \"requests\": [{\"t\": 0.5, \"type\": \"s\", \"in\": 64, \"out\": 0, \"hash_ids\": [1], \"ttft\": 0.25}]},\n\
        {\"t\": 9.0, \"type\": \"subagent\", \"agent_id\": \"a2\", \"requests\": [{\"t\": 9.5, \"type\": \"n\", \"in\": 64, \"out\": 1, \"hash_ids\": []}]},\n\
        {\"t\": 10.5, \"type\": \"s\", \"in\": 200, \"out\": 6, \"hash_ids\": [1, 2], \"think_time\": 0.75}\n  ]\n}\n\
        {\"id\": \"s2\", \"block_size\": 64, \"requests\": []}\n\
        {\"id\": \"s3\", \"block_size\": 32, \"requests\": [{\"t\": 1, \"in\": 32, \"out\": 1, \"hash_ids\": [1]}]}\n";
    check(
        text,
        &[
            "0 130/5 [1, 2]x64 own s1 took 1.5 m",
            "2.5 64/? [1]x64 own s1/a1 ttft 0.25",
            "9.5 64/1 own s1/a2",
            "10.5 200/6 [1, 2]x64 own s1 +0.75",
            "1 32/1 [1]x32 own s3",
        ],
    );
}

#[test]
fn tracelab_rounds_get_blocks_from_what_was_cached() {
    let row = |session: &str, input: u32, prefix: u32, events: &str| {
        format!(
            "{{\"session_id\":\"{session}\",\"round_index\":3,\"model\":\"m\",\"input_tokens_total\":{input},\"prefix_tokens\":{prefix},\"newly_append_tokens\":{},\"output_tokens\":4,\"timing_events\":[{events}]}}\n",
            input - prefix
        )
    };
    let events = "{\"event_type\":\"user_message\",\"timestamp\":\"1970-01-01T00:00:01Z\"},\
        {\"event_type\":\"tool_result\",\"timestamp\":\"1970-01-01T00:00:02Z\"},\
        {\"event_type\":\"usage_report\",\"timestamp\":\"1970-01-01T00:00:09Z\"},\
        {\"event_type\":\"text\",\"timestamp\":\"1970-01-01T00:00:02.500Z\"}";
    let text = row("a", 130, 0, events)
        + &row("b", 64, 0, "")
        + &row("a", 200, 130, "")
        + &row("a", 200, 70, "")
        + &row("b", 10, 0, "")
        + &row("b", 128, 100, "");
    check(
        &text,
        &[
            "2 130/4 [0, 1]x64 a.3 took 0.5 m",
            "? 64/4 [2]x64 b.3 m",
            "? 200/4 [0, 1, 3]x64 a.3 m",
            "? 200/4 [0, 4, 5]x64 a.3 m",
            "? 10/4 b.3 m",
            // 100 tokens were cached, but of the round before nothing is known.
            "? 128/4 [6, 7]x64 b.3 m",
        ],
    );
}
