//! Requests of a host beside the conversation: files, outputs, rules, tools of servers.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_hooks::ListedHook;
use centurion_hooks::events::DirectoryAdded;
use centurion_mcp::{CallError, CallOptions, CallOutput, Connection, ToolInfo, tool_name};
use centurion_permissions::{Access, Call, Mode, Rule, RuleKind, RuleOrigin, RuleSource, Verdict};
use centurion_protocol::{Effort, ToolUse, ToolUseId};
use centurion_tools::{DiskLinks, FileView, NameSearch, OutputTail, ToolError, resolve, view_file};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::handle::Handle;
use super::tool_server::ToolReply;
use crate::agent::shared::{EffortChoice, Shared};
use crate::policy::permissions::{Destination, Remember, SavedChange, ServerRules};
use crate::toolset::servers::public_source;
use crate::toolset::toolbox::Toolbox;
use crate::turn::dispatch::Dispatch;

/// The reason that a host cannot read a file.
#[derive(Debug, Error)]
pub enum FileRefused {
    #[error("the session has ended")]
    Ended,
    /// And why.
    #[error("{0}")]
    Denied(String),
    #[error(transparent)]
    Unreadable(#[from] ToolError),
}

/// The reason that a directory does not become a working directory.
#[derive(Debug, Error)]
pub enum DirectoryRefused {
    #[error("{} is no directory", .0.display())]
    Missing(PathBuf),
    #[error("{} is not below a directory that the session was started with", .0.display())]
    Outside(PathBuf),
    #[error("{} is a working directory already", .0.display())]
    Known(PathBuf),
    #[error("{0}")]
    NotKept(String),
}

/// The time at which the main agent is told the instructions of a directory that is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadInstructions {
    Now,
    /// When it reads a file there.
    #[default]
    Later,
}

/// The reason that a tool of a server was not called.
#[derive(Debug, Error)]
pub enum ServerCallError {
    #[error("there is no tool `{0}` of a server that is connected")]
    Unknown(String),
    #[error("the server {0} lives in the host, which can call it itself")]
    OfHost(String),
    #[error(transparent)]
    Failed(#[from] CallError),
    #[error("The tool did not run: {0}")]
    Refused(String),
}

/// Has agents work in one more directory, wherever it is, and tells hooks of it with a word for who wants it.
pub(super) async fn enter_directory(
    shared: &Shared,
    path: PathBuf,
    read: ReadInstructions,
    source: &str,
) -> Result<(), DirectoryRefused> {
    if !path.is_dir() {
        return Err(DirectoryRefused::Missing(path));
    }
    if shared.permissions.directories().iter().any(|(known, _)| *known == path) {
        return Err(DirectoryRefused::Known(path));
    }
    let what = SavedChange::Directories(vec![path.clone()]);
    let remember = Remember { what, destination: Destination::Session };
    let kept = shared.permissions.remember(&remember);
    kept.map_err(|error| DirectoryRefused::NotKept(error.to_string()))?;
    if read == ReadInstructions::Now {
        shared.note_new_directory(path.clone());
    }
    if let Some(agent) = shared.main_agent() {
        let added = DirectoryAdded { directory: &path, source };
        let fired = agent.fire(&added, &CancellationToken::new()).await;
        for text in fired.context_for_model() {
            shared.add_side_note(None, text);
        }
    }
    Ok(())
}

impl Handle {
    /// Reads at most `most` bytes of a file that the Read tool could read without a question, and its resolved path.
    pub fn read_file(&self, path: &str, most: u64) -> Result<(PathBuf, FileView), FileRefused> {
        let path = self.readable(path)?;
        let view = view_file(&path, most)?;
        Ok((path, view))
    }

    /// Notes that the main agent has seen a file, if the file was last changed at this millisecond; whether it was.
    pub fn seed_read_state(&self, path: &str, changed_at: u64) -> Result<bool, FileRefused> {
        let path = self.readable(path)?;
        let agent = self.0.main_agent().ok_or(FileRefused::Ended)?;
        Ok(agent.workspace.seed_seen(&path, changed_at)?)
    }

    /// The resolved path of a file that may be read without a question.
    fn readable(&self, path: &str) -> Result<PathBuf, FileRefused> {
        let agent = self.0.main_agent().ok_or(FileRefused::Ended)?;
        let named = agent.workspace.absolute(path);
        let path = resolve(&named);
        let access = Access::Read(path.clone());
        let call = Call { named: Some(&named), links: &DiskLinks, ..Call::new("Read", &access) };
        let decision = self.0.permissions.decide(&call, agent.workspace.cwd());
        match decision.verdict {
            Verdict::Allow => Ok(path),
            Verdict::Ask | Verdict::Deny => Err(FileRefused::Denied(decision.reason.to_string())),
        }
    }

    /// The names below the main agent's directory that fit a word best, without those that may not be read. Empty if
    /// another search has begun meanwhile.
    pub async fn file_names(&self, word: String, searches: &NameSearch) -> Vec<String> {
        let Some(agent) = self.0.main_agent() else { return Vec::new() };
        let (root, may_read) = (agent.workspace.cwd(), Arc::clone(&agent.workspace.may_read));
        let search = searches.begin();
        let walk = move || search.files_like(&root, &word, &*may_read);
        tokio::task::spawn_blocking(walk).await.ok().flatten().unwrap_or_default()
    }

    /// The end of the output of a shell in the background; `None` if there is no such shell.
    pub async fn task_output(&self, id: &str) -> Option<io::Result<OutputTail>> {
        for shells in self.0.all_shells() {
            if let Some(tail) = shells.tail(id).await {
                return Some(tail);
            }
        }
        None
    }

    /// Lets every call that waits for an agent continue without it, and every call of the main agent that waits for a
    /// command; how many did. Other agents continue waiting for their own commands.
    pub fn background_all(&self) -> usize {
        let agents = self.0.delegation.running().iter().filter(|task| task.detach()).count()
            + self.0.release_foreground();
        let main = self.0.main_agent();
        agents + main.map_or(0, |agent| agent.workspace.shells.release_all())
    }

    /// Lets this call continue without the agent or the command that it waits for; whether it waited for one.
    pub fn background_call(&self, call: &ToolUseId) -> bool {
        let running = self.0.delegation.running();
        running.iter().any(|task| task.run().call == *call && task.detach())
            || self.0.all_shells().iter().any(|shells| shells.release(call))
    }

    /// The rules that are in force, each with its kind.
    pub fn permission_rules(&self) -> Vec<(RuleKind, RuleSource)> {
        self.0.permissions.listed()
    }

    /// The directories that agents work in, each with whether it was added in this session. The first is where the
    /// session began.
    pub fn directories(&self) -> Vec<(PathBuf, bool)> {
        self.0.permissions.directories()
    }

    /// Has agents work in one more directory, below one that they were started with, and tells hooks of it. With
    /// `ReadInstructions::Now` the main agent is told the directory's instructions with its next input, otherwise when it
    /// reads a file there.
    pub async fn add_directory(
        &self,
        directory: &Path,
        read: ReadInstructions,
    ) -> Result<(), DirectoryRefused> {
        let known = self.directories();
        let from = known.first().map(|(path, _)| path.clone()).unwrap_or_default();
        let path = resolve(&from.join(directory));
        let is_inside = known.iter().any(|(known, is_added)| !is_added && path.starts_with(known));
        if path.is_dir() && !is_inside {
            return Err(DirectoryRefused::Outside(path));
        }
        enter_directory(&self.0, path, read, "register_repo_root").await
    }

    /// Sets the mode in which calls of a server's tools are judged, where it gives less than the agent's own; whether
    /// there is such a server now.
    pub fn set_server_mode(&self, server: &str, mode: Option<Mode>) -> bool {
        self.0.permissions.set_server_mode(tool_name(server, ""), mode);
        self.0.servers.find(server).is_some()
    }

    /// Applies rules for tools of a server that the host brings, each with the name of a tool there.
    pub fn restrict_server(&self, server: &str, tools: &[(RuleKind, String)], change: ServerRules) {
        let rule = |(kind, tool): &(RuleKind, String)| {
            let name = tool_name(server, tool);
            Some((*kind, Rule::parse(&name, RuleOrigin::Session).ok()?))
        };
        let rules = tools.iter().filter_map(rule).collect();
        self.0.permissions.restrict_server(server, rules, change);
        self.0.servers.note_change();
    }

    /// Has the main agent plan by these instructions, whenever it plans.
    pub fn instruct_planning(&self, text: String) {
        self.0.delegation.plan.set(text);
    }

    /// Has models' calls of some tools run others, in the place of earlier aliases.
    pub fn redirect_tools(&self, aliases: HashMap<String, String>) {
        self.0.delegation.aliases.replace(aliases);
    }

    /// Calls a tool of a server for the host, which asks no one.
    pub async fn call_server_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallOutput, ServerCallError> {
        let (connection, info) = self.server_tool(tool)?;
        Ok(connection.call(&info.tool, arguments, &CallOptions::default()).await?)
    }

    /// The same for a call that is not the host's own, such as one of a page that it shows: it is decided about as the main
    /// agent's calls are. Its result stays out of the conversation.
    pub async fn call_server_tool_if_permitted(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolReply, ServerCallError> {
        let (connection, info) = self.server_tool(tool)?;
        let refused = |reason: &str| ServerCallError::Refused(reason.to_owned());
        let agent = self.0.main_agent().ok_or_else(|| refused("the session has no agent"))?;
        let tools = connection.tools().into_iter().zip(connection.tool_infos());
        let found = tools.into_iter().find(|(_, it)| it.tool == info.tool);
        let (found, _) = found.ok_or_else(|| ServerCallError::Unknown(tool.to_owned()))?;
        let dispatch = Dispatch {
            toolbox: Toolbox::of_server(found, info.requires_user_interaction),
            agent,
            broker: Arc::clone(&self.0.broker),
            allows_sandboxed: false,
        };
        let id = ToolUseId::new(format!("host-{}", self.0.world.uuid()));
        let input = to_raw_value(&arguments).map_err(|error| refused(&error.to_string()))?;
        let call = ToolUse { id, name: info.name.clone(), input };
        let prepared = dispatch.prepare(&call).map_err(|_| refused("its input does not fit"))?;
        let done = dispatch.run_for_host(&call, prepared, &CancellationToken::new()).await;
        if let Some(denied) = &done.denied {
            return Err(refused(&denied.reason));
        }
        Ok(ToolReply { content: done.result.content, is_error: done.result.is_error })
    }

    /// A tool of a server that is not the host's.
    fn server_tool(&self, tool: &str) -> Result<(Connection, ToolInfo), ServerCallError> {
        let find = |it: Connection| {
            let info =
                it.tool_infos().into_iter().find(|info| tool_name(it.name(), &info.tool) == tool);
            info.map(|info| (it, info))
        };
        let found = self.0.servers.active().into_iter().find_map(find);
        let (connection, info) = found.ok_or_else(|| ServerCallError::Unknown(tool.to_owned()))?;
        if public_source(connection.server()) == "sdk" {
            return Err(ServerCallError::OfHost(connection.name().to_owned()));
        }
        Ok((connection, info))
    }

    /// Whether a run is under way or due, or an agent is at work.
    pub fn is_busy(&self) -> bool {
        self.0.is_running()
            || !self.0.queue.due(None).is_empty()
            || !self.0.delegation.running().is_empty()
    }

    /// The hooks that are in force, in the order in which they run.
    pub fn hooks(&self) -> Vec<ListedHook> {
        self.0.delegation.builder.hooks.listed()
    }

    /// The model and the effort of the next request of the main agent.
    pub fn applied(&self) -> (String, Option<Effort>) {
        let (model, effort) = self.0.chosen();
        let point = self.0.main_point();
        let settings =
            point.as_ref().map_or(&self.0.delegation.builder.settings, |point| &point.settings);
        (
            model.unwrap_or_else(|| settings.model.clone()),
            effort.map_or(settings.effort, EffortChoice::level),
        )
    }

    /// Changes how much the model is to work on an answer, from the next run on; `None` is the model's own measure.
    pub fn set_effort(&self, effort: Option<Effort>) {
        self.0.choose_effort(effort.map_or(EffortChoice::Usual, EffortChoice::Level));
    }
}
