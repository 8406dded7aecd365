//! The kinds of messages in the main agent's last request, for hosts: about how many tokens each takes.

use std::collections::HashMap;

use centurion_protocol::Conversation;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::shared::Shared;

/// The tokens of messages by their kinds. What belongs to no kind is the difference to the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageBreakdown {
    pub calls: u64,
    pub results: u64,
    /// Pictures, documents, and what the program puts beside the words of people.
    pub attachments: u64,
    pub assistant: u64,
    pub user: u64,
    /// By tool: the tokens of its calls, and those of their results.
    pub by_tool: IndexMap<String, (u64, u64)>,
    pub by_attachment: IndexMap<&'static str, u64>,
}

#[derive(Deserialize)]
struct RecordedMessage<'a> {
    role: &'a str,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct SaidPart {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    name: Option<String>,
    tool_use_id: Option<String>,
    text: Option<String>,
}

/// The tag of what the program says beside the words of people.
const REMINDER: &str = "<system-reminder>";

/// The messages of the main agent's last request; `None` before it.
pub(crate) fn of_main(shared: &Shared) -> Option<MessageBreakdown> {
    let point = shared.main_point()?;
    Some(of(&point.prefix.conversation))
}

fn of(conversation: &Conversation) -> MessageBreakdown {
    let mut found = MessageBreakdown::default();
    let mut tools = HashMap::new();
    for message in conversation.iter() {
        let wire = message.wire();
        // In a request a comma stands before each.
        let wire = wire.strip_prefix(b",").unwrap_or(wire);
        let Ok(said) = serde_json::from_slice::<RecordedMessage<'_>>(wire) else { continue };
        for part in said.content {
            let tokens = part.get().len() as u64 / 4;
            if let Ok(part) = serde_json::from_str::<SaidPart>(part.get()) {
                found.add(said.role, part, tokens, &mut tools);
            }
        }
    }
    found
}

impl MessageBreakdown {
    /// About how many tokens belong to a kind.
    pub fn total(&self) -> u64 {
        self.calls + self.results + self.attachments + self.assistant + self.user
    }

    fn add(
        &mut self,
        role: &str,
        part: SaidPart,
        tokens: u64,
        tools: &mut HashMap<String, String>,
    ) {
        match part.kind.as_str() {
            "tool_use" => {
                let name = part.name.unwrap_or_default();
                self.calls += tokens;
                self.by_tool.entry(name.clone()).or_default().0 += tokens;
                tools.extend(part.id.map(|id| (id, name)));
            }
            "tool_result" => {
                self.results += tokens;
                let name = part.tool_use_id.and_then(|id| tools.remove(&id));
                if let Some(name) = name {
                    self.by_tool.entry(name).or_default().1 += tokens;
                }
            }
            "image" => self.attach("image", tokens),
            "document" => self.attach("document", tokens),
            _ if role == "assistant" => self.assistant += tokens,
            _ if part.text.is_some_and(|text| text.starts_with(REMINDER)) => {
                self.attach("reminder", tokens);
            }
            _ => self.user += tokens,
        }
    }

    fn attach(&mut self, kind: &'static str, tokens: u64) {
        self.attachments += tokens;
        *self.by_attachment.entry(kind).or_default() += tokens;
    }
}
