//! The second scene of the demo: a lead and three members of its team on one task list.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use centurion_engine::{AgentOptions, TaskListPlace, TeamOptions, View};
use centurion_host::Front;
use centurion_protocol::sdk::{Event, EventBody, System};
use centurion_team::{Status, TaskList, TeamName};
use parking_lot::Mutex;

use super::witness::Step;

pub(super) const SCENARIO: &str = include_str!("team.json");
pub(super) const PROMPT: &str =
    "Check the three scripts as a team, and write what was found into CHECKS.md.";

/// The longest time that a member continues after it was asked to end.
const TEARDOWN: Duration = Duration::from_mins(1);

fn name() -> TeamName {
    TeamName::of_session("demo")
}

/// Has the agents of a session be a team with a task list below this directory.
pub(super) fn enlist(agents: &mut AgentOptions, lists: &Path) -> anyhow::Result<()> {
    let list = name().as_str().parse()?;
    agents.task_list = Some(TaskListPlace { lists: lists.to_owned(), name: list });
    agents.team = Some(TeamOptions { name: name(), teardown: TEARDOWN, views: None });
    Ok(())
}

/// An observer of the team that remembers what it saw.
#[derive(Clone, Default)]
pub(super) struct TeamWitness(Arc<Mutex<TeamEvents>>);

#[derive(Default)]
struct TeamEvents {
    joined: BTreeSet<String>,
    left: usize,
    /// Refusals of tools.
    refusals: Vec<String>,
}

impl View for TeamWitness {
    fn show(&self, event: &Event) {
        let mut seen = self.0.lock();
        match &event.body {
            EventBody::System(System::TaskStarted(task)) => seen.joined.extend(task.name.clone()),
            EventBody::System(System::TaskNotification(_)) => seen.left += 1,
            EventBody::User(user) => {
                let said = user.tool_use_result.as_ref().and_then(|data| data.as_str());
                seen.refusals.extend(said.map(str::to_owned));
            }
            _ => {}
        }
    }
}

impl Front for TeamWitness {}

impl TeamWitness {
    /// Everything that the scene promises.
    pub(super) fn steps(&self, lists: &Path, project: &Path) -> Vec<Step> {
        let seen = self.0.lock();
        let has_refused = |words: &str| seen.refusals.iter().any(|it| it.contains(words));
        let names: Vec<&str> = seen.joined.iter().map(String::as_str).collect();
        let checks = std::fs::read_to_string(project.join("CHECKS.md")).unwrap_or_default();
        let step = |what: String, is_seen: bool| Step { what, is_seen };
        vec![
            step(
                format!("three members worked on one task list: {}", names.join(", ")),
                names == ["ada", "bob", "cyd"],
            ),
            step(
                "of two that wanted one task one got it, and the other was told who".to_owned(),
                has_refused("task #1 is ada's"),
            ),
            step(
                "the last task could not be started before the two that it waits for".to_owned(),
                has_refused("task #3 waits for"),
            ),
            step(
                "each task was done by the member that had claimed it".to_owned(),
                owners(lists) == ["ada", "bob", "cyd"],
            ),
            step(
                "CHECKS.md holds what members told each other".to_owned(),
                checks.contains("makes 6") && checks.contains("makes 24"),
            ),
            step("all members ended when the lead asked them to".to_owned(), seen.left == 3),
        ]
    }
}

/// The owners of the tasks that are done, in the order of the list.
fn owners(lists: &Path) -> Vec<String> {
    let list = name().as_str().parse().ok().and_then(|it| TaskList::open_existing(lists, &it).ok());
    let tasks = list.and_then(|mut list| list.tasks().ok()).unwrap_or_default();
    let done = tasks.into_iter().filter(|task| task.status == Status::Completed);
    done.filter_map(|task| task.owner).collect()
}
