//! A program that is only a guard, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|argument| argument == centurion_tools::guard::ARGUMENT) {
        centurion_tools::guard::run(args)
    } else {
        ExitCode::from(2)
    }
}
