//! The flags of `bench` that say when requests are due: processes, caps, ramps, phases.
//!
//! Named as `AIPerf` names them, with two of our own: the shape of ramps, which there is always
//! linear, and a cool-down. Pure, but for the file of a rate series, which is read while flags
//! are parsed.

use std::time::Duration;

use super::bench_warm_up::WarmUp;
use crate::config::{
    Arrivals, Bounds, Cancellation, Gaps, PhaseConfig, Ramp, RampShape, Ramps, RatePoint,
};
use crate::measurement::PhaseKind;

/// Requests sent where neither a count nor a duration is given.
const DEFAULT_COUNT: u64 = 100;
/// Requests in flight at most, where a rate and no concurrency is given.
pub(super) const UNBOUNDED: u32 = 100_000;
/// In-flight requests may go on this long after `--benchmark-duration`.
const GRACE: Duration = Duration::from_secs(30);

/// When requests are due under a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ArrivalPattern {
    /// Every 1/rate seconds.
    Constant,
    /// Exponential times between arrivals.
    Poisson,
    /// Gamma-distributed times between arrivals, see `--arrival-smoothness`.
    Gamma,
}

/// The way of a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Way {
    /// A straight line.
    Linear,
    /// The same factor in the same time.
    Exponential,
    /// Levels of equal height and length, see `--ramp-steps`.
    Stepped,
}

/// When requests are due.
#[derive(Debug, clap::Args)]
pub(super) struct Shape {
    /// Requests in flight; with a rate the most that may be, further ones wait.
    #[arg(long, value_parser = in_flight())]
    pub(super) concurrency: Option<u32>,
    /// Requests that have had no token yet, at most; further ones wait.
    #[arg(long, value_parser = in_flight())]
    pub(super) prefill_concurrency: Option<u32>,
    /// Arrivals per second.
    #[arg(long, value_parser = rate)]
    pub(super) request_rate: Option<f64>,
    /// Rate over time: a JSON file `[{"time_s": 0, "qps": 1}, …]`; straight lines between the
    /// points, flat outside.
    #[arg(long, value_parser = series, value_name = "FILE", conflicts_with = "request_rate")]
    pub(super) request_rate_series: Option<Series>,
    /// Times between arrivals under a rate; default `poisson`, `gamma` with
    /// `--arrival-smoothness`.
    #[arg(long, value_enum, visible_alias = "request-rate-mode")]
    pub(super) arrival_pattern: Option<ArrivalPattern>,
    /// Shape of the gamma distribution: 1 is Poisson, more is smoother, less comes in clusters.
    #[arg(
        long,
        value_parser = smoothness,
        visible_aliases = ["vllm-burstiness", "burstiness"],
        value_name = "SHAPE"
    )]
    pub(super) arrival_smoothness: Option<f64>,
    /// Users who take turns, with `--user-centric-rate`.
    #[arg(long, value_parser = in_flight(), requires = "user_centric_rate")]
    pub(super) num_users: Option<u32>,
    /// Turns per second of all users together; each takes one every users/rate seconds, or when
    /// its last one has ended.
    #[arg(
        long,
        value_parser = rate,
        value_name = "RATE",
        requires = "num_users",
        conflicts_with_all = ["request_rate", "request_rate_series", "arrival_pattern", "arrival_smoothness"]
    )]
    pub(super) user_centric_rate: Option<f64>,
    /// Turns of a user before another one takes the place; with `--input-file` users go through
    /// the conversations of the file, one after the other.
    #[arg(
        long,
        visible_alias = "conversation-turn-mean",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000),
        default_value_t = 1,
        value_name = "TURNS",
        conflicts_with = "input_file"
    )]
    pub(super) session_turns_mean: u32,
    /// Requests to send; 100 if there is no other end.
    #[arg(long, visible_alias = "num-requests", value_parser = count())]
    pub(super) request_count: Option<u64>,
    /// Sessions to begin: users, or single requests where there are no users.
    #[arg(long, visible_aliases = ["conversation-num", "num-conversations"], value_parser = count())]
    pub(super) num_sessions: Option<u64>,
    /// Seconds during which requests become due.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    pub(super) benchmark_duration: Option<Duration>,
    /// Seconds for requests in flight after `--benchmark-duration`, or `inf`; default 30. Then
    /// they are cancelled, and arrivals still in line count as failed.
    #[arg(long, value_parser = patience, value_name = "SECONDS", requires = "benchmark_duration")]
    pub(super) benchmark_grace_period: Option<Patience>,
    /// Percentage of requests that are given up on purpose.
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    pub(super) request_cancellation_rate: Option<f64>,
    /// Seconds after which they are, from the moment a request is written.
    #[arg(
        long,
        value_parser = delay,
        value_name = "SECONDS",
        requires = "request_cancellation_rate",
        default_value = "0"
    )]
    pub(super) request_cancellation_delay: Duration,
    /// Seconds in which the rate comes up to `--request-rate`.
    #[arg(long, value_parser = seconds, value_name = "SECONDS", requires = "request_rate")]
    pub(super) request_rate_ramp_duration: Option<Duration>,
    /// Seconds in which `--concurrency` is reached, from 1.
    #[arg(long, value_parser = seconds, value_name = "SECONDS", requires = "concurrency")]
    pub(super) concurrency_ramp_duration: Option<Duration>,
    /// Seconds in which `--prefill-concurrency` is reached, from 1.
    #[arg(long, value_parser = seconds, value_name = "SECONDS", requires = "prefill_concurrency")]
    pub(super) prefill_concurrency_ramp_duration: Option<Duration>,
    /// The way of all ramps.
    #[arg(long = "ramp-shape", value_enum, default_value = "linear")]
    pub(super) ramp_way: Way,
    /// Levels of a stepped ramp.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000), default_value_t = 10)]
    pub(super) ramp_steps: u32,
    #[command(flatten)]
    pub(super) warm_up: WarmUp,
    /// Seconds for which the load goes on after the benchmark, so that its last requests end
    /// under load; not measured.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    pub(super) cooldown_duration: Option<Duration>,
}

/// A rate over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series(Vec<RatePoint>);

/// A grace period; `None`: as long as requests take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience(pub(super) Option<Duration>);

/// The values that a phase is made of, after warm-up flags were laid over the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    pub(super) concurrency: Option<u32>,
    pub(super) prefill_concurrency: Option<u32>,
    pub(super) request_rate: Option<f64>,
    pub(super) arrival_pattern: Option<ArrivalPattern>,
    pub(super) rate_ramp: Option<Duration>,
    pub(super) concurrency_ramp: Option<Duration>,
    pub(super) prefill_ramp: Option<Duration>,
}

impl Shape {
    /// The phases these flags describe.
    pub(super) fn phases(&self, streaming: bool) -> Result<Vec<PhaseConfig>, String> {
        let values = self.values();
        if let Some(flag) = self.warm_up.stray() {
            return Err(format!(
                "{flag}: there is no warm-up\n  wanted: `--warmup-request-count`, `--warmup-duration` or `--num-warmup-sessions` beside it"
            ));
        }
        if !streaming && self.warm_up.values(values).prefill_concurrency.is_some() {
            return Err("--prefill-concurrency: without a stream no first token is seen\n  hint: leave `--no-streaming` out".to_owned());
        }
        let mut measured = self.phase(PhaseKind::Profiling, values)?;
        measured.cancellation = self.request_cancellation_rate.map(|share| Cancellation {
            share,
            after: self.request_cancellation_delay,
        });
        measured.bounds = self.bounds();
        measured.grace = self.grace();
        let mut phases = Vec::new();
        if let Some(bounds) = self.warm_up.bounds() {
            phases.push(PhaseConfig {
                bounds,
                grace: self.warm_up.grace(),
                ..self.phase(PhaseKind::WarmUp, self.warm_up.values(values))?
            });
        }
        measured.seamless = self.cooldown_duration.is_some();
        phases.push(measured);
        if let Some(duration) = self.cooldown_duration {
            let mut last = self.phase(PhaseKind::CoolDown, values)?;
            last.ramps = Ramps::default();
            last.bounds.duration = Some(duration);
            last.grace = Some(Duration::ZERO);
            phases.push(last);
        }
        Ok(phases)
    }

    /// Requests in flight that `phases` need at most.
    pub(super) fn in_flight(phases: &[PhaseConfig]) -> u32 {
        let caps = phases.iter().map(|phase| phase.cap().unwrap_or(UNBOUNDED));
        caps.max().unwrap_or(UNBOUNDED)
    }

    /// A short text for the load, as `concurrency8` or `rate2.5-poisson`.
    pub(super) fn label(&self) -> String {
        let cap = self.concurrency;
        let dashed = cap.map_or_else(String::new, |cap| format!("-concurrency{cap}"));
        let pattern = match (self.arrival_smoothness, self.arrival_pattern) {
            (Some(smoothness), _) => format!("gamma{smoothness}"),
            (None, Some(ArrivalPattern::Constant)) => "constant".to_owned(),
            (None, _) => "poisson".to_owned(),
        };
        if let Some((users, rate)) = self.num_users.zip(self.user_centric_rate) {
            format!("users{users}-rate{rate}{dashed}")
        } else if self.request_rate_series.is_some() {
            format!("series-{pattern}{dashed}")
        } else if let Some(rate) = self.request_rate {
            format!("rate{rate}-{pattern}{dashed}")
        } else {
            format!("concurrency{}", cap.unwrap_or(1))
        }
    }

    /// Whether a flag says when requests are due, but for a concurrency.
    pub(super) const fn is_paced(&self) -> bool {
        self.request_rate.is_some()
            || self.request_rate_series.is_some()
            || self.user_centric_rate.is_some()
    }

    /// Whether a flag says when it ends.
    pub(super) const fn has_end(&self) -> bool {
        self.request_count.is_some()
            || self.benchmark_duration.is_some()
            || self.num_sessions.is_some()
    }

    const fn values(&self) -> Values {
        Values {
            concurrency: self.concurrency,
            prefill_concurrency: self.prefill_concurrency,
            request_rate: self.request_rate,
            arrival_pattern: self.arrival_pattern,
            rate_ramp: self.request_rate_ramp_duration,
            concurrency_ramp: self.concurrency_ramp_duration,
            prefill_ramp: self.prefill_concurrency_ramp_duration,
        }
    }

    const fn bounds(&self) -> Bounds {
        let bounds = Bounds {
            requests: self.request_count,
            duration: self.benchmark_duration,
            sessions: self.num_sessions,
        };
        if bounds.is_endless() {
            return Bounds {
                requests: Some(DEFAULT_COUNT),
                ..bounds
            };
        }
        bounds
    }

    fn grace(&self) -> Option<Duration> {
        self.benchmark_duration?;
        self.benchmark_grace_period
            .map_or(Some(GRACE), |patience| patience.0)
    }

    /// A phase of `kind` without an end.
    fn phase(&self, kind: PhaseKind, values: Values) -> Result<PhaseConfig, String> {
        let arrivals = self.arrivals(values)?;
        let shape = match self.ramp_way {
            Way::Linear => RampShape::Linear,
            Way::Exponential => RampShape::Exponential,
            Way::Stepped => RampShape::Stepped {
                steps: self.ramp_steps,
            },
        };
        let from_one = |over| Ramp {
            from: 1.0,
            over,
            shape,
        };
        let rate = values.request_rate.zip(values.rate_ramp);
        Ok(PhaseConfig {
            name: kind.name().to_owned(),
            kind,
            concurrency: values.concurrency.filter(|_| !arrivals.is_closed_loop()),
            prefill_concurrency: values.prefill_concurrency,
            ramps: Ramps {
                rate: rate.map(|(rate, over)| Ramp::up_to(rate, over, shape)),
                concurrency: values.concurrency_ramp.map(from_one),
                prefill_concurrency: values.prefill_ramp.map(from_one),
            },
            ..PhaseConfig::endless(arrivals)
        })
    }

    fn arrivals(&self, values: Values) -> Result<Arrivals, String> {
        if let Some((users, rate)) = self.num_users.zip(self.user_centric_rate) {
            return Ok(Arrivals::Users {
                users,
                rate,
                turns: Some(self.session_turns_mean),
            });
        }
        let gaps = self.gaps(values.arrival_pattern)?;
        if let Some(Series(points)) = &self.request_rate_series {
            return Ok(Arrivals::Series {
                gaps,
                points: points.clone().into(),
            });
        }
        let Some(rate) = values.request_rate else {
            return Ok(Arrivals::Closed {
                concurrency: values.concurrency.unwrap_or(1),
            });
        };
        Ok(match gaps {
            Gaps::Constant => Arrivals::Constant { rate },
            Gaps::Poisson => Arrivals::Poisson { rate },
            Gaps::Gamma { smoothness } => Arrivals::Gamma { rate, smoothness },
        })
    }

    fn gaps(&self, pattern: Option<ArrivalPattern>) -> Result<Gaps, String> {
        match (pattern, self.arrival_smoothness) {
            (None | Some(ArrivalPattern::Gamma), Some(smoothness)) => {
                Ok(Gaps::Gamma { smoothness })
            }
            (Some(ArrivalPattern::Gamma), None) => Ok(Gaps::Gamma { smoothness: 1.0 }),
            (None | Some(ArrivalPattern::Poisson), None) => Ok(Gaps::Poisson),
            (Some(ArrivalPattern::Constant), None) => Ok(Gaps::Constant),
            (Some(_), Some(smoothness)) => Err(format!(
                "--arrival-smoothness: `{smoothness}`\n  wanted: `--arrival-pattern gamma`, or none, beside it"
            )),
        }
    }
}

/// A number of requests in flight.
pub(super) fn in_flight() -> clap::builder::RangedU64ValueParser<u32> {
    clap::builder::RangedU64ValueParser::<u32>::new().range(1..=100_000)
}

/// A number of requests.
pub(super) fn count() -> clap::builder::RangedU64ValueParser<u64> {
    clap::builder::RangedU64ValueParser::<u64>::new().range(1..)
}

pub(super) fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 100_000.0 => Ok(rate),
        _ => Err("wanted arrivals per second, above 0 and at most 100000".to_owned()),
    }
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1e7 => Ok(Duration::from_secs_f64(value)),
        _ => Err("wanted seconds, above 0 and at most 10000000".to_owned()),
    }
}

fn delay(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1e6).contains(&value) => Ok(Duration::from_secs_f64(value)),
        _ => Err("wanted seconds, from 0 to 1000000".to_owned()),
    }
}

pub(super) fn patience(text: &str) -> Result<Patience, String> {
    match text {
        "inf" => Ok(Patience(None)),
        text => delay(text)
            .map(|span| Patience(Some(span)))
            .map_err(|wanted| format!("{wanted}, or `inf`")),
    }
}

fn smoothness(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.001..=1_000.0).contains(&value) => Ok(value),
        _ => Err("wanted a number from 0.001 to 1000".to_owned()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 100.0 => Ok(value / 100.0),
        _ => Err("wanted a percentage, above 0 and at most 100".to_owned()),
    }
}

/// One point of a file of rates.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    time_s: f64,
    qps: f64,
}

/// Reads the file of rates at `path`.
fn series(path: &str) -> Result<Series, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let points: Vec<Point> = serde_json::from_str(&text)
        .map_err(|error| format!("{error}; wanted `[{{\"time_s\": 0, \"qps\": 1}}, …]`"))?;
    let mut read: Vec<RatePoint> = Vec::with_capacity(points.len());
    for (index, Point { time_s, qps }) in points.iter().enumerate() {
        let before = read.last().map_or(Duration::ZERO, |point| point.at);
        let good = (0.0..=1e8).contains(time_s) && (0.0..=100_000.0).contains(qps);
        match Duration::try_from_secs_f64(*time_s) {
            Ok(at) if good && at >= before => read.push(RatePoint { at, rate: *qps }),
            _ => {
                return Err(format!(
                    "point {index}: `{time_s}`, `{qps}`: wanted a time that does not go back and a rate from 0 to 100000"
                ));
            }
        }
    }
    if read.iter().all(|point| point.rate <= 0.0) {
        return Err("wanted a point with a rate above 0".to_owned());
    }
    Ok(Series(read))
}
