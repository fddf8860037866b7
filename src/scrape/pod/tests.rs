//! Volumes as a kubelet lays them out, and whatever else may be at that place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;

/// A volume of its own.
struct Volume {
    dir: PathBuf,
    config: PodInfoConfig,
}

impl Volume {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("tokencanary-pod-{name}-{}", std::process::id()));
        if dir.exists() {
            fs::remove_dir_all(&dir).expect("the folder is ours");
        }
        fs::create_dir_all(&dir).expect("the folder is ours");
        let config = PodInfoConfig::at(&dir);
        Self { dir, config }
    }

    /// A new set of files in the place of the one before, as the kubelet puts it there.
    fn put(&self, set: &str, files: &[(&str, &[u8])]) {
        let folder = self.dir.join(set);
        fs::create_dir(&folder).expect("a new set");
        for (name, content) in files {
            fs::write(folder.join(name), content).expect("the folder is ours");
            let link = self.dir.join(name);
            if !link.is_symlink() {
                symlink(format!("..data/{name}"), link).expect("the folder is ours");
            }
        }
        let link = self.dir.join("..data_tmp");
        symlink(set, &link).expect("the folder is ours");
        let before = fs::read_link(self.dir.join("..data"));
        fs::rename(link, self.dir.join("..data")).expect("the folder is ours");
        if let Ok(before) = before {
            fs::remove_dir_all(self.dir.join(before)).expect("the folder is ours");
        }
    }

    fn read(&self) -> PodReading {
        read_pod(&self.config)
    }
}

fn images(pairs: &[(&str, &str)]) -> NamedImages {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

#[test]
fn a_volume_is_read_and_so_is_the_next_set_of_it() {
    let volume = Volume::new("sets");
    volume.put(
        "..2026_01_02_03_04_05.1",
        &[
            ("name", b"vllm-7d9f-abc"),
            ("uid", b"0b1c\n"),
            (
                "labels",
                b"app=\"vllm\"\napp.kubernetes.io/version=\"0.11.0\"\npod-template-hash=\"7d9f\"",
            ),
            (
                "annotations",
                b"ci.example/image=\"r/vllm:1\"\nnote=\"two\\nlines of \\\"image\\\"\"",
            ),
        ],
    );
    let info = PodInfo {
        name: Some("vllm-7d9f-abc".into()),
        uid: Some("0b1c".into()),
        labels: Some(images(&[("app.kubernetes.io/version", "0.11.0")])),
        annotations: Some(images(&[("ci.example/image", "r/vllm:1")])),
    };
    let trouble = None;
    assert_eq!(
        volume.read(),
        PodReading {
            info: info.clone(),
            trouble
        }
    );

    volume.put(
        "..2026_01_02_03_06_00.2",
        &[
            ("name", b"vllm-7d9f-abc"),
            ("uid", b"0b1c"),
            ("labels", b"app=\"vllm\""),
            ("annotations", b"ci.example/image=\"r/vllm:2\""),
        ],
    );
    let info = PodInfo {
        labels: Some(images(&[])),
        annotations: Some(images(&[("ci.example/image", "r/vllm:2")])),
        ..info
    };
    assert_eq!(volume.read(), PodReading { info, trouble });
}

#[test]
fn plain_files_without_a_link_are_read_too_and_what_is_missing_is_not_told() {
    let volume = Volume::new("plain");
    assert_eq!(volume.read(), PodReading::default(), "an empty directory");
    fs::write(volume.dir.join("labels"), "image=\"a\"\n").expect("the folder is ours");
    fs::write(volume.dir.join("uid"), " \n").expect("the folder is ours");
    let info = PodInfo {
        labels: Some(images(&[("image", "a")])),
        ..PodInfo::default()
    };
    let trouble = None;
    assert_eq!(volume.read(), PodReading { info, trouble });
    fs::remove_dir_all(&volume.dir).expect("the folder is ours");
    assert_eq!(volume.read(), PodReading::default(), "no directory");
}

#[test]
fn a_long_file_is_read_to_a_bound_and_a_long_value_is_cut() {
    let volume = Volume::new("long");
    let mut annotations = format!("image=\"{}\"\n", "é".repeat(2_000)).into_bytes();
    annotations.extend(format!("note=\"{}\"\n", "x".repeat(600_000)).into_bytes());
    annotations.extend(format!("image-tag=\"{}\"\n", "y".repeat(600_000)).into_bytes());
    volume.put("..1", &[("annotations", &annotations)]);
    let reading = volume.read();
    assert_eq!(reading.trouble, Some("too_large"));
    let expected = Some(images(&[("image", &"é".repeat(512))]));
    assert_eq!(
        reading.info.annotations, expected,
        "the last one is not whole"
    );
    let one_line = vec![b'x'; 2 << 20];
    volume.put("..2", &[("labels", &one_line)]);
    assert_eq!(volume.read().info.labels, Some(images(&[])));
}

#[test]
fn what_is_no_volume_is_told_in_a_word() {
    let volume = Volume::new("odd");
    volume.put(
        "..1",
        &[
            ("name", b"vllm-\xff\xfe"),
            ("annotations", b"\x80image\nimage=\"r/\xffvllm:1\"\n"),
        ],
    );
    let reading = volume.read();
    assert_eq!(reading.trouble, Some("malformed"));
    assert_eq!(reading.info.name, Some("vllm-\u{fffd}\u{fffd}".into()));
    let annotations = Some(images(&[("image", "r/\u{fffd}vllm:1")]));
    assert_eq!(reading.info.annotations, annotations);

    // A directory for a file, and a file for the directory.
    fs::create_dir(volume.dir.join("..1/labels")).expect("the folder is ours");
    let reading = volume.read();
    assert_eq!(reading.trouble, Some("unreadable"));
    assert_eq!(
        (reading.info.labels, reading.info.annotations),
        (None, annotations)
    );
    let config = PodInfoConfig::at(volume.dir.join("..1/name"));
    assert_eq!(read_pod(&config).trouble, Some("unreadable"));
}
