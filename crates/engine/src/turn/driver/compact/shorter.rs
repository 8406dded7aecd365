//! The shorter conversation: what it holds, and the records that say so.

use std::path::PathBuf;

use centurion_config::memory::MemoryTracker;
use centurion_journal::Compaction;
use centurion_protocol::markup::contain;
use centurion_protocol::transcript::{
    AttachmentBody, Body, BoundaryData, SummaryMark, UserBody, UserContent,
};
use centurion_protocol::{Block, Conversation, Message, RecordId, Role, ToolResultContent};

use super::{CompactError, Driver};
use crate::agent::fork_point::FORK_RULES;
use crate::agent::result_room::ResultRoom;
use crate::definition::prompt::instructions;
use crate::toolset::servers::Announced;
use crate::turn::bounded::bounded_parts;

/// A conversation, drawn apart into what a summary can stand for and what stays.
pub(super) struct Drawn {
    /// All before the newest answer.
    pub(super) earlier: Conversation,
    /// The newest answer, and what came behind it.
    round: Vec<Message>,
}

impl Drawn {
    pub(super) fn from(conversation: &Conversation) -> Self {
        let messages: Vec<&Message> = conversation.iter().collect();
        let is_answer = |message: &&Message| message.role() == Role::Assistant;
        let from = messages.iter().rposition(is_answer).unwrap_or(messages.len());
        let mut earlier = Conversation::default();
        for message in &messages[..from] {
            // The beginning of a conversation is one.
            if earlier.push((*message).clone()).is_err() {
                debug_assert!(false, "invariant: a part of a valid history is valid");
            }
        }
        Self { earlier, round: messages[from..].iter().map(|it| (*it).clone()).collect() }
    }

    /// Whether anything was answered before the newest round: without that there is nothing to summarise.
    pub(super) fn has_exchange(&self) -> bool {
        self.earlier.iter().any(|message| message.role() == Role::Assistant)
    }

    fn tokens(&self) -> usize {
        self.earlier.tokens() + self.round.iter().map(Message::tokens).sum::<usize>()
    }
}

/// A conversation that begins with a summary.
pub(super) struct Shorter {
    pub(super) conversation: Conversation,
    pub(super) summary: String,
    /// Which of the lines is the summary.
    pub(super) summary_line: usize,
    pub(super) memory: Option<MemoryTracker>,
    pub(super) announced: Announced,
    /// What is told anew, each with what records call it.
    lines: Vec<(&'static str, String)>,
    kept: Vec<RecordId>,
    /// What stands behind the newest answer, if not what stood there.
    rest: Option<Vec<Block>>,
}

/// What records call the summary.
const SUMMARY: &str = "summary";

impl Shorter {
    /// What the transcript says of it.
    pub(super) fn records(&self, data: BoundaryData) -> Compaction<'_> {
        let rest = self.rest.as_deref().map(|blocks| {
            let said = UserBody { is_meta: true, ..UserBody::new(UserContent::Blocks(blocks)) };
            vec![Body::User(said)]
        });
        Compaction {
            data,
            lines: self.lines.iter().map(|(kind, text)| body(kind, text)).collect(),
            kept: self.kept.clone(),
            rest,
        }
    }
}

fn body<'a>(kind: &'a str, text: &'a str) -> Body<'a> {
    if kind == SUMMARY {
        return Body::User(UserBody {
            is_meta: true,
            summary: Some(SummaryMark::YES),
            ..UserBody::new(UserContent::Text(text))
        });
    }
    Body::Attachment(AttachmentBody::new(kind, text))
}

impl Driver {
    /// The conversation with this summary in the place of its earlier part, if that makes it smaller.
    pub(super) fn shorten(
        &self,
        drawn: &Drawn,
        summary: Result<String, CompactError>,
    ) -> Result<Shorter, CompactError> {
        let summary = self.introduced(&summary?);
        let memory = self.memory.as_ref().map(MemoryTracker::reloaded);
        let mut lines = Vec::new();
        let told = memory.as_ref().and_then(MemoryTracker::render);
        lines.extend(told.map(|text| ("instructions", instructions(&text))));
        let summary_line = lines.len();
        lines.push((SUMMARY, summary.clone()));
        lines.extend(self.state());
        let (announced, news) = self.announce_anew();
        lines.extend(news.map(|text| ("servers", text)));
        if self.task().is_some_and(|task| task.spec.is_fork()) {
            lines.push(("fork", FORK_RULES.trim_end().to_owned()));
        }
        let kept: Vec<_> =
            self.standing.all().filter(|it| !self.journal.is_in_round(it.record)).collect();
        let blocks = lines.iter().map(|(_, text)| Block::Text(text.clone()));
        let blocks: Vec<Block> =
            blocks.chain(kept.iter().flat_map(|it| it.blocks.iter().cloned())).collect();
        let kept = kept.iter().map(|it| it.record).collect();
        let rest = self.cut_rest(drawn);
        let mut messages = vec![Message::new(Role::User, &blocks)];
        match &rest {
            None => messages.extend(drawn.round.iter().cloned()),
            Some(blocks) => {
                messages.extend(drawn.round.first().cloned());
                messages.push(Message::new(Role::User, blocks));
            }
        }
        let mut conversation = Conversation::default();
        for message in messages {
            if conversation.push(message).is_err() {
                debug_assert!(false, "invariant: calls and their results stay together");
            }
        }
        let (before, after) = (drawn.tokens(), conversation.tokens());
        if after >= before {
            return Err(CompactError::NotSmaller { before, after });
        }
        Ok(Shorter { conversation, summary, summary_line, memory, announced, lines, kept, rest })
    }

    /// The summary as the model reads it.
    fn introduced(&self, summary: &str) -> String {
        let record = match self.record_path() {
            Some(path) => format!(
                " The whole of it is in {} (one JSON object a line): search there for what is missing here.",
                path.display()
            ),
            None => String::new(),
        };
        format!(
            "<system-reminder>\nThis conversation goes on from an earlier part that is no longer shown. The summary \
             below stands for it.{record} What follows the summary is word for word as it was. Go on where the work \
             stands: do not greet, do not repeat what is done, do not ask whether to go on.\n</system-reminder>\n\n{}",
            contain(summary)
        )
    }

    /// Where the agent's own record is, if there is one.
    fn record_path(&self) -> Option<PathBuf> {
        if !self.journal.is_kept() {
            return None;
        }
        Some(match self.task() {
            Some(task) => task.transcript.clone(),
            None => self.shared.delegation.builder.files.transcript.clone(),
        })
    }

    /// What stands behind the newest answer, with results cut by reference where they would take most of the window.
    fn cut_rest(&self, drawn: &Drawn) -> Option<Vec<Block>> {
        let [_, behind] = drawn.round.as_slice() else { return None };
        let room = self.round_room();
        if behind.wire().len() <= room {
            return None;
        }
        let mut blocks = behind.blocks();
        let is_result = |block: &&Block| matches!(block, Block::ToolResult(_));
        let mut room = ResultRoom::new(room, blocks.iter().filter(is_result).count());
        let output_dir = &self.dispatch.agent.workspace.output_dir;
        for block in &mut blocks {
            if let Block::ToolResult(result) = block {
                let name = format!("{}-compacted", result.id);
                let parts = std::mem::take(&mut result.content);
                result.content = bounded_parts(parts, room.allowed(), output_dir, &name);
                room.take(result.content.iter().map(ToolResultContent::text_length).sum());
            }
        }
        Some(blocks)
    }
}
