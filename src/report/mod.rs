//! Makes results readable to a person: values in, text out.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `report` | `Report` | tables, HTML, SVG, terminal views | compute a statistic |

mod bench;
mod draft;
mod facts;
mod gpus;
mod hint;
mod number;
mod objectives;
mod plan;
mod table;
mod waterfall;
mod yaml;

pub use bench::bench_table;
pub use draft::{
    Draft, KeyFrom, LengthName, LengthSaid, Manner, Pace, PageSaid, Seen, canary_file,
};
pub use facts::{Fact, FactValue, SpreadRow, fact_lines, spread_table};
pub use gpus::gpu_fields;
pub use hint::hint;
pub use objectives::{ObjectiveRow, objectives_line, objectives_table};
pub use plan::{Budget, PlanRow, plan_sentences, plan_table};
pub use waterfall::{Colour, waterfall};
