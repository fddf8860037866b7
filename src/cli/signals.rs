//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use futures_util::future::BoxFuture;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Exit, say};

const INT: u8 = 2;
const TERM: u8 = 15;

/// One receiver of both signals. It sees every signal that comes after it was made.
struct Both {
    interrupt: Signal,
    terminate: Signal,
}

impl Both {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INT,
            _ = self.terminate.recv() => TERM,
        }
    }
}

/// Too large a file: without a handler the kernel ends the process; with one the write fails.
const FILE_SIZE: i32 = 25;

/// Signals that must not end the process.
struct Harmless {
    hangup: Signal,
    _file_size: Signal,
}

impl Harmless {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            _file_size: signal(SignalKind::from_raw(FILE_SIZE))?,
        })
    }

    async fn tell(mut self) -> Infallible {
        loop {
            self.hangup.recv().await;
            say("SIGHUP: reading the configuration again is not available in this version");
        }
    }
}

/// Does `work`, which is given a future that resolves at the first signal. A second signal ends
/// the process. Says which signal came, as the exit of the command, if one did.
///
/// # Errors
///
/// If the signals cannot be taken over.
#[expect(clippy::exit, reason = "the second signal asks for exactly that")]
pub(super) async fn with_signals<T, F>(
    work: impl FnOnce(BoxFuture<'static, ()>) -> F,
) -> io::Result<(T, Option<Exit>)>
where
    F: Future<Output = T>,
{
    let (mut early, mut late) = (Both::listen()?, Both::listen()?);
    let harmless = Harmless::listen()?;
    let seen = Arc::new(AtomicU8::new(0));
    let first = {
        let seen = Arc::clone(&seen);
        async move {
            seen.store(early.next().await, Relaxed);
            say("stopping; once more to stop at once");
        }
    };
    let second = async {
        late.next().await;
        late.next().await
    };
    tokio::select! {
        biased;
        done = Box::pin(work(Box::pin(first))) => {
            let signal = Some(seen.load(Relaxed)).filter(|signal| *signal != 0);
            Ok((done, signal.map(Exit::Signal)))
        }
        never = harmless.tell() => match never {},
        signal = second => std::process::exit(128 + i32::from(signal)),
    }
}
