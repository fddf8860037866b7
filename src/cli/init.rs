//! `init`: looks at a server and writes a commented configuration, on which `check` passes.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bench_plan::api;
use super::check::what_became;
use super::plan::sentences;
use super::{Exit, print, say};
use crate::app::{DiscoverError, Survey, SurveyError, UnusableTarget, tcp};
use crate::clock::TimeAnchor;
use crate::config::{self, BaseUrl, Config, Diagnostic, Diagnostics, Format, Scheme, Secret};
use crate::measurement::{Api, Outcome, RequestRecord};
use crate::report::{Draft, KeyFrom, Manner, Pace, canary_file, hint};

/// What of a pasted address belongs to the protocol, and is no part of the server's URL.
const ENDS: [&str; 8] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/responses",
    "/v1/models",
    "/metrics",
    "/health",
];
const WANTED_URL: &str = "`http://host:port`, `https://host` or `unix:///absolute/path`";
/// Longest name of a target.
const LONGEST_NAME: usize = 64;
/// A shorter key may stand in any text by chance.
const LEAST_KEY: usize = 6;

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// URL of the server, `http`, `https` or `unix`; without a scheme it is `http`. A final `/v1`,
    /// also with the path of a protocol, is understood.
    #[arg(short, long)]
    url: String,
    /// Model to ask for; absent: the first that the server lists.
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// Protocol to ask in, as in `bench --endpoint-type`; absent: the first that is answered.
    #[arg(long, value_parser = api, visible_alias = "endpoint-type", value_name = "NAME")]
    api: Option<Api>,
    /// File to write, `.yaml` or `.yml`; `-` is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "canary.yaml")]
    output: PathBuf,
    /// Write over a file that is there.
    #[arg(long)]
    force: bool,
    /// Environment variable that holds the API key; the file gets its name, never the key.
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// File that holds the API key; the file gets its path.
    #[arg(long, value_name = "FILE", conflicts_with = "api_key_env")]
    api_key_file: Option<String>,
    /// PEM file of certificates that are trusted instead of the system's.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<String>,
    /// When a request is given up; the first one may have to load the model.
    #[arg(long, value_name = "TIME", value_parser = timeout, default_value = "60s")]
    timeout: Duration,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let place = Place::of(&args.output, args.force);
    let ready = args.url().and_then(|url| place.check().map(|()| url));
    let url = match ready {
        Ok(url) => url,
        Err(message) => {
            say(&message);
            return Ok(Exit::Usage);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    say(&format!("looking at {url}"));
    let looked = runtime.block_on(args.survey(&url).look(tcp(), TimeAnchor::start()));
    let mut draft = match looked {
        Ok(draft) => draft,
        Err(error) => {
            let (exit, message) = refusal(error, &url)?;
            say(&message);
            return Ok(exit);
        }
    };
    let text = canary_file(&draft);
    match config::from_text_in(&text, (Format::Yaml, "canary.yaml"), config::environment()) {
        Ok(config) if gives_key_back(&config, &text) => {
            say(&format!(
                "{url}: a name that the server gave has the API key in it; nothing is written\n  wanted: a server that keeps it to itself, or another one's name by `--model`"
            ));
            return Ok(Exit::Failed);
        }
        Ok(config) => draft.plan = sentences(&config),
        Err(diagnostics) => {
            say(&by_flag(&diagnostics));
            return Ok(Exit::Usage);
        }
    }
    if let Err(message) = place.write(&canary_file(&draft))? {
        say(&message);
        return Ok(Exit::Usage);
    }
    tell(&draft, &place);
    Ok(Exit::Fine)
}

impl Args {
    /// The address of the server, without what belongs to a protocol.
    fn url(&self) -> Result<BaseUrl, String> {
        let given = if self.url.contains("://") {
            self.url.clone()
        } else {
            format!("http://{}", self.url)
        };
        let (scheme, rest) = given.split_once("://").unwrap_or_default();
        // The path of a socket is as it is.
        let bare = if scheme.eq_ignore_ascii_case("unix") {
            rest
        } else {
            let bare = rest.trim_end_matches('/');
            let ended = ENDS.iter().find_map(|end| bare.strip_suffix(end));
            ended.unwrap_or(bare)
        };
        BaseUrl::parse(&format!("{scheme}://{bare}")).map_err(|error| {
            // User information may be a password.
            let is_secret = self.url.contains(['@', '?']);
            let shown = if is_secret { "…" } else { &self.url };
            format!("--url: `{shown}`: {error}\n  wanted: {WANTED_URL}")
        })
    }

    fn survey(&self, url: &BaseUrl) -> Survey {
        let env = self.api_key_env.clone().map(KeyFrom::Env);
        let file = self.api_key_file.clone().map(KeyFrom::File);
        Survey {
            draft: Draft {
                name: name_of(url),
                url: url.to_string(),
                key: env.or(file),
                ca: self.tls_ca.clone(),
                api: Api::Chat,
                model: self.model.clone(),
                manner: Manner::USUAL,
                pace: Pace::Usual,
                seen: None,
                plan: Vec::new(),
            },
            api: self.api,
            timeout: self.timeout,
            environment: config::environment().collect(),
        }
    }
}

/// Whether the key that was sent stands in `text`: only where it is may be said there.
fn gives_key_back(config: &Config, text: &str) -> bool {
    let key = config.targets[0].api_key.as_ref().map(Secret::reveal);
    key.is_some_and(|key| key.len() >= LEAST_KEY && text.contains(key))
}

/// A name for the target: its host, or `local` for what is on this machine.
fn name_of(url: &BaseUrl) -> String {
    let host = url.host();
    let is_local = url.scheme() == Scheme::Unix
        || host == "localhost"
        || host == "::1"
        || host.starts_with("127.");
    if is_local {
        return "local".to_owned();
    }
    let kept = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name = host.chars().map(|c| if kept(c) { c } else { '-' });
    name.take(LONGEST_NAME).collect()
}

fn timeout(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if (Duration::from_millis(1)..=Duration::from_hours(1)).contains(&time) {
        Ok(time)
    } else {
        Err("wanted a duration from `1ms` to `1h`".to_owned())
    }
}

/// Where the text goes.
struct Place<'a> {
    path: &'a Path,
    force: bool,
}

impl<'a> Place<'a> {
    const fn of(path: &'a Path, force: bool) -> Self {
        Self { path, force }
    }

    fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Why nothing can be written there, as far as can be told before it is tried.
    fn check(&self) -> Result<(), String> {
        if self.is_stdout() {
            return Ok(());
        }
        let ending = self.path.extension().and_then(|ending| ending.to_str());
        if !matches!(ending, Some("yaml" | "yml")) {
            return Err(self.refusal(
                "the ending tells the format, and YAML is written",
                "a file that ends in `.yaml` or `.yml`, or `-`",
            ));
        }
        if self.path.is_dir() {
            return Err(self.refusal("it is a directory", "a file"));
        }
        if !self.force && self.path.symlink_metadata().is_ok() {
            return Err(self.refusal(
                "it is there already",
                "a new file\n  hint: `--force` writes over it",
            ));
        }
        let folder = self.path.parent().unwrap_or(Path::new(""));
        if folder != Path::new("") && !folder.is_dir() {
            return Err(self.refusal(
                "its folder is not there",
                "a file in a folder that is there",
            ));
        }
        Ok(())
    }

    /// Writes `text`; a message if the file cannot be written.
    fn write(&self, text: &str) -> anyhow::Result<Result<(), String>> {
        if self.is_stdout() {
            return print(text.trim_end()).map(Ok);
        }
        // What is there stays there until the new file is whole.
        let new = self
            .path
            .with_extension(format!("new-{}", std::process::id()));
        let path: &Path = if self.force { &new } else { self.path };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let written = options.open(path).and_then(|mut file| {
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
                .and_then(|()| {
                    if self.force {
                        std::fs::rename(path, self.path)
                    } else {
                        Ok(())
                    }
                })
                .inspect_err(|_| {
                    // Half a file is none; if it stays, the message says that something is wrong.
                    drop(std::fs::remove_file(path));
                })
        });
        Ok(written.map_err(|error| self.refusal(&error.to_string(), "a file that can be written")))
    }

    fn refusal(&self, what: &str, wanted: &str) -> String {
        let path = self.path.display();
        format!("--output: `{path}`: {what}\n  wanted: {wanted}")
    }
}

/// What was found and where it is, and what comes next.
fn tell(draft: &Draft, place: &Place<'_>) {
    let engine = draft.seen.as_ref().and_then(|seen| seen.engine);
    let engine = engine.map_or("a server of no known engine", |engine| engine.name());
    let model = draft.model.as_ref().map(|model| format!(" by `{model}`"));
    say(&format!(
        "{engine}: `{}` is answered{}",
        draft.api.name(),
        model.unwrap_or_default()
    ));
    let others = draft.seen.as_ref().map_or(0, |seen| seen.others.len());
    if others > 0 {
        say(&format!(
            "{others} more models are listed; `--model NAME` asks for another"
        ));
    }
    for sentence in draft.plan.iter().take(1) {
        say(sentence);
    }
    if !place.is_stdout() {
        let path = place.path.display();
        say(&format!(
            "written to {path}; next: `tokencanary check -c {path}`, `tokencanary run -c {path}`"
        ));
    }
}

/// How the command ends where nothing can be written, and what is said then.
fn refusal(error: SurveyError, url: &BaseUrl) -> anyhow::Result<(Exit, String)> {
    Ok(match error {
        SurveyError::Unusable(diagnostics) => (Exit::Usage, by_flag(&diagnostics)),
        SurveyError::Model(
            error @ DiscoverError::NoList {
                status: 401 | 403, ..
            },
        ) => (
            Exit::Failed,
            format!("--url: {error}\n  wanted: a list of models\n  hint: {CREDENTIALS}"),
        ),
        SurveyError::Model(
            error @ DiscoverError::NoList {
                status: 300..=399, ..
            },
        ) => (
            Exit::Failed,
            format!(
                "--url: {error}\n  wanted: a list of models\n  hint: no redirect is followed: `--url` takes the address that it leads to"
            ),
        ),
        SurveyError::Model(
            error @ DiscoverError::NoList {
                status: 408 | 429 | 500..,
                ..
            },
        ) => (
            Exit::Failed,
            format!(
                "--url: {error}\n  wanted: a list of models\n  hint: is it loading, or is there no server behind it? `--model NAME` asks without the list"
            ),
        ),
        SurveyError::Model(error @ DiscoverError::Fetch { .. }) => (
            Exit::Failed,
            format!("--url: {error}\n  wanted: an answer from an inference server"),
        ),
        SurveyError::Model(error) => (
            Exit::Usage,
            format!(
                "--model: {error}\n  wanted: the name of a model that the server serves\n  hint: a server that has no list, or no complete one, is asked with `--model NAME`"
            ),
        ),
        SurveyError::Unanswered {
            most,
            others,
            chosen,
        } => {
            let (api, record) = *most;
            let mut message = unanswered(url, (api, &record), &others);
            if let Some((model, count)) = chosen {
                let choice = format!(
                    "\n  hint: `{model}` was asked for, the first of {count} that are listed; `--model NAME` asks for another"
                );
                message.push_str(&choice);
            }
            (Exit::Failed, message)
        }
        SurveyError::Other(error) => match error.downcast_ref::<UnusableTarget>() {
            Some(unusable) => {
                let key = format!("`{}`", unusable.path());
                (
                    Exit::Usage,
                    unusable.to_string().replacen(&key, "--tls-ca", 1),
                )
            }
            None => return Err(error),
        },
    })
}

const CREDENTIALS: &str =
    "the server wants credentials: `--api-key-env NAME` names the variable that holds the key";

fn unanswered(url: &BaseUrl, (api, record): (Api, &RequestRecord), others: &[Api]) -> String {
    let hint = match (record.outcome, record.http_status) {
        (_, Some(401 | 403)) => CREDENTIALS,
        (Outcome::TimeoutFirstToken | Outcome::TimeoutGap | Outcome::TimeoutTotal, _) => {
            "it takes requests and gives no answer in time: is it overloaded, hung, or loading? `--timeout` waits longer"
        }
        _ => hint(record).unwrap_or("see what the server logs"),
    };
    let ca = match record.outcome {
        Outcome::Tls => "; here `--tls-ca FILE`",
        _ => "",
    };
    let others: Vec<String> = others
        .iter()
        .map(|api| format!("`{}`", api.name()))
        .collect();
    let tried = if others.is_empty() {
        String::new()
    } else {
        format!("; tried in vain, too: {}", others.join(", "))
    };
    format!(
        "--url: `{url}`: `{}`: {}\n  wanted: an answer from an inference server\n  hint: {hint}{ca}{tried}",
        api.name(),
        what_became(record)
    )
}

/// Problems of what was given, by the flags that gave it.
fn by_flag(diagnostics: &Diagnostics) -> String {
    let told = diagnostics.as_slice().iter().map(|diagnostic| {
        let flag = match diagnostic.path.as_str() {
            "targets[0].url" => "--url",
            "targets[0].model" => "--model",
            "targets[0].tls" | "targets[0].tls.ca" => "--tls-ca",
            path if path.starts_with("targets[0].api_key") => "--api-key-env or --api-key-file",
            // Of the environment, which says so itself.
            _ => return diagnostic.to_string(),
        };
        flagged(flag, diagnostic)
    });
    told.collect::<Vec<_>>().join("\n")
}

fn flagged(flag: &str, diagnostic: &Diagnostic) -> String {
    let mut out = format!("{flag}: {}", diagnostic.problem.text());
    for (label, text) in [
        ("given", &diagnostic.given),
        ("wanted", &diagnostic.wanted),
        ("hint", &diagnostic.hint),
    ] {
        if let Some(text) = text {
            let line = format!("\n  {label}: {text}");
            out.push_str(&line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: Args,
    }

    fn args(flags: &[&str]) -> Args {
        let flags = ["init"].iter().chain(flags);
        Flags::try_parse_from(flags).expect("good flags").args
    }

    #[test]
    fn what_users_paste_is_the_address_of_a_server() {
        for (given, url) in [
            ("http://h:8000", "http://h:8000"),
            ("h:8000", "http://h:8000"),
            ("http://h:8000/v1", "http://h:8000"),
            ("http://h:8000/v1/", "http://h:8000"),
            ("http://h:8000/v1/chat/completions", "http://h:8000"),
            ("http://h:8000/metrics", "http://h:8000"),
            ("https://gw/team/v1/models", "https://gw:443/team"),
            ("http://[::1]:9/", "http://[::1]:9"),
            ("unix:///run/models", "unix:///run/models"),
            ("unix:///run/metrics", "unix:///run/metrics"),
            ("HTTP://h:8000/v1", "http://h:8000"),
            ("Unix:///run/models", "unix:///run/models"),
        ] {
            let parsed = args(&["--url", given]).url().expect("an address");
            assert_eq!(parsed.to_string(), url, "{given}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_showing_a_password() {
        let refused = |given: &str| args(&["-u", given]).url().expect_err("refused");
        assert_eq!(
            refused("ftp://h"),
            "--url: `ftp://h`: scheme `ftp` is not `http`, `https` or `unix`\n  wanted: `http://host:port`, `https://host` or `unix:///absolute/path`"
        );
        for (given, wrong) in [
            ("unix://", "the path of the socket is missing"),
            ("UNIX:///", "the path of the socket is missing"),
            (
                "unix://run/x",
                "`run/x` of the socket does not begin with `/`",
            ),
            ("http://", "the host is missing"),
            ("https:///", "the host is missing"),
            ("http:///v1", "the host is missing"),
            ("", "the host is missing"),
        ] {
            let told = refused(given);
            let begin = format!("--url: `{given}`: ");
            assert!(told.starts_with(&begin) && told.contains(wrong), "{told}");
        }
        assert!(!refused("http://u:geheim@h").contains("geheim"));
        assert!(!refused("http://h?key=geheim").contains("geheim"));
        assert!(refused("http://h:99999").contains("port `99999`"));
    }

    #[test]
    fn a_target_is_named_after_its_host() {
        for (url, name) in [
            ("http://vllm.svc:8000", "vllm.svc"),
            ("http://127.0.0.1:1", "local"),
            ("http://localhost", "local"),
            ("unix:///run/x", "local"),
            ("http://[::1]", "local"),
            ("http://[fe80::1]", "fe80--1"),
            ("http://10.0.0.7", "10.0.0.7"),
            ("http://a_b%c", "a_b-c"),
        ] {
            assert_eq!(name_of(&BaseUrl::parse(url).expect("a URL")), name);
        }
        let long = format!("http://{}", "x".repeat(100));
        assert_eq!(name_of(&BaseUrl::parse(&long).expect("a URL")).len(), 64);
    }

    #[test]
    fn the_file_is_new_yaml_or_forced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.yaml");
        assert_eq!(Place::of(&path, false).check(), Ok(()));
        let written = Place::of(&path, false).write("a: 1\n");
        assert_eq!(written.expect("no failure of ours"), Ok(()));
        for (path, force, part) in [
            (path.clone(), false, "it is there already"),
            (folder.path().join("a.toml"), false, "YAML is written"),
            (folder.path().join("x/a.yaml"), false, "folder is not there"),
        ] {
            let refused = Place::of(&path, force).check().expect_err("refused");
            assert!(refused.contains(part), "{refused}");
        }
        // Made by somebody else meanwhile.
        let late = Place::of(&path, false).write("b: 1\n");
        assert!(late.expect("no failure of ours").is_err());
        assert_eq!(Place::of(&path, true).check(), Ok(()));
        let forced = Place::of(&path, true).write("b: 2\n");
        assert_eq!(forced.expect("no failure of ours"), Ok(()));
        assert_eq!(
            std::fs::read_to_string(&path).expect("it is there"),
            "b: 2\n"
        );
        assert_eq!(Place::of(Path::new("-"), false).check(), Ok(()));
    }

    #[test]
    fn a_key_that_is_given_back_is_seen() {
        let text = |model: &str| {
            format!(
                "targets: [{{ name: a, url: 'http://h', model: '{model}', api_key: {{ env: K }} }}]
probes:
- name: p
  targets: [a]
  arrivals: {{ process: constant, rate: 1/s }}
  workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 4 }} }}
"
            )
        };
        let environment = [("K".to_owned(), "sk-SECRET123".to_owned())];
        for (model, is_given_back) in [("m", false), ("leak-sk-SECRET123-x", true)] {
            let text = text(model);
            let place = (Format::Yaml, "canary.yaml");
            let config = config::from_text_in(&text, place, environment.clone().into_iter());
            let config = config.expect("it is whole");
            assert_eq!(gives_key_back(&config, &text), is_given_back);
        }
    }

    #[test]
    fn limits_of_time_have_a_unit_and_a_bound() {
        let parse = |text: &str| Flags::try_parse_from(["init", "-u", "h", "--timeout", text]);
        assert!(parse("90s").is_ok());
        for bad in ["0s", "2h", "5", "x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
