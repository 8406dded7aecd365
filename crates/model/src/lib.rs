//! Access to models: Anthropic Messages, OpenAI-compatible chat completions, scripted scenarios and recorded cassettes
//! behind one [`Provider`] trait; retries, a shared rate gate, and prices.
//!
//! Knows nothing of tools or agents. Reads no environment: the binary passes an [`Env`](centurion_protocol::Env).

mod access;
mod answer;
mod anthropic;
mod body;
pub mod cassette;
pub mod catalog;
mod discover;
mod error;
mod event;
mod failure;
mod gate;
mod http;
pub mod limits;
mod model;
mod model_names;
mod open;
mod openai;
mod provider;
mod request_extras;
mod retry;
pub mod script;
mod served_names;
mod sse;
#[cfg(test)]
mod testing;

pub use access::{KeyError, KeyFuture, KeyHelper, ModelAccess};
pub use answer::{Answer, AnswerBuilder, CutOff};
pub use anthropic::{Anthropic, AnthropicReader};
pub use body::ChunkedBody;
pub use catalog::{ModelInfo, ThinkingKind};
pub use error::{ErrorKind, ModelError};
pub use event::{BlockStart, Delta, StreamEvent};
pub use gate::{Gate, Gates, Pass};
pub use model::{Model, ProviderKind};
pub use model_names::{NameRefused, UnknownModel};
pub use open::OpenError;
pub use openai::{OpenAi, OpenAiReader};
pub use provider::{EventStream, Prefix, Provider, Request, SystemPrompt};
pub use request_extras::{Beta, NotABeta, RequestExtras, SharedDisplay, ThinkingDisplay};
pub use retry::{ModelEvent, ModelStream, Patience, RetryNotice, RetryPolicy};
pub use served_names::ServedNames;
