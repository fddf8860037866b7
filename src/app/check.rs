//! One request to each address of one target, outside any schedule: what `check` shows.

use std::sync::Arc;

use anyhow::Context;

use super::aside::{ASIDE, Asking};
use super::build::{fresh_ids, unseeded, unseeded_file};
use super::discover::{DiscoverError, served};
use super::feed::{Feed, FileReader, Timing};
use super::polls::poll;
use super::recognise::{Recognised, recognise};
use super::streams::{StreamPlan, loops, streams};
use super::tokenizers::{load, load_all, measure, recount};
use crate::aggregate::{SampleRing, slo};
use crate::client::{Call, Cancel, Client};
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{Config, PromptFile, TargetConfig};
use crate::export::record::{RecordOptions, to_json_line};
use crate::load::workload::{Measure, Prompt, Workload};
use crate::measurement::{
    LengthMode, Observed, Outcome, RequestRecord, Sample, Slo, StallRule, Wanted,
};
use crate::telemetry::SelfMetrics;
use crate::transport::Connect;

/// What asking a target showed.
#[derive(Debug)]
pub struct Checked {
    /// What is wrong with the model's name, if the server lists its models.
    pub model: Option<DiscoverError>,
    /// What its metrics page showed, if one is to be read.
    pub server: Option<Recognised>,
    /// One request to each of its addresses, in their order.
    pub requests: Vec<CheckedRequest>,
}

/// What one request showed.
#[derive(Debug)]
pub struct CheckedRequest {
    /// The request, with the server's state before it.
    pub observed: Observed,
    /// The stall rule of its probe.
    pub stall: StallRule,
    /// What its probe wants of it.
    pub slo: Slo,
    /// Whether the server refused it for asking for an answer of exactly so many tokens: the same
    /// request without that was answered.
    pub refuses_length: bool,
}

impl CheckedRequest {
    /// The record as one line of JSON, chunk gaps included, and below `slo` how it stands with
    /// each limit.
    #[must_use]
    pub fn json_line(&self, anchor: TimeAnchor) -> String {
        let options = RecordOptions {
            stall: self.stall,
            gaps: true,
        };
        let line = to_json_line(&self.observed, &anchor.wall(), options);
        match (line.strip_suffix('}'), self.standing()) {
            (Some(open), Some(standing)) => format!("{open},\"slo\":{standing}}}"),
            _ => line,
        }
    }

    /// Whether each limit and all of it hold; `None` where nothing is wanted, or if the request
    /// counts for nobody.
    fn standing(&self) -> Option<serde_json::Value> {
        let judged = self.slo.judge(&self.observed.record)?;
        let mut standing = serde_json::Map::new();
        for (metric, limit) in self.slo.limits() {
            let held = serde_json::json!({
                "limit_ms": limit.at_most.as_secs_f64() * 1e3,
                "objective": limit.objective,
                "good": judged.holds(metric),
            });
            standing.insert(metric.name().to_owned(), held);
        }
        if let Some(objective) = self.slo.success() {
            let held = serde_json::json!({ "objective": objective, "good": judged.is_ok });
            standing.insert(slo::SUCCESS.to_owned(), held);
        }
        if standing.is_empty() {
            return None;
        }
        let all = serde_json::json!({ "good": judged.is_good });
        standing.insert(slo::ALL.to_owned(), all);
        Some(standing.into())
    }
}

/// Sends one request to each address of the target at `target_index`, as its first probe would.
/// `None` if no probe uses the target.
///
/// # Errors
///
/// If the request cannot be made, as with a header that HTTP does not allow.
pub async fn check_target(
    config: &Config,
    target_index: usize,
    connect: Arc<dyn Connect>,
    anchor: TimeAnchor,
) -> anyhow::Result<Option<Checked>> {
    let plans = streams(config)?;
    let mut loops = loops(&plans);
    let Some(plans) = loops.find(|plans| plans[0].stream.target_index == target_index) else {
        return Ok(None);
    };
    let target = plans[0].target;
    // Of a pair the cold half: the other one is nothing without it.
    let first = plans[0].stream.cache;
    let plans: Vec<_> = plans
        .iter()
        .filter(|plan| plan.stream.cache == first)
        .collect();
    // First, so that what cannot be used is told as such.
    let clients = plans
        .iter()
        .map(|plan| plan.client(Arc::clone(&connect), anchor))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let tokenizer = load((target_index, target))?;
    let own = SelfMetrics::new().context("self metrics")?;
    let asking = Asking::within(&plans[0].probe.limits, anchor);
    let page = poll(target_index, target, (asking, &own))?;
    let look = async {
        match &page {
            Some(page) => Some(page.once().await),
            None => None,
        }
    };
    // A server that is silent on both costs the time of one.
    let (names, scrape) = tokio::join!(served(target, asking), look);
    let page = match &scrape {
        Some((scrape, url)) => Some(recognise(target, asking, (scrape, url)).await),
        None => None,
    };
    let model = model(target, names, &plans);
    let ring = ring_of(scrape.and_then(|(scrape, _)| scrape.sample));
    let mut requests = Vec::new();
    for (plan, client) in plans.iter().zip(&clients) {
        let tokenizer = tokenizer.as_ref();
        let measure = measure(plan.probe, (target_index, target), tokenizer)?;
        let prompt = if let Some(file) = plan.probe.workload.file() {
            first_prompt(file, measure).await?
        } else {
            Workload::new(&plan.probe.workload, measure, unseeded()).prompt(None)
        };
        let mut observed = ask(plan, (client, prompt.clone()), anchor, &ring).await;
        let refuses_length = is_refused(&observed.record)
            && plan.stream.length == LengthMode::Exact
            && answers_without_length(plan, (&connect, prompt), anchor, &ring).await?;
        recount(
            tokenizer.map(|tokenizer| &**tokenizer),
            &mut observed.record,
        );
        requests.push(CheckedRequest {
            observed,
            stall: plan.probe.stall,
            slo: plan.probe.slo,
            refuses_length,
        });
    }
    Ok(Some(Checked {
        model,
        server: page,
        requests,
    }))
}

/// What is wrong with the model of `target`, which told its `names`; they become known to the
/// streams of `plans`.
fn model(
    target: &TargetConfig,
    names: Result<Option<String>, DiscoverError>,
    plans: &[&StreamPlan<'_>],
) -> Option<DiscoverError> {
    match names {
        Ok(name) => {
            for (plan, name) in plans.iter().zip(std::iter::repeat(name)) {
                if let Some(name) = name {
                    plan.stream.model.get_or_init(|| name.into());
                }
            }
            None
        }
        // Many gateways list nothing; the request itself says whether the model is there.
        Err(DiscoverError::Fetch { .. } | DiscoverError::NoList { .. })
            if target.model.is_some() =>
        {
            None
        }
        Err(error) => Some(error),
    }
}

/// What was read before the requests.
fn ring_of(sample: Option<Sample>) -> SampleRing {
    let mut ring = SampleRing::new(1);
    if let Some(sample) = sample {
        ring.push(&sample);
    }
    ring
}

/// Whether the server did not like what was asked.
fn is_refused(record: &RequestRecord) -> bool {
    matches!(record.http_status, Some(400 | 422))
}

/// Whether the server answers the request of `plan` if its length is a limit only.
async fn answers_without_length(
    plan: &StreamPlan<'_>,
    (connect, prompt): (&Arc<dyn Connect>, Prompt),
    anchor: TimeAnchor,
    ring: &SampleRing,
) -> anyhow::Result<bool> {
    let mut target = plan.target.clone();
    target.request.exact_length = false;
    let plan = StreamPlan {
        target: &target,
        stream: Arc::clone(&plan.stream),
        ..*plan
    };
    let client = plan.client(Arc::clone(connect), anchor)?;
    let observed = ask(&plan, (&client, prompt), anchor, ring).await;
    Ok(observed.record.outcome == Outcome::Ok)
}

/// One request of the stream of `plan`.
async fn ask(
    plan: &StreamPlan<'_>,
    (client, prompt): (&Client, Prompt),
    anchor: TimeAnchor,
    ring: &SampleRing,
) -> Observed {
    let now = anchor.now();
    let mut record = RequestRecord::due(0, Arc::clone(&plan.stream), fresh_ids(), now);
    record.timeline.slot_free = Some(now);
    record.answer = prompt.wanted.clone().map(Wanted::unjudged);
    let mut call = Call::new(record, prompt);
    call.keep_reply = call.record.answer.is_some();
    let mut record = *client.send(call, &Cancel::default()).await;
    record.judge();
    record.reply = None;
    let then = |at: Option<MonoTime>| ring.at(at?, ASIDE);
    Observed {
        at_intended: then(Some(now)),
        at_first_token: then(record.timeline.first_token),
        at_end: then(record.timeline.end),
        record,
        gpu: None,
    }
}

/// Whether the files that `config` names can be used: tokenizers, and the beginnings of data sets
/// and traces. For whoever has to know before something else is given up.
///
/// # Errors
///
/// What a run would say at its start.
pub fn check_files(config: &Config) -> anyhow::Result<()> {
    load_all(config)?;
    for file in config
        .probes
        .iter()
        .filter_map(|probe| probe.workload.file())
    {
        begun(file, Measure::default())?;
    }
    Ok(())
}

fn begun(file: &PromptFile, measure: Measure) -> anyhow::Result<Feed> {
    let timing = Timing {
        replay: None,
        pauses: file.pauses,
    };
    let reader = FileReader::open(file, timing, unseeded_file(measure))?;
    Ok(Feed::begin(reader)?.0)
}

/// What the file of a probe sends first.
async fn first_prompt(file: &PromptFile, measure: Measure) -> anyhow::Result<Prompt> {
    let mut feed = begun(file, measure)?;
    let script = feed.next().await;
    let step = script.and_then(|mut script| script.steps.pop_front());
    Ok(step.context("a feed that began has a first turn")?.prompt)
}
