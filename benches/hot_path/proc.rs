//! What Linux says of this process, and children that run this same program in another part.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

/// CPU time of all threads of this process, seconds.
pub(crate) fn cpu_seconds() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").expect("this is Linux");
    let nanos = |thread: std::io::Result<std::fs::DirEntry>| {
        let path = thread.expect("it is ours").path().join("schedstat");
        let text = std::fs::read_to_string(path).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    threads.filter_map(nanos).sum::<f64>() / 1e9
}

/// Resident memory of this process now, KiB.
pub(crate) fn resident_kib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.expect("it is there").parse().expect("a number")
}

/// A child in part `part`; killed when dropped.
pub(crate) struct Part {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Part {
    /// Starts one, on one core if that is given.
    pub(crate) fn start(arguments: &[String], core: Option<usize>) -> Self {
        let program = std::env::current_exe().expect("it runs");
        let mut command = match core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string()]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("`taskset` is of util-linux");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, lines }
    }

    /// The next line it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).expect("it is piped");
        assert!(read > 0, "a part of the benchmark ended early");
        line.trim_end().to_owned()
    }

    /// A server says where it listens.
    pub(crate) fn address(&mut self) -> SocketAddr {
        self.line().parse().expect("an address")
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Either fails only if it has ended, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
