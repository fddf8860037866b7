//! What the keys of a target become, and what is said where they do not fit together.

use std::path::PathBuf;

use super::*;

/// A configuration whose only target has `lines` as its further lines, from line 3 on.
fn target(lines: &str) -> String {
    let lines = lines.replace('\n', "\n  ");
    format!("targets:\n- name: a\n  {lines}\nprobes:\n- name: p\n  targets: [a]\n{GOOD}\n")
}

fn read_target(lines: &str) -> TargetConfig {
    let config = from_text(&target(lines), Format::Yaml, "c.yaml");
    let mut config = config.unwrap_or_else(|found| panic!("{found}"));
    config.targets.remove(0)
}

/// A file that is there.
fn here(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_key_of_the_network_is_read() {
    let (ca, cert) = (here("config/minimal.yaml"), here("config/canary.yaml"));
    let target = read_target(&format!(
        "urls: [https://a, 'https://[::1]:9']
balance: least_in_flight
http: 2
tls: {{ ca: {ca}, cert: {cert}, key: {cert}, server_name: b }}
proxy: {{ url: 'http://p:3128' }}
address_family: ipv6
reuse_for: 5m"
    ));
    let url = |text| BaseUrl::parse(text).expect("a good URL");
    assert_eq!(target.urls, [url("https://a"), url("https://[::1]:9")]);
    assert_eq!(target.balance, Balance::LeastInFlight);
    let expected = NetworkConfig {
        http: HttpVersion::Http2,
        tls: TlsConfig {
            ca: Some(PathBuf::from(&ca)),
            cert: Some(PathBuf::from(&cert)),
            key: Some(PathBuf::from(&cert)),
            server_name: Some("b".to_owned()),
        },
        proxy: Some(ProxyConfig {
            url: url("http://p:3128"),
            authorization: None,
        }),
        family: AddressFamily::Ipv6,
        reuse_for: Some(Duration::from_mins(5)),
    };
    assert_eq!(target.network, expected);
}

#[test]
fn a_version_of_http_is_a_number_or_a_text() {
    for (given, version) in [
        ("1.1", HttpVersion::Http1),
        ("'1.1'", HttpVersion::Http1),
        ("2", HttpVersion::Http2),
        ("'2'", HttpVersion::Http2),
        ("auto", HttpVersion::Auto),
    ] {
        let target = read_target(&format!("url: http://h\nhttp: {given}"));
        assert_eq!(target.network.http, version, "{given}");
    }
    check(
        &target("url: http://h\nhttp: 1.0"),
        "c.yaml:4: `targets[0].http`: not understood\n  given: `1`\n  wanted: `1.1`, `2` or `auto`",
    );
}

#[test]
fn reading_no_metrics_is_a_bare_word_or_false() {
    for (given, expected) in [
        ("off", ServerMetrics::Off),
        ("'off'", ServerMetrics::Off),
        ("\"off\"", ServerMetrics::Off),
        ("false", ServerMetrics::Off),
        ("auto", ServerMetrics::Auto),
        ("http://h/m", ServerMetrics::Url("http://h/m".to_owned())),
    ] {
        let target = read_target(&format!("url: http://h\nserver_metrics: {given}"));
        assert_eq!(target.server_metrics, expected, "{given}");
    }
    let toml = "[[targets]]\nname = \"a\"\nurl = \"http://h\"\nserver_metrics = false\n\
                [[probes]]\nname = \"p\"\ntargets = [\"a\"]\n\
                arrivals = { process = \"constant\", rate = \"1/s\" }\n\
                workload = { synthetic = { input_tokens = 8, output_tokens = 4 } }\n";
    let config = from_text(toml, Format::Toml, "t").unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(config.targets[0].server_metrics, ServerMetrics::Off);
    check(
        &target("url: http://h\nserver_metrics: true"),
        "c.yaml:4: `targets[0].server_metrics`: wrong type
  given: `true`
  wanted: `auto`, `off` or a URL, as in `http://127.0.0.1:8000/metrics`
  hint: write `auto`",
    );
}

#[test]
fn words_of_the_older_yaml_are_words() {
    // What switches something on or off says what to write.
    for (given, hint) in [
        ("on", "true"),
        ("Yes", "true"),
        ("'true'", "true"),
        ("off", "false"),
        ("no", "false"),
        ("'False'", "false"),
    ] {
        let text = target("url: http://h");
        let shown = given.trim_matches('\'');
        check(
            &format!("{text}  streaming: {given}\n"),
            &format!(
                "c.yaml:9: `probes[0].streaming`: wrong type
  given: `{shown}`
  wanted: `true` or `false`
  hint: write `{hint}`, without quotes"
            ),
        );
    }
    // Elsewhere they are texts.
    assert_eq!(
        read_target("url: http://h\nmodel: no").model.as_deref(),
        Some("no")
    );
}

#[test]
fn every_protocol_is_known_by_its_own_name_and_by_the_one_of_aiperf() {
    for (name, api) in [
        ("messages", Api::Messages),
        ("ollama_generate", Api::OllamaGenerate),
        ("huggingface_generate", Api::Tgi),
        ("hf_tei_rankings", Api::TeiRerank),
    ] {
        assert_eq!(read_target(&format!("url: http://h\napi: {name}")).api, api);
    }
    check(
        &target("url: http://h\napi: respones"),
        "c.yaml:4: `targets[0].api`: not understood
  given: `respones`
  wanted: the name of a protocol, as in `chat`
  hint: did you mean `responses`",
    );
}

#[test]
fn requests_are_what_the_operator_says() {
    let body = here("config/minimal.yaml");
    let chat = read_target(
        "url: http://h
request: { path: /x, usage: false, length: max_completion_tokens, exact_length: false, extra: { top_k: 1, o: { a: [true, 1.5, x] } } }",
    );
    assert_eq!(
        chat.request,
        RequestConfig {
            path: Some("/x".to_owned()),
            usage: false,
            length: LengthField::MaxCompletionTokens,
            exact_length: false,
            extra: serde_json::json!({"top_k": 1, "o": {"a": [true, 1.5, "x"]}})
                .as_object()
                .expect("an object")
                .clone(),
            body: None,
            text: None,
        }
    );
    let raw = read_target(&format!(
        "url: http://h\napi: raw\nrequest: {{ path: /x, body: {body}, text: '$.a[*].b' }}"
    ));
    assert_eq!(raw.request.body.as_deref(), Some(MINIMAL));
    assert_eq!(raw.request.text.as_deref(), Some("$.a[*].b"));
}

#[test]
fn a_tokenizer_is_a_file_or_words() {
    let file = here("config/minimal.yaml");
    for (given, expected) in [
        ("words".to_owned(), TokenizerConfig::Words),
        (
            format!("{{ json: {file} }}"),
            TokenizerConfig::Json(PathBuf::from(&file)),
        ),
        (
            format!("{{ tiktoken: {file} }}"),
            TokenizerConfig::Tiktoken(PathBuf::from(&file)),
        ),
    ] {
        let target = read_target(&format!("url: http://h\ntokenizer: {given}"));
        assert_eq!(target.tokenizer, Some(expected), "{given}");
    }
}

/// Lines of a target, and what is said of them.
const CONFLICTS: &[(&str, &str)] = &[
    (
        "url: http://h\nurls: [http://g]",
        "c.yaml:4: `targets[0].urls`: does not go together
  given: a list
  wanted: `url` or `urls`, not both
  hint: put all of them into `urls`",
    ),
    (
        "urls: [http://h, 7, 'http://h:80']",
        "c.yaml:3: `targets[0].urls[1]`: wrong type
  given: `7`
  wanted: a URL, as in `http://127.0.0.1:8000`
c.yaml:3: `targets[0].urls[2]`: given twice
  given: `http://h:80`
  wanted: each URL once",
    ),
    (
        "url: http://h\ntls: { server_name: x }",
        "c.yaml:4: `targets[0].tls`: does not go together
  given: a section
  wanted: a URL that begins with `https://`
  hint: without it nothing is encrypted",
    ),
    (
        "url: https://h\ntls: { ca: /no/such/file, server_name: 'a b' }",
        "c.yaml:4: `targets[0].tls.ca`: cannot be read
  given: `/no/such/file`
  wanted: the path of a PEM file with certificates
  hint: there is no such file
c.yaml:4: `targets[0].tls.server_name`: not understood
  given: `a b`
  wanted: a host name, as in `vllm.internal`",
    ),
    (
        "url: unix:///run/x\nproxy: http://p",
        "c.yaml:4: `targets[0].proxy`: does not go together
  given: `http://p`
  hint: a Unix socket is on this machine: no proxy leads to it",
    ),
    (
        "url: http://h\nproxy: https://p",
        "c.yaml:4: `targets[0].proxy`: not understood
  given: `https://p`
  wanted: a URL, as in `http://proxy:3128`
  hint: a proxy is asked in plain HTTP, and has no path",
    ),
    (
        "url: http://h\nproxy: { url: http://p, authorization: hush }",
        "c.yaml:4: `targets[0].proxy.authorization`: a secret in clear
  wanted: `{ env: NAME }` or `{ file: PATH }`
  hint: set an environment variable and name it here",
    ),
    (
        "url: http://h\napi: raw",
        "c.yaml:2: `targets[0].request.body`: missing\n  wanted: the path of a text file",
    ),
    (
        "url: http://h\nrequest: { text: $.x, extra: 5 }",
        "c.yaml:4: `targets[0].request.text`: does not go together
  given: `$.x`
  hint: only `api: raw` and `api: template` take it
c.yaml:4: `targets[0].request.extra`: wrong type
  given: `5`
  wanted: a section of further fields of the body",
    ),
    (
        "url: http://h\napi: gemini",
        "c.yaml:2: `targets[0].model`: missing
  wanted: the name of a model, as a text",
    ),
];

#[test]
fn what_does_not_go_together_is_told() {
    for (lines, expected) in CONFLICTS {
        check(&target(lines), expected);
    }
}

#[test]
fn a_certificate_comes_with_its_key() {
    let file = here("config/minimal.yaml");
    check(
        &target(&format!("url: https://h\ntls: {{ cert: {file} }}")),
        "c.yaml:4: `targets[0].tls.key`: missing
  wanted: the path of a PEM file with a private key",
    );
}

#[test]
fn the_header_of_the_api_key_depends_on_the_protocol() {
    let file = here("config/minimal.yaml");
    let lines = |api: &str| {
        format!(
            "url: http://h\nmodel: m\napi: {api}\napi_key: {{ file: {file} }}\nheaders: {{ X-API-Key: hush }}"
        )
    };
    let told = |api| {
        from_text(&target(&lines(api)), Format::Yaml, "c.yaml")
            .expect_err("the file holds several lines")
            .to_string()
            .contains("`targets[0].headers.X-API-Key`: does not go together")
    };
    assert!(told("messages"));
    assert!(!told("chat"));
}

#[test]
fn a_protocol_without_streams_is_not_asked_for_one() {
    let text = target("url: http://h\napi: embeddings");
    assert!(from_text(&text, Format::Yaml, "c.yaml").is_ok());
    check(
        &format!("{text}  streaming: true\n"),
        "c.yaml:10: `probes[0].streaming`: does not go together
  given: `true`
  wanted: `false`, since `a` speaks `embeddings`, which has no streams
  hint: leave the key out",
    );
}
