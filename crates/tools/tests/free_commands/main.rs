//! Commands that run without being asked about, run for real.
//!
//! Command lines are made from what the programs of this machine say about themselves. Those that
//! `decide` lets through run in a scratch directory with a hostile tree: nothing may change that must
//! not, nothing outside may be opened, and no other program may start. `CENTURION_FREE_COMMANDS=50` tries
//! fifty times as many lines as the test command does.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod editing;
mod git;
mod lines;
mod reading;
mod scratch;
