//! A machine made of files.

use std::fs;

use super::*;

const STAT: &str = "cpu  1000 50 300 8000 200 10 40 7 0 0\n\
cpu0 500 25 150 4000 100 5 20 3 0 0\n\
cpu1 500 25 150 4000 100 5 20 4 0 0\nintr 5\ncpufreq 1\n";
const DEV: &str = "Inter-|   Receive                                                |  Transmit\n\
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
    lo: 900 9 0 0 0 0 0 0 900 9 0 0 0 0 0 0\n\
  eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n\
  eth1:500 10 0 0 0 0 0 0 600 20 0 0 0 0 0 0\n";
const PRESSURE: &str = "some avg10=1.00 avg60=2.00 avg300=3.00 total=2500000\n\
full avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n";

fn machine(files: &[(&str, &str)]) -> HostState {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("the folder is ours");
        fs::write(path, text).expect("the folder is ours");
    }
    HostFiles::below(folder.path()).read()
}

#[test]
fn a_machine_without_files_is_unknown() {
    assert_eq!(machine(&[]), HostState::default());
}

#[test]
fn the_machine_is_what_its_files_say() {
    let state = machine(&[
        ("proc/stat", STAT),
        ("proc/loadavg", "0.75 0.50 0.25 2/300 4711\n"),
        (
            "proc/meminfo",
            "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    400 kB\n",
        ),
        ("proc/pressure/cpu", PRESSURE),
        ("proc/net/dev", DEV),
        (
            "proc/net/snmp",
            "Ip: Forwarding\nIp: 1\nTcp: InSegs OutSegs RetransSegs\nTcp: 9 8 7\n",
        ),
    ]);
    let cpu = CpuTimes {
        user: 10.5,
        system: 3.5,
        idle: 80.0,
        iowait: 2.0,
        steal: 0.07,
        cpus: 2,
    };
    assert_eq!(state.cpu, Some(cpu));
    assert_eq!(state.load, Some(0.75));
    assert_eq!(state.memory_total, Some(1_024_000.0));
    assert_eq!(state.memory_available, Some(409_600.0));
    let waited = Pressure {
        some: Some(2.5),
        full: Some(1.0),
    };
    assert_eq!(state.pressure.cpu, waited);
    assert_eq!(state.pressure.io, Pressure::default(), "not there");
    assert_eq!(state.segments, Some((8.0, 7.0)));
    let (received, sent) = state.network.expect("it was there");
    assert_eq!((received.bytes, received.lost), (1500.0, 3.0));
    assert_eq!((sent.bytes, sent.lost), (2600.0, 7.0));
}

#[test]
fn the_control_group_is_ours() {
    let below = "sys/fs/cgroup/kubepods/pod1/";
    let file = |name: &str| format!("{below}{name}");
    let state = machine(&[
        ("proc/self/cgroup", "1:cpu:/\n0::/kubepods/pod1\n"),
        (
            &file("cpu.stat"),
            "usage_usec 5\nnr_periods 100\nnr_throttled 25\nthrottled_usec 1500000\n",
        ),
        (&file("cpu.max"), "50000 100000\n"),
        (&file("memory.current"), "12345\n"),
        (&file("memory.max"), "max\n"),
        (&file("memory.pressure"), PRESSURE),
    ]);
    let group = state.group;
    assert_eq!(group.cpu_limit, Some(0.5));
    assert_eq!(
        (group.periods, group.throttled_periods),
        (Some(100.0), Some(25.0))
    );
    assert_eq!(group.throttled, Some(1.5));
    assert_eq!((group.memory, group.memory_limit), (Some(12_345.0), None));
    assert_eq!(group.pressure.memory.full, Some(1.0));
    let free = machine(&[
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/cpu.max", "max 100000\n"),
    ]);
    assert_eq!(free.group.cpu_limit, None);
}

#[test]
fn broken_files_are_unknown_and_never_zero() {
    let state = machine(&[
        ("proc/stat", "cpu  x\n"),
        ("proc/loadavg", "\n"),
        ("proc/meminfo", "MemTotal:\nMemAvailable: many kB\n"),
        ("proc/pressure/cpu", "some total=\nfull"),
        ("proc/self/cgroup", "0::/../../x\n"),
    ]);
    assert_eq!(state, HostState::default());
}

#[cfg(target_os = "linux")]
#[test]
fn this_machine_has_processors_and_memory() {
    let state = HostFiles::default().read();
    let cpu = state.cpu.expect("every Linux has it");
    assert!(cpu.cpus > 0 && cpu.idle + cpu.user > 0.0, "{cpu:?}");
    assert!(state.memory_available < state.memory_total, "{state:?}");
}
