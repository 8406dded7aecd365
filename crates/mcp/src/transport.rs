//! The ways to servers that the SDK does not have, and what is wrapped around those that it has.

pub(crate) mod failure;
mod probe;
mod sdk;
mod sse;
mod watched;

pub(crate) use probe::{LateAnswer, PATIENCE, Probe};
pub(crate) use sdk::SdkTransport;
pub(crate) use sse::{SseError, SseTransport};
pub(crate) use watched::Watched;
