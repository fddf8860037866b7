//! What the fuzzer looks for, looked for by the test runner too: the same functions over random
//! input, and over every input that the fuzzer kept.

pub(crate) mod invariants;
mod kept;
mod random;
