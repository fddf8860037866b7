//! Prompts of our own making that take a while to make, made ahead, off the runtime that measures.

use tokio::sync::mpsc;

use crate::client::BodyWriter;
use crate::load::workload::{Prompt, Workload};

/// Prompts that wait: enough for what is due while one is made.
const PROMPTS: usize = 16;

/// Makes prompts until nobody wants more.
pub(in crate::app) struct Making {
    workload: Box<Workload>,
    writer: BodyWriter,
    prompts: mpsc::Sender<Prompt>,
}

impl Making {
    /// What makes prompts of `workload` ahead, and where they come out, in order.
    pub(in crate::app) fn ahead(
        workload: Workload,
        writer: BodyWriter,
    ) -> (Self, mpsc::Receiver<Prompt>) {
        let (sender, prompts) = mpsc::channel(PROMPTS);
        let making = Self {
            workload: Box::new(workload),
            writer,
            prompts: sender,
        };
        (making, prompts)
    }

    pub(super) async fn run(mut self) {
        while let Ok(place) = self.prompts.reserve().await {
            let (mut workload, writer) = (self.workload, self.writer.clone());
            let made = tokio::task::spawn_blocking(move || {
                let mut prompt = workload.prompt(None);
                writer.write(&mut prompt);
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
