//! What every request of an agent asks for.

use centurion_protocol::{Effort, Thinking};

/// What the user chose for the requests of an agent.
#[derive(Clone, Debug, Default)]
pub struct RequestSettings {
    /// The model's full name.
    pub model: String,
    /// Models to go over to, in order, when the one in use is overloaded.
    pub fallback_models: Vec<String>,
    pub effort: Option<Effort>,
    pub thinking: Thinking,
    pub max_turns: Option<u32>,
    /// Whether pieces of answers are shown as they stream in.
    pub partial_messages: bool,
    /// How many read-only calls run at once.
    pub concurrent_calls: usize,
}
