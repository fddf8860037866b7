//! A pod that is described in a directory: what changes there becomes a mark.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use tokencanary::clock::TimeAnchor;
use tokencanary::config::{Arrivals, PodInfoConfig, WhenFull};
use tokencanary::measurement::MarkKind;
use tokencanary::simulator::{Profile, Simulator, SimulatorConfig};
use tokio::time::sleep;

use super::{before, config};
use crate::program::scratch;

/// Puts `set` in the place of the set before, as a kubelet does.
pub(crate) fn swap(dir: &Path, set: &str, files: &[(&str, &str)]) {
    let folder = dir.join(set);
    fs::create_dir(&folder).expect("a new set");
    for (name, content) in files {
        fs::write(folder.join(name), content).expect("the folder is ours");
    }
    symlink(set, dir.join("..data_tmp")).expect("the folder is ours");
    fs::rename(dir.join("..data_tmp"), dir.join("..data")).expect("the folder is ours");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_becomes_another_and_an_image_that_changes_are_marked() {
    let dir = scratch("virtual_pod");
    swap(
        &dir,
        "..1",
        &[
            ("name", "vllm-7d9f-abc"),
            ("annotations", "ci.example/image=\"r/vllm:1\""),
        ],
    );
    let rate = Arrivals::Constant { rate: 0.2 };
    let mut config = config(rate, WhenFull::Refuse, 4);
    config.targets[0].pod_info = Some(PodInfoConfig::at(&dir));
    let anchor = TimeAnchor::start();
    let simulator = Simulator::new(SimulatorConfig::new(Profile::demo()), anchor);
    let (app, engine) = before((&simulator.expect("no log file"), anchor), config);
    let live = app.live();
    let told = || -> Vec<(MarkKind, String)> {
        let live = live.lock().unwrap_or_else(PoisonError::into_inner);
        let marks = live.marks().iter();
        marks
            .map(|mark| (mark.kind, mark.text.to_string()))
            .collect()
    };
    let changing = async {
        sleep(Duration::from_secs(65)).await;
        assert_eq!(told(), []);
        let labels = "app.kubernetes.io/version=\"1\"";
        let with = |image| {
            [
                ("name", "vllm-7d9f-def"),
                ("labels", labels),
                ("annotations", image),
            ]
        };
        swap(&dir, "..2", &with("ci.example/image=\"r/vllm:2\""));
        sleep(Duration::from_secs(10)).await;
        let expected = [
            (MarkKind::Image, "ci.example/image: r/vllm:1 → r/vllm:2"),
            (MarkKind::Pod, "vllm-7d9f-abc → vllm-7d9f-def"),
        ];
        let expected = expected.map(|(kind, text)| (kind, text.to_owned()));
        assert_eq!(told(), expected);
        // The volume goes away and comes back, and the image is one that was there: no news.
        fs::remove_file(dir.join("..data")).expect("the folder is ours");
        sleep(Duration::from_mins(1)).await;
        swap(&dir, "..3", &with("ci.example/image=\"r/vllm:1\""));
        sleep(Duration::from_mins(1)).await;
        assert_eq!(told(), expected);
    };
    Box::pin(app.run(changing)).await.expect("no task dies");
    engine.abort();
}
