//! The life of a member of a team: what differs from that of other agents.
//!
//! Its run ends when it has nothing to do. The lead is told so by a notice that goes along with the lead's next turn;
//! it begins a turn by itself only if the member failed, or if all members are idle and one of them has said something
//! that the lead has not heard.

use std::fmt::Write as _;
use std::sync::Arc;

use centurion_hooks::events::TeammateIdle;
use centurion_protocol::markup::contain;
use centurion_protocol::sdk::{
    BackgroundTask, EventBody, System, TaskNotification, TaskPatch, TaskStarted, TaskUpdated,
};
use centurion_protocol::{Block, Outcome, TaskId};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::agent::background_tasks;
use crate::agent::shared::Shared;
use crate::agent::task::{End, RunStart, Stopper, Task, TaskRun};
use crate::definition::spec::Membership;
use crate::delegate::notification::show_run_ended;
use crate::delegate::outcome::{bounded_result, failure};
use crate::delegate::recall::append_end;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority, Queue, Wakes};
use crate::message::teammate_message::TeammateMessage;
use crate::message::titles::title;

/// The task type of team members for hosts.
const TASK_TYPE: &str = "in_process_teammate";

/// The member's name and its team.
fn membership(task: &Task) -> Option<(&str, &Membership)> {
    Some((task.spec.name.as_deref()?, task.spec.team.as_ref()?))
}

/// The name by which others know a member: `name@team`.
pub(crate) fn address(task: &Task) -> Option<String> {
    membership(task).map(|(name, team)| format!("{name}@{}", team.name))
}

/// Puts the notice of a run's end before the lead.
pub(super) fn tell_idle(queue: &Queue, task: &Task, run: &TaskRun, end: &End) {
    queue.tell_idle(&task.id, idle_news(task, run, end));
}

/// The notice of a run's end.
pub(super) fn idle_news(task: &Task, run: &TaskRun, end: &End) -> Item {
    let name = task.spec.name.as_deref().unwrap_or(task.id.as_str());
    let text = idle_text(task, end, name);
    let message =
        TeammateMessage { from: name, color: Some(&task.spec.color), summary: None, text: &text };
    Item {
        id: end.notification,
        priority: Priority::Later,
        addressee: None,
        content: vec![Block::Text(message.words(!end.has_reported))],
        origin: Origin::TeammateIdle {
            member: task.id.clone(),
            run: run.id.clone(),
            wakes: wakes(end),
        },
        manner: Manner::default(),
    }
}

/// Tells whether the lead has to hear of an end, and when.
pub(super) fn wakes(end: &End) -> Wakes {
    match end.stopped_by {
        Some(Stopper::Session) => Wakes::Never,
        Some(_) => Wakes::AtOnce,
        None if !end.outcome.is_success() => Wakes::AtOnce,
        None if end.has_reported => Wakes::Never,
        None => Wakes::WhenAllAreIdle,
    }
}

/// The text of the notice: a structured message, and its meaning in words where it asks for something.
fn idle_text(task: &Task, end: &End, name: &str) -> String {
    let mut text = idle_frame(task, end, name).to_string();
    // Writing to a string cannot fail.
    if end.stopped_by == Some(Stopper::Person) {
        let _ = write!(
            text,
            "\n{name} has left the team: the user stopped it, and only the user brings it back."
        );
    } else if end.leaves_team() {
        let _ = write!(text, "\n{name} has left the team.");
        let _ =
            write!(text, " SendMessage with to: '{name}' brings it back with all that it knows.");
    }
    if let Some(words) = end.unread_words() {
        let _ = write!(text, "\n{words}");
    }
    text
}

fn idle_frame(task: &Task, end: &End, name: &str) -> Value {
    if end.stopped_by == Some(Stopper::Shutdown) && end.outcome == Outcome::Completed {
        return json!({"type": "shutdown_approved", "from": name, "backendType": task.back_end()});
    }
    if end.leaves_team() {
        return json!({"type": "teammate_terminated", "from": name, "message": failure(end)});
    }
    let mut frame = json!({"type": "idle_notification", "from": name, "idleReason": "available"});
    if !end.outcome.is_success() {
        frame["idleReason"] = json!("failed");
        frame["failureReason"] = json!(failure(end));
    }
    if !end.has_reported {
        let result = bounded_result(task, end);
        if !result.trim().is_empty() {
            frame["result"] = json!(result);
        }
    }
    frame
}

/// Asks hooks whether a member may rest. What they say otherwise is the member's next input.
pub(super) async fn ask_hooks(shared: &Shared, agent: &Agent, task: &Task) {
    let Some((teammate_name, team)) = membership(task) else { return };
    let idle = TeammateIdle { teammate_name, team_name: team.name.as_str() };
    let fired = agent.fire(&idle, &CancellationToken::new()).await;
    if let Some(reason) = fired.verdict.reason().map(contain) {
        shared.queue.push(Item {
            id: shared.world.record_id(),
            priority: Priority::Next,
            addressee: Some(task.id.clone()),
            content: vec![Block::Text(format!("TeammateIdle hook feedback:\n{reason}"))],
            origin: Origin::Hook,
            manner: Manner::default(),
        });
    }
}

/// A member that was asked to end ends when it has nothing left to do, or has failed. One that was stopped ends as such.
pub(super) fn end_if_asked(shared: &Shared, task: &Task, outcome: Outcome) {
    let is_asked =
        shared.delegation.team.as_ref().is_some_and(|team| team.is_asked_to_end(&task.id));
    let is_stopped = task.stopped_by().is_some_and(|by| by != Stopper::Watchdog);
    let is_done = outcome != Outcome::Completed || !shared.queue.has_pending(&task.id);
    if is_asked && !is_stopped && is_done {
        task.leave();
    }
}

/// Waits until a member has worked for too long after it was asked to end, and stops it.
pub(super) async fn end_overdue(shared: &Shared, task: &Task) -> std::convert::Infallible {
    if let Some(team) = shared.delegation.team.as_ref().filter(|_| task.spec.team.is_some()) {
        team.begin_teardown(task);
    }
    task.overdue().await;
    task.leave();
    task.stop(Stopper::Shutdown);
    std::future::pending().await
}

/// A member's run is over: if no other member is at work, the lead hears what it has not heard.
pub(super) fn settle_team(shared: &Shared, task: &Task) {
    let Some(team) = shared.delegation.team.as_ref().filter(|_| task.spec.team.is_some()) else {
        return;
    };
    if task.end().is_some_and(|end| end.leaves_team()) {
        team.forget_requests(&task.id);
        task.set_teardown(None);
    }
    if team.is_idle() {
        shared.queue.tell_all_idle();
    }
    team.show();
}

/// Shows observers that a member begins, or continues after a rest.
pub(super) fn show_started(shared: &Arc<Shared>, task: &Task, beginning: RunStart) {
    let (run, task_id) = (task.run(), task.id.to_string());
    // One that comes back to the team, or has begun in an earlier process, is new to them.
    if beginning == RunStart::Resumed && background_tasks::has(shared, &task_id) {
        return show_status(shared, task, "running", None);
    }
    let name = task.spec.name.as_deref().unwrap_or_default();
    let description = format!("{name}: {}", title(&run.prompt));
    shared.show(EventBody::System(System::TaskStarted(Box::new(TaskStarted {
        task_id: task_id.clone(),
        run_id: Some(run.id.clone()),
        tool_use_id: Some(run.call),
        description: description.clone(),
        subagent_type: Some(task.spec.agent_type.clone()),
        name: task.spec.name.clone(),
        color: Some(task.spec.color.clone()),
        is_backgrounded: true,
        spawn_depth: Some(task.spec.depth),
        parent_task_id: task.spec.parent.clone(),
        task_type: TASK_TYPE,
        prompt: Some(run.prompt),
    }))));
    let entry = BackgroundTask {
        task_id,
        run_id: Some(run.id),
        task_type: TASK_TYPE,
        subagent_type: Some(task.spec.agent_type.clone()),
        description,
    };
    background_tasks::enter(shared, entry);
}

/// Shows observers that a member's run is over. One that stays in the team only rests.
pub(super) fn show_ended(shared: &Arc<Shared>, task: &Task, end: &End) {
    if end.leaves_team() || end.stopped_by == Some(Stopper::Session) {
        return show_run_ended(shared, task, end);
    }
    let error = (!end.outcome.is_success()).then(|| failure(end));
    show_status(shared, task, "pending", error);
}

fn show_status(shared: &Shared, task: &Task, status: &'static str, error: Option<String>) {
    let patch = TaskPatch { status: Some(status), error, ..TaskPatch::default() };
    let (task_id, run_id) = (task.id.to_string(), Some(task.run().id));
    shared.show(EventBody::System(System::TaskUpdated(TaskUpdated { task_id, run_id, patch })));
}

/// Shows observers that members at rest end with the session.
pub(crate) fn show_dissolved(shared: &Arc<Shared>) {
    let Some(team) = &shared.delegation.team else { return };
    let known = team.members().into_iter();
    for task in known.filter(|task| background_tasks::has(shared, task.id.as_str())) {
        let rests = task.end().filter(|end| end.stopped_by != Some(Stopper::Session));
        if let Some(end) = rests {
            let run = task.run();
            let told = TaskNotification {
                task_id: task.id.to_string(),
                run_id: Some(run.id),
                tool_use_id: Some(run.call),
                status: if end.outcome.is_success() { "completed" } else { "failed" },
                output_file: task.output.path().display().to_string(),
                summary: address(&task).unwrap_or_default(),
                usage: None,
                worktree: None,
            };
            shared.show(EventBody::System(System::TaskNotification(Box::new(told))));
            background_tasks::leave(shared, &TaskId::new(task.id.as_str()));
        }
    }
}

/// A member at rest is stopped: it leaves the team. Whether it was at rest.
pub(crate) fn dismiss(shared: &Arc<Shared>, task: &Arc<Task>, by: Stopper) -> bool {
    if task.spec.team.is_none() || task.end().is_none_or(|end| end.leaves_team()) {
        return false;
    }
    let was_resting = task.dismiss(by, |run, end| append_end(shared, task, run, end));
    if was_resting && let Some(end) = task.end() {
        if let Some(processes) = shared.delegation.member_processes.clone() {
            let id = task.id.clone();
            shared.work.spawn(async move { processes.dismiss(&id).await });
        }
        show_run_ended(shared, task, &end);
        settle_team(shared, task);
        if by == Stopper::Person {
            let name = task.spec.name.as_deref().unwrap_or(task.id.as_str());
            shared.add_side_note(None, format!("The user has taken {name} out of the team."));
        }
    }
    was_resting
}
