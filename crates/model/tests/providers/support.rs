//! A request, and a world to send it from.

use std::sync::Arc;

use centurion_model::{Prefix, Request, SystemPrompt};
use centurion_protocol::{Conversation, Env, Message, SeededWorld, Thinking, ToolSpecs, World};

pub(crate) fn world() -> Arc<dyn World> {
    Arc::new(SeededWorld::new(1))
}

/// The addresses of both providers, and the longest silence of each.
pub(crate) fn env(url: &str, silence_ms: &str) -> Env {
    let openai = format!("{url}/v1");
    Env::from([
        ("ANTHROPIC_BASE_URL", url),
        ("OPENAI_BASE_URL", openai.as_str()),
        ("API_TIMEOUT_MS", silence_ms),
    ])
}

pub(crate) fn request() -> Request {
    let mut conversation = Conversation::default();
    conversation.push(Message::user("hi")).expect("a first message");
    Request {
        model: "test-model".into(),
        prefix: Prefix {
            system: SystemPrompt::new(vec!["be brief".into()]),
            tools: ToolSpecs::new(Vec::new()),
            conversation,
        },
        max_tokens: 100,
        thinking: Thinking::Auto,
        effort: None,
        session: SeededWorld::new(2).session_id(),
        agent: None,
        parent_agent: None,
    }
}
