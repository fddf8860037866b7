//! The control group of a server, and whose it is.

use super::*;

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
