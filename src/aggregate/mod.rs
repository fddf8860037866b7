//! Many records together: histograms, windows, joined samples.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `aggregate` | `Window` | histograms, windows, goodput, step functions, joining samples by time | call anything good or bad |
