//! A bad network: peers that are slow, reset or swallow, each in a network namespace that the
//! test makes and removes. Needs root, and `ip`, `tc` and `ss` of iproute2; the kernel's `netem`
//! is used where there is one.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::program::{Program, scratch, tell, tokencanary};

const NEAR: &str = "10.77.0.1";
const FAR: &str = "10.77.0.2";
const SOON: Duration = Duration::from_secs(30);

/// Two namespaces and the wire between them. Removed when dropped.
struct Network {
    near: String,
    far: String,
}

fn ip(arguments: &[&str]) -> Output {
    Command::new("ip")
        .args(arguments)
        .output()
        .expect("`ip` of iproute2 is installed")
}

fn must(arguments: &[&str]) {
    let output = ip(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments:?}: {said}");
}

impl Network {
    fn start(name: &str) -> Self {
        let id = std::process::id();
        let network = Self {
            near: format!("tc-{name}-{id}-near"),
            far: format!("tc-{name}-{id}-far"),
        };
        for space in [&network.near, &network.far] {
            must(&["netns", "add", space]);
        }
        let (near, far) = (network.near.as_str(), network.far.as_str());
        must(&[
            "-n", near, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", far,
        ]);
        for (space, address) in [(near, NEAR), (far, FAR)] {
            let address = format!("{address}/24");
            must(&["-n", space, "address", "add", &address, "dev", "wire"]);
            must(&["-n", space, "link", "set", "wire", "up"]);
            must(&["-n", space, "link", "set", "lo", "up"]);
        }
        network
    }

    /// A command that runs in `space`.
    fn inside(space: &str, program: &std::ffi::OsStr) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", space]).arg(program);
        command
    }

    /// Whether the far end now sends as the queue discipline `rule` says.
    #[expect(clippy::print_stderr, reason = "a test says why it leaves a part out")]
    fn shape(&self, rule: &[&str]) -> bool {
        let mut command = Self::inside(&self.far, "tc".as_ref());
        command.args(["qdisc", "replace", "dev", "wire", "root"]);
        let output = command.args(rule).output().expect("`ip` is installed");
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            eprintln!("tc {rule:?}: {}", said.trim());
        }
        output.status.success()
    }

    /// From now on nothing that the far end sends to us arrives, and nobody is told.
    fn swallow(&self) {
        must(&[
            "-n",
            &self.far,
            "route",
            "add",
            "blackhole",
            &format!("{NEAR}/32"),
        ]);
    }

    /// The far end's kernel resets every connection to the simulator.
    fn reset(&self) {
        let mut command = Self::inside(&self.far, "ss".as_ref());
        command.args(["-K", "state", "established", "sport", "=", ":8000"]);
        let output = command.output().expect("`ip` is installed");
        assert!(output.status.success(), "{output:?}");
    }

    async fn simulator(&self, folder: &Path, (ttft, itl): (&str, &str)) -> Program {
        let mut command = Self::inside(&self.far, tokencanary().get_program());
        command.args([
            "simulate",
            "--profile",
            "fixed",
            "--ttft",
            ttft,
            "--itl",
            itl,
        ]);
        command.args(["--model", "sim/model", "--listen", &format!("{FAR}:8000")]);
        let mut program = Program::start("simulator", folder, &mut command);
        let file = folder.join("simulator.err");
        let listens = async || {
            let text = std::fs::read_to_string(&file).ok()?;
            text.contains("listening on ").then_some(())
        };
        program.until("a port", SOON, listens).await;
        program
    }

    /// One request from the near end; `meanwhile` is done 1 s after it began.
    async fn ask(&self, folder: &Path, meanwhile: impl FnOnce()) -> Value {
        let config = folder.join("check.yaml");
        let text = format!(
            "targets:\n\
             \x20 - {{ name: t, url: 'http://{FAR}:8000', model: sim/model, server_metrics: off }}\n\
             probes:\n\
             \x20 - name: p\n\
             \x20   targets: [t]\n\
             \x20   arrivals: {{ process: poisson, rate: 0.2/s }}\n\
             \x20   workload: {{ synthetic: {{ input_tokens: 16, output_tokens: 40 }} }}\n\
             \x20   limits: {{ connect: 2s, gap: 2s, total: 20s }}\n"
        );
        std::fs::write(&config, text).expect("the folder is ours");
        let mut command = Self::inside(&self.near, tokencanary().get_program());
        command
            .args(["check", "--output", "json", "-c"])
            .arg(&config);
        let mut program = Program::start("check", folder, &mut command);
        tokio::time::sleep(Duration::from_secs(1)).await;
        meanwhile();
        program.ended(SOON).await;
        let line = program.stdout();
        let record: Value = serde_json::from_str(line.trim())
            .unwrap_or_else(|error| panic!("{error}: {line}{}", program.stderr()));
        tell(&format!(
            "{}, {} chunks, times {}, error {}",
            record["outcome"], record["chunks"], record["times_ms"], record["error"]
        ));
        record
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for space in [&self.near, &self.far] {
            ip(&["netns", "del", space]);
        }
    }
}

fn outcome(record: &Value) -> &str {
    record["outcome"].as_str().expect("every record has one")
}

#[tokio::test]
async fn a_slow_peer_is_slow_and_well() {
    let folder = scratch("netns_slow");
    let network = Network::start("slow");
    let mut simulator = network.simulator(&folder, ("20ms", "2ms")).await;
    // 40 events of some 200 bytes over 4 kB/s; the engine is done after a tenth of a second.
    let shaped = network.shape(&["tbf", "rate", "32kbit", "burst", "1600", "limit", "20000"]);
    assert!(shaped, "the kernel has no token bucket filter");
    let record = network.ask(&folder, || ()).await;
    assert_eq!(outcome(&record), "ok", "{record}");
    let last = record["times_ms"]["last_token"].as_f64().expect("it came");
    assert!(last > 1_000.0, "{record}");
    if network.shape(&["netem", "delay", "300ms"]) {
        let record = network.ask(&folder, || ()).await;
        assert_eq!(outcome(&record), "ok", "{record}");
        let connect = record["phases_ms"]["connect"].as_f64().expect("a new one");
        assert!(connect > 290.0, "{record}");
    }
    simulator.terminate(SOON).await;
}

#[tokio::test]
async fn a_peer_that_nothing_comes_back_from_is_given_up() {
    let folder = scratch("netns_hole");
    let network = Network::start("hole");
    let mut simulator = network.simulator(&folder, ("20ms", "100ms")).await;
    // In the middle of a stream of 4 s.
    let record = network.ask(&folder, || network.swallow()).await;
    assert_eq!(outcome(&record), "timeout_gap", "{record}");
    // And before there is a connection.
    let record = network.ask(&folder, || ()).await;
    assert_eq!(outcome(&record), "timeout_connect", "{record}");
    simulator.terminate(SOON).await;
}

#[tokio::test]
async fn a_peer_that_resets_is_told_from_one_that_is_silent() {
    let folder = scratch("netns_reset");
    let network = Network::start("reset");
    for (ttft, tokens) in [("20ms", 1..40), ("5s", 0..1)] {
        let mut simulator = network.simulator(&folder, (ttft, "100ms")).await;
        let record = network.ask(&folder, || network.reset()).await;
        assert_eq!(outcome(&record), "stream_cut", "{record}");
        let message = record["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("reset"), "{record}");
        // Well after the head, which came at once.
        let end = record["times_ms"]["end"].as_f64().expect("it ended");
        assert!(end > 300.0, "{record}");
        let chunks = record["chunks"].as_u64().unwrap_or(0);
        assert!(tokens.contains(&chunks), "{record}");
        simulator.terminate(SOON).await;
    }
}

#[tokio::test]
async fn a_peer_that_is_not_there_refuses() {
    let folder = scratch("netns_none");
    let network = Network::start("none");
    let record = network.ask(&folder, || ()).await;
    assert_eq!(outcome(&record), "connect", "{record}");
}
