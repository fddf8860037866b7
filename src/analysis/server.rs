//! What the pages of a server, of its GPUs and of its host come to as evidence.

use super::evidence::{Build, Estimate, Gauge, GpuSide, HostSide, ServerSide, Spread};
use crate::aggregate::server::{BucketQuantile, GaugeWindow, HistogramWindow, ServerWindow};
use crate::aggregate::{GpuWindow, NodeWindow};
use crate::measurement::server::{CounterRole, GaugeRole, HistogramRole, ServerInfo};

impl From<&ServerWindow> for ServerSide {
    fn from(window: &ServerWindow) -> Self {
        let gauge = |role| window.gauge(role).map(Gauge::from);
        let rate = |role| Some(window.counter(role)?.per_second());
        let histogram = |role| window.histogram(role).and_then(spread);
        Self {
            running: gauge(GaugeRole::Running),
            waiting: gauge(GaugeRole::Waiting),
            // The fullest rank is the one that makes its requests wait.
            kv_usage: gauge(GaugeRole::KvUsageMax).or_else(|| gauge(GaugeRole::KvUsage)),
            kv_tokens: kv_tokens(window),
            preemptions: rate(CounterRole::Preemptions),
            finished: rate(CounterRole::Requests),
            prompt_tokens: rate(CounterRole::PromptTokens),
            output_tokens: rate(CounterRole::GenerationTokens),
            prefix_hits: window.prefix_hit_ratio(),
            ttft: histogram(HistogramRole::Ttft),
            queue: histogram(HistogramRole::Queue),
            prefill: histogram(HistogramRole::Prefill),
            itl: histogram(HistogramRole::Itl).or_else(|| histogram(HistogramRole::Tpot)),
            outside: window.outside.as_ref().map(|outside| Estimate {
                value: outside.seconds,
                error: outside.error,
            }),
        }
    }
}

impl From<GaugeWindow> for Gauge {
    fn from(window: GaugeWindow) -> Self {
        Self {
            mean: window.mean,
            max: window.max,
        }
    }
}

/// Tokens that fit: as the server says, or from blocks.
fn kv_tokens(window: &ServerWindow) -> Option<f64> {
    let last = |role| Some(window.gauge(role)?.last);
    last(GaugeRole::KvTokens)
        .or_else(|| Some(last(GaugeRole::KvBlocks)? * last(GaugeRole::BlockTokens)?))
}

/// The mean in place of the median: it is exact, and buckets are as wide as vLLM's first one for
/// prefill, 0.3 s. The 95th percentile as far as buckets say it.
fn spread(taken_in: &HistogramWindow) -> Option<Spread> {
    let mean = taken_in.mean()?;
    let p95 = match taken_in.quantile(0.95) {
        Some(BucketQuantile::Within { estimate, .. }) => estimate,
        Some(BucketQuantile::AtLeast(bound)) => bound.max(mean),
        Some(BucketQuantile::Below(_)) | None => mean,
    };
    Some(Spread {
        mean,
        p50: mean,
        p95,
    })
}

impl From<&GpuWindow> for GpuSide {
    fn from(window: &GpuWindow) -> Self {
        Self {
            busy: window.utilization,
            busy_apart: window.utilization_imbalance,
            memory: window.memory_max,
            memory_apart: window.memory_imbalance,
            clock: window.sm_clock_hz,
            throttled: window.throttled,
            xid: window.new_xid,
            memory_active: window.dram_active,
        }
    }
}

impl From<&NodeWindow> for HostSide {
    fn from(window: &NodeWindow) -> Self {
        let process = window.process.unwrap_or_default();
        Self {
            cpu: window.cpu_busy,
            pressure: window.cpu_waiting,
            throttled: process.throttled,
            server_pressure: process.cpu_waiting,
            off_node: window.off_task,
        }
    }
}

impl From<&ServerInfo> for Build {
    fn from(info: &ServerInfo) -> Self {
        let (versions, options): (Vec<_>, Vec<_>) = info
            .flags
            .iter()
            // How many blocks there are follows from the memory that is left.
            .filter(|(name, _)| !name.ends_with("_blocks"))
            .partition(|(name, _)| &**name == "version");
        let words = |pairs: Vec<&(Box<str>, Box<str>)>| {
            let words: Vec<String> = pairs
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            (!words.is_empty()).then(|| words.join(" "))
        };
        Self {
            version: versions.first().map(|(_, version)| version.to_string()),
            model: (!info.models.is_empty()).then(|| info.models.join(", ")),
            options: words(options),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::aggregate::server::CounterWindow;
    use crate::clock::MonoTime;

    #[test]
    fn what_a_window_does_not_have_is_absent() {
        let window = ServerWindow::unknown(MonoTime::ZERO, MonoTime::ZERO);
        assert_eq!(ServerSide::from(&window), ServerSide::default());
        assert_eq!(Build::from(&window.info), Build::default());
    }

    #[test]
    fn roles_become_evidence() {
        let minute = Duration::from_mins(1);
        let mut window = ServerWindow::unknown(MonoTime::ZERO, MonoTime::ZERO + minute);
        let gauge = |last| {
            Some(GaugeWindow {
                mean: last / 2.0,
                min: 0.0,
                max: last,
                last,
                known: 1.0,
            })
        };
        window.set_gauge(GaugeRole::KvBlocks, gauge(100.0));
        window.set_gauge(GaugeRole::BlockTokens, gauge(16.0));
        window.set_gauge(GaugeRole::Waiting, gauge(4.0));
        let tokens = CounterWindow {
            delta: 600.0,
            span: minute,
            resets: 0,
        };
        window.set_counter(CounterRole::GenerationTokens, Some(tokens));
        let itl = HistogramWindow {
            count: 10.0,
            sum: 0.2,
            bounds: Box::from([]),
            below: Box::from([]),
        };
        window.set_histogram(HistogramRole::Tpot, Some(itl));
        let side = ServerSide::from(&window);
        assert_eq!(side.kv_tokens, Some(1_600.0));
        assert_eq!(
            side.waiting,
            Some(Gauge {
                mean: 2.0,
                max: 4.0
            })
        );
        assert_eq!(side.output_tokens, Some(10.0));
        let mean = Spread {
            mean: 0.02,
            p50: 0.02,
            p95: 0.02,
        };
        assert_eq!(side.itl, Some(mean));
    }

    #[test]
    fn a_release_is_its_version_model_and_options() {
        let info = ServerInfo {
            models: vec!["qwen".into()],
            flags: vec![
                ("dtype".into(), "bf16".into()),
                ("num_gpu_blocks".into(), "4096".into()),
                ("version".into(), "0.10".into()),
            ],
        };
        let build = Build::from(&info);
        assert_eq!(build.version.as_deref(), Some("0.10"));
        assert_eq!(build.model.as_deref(), Some("qwen"));
        assert_eq!(build.options.as_deref(), Some("dtype=bf16"));
    }
}
