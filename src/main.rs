//! The `tokencanary` binary: hands its arguments to [`tokencanary::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    tokencanary::cli::main()
}
