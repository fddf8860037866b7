//! The file as its users get it, and that whatever a server says stays in its place.

use proptest::prelude::*;

use super::super::number::{decimal, grouped};
use super::*;
use crate::config::{Config, Format, from_text};

/// The file of `draft`, as `check` reads it.
fn read(draft: &Draft) -> Config {
    let file = canary_file(draft);
    from_text(&file, Format::Yaml, "c.yaml").unwrap_or_else(|found| panic!("{found}\n{file}"))
}

fn draft() -> Draft {
    Draft {
        name: "local".to_owned(),
        url: "http://127.0.0.1:8000".to_owned(),
        key: None,
        ca: None,
        api: Api::Chat,
        model: Some("Qwen/Qwen3-0.6B".to_owned()),
        manner: Manner::USUAL,
        pace: Pace::Usual,
        seen: None,
        plan: Vec::new(),
    }
}

fn seen() -> Seen {
    Seen {
        engine: Some(Engine::Vllm),
        version: Some("0.11.0".to_owned()),
        others: Vec::new(),
        page: PageSaid::Read {
            url: "http://127.0.0.1:8000/metrics".to_owned(),
            lacks: vec![("kv_usage", vec!["kv_cache_pressure"]), ("itl", vec![])],
            never: vec![],
        },
        length: Some(LengthSaid::Exact),
    }
}

#[test]
fn a_file_has_what_was_seen_above_and_a_word_for_each_key() {
    let file = canary_file(&Draft {
        seen: Some(seen()),
        plan: vec!["a day takes 8,640 requests".to_owned()],
        ..draft()
    });
    insta::assert_snapshot!(file, @r#"
    # Written by `tokencanary init`. `tokencanary check -c FILE` asks the server again and prints the
    # plan, `tokencanary run -c FILE` is the daemon. docs/configuration.md describes every key.
    #
    # What a look at the server showed:
    # - engine: vllm 0.11.0
    # - model: `Qwen/Qwen3-0.6B`
    # - protocol: `chat` was answered
    # - length: an answer has the 32 tokens that are asked for
    # - metrics: http://127.0.0.1:8000/metrics
    # - not on that page: `kv_usage` (so never told: `kv_cache_pressure`), `itl`
    #
    # What it costs, if all is answered; a price per token is not known here:
    # - a day takes 8,640 requests

    targets:                                       # the services under test
      - name: local                                # a label of every metric
        url: http://127.0.0.1:8000                 # paths of the protocol are appended
        api: chat                                  # docs/protocols.md lists the others
        model: Qwen/Qwen3-0.6B                     # what is asked for
        server_metrics: auto                       # found at the usual paths; `off`, or a URL
        # gpu: { dcgm: http://HOST:9400/metrics }   # the GPUs behind it, docs/gpus.md

    probes:                                        # what is sent to them, and when
      - name: short-chat                           # a label too
        targets: [local]                           # by name
        arrivals: { process: poisson, rate: 6/min }   # at random instants, six a minute on average
        workload:                                  # texts of our own making, by token count
          synthetic: { input_tokens: 128, output_tokens: 32 }   # of the prompt, and of the answer
          cache: cold                              # no prompt begins like an earlier one
        limits: { connect: 5s, first_token: 10s, gap: 15s, total: 60s }   # when a request is given up
        # slo: { ttft: 1s at p95, success: 99% }   # what you want of it, for burn rates

    governor:                                      # what keeps the canary harmless
      requests_per_day: 10000                      # per UTC day; what is above is refused
      tokens_per_day: 2M                           # input and output together
      in_flight: 4                                 # at once, at most

    export:                                        # where results go
      http: { listen: 127.0.0.1:9464 }             # page, API and /metrics
    "#);
}

#[test]
fn what_differs_from_the_usual_is_written_with_its_reason() {
    let file = canary_file(&Draft {
        name: "10.0.0.7".to_owned(),
        key: Some(KeyFrom::Env("GATEWAY_KEY".to_owned())),
        ca: Some("/etc/tls/my ca.pem".to_owned()),
        manner: Manner {
            streaming: false,
            usage: false,
            exact_length: false,
            length: LengthName::CompletionTokens,
        },
        pace: Pace::Rare,
        seen: Some(Seen {
            engine: Some(Engine::LlamaCpp),
            version: None,
            others: (0..12).map(|number| format!("other-{number}")).collect(),
            page: PageSaid::NotRead {
                url: "http://10.0.0.7/metrics".to_owned(),
                result: "status",
            },
            length: Some(LengthSaid::Refused),
        }),
        ..draft()
    });
    insta::assert_snapshot!(file, @r#"
    # Written by `tokencanary init`. `tokencanary check -c FILE` asks the server again and prints the
    # plan, `tokencanary run -c FILE` is the daemon. docs/configuration.md describes every key.
    #
    # What a look at the server showed:
    # - engine: llama_cpp, of a version that it does not tell
    # - model: `Qwen/Qwen3-0.6B`; the server lists 12 others: `other-0`, `other-1`, `other-2`,
    #   `other-3`, `other-4`, `other-5`, `other-6`, `other-7`, `other-8`, `other-9`, …
    # - protocol: `chat` was answered
    # - length: the server refuses `ignore_eos` and `min_tokens`, so `exact_length` is off and
    #   `output_tokens` is a limit
    # - metrics: none are read (http://10.0.0.7/metrics gives `status`), so no finding can say what
    #   the server was busy with; llama.cpp has one if it is started with `--metrics`

    targets:                                       # the services under test
      - name: "10.0.0.7"                           # a label of every metric
        url: http://127.0.0.1:8000                 # paths of the protocol are appended
        api: chat                                  # docs/protocols.md lists the others
        model: Qwen/Qwen3-0.6B                     # what is asked for
        api_key: { env: GATEWAY_KEY }              # read from the environment at the start
        tls: { ca: "/etc/tls/my ca.pem" }          # trusted instead of the system's certificates
        request:                                   # what this server wants otherwise than most
          exact_length: false                      # it refuses `ignore_eos` and `min_tokens`
          usage: false                             # it refuses `stream_options`
          length: max_completion_tokens            # it refuses `max_tokens`
        server_metrics: auto                       # found at the usual paths; `off`, or a URL
        # gpu: { dcgm: http://HOST:9400/metrics }   # the GPUs behind it, docs/gpus.md

    probes:                                        # what is sent to them, and when
      - name: short-chat                           # a label too
        targets: ["10.0.0.7"]                      # by name
        streaming: false                           # it sends no streams, so tokens have no times
        arrivals: { process: poisson, rate: 10/h }   # few, since a request took more than 15 s
        workload:                                  # texts of our own making, by token count
          synthetic: { input_tokens: 128, output_tokens: 32 }   # of the prompt, and of the answer
          cache: cold                              # no prompt begins like an earlier one
        limits: { connect: 5s, first_token: 5m, gap: 1m, total: 10m }   # when a request is given up
        # slo: { service_time: 5s at p95, success: 99% }   # what you want of it, for burn rates

    governor:                                      # what keeps the canary harmless
      requests_per_day: 400                        # per UTC day; what is above is refused
      tokens_per_day: 60k                          # input and output together
      in_flight: 4                                 # at once, at most

    export:                                        # where results go
      http: { listen: 127.0.0.1:9464 }             # page, API and /metrics
    "#);
}

#[test]
fn a_protocol_without_tokens_says_so() {
    let file = canary_file(&Draft {
        api: Api::TeiEmbed,
        model: None,
        key: Some(KeyFrom::File("key.txt".to_owned())),
        seen: Some(Seen {
            length: None,
            engine: None,
            version: None,
            ..seen()
        }),
        ..draft()
    });
    for part in [
        "model: requests of this protocol name none",
        "engine: not known",
        "output_tokens: 1 }",
        "its answer has none",
        "api_key: { file: key.txt }",
        "service_time",
    ] {
        assert!(file.contains(part), "no `{part}` in {file}");
    }
    assert!(!file.contains("length:"), "{file}");
}

#[test]
fn what_a_server_says_cannot_leave_its_line() {
    let hostile = "a\nexport: {}\u{85}probes: []\u{2028}x: 1\r# `\"'";
    let plain = canary_file(&Draft {
        seen: Some(Seen {
            others: vec!["o".to_owned()],
            ..seen()
        }),
        ..draft()
    });
    let file = canary_file(&Draft {
        model: Some(hostile.to_owned()),
        seen: Some(Seen {
            version: Some(hostile.to_owned()),
            others: vec![hostile.to_owned()],
            ..seen()
        }),
        ..draft()
    });
    let keys = |file: &str| -> Vec<String> {
        let lines = file
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        let keys = lines.map(|line| line.split(':').next().unwrap_or_default().to_owned());
        keys.collect()
    };
    assert_eq!(keys(&file), keys(&plain), "{file}");
    for bad in ['\r', '\u{85}', '\u{2028}'] {
        assert!(!file.contains(bad), "{file:?}");
    }
}

#[test]
fn each_protocol_and_pace_is_a_configuration_within_its_budget() {
    let paces = [Pace::Usual, Pace::Slow, Pace::Rare];
    for (api, pace) in Api::ALL
        .iter()
        .flat_map(|api| paces.map(|pace| (*api, pace)))
    {
        if matches!(api, Api::Raw | Api::Template) {
            continue;
        }
        let config = read(&Draft {
            api,
            pace,
            ..draft()
        });
        let probe = &config.probes[0];
        assert_eq!(config.targets[0].api, api);
        assert_eq!(probe.name, format!("short-{}", api.name()));
        let a_day = probe.mean_rate().expect("it has a rate") * 86_400.0;
        let (input, output) = probe.workload.mean_tokens();
        let tokens = input.expect("they are fixed") + output.expect("they are fixed");
        let governor = config.governor;
        let requests = governor.requests_per_day.expect("there is a budget");
        let most = governor.tokens_per_day.expect("there is a budget");
        for (plan, budget) in [(a_day, requests), (a_day * tokens, most)] {
            #[expect(clippy::cast_precision_loss, reason = "budgets are small")]
            let share = plan / budget as f64;
            assert!((0.5..0.95).contains(&share), "{api:?} {pace:?}: {share}");
        }
    }
}

#[test]
fn what_requests_look_like_is_read_back() {
    let config = read(&Draft {
        manner: Manner {
            streaming: false,
            usage: false,
            exact_length: false,
            length: LengthName::CompletionTokens,
        },
        ..draft()
    });
    let request = &config.targets[0].request;
    assert!(!request.usage && !request.exact_length);
    assert_eq!(
        request.length,
        crate::config::LengthField::MaxCompletionTokens
    );
    assert!(!config.probes[0].streaming);
    let usual = read(&draft());
    assert_eq!(
        usual.targets[0].request,
        crate::config::RequestConfig::default()
    );
    assert!(usual.probes[0].streaming);
}

#[test]
fn the_document_has_a_row_for_each_pace() {
    let page = include_str!("../../../docs/init.md");
    for pace in [Pace::Usual, Pace::Slow, Pace::Rare] {
        let probe = &read(&Draft { pace, ..draft() }).probes[0];
        let requests = probe.mean_rate().expect("it has a rate") * 86_400.0;
        let tokens = requests * f64::from(INPUT_TOKENS + OUTPUT_TOKENS);
        let (most, most_tokens) = pace.budget();
        let row = format!(
            "| `{}` | {} | {} | {} and {most_tokens} |",
            pace.rate(),
            decimal(requests, 0),
            decimal(tokens, 0),
            grouped(most.parse().expect("a number"))
        );
        assert!(page.contains(&row), "no `{row}`");
    }
}

proptest! {
    #[test]
    fn every_name_of_a_model_is_read_back(
        name in "[^\\p{Cc}]{1,60}", version in any::<String>(), other in any::<String>()
    ) {
        let config = read(&Draft {
            model: Some(name.clone()),
            seen: Some(Seen { version: Some(version), others: vec![other], ..seen() }),
            ..draft()
        });
        prop_assert_eq!(config.targets[0].model.as_ref(), Some(&name));
        prop_assert_eq!(config.targets.len(), 1);
        prop_assert_eq!(config.probes.len(), 1);
    }
}
