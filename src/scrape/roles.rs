//! From a metrics page to the canonical roles: running, waiting, KV occupancy.
//!
//! The engine is recognised by the prefix of its names. A family that is not on the page, or
//! whose value is no usable number, is `None`, never zero. Names: vLLM 0.6 and later, llama.cpp
//! of 2025 and later, which publishes no KV occupancy.

use super::page::Lines;
use crate::measurement::ServerState;

/// An engine whose page is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// vLLM, or what speaks its names.
    Vllm,
    /// llama.cpp's server.
    LlamaCpp,
}

/// What a page said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageState {
    /// The roles that were on it.
    pub state: ServerState,
    /// Whose page it is; `None` if it is no known engine's, and then no role is known.
    pub engine: Option<Engine>,
    /// Lines that were no samples.
    pub bad_lines: u64,
    /// Whether the page was longer than what is read of one.
    pub cut: bool,
}

impl PageState {
    /// Whether the page is that of a known engine.
    #[must_use]
    pub const fn recognised(&self) -> bool {
        self.engine.is_some()
    }
}

/// Reads the roles from `page`. Requests are added up over all series of a family (engines,
/// models), occupancies are averaged.
#[must_use]
pub fn read_state(page: &str) -> PageState {
    let mut lines = Lines::new(page);
    let mut engine = None;
    let [mut running, mut waiting, mut kv, mut old_kv] = [Family::default(); 4];
    for line in lines.by_ref() {
        let of = match line.name.split_once(':') {
            Some(("vllm", _)) => Engine::Vllm,
            Some(("llamacpp", _)) => Engine::LlamaCpp,
            _ => continue,
        };
        // A page of both would be summed over two servers: the first one counts.
        if *engine.get_or_insert(of) != of {
            continue;
        }
        match line.name {
            "vllm:num_requests_running" | "llamacpp:requests_processing" => running.add(line.value),
            "vllm:num_requests_waiting" | "llamacpp:requests_deferred" => waiting.add(line.value),
            "vllm:kv_cache_usage_perc" => kv.add(line.value),
            // The name before vLLM 0.9.2; some versions publish both.
            "vllm:gpu_cache_usage_perc" => old_kv.add(line.value),
            _ => {}
        }
    }
    let kv = if kv.series > 0 { kv } else { old_kv };
    let state = ServerState {
        running: running.sum(),
        waiting: waiting.sum(),
        kv_usage: kv.mean().filter(|share| *share <= 1.0),
        ..ServerState::default()
    };
    PageState {
        // A sum over a part of the series would be wrong, and nobody would notice.
        state: if lines.is_cut() {
            ServerState::default()
        } else {
            state
        },
        engine,
        bad_lines: lines.bad(),
        cut: lines.is_cut(),
    }
}

/// The series of one family, added up.
#[derive(Clone, Copy, Default)]
struct Family {
    series: u32,
    total: f64,
    /// A value that is no amount: what the family says as a whole is unknown then.
    unusable: bool,
}

impl Family {
    fn add(&mut self, value: f64) {
        self.series += 1;
        self.total += value;
        self.unusable |= !value.is_finite() || value < 0.0;
    }

    fn sum(self) -> Option<f64> {
        (self.series > 0 && !self.unusable).then_some(self.total)
    }

    fn mean(self) -> Option<f64> {
        Some(self.sum()? / f64::from(self.series))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LLAMA: &str = include_str!("../../tests/fixtures/metrics/llama-server.txt");
    const WORKER: &str = include_str!("../../tests/fixtures/metrics/dynamo-mocker-worker.txt");

    type Roles = (Option<f64>, Option<f64>, Option<f64>);

    fn check(page: &str, engine: Option<Engine>, (running, waiting, kv_usage): Roles) {
        let expected = PageState {
            state: ServerState {
                running,
                waiting,
                kv_usage,
                ..ServerState::default()
            },
            engine,
            bad_lines: 0,
            cut: false,
        };
        assert_eq!(read_state(page), expected, "{page:.200}");
    }

    #[test]
    fn pages_of_real_servers() {
        check(LLAMA, Some(Engine::LlamaCpp), (Some(0.0), Some(0.0), None));
        check(
            WORKER,
            Some(Engine::Vllm),
            (Some(0.0), Some(0.0), Some(0.0)),
        );
        let busy = LLAMA
            .replace("requests_processing 0", "requests_processing 3")
            .replace("requests_deferred 0", "requests_deferred 7");
        check(&busy, Some(Engine::LlamaCpp), (Some(3.0), Some(7.0), None));
    }

    #[test]
    fn several_engines_behind_one_page_are_one_server() {
        check(
            "vllm:num_requests_running{engine=\"0\"} 3\n\
             vllm:num_requests_running{engine=\"1\"} 4\n\
             vllm:num_requests_waiting{engine=\"0\"} 0\n\
             vllm:num_requests_waiting{engine=\"1\"} 2\n\
             vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n\
             vllm:kv_cache_usage_perc{engine=\"1\"} 0.75\n",
            Some(Engine::Vllm),
            (Some(7.0), Some(2.0), Some(0.5)),
        );
    }

    #[test]
    fn the_old_name_of_the_occupancy_counts_where_the_new_one_is_absent() {
        let old = "vllm:gpu_cache_usage_perc 0.4\n";
        check(old, Some(Engine::Vllm), (None, None, Some(0.4)));
        let both = format!("{old}vllm:kv_cache_usage_perc 0.6\n");
        check(&both, Some(Engine::Vllm), (None, None, Some(0.6)));
    }

    #[test]
    fn what_is_no_amount_is_unknown_and_never_zero() {
        check(
            "vllm:num_requests_running NaN\n\
             vllm:num_requests_waiting{engine=\"0\"} 1\n\
             vllm:num_requests_waiting{engine=\"1\"} +Inf\n\
             vllm:kv_cache_usage_perc -1\n",
            Some(Engine::Vllm),
            (None, None, None),
        );
        check(
            "vllm:kv_cache_usage_perc 41",
            Some(Engine::Vllm),
            (None, None, None),
        );
        check(
            "llamacpp:n_decode_total 4",
            Some(Engine::LlamaCpp),
            (None, None, None),
        );
    }

    #[test]
    fn an_unknown_page_says_nothing() {
        check("", None, (None, None, None));
        check(
            "num_requests_running 4\nvllm_num_requests_running 3",
            None,
            (None, None, None),
        );
        let html = read_state("<html>\n<body>no\n");
        assert!(!html.recognised());
        assert_eq!(html.bad_lines, 2);
    }

    #[test]
    fn a_page_that_is_too_long_says_nothing() {
        let page = format!("vllm:num_requests_running 3\n{}", "\n".repeat(500_000));
        let read = read_state(&page);
        assert!(read.cut);
        assert_eq!(read.state, ServerState::default());
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in "(vllm:num_requests_running|vllm:kv_cache_usage_perc|[ -~\\n]){0,40}") {
            let read = read_state(&page);
            prop_assert!(read.recognised() || read.state == ServerState::default());
        }
    }
}
