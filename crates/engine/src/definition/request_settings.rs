//! The settings of an agent's requests.

use centurion_protocol::{Effort, Thinking};

/// The user's choices for the requests of an agent.
#[derive(Clone, Debug, Default)]
pub struct RequestSettings {
    /// The model's full name.
    pub model: String,
    /// Models to go over to, in order, when the one in use is overloaded.
    pub fallback_models: Vec<String>,
    pub effort: Option<Effort>,
    pub thinking: Thinking,
    pub max_turns: Option<u32>,
    /// True if pieces of answers are shown as they stream in.
    pub partial_messages: bool,
    /// The most read-only calls that run at once.
    pub concurrent_calls: usize,
}
