//! Runs the simulated inference server on its own, over TCP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::clock::TimeAnchor;
use crate::simulator::{Hardware, Profile, Simulator, SimulatorConfig};
use crate::transport;

/// Room for this many connections is made before the first, so that accepting one does not stall.
const CONNECTIONS: u32 = 4_096;

/// What the simulated server is like and where it listens.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatePlan {
    /// Address; port 0 picks a free one.
    pub listen: SocketAddr,
    /// How fast it is.
    pub speed: Speed,
    /// GPUs on the page of its exporter, at least 1.
    pub gpus: u32,
    /// Sequences that run at once; `None`: as the speed has it.
    pub max_running: Option<usize>,
    /// Blocks of the KV cache; `None`: as the speed has it.
    pub kv_blocks: Option<u32>,
    /// Tokens of a block; `None`: as the speed has it.
    pub block_tokens: Option<u32>,
    /// Whether it has a prefix cache.
    pub prefix_caching: bool,
    /// Name of the model; `None`: the simulator's own.
    pub model: Option<String>,
    /// Tokens that its chat template puts before each message.
    pub template_tokens: u32,
    /// Seed of everything drawn.
    pub seed: u64,
    /// File that gets the clock before each write.
    pub log_times: Option<PathBuf>,
}

/// How fast the simulated server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// As a middling model on one GPU.
    Demo,
    /// As a model of 0.6 billion parameters on one GPU.
    Small,
    /// As a model of 70 billion parameters on four GPUs.
    Large,
    /// No delay anywhere.
    Instant,
    /// Always the same.
    Fixed {
        /// To the first token.
        ttft: Duration,
        /// Between tokens.
        itl: Duration,
    },
}

impl SimulatePlan {
    /// A server of this speed with defaults for the rest, seed 0.
    #[must_use]
    pub const fn new(listen: SocketAddr, speed: Speed) -> Self {
        Self {
            listen,
            speed,
            gpus: 1,
            max_running: None,
            kv_blocks: None,
            block_tokens: None,
            prefix_caching: true,
            model: None,
            template_tokens: 0,
            seed: 0,
            log_times: None,
        }
    }

    /// The simulator's configuration.
    #[must_use]
    pub fn config(&self) -> SimulatorConfig {
        let mut profile = match self.speed {
            Speed::Demo => Profile::demo(),
            Speed::Small => Profile::small(),
            Speed::Large => Profile::large(),
            Speed::Instant => Profile::instant(),
            Speed::Fixed { ttft, itl } => Profile::fixed(ttft, itl),
        };
        if let Some(most) = self.max_running {
            profile.max_running = most;
        }
        if let Some(blocks) = self.kv_blocks {
            profile.kv_blocks = blocks;
        }
        if let Some(tokens) = self.block_tokens {
            profile.block_tokens = tokens;
        }
        profile.prefix_caching &= self.prefix_caching;
        let mut config = SimulatorConfig::new(profile);
        config.hardware = Hardware { gpus: self.gpus };
        config.seed = self.seed;
        config.template_tokens = self.template_tokens;
        config.log_times.clone_from(&self.log_times);
        if let Some(model) = &self.model {
            config.model.clone_from(model);
        }
        config
    }
}

/// What a simulated server was told to use and cannot; the cause is in the error's chain.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub enum Unusable {
    /// The address.
    #[error("cannot listen on `{0}`")]
    Address(SocketAddr),
    /// The file of the times.
    #[error("the file of the times cannot be made")]
    Log,
}

/// Serves until `stop` is ready. `ready` is told the address once connections are accepted.
///
/// # Errors
///
/// [`Unusable`] if the address cannot be bound or the log not made; others if it cannot be
/// written any more.
pub async fn simulate(
    plan: SimulatePlan,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    if let Some(room) = transport::make_room(CONNECTIONS) {
        tracing::debug!(room, "the limit of open files is low");
    }
    let log = plan.log_times.clone().unwrap_or_default();
    let cannot_log = || format!("cannot write `{}`", log.display());
    let simulator = Simulator::new(plan.config(), TimeAnchor::start())
        .with_context(cannot_log)
        .context(Unusable::Log)?;
    let listener = TcpListener::bind(plan.listen)
        .await
        .context(Unusable::Address(plan.listen))?;
    ready(listener.local_addr()?);
    tokio::select! {
        ended = simulator.run() => ended.with_context(cannot_log)?,
        () = simulator.listen(listener, stop) => {}
    }
    simulator.finish().await.with_context(cannot_log)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_answers_over_tcp_until_it_is_stopped() {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let plan = SimulatePlan {
            max_running: Some(4),
            model: Some("m".to_owned()),
            ..SimulatePlan::new(listen, Speed::Instant)
        };
        let (tell, told) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let ready = move |address| tell.send(address).expect("the test waits for it");
        let served = tokio::spawn(simulate(plan, ready, async move {
            stopped.await.expect("the test stops it");
        }));
        let address = told.await.expect("it became ready");
        let mut io = TcpStream::connect(address).await.expect("it listens");
        io.write_all(b"GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n")
            .await
            .expect("it reads");
        let mut answer = String::new();
        io.read_to_string(&mut answer).await.expect("it answers");
        assert!(answer.contains(r#""id":"m""#), "{answer}");
        stop.send(()).expect("it still runs");
        served.await.expect("no panic").expect("no error");
    }

    #[test]
    fn what_is_asked_for_replaces_what_the_speed_has() {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let plain = SimulatePlan::new(listen, Speed::Large).config();
        assert_eq!(plain.profile, Profile::large());
        assert_eq!(plain.template_tokens, 0);
        let asked = SimulatePlan {
            gpus: 4,
            max_running: Some(3),
            kv_blocks: Some(50),
            block_tokens: Some(8),
            prefix_caching: false,
            template_tokens: 5,
            ..SimulatePlan::new(listen, Speed::Large)
        };
        let expected = Profile {
            max_running: 3,
            kv_blocks: 50,
            block_tokens: 8,
            prefix_caching: false,
            ..Profile::large()
        };
        assert_eq!(asked.config().profile, expected);
        assert_eq!(asked.config().hardware.gpus, 4);
        assert_eq!(asked.config().template_tokens, 5);
    }

    #[tokio::test]
    async fn a_taken_port_is_named() {
        let taken = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let listen = taken.local_addr().expect("it is bound");
        let plan = SimulatePlan::new(listen, Speed::Demo);
        let address = plan.listen.to_string();
        let error = simulate(plan, |_| {}, std::future::pending()).await;
        let error = format!("{:#}", error.expect_err("the port is taken"));
        assert!(
            error.contains(&format!("cannot listen on `{address}`")),
            "{error}"
        );
    }
}

/// A simulated server on a thread of its own: somebody else, as far as a canary can tell.
/// Dropping it ends it.
#[derive(Debug)]
pub struct Simulated {
    /// Where it listens.
    pub address: SocketAddr,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Simulated {
    /// Starts it and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// If it cannot be started; why is in the log.
    pub fn start(plan: SimulatePlan) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let (tell, told) = sync_channel(1);
        let ready = move |address| {
            // The receiver waits below for just this.
            tell.send(address).unwrap_or_default();
        };
        let thread = std::thread::Builder::new()
            .name("simulator".to_owned())
            .spawn(move || {
                if let Err(error) = runtime.block_on(simulate(plan, ready, stopped)) {
                    tracing::error!("the simulated server ended: {error:#}");
                }
            })?;
        let address = told.recv().context("the simulated server did not start")?;
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the simulated server panicked");
        }
    }
}
