//! Control groups: which ones a process is in, where their files are, and what these say.
//!
//! Version 2 has one tree, version 1 one for each controller, and many machines have both at
//! once: then each number is read where its controller is. A limit may be set on a group further
//! up, so a limit and what came of it are those of the nearest group that has one. Groups of
//! another container are not below our own mount: they are looked for below the root of their own
//! process, which only its user may do.

use std::path::{Component, Path, PathBuf};

use super::files::{cpu_limit, first_number, keyed};
use super::{Pressures, pressures, small_text};

/// Groups further up that are looked at for a limit.
const MOST_UP: usize = 16;
/// Version 1 tells a limit that nobody set as the largest number of bytes in whole pages, nearly
/// 2^63. No machine has this much memory.
const NO_LIMIT: f64 = 1e18;

/// What a control group may use and has used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GroupState {
    /// Seconds of processors that it used.
    pub usage: Option<f64>,
    /// Processors that it may use; `None`: all.
    pub cpu_limit: Option<f64>,
    /// Periods in which its limit was enforced.
    pub periods: Option<f64>,
    /// Those in which it was held back.
    pub throttled_periods: Option<f64>,
    /// Seconds for which it was held back.
    pub throttled: Option<f64>,
    /// Bytes of memory in use.
    pub memory: Option<f64>,
    /// Bytes that it may use; `None`: all.
    pub memory_limit: Option<f64>,
    /// Processes of it that were killed for want of memory.
    pub oom_kills: Option<f64>,
    /// Pressure within it.
    pub pressure: Pressures,
}

/// The control groups of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlGroups {
    /// Of version 2.
    unified: Option<Group>,
    /// Of version 1: limits on processors, use of processors, memory.
    cpu: Option<Group>,
    account: Option<Group>,
    memory: Option<Group>,
    /// The one that counts processors, as the kernel calls it.
    name: Option<String>,
}

/// One control group.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    /// Where its tree is mounted.
    mount: PathBuf,
    /// Its place in it.
    below: PathBuf,
}

impl ControlGroups {
    /// Those of the process `process`, which is a number or `self`, on the machine whose files are
    /// below `root`.
    #[must_use]
    pub fn of(root: &Path, process: &str) -> Self {
        let folder = root.join("proc").join(process);
        let Some(text) = small_text(&folder.join("cgroup")) else {
            return Self::default();
        };
        let lines: Vec<(&str, &str)> = text.lines().filter_map(controllers_and_path).collect();
        let place = Place {
            root,
            of_process: folder.join("root"),
            is_self: process == "self",
        };
        let split = |controller: &str| {
            let (all, path) = *lines
                .iter()
                .find(|(all, _)| all.split(',').any(|one| one == controller))?;
            Some((place.find(&[all, controller], path)?, path))
        };
        let unified = lines.iter().find(|(all, _)| all.is_empty());
        let unified =
            unified.and_then(|(_, path)| Some((place.find(&["unified", ""], path)?, *path)));
        let account = split("cpuacct");
        let name = account.as_ref().or(unified.as_ref());
        Self {
            name: name.map(|(_, path)| (*path).to_owned()),
            unified: unified.map(|(group, _)| group),
            cpu: split("cpu").map(|(group, _)| group),
            account: account.map(|(group, _)| group),
            memory: split("memory").map(|(group, _)| group),
        }
    }

    /// Whether processors are counted in the same group as those of `other`.
    #[must_use]
    pub fn shares_with(&self, other: &Self) -> bool {
        self.name == other.name
    }

    /// The processes of the group that counts processors, as numbers; `None` if that is not known,
    /// or the group is no program's: the whole machine's, a slice, somebody's login. Those that we
    /// cannot see are left out.
    #[must_use]
    pub fn members(&self) -> Option<Vec<u32>> {
        let name = self.name.as_deref()?.rsplit('/').next()?;
        match name.rsplit_once('.') {
            Some((_, "slice")) => return None,
            Some((of, "scope")) if of.starts_with("session-") => return None,
            _ => {}
        }
        let group = self.account.as_ref().or(self.unified.as_ref())?;
        let text = (!group.is_root()).then(|| small_text(&group.file("cgroup.procs")))??;
        let numbers = text.lines().filter_map(|line| line.parse().ok());
        Some(numbers.filter(|number| *number != 0).collect())
    }

    /// What their files say now.
    #[must_use]
    pub fn read(&self) -> GroupState {
        let mut state = self.unified.as_ref().map(unified).unwrap_or_default();
        if let Some(group) = &self.cpu {
            split_cpu(group, &mut state);
        }
        if let Some(group) = self.account.as_ref().filter(|group| !group.is_root()) {
            let nanos = group.number("cpuacct.usage");
            state.usage = nanos.map(|nanos| nanos / 1e9).or(state.usage);
        }
        if let Some(group) = self.memory.as_ref().filter(|group| !group.is_root()) {
            split_memory(group, &mut state);
        }
        state
    }
}

/// A line of `/proc/PID/cgroup`: the controllers of a tree, none for that of version 2, and the
/// path in it.
fn controllers_and_path(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(':')?;
    rest.split_once(':')
}

/// Where trees may be mounted.
struct Place<'p> {
    root: &'p Path,
    /// What the process itself has as `/`.
    of_process: PathBuf,
    is_self: bool,
}

impl Place<'_> {
    /// The group at `path` of the tree that is mounted under one of these `names`.
    fn find(&self, names: &[&str], path: &str) -> Option<Group> {
        let parts = Path::new(path).components();
        let is_above = parts.clone().any(|part| part == Component::ParentDir);
        let inside: Vec<Component> = parts
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect();
        let mounts = |root: &Path| {
            let folder = root.join("sys/fs/cgroup");
            let mounts = names.iter().map(move |name| folder.join(name));
            mounts.filter(|mount| mount.is_dir()).collect::<Vec<_>>()
        };
        let group = |mount: PathBuf, below: PathBuf| {
            let group = Group { mount, below };
            group.folder().is_dir().then_some(group)
        };
        if !is_above {
            let below: PathBuf = inside.iter().collect();
            let mut found = mounts(self.root).into_iter();
            if let Some(found) = found.find_map(|mount| group(mount, below.clone())) {
                return Some(found);
            }
        } else if self.is_self {
            // Our own mount has others then.
            return None;
        }
        // A container has its own group, or one further up, mounted as the whole tree.
        let mut elsewhere = mounts(&self.of_process).into_iter();
        elsewhere.find_map(|mount| {
            let mut ends = 0..=inside.len();
            ends.find_map(|from| group(mount.clone(), inside[from..].iter().collect()))
        })
    }
}

impl Group {
    fn folder(&self) -> PathBuf {
        self.mount.join(&self.below)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn number(&self, name: &str) -> Option<f64> {
        first_number(&small_text(&self.file(name))?)
    }

    /// Whether it is that of the whole machine. Only that one has the file of version 1, and only
    /// that one lacks the file of version 2.
    fn is_root(&self) -> bool {
        let is_old = self.file("cgroup.clone_children").exists();
        if is_old {
            self.file("release_agent").exists()
        } else {
            !self.file("cgroup.type").exists()
        }
    }

    /// The nearest group, itself or further up, of which `limit` is known; else itself.
    fn limited(&self, limit: impl Fn(&Self) -> Option<f64>) -> (Self, Option<f64>) {
        let up = self.below.ancestors().take(MOST_UP).map(|below| Self {
            mount: self.mount.clone(),
            below: below.to_owned(),
        });
        let mut found = up.filter_map(|group| {
            let limit = limit(&group)?;
            Some((group, Some(limit)))
        });
        found.next().unwrap_or_else(|| (self.clone(), None))
    }
}

/// What a group of version 2 says.
fn unified(group: &Group) -> GroupState {
    let (cpu, cpu_limit) = group.limited(|one| cpu_limit(&small_text(&one.file("cpu.max"))?));
    let (memory, memory_limit) = group.limited(|one| one.number("memory.max"));
    let stat = small_text(&cpu.file("cpu.stat"));
    let of_stat = |key| keyed(stat.as_deref()?, key);
    let own = small_text(&group.file("cpu.stat")).filter(|_| !group.is_root());
    let events = small_text(&memory.file("memory.events"));
    GroupState {
        usage: own
            .and_then(|text| keyed(&text, "usage_usec"))
            .map(|micros| micros / 1e6),
        cpu_limit,
        periods: of_stat("nr_periods"),
        throttled_periods: of_stat("nr_throttled"),
        throttled: of_stat("throttled_usec").map(|micros| micros / 1e6),
        memory: memory.number("memory.current"),
        memory_limit,
        oom_kills: events.and_then(|text| keyed(&text, "oom_kill")),
        pressure: pressures(&group.folder(), ".pressure"),
    }
}

/// Adds what a group of version 1 says of its limit on processors.
fn split_cpu(group: &Group, state: &mut GroupState) {
    let (cpu, limit) = group.limited(|one| {
        let quota = one
            .number("cpu.cfs_quota_us")
            .filter(|quota| *quota > 0.0)?;
        let period = one
            .number("cpu.cfs_period_us")
            .filter(|period| *period > 0.0)?;
        Some(quota / period)
    });
    let stat = small_text(&cpu.file("cpu.stat"));
    let of_stat = |key| keyed(stat.as_deref()?, key);
    state.cpu_limit = limit.or(state.cpu_limit);
    state.periods = of_stat("nr_periods").or(state.periods);
    state.throttled_periods = of_stat("nr_throttled").or(state.throttled_periods);
    let nanos = of_stat("throttled_time");
    state.throttled = nanos.map(|nanos| nanos / 1e9).or(state.throttled);
}

/// Adds what a group of version 1 says of its memory.
fn split_memory(group: &Group, state: &mut GroupState) {
    let (memory, limit) = group.limited(|one| {
        let limit = one.number("memory.limit_in_bytes")?;
        (limit < NO_LIMIT).then_some(limit)
    });
    let events = small_text(&memory.file("memory.oom_control"));
    state.memory = memory.number("memory.usage_in_bytes").or(state.memory);
    state.memory_limit = limit.or(state.memory_limit);
    let kills = events.and_then(|text| keyed(&text, "oom_kill"));
    state.oom_kills = kills.or(state.oom_kills);
}
