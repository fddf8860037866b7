//! What the flags of `bench` mean: a configuration with one target and one probe.
//!
//! Pure, so that every flag is tested by its effect.

use std::time::Duration;

use crate::app::Extent;
use crate::config::{
    Arrivals, Balance, BaseUrl, Config, DEFAULT_STALL, ExportConfig, GovernorConfig, Limits,
    NetworkConfig, ProbeConfig, RequestConfig, Secret, ServerMetrics, TargetConfig, WhenFull,
    WorkloadConfig,
};
use crate::measurement::{Api, CacheMode, ConnectionPolicy};

/// Requests sent where neither a count nor a duration is given.
const DEFAULT_COUNT: u64 = 100;
/// Requests in flight at most, where a rate and no concurrency is given.
const UNBOUNDED: u32 = 100_000;
/// In-flight requests may go on this long after `--benchmark-duration`.
const GRACE: Duration = Duration::from_secs(30);
/// When a request is given up.
const TOTAL: Duration = Duration::from_mins(10);

/// An API to benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum EndpointType {
    /// Chat completions.
    Chat,
}

/// When requests are due under `--request-rate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ArrivalPattern {
    /// Every 1/rate seconds.
    Constant,
    /// Exponential times between arrivals.
    Poisson,
}

/// The load flags of `bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Load {
    /// URL of the server; without a scheme it is `http`.
    #[arg(short, long, default_value = "http://localhost:8000")]
    pub(super) url: String,
    /// Model to ask for; absent: the only one the server serves.
    #[arg(short, long, visible_alias = "model-names")]
    pub(super) model: Option<String>,
    /// API of the server.
    #[arg(long, value_enum, default_value = "chat")]
    pub(super) endpoint_type: EndpointType,
    /// Ask for an event stream (the default).
    #[arg(long, overrides_with = "no_streaming")]
    pub(super) streaming: bool,
    /// Ask for one whole answer; TTFT and ITL are then unknown.
    #[arg(long)]
    pub(super) no_streaming: bool,
    /// Requests in flight; with `--request-rate` the most that may be.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) concurrency: Option<u32>,
    /// Arrivals per second.
    #[arg(long, value_parser = rate)]
    pub(super) request_rate: Option<f64>,
    /// When requests are due under `--request-rate`.
    #[arg(
        long,
        value_enum,
        default_value = "poisson",
        visible_alias = "request-rate-mode"
    )]
    pub(super) arrival_pattern: ArrivalPattern,
    /// Requests to send; 100 if no duration is given either.
    #[arg(long, visible_alias = "num-requests", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) request_count: Option<u64>,
    /// Seconds during which requests become due.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    pub(super) benchmark_duration: Option<Duration>,
    /// Prompt tokens.
    #[arg(long, default_value_t = 550, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) isl: u32,
    /// Output tokens to ask for; absent: as many as the server likes.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) osl: Option<u32>,
    /// Seed of arrivals and prompts; drawn and printed if absent.
    #[arg(long, value_name = "N")]
    pub(super) random_seed: Option<u64>,
    /// Bearer token.
    #[arg(long)]
    pub(super) api_key: Option<String>,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 100_000.0 => Ok(rate),
        _ => Err("wanted arrivals per second, above 0 and at most 100000".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1e7 => Ok(Duration::from_secs_f64(value)),
        _ => Err("wanted seconds, above 0 and at most 10000000".to_owned()),
    }
}

/// A benchmark as it will run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) config: Config,
    pub(super) extent: Extent,
    /// A short text for the load, as `concurrency8` or `rate2.5-poisson`.
    pub(super) load: String,
}

impl Load {
    /// The benchmark these flags describe.
    pub(super) fn plan(&self) -> Result<Plan, String> {
        let url = if self.url.contains("://") {
            self.url.clone()
        } else {
            format!("http://{}", self.url)
        };
        let url = BaseUrl::parse(&url).map_err(|error| {
            // User information may be a password.
            let shown = if self.url.contains('@') {
                "…"
            } else {
                &self.url
            };
            format!("--url: `{shown}`: {error}\n  wanted: `http://host:port`")
        })?;
        let visible = |key: &String| key.bytes().all(|byte| byte.is_ascii_graphic());
        if !self.api_key.as_ref().is_none_or(visible) {
            return Err("--api-key: it holds a character that a header cannot carry\n  wanted: visible ASCII characters".to_owned());
        }
        let arrivals = self.arrivals();
        let in_flight = match (arrivals, self.concurrency) {
            (Arrivals::Closed { concurrency }, _) | (_, Some(concurrency)) => concurrency,
            (_, None) => UNBOUNDED,
        };
        let count = match (self.request_count, self.benchmark_duration) {
            (None, None) => Some(DEFAULT_COUNT),
            (count, _) => count,
        };
        Ok(Plan {
            config: Config {
                seed: self.random_seed,
                drain: Duration::from_secs(4),
                targets: vec![self.target(url)],
                probes: vec![self.probe(arrivals)],
                governor: GovernorConfig {
                    requests_per_day: None,
                    tokens_per_day: None,
                    in_flight,
                },
                export: ExportConfig::default(),
            },
            extent: Extent {
                count,
                duration: self.benchmark_duration,
                grace: self.benchmark_duration.map(|_| GRACE),
                patient: true,
            },
            load: self.load(arrivals),
        })
    }

    fn arrivals(&self) -> Arrivals {
        match (self.request_rate, self.arrival_pattern) {
            (None, _) => Arrivals::Closed {
                concurrency: self.concurrency.unwrap_or(1),
            },
            (Some(rate), ArrivalPattern::Constant) => Arrivals::Constant { rate },
            (Some(rate), ArrivalPattern::Poisson) => Arrivals::Poisson { rate },
        }
    }

    fn load(&self, arrivals: Arrivals) -> String {
        let cap = self
            .concurrency
            .map_or_else(String::new, |cap| format!("-concurrency{cap}"));
        match arrivals {
            Arrivals::Closed { concurrency } => format!("concurrency{concurrency}"),
            Arrivals::Constant { rate } => format!("rate{rate}-constant{cap}"),
            Arrivals::Poisson { rate } => format!("rate{rate}-poisson{cap}"),
        }
    }

    fn target(&self, url: BaseUrl) -> TargetConfig {
        TargetConfig {
            name: "bench".to_owned(),
            urls: vec![url],
            balance: Balance::default(),
            network: NetworkConfig::default(),
            api: match self.endpoint_type {
                EndpointType::Chat => Api::Chat,
            },
            request: RequestConfig::default(),
            tokenizer: None,
            model: self.model.clone(),
            api_key: self.api_key.as_deref().map(Secret::new),
            headers: Vec::new(),
            server_metrics: ServerMetrics::Auto,
            server_metrics_every: Duration::from_secs(1),
        }
    }

    fn probe(&self, arrivals: Arrivals) -> ProbeConfig {
        ProbeConfig {
            name: "bench".to_owned(),
            targets: vec!["bench".to_owned()],
            streaming: !self.no_streaming,
            when_full: WhenFull::Wait,
            connection: ConnectionPolicy::Pooled,
            arrivals,
            workload: WorkloadConfig {
                input_tokens: self.isl,
                output_tokens: self.osl,
                cache: CacheMode::Cold,
            },
            limits: Limits {
                connect: TOTAL,
                first_token: None,
                gap: None,
                total: TOTAL,
            },
            stall: DEFAULT_STALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        load: Load,
    }

    fn plan(flags: &str) -> Plan {
        let args = std::iter::once("bench").chain(flags.split_whitespace());
        Flags::try_parse_from(args)
            .expect("good flags")
            .load
            .plan()
            .expect("a good plan")
    }

    #[test]
    fn defaults_are_one_in_flight_a_hundred_times() {
        let plan = plan("");
        let probe = &plan.config.probes[0];
        assert_eq!(probe.arrivals, Arrivals::Closed { concurrency: 1 });
        assert_eq!(plan.extent.count, Some(100));
        assert_eq!(
            plan.config.targets[0].urls[0].to_string(),
            "http://localhost:8000"
        );
        assert!(probe.streaming);
        assert_eq!(probe.workload.input_tokens, 550);
        assert_eq!(probe.workload.output_tokens, None);
        assert_eq!(probe.limits.first_token, None);
        assert_eq!(probe.limits.total, Duration::from_mins(10));
        assert_eq!(plan.load, "concurrency1");
    }

    #[test]
    fn each_flag_has_its_effect() {
        let plan = plan(
            "-u box:9 -m m --concurrency 8 --request-rate 2.5 --request-count 7 --isl 3 --osl 4 \
             --random-seed 5 --no-streaming --api-key k",
        );
        let (target, probe) = (&plan.config.targets[0], &plan.config.probes[0]);
        assert_eq!(target.urls[0].to_string(), "http://box:9");
        assert_eq!(target.model.as_deref(), Some("m"));
        assert_eq!(target.api_key, Some(Secret::new("k")));
        assert_eq!(probe.arrivals, Arrivals::Poisson { rate: 2.5 });
        assert_eq!(plan.config.governor.in_flight, 8);
        assert_eq!((plan.extent.count, plan.config.seed), (Some(7), Some(5)));
        assert_eq!(
            (probe.workload.input_tokens, probe.workload.output_tokens),
            (3, Some(4))
        );
        assert!(!probe.streaming);
        assert_eq!(plan.load, "rate2.5-poisson-concurrency8");
    }

    #[test]
    fn a_duration_replaces_the_default_count() {
        let plan = plan("--benchmark-duration 1.5 --request-rate 4 --arrival-pattern constant");
        assert_eq!(plan.extent.count, None);
        assert_eq!(plan.extent.duration, Some(Duration::from_millis(1500)));
        assert_eq!(
            plan.config.probes[0].arrivals,
            Arrivals::Constant { rate: 4.0 }
        );
        assert_eq!(plan.config.governor.in_flight, 100_000);
    }

    #[test]
    fn bad_values_are_refused_with_what_was_wanted() {
        for flags in [
            "--concurrency 0",
            "--request-rate nan",
            "--request-rate 0",
            "--isl 0",
            "--benchmark-duration -1",
        ] {
            let args = std::iter::once("bench").chain(flags.split_whitespace());
            assert!(Flags::try_parse_from(args).is_err(), "{flags}");
        }
        let flags = Flags::try_parse_from(["bench", "-u", "https://x"]).expect("parsed");
        assert_eq!(
            flags.load.plan().map(|_| ()),
            Err("--url: `https://x`: `https` is not available in this version\n  wanted: `http://host:port`".to_owned())
        );
    }
}
