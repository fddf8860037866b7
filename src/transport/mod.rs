//! Opens connections, carries HTTP, stamps reads.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `transport` | `Connect` | open connections, carry HTTP, stamp reads | know what an LLM is; retry |

pub mod fetch;
