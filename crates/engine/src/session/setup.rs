//! The beginning of a session for hooks: those of Setup first, where the program was started for them.

use centurion_hooks::events::Setup;
use tokio_util::sync::CancellationToken;

use super::Session;

impl Session {
    /// Runs the hooks of the session's beginning and end, and asks no model. Returns the reason of a hook that ended the
    /// session, if one did.
    pub async fn begin_only(&mut self) -> Option<String> {
        let cancel = CancellationToken::new();
        self.shared.servers.settle(self.server_patience).await;
        if let Some(source) = self.begins.take() {
            self.begin(source, &cancel).await;
        }
        let stop = self.driver.aside.stop.take();
        self.end().await;
        stop
    }

    /// Tells hooks that the session begins.
    pub(super) async fn begin(&mut self, source: &str, cancel: &CancellationToken) {
        if let Some(trigger) = self.setup.take() {
            let setup = Setup { trigger: trigger.name() };
            let fired = self.driver.dispatch.agent.fire(&setup, cancel).await;
            self.driver.aside.take(fired.context_for_model(), &fired.effects);
        }
        self.driver.begin(source, cancel).await;
    }
}
