//! The one integration binary: every tier that needs more than one room.
//!
//! `tidy` reads the source tree, `docs` the documents, `generated` what is
//! generated and committed; `captures` decodes recorded responses; `fuzz`
//! runs the fuzz targets over random and kept input; `process` runs the binary; `real`
//! (feature `real`) runs it against programs of others, which `tests/run` installs.

mod captures;
mod deploy;
mod docs;
mod fuzz;
mod gate;
mod generated;
mod prefix_cache;
mod process;
mod program;
#[cfg(feature = "real")]
mod real;
mod receiver;
mod tidy;
mod virtual_time;
