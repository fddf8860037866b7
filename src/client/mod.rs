//! Speaks one LLM protocol and returns one record.
//!
//! One call is one arrival. Nothing is retried, averaged or judged here: a server that
//! misbehaves is a value in the record.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `client` | `Client` | speak one LLM protocol, return one record | retry, average, decide |

mod encoding;
mod exchange;
mod framing;
mod models;
mod protocol;
mod reading;
mod rehearsal;
mod watch;

#[cfg(test)]
mod quirks;
#[cfg(test)]
mod tests;

pub use exchange::{BodyWriter, Call, Client, ClientSetup, FirstToken};
pub use models::{models_path, served_models};
pub use protocol::{Protocol, ProtocolError};
pub use reading::{Ended, Reading};
pub use watch::Cancel;
