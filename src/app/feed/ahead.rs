//! Prompts of our own making that take a while to make, made ahead, off the runtime that measures.

use tokio::sync::mpsc;

use crate::load::workload::{Prompt, Workload};

/// Prompts that wait: enough for what is due while one is made.
const PROMPTS: usize = 16;

/// Makes prompts until nobody wants more.
pub(in crate::app) struct Making {
    workload: Box<Workload>,
    prompts: mpsc::Sender<Prompt>,
}

impl Making {
    /// What makes prompts of `workload` ahead, and where they come out, in order.
    pub(in crate::app) fn ahead(workload: Workload) -> (Self, mpsc::Receiver<Prompt>) {
        let (sender, prompts) = mpsc::channel(PROMPTS);
        let making = Self {
            workload: Box::new(workload),
            prompts: sender,
        };
        (making, prompts)
    }

    pub(super) async fn run(mut self) {
        while let Ok(place) = self.prompts.reserve().await {
            let mut workload = self.workload;
            let made = tokio::task::spawn_blocking(move || {
                let prompt = workload.prompt(None);
                (workload, prompt)
            });
            let Ok((workload, prompt)) = made.await else {
                tracing::error!("the making of prompts broke off");
                return;
            };
            self.workload = workload;
            place.send(prompt);
        }
    }
}
