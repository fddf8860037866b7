//! Faults as they are read, refused and listed.

use super::*;

fn parsed(body: &str) -> Result<FaultKind, String> {
    parse(body.as_bytes(), MonoTime::ZERO).map(|fault| fault.kind)
}

#[test]
fn every_fault_of_the_contract_is_read() {
    let five = r#""for":"5s"}"#;
    let of = |head: &str| parsed(&format!("{{{head},{five}"));
    assert_eq!(of(r#""fault":"freeze""#), Ok(FaultKind::Freeze));
    assert_eq!(of(r#""fault":"hang""#), Ok(FaultKind::Hang));
    assert_eq!(
        of(r#""fault":"slow_prefill","factor":2"#),
        Ok(FaultKind::SlowPrefill { factor: 2.0 })
    );
    assert_eq!(
        of(r#""fault":"slow_decode","factor":1.5"#),
        Ok(FaultKind::SlowDecode { factor: 1.5 })
    );
    assert_eq!(
        of(r#""fault":"cut","after_chunks":3"#),
        Ok(FaultKind::Cut { after_chunks: 3 })
    );
    assert_eq!(
        of(r#""fault":"stream_error""#),
        Ok(FaultKind::StreamError { after_chunks: 1 })
    );
    assert_eq!(
        of(r#""fault":"status","code":429,"retry_after":"7s""#),
        Ok(FaultKind::Status {
            code: 429,
            retry_after: Some(Duration::from_secs(7))
        })
    );
    assert_eq!(
        of(r#""fault":"restart","version":"0.12.0""#),
        Ok(FaultKind::Restart {
            version: Some("0.12.0".to_owned())
        })
    );
}

#[test]
fn a_bad_fault_is_refused_with_what_was_wanted() {
    let cases = [
        ("[", "not a fault"),
        (
            r#"{"for":"5s"}"#,
            "`fault` is missing; wanted `slow_prefill`",
        ),
        (
            r#"{"fault":"fire","for":"5s"}"#,
            "`fault` is `fire`; wanted `slow_prefill`",
        ),
        (
            r#"{"fault":"freeze"}"#,
            "`for` is missing; wanted a duration",
        ),
        (
            r#"{"fault":"freeze","for":5}"#,
            "`for` is `5`; wanted a duration",
        ),
        (
            r#"{"fault":"freeze","for":"5s","factor":2}"#,
            "`factor` means nothing for `freeze`",
        ),
        (
            r#"{"fault":"slow_decode","for":"5s"}"#,
            "`factor` is missing",
        ),
        (
            r#"{"fault":"slow_decode","for":"5s","factor":0}"#,
            "`factor` is `0`; wanted",
        ),
        (
            r#"{"fault":"status","for":"5s","code":200}"#,
            "`code` is `200`; wanted",
        ),
        (
            r#"{"fault":"cut","for":"5s","after_chunks":-1}"#,
            "`after_chunks` is `-1`",
        ),
        (
            r#"{"fault":"freeze","for":"5s","until":3}"#,
            "unknown field `until`",
        ),
    ];
    for (body, wanted) in cases {
        let error = parsed(body).expect_err(body);
        assert!(error.contains(wanted), "{body}: {error}");
    }
}

#[test]
fn the_list_says_what_is_left() {
    let fault = Fault {
        kind: FaultKind::Cut { after_chunks: 3 },
        from: MonoTime::from_nanos(1_000_000_000),
        lasts: Duration::from_secs(5),
    };
    let shown = list([&fault].into_iter(), MonoTime::from_nanos(3_000_000_000));
    assert_eq!(
        shown,
        json!({"faults": [{"fault": "cut", "after_chunks": 3, "for": "5s", "starts_in": "0s", "ends_in": "3s"}]})
    );
}

#[test]
fn every_fault_of_machine_and_model_is_read() {
    let of = |head: &str| parsed(&format!(r#"{{{head},"for":"5s"}}"#));
    let cases = [
        (
            r#""fault":"throttle","factor":2"#,
            FaultKind::Throttle { factor: 2.0 },
        ),
        (r#""fault":"xid""#, FaultKind::Xid { code: 79 }),
        (r#""fault":"xid","code":48"#, FaultKind::Xid { code: 48 }),
        (
            r#""fault":"gpu_full","factor":3"#,
            FaultKind::GpuFull { factor: 3.0 },
        ),
        (
            r#""fault":"flush_prefix_cache""#,
            FaultKind::FlushPrefixCache,
        ),
        (
            r#""fault":"shrink_kv","share":0.25"#,
            FaultKind::ShrinkKv { share: 0.25 },
        ),
        (
            r#""fault":"host_stall","factor":4"#,
            FaultKind::HostStall { factor: 4.0 },
        ),
        (
            r#""fault":"host_pressure","factor":2"#,
            FaultKind::HostPressure { factor: 2.0 },
        ),
        (
            r#""fault":"gateway_delay","delay":"200ms""#,
            FaultKind::GatewayDelay {
                delay: Duration::from_millis(200),
            },
        ),
        (r#""fault":"buffer""#, FaultKind::Buffer),
        (r#""fault":"wrong_answers""#, FaultKind::WrongAnswers),
        (
            r#""fault":"decode_bandwidth","factor":8"#,
            FaultKind::DecodeBandwidth { factor: 8.0 },
        ),
        (
            r#""fault":"model_change","model":"m","version":"2","factor":1.5"#,
            FaultKind::ModelChange {
                model: Some("m".to_owned()),
                version: Some("2".to_owned()),
                factor: 1.5,
            },
        ),
        (
            r#""fault":"load","rate":5,"input_tokens":1000,"output_tokens":200"#,
            FaultKind::Load {
                rate: 5.0,
                input_tokens: 1000,
                output_tokens: 200,
            },
        ),
        (
            r#""fault":"frontend_limit","requests":2"#,
            FaultKind::FrontendLimit { requests: 2 },
        ),
    ];
    for (head, kind) in cases {
        assert_eq!(of(head), Ok(kind), "{head}");
    }
}

#[test]
fn a_bad_field_of_machine_and_model_is_refused() {
    let cases = [
        (
            r#""fault":"shrink_kv""#,
            "`share` is missing; wanted a number between 0 and 1",
        ),
        (
            r#""fault":"shrink_kv","share":1.5"#,
            "`share` is `1.5`; wanted",
        ),
        (
            r#""fault":"xid","code":0"#,
            "`code` is `0`; wanted the number of an XID",
        ),
        (
            r#""fault":"gateway_delay""#,
            "`delay` is missing; wanted a duration",
        ),
        (
            r#""fault":"model_change""#,
            "changes nothing; wanted `model`",
        ),
        (
            r#""fault":"model_change","model":3"#,
            "`model` is `3`; wanted a text",
        ),
        (
            r#""fault":"load","rate":5,"input_tokens":10"#,
            "`output_tokens` is missing",
        ),
        (
            r#""fault":"load","rate":-1,"input_tokens":10,"output_tokens":1"#,
            "`rate` is `-1`; wanted requests a second",
        ),
        (
            r#""fault":"frontend_limit","requests":0"#,
            "`requests` is `0`; wanted",
        ),
        (
            r#""fault":"buffer","delay":"1s""#,
            "`delay` means nothing for `buffer`",
        ),
    ];
    for (head, wanted) in cases {
        let error = parsed(&format!(r#"{{{head},"for":"5s"}}"#)).expect_err(head);
        assert!(error.contains(wanted), "{head}: {error}");
    }
}

/// What is listed can be sent again.
#[test]
fn the_list_is_in_the_words_that_are_read() {
    for kind in [
        FaultKind::ShrinkKv { share: 0.5 },
        FaultKind::GatewayDelay {
            delay: Duration::from_millis(150),
        },
        FaultKind::Load {
            rate: 0.5,
            input_tokens: 7,
            output_tokens: 3,
        },
        FaultKind::FrontendLimit { requests: 4 },
        FaultKind::Xid { code: 31 },
        FaultKind::ModelChange {
            model: Some("m".to_owned()),
            version: None,
            factor: 2.0,
        },
    ] {
        let fault = Fault {
            kind: kind.clone(),
            from: MonoTime::ZERO,
            lasts: Duration::from_secs(5),
        };
        let mut row = list([&fault].into_iter(), MonoTime::ZERO)["faults"][0].take();
        let row = row.as_object_mut().expect("an object");
        row.retain(|name, value| !name.ends_with("s_in") && !value.is_null());
        let again = serde_json::to_string(&row).expect("JSON");
        assert_eq!(parsed(&again), Ok(kind), "{again}");
    }
}
