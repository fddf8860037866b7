//! Converting: what is lost is said, and what both formats carry comes back.

use proptest::prelude::*;

use super::*;

fn converted(from: Format, to: Format, block_tokens: u32, text: &str) -> (String, Losses) {
    let mut out = Vec::new();
    let mut writer = TraceWriter::new(to, from.clock(), block_tokens, &mut out).expect("written");
    for mut row in rows(from, text.as_bytes()) {
        writer.write(&mut row).expect("it can be written");
    }
    let (_, losses) = writer.finish().expect("memory can be written");
    (String::from_utf8(out).expect("text"), losses)
}

fn losses(of: &[(&'static str, u64)]) -> Losses {
    of.iter().copied().collect()
}

#[test]
fn azure_becomes_mooncake_and_loses_its_day() {
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
        2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,2,109";
    let (text, lost) = converted(Format::Azure, Format::Mooncake, 512, azure);
    assert_eq!(
        text,
        "{\"input_length\":374,\"output_length\":44,\"timestamp\":0}\n\
         {\"input_length\":2,\"output_length\":109,\"timestamp\":4314.579}\n"
    );
    assert_eq!(
        lost,
        losses(&[("time of day: times count from the first row", 1)])
    );
}

#[test]
fn bailian_becomes_mooncake_with_larger_blocks() {
    let ids: Vec<String> = (100..140).map(|id| id.to_string()).collect();
    let bailian = format!(
        "{{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":61.114,\"input_length\":640,\"output_length\":9,\"turn\":1,\"hash_ids\":[{}]}}\n",
        ids.join(",")
    );
    let (text, lost) = converted(Format::Bailian, Format::Mooncake, 512, &bailian);
    // Blocks 0 to 31 end with id 131, the rest with 139.
    assert_eq!(
        text,
        "{\"hash_ids\":[131,139],\"input_length\":640,\"output_length\":9,\"session_id\":\"1\",\"timestamp\":61114}\n"
    );
    assert_eq!(
        lost,
        losses(&[(
            "ids of smaller blocks: one for each larger block is kept",
            1
        )])
    );
    let (text, lost) = converted(Format::Bailian, Format::Mooncake, 16, &bailian);
    assert!(text.starts_with("{\"hash_ids\":[100,101,"), "{text}");
    assert_eq!(lost, Losses::new());
}

#[test]
fn mooncake_becomes_bailian_with_chains() {
    let mooncake = "{\"timestamp\":1500,\"input_length\":40,\"output_length\":9,\"hash_ids\":[7],\"session_id\":\"a\"}\n\
        {\"timestamp\":1500,\"input_length\":20,\"output_length\":9,\"hash_ids\":[8]}\n\
        {\"timestamp\":2000.5,\"input_length\":15,\"output_length\":9,\"hash_ids\":[7],\"session_id\":\"a\",\"delay\":5}\n";
    let (text, lost) = converted(Format::Mooncake, Format::Bailian, 16, mooncake);
    assert_eq!(
        text,
        "{\"chat_id\":0,\"hash_ids\":[224,225,226],\"input_length\":40,\"output_length\":9,\"parent_chat_id\":-1,\"timestamp\":1.5,\"turn\":1,\"type\":\"text\"}\n\
         {\"chat_id\":1,\"hash_ids\":[256,257],\"input_length\":20,\"output_length\":9,\"parent_chat_id\":-1,\"timestamp\":1.5,\"turn\":1,\"type\":\"text\"}\n\
         {\"chat_id\":2,\"hash_ids\":[224],\"input_length\":15,\"output_length\":9,\"parent_chat_id\":0,\"timestamp\":2.0005,\"turn\":2,\"type\":\"text\"}\n"
    );
    assert_eq!(
        lost,
        losses(&[("names of sessions", 2), ("pauses before turns", 1)])
    );
}

#[test]
fn burst_gpt_keeps_failures_and_others_say_that_they_do_not() {
    let burst = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
        5,\"a,b\",3.5,GPT-4,472,18,490,Conversation log\n6.25,,,ChatGPT,10,0,10,API log\n";
    let (text, lost) = converted(Format::BurstGpt, Format::BurstGpt, 512, burst);
    assert_eq!((text.as_str(), lost), (burst, Losses::new()));
    let (text, lost) = converted(Format::BurstGpt, Format::Mooncake, 512, burst);
    assert_eq!(
        text,
        "{\"input_length\":472,\"output_length\":18,\"session_id\":\"a,b\",\"timestamp\":5000}\n\
         {\"input_length\":10,\"timestamp\":6250}\n"
    );
    assert_eq!(
        lost,
        losses(&[
            ("name of the model", 2),
            ("that the request failed", 1),
            ("time the recorded server took", 1)
        ])
    );
}

#[test]
fn weka_sessions_follow_their_first_request_by_pauses() {
    let weka = "{\"id\":\"s1\",\"block_size\":64,\"requests\":[\
        {\"t\":0,\"in\":64,\"out\":5,\"hash_ids\":[1],\"api_time\":1.5},\
        {\"t\":2,\"in\":128,\"out\":5,\"hash_ids\":[1,2]}]}\n\
        {\"id\":\"s2\",\"block_size\":64,\"requests\":[{\"t\":0,\"in\":64,\"out\":5,\"hash_ids\":[1]}]}";
    let (text, _) = converted(Format::Weka, Format::Mooncake, 64, weka);
    assert_eq!(
        text,
        "{\"hash_ids\":[4294967297],\"input_length\":64,\"output_length\":5,\"session_id\":\"s1\",\"timestamp\":0}\n\
         {\"delay\":500,\"hash_ids\":[4294967297,4294967298],\"input_length\":128,\"output_length\":5,\"session_id\":\"s1\"}\n\
         {\"hash_ids\":[8589934593],\"input_length\":64,\"output_length\":5,\"session_id\":\"s2\",\"timestamp\":0}\n"
    );
}

#[test]
fn what_a_format_needs_is_told() {
    let mut out = Vec::new();
    let mut writer =
        TraceWriter::new(Format::Minimal, Clock::Start, 512, &mut out).expect("written");
    let mut row = TraceRow {
        at: Some(Duration::ZERO),
        input_tokens: Some(5),
        ..TraceRow::default()
    };
    let Err(WriteError::Row(fault)) = writer.write(&mut row) else {
        panic!("there is no length of the answer");
    };
    assert_eq!(fault.field, "output_length");
    assert!(TraceWriter::new(Format::Weka, Clock::Start, 512, Vec::new()).is_none());
}

/// A row with what every written format carries, at most 100 ns fine.
fn plain_row() -> impl Strategy<Value = (u64, u32, u32)> {
    (0..10_000_000_u64, 1..200_000_u32, 1..5_000_u32)
}

proptest! {
    #[test]
    fn what_both_formats_carry_comes_back(
        given in prop::collection::vec(plain_row(), 1..20),
        to in prop::sample::select(Format::WRITTEN.to_vec()),
    ) {
        let mut at = 0;
        let mut lines = Vec::new();
        for (gap, input, output) in &given {
            // In steps of 100 ns, in milliseconds.
            at += gap;
            let time = format!("{}.{:04}", at / 10_000, at % 10_000);
            lines.push(format!(
                "{{\"timestamp\":{time},\"input_length\":{input},\"output_length\":{output},\"session_id\":\"s\"}}\n"
            ));
        }
        let text = lines.concat();
        let (there, _) = converted(Format::Mooncake, to, 512, &text);
        let (back, _) = converted(to, Format::Mooncake, 512, &there);
        let plain = |text: &str| -> Vec<_> {
            let read = rows(Format::Mooncake, text.as_bytes());
            let first = if to == Format::Azure { read[0].at } else { Some(Duration::ZERO) };
            read.iter()
                .map(|row| (row.at.zip(first).map(|(at, first)| at.saturating_sub(first)), row.input_tokens, row.output_tokens))
                .collect()
        };
        prop_assert_eq!(plain(&text), plain(&back));
    }

    #[test]
    fn sharing_survives_other_block_sizes(
        given in prop::collection::vec((0..6_u64, 1..6_000_u32), 1..20),
    ) {
        // Prompts of the same tree are prefixes of one another: ids by tree and place.
        let lines: Vec<String> = given
            .iter()
            .map(|(tree, input)| {
                let whole = u64::from(input / 512);
                let mut ids: Vec<String> = (0..whole).map(|place| (tree * 100 + place).to_string()).collect();
                if input % 512 > 0 {
                    // A part block is its own, by its length.
                    ids.push((1_000 + tree * 1_000_000 + u64::from(*input)).to_string());
                }
                format!("{{\"timestamp\":0,\"input_length\":{input},\"output_length\":1,\"hash_ids\":[{}]}}\n", ids.join(","))
            })
            .collect();
        let text = lines.concat();
        let (fine, _) = converted(Format::Mooncake, Format::Bailian, 16, &text);
        let (back, _) = converted(Format::Bailian, Format::Mooncake, 512, &fine);
        let shared = |text: &str| -> Vec<Vec<usize>> {
            let read = rows(Format::Mooncake, text.as_bytes());
            read.iter()
                .map(|a| {
                    read.iter()
                        .map(|b| a.blocks.iter().zip(&b.blocks).take_while(|(a, b)| a == b).count())
                        .collect()
                })
                .collect()
        };
        prop_assert_eq!(shared(&text), shared(&back));
    }
}
