//! Makes results readable to a person.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `report` | `Report` | tables, HTML, SVG, terminal views | compute a statistic |
