//! Blocks of an answer that observers see before the answer is whole.
//!
//! A block is shown when it ends. It is recorded, and counts, when its whole answer is there, under the id by which it
//! was shown. If the answer fails and is asked for again, a block that comes as it came before is not shown again; the
//! first message that differs names in `supersedes` the messages that it replaces.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use centurion_hooks::Event;
use centurion_hooks::events::MessageDisplay;
use centurion_model::AnswerBuilder;
use centurion_protocol::sdk::{Assistant, EventBody};
use centurion_protocol::{Block, RecordId};
use tokio_util::sync::CancellationToken;

use super::record::shown_message;
use super::{Driver, Run, is_blank};

/// Blocks that were shown before their answer was whole.
#[derive(Debug, Default)]
pub(crate) struct EarlyBlocks {
    /// Blocks of the present try, by their places in the answer; `None` for blocks that observers do not see.
    seen: Vec<Option<ShownBlock>>,
    /// Blocks of the try before that did not come again, in the same way.
    earlier: Vec<Option<ShownBlock>>,
    /// Blocks that do not count and that observers have not been told of.
    void: Vec<RecordId>,
    /// The prompts of people that the turn answers.
    prompts: Vec<RecordId>,
    /// True if a message has named them.
    names_prompts: bool,
    /// True if a piece of an answer has named them.
    pieces_name_prompts: bool,
}

/// The most prompts that a message names.
const MOST_PROMPTS: usize = 64;

#[derive(Debug)]
struct ShownBlock {
    id: RecordId,
    digest: u64,
}

impl EarlyBlocks {
    /// The answer is asked for once more, or another one is.
    pub(super) fn begin_try(&mut self) {
        self.give_up_earlier();
        self.earlier = std::mem::take(&mut self.seen);
    }

    /// The ids of the shown blocks of the present try, by their places. They count now.
    pub(super) fn take_seen(&mut self) -> Vec<Option<RecordId>> {
        let seen = std::mem::take(&mut self.seen);
        seen.into_iter().map(|it| it.map(|it| it.id)).collect()
    }

    /// The messages that the next one replaces.
    pub(super) fn take_void(&mut self) -> Vec<RecordId> {
        self.give_up_earlier();
        std::mem::take(&mut self.void)
    }

    fn give_up_earlier(&mut self) {
        self.void.extend(self.earlier.drain(..).flatten().map(|it| it.id));
    }

    /// A run begins: it answers the prompts that it is given.
    pub(super) fn begin_run(&mut self) {
        self.prompts.clear();
        (self.names_prompts, self.pieces_name_prompts) = (true, true);
    }

    /// The turn answers this prompt, too.
    pub(super) fn answer_prompt(&mut self, prompt: RecordId) {
        if self.prompts.len() == MOST_PROMPTS {
            self.prompts.remove(0);
        }
        self.prompts.push(prompt);
        (self.names_prompts, self.pieces_name_prompts) = (false, false);
    }

    /// The prompts of people that the run has answered.
    pub(crate) fn prompts(&self) -> &[RecordId] {
        &self.prompts
    }

    /// The prompts that the next message answers, if no message has named them.
    pub(super) fn take_prompts(&mut self) -> Vec<RecordId> {
        if std::mem::replace(&mut self.names_prompts, true) {
            Vec::new()
        } else {
            self.prompts.clone()
        }
    }

    /// The prompts that the next piece of an answer answers, if no piece has named them.
    pub(super) fn take_prompts_for_piece(&mut self) -> Vec<RecordId> {
        if std::mem::replace(&mut self.pieces_name_prompts, true) {
            Vec::new()
        } else {
            self.prompts.clone()
        }
    }

    /// Takes note of a block that comes as it came in the try before; `false` if it did not.
    fn is_repeated(&mut self, digest: u64) -> bool {
        let place = self.seen.len();
        let again = self.earlier.get_mut(place).and_then(|it| it.take_if(|it| it.digest == digest));
        let is_again = again.is_some();
        if is_again {
            self.seen.push(again);
        }
        is_again
    }
}

impl Driver {
    /// Shows the blocks that have ended since the last time.
    pub(super) async fn show_ended(
        &mut self,
        run: &mut Run,
        builder: &mut AnswerBuilder,
        cancel: &CancellationToken,
    ) {
        let blocks = builder.take_ended().to_vec();
        for block in blocks {
            if is_blank(&block) || !self.shows(&block) {
                self.early.seen.push(None);
                continue;
            }
            let digest = digest(&block);
            if self.early.is_repeated(digest) {
                continue;
            }
            let id = self.shared.world.record_id();
            let (answer, model, request) = builder.head();
            let message = shown_message((answer, model), block.clone(), builder.usage().clone());
            let request_id = request.map(str::to_owned);
            let shown = Assistant { request_id, ..self.shown(message) };
            self.shared.show_as(id, EventBody::Assistant(Box::new(shown)));
            self.early.seen.push(Some(ShownBlock { id, digest }));
            run.times.shown.get_or_insert(run.started.elapsed());
            self.tell_display(id, &block, cancel).await;
        }
    }

    /// Tells hooks of a text of the main agent that observers were shown. What was shown stays as it is.
    async fn tell_display(&self, id: RecordId, block: &Block, cancel: &CancellationToken) {
        let agent = &self.dispatch.agent;
        let Block::Text(delta) = block else { return };
        if !self.identity().is_main() || !agent.has_hooks(Event::MessageDisplay) {
            return;
        }
        let turn = self.early.prompts.last().copied().unwrap_or(id).to_string();
        let message_id = id.to_string();
        // A text is shown whole: it is the first and the last piece of its message.
        let shown = MessageDisplay {
            turn_id: &turn,
            message_id: &message_id,
            index: 0,
            is_final: true,
            delta,
        };
        agent.fire(&shown, cancel).await;
    }
}

/// A digest of a block, to know it again.
fn digest(block: &Block) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(block).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
