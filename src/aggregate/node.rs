//! The host of one target over time: shares of a window, from what it counts.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::MonoTime;
use crate::measurement::{NodeSample, NodeState};

/// Readings of one host that are kept.
const KEPT: usize = 512;

/// The latest readings of one host, ascending in time.
#[derive(Debug, Clone, Default)]
pub struct NodeHistory {
    states: VecDeque<(MonoTime, NodeState)>,
}

/// One host over a span of time, between its first and its last reading in it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NodeWindow {
    /// Seconds between these.
    pub covered_s: f64,
    /// Share of all processors that worked.
    pub cpu_busy: Option<f64>,
    /// Share of time in which some task waited for a processor.
    pub cpu_waiting: Option<f64>,
    /// Share of time in which some task waited for memory.
    pub memory_waiting: Option<f64>,
    /// Tasks that ran or wanted to, for each processor, at the end.
    pub load_per_cpu: Option<f64>,
    /// Share of memory that could be had at the end.
    pub memory_available: Option<f64>,
    /// Whether the host began anew in between; then there are no shares of time.
    pub restarted: bool,
}

impl NodeHistory {
    /// Adds the newest reading; one that is older than the newest is dropped.
    pub fn push(&mut self, sample: &NodeSample) {
        if self.states.back().is_some_and(|(at, _)| *at >= sample.at) {
            return;
        }
        if self.states.len() == KEPT {
            self.states.pop_front();
        }
        self.states.push_back((sample.at, sample.state));
    }

    /// When it was last read.
    #[must_use]
    pub fn last(&self) -> Option<MonoTime> {
        self.states.back().map(|(at, _)| *at)
    }

    /// From the last reading at or before `from` to the last one before `until`; `None` with fewer
    /// than two readings.
    #[must_use]
    pub fn window(&self, from: MonoTime, until: MonoTime) -> Option<NodeWindow> {
        let first = self.states.partition_point(|(at, _)| *at <= from);
        let after = self.states.partition_point(|(at, _)| *at < until);
        let (begin, before) = self.states.get(first.saturating_sub(1))?;
        let (end, now) = self.states.get(after.checked_sub(1)?)?;
        (end > begin).then(|| NodeWindow::between((end.since(*begin), before, now)))
    }

    /// Between the last two readings.
    #[must_use]
    pub fn latest(&self) -> Option<NodeWindow> {
        let mut last = self.states.iter().rev();
        let ((end, now), (begin, before)) = (last.next()?, last.next()?);
        Some(NodeWindow::between((end.since(*begin), before, now)))
    }
}

impl NodeWindow {
    fn between((span, before, now): (Duration, &NodeState, &NodeState)) -> Self {
        let seconds = span.as_secs_f64();
        // A boot time moves by what the clock is set by; a counter that falls is surer.
        let fell = |then: Option<f64>, now: Option<f64>| then.zip(now).is_some_and(|(a, b)| b < a);
        let restarted =
            fell(before.cpu_busy, now.cpu_busy) || fell(before.cpu_waiting, now.cpu_waiting);
        let grew = |then: Option<f64>, now: Option<f64>| {
            let share = (now? - then?) / seconds;
            (!restarted && share.is_finite()).then_some(share.max(0.0))
        };
        let busy = grew(before.cpu_busy, now.cpu_busy);
        let part = |part: Option<f64>, whole: Option<f64>| {
            let share = part? / whole?;
            share.is_finite().then_some(share)
        };
        Self {
            covered_s: seconds,
            cpu_busy: part(busy, now.cpus),
            cpu_waiting: grew(before.cpu_waiting, now.cpu_waiting),
            memory_waiting: grew(before.memory_waiting, now.memory_waiting),
            load_per_cpu: part(now.load, now.cpus),
            memory_available: part(now.memory_available, now.memory_total),
            restarted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> MonoTime {
        MonoTime::from_nanos(seconds * 1_000_000_000)
    }

    fn reading(at: u64, busy: f64, waiting: f64) -> NodeSample {
        NodeSample {
            target_index: 0,
            at: s(at),
            state: NodeState {
                cpus: Some(4.0),
                cpu_busy: Some(busy),
                cpu_waiting: Some(waiting),
                load: Some(6.0),
                memory_total: Some(100.0),
                memory_available: Some(25.0),
                ..NodeState::default()
            },
        }
    }

    #[test]
    fn shares_are_those_between_readings() {
        let mut history = NodeHistory::default();
        assert_eq!(history.latest(), None);
        for (at, busy, waiting) in [(0, 100.0, 5.0), (10, 120.0, 5.0), (20, 160.0, 12.0)] {
            history.push(&reading(at, busy, waiting));
        }
        let whole = history.window(s(0), s(30)).expect("three readings");
        assert_eq!(
            (whole.cpu_busy, whole.cpu_waiting),
            (Some(0.75), Some(0.35))
        );
        assert_eq!(
            (whole.load_per_cpu, whole.memory_available),
            (Some(1.5), Some(0.25))
        );
        assert_eq!((whole.memory_waiting, whole.restarted), (None, false));
        let last = history.latest().expect("two readings");
        assert_eq!((last.cpu_busy, last.cpu_waiting), (Some(1.0), Some(0.7)));
        assert_eq!(history.window(s(12), s(30)), Some(last));
        assert_eq!(history.window(s(25), s(30)), None, "one reading");
        assert_eq!(history.last(), Some(s(20)));
    }

    #[test]
    fn a_host_that_began_anew_has_no_shares() {
        let mut history = NodeHistory::default();
        history.push(&reading(0, 100.0, 5.0));
        history.push(&reading(10, 3.0, 0.0));
        history.push(&reading(5, 1.0, 0.0));
        let window = history.latest().expect("two readings");
        assert!(window.restarted);
        assert_eq!((window.cpu_busy, window.cpu_waiting), (None, None));
        assert_eq!(window.load_per_cpu, Some(1.5), "that is now");
    }
}
