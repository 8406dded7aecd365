//! Talking to a model: Anthropic Messages, OpenAI-compatible chat completions, scripted scenarios
//! and recorded cassettes behind one [`Provider`] trait; retries, a shared rate gate, and prices.
//!
//! Knows nothing of tools or agents. Reads no environment: the binary hands in an
//! [`Env`](centurion_protocol::Env).

mod error;
mod event;
mod provider;

pub use error::{ErrorKind, ModelError};
pub use event::{BlockStart, Delta, StreamEvent};
pub use provider::{EventStream, Provider, Request, SystemPrompt};
