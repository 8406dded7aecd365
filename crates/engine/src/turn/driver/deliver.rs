//! Delivery: puts results, context and items of the queue before the model, as one message.

use centurion_config::memory::MemoryTracker;
use centurion_journal::JournalError;
use centurion_journal::transcript::{KeptRecord, SESSION_CONTEXT, interrupted};
use centurion_protocol::{Block, Message, RecordId, Role};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::skills::SKILL_LISTING;
use super::{Driver, NOTES, Run, UnansweredCalls};
use crate::agent::hooks::reminder;
use crate::definition::prompt::instructions;
use crate::message::queue::{Item, Origin};

impl Driver {
    /// Tells whether something came for an agent that would otherwise end; the model is told. What comes for the
    /// main agent begins a run of its own.
    pub(super) async fn deliver_mail(
        &mut self,
        run: &mut Run,
        cancel: &CancellationToken,
    ) -> Result<bool, JournalError> {
        let due = match &self.identity().id {
            Some(id) => self.shared.queue.pending(Some(id)),
            None => return Ok(false),
        };
        let due = self.admit(run, &due, cancel).await?.unwrap_or_default();
        if due.is_empty() {
            return Ok(false);
        }
        self.deliver(Vec::new(), &due)?;
        Ok(true)
    }

    /// The host's instructions for planning, if the main agent has just begun to plan.
    fn plan_instructions(&self) -> Option<String> {
        let mode = self.dispatch.agent.permissions.mode();
        self.identity().is_main().then(|| self.shared.delegation.plan.due(mode)).flatten()
    }

    /// Puts items into the conversation without asking the model.
    pub(crate) fn take_note(&mut self, items: &[Item]) -> Result<(), JournalError> {
        self.deliver(Vec::new(), items)
    }

    /// Puts results, context and queue items before the model, as one message.
    pub(super) fn deliver(
        &mut self,
        mut blocks: Vec<Block>,
        items: &[Item],
    ) -> Result<(), JournalError> {
        let opening = self.preamble.opening.take().map(|it| it.opening()).unwrap_or_default();
        if !opening.is_empty() {
            self.record_opening(&opening)?;
        }
        blocks.extend(self.answer_interrupted()?);
        let told = std::mem::take(&mut self.preamble.instructions);
        let memory = self.memory.as_ref().filter(|_| told);
        if let Some(text) = memory.and_then(MemoryTracker::render) {
            let text = instructions(&text);
            self.record_attachment("instructions", &text)?;
            blocks.push(Block::Text(text));
        }
        if let Some(text) = told.then(|| self.notes_index()).flatten() {
            self.record_attachment(NOTES, &text)?;
            blocks.push(Block::Text(text));
        }
        for text in std::mem::take(&mut self.preamble.context) {
            let record = self.record_attachment(SESSION_CONTEXT, &text)?;
            let kept = KeptRecord { record, blocks: vec![Block::Text(text.clone())] };
            self.standing.context.push(kept);
            blocks.push(Block::Text(text));
        }
        let context = std::mem::take(&mut self.aside.context);
        let mut aside: Vec<String> = context.iter().map(|text| reminder(text)).collect();
        let side_notes = self.shared.take_side_notes(self.identity().id.as_ref());
        aside.extend(side_notes.iter().map(|text| reminder(text)));
        aside.extend(self.plan_instructions().map(|text| reminder(&text)));
        aside.extend(self.serve());
        for text in aside {
            self.record_attachment("aside", &text)?;
            blocks.push(Block::Text(text));
        }
        if let Some(text) = self.skill_news(!items.is_empty()) {
            self.record_attachment(SKILL_LISTING, &text)?;
            blocks.push(Block::Text(text));
        }
        self.record_worktree()?;
        let items = self.fit(items, &blocks);
        let mut delivered = Vec::with_capacity(items.len());
        for item in &*items {
            let record = match &self.shared.delegation.builder.files.checkpoints {
                Some(checkpoints) if matches!(item.origin, Origin::Person) => {
                    checkpoints.begin(|| self.record_item(item))?
                }
                _ => self.record_item(item)?,
            };
            self.remember_task(record, item);
            if matches!(item.origin, Origin::Person) {
                self.early.answer_prompt(record);
            }
            if let Origin::Message { hands_over: Some(mode), .. } = item.origin {
                self.dispatch.agent.permissions.hand_over(mode);
                // The lead of the team approved the plan.
                self.dispatch.agent.workspace.plan.lock().approve();
            }
            for news in item.origin.told_ends(item.id) {
                self.dispatch.agent.note_denials(self.shared.take_denials(news));
            }
            blocks.extend(item.content.iter().cloned());
            delivered.push(item.id);
        }
        // Behind their texts: a note says that the conversation has one.
        self.record_skills()?;
        if !opening.is_empty() || !blocks.is_empty() {
            self.push_message(Message::with_shared(Role::User, &opening, &blocks));
        }
        self.shared.queue.delivered(&delivered);
        Ok(())
    }

    /// Records results of the calls that an earlier process left without; gives those that the conversation lacks.
    fn answer_interrupted(&mut self) -> Result<Vec<Block>, JournalError> {
        let UnansweredCalls { open, interrupted: known } = std::mem::take(&mut self.unanswered);
        for id in &known {
            self.record_result(&interrupted(id), None, &Value::Null)?;
        }
        let blocks: Vec<Block> = open.iter().map(interrupted).collect();
        for block in &blocks {
            self.record_result(block, None, &Value::Null)?;
        }
        Ok(blocks)
    }

    /// Remembers what an agent is to do: it stays in the conversation word for word.
    fn remember_task(&mut self, record: RecordId, item: &Item) {
        let kept = || KeptRecord { record, blocks: item.content.clone() };
        if matches!(item.origin, Origin::Person) {
            self.standing.turns.push(record);
        }
        match item.origin {
            Origin::Delegation | Origin::Initial => self.standing.task.push(kept()),
            // News is told once; only where nothing else was said is it what the agent works on.
            _ if item.origin.is_news() && !self.standing.prompt.is_empty() => {}
            _ => self.standing.prompt.push(kept()),
        }
    }
}
