//! The place in which an agent works: records of its worktree, and moves by a person.

use std::path::Path;

use centurion_journal::JournalError;

use super::Driver;
use crate::agent::isolation::entered;

impl Driver {
    /// Tells hooks that a person has moved the agent's commands to another directory.
    pub(crate) async fn moved_by_person(&mut self, stood: &Path) {
        self.dispatch.moved(stood, &mut self.aside).await;
    }

    /// Records where the agent works, if it has entered or left a worktree.
    pub(super) fn record_worktree(&self) -> Result<(), JournalError> {
        let isolator = &self.shared.delegation.builder.isolator;
        if let Some(place) = isolator.unnoted(self.identity().id.as_ref()) {
            self.journal.note(entered::NOTE, &place)?;
        }
        Ok(())
    }
}
