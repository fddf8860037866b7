//! Files and rows that cannot be used.

use super::*;

/// Why a run of the file `content` does not begin.
async fn refused(content: &str, flags: &str) -> String {
    let file = Given::new(content);
    let why = match planned(&file, flags) {
        Err(why) => why,
        Ok(plan) => match play(plan, (server(1), Vec::new())).await {
            Ok(_) => panic!("{content} {flags}: it ran"),
            Err(why) => why.to_string(),
        },
    };
    why.replace(file.path(), "FILE")
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_ends_a_run_before_it_begins() {
    let row = "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1, \"hash_ids\": [1]}\n";
    let negative = row.replace(": 5", ": -5");
    for (content, flags, expected) in [
        ("", "", "--input-file: FILE: the file is empty"),
        ("hello\n", "", "--input-file: FILE: "),
        (
            row,
            "--custom-dataset-type nothing",
            "--input-file: format: `nothing`\n  wanted: one of mooncake_trace, ",
        ),
        (
            &format!("{row}{negative}"),
            "",
            "FILE:2: input_length: `-5`\n  wanted: ",
        ),
        (
            "{\"text\": \"a\"}\n",
            "--fixed-schedule",
            "FILE:1: timestamp: `(nothing)`\n  wanted: a time in each row",
        ),
        (
            "{\"image\": \"cat.png\"}\n",
            "",
            "FILE:1: image: `cat.png`\n  wanted: an `http`, `https` or `data:` URL",
        ),
        (
            "{\"text\": \"a\"}\n",
            "--speed 2",
            "--speed: given\n  wanted: a fixed schedule",
        ),
        (
            row,
            "--dataset-sampling-strategy random",
            "--dataset-sampling-strategy: given\n  wanted: a file that is no fixed schedule",
        ),
        (
            row,
            "--fixed-schedule --request-rate 2",
            "--fixed-schedule: other flags say when requests are due",
        ),
    ] {
        let why = refused(content, flags).await;
        assert!(why.starts_with(expected), "{content} {flags}: {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn bad_rows_are_passed_over_and_counted() {
    let set = "{\"text\": \"a\"}\n{\"texd\": \"b\"}\nnot JSON\n{\"text\": \"c\"}\n";
    let played = bench(set, "--skip-bad-rows --request-count 2 --osl 1").await;
    assert_eq!(played.texts(), ["a", "c"]);
    let file = &played.report.files[0];
    assert!(file.skips_bad_rows);
    assert!(file.bad_rows >= 2, "{file:?}");
    assert!(file.listed[0].contains(":2: text: `(nothing)`"), "{file:?}");
    assert!(file.listed[1].contains(":3: "), "{file:?}");
}

#[tokio::test(start_paused = true)]
async fn a_bad_row_far_behind_is_counted_and_does_not_end_the_run() {
    let mut rows: Vec<String> = (0..500)
        .map(|row| format!("{{\"timestamp\": {row}, \"input_length\": 3, \"output_length\": 1, \"hash_ids\": [1]}}"))
        .collect();
    "{\"timestamp\": -1}".clone_into(&mut rows[400]);
    let played = bench(&rows.join("\n"), "").await;
    assert_eq!(played.sent.len(), 499);
    let file = &played.report.files[0];
    assert_eq!((file.bad_rows, file.skips_bad_rows), (1, false));
    assert_eq!(file.wraps, 0, "a fixed schedule is played once");
}
