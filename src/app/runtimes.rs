//! The two runtimes: one thread that only measures, and the rest.
//!
//! The measuring thread tells `transport` when it sleeps and wakes: that bounds how far the bytes
//! of one read can lie apart.
//!
//! What it has to do waits in line, and hundreds of streams can be in that line at once. Arrivals
//! do not wait there: dispatch loops run at the head of the thread, which looks at them again
//! after every few tasks.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::thread::JoinHandle;

use anyhow::Context;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, oneshot};

use crate::transport;

/// After this many tasks the measuring thread looks whether an arrival is due. A task takes 5 to
/// 50 us; to look costs less than one.
const TASKS_BETWEEN_LOOKS: u32 = 8;
/// Dispatch loops that wait to be begun.
const WAITING_TO_BEGIN: usize = 16;

/// The runtimes of a run. Dropping them ends their tasks.
#[derive(Debug)]
pub struct Runtimes {
    /// Everything that is not measured.
    pub other: Runtime,
    /// Dispatch, transport and client.
    pub measuring: Measuring,
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
            .on_thread_start(stand_back)
            .enable_all()
            .build()
            .context("no runtime")?;
        let measuring = Builder::new_current_thread()
            .enable_all()
            .event_interval(TASKS_BETWEEN_LOOKS)
            .on_thread_park(transport::thread_parks)
            .on_thread_unpark(transport::thread_unparks)
            .build()
            .context("no runtime for measuring")?;
        let handle = measuring.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let (head, tasks) = mpsc::channel(WAITING_TO_BEGIN);
        let thread = std::thread::Builder::new()
            .name("measure".to_owned())
            .spawn(move || measuring.block_on(run_head(tasks, stopped)))
            .context("no thread for measuring")?;
        Ok(Self {
            other,
            measuring: Measuring {
                handle,
                head: Some(head),
            },
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where requests are timed, and where all else happens.
    #[must_use]
    pub fn handles(&self) -> (Measuring, Handle) {
        (self.measuring.clone(), self.other.handle().clone())
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

/// Has the calling thread scheduled as batch work, on Linux: one that wakes does not take the
/// processor from the measuring thread, which would wait for it for up to a tick of 4 ms. It has
/// the same share as before.
fn stand_back() {
    #[cfg(target_os = "linux")]
    {
        use thread_priority::{
            NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
            set_thread_priority_and_policy, thread_native_id,
        };

        // The library sets the niceness too, and this is the priority that it takes for 0.
        const USUAL: u8 = 48;
        if rustix::process::getpriority_process(None) != Ok(0) {
            return; // whoever started us said how it is to be scheduled
        }
        let priority = USUAL.try_into().map(ThreadPriority::Crossplatform);
        let batch = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
        let done =
            priority.map(|usual| set_thread_priority_and_policy(thread_native_id(), usual, batch));
        if !matches!(done, Ok(Ok(()))) {
            tracing::debug!(?done, "a thread is not scheduled as batch work");
        }
    }
}

/// A task that does not wait in line.
type HeadTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs `tasks` until `stopped` is told to end, or forgotten.
async fn run_head(mut tasks: mpsc::Receiver<HeadTask>, mut stopped: oneshot::Receiver<()>) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = running.next() => {}
            Some(task) = tasks.recv() => running.push(task),
            // Both a message and a dropped sender mean: end.
            _ = &mut stopped => return,
        }
    }
}

/// Where requests are timed.
#[derive(Debug, Clone)]
pub struct Measuring {
    handle: Handle,
    head: Option<mpsc::Sender<HeadTask>>,
}

/// A runtime on which all tasks wait in one line.
impl From<Handle> for Measuring {
    fn from(handle: Handle) -> Self {
        Self { handle, head: None }
    }
}

impl Measuring {
    /// For tasks that wait in line.
    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs `task` where it does not wait behind the thread's other tasks, if there is such a
    /// place; it is dropped with the future that is returned. If it panics, so does that.
    pub(super) async fn run_first(self, task: impl Future<Output = ()> + Send + 'static) {
        let Some(head) = self.head else {
            return task.await;
        };
        let (mut ended, end) = oneshot::channel::<Result<(), Box<dyn Any + Send>>>();
        let task = async move {
            let result = tokio::select! {
                biased;
                result = AssertUnwindSafe(task).catch_unwind() => result,
                () = ended.closed() => return,
            };
            // Nobody waits for it then.
            drop(ended.send(result));
        };
        if head.send(Box::pin(task)).await.is_err() {
            return; // the thread has ended
        }
        if let Ok(Err(panic)) = end.await {
            resume_unwind(panic);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::read_to_string;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::time::Duration;

    use super::*;

    /// Scheduling policy (`SCHED_OTHER` is 0, `SCHED_BATCH` 3) and niceness of the calling thread.
    fn scheduled() -> (u32, i32) {
        let stat = read_to_string("/proc/thread-self/stat").expect("Linux has it");
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let field = |number: usize| {
            fields
                .split_whitespace()
                .nth(number - 3)
                .expect("it is there")
        };
        (
            field(41).parse().expect("a number"),
            field(19).parse().expect("a number"),
        )
    }

    #[test]
    fn only_the_measuring_thread_takes_the_processor_from_others() {
        let (_, nice) = scheduled();
        let runtimes = Runtimes::start().expect("threads");
        let blocking = runtimes.other.spawn_blocking(scheduled);
        let worker = runtimes.other.spawn(async { scheduled() });
        let measuring = runtimes.measuring.handle().spawn(async { scheduled() });
        let all = async { tokio::try_join!(blocking, worker, measuring) };
        let found = runtimes.other.block_on(all).expect("nothing panics");
        let batch = if nice == 0 { 3 } else { 0 };
        assert_eq!(found, ((batch, nice), (batch, nice), (0, nice)));
    }

    #[test]
    fn what_runs_first_does_not_wait_behind_a_line_of_tasks() {
        let runtimes = Runtimes::start().expect("threads");
        let handle = runtimes.measuring.handle().clone();
        let (wake, woken) = oneshot::channel::<()>();
        let ran = Arc::new(AtomicU32::new(0));
        let (seen, first) = oneshot::channel();
        let before = Arc::clone(&ran);
        let waits = async move {
            woken.await.expect("it is woken");
            seen.send(before.load(Relaxed)).expect("it is waited for");
        };
        let waits = runtimes.measuring.clone().run_first(waits);
        runtimes.other.spawn(waits);
        let line = async move {
            // Let what runs first begin to wait.
            tokio::time::sleep(Duration::from_millis(50)).await;
            for _ in 0..1_000 {
                let ran = Arc::clone(&ran);
                tokio::spawn(async move { ran.fetch_add(1, Relaxed) });
            }
            wake.send(()).expect("it waits");
        };
        let before = runtimes.other.block_on(async {
            handle.spawn(line).await.expect("nothing panics");
            first.await.expect("it ran")
        });
        assert!(
            before <= TASKS_BETWEEN_LOOKS,
            "{before} tasks ran before it"
        );
    }

    #[test]
    fn what_runs_first_hands_its_panic_on_and_ends_with_who_waits_for_it() {
        let runtimes = Runtimes::start().expect("threads");
        let panics = runtimes
            .measuring
            .clone()
            .run_first(async { panic!("as wanted") });
        let joined = runtimes.other.block_on(runtimes.other.spawn(panics));
        assert!(joined.expect_err("it panicked").is_panic());

        let (held, dropped) = oneshot::channel::<()>();
        let holds = async move {
            let _held = held;
            std::future::pending::<()>().await;
        };
        let waits = runtimes
            .other
            .spawn(runtimes.measuring.clone().run_first(holds));
        waits.abort();
        let ended = runtimes.other.block_on(dropped);
        assert!(ended.is_err(), "dropped with who waits for it");
    }
}
