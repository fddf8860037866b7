//! A warm-up reads the file by itself: it does not move the place in it.

use tokencanary::measurement::PhaseKind::{self, Profiling, WarmUp};

use super::*;

fn kinds(played: &Played) -> Vec<PhaseKind> {
    let phases = played.records.iter().map(|one| one.phase.as_ref());
    phases.map(|one| one.expect("there are two").kind).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_measured_begins_at_the_beginning_of_the_file() {
    let set = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n{\"text\": \"d\"}\n";
    let flags = "--warmup-request-count 2 --request-count 3 --osl 1";
    let played = bench(set, flags).await;
    assert_eq!(played.texts(), ["a", "b", "a", "b", "c"]);
    let phases = [WarmUp, WarmUp, Profiling, Profiling, Profiling];
    assert_eq!(kinds(&played), phases);
    assert_eq!(played.report.files[0].wraps, 0);
    // Longer than the file: it is begun again by itself.
    let flags = "--warmup-request-count 6 --request-count 4 --osl 1";
    let played = bench(set, flags).await;
    let texts = ["a", "b", "c", "d", "a", "b", "a", "b", "c", "d"];
    assert_eq!(played.texts(), texts);
    assert_eq!(played.report.files[0].wraps, 0);
    let name = &played.report.files[1].name;
    assert!(name.ends_with(" (warm-up)"), "{name}");
    assert_eq!(played.report.files[1].wraps, 1);
}

#[tokio::test(start_paused = true)]
async fn a_fixed_schedule_is_whole_and_finds_none_of_its_prompts_in_the_cache() {
    let row = |at: u64, id: u64| {
        format!(
            "{{\"timestamp\": {at}, \"input_length\": 512, \"output_length\": 1, \"hash_ids\": [{id}]}}\n"
        )
    };
    let trace = [row(0, 1), row(100, 2), row(300, 1)].concat();
    let played = bench(&trace, "--warmup-request-count 2").await;
    assert_eq!(played.sent.len(), 5);
    let begin = played.sent[2].at;
    let times: Vec<u64> = played.times()[2..].iter().map(|at| at - begin).collect();
    assert_eq!(times, [0, 100, 300]);
    let texts = played.texts();
    assert_eq!(texts[2], texts[4], "equal ids are equal blocks");
    for warm in &texts[..2] {
        assert!(!texts[2..].contains(warm), "texts of its own");
        assert_eq!(warm.split(' ').count(), 512, "of the same length");
    }
    let cached: Vec<_> = played.records.iter().map(|one| one.tokens.cached).collect();
    // All but the last block of 16, which is always computed.
    assert_eq!(cached[2..], [Some(0), Some(0), Some(496)]);
}

#[tokio::test(start_paused = true)]
async fn a_cool_down_goes_on_where_the_measured_part_ended() {
    let set = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n{\"text\": \"d\"}\n";
    let phases = "phases: [{ name: warm, kind: warm_up, requests: 1, arrivals: { process: closed, concurrency: 1 } }, { name: run, requests: 2, arrivals: { process: closed, concurrency: 1 } }, { name: cool, kind: cool_down, requests: 1, arrivals: { process: closed, concurrency: 1 } }]";
    let file = Given::new(set);
    let text = format!(
        "seed: 7
targets: [{{ name: sim, url: 'http://sim', model: sim/canary-0.6b, server_metrics: off }}]
probes:
- name: probe
  targets: [sim]
  workload: {{ file: {{ path: {}, output_tokens: 1 }} }}
  {phases}
",
        file.path()
    );
    let config = from_text(&text, Format::Yaml, "c.yaml");
    let mut config = config.unwrap_or_else(|found| panic!("{found}"));
    config.export.http = None;
    let at = (server(1), Vec::new());
    let plan = (config, Extent::default());
    let played = play(plan, at).await.expect("it begins");
    assert_eq!(played.texts(), ["a", "a", "b", "c"]);
}
