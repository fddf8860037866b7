//! What others met, each named after its row in the list of bug reports.

use super::*;

#[test]
fn row_10_gauges_that_stay_after_a_mass_abort_are_frozen() {
    let stale = |at| {
        page(at, |state, totals| {
            state.running = Some(32.0);
            state.kv_usage = Some(0.99);
            totals.set_counter(CounterRole::GenerationTokens, Some(9_000.0));
        })
    };
    let frozen = history((0..20).map(|n| stale(n * 1_000)));
    assert!(
        frozen
            .window(ms(9_000), ms(19_000))
            .has(ServerMark::FrozenGauges)
    );
    assert!(
        !frozen
            .window(ms(0), ms(10_000))
            .has(ServerMark::FrozenGauges),
        "not yet"
    );
    let works = history((0..20_u32).map(|n| {
        page(u64::from(n) * 1_000, |state, totals| {
            state.running = Some(32.0);
            state.kv_usage = Some(0.99);
            totals.set_counter(CounterRole::GenerationTokens, Some(9_000.0 + f64::from(n)));
        })
    }));
    assert!(
        !works
            .window(ms(9_000), ms(19_000))
            .has(ServerMark::FrozenGauges)
    );
    let idle = history((0..20).map(|n| {
        page(n * 1_000, |state, _| {
            state.running = Some(0.0);
            state.kv_usage = Some(0.0);
        })
    }));
    assert!(
        !idle
            .window(ms(9_000), ms(19_000))
            .has(ServerMark::FrozenGauges),
        "idle"
    );
}

#[test]
fn row_11_and_34_twice_our_requests_is_marked_and_nothing_else_is() {
    let with = |served: f64| {
        let mut history = counted(
            CounterRole::Requests,
            &[(1_000, 100.0), (9_000, 100.0 + served)],
        );
        asked(&mut history, (&stream(0), 50), 2_000, 30);
        history.window(ms(1_000), ms(9_000))
    };
    let window = with(60.0);
    let marks: Vec<&str> = window.marks.iter().map(ServerMark::name).collect();
    assert_eq!(marks, ["doubled_counts"]);
    assert_eq!(window.restarts, 0);
    for once in [30.0, 45.0, 59.0, 61.0] {
        assert!(!with(once).has(ServerMark::DoubledCounts), "{once}");
    }
}

#[test]
fn row_12_and_37_what_is_missing_is_absent() {
    let history = counted(CounterRole::PromptTokens, &[(1_000, 5.0), (2_000, 9.0)]);
    let window = history.window(ms(1_000), ms(2_000));
    for role in CounterRole::ALL {
        let is_there = role == CounterRole::PromptTokens;
        assert_eq!(window.counter(role).is_some(), is_there, "{}", role.name());
    }
    for role in HistogramRole::ALL {
        assert_eq!(window.histogram(role), None, "{}", role.name());
    }
    for role in GaugeRole::ALL {
        assert_eq!(window.gauge(role), None, "{}", role.name());
    }
    assert!(window.finished.is_empty());
}

#[test]
fn row_14_values_of_no_time_are_below_the_first_bound_and_marked() {
    let window = history([
        ttft(1_000, [0.0; 3], (0.0, 0.0)),
        ttft(2_000, [208.0; 3], (208.0, 0.0)),
    ])
    .window(ms(1_000), ms(2_000));
    let taken = window.histogram(HistogramRole::Ttft).expect("two pages");
    assert_eq!(taken.quantile(0.5), Some(BucketQuantile::Below(0.1)));
    assert!(window.has(ServerMark::ZeroTimes));
}

#[test]
fn row_16_counters_that_fall_and_come_back_have_no_rate() {
    let role = CounterRole::GenerationTokens;
    let readings = [(1_000, 100.0), (2_000, 60.0), (3_000, 105.0), (4_000, 62.0)];
    let window = counted(role, &readings).window(ms(1_000), ms(4_000));
    assert!(window.has(ServerMark::SawTooth));
    assert_eq!((window.counter(role), window.restarts), (None, 0));
    let three = [
        (0, 90.0),
        (1_000, 60.0),
        (2_000, 30.0),
        (3_000, 95.0),
        (4_000, 66.0),
    ];
    assert!(
        counted(role, &three)
            .window(ms(0), ms(4_000))
            .has(ServerMark::SawTooth)
    );
    // Two restarts, each far below where it was.
    let restarts = [
        (0, 900.0),
        (1_000, 20.0),
        (2_000, 40.0),
        (3_000, 10.0),
        (4_000, 35.0),
    ];
    let window = counted(role, &restarts).window(ms(0), ms(4_000));
    assert!(!window.has(ServerMark::SawTooth));
    assert_eq!(window.restarts, 2);
}

#[test]
fn row_16_two_processes_in_turn_are_told_by_when_they_began() {
    let started = |at, start| page(at, |_, totals| totals.process_start = Some(start));
    let turns = history([started(0, 50.0), started(1_000, 70.0), started(2_000, 50.0)]);
    assert!(turns.window(ms(0), ms(2_000)).has(ServerMark::SawTooth));
    let jitters = history([started(0, 50.0), started(1_000, 51.0), started(2_000, 50.0)]);
    let window = jitters.window(ms(0), ms(2_000));
    assert!(!window.has(ServerMark::SawTooth));
    assert_eq!(window.restarts, 0);
    let anew = history([started(0, 50.0), started(1_000, 70.0), started(2_000, 70.0)]);
    let window = anew.window(ms(0), ms(2_000));
    assert!(!window.has(ServerMark::SawTooth));
    assert_eq!(window.restarts, 1);
}

#[test]
fn row_17_counters_that_stand_still_while_we_are_answered_are_marked() {
    let with = |count: u64, last: f64| {
        let readings = [(1_000, 100.0), (9_000, last)];
        let mut history = counted(CounterRole::GenerationTokens, &readings);
        asked(&mut history, (&stream(0), 50), 2_000, count);
        history.window(ms(1_000), ms(9_000))
    };
    assert!(with(3, 100.0).has(ServerMark::CountersStill));
    assert!(
        !with(2, 100.0).has(ServerMark::CountersStill),
        "too few to say"
    );
    assert!(!with(3, 101.0).has(ServerMark::CountersStill));
    let mut failing = counted(CounterRole::GenerationTokens, &[(1_000, 1.0), (9_000, 1.0)]);
    for n in 0..5 {
        failing.own(&failed(&stream(0), 2_000 + n, Outcome::HttpStatus, Some(500)).record);
    }
    let window = failing.window(ms(1_000), ms(9_000));
    assert!(
        !window.has(ServerMark::CountersStill),
        "the server answers nobody"
    );
}

#[test]
fn row_31_the_prefix_cache_is_read_from_counters_and_its_gauge_is_marked() {
    let at = |at, rate, hits: f64, queries: f64| {
        page(at, |state, totals| {
            state.prefix_hit_rate = Some(rate);
            totals.set_counter(CounterRole::PrefixHits, Some(hits));
            totals.set_counter(CounterRole::PrefixQueries, Some(queries));
        })
    };
    let window = history([
        at(1_000, 0.92, 920.0, 1_000.0),
        at(2_000, 0.0, 920.0, 1_040.0),
        at(3_000, 0.90, 1_820.0, 2_000.0),
    ])
    .window(ms(1_000), ms(3_000));
    assert!(window.has(ServerMark::HitRateOverwritten));
    close(window.prefix_hit_ratio().expect("counters"), 0.9);
    let gauge = history([page(1_000, |state, _| state.prefix_hit_rate = Some(0.4))]);
    let window = gauge.window(ms(1_000), ms(2_000));
    close(window.prefix_hit_ratio().expect("a gauge"), 0.4);
    assert!(!window.has(ServerMark::HitRateOverwritten));
}
