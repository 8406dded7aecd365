//! Other agents that work in the same files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::paths::repo_root;
use centurion_permissions::Sharer;
use centurion_protocol::AgentId;

use crate::agent::Agent;
use crate::agent::task::Task;
use crate::definition::identity::Identity;
use crate::message::titles::listed;

impl Identity {
    /// The agent, as others are told of it.
    pub(crate) fn called(&self) -> String {
        match (&self.id, &self.name) {
            (None, _) => "the main agent".to_owned(),
            (Some(id), None) => format!("agent {id}"),
            (Some(id), Some(name)) => format!("agent {name} ({id})"),
        }
    }
}

impl Agent {
    /// The agents that work now in the checkout that this one works in, without those that wait for it.
    pub(crate) fn sharers(&self) -> Option<String> {
        let own = tree(&self.workspace.root());
        self.others_at_work().into_iter().find(|it| it.checkout == own).map(|it| it.who)
    }

    /// The agents that work now, in this checkout or another, without those that wait for this one.
    pub(crate) fn others_at_work(&self) -> Vec<Sharer> {
        let Some(shared) = self.shared.upgrade() else { return Vec::new() };
        let running = shared.delegation.running();
        if running.is_empty() {
            return Vec::new();
        }
        let waiting = WaitingAgents::for_agent(self.identity.id.as_ref(), &running);
        let mut trees: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
        if !self.identity.is_main() && !waiting.is_main && shared.is_running() {
            let entered = shared.delegation.builder.isolator.place_of(None);
            let place = tree(&entered.unwrap_or_else(|| shared.permissions.place()));
            trees.entry(place).or_default().push("the main agent".to_owned());
        }
        let others = running.iter().filter(|task| {
            Some(&task.id) != self.identity.id.as_ref() && !waiting.agents.contains(&task.id)
        });
        for task in others {
            // It may have gone elsewhere since it was started.
            let entered = shared.delegation.builder.isolator.place_of(Some(&task.id));
            let place = tree(entered.as_ref().unwrap_or(&task.spec.cwd));
            trees.entry(place).or_default().push(task.identity.called());
        }
        let told = |(checkout, names): (PathBuf, Vec<String>)| Sharer {
            checkout,
            who: listed(names.iter(), ", "),
        };
        trees.into_iter().map(told).collect()
    }
}

/// The agents that wait for the end of another one, and do nothing meanwhile.
struct WaitingAgents {
    agents: Vec<AgentId>,
    is_main: bool,
}

impl WaitingAgents {
    fn for_agent(id: Option<&AgentId>, running: &[Arc<Task>]) -> Self {
        let mut found = Self { agents: Vec::new(), is_main: false };
        let mut next = id.cloned();
        while let Some(id) = next.take() {
            let Some(task) = running.iter().find(|task| task.id == id) else { break };
            // No call waits for an agent in the background, nor for the agents below it.
            if task.is_background() {
                break;
            }
            match &task.identity.parent {
                None => found.is_main = true,
                Some(parent) => {
                    found.agents.push(parent.clone());
                    next = Some(parent.clone());
                }
            }
        }
        found
    }
}

/// The checkout around a directory, with links resolved; itself where there is none.
fn tree(directory: &Path) -> PathBuf {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    repo_root(&directory).unwrap_or(directory)
}
