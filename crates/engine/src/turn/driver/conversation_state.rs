//! The conversation as people see it from outside: its text, and beginning a new one.

use std::fmt::Write as _;

use centurion_journal::JournalError;
use centurion_journal::transcript::Standing;
use centurion_protocol::{Conversation, RecordId, Role};
use serde_json::Value;

use super::context_parts::result_text;
use super::{Driver, Preamble, WindowState};
use crate::agent::skills::SkillView;
use crate::toolset::servers::Announced;

impl Driver {
    /// The conversation as plain text.
    pub(crate) fn conversation_text(&self) -> String {
        let mut text = String::new();
        for message in self.conversation.iter() {
            let who = match message.role() {
                Role::User => "User",
                Role::Assistant => "Assistant",
            };
            let wire = message.wire();
            // A message is written with the comma before it.
            let wire = wire.strip_prefix(b",").unwrap_or(wire);
            let Ok(value) = serde_json::from_slice::<Value>(wire) else { continue };
            for block in value["content"].as_array().into_iter().flatten() {
                let said = match block["type"].as_str() {
                    Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
                    Some("tool_use") => format!(
                        "[{}: {}]",
                        block["name"].as_str().unwrap_or_default(),
                        block["input"]
                    ),
                    Some("tool_result") => format!("[result: {}]", result_text(&block["content"])),
                    _ => continue,
                };
                // Writing to a string cannot fail.
                let _ = write!(text, "## {who}\n\n{said}\n\n");
            }
        }
        text
    }

    /// Begins a new conversation behind the same agent. The transcript keeps the earlier one, on a branch of its own.
    pub(crate) fn begin_anew(&mut self) -> Result<RecordId, JournalError> {
        let record = self.journal.branch_from(None)?;
        self.conversation = Conversation::default();
        self.standing = Standing::default();
        self.preamble = Preamble { instructions: true, ..Preamble::default() };
        self.memory = self.memory.as_ref().map(centurion_config::memory::MemoryTracker::reloaded);
        self.known_servers.announced = Announced::default();
        self.window = WindowState::default();
        self.counted = None;
        self.cached = None;
        self.unanswered.clear();
        self.stop_rules.goal = None;
        self.dispatch.agent.end_skills();
        self.dispatch.agent.forget_skill_texts();
        *self.dispatch.agent.skill_view() = SkillView::default();
        self.dispatch.agent.workspace.todos.lock().clear();
        Ok(record)
    }
}
