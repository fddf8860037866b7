//! The server's own process, where it is on the machine of its canary: found by its port, read
//! from the kernel, and held against what the kernel tells the test.

use std::fs;
use std::path::{Path, PathBuf};

use super::setting::{Daemon, SOON, Simulated};
use crate::program::{free_address, get, scratch, tell};

const READS: &str = "tokencanary_server_process_reads_total";

fn configuration(url: &str) -> String {
    format!(
        "targets:
  - {{ name: a, url: '{url}', server_metrics: off, node: this, node_every: 200ms }}
probes:
  - name: p
    targets: [a]
    arrivals: {{ process: constant, rate: 20/s }}
    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 10 }} }}
governor: {{ requests_per_day: 1000000, tokens_per_day: 1000M, in_flight: 100 }}
"
    )
}

/// The value of the only series of the target with this name on the page of `daemon`.
async fn value(daemon: &Daemon, name: &str) -> Option<f64> {
    let page = get(&format!("{}metrics", daemon.page)).await?;
    let start = format!("{name}{{target=\"a\"}} ");
    let mut lines = page.lines().filter_map(|line| line.strip_prefix(&*start));
    lines.next()?.parse().ok()
}

/// A file that the kernel keeps of the process `pid`.
fn kept(pid: u32, name: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{name}")).expect("it is there")
}

/// Seconds of processors that the process `pid` used.
fn used(pid: u32) -> f64 {
    let stat = kept(pid, "stat");
    let (_, rest) = stat.rsplit_once(')').expect("a name in brackets");
    let numbers = rest.split_ascii_whitespace().skip(11).take(2);
    let ticks: f64 = numbers
        .map(|text| text.parse::<f64>().expect("ticks"))
        .sum();
    ticks / 100.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_servers_process_is_found_by_its_port_and_read() {
    let folder = scratch("server_process");
    let server = Simulated::start(&folder).await;
    let pid = server.pid();
    let mut daemon = Daemon::start(&folder, &configuration(&server.url)).await;
    daemon.counted((READS, "result=\"ok\""), 3).await;
    assert!(
        daemon.program.stderr().contains(&format!("pid={pid} ")),
        "{}",
        daemon.program.stderr()
    );
    assert_eq!(
        value(&daemon, "tokencanary_server_processes").await,
        Some(1.0)
    );

    // A reading is at most one interval old, and both are ticks of a hundredth.
    let before = used(pid);
    let later = format!("{before} seconds of the server's processor");
    let url = &daemon.page;
    let look = async || {
        let page = get(&format!("{url}metrics")).await?;
        let start = "tokencanary_server_process_cpu_time_seconds_total{target=\"a\"} ";
        let mut lines = page.lines().filter_map(|line| line.strip_prefix(start));
        let seconds: f64 = lines.next()?.parse().ok()?;
        (seconds >= before).then_some(seconds)
    };
    let seconds = daemon.program.until(&later, SOON, look).await;
    assert!(seconds <= used(pid), "{seconds} of {}", used(pid));

    let memory = value(&daemon, "tokencanary_server_process_memory_bytes").await;
    let status = kept(pid, "status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|rest| rest.trim().strip_suffix(" kB"));
    let resident: f64 = resident.expect("it holds some").parse().expect("a number");
    let share = memory.expect("it is known") / (resident * 1024.0);
    assert!((0.5..2.0).contains(&share), "{share}");
    let threads = value(&daemon, "tokencanary_server_process_threads").await;
    assert!(threads >= Some(1.0), "{threads:?}");
    let started = value(&daemon, "tokencanary_server_process_start_time_seconds").await;
    let ours = value(&daemon, "tokencanary_server_processes").await;
    assert!(started > Some(1e9) && ours == Some(1.0), "{started:?}");

    // What it was is not what is: a server that has gone has no numbers.
    server.kill().await;
    daemon.counted((READS, "result=\"no_listener\""), 2).await;
    assert_eq!(value(&daemon, "tokencanary_server_processes").await, None);
    let said = daemon.program.stderr();
    assert_eq!(said.matches("nothing listens at").count(), 1, "{said}");
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_here_is_said_once_and_hurts_nothing() {
    let folder = scratch("server_process_missing");
    let url = format!("http://{}", free_address());
    let mut daemon = Daemon::start(&folder, &configuration(&url)).await;
    daemon.counted((READS, "result=\"no_listener\""), 3).await;
    let host = ("tokencanary_node_scrapes_total", "result=\"ok\"");
    daemon.counted(host, 3).await;
    let said = daemon.program.stderr();
    assert_eq!(said.matches("processes are not known").count(), 1, "{said}");
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
}

/// A control group of the test's own, with a fiftieth of a processor. Removed when dropped, for which
/// it has to be empty.
struct Limited(PathBuf);

impl Limited {
    /// Makes one of whichever version there is; says why not.
    fn make() -> Result<Self, String> {
        let name = format!("tokencanary-test-{}", std::process::id());
        let versions: [(&str, &[(&str, &str)]); 2] = [
            ("/sys/fs/cgroup", &[("cpu.max", "2000 100000")]),
            (
                "/sys/fs/cgroup/cpu",
                &[
                    ("cpu.cfs_period_us", "100000"),
                    ("cpu.cfs_quota_us", "2000"),
                ],
            ),
        ];
        let mut why = "no control groups".to_owned();
        for (tree, limits) in versions {
            if !Path::new(tree).join("cgroup.procs").exists() {
                continue;
            }
            let group = Path::new(tree).join(&name);
            if let Err(error) = fs::create_dir(&group) {
                why = format!("{}: {error}", group.display());
                continue;
            }
            let group = Self(group);
            let limited = limits.iter().try_for_each(|(file, limit)| {
                let path = group.0.join(file);
                // A file that is made is none of the kernel's.
                let file = fs::OpenOptions::new().write(true).open(path);
                std::io::Write::write_all(&mut file?, limit.as_bytes())
            });
            match limited {
                Ok(()) => return Ok(group),
                Err(error) => why = format!("{}: {error}", group.0.display()),
            }
        }
        Err(why)
    }

    fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("it takes its processes");
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // Fails only if a test that failed has left somebody in it.
        drop(fs::remove_dir(&self.0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_the_kernel_throttles_is_seen_to_be() {
    let folder = scratch("server_throttled");
    let group = match Limited::make() {
        Ok(group) => group,
        Err(why) => return tell(&format!("skipped, no control group can be made: {why}")),
    };
    let server = Simulated::start(&folder).await;
    group.take(server.pid());
    let mut daemon = Daemon::start(&folder, &configuration(&server.url)).await;
    daemon.counted((READS, "result=\"ok\""), 2).await;
    let throttled = "tokencanary_server_cgroup_cpu_throttled_periods_total";
    let seen = daemon.counted((throttled, "target=\"a\""), 3).await;
    let limit = value(&daemon, "tokencanary_server_cgroup_cpu_limit").await;
    assert_eq!(limit, Some(0.02));
    let stat = fs::read_to_string(group.0.join("cpu.stat")).expect("it is there");
    let of = |key: &str| {
        let mut lines = stat.lines().filter_map(|line| line.strip_prefix(key));
        lines
            .next()
            .and_then(|number| number.trim().parse::<u64>().ok())
    };
    // The kernel has gone on counting since.
    assert!(of("nr_throttled ") >= Some(seen), "{seen}: {stat}");
    let periods = value(&daemon, "tokencanary_server_cgroup_cpu_periods_total").await;
    assert!(periods >= Some(3.0), "{periods:?}");
    let seconds = value(
        &daemon,
        "tokencanary_server_cgroup_cpu_throttled_seconds_total",
    )
    .await;
    assert!(seconds > Some(0.0), "{seconds:?}");
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
    server.kill().await;
}
