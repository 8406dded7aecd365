//! `/add-dir` and `/cd`: the directories that agents work in, and the one where the main agent's commands run.

use std::path::PathBuf;

use centurion_tools::resolve;

use super::CommandEnd;
use crate::session::Session;
use crate::session::host_requests::{ReadInstructions, enter_directory};

/// The word for hooks about a directory that a person adds.
const TYPED: &str = "slash_command";

impl Session {
    /// Has agents work in one more directory until the session ends.
    pub(super) async fn add_directory(&self, typed: &str) -> CommandEnd {
        let Some(path) = self.named_directory(typed) else {
            return CommandEnd::Failed("say which directory: /add-dir PATH".to_owned());
        };
        let shared = &self.shared;
        match enter_directory(shared, path.clone(), ReadInstructions::Now, TYPED).await {
            Ok(()) => CommandEnd::Said(format!(
                "{} is a working directory until this session ends.",
                path.display()
            )),
            Err(refused) => CommandEnd::Failed(refused.to_string()),
        }
    }

    /// Has commands of the main agent run in another of its directories.
    pub(super) async fn change_directory(&mut self, typed: &str) -> CommandEnd {
        let Some(path) = self.named_directory(typed) else {
            return CommandEnd::Failed("say where to: /cd PATH".to_owned());
        };
        if !path.is_dir() {
            return CommandEnd::Failed(format!("{} is no directory", path.display()));
        }
        let known = self.shared.permissions.directories();
        if !known.iter().any(|(known, _)| path.starts_with(known)) {
            return CommandEnd::Failed(format!(
                "{} is outside of the directories of this session: /add-dir adds one",
                path.display()
            ));
        }
        let workspace = &self.driver.dispatch.agent.workspace;
        let stood = std::mem::replace(&mut *workspace.cwd.lock(), path.clone());
        self.driver.moved_by_person(&stood).await;
        let told = format!("The user has moved you: commands run in {} now.", path.display());
        self.shared.add_side_note(None, told);
        CommandEnd::Said(format!("Commands run in {} now.", path.display()))
    }

    /// The directory that a person means, free of links; `None` without a name.
    fn named_directory(&self, typed: &str) -> Option<PathBuf> {
        let typed = typed.trim();
        let quoted = |mark: char| typed.strip_prefix(mark)?.strip_suffix(mark);
        let name = quoted('"').or_else(|| quoted('\'')).unwrap_or(typed);
        let workspace = &self.driver.dispatch.agent.workspace;
        (!name.is_empty()).then(|| resolve(&workspace.absolute(name)))
    }
}
