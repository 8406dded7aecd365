//! The wait of the main agent for agents that a person has brought to the foreground.

use centurion_protocol::sdk::WaitsFor;
use tokio_util::sync::CancellationToken;

use super::Driver;

impl Driver {
    /// Waits until all agents in the foreground have ended. An interrupt sends them to the background again.
    pub(super) async fn wait_for_foreground(&self, cancel: &CancellationToken) {
        let delegation = &self.shared.delegation;
        if !self.identity().is_main() || delegation.foreground.is_empty() {
            return;
        }
        let waiting = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = delegation.foreground_is_over() => {}
            }
        };
        self.dispatch.agent.wait(WaitsFor::Agent, waiting).await;
        if cancel.is_cancelled() {
            self.shared.release_foreground();
        }
    }
}
