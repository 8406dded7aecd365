//! What the members of a team share, as several processes and members use it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod peers;
mod sockets;
mod tasks;
mod workers;
