//! A modelled inference engine with faults and wire code of its own.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `simulator` | `Simulator` | a modelled engine with faults, its own wire code | import `client` or `transport` |
