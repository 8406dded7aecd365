//! Events about the progress of an agent, for observers.

use centurion_protocol::sdk::{EventBody, System, TaskProgress};

use crate::agent::shared::Shared;
use crate::agent::task::Task;

/// Shows observers what an agent does.
pub(crate) fn show_progress(shared: &Shared, task: &Task) {
    let (run, progress) = (task.run(), task.progress());
    shared.show(EventBody::System(System::TaskProgress(Box::new(TaskProgress {
        task_id: task.id.to_string(),
        run_id: run.id,
        tool_use_id: Some(run.call),
        description: progress.activity,
        subagent_type: task.spec.agent_type.clone(),
        usage: task.usage(),
        last_tool_name: progress.last_tool,
        summary: progress.summary,
    }))));
}
