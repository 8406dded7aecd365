//! The shorter conversation: what it holds, and the records that say so.

use std::path::PathBuf;

use centurion_config::memory::MemoryTracker;
use centurion_journal::transcript::{KeptRecord, Standing};
use centurion_journal::{Compacted, Compaction, KeptRound};
use centurion_protocol::markup::contain;
use centurion_protocol::transcript::{
    AttachmentBody, Body, BoundaryData, SummaryMark, UserBody, UserContent,
};
use centurion_protocol::{Block, Conversation, Message, RecordId, Role, ToolResultContent};

use super::summary::{Gap, Summary};
use super::{CompactError, Driver};
use crate::agent::fork_point::FORK_RULES;
use crate::agent::result_room::ResultRoom;
use crate::definition::prompt::instructions;
use crate::toolset::servers::Announcements;
use crate::turn::bounded::bounded_parts;
use crate::turn::driver::NOTES;
use crate::turn::refusal::{MEDIA_LEFT_OUT, take_media};

/// The most bytes of the newest round, pictures and documents included. Providers bound requests.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// The text in the place of a result where results are so many that even the beginning of each would be too much.
const RESULT_LEFT_OUT: &str = "[Left out for want of room: the record has it.]";

/// A conversation, drawn apart into what a summary can stand for and what stays.
pub(super) struct SplitConversation {
    /// All before the newest answer.
    pub(super) earlier: Conversation,
    /// The newest answer and the messages after it. Empty if the answer is too large, or in another agent's record.
    round: Vec<Message>,
    pub(super) newest: Newest,
}

/// The treatment of the newest part of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newest {
    /// The newest round and the prompt stay word for word.
    Stays,
    /// They go: the provider refuses something that may be in them.
    Goes,
}

/// The texts of people and others that may be cut, with the whole of them in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutTexts {
    None,
    /// Texts that the agent does not work on.
    Old,
    All,
}

impl Driver {
    /// Draws the conversation apart.
    pub(super) fn draw(&self, newest: Newest) -> SplitConversation {
        let room = self.round_room();
        let messages: Vec<&Message> = self.conversation.iter().collect();
        let is_answer = |message: &&Message| message.role() == Role::Assistant;
        let stays = |at: &usize| self.journal.has_round() && messages[*at].tokens() * 4 <= room;
        let answer = messages.iter().rposition(is_answer);
        let from = match newest {
            Newest::Stays => answer.filter(stays),
            Newest::Goes => answer,
        };
        let from = from.unwrap_or(messages.len());
        let mut earlier = Conversation::default();
        for message in &messages[..from] {
            // The beginning of a conversation is one.
            if earlier.push((*message).clone()).is_err() {
                debug_assert!(false, "invariant: a part of a valid history is valid");
            }
        }
        let round = match newest {
            Newest::Stays => messages[from..].iter().map(|it| (*it).clone()).collect(),
            Newest::Goes => Vec::new(),
        };
        SplitConversation { earlier, round, newest }
    }
}

impl SplitConversation {
    /// Tells whether anything was answered before the newest round: without that there is nothing to summarise.
    pub(super) fn has_exchange(&self) -> bool {
        self.earlier.iter().any(|message| message.role() == Role::Assistant)
    }

    /// The part that a summary of the earlier part leaves out.
    pub(super) fn gap(&self) -> Option<Gap> {
        (self.newest == Newest::Goes).then_some(Gap::Refused)
    }

    fn tokens(&self) -> usize {
        let round = self.round.iter().map(Message::tokens).sum::<usize>();
        self.earlier.tokens() + round
    }
}

/// A conversation that begins with a summary.
pub(super) struct Shorter {
    pub(super) conversation: Conversation,
    pub(super) summary: Summary,
    /// The summary as the model reads it.
    pub(super) introduced: String,
    /// The index of the summary among the lines.
    pub(super) summary_line: usize,
    pub(super) memory: Option<MemoryTracker>,
    pub(super) announced: Announcements,
    /// Texts that are told again, each with the kind of its record.
    lines: Vec<(&'static str, String)>,
    kept: Vec<RecordId>,
    /// The prompts of people that the summary stands for.
    summarized: Vec<RecordId>,
    /// Standing records that are cut, and stand among the lines.
    replaced: Vec<RecordId>,
    round: ShorterRound,
}

/// The treatment of the newest round.
enum ShorterRound {
    Whole,
    Cut(Vec<RestPart>),
    Dropped,
}

/// Something that stands behind the newest answer, with what it was in the standing records.
struct RestPart {
    blocks: Vec<Block>,
    was: Option<RecordId>,
}

impl RestPart {
    fn record(&self) -> Body<'_> {
        let content = UserContent::Blocks(&self.blocks);
        Body::User(UserBody { is_meta: true, ..UserBody::new(content) })
    }
}

/// The kind of the summary's line.
const SUMMARY: &str = "summary";

impl Shorter {
    /// The records of it for the transcript.
    pub(super) fn records(&self, data: BoundaryData) -> Compaction<'_> {
        let round = match &self.round {
            ShorterRound::Whole => KeptRound::Whole,
            ShorterRound::Cut(parts) => {
                KeptRound::Cut(parts.iter().map(RestPart::record).collect())
            }
            ShorterRound::Dropped => KeptRound::Dropped,
        };
        Compaction {
            data,
            lines: self.lines.iter().map(|(kind, text)| self.body(kind, text)).collect(),
            kept: self.kept.clone(),
            round,
        }
    }

    fn body<'a>(&'a self, kind: &'a str, text: &'a str) -> Body<'a> {
        if kind == SUMMARY {
            return Body::User(UserBody {
                is_meta: true,
                summary: Some(SummaryMark::new(&self.summarized)),
                ..UserBody::new(UserContent::Text(text))
            });
        }
        Body::Attachment(AttachmentBody::new(kind, text))
    }

    /// Has what stays point to the records where it stands now.
    pub(super) fn follow(&self, compacted: &Compacted, standing: &mut Standing) {
        standing.turns.retain(|record| !self.summarized.contains(record));
        standing.retain(|it| !self.replaced.contains(&it.record));
        let ShorterRound::Cut(parts) = &self.round else { return };
        for (part, record) in parts.iter().zip(&compacted.rest) {
            if let Some(it) = standing.all_mut().find(|it| Some(it.record) == part.was) {
                it.record = *record;
                it.blocks.clone_from(&part.blocks);
            }
        }
    }
}

/// Leaves out all results if they take much more than the room, though each was cut: so many of them.
fn leave_out_results(parts: &mut [RestPart], room: usize) {
    let is_result = |part: &&RestPart| matches!(part.blocks[..], [Block::ToolResult(_)]);
    let size = |part: &RestPart| Message::new(Role::User, &part.blocks).wire().len();
    if parts.iter().filter(is_result).map(size).sum::<usize>() <= 2 * room {
        return;
    }
    for block in parts.iter_mut().flat_map(|part| &mut part.blocks) {
        if let Block::ToolResult(result) = block {
            result.content = vec![ToolResultContent::Text(RESULT_LEFT_OUT.to_owned())];
        }
    }
}

/// The conversation of these messages, in which calls and their results stand together.
fn joined(messages: Vec<Message>) -> Conversation {
    let mut conversation = Conversation::default();
    for message in messages {
        if conversation.push(message).is_err() {
            debug_assert!(false, "invariant: calls and their results stay together");
        }
    }
    conversation
}

impl Driver {
    /// The conversation with this summary in the place of its earlier part, if that makes it smaller.
    pub(super) fn shorten(
        &self,
        drawn: &SplitConversation,
        summary: Summary,
        cut: CutTexts,
    ) -> Result<Shorter, CompactError> {
        let introduced = self.introduced(&summary);
        let memory = self.memory.as_ref().map(MemoryTracker::reloaded);
        let mut lines = Vec::new();
        let told = memory.as_ref().and_then(MemoryTracker::render);
        lines.extend(told.map(|text| ("instructions", instructions(&text))));
        lines.extend(self.notes_index().map(|text| (NOTES, text)));
        let summary_line = lines.len();
        lines.push((SUMMARY, introduced.clone()));
        lines.extend(self.state());
        let (announced, news) = self.announce_anew();
        lines.extend(news.map(|text| ("servers", text)));
        if self.task().is_some_and(|task| task.spec.is_fork()) {
            lines.push(("fork", FORK_RULES.trim_end().to_owned()));
        }
        let round = self.cut_round(drawn, cut);
        let is_elsewhere = |it: &KeptRecord| {
            !matches!(round, ShorterRound::Dropped) && self.journal.is_in_round(it.record)
        };
        let is_refused = |it: &KeptRecord| {
            let prompt = &self.standing.prompt;
            drawn.newest == Newest::Goes && prompt.iter().any(|other| other.record == it.record)
        };
        let mut replaced: Vec<RecordId> =
            self.standing.all().filter(|it| is_refused(it)).map(|it| it.record).collect();
        let mut kept = Vec::new();
        for it in self.standing.all().filter(|it| !is_elsewhere(it) && !is_refused(it)) {
            if cut == CutTexts::All && self.is_large(&it.blocks) {
                let cut = |block: &Block| self.cut_text(block, it.record, it.blocks.len());
                let texts =
                    it.blocks.iter().map(|block| cut(block).unwrap_or(MEDIA_LEFT_OUT.to_owned()));
                lines.extend(texts.map(|text| ("prompt", text)));
                replaced.push(it.record);
            } else {
                kept.push(it);
            }
        }
        let blocks = lines.iter().map(|(_, text)| Block::Text(text.clone()));
        let blocks: Vec<Block> =
            blocks.chain(kept.iter().flat_map(|it| it.blocks.iter().cloned())).collect();
        let kept: Vec<RecordId> = kept.iter().map(|it| it.record).collect();
        let summarized = self.summarized_prompts(&round, &kept);
        let mut messages = vec![Message::new(Role::User, &blocks)];
        match &round {
            ShorterRound::Whole => messages.extend(drawn.round.iter().cloned()),
            ShorterRound::Cut(parts) => {
                messages.extend(drawn.round.first().cloned());
                let rest: Vec<Block> = parts.iter().flat_map(|it| it.blocks.clone()).collect();
                messages.push(Message::new(Role::User, &rest));
            }
            ShorterRound::Dropped => {}
        }
        let conversation = joined(messages);
        let (before, after) = (drawn.tokens(), conversation.tokens());
        // One that the provider refuses need not become smaller, but another.
        if after >= before && drawn.newest == Newest::Stays {
            return Err(CompactError::NotSmaller { before, after });
        }
        Ok(Shorter {
            conversation,
            summary,
            introduced,
            summary_line,
            memory,
            announced,
            lines,
            kept,
            summarized,
            replaced,
            round,
        })
    }

    /// The prompts of people that are neither kept nor in the newest round.
    fn summarized_prompts(&self, round: &ShorterRound, kept: &[RecordId]) -> Vec<RecordId> {
        let has_round = !matches!(round, ShorterRound::Dropped);
        let stays = |record: &RecordId| {
            kept.contains(record) || (has_round && self.journal.is_in_round(*record))
        };
        self.standing.turns.iter().filter(|record| !stays(record)).copied().collect()
    }

    /// The summary as the model reads it.
    fn introduced(&self, summary: &Summary) -> String {
        let record = match self.record_path() {
            Some(path) => format!(
                " The whole of it is in {} (one JSON object a line): search there for what is missing here.",
                path.display()
            ),
            None => String::new(),
        };
        let partly = match summary.gap {
            None => "",
            Some(Gap::TooLong) => " A part of it was too long to be summarised.",
            Some(Gap::Refused) => {
                " Its newest part, with the last prompt, is left out: the provider refused to read it."
            }
        };
        format!(
            "<system-reminder>\nThis conversation continues from an earlier part that is no longer shown. The summary \
             below stands for it.{partly}{record} What follows the summary is unchanged. Continue where the \
             work stands: do not greet, do not repeat what is done, do not ask whether to continue.\n\
             </system-reminder>\n\n{}",
            contain(&summary.text)
        )
    }

    /// The path of the agent's own transcript, if there is one.
    fn record_path(&self) -> Option<PathBuf> {
        if !self.journal.is_kept() {
            return None;
        }
        Some(match self.task() {
            Some(task) => task.transcript.clone(),
            None => self.shared.delegation.builder.files.place.transcript(),
        })
    }

    /// Tells whether blocks would take more than the newest round may.
    fn is_large(&self, blocks: &[Block]) -> bool {
        let message = Message::new(Role::User, blocks);
        message.tokens() * 4 > self.round_room() || message.wire().len() > MOST_BYTES
    }

    /// Decides about the newest round: where it would take most of the window, the part behind the answer is cut,
    /// with the whole of it in files.
    fn cut_round(&self, drawn: &SplitConversation, cut: CutTexts) -> ShorterRound {
        if drawn.round.is_empty() {
            return ShorterRound::Dropped;
        }
        let [_, behind] = drawn.round.as_slice() else { return ShorterRound::Whole };
        let room = self.round_room();
        if behind.tokens() * 4 <= room && behind.wire().len() <= MOST_BYTES {
            return ShorterRound::Whole;
        }
        let mut parts = self.rest_parts(behind.blocks());
        let texts = parts.iter().flat_map(|part| &part.blocks);
        let texts = texts.filter(|block| matches!(block, Block::Text(_))).count();
        let is_result = |part: &&RestPart| matches!(part.blocks[..], [Block::ToolResult(_)]);
        let mut left = ResultRoom::new(room, parts.iter().filter(is_result).count());
        let output_dir = &self.dispatch.agent.workspace.output_dir;
        for part in &mut parts {
            if let [Block::ToolResult(result)] = &mut part.blocks[..] {
                let name = format!("{}-compacted-{}", result.id, self.shared.world.record_id());
                let content = std::mem::take(&mut result.content);
                result.content = bounded_parts(content, left.allowed(), output_dir, &name);
                left.take(result.content.iter().map(ToolResultContent::text_length).sum());
            } else if cut == CutTexts::All || (cut == CutTexts::Old && part.was.is_none()) {
                let record = part.was.unwrap_or_else(|| self.shared.world.record_id());
                for block in &mut part.blocks {
                    if let Some(text) = self.cut_text(block, record, texts) {
                        *block = Block::Text(text);
                    }
                }
            }
        }
        leave_out_results(&mut parts, room);
        let blocks: Vec<Block> = parts.iter().flat_map(|it| it.blocks.clone()).collect();
        if self.is_large(&blocks) {
            let goes = |part: &&mut RestPart| part.was.is_none() || cut == CutTexts::All;
            for block in parts.iter_mut().filter(goes).flat_map(|part| &mut part.blocks) {
                take_media(block, MEDIA_LEFT_OUT);
            }
        }
        ShorterRound::Cut(parts)
    }

    /// A text cut to its part of the room, with the whole of it in a file; `None` for what is no text. So many texts share
    /// the room.
    fn cut_text(&self, block: &Block, record: RecordId, texts: usize) -> Option<String> {
        let Block::Text(text) = block else { return None };
        let most = self.round_room() / texts.max(4);
        let output_dir = &self.dispatch.agent.workspace.output_dir;
        let parts = vec![ToolResultContent::Text(text.clone())];
        let name = format!("text-{record}-{}", self.shared.world.record_id());
        match bounded_parts(parts, most, output_dir, &name).pop() {
            Some(ToolResultContent::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The part behind the newest answer, split into separately recorded parts.
    fn rest_parts(&self, blocks: Vec<Block>) -> Vec<RestPart> {
        let wire = |blocks: &[Block]| Message::new(Role::User, blocks).wire().clone();
        let mut parts = Vec::with_capacity(blocks.len());
        let mut blocks = blocks.into_iter().collect::<std::collections::VecDeque<_>>();
        while !blocks.is_empty() {
            let here = blocks.make_contiguous();
            let begins = |it: &&KeptRecord| {
                let length = it.blocks.len();
                self.journal.is_in_round(it.record)
                    && (1..=here.len()).contains(&length)
                    && wire(&here[..length]) == wire(&it.blocks)
            };
            let standing = self.standing.all().find(begins);
            let length = standing.map_or(1, |it| it.blocks.len());
            let part = blocks.drain(..length).collect();
            parts.push(RestPart { blocks: part, was: standing.map(|it| it.record) });
        }
        parts
    }
}
