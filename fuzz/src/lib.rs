//! What the fuzz targets share: the invariants of the library's own tests.

#[path = "../../tests/it/fuzz/invariants/mod.rs"]
#[allow(dead_code, reason = "the captures use more of it")]
mod invariants;

pub fn sse(data: &[u8]) {
    invariants::sse(data);
}

pub fn lines(data: &[u8]) {
    invariants::lines(data);
}

pub fn array(data: &[u8]) {
    invariants::array(data);
}

pub fn protocols(data: &[u8]) {
    invariants::protocols(data);
}

pub fn page(data: &[u8]) {
    invariants::page(data);
}

pub fn models(data: &[u8]) {
    invariants::models(data);
}

pub fn traces(data: &[u8]) {
    invariants::traces(data);
}

pub fn encodings(data: &[u8]) {
    invariants::encodings(data);
}
