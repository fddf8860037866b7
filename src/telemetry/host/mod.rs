//! The machine that we run on: processors, memory, pressure, network, and what our own control
//! group may use of them. With it "our own client" can be ruled in or out. Control groups of others
//! are read in the same way, for whoever knows whose they are.
//!
//! Everything comes from a dozen small files of Linux, read when somebody asks; elsewhere, and
//! where a kernel does not have one, it is absent. Not here: our own process (the `prometheus` crate reads
//! that).

mod files;
mod group;

use std::fs;
use std::path::{Path, PathBuf};

pub use self::files::keyed;
use self::files::{cpu_times, mean_load, network, pressure, protocol_count};
pub use self::group::{ControlGroups, GroupState};

/// Longest of these files that is read, bytes; `/proc/stat` of 1,000 processors is smaller.
const MOST_BYTES: u64 = 1024 * 1024;

/// Where the files are.
#[derive(Debug, Clone)]
pub struct HostFiles {
    root: PathBuf,
}

/// Seconds of processors since the machine started, added up over all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[expect(missing_docs, reason = "the modes of `/proc/stat`")]
pub struct CpuTimes {
    pub user: f64,
    pub system: f64,
    pub idle: f64,
    pub iowait: f64,
    /// Taken by the hypervisor for others.
    pub steal: f64,
    /// How many processors there are.
    pub cpus: u32,
}

/// Seconds in which something waited for one resource, since the machine or the group started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    /// At least one task waited.
    pub some: Option<f64>,
    /// All tasks that could run waited.
    pub full: Option<f64>,
}

/// Pressure on each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[expect(missing_docs, reason = "the three resources of the kernel")]
pub struct Pressures {
    pub cpu: Pressure,
    pub memory: Pressure,
    pub io: Pressure,
}

/// One direction of the network, all interfaces but loopback.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// Bytes.
    pub bytes: f64,
    /// Packets that were dropped or broken.
    pub lost: f64,
}

/// The whole machine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostState {
    /// Processors.
    pub cpu: Option<CpuTimes>,
    /// Mean number of tasks that ran or wanted to, over a minute.
    pub load: Option<f64>,
    /// Bytes of memory.
    pub memory_total: Option<f64>,
    /// Bytes that could be had without swapping.
    pub memory_available: Option<f64>,
    /// Pressure on the machine.
    pub pressure: Pressures,
    /// Received and sent.
    pub network: Option<(Traffic, Traffic)>,
    /// TCP segments sent, and those of them that were sent again.
    pub segments: Option<(f64, f64)>,
    /// Our own control group.
    pub group: GroupState,
}

impl Default for HostFiles {
    fn default() -> Self {
        Self::below(Path::new("/"))
    }
}

impl HostFiles {
    /// Those below `root`, which stands for `/`.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Reads what there is.
    #[must_use]
    pub fn read(&self) -> HostState {
        let proc = self.root.join("proc");
        let memory = small_text(&proc.join("meminfo"));
        let kib = |key| Some(keyed(memory.as_deref()?, key)? * 1024.0);
        HostState {
            cpu: small_text(&proc.join("stat")).and_then(|text| cpu_times(&text)),
            load: small_text(&proc.join("loadavg")).and_then(|text| mean_load(&text)),
            memory_total: kib("MemTotal:"),
            memory_available: kib("MemAvailable:"),
            pressure: pressures(&proc.join("pressure"), ""),
            network: small_text(&proc.join("net/dev")).map(|text| network(&text)),
            segments: small_text(&proc.join("net/snmp")).and_then(|text| segments(&text)),
            group: ControlGroups::of(&self.root, "self").read(),
        }
    }
}

fn segments(text: &str) -> Option<(f64, f64)> {
    let sent = protocol_count(text, ("Tcp", "OutSegs"))?;
    Some((sent, protocol_count(text, ("Tcp", "RetransSegs"))?))
}

/// Files of pressure in `folder`, whose names end in `end`.
fn pressures(folder: &Path, end: &str) -> Pressures {
    let of = |resource| {
        let text = small_text(&folder.join(format!("{resource}{end}")));
        text.map(|text| pressure(&text)).unwrap_or_default()
    };
    Pressures {
        cpu: of("cpu"),
        memory: of("memory"),
        io: of("io"),
    }
}

/// The whole of a small file; `None` if it is not there, not text, or not small.
#[must_use]
pub fn small_text(path: &Path) -> Option<String> {
    use std::io::Read as _;

    let mut text = String::new();
    let mut file = fs::File::open(path).ok()?.take(MOST_BYTES + 1);
    file.read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MOST_BYTES).then_some(text)
}

#[cfg(test)]
mod tests;
