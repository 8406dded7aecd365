//! Shell commands with real processes and the real guard.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod background;
mod bash;
mod bound;
mod guard;
mod isolation;
mod outliving;
mod piped;
mod sandbox;
mod support;
