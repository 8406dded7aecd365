//! `cargo xtask`: everything a person or the CI does with the sources, by one name each.

#![expect(clippy::print_stdout, reason = "a program for people at a terminal")]

mod components;
mod dist;
mod fuzz;
mod names;
mod needs;
mod run;
mod storm;
mod test;

use anyhow::{Result, bail};

use crate::names::Wrong;

const USAGE: &str = "\
usage: cargo xtask <command>

  test                              install what the tests need, then run all of them
  needs                             install what the tests need
  names [--fix]                     check the tests that the documents name, or correct their names
  lint                              formatting and clippy, warnings are errors
  fuzz [--seconds N] [TARGET]       build the fuzz targets and run each (default 60 s)
  storm [--messages N]              16 members write to 4 (default 10000 each) while processes are killed
  dist                              build what is shipped and check its size
  bench                             measure how quickly what is shipped starts";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test::test(),
        ["needs"] => needs::install(),
        ["names"] => names::check(Wrong::Tell),
        ["names", "--fix"] => names::check(Wrong::Correct),
        ["lint"] => test::lint(),
        ["fuzz", options @ ..] => fuzz::fuzz(&fuzz::Options::parse(options)?),
        ["storm", options @ ..] => storm::storm(storm::messages(options)?),
        ["dist"] => dist::dist().map(|_| ()),
        ["bench"] => dist::bench(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => bail!("no command given\n\n{USAGE}"),
        [command, ..] => bail!("unknown command or too many arguments: `{command}`\n\n{USAGE}"),
    }
}
