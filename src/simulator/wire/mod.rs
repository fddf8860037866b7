//! The simulator on the wire: connections in, tokens out, each at the engine's instant.
//!
//! One task per connection reads a request, hands it to the engine and writes each emission as
//! it comes. One driver sleeps until the engine's next instant and moves it on. They share the
//! state behind one lock, held for moments. Instants are absolute, so nothing drifts.
//!
//! Invariants: one write per token, flushed; an answer that is dropped cancels its job; a
//! restart drops every connection. Not here: when a token comes (that is `engine`).

mod answer;
mod ask;
mod frames;
mod frontend;
mod gpu_page;
mod http;
mod journal;
mod metrics_page;
mod node_page;
mod page_text;
mod pages;
mod prompt;
mod state;
#[cfg(test)]
mod tests;
mod write_log;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use self::ask::{MAX_MODEL_LEN, Served};
use self::journal::Journal;
pub use self::journal::RequestTimes;
use self::state::State;
use self::write_log::WriteLog;
use super::engine::{Engine, EngineState};
use super::faults::{Fault, TooManyFaults};
use super::hardware::Hardware;
use super::profile::Profile;
use crate::clock::{MonoTime, TimeAnchor, WallAnchor};

/// Name of the model when none is given.
pub const DEFAULT_MODEL: &str = "sim/canary-0.6b";
/// Version that `/version` shows when none is given.
pub const DEFAULT_VERSION: &str = "0.11.0";
/// Connections served at once over TCP; more wait to be accepted.
const MAX_CONNECTIONS: usize = 8192;
/// Pause after a failed accept (no file descriptors left, usually).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// What a simulator is like.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatorConfig {
    /// How fast its engine is.
    pub profile: Profile,
    /// What it runs on.
    pub hardware: Hardware,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Name of the one model served.
    pub model: String,
    /// What `/version` shows.
    pub version: String,
    /// Tokens that the chat template puts before each message.
    pub template_tokens: u32,
    /// File that gets the clock before each write.
    pub log_times: Option<PathBuf>,
    /// For how many requests the engine's own times are kept; 0: none.
    pub keep_times: usize,
}

impl SimulatorConfig {
    /// A simulator of this speed, with defaults for the rest and seed 0.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            hardware: Hardware::default(),
            seed: 0,
            model: DEFAULT_MODEL.to_owned(),
            version: DEFAULT_VERSION.to_owned(),
            template_tokens: 0,
            log_times: None,
            keep_times: 0,
        }
    }
}

/// A simulated inference server. Clones are the same server.
#[derive(Debug, Clone)]
pub struct Simulator {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    anchor: TimeAnchor,
    /// Read once: when a process began does not change while it runs.
    wall: WallAnchor,
    hardware: Hardware,
    served: Served,
    state: Mutex<State>,
    /// Wakes the driver when something is due sooner than it sleeps.
    wake: Notify,
    /// How many restarts there were; connections end when it changes.
    restarts: watch::Sender<u64>,
    log: Option<WriteLog>,
}

/// Most prompt and output tokens of one request: as many as fit in the KV cache when it is alone,
/// which is what vLLM finds out by itself if it is told to.
fn max_model_len(profile: &Profile) -> u32 {
    u32::try_from(profile.kv_tokens()).map_or(MAX_MODEL_LEN, |most| most.min(MAX_MODEL_LEN))
}

impl Simulator {
    /// A simulator on the clock of `anchor`. It does nothing until [`run`](Self::run) runs.
    ///
    /// # Errors
    ///
    /// If the log file cannot be created.
    pub fn new(config: SimulatorConfig, anchor: TimeAnchor) -> io::Result<Self> {
        let log = match &config.log_times {
            Some(path) => Some(WriteLog::create(path, anchor)?),
            None => None,
        };
        let engine = Engine::new(config.profile, config.seed);
        let journal = Journal::new(config.keep_times);
        let (restarts, _) = watch::channel(0);
        Ok(Self {
            inner: Arc::new(Inner {
                anchor,
                wall: anchor.wall(),
                hardware: config.hardware,
                served: Served {
                    model: config.model,
                    also: None,
                    template_tokens: config.template_tokens,
                    max_model_len: max_model_len(&config.profile),
                },
                state: Mutex::new(State::new(engine, journal, config.version, anchor.now())),
                wake: Notify::new(),
                restarts,
                log,
            }),
        })
    }

    /// Moves the engine on as time passes, for ever.
    ///
    /// # Errors
    ///
    /// If the log cannot be written any more.
    pub async fn run(&self) -> io::Result<()> {
        match &self.inner.log {
            None => self.drive().await,
            Some(log) => tokio::select! {
                () = self.drive() => {}
                ended = log.write_out() => return ended,
            },
        }
        Ok(())
    }

    /// Writes what the log still holds. Call it after [`run`](Self::run) was dropped.
    ///
    /// # Errors
    ///
    /// If the log cannot be written.
    pub async fn finish(&self) -> io::Result<()> {
        match &self.inner.log {
            Some(log) => log.finish().await,
            None => Ok(()),
        }
    }

    /// Serves one connection until either side ends it.
    pub async fn serve_connection<Io>(&self, io: Io)
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut restarts = self.inner.restarts.subscribe();
        tokio::select! {
            biased;
            // Fails only if the simulator is gone, which `self` excludes.
            _restarted = restarts.changed() => {}
            () = answer::serve(self, io) => {}
        }
    }

    /// Serves all connections to `listener` until `stop` is ready; then drops them.
    pub async fn listen(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                Some(_ended) = connections.join_next() => {}
                accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let Ok((io, _peer)) = accepted else {
                        tokio::time::sleep(ACCEPT_RETRY).await;
                        continue;
                    };
                    // Without it small writes could wait for acknowledgements; then it just would.
                    if let Err(error) = io.set_nodelay(true) {
                        tracing::debug!(%error, "cannot set nodelay on a simulated connection");
                    }
                    let simulator = self.clone();
                    connections.spawn(async move { simulator.serve_connection(io).await });
                }
            }
        }
    }

    /// Schedules a fault; one whose begin has passed begins now.
    ///
    /// # Errors
    ///
    /// If too many are scheduled already.
    pub fn inject(&self, fault: Fault) -> Result<(), TooManyFaults> {
        self.change(|state, now| state.inject(fault, now))
    }

    /// What the engine's gauges show now.
    #[must_use]
    pub fn state(&self) -> EngineState {
        self.change(|state, now| {
            state.pump(now);
            state.engine.state()
        })
    }

    /// The engine's own times of the first `keep_times` requests, in order of arrival.
    #[must_use]
    pub fn times(&self) -> Vec<RequestTimes> {
        self.lock().journal.requests()
    }

    /// Requests whose times found no room.
    #[must_use]
    pub fn times_lost(&self) -> u64 {
        self.lock().journal.lost()
    }

    async fn drive(&self) {
        loop {
            let next = {
                let mut state = self.lock();
                let next = state.pump(self.now());
                state.armed = next;
                self.announce_restarts(&state);
                next
            };
            match next {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(self.inner.anchor.instant(at)) => {}
                    () = self.inner.wake.notified() => {}
                },
                None => self.inner.wake.notified().await,
            }
        }
    }

    /// Changes the state, and wakes the driver if something is now due sooner than it knows.
    fn change<T>(&self, change: impl FnOnce(&mut State, MonoTime) -> T) -> T {
        let mut state = self.lock();
        let now = self.now();
        let result = change(&mut state, now);
        let next = state.pump(now);
        if next.is_some_and(|at| state.armed.is_none_or(|armed| at < armed)) {
            self.inner.wake.notify_one();
        }
        self.announce_restarts(&state);
        result
    }

    fn announce_restarts(&self, state: &State) {
        self.inner.restarts.send_if_modified(|known| {
            let changed = *known != state.restarts;
            *known = state.restarts;
            changed
        });
    }

    /// What is served now: as configured, unless another model is for a while.
    fn served(&self) -> Cow<'_, Served> {
        let own = &self.inner.served;
        let changed = self.change(|state, now| state.faults.changed(now).0.map(str::to_owned));
        changed.map_or(Cow::Borrowed(own), |model| {
            Cow::Owned(Served {
                model,
                also: Some(own.model.clone()),
                ..own.clone()
            })
        })
    }

    fn now(&self) -> MonoTime {
        self.inner.anchor.now()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
