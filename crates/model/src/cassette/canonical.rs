//! A request in the form for recording and comparing.
//!
//! The large parts (system sections, tools, messages) are stored separately and referred to by their hashes: a
//! conversation of a hundred turns repeats its history a hundred times, a cassette does not.

use std::sync::Arc;

use centurion_protocol::{Effort, Thinking};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::normal::{KnownDirectory, Normaliser, places_in};
use super::secrets::redact_value;
use crate::Request;

/// All parts of a request that determine its answer, with `P` for the large ones. Ids of sessions and agents are left
/// out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Canonical<P> {
    pub(super) model: String,
    pub(super) max_tokens: u32,
    pub(super) thinking: String,
    pub(super) effort: Option<Effort>,
    pub(super) system: Vec<P>,
    pub(super) tools: Vec<P>,
    pub(super) messages: Vec<P>,
}

/// A normalised part.
#[derive(Clone, Debug)]
pub(super) struct CanonicalPart {
    pub(super) hash: blake3::Hash,
    pub(super) value: Arc<Value>,
}

impl Canonical<Value> {
    pub(super) fn of(request: &Request) -> Self {
        let messages = request.prefix.conversation.iter().map(|message| {
            // The wire form starts with a comma.
            parse(message.wire().get(1..).unwrap_or_default())
        });
        Self {
            model: request.model.clone(),
            max_tokens: request.max_tokens,
            thinking: match request.thinking {
                Thinking::Auto => "auto".to_owned(),
                Thinking::Adaptive => "adaptive".to_owned(),
                Thinking::Disabled => "disabled".to_owned(),
                Thinking::Budget(tokens) => format!("at most {tokens} tokens"),
            },
            effort: request.effort,
            system: request.prefix.system.sections().map(Value::from).collect(),
            tools: match parse(request.prefix.tools.wire()) {
                Value::Array(tools) => tools,
                other => vec![other],
            },
            messages: messages.collect(),
        }
    }

    /// The form for comparing with requests that were recorded in `places`.
    pub(super) fn normalise(self, places: &[KnownDirectory]) -> Canonical<CanonicalPart> {
        let own = self.system.iter().flat_map(places_in);
        let places: Vec<KnownDirectory> = own.chain(places.iter().cloned()).collect();
        let normaliser = Normaliser::new(&places);
        self.map(|value| CanonicalPart::new(value, &normaliser))
    }
}

impl<P> Canonical<P> {
    pub(super) fn map<Q>(self, mut change: impl FnMut(P) -> Q) -> Canonical<Q> {
        let mut all = |parts: Vec<P>| parts.into_iter().map(&mut change).collect();
        Canonical {
            system: all(self.system),
            tools: all(self.tools),
            messages: all(self.messages),
            model: self.model,
            max_tokens: self.max_tokens,
            thinking: self.thinking,
            effort: self.effort,
        }
    }

    pub(super) fn try_map<Q, E>(
        self,
        mut change: impl FnMut(P) -> Result<Q, E>,
    ) -> Result<Canonical<Q>, E> {
        let mut all =
            |parts: Vec<P>| parts.into_iter().map(&mut change).collect::<Result<Vec<Q>, E>>();
        Ok(Canonical {
            system: all(self.system)?,
            tools: all(self.tools)?,
            messages: all(self.messages)?,
            model: self.model,
            max_tokens: self.max_tokens,
            thinking: self.thinking,
            effort: self.effort,
        })
    }
}

impl Canonical<CanonicalPart> {
    /// Equal for requests that are equal in all but the model.
    pub(super) fn key(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let head = format!("{} {} {:?}", self.max_tokens, self.thinking, self.effort);
        hasher.update(head.as_bytes());
        for parts in [&self.system, &self.tools, &self.messages] {
            hasher.update(&parts.len().to_le_bytes());
            for part in parts {
                hasher.update(part.hash.as_bytes());
            }
        }
        hasher.finalize()
    }

    /// Whether a recording with the other model may answer this request: a request that names no model accepts any.
    pub(super) fn may_use(&self, recorded: &Self) -> bool {
        self.model.is_empty() || self.model == recorded.model
    }
}

impl CanonicalPart {
    pub(super) fn new(mut value: Value, normaliser: &Normaliser) -> Self {
        // Recordings contain no credentials; for the comparison the request loses its own.
        redact_value(&mut value);
        normaliser.apply(&mut value);
        // The order of keys means nothing, and another version of this program may write another.
        value.sort_all_objects();
        Self { hash: blake3::hash(value.to_string().as_bytes()), value: Arc::new(value) }
    }
}

/// The name of a part in a cassette.
pub(super) fn name_of(part: &Value) -> String {
    let hash = blake3::hash(part.to_string().as_bytes()).to_hex();
    hash.chars().take(32).collect()
}

/// Parses JSON; a text that is none (a number too large, say) stands for itself.
fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}
