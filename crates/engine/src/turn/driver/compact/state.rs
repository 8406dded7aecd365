//! Texts about the present state for an agent after a compaction, from state and not from the summary.

use std::fmt::Write as _;
use std::sync::Arc;

use centurion_permissions::Mode;
use centurion_protocol::Outcome;
use centurion_protocol::markup::contain;
use centurion_tools::TodoStatus;

use super::Driver;
use crate::agent::hooks::reminder;
use crate::agent::task::Task;
use crate::turn::driver::skills::SKILL_LISTING;

/// Text of others in one line of a list: it ends no line of ours and begins none.
fn one_line(text: &str) -> String {
    contain(&text.replace(char::is_control, " ")).into_owned()
}

/// The most read files that are named.
const MOST_FILES: usize = 40;

/// The most open tasks that are named.
const MOST_TASKS: usize = 40;

/// The most tasks that are done, and agents that have ended, that are named.
const MOST_DONE: usize = 20;

/// The most bytes of a plan that are told again.
const LONGEST_PLAN: usize = 32 * 1024;

impl Driver {
    /// The texts, each with what records call it.
    pub(super) fn state(&self) -> Vec<(&'static str, String)> {
        let mode = (self.dispatch.agent.permissions.mode() == Mode::Plan).then(|| {
            let host = self.identity().is_main().then(|| self.shared.delegation.plan.again());
            host.flatten().unwrap_or_else(|| {
                "Plan mode is on: nothing may be changed until the user has approved a plan."
                    .to_owned()
            })
        });
        let parts = [
            ("todos", self.todos()),
            ("plan", self.approved_plan()),
            ("tasks", self.tasks()),
            ("agents", self.roster()),
            ("ended_agents", self.ended_agents()),
            ("team", self.team()),
            ("files", self.files_read()),
            ("mode", mode),
            ("worktree", self.entered_worktree()),
            ("skills", self.skills_again()),
        ];
        let parts = parts.into_iter().filter_map(|(kind, text)| Some((kind, reminder(&text?))));
        parts.chain(self.skill_listing_again().map(|text| (SKILL_LISTING, text))).collect()
    }

    /// The worktree that the agent entered.
    fn entered_worktree(&self) -> Option<String> {
        let isolator = &self.shared.delegation.builder.isolator;
        let place = isolator.entered(&self.dispatch.agent)?;
        let (path, came_from) = (place.path.display(), place.came_from.display());
        Some(format!("You work in the worktree {path} now (before: {came_from})."))
            .map(|it| one_line(&it))
    }

    /// The list of things to do, with what is done: that must not be done again.
    fn todos(&self) -> Option<String> {
        let todos = self.dispatch.agent.workspace.todos.lock();
        if todos.is_empty() {
            return None;
        }
        let mut text = "Your list of things to do, as it is now:".to_owned();
        for todo in todos.iter() {
            let status = match todo.status {
                TodoStatus::Pending => "open",
                TodoStatus::InProgress => "in progress",
                TodoStatus::Completed => "done",
            };
            let _ = write!(text, "\n- [{status}] {}", one_line(&todo.content));
        }
        Some(text)
    }

    /// The plan that was approved and is carried out.
    fn approved_plan(&self) -> Option<String> {
        let plan = self.dispatch.agent.workspace.plan.lock().approved.clone()?;
        let end = plan.floor_char_boundary(LONGEST_PLAN);
        let cut = if end < plan.len() { "\n[The rest is in the transcript.]" } else { "" };
        Some(format!("Your plan, which was approved:\n{}{cut}", contain(&plan[..end])))
    }

    /// The tasks of the list that agents share: the open ones, and the last that are done.
    fn tasks(&self) -> Option<String> {
        let (open, done) =
            self.shared.delegation.task_list_of(self.identity().id.as_ref())?.open_and_done();
        let you = self.dispatch.agent.identity.task_name();
        let mut text = "The tasks of the list (TaskList shows all of them):".to_owned();
        let last_done = &done[done.len().saturating_sub(MOST_DONE)..];
        for task in open.iter().take(MOST_TASKS).chain(last_done) {
            let owner = match task.owner.as_deref() {
                Some(owner) if owner == you => ", yours".to_owned(),
                Some(owner) => format!(", {owner}'s"),
                None => String::new(),
            };
            let (id, status) = (task.id, task.status.as_str());
            let _ = write!(text, "\n- #{id} [{status}{owner}] {}", one_line(&task.subject));
        }
        (!open.is_empty() || !done.is_empty()).then_some(text)
    }

    /// The agents and shells that work for this agent.
    fn roster(&self) -> Option<String> {
        let work = self.background_work();
        if work.is_empty() {
            return None;
        }
        let mut text = "At work for you in the background. Do not start them again: you are told when they end."
            .to_owned();
        for it in work {
            let kind = it.agent_type.map_or(it.kind, |kind| format!("agent {kind}"));
            let name = it.name.map(|name| format!(" \"{name}\"")).unwrap_or_default();
            let output = self
                .shared
                .delegation
                .find(&it.id)
                .map(|task| format!(", output in {}", task.output.path().display()));
            let output = output.unwrap_or_default();
            let _ =
                write!(text, "\n- {} ({kind}{name}): {}{output}", it.id, one_line(&it.description));
        }
        Some(text)
    }

    /// The agents that worked for this agent and have ended: what they did must not be done again, and they can be woken.
    fn ended_agents(&self) -> Option<String> {
        let own = self.identity().id.as_ref();
        let is_its = |task: &Arc<Task>| {
            let asker = task.run().asker;
            task.spec.team.is_none() && asker.as_ref().map(|asker| &asker.agent) == own
        };
        let tasks = self.shared.delegation.tasks().into_iter().filter(is_its);
        let ended: Vec<_> = tasks.filter_map(|task| Some((task.end()?, task))).collect();
        let mut text = "Agents that worked for you and have ended. Do not start them again for the same; SendMessage with the \
                        id wakes one up."
            .to_owned();
        for (end, task) in &ended[ended.len().saturating_sub(MOST_DONE)..] {
            let status = match end.outcome {
                Outcome::Completed => "done",
                _ if end.stopped_by.is_some() => "stopped",
                Outcome::Cancelled | Outcome::Interrupted => "interrupted",
                _ => "failed",
            };
            let spec = &task.spec;
            let name = spec.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
            let (kind, what) = (&spec.agent_type, one_line(&spec.description));
            let _ = write!(text, "\n- [{status}] {} (agent {kind}{name}): {what}", task.id);
        }
        (!ended.is_empty()).then_some(text)
    }

    /// The team, as the lead and its members have to know it.
    fn team(&self) -> Option<String> {
        let team = self.shared.delegation.team.as_ref()?;
        let own = &self.dispatch.agent.identity;
        if !own.is_main() && own.team.is_none() {
            return None;
        }
        let members = team.members();
        let others = members.iter().filter(|task| own.id.as_ref() != Some(&task.id));
        let mut text = match &own.name {
            Some(name) if !own.is_main() => {
                format!(
                    "You are {name} in the team {}, which team-lead leads. The other members:",
                    team.name()
                )
            }
            _ => format!(
                "You lead the team {}. Its members (SendMessage reaches them by name):",
                team.name()
            ),
        };
        for task in others {
            let state = if task.is_running() { "at work" } else { "idle" };
            let (name, kind) = (task.identity.task_name(), &task.spec.agent_type);
            let description = one_line(&task.spec.description);
            let _ = write!(text, "\n- {name} ({kind}), {state}: {description}");
        }
        (!members.is_empty()).then_some(text)
    }

    /// The files that the agent has read. It may change them without reading them again, as long as they are what they were.
    fn files_read(&self) -> Option<String> {
        let files = self.dispatch.agent.workspace.read_state.paths();
        if files.is_empty() {
            return None;
        }
        let mut text = "Files that you have read or written. Their contents are no longer shown here: read them again \
                        where you need them."
            .to_owned();
        for file in files.iter().take(MOST_FILES) {
            let _ = write!(text, "\n- {}", one_line(&file.display().to_string()));
        }
        if files.len() > MOST_FILES {
            let _ = write!(text, "\n- and {} more", files.len() - MOST_FILES);
        }
        Some(text)
    }
}
