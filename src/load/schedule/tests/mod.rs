//! Due times by hand, and what every schedule keeps to.

mod processes;
mod ramps;
mod statistics;

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::config::{Gaps, RatePoint};

fn at(ms: u64) -> MonoTime {
    MonoTime::from_nanos(ms * 1_000_000)
}

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// From the origin on, at midnight.
fn span(bounds: Bounds) -> Span {
    Span {
        start: MonoTime::ZERO,
        since_midnight: Duration::ZERO,
        bounds,
    }
}

fn first(count: u64) -> Bounds {
    Bounds {
        requests: Some(count),
        ..Bounds::default()
    }
}

fn seeded(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// All due times.
fn times(mut schedule: Schedule) -> Vec<MonoTime> {
    std::iter::from_fn(|| schedule.next(MonoTime::ZERO))
        .map(|arrival| arrival.intended)
        .collect()
}

/// The first `count` due times of `arrivals`.
fn open(arrivals: &Arrivals, seed: u64, count: u64) -> Vec<MonoTime> {
    times(Schedule::new(
        (arrivals, None),
        span(first(count)),
        seeded(seed),
    ))
}

/// Those in whole milliseconds, rounded down.
fn in_ms(times: &[MonoTime]) -> Vec<u64> {
    times.iter().map(|at| at.as_nanos() / 1_000_000).collect()
}

fn series(gaps: Gaps, points: &[(u64, f64)]) -> Arrivals {
    let points = points.iter().map(|(at, rate)| RatePoint {
        at: Duration::from_secs(*at),
        rate: *rate,
    });
    Arrivals::Series {
        gaps,
        points: points.collect(),
    }
}

/// One of each kind that has chance in it.
fn random_processes() -> Vec<Arrivals> {
    let gamma = Gaps::Gamma { smoothness: 0.5 };
    let mut rates = [1.0; 24];
    rates[0] = 3.0;
    vec![
        Arrivals::Poisson { rate: 5.0 },
        Arrivals::Gamma {
            rate: 5.0,
            smoothness: 0.25,
        },
        Arrivals::Jitter {
            every: ms(200),
            jitter: ms(80),
        },
        series(Gaps::Poisson, &[(0, 1.0), (60, 9.0), (120, 2.0)]),
        Arrivals::Diurnal {
            gaps: gamma,
            rates: std::sync::Arc::new(rates),
        },
    ]
}

#[test]
fn the_seed_decides_every_arrival_on_any_number_of_threads() {
    for process in random_processes() {
        let alone = open(&process, 1, 5_000);
        assert_ne!(alone, open(&process, 2, 5_000), "{process:?}");
        for threads in [1, 2, 7] {
            let found: Vec<Vec<MonoTime>> = std::thread::scope(|scope| {
                let running: Vec<_> = (0..threads)
                    .map(|_| scope.spawn(|| open(&process, 1, 5_000)))
                    .collect();
                let joined = running.into_iter().map(std::thread::ScopedJoinHandle::join);
                joined.map(|times| times.expect("no panic")).collect()
            });
            for times in found {
                assert_eq!(times, alone, "{process:?}");
            }
        }
    }
}

#[test]
fn nobody_can_be_late_enough_to_move_or_skip_an_arrival() {
    for process in random_processes() {
        let ask = |slot_free: MonoTime| {
            let of = (&process, None);
            let mut schedule = Schedule::new(of, span(first(500)), seeded(3));
            std::iter::from_fn(move || schedule.next(slot_free)).collect::<Vec<_>>()
        };
        assert_eq!(ask(MonoTime::ZERO), ask(at(3_600_000)), "{process:?}");
    }
}

#[test]
fn due_times_never_go_back() {
    for process in random_processes() {
        let times = open(&process, 11, 20_000);
        assert!(times.is_sorted(), "{process:?}");
    }
}

#[test]
fn a_span_ends_before_its_end() {
    let bounds = Bounds {
        duration: Some(ms(300)),
        ..Bounds::default()
    };
    let process = Arrivals::Constant { rate: 10.0 };
    let mut schedule = Schedule::new((&process, None), span(bounds), seeded(0));
    let times: Vec<_> = std::iter::from_fn(|| schedule.next(at(9_999))).collect();
    assert_eq!(
        times
            .iter()
            .map(|arrival| arrival.intended)
            .collect::<Vec<_>>(),
        [at(0), at(100), at(200)],
        "an arrival at the end belongs to the next span, and lateness skips none"
    );
}

#[test]
fn a_closed_loop_is_due_when_a_slot_is_free() {
    let bounds = Bounds {
        duration: Some(ms(50)),
        ..first(3)
    };
    let process = Arrivals::Closed { concurrency: 2 };
    let mut schedule = Schedule::new((&process, None), span(bounds), seeded(0));
    for due in [4, 9] {
        let arrival = schedule.next(at(due)).expect("it goes on");
        assert_eq!((arrival.intended, arrival.turn), (at(due), None));
    }
    assert_eq!(schedule.next(at(50)), None);
}

#[test]
fn a_request_without_a_session_is_a_session() {
    let bounds = Bounds {
        sessions: Some(4),
        ..first(9)
    };
    let process = Arrivals::Constant { rate: 1.0 };
    let schedule = Schedule::new((&process, None), span(bounds), seeded(0));
    assert_eq!(times(schedule).len(), 4);
}
