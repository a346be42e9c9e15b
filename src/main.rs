//! The command line's front door.

use std::process::ExitCode;

fn main() -> ExitCode {
    clew::main()
}
