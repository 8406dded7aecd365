//! Commands that run unasked, run for real.
//!
//! Command lines are generated from the help of the programs on this machine. The lines that `decide` allows run in a
//! scratch directory with a hostile tree: no guarded file may change, no file outside may be opened, and no other
//! program may start. `CENTURION_FREE_COMMANDS=50` tries fifty times as many lines as the test command does.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod editing;
mod git;
mod lines;
mod reading;
mod scratch;
