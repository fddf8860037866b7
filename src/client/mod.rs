//! Speaks one LLM protocol and returns one record.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `client` | `Client` | speak one LLM protocol, return one record | retry, average, decide |
