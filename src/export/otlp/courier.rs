//! What the three signals have in common: a message is tried until its receiver takes it, refuses
//! it, or was asked often enough; and what became of its items is told.
//!
//! The first trouble of a row is logged and the first success after it; every failed try is
//! counted by its reason.

use std::time::Duration;

use tokio::time::Instant;

use super::answer::{Answer, Trouble};
use super::event::{Event, Events};
use super::retry::Backoff;
use super::sender::Sender;
use super::signal::Signal;
use crate::clock::TimeAnchor;
use crate::export::feed::{Fate, Paused, pause};
use crate::telemetry::ExportCounters;

/// A message and what it holds.
#[derive(Debug)]
pub(super) struct Parcel {
    /// In the encoding of the receiver's protocol.
    pub(super) message: Vec<u8>,
    /// Spans, data points or log records.
    pub(super) items: u64,
    /// No try begins after this; for ever, if none is set.
    pub(super) until: Option<Instant>,
}

/// Hands messages of one signal to its receiver.
#[derive(Debug)]
pub(super) struct Courier {
    pub(super) signal: Signal,
    pub(super) sender: Sender,
    pub(super) backoff: Backoff,
    pub(super) counters: ExportCounters,
    /// Who is told of changes of state, and on which clock.
    pub(super) told: Option<(Events, TimeAnchor)>,
    /// Whether the last message was given up or is being tried again.
    pub(super) failing: bool,
}

impl Courier {
    pub(super) fn new(signal: Signal, sender: Sender, counters: ExportCounters) -> Self {
        Self {
            signal,
            sender,
            backoff: Backoff::USUAL,
            counters,
            told: None,
            failing: false,
        }
    }

    fn tell(&self, trouble: Option<&Trouble>) {
        if let Some((events, anchor)) = &self.told {
            events.tell(Event::Exporter {
                at: anchor.now(),
                exporter: self.signal.exporter(),
                trouble: trouble.map(|trouble| (trouble.reason.name(), trouble.text.clone())),
            });
        }
    }

    /// Tries until the message is taken, hopeless, or tried often enough. Once `ended` holds, there
    /// is little time left: what waits is tried at once, and waits are short.
    pub(super) async fn deliver(
        &mut self,
        parcel: Parcel,
        ended: &(dyn Fn() -> bool + Sync),
    ) -> Fate {
        let Parcel {
            message,
            items,
            until,
        } = parcel;
        let packed = match self.sender.pack(message) {
            Ok(packed) => packed,
            Err(trouble) => return self.given_up(items, &trouble),
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let (after, trouble) = match self.sender.send(packed.clone()).await {
                Answer::Taken { rejected, message } => {
                    return self.taken(items, rejected, &message);
                }
                Answer::Hopeless { trouble } => return self.given_up(items, &trouble),
                Answer::TryAgain { after, trouble } => (after, trouble),
            };
            let wait = self.backoff.wait(tries, after);
            let late = |wait: &Duration| until.is_some_and(|end| Instant::now() + *wait >= end);
            match wait {
                Some(wait) if !late(&wait) => {
                    self.trouble(&trouble);
                    if pause(wait, ended).await == Paused::InputEnded {
                        // Long waits would outlast what time is left.
                        tries = 0;
                    }
                }
                _ => return self.given_up(items, &trouble),
            }
        }
    }

    fn taken(&mut self, items: u64, rejected: u64, message: &str) -> Fate {
        if self.failing {
            let (signal, what) = (self.signal.exporter(), self.signal.items());
            tracing::info!(exporter = signal, "the OTLP receiver takes {what} again");
            self.failing = false;
            self.tell(None);
        }
        let rejected = rejected.min(items);
        if rejected > 0 {
            let what = self.signal.items();
            tracing::debug!(rejected, message, "the OTLP receiver rejected {what}");
        }
        Fate {
            sent: items - rejected,
            rejected,
            failed: 0,
        }
    }

    pub(super) fn given_up(&mut self, items: u64, trouble: &Trouble) -> Fate {
        self.trouble(trouble);
        let what = self.signal.items();
        tracing::debug!(items, reason = trouble.text, "{what} were given up");
        Fate {
            failed: items,
            ..Fate::default()
        }
    }

    /// Counts a failed try, and logs the first of a row of them.
    fn trouble(&mut self, trouble: &Trouble) {
        self.counters.failed_try(trouble.reason.name());
        if !self.failing {
            let (signal, what) = (self.signal.exporter(), self.signal.items());
            let (kind, reason) = (trouble.reason.name(), &trouble.text);
            tracing::warn!(
                exporter = signal,
                kind,
                reason,
                "the OTLP receiver does not take {what}"
            );
            self.failing = true;
            self.tell(Some(trouble));
        }
    }
}
