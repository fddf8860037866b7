//! A `promtool` that can write native histograms into a test: the rules for them, which the one of
//! Debian 12 can only read.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::super::components::component;
use crate::program::tell;

fn promtool(arguments: &[&str]) -> String {
    let mut command = Command::new(component("TOKENCANARY_NEW_PROMTOOL"));
    let output = command.args(arguments).output().expect("it is installed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (told, wrong) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {told}\n{wrong}");
    told + &wrong
}

#[test]
fn rules_for_native_histograms_record_and_tell_what_they_should() {
    let version = promtool(&["--version"]);
    let version = version.lines().next().unwrap_or_default().to_owned();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/rules");
    for form in ["classic", "native"] {
        let file = root.join(format!("{form}.yaml"));
        let told = promtool(&[
            "check",
            "rules",
            "--lint=none",
            file.to_str().expect("plain"),
        ]);
        assert!(told.contains("SUCCESS"), "{told}");
    }
    let mut tested = 0;
    for entry in fs::read_dir(root.join("tests-native")).expect("they are committed") {
        let file = entry.expect("it can be read").path();
        let told = promtool(&["test", "rules", file.to_str().expect("plain")]);
        assert!(told.contains("SUCCESS"), "{told}");
        tested += 1;
    }
    assert!(tested > 0);
    // A tested rule is one whose name is there; those of histograms are all.
    let tests = fs::read_to_string(root.join("tests-native/native.yaml")).expect("it is there");
    let native = fs::read_to_string(root.join("native.yaml")).expect("it is committed");
    let recorded = native
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- record: "));
    let of_histograms: Vec<&str> = recorded
        .filter(|name| name.starts_with("tokencanary:request_"))
        .collect();
    let untested: Vec<_> = of_histograms
        .iter()
        .filter(|name| !tests.contains(**name))
        .collect();
    assert!(untested.is_empty(), "{untested:?}");
    tell(&format!(
        "{version}: {} rules for native histograms tested",
        of_histograms.len()
    ));
}
