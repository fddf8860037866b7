//! The page, the API and the metrics over HTTP.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `web` | `Surface` | HTTP: page, API, probes, tap, metrics | compute a statistic |
