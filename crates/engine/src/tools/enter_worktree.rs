//! The `EnterWorktree` tool: an agent goes to work in a worktree.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::paths::main_checkout;
use centurion_permissions::{Access, WORKTREES};
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agent::Agent;
use crate::agent::isolation::entered::{EnterError, EnteredPlace, RequestedWorktree, usual_name};
use crate::agent::shared::Shared;

/// Moves your work to a git worktree: a checkout and a branch of its own. Use it only if the user asks for a worktree;
/// for a branch, git is enough. Leave it with `ExitWorktree`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnterWorktreeInput {
    /// The name: letters, digits, `.`, `_`, `-`, and `/` between parts. One that exists is opened again.
    name: Option<String>,
    /// Instead: the directory of a worktree of this repository.
    path: Option<String>,
}

pub(crate) struct EnterWorktree(pub(crate) Arc<Agent>);

impl EnterWorktree {
    /// The name of a worktree that is given none.
    fn name(&self, input: &EnterWorktreeInput) -> Result<String, ToolError> {
        match &input.name {
            Some(name) => Ok(name.clone()),
            None => Ok(usual_name(self.0.session()?.id())),
        }
    }

    fn place(&self, input: &EnterWorktreeInput, context: &ToolContext) -> Option<PathBuf> {
        let workspace = &context.workspace;
        if let Some(path) = &input.path {
            return Some(centurion_tools::resolve(&workspace.absolute(path)));
        }
        let name = self.name(input).ok()?.replace('/', "+");
        let home = main_checkout(&workspace.root())?;
        // A name that leads elsewhere is refused when the call runs.
        (Path::new(&name).components().count() == 1).then(|| home.join(WORKTREES).join(name))
    }
}

impl Tool for EnterWorktree {
    type Input = EnterWorktreeInput;

    const NAME: &'static str = "EnterWorktree";

    fn is_read_only(&self, _: &EnterWorktreeInput) -> bool {
        false
    }

    fn access(&self, input: &EnterWorktreeInput, context: &ToolContext) -> Access {
        let session = self.0.session().ok();
        let is_in = |it: &Shared| it.delegation.builder.isolator.entered(&self.0).is_some();
        if self.0.isolation.is_some() || session.is_none_or(|session| is_in(&session)) {
            // Nothing will be touched, and the reason is better than a refusal.
            return Access::Session;
        }
        let place = self.place(input, context);
        Access::Write(place.unwrap_or_else(|| context.workspace.root()))
    }

    async fn run(
        &self,
        input: EnterWorktreeInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let isolator = &shared.delegation.builder.isolator;
        let place = match (&input.name, &input.path) {
            (Some(_), Some(_)) => Err(EnterError::Both),
            (_, Some(path)) => {
                let path = context.workspace.absolute(path);
                Box::pin(isolator.enter_worktree(
                    &self.0,
                    RequestedWorktree::Path(&path),
                    &context.cancel,
                ))
                .await
            }
            (_, None) => {
                let name = self.name(&input)?;
                Box::pin(isolator.enter_worktree(
                    &self.0,
                    RequestedWorktree::Name(&name),
                    &context.cancel,
                ))
                .await
            }
        };
        let place =
            place.map_err(|error| ToolError::failed(format!("Nothing was done: {error}.")))?;
        let text = words(&place);
        let data = json!({
            "worktreePath": place.path,
            "worktreeBranch": place.branch,
            "originalCwd": place.came_from,
            "message": text,
        });
        Ok(ToolOutput::text(text).with_data(data))
    }
}

/// The text about the worktree that the agent works in now.
fn words(place: &EnteredPlace) -> String {
    let (path, was) = (place.path.display(), place.came_from.display());
    let on = place.branch.as_ref().map_or_else(String::new, |branch| format!(", on {branch}"));
    format!(
        "Primary working directory: {path}{on} (was {was}). Files that were named below {was} are meant below {path} now: read \
         them again there before you change them. What was not committed there is missing here. The checkout that you \
         left can be read, and is not changed by your file tools until you come back."
    )
}
