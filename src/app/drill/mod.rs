//! A rehearsal of the alert: a simulated server, a canary in front of it, a real Prometheus with
//! our rules and a real Alertmanager, which notifies us. The server is made slower, and the
//! notification has to come; then come changes after which none may.
//!
//! All times of a production set-up (intervals, windows, how long something has to last) are
//! divided by one factor, so that minutes take seconds. Only how long normal is looked at is
//! shorter than in production.

mod asking;
mod notices;
mod report;
mod stack;
mod watching;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::asking::Asking;
use self::notices::notices;
pub use self::report::{DrillReport, NearMiss, Told, Unexpected};
use self::stack::{Stack, StackPlan};
use self::watching::Watch;
use super::simulate::{SimulatePlan, Simulated, Speed};
use super::{App, Extent, Outputs, RunReport, Runtimes, Setup, tcp};
use crate::clock::TimeAnchor;
use crate::config::Config;
use crate::export::catalog::TTFT_OR_FAILURE;
use crate::export::rules::{AlertKind, Baseline, HEAD, Settings, recorded, rules, to_yaml};
use crate::web::{HOOK_PATH, hook, serve};

/// What is rehearsed, and with what.
#[derive(Debug, Clone)]
pub struct DrillPlan {
    /// The program `prometheus`.
    pub prometheus: PathBuf,
    /// The program `alertmanager`.
    pub alertmanager: PathBuf,
    /// Where configurations, logs and data go.
    pub dir: PathBuf,
    /// By how much all times are divided.
    pub compress: NonZeroU32,
    /// How many times as long prefills last in the regression.
    pub factor: f64,
    /// Whether the near misses come after it.
    pub near_misses: bool,
    /// Seed of everything drawn.
    pub seed: u64,
}

/// How long normal is looked at before something can be slower than it, in production times; the
/// rules themselves want an hour, half an hour ago.
const LEARNED: Baseline = Baseline {
    span: Duration::from_hours(24),
    offset: Duration::from_mins(5),
    least: Duration::from_mins(15),
};
/// A regression that is not told by then is not told, in production times.
const PATIENCE: Duration = Duration::from_mins(20);
/// Recovery takes a window of the rules and an interval of the Alertmanager.
const RECOVERY: Duration = Duration::from_mins(30);
/// How long nothing may be told after a near miss: longer than a window and the time that a
/// regression has to last.
const QUIET: Duration = Duration::from_mins(10);
/// How long the regression lasts.
const SLOW: Duration = Duration::from_mins(6);

/// A change after which nobody is to be told.
struct Harmless {
    what: &'static str,
    fault: fn(u32) -> serde_json::Value,
    lasts: Duration,
}

/// The near misses.
const HARMLESS: [Harmless; 3] = [
    Harmless {
        what: "1.15 times as slow for 10 minutes",
        fault: |ms| json!({"fault": "slow_prefill", "factor": 1.15, "for": format!("{ms}ms")}),
        lasts: Duration::from_mins(10),
    },
    Harmless {
        what: "5 times as slow for 10 seconds",
        fault: |ms| json!({"fault": "slow_prefill", "factor": 5.0, "for": format!("{ms}ms")}),
        lasts: Duration::from_secs(10),
    },
    Harmless {
        what: "a restart of 10 seconds",
        fault: |ms| json!({"fault": "restart", "for": format!("{ms}ms")}),
        lasts: Duration::from_secs(10),
    },
];

/// Everything that runs.
struct Stage {
    anchor: TimeAnchor,
    asking: Asking,
    server: Simulated,
    stack: Stack,
    watch: Watch,
    compress: u32,
    canary: JoinHandle<anyhow::Result<RunReport>>,
    hook: JoinHandle<std::io::Result<()>>,
    stop: CancellationToken,
}

/// Rehearses, and tells `say` how it goes on. `config` makes the canary's configuration for a
/// server at an address.
///
/// # Errors
///
/// If one of the programs cannot be run or ends too soon, if a file cannot be written, or if
/// normal is not learned in time.
pub async fn drill(
    plan: &DrillPlan,
    runtimes: &Runtimes,
    config: impl FnOnce(SocketAddr) -> anyhow::Result<Config>,
    say: impl Fn(&str),
) -> anyhow::Result<DrillReport> {
    let mut stage = Stage::set(plan, runtimes, config).await?;
    say(&format!(
        "Prometheus {}, Alertmanager {}, simulated server http://{}",
        stage.stack.prometheus.url, stage.stack.alertmanager.url, stage.server.address
    ));
    let report = stage.play(plan, &say).await;
    stage.strike().await?;
    report
}

impl Stage {
    async fn set(
        plan: &DrillPlan,
        runtimes: &Runtimes,
        config: impl FnOnce(SocketAddr) -> anyhow::Result<Config>,
    ) -> anyhow::Result<Self> {
        let anchor = TimeAnchor::start();
        let asking = Asking::new(anchor)?;
        let server = Simulated::start(SimulatePlan {
            seed: plan.seed,
            ..SimulatePlan::new((Ipv4Addr::LOCALHOST, 0).into(), Speed::Demo)
        })?;
        let config = config(server.address)?;
        let rules = rules_of(plan, &config)?;
        let stop = CancellationToken::new();
        let (take, notices) = notices(anchor);
        let at_hook = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let hook_url = format!("http://{}{HOOK_PATH}", at_hook.local_addr()?);
        let hook = tokio::spawn(serve(at_hook, hook(take), stop.clone().cancelled_owned()));
        let page = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let canary_at = page.local_addr()?;
        let setup = Setup {
            command: "drill",
            config,
            anchor,
            connect: tcp(),
            extent: Extent::default(),
            outputs: Outputs {
                listener: Some(page),
                ..Outputs::default()
            },
        };
        let app = App::build(setup, runtimes.handles())?;
        let canary = tokio::spawn(app.run(stop.clone().cancelled_owned()));
        let stack = Stack::start(
            &StackPlan {
                prometheus: &plan.prometheus,
                alertmanager: &plan.alertmanager,
                dir: &plan.dir,
                rules: &rules,
                canary: canary_at,
                hook: hook_url,
                compress: plan.compress.get(),
            },
            &asking,
        )
        .await?;
        Ok(Self {
            anchor,
            watch: Watch::new(notices),
            asking,
            server,
            stack,
            compress: plan.compress.get(),
            canary,
            hook,
            stop,
        })
    }

    async fn play(&mut self, plan: &DrillPlan, say: &impl Fn(&str)) -> anyhow::Result<DrillReport> {
        let alert = AlertKind::TtftRegression.name();
        let learning = (LEARNED.offset + LEARNED.least) / self.compress;
        say(&format!(
            "learning what is normal: about {} s",
            learning.as_secs()
        ));
        let began = self.anchor.now();
        self.learn(learning).await?;
        let learned = self.anchor.now().since(began);
        say(&format!(
            "prefills are {} times as long from now on",
            plan.factor
        ));
        let told = self.regression(plan.factor, alert).await?;
        if let Some(page) = told.page {
            say(&format!("notified after {:.1} s", page.as_secs_f64()));
        } else {
            say("nobody was notified");
        }
        let mut near_misses = Vec::new();
        if plan.near_misses && told.page.is_some() {
            self.watch.forget();
            for harmless in &HARMLESS {
                say(&format!("{}: nobody may be notified", harmless.what));
                near_misses.push(self.near_miss(harmless).await?);
            }
        }
        Ok(DrillReport {
            compress: self.compress,
            factor: plan.factor,
            alert: alert.to_owned(),
            learned,
            told,
            near_misses,
        })
    }

    /// Waits until there is a baseline.
    async fn learn(&mut self, about: Duration) -> anyhow::Result<()> {
        let deadline = self.anchor.now() + about * 2 + Duration::from_mins(1);
        let query = &recorded(&TTFT_OR_FAILURE, "p95_baseline");
        loop {
            self.stack.check()?;
            self.check_canary()?;
            let found = self.asking.values(&self.stack.prometheus.url, query).await;
            if found.is_ok_and(|values| !values.is_empty()) {
                return Ok(());
            }
            if self.anchor.now() > deadline {
                bail!(
                    "after {} s there is no `{query}`",
                    (about * 2).as_secs() + 60
                );
            }
            if let Some(early) = self.watch.pause().await {
                bail!(
                    "`{}` came while normal was learned: {}",
                    early.alert,
                    early.summary
                );
            }
        }
    }

    fn check_canary(&self) -> anyhow::Result<()> {
        if self.canary.is_finished() {
            bail!("the canary has ended");
        }
        Ok(())
    }

    /// Ends everything.
    async fn strike(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.canary.await.context("the canary panicked")??;
        self.hook.await.context("the webhook panicked")??;
        Ok(())
    }
}

/// The rules of the rehearsal.
fn rules_of(plan: &DrillPlan, config: &Config) -> anyhow::Result<String> {
    let settings = Settings {
        compress: plan.compress,
        baseline: LEARNED,
        ..Settings::default()
    };
    Ok(to_yaml(HEAD, &rules(&settings, Some(config)))?)
}
