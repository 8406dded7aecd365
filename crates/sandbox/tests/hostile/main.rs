//! Hostile commands in a sandbox, as real processes: their attempts must fail.
//!
//! Every test runs with each method of the machine, as the user who runs the tests, and, when that is root, as an
//! ordinary user too. A method must have named every missing guarantee as a gap.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::print_stdout,
    reason = "what was tested, and what it cost, is for people to read"
)]

mod brokered;
mod cell;
mod cost;
mod denied;
mod network;
mod ordinary;
mod own_proxy;
mod probing;
mod processes;
mod proxied;
mod reader;
mod writing;
