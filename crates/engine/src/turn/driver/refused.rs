//! Requests that a provider refuses for a part of the conversation: a note takes its place, and the request is sent again.
//!
//! The transcript keeps what was said: only what is sent changes.

use centurion_journal::JournalError;
use centurion_journal::transcript::REFUSED;
use centurion_model::{ErrorKind, ModelError};
use centurion_protocol::Block;
use centurion_protocol::markup::contain;
use serde_json::json;

use super::{Driver, Run};
use crate::turn::refusal::{BlockPlace, NOTE, RefusedPart, is_about_conversation};

/// The most bytes of a provider's reason that a model reads.
const LONGEST_REASON: usize = 500;

/// The most parts that are replaced in one run.
const MOST_REPLACED: usize = 12;

impl Driver {
    /// Takes the part out that the provider refuses, if the refusal is about one; whether to send the request again.
    pub(super) fn replace_refused(
        &mut self,
        run: &mut Run,
        error: &ModelError,
    ) -> Result<bool, JournalError> {
        if error.kind != ErrorKind::InvalidRequest {
            return Ok(false);
        }
        if !is_about_conversation(&error.message) {
            return Ok(false);
        }
        let Some(refused) = RefusedPart::read(&self.conversation, &error.message) else {
            return self.give_up(error);
        };
        // One after another of the same kind: the others are no better.
        let is_again = run.refused.contains(&refused.what());
        let refused = if is_again { refused.widened() } else { refused };
        let note = note(&error.message);
        let replaced = refused.replaced(&self.conversation, &note);
        let Some(conversation) = replaced.filter(|_| run.refused.len() < MOST_REPLACED) else {
            return self.give_up(error);
        };
        run.refused.push(refused.what());
        if let Some(place) = refused.place() {
            self.replace_standing(place, &note);
        }
        self.conversation = conversation;
        self.cached = None;
        let data = json!({"what": refused.what(), "reason": error.message});
        self.journal.note("refused_part", &data)?;
        let text = format!("{} is left out, the provider refused it: {error}", refused.what());
        self.dispatch.agent.inform("warning", text);
        Ok(true)
    }

    /// Notes that the provider refuses the conversation for a reason that cannot be removed, so that the user can have it
    /// compacted, in this process or a later one.
    fn give_up(&mut self, error: &ModelError) -> Result<bool, JournalError> {
        self.window.is_refused = true;
        self.journal.note(REFUSED, &json!({"reason": error.message}))?;
        Ok(false)
    }

    /// Replaces the block in standing records, too, which would bring it back.
    fn replace_standing(&mut self, place: BlockPlace, note: &str) {
        let message = self.conversation.iter().nth(place.message);
        let block = message.and_then(|it| it.blocks().into_iter().nth(place.block));
        let json = |block: &Block| serde_json::to_string(block).ok();
        let Some(refused) = block.as_ref().and_then(json) else { return };
        for block in self.standing.all_mut().flat_map(|it| &mut it.blocks) {
            if json(block).as_ref() == Some(&refused) {
                *block = Block::text(note);
            }
        }
    }
}

/// The note in the place of a part that a provider refused for this reason.
pub(super) fn note(reason: &str) -> String {
    // A provider may repeat what a server or a file said.
    let said = contain(reason).into_owned();
    let reason = &said[..said.floor_char_boundary(LONGEST_REASON)];
    format!("{NOTE} {reason}]")
}
