//! A configuration that cannot be followed: exit 2, what is wrong, where, what was wanted and a
//! hint; nothing on standard output, nothing sent.

use std::fs;

use super::setting::{Untouched, finish};
use crate::program::scratch;

/// A good configuration, but for what `spoil` does to it.
fn configuration(target: &str, spoil: (&str, &str)) -> String {
    let good = format!(
        "targets:
  - name: a
    url: http://{target}
probes:
  - name: p
    targets: [a]
    arrivals: {{ process: poisson, rate: 20/s }}
    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 2 }} }}
"
    );
    assert!(good.contains(spoil.0), "{spoil:?}");
    good.replacen(spoil.0, spoil.1, 1)
}

/// What is replaced by what, and the parts that the message must have.
const SPOILT: [((&str, &str), &[&str]); 8] = [
    (
        ("    url:", "    uri: x\n    url:"),
        &[
            "bad.yaml:3: `targets[0].uri`: unknown key",
            "hint: ",
            "`url`",
        ],
    ),
    (
        ("20/s", "20"),
        &[
            "bad.yaml:7: `probes[0].arrivals.rate`: wrong unit",
            "given: `20`",
            "wanted: a rate, as in `0.2/s`",
            "hint: ",
        ],
    ),
    (
        ("targets: [a]", "targets: [b]"),
        &[
            "bad.yaml:6: `probes[0].targets[0]`: unknown name",
            "given: `b`",
            "wanted: the name of a target",
            "hint: did you mean `a`",
        ],
    ),
    (
        ("url: http:", "url: ftp:"),
        &[
            "bad.yaml:3: `targets[0].url`: not understood",
            "wanted: a URL, as in `http://127.0.0.1:8000`",
            "hint: scheme `ftp` is not `http`, `https` or `unix`",
        ],
    ),
    (
        ("probes:", "state: /tmp/x\nprobes:"),
        &["bad.yaml:4: `state`: not available in this version"],
    ),
    (
        ("input_tokens: 8", "input_tokens: 0"),
        &[
            "bad.yaml:8: `probes[0].workload.synthetic.input_tokens`: out of range",
            "given: `0`",
            "wanted: ",
        ],
    ),
    (
        ("    targets: [a]\n", ""),
        &["bad.yaml:5: `probes[0].targets`: missing", "wanted: "],
    ),
    (("[a]", "[a"), &["bad.yaml:", "syntax error"]),
];

#[tokio::test]
async fn a_bad_configuration_is_explained_and_nothing_is_sent() {
    let folder = scratch("config_errors");
    let target = Untouched::listen();
    for (spoil, parts) in SPOILT {
        let text = configuration(&target.address().to_string(), spoil);
        fs::write(folder.join("bad.yaml"), text).expect("the folder is ours");
        for command in ["run", "check"] {
            let told = finish(&folder, &[command, "-c", "bad.yaml"]).await;
            assert_eq!(told.code, Some(2), "{spoil:?}: {told:?}");
            assert_eq!(told.stdout, "", "{spoil:?}");
            for part in parts {
                assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
            }
        }
    }
    target.check();
}

#[tokio::test]
async fn all_problems_are_told_at_once() {
    let folder = scratch("config_all");
    let text = "targets: [{ name: a, url: 'ftp://x', foo: 1 }]
probes:
  - { name: p, targets: [zz], slo: {}, arrivals: { process: poisson, rate: 3 furlongs } }
";
    fs::write(folder.join("bad.yaml"), text).expect("the folder is ours");
    let told = finish(&folder, &["run", "-c", "bad.yaml"]).await;
    for path in [
        "targets[0].url",
        "targets[0].foo",
        "probes[0].targets[0]",
        "probes[0].slo",
        "probes[0].arrivals.rate",
        "probes[0].workload",
    ] {
        let part = format!("`{path}`: ");
        assert!(told.stderr.contains(&part), "no {part} in {}", told.stderr);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_named() {
    let folder = scratch("config_files");
    fs::create_dir(folder.join("dir.yaml")).expect("the folder is ours");
    fs::write(folder.join("bytes.yaml"), [0xff, 0xfe, 0x00]).expect("the folder is ours");
    for (name, hint) in [
        ("missing.yaml", "hint: there is no such file"),
        ("dir.yaml", "hint: it is a directory"),
        ("bytes.yaml", ""),
    ] {
        for command in ["run", "check"] {
            let told = finish(&folder, &[command, "-c", name]).await;
            assert_eq!(told.code, Some(2), "{name}: {told:?}");
            assert_eq!(told.stdout, "", "{name}");
            assert!(told.stderr.starts_with(name), "{}", told.stderr);
            assert!(told.stderr.contains("wanted: "), "{}", told.stderr);
            assert!(told.stderr.contains(hint), "{}", told.stderr);
        }
    }
}

#[tokio::test]
async fn a_file_whose_content_cannot_be_used_is_told_with_the_line_of_its_key() {
    let folder = scratch("config_content");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("ours");
    write("bad.tiktoken", "YQ== 0\n\u{1b}[2J\u{1b}]0;owned\u{7} 1\n");
    write("bad.pem", "nothing here\n");
    write("bad.json", "{{ nonsense }}");
    let listener = Untouched::listen();
    let target = listener.address().to_string();
    for (more, place, part) in [
        (
            "tokenizer: { tiktoken: bad.tiktoken }",
            "bad.yaml:4: `targets[0].tokenizer.tiktoken`: ",
            "line 2",
        ),
        (
            "tls: { ca: bad.pem }",
            "bad.yaml:4: `targets[0].tls.ca`: ",
            "wanted certificates in PEM",
        ),
        (
            "api: template\n    request:\n      body: bad.json",
            "bad.yaml:6: `targets[0].request.body`: ",
            "`nonsense`",
        ),
    ] {
        let scheme = if more.starts_with("tls") {
            "https"
        } else {
            "http"
        };
        let url = format!("    url: {scheme}://{target}\n    {more}");
        let spoil = (&*format!("    url: http://{target}"), &*url);
        write("bad.yaml", &configuration(&target, spoil));
        for command in [&["check"][..], &["run", "--listen", "127.0.0.1:0"]] {
            let told = finish(&folder, &[command, &["-c", "bad.yaml"]].concat()).await;
            assert_eq!(told.code, Some(2), "{told:?}");
            for part in [place, part, "wanted: "] {
                assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
            }
            let steers = |c: char| c.is_control() && c != '\n';
            assert!(!told.stderr.contains(steers), "{:?}", told.stderr);
        }
    }
    listener.check();
}
