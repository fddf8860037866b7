//! Who has a socket open, and whom it made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::addresses::Listening;
use super::table::{Times, name, times};
use super::{MOST_MEMBERS, Unfound};

/// Processes that are looked through at most, and open files of each. Kernels have no more
/// processes than four millions, and machines that serve models have thousands.
const MOST_PROCESSES: usize = 65_536;
const MOST_FILES: usize = 65_536;
/// Programs that listen for a server in another network namespace or on another machine: their
/// processors and memory are not the server's.
const RELAYS: [&str; 9] = [
    "docker-proxy",
    "rootlessport",
    "slirp4netns",
    "pasta",
    "pasta.avx2",
    "kubectl",
    "ssh",
    "sshd",
    "socat",
];
/// Starts services and holds their sockets for them.
const STARTER: &str = "systemd";

/// One process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) times: Times,
}

impl Process {
    /// Whether it is still there: a number may be given anew, but not at the same time.
    pub(super) fn is_there(&self, root: &Path) -> bool {
        let now = times(root, self.pid);
        now.is_some_and(|now| (now.started - self.times.started).abs() < f64::EPSILON)
    }
}

/// The processes of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The one that listens; of several the oldest.
    pub(super) listener: Process,
    /// All that listen, and all that these made, as numbers.
    pub(super) family: Vec<u32>,
}

/// Looks for whoever listens as `listening` says.
pub(super) fn search(root: &Path, listening: &Listening) -> Result<Found, Unfound> {
    let sockets = listening.sockets(root);
    if sockets.is_empty() {
        return Err(Unfound::NoListener(listening.to_string()));
    }
    let all = processes(root);
    let mut holders = Vec::new();
    let mut is_denied = false;
    for pid in &all {
        match has_open(root, *pid, &sockets) {
            Ok(true) => holders.push(*pid),
            Ok(false) => {}
            Err(kind) => is_denied |= kind == ErrorKind::PermissionDenied,
        }
    }
    let called = |pid: &u32| name(root, *pid).unwrap_or_default();
    if holders.len() > 1 {
        let starters = holders.iter().filter(|pid| called(pid) == STARTER).count();
        if starters < holders.len() {
            holders.retain(|pid| called(pid) != STARTER);
        }
    }
    if let Some(relay) = holders.iter().map(called).find(|name| is_relay(name)) {
        return Err(Unfound::Relay(relay));
    }
    let known = holders
        .iter()
        .filter_map(|pid| Some((*pid, times(root, *pid)?)));
    let oldest = known.min_by(|(_, one), (_, other)| one.started.total_cmp(&other.started));
    let Some((pid, times)) = oldest else {
        return Err(if is_denied {
            Unfound::NotPermitted
        } else {
            Unfound::OtherNamespace
        });
    };
    Ok(Found {
        listener: Process { pid, times },
        family: family(root, &all, holders),
    })
}

fn is_relay(name: &str) -> bool {
    RELAYS.contains(&name)
}

/// The numbers of all processes that can be seen.
fn processes(root: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(root.join("proc")) else {
        return Vec::new();
    };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.take(MOST_PROCESSES).collect()
}

/// Whether the process `pid` has one of `sockets` open.
fn has_open(root: &Path, pid: u32, sockets: &BTreeSet<u64>) -> Result<bool, ErrorKind> {
    let folder = root.join(format!("proc/{pid}/fd"));
    let files = fs::read_dir(folder).map_err(|error| error.kind())?;
    let mut is_denied = false;
    for file in files.take(MOST_FILES).flatten() {
        match fs::read_link(file.path()) {
            Ok(link) if socket_of(&link).is_some_and(|socket| sockets.contains(&socket)) => {
                return Ok(true);
            }
            Ok(_) => {}
            // Their list may be seen where they may not.
            Err(error) => is_denied |= error.kind() == ErrorKind::PermissionDenied,
        }
    }
    if is_denied {
        return Err(ErrorKind::PermissionDenied);
    }
    Ok(false)
}

/// The number of the socket that an open file is, if it is one.
fn socket_of(link: &Path) -> Option<u64> {
    let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// `holders`, and all of the processes `all` that they made, those that these made, and so on.
fn family(root: &Path, all: &[u32], holders: Vec<u32>) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in all {
        if let Some(times) = times(root, *pid) {
            children.entry(times.parent).or_default().push(*pid);
        }
    }
    let mut family: BTreeSet<u32> = holders.iter().copied().collect();
    let mut new = holders;
    // One more than is summed up shows that there are too many.
    while let Some(parent) = new.pop().filter(|_| family.len() <= MOST_MEMBERS) {
        for child in children.get(&parent).into_iter().flatten() {
            if family.insert(*child) {
                new.push(*child);
            }
        }
    }
    family.into_iter().collect()
}
