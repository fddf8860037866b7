//! Due times of processes without chance, and of the fixed part of others, by hand.

use std::sync::Arc;

use super::*;

#[test]
fn constant_arrivals_do_not_accumulate_rounding() {
    let start = Span {
        start: at(500),
        ..span(first(3_000_001))
    };
    let process = Arrivals::Constant { rate: 3.0 };
    let times = times(Schedule::new((&process, None), start, seeded(0)));
    assert_eq!(times[..2], [at(500), MonoTime::from_nanos(833_333_333)]);
    assert_eq!(times[3_000_000], at(1_000_000_500));
}

#[test]
fn bursts_come_together_and_on_time() {
    let process = Arrivals::Burst {
        size: 3,
        every: ms(1_500),
    };
    let times = in_ms(&open(&process, 0, 8));
    assert_eq!(times, [0, 0, 0, 1_500, 1_500, 1_500, 3_000, 3_000]);
}

#[test]
fn jitter_stays_around_a_grid_that_does_not_drift() {
    let process = Arrivals::Jitter {
        every: ms(1_000),
        jitter: ms(200),
    };
    let times = open(&process, 5, 100_000);
    for (k, due) in (0..).zip(&times) {
        let late = due.since(at(1_000 * k));
        assert!(*due >= at(1_000 * k) && late < ms(400), "{k}: {late:?}");
    }
}

#[test]
fn a_series_follows_its_lines_exactly() {
    // 1/s for 10 s, then rising to 3/s within 10 s, then 3/s: 10, 20 and 3 per second.
    let process = series(Gaps::Constant, &[(10, 1.0), (20, 3.0)]);
    let times = in_ms(&open(&process, 0, 34));
    assert_eq!(
        times[..11],
        [
            0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 10_000
        ]
    );
    // In the rise t + t²/10 arrivals are over: of 5 at (−1 + √3)·5 s, of 20 at 10 s.
    assert_eq!(times[15], 13_660);
    assert_eq!(times[30], 20_000);
    assert_eq!(times[31], 20_333);
    assert_eq!(times[33], 21_000);
}

#[test]
fn a_series_may_begin_and_end_at_nothing() {
    // t²/10 arrivals up to 10 s, and as many on the way down: 20 in all, then none.
    let process = series(Gaps::Constant, &[(0, 0.0), (10, 2.0), (20, 0.0)]);
    let times = in_ms(&open(&process, 0, 100));
    assert_eq!(times.len(), 20);
    assert_eq!(times[0], 0);
    // The tenth is over where 10 arrivals are, at 10 s; the fourth at √40 s.
    assert_eq!((times[4], times[10]), (6_324, 10_000));
    // The last at 20 − √10 s.
    assert_eq!(times[19], 16_837);
}

#[test]
fn a_step_in_a_series_is_a_step() {
    // 1/s until 5 s, then 4/s at once.
    let process = series(Gaps::Constant, &[(0, 1.0), (5, 1.0), (5, 4.0)]);
    let times = in_ms(&open(&process, 0, 9));
    assert_eq!(
        times,
        [0, 1_000, 2_000, 3_000, 4_000, 5_000, 5_250, 5_500, 5_750]
    );
}

#[test]
fn a_day_has_the_rate_of_each_hour() {
    let mut rates = [0.0; 24];
    // One an hour from 22:00 to 23:00, four from 1:00 to 2:00; nothing else.
    rates[22] = 1.0 / 3_600.0;
    rates[1] = 4.0 / 3_600.0;
    let process = Arrivals::Diurnal {
        gaps: Gaps::Constant,
        rates: Arc::new(rates),
    };
    let evening = Span {
        since_midnight: Duration::from_mins(22 * 60 + 30),
        ..span(first(8))
    };
    let times = times(Schedule::new((&process, None), evening, seeded(0)));
    let minutes: Vec<u64> = in_ms(&times).iter().map(|ms| (ms + 1) / 60_000).collect();
    // At 22:30 at once; half an arrival is over at 23:00, a whole one when 1:00 is 7.5 minutes
    // past; then every 15 minutes until 2:00, when half of one is left again.
    assert_eq!(minutes, [0, 157, 172, 187, 202, 1_440, 1_597, 1_612]);
}

#[test]
fn users_take_turns_and_are_of_all_ages_at_the_start() {
    let process = Arrivals::Users {
        users: 4,
        rate: 2.0,
        turns: Some(8),
    };
    let mut schedule = Schedule::new((&process, None), span(first(30)), seeded(0));
    let arrivals: Vec<Arrival> = std::iter::from_fn(|| schedule.next(MonoTime::ZERO)).collect();
    // One every half second; each user has a turn every 2 s.
    for (k, arrival) in (0..).zip(&arrivals) {
        assert_eq!(arrival.intended, at(500 * k));
    }
    let turn = |index: usize| {
        let turn = arrivals[index].turn.expect("it has a user");
        (turn.session, turn.turn, turn.last)
    };
    // Behind them are 0, 2, 4 and 6 of 8 turns.
    let found: Vec<_> = (0..8).map(turn).collect();
    assert_eq!(
        found,
        [
            (0, 0, false),
            (1, 2, false),
            (2, 4, false),
            (3, 6, false),
            (0, 1, false),
            (1, 3, false),
            (2, 5, false),
            (3, 7, true),
        ]
    );
    assert_eq!(turn(11), (4, 0, false), "another one takes the place");
    assert_eq!(turn(14), (2, 7, true));
    assert_eq!(turn(18), (5, 0, false));
    assert_eq!(turn(28), (0, 7, true), "the first had all eight");
}

#[test]
fn no_more_users_begin_than_may_and_those_finish() {
    let process = Arrivals::Users {
        users: 2,
        rate: 1.0,
        turns: Some(3),
    };
    let bounds = Bounds {
        sessions: Some(3),
        ..Bounds::default()
    };
    let mut schedule = Schedule::new((&process, None), span(bounds), seeded(0));
    let turns: Vec<_> = std::iter::from_fn(|| schedule.next(MonoTime::ZERO))
        .map(|arrival| {
            let turn = arrival.turn.expect("it has a user");
            (
                arrival.intended.as_nanos() / 1_000_000_000,
                turn.session,
                turn.turn,
            )
        })
        .collect();
    // User 1 has one turn behind it. User 2 takes its place; nobody that of user 0.
    assert_eq!(
        turns,
        [
            (0, 0, 0),
            (1, 1, 1),
            (2, 0, 1),
            (3, 1, 2),
            (4, 0, 2),
            (5, 2, 0),
            (7, 2, 1),
            (9, 2, 2)
        ]
    );
}

/// Recorded at 2, 3, 3, 10, 10.5, 30 and 31 s, played by `replay`.
fn played(replay: Replay) -> Vec<u64> {
    let recorded = [2_000, 3_000, 3_000, 10_000, 10_500, 30_000, 31_000];
    let process = Arrivals::Fixed {
        times: recorded.map(ms).into(),
        replay,
    };
    in_ms(&open(&process, 0, 100))
}

#[test]
fn a_recording_is_played_as_it_was_recorded() {
    let plain = Replay::default();
    assert_eq!(
        played(plain),
        [0, 1_000, 1_000, 8_000, 8_500, 28_000, 29_000]
    );
    let unshifted = Replay {
        shift: false,
        ..plain
    };
    assert_eq!(
        played(unshifted),
        [2_000, 3_000, 3_000, 10_000, 10_500, 30_000, 31_000]
    );
    let window = Replay {
        from: Some(ms(3_000)),
        to: Some(ms(10_500)),
        ..plain
    };
    assert_eq!(
        played(window),
        [0, 0, 7_000, 7_500],
        "both ends belong to it"
    );
    let late = Replay {
        from: Some(ms(4_000)),
        shift: false,
        ..plain
    };
    assert_eq!(played(late), [6_000, 6_500, 26_000, 27_000]);
}

#[test]
fn speed_and_capped_gaps_go_together() {
    let replay = Replay {
        gap_cap: Some(ms(5_000)),
        ..Replay::default()
    };
    assert_eq!(
        played(replay),
        [0, 1_000, 1_000, 6_000, 6_500, 11_500, 12_500]
    );
    let fast = Replay {
        speed: 10.0,
        ..replay
    };
    assert_eq!(played(fast), [0, 100, 100, 600, 650, 1_150, 1_250]);
    let slow = Replay {
        speed: 0.5,
        ..Replay::default()
    };
    assert_eq!(
        played(slow),
        [0, 2_000, 2_000, 16_000, 17_000, 56_000, 58_000]
    );
}

#[test]
fn a_recording_that_goes_back_keeps_its_order() {
    let times: Times = Box::new([5_000, 4_000, 6_000].map(ms).into_iter());
    let schedule = Schedule::recorded((times, Replay::default()), span(Bounds::default()));
    assert_eq!(in_ms(&super::times(schedule)), [0, 0, 1_000]);
}

#[test]
fn an_endless_recording_is_read_as_it_is_needed() {
    let times: Times = Box::new((0_u64..).map(ms));
    let mut schedule = Schedule::recorded((times, Replay::default()), span(Bounds::default()));
    assert_eq!(
        schedule.next(MonoTime::ZERO).map(|one| one.intended),
        Some(at(0))
    );
    assert_eq!(
        schedule.next(MonoTime::ZERO).map(|one| one.intended),
        Some(at(1))
    );
}
