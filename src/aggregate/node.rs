//! The host of one target over time: shares of a window, from what it counts.

use std::collections::VecDeque;

use crate::clock::MonoTime;
use crate::measurement::{MemoryPlaces, NodeSample, ProcessGroup, ProcessState};

/// Readings of one host that are kept.
const KEPT: usize = 512;

/// The latest readings of one host, ascending in time.
#[derive(Debug, Clone, Default)]
pub struct NodeHistory {
    readings: VecDeque<NodeSample>,
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
    /// Share of the memory given out that came from another memory node than was wanted.
    pub off_wanted: Option<f64>,
    /// Share of it that came from another node than the task ran on.
    pub off_task: Option<f64>,
    /// Whether the host began anew in between; then there are no shares of time.
    pub restarted: bool,
    /// The server's processes, where they were found at both ends and are the same.
    pub process: Option<ProcessWindow>,
}

/// The control group of a server's processes over a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessWindow {
    /// Share of the periods of its limit in which it was held back.
    pub throttled: Option<f64>,
    /// Processors that it may use at the end; `None`: all.
    pub cpu_limit: Option<f64>,
    /// Share of time in which some task of it waited for a processor.
    pub cpu_waiting: Option<f64>,
    /// Share of time in which some task of it waited for memory.
    pub memory_waiting: Option<f64>,
}

impl NodeHistory {
    /// Adds the newest reading; one that is older than the newest is dropped.
    pub fn push(&mut self, sample: &NodeSample) {
        if self
            .readings
            .back()
            .is_some_and(|last| last.at >= sample.at)
        {
            return;
        }
        if self.readings.len() == KEPT {
            self.readings.pop_front();
        }
        self.readings.push_back(sample.clone());
    }

    /// When it was last read.
    #[must_use]
    pub fn last(&self) -> Option<MonoTime> {
        self.readings.back().map(|last| last.at)
    }

    /// From the last reading at or before `from` to the last one before `until`; `None` with fewer
    /// than two readings.
    #[must_use]
    pub fn window(&self, from: MonoTime, until: MonoTime) -> Option<NodeWindow> {
        let first = self.readings.partition_point(|one| one.at <= from);
        let after = self.readings.partition_point(|one| one.at < until);
        let before = self.readings.get(first.saturating_sub(1))?;
        let now = self.readings.get(after.checked_sub(1)?)?;
        (now.at > before.at).then(|| NodeWindow::between(before, now))
    }

    /// Between the last two readings.
    #[must_use]
    pub fn latest(&self) -> Option<NodeWindow> {
        let mut last = self.readings.iter().rev();
        let (now, before) = (last.next()?, last.next()?);
        Some(NodeWindow::between(before, now))
    }

    /// The server's processes at the last reading, if they were found.
    #[must_use]
    pub fn process(&self) -> Option<&ProcessState> {
        self.readings.back()?.process.as_deref()
    }
}

impl NodeWindow {
    fn between(first: &NodeSample, last: &NodeSample) -> Self {
        let seconds = last.at.since(first.at).as_secs_f64();
        let (before, now) = (&first.state, &last.state);
        // A boot time moves by what the clock is set by; a counter that falls is surer.
        let fell = |then: Option<f64>, now: Option<f64>| then.zip(now).is_some_and(|(a, b)| b < a);
        let restarted =
            fell(before.cpu_busy, now.cpu_busy) || fell(before.cpu_waiting, now.cpu_waiting);
        let grew = |then: Option<f64>, now: Option<f64>| {
            let share = (now? - then?) / seconds;
            (!restarted && share.is_finite()).then_some(share.max(0.0))
        };
        let busy = grew(before.cpu_busy, now.cpu_busy);
        let places = before.memory_places.zip(now.memory_places);
        let places = places.filter(|_| !restarted);
        let off = |there: fn(&MemoryPlaces) -> f64, off: fn(&MemoryPlaces) -> f64| {
            let (before, now) = places?;
            part_of((off(&before), off(&now)), (there(&before), there(&now)))
        };
        Self {
            covered_s: seconds,
            cpu_busy: share(busy, now.cpus),
            cpu_waiting: grew(before.cpu_waiting, now.cpu_waiting),
            memory_waiting: grew(before.memory_waiting, now.memory_waiting),
            load_per_cpu: share(now.load, now.cpus),
            memory_available: share(now.memory_available, now.memory_total),
            off_wanted: off(|all| all.hit, |all| all.miss),
            off_task: off(|all| all.local, |all| all.other),
            restarted,
            process: ProcessWindow::between(first, last),
        }
    }
}

impl ProcessWindow {
    /// `None` where the server began anew in between.
    fn between(first: &NodeSample, last: &NodeSample) -> Option<Self> {
        let seconds = last.at.since(first.at).as_secs_f64();
        let both = first.process.as_deref().zip(last.process.as_deref());
        let same = |(then, now): &(&ProcessState, &ProcessState)| then.pid == now.pid;
        let (before, now) = both.filter(same)?;
        let grew = |of: fn(&ProcessGroup) -> Option<f64>| {
            let more = of(&now.group)? - of(&before.group)?;
            (more >= 0.0).then_some(more)
        };
        let over_time = |of| share(grew(of), Some(seconds));
        Some(Self {
            throttled: share(
                grew(|group| group.throttled_periods),
                grew(|group| group.periods),
            ),
            cpu_limit: now.group.cpu_limit,
            cpu_waiting: over_time(|group| group.cpu_waiting),
            memory_waiting: over_time(|group| group.memory_waiting),
        })
    }
}

/// `part` of `whole`; `None` if there is no whole.
fn share(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let share = part? / whole?;
    share.is_finite().then_some(share)
}

/// How much of what came between two readings is of one of two kinds.
fn part_of(one: (f64, f64), other: (f64, f64)) -> Option<f64> {
    let (one, other) = (one.1 - one.0, other.1 - other.0);
    let is_sum = one >= 0.0 && other >= 0.0;
    share(Some(one).filter(|_| is_sum), Some(one + other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::NodeState;

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
            process: None,
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

    fn with_process(at: u64, pid: u32, [periods, throttled]: [f64; 2]) -> NodeSample {
        let group = ProcessGroup {
            periods: Some(periods),
            throttled_periods: Some(throttled),
            cpu_waiting: Some(throttled / 10.0),
            cpu_limit: Some(2.0),
            ..ProcessGroup::default()
        };
        let process = ProcessState {
            pid,
            group,
            ..ProcessState::default()
        };
        NodeSample {
            process: Some(Box::new(process)),
            ..reading(at, 100.0, 5.0)
        }
    }

    #[test]
    fn a_server_is_held_back_in_a_share_of_the_periods_between_readings() {
        let window = |readings: &[NodeSample]| {
            let mut history = NodeHistory::default();
            for one in readings {
                history.push(one);
            }
            history.latest().expect("two readings").process
        };
        let expected = ProcessWindow {
            throttled: Some(0.25),
            cpu_limit: Some(2.0),
            cpu_waiting: Some(0.25),
            memory_waiting: None,
        };
        let first = with_process(0, 7, [1_000.0, 10.0]);
        let second = with_process(10, 7, [1_100.0, 35.0]);
        assert_eq!(window(&[first.clone(), second.clone()]), Some(expected));
        // Another process, none, counters that fell, no period in between.
        let other = with_process(10, 8, [1_100.0, 35.0]);
        for (before, now) in [
            (&first, &other),
            (&reading(0, 1.0, 1.0), &second),
            (&first, &reading(10, 1.0, 1.0)),
        ] {
            let both = [before.clone(), now.clone()];
            assert_eq!(window(&both), None);
        }
        let throttled = |now| window(&[first.clone(), now])?.throttled;
        assert_eq!(throttled(second.clone()), Some(0.25));
        assert_eq!(throttled(with_process(10, 7, [50.0, 5.0])), None);
        assert_eq!(throttled(with_process(10, 7, [1_000.0, 10.0])), None);
    }

    #[test]
    fn memory_from_elsewhere_is_a_share_of_what_was_given_out_since() {
        let with = |at, [hit, miss, local, other]: [f64; 4]| {
            let mut sample = reading(at, 100.0, 5.0);
            sample.state.memory_places = Some(MemoryPlaces {
                hit,
                miss,
                local,
                other,
            });
            sample
        };
        let shares = |before, now| {
            let mut history = NodeHistory::default();
            history.push(&with(0, before));
            history.push(&with(10, now));
            let window = history.latest().expect("two readings");
            (window.off_wanted, window.off_task)
        };
        let before = [1_000.0, 50.0, 900.0, 150.0];
        assert_eq!(
            shares(before, [1_090.0, 60.0, 960.0, 190.0]),
            (Some(0.1), Some(0.4))
        );
        assert_eq!(
            shares(before, before),
            (None, None),
            "nothing was given out"
        );
        assert_eq!(shares(before, [1_090.0, 40.0, 960.0, 190.0]).0, None);
    }
}
