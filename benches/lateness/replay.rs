//! A recording like Mooncake's conversations, replayed many times faster against the simulated
//! server: whether what is sent at recorded times is sent in time.
//!
//! The trace is made anew each time: ten minutes, 3.4 rows a second in bursts every 3 s or so,
//! prompts of 900 to 126,000 tokens in blocks of 512 that are shared within conversations, answers
//! of 1 to 2,000 tokens. At speed 60 that is 200 requests, 2.7 million prompt tokens and 70,000
//! answer tokens a second, all of which this machine writes and reads twice.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Poisson};

use super::quantile;
use super::speed::{Speed, Watch};

/// Length of the recording, seconds.
const RECORDED: u64 = 600;
/// The bar for the own lag of 99 of 100, milliseconds.
const BAR_MS: f64 = 2.0;
/// Mean rows of a burst: 12,031 rows at 1,180 times, which are those of a steady stream in ticks
/// of 3 s.
const BURST: f64 = 10.2;
/// Tokens of a block.
const BLOCK: u64 = 512;

/// Replays it at `speed` and says how late it was.
#[expect(clippy::print_stdout, reason = "a benchmark prints its table")]
pub(crate) fn replay(speed: f64) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-replay.jsonl");
    let made = write(&path);
    println!(
        "{} rows over {RECORDED} s at {speed} times the speed: {} prompt and {} answer tokens",
        made.rows, made.input, made.output
    );
    for place in [Place::Behind, Place::Beside] {
        let server = Simulated::start(place);
        println!("{}", place.told());
        let watch = Watch::start();
        let found = run(&path, &server.address, speed);
        let seen = watch.stop();
        println!("{}", seen.told());
        println!(
            "{} records, of which {} did not end well",
            found.lags.len(),
            found.bad
        );
        assert_eq!(found.lags.len(), made.rows, "each row is a record");
        println!("milliseconds                p50     p90     p99   p99.9     max");
        let all = found.table("", |_| true);
        let at_speed = found.table("at speed", |lag| lag.was_at_speed(&seen));
        println!(
            "the bar: p99 of the own lag at most {BAR_MS} ms: {all:.2} ms, {at_speed:.2} ms while the processor ran at its speed"
        );
    }
    fs::remove_file(&path).expect("the file is ours");
}

/// What a trace has in it.
struct Made {
    rows: usize,
    input: u64,
    output: u64,
}

/// One conversation that may go on.
struct Talk {
    ids: Vec<u64>,
    tokens: u64,
}

fn write(path: &Path) -> Made {
    let mut random = StdRng::seed_from_u64(7);
    let mut out = BufWriter::new(File::create(path).expect("the folder is ours"));
    let (mut talks, mut next) = (Vec::<Talk>::new(), 0_u64);
    let mut made = Made {
        rows: 0,
        input: 0,
        output: 0,
    };
    let bursts = Poisson::new(BURST).expect("it is positive");
    let mut at = 0;
    while at < RECORDED * 1_000 {
        for _ in 0..count(bursts.sample(&mut random)) {
            // Half of the rows go on with a conversation, as far as there is room.
            let goes_on = !talks.is_empty() && random.random_bool(0.5);
            let place = if goes_on {
                random.random_range(0..talks.len())
            } else {
                talks.push(Talk {
                    ids: Vec::new(),
                    tokens: 0,
                });
                talks.len() - 1
            };
            let more = count(exponential(&mut random, 7_000.0)).clamp(900, 60_000);
            let output = count(exponential(&mut random, 350.0)).clamp(1, 2_000);
            let talk = &mut talks[place];
            talk.tokens += more;
            // What was a part of a block is another block when more comes.
            let whole = (talk.tokens - more) / BLOCK;
            talk.ids.truncate(usize::try_from(whole).expect("small"));
            while (talk.ids.len() as u64) < talk.tokens.div_ceil(BLOCK) {
                talk.ids.push(next);
                next += 1;
            }
            let ids: Vec<String> = talk.ids.iter().map(u64::to_string).collect();
            writeln!(
                out,
                "{{\"timestamp\": {at}, \"input_length\": {}, \"output_length\": {output}, \"hash_ids\": [{}]}}",
                talk.tokens,
                ids.join(", ")
            )
            .expect("the disk has room");
            made.rows += 1;
            made.input += talk.tokens;
            made.output += output;
            talk.tokens += output;
            if talk.tokens > 60_000 {
                talks.swap_remove(place);
            }
        }
        at += [2_999, 3_000, 3_001][random.random_range(0..3_usize)];
    }
    out.flush().expect("the disk has room");
    made
}

fn exponential(random: &mut StdRng, mean: f64) -> f64 {
    -mean * (1.0 - random.random_range(0.0..1.0_f64)).ln()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small and not negative"
)]
fn count(value: f64) -> u64 {
    value.round() as u64
}

/// Where the simulated server gets its time from.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// From what the client leaves, as if it had a machine of its own.
    Behind,
    /// From the same cores, as the client does.
    Beside,
}

impl Place {
    const fn told(self) -> &'static str {
        match self {
            Self::Behind => "\nthe server has the time that the client leaves:",
            Self::Beside => "\nthe server shares the cores with the client:",
        }
    }
}

/// The simulated server, in a process of its own.
struct Simulated {
    child: Child,
    address: String,
}

impl Simulated {
    fn start(place: Place) -> Self {
        let mut program = match place {
            Place::Behind => {
                let mut program = Command::new("chrt");
                program.args(["--idle", "0", env!("CARGO_BIN_EXE_tokencanary")]);
                program
            }
            Place::Beside => Command::new(env!("CARGO_BIN_EXE_tokencanary")),
        };
        let mut child = program
            .args(["simulate", "--listen", "127.0.0.1:0", "--profile", "fixed"])
            .args(["--ttft", "50ms", "--itl", "5ms"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program is there, and `chrt` of util-linux");
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let said = lines.map_while(Result::ok);
        let mut at = said.filter_map(|line| Some(line.split_once("http://")?.1.to_owned()));
        let address = at.next().expect("it says where it listens");
        let address = address.trim().to_owned();
        Self { child, address }
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        // Either fails only if it has ended, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What one run left.
#[derive(Default)]
struct Found {
    bad: usize,
    lags: Vec<Lag>,
}

/// What we held up of one request, in milliseconds, and when.
struct Lag {
    schedule: f64,
    read: f64,
    /// From when it was due until its first token was read, and the read of its last one, since
    /// the Unix epoch.
    spans: [(Duration, Duration); 2],
}

impl Lag {
    const fn own(&self) -> f64 {
        self.schedule + self.read
    }

    fn was_at_speed(&self, speed: &Speed) -> bool {
        let mut spans = self.spans.iter();
        spans.all(|(from, to)| speed.was_full(*from, *to))
    }
}

/// What is looked at of a request.
type Value = fn(&Lag) -> f64;

impl Found {
    /// Prints those that are `wanted`, and gives the 99th percentile of their own lag.
    #[expect(clippy::print_stdout, reason = "a benchmark prints its table")]
    fn table(&self, name: &str, wanted: impl Fn(&Lag) -> bool) -> f64 {
        let lags: Vec<&Lag> = self.lags.iter().filter(|lag| wanted(lag)).collect();
        let parts: [(&str, Value); 3] = [
            ("schedule lag", |lag| lag.schedule),
            ("read lag", |lag| lag.read),
            ("own lag", Lag::own),
        ];
        let mut own = f64::NAN;
        for (part, value) in parts {
            let mut values: Vec<f64> = lags.iter().map(|lag| value(lag)).collect();
            values.sort_by(f64::total_cmp);
            println!(
                "{part:<12} {name:<10}{}   of {}",
                row(&values),
                values.len()
            );
            own = quantile(&values, 990);
        }
        own
    }
}

fn run(trace: &Path, address: &str, speed: f64) -> Found {
    let name = format!("tokencanary-replay-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let status = Command::new(env!("CARGO_BIN_EXE_tokencanary"))
        .args(["--log", "warn", "bench", "--ui", "none", "--unsure", "pass"])
        .args(["--url", address, "--speed", &speed.to_string()])
        .arg("--input-file")
        .arg(trace)
        .arg("--artifact-dir")
        .arg(&dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("the binary was built");
    assert!(status.success(), "{status}");
    let text = fs::read_to_string(dir.join("requests.jsonl")).expect("it was written");
    fs::remove_dir_all(&dir).expect("the folder is ours");
    let mut found = Found::default();
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON lines");
        found.bad += usize::from(record["outcome"] != "ok");
        let unix = |key: &str| record[key].as_u64().map(Duration::from_nanos);
        let ms = |part: &str, key: &str| record[part][key].as_f64();
        let read = ms("waits_ms", "read_lag").unwrap_or_default();
        let (Some(due), Some(start)) = (unix("intended_unix_ns"), unix("start_unix_ns")) else {
            continue;
        };
        let after = |key| {
            let token = ms("times_ms", key).unwrap_or_default() / 1e3;
            let at = start + Duration::from_secs_f64(token);
            (at, at + Duration::from_secs_f64(read / 1e3))
        };
        found.lags.push(Lag {
            schedule: ms("waits_ms", "schedule_lag").expect("it was sent"),
            read,
            spans: [(due, after("ttft").1), after("last_token")],
        });
    }
    found
}

fn row(values: &[f64]) -> String {
    [500, 900, 990, 999, 1_000]
        .map(|q| format!("{:>8.2}", quantile(values, q)))
        .concat()
}
