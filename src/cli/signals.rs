//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use tokio::signal::unix::{Signal, SignalKind, signal};

const INT: u8 = 2;
const TERM: u8 = 15;

/// The signals that end a command.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    seen: Arc<AtomicU8>,
}

/// Which signal came, if one did.
#[derive(Clone)]
pub(super) struct Seen(Arc<AtomicU8>);

impl Seen {
    pub(super) fn signal(&self) -> Option<u8> {
        match self.0.load(Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }
}

impl Signals {
    /// Takes over both signals. Call inside a runtime.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            seen: Arc::default(),
        })
    }

    pub(super) fn seen(&self) -> Seen {
        Seen(Arc::clone(&self.seen))
    }

    /// Resolves at the first signal. A second one ends the process.
    pub(super) async fn first(mut self) {
        let signal = self.next().await;
        self.seen.store(signal, Relaxed);
        super::say("stopping; once more to stop at once");
        tokio::spawn(async move {
            let signal = self.next().await;
            std::process::exit(128 + i32::from(signal));
        });
    }

    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INT,
            _ = self.terminate.recv() => TERM,
        }
    }
}
