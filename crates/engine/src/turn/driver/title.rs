//! The name that hooks give a session.

use super::Driver;

impl Driver {
    /// Names the session from now on. A blank name is none.
    pub(super) fn name_session(&self, title: Option<&str>) {
        let title = title.and_then(|title| title.trim().lines().next());
        let Some(title) = title.map(str::to_owned) else { return };
        if self.shared.title().as_ref() != Some(&title) {
            self.shared.set_title(Some(title));
            self.shared.record_title();
        }
    }
}
