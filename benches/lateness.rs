//! How late arrivals are sent: from when each was due to the start of its exchange, as the
//! records of `bench` have it. Prints a table at 10, 100, 1,000 and 5,000 arrivals a second.
//!
//! `cargo bench --bench lateness`. The server is a process of its own that answers at once, on
//! the same machine: at the highest rate the two take a good part of two cores, and a machine
//! that has anything else to do says so here. So does one whose cores are not its own: before the
//! table stands how evenly a loop ran that does nothing but count, and in it what the machine takes
//! from any program: how late a thread wakes at the same times that does nothing but sleep, and one
//! that then counts for as long as a request of ours keeps a core busy. Rows `at speed` have the
//! arrivals alone around which the processor ran at its speed, which a thread of the benchmark
//! watches: on a virtual machine it may run at a tenth of it for a while, whatever it is given.
//! `-- --seconds N` sets the length of each run.
//!
//! `-- --replay` replays ten minutes of a trace at 60 times the speed instead, against the
//! simulated server; `--speed N` is another speed.

#[path = "hot_path/proc.rs"]
#[allow(dead_code, reason = "shared with a benchmark that uses other parts")]
mod proc;
#[path = "lateness/replay.rs"]
mod replay;
#[path = "hot_path/server.rs"]
#[allow(dead_code, reason = "shared with a benchmark that uses other parts")]
mod server;
#[path = "lateness/speed.rs"]
mod speed;

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proc::Part;
use server::Pace;
use speed::Watch;
use tokio::runtime::Builder;

const RATES: [u32; 4] = [10, 100, 1_000, 5_000];
/// Length of each run, unless said otherwise.
const SECONDS: u32 = 10;
/// The bar: 99 of 100 are no later than this, on a machine that is not saturated.
const BAR_US: f64 = 500.0;
/// The bar is for this rate and higher ones.
const BARRED: u32 = 1_000;
/// A request of one token keeps the measuring thread's core busy for about this long.
const REQUEST: Duration = Duration::from_micros(85);

const HEADER: &str =
    "pattern    rate    sent   p50    p90    p99   p99.9     max  > 0.5 ms  refused or failed";

#[expect(clippy::print_stdout, reason = "a benchmark prints its table")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if texts.first() == Some(&"part:server") {
        let pace = Pace {
            tokens: 1,
            ttft: Duration::ZERO,
            itl: Duration::ZERO,
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime
            .expect("a runtime")
            .block_on(server::serve(pace, false));
        return;
    }
    let seconds = texts
        .windows(2)
        .find(|pair| pair[0] == "--seconds")
        .map_or(SECONDS, |pair| pair[1].parse().expect("a number"));
    let number = |flag: &str| {
        let given = texts.windows(2).find(|pair| pair[0] == flag);
        given.map(|pair| pair[1].parse::<f64>().expect("a number"))
    };
    if texts.contains(&"--replay") {
        println!("{}", steadiness());
        return replay::replay(number("--speed").unwrap_or(60.0));
    }
    let mut server = Part::start(&["part:server".to_owned()], None);
    let address = server.line();
    println!("{}", steadiness());
    println!("from due to the start of the exchange, microseconds; {seconds} s each; one token");
    println!("{HEADER}");
    let mut held = (0, 0);
    for pattern in ["constant", "poisson"] {
        for rate in RATES {
            if pattern == "constant" && rate >= BARRED {
                for (name, busy) in [("sleeps", Duration::ZERO), ("counts", REQUEST)] {
                    watched((name, rate), || alone(rate, seconds, busy));
                }
            }
            let p99 = watched((pattern, rate), || {
                measure(&address, (pattern, rate), seconds)
            });
            if rate >= BARRED {
                held.0 += u32::from(p99 <= BAR_US);
                held.1 += 1;
            }
        }
    }
    println!(
        "the bar at 1,000 and 5,000/s: p99 at most {BAR_US:.0} us; while the processor ran at its speed it held in {} of {}",
        held.0, held.1
    );
}

/// Prints the rows of what `run` finds, and gives the 99th percentile while the processor ran at
/// its speed.
#[expect(clippy::print_stdout, reason = "a benchmark prints its table")]
fn watched(name: (&str, u32), run: impl FnOnce() -> Found) -> f64 {
    let watch = Watch::start();
    let found = run();
    let speed = watch.stop();
    println!("{}", row(name, &found.late_us(|_| true), found.bad));
    let at_speed = found.late_us(|sent| speed.was_full(sent.due, sent.start()));
    println!(
        "{}   {}",
        row(("at speed", name.1), &at_speed, found.bad),
        speed.told()
    );
    quantile(&at_speed, 990)
}

/// How evenly this machine lets a loop run: short slices for 5 s.
#[expect(
    clippy::disallowed_methods,
    reason = "the machine is looked at, whose time is real"
)]
fn steadiness() -> String {
    let slice = || {
        let start = Instant::now();
        count(1_000_000);
        start.elapsed()
    };
    let start = Instant::now();
    let mut slices = Vec::new();
    while start.elapsed() < Duration::from_secs(5) {
        slices.push(slice());
    }
    let all: Duration = slices.iter().sum();
    slices.sort_unstable();
    let least = slices[0];
    let slow = slices.iter().filter(|slice| **slice > least * 3 / 2);
    let in_slow: Duration = slow.sum();
    format!(
        "a loop of {:.2} ms alone on this machine: the longest took {:.1} ms; {:.0} % of the time went by in those of 1.5 times as long or more",
        least.as_secs_f64() * 1e3,
        slices[slices.len() - 1].as_secs_f64() * 1e3,
        in_slow.as_secs_f64() / all.as_secs_f64() * 100.0,
    )
}

/// Work that needs nothing but a core.
fn count(times: u32) {
    // In a register: a processor may or may not see through a way over the memory.
    let mut state = black_box(1_u64);
    for _ in 0..times {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
    }
    black_box(state);
}

/// What one run left.
struct Found {
    /// Each request that was sent.
    sent: Vec<Sent>,
    /// Arrivals that did not end well.
    bad: usize,
}

/// One that was sent, or one wake.
struct Sent {
    /// Since the Unix epoch.
    due: Duration,
    late: Duration,
}

impl Sent {
    fn start(&self) -> Duration {
        self.due + self.late
    }
}

impl Found {
    /// How late those were that are `wanted`, in order of size.
    fn late_us(&self, wanted: impl Fn(&Sent) -> bool) -> Vec<f64> {
        let wanted = self.sent.iter().filter(|sent| wanted(sent));
        let mut late: Vec<f64> = wanted.map(|sent| sent.late.as_secs_f64() * 1e6).collect();
        late.sort_by(f64::total_cmp);
        late
    }
}

/// How late a thread wakes that sleeps from one instant to the next, and then counts for as long as
/// takes `busy` while the machine is quick.
#[expect(
    clippy::disallowed_methods,
    reason = "the machine is looked at, whose time is real"
)]
fn alone(rate: u32, seconds: u32, busy: Duration) -> Found {
    const PART: u32 = 1_000;
    let timed = |_| {
        let start = Instant::now();
        count(PART);
        start.elapsed()
    };
    let part = (0..2_000).map(timed).min().expect("more than none");
    let parts = busy.div_duration_f64(part).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some hundred"
    )]
    let parts = parts as u32;
    let (start, wall) = (Instant::now(), SystemTime::now());
    let wall = wall.duration_since(UNIX_EPOCH).expect("it is past 1970");
    let wake = |number: u32| {
        let after = Duration::from_secs(1) * number / rate;
        let due = start + after;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let late = Instant::now().saturating_duration_since(due);
        count(PART * parts);
        Sent {
            due: wall + after,
            late,
        }
    };
    Found {
        sent: (1..=rate * seconds).map(wake).collect(),
        bad: 0,
    }
}

fn measure(address: &str, (pattern, rate): (&str, u32), seconds: u32) -> Found {
    let name = format!("tokencanary-lateness-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let status = Command::new(env!("CARGO_BIN_EXE_tokencanary"))
        .args(["--log", "warn", "bench", "--ui", "none", "--unsure", "pass"])
        .args(["--url", address, "--isl", "8", "--osl", "1"])
        .args(["--arrival-pattern", pattern])
        .args(["--request-rate", &rate.to_string()])
        .args(["--benchmark-duration", &seconds.to_string()])
        .arg("--artifact-dir")
        .arg(&dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the binary was built");
    assert!(status.success(), "{status}");
    let text = std::fs::read_to_string(dir.join("requests.jsonl")).expect("it was written");
    std::fs::remove_dir_all(&dir).expect("the folder is ours");
    let (mut sent, mut bad) = (Vec::new(), 0);
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON lines");
        bad += usize::from(record["outcome"] != "ok");
        let due = record["intended_unix_ns"]
            .as_u64()
            .map(Duration::from_nanos);
        let late = record["waits_ms"]["schedule_lag"].as_f64();
        sent.extend(due.zip(late).map(|(due, late)| Sent {
            due,
            late: Duration::from_secs_f64(late / 1e3),
        }));
    }
    Found { sent, bad }
}

/// The ⌈q·n⌉-th smallest; per mille, so that the rank is a whole number.
fn quantile(values: &[f64], q: usize) -> f64 {
    let rank = (values.len() * q).div_ceil(1_000).max(1);
    values.get(rank - 1).copied().unwrap_or(f64::NAN)
}

fn row((pattern, rate): (&str, u32), late: &[f64], bad: usize) -> String {
    let over = late.iter().filter(|late| **late > BAR_US).count();
    format!(
        "{pattern:<8} {rate:>6} {:>7} {:>5.0} {:>6.0} {:>6.0} {:>7.0} {:>7.0} {over:>9} {bad:>18}",
        late.len(),
        quantile(late, 500),
        quantile(late, 900),
        quantile(late, 990),
        quantile(late, 999),
        quantile(late, 1_000),
    )
}
