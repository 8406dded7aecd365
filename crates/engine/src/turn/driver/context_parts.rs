//! The usage of an agent's window by category. Texts of the program itself in a conversation are known by how they
//! begin.

use centurion_protocol::Role;
use serde_json::Value;

use super::Driver;
use super::skills::{LISTING_BEGINS, USED_AGAIN};
use crate::agent::builder::AGENT_TOOL;
use crate::agent::listing::Listing;
use crate::definition::prompt::INSTRUCTIONS_BEGIN;
use crate::turn::context_usage::ContextPart;
use crate::turn::skill::{FOLLOW, KNOWN_TEXT};

/// The bytes of a conversation by category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shares {
    skill_list: usize,
    skills: usize,
    instructions: usize,
    results: usize,
}

impl Driver {
    /// About how many tokens each part of a request has.
    pub(crate) fn context_parts(&self) -> Vec<ContextPart> {
        let tokens = |bytes: usize| bytes as u64 / 4;
        let toolbox = &self.dispatch.toolbox;
        let (own, served) = toolbox.sizes();
        let agent = &self.dispatch.agent;
        let listing = Listing::of(&self.shared.delegation, &agent.tool_scope());
        let agents = listing.filter(|_| toolbox.get(AGENT_TOOL).is_ok());
        let agents = agents.map_or(0, |listing| listing.text.len());
        let shares = self.shares();
        let known = [
            ("system_prompt", "System prompt", self.system.wire().len()),
            ("system_tools", "Tools", own.saturating_sub(agents)),
            ("mcp_tools", "MCP tools", served),
            ("agents", "Agents", agents),
            ("skills", "Skills", shares.skill_list),
            ("used_skills", "Used skills", shares.skills),
            ("memory_files", "Instruction files", shares.instructions),
            ("tool_results", "Results", shares.results),
        ];
        let known = known.map(|(id, name, bytes)| ContextPart { id, name, tokens: tokens(bytes) });
        let mut parts = Vec::from(known);
        // The difference between the provider's count and our estimate belongs to the messages.
        let sum: u64 = parts.iter().map(|part| part.tokens).sum();
        let messages = self.estimate().saturating_sub(sum);
        parts.push(ContextPart { id: "messages", name: "Messages", tokens: messages });
        parts
    }

    fn shares(&self) -> Shares {
        let mut shares = Shares::default();
        for message in self.conversation.iter().filter(|it| it.role() == Role::User) {
            let wire = message.wire();
            // A message is written with the comma before it.
            let wire = wire.strip_prefix(b",").unwrap_or(wire);
            let Ok(value) = serde_json::from_slice::<Value>(wire) else { continue };
            shares.add(value["content"].as_array().map(Vec::as_slice).unwrap_or_default());
        }
        shares
    }
}

impl Shares {
    /// Adds the blocks of a message.
    fn add(&mut self, blocks: &[Value]) {
        let mut is_typed_skill = false;
        for block in blocks {
            let text = block["text"].as_str().unwrap_or_default();
            let is_head = text.starts_with("<command-message>");
            if block["type"] == "tool_result" {
                let text = result_text(&block["content"]);
                let size = block["content"].to_string().len();
                let is_skill = text.starts_with(FOLLOW) || text == KNOWN_TEXT;
                *(if is_skill { &mut self.skills } else { &mut self.results }) += size;
            } else if text.starts_with(INSTRUCTIONS_BEGIN) {
                self.instructions += text.len();
            } else if text.starts_with(LISTING_BEGINS) {
                self.skill_list += text.len();
            } else if is_head || is_typed_skill || text.starts_with(USED_AGAIN) {
                self.skills += text.len();
            }
            is_typed_skill = is_head;
        }
    }
}

/// The texts of a result.
pub(super) fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_block_is_counted_where_it_belongs() {
        let mut shares = Shares::default();
        let text = |text: &str| json!({"type": "text", "text": text});
        shares.add(&[
            text(&format!("{LISTING_BEGINS} x")),
            text(&format!("{INSTRUCTIONS_BEGIN} x")),
            text("<command-message>fix</command-message>"),
            text("The rule."),
            text("What I say."),
            json!({"type": "tool_result", "content": format!("{FOLLOW}\n\nThe rule.")}),
            json!({"type": "tool_result", "content": [{"type": "text", "text": "a file"}]}),
        ]);
        assert_eq!(shares.skill_list, LISTING_BEGINS.len() + 2);
        assert_eq!(shares.instructions, INSTRUCTIONS_BEGIN.len() + 2);
        assert!(shares.skills > 60 && shares.results > 20 && shares.results < 60, "{shares:?}");
    }
}
