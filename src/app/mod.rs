//! The only room that sees the whole picture: builds, wires, runs, drains.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `app` | `App` | build, wire, supervise, drain | domain logic |

pub mod simulate;
