//! What a token and a request cost in energy: the power of all GPUs of a target over the rates at
//! which its server counts tokens and requests, of the same span of time.
//!
//! It is of the whole target: of all its GPUs, whether they worked or idled, and of everybody's
//! requests. Our own are some of these, and cannot be told apart.

use super::Drawn;
use super::server::ServerWindow;
use crate::measurement::server::CounterRole;

/// The two spans may differ by this factor at most.
const APART: f64 = 2.0;

/// What energy a target took, and for what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyUse {
    /// What its GPUs drew.
    pub drawn: Drawn,
    /// Joules for each token that the server produced; `None` if it produced none, or does not
    /// count them.
    pub per_output_token_j: Option<f64>,
    /// Joules for each request that ended, likewise.
    pub per_request_j: Option<f64>,
}

impl EnergyUse {
    /// Of what GPUs drew, and what their server counted over that span.
    #[must_use]
    pub fn of(drawn: Drawn, server: &ServerWindow) -> Self {
        let per = |role| {
            let counted = server.counter(role)?;
            let apart = counted.span.as_secs_f64() / drawn.until.since(drawn.from).as_secs_f64();
            let same_time = (1.0 / APART..=APART).contains(&apart);
            (same_time && counted.delta > 0.0).then(|| drawn.watts / counted.per_second())
        };
        Self {
            drawn,
            per_output_token_j: per(CounterRole::GenerationTokens),
            per_request_j: per(CounterRole::Requests),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use std::sync::Arc;

    use super::*;
    use crate::aggregate::fixture::{RULES, ms, stream};
    use crate::aggregate::server::CounterWindow;
    use crate::aggregate::{GpuRules, Live, PowerSource};
    use crate::measurement::server::{ServerPage, ServerTotals};
    use crate::measurement::{Gpu, GpuField, GpuSample, Sample, ServerState, Stream};

    /// 600 W over a minute, of which the server counted `tokens` and `requests` in `seconds`.
    fn used(seconds: u64, tokens: Option<f64>, requests: Option<f64>) -> [Option<f64>; 2] {
        let (from, until) = (ms(60_000), ms(120_000));
        let drawn = Drawn {
            watts: 600.0,
            source: PowerSource::EnergyCounter,
            from,
            until,
            known: Duration::from_mins(1),
        };
        let mut server = ServerWindow::unknown(from, until);
        for (role, delta) in [
            (CounterRole::GenerationTokens, tokens),
            (CounterRole::Requests, requests),
        ] {
            let window = delta.map(|delta| CounterWindow {
                delta,
                span: Duration::from_secs(seconds),
                resets: 0,
            });
            server.set_counter(role, window);
        }
        let used = EnergyUse::of(drawn, &server);
        [used.per_output_token_j, used.per_request_j]
    }

    #[test]
    fn joules_are_shared_by_all_that_the_server_counts() {
        assert_eq!(
            used(60, Some(90_000.0), Some(300.0)),
            [Some(0.4), Some(120.0)]
        );
        // Pages five seconds apart never lie where the readings of the GPUs do.
        assert_eq!(
            used(50, Some(75_000.0), Some(250.0)),
            [Some(0.4), Some(120.0)]
        );
    }

    #[test]
    fn what_is_not_known_or_nothing_shares_nothing() {
        assert_eq!(used(60, None, Some(300.0)), [None, Some(120.0)]);
        assert_eq!(used(60, Some(0.0), Some(0.0)), [None, None], "not infinite");
        assert_eq!(used(10, Some(90_000.0), None), [None, None], "other times");
        assert_eq!(used(180, Some(90_000.0), None), [None, None], "other times");
    }

    /// Two GPUs of 300 W each, and a server that is said to answer one request of 50 tokens a
    /// second, and that began anew, as its driver did, after 80 s.
    fn live(streams: &[Arc<Stream>]) -> Live {
        let streams = streams.iter().map(|one| (Arc::clone(one), RULES)).collect();
        let rules = GpuRules {
            capacity: 100,
            max_age: Duration::from_secs(30),
        };
        let mut live = Live::new(streams, 1).reading_gpus([Some(rules)].into_iter());
        for second in (0..=120_u32).step_by(5) {
            let since = f64::from(if second > 80 { second - 80 } else { second });
            let mut totals = ServerTotals::default();
            totals.set_counter(CounterRole::GenerationTokens, Some(50.0 * since));
            totals.set_counter(CounterRole::Requests, Some(since));
            let at = ms(u64::from(second) * 1_000);
            live.sample(Sample {
                target_index: 0,
                asked: at,
                at,
                state: ServerState::default(),
                page: Arc::new(ServerPage {
                    totals,
                    ..ServerPage::default()
                }),
            });
            if second % 10 == 0 {
                let gpus = ["0", "1"].map(|name| {
                    let mut gpu = Gpu::named(name);
                    gpu.fields.set(GpuField::Energy, Some(300.0 * since));
                    gpu
                });
                live.gpu_sample(GpuSample {
                    target_index: 0,
                    at,
                    gpus: gpus.into(),
                    pods: Vec::new(),
                });
            }
        }
        live
    }

    fn of_live(live: &Live, until: u64) -> Option<[Option<f64>; 2]> {
        let span = (ms((until - 60) * 1_000), ms(until * 1_000));
        let used = live.energy(0, span)?;
        Some([used.per_output_token_j, used.per_request_j])
    }

    #[test]
    fn a_minute_of_a_target_with_restarts_of_all() {
        let live = live(&[stream(0)]);
        assert_eq!(of_live(&live, 80), Some([Some(12.0), Some(600.0)]));
        assert_eq!(of_live(&live, 120), Some([Some(12.0), Some(600.0)]));
        assert_eq!(of_live(&live, 200), None, "nothing was read any more");
    }

    #[test]
    fn a_page_of_one_address_of_two_does_not_bear_the_energy_of_both() {
        let mut other = Arc::into_inner(stream(1)).expect("nobody else has it");
        other.endpoint = "http://t:2".into();
        let live = live(&[stream(0), Arc::new(other)]);
        assert_eq!(of_live(&live, 80), None);
    }
}
