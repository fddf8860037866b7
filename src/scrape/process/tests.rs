//! Machines made of files: who is found there, and what is read of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::config::BaseUrl;

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
fn everybody_of_a_group_of_its_own_is_the_servers() {
    let machine = server(SERVICE);
    group(
        &machine,
        "sys/fs/cgroup/system.slice/vllm.service",
        "20\n21\n22\n30\n0\n",
    );
    let state = machine.read(URL).expect("it listens");
    assert_eq!((state.processes, state.cpu), (4, Some(9.0)));
    let expected = ProcessGroup {
        cpu_limit: Some(1.5),
        periods: Some(100.0),
        throttled_periods: Some(25.0),
        throttled: Some(1.5),
        memory: Some(5_000.0),
        memory_limit: Some(8_000.0),
        oom_kills: Some(1.0),
        cpu_waiting: Some(3.0),
        memory_waiting: Some(0.5),
    };
    assert_eq!(state.group, expected);
    // One that has ended is none, whatever the list says.
    fs::remove_dir_all(machine.root().join("proc/22")).expect("it is ours");
    let state = machine.read(URL).expect("it listens");
    assert_eq!((state.processes, state.threads), (3, Some(6.0)));
}

#[test]
fn a_group_that_is_ours_too_is_not_the_servers() {
    let machine = server("0::/system.slice/canary.service\n");
    group(
        &machine,
        "sys/fs/cgroup/system.slice/canary.service",
        "20\n21\n22\n30\n",
    );
    let state = machine.read(URL).expect("it listens");
    assert_eq!((state.processes, state.cpu), (3, Some(6.0)));
    // What limits both limits the server.
    assert_eq!(state.group.cpu_limit, Some(1.5));
}

#[test]
fn a_login_and_a_slice_have_others_processes_too() {
    for name in ["user.slice/user-1.slice/session-3.scope", "user.slice"] {
        let machine = server(&format!("0::/{name}\n"));
        group(
            &machine,
            &format!("sys/fs/cgroup/{name}"),
            "20\n21\n22\n30\n",
        );
        let state = machine.read(URL).expect("it listens");
        assert_eq!((state.processes, state.cpu), (3, Some(6.0)), "{name}");
    }
}

#[test]
fn a_limit_further_up_holds() {
    let machine = server("0::/pod/vllm/inner\n");
    group(&machine, "sys/fs/cgroup/pod", "");
    machine.file("sys/fs/cgroup/pod/vllm/cpu.max", "max 100000\n");
    let inner = "sys/fs/cgroup/pod/vllm/inner";
    machine.file(
        &format!("{inner}/cpu.stat"),
        "usage_usec 4000000\nnr_periods 0\n",
    );
    machine.file(&format!("{inner}/cgroup.type"), "domain\n");
    machine.file(&format!("{inner}/cgroup.procs"), "20\n");
    let state = machine.read(URL).expect("it listens");
    assert_eq!((state.cpu, state.group.cpu_limit), (Some(4.0), Some(1.5)));
    assert_eq!(state.group.throttled_periods, Some(25.0));
    assert_eq!(state.group.memory_limit, Some(8_000.0));
}

#[test]
fn the_group_of_a_container_beside_ours_is_seen_through_its_process() {
    // As one group sees another: both have their own as the whole tree.
    let machine = server("0::/../cri-containerd-b.scope/inner\n");
    machine.file("proc/self/cgroup", "0::/\n");
    group(&machine, "sys/fs/cgroup", "4711\n");
    let theirs = "proc/20/root/sys/fs/cgroup/inner";
    group(&machine, theirs, "20\n21\n22\n");
    machine.file(&format!("{theirs}/cpu.max"), "50000 100000\n");
    let state = machine.read(URL).expect("it listens");
    assert_eq!((state.processes, state.cpu), (3, Some(9.0)));
    assert_eq!(state.group.cpu_limit, Some(0.5));
    // Where its files may not be seen, nothing of ours stands in for them.
    fs::remove_dir_all(machine.root().join("proc/20/root")).expect("it is ours");
    let state = machine.read(URL).expect("it listens");
    assert_eq!(state.group, ProcessGroup::default());
    assert_eq!(state.cpu, Some(6.0));
}

#[test]
fn groups_of_version_1_say_the_same() {
    let machine = server("5:memory:/vllm\n4:cpu,cpuacct:/vllm\n1:name=systemd:/x\n0::/\n");
    machine.file("sys/fs/cgroup/unified/cpu.stat", "usage_usec 77000000000\n");
    for (name, text) in [
        ("cpu,cpuacct/vllm/cgroup.clone_children", "0\n"),
        ("cpu,cpuacct/vllm/cgroup.procs", "20\n21\n"),
        ("cpu,cpuacct/vllm/cpuacct.usage", "7500000000\n"),
        ("cpu,cpuacct/vllm/cpu.cfs_quota_us", "200000\n"),
        ("cpu,cpuacct/vllm/cpu.cfs_period_us", "100000\n"),
        (
            "cpu,cpuacct/vllm/cpu.stat",
            "nr_periods 40\nnr_throttled 10\nthrottled_time 250000000\n",
        ),
        ("memory/vllm/cgroup.clone_children", "0\n"),
        ("memory/vllm/memory.usage_in_bytes", "4096\n"),
        ("memory/vllm/memory.limit_in_bytes", "9223372036854771712\n"),
        (
            "memory/vllm/memory.oom_control",
            "under_oom 0\noom_kill 3\n",
        ),
    ] {
        machine.file(&format!("sys/fs/cgroup/{name}"), text);
    }
    let state = machine.read(URL).expect("it listens");
    assert_eq!((state.processes, state.cpu), (2, Some(7.5)));
    let expected = ProcessGroup {
        cpu_limit: Some(2.0),
        periods: Some(40.0),
        throttled_periods: Some(10.0),
        throttled: Some(0.25),
        memory: Some(4_096.0),
        memory_limit: None,
        oom_kills: Some(3.0),
        ..ProcessGroup::default()
    };
    assert_eq!(state.group, expected);
}

#[test]
fn the_group_of_the_whole_machine_is_nobodys() {
    let machine = server("4:memory:/\n2:cpuacct:/\n1:cpu:/\n0::/\n");
    for (name, text) in [
        ("unified/cpu.stat", "usage_usec 77000000000\n"),
        ("unified/cgroup.procs", "1\n20\n30\n"),
        ("cpuacct/cgroup.clone_children", "0\n"),
        ("cpuacct/release_agent", "\n"),
        ("cpuacct/cgroup.procs", "1\n20\n30\n"),
        ("cpuacct/cpuacct.usage", "77000000000000\n"),
        ("memory/cgroup.clone_children", "0\n"),
        ("memory/release_agent", "\n"),
        ("memory/memory.usage_in_bytes", "64000000000\n"),
    ] {
        machine.file(&format!("sys/fs/cgroup/{name}"), text);
    }
    let state = machine.read(URL).expect("it listens");
    assert_eq!((state.processes, state.cpu), (3, Some(6.0)));
    assert_eq!(state.group, ProcessGroup::default());
}

#[test]
fn of_several_sockets_the_one_that_gets_the_connections_counts() {
    let find = |rows: &[(&str, &str, u64)], url: &str| {
        let machine = Machine::new();
        machine.tcp(rows);
        machine.file(
            "proc/net/fib_trie",
            "Local:\n     |-- 10.0.0.0\n        /24 link UNICAST\n           |-- 10.0.0.1\n              /32 host LOCAL\n           |-- 10.0.0.2\n              /32 host LOCAL\n           |-- 10.0.0.255\n              /32 link BROADCAST\n",
        );
        for (pid, socket) in [(40, 1), (41, 2), (42, 3)] {
            machine.process((pid, 1), "server", "0::/\n");
            machine.opens(pid, socket);
        }
        machine.read(url).map(|state| state.pid).ok()
    };
    let rows = [
        (&*local([0, 0, 0, 0], 8_000), "0A", 1),
        (&*local([127, 0, 0, 1], 8_000), "0A", 2),
        (&*local([10, 0, 0, 1], 8_000), "0A", 3),
    ];
    assert_eq!(find(&rows, "http://127.0.0.1:8000"), Some(41));
    assert_eq!(find(&rows, "http://localhost:8000"), Some(41));
    assert_eq!(find(&rows, "http://10.0.0.1:8000"), Some(42));
    assert_eq!(find(&rows, "http://10.0.0.2:8000"), Some(40));
    assert_eq!(find(&rows[..1], "http://node-7:8000"), Some(40));
    // Another machine's, whatever listens here.
    for elsewhere in ["10.0.0.3", "10.0.0.0", "10.0.0.255", "[fd00::2]"] {
        assert_eq!(find(&rows, &format!("http://{elsewhere}:8000")), None);
    }
    assert_eq!(find(&rows[1..], "http://10.0.0.2:8000"), None);
    assert_eq!(find(&rows, "http://127.0.0.1:8001"), None);
}

#[test]
fn a_socket_of_ipv6_takes_both_and_one_of_unix_has_a_path() {
    let machine = Machine::new();
    let any = format!("{}:1F40", "0".repeat(32));
    let row = format!("   0: {any} {any} 0A 0:0 00:0 0 0 0 55 1 0\n");
    machine.file("proc/net/tcp6", &row);
    machine.file(
        "proc/net/unix",
        "Num       RefCount Protocol Flags    Type St Inode Path\n\
         0000000000000000: 00000002 00000000 00010000 0001 01   56 /run/a server.sock\n\
         0000000000000000: 00000003 00000000 00000000 0001 03 57 /run/a server.sock\n",
    );
    machine.process((40, 1), "server", "0::/\n");
    machine.process((41, 1), "server", "0::/\n");
    machine.opens(40, 55);
    machine.opens(41, 56);
    let pid = |url| machine.read(url).map(|state| state.pid);
    assert_eq!(pid("http://127.0.0.1:8000"), Ok(40));
    assert_eq!(pid("http://[::1]:8000"), Ok(40));
    machine.file(
        "proc/net/if_inet6",
        "fd000000000000000000000000000002 04 40 00 82     eth0\n",
    );
    assert_eq!(pid("http://[fd00::2]:8000"), Ok(40));
    let others = pid("http://[fd00::3]:8000").expect_err("another machine's");
    assert!(others.to_string().contains("`[fd00::3]:8000`"), "{others}");
    assert_eq!(pid("unix:///run/a server.sock"), Ok(41));
    let missing = pid("unix:///run/other.sock").expect_err("nobody listens");
    assert!(
        missing.to_string().contains("`/run/other.sock`"),
        "{missing}"
    );
}

#[test]
fn what_is_missing_is_said() {
    let why = |machine: &Machine| machine.read(URL).expect_err("nobody is found").name();
    assert_eq!(why(&Machine::new()), "no_listener");
    let machine = Machine::new();
    machine.tcp(&[(&local([127, 0, 0, 1], 8_000), "0A", 7)]);
    machine.process((5, 1), "canary", "0::/\n");
    assert_eq!(why(&machine), "other_namespace");
    machine.process((6, 1), "docker-proxy", "0::/\n");
    machine.opens(6, 7);
    assert_eq!(why(&machine), "relay");
    // Who starts services holds their sockets, too.
    let machine = server(SERVICE);
    machine.process((2, 1), "systemd", "0::/\n");
    machine.opens(2, 7);
    assert_eq!(machine.read(URL).map(|state| state.pid), Ok(20));
}

#[test]
fn it_is_looked_for_again_when_it_is_gone_and_once_a_minute() {
    let machine = server(SERVICE);
    let nodes = MemoryNodes::default();
    let mut watch = machine.watch(URL);
    let mut pid = |second| watch.read(at(second), &nodes).map(|state| state.pid).ok();
    assert_eq!(pid(0), Some(20));
    machine.process((50, 1), "vllm", SERVICE);
    machine.opens(50, 7);
    fs::remove_dir_all(machine.root().join("proc/20")).expect("it is ours");
    assert_eq!(pid(5), Some(50), "at once");
    fs::remove_dir_all(machine.root().join("proc/50")).expect("it is ours");
    assert_eq!(pid(10), None);
    machine.process((51, 1), "vllm", SERVICE);
    machine.opens(51, 7);
    assert_eq!(pid(69), None, "a search is not for every reading");
    assert_eq!(pid(70), Some(51));
    // The same number, given anew.
    machine.process((51, 1), "vllm", SERVICE);
    machine.file(
        "proc/51/stat",
        "51 (other) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 2 0 999999 1 1\n",
    );
    fs::remove_file(machine.root().join("proc/51/fd/7")).expect("it is ours");
    assert_eq!(pid(75), None);
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
