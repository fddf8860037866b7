//! The `tokencanary` binary: hands its arguments to [`tokencanary::cli`].

fn main() {}
