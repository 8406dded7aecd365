//! The calls that wait for a command, each with a way to let it continue without the command.

use centurion_protocol::ToolUseId;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::context::lock;

/// The calls of one session that wait for a command.
#[derive(Default)]
pub(super) struct Foreground(Mutex<IndexMap<ToolUseId, CancellationToken>>);

impl Foreground {
    /// Notes that a call waits, until the answer is dropped.
    pub(super) fn wait(&self, call: ToolUseId) -> ForegroundCall<'_> {
        let release = CancellationToken::new();
        lock(&self.0).insert(call.clone(), release.clone());
        ForegroundCall { foreground: self, call, release }
    }

    /// Releases this call; whether it waited.
    pub(super) fn release(&self, call: &ToolUseId) -> bool {
        let released = lock(&self.0).shift_remove(call);
        released.inspect(CancellationToken::cancel).is_some()
    }

    /// Releases every call that waits; how many did.
    pub(super) fn release_all(&self) -> usize {
        let released = std::mem::take(&mut *lock(&self.0));
        released.values().for_each(CancellationToken::cancel);
        released.len()
    }
}

/// One call that waits.
pub(super) struct ForegroundCall<'a> {
    foreground: &'a Foreground,
    call: ToolUseId,
    release: CancellationToken,
}

impl ForegroundCall<'_> {
    /// Resolves when the call is to continue without its command.
    pub(super) async fn released(&self) {
        self.release.cancelled().await;
    }
}

impl Drop for ForegroundCall<'_> {
    fn drop(&mut self) {
        lock(&self.foreground.0).shift_remove(&self.call);
    }
}
