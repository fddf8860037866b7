//! Budgets per UTC day, over all targets: requests and tokens.
//!
//! A request reserves its input and its largest output before it is sent, and settles on what
//! the server counted, so that a budget cannot be overrun by requests in flight. Kept in
//! memory: a restart begins the day anew.

use std::sync::{Mutex, PoisonError};

use crate::config::GovernorConfig;
use crate::measurement::RefusedReason;

/// A request uses at most this many times what was reserved for it: hidden reasoning may be long,
/// and prompts are sized by an estimate.
const LARGEST_SHARE: u64 = 10;

/// What was used of the budgets today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetUse {
    /// Requests sent.
    pub requests: u64,
    /// Their limit, if there is one.
    pub requests_limit: Option<u64>,
    /// Tokens used or reserved, input and output.
    pub tokens: u64,
    /// Their limit, if there is one.
    pub tokens_limit: Option<u64>,
}

/// Tokens set aside for one request, to be settled when it ended.
#[derive(Debug, Clone, Copy)]
#[must_use = "a reservation that is not settled keeps its tokens"]
pub struct Reservation {
    day: u64,
    tokens: u64,
}

/// Allows or refuses by budget.
#[derive(Debug)]
pub struct Governor {
    config: GovernorConfig,
    today: Mutex<Today>,
}

#[derive(Debug, Default)]
struct Today {
    day: u64,
    requests: u64,
    tokens: u64,
}

impl Today {
    fn turn_to(&mut self, day: u64) {
        if day > self.day {
            *self = Self {
                day,
                requests: 0,
                tokens: 0,
            };
        }
    }
}

impl Governor {
    /// A governor with unused budgets.
    #[must_use]
    pub fn new(config: GovernorConfig) -> Self {
        Self {
            config,
            today: Mutex::default(),
        }
    }

    /// Asks to send a request of at most `tokens` tokens, input and output, on UTC day `day`
    /// (days since the Unix epoch).
    ///
    /// # Errors
    ///
    /// [`RefusedReason::Budget`] if a budget does not hold it.
    pub fn reserve(&self, day: u64, tokens: u64) -> Result<Reservation, RefusedReason> {
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        today.turn_to(day);
        let fits = |limit: Option<u64>, used: u64| limit.is_none_or(|limit| used <= limit);
        if !fits(self.config.requests_per_day, today.requests + 1)
            || !fits(
                self.config.tokens_per_day,
                today.tokens.saturating_add(tokens),
            )
        {
            return Err(RefusedReason::Budget);
        }
        today.requests += 1;
        today.tokens += tokens;
        Ok(Reservation {
            day: today.day,
            tokens,
        })
    }

    /// Replaces what was reserved by what was used. Without a count the reservation stands. A
    /// count beyond ten times the reservation is not believed as a whole, so that
    /// one server that miscounts does not use up the day of all.
    pub fn settle(&self, reservation: Reservation, used: Option<u64>) {
        let Reservation { day, tokens } = reservation;
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = used
            && today.day == day
        {
            let used = used.min(tokens.saturating_mul(LARGEST_SHARE));
            today.tokens = today.tokens.saturating_sub(tokens).saturating_add(used);
        }
    }

    /// What was used on UTC day `day`.
    #[must_use]
    pub fn used(&self, day: u64) -> BudgetUse {
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        today.turn_to(day);
        BudgetUse {
            requests: today.requests,
            requests_limit: self.config.requests_per_day,
            tokens: today.tokens,
            tokens_limit: self.config.tokens_per_day,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn governor(requests: u64, tokens: u64) -> Governor {
        Governor::new(GovernorConfig {
            requests_per_day: Some(requests),
            tokens_per_day: Some(tokens),
            in_flight: 1,
        })
    }

    #[test]
    fn one_absurd_count_does_not_use_up_the_day() {
        let governor = governor(10, 1000);
        let reserved = governor.reserve(5, 20).expect("room");
        governor.settle(reserved, Some(2_900_000));
        assert_eq!(governor.used(5).tokens, 200);
    }

    #[test]
    fn a_budget_holds_exactly_what_it_says() {
        let requests = governor(2, 1000);
        assert!(requests.reserve(5, 1).is_ok());
        assert!(requests.reserve(5, 1).is_ok());
        assert_eq!(requests.reserve(5, 1).err(), Some(RefusedReason::Budget));

        let tokens = governor(100, 30);
        assert!(tokens.reserve(5, 20).is_ok());
        assert_eq!(tokens.reserve(5, 11).err(), Some(RefusedReason::Budget));
        assert!(tokens.reserve(5, 10).is_ok());
    }

    #[test]
    fn settling_gives_back_what_was_not_used() {
        let governor = governor(100, 100);
        let reservation = governor.reserve(5, 80).expect("fits");
        governor.settle(reservation, Some(30));
        assert_eq!(governor.used(5).tokens, 30);
        let unknown = governor.reserve(5, 50).expect("fits");
        governor.settle(unknown, None);
        assert_eq!(
            governor.used(5).tokens,
            80,
            "without usage the reservation stands"
        );
    }

    #[test]
    fn a_new_day_begins_with_unused_budgets() {
        let governor = governor(1, 100);
        let yesterday = governor.reserve(5, 60).expect("fits");
        assert!(governor.reserve(6, 60).is_ok());
        governor.settle(yesterday, Some(1));
        assert_eq!(
            governor.used(6),
            BudgetUse {
                requests: 1,
                requests_limit: Some(1),
                tokens: 60,
                tokens_limit: Some(100),
            }
        );
        assert!(
            governor.reserve(5, 1).is_err(),
            "a clock that steps back brings no new budget"
        );
    }
}
