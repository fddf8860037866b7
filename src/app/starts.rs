//! How the addresses of targets stand, which requests belong to a start, and what changed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::build::SAMPLE_INTERVALS;
use crate::aggregate::target::{Changed, Decided, Identity, StartRules, TargetWatch};
use crate::aggregate::{ExportedSpan, Live};
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{Config, ServerMetrics};
use crate::export::otlp::{Event, Events};
use crate::measurement::{
    GpuSample, IdentitySample, Mark, MarkKind, Observed, RequestRecord, Sample, TargetState,
};

/// Requests of one address that are held until it is known whether they count. Beyond them the
/// oldest does.
const MOST_HELD: usize = 4_096;

/// A request that is held, and its span if that leaves the program.
pub(super) type Held = (Arc<Observed>, Option<ExportedSpan>);

/// One address of a target.
struct Watched {
    target_index: usize,
    target: Box<str>,
    endpoint: Box<str>,
    watch: TargetWatch,
    held: VecDeque<Held>,
    told: Option<TargetState>,
}

/// The targets of a run.
pub(super) struct Starts {
    anchor: TimeAnchor,
    live: Arc<Mutex<Live>>,
    /// In the order of [`Live::addresses`].
    watched: Vec<Watched>,
    /// Positions of the addresses, in the order of streams.
    addresses: Vec<Option<usize>>,
    /// In the order of targets.
    identities: Vec<Identity>,
    events: Option<Events>,
}

impl Starts {
    /// Nothing is known yet of the addresses of `live`.
    pub(super) fn new(
        live: &Arc<Mutex<Live>>,
        (anchor, config): (TimeAnchor, &Config),
        events: Option<Events>,
    ) -> Self {
        let known = live.lock().unwrap_or_else(PoisonError::into_inner);
        // Of several addresses of a target the first has its page read.
        let mut paged = None;
        let watched = known.addresses().iter().map(|address| {
            let has_page = paged.replace(address.target_index) != Some(address.target_index);
            Watched {
                target_index: address.target_index,
                target: address.target.clone(),
                endpoint: address.endpoint.clone(),
                watch: TargetWatch::new(rules(config, address.target_index, has_page)),
                held: VecDeque::new(),
                told: None,
            }
        });
        let watched = watched.collect();
        let streams = known.streams().iter();
        let addresses = streams.map(|one| known.address(one.stream())).collect();
        drop(known);
        Self {
            anchor,
            live: Arc::clone(live),
            watched,
            addresses,
            identities: vec![Identity::default(); config.targets.len()],
            events,
        }
    }

    /// Adds a request that has ended: it says then how its target stands and whether it counts.
    /// Those of which it has become known that they do.
    pub(super) fn record(&mut self, record: &mut RequestRecord) -> Vec<Held> {
        let at = record.timeline.end.unwrap_or(record.timeline.intended);
        let Some(address) = self.address(record) else {
            return Vec::new();
        };
        let watch = &mut self.watched[address].watch;
        record.counts = watch.record(record);
        record.target_state = watch.state().map(|(state, _)| state);
        self.settle(address, at)
    }

    /// Holds a request that was told of and may count later.
    pub(super) fn hold(&mut self, held: Held) -> Vec<Held> {
        let address = self.address(&held.0.record);
        let Some(watched) = address.and_then(|at| self.watched.get_mut(at)) else {
            return vec![held];
        };
        watched.held.push_back(held);
        let over = watched.held.len().saturating_sub(MOST_HELD);
        watched.held.drain(..over).collect()
    }

    /// Adds a page that was read, of the first address of its target.
    pub(super) fn page(&mut self, sample: &Sample) -> Vec<Held> {
        let index = sample.target_index;
        if let Some(identity) = self.identities.get_mut(index) {
            let changed = identity.flags(&sample.page.info);
            self.mark(index, sample.at, changed);
        }
        let mut addresses = self.watched.iter();
        let Some(address) = addresses.position(|watched| watched.target_index == index) else {
            return Vec::new();
        };
        if self.watched[address].watch.page(sample) {
            let changed = (MarkKind::Restart, "its process began anew".to_owned());
            self.mark(index, sample.at, Some(changed));
        }
        self.settle(address, sample.at)
    }

    /// Adds what a server said it is.
    pub(super) fn identity(&mut self, sample: IdentitySample) {
        let index = sample.target_index;
        let Some(identity) = self.identities.get_mut(index) else {
            return;
        };
        let version = sample
            .version
            .and_then(|version| identity.version(&version));
        let models = sample.models.and_then(|models| identity.models(models));
        let [pod, image] = sample
            .pod
            .map_or([None, None], |described| identity.pod(&described));
        for changed in [version, models, pod, image] {
            self.mark(index, sample.at, changed);
        }
    }

    /// Adds what was read of a target's GPUs.
    pub(super) fn gpus(&mut self, sample: &GpuSample) {
        let index = sample.target_index;
        if let Some(identity) = self.identities.get_mut(index) {
            let changed = identity.gpu_pods(&sample.pods);
            self.mark(index, sample.at, changed);
        }
    }

    /// It is `now`.
    pub(super) fn tick(&mut self, now: MonoTime) -> Vec<Held> {
        let mut counted = Vec::new();
        for address in 0..self.watched.len() {
            self.watched[address].watch.tick(now);
            counted.extend(self.settle(address, now));
        }
        counted
    }

    /// All that are held: nobody will know more of them.
    pub(super) fn give_up(&mut self) -> Vec<Held> {
        let watched = self.watched.iter_mut();
        watched.flat_map(|watched| watched.held.drain(..)).collect()
    }

    /// Follows what was decided of an address, and tells how it stands if that is news.
    fn settle(&mut self, address: usize, at: MonoTime) -> Vec<Held> {
        let watched = &mut self.watched[address];
        let held = match watched.watch.decided() {
            None => Vec::new(),
            Some(Decided::Count) => watched.held.drain(..).collect(),
            Some(Decided::Excuse) => {
                let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
                for (observed, _) in watched.held.drain(..) {
                    live.excuse(&observed.record);
                }
                Vec::new()
            }
        };
        let state = watched.watch.state();
        let now = state.map(|(state, _)| state);
        if now == watched.told {
            return held;
        }
        let before = std::mem::replace(&mut watched.told, now);
        let (target, endpoint) = (watched.target.clone(), watched.endpoint.clone());
        self.live().stands(address, state);
        // One that serves from the beginning is no news.
        let is_news = before.is_some() || now != Some(TargetState::Serving);
        if let Some(state) = now.filter(|_| is_news) {
            tracing::info!(%target, %endpoint, state = state.name(), "the target's state");
            if let Some(events) = &self.events {
                events.tell(Event::Target {
                    at,
                    target,
                    endpoint,
                    state,
                });
            }
        }
        held
    }

    fn mark(&self, target_index: usize, at: MonoTime, changed: Option<Changed>) {
        let Some((kind, text)) = changed else { return };
        let of_target = |watched: &&Watched| watched.target_index == target_index;
        let Some(watched) = self.watched.iter().find(of_target) else {
            return;
        };
        let unix_ns = self.anchor.wall().unix_ns(at);
        let mark = Mark::new(unix_ns, Some(&watched.target), (kind, &text));
        tell(&self.live, self.events.as_ref(), mark);
    }

    fn address(&self, record: &RequestRecord) -> Option<usize> {
        *self.addresses.get(usize::from(record.stream.id.0))?
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps `mark`, and tells of it.
pub(super) fn tell(live: &Mutex<Live>, events: Option<&Events>, mark: Mark) {
    let target = mark.target.as_deref();
    tracing::info!(target, kind = mark.kind.name(), text = %mark.text, "a change");
    if let Some(events) = events {
        events.tell(Event::Mark(mark.clone()));
    }
    let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
    live.mark(mark);
}

/// What a start of a target may take. A page shows whether it was one, where it is read.
fn rules(config: &Config, target_index: usize, has_page: bool) -> StartRules {
    let Some(target) = config.targets.get(target_index) else {
        return StartRules::NONE;
    };
    let is_read = has_page && target.server_metrics != ServerMetrics::Off;
    StartRules {
        grace: target.start.grace,
        warm_up: target.start.warm_up,
        page_within: if is_read {
            target.server_metrics_every * SAMPLE_INTERVALS
        } else {
            std::time::Duration::ZERO
        },
    }
}
