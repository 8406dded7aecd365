//! Connections to real processes and real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod asking;
mod bench;
mod http;
mod life;
mod limits;
mod oauth;
mod sdk;
mod sse;
mod stdio;
mod tasks;
mod web;
