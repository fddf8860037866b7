//! The two runtimes: one thread that only measures, and the rest.
//!
//! The measuring thread tells `transport` when it sleeps and wakes: that bounds how far the bytes
//! of one read can lie apart.

use std::thread::JoinHandle;

use anyhow::Context;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use crate::transport;

/// The runtimes of a run. Dropping them ends their tasks.
#[derive(Debug)]
pub struct Runtimes {
    /// Everything that is not measured.
    pub other: Runtime,
    /// Dispatch, transport and client.
    pub measuring: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runtimes {
    /// Starts both.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start() -> anyhow::Result<Self> {
        let other = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("other")
            .enable_all()
            .build()
            .context("no runtime")?;
        let measuring = Builder::new_current_thread()
            .enable_all()
            .on_thread_park(transport::thread_parks)
            .on_thread_unpark(transport::thread_unparks)
            .build()
            .context("no runtime for measuring")?;
        let handle = measuring.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("measure".to_owned())
            .spawn(move || {
                // Both a message and a dropped sender mean: end.
                measuring.block_on(async { stopped.await.unwrap_or_default() });
            })
            .context("no thread for measuring")?;
        Ok(Self {
            other,
            measuring: handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Runtimes {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the measuring thread panicked");
        }
    }
}
