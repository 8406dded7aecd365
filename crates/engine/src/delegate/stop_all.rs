//! Ending all agents at once: the main agent is told of it once, not once for each.

use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::{Block, RecordId};

use crate::agent::shared::Shared;
use crate::agent::task::{Stopper, Task, TaskRun};
use crate::delegate::notification;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::message::titles::title;
use centurion_protocol::markup::contain;

/// The longest wait for the ends of agents.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ends every agent in the background; how many there were. The main agent is told in this manner.
pub(crate) fn stop_all(shared: &Arc<Shared>, telling: Manner) -> usize {
    let delegation = &shared.delegation;
    let running = delegation.running();
    let stopped: Vec<(Arc<Task>, TaskRun)> = running
        .into_iter()
        .filter(|task| task.is_background() && task.stop_quietly(Stopper::Person))
        .map(|task| (Arc::clone(&task), task.run()))
        .collect();
    let count = stopped.len();
    if count > 0 {
        shared.work.spawn(tell(Arc::downgrade(shared), stopped, telling, delegation.will_tell()));
    }
    count
}

/// Tells of all of them once the last one has ended; the session does not end before that. One that finished
/// its work in time was not stopped: its result is told as any other.
async fn tell(
    shared: std::sync::Weak<Shared>,
    stopped: Vec<(Arc<Task>, TaskRun)>,
    telling: Manner,
    _will_tell: Arc<()>,
) {
    let mut covers: Vec<RecordId> = Vec::new();
    let mut lines = Vec::new();
    for (task, run) in &stopped {
        let end = task.ended(PATIENCE).await;
        let Some(shared) = shared.upgrade() else { return };
        match end {
            Some(end) if end.outcome.is_success() => {
                notification::tell_end(&shared.queue, task, run, &end);
                continue;
            }
            Some(end) => covers.push(end.notification),
            None => {}
        }
        lines.push(format!("- {} ({})", contain(&title(&task.spec.description)), task.id));
    }
    let Some(shared) = shared.upgrade().filter(|_| !lines.is_empty()) else { return };
    let text = format!(
        "<task-notification>\n<status>killed</status>\n<summary>The user stopped {} agents</summary>\n\
         </task-notification>\nThey were:\n{}\nDo not start them again unless the user asks for it.",
        lines.len(),
        lines.join("\n")
    );
    shared.queue.push(Item {
        id: shared.world.record_id(),
        priority: Priority::Later,
        addressee: None,
        content: vec![Block::Text(text)],
        origin: Origin::TaskNotifications { covers },
        manner: telling,
    });
}
