//! A rate over time, and the instant at which its integral reaches a value.
//!
//! A profile is a row of pieces: constant, straight, exponential. Integral and inverse are in
//! closed form for each, so that the arrivals of a changing rate are exact: a process of rate 1
//! run on the integral as its clock. No thinning, no ticks, nothing skipped.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{Ramp, RampShape, RatePoint};

/// Seconds of an hour.
const HOUR: f64 = 3_600.0;
/// Rates whose ratio is nearer to 1 than this make a constant piece.
const ALIKE: f64 = 1e-9;

/// One piece of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Piece {
    /// How long it is; infinite for the last.
    seconds: f64,
    rate: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Rate {
    Constant(f64),
    /// From the first to the second in a straight line.
    Linear(f64, f64),
    /// From the first to the second, both positive, by the same factor in the same time.
    Exponential(f64, f64),
}

impl Piece {
    /// Arrivals in it.
    fn area(&self) -> f64 {
        match self.rate {
            // Not 0 × ∞.
            Rate::Constant(rate) if rate <= 0.0 => 0.0,
            Rate::Constant(rate) => rate * self.seconds,
            Rate::Linear(a, b) => f64::midpoint(a, b) * self.seconds,
            Rate::Exponential(a, b) => (b - a) * self.seconds / (b / a).ln(),
        }
    }

    /// Seconds from its beginning until `area` arrivals are over; `area` is less than all.
    fn invert(&self, area: f64) -> f64 {
        match self.rate {
            Rate::Constant(rate) => area / rate,
            Rate::Linear(a, b) => {
                // The root of a·t + k·t²/2 = area that does not cancel for small k.
                let k = (b - a) / self.seconds;
                let root = a.mul_add(a, 2.0 * k * area).max(0.0).sqrt();
                if a + root > 0.0 {
                    2.0 * area / (a + root)
                } else {
                    0.0
                }
            }
            Rate::Exponential(a, b) => {
                let growth = (b / a).ln() / self.seconds;
                (growth * area / a).ln_1p() / growth
            }
        }
        .min(self.seconds)
    }
}

/// A place on the way through a rate.
#[derive(Debug)]
pub(super) struct Profile {
    pieces: Pieces,
    /// Position of the current piece.
    at: usize,
    /// Its beginning, in seconds from the start.
    begun: f64,
    /// Arrivals that are over since its beginning.
    over: f64,
}

#[derive(Debug)]
enum Pieces {
    /// These; the last is endless.
    Row(Vec<Piece>),
    /// Hours, for ever: the first of the day is at the position, and is cut by the seconds.
    Days {
        rates: Arc<[f64; 24]>,
        hour: usize,
        passed: f64,
    },
}

impl Profile {
    fn row(pieces: Vec<Piece>) -> Self {
        Self::new(Pieces::Row(pieces))
    }

    const fn new(pieces: Pieces) -> Self {
        Self {
            pieces,
            at: 0,
            begun: 0.0,
            over: 0.0,
        }
    }

    /// Always `rate`.
    pub(super) fn constant(rate: f64) -> Self {
        Self::row(vec![tail(rate)])
    }

    /// `ramp` up or down to `rate`.
    pub(super) fn ramp(ramp: Ramp, rate: f64) -> Self {
        let seconds = ramp.over.as_secs_f64();
        let alike = (ramp.from / rate - 1.0).abs() < ALIKE;
        let mut pieces = match ramp.shape {
            _ if alike => Vec::new(),
            RampShape::Linear => vec![Piece {
                seconds,
                rate: Rate::Linear(ramp.from, rate),
            }],
            RampShape::Exponential => vec![Piece {
                seconds,
                rate: Rate::Exponential(ramp.from, rate),
            }],
            RampShape::Stepped { steps } => (0..steps)
                .map(|step| Piece {
                    seconds: seconds / f64::from(steps),
                    rate: Rate::Constant(level(ramp.from, rate, (step, steps))),
                })
                .collect(),
        };
        pieces.push(tail(rate));
        Self::row(pieces)
    }

    /// Straight lines between `points`, flat outside.
    pub(super) fn series(points: &[RatePoint]) -> Self {
        let mut pieces = Vec::with_capacity(points.len() + 1);
        let mut before: Option<RatePoint> = None;
        for point in points {
            let since = before.map_or(Duration::ZERO, |before| before.at);
            let from = before.map_or(point.rate, |before| before.rate);
            let seconds = point.at.saturating_sub(since).as_secs_f64();
            if seconds > 0.0 {
                let flat = (from - point.rate).abs() < ALIKE * from.max(point.rate);
                let rate = if flat {
                    Rate::Constant(point.rate)
                } else {
                    Rate::Linear(from, point.rate)
                };
                pieces.push(Piece { seconds, rate });
            }
            before = Some(*point);
        }
        pieces.push(tail(before.map_or(0.0, |last| last.rate)));
        Self::row(pieces)
    }

    /// Hour by hour, beginning `since_midnight`.
    pub(super) fn diurnal(rates: Arc<[f64; 24]>, since_midnight: Duration) -> Self {
        let seconds = since_midnight.as_secs_f64() % (24.0 * HOUR);
        let hour = (0..23).find(|hour| seconds < HOUR * f64::from(hour + 1));
        let hour: u16 = hour.unwrap_or(23);
        Self::new(Pieces::Days {
            rates,
            hour: usize::from(hour),
            passed: HOUR.mul_add(-f64::from(hour), seconds),
        })
    }

    /// Lets `area` more arrivals pass and says when they are over, in seconds from the start;
    /// `None` if they never are.
    pub(super) fn advance(&mut self, area: f64) -> Option<f64> {
        self.over += area;
        loop {
            let piece = self.piece()?;
            let whole = piece.area();
            if self.over < whole {
                return Some(self.begun + piece.invert(self.over));
            }
            if piece.seconds.is_infinite() {
                return None;
            }
            self.over -= whole;
            self.begun += piece.seconds;
            self.at += 1;
        }
    }

    fn piece(&self) -> Option<Piece> {
        match &self.pieces {
            Pieces::Row(row) => row.get(self.at).copied(),
            Pieces::Days {
                rates,
                hour,
                passed,
            } => Some(Piece {
                seconds: if self.at == 0 { HOUR - passed } else { HOUR },
                rate: Rate::Constant(rates[(hour + self.at) % 24]),
            }),
        }
    }
}

const fn tail(rate: f64) -> Piece {
    Piece {
        seconds: f64::INFINITY,
        rate: Rate::Constant(rate),
    }
}

/// The value of the stepped way from `from` to `to` after `step` of `steps` steps.
pub(super) fn level(from: f64, to: f64, (step, steps): (u32, u32)) -> f64 {
    (to - from).mul_add(f64::from(step) / f64::from(steps), from)
}
