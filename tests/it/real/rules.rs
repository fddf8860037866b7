//! The rules under `promtool`: that they can be read, and that each records and tells what it
//! should, and only then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::components::component;
use crate::program::{scratch, tokencanary};

/// Files of hand-written tests, which name a file of [`rules`] in the folder above.
const TESTS: &str = "dashboards/rules/tests";

/// Runs `command` and returns what it wrote, once it has ended well.
fn good(mut command: Command) -> String {
    let output = command.output().expect("the program is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

fn promtool(arguments: &[&str]) -> String {
    let mut command = Command::new(component("TOKENCANARY_PROMTOOL"));
    command.args(arguments);
    good(command)
}

/// Writes what `generate rules` says to `arguments` to `file`.
fn generate(file: &Path, arguments: &[&str]) {
    let mut command = tokencanary();
    command.args(["generate", "rules"]).args(arguments);
    fs::write(file, good(command)).expect("the folder is ours");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder with the committed rules, those of the sample configuration, and those in which a day
/// takes two hours.
fn rules(name: &str) -> PathBuf {
    let folder = scratch(name);
    for form in ["classic", "native"] {
        let committed = root().join(format!("dashboards/rules/{form}.yaml"));
        let copy = folder.join(format!("{form}.yaml"));
        fs::copy(committed, copy).expect("it is committed");
    }
    let sample = root().join("config/canary.yaml");
    let sample = sample.to_str().expect("it is plain");
    generate(&folder.join("configured.yaml"), &["-c", sample]);
    let arguments = ["--compress", "12"];
    generate(&folder.join("compressed.yaml"), &arguments);
    folder
}

#[test]
fn promtool_can_read_the_rules_however_they_are_made() {
    let folder = rules("rules_read");
    generate(
        &folder.join("compressed_native.yaml"),
        &["--compress", "12", "--histograms", "native"],
    );
    let odd = root().join("config/gateway.yaml");
    generate(
        &folder.join("gateway.yaml"),
        &[
            "-c",
            odd.to_str().expect("plain"),
            "--factor",
            "1.5",
            "--for",
            "90s",
        ],
    );
    for file in [
        "classic",
        "native",
        "configured",
        "compressed",
        "compressed_native",
        "gateway",
    ] {
        let file = folder.join(format!("{file}.yaml"));
        // Its linter takes rules of the same name for copies; ours are of different probes.
        let told = promtool(&[
            "check",
            "rules",
            "--lint=none",
            file.to_str().expect("plain"),
        ]);
        assert!(told.contains("SUCCESS"), "{told}");
    }
    let compressed =
        fs::read_to_string(folder.join("compressed_native.yaml")).expect("just written");
    for part in [
        "interval: 2s500ms",
        "[25s]",
        "[2h] offset 2m30s",
        "for: 10s",
    ] {
        assert!(compressed.contains(part), "{part}");
    }
}

#[test]
fn the_composed_prometheus_and_alertmanager_take_their_files() {
    let compose = root().join("deploy/compose");
    let file = |name: &str| compose.join(name).to_str().expect("plain").to_owned();
    let told = promtool(&["check", "config", "--syntax-only", &file("prometheus.yml")]);
    assert!(told.contains("SUCCESS"), "{told}");
    let mut command = Command::new(component("TOKENCANARY_AMTOOL"));
    command.args(["check-config", &file("alertmanager.yml")]);
    let told = good(command);
    assert!(told.contains("5 inhibit rules"), "{told}");
    assert!(told.contains("3 receivers"), "{told}");
}

#[test]
fn every_rule_does_what_its_tests_say() {
    let folder = rules("rules_tested");
    let tests = folder.join("tests");
    fs::create_dir_all(&tests).expect("the folder is ours");
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join(TESTS)).expect("they are committed") {
        let from = entry.expect("it can be read").path();
        let to = tests.join(from.file_name().expect("it is a file"));
        fs::copy(&from, &to).expect("the folder is ours");
        files.push(to.to_str().expect("plain").to_owned());
    }
    assert!(files.len() >= 5, "{files:?}");
    // Each takes many seconds of one core.
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(move || {
                let told = promtool(&["test", "rules", file]);
                assert_eq!(told.matches("SUCCESS").count(), 1, "{told}");
            });
        }
    });
}
