//! All that the page, the API and `/metrics` read: totals and windows per stream, the last
//! requests, and the newest state of each server.
//!
//! One writer observes records and samples in the order in which they end. Everything is
//! allocated for a fixed list of streams and targets; what names neither is counted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::energy::EnergyUse;
use super::exemplars::ExportedSpan;
use super::gpu::{GpuHistory, GpuRules};
use super::node::NodeHistory;
use super::server::{ServerHistory, ServerWindow};
use super::slo::{ExactBounds, SloTotals};
use super::target::Marks;
use super::totals::Totals;
use super::window::{KEPT, Window, Windows};
use crate::clock::MonoTime;
use crate::measurement::server::{Scrape, ScrapeResult};
use crate::measurement::{
    GpuSample, GpuStates, Mark, NodeSample, Observed, RequestRecord, Sample, Slo, StallRule,
    Stream, TargetState,
};

/// Requests kept for the table of the last ones.
pub const LAST_REQUESTS: usize = 200;

/// Streams whose series leave the program: beyond them a page would be too large for whoever
/// reads it. Further ones are counted.
pub const MOST_EXPORTED: usize = 1_000;

/// The lengths of windows, shortest first.
pub const SPANS: [Duration; 2] = [Duration::from_secs(10), Duration::from_mins(1)];

/// The interval at which pages are read, unless [`Live::reading_every`] says otherwise.
const PAGES_EVERY: Duration = Duration::from_secs(5);

/// What a stream's probe says about its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamRules {
    /// When a chunk gap is a stall.
    pub stall: StallRule,
    /// When a request is given up, from its start.
    pub total: Duration,
    /// What is wanted of its requests.
    pub slo: Slo,
    /// Whether its requests are questions of which the answer is known.
    pub knows_answers: bool,
}

/// One stream and all that is known of it.
#[derive(Debug, Clone)]
pub struct StreamLive {
    stream: Arc<Stream>,
    rules: StreamRules,
    totals: Totals,
    windows: [Windows; SPANS.len()],
}

impl StreamLive {
    fn new(stream: Arc<Stream>, rules: StreamRules, bounds: ExactBounds) -> Self {
        Self {
            stream,
            rules,
            totals: Totals::new(rules.slo, bounds),
            windows: SPANS.map(|span| Windows::new(span, rules.total, rules.slo)),
        }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// What its probe says about its numbers.
    #[must_use]
    pub const fn rules(&self) -> StreamRules {
        self.rules
    }

    /// Everything since the start.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Its windows, one set for each of [`SPANS`].
    #[must_use]
    pub const fn windows(&self) -> &[Windows; SPANS.len()] {
        &self.windows
    }

    /// The closed windows of the last `span`, as one: from the shortest windows that are kept
    /// long enough.
    #[must_use]
    pub fn recent(&self, span: Duration) -> Window {
        self.kept_for(span).recent(span)
    }

    /// How many were good in the closed windows of the last `span`, as [`Self::recent`].
    #[must_use]
    pub fn recent_slo(&self, span: Duration) -> SloTotals {
        self.kept_for(span).recent_slo(span)
    }

    /// The shortest windows that reach back so far, or the longest.
    fn kept_for(&self, span: Duration) -> &Windows {
        let kept = u32::try_from(KEPT).unwrap_or(u32::MAX);
        let [.., longest] = &self.windows;
        self.windows
            .iter()
            .find(|windows| windows.span() * kept >= span)
            .unwrap_or(longest)
    }
}

/// The live state of a run.
#[derive(Debug, Clone)]
pub struct Live {
    streams: Vec<StreamLive>,
    servers: Vec<ServerHistory>,
    /// Of several addresses of a target, the one whose page is read: the first.
    paged: Vec<Option<Box<str>>>,
    /// What became of the last reading of each target's page.
    results: Vec<Option<ScrapeResult>>,
    /// Per target; `None` where no GPUs are read.
    gpus: Vec<Option<GpuHistory>>,
    /// Per target.
    nodes: Vec<NodeHistory>,
    /// How each address of a target stands, in the order of streams.
    addresses: Vec<Address>,
    marks: Marks,
    last: VecDeque<Arc<Observed>>,
    strays: u64,
    bounds: ExactBounds,
}

/// One address of a target, and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Position of the target.
    pub target_index: usize,
    /// Name of the target.
    pub target: Box<str>,
    /// The address.
    pub endpoint: Box<str>,
    /// How it stands, and since when; `None` before the first request has ended.
    pub state: Option<(TargetState, MonoTime)>,
}

impl Live {
    /// Nothing observed yet of `streams`, each at the position its id says, and of as many
    /// `targets`.
    #[must_use]
    pub fn new(streams: Vec<(Arc<Stream>, StreamRules)>, targets: usize) -> Self {
        let mut paged = vec![None; targets];
        for (stream, _) in &streams {
            if let Some(first) = paged.get_mut(stream.target_index) {
                let first: &mut Option<Box<str>> = first;
                first.get_or_insert_with(|| stream.endpoint.clone());
            }
        }
        let mut addresses: Vec<Address> = Vec::new();
        for (stream, _) in &streams {
            if address(&addresses, stream).is_none() {
                addresses.push(Address {
                    target_index: stream.target_index,
                    target: stream.target.clone(),
                    endpoint: stream.endpoint.clone(),
                    state: None,
                });
            }
        }
        let bounds = ExactBounds::of(streams.iter().map(|(_, rules)| &rules.slo));
        Self {
            streams: streams
                .into_iter()
                .map(|(stream, rules)| StreamLive::new(stream, rules, bounds.clone()))
                .collect(),
            servers: vec![ServerHistory::new(PAGES_EVERY); targets],
            results: vec![None; targets],
            gpus: vec![None; targets],
            nodes: vec![NodeHistory::default(); targets],
            paged,
            addresses,
            marks: Marks::default(),
            last: VecDeque::with_capacity(LAST_REQUESTS),
            strays: 0,
            bounds,
        }
    }

    /// The same, with the intervals at which the targets' pages are read.
    #[must_use]
    pub fn reading_every(mut self, every: impl Iterator<Item = Duration>) -> Self {
        for (server, every) in self.servers.iter_mut().zip(every) {
            *server = ServerHistory::new(every);
        }
        self
    }

    /// Reads the GPUs of targets, as `rules` say of each, in the order of targets.
    #[must_use]
    pub fn reading_gpus(mut self, rules: impl Iterator<Item = Option<GpuRules>>) -> Self {
        for (known, rules) in self.gpus.iter_mut().zip(rules) {
            *known = rules.map(GpuHistory::new);
        }
        self
    }

    /// Adds the record of an arrival that has ended. `span` is its span if that leaves the
    /// program: what shows no spans has no exemplars that lead to them.
    pub fn observe(&mut self, observed: Arc<Observed>, span: Option<ExportedSpan>) {
        let id = usize::from(observed.record.stream.id.0);
        let Some(stream) = self.streams.get_mut(id) else {
            self.strays += 1;
            return;
        };
        stream.totals.observe(&observed, stream.rules.stall, span);
        let of = &observed.record.stream;
        let is_paged = is_paged(&self.paged, of);
        if is_paged && let Some(server) = self.servers.get_mut(of.target_index) {
            server.own(&observed.record);
        }
        if observed.record.is_measured() {
            for windows in &mut stream.windows {
                windows.observe(&observed);
            }
        }
        if self.last.len() == LAST_REQUESTS {
            self.last.pop_front();
        }
        self.last.push_back(observed);
    }

    /// Counts a record that was told of before it was known whether it counts: it does.
    pub fn count(&mut self, observed: &Observed, span: Option<ExportedSpan>) {
        let id = usize::from(observed.record.stream.id.0);
        if let Some(stream) = self.streams.get_mut(id) {
            let stall = stream.rules.stall;
            stream.totals.count(&observed.record, stall, span);
            if observed.record.is_measured() {
                for windows in &mut stream.windows {
                    windows.observe_late(observed);
                }
            }
        }
    }

    /// A record that was told of before that was known belongs to a start of its server.
    pub fn excuse(&mut self, record: &RequestRecord) {
        if let Some(stream) = self.streams.get_mut(usize::from(record.stream.id.0)) {
            stream.totals.excuse(record);
        }
    }

    /// Takes the newest reading of a server's page.
    pub fn scrape(&mut self, scrape: Scrape) {
        if let Some(result) = self.results.get_mut(scrape.target_index) {
            *result = Some(scrape.result);
        }
        if let Some(sample) = scrape.sample {
            self.sample(sample);
        }
    }

    /// What became of the last reading of each target's page, in the order of targets; `None`
    /// before the first.
    #[must_use]
    pub fn scraped(&self) -> &[Option<ScrapeResult>] {
        &self.results
    }

    /// Takes the newest state of a server.
    pub fn sample(&mut self, sample: Sample) {
        match self.servers.get_mut(sample.target_index) {
            Some(server) => server.push(sample),
            None => self.strays += 1,
        }
    }

    /// Takes a reading of the GPUs of a target.
    pub fn gpu_sample(&mut self, sample: GpuSample) {
        match self.gpus.get_mut(sample.target_index) {
            Some(Some(known)) => known.push(sample),
            _ => self.strays += 1,
        }
    }

    /// Takes a reading of the host of a target.
    pub fn node_sample(&mut self, sample: &NodeSample) {
        match self.nodes.get_mut(sample.target_index) {
            Some(known) => known.push(sample),
            None => self.strays += 1,
        }
    }

    /// What is known of the host of each target, in the order of targets.
    #[must_use]
    pub fn nodes(&self) -> &[NodeHistory] {
        &self.nodes
    }

    /// What is known of the GPUs of each target, in the order of targets.
    #[must_use]
    pub fn gpus(&self) -> &[Option<GpuHistory>] {
        &self.gpus
    }

    /// The GPUs at the three instants of `record`; `None` if those of its target are not read.
    #[must_use]
    pub fn gpus_of(&self, record: &RequestRecord) -> Option<GpuStates> {
        let known = self.gpus.get(record.stream.target_index)?.as_ref()?;
        Some(known.of(record))
    }

    /// What energy the target at `target_index` took from `from` until `until`, or over a span near
    /// that. `None` if the power of its GPUs is not known, or if it has addresses whose counts are
    /// not on the page that is read: their energy would be borne by the requests of another.
    #[must_use]
    pub fn energy(&self, target_index: usize, span: (MonoTime, MonoTime)) -> Option<EnergyUse> {
        let drawn = self.gpus.get(target_index)?.as_ref()?.drawn(span)?;
        let mut streams = self.streams.iter().map(StreamLive::stream);
        if streams.any(|one| one.target_index == target_index && !self.is_paged(one)) {
            return None;
        }
        let server = self.server(target_index, (drawn.from, drawn.until))?;
        Some(EnergyUse::of(drawn, &server))
    }

    /// Closes windows: every arrival intended before `settled` has been observed, and it is
    /// `now`.
    pub fn settle(&mut self, settled: MonoTime, now: MonoTime) {
        for stream in &mut self.streams {
            for windows in &mut stream.windows {
                windows.settle(settled, now);
            }
        }
    }

    /// Every address of every target once, in the order of streams.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The position of the address of `stream` among them.
    #[must_use]
    pub fn address(&self, stream: &Stream) -> Option<usize> {
        address(&self.addresses, stream)
    }

    /// Says how the address at a position stands, and since when.
    pub fn stands(&mut self, address: usize, state: Option<(TargetState, MonoTime)>) {
        if let Some(known) = self.addresses.get_mut(address) {
            known.state = state;
        }
    }

    /// What changed on targets.
    #[must_use]
    pub const fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Takes a mark.
    pub fn mark(&mut self, mark: Mark) {
        self.marks.add(mark);
    }

    /// The streams, in the order of their ids.
    #[must_use]
    pub fn streams(&self) -> &[StreamLive] {
        &self.streams
    }

    /// The streams whose series leave the program, in the order of their ids, and how many others
    /// there are.
    #[must_use]
    pub fn exported(&self) -> (&[StreamLive], usize) {
        let most = self.streams.len().min(MOST_EXPORTED);
        (&self.streams[..most], self.streams.len() - most)
    }

    /// The limits that histograms count exactly.
    #[must_use]
    pub const fn bounds(&self) -> &ExactBounds {
        &self.bounds
    }

    /// The newest page of each target, in the order of targets; `None` before the first.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = Option<&Sample>> {
        self.servers.iter().map(ServerHistory::latest)
    }

    /// What is kept of each target's server, in the order of targets.
    #[must_use]
    pub fn servers(&self) -> &[ServerHistory] {
        &self.servers
    }

    /// Whether the page that is read is that of the address of `stream`.
    #[must_use]
    pub fn is_paged(&self, stream: &Stream) -> bool {
        is_paged(&self.paged, stream)
    }

    /// What the server of a target was between `from` and `to`; `None` if there is no such
    /// target.
    #[must_use]
    pub fn server(
        &self,
        target_index: usize,
        (from, to): (MonoTime, MonoTime),
    ) -> Option<ServerWindow> {
        Some(self.servers.get(target_index)?.window(from, to))
    }

    /// The last requests that ended, newest first.
    pub fn last_requests(&self) -> impl Iterator<Item = &Arc<Observed>> {
        self.last.iter().rev()
    }

    /// Records and samples that named a stream or target we do not have.
    #[must_use]
    pub const fn strays(&self) -> u64 {
        self.strays
    }
}

fn address(addresses: &[Address], stream: &Stream) -> Option<usize> {
    let is_of = |known: &Address| {
        known.target_index == stream.target_index && known.endpoint == stream.endpoint
    };
    addresses.iter().position(is_of)
}

fn is_paged(paged: &[Option<Box<str>>], stream: &Stream) -> bool {
    let first = paged.get(stream.target_index).and_then(Option::as_ref);
    first.is_some_and(|first| *first == stream.endpoint)
}
