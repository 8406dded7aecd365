//! Transports that the SDK lacks, and wrappers around those that it has.

mod any;
mod caller;
pub(crate) mod failure;
mod http;
mod lines;
mod message;
mod probe;
mod reader;
mod sdk;
mod sse;
mod throttled;
mod watched;

pub(crate) use any::{AnyError, AnyTransport};
pub(crate) use caller::HttpCaller;
pub(crate) use http::{BoundedHttp, read_body};
pub(crate) use lines::{GivenUp, LineTransport};
pub(crate) use probe::{HandshakeNotes, LAST_CHANCE, PATIENCE, Pipe, Probe};
pub(crate) use sdk::SdkTransport;
pub(crate) use sse::{SseError, SseTransport};
pub use throttled::ThrottledTransport;
pub(crate) use watched::WatchedTransport;
