//! What a stream was like while nothing was wrong: the median of its healthy past.

use std::collections::VecDeque;

use super::evidence::{Estimate, Evidence, Gauge, GpuSide, Spread};

/// Spans of the past that are kept.
const MOST: usize = 30;
/// Fewer say too little to hold anything against.
const LEAST: usize = 2;

/// The healthy past of one stream.
#[derive(Debug, Clone, Default)]
pub struct Reference(VecDeque<Evidence>);

impl Reference {
    /// Adds a span in which nothing was wrong; the oldest of too many is forgotten.
    pub fn add(&mut self, healthy: Evidence) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(healthy);
    }

    /// The median of each number over the spans that have it; of names, the last. `None` if
    /// the past is too short.
    #[must_use]
    pub fn median(&self) -> Option<Evidence> {
        let last = self.0.back().filter(|_| self.0.len() >= LEAST)?;
        let mut all = last.clone();
        let client = &mut all.client;
        client.requests = self.0.iter().map(|one| one.client.requests).sum();
        client.failed = self.0.iter().map(|one| one.client.failed).sum();
        client.silent = self.0.iter().map(|one| one.client.silent).sum();
        client.buffered = self.0.iter().map(|one| one.client.buffered).sum();
        client.ttft = self.spread(|one| one.client.ttft);
        client.itl = self.spread(|one| one.client.itl);
        client.arrivals = self.number(|one| one.client.arrivals);
        client.ends = self.number(|one| one.client.ends);
        client.in_flight = self.number(|one| one.client.in_flight);
        client.tokens = self.number(|one| one.client.tokens);
        client.cached = self.number(|one| one.client.cached);
        client.rtt = self.number(|one| one.client.rtt);
        client.retransmits = self.number(|one| one.client.retransmits);
        self.server(&mut all);
        all.gpu = self.gpu();
        all.host.cpu = self.number(|one| one.host.cpu);
        all.host.pressure = self.number(|one| one.host.pressure);
        all.own.lagged = self.number(|one| one.own.lagged);
        all.own.lag = self.spread(|one| one.own.lag);
        all.own.pressure = self.number(|one| one.own.pressure);
        Some(all)
    }

    fn server(&self, all: &mut Evidence) {
        let server = &mut all.server;
        server.running = self.gauge(|one| one.server.running);
        server.waiting = self.gauge(|one| one.server.waiting);
        server.kv_usage = self.gauge(|one| one.server.kv_usage);
        server.kv_tokens = self.number(|one| one.server.kv_tokens);
        server.preemptions = self.number(|one| one.server.preemptions);
        server.finished = self.number(|one| one.server.finished);
        server.prompt_tokens = self.number(|one| one.server.prompt_tokens);
        server.output_tokens = self.number(|one| one.server.output_tokens);
        server.prefix_hits = self.number(|one| one.server.prefix_hits);
        server.ttft = self.spread(|one| one.server.ttft);
        server.queue = self.spread(|one| one.server.queue);
        server.prefill = self.spread(|one| one.server.prefill);
        server.itl = self.spread(|one| one.server.itl);
        let value = self.number(|one| Some(one.server.outside?.value));
        let error = self.number(|one| Some(one.server.outside?.error));
        server.outside = value
            .zip(error)
            .map(|(value, error)| Estimate { value, error });
    }

    fn gpu(&self) -> GpuSide {
        GpuSide {
            busy: self.number(|one| one.gpu.busy),
            busy_apart: self.number(|one| one.gpu.busy_apart),
            memory: self.number(|one| one.gpu.memory),
            memory_apart: self.number(|one| one.gpu.memory_apart),
            clock: self.number(|one| one.gpu.clock),
            throttled: self.number(|one| one.gpu.throttled),
            // An error is news once.
            xid: None,
            memory_active: self.number(|one| one.gpu.memory_active),
        }
    }

    fn number(&self, of: impl Fn(&Evidence) -> Option<f64>) -> Option<f64> {
        let mut known: Vec<f64> = self.0.iter().filter_map(of).collect();
        known.sort_by(f64::total_cmp);
        let last = known.len().checked_sub(1)?;
        // Of two in the middle, what lies between them.
        Some(f64::midpoint(known[last / 2], known[known.len() / 2]))
    }

    fn spread(&self, of: impl Fn(&Evidence) -> Option<Spread>) -> Option<Spread> {
        Some(Spread {
            mean: self.number(|one| Some(of(one)?.mean))?,
            p50: self.number(|one| Some(of(one)?.p50))?,
            p95: self.number(|one| Some(of(one)?.p95))?,
        })
    }

    fn gauge(&self, of: impl Fn(&Evidence) -> Option<Gauge>) -> Option<Gauge> {
        Some(Gauge {
            mean: self.number(|one| Some(of(one)?.mean))?,
            max: self.number(|one| Some(of(one)?.max))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::evidence::ClientSide;

    fn span(ttft: f64) -> Evidence {
        Evidence {
            client: ClientSide {
                requests: 10,
                ttft: Some(Spread {
                    mean: ttft,
                    p50: ttft,
                    p95: 2.0 * ttft,
                }),
                ..ClientSide::default()
            },
            ..Evidence::default()
        }
    }

    #[test]
    fn the_past_is_its_median_once_there_is_enough_of_it() {
        let mut past = Reference::default();
        assert_eq!(past.median(), None);
        past.add(span(1.0));
        assert_eq!(past.median(), None);
        past.add(span(9.0));
        past.add(span(2.0));
        let median = past.median().expect("three spans");
        assert_eq!(median.client.requests, 30);
        let ttft = median.client.ttft.expect("all have it");
        assert!((ttft.p50 - 2.0).abs() < 1e-9 && (ttft.p95 - 4.0).abs() < 1e-9);
        assert_eq!(median.client.itl, None, "no span has it");
        for _ in 0..MOST {
            past.add(span(7.0));
        }
        let ttft = past.median().and_then(|median| median.client.ttft);
        assert_eq!(ttft.map(|ttft| ttft.p50), Some(7.0));
    }
}
