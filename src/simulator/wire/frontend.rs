//! What stands between connections and the engine: only so many requests may be inside at once.
//!
//! Those outside wait in order of arrival; nothing that the server shows counts them. Not here:
//! how many may be inside (that is a fault), and what a request does there.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::Simulator;

/// Who is inside and who waits.
#[derive(Debug, Default)]
pub(super) struct Frontend {
    inside: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

impl Frontend {
    /// Goes in if there is room, else gets what is told when there is.
    fn enter(&mut self, limit: Option<usize>) -> Option<oneshot::Receiver<()>> {
        self.let_in(limit);
        if self.waiting.is_empty() && limit.is_none_or(|limit| self.inside < limit) {
            self.inside += 1;
            return None;
        }
        let (told, wait) = oneshot::channel();
        self.waiting.push_back(told);
        Some(wait)
    }

    /// Lets in as many as there is room for. Who has left in the meantime is passed over.
    pub(super) fn let_in(&mut self, limit: Option<usize>) {
        while limit.is_none_or(|limit| self.inside < limit)
            && let Some(next) = self.waiting.pop_front()
        {
            self.inside += usize::from(next.send(()).is_ok());
        }
    }

    /// Whether anybody waits.
    pub(super) fn is_crowded(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// A request on its way through the frontend; dropping it makes room.
pub(super) struct Pass<'a> {
    simulator: &'a Simulator,
    /// Until it is told.
    wait: Option<oneshot::Receiver<()>>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(simulator: &'a Simulator) -> Self {
        let wait = simulator.change(|state, now| {
            state.pump(now);
            let limit = state.faults.frontend_limit(now);
            state.frontend.enter(limit.map(|(limit, _)| limit))
        });
        Self { simulator, wait }
    }

    /// Ready once it is inside.
    pub(super) async fn inside(&mut self) {
        if let Some(wait) = &mut self.wait {
            // Fails only if the simulator is gone, which `simulator` excludes.
            let (Ok(()) | Err(_)) = wait.await;
            self.wait = None;
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let inside = match &mut self.wait {
            None => true,
            // It may have been let in while its client left.
            Some(wait) => wait.try_recv().is_ok(),
        };
        self.wait = None;
        if inside {
            self.simulator.change(|state, now| {
                state.frontend.inside -= 1;
                state.pump(now);
            });
        }
    }
}
