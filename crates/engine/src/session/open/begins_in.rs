//! The worktree that the main agent begins in.

use std::path::Path;

use centurion_config::agents::ActiveAgent;
use centurion_config::paths::repo_root;
use centurion_config::repository::GitDirs;
use centurion_protocol::SessionId;
use centurion_worktree::left_in;
use tokio_util::sync::CancellationToken;

use super::OpenError;
use crate::agent::Agent;
use crate::agent::isolation::entered::{self, EnteredPlace, RequestedWorktree};
use crate::agent::shared::Shared;
use crate::definition::environment::{Environment, GitState};
use crate::message::titles::listed;

/// The name of a definition's request for a worktree.
const APART: &str = "isolation: worktree of the main agent";

/// The worktree that the main agent is to begin in: as a person asks for it, or as its definition does.
pub(super) struct BeginsIn {
    asked: Option<String>,
    by_definition: Option<String>,
}

impl BeginsIn {
    /// An agent whose definition says that it works apart does so as the main agent, too.
    pub(super) fn new(
        asked: Option<String>,
        agent: Option<&ActiveAgent>,
        session: SessionId,
    ) -> Self {
        let works_apart = agent.is_some_and(|it| it.definition.isolation.is_some());
        Self { asked, by_definition: works_apart.then(|| entered::usual_name(session)) }
    }
}

/// Has the main agent work in the worktree that is asked for, or in the one that it was in. Gives its surroundings.
pub(super) async fn enter_worktree(
    shared: &Shared,
    agent: &Agent,
    noted: Option<EnteredPlace>,
    begins_in: BeginsIn,
) -> Result<Environment, OpenError> {
    let builder = &shared.delegation.builder;
    let usual = builder.environment.clone();
    tell_left(agent, &usual.cwd);
    let BeginsIn { asked, by_definition } = begins_in;
    let is_asked = asked.is_some();
    // The one that it is in is as good as any other to an agent that only has to work apart.
    let by_definition = by_definition.filter(|_| noted.is_none());
    match (asked.or(by_definition), noted) {
        (Some(name), noted) if noted.as_ref().is_none_or(|place| !place.is_named(&name)) => {
            let (wanted, cancel) = (RequestedWorktree::Name(&name), CancellationToken::new());
            let entering = Box::pin(builder.isolator.enter_worktree(agent, wanted, &cancel));
            entering.await.map_err(|source| OpenError::Worktree {
                asked_by: if is_asked { format!("--worktree {name}") } else { APART.to_owned() },
                source: Box::new(source),
            })?;
        }
        (_, Some(place)) => {
            if let Err(error) = Box::pin(builder.isolator.reenter_worktree(agent, &place)).await {
                let path = place.path.display();
                let text = format!("this session worked in {path}, and no longer does: {error}");
                agent.inform("warning", text);
                return Ok(usual);
            }
        }
        (_, None) => return Ok(usual),
    }
    let cwd = agent.workspace.root();
    let git = Some(GitState::observe(&cwd, &builder.env).await);
    Ok(Environment { cwd, git, ..usual })
}

/// Tells people of worktrees that a process left that died. Costs one look at a directory where there are none.
fn tell_left(agent: &Agent, cwd: &Path) {
    let dirs = repo_root(cwd).and_then(|root| GitDirs::of(&root));
    let left = dirs.map(|dirs| left_in(&dirs.common)).unwrap_or_default();
    if left.is_empty() {
        return;
    }
    let left = left.iter().map(|entry| format!("{} ({})", entry.name(), entry.standing));
    let text = format!(
        "worktrees of agents are not in order here: {}; `centurion worktrees clean` mends them",
        listed(left.collect::<Vec<_>>().iter(), ", ")
    );
    agent.inform("warning", text);
}
