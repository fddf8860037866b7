//! Who is found to listen, when it is looked for, and what is said if nobody is.

use super::*;

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
