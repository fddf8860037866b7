//! Questions of known answer: what is asked, and what the answers are found to be worth.

use tokencanary::clock::MonoTime;
use tokencanary::measurement::AnswerResult::{self, Right, Unjudged, Wrong};
use tokencanary::measurement::{KnownKind, Outcome};
use tokencanary::simulator::FaultKind;

use super::*;

/// `bench` with `flags` while `faults` are on.
async fn asked(flags: &str, faults: Vec<Fault>) -> Played {
    let common = "--url http://sim -m sim/canary-0.6b --random-seed 7";
    let flags = common.split(' ').chain(flags.split_whitespace());
    let (mut config, extent) = benchmark(flags).expect("good flags");
    config.targets[0].server_metrics = ServerMetrics::Off;
    let at = (server(1), faults);
    play((config, extent), at).await.expect("it begins")
}

fn results(played: &Played) -> Vec<AnswerResult> {
    let answers = played.records.iter().map(|record| &record.answer);
    answers
        .map(|answer| answer.as_ref().expect("it was a question").result)
        .collect()
}

fn kinds(played: &Played) -> Vec<KnownKind> {
    let answers = played.records.iter().filter_map(|one| one.answer.as_ref());
    answers.map(|answer| answer.wanted.kind).collect()
}

#[tokio::test(start_paused = true)]
async fn questions_are_sent_and_answers_judged() {
    let played = asked("--known-answers --request-count 60", Vec::new()).await;
    assert_eq!(results(&played), [Right; 60]);
    for kind in KnownKind::ALL {
        assert!(kinds(&played).contains(&kind), "{kind:?}");
    }
    for (sent, record) in played.sent.iter().zip(&played.records) {
        let text = sent.text();
        assert!(text.contains("Answer with the"), "{text}");
        // It stops when it has answered: nothing asks it to go on.
        assert_eq!(sent.body["max_tokens"], 64);
        assert_eq!(sent.body.get("ignore_eos"), None);
        assert_eq!(record.tokens.output, Some(1));
        assert_eq!(record.finish_reason.as_deref(), Some("stop"));
        // Both count words and marks; a run of marks is one for the server.
        let counted = record.tokens.requested_input.zip(record.tokens.input);
        let (ours, theirs) = counted.expect("both counted");
        assert!(ours.abs_diff(theirs) <= 3, "{ours} {theirs}: {text}");
        assert!(record.reply.is_none(), "what was said stays in the program");
    }
    let wanted = played.records.iter().filter_map(|one| one.answer.as_ref());
    for answer in wanted {
        let wanted = &*answer.wanted.answer;
        assert!(played.answers.iter().any(|said| said == wanted), "{wanted}");
    }
    let summary = played.report.summary.as_ref().expect("kept");
    let answers = summary.answers.expect("there were questions");
    assert_eq!((answers.right, answers.right_share), (60, Some(1.0)));
    let asked = (summary.wire.notes.len(), summary.wire.output_requested);
    assert_eq!(asked, (0, 0), "no length was asked for, and none missed");
}

#[tokio::test(start_paused = true)]
async fn kinds_and_length_are_those_of_the_flags() {
    let flags = "--known-answers=counting,arithmetic --osl 300 --request-count 40";
    let played = asked(flags, Vec::new()).await;
    assert!(!kinds(&played).contains(&KnownKind::Backwards));
    assert!(kinds(&played).contains(&KnownKind::Counting));
    assert_eq!(played.sent[0].body["max_tokens"], 300);
    let same = asked(flags, Vec::new()).await;
    assert_eq!(played.texts(), same.texts(), "the seed decides");
}

#[tokio::test(start_paused = true)]
async fn another_model_answers_wrongly_and_a_failure_is_not_judged() {
    let fault = |kind, from: u64, lasts| Fault {
        kind,
        from: MonoTime::from_nanos(from * 1_000_000_000),
        lasts: Duration::from_secs(lasts),
    };
    let status = FaultKind::Status {
        code: 500,
        retry_after: None,
    };
    let cut = FaultKind::Cut { after_chunks: 1 };
    let faults = vec![
        fault(FaultKind::WrongAnswers, 3, 3),
        fault(status, 6, 1),
        fault(cut, 7, 1),
    ];
    let flags = "--known-answers --request-rate 1 --arrival-pattern constant --request-count 9";
    let played = asked(flags, faults).await;
    assert_eq!(
        results(&played),
        [
            Right, Right, Right, Wrong, Wrong, Wrong, Unjudged, Unjudged, Right
        ]
    );
    let outcomes: Vec<Outcome> = played.records.iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes[3], Outcome::Ok, "a wrong answer is no failure");
    assert_eq!(outcomes[7], Outcome::StreamCut);
    let summary = played.report.summary.as_ref().expect("kept");
    let answers = summary.answers.expect("there were questions");
    assert_eq!((answers.right, answers.wrong, answers.unjudged), (4, 3, 2));
}

/// A probe whose workload has `keys`.
fn configured(keys: &str, api: &str) -> Result<Config, String> {
    let text = format!(
        "seed: 7
targets: [{{ name: sim, url: 'http://sim', api: {api}, model: sim/canary-0.6b, server_metrics: off }}]
governor: {{ in_flight: 2, requests_per_day: 1M, tokens_per_day: 1G }}
probes:
- name: probe
  targets: [sim]
  workload: {{ {keys} }}
  arrivals: {{ process: constant, rate: 1/s }}
"
    );
    from_text(&text, Format::Yaml, "c.yaml").map_err(|found| found.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_probe_can_ask_and_what_was_refused_is_unjudged_and_counted() {
    let keys = "known_answers: { kinds: [backwards], output_tokens: 9 }";
    for api in ["chat", "completions"] {
        let mut config = configured(keys, api).expect("good");
        config.export.http = None;
        config.governor.requests_per_day = Some(3);
        let extent = Extent {
            count: Some(5),
            ..Extent::default()
        };
        let at = (server(1), Vec::new());
        let played = play((config, extent), at).await.expect("it begins");
        assert_eq!(
            results(&played),
            [Right, Right, Right, Unjudged, Unjudged],
            "{api}"
        );
        assert!(played.sent.iter().all(|one| one.body["max_tokens"] == 9));
        assert_eq!(kinds(&played), [KnownKind::Backwards; 5]);
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    for (keys, api, wanted) in [
        (
            "known_answers: { kinds: [riddle] }",
            "chat",
            "a list of `arithmetic`, `backwards` and `counting`",
        ),
        ("known_answers: { kinds: [] }", "chat", "at least one kind"),
        (
            "known_answers: { kinds: [counting, counting] }",
            "chat",
            "each kind once",
        ),
        (
            "known_answers: {}, cache: warm",
            "chat",
            "a workload has one of",
        ),
        (
            "known_answers: {}, synthetic: { input_tokens: 3 }",
            "chat",
            "a workload has one of",
        ),
        ("known_answers: {}", "embeddings", "answers with no text"),
        (
            "known_answers: { output_tokens: 0 }",
            "chat",
            "from `1` to `1000000`",
        ),
    ] {
        let refused = configured(keys, api).expect_err(keys);
        assert!(refused.contains(wanted), "{keys}: {refused}");
    }
    for (flags, wanted) in [
        ("--known-answers --isl 5", "cannot be used with"),
        (
            "--known-answers --prompt-count words",
            "cannot be used with",
        ),
        ("--known-answers=riddle", "wanted one of arithmetic"),
        (
            "--known-answers --osl normal(9,2)",
            "wanted: a number of tokens",
        ),
        (
            "--known-answers --endpoint-type embeddings",
            "answers with no text",
        ),
    ] {
        let refused = benchmark(flags.split(' ')).expect_err(flags);
        assert!(refused.contains(wanted), "{flags}: {refused}");
    }
}
