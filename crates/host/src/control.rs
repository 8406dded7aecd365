//! Requests of a host, over its control channel: every request gets exactly one answer.

mod files;
mod look;
mod plugins;
mod refusal;
mod request;
mod restrictions;
mod rules;
mod servers;
mod settings;
mod wishes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::agents::{
    AgentOrigin, AgentSource, Color, ReadAgent, Vocabulary, read_json_agent,
};
use centurion_engine::{Handle, ReadInstructions};
use centurion_hooks::HookSet;
use centurion_mcp::Pool;
use centurion_model::{Model, SharedDisplay, ThinkingDisplay};
use centurion_permissions::Mode;
use centurion_protocol::Thinking;
use centurion_tools::{NameSearch, RewoundFile, StopError};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

pub use self::plugins::{LoadedPlugins, PluginSource, PluginsUnreadable};
use self::refusal::Refusal;
use self::request::{DeskRequest, ReloadPlugins, RepoRoot, Request, SessionRequest};
pub use self::restrictions::Declarations;
use self::restrictions::ServerWishes;
pub(crate) use self::rules::matched;
pub use self::settings::{DeskError, SettingsDesk, SettingsView};
use crate::{HostChannel, ModelLimits, RequestId};

type Answer = Result<Value, Refusal>;

/// The most characters of a session's title.
const LONGEST_TITLE: usize = 1_000;

/// The response to a request with its id.
fn response(id: &RequestId, answer: Answer) -> Value {
    match answer {
        Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
        Err(refusal) => json!({
            "subtype": "error", "request_id": id,
            "error": refusal.to_string(), "error_code": refusal.code(),
        }),
    }
}

/// Acts on what the host of one session asks for.
pub struct Control {
    pub channel: Arc<HostChannel>,
    pub handle: Handle,
    /// The models that the host may choose.
    pub limits: ModelLimits,
    /// The model that the session began with, by which names of models are understood.
    pub model: Model,
    /// The thinking of the model when the session began.
    pub thinking: Thinking,
    /// The part of its thinking that the model shows.
    pub display: SharedDisplay,
    /// The pool of servers that the host adds while the session runs.
    pub pool: Arc<Pool>,
    /// Reads plugins again.
    pub plugins: Arc<dyn PluginSource>,
    /// The settings of the run.
    pub settings: Arc<dyn SettingsDesk>,
    /// The managed setting that leaves hooks to plugins, if one does.
    pub hook_policy: Option<String>,
    /// Tells a person that something the host wants is not in force.
    pub warn: fn(&str),
    /// Declarations of the host about itself, when it begins.
    pub declarations: Declarations,
    /// Searches for names of files: the last one counts.
    pub names: NameSearch,
    /// The user's own way to names of files, if their settings have one.
    pub own_names: Arc<dyn OwnFileNames>,
}

/// Finds names of files by a command of the user's settings.
pub trait OwnFileNames: Send + Sync {
    /// The names for a word; `None` without such a command, or if it failed.
    fn names_like<'a>(&'a self, word: &'a str) -> BoxFuture<'a, Option<Vec<String>>>;
}

impl Control {
    /// Answers a request of the host.
    pub async fn answer(&self, id: &RequestId, request: &Value) {
        let answer = self.carry_out(id, request).await;
        let mut response = response(id, answer);
        if response["subtype"] == "success" && request["subtype"] == "initialize" {
            self.channel.list_open_questions(&mut response);
        }
        self.respond(&response);
    }

    /// Answers a request that is one too many.
    pub fn turn_away(&self, id: &RequestId) {
        self.respond(&response(id, Err(Refusal::TooMany)));
    }

    /// Answers a request that the host has withdrawn.
    pub fn withdraw(&self, id: &RequestId) {
        self.respond(&response(id, Err(Refusal::Withdrawn)));
    }

    fn respond(&self, response: &Value) {
        self.channel.send(&json!({"type": "control_response", "response": response}));
    }

    /// Does what a request asks for.
    async fn carry_out(&self, id: &RequestId, request: &Value) -> Answer {
        match Request::read(request)? {
            Request::Session(request) => self.about_session(id, request).await,
            Request::Server(request) => servers::answer(self, request).await,
            Request::Desk(request) => self.about_desk(request).await,
        }
    }

    async fn about_session(&self, id: &RequestId, request: SessionRequest) -> Answer {
        let handle = &self.handle;
        Ok(match request {
            SessionRequest::Initialize(wishes) => self.initialize(&wishes),
            SessionRequest::Interrupt { cancel_queued } => self.interrupt(cancel_queued),
            SessionRequest::CancelAsyncMessage { message_uuid } => {
                json!({"cancelled": handle.withdraw(message_uuid)})
            }
            SessionRequest::SetPermissionMode { mode } => {
                let mode = mode.parse::<Mode>().map_err(Refusal::invalid)?;
                handle.set_mode(mode).map_err(Refusal::invalid)?;
                json!({"mode": mode.name()})
            }
            SessionRequest::SetModel { model } => self.set_model(model.as_deref()).await?,
            SessionRequest::SetMaxThinkingTokens(wishes) => {
                // A request without the field says nothing about it.
                if let Some(tokens) = wishes.get("max_thinking_tokens") {
                    handle.set_thinking(self.thinking(tokens)?);
                }
                if let Some(display) = wishes.get("thinking_display") {
                    self.show_thinking(display)?;
                }
                json!({})
            }
            // Nothing is held back for readers that look at it later.
            SessionRequest::SetHasSubscribers => json!({}),
            SessionRequest::SetColor { color } => set_color(&color)?,
            SessionRequest::RenameSession { title, session_id } => {
                self.rename(&title, session_id.as_deref())?
            }
            SessionRequest::GenerateSessionTitle { description } => {
                let titled = handle.generate_title(&description).await;
                // Hosts continue without one.
                json!({"title": titled.ok()})
            }
            SessionRequest::SideQuestion { question } => {
                self.channel.tell_begun(id, handle.id());
                let text = handle.ask_aside(&question).await.map_err(Refusal::invalid)?;
                json!({"response": text, "synthetic": false})
            }
            SessionRequest::RewindFiles { user_message_id, dry_run } => {
                rewind_files(handle, &user_message_id, dry_run)?
            }
            SessionRequest::SupportedCommands => {
                handle.reload_skills();
                json!({"commands": look::commands(handle)})
            }
            SessionRequest::ReloadSkills => {
                handle.reload_skills();
                json!({"commands": look::commands(handle), "skills": look::skills(handle)})
            }
            SessionRequest::ReloadPlugins(wishes) => self.reload_plugins(&wishes)?,
            SessionRequest::ReloadOutputStyles => {
                json!({"available_output_styles": handle.output_styles()})
            }
            SessionRequest::ListModels => json!({"models": look::models(self)}),
            SessionRequest::GetBinaryVersion => json!({"version": env!("CARGO_PKG_VERSION")}),
            SessionRequest::GetContextUsage => look::context_usage(handle),
            SessionRequest::GetSessionCost => json!({"text": handle.cost_text()}),
            SessionRequest::GetUsage => look::usage(handle),
            SessionRequest::StopTask { task_id } => stop_task(handle, &task_id).await?,
            SessionRequest::StopAllTasks => json!({"stopped": handle.stop_agents()}),
            SessionRequest::BackgroundTasks { tool_use_id: None } => {
                handle.background_all();
                json!({"backgrounded": true})
            }
            SessionRequest::BackgroundTasks { tool_use_id: Some(call) } => {
                json!({"backgrounded": handle.background_call(&call)})
            }
            SessionRequest::GetTaskOutput { task_id } => {
                files::task_output(handle, &task_id).await?
            }
        })
    }

    async fn about_desk(&self, request: DeskRequest) -> Answer {
        let (handle, desk) = (&self.handle, &*self.settings);
        match request {
            DeskRequest::ReadFile { path, max_bytes, encoding } => {
                files::read(handle, &path, max_bytes, encoding)
            }
            DeskRequest::FileSuggestions { query } => {
                let names = match self.own_names.names_like(&query).await {
                    Some(names) => names,
                    None => handle.file_names(query, &self.names).await,
                };
                let found = names.into_iter().map(|path| json!({"path": path}));
                Ok(json!({"suggestions": found.collect::<Vec<_>>()}))
            }
            DeskRequest::SeedReadState { path, mtime } => files::seed(handle, &path, mtime),
            DeskRequest::RegisterRepoRoot(root) => self.register_root(&root).await,
            DeskRequest::GetSettings => Ok(settings::get(self)),
            DeskRequest::ApplyFlagSettings { settings } => {
                settings::apply_flag(self, &settings).await
            }
            DeskRequest::UpdateSettings { source, settings } => {
                settings::update(desk, source, &settings)
            }
            DeskRequest::ListPermissionRules => Ok(rules::list(handle, desk)),
            DeskRequest::GetHooksListing => Ok(rules::hooks(handle, desk)),
        }
    }

    /// Adds a working directory, and reads again what the host wants to be read again.
    async fn register_root(&self, root: &RepoRoot) -> Answer {
        let read =
            if root.reload_claude_md { ReadInstructions::Now } else { ReadInstructions::Later };
        let added = self.handle.add_directory(Path::new(&root.directory), read).await;
        added.map_err(Refusal::invalid)?;
        if root.reload_plugins {
            self.reload_plugins(&ReloadPlugins::default())?;
        }
        if root.reload_skills {
            self.handle.reload_skills();
        }
        Ok(json!({}))
    }

    /// Stops what runs, and drops what waits if that is wanted. Agents in the background continue only where a person can
    /// end them one by one.
    fn interrupt(&self, cancel_queued: bool) -> Value {
        let waiting = self.handle.interrupt();
        if !self.declarations.spares_agents() {
            self.handle.interrupt_agents();
        }
        if !cancel_queued {
            return json!({"still_queued": waiting});
        }
        let (cancelled, left): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|id| self.handle.withdraw(*id));
        json!({"still_queued": left, "cancelled": cancelled})
    }

    async fn set_model(&self, name: Option<&str>) -> Answer {
        let name = name.filter(|name| !name.is_empty());
        if let Some(name) = name {
            self.limits.check(name, &self.model)?;
        }
        let change = self.handle.ask_model(name).await.map_err(Refusal::invalid)?;
        Ok(json!({"model": change.make().await}))
    }

    /// Names the session, unless another one is meant.
    fn rename(&self, title: &str, session: Option<&str>) -> Answer {
        let id = self.handle.id().to_string();
        if session.is_some_and(|meant| meant != id) {
            return Err(Refusal::invalid(format!("this is the session {id}")));
        }
        let title = title.trim().lines().next().unwrap_or_default();
        if title.is_empty() {
            return Err(Refusal::invalid("a session needs a title with letters in it"));
        }
        if title.chars().count() > LONGEST_TITLE {
            let reason = format!("a title has at most {LONGEST_TITLE} characters");
            return Err(Refusal::invalid(reason));
        }
        self.handle.rename(title);
        Ok(json!({}))
    }

    /// Puts the wishes of a host in force, tells what is wrong with some of them, and says what there is.
    fn initialize(&self, wishes: &Map<String, Value>) -> Value {
        if self.channel.introduce() {
            self.channel.abandon_hooks();
        }
        let mut problems = wishes::problems(wishes);
        problems.extend(self.declarations.too_late(wishes));
        problems.extend(self.apply_initialization(wishes));
        for problem in &problems {
            (self.warn)(&format!("warning: initialize: {problem}"));
        }
        let mut answer = self.initialization(wishes);
        if !problems.is_empty() {
            answer["problems"] = json!(problems);
        }
        answer
    }

    fn initialization(&self, wishes: &Map<String, Value>) -> Value {
        let handle = &self.handle;
        let mut answer = json!({
            "commands": look::commands(handle),
            "agents": look::agents(handle),
            "output_style": handle.output_style(),
            "available_output_styles": handle.output_styles(),
            "models": look::models(self),
            "account": look::account(&self.model),
            "claude_code_version": centurion_engine::PROTOCOL_VERSION,
            "current_permission_mode": handle.mode().name(),
            "agent_progress_summaries": handle.summarises_agents(),
            "capabilities": centurion_engine::CAPABILITIES,
            "hook_on_failure_supported": true,
            "pid": std::process::id(),
        });
        if wishes.get("hooks").is_some_and(Value::is_object) {
            answer["hooks_applied"] = json!(self.hook_policy.is_none());
        }
        self.tell_applied(wishes, &mut answer);
        answer
    }

    /// The thinking with so many tokens; null asks for that of the session's beginning.
    fn thinking(&self, tokens: &Value) -> Result<Thinking, Refusal> {
        match tokens.as_u64().map(u32::try_from) {
            _ if tokens.is_null() => Ok(self.thinking),
            None => Err(Refusal::invalid(format!("{tokens} is no number of tokens"))),
            Some(Ok(0)) => Ok(Thinking::Disabled),
            Some(tokens) => Ok(Thinking::Budget(tokens.unwrap_or(u32::MAX))),
        }
    }

    /// Changes the part of its thinking that the model shows; null leaves that to the provider.
    fn show_thinking(&self, wanted: &Value) -> Result<(), Refusal> {
        let display = match wanted {
            Value::Null => None,
            // The documented answer where the provider does not host the session: the display stays as it is.
            Value::String(name) if name == "highlights" => {
                return Err(Refusal::invalid(
                    "the provider shows highlights only to sessions that it hosts itself",
                ));
            }
            other => {
                let known = other.as_str().and_then(ThinkingDisplay::from_name);
                let wrong = || format!("{other} is no display of thinking: summarized or omitted");
                Some(known.ok_or_else(|| Refusal::invalid(wrong()))?)
            }
        };
        self.display.set(display);
        Ok(())
    }

    /// Takes the host's response to one of our requests.
    pub fn take_response(&self, response: Value) {
        if let Some(text) = self.channel.take_response(response) {
            self.handle.remind(text);
        }
    }

    /// The end of input: every call that waits for the host, now or later, will not hear from it.
    pub fn disconnect(&self) {
        self.channel.disconnect();
    }
}

/// Takes note of the colour of the session, which no view of this program paints.
fn set_color(name: &str) -> Answer {
    let is_known = name == "default" || Color::ALL.iter().any(|color| color.as_str() == name);
    if is_known { Ok(json!({})) } else { Err(Refusal::invalid(format!("`{name}` is no colour"))) }
}

/// Brings files back to what they were at a message of the user, or says what that would do.
fn rewind_files(handle: &Handle, id: &str, is_trial: bool) -> Answer {
    let id = id.parse().map_err(|_| Refusal::invalid(format!("`{id}` is no id of a message")))?;
    let rewind = handle.rewind_files(id, is_trial).map_err(Refusal::invalid)?;
    let failed = rewind.failed.iter().map(|(path, why)| json!({"path": path, "error": why}));
    let failed: Vec<Value> = failed.collect();
    let sum = |count: fn(&RewoundFile) -> usize| rewind.files.iter().map(count).sum::<usize>();
    let mut answer = json!({
        "canRewind": true,
        "filesChanged": rewind.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
        "insertions": sum(|file| file.insertions),
        "deletions": sum(|file| file.deletions),
        "setAside": rewind.set_aside,
        "failed": failed,
    });
    if !is_trial {
        // A host is told the number; `failed` and `setAside` name files.
        answer["skippedLinks"] = json!(rewind.skipped_links.len());
    }
    Ok(answer)
}

/// Stops an agent or a shell. An unknown or ended one is an error.
async fn stop_task(handle: &Handle, id: &str) -> Answer {
    handle.stop_task(id).await.map(|()| json!({})).map_err(|error| match error {
        StopError::Unknown => Refusal::invalid(format!("there is no task `{id}`")),
        StopError::NotRunning => Refusal::invalid(format!("task `{id}` is not running any more")),
    })
}

/// The skills that a host lets models invoke: the names of a list, or `all`, which is `None`.
fn read_skills(said: &Value) -> Result<Option<BTreeSet<String>>, NoNames> {
    let names = match said {
        Value::Null => return Ok(None),
        Value::String(all) if all == "all" => return Ok(None),
        Value::Array(names) => names,
        _ => return Err(NoNames),
    };
    let name = |name: &Value| name.as_str().map(str::to_owned).ok_or(NoNames);
    names.iter().map(name).collect::<Result<_, _>>().map(Some)
}

/// The agents that a host brings. One that cannot be read keeps no other away.
fn read_agents(brought: &Value, problems: &mut Vec<String>) -> Vec<ReadAgent> {
    let mut agents = Vec::new();
    for (name, agent) in brought.as_object().into_iter().flatten() {
        let (source, path) = (AgentSource::Flag, PathBuf::from("--agents"));
        let origin = AgentOrigin { source, path, plugin: None };
        match read_json_agent(name, agent, origin, 1, &Vocabulary::default()) {
            Ok(read) => agents.push(read),
            Err(errors) => {
                problems.extend(errors.iter().map(|error| format!("`agents`: {error}")));
            }
        }
    }
    agents
}

/// A value for skills that is neither names nor all of them; the problems of the request tell of it.
struct NoNames;

impl Control {
    /// Applies what the host brings and asks for: functions that are hooks, agents, servers that live in it,
    /// and lines about agents at work. Returns what is wrong with some of it; the rest is in force.
    fn apply_initialization(&self, request: &Map<String, Value>) -> Vec<String> {
        let handle = &self.handle;
        let mut problems = self.restrict(request);
        let hooks = request.get("hooks").filter(|hooks| hooks.is_object());
        if let (Some(_), Some(origin)) = (hooks, &self.hook_policy) {
            problems.push(format!("{origin} leaves hooks to plugins; those of the host are off"));
        } else if let Some(hooks) = hooks {
            let set = HookSet::from_host(hooks);
            problems.extend(set.problems().iter().map(ToString::to_string));
            handle.set_host_hooks(set);
        }
        if let Some(agents) = request.get("agents").filter(|agents| agents.is_object()) {
            handle.add_agents(read_agents(agents, &mut problems));
        }
        if let Some(Ok(chosen)) = request.get("skills").map(read_skills) {
            handle.choose_skills(chosen);
        }
        if let Some(is_wanted) = request.get("forwardSubagentText").and_then(Value::as_bool) {
            handle.forward_text(is_wanted);
        }
        if let Some(is_wanted) = request.get("agentProgressSummaries").and_then(Value::as_bool) {
            handle.summarise_agents(is_wanted);
        }
        let names = request.get("sdkMcpServers").and_then(Value::as_array);
        let wishes = request.get("sdkMcpServerConfigs");
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            let wishes = wishes.and_then(|wishes| wishes.get(name));
            let wishes = wishes.map(ServerWishes::read).unwrap_or_default();
            wishes.add_rules(handle, name);
            servers::add_host_server(handle, &self.pool, name, wishes.timeout);
        }
        problems
    }
}
