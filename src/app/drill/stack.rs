//! A Prometheus and an Alertmanager of their own, as child processes on free ports of loopback,
//! with all their files in one folder. They end when they are dropped.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::asking::Asking;

/// How long each may take to be ready; they take a quarter of a second on an idle machine.
const READY: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(100);
/// Last bytes of what a program said that are shown when it ended too soon.
const SHOWN: usize = 2000;

/// What both are started with.
#[derive(Debug, Clone)]
pub(super) struct StackPlan<'p> {
    pub(super) prometheus: &'p Path,
    pub(super) alertmanager: &'p Path,
    /// Where all files go.
    pub(super) dir: &'p Path,
    /// The rule file.
    pub(super) rules: &'p str,
    /// Where the canary's metrics are.
    pub(super) canary: SocketAddr,
    /// Where notifications go.
    pub(super) hook: String,
    /// By how much times are divided.
    pub(super) compress: u32,
}

/// Both, running.
#[derive(Debug)]
pub(super) struct Stack {
    pub(super) prometheus: Server,
    pub(super) alertmanager: Server,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
    /// Its address as `http://…`, without a slash at the end.
    pub(super) url: String,
}

impl Stack {
    /// Starts both and waits until they answer, know each other, and the canary is scraped.
    pub(super) async fn start(plan: &StackPlan<'_>, asking: &Asking) -> anyhow::Result<Self> {
        let dir = plan.dir;
        let of = |name: &str| dir.join(name);
        write(&of("alertmanager.yml"), &alertmanager_config(plan))?;
        let port = free_port()?;
        let arguments = [
            argument("--config.file=", &of("alertmanager.yml")),
            argument("--storage.path=", &of("alertmanager")),
            format!("--web.listen-address={port}"),
            // A cluster of one listens nowhere.
            "--cluster.listen-address=".to_owned(),
        ];
        let mut alertmanager =
            Server::start(("alertmanager", plan.alertmanager), (&arguments, port), dir)?;
        alertmanager.ready(asking).await?;
        write(&of("rules.yml"), plan.rules)?;
        write(&of("prometheus.yml"), &prometheus_config(plan, port))?;
        let port = free_port()?;
        let arguments = [
            argument("--config.file=", &of("prometheus.yml")),
            argument("--storage.tsdb.path=", &of("prometheus")),
            format!("--web.listen-address={port}"),
            // An alert that was sent before its Alertmanager was known is sent again soon.
            "--rules.alert.resend-delay=2s".to_owned(),
        ];
        let mut prometheus =
            Server::start(("prometheus", plan.prometheus), (&arguments, port), dir)?;
        prometheus.ready(asking).await?;
        let mut stack = Self {
            prometheus,
            alertmanager,
        };
        stack.acquainted(asking).await?;
        Ok(stack)
    }

    /// Waits until Prometheus has found its Alertmanager and has read the canary's metrics.
    async fn acquainted(&mut self, asking: &Asking) -> anyhow::Result<()> {
        let deadline = Instant::now() + READY;
        loop {
            self.check()?;
            let url = &self.prometheus.url;
            let known = asking.alertmanagers(url).await.unwrap_or(0);
            let up = asking.values(url, "up == 1").await.unwrap_or_default();
            if known > 0 && !up.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "after {} s Prometheus knew {known} Alertmanagers, wanted 1, and read {} targets, wanted 1",
                    READY.as_secs(),
                    up.len()
                );
            }
            sleep(POLL).await;
        }
    }

    /// Fails if one of them has ended.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        self.prometheus.check()?;
        self.alertmanager.check()
    }
}

impl Server {
    fn start(
        (name, program): (&'static str, &Path),
        (arguments, listen): (&[String], SocketAddr),
        dir: &Path,
    ) -> anyhow::Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let told = || format!("cannot write `{}`", log.display());
        let out = std::fs::File::create(&log).with_context(told)?;
        let err = out.try_clone().with_context(told)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .kill_on_drop(true)
            // A Ctrl-C is for us: they have to last until our own end.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run `{}`", program.display()))?;
        Ok(Self {
            name,
            child,
            log,
            url: format!("http://{listen}"),
        })
    }

    async fn ready(&mut self, asking: &Asking) -> anyhow::Result<()> {
        let deadline = Instant::now() + READY;
        while !asking.is_ready(&self.url).await {
            self.check()?;
            if Instant::now() > deadline {
                bail!("{} was not ready after {} s", self.name, READY.as_secs());
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.ended(status)),
        }
    }

    fn ended(&self, status: ExitStatus) -> anyhow::Error {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let last = log.len().saturating_sub(SHOWN);
        anyhow::anyhow!(
            "{} ended with {status}; it said:\n{}",
            self.name,
            String::from_utf8_lossy(&log[last..])
        )
    }
}

fn argument(flag: &str, path: &Path) -> String {
    format!("{flag}{}", path.display())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

/// A port that nobody listens on at the moment. The programs do not say which one they took when
/// asked to pick one themselves.
fn free_port() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?)
}

/// A span of a production set-up, compressed.
fn span(seconds: u32, compress: u32) -> String {
    let span = Duration::from_secs(seconds.into()) / compress;
    format!("{}ms", span.as_millis().max(1))
}

fn alertmanager_config(plan: &StackPlan<'_>) -> String {
    let span = |seconds| span(seconds, plan.compress);
    format!(
        "route:
  receiver: drill
  group_by: ['...']
  group_wait: {}
  group_interval: {}
  repeat_interval: 24h
receivers:
  - name: drill
    webhook_configs:
      - url: {}
        send_resolved: true
",
        span(30),
        span(300),
        plan.hook
    )
}

fn prometheus_config(plan: &StackPlan<'_>, alertmanager: SocketAddr) -> String {
    let span = |seconds| span(seconds, plan.compress);
    format!(
        "global:
  scrape_interval: {scrape}
  scrape_timeout: {scrape}
  evaluation_interval: {evaluation}
rule_files: [rules.yml]
alerting:
  alertmanagers:
    - static_configs: [{{ targets: ['{alertmanager}'] }}]
scrape_configs:
  - job_name: tokencanary
    honor_labels: true
    static_configs: [{{ targets: ['{canary}'] }}]
",
        scrape = span(15),
        evaluation = span(30),
        canary = plan.canary,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_divided_and_never_nothing() {
        assert_eq!(span(15, 12), "1250ms");
        assert_eq!(span(30, 1), "30000ms");
        assert_eq!(span(15, 1_000_000), "1ms");
    }
}
