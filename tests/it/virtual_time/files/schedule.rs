//! A trace with times is a fixed schedule, with prompts that share what their rows share.

use super::*;

const TRACE: &str = r#"{"timestamp": 1000, "input_length": 1100, "output_length": 3, "hash_ids": [1, 2, 3]}
{"timestamp": 1500, "input_length": 1100, "output_length": 2, "hash_ids": [1, 2, 4]}
{"timestamp": 1500, "input_length": 700, "output_length": 2, "hash_ids": [1, 5]}
{"timestamp": 9000, "input_length": 30, "output_length": 1, "hash_ids": [6]}
"#;

#[tokio::test(start_paused = true)]
async fn a_trace_is_sent_when_it_was_recorded() {
    let played = bench(TRACE, "").await;
    assert_eq!(played.times(), [0, 500, 500, 8_000]);
    assert_eq!(played.counts(), [1100, 1100, 700, 30]);
    let lengths: Vec<_> = played
        .sent
        .iter()
        .map(|sent| sent.body["max_tokens"].clone())
        .collect();
    assert_eq!(lengths, [3, 2, 2, 1]);
    assert_eq!(played.records.len(), 4);
    for (record, at) in played.records.iter().zip([0, 500, 500, 8_000]) {
        assert_eq!(record.timeline.intended.as_nanos() / 1_000_000, at);
        assert_eq!(record.timeline.slot_free, Some(record.timeline.intended));
    }
    assert_eq!(played.records[0].tokens.requested_input, Some(1100));
}

#[tokio::test(start_paused = true)]
async fn rows_share_the_blocks_that_their_ids_say() {
    let played = bench(TRACE, "").await;
    let words: Vec<Vec<&str>> = played.sent.iter().map(Sent::words).collect();
    assert_eq!(words[0][..1024], words[1][..1024], "two whole blocks");
    assert_ne!(words[0][1024..1030], words[1][1024..1030]);
    assert_eq!(words[0][..512], words[2][..512], "one whole block");
    assert_ne!(words[0][512..518], words[2][512..518]);
    assert_ne!(words[0][..6], words[3][..6]);
    let again = bench(TRACE, "").await;
    assert_eq!(played.texts(), again.texts(), "the seed decides the texts");
}

#[tokio::test(start_paused = true)]
async fn blocks_have_the_size_that_is_said() {
    let trace = r#"{"timestamp": 0, "input_length": 20, "output_length": 1, "hash_ids": [1, 2]}
{"timestamp": 0, "input_length": 20, "output_length": 1, "hash_ids": [1, 3]}
"#;
    let played = bench(trace, "--isl-block-size 16").await;
    let (one, other) = (played.sent[0].words(), played.sent[1].words());
    assert_eq!(one[..16], other[..16]);
    assert_ne!(one[16..], other[16..]);
}

#[tokio::test(start_paused = true)]
async fn a_window_is_played_with_its_offset_speed_and_gaps() {
    for (flags, expected) in [
        ("--fixed-schedule-start-offset 1200", vec![300, 300, 7_800]),
        (
            "--fixed-schedule-start-offset 1200 --fixed-schedule-auto-offset",
            vec![0, 0, 7_500],
        ),
        ("--fixed-schedule-end-offset 1500", vec![0, 500, 500]),
        (
            "--fixed-schedule-start-offset 1500 --fixed-schedule-end-offset 9000",
            vec![0, 0, 7_500],
        ),
        ("--speed 2", vec![0, 250, 250, 4_000]),
        (
            "--synthesis-speedup-ratio 0.5",
            vec![0, 1_000, 1_000, 16_000],
        ),
        ("--trace-idle-gap-cap-seconds 2", vec![0, 500, 500, 2_500]),
        ("--fixed-schedule --request-count 2", vec![0, 500]),
        ("--benchmark-duration 1", vec![0, 500, 500]),
    ] {
        assert_eq!(bench(TRACE, flags).await.times(), expected, "{flags}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_loads_leave_the_times_out_and_begin_the_file_again() {
    for (flags, expected) in [
        ("--no-fixed-schedule --request-count 3", vec![0, 3, 5]),
        ("--ignore-trace-delays --request-count 3", vec![0, 3, 5]),
        (
            "--request-rate 10 --arrival-pattern constant --request-count 6",
            vec![0, 100, 200, 300, 400, 500],
        ),
    ] {
        let played = bench(TRACE, flags).await;
        assert_eq!(played.times(), expected, "{flags}");
        let wraps = u64::from(played.sent.len() > 4);
        assert!(played.report.files[0].wraps >= wraps, "{flags}");
        assert!(played.counts()[..3] == [1100, 1100, 700], "{flags}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cap_makes_rows_wait_in_order() {
    let file = Given::new(TRACE);
    let plan = planned(&file, "--concurrency 1").expect("good flags");
    let played = play(plan, (server(1_000), Vec::new()))
        .await
        .expect("it begins");
    // Three tokens end 1,002 ms after the first row, two 1,001 ms after the second.
    assert_eq!(played.times(), [0, 1_002, 2_003, 8_000]);
    let intended: Vec<u64> = played
        .records
        .iter()
        .map(|record| record.timeline.intended.as_nanos() / 1_000_000)
        .collect();
    assert_eq!(intended, [0, 500, 500, 8_000], "they were due before");
}

#[tokio::test(start_paused = true)]
async fn a_long_trace_comes_through_the_queue_whole_and_in_order() {
    let rows: Vec<String> = (0..2_000)
        .map(|row| {
            format!(
                "{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": 1, \"hash_ids\": [{row}]}}",
                row * 10,
                row % 100 + 1
            )
        })
        .collect();
    let played = bench(&rows.join("\n"), "").await;
    let times: Vec<u64> = (0..2_000).map(|row| row * 10).collect();
    assert_eq!(played.times(), times);
    let counts: Vec<usize> = (0..2_000).map(|row| row % 100 + 1).collect();
    assert_eq!(played.counts(), counts);
    let lagged = played.records.iter().filter(|record| {
        record
            .timeline
            .start
            .is_some_and(|start| start > record.timeline.intended)
    });
    assert_eq!(lagged.count(), 0, "reading keeps ahead");
}

#[tokio::test(start_paused = true)]
async fn instants_and_unordered_rows_are_put_on_one_clock() {
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,12,2\r\n2023-11-16 18:15:47.6805900,10,1";
    let played = bench(azure, "").await;
    assert_eq!(
        (played.times(), played.counts()),
        (vec![0, 1_000], vec![12, 10])
    );
    assert_ne!(
        played.sent[0].words()[..6],
        played.sent[1].words()[..6],
        "rows without ids share nothing"
    );
}
