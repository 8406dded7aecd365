//! Helpers for the tests of several crates: a server that plays a provider and misbehaves on
//! demand, the bytes of streaming answers, and scratch directories.
//!
//! The server runs on a thread of its own, so that tests may be async or not, and whole programs
//! can be run against it.

mod reply;
mod scratch;
pub mod secrets;
mod server;
mod skip;
pub mod sse;

pub use reply::{Fault, Reply};
pub use scratch::Scratch;
pub use server::{Recorded, Server, closed_port};
pub use skip::{Lack, skip};
