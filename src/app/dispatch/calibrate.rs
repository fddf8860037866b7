//! Asks a server at the start how it counts: two short requests outside any schedule, which are
//! in no record but count against the budgets.

use std::sync::Arc;

use super::{Dispatch, unix_day};
use crate::app::build::fresh_ids;
use crate::client::Call;
use crate::load::workload::{Calibration, Prompt, Workload};
use crate::measurement::{Outcome, RequestRecord};

impl Dispatch {
    /// Sizes prompts by how the server counts, if that is wanted; by words where it does not say.
    pub(super) async fn calibrate(&mut self) {
        let made = self.supply.workload();
        let Some(prompts) = made.and_then(Workload::to_calibrate) else {
            return;
        };
        let mut counted = [0; 2];
        for (prompt, counted) in prompts.iter().zip(&mut counted) {
            match self.counted(prompt.clone()).await {
                Ok(tokens) => *counted = tokens,
                Err(why) => return self.uncalibrated(&why),
            }
        }
        match Calibration::found(&prompts, counted) {
            Ok(found) => {
                let target = &*self.lanes.upcoming().stream.target;
                tracing::info!(target_name = target, ?found, "calibrated");
                if let Some(made) = self.supply.workload() {
                    made.calibrate(found);
                }
            }
            Err(why) => self.uncalibrated(&why),
        }
    }

    fn uncalibrated(&self, why: &str) {
        let stream = &self.lanes.upcoming().stream;
        tracing::warn!(
            probe = &*stream.probe,
            target_name = &*stream.target,
            why,
            "prompts are sized by words: the server did not count them"
        );
    }

    /// The tokens of `prompt` as the server counts them.
    async fn counted(&self, prompt: Prompt) -> Result<u32, String> {
        let (anchor, governor) = (self.shared.anchor, &self.shared.governor);
        let lane = self.lanes.upcoming().clone();
        let tokens = u64::from(prompt.input_tokens.unwrap_or_default()) * 2;
        let reserved = governor
            .reserve(unix_day(anchor), tokens)
            .map_err(|_| "the budget is used up".to_owned())?;
        let now = anchor.now();
        let mut record = RequestRecord::due(0, Arc::clone(&lane.stream), fresh_ids(), now);
        record.timeline.slot_free = Some(now);
        let record = lane
            .client
            .send(Call::new(record, prompt), &self.shared.cancel)
            .await;
        governor.settle(reserved, record.tokens.input.map(u64::from));
        match (record.outcome, record.tokens.input) {
            (Outcome::Ok, Some(tokens)) => Ok(tokens),
            (Outcome::Ok, None) => Err("its answer has no usage".to_owned()),
            (outcome, _) => Err(format!("a request ended as `{}`", outcome.name())),
        }
    }
}
