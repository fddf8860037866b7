//! One file per command: parse, call, print.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `cli` | `Cli` | one file per command: parse, call `app` or a pure room, print | domain logic |

pub mod simulate;
