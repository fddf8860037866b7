//! Packs a page for the way.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::Encoding;

/// `page` as `encoding` has it.
#[expect(
    clippy::missing_panics_doc,
    reason = "writing to a vector does not fail"
)]
#[must_use]
pub fn pack(encoding: Encoding, page: Vec<u8>) -> Vec<u8> {
    match encoding {
        Encoding::Identity => page,
        Encoding::Gzip => {
            // A page repeats itself so much that more effort saves little.
            let mut packed =
                GzEncoder::new(Vec::with_capacity(page.len() / 8), Compression::fast());
            packed
                .write_all(&page)
                .and_then(|()| packed.finish())
                .expect("a vector grows as far as it must")
        }
    }
}
