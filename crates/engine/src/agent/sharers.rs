//! Who else works in the same files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::paths::repo_root;

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
        let shared = self.shared.upgrade()?;
        let running = shared.delegation.running();
        if running.is_empty() {
            return None;
        }
        let own = tree(&self.workspace.root());
        let above = self.above(&running);
        let others = running.iter().filter(|task| {
            Some(&task.id) != self.identity.id.as_ref()
                && !above.contains(&task.id.to_string())
                && tree(&task.spec.cwd) == own
        });
        let names: Vec<String> = others.map(|task| task.identity.called()).collect();
        (!names.is_empty()).then(|| listed(names.iter(), ", "))
    }

    /// The agents above it, by their ids.
    fn above(&self, running: &[Arc<Task>]) -> Vec<String> {
        let parent_of = |id: &centurion_protocol::AgentId| {
            running.iter().find(|task| task.id == *id)?.identity.parent.clone()
        };
        let chain = std::iter::successors(self.identity.parent.clone(), parent_of);
        chain.map(|id| id.to_string()).collect()
    }
}

/// The checkout around a directory; itself where there is none.
fn tree(directory: &Path) -> PathBuf {
    repo_root(directory).unwrap_or_else(|| directory.to_owned())
}
