//! Keeps the canary harmless: budgets and the in-flight cap.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `control` | `Governor` | budget, breaker, yield, cap: allow or refuse | send, sleep |

mod governor;
mod slots;

pub use governor::{BudgetUse, Governor, Reservation};
pub use slots::{Slot, Slots};
