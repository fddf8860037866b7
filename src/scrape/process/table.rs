//! What `/proc` says of one process, as text and read.

use std::path::Path;

use crate::telemetry::{keyed, small_text};

/// Parts of a second in which the kernel tells times to programs, on every machine that Linux runs
/// servers on.
const TICKS: f64 = 100.0;
/// Pairs of numbers in a list, as `0-3,8-11`, that are read.
const MOST_RANGES: usize = 4_096;

/// From `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    /// The process that made it.
    pub(super) parent: u32,
    /// Seconds of processors that it used, and those of its children that have ended.
    pub(super) cpu: f64,
    /// When it was started, seconds since the machine was.
    pub(super) started: f64,
}

/// From `/proc/PID/status`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Status {
    /// Bytes that it holds in memory.
    pub(super) memory: Option<f64>,
    pub(super) threads: Option<f64>,
    /// Processors on which it may run, and memory nodes that it may use.
    pub(super) cpus: Option<Numbers>,
    pub(super) memory_nodes: Option<Numbers>,
}

/// A list of numbers as the kernel writes it: `0-3,8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numbers(Vec<(u32, u32)>);

impl Numbers {
    /// Reads `text`; `None` if it is none. An empty list is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts = text.trim().split(',').filter(|part| !part.is_empty());
        let ranges = parts.take(MOST_RANGES).map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some((first, last))
        });
        ranges.collect::<Option<Vec<_>>>().map(Self)
    }

    /// Whether there is none in it.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a number is in both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let pairs = |(first, last): &(u32, u32)| {
            let mut others = other.0.iter();
            others.any(|(from, until)| from <= last && first <= until)
        };
        self.0.iter().any(pairs)
    }
}

/// When the machine was started, seconds since the Unix epoch.
pub(super) fn boot_time(root: &Path) -> Option<f64> {
    keyed(&small_text(&root.join("proc/stat"))?, "btime")
}

/// The times of the process `pid`; `None` if it is not there.
pub(super) fn times(root: &Path, pid: u32) -> Option<Times> {
    times_of(&small_text(&root.join(format!("proc/{pid}/stat")))?)
}

/// The same from the text. The name of the process, which may contain anything, ends at the last
/// bracket.
fn times_of(text: &str) -> Option<Times> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(22).collect();
    let number = |place: usize| fields.get(place)?.parse::<f64>().ok();
    // State, parent, …; user and system time of itself and of children that were waited for.
    let used = number(11)? + number(12)? + number(13)? + number(14)?;
    Some(Times {
        parent: fields.get(1)?.parse().ok()?,
        cpu: used / TICKS,
        started: number(19)? / TICKS,
    })
}

/// What the process `pid` holds; `None` if it is not there.
pub(super) fn status(root: &Path, pid: u32) -> Option<Status> {
    Some(status_of(&small_text(
        &root.join(format!("proc/{pid}/status")),
    )?))
}

fn status_of(text: &str) -> Status {
    let list = |key: &str| {
        let list = text.lines().find_map(|line| line.strip_prefix(key))?;
        Numbers::parse(list)
    };
    Status {
        memory: keyed(text, "VmRSS:").map(|kib| kib * 1024.0),
        threads: keyed(text, "Threads:"),
        cpus: list("Cpus_allowed_list:"),
        memory_nodes: list("Mems_allowed_list:"),
    }
}

/// What the process `pid` is called, as far as the kernel keeps it: 15 bytes.
pub(super) fn name(root: &Path, pid: u32) -> Option<String> {
    let text = small_text(&root.join(format!("proc/{pid}/comm")))?;
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_whatever_the_process_is_called() {
        let text = "7 (a) S 1 (b) R 5 7 7 0 -1 4194304 102 0 0 0 250 50 30 20 20 0 9 0 3860 3133440 407 1\n";
        let times = times_of(text).expect("it is one");
        assert_eq!(times.parent, 5);
        assert!((times.cpu - 3.5).abs() < 1e-9 && (times.started - 38.6).abs() < 1e-9);
        for broken in [
            "",
            "7 (a",
            "7 (a) S 1",
            "7 (a) S x 7 7 0 -1 4 1 0 0 0 2 5 3 2 2 0 9 0 3 3",
        ] {
            assert_eq!(times_of(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_kernel_thread_holds_nothing() {
        let status = status_of("Name:\tkswapd0\nThreads:\t1\nCpus_allowed_list:\t0-3,8\n");
        assert_eq!((status.memory, status.threads), (None, Some(1.0)));
        assert_eq!(status.cpus, Numbers::parse("0-3,8\n"));
        assert_eq!(status.memory_nodes, None);
    }

    #[test]
    fn lists_of_numbers_meet_where_they_have_one_in_common() {
        let list = |text| Numbers::parse(text).expect("it is one");
        assert!(list("0-3,8-11").meets(&list("11")));
        assert!(!list("0-3,8-11").meets(&list("4-7,12-4000000000")));
        assert!(!list("").meets(&list("0")) && list("\n").is_empty());
        for broken in ["a", "1-", "3-1", "-", "0,x", "99999999999"] {
            assert_eq!(Numbers::parse(broken), None, "{broken}");
        }
    }
}
