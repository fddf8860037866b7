//! Machines made of files: who is found there, and what is read of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::config::BaseUrl;

mod groups;
mod search;

/// A machine that was started at 1,000 seconds of Unix time and has no processes yet.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().expect("a folder"));
        machine.file("proc/stat", "cpu  1 1 1 1\nbtime 1000\n");
        machine.file("proc/self/cgroup", "0::/system.slice/canary.service\n");
        machine
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("the folder is ours");
        fs::write(path, text).expect("the folder is ours");
    }

    /// A process that used 2 seconds, was started 50 seconds after the machine plus its number, and
    /// holds 100 KiB in two threads.
    fn process(&self, (pid, parent): (u32, u32), name: &str, group: &str) {
        let file = |name: &str, text: &str| self.file(&format!("proc/{pid}/{name}"), text);
        let started = 5_000 + pid * 100;
        file(
            "stat",
            &format!(
                "{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 150 40 5 5 20 0 2 0 {started} 1 1\n"
            ),
        );
        file(
            "status",
            "VmRSS:\t     100 kB\nThreads:\t2\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n",
        );
        file("comm", &format!("{name}\n"));
        file("cgroup", group);
        fs::create_dir_all(self.0.path().join(format!("proc/{pid}/fd"))).expect("it is ours");
    }

    /// Lets the process `pid` have the socket `number` open.
    fn opens(&self, pid: u32, number: u64) {
        let link = self.0.path().join(format!("proc/{pid}/fd/{number}"));
        symlink(format!("socket:[{number}]"), link).expect("the folder is ours");
    }

    fn tcp(&self, rows: &[(&str, &str, u64)]) {
        let mut table = "  sl  local_address rem_address   st tx_queue\n".to_owned();
        for (local, state, socket) in rows {
            let row = format!(
                "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {socket} 1 0 100\n"
            );
            table.push_str(&row);
        }
        self.file("proc/net/tcp", &table);
    }

    fn watch(&self, url: &str) -> ProcessWatch {
        let url = BaseUrl::parse(url).expect("a good URL");
        ProcessWatch::new(self.0.path(), Listening::at(&url))
    }

    fn read(&self, url: &str) -> Result<ProcessState, Unfound> {
        let nodes = MemoryNodes::read(self.0.path());
        self.watch(url).read(at(0), &nodes)
    }

    fn root(&self) -> &Path {
        self.0.path()
    }
}

fn at(second: u64) -> MonoTime {
    MonoTime::ZERO + Duration::from_secs(second)
}

/// Port 8000 of 127.0.0.1, of all addresses, and of 10.0.0.1, as a table has it here.
fn local(address: [u8; 4], port: u16) -> String {
    format!("{:08X}:{port:04X}", u32::from_ne_bytes(address))
}

/// What a group of version 2 has in its folder.
fn group(machine: &Machine, folder: &str, pids: &str) {
    for (name, text) in [
        ("cgroup.type", "domain\n"),
        ("cgroup.procs", pids),
        (
            "cpu.stat",
            "usage_usec 9000000\nnr_periods 100\nnr_throttled 25\nthrottled_usec 1500000\n",
        ),
        ("cpu.max", "150000 100000\n"),
        ("memory.current", "5000\n"),
        ("memory.max", "8000\n"),
        ("memory.events", "low 0\noom 2\noom_kill 1\n"),
        ("cpu.pressure", "some avg10=0.00 total=3000000\n"),
        ("memory.pressure", "some avg10=0.00 total=500000\n"),
    ] {
        machine.file(&format!("{folder}/{name}"), text);
    }
}

/// A server of three processes on port 8000, of which the first listens.
fn server(group: &str) -> Machine {
    let machine = Machine::new();
    machine.tcp(&[
        (&local([127, 0, 0, 1], 8_000), "01", 6),
        (&local([0, 0, 0, 0], 8_000), "0A", 7),
        (&local([0, 0, 0, 0], 9_000), "0A", 8),
    ]);
    machine.process((1, 0), "init", "0::/\n");
    machine.process((20, 1), "vllm", group);
    machine.process((21, 20), "engine) 1", group);
    machine.process((22, 21), "worker", group);
    machine.process((30, 1), "other", "0::/other\n");
    machine.opens(20, 7);
    machine.opens(30, 8);
    machine.opens(30, 6);
    machine
}

const URL: &str = "http://127.0.0.1:8000";
const SERVICE: &str = "0::/system.slice/vllm.service\n";

#[test]
fn whoever_listens_is_the_server_with_all_that_it_made() {
    // Groups cannot be seen: the family counts.
    let state = server(SERVICE).read(URL).expect("it listens");
    let expected = ProcessState {
        pid: 20,
        processes: 3,
        started: Some(1_070.0),
        cpu: Some(6.0),
        memory: Some(3.0 * 102_400.0),
        threads: Some(6.0),
        ..ProcessState::default()
    };
    assert_eq!(state, expected);
}

#[test]
fn broken_and_endless_files_say_nothing() {
    let machine = server(SERVICE);
    let below = "sys/fs/cgroup/system.slice/vllm.service";
    group(&machine, below, "20\n-1\nx\n99999999999\n");
    machine.file(&format!("{below}/cpu.max"), "max\n");
    machine.file(
        &format!("{below}/cpu.stat"),
        "nr_periods\nnr_throttled many\n",
    );
    machine.file(&format!("{below}/memory.current"), "\u{0}\n");
    let long = "9".repeat(2 * 1024 * 1024);
    machine.file(&format!("{below}/memory.max"), &long);
    machine.file(
        "proc/20/status",
        "VmRSS:\t\nThreads:\nCpus_allowed_list:\t,,\n",
    );
    machine.file("proc/stat", "btime\n");
    let state = machine.read(URL).expect("it listens");
    assert_eq!(
        (state.processes, state.memory, state.threads),
        (1, None, None)
    );
    assert_eq!((state.started, state.cpu), (None, Some(2.0)));
    let group = state.group;
    assert_eq!(
        (group.cpu_limit, group.periods, group.memory),
        (None, None, None)
    );
    assert_eq!(group.memory_limit, None);
    // Rows beyond the beginning of a table, and such as are none.
    machine.file("proc/net/tcp", &"x\n".repeat(3 * 1024 * 1024));
    assert_eq!(
        machine.read(URL).map(|_| ()).map_err(|why| why.name()),
        Err("no_listener")
    );
}

#[test]
fn a_server_that_spans_memory_nodes_is_told_from_one_that_is_bound() {
    let machine = server(SERVICE);
    let node = |number: u32, cpus: &str, miss: u32| {
        let folder = format!("sys/devices/system/node/node{number}");
        machine.file(&format!("{folder}/cpulist"), cpus);
        let text = format!(
            "numa_hit 900\nnuma_miss {miss}\nnuma_foreign 0\nlocal_node 800\nother_node 100\n"
        );
        machine.file(&format!("{folder}/numastat"), &text);
    };
    node(0, "0-3,8-11\n", 10);
    let spans = || {
        let state = machine.read(URL).expect("it listens");
        (state.cpu_nodes, state.memory_nodes)
    };
    assert_eq!(spans(), (None, None), "there is one node");
    assert_eq!(MemoryNodes::read(machine.root()).places(), None);
    node(1, "4-7,12-15\n", 20);
    // Memory of a GPU.
    node(2, "\n", 5_000);
    assert_eq!(spans(), (Some(1.0), Some(2.0)));
    let free = "VmRSS:\t1 kB\nThreads:\t1\nCpus_allowed_list:\t3-4\nMems_allowed_list:\t1-2\n";
    machine.file("proc/22/status", free);
    assert_eq!(spans(), (Some(2.0), Some(2.0)), "the least bound counts");
    let places = MemoryNodes::read(machine.root())
        .places()
        .expect("both say");
    assert!((places.hit - 1_800.0).abs() < 1e-9 && (places.miss - 30.0).abs() < 1e-9);
    assert!((places.local - 1_600.0).abs() < 1e-9 && (places.other - 200.0).abs() < 1e-9);
    fs::remove_file(
        machine
            .root()
            .join("sys/devices/system/node/node1/numastat"),
    )
    .expect("ours");
    assert_eq!(
        MemoryNodes::read(machine.root()).places(),
        None,
        "half is not the whole"
    );
}

#[test]
fn processes_without_number_have_no_sums() {
    let nodes = MemoryNodes::default();
    let machine = server(SERVICE);
    let many = vec![20; MOST_MEMBERS + 1];
    let sums = Sums::of(machine.root(), &many, &nodes);
    assert_eq!((sums.processes, sums.cpu, sums.memory), (4_097, None, None));
}

/// Who listens is this very process.
#[cfg(target_os = "linux")]
#[test]
fn a_real_socket_leads_to_its_process() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let url = BaseUrl::parse(&format!("http://{address}")).expect("a good URL");
    let root = Path::new("/");
    let nodes = MemoryNodes::read(root);
    let mut watch = ProcessWatch::new(root, Listening::at(&url));
    let state = watch.read(at(0), &nodes).expect("we may see ourselves");
    assert_eq!(state.pid, std::process::id());
    assert!(
        state.memory > Some(100_000.0) && state.threads >= Some(1.0),
        "{state:?}"
    );
    assert!(
        state.started > Some(1e9) && state.cpu >= Some(0.0),
        "{state:?}"
    );
}
