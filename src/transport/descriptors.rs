//! Room for connections in the process's table of open files.
//!
//! Linux doubles that table when it is full. If the process has several threads, whoever opens the
//! file that does not fit sleeps until every processor has passed a quiescent state
//! (`synchronize_rcu` in `fs/file.c`): 10 ms and more were seen on the measuring thread, once at
//! 64, 128, 256 connections and so on. A table that is large from the start does not grow.

use std::io::stdin;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open beside the connections: logs, exports, the page, scrapes. Where there is room
/// for few, half of it is theirs.
const OTHERS: u64 = 256;

/// More places than this are not made ahead: they take 8 bytes each.
const MOST_PLACES: u64 = 32 * 1024;

/// Makes room for `connections`, and raises the soft limit of open files for it. If the hard limit
/// does not allow as many, says how many there is room for.
#[must_use]
pub fn make_room(connections: u32) -> Option<u64> {
    let wanted = u64::from(connections) + OTHERS;
    let room = raise_limit(wanted);
    // It takes the first free number from here on and is closed at once; the table stays.
    let last = i32::try_from(wanted.min(room).min(MOST_PLACES).saturating_sub(1));
    if let Err(error) = fcntl_dupfd_cloexec(stdin(), last.unwrap_or(0)) {
        tracing::debug!(%error, "no room for connections ahead of them");
    }
    (room < wanted).then(|| room - OTHERS.min(room / 2))
}

/// The soft limit of open files, which is `wanted` at least where the hard one allows it.
fn raise_limit(wanted: u64) -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current.unwrap_or(u64::MAX);
    let allowed = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current >= allowed {
        return current;
    }
    let raised = Rlimit {
        current: Some(allowed),
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => allowed,
        Err(error) => {
            tracing::debug!(%error, "the limit of open files stays");
            current
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::read_to_string;

    use super::*;

    /// Places in this process's table of open files.
    fn places() -> u64 {
        let status = read_to_string("/proc/self/status").expect("Linux has it");
        let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        line.expect("it is there").trim().parse().expect("a number")
    }

    #[test]
    fn the_table_has_room_before_there_are_connections() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert!(hard > 2_000 + OTHERS, "this test needs more files: {hard}");
        assert!(places() < 2_000 + OTHERS);
        assert_eq!(make_room(2_000), None);
        assert!(places() >= 2_000 + OTHERS, "{}", places());
        assert!(getrlimit(Resource::Nofile).current >= Some(2_000 + OTHERS));
    }

    #[test]
    fn what_the_hard_limit_forbids_is_said() {
        let Some(hard) = getrlimit(Resource::Nofile).maximum else {
            return; // there is none
        };
        let more = u32::try_from(hard).unwrap_or(u32::MAX);
        if u64::from(more) + OTHERS > hard {
            assert_eq!(make_room(more), Some(hard - OTHERS));
        }
    }
}
