//! Bodies and answers of the operator's own.

use super::*;

fn config(body: &str, text: Option<&str>) -> RequestConfig {
    RequestConfig {
        body: Some(body.to_owned()),
        text: text.map(str::to_owned),
        ..RequestConfig::default()
    }
}

fn free(api: Api, body: &str, text: Option<&str>) -> Free {
    Free::new(api, &config(body, text)).expect("it is right")
}

fn refused(body: &str, text: Option<&str>) -> String {
    Free::new(Api::Template, &config(body, text))
        .expect_err("it is wrong")
        .to_string()
}

fn rendered(api: Api, body: &str, text: &str) -> String {
    let style = config(body, None);
    let prompt = Prompt {
        text: text.to_owned(),
        input_tokens: Some(5),
        output_tokens: Some(7),
        ..Prompt::default()
    };
    let ask = Ask {
        model: "m",
        prompt: &prompt,
        streaming: false,
        style: &style,
    };
    let body = Free::new(api, &style)
        .expect("it is right")
        .body(&ask)
        .expect("it can be rendered");
    String::from_utf8(body).expect("it is UTF-8")
}

/// Its pieces, each with its choice and channel, and the number of its answers.
fn said(text: Option<&str>, data: &str) -> (Vec<(u32, Channel, String)>, u32) {
    let said = read(text, data);
    let pieces = said
        .pieces()
        .map(|piece| (piece.choice, piece.channel, piece.text.to_string()))
        .collect();
    (pieces, said.answers)
}

fn read<'a>(text: Option<&str>, data: &'a str) -> Said<'a> {
    let mut said = Said::default();
    let event = Event {
        name: b"",
        data: data.as_bytes(),
    };
    free(Api::Raw, "", text)
        .read(event, &mut said)
        .expect("it can be read");
    said
}

fn texts(text: Option<&str>, data: &str) -> Vec<String> {
    let (pieces, _) = said(text, data);
    pieces.into_iter().map(|(_, _, text)| text).collect()
}

#[test]
fn a_raw_body_goes_out_as_it_is() {
    let body = "{{ not a template }}\n <xml/> \u{e9}";
    assert_eq!(rendered(Api::Raw, body, "p"), body);
}

#[test]
fn a_template_makes_json_of_any_text() {
    let body = r#"{"m": {{ model|tojson }}, "q": {{ text|tojson }}, "n": {{ max_tokens|tojson }}, "s": {{ stream|tojson }}}"#;
    assert_eq!(
        rendered(Api::Template, body, "say \"hi\"\n{{ 1 + 1 }}"),
        r#"{"m": "m", "q": "say \"hi\"\n{{ 1 + 1 }}", "n": 7, "s": false}"#
    );
}

#[test]
fn a_template_sees_every_variable() {
    let body = r"[{{ text|tojson }},{{ texts|tojson }},{{ prompt|tojson }},{{ messages|tojson }},{{ query|tojson }},{{ passages|tojson }},{{ input_tokens }},{% if max_tokens %}{{ max_tokens }}{% else %}0{% endif %}]";
    assert_eq!(
        rendered(Api::Template, body, "a b c"),
        r#"["a b c",["a b c"],"a b c",[{"role":"user","content":"a b c"}],"a",["b","c"],5,7]"#
    );
}

#[test]
fn a_template_that_fails_for_one_text_makes_no_body() {
    for template in [
        r#"{"p": {{ text|tojson }}{% if "quoted" not in text %}{{ 1 + text }}{% endif %}}"#,
        r#"{"p": {{ text|tojson }}{% if "quoted" not in text %}, ,{% endif %}}"#,
    ] {
        let style = config(template, None);
        let prompt = Prompt {
            text: "plain".to_owned(),
            input_tokens: Some(1),
            output_tokens: None,
            ..Prompt::default()
        };
        let ask = Ask {
            model: "m",
            prompt: &prompt,
            streaming: false,
            style: &style,
        };
        let free = Free::new(Api::Template, &style).expect("its trial text is quoted");
        assert!(free.body(&ask).is_err(), "{template}");
    }
}

#[test]
fn a_template_that_does_not_come_to_an_end_is_refused() {
    let error = refused(
        "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}{}",
        None,
    );
    assert!(error.contains("ran out of fuel"), "{error}");
}

#[test]
fn a_wrong_template_is_refused_with_its_line() {
    let error = refused("{\n\"q\": {{ text|tojson }\n}", None);
    assert!(
        error.starts_with("the template is wrong in line 2: "),
        "{error}"
    );
    let error = refused("{\"q\":\n{{ text.content }}}", None);
    assert!(
        error.starts_with("the template is wrong in line 2: undefined value"),
        "{error}"
    );
    let error = refused("{\"q\": {{ txet|tojson }}}", None);
    assert!(
        error.starts_with("the template asks for `txet`, wanted one of `text`, `texts`, "),
        "{error}"
    );
    let error = refused("{\"q\": {{ text|to_json }}}", None);
    assert!(error.contains("unknown filter"), "{error}");
}

#[test]
fn a_template_that_makes_no_json_is_refused() {
    for body in [
        r#"{"q": "{{ text }}"}"#,
        "q={{ text }}",
        r#"{"n": {{ "" if max_tokens is none else max_tokens }}}"#,
        "",
    ] {
        let error = refused(body, None);
        assert!(
            error.starts_with("the template makes no JSON"),
            "{body}: {error}"
        );
        assert!(error.contains("`{{ text|tojson }}`"), "{error}");
    }
}

#[test]
fn a_wrong_path_is_refused_with_its_place() {
    let error = refused("{}", Some("$.choices[*"));
    assert!(
        error.starts_with("`text` is `$.choices[*`, wanted a JSON path like"),
        "{error}"
    );
    assert!(matches!(
        Free::new(Api::Raw, &RequestConfig::default()),
        Err(ProtocolError::NoBody)
    ));
}

#[test]
fn a_path_picks_texts_and_counts_the_rest() {
    for (path, data, expected, answers) in [
        ("$.a.b", r#"{"a":{"b":"x"}}"#, &["x"][..], 0),
        (
            "$.a[*].t",
            r#"{"a":[{"t":"x"},{"t":""},{"t":"y"}]}"#,
            &["x", "y"],
            0,
        ),
        ("$.a", r#"{"a":["x","y"]}"#, &["x", "y"], 0),
        ("$.a", r#"{"a":[0.5,1]}"#, &[], 1),
        ("$.a", r#"{"a":[[0.5],[1]]}"#, &[], 2),
        ("$.a", r#"{"a":[{"s":1},{"s":2},null]}"#, &[], 2),
        ("$.a[*].s", r#"{"a":[{"s":1},{"s":2}]}"#, &[], 2),
        ("$.a", r#"{"a":null,"text":"not this"}"#, &[], 0),
        ("$.none", r#"{"text":"not this"}"#, &[], 0),
        ("$[0]", r#"["x"]"#, &["x"], 0),
    ] {
        assert_eq!(texts(Some(path), data), expected, "{path} in {data}");
        assert_eq!(said(Some(path), data).1, answers, "{path} in {data}");
    }
}

#[test]
fn texts_are_found_where_servers_put_them() {
    for (data, expected) in [
        (r#"{"choices":[{"text":"x"}]}"#, &["x"][..]),
        (
            r#"{"choices":[{"delta":{"content":"x"}}],"content":"not this"}"#,
            &["x"],
        ),
        (
            r#"{"choices":[{"message":{"role":"assistant","content":"x"}}]}"#,
            &["x"],
        ),
        (r#"{"choices":[]}"#, &[]),
        (
            r#"{"type":"response.output_text.delta","delta":"x"}"#,
            &["x"],
        ),
        (r#"{"delta":{"type":"text_delta","text":"x"}}"#, &["x"]),
        (r#"{"text":"x","content":"not this"}"#, &["x"]),
        (r#"{"text":["x"]}"#, &["x"]),
        (r#"[{"generated_text":"x"}]"#, &["x"]),
        (r#"{"content":"x"}"#, &["x"]),
        (r#"{"response":"x","done":false}"#, &["x"]),
        (r#"{"output_text":"x"}"#, &["x"]),
        (r#"{"text_output":"x"}"#, &["x"]),
        (r#"{"message":{"content":"x"}}"#, &["x"]),
        ("\"x\\n\"", &["x\n"]),
        ("x is no JSON", &["x is no JSON"]),
        ("\"x\" is no JSON", &["\"x\" is no JSON"]),
        ("{}", &[]),
    ] {
        assert_eq!(texts(None, data), expected, "{data}");
    }
}

#[test]
fn choices_and_thoughts_are_told_apart() {
    let data = r#"{"choices":[{"index":1,"delta":{"reasoning":"r","content":"c"}},{"index":0,"text":"t"}]}"#;
    assert_eq!(
        said(None, data).0,
        [
            (1, Channel::Reasoning, "r".to_owned()),
            (1, Channel::Output, "c".to_owned()),
            (0, Channel::Output, "t".to_owned()),
        ]
    );
}

#[test]
fn vectors_and_ranks_are_found_too() {
    for (data, answers) in [
        (r#"{"data":[{"embedding":[0.5]},{"embedding":"AAA="}]}"#, 2),
        (r#"{"embeddings":[[0.5],[1]]}"#, 2),
        (r#"{"embedding":[0.5]}"#, 1),
        ("[[0.5,1],[2]]", 2),
        ("[0.5,1]", 1),
        (r#"{"results":[{"index":0,"relevance_score":0.5}]}"#, 1),
        (r#"{"rankings":[{"logit":-1},{"logit":1}]}"#, 2),
        (r#"[{"index":0,"score":1}]"#, 1),
        (r#"{"data":[]}"#, 0),
    ] {
        assert_eq!(said(None, data), (Vec::new(), answers), "{data}");
    }
}

#[test]
fn errors_usage_and_finish_are_read_beside_the_text() {
    let whole = read(
        Some("$.out"),
        r#"{"out":"x","detail":"more","finish_reason":"stop","usage":{"input_tokens":3,"completion_tokens":-1}}"#,
    );
    assert_eq!(whole.error, None, "an answer may have details");
    assert_eq!(whole.finish.as_deref(), Some("stop"));
    let usage = whole.usage.expect("there is usage");
    assert_eq!(
        (usage.input, usage.output, usage.bad),
        (Some(3), None, true)
    );
    for data in [
        r#"{"error":{"message":"no","type":"t"}}"#,
        r#"{"detail":"no"}"#,
        r#"{"object":"error","message":"no"}"#,
        r#"{"out":"x","error":"no"}"#,
    ] {
        let error = read(Some("$.out"), data).error.expect("it is an error");
        assert_eq!(&*error.message, "no", "{data}");
    }
}

#[test]
fn what_begins_as_json_and_is_none_is_an_error() {
    let free = free(Api::Raw, "", None);
    for data in [&b"{\"text\":\"x"[..], b"[1,", b"{}{}"] {
        let mut said = Said::default();
        assert!(free.read(Event { name: b"", data }, &mut said).is_err());
    }
    let mut said = Said::default();
    let event = Event {
        name: b"",
        data: b"caf\xff",
    };
    free.read(event, &mut said).expect("it is text");
    assert_eq!(
        said.pieces().next().map(|piece| &*piece.text),
        Some("caf\u{fffd}")
    );
}
