//! Waits for the next thing of an exchange, unless its deadline passes or we are stopping.
//!
//! The timer is armed lazily: a deadline that moves on with every chunk costs nothing until the
//! timer fires, which then finds out whether it really is too late. Timer and stop signal are
//! asked only if they do not know yet whom to wake, so that waiting takes no lock per chunk.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::clock::{MonoTime, TimeAnchor};

/// Tells requests in flight to give up. Clones share the signal.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    set: Arc<AtomicBool>,
    /// That of the signal which this one follows.
    above: Option<Arc<AtomicBool>>,
    token: CancellationToken,
}

impl Cancel {
    /// Makes every watched request give up.
    pub fn cancel(&self) {
        self.set.store(true, Ordering::Release);
        self.token.cancel();
    }

    /// A signal of its own that is also set when this one is.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            set: Arc::default(),
            above: Some(Arc::clone(&self.set)),
            token: self.token.child_token(),
        }
    }

    /// Whether [`Self::cancel`] was called, or that of the signal it follows.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        is_set(&self.set) || self.above.as_deref().is_some_and(is_set)
    }
}

/// Why a wait ended without what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// The deadline passed.
    Late,
    /// We are stopping.
    Cancelled,
}

/// The timer and the stop signal of one exchange.
pub(super) struct Watch {
    anchor: TimeAnchor,
    timer: Pin<Box<Sleep>>,
    armed: MonoTime,
    cancel: Cancel,
    /// How late a deadline was seen to have passed.
    overslept: Duration,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whom timer and stop signal are to wake.
    waker: Option<Waker>,
}

impl Watch {
    /// A watch whose timer is armed for `first`.
    pub(super) fn new(anchor: TimeAnchor, first: MonoTime, cancel: Cancel) -> Self {
        Self {
            anchor,
            timer: Box::pin(tokio::time::sleep_until(anchor.instant(first))),
            armed: first,
            overslept: Duration::ZERO,
            stopping: Box::pin(cancel.token.clone().cancelled_owned()),
            cancel,
            waker: None,
        }
    }

    /// How long after its deadline the last wait that ended [`Gone::Late`] ended: our own delay.
    pub(super) const fn overslept(&self) -> Duration {
        self.overslept
    }

    /// Waits for `what`, at most until `deadline`.
    pub(super) async fn until<F: Future>(
        &mut self,
        deadline: MonoTime,
        what: F,
    ) -> Result<F::Output, Gone> {
        if deadline < self.armed {
            self.arm(deadline);
        }
        let mut what = pin!(what);
        poll_fn(|cx| {
            if let Poll::Ready(output) = what.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            self.gone(deadline, cx).map(Err)
        })
        .await
    }

    fn gone(&mut self, deadline: MonoTime, cx: &mut Context<'_>) -> Poll<Gone> {
        let is_known = self.waker.as_ref();
        if is_known.is_some_and(|waker| waker.will_wake(cx.waker()))
            && !self.cancel.is_cancelled()
            && self.anchor.now() < self.armed
        {
            return Poll::Pending;
        }
        if self.stopping.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Gone::Cancelled);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = self.anchor.now();
            if now >= deadline {
                self.overslept = now.since(deadline);
                return Poll::Ready(Gone::Late);
            }
            self.arm(deadline);
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn arm(&mut self, at: MonoTime) {
        self.timer.as_mut().reset(self.anchor.instant(at));
        self.armed = at;
        self.waker = None;
    }
}
