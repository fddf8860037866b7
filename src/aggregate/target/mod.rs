//! How targets stand, and what changed on them.

mod identity;
mod marks;
mod state;
#[cfg(test)]
mod tests;

pub use identity::{Changed, Identity};
pub use marks::Marks;
pub use state::{Decided, StartRules, TargetWatch};
