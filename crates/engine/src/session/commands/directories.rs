//! `/add-dir` and `/cd`: the directories that agents work in, and the one where the main agent's commands run.

use std::path::{Path, PathBuf};

use centurion_permissions::{Access, Call, Decision, Verdict};
use centurion_protocol::ToolUseId;
use centurion_tools::{DiskLinks, resolve};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio_util::sync::CancellationToken;

use super::CommandEnd;
use crate::policy::broker::{Ask, AskReason, Reply};
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
    pub(super) async fn change_directory(
        &mut self,
        typed: &str,
        cancel: &CancellationToken,
    ) -> CommandEnd {
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
        if let Some(reason) = self.entry_refusal(typed, &path, cancel).await {
            return CommandEnd::Failed(format!("{}: {reason}", path.display()));
        }
        let workspace = &self.driver.dispatch.agent.workspace;
        let stood = std::mem::replace(&mut *workspace.cwd.lock(), path.clone());
        self.driver.moved_by_person(&stood).await;
        let told = format!("The user has moved you: commands run in {} now.", path.display());
        self.shared.add_side_note(None, told);
        CommandEnd::Said(format!("Commands run in {} now.", path.display()))
    }

    /// The decision of `Cd(…)` rules about a directory that a person wants to enter.
    fn judge_entry(&self, typed: &str, path: &Path) -> Decision {
        let access = Access::Read(path.to_owned());
        let named = self.directory_as_typed(typed);
        let call = Call { named: named.as_deref(), links: &DiskLinks, ..Call::new("Cd", &access) };
        let cwd = self.driver.dispatch.agent.workspace.cwd();
        self.shared.permissions.decide(&call, cwd)
    }

    /// The reason why a person may not enter a directory, if there is one. Where a rule asks, a person is asked.
    async fn entry_refusal(
        &self,
        typed: &str,
        path: &Path,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let decision = self.judge_entry(typed, path);
        match decision.verdict {
            Verdict::Allow => return None,
            Verdict::Deny => return Some(decision.reason.to_string()),
            Verdict::Ask => {}
        }
        let input = to_raw_value(&json!({ "path": path.to_string_lossy() }));
        let ask = Ask {
            tool: "Cd".to_owned(),
            call: ToolUseId::new(format!("cd-{}", self.shared.world.record_id())),
            input: input.unwrap_or_default(),
            reason: AskReason::from(&decision.reason),
            reach: None,
            suggestions: Vec::new(),
            agent: None,
            server: None,
            is_for_person: true,
        };
        match self.shared.broker.ask(ask, cancel).await {
            Reply::Allowed { .. } => None,
            Reply::Denied { reason, .. } | Reply::HostDenied { reason, .. } => Some(reason),
            Reply::Cancelled => Some("it was not answered".to_owned()),
        }
    }

    /// The directory that a person means, free of links; `None` without a name.
    fn named_directory(&self, typed: &str) -> Option<PathBuf> {
        self.directory_as_typed(typed).map(|path| resolve(&path))
    }

    /// The same under the name that was typed.
    fn directory_as_typed(&self, typed: &str) -> Option<PathBuf> {
        let typed = typed.trim();
        let quoted = |mark: char| typed.strip_prefix(mark)?.strip_suffix(mark);
        let name = quoted('"').or_else(|| quoted('\'')).unwrap_or(typed);
        let workspace = &self.driver.dispatch.agent.workspace;
        (!name.is_empty()).then(|| workspace.absolute(name))
    }
}
