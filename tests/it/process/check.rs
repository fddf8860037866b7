//! `check`: one request to each target, shown as a waterfall; what is wrong is told with its
//! path and a hint, and ends with 1.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::setting::{Finished, Simulated, finish, lines};
use crate::program::{free_address, scratch};

/// Checks the `targets`, which are lines of the configuration.
async fn check(folder: &Path, targets: &[String], more: &[&str]) -> Finished {
    let names: Vec<String> = (0..targets.len())
        .map(|index| format!("t{index}"))
        .collect();
    let rows: Vec<String> = names
        .iter()
        .zip(targets)
        .map(|(name, rest)| format!("  - {{ name: {name}, {rest} }}\n"))
        .collect();
    let text = format!(
        "targets:
{}probes:
  - name: p
    targets: [{}]
    arrivals: {{ process: poisson, rate: 0.2/s }}
    workload: {{ synthetic: {{ input_tokens: 16, output_tokens: 4 }} }}
",
        rows.concat(),
        names.join(", ")
    );
    fs::write(folder.join("check.yaml"), text).expect("the folder is ours");
    let arguments = [&["check", "-c", "check.yaml"], more].concat();
    finish(folder, &arguments).await
}

/// A web server that has one page for everything.
async fn web_page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 65536];
                // One read has the whole of a small request, and the answer closes.
                if stream.read(&mut request).await.is_ok() {
                    let page = "<!doctype html><html><body>It works!</body></html>";
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
                        page.len()
                    );
                    stream
                        .write_all(answer.as_bytes())
                        .await
                        .unwrap_or_default();
                }
            });
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_good_target_is_shown_phase_by_phase() {
    let folder = scratch("check");
    let server = Simulated::start(&folder).await;
    let told = check(&folder, &[format!("url: '{}'", server.url)], &[]).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    for part in [
        "t0",
        "sim/model",
        "connect",
        "TTFT ",
        "ms",
        "server: vllm ",
        "; its metrics page is read\n",
    ] {
        assert!(told.stdout.contains(part), "no `{part}` in {}", told.stdout);
    }
    assert!(!told.stdout.contains('\u{1b}'), "no colour in a pipe");
    assert!(!told.stderr.contains("hint: "), "{}", told.stderr);
}

#[tokio::test]
async fn objectives_are_told_and_held_against_the_request() {
    let folder = scratch("check_objectives");
    let server = Simulated::start(&folder).await;
    let text = format!(
        "targets: [{{ name: t, url: '{}' }}]
probes:
  - name: p
    targets: [t]
    arrivals: {{ process: poisson, rate: 0.2/s }}
    workload: {{ synthetic: {{ input_tokens: 16, output_tokens: 4 }} }}
    slo: {{ ttft: 5s at p95, service_time: 1ms at p50, success: 99.9% }}
",
        server.url
    );
    fs::write(folder.join("check.yaml"), text).expect("the folder is ours");
    let told = finish(&folder, &["check", "-c", "check.yaml"]).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    for part in [
        "TTFT ≤ 5,000.00 ms",
        "bad/day allowed",
        " of 5,000.00 ms holds · service time ",
        " of 1.00 ms does not hold · answered · not good",
    ] {
        assert!(told.stdout.contains(part), "no `{part}` in {}", told.stdout);
    }
    let told = finish(&folder, &["check", "-c", "check.yaml", "--output", "json"]).await;
    let object = &lines(&told.stdout)[0];
    assert_eq!(object["slo"]["ttft"]["limit_ms"], 5000.0, "{object}");
    assert_eq!(object["slo"]["ttft"]["good"], true);
    assert_eq!(object["slo"]["service_time"]["good"], false);
    assert_eq!(object["slo"]["success"]["objective"], 0.999);
    assert_eq!(object["slo"]["all"]["good"], false);
}

#[tokio::test]
async fn a_target_that_cannot_be_reached_is_named() {
    let folder = scratch("check_unreachable");
    let address = free_address();
    let told = check(&folder, &[format!("url: 'http://{address}'")], &[]).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    let url = format!("targets[0].url: `http://{address}`: connect");
    for part in [&url, "wanted: ", "hint: "] {
        assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
    }
}

#[tokio::test]
async fn a_plan_of_nothing_but_a_closed_loop_is_shown() {
    let folder = scratch("check_closed");
    let server = Simulated::start(&folder).await;
    let text = format!(
        "targets: [{{ name: t, url: '{}' }}]
probes:
  - name: p
    targets: [t]
    arrivals: {{ process: closed, concurrency: 1 }}
    workload: {{ synthetic: {{ input_tokens: 16, output_tokens: 4 }} }}
",
        server.url
    );
    fs::write(folder.join("check.yaml"), text).expect("the folder is ours");
    let told = finish(&folder, &["check", "-c", "check.yaml"]).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("closed loop"), "{}", told.stdout);
}

#[tokio::test]
async fn a_web_page_is_no_inference_server() {
    let folder = scratch("check_html");
    let url = web_page().await;
    let told = check(&folder, &[format!("url: '{url}', model: m")], &[]).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    let part = format!("targets[0].url: `{url}`: malformed");
    for part in [&part, "wanted: ", "hint: "] {
        assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
    }
}

#[tokio::test]
async fn a_model_that_is_not_served_is_named() {
    let folder = scratch("check_model");
    let server = Simulated::start(&folder).await;
    let target = format!("url: '{}', model: nope", server.url);
    let told = check(&folder, &[target], &[]).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    for part in ["targets[0].", "nope", "wanted: ", "hint: "] {
        assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
    }
}

#[tokio::test]
async fn json_is_one_object_per_target_and_nothing_else() {
    let folder = scratch("check_json");
    let server = Simulated::start(&folder).await;
    let targets = [
        format!("url: '{}'", server.url),
        format!("url: 'http://{}', model: m", free_address()),
    ];
    let told = check(&folder, &targets, &["--output", "json"]).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    let objects = lines(&told.stdout);
    let column =
        |key: &str| -> Vec<Value> { objects.iter().map(|object| object[key].clone()).collect() };
    assert_eq!(column("target"), ["t0", "t1"]);
    assert_eq!(column("outcome"), ["ok", "connect"]);
    assert_eq!(column("schema"), ["tokencanary.request/1"; 2]);
}

#[tokio::test]
async fn silent_servers_cost_the_time_of_one_and_no_more_than_their_limits() {
    let folder = scratch("check_silent");
    let mut kept = Vec::new();
    for _ in 0..3 {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        kept.push(listener.expect("loopback has free ports"));
    }
    // They take connections, by the backlog, and say nothing.
    let targets: Vec<String> = kept
        .iter()
        .map(|one| {
            format!(
                "url: 'http://{}', model: m",
                one.local_addr().expect("bound")
            )
        })
        .collect();
    let rows: Vec<String> = (0..)
        .zip(&targets)
        .map(|(index, rest)| format!("  - {{ name: t{index}, {rest} }}\n"))
        .collect();
    let text = format!(
        "targets:
{}probes:
  - name: p
    targets: [t0, t1, t2]
    arrivals: {{ process: poisson, rate: 0.2/s }}
    workload: {{ synthetic: {{ input_tokens: 16, output_tokens: 4 }} }}
    limits: {{ first_token: 1s }}
",
        rows.concat()
    );
    fs::write(folder.join("check.yaml"), text).expect("the folder is ours");
    let begun = tokio::time::Instant::now();
    let told = finish(&folder, &["check", "-c", "check.yaml"]).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    assert_eq!(told.stderr.matches("timeout_first_token").count(), 3);
    // A second for the lists and one for the requests. Five for each list and page, and one after
    // the other, would be eighteen at the least.
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(12), "{took:?}");
}

/// A gateway that refuses fields it does not know, as `OpenAI`'s own API does.
async fn strict_gateway() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                let body_of = |request: &[u8]| {
                    let text = String::from_utf8_lossy(request).into_owned();
                    let (head, body) = text.split_once("\r\n\r\n")?;
                    let length = head.lines().find_map(|line| {
                        line.to_lowercase()
                            .strip_prefix("content-length:")?
                            .trim()
                            .parse()
                            .ok()
                    });
                    (body.len() >= length.unwrap_or(0_usize)).then(|| body.to_owned())
                };
                let body = loop {
                    if let Some(body) = body_of(&request) {
                        break body;
                    }
                    if !matches!(stream.read_buf(&mut request).await, Ok(1..)) {
                        return;
                    }
                };
                let (status, kind, answer) = if body.is_empty() {
                    ("404 Not Found", "text/plain", String::new())
                } else if body.contains("ignore_eos") {
                    let error = r#"{"error":{"message":"Unrecognized request argument supplied: ignore_eos","type":"invalid_request_error","param":null,"code":null}}"#;
                    ("400 Bad Request", "application/json", error.to_owned())
                } else {
                    let chunk = r#"data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}]}"#;
                    (
                        "200 OK",
                        "text/event-stream",
                        format!("{chunk}\n\ndata: [DONE]\n\n"),
                    )
                };
                let whole = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}",
                    answer.len()
                );
                stream.write_all(whole.as_bytes()).await.unwrap_or_default();
            });
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_server_that_takes_no_exact_length_is_told_from_one_that_takes_nothing() {
    let folder = scratch("check_length");
    let gateway = strict_gateway().await;
    let targets = [
        format!("url: '{gateway}', model: m"),
        format!("url: '{gateway}', model: m, request: {{ exact_length: false }}"),
    ];
    let told = check(&folder, &targets, &["--output", "json"]).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    for part in [
        "targets[0].request.exact_length: `true`: ",
        "wanted: `false`",
        "length: advisory",
    ] {
        assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
    }
    assert!(!told.stderr.contains("targets[1]"), "{}", told.stderr);
    let objects = lines(&told.stdout);
    let column =
        |key: &str| -> Vec<Value> { objects.iter().map(|object| object[key].clone()).collect() };
    assert_eq!(column("outcome"), ["http_status", "ok"]);
    assert_eq!(column("length"), ["exact", "advisory"]);
}
