//! How one address of a target stands, and which of its requests count.
//!
//! A server that is started anew refuses connections for minutes, and its first answers are slow.
//! Neither is a fault of the service that is watched, if it was a start; if it was an outage, it
//! is one. Which of the two it was shows later, on the server's page. Until then the failures are
//! held: they count from the moment at which it is known that they do, or once they have lasted
//! longer than a start may.

use std::time::Duration;

use crate::aggregate::server::JITTER;
use crate::clock::MonoTime;
use crate::measurement::server::CounterRole;
use crate::measurement::{Counts, Outcome, RefusedReason, RequestRecord, Sample, TargetState};

/// Failures in a row after which a target is down.
const DOWN_AFTER: u32 = 3;

/// Streams that break off for so long are no stop of a server.
const CUTS: Duration = Duration::from_secs(5);
/// Pages that a counter has to stay below what it fell from.
const FALLEN_FOR: u32 = 5;

/// What a start may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartRules {
    /// Failures of a start count for nobody for this long; zero: all failures count at once.
    pub grace: Duration,
    /// So many requests after a start feed nothing.
    pub warm_up: u32,
    /// A page that was to show whether it was a start is waited for so long.
    pub page_within: Duration,
}

impl StartRules {
    /// Whatever fails counts, and the first answers as all others.
    pub const NONE: Self = Self {
        grace: Duration::ZERO,
        warm_up: 0,
        page_within: Duration::ZERO,
    };
}

/// What becomes of those that were held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// It was an outage: they count.
    Count,
    /// It was a start: they do not.
    Excuse,
}

/// What of a page tells one process from the next.
#[derive(Debug, Clone, Copy)]
struct Process {
    /// When it started, in seconds since the Unix epoch.
    start: Option<f64>,
    /// Tokens since then.
    tokens: Option<f64>,
}

impl Process {
    fn of(sample: &Sample) -> Self {
        let totals = &sample.page.totals;
        let tokens = [CounterRole::PromptTokens, CounterRole::GenerationTokens];
        let tokens = tokens.into_iter().filter_map(|role| totals.counter(role));
        Self {
            start: totals.process_start,
            tokens: tokens.reduce(|a, b| a + b),
        }
    }

    const fn tells(self) -> bool {
        self.start.is_some() || self.tokens.is_some()
    }

    /// Whether `now` is of a later process. Behind a load balancer the starts of several
    /// processes come in turn: the newest that was ever seen is kept.
    fn is_before(self, now: Self) -> bool {
        matches!((self.start, now.start), (Some(before), Some(now)) if now > before + JITTER)
    }

    /// The same by what was counted, where no start is told: of itself it means something only if
    /// the server was away in between.
    fn has_fallen(self, now: Self) -> bool {
        let untold = self.start.is_none() || now.start.is_none();
        untold && matches!((self.tokens, now.tokens), (Some(before), Some(now)) if now < before)
    }
}

/// Counters that fell though the server did not seem to be away: it restarted between two of our
/// requests, or another process answers.
#[derive(Debug, Clone, Copy, Default)]
struct Fall {
    /// What they fell from, and on how many pages they have been below since.
    from: Option<(f64, u32)>,
    /// They came back: several processes answer in turn, and falls mean nothing.
    is_in_turn: bool,
}

impl Fall {
    /// Adds a page; says whether it is clear by now that there is a new process.
    fn page(&mut self, (before, now): (Process, Process), has_fallen: bool) -> bool {
        let (Some(before), Some(now)) = (before.tokens, now.tokens) else {
            return false;
        };
        match &mut self.from {
            _ if self.is_in_turn => {}
            Some((from, _)) if now >= *from => {
                *self = Self {
                    from: None,
                    is_in_turn: true,
                };
            }
            Some((_, pages)) => {
                *pages += 1;
                if *pages == FALLEN_FOR {
                    self.from = None;
                    return true;
                }
            }
            None if has_fallen => self.from = Some((before, 1)),
            None => {}
        }
        false
    }
}

/// A time in which the target could not be reached, and nobody knows yet why.
#[derive(Debug, Clone, Copy)]
struct Absence {
    /// When the first of its requests was due.
    since: MonoTime,
    /// When that one ended.
    seen: MonoTime,
    /// A start is certain.
    is_start: bool,
    /// The page has shown it already.
    is_shown: bool,
    /// It was away, and did not only cut streams.
    is_away: bool,
    /// When it answered again, and how many requests since.
    back: Option<(MonoTime, u32)>,
}

/// Watches one address of a target.
#[derive(Debug, Clone)]
pub struct TargetWatch {
    rules: StartRules,
    state: Option<TargetState>,
    since: MonoTime,
    /// Whether it ever answered.
    answered: bool,
    /// Failures since the last good answer.
    failed: u32,
    absence: Option<Absence>,
    /// The absence has lasted longer than a start may.
    overdue: bool,
    /// Requests that still belong to the last start.
    warming: u32,
    process: Option<Process>,
    /// A start was recognised that the page has not shown yet.
    begun: bool,
    fall: Fall,
    /// When the page showed a later process last.
    shown: Option<MonoTime>,
    /// When the last start was over that only the server's word showed.
    told: Option<MonoTime>,
    decided: Option<Decided>,
}

impl TargetWatch {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new(rules: StartRules) -> Self {
        Self {
            rules,
            state: None,
            since: MonoTime::ZERO,
            answered: false,
            failed: 0,
            absence: None,
            overdue: false,
            warming: 0,
            process: None,
            begun: false,
            fall: Fall {
                from: None,
                is_in_turn: false,
            },
            shown: None,
            told: None,
            decided: None,
        }
    }

    /// How it stands, and since when; `None` before the first request has ended.
    #[must_use]
    pub fn state(&self) -> Option<(TargetState, MonoTime)> {
        Some((self.state?, self.since))
    }

    /// What becomes of all that were held, if that was decided since this was asked last. To be
    /// asked after each request, page and tick, and followed before the next request is.
    #[must_use]
    pub const fn decided(&mut self) -> Option<Decided> {
        self.decided.take()
    }

    /// Adds a request that has ended, and says what becomes of it.
    pub fn record(&mut self, record: &RequestRecord) -> Counts {
        let at = record.timeline.end.unwrap_or(record.timeline.intended);
        match record.outcome {
            Outcome::Refused => self.held_back(record),
            Outcome::Cancelled => Counts::Now,
            Outcome::Ok if self.is_of_before(record) => Counts::Now,
            Outcome::Ok => self.good(at),
            _ => self.bad(record, at),
        }
    }

    /// An arrival that found all places taken by requests to a server that is away.
    fn held_back(&self, record: &RequestRecord) -> Counts {
        match self.absence {
            Some(absence) if record.refused == Some(RefusedReason::InFlight) => {
                if absence.is_start && self.answered {
                    Counts::Never
                } else {
                    Counts::Later
                }
            }
            _ => Counts::Now,
        }
    }

    /// Whether it was sent before the server went: a good answer to it shows no return.
    fn is_of_before(&self, record: &RequestRecord) -> bool {
        let sent = record.timeline.start.unwrap_or(record.timeline.intended);
        self.absence.is_some_and(|absence| sent < absence.seen)
    }

    fn good(&mut self, at: MonoTime) -> Counts {
        self.answered = true;
        self.failed = 0;
        self.overdue = false;
        let Some(absence) = &mut self.absence else {
            return self.warm(at);
        };
        if absence.is_start {
            self.begun = !absence.is_shown;
            if self.begun {
                self.told = Some(at);
            }
            self.decide(Decided::Excuse, 0);
            return self.warm(at);
        }
        let can_tell = self.process.is_some_and(Process::tells);
        let is_away = absence.is_away;
        let (_, requests) = absence.back.get_or_insert((at, 0));
        if !can_tell || self.rules.page_within.is_zero() {
            self.decide(Decided::Count, 0);
            return self.warm(at);
        }
        *requests = requests.saturating_add(1);
        if *requests > self.rules.warm_up {
            // Those that came later are warm whatever it was.
            self.stand(TargetState::Serving, at);
            return Counts::Now;
        }
        if is_away {
            self.stand(TargetState::Warming, at);
        }
        Counts::Later
    }

    /// A good answer while it is known what is going on.
    fn warm(&mut self, at: MonoTime) -> Counts {
        if self.warming == 0 {
            self.stand(TargetState::Serving, at);
            return Counts::Now;
        }
        self.warming -= 1;
        self.stand(TargetState::Warming, at);
        Counts::Never
    }

    fn bad(&mut self, record: &RequestRecord, at: MonoTime) -> Counts {
        self.failed = self.failed.saturating_add(1);
        let counts = self.failure(record, at);
        let is_start = self.absence.is_some_and(|absence| absence.is_start);
        if is_start || self.state.is_none() {
            self.stand(TargetState::Starting, at);
        } else if self.failed >= DOWN_AFTER {
            let is_gone = record.outcome == Outcome::Dns;
            let state = if is_gone {
                TargetState::Gone
            } else {
                TargetState::Down
            };
            self.stand(state, at);
        }
        counts
    }

    fn failure(&mut self, record: &RequestRecord, at: MonoTime) -> Counts {
        let Some(away) = away(record) else {
            // It answers, and badly; or it is silent.
            if self.warming > 0 {
                self.warming -= 1;
                return Counts::Never;
            }
            return Counts::Now;
        };
        if self.rules.grace.is_zero() || self.overdue {
            return Counts::Now;
        }
        let sent = record.timeline.start.unwrap_or(record.timeline.intended);
        if self.absence.is_none() && self.shown.is_some_and(|shown| sent < shown) {
            // It was under way while the process changed.
            return Counts::Never;
        }
        // One that says so again and again without beginning anew is not starting.
        let grace = self.rules.grace;
        let is_believed = self.told.is_none_or(|told| at.since(told) > grace);
        let never_answered = !self.answered;
        let absence = self.absence.get_or_insert(Absence {
            since: record.timeline.intended,
            seen: at,
            is_start: never_answered,
            is_shown: false,
            is_away: false,
            back: None,
        });
        absence.is_away |= away != Away::Cut;
        absence.is_start |= away == Away::Loading && is_believed;
        let (is_start, only_cut) = (absence.is_start, !absence.is_away);
        let is_overdue = at.since(absence.since) > self.rules.grace;
        let cut_long = only_cut && at.since(absence.seen) > CUTS;
        if is_overdue || (cut_long && self.failed >= DOWN_AFTER) {
            self.overdue = is_overdue;
            self.decide(Decided::Count, 0);
            return Counts::Now;
        }
        if is_start && self.answered {
            self.decided = Some(Decided::Excuse);
            return Counts::Never;
        }
        // Of one that never answered: it counts if it never will.
        Counts::Later
    }

    /// Adds a page that was read; says whether it is of a later process than the one before.
    pub fn page(&mut self, sample: &Sample) -> bool {
        let now = Process::of(sample);
        let before = self.process.unwrap_or(now);
        let away = self.absence.filter(|absence| absence.since <= sample.asked);
        let is_known = std::mem::take(&mut self.begun);
        let has_fallen = before.has_fallen(now) && !self.fall.is_in_turn;
        let is_later = before.is_before(now) || (has_fallen && (is_known || away.is_some()));
        let unseen = self.fall.page((before, now), has_fallen && !is_later);
        self.process = Some(Process {
            start: match (before.start, now.start) {
                (Some(before), Some(now)) => Some(before.max(now)),
                (before, now) => now.or(before),
            },
            tokens: now.tokens,
        });
        if is_later {
            self.shown = Some(sample.at);
        }
        match (away, is_later) {
            (Some(Absence { back, .. }), true) => {
                if let Some((_, requests)) = back {
                    self.decide(Decided::Excuse, requests);
                } else {
                    self.decided = Some(Decided::Excuse);
                    self.absence = away.map(|absence| Absence {
                        is_start: true,
                        is_shown: true,
                        ..absence
                    });
                    self.stand(TargetState::Starting, sample.at);
                }
            }
            (
                Some(Absence {
                    back: Some((back, _)),
                    ..
                }),
                false,
            ) if sample.asked >= back => {
                self.decide(Decided::Count, 0);
                self.serve(sample.at);
            }
            // The server is there, and its streams break off.
            (Some(absence), false) if !absence.is_away && sample.asked >= absence.seen => {
                self.decide(Decided::Count, 0);
            }
            (None, true) if !is_known => self.warming = self.rules.warm_up,
            _ => {}
        }
        is_later || unseen
    }

    /// It is `now`.
    pub fn tick(&mut self, now: MonoTime) {
        let Some(absence) = self.absence else { return };
        match absence.back {
            Some((back, _)) if now.since(back) > self.rules.page_within => {
                self.decide(Decided::Count, 0);
                self.serve(now);
            }
            None if now.since(absence.since) > self.rules.grace => {
                self.overdue = true;
                self.decide(Decided::Count, 0);
                if self.failed >= DOWN_AFTER && self.state == Some(TargetState::Starting) {
                    self.stand(TargetState::Down, now);
                }
            }
            _ => {}
        }
    }

    /// The absence is explained; after a start, `warmed` requests of its warm-up have been.
    fn decide(&mut self, decided: Decided, warmed: u32) {
        self.absence = None;
        self.decided = Some(decided);
        if decided == Decided::Excuse {
            self.warming = self.rules.warm_up.saturating_sub(warmed);
        }
    }

    /// It answers again, as far as the last requests say so.
    fn serve(&mut self, at: MonoTime) {
        if self.failed < DOWN_AFTER {
            self.stand(TargetState::Serving, at);
        }
    }

    fn stand(&mut self, state: TargetState, at: MonoTime) {
        if self.state != Some(state) {
            (self.state, self.since) = (Some(state), at);
        }
    }
}

/// How a server that stops or starts looks to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Away {
    /// There is nobody.
    Absent,
    /// There is somebody who says that the model is being loaded.
    Loading,
    /// The answer broke off.
    Cut,
}

fn away(record: &RequestRecord) -> Option<Away> {
    match (record.outcome, record.http_status) {
        (Outcome::HttpStatus, Some(503)) if says_loading(record) => Some(Away::Loading),
        // The last is what a gateway says of a server that is not there.
        (Outcome::Dns | Outcome::Connect | Outcome::TimeoutConnect, _)
        | (Outcome::HttpStatus, Some(502..=504)) => Some(Away::Absent),
        (Outcome::StreamCut, _) => Some(Away::Cut),
        _ => None,
    }
}

/// Whether it has the word in its message; "downloading" and "offloading" are others.
fn says_loading(record: &RequestRecord) -> bool {
    let said = record.error.as_ref().map(|error| &*error.message);
    let mut words = said
        .unwrap_or_default()
        .split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| word.eq_ignore_ascii_case("loading"))
}
