//! Waits until an arrival is due, as precisely as the system can.
//!
//! Tokio's timers have steps of a millisecond. On Linux a timer of the kernel, read like a pipe,
//! wakes the loop within tens of microseconds and costs less than spinning, which takes the core
//! from whoever is to be woken. Where time is virtual, or the system has no such timer, tokio's
//! timers serve: with a paused clock they are exact at whole milliseconds.

use std::time::Duration;

use crate::clock::{MonoTime, TimeAnchor};

#[cfg(target_os = "linux")]
use self::kernel::Timer;

/// The timer of one dispatch loop.
pub(super) struct Pacer {
    anchor: TimeAnchor,
    #[cfg(target_os = "linux")]
    timer: Option<Timer>,
}

impl Pacer {
    /// A timer on the runtime of the caller.
    pub(super) fn new(anchor: TimeAnchor) -> Self {
        Self {
            anchor,
            #[cfg(target_os = "linux")]
            timer: if TimeAnchor::is_real() {
                Timer::new()
                    .inspect_err(|error| {
                        tracing::warn!(%error, "no timer of the kernel; dispatch is coarse");
                    })
                    .ok()
            } else {
                None
            },
        }
    }

    /// Waits until `at`, not at all if that has passed.
    pub(super) async fn until(&mut self, at: MonoTime) {
        #[cfg(target_os = "linux")]
        if let Some(timer) = &mut self.timer {
            loop {
                let left = at.since(self.anchor.now());
                if left == Duration::ZERO {
                    return;
                }
                if let Err(error) = timer.wait(left).await {
                    tracing::warn!(%error, "the timer of the kernel failed");
                    self.timer = None;
                    break;
                }
            }
        }
        tokio::time::sleep_until(self.anchor.instant(at)).await;
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::AsyncReadExt;
    use tokio::net::unix::pipe;

    /// A `timerfd`, which tokio polls and reads like a pipe.
    pub(super) struct Timer(pipe::Receiver);

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok(Self(pipe::Receiver::from_owned_fd_unchecked(timer)?))
        }

        /// Waits for `span`, which is not zero: that would disarm the timer. If the waiting is
        /// broken off, the next one arms it anew, and what had expired by then is forgotten.
        pub(super) async fn wait(&mut self, span: Duration) -> io::Result<()> {
            let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
            let value = Itimerspec {
                it_interval: Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                },
                it_value: Timespec {
                    tv_sec: seconds,
                    tv_nsec: i64::from(span.subsec_nanos()),
                },
            };
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &value)?;
            // How often it expired, which is once; the caller looks at the clock.
            let mut expirations = [0; 8];
            self.0.read_exact(&mut expirations).await?;
            Ok(())
        }
    }
}
