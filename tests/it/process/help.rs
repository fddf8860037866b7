//! What the program says of itself equals `tests/golden/help/*.txt`.
//!
//! After a wanted change: `TOKENCANARY_BLESS=1 cargo test --test it help` writes the files
//! anew; read the difference before keeping it.

use std::fs;
use std::path::Path;

use super::setting::finish;
use crate::program::blessing;

const COMMANDS: [&str; 9] = [
    "demo", "run", "check", "init", "bench", "drill", "simulate", "trace", "generate",
];

/// Commands of `trace`.
const TRACE: [&str; 3] = ["analyze", "convert", "synthesize"];

/// Commands of `generate`.
const GENERATE: [&str; 4] = ["rules", "dashboards", "kubernetes", "metrics-reference"];

async fn golden(name: &str, arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/help");
    let file = folder.join(format!("{name}.txt"));
    let told = finish(Path::new("."), arguments).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(told.stderr, "");
    // Trailing blanks are the formatter's, and editors remove them.
    let lines: Vec<&str> = told.stdout.lines().map(str::trim_end).collect();
    let told = lines.join("\n") + "\n";
    if blessing() {
        fs::create_dir_all(&folder).expect("the tree can be written to");
        fs::write(&file, told).expect("the tree can be written to");
        return;
    }
    let wanted = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        told,
        wanted,
        "{}: changed; `TOKENCANARY_BLESS=1` writes it anew",
        file.display()
    );
}

#[tokio::test]
async fn help_is_what_was_agreed() {
    golden("tokencanary", &["--help"]).await;
    for command in COMMANDS {
        golden(command, &[command, "--help"]).await;
    }
    for command in TRACE {
        golden(&format!("trace-{command}"), &["trace", command, "--help"]).await;
    }
    for command in GENERATE {
        golden(
            &format!("generate-{command}"),
            &["generate", command, "--help"],
        )
        .await;
    }
}

#[tokio::test]
async fn every_command_has_its_golden_file() {
    let told = finish(Path::new("."), &["--help"]).await.stdout;
    let (_, rest) = told.split_once("Commands:\n").expect("it lists commands");
    let (list, _) = rest.split_once("\n\n").expect("options follow");
    let listed: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(listed, COMMANDS);
}

#[tokio::test]
async fn version_is_one_line_on_stdout() {
    let told = finish(Path::new("."), &["--version"]).await;
    assert_eq!(told.code, Some(0));
    assert_eq!(
        told.stdout,
        concat!("tokencanary ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(told.stderr, "");
}

#[tokio::test]
async fn words_that_are_no_command_end_with_usage() {
    for arguments in [
        &["bogus"][..],
        &[],
        &["run"],
        &["demo", "--port", "99999"],
        &["--log", "=", "demo"],
        &["simulate", "--ttft", "3ms"],
        &["simulate", "--log-times", "/nowhere/at/all"],
        &["init"],
        &["init", "--url", "ftp://h"],
    ] {
        let told = finish(Path::new("."), arguments).await;
        assert_eq!(told.code, Some(2), "{arguments:?}: {told:?}");
        assert_eq!(told.stdout, "", "{arguments:?}");
        assert!(!told.stderr.is_empty(), "{arguments:?}");
    }
}
