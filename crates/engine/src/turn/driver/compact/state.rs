//! Texts about the present state for an agent after a compaction, from state and not from the summary.

use std::fmt::Write as _;

use centurion_permissions::Mode;
use centurion_protocol::markup::contain;
use centurion_tools::TodoStatus;

use super::Driver;
use crate::agent::hooks::reminder;
use crate::turn::driver::SKILL_LISTING;

/// Text of others in one line of a list: it ends no line of ours and begins none.
fn one_line(text: &str) -> String {
    contain(&text.replace(char::is_control, " ")).into_owned()
}

/// The most read files that are named.
const MOST_FILES: usize = 40;

/// The most open tasks that are named.
const MOST_TASKS: usize = 40;

impl Driver {
    /// The texts, each with what records call it.
    pub(super) fn state(&self) -> Vec<(&'static str, String)> {
        let mode = (self.dispatch.agent.permissions.mode() == Mode::Plan).then(|| {
            "Plan mode is on: nothing may be changed until the user has approved a plan.".to_owned()
        });
        let parts = [
            ("todos", self.todos()),
            ("tasks", self.open_tasks()),
            ("agents", self.roster()),
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
        if todos.iter().all(|todo| todo.status == TodoStatus::Completed) {
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

    /// The open tasks of the list that agents share.
    fn open_tasks(&self) -> Option<String> {
        let tasks = self.shared.delegation.task_list.as_ref()?.open_tasks();
        let you = self.dispatch.agent.identity.task_name();
        let mut text = "The open tasks of the list (TaskList shows all of them):".to_owned();
        for task in tasks.iter().take(MOST_TASKS) {
            let owner = match task.owner.as_deref() {
                Some(owner) if owner == you => ", yours".to_owned(),
                Some(owner) => format!(", {owner}'s"),
                None => String::new(),
            };
            let (id, status) = (task.id, task.status.as_str());
            let _ = write!(text, "\n- #{id} [{status}{owner}] {}", one_line(&task.subject));
        }
        (!tasks.is_empty()).then_some(text)
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
