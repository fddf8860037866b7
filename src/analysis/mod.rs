//! Better, worse, and because of what: pure functions over what `aggregate` counted.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `analysis` | `Finding` | say what is wrong and why, with evidence | format, send |

mod cause;
mod diagnosis;
mod evidence;
mod gather;
mod reference;
mod server;
mod watch;

pub use cause::{Cause, Confidence};
pub use diagnosis::{Diagnosis, Fact, Finding, Symptom, Unit, diagnose};
pub use evidence::{
    Build, ClientSide, Estimate, Evidence, Gauge, GpuSide, HostSide, OwnSide, ServerSide, Spread,
};
pub use gather::ClientLog;
pub use reference::Reference;
pub use watch::{Change, Look, Surroundings, Watch, WatchedStream};
