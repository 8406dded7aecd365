//! The name that hooks give a session: recorded, so that a list of sessions shows it.

use centurion_protocol::transcript::SESSION_TITLE;
use serde_json::json;

use super::Driver;

impl Driver {
    /// Names the session from now on. A blank name is none.
    pub(super) fn name_session(&self, title: Option<&str>) {
        let title = title.and_then(|title| title.trim().lines().next());
        let Some(title) = title.map(str::to_owned) else { return };
        if self.shared.title().as_ref() != Some(&title) {
            self.shared.set_title(Some(title));
            self.record_title();
        }
    }

    /// Records the name once more. A list of sessions reads only the two ends of a transcript.
    pub(crate) fn record_title(&self) {
        let Some(title) = self.shared.title() else { return };
        // Nothing depends on it. A journal that cannot be written ends the run at the next record.
        if let Err(error) = self.journal.note(SESSION_TITLE, &json!({"title": title})) {
            tracing::error!(%error, "the name of the session could not be recorded");
        }
    }
}
