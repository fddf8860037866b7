//! The formats of traces, one file each: a line or a document in, one row or several out.
//!
//! A reader checks what it can see in its own row; times against those of other rows are checked
//! by [`super::Rows`].

pub(super) mod fields;
pub(super) mod mooncake;
