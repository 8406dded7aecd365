//! The conversation as people see it from outside: its text, and beginning a new one.

use std::fmt::Write as _;

use centurion_journal::JournalError;
use centurion_journal::transcript::Loaded;
use centurion_protocol::{RecordId, Role};
use centurion_tools::ReadState;
use serde_json::Value;

use super::context_parts::result_text;
use super::{Driver, EarlierState, Preamble, Run, UnansweredCalls};
use crate::agent::KeptWork;
use crate::agent::skills::SkillView;
use crate::toolset::servers::Announcements;

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

    /// Begins a new conversation behind the same agent, in a transcript that holds nothing of the earlier one.
    pub(crate) fn start_conversation(&mut self, run: &Run) {
        self.replace_conversation(Loaded::default());
        self.dispatch.agent.forget_prefixes();
        self.set_goal(None);
        // Questions beside the conversation are about this one from now on.
        self.keep_end(run);
    }

    /// Goes back to an earlier record: the conversation is what it was then. The transcript keeps what was said since,
    /// on a branch of its own.
    pub(crate) fn go_back(
        &mut self,
        run: &Run,
        record: Option<RecordId>,
    ) -> Result<(), JournalError> {
        let loaded = self.journal.go_back(record)?;
        self.replace_conversation(loaded);
        self.keep_end(run);
        Ok(())
    }

    /// Takes another conversation in the place of the present one, as a resume does.
    fn replace_conversation(&mut self, mut loaded: Loaded) {
        let EarlierState { counted, standing, window, deferred, interrupted } =
            EarlierState::take(&mut loaded);
        self.conversation = std::mem::take(&mut loaded.conversation);
        self.unanswered = UnansweredCalls::of(&self.conversation, interrupted);
        (self.counted, self.standing, self.window) = (counted, standing, window);
        (self.deferred, self.cached) = (deferred, None);
        self.preamble =
            Preamble { instructions: self.conversation.is_empty(), ..Preamble::default() };
        let agent = &self.dispatch.agent;
        let known = ReadState::default();
        loaded.seen_files.iter().for_each(|result| known.replay(result));
        agent.workspace.read_state.become_as(&known);
        self.memory = self.memory.as_ref().map(|memory| {
            let mut memory = memory.reloaded();
            // The conversation holds the rules for the files that it tells of.
            for path in known.paths() {
                memory.rules_for(&path);
            }
            memory
        });
        self.known_servers.announced = Announcements::default();
        agent.end_skills();
        agent.forget_skill_texts();
        let used = || self.journal.used_skills().into_iter().map(|skill| skill.name).collect();
        agent.keep_skill_hooks(used);
        *agent.skill_view() = SkillView::default();
        let KeptWork { todos, plan } = KeptWork::take(&mut loaded);
        *agent.workspace.todos.lock() = todos;
        *agent.workspace.plan.lock() = plan;
    }
}
