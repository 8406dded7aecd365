//! Records of the worktree that an agent works in.

use centurion_journal::JournalError;

use super::Driver;
use crate::agent::isolation::entered;

impl Driver {
    /// Records where the agent works, if it has entered or left a worktree.
    pub(super) fn record_worktree(&self) -> Result<(), JournalError> {
        let isolator = &self.shared.delegation.builder.isolator;
        if let Some(place) = isolator.unnoted(self.identity().id.as_ref()) {
            self.journal.note(entered::NOTE, &place)?;
        }
        Ok(())
    }
}
