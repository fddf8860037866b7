//! The formats of traces, one file each: a line or a document in, one row or several out.
//!
//! A reader checks what it can see in its own row; times against those of other rows are checked
//! by [`super::Rows`].

pub(super) mod azure;
pub(super) mod bailian;
#[cfg(feature = "parquet")]
pub(super) mod baseten;
pub(super) mod burstgpt;
pub(super) mod fields;
pub(super) mod mooncake;
pub(super) mod sagemaker;
pub(super) mod table;
pub(super) mod tracelab;
pub(super) mod weka;

pub(super) use self::fields::Bad;
