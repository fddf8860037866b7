//! What the flags of `bench` mean: a configuration with one target and one probe.
//!
//! Pure, so that every flag is tested by its effect.

use std::time::Duration;

use super::bench_goodput::Goodput;
use super::bench_input::{Chosen, Input};
use super::bench_load::{Shape, UNBOUNDED};
use super::bench_prompt::{FileTexts, Prompts};
use crate::app::Extent;
use crate::config::{
    Balance, BaseUrl, Config, DEFAULT_STALL, ExportConfig, GovernorConfig, Limits, NetworkConfig,
    PhaseConfig, ProbeConfig, RequestConfig, Secret, ServerMetrics, StartConfig, TargetConfig,
    WhenFull, WorkloadConfig, wrong_path,
};
use crate::measurement::{Api, ConnectionPolicy, Slo};

/// When a request is given up.
const TOTAL: Duration = Duration::from_mins(10);

/// How several URLs are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum UrlStrategy {
    /// One after the other.
    RoundRobin,
    /// Any, each with the same chance.
    Random,
    /// The one with the fewest requests in flight.
    LeastInFlight,
}

/// Which connection a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Reuse {
    /// An idle one if there is one.
    Pooled,
    /// Always a new one.
    Never,
    /// The one of its user: of its place among those in flight.
    StickyUserSessions,
}

/// The load flags of `bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Load {
    /// URL of the server, `http`, `https` or `unix`; without a scheme it is `http`. Several, by
    /// commas or by repeating the flag, share the load.
    #[arg(
        short,
        long,
        default_value = "http://localhost:8000",
        value_delimiter = ','
    )]
    pub(super) url: Vec<String>,
    /// How several URLs are used.
    #[arg(long, value_enum, default_value = "round_robin")]
    pub(super) url_strategy: UrlStrategy,
    /// Which connection a request uses.
    #[arg(long, value_enum, default_value = "pooled")]
    pub(super) connection_reuse_strategy: Reuse,
    /// Model to ask for; absent: the only one the server serves.
    #[arg(short, long, visible_alias = "model-names")]
    pub(super) model: Option<String>,
    /// API of the server: `chat`, `completions`, `responses`, `messages`, `tgi`, `llamacpp`,
    /// `ollama`, `ollama_generate`, `triton`, `kserve`, `gemini`, `cohere`, `embeddings`,
    /// `chat_embeddings`, `nim_embeddings`, `tei_embed`, `rerank`, `cohere_rerank`, `tei_rerank`
    /// or `nim_rerank`; or the name that `AIPerf` has for it.
    #[arg(long, value_parser = api, default_value = "chat", value_name = "NAME")]
    pub(super) endpoint_type: Api,
    /// Path below the URL, instead of the API's own.
    #[arg(long, visible_alias = "custom-endpoint", value_name = "PATH")]
    pub(super) endpoint: Option<String>,
    /// Further fields of the request body, `key:value` or a JSON object; may be repeated.
    #[arg(long, value_parser = extra, value_name = "KEY:VALUE|JSON")]
    pub(super) extra_inputs: Vec<Extra>,
    /// Ask for an event stream (the default, where the API has streams).
    #[arg(long, overrides_with = "no_streaming")]
    pub(super) streaming: bool,
    /// Ask for one whole answer; TTFT and ITL are then unknown.
    #[arg(long)]
    pub(super) no_streaming: bool,
    #[command(flatten)]
    pub(super) shape: Shape,
    #[command(flatten)]
    pub(super) input: Input,
    #[command(flatten)]
    pub(super) prompts: Prompts,
    #[command(flatten)]
    pub(super) goodput: Goodput,
    /// Seed of arrivals and prompts; drawn and printed if absent.
    #[arg(long, value_name = "N")]
    pub(super) random_seed: Option<u64>,
    /// Bearer token.
    #[arg(long)]
    pub(super) api_key: Option<String>,
}

/// Fields of a request body.
type Extra = serde_json::Map<String, serde_json::Value>;

/// An API whose requests are made of prompts: not `raw` or `template`, which need a file.
pub(super) fn api(text: &str) -> Result<Api, String> {
    match Api::named(text) {
        Some(Api::Raw | Api::Template) => {
            Err("a body of your own is given in a configuration file, see `run`".to_owned())
        }
        Some(api) => Ok(api),
        None => {
            let names = Api::ALL.map(Api::name);
            Err(format!("wanted one of {}", names.join(", ")))
        }
    }
}

/// A JSON object, or `key:value` whose value is JSON where it can be read as that.
fn extra(text: &str) -> Result<Extra, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("no JSON object: {error}"));
    }
    let (key, value) = text
        .split_once(':')
        .filter(|(key, _)| !key.is_empty())
        .ok_or("wanted `key:value` or a JSON object")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok(std::iter::once((key.to_owned(), value)).collect())
}

/// A benchmark as it will run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) config: Config,
    pub(super) extent: Extent,
    /// A short text for the load, as `concurrency8` or `rate2.5-poisson`.
    pub(super) load: String,
    /// What the person who started it should know before.
    pub(super) notes: Vec<String>,
}

impl Load {
    /// The benchmark these flags describe.
    pub(super) fn plan(&self) -> Result<Plan, String> {
        let urls = self.urls()?;
        self.check_request()?;
        if self.streaming && !self.endpoint_type.can_stream() {
            return Err(format!(
                "--streaming: `{}` has no streams\n  hint: leave the flag out",
                self.endpoint_type.name()
            ));
        }
        if self.endpoint_type.names_model_in_path()
            && self.model.is_none()
            && self.endpoint.is_none()
        {
            return Err(format!(
                "--model: missing\n  wanted: the name of a model, which is part of the path of `{}`",
                self.endpoint_type.name()
            ));
        }
        if self.prompts.has_questions() && !self.endpoint_type.makes_tokens() {
            return Err(format!(
                "--known-answers: `{}` answers with no text\n  wanted: another `--endpoint-type`",
                self.endpoint_type.name()
            ));
        }
        let visible = |key: &String| key.bytes().all(|byte| byte.is_ascii_graphic());
        if !self.api_key.as_ref().is_none_or(visible) {
            return Err("--api-key: it holds a character that a header cannot carry\n  wanted: visible ASCII characters".to_owned());
        }
        let streaming = self.is_streaming();
        let mut phases = self.shape.phases(streaming)?;
        let paced = self.shape.is_paced();
        let chosen = self.input.chosen((self.texts_of_file()?, paced))?;
        if let Some(chosen) = &chosen {
            chosen.apply(&mut phases, (self.shape.has_end(), self.shape.concurrency));
        }
        let workload = match &chosen {
            Some(chosen) => chosen.workload.clone(),
            None => self.prompts.workload()?,
        };
        let in_flight = match &chosen {
            // A cap is one of sessions, of which several requests may be at work.
            Some(chosen) if chosen.has_agents => UNBOUNDED,
            _ => Shape::in_flight(&phases),
        };
        let slo = self.goodput.slo(streaming)?;
        Ok(Plan {
            config: Config {
                seed: self.random_seed,
                drain: Duration::from_secs(4),
                targets: vec![self.target(urls)],
                probes: vec![ProbeConfig {
                    slo,
                    ..self.probe(phases, workload)
                }],
                governor: GovernorConfig {
                    requests_per_day: None,
                    tokens_per_day: None,
                    in_flight,
                },
                export: ExportConfig::default(),
            },
            extent: Extent {
                patient: true,
                ..Extent::default()
            },
            load: match &chosen {
                Some(Chosen { fixed: Some(_), .. }) => "fixed-schedule".to_owned(),
                _ => self.shape.label(),
            },
            notes: chosen.map(|chosen| chosen.note).into_iter().collect(),
        })
    }

    /// What is said of the texts of a file, if there is one.
    fn texts_of_file(&self) -> Result<FileTexts, String> {
        if self.input.is_given() {
            self.prompts.of_file()
        } else {
            Ok(FileTexts::default())
        }
    }

    /// Whether the API's own request can be changed as the flags say.
    fn check_request(&self) -> Result<(), String> {
        if let Some(path) = &self.endpoint
            && let Some(why) = wrong_path(path)
        {
            let shown = path.escape_debug();
            return Err(format!(
                "--endpoint: `{shown}`\n  wanted: a path, as in `/v1/chat/completions`\n  hint: {why}"
            ));
        }
        let streams = serde_json::Value::from(self.is_streaming());
        let mut given = self
            .extra_inputs
            .iter()
            .filter_map(|extra| extra.get("stream"));
        given.find(|stream| **stream != streams).map_or(Ok(()), |stream| {
            Err(format!(
                "--extra-inputs: `stream:{stream}` does not go together with what is asked for\n  wanted: no `stream` among them\n  hint: `--no-streaming` asks for one whole answer"
            ))
        })
    }

    fn is_streaming(&self) -> bool {
        !self.no_streaming && self.endpoint_type.can_stream()
    }

    fn urls(&self) -> Result<Vec<BaseUrl>, String> {
        let mut urls = Vec::new();
        for given in &self.url {
            let text = if given.contains("://") {
                given.clone()
            } else {
                format!("http://{given}")
            };
            let url = BaseUrl::parse(&text).map_err(|error| {
                // User information may be a password.
                let shown = if given.contains('@') { "…" } else { given };
                format!("--url: `{shown}`: {error}\n  wanted: `http://host:port`")
            })?;
            if urls.contains(&url) {
                return Err(format!("--url: `{url}` twice\n  wanted: each URL once"));
            }
            urls.push(url);
        }
        Ok(urls)
    }

    fn target(&self, urls: Vec<BaseUrl>) -> TargetConfig {
        TargetConfig {
            name: "bench".to_owned(),
            urls,
            balance: match self.url_strategy {
                UrlStrategy::RoundRobin => Balance::RoundRobin,
                UrlStrategy::Random => Balance::Random,
                UrlStrategy::LeastInFlight => Balance::LeastInFlight,
            },
            network: NetworkConfig::default(),
            api: self.endpoint_type,
            request: RequestConfig {
                path: self.endpoint.clone(),
                extra: self.extra_inputs.iter().flat_map(Clone::clone).collect(),
                ..RequestConfig::default()
            },
            tokenizer: self.prompts.tokenizer(),
            model: self.model.clone(),
            api_key: self.api_key.as_deref().map(Secret::new),
            headers: Vec::new(),
            server_metrics: ServerMetrics::Auto,
            server_metrics_every: Duration::from_secs(1),
            gpu: None,
            node: None,
            node_every: Duration::from_secs(15),
            pod_info: None,
            start: StartConfig::NONE,
        }
    }

    fn probe(&self, phases: Vec<PhaseConfig>, workload: WorkloadConfig) -> ProbeConfig {
        ProbeConfig {
            name: "bench".to_owned(),
            targets: vec!["bench".to_owned()],
            streaming: self.is_streaming(),
            when_full: WhenFull::Wait,
            connection: match self.connection_reuse_strategy {
                Reuse::Pooled => ConnectionPolicy::Pooled,
                Reuse::Never => ConnectionPolicy::New,
                Reuse::StickyUserSessions => ConnectionPolicy::PerSession,
            },
            phases,
            workload,
            limits: Limits {
                connect: TOTAL,
                first_token: None,
                gap: None,
                total: TOTAL,
            },
            stall: DEFAULT_STALL,
            slo: Slo::NONE,
        }
    }
}

/// The flags of `bench` that say what it does, alone.
#[derive(clap::Parser)]
struct LoadFlags {
    #[command(flatten)]
    load: Load,
}

/// What `bench` runs under `flags`, for whoever wants to run it elsewhere.
///
/// # Errors
///
/// If `bench` would refuse them; the message says why.
pub fn benchmark<'f>(flags: impl IntoIterator<Item = &'f str>) -> Result<(Config, Extent), String> {
    let arguments = std::iter::once("bench").chain(flags);
    let parsed = <LoadFlags as clap::Parser>::try_parse_from(arguments);
    let flags = parsed.map_err(|error| error.to_string())?;
    let Plan { config, extent, .. } = flags.load.plan()?;
    Ok((config, extent))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::Arrivals;
    use crate::measurement::CacheMode;

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
        let [phase] = &probe.phases[..] else {
            panic!("one phase");
        };
        assert_eq!(phase.arrivals, Arrivals::Closed { concurrency: 1 });
        assert_eq!(phase.bounds.requests, Some(100));
        assert_eq!(
            plan.config.targets[0].urls[0].to_string(),
            "http://localhost:8000"
        );
        assert!(probe.streaming);
        assert_eq!(
            probe.workload,
            WorkloadConfig::synthetic(550, None, CacheMode::Cold)
        );
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
        let phase = &probe.phases[0];
        assert_eq!(phase.arrivals, Arrivals::Poisson { rate: 2.5 });
        assert_eq!(plan.config.governor.in_flight, 8);
        assert_eq!(phase.bounds.requests, Some(7));
        assert_eq!(plan.config.seed, Some(5));
        assert_eq!(
            probe.workload,
            WorkloadConfig::synthetic(3, Some(4), CacheMode::Cold)
        );
        assert!(!probe.streaming);
        assert_eq!(plan.load, "rate2.5-poisson-concurrency8");
    }

    #[test]
    fn a_duration_replaces_the_default_count() {
        let plan = plan("--benchmark-duration 1.5 --request-rate 4 --arrival-pattern constant");
        let phase = &plan.config.probes[0].phases[0];
        assert_eq!(phase.bounds.requests, None);
        assert_eq!(phase.bounds.duration, Some(Duration::from_millis(1500)));
        assert_eq!(phase.arrivals, Arrivals::Constant { rate: 4.0 });
        assert_eq!(plan.config.governor.in_flight, 100_000);
    }

    #[test]
    fn bad_values_are_refused_with_what_was_wanted() {
        for flags in [
            "--endpoint-type nothing",
            "--endpoint-type raw",
            "--extra-inputs x",
            "--concurrency 0",
            "--request-rate nan",
            "--request-rate 0",
            "--isl 0",
            "--benchmark-duration -1",
        ] {
            let args = std::iter::once("bench").chain(flags.split_whitespace());
            assert!(Flags::try_parse_from(args).is_err(), "{flags}");
        }
        let refused = |flags: &[&str]| {
            let args = std::iter::once("bench").chain(flags.iter().copied());
            let flags = Flags::try_parse_from(args).expect("parsed");
            flags.load.plan().map(|_| ())
        };
        assert_eq!(
            refused(&["-u", "ftp://x"]),
            Err("--url: `ftp://x`: scheme `ftp` is not `http`, `https` or `unix`\n  wanted: `http://host:port`".to_owned())
        );
        assert_eq!(
            refused(&["--endpoint-type", "embeddings", "--streaming"]),
            Err("--streaming: `embeddings` has no streams\n  hint: leave the flag out".to_owned())
        );
        assert_eq!(
            refused(&["--endpoint", "/v1#x"]),
            Err("--endpoint: `/v1#x`\n  wanted: a path, as in `/v1/chat/completions`\n  hint: the character # is written `%23` in a path".to_owned())
        );
        assert_eq!(
            refused(&["--extra-inputs", "stream:false"]),
            Err("--extra-inputs: `stream:false` does not go together with what is asked for\n  wanted: no `stream` among them\n  hint: `--no-streaming` asks for one whole answer".to_owned())
        );
        assert_eq!(refused(&["--extra-inputs", "stream:true"]), Ok(()));
        assert_eq!(
            refused(&["--endpoint-type", "gemini"]),
            Err("--model: missing\n  wanted: the name of a model, which is part of the path of `gemini`".to_owned())
        );
    }

    #[test]
    fn flags_of_aiperf_choose_protocol_addresses_and_connections() {
        let plan = plan(
            "-u https://a,b:1 -u unix:///run/x --url-strategy least_in_flight \
             --connection-reuse-strategy sticky-user-sessions --endpoint-type hf_tei_rankings \
             --custom-endpoint /x --extra-inputs top_k:5 --extra-inputs {\"a\":{\"b\":[1]}} \
             --extra-inputs c:d:e",
        );
        let (target, probe) = (&plan.config.targets[0], &plan.config.probes[0]);
        let urls: Vec<String> = target.urls.iter().map(ToString::to_string).collect();
        assert_eq!(urls, ["https://a:443", "http://b:1", "unix:///run/x"]);
        assert_eq!(target.balance, Balance::LeastInFlight);
        assert_eq!(target.api, Api::TeiRerank);
        assert!(!probe.streaming, "it has no streams");
        assert_eq!(probe.connection, ConnectionPolicy::PerSession);
        assert_eq!(target.request.path.as_deref(), Some("/x"));
        let extra = serde_json::json!({"top_k": 5, "a": {"b": [1]}, "c": "d:e"});
        assert_eq!(Some(&target.request.extra), extra.as_object());
    }
}
