//! The worktree of a running agent: entered before it works, left when it has ended, let go when that is recorded.

use centurion_permissions::Apart;
use serde_json::{Map, Value, json};

use super::Child;
use crate::agent::Agent;
use crate::agent::isolation::{AgentWorktree, IsolationError, WorktreeEnd};
use crate::agent::task::End;
use crate::definition::spec::AgentSpec;

/// The directories that an agent is kept out of. One that works where its parent has gone to is kept there likewise.
pub(super) fn apart(worktree: Option<&AgentWorktree>, parent: &Agent) -> Option<Apart> {
    match worktree {
        Some(worktree) => Some(worktree.apart()),
        None => parent.permissions.role().apart,
    }
}

impl Child {
    /// Goes to work in its worktree, if it has one.
    pub(super) async fn enter_worktree(&mut self) -> Result<(), IsolationError> {
        if let Some(worktree) = &self.agent.isolation
            && !self.is_inside
        {
            Box::pin(self.shared.delegation.builder.isolator.enter(worktree)).await?;
            self.is_inside = true;
        }
        if let Some(place) = self.goes_back_to.take() {
            let isolator = &self.shared.delegation.builder.isolator;
            if let Err(error) = Box::pin(isolator.reenter_worktree(&self.agent, &place)).await {
                let text =
                    format!("it worked in {}, and no longer does: {error}", place.path.display());
                self.driver.aside.context.push(text.clone());
                self.agent.inform("warning", text);
            }
        }
        Ok(())
    }

    /// Ends its work in its worktree: first its commands, with all that they left running, which could still write there.
    pub(super) async fn leave_worktree(&mut self) {
        if let Some(worktree) = &self.agent.isolation
            && std::mem::take(&mut self.is_inside)
        {
            self.agent.workspace.shells.end_all().await;
            let left = Box::pin(self.shared.delegation.builder.isolator.leave(worktree)).await;
            self.worktree_end = Some(left);
        }
    }

    /// Lets go of the worktrees that it worked in, after its end is recorded.
    pub(super) async fn release_worktrees(&mut self) {
        self.leave_worktree().await;
        let isolator = &self.shared.delegation.builder.isolator;
        isolator.forget(Some(&self.task.id));
        if let Some(worktree) = &self.agent.isolation {
            Box::pin(isolator.let_go(worktree, &self.agent)).await;
        }
    }
}

/// The fields about its worktree for other programs.
pub(super) fn meta(spec: &AgentSpec, end: Option<&End>) -> Map<String, Value> {
    let Some(worktree) = &spec.worktree else { return Map::new() };
    let mut meta = Map::from_iter([("spawnedWithWorktree".to_owned(), json!(true))]);
    if let Some(WorktreeEnd::Untouched) = end.and_then(|end| end.worktree.as_ref()) {
        meta.insert("worktreeCleanlyRemoved".to_owned(), json!(true));
    } else {
        meta.insert("worktreePath".to_owned(), json!(worktree.path));
        let branch = worktree.git.as_ref().map(|git| json!(git.branch));
        meta.extend(branch.map(|branch| ("worktreeBranch".to_owned(), branch)));
    }
    meta
}
