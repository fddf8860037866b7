//! `drill` before it begins: what it needs is named if it is not there.

use std::fs;

use super::setting::finish;
use crate::program::scratch;

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let folder = scratch("drill_missing");
    let arguments = [
        "drill",
        "--prometheus",
        "./nothing",
        "--alertmanager",
        "./nothing",
    ];
    let told = finish(&folder, &arguments).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    for part in [
        "--prometheus: `./nothing`: ",
        "wanted: a program that can be run",
    ] {
        assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
    }
    // It is there, and is no server: what it said is shown, and nothing is left running.
    let arguments = [
        "drill",
        "--prometheus",
        "/bin/true",
        "--alertmanager",
        "/bin/false",
    ];
    let told = finish(&folder, &arguments).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(
        told.stderr.contains("--alertmanager: `/bin/false`"),
        "{told:?}"
    );
    let arguments = [
        "drill",
        "--prometheus",
        "/bin/true",
        "--alertmanager",
        "/bin/true",
    ];
    let told = finish(&folder, &arguments).await;
    assert_eq!(told.code, Some(4), "{told:?}");
    assert!(
        told.stderr
            .contains("alertmanager ended with exit status: 0"),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_folder_with_something_in_it_is_refused() {
    let folder = scratch("drill_folder");
    fs::write(folder.join("mine"), "keep").expect("the folder is ours");
    let arguments = [
        "drill",
        "--prometheus",
        "/bin/true",
        "--alertmanager",
        "/bin/true",
        "--dir",
        ".",
    ];
    let told = finish(&folder, &arguments).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(
        told.stderr.contains("--dir: `.`: it is not empty"),
        "{told:?}"
    );
}
