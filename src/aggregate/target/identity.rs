//! What a server is: its version, its models, its settings, its pods and their images; and what
//! of that changed.

use std::collections::{BTreeSet, VecDeque};

use crate::measurement::server::ServerInfo;
use crate::measurement::{MarkKind, PodInfo};

/// Earlier values that are no news: replicas of several kinds may answer in turn while one
/// release takes the place of another.
const REMEMBERED: usize = 4;
/// Settings or models that a text names.
const NAMED: usize = 3;

type Pairs = Vec<(Box<str>, Box<str>)>;

/// The last values of one thing.
#[derive(Debug, Clone)]
struct Known<T>(VecDeque<T>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: PartialEq> Known<T> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the newest value; the one before it if that is news.
    fn take(&mut self, value: T) -> Option<&T> {
        if let Some(at) = self.0.iter().position(|known| *known == value) {
            let known = self.0.remove(at)?;
            self.0.push_back(known);
            return None;
        }
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(value);
        self.0.iter().rev().nth(1)
    }
}

/// What one target was so far.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    version: Known<Box<str>>,
    models: Known<Vec<Box<str>>>,
    flags: Known<Pairs>,
    pod: Known<Box<str>>,
    pod_uid: Known<Box<str>>,
    labels: Known<Pairs>,
    annotations: Known<Pairs>,
    /// Pods that its GPUs serve.
    gpu_pods: Known<Vec<Box<str>>>,
}

/// A change, and what it is from and to.
pub type Changed = (MarkKind, String);

impl Identity {
    /// Takes the version that the server says it is of.
    pub fn version(&mut self, version: &str) -> Option<Changed> {
        let before = self.version.take(version.into())?;
        Some((MarkKind::Version, format!("{before} → {version}")))
    }

    /// Takes the names of the models that it lists, in any order. An empty list is no news: some
    /// list a model only once it is loaded.
    pub fn models(&mut self, mut models: Vec<Box<str>>) -> Option<Changed> {
        models.sort_unstable();
        models.dedup();
        if models.is_empty() {
            return None;
        }
        let now = models.clone();
        let before = self.models.take(models)?;
        let text = format!("{} → {}", names(before), names(&now));
        Some((MarkKind::Models, text))
    }

    /// Takes what its page says that does not change while it runs.
    pub fn flags(&mut self, info: &ServerInfo) -> Option<Changed> {
        if info.flags.is_empty() {
            return None;
        }
        let before = self.flags.take(info.flags.clone())?;
        let text = differences(before, &info.flags);
        Some((MarkKind::Flags, text))
    }

    /// Takes how its pod is described: another pod, and another image. What is not told this time
    /// is as it was.
    pub fn pod(&mut self, pod: &PodInfo) -> [Option<Changed>; 2] {
        let renamed = pod.name.as_ref().and_then(|now| {
            let before = self.pod.take(now.clone())?;
            Some(format!("{before} → {now}"))
        });
        // A set gives the pod that takes another's place the same name.
        let replaced = pod.uid.as_ref().and_then(|now| {
            let before = self.pod_uid.take(now.clone())?;
            Some(match &pod.name {
                Some(name) => format!("{name}: {before} → {now}"),
                None => format!("{before} → {now}"),
            })
        });
        let images = [
            (&mut self.labels, &pod.labels),
            (&mut self.annotations, &pod.annotations),
        ];
        let images = images.into_iter().filter_map(|(known, now)| {
            let now = now.as_ref()?;
            Some(differences(known.take(now.clone())?, now))
        });
        let images: Vec<String> = images.collect();
        let image = (!images.is_empty()).then(|| (MarkKind::Image, images.join(", ")));
        let pod = renamed.or(replaced).map(|text| (MarkKind::Pod, text));
        [pod, image]
    }

    /// Takes the pods that its GPUs serve, in order: those that went, and those that came. Where
    /// a pod is described itself, that is the nearer word.
    pub fn gpu_pods(&mut self, pods: &[Box<str>]) -> Option<Changed> {
        if pods.is_empty() || !self.pod.is_empty() || !self.pod_uid.is_empty() {
            return None;
        }
        let before = self.gpu_pods.take(pods.to_vec())?;
        let without = |all: &[Box<str>], others: &[Box<str>]| -> String {
            let left = all.iter().filter(|pod| !others.contains(pod));
            let left: Vec<&str> = left.map(|pod| &**pod).collect();
            if left.is_empty() {
                return "none".to_owned();
            }
            first_few(&left)
        };
        let text = format!("{} → {}", without(before, pods), without(pods, before));
        Some((MarkKind::Pod, text))
    }
}

fn names(models: &[Box<str>]) -> String {
    let all: Vec<&str> = models.iter().map(|model| &**model).collect();
    first_few(&all)
}

fn first_few<T: AsRef<str>>(all: &[T]) -> String {
    let few: Vec<&str> = all.iter().take(NAMED).map(AsRef::as_ref).collect();
    let text = few.join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// The settings that differ, each from what to what.
fn differences(before: &Pairs, now: &Pairs) -> String {
    let value = |pairs: &Pairs, name: &str| {
        let found = pairs.iter().find(|(of, _)| **of == *name);
        found.map_or_else(|| "none".to_owned(), |(_, value)| value.to_string())
    };
    let all: BTreeSet<&str> = before.iter().chain(now).map(|(name, _)| &**name).collect();
    let changed: Vec<String> = all
        .into_iter()
        .map(|name| (name, value(before, name), value(now, name)))
        .filter(|(_, before, now)| before != now)
        .map(|(name, before, now)| format!("{name}: {before} → {now}"))
        .collect();
    first_few(&changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_first_seen_is_no_change_and_what_comes_back_neither() {
        let mut identity = Identity::default();
        assert_eq!(identity.version("0.11.0"), None);
        assert_eq!(identity.version("0.11.0"), None);
        let change = |text: &str| Some((MarkKind::Version, text.to_owned()));
        assert_eq!(identity.version("0.11.1"), change("0.11.0 → 0.11.1"));
        // Replicas of both answer in turn.
        for version in ["0.11.0", "0.11.1", "0.11.0", "0.11.1"] {
            assert_eq!(identity.version(version), None);
        }
        assert_eq!(identity.version("0.12.0"), change("0.11.1 → 0.12.0"));
    }

    #[test]
    fn models_are_a_set_and_an_empty_list_says_nothing() {
        let mut identity = Identity::default();
        let list = |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Vec<_>>();
        assert_eq!(identity.models(list(&["b", "a"])), None);
        assert_eq!(identity.models(list(&[])), None);
        assert_eq!(identity.models(list(&["a", "b", "b"])), None);
        let many = identity.models(list(&["a", "b", "c", "d", "e"]));
        let text = "a, b → a, b, c and 2 more".to_owned();
        assert_eq!(many, Some((MarkKind::Models, text)));
    }

    #[test]
    fn settings_are_told_apart_one_by_one() {
        let info = |pairs: &[(&str, &str)]| ServerInfo {
            flags: pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            ..ServerInfo::default()
        };
        let mut identity = Identity::default();
        let first = info(&[("block_size", "16"), ("cache_dtype", "auto"), ("gone", "x")]);
        assert_eq!(identity.flags(&first), None);
        assert_eq!(
            identity.flags(&ServerInfo::default()),
            None,
            "not on the page"
        );
        let second = info(&[("block_size", "32"), ("cache_dtype", "auto"), ("new", "y")]);
        let text = "block_size: 16 → 32, gone: x → none, new: none → y".to_owned();
        assert_eq!(identity.flags(&second), Some((MarkKind::Flags, text)));
    }

    fn pod(name: &str, uid: &str, image: &str) -> PodInfo {
        let text = |text: &str| (!text.is_empty()).then(|| text.into());
        PodInfo {
            name: text(name),
            uid: text(uid),
            labels: Some(Vec::new()),
            annotations: text(image).map(|image| vec![("image".into(), image)]),
        }
    }

    #[test]
    fn another_pod_and_another_image_are_told_apart() {
        let mut identity = Identity::default();
        let mut take = |(name, uid, image)| {
            let changed = identity.pod(&pod(name, uid, image));
            changed.map(|changed| changed.map(|(kind, text)| format!("{}: {text}", kind.name())))
        };
        let told = |text: &str| Some(text.to_owned());
        for (told_so, expected) in [
            (("vllm-a", "u1", "r/vllm:1"), [None, None]),
            (("vllm-a", "u1", "r/vllm:1"), [None, None]),
            // What is missing once has not changed.
            (("", "", ""), [None, None]),
            (
                ("vllm-b", "u2", "r/vllm:1"),
                [told("pod: vllm-a → vllm-b"), None],
            ),
            // Both answer in turn.
            (("vllm-a", "u1", "r/vllm:1"), [None, None]),
            (("vllm-b", "u2", "r/vllm:1"), [None, None]),
            (
                ("vllm-b", "u2", "r/vllm:2"),
                [None, told("image: image: r/vllm:1 → r/vllm:2")],
            ),
            (
                ("vllm-b", "u3", "r/vllm:2"),
                [told("pod: vllm-b: u2 → u3"), None],
            ),
            (("", "u4", "r/vllm:2"), [told("pod: u3 → u4"), None]),
        ] {
            assert_eq!(take(told_so), expected, "{told_so:?}");
        }
    }

    #[test]
    fn labels_and_annotations_that_change_at_once_are_one_mark() {
        let mut identity = Identity::default();
        let described = |version: &str, tag: Option<&str>| PodInfo {
            labels: Some(vec![("version".into(), version.into())]),
            annotations: Some(
                tag.map(|tag| ("tag".into(), tag.into()))
                    .into_iter()
                    .collect(),
            ),
            ..PodInfo::default()
        };
        assert_eq!(identity.pod(&described("1", None)), [None, None]);
        let text = "version: 1 → 2, tag: none → t".to_owned();
        let expected = [None, Some((MarkKind::Image, text))];
        assert_eq!(identity.pod(&described("2", Some("t"))), expected);
    }

    #[test]
    fn pods_of_gpus_come_and_go() {
        let mut identity = Identity::default();
        let mut take = |pods: &[&str]| {
            let pods: Vec<Box<str>> = pods.iter().map(|pod| (*pod).into()).collect();
            identity.gpu_pods(&pods).map(|(_, text)| text)
        };
        let told = |text: &str| Some(text.to_owned());
        assert_eq!(take(&["a", "b"]), None);
        assert_eq!(take(&[]), None, "nothing tells");
        assert_eq!(take(&["b", "c"]), told("a → c"));
        assert_eq!(take(&["a", "b"]), None, "in turn");
        assert_eq!(take(&["b", "c"]), None, "in turn");
        assert_eq!(take(&["b", "c", "d"]), told("none → d"));
        assert_eq!(take(&["b"]), told("c, d → none"));
        assert_eq!(identity.pod(&pod("a", "", "")), [None, None]);
        let nearer = identity.gpu_pods(&["z".into()]);
        assert_eq!(nearer, None, "the pod itself says which it is");
    }
}
