//! Every process with chance in it has the distribution it names: mean, variance, and the
//! largest distance from the exact distribution function (Kolmogorov–Smirnov), at many seeds.
//!
//! Each test holds the share of seeds that fail at the 1 % level to what 1 % allows, and no
//! seed may fail at one in a million. Distribution functions are written here, not taken from
//! the code under test.

use std::f64::consts::PI;

use super::*;

const SEEDS: u64 = 200;
const VALUES: u64 = 1_000;
/// Distance × √n that 1 % of samples exceed.
const ONE_PERCENT: f64 = 1.628;
/// Distance × √n that one sample in a million exceeds.
const NEVER: f64 = 2.693;
/// Of 200 seeds at 1 %, more than this happens once in 5,000 times.
const MOST_FAILED: usize = 8;

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("samples are small"))
}

/// The largest distance between the sample and `cdf`, times √n.
fn distance(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = float(values.len());
    let mut most = 0.0_f64;
    for (index, value) in values.iter().enumerate() {
        let expected = cdf(*value);
        most = most
            .max(expected - float(index) / n)
            .max(float(index + 1) / n - expected);
    }
    most * n.sqrt()
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

/// Times between arrivals, from the start on.
fn gaps_of(times: &[MonoTime]) -> Vec<f64> {
    let mut before = MonoTime::ZERO;
    let gap = |at: &MonoTime| {
        let gap = at.since(before);
        before = *at;
        seconds(gap)
    };
    times.iter().map(gap).collect()
}

/// Holds the samples that `sample` draws by seed to `cdf`, and their mean and variance to
/// `moments`.
fn check(
    name: &str,
    sample: impl Fn(u64) -> Vec<f64>,
    (cdf, moments): (impl Fn(f64) -> f64, (f64, f64)),
) {
    let (mut failed, mut sum, mut squares, mut n) = (0, 0.0, 0.0, 0.0);
    for seed in 0..SEEDS {
        let values = sample(seed);
        for value in &values {
            sum += value;
            squares += (value - moments.0).powi(2);
            n += 1.0;
        }
        let distance = distance(values, &cdf);
        assert!(distance < NEVER, "{name}, seed {seed}: {distance}");
        failed += usize::from(distance > ONE_PERCENT);
    }
    assert!(failed <= MOST_FAILED, "{name}: {failed} of {SEEDS} seeds");
    let (mean, variance) = (sum / n, squares / n);
    // Five standard errors of the mean; the variance within 3 %.
    let error = 5.0 * (moments.1 / n).sqrt();
    assert!((mean - moments.0).abs() < error, "{name}: mean {mean}");
    assert!(
        (variance / moments.1 - 1.0).abs() < 0.03,
        "{name}: variance {variance}"
    );
}

fn exponential(rate: f64) -> impl Fn(f64) -> f64 {
    move |t| 1.0 - (-rate * t).exp()
}

/// Of Gamma(2, θ): 1 − e^(−t/θ)(1 + t/θ).
fn gamma_two(scale: f64) -> impl Fn(f64) -> f64 {
    move |t| 1.0 - (-t / scale).exp() * (1.0 + t / scale)
}

/// Of Gamma(1/2, θ): erf √(t/θ).
fn gamma_half(scale: f64) -> impl Fn(f64) -> f64 {
    move |t| erf((t / scale).sqrt())
}

/// Error function by its series (Abramowitz and Stegun 7.1.6), good to 1e-12 below 6.
fn erf(x: f64) -> f64 {
    if x > 6.0 {
        return 1.0;
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term > 1e-16 * sum {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

#[test]
fn the_error_function_of_the_tests_is_right() {
    for (x, expected) in [
        (0.5, 0.520_499_877_8),
        (1.0, 0.842_700_792_9),
        (2.0, 0.995_322_265_0),
    ] {
        assert!((erf(x) - expected).abs() < 1e-9);
    }
}

#[test]
fn poisson_gaps_are_exponential() {
    let process = Arrivals::Poisson { rate: 50.0 };
    check(
        "poisson",
        |seed| gaps_of(&open(&process, seed, VALUES)),
        (exponential(50.0), (0.02, 0.000_4)),
    );
}

#[test]
fn gamma_gaps_have_the_rate_and_the_smoothness() {
    // Mean 1/rate, variance 1/(rate²·smoothness).
    let smooth = Arrivals::Gamma {
        rate: 10.0,
        smoothness: 2.0,
    };
    check(
        "gamma 2",
        |seed| gaps_of(&open(&smooth, seed, VALUES)),
        (gamma_two(0.05), (0.1, 0.005)),
    );
    let clustered = Arrivals::Gamma {
        rate: 10.0,
        smoothness: 0.5,
    };
    check(
        "gamma 1/2",
        |seed| gaps_of(&open(&clustered, seed, VALUES)),
        (gamma_half(0.2), (0.1, 0.02)),
    );
    let poisson = Arrivals::Gamma {
        rate: 10.0,
        smoothness: 1.0,
    };
    check(
        "gamma 1",
        |seed| gaps_of(&open(&poisson, seed, VALUES)),
        (exponential(10.0), (0.1, 0.01)),
    );
}

#[test]
fn jitter_is_uniform_around_the_grid() {
    let process = Arrivals::Jitter {
        every: ms(1_000),
        jitter: ms(250),
    };
    let late = |seed| {
        let times = open(&process, seed, VALUES);
        let late = |(k, due): (u64, &MonoTime)| seconds(due.since(at(1_000 * k)));
        (0..).zip(&times).map(late).collect()
    };
    // Uniform on half a second.
    check("jitter", late, (|t| t / 0.5, (0.25, 0.25 / 12.0)));
}

/// The arrivals of one stretch of an inhomogeneous Poisson process are independent draws from
/// the normalised integral of its rate. `length` is the stretch in seconds.
fn stretch(process: &Arrivals, seed: u64, (length, since_midnight): (u64, u64)) -> Vec<f64> {
    let bounds = Bounds {
        duration: Some(Duration::from_secs(length)),
        ..Bounds::default()
    };
    let span = Span {
        since_midnight: Duration::from_secs(since_midnight),
        ..span(bounds)
    };
    let schedule = Schedule::new((process, None), span, seeded(seed));
    let times = times(schedule);
    times
        .iter()
        .map(|at| seconds(at.since(MonoTime::ZERO)))
        .collect()
}

#[test]
fn a_series_spreads_poisson_arrivals_by_its_rate() {
    // From 0/s to 20/s in 100 s: t²/10 arrivals, 1,000 in all.
    let process = series(Gaps::Poisson, &[(0, 0.0), (100, 20.0)]);
    check(
        "series",
        |seed| stretch(&process, seed, (100, 0)),
        // Mean 2/3, variance 1/18 of the squared length.
        (|t| (t / 100.0).powi(2), (200.0 / 3.0, 10_000.0 / 18.0)),
    );
}

#[test]
fn a_day_spreads_poisson_arrivals_by_its_hours() {
    let mut rates = [0.0; 24];
    rates[23] = 900.0 / 3_600.0;
    rates[0] = 100.0 / 3_600.0;
    let process = Arrivals::Diurnal {
        gaps: Gaps::Poisson,
        rates: std::sync::Arc::new(rates),
    };
    let hour = 3_600.0;
    let cdf = move |t: f64| {
        if t < hour {
            0.9 * t / hour
        } else {
            0.9 + 0.1 * (t - hour) / hour
        }
    };
    // Mean 0.9·½ + 0.1·3/2 hours; variance from second moments 1/3 and 7/3 of an hour squared.
    let second = 0.9 / 3.0 + 0.1 * 7.0 / 3.0;
    check(
        "diurnal",
        |seed| stretch(&process, seed, (7_200, 23 * 3_600)),
        (cdf, (0.6 * hour, (second - 0.36) * hour * hour)),
    );
}

#[test]
fn the_number_of_poisson_arrivals_has_the_variance_of_poisson() {
    let process = series(Gaps::Poisson, &[(0, 0.0), (100, 2.0)]);
    // 100 on average, in 2,000 runs.
    let counts: Vec<f64> = (0..2_000)
        .map(|seed| float(stretch(&process, seed, (100, 0)).len()))
        .collect();
    let mean = counts.iter().sum::<f64>() / 2_000.0;
    let variance = counts.iter().map(|n| (n - 100.0).powi(2)).sum::<f64>() / 2_000.0;
    assert!((mean - 100.0).abs() < 1.2, "{mean}");
    assert!((variance - 100.0).abs() < 16.0, "{variance}");
}

#[test]
fn a_ramp_spreads_poisson_arrivals_by_its_rate() {
    let process = Arrivals::Poisson { rate: 20.0 };
    let ramp = Ramp {
        from: 0.0,
        over: Duration::from_secs(100),
        shape: crate::config::RampShape::Linear,
    };
    let sample = |seed| {
        let bounds = Bounds {
            duration: Some(Duration::from_secs(100)),
            ..Bounds::default()
        };
        let schedule = Schedule::new((&process, Some(ramp)), span(bounds), seeded(seed));
        let times = times(schedule);
        times
            .iter()
            .map(|at| seconds(at.since(MonoTime::ZERO)))
            .collect()
    };
    check(
        "ramp",
        sample,
        (|t| (t / 100.0).powi(2), (200.0 / 3.0, 10_000.0 / 18.0)),
    );
}
