//! The definition of a provider: it turns a request into a stream of events.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use centurion_protocol::sdk::RateLimit;
use centurion_protocol::{AgentId, Conversation, Digest, Effort, SessionId, Thinking, ToolSpecs};
use futures_util::Stream;

use crate::{ModelError, StreamEvent};

/// One request. All large parts are shared: cloning copies pointers.
#[derive(Clone, Debug)]
pub struct Request {
    /// The provider's own name of the model, aliases already resolved.
    pub model: String,
    pub prefix: Prefix,
    /// The largest answer allowed.
    pub max_tokens: u32,
    pub thinking: Thinking,
    pub effort: Option<Effort>,
    pub session: SessionId,
    /// `None` for the main agent.
    pub agent: Option<AgentId>,
    /// The agent that started that one, unless it was the main agent.
    pub parent_agent: Option<AgentId>,
}

/// The beginning of a request, as it is sent. Cloning shares all of it: the provider's cache serves requests with the
/// same prefix.
#[derive(Clone, Debug)]
pub struct Prefix {
    pub system: SystemPrompt,
    pub tools: ToolSpecs,
    pub conversation: Conversation,
}

impl Prefix {
    /// A digest of all sent bytes: requests with the same digest begin with the same bytes.
    pub fn digest(&self) -> Digest {
        let mut hasher = self.fixed_hasher();
        for message in self.conversation.iter() {
            hasher.update(message.digest());
        }
        *hasher.finalize().as_bytes()
    }

    /// A digest of the parts that stay the same from request to request, with the names of the callable tools.
    pub fn fixed_digest(&self, names: &[String]) -> Digest {
        let mut hasher = self.fixed_hasher();
        for name in names {
            hasher.update(&name.len().to_le_bytes());
            hasher.update(name.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    fn fixed_hasher(&self) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new();
        for part in [self.system.wire(), self.tools.wire()] {
            hasher.update(&part.len().to_le_bytes());
            hasher.update(part);
        }
        hasher
    }

    /// An estimate of the tokens in all sent bytes.
    pub fn tokens(&self) -> usize {
        (self.system.wire().len() + self.tools.wire().len()) / 4 + self.conversation.tokens()
    }

    /// The number of all sent bytes.
    pub fn bytes(&self) -> usize {
        self.system.wire().len() + self.tools.wire().len() + self.conversation.bytes()
    }
}

/// The system prompt of one agent, rendered once. Its last section carries a cache breakpoint.
#[derive(Clone, Debug)]
pub struct SystemPrompt {
    sections: Arc<[String]>,
    wire: Bytes,
}

impl SystemPrompt {
    pub fn new(sections: Vec<String>) -> Self {
        let last = sections.len().saturating_sub(1);
        let blocks: Vec<serde_json::Value> = sections
            .iter()
            .enumerate()
            .map(|(n, text)| {
                let mut block = serde_json::json!({"type": "text", "text": text});
                if n == last {
                    block["cache_control"] = serde_json::json!({"type": "ephemeral"});
                }
                block
            })
            .collect();
        let wire = serde_json::Value::from(blocks).to_string();
        Self { sections: sections.into(), wire: wire.into() }
    }

    pub fn sections(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// The JSON array in the Messages API's form.
    pub fn wire(&self) -> &Bytes {
        &self.wire
    }
}

pub type EventStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, ModelError>> + Send>>;

/// Access to models. One request, one attempt: the caller retries ([`Model`](crate::Model) does it).
pub trait Provider: Send + Sync {
    /// Sends the request. Dropping the stream cancels it.
    fn stream(&self, request: Request) -> EventStream;

    /// The credential that limits requests of this provider: one rate gate per credential and model.
    fn credential(&self) -> &str;

    /// The limits of the account, as the last answer told them; `None` where it told none.
    fn rate_limit(&self) -> Option<RateLimit> {
        None
    }
}
