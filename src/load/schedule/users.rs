//! Users who take turns: N places, each with a turn every N/rate seconds.
//!
//! Turn k of all is due k/rate after the start and belongs to place k mod N, so that the places
//! are staggered by 1/rate. A user has a number of turns; then another one takes the place, one
//! gap later. At the start the users are of all ages, as they would be had the load gone on for
//! long: place i has ⌊i·turns/N⌋ turns behind it that were never sent, place 0 none.
//! A turn is due at its time, whether or not the last one was answered.
//!
//! Users who work through the conversations of a file stay, and have nothing behind them.

use super::Turn;

/// In place of turns, of a place where nobody sits.
const GONE: u32 = u32::MAX;

/// The places and who sits there.
#[derive(Debug)]
pub(super) struct Users {
    rate: f64,
    /// `None`: users stay.
    turns: Option<u32>,
    places: Vec<Place>,
    /// Sessions begun.
    begun: u64,
    /// Sessions that may begin.
    most: Option<u64>,
    /// Turns of all places, those of empty ones included.
    tick: u64,
    seated: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    session: u64,
    /// Turns it has had; [`GONE`] when nobody sits there any more.
    had: u32,
}

impl Users {
    /// `users` places with users of `turns` turns; at most `most` users begin.
    pub(super) fn new((users, turns): (u32, Option<u32>), rate: f64, most: Option<u64>) -> Self {
        let most_now = most.map_or(u64::from(users), |most| most.min(u64::from(users)));
        let place = |index: u32| {
            let behind = u64::from(index) * u64::from(turns.unwrap_or(0)) / u64::from(users);
            let seated = u64::from(index) < most_now;
            Place {
                session: u64::from(index),
                had: if seated {
                    u32::try_from(behind).unwrap_or(0)
                } else {
                    GONE
                },
            }
        };
        Self {
            rate,
            turns,
            places: (0..users).map(place).collect(),
            begun: most_now,
            most,
            tick: 0,
            seated: most_now,
        }
    }

    /// The next turn and when it is due, in units of 1/rate from the start.
    pub(super) fn next(&mut self) -> Option<(u64, Turn)> {
        let count = self.places.len() as u64;
        while self.seated > 0 {
            let tick = self.tick;
            self.tick += 1;
            let index = usize::try_from(tick % count).unwrap_or(usize::MAX);
            let place = &mut self.places[index];
            if place.had == GONE {
                continue;
            }
            let turn = Turn {
                session: place.session,
                turn: place.had,
                last: self.turns.is_some_and(|turns| place.had + 1 == turns),
            };
            if self.turns.is_some() {
                place.had += 1;
            }
            if turn.last {
                if self.most.is_none_or(|most| self.begun < most) {
                    *place = Place {
                        session: self.begun,
                        had: 0,
                    };
                    self.begun += 1;
                } else {
                    place.had = GONE;
                    self.seated -= 1;
                }
            }
            return Some((tick, turn));
        }
        None
    }

    /// Turns of all users per second.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }
}
