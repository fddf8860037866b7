//! The server's own processes, where they are on our machine: found by who listens at the
//! target's address, read from `/proc` and from their control group.
//!
//! Looking through the open files of every process takes a while on a large machine, so it is
//! done once a minute and when the one that was found is gone, on a thread that nothing waits
//! for. Who may look is the kernel's to say: what is missing is said in a word. Not here: when it
//! is read, and what the numbers mean.

mod addresses;
mod memory_nodes;
mod search;
mod table;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::addresses::Listening;
pub(super) use self::memory_nodes::MemoryNodes;
use self::search::{Found, search};
use self::table::{Times, boot_time, status, times};
use crate::clock::MonoTime;
use crate::measurement::{ProcessGroup, ProcessState};
use crate::telemetry::{ControlGroups, GroupState};

/// Processes are looked for again after this long.
const AGAIN: Duration = Duration::from_mins(1);
/// Processes of one server at most. Of a group with more of them sums are not known.
const MOST_MEMBERS: usize = 4_096;

/// Why the processes of a server are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfound {
    /// Nobody listens there.
    #[error(
        "nothing listens at `{0}` in our network namespace: is the server on this machine, or in this pod?"
    )]
    NoListener(String),
    /// Somebody does, whom we do not see.
    #[error(
        "whoever listens is in another PID namespace or hidden from us: a pod needs `shareProcessNamespace: true`, a container the PID namespace of its server, a service the same user"
    )]
    OtherNamespace,
    /// Somebody does, whose files we may not see.
    #[error(
        "whoever listens does not let us see its open files: run as the same user and group, with no capabilities that we lack, or give us `CAP_SYS_PTRACE`"
    )]
    NotPermitted,
    /// Somebody does who only passes on what comes.
    #[error(
        "`{0}` listens, which passes on to a server elsewhere: run beside that, in its network namespace"
    )]
    Relay(String),
}

impl Unfound {
    /// Its name in labels.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::NoListener(_) => "no_listener",
            Self::OtherNamespace => "other_namespace",
            Self::NotPermitted => "not_permitted",
            Self::Relay(_) => "relay",
        }
    }
}

/// The processes of one server, read again and again.
#[derive(Debug)]
pub(super) struct ProcessWatch {
    root: PathBuf,
    listening: Listening,
    known: Option<Known>,
}

/// What the last search came to.
#[derive(Debug)]
struct Known {
    searched: MonoTime,
    what: Result<Server, Unfound>,
}

/// The processes that were found.
#[derive(Debug)]
struct Server {
    found: Found,
    groups: ControlGroups,
    /// Whether the group that counts processors has no processes but the server's.
    has_own_group: bool,
}

impl ProcessWatch {
    /// Those that listen as `listening` says, on the machine whose files are below `root`.
    pub(super) fn new(root: &Path, listening: Listening) -> Self {
        Self {
            root: root.to_owned(),
            listening,
            known: None,
        }
    }

    /// What they are at `now`; looks for them if that is due.
    ///
    /// # Errors
    ///
    /// If they were not found when they were last looked for.
    pub(super) fn read(
        &mut self,
        now: MonoTime,
        nodes: &MemoryNodes,
    ) -> Result<ProcessState, Unfound> {
        let known = match self.known.take().filter(|known| self.holds(known, now)) {
            Some(known) => known,
            None => Known {
                searched: now,
                what: search(&self.root, &self.listening).map(|found| self.server(found)),
            },
        };
        let state = match &known.what {
            Ok(server) => Ok(self.state(server, nodes)),
            Err(why) => Err(why.clone()),
        };
        self.known = Some(known);
        state
    }

    /// Whether what was found at the last search may still be so.
    fn holds(&self, known: &Known, now: MonoTime) -> bool {
        let is_there = match &known.what {
            Ok(server) => server.found.listener.is_there(&self.root),
            Err(_) => true,
        };
        is_there && now.since(known.searched) < AGAIN
    }

    fn server(&self, found: Found) -> Server {
        let groups = ControlGroups::of(&self.root, &found.listener.pid.to_string());
        let ours = ControlGroups::of(&self.root, "self");
        Server {
            has_own_group: !groups.shares_with(&ours) && groups.members().is_some(),
            found,
            groups,
        }
    }

    fn state(&self, server: &Server, nodes: &MemoryNodes) -> ProcessState {
        let group = server.groups.read();
        // Everybody of a group of its own belongs to the server: helpers beside the one that
        // listens too, and those that came since it was looked for.
        let members = server.has_own_group.then(|| server.groups.members());
        let members = members.flatten().filter(|members| !members.is_empty());
        let is_group = members.is_some();
        let members = members.unwrap_or_else(|| server.found.family.clone());
        let sums = Sums::of(&self.root, &members, nodes);
        let listener = &server.found.listener;
        ProcessState {
            pid: listener.pid,
            processes: sums.processes,
            started: boot_time(&self.root).map(|booted| booted + listener.times.started),
            // A group counts those that have ended, too.
            cpu: group.usage.filter(|_| is_group).or(sums.cpu),
            memory: sums.memory,
            threads: sums.threads,
            cpu_nodes: sums.cpu_nodes,
            memory_nodes: sums.memory_nodes,
            group: limits(&group),
        }
    }
}

fn limits(group: &GroupState) -> ProcessGroup {
    ProcessGroup {
        cpu_limit: group.cpu_limit,
        periods: group.periods,
        throttled_periods: group.throttled_periods,
        throttled: group.throttled,
        memory: group.memory,
        memory_limit: group.memory_limit,
        oom_kills: group.oom_kills,
        cpu_waiting: group.pressure.cpu.some,
        memory_waiting: group.pressure.memory.some,
    }
}

/// Several processes as one.
#[derive(Debug, Default)]
struct Sums {
    processes: u32,
    cpu: Option<f64>,
    memory: Option<f64>,
    threads: Option<f64>,
    cpu_nodes: Option<f64>,
    memory_nodes: Option<f64>,
}

impl Sums {
    fn of(root: &Path, members: &[u32], nodes: &MemoryNodes) -> Self {
        let mut sums = Self::default();
        for pid in members.iter().take(MOST_MEMBERS) {
            sums.add((times(root, *pid), status(root, *pid)), nodes);
        }
        if members.len() > MOST_MEMBERS {
            sums = Self {
                processes: u32::try_from(members.len()).unwrap_or(u32::MAX),
                ..Self::default()
            };
        }
        sums
    }

    fn add(
        &mut self,
        (times, status): (Option<Times>, Option<table::Status>),
        nodes: &MemoryNodes,
    ) {
        // One that has just ended.
        let (Some(times), Some(status)) = (times, status) else {
            return;
        };
        self.processes += 1;
        let plus = |sum: Option<f64>, more: Option<f64>| Some(sum.unwrap_or(0.0) + more?).or(sum);
        self.cpu = plus(self.cpu, Some(times.cpu));
        self.memory = plus(self.memory, status.memory);
        self.threads = plus(self.threads, status.threads);
        let most = |known: Option<f64>, other: Option<f64>| match (known, other) {
            (Some(known), Some(other)) => Some(known.max(other)),
            (known, other) => known.or(other),
        };
        let spans = nodes.spans(&status);
        self.cpu_nodes = most(self.cpu_nodes, spans.0);
        self.memory_nodes = most(self.memory_nodes, spans.1);
    }
}
