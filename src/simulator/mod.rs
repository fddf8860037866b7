//! A modelled inference engine behind wire code of its own.
//!
//! The engine decides when each token comes; the wire writes it at that instant. Faults can be
//! scheduled or switched on over HTTP. In virtual time every instant is exact, which makes this
//! the source of true times for tests; it is also what `demo` runs against.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `simulator` | `Simulator` | a modelled engine with faults, its own wire code | import `client` or `transport` |

pub mod engine;
mod fault_json;
mod faults;
mod hardware;
mod others;
mod profile;
mod questions;
mod tokens;
mod wire;

pub use faults::{Fault, FaultKind, TooManyFaults};
pub use hardware::Hardware;
pub use profile::Profile;
pub use wire::{DEFAULT_MODEL, DEFAULT_VERSION, RequestTimes, Simulator, SimulatorConfig};
