//! The way to reach a running session from outside.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use centurion_config::agents::{ActiveAgent, AgentCatalog, ReadAgent};
use centurion_config::skills::SkillCatalog;
use centurion_hooks::HookSet;
use centurion_mcp::Connection;
use centurion_permissions::Mode;
use centurion_protocol::sdk::InitPlugins;
use centurion_protocol::{Block, CurrentSession, RecordId, SessionId, Thinking};
use centurion_tools::{Rewind, RewindError, StopError};

use super::commands::show;
use super::options::PluginParts;
use super::rewind;
use super::side_question::{self, AsideError};
use super::title;
use crate::agent::shared::Shared;
use crate::agent::task::Stopper;
use crate::definition::bypass::BypassRefused;
use crate::delegate::stop_all::stop_all;
use crate::delegate::teammate;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::money::usage::UsageTotals;
use crate::policy::broker::Answerer;
use crate::toolset::servers::{RequireError, WithheldServer};
use crate::turn::commands::{TypedCommand, typed_commands};
use crate::turn::context_usage::{self, ContextUsage};
use crate::turn::internal_fork::InternalForkError;
use crate::turn::message_breakdown::{self, MessageBreakdown};
use crate::turn::model_switch::{Switch, SwitchRefused};

/// A way to reach a running session from outside.
#[derive(Clone)]
pub struct Handle(pub(super) Arc<Shared>);

impl Handle {
    /// From now on questions go to `answerer`. Tools that need a person are offered only to a session that
    /// was opened with one.
    pub fn attach(&self, answerer: Arc<dyn Answerer>) {
        self.0.broker.attach(answerer);
    }

    /// Queues what a person says.
    pub fn submit(&self, id: RecordId, content: Vec<Block>) {
        self.submit_with(id, content, Priority::Next);
    }

    /// Queues what a person says, sooner or later than usual.
    pub fn submit_with(&self, id: RecordId, content: Vec<Block>, priority: Priority) {
        self.submit_in(id, content, priority, Manner::default());
    }

    /// Queues what a host says for a person or in another's place, and has it handled in this manner.
    pub fn submit_in(&self, id: RecordId, content: Vec<Block>, priority: Priority, manner: Manner) {
        let origin = Origin::Person;
        self.0.queue.push(Item { id, priority, addressee: None, content, origin, manner });
    }

    /// Takes back what a person said and no turn has taken yet; whether there was something to take back.
    pub fn withdraw(&self, id: RecordId) -> bool {
        self.0.queue.withdraw(id)
    }

    /// The id of the session. A conversation that begins anew has another one.
    pub fn id(&self) -> SessionId {
        self.0.id()
    }

    /// The id, for those that look at it later and must not keep the session alive.
    pub fn current_session(&self) -> CurrentSession {
        self.0.delegation.builder.files.place.current()
    }

    /// Names the session.
    pub fn rename(&self, title: &str) {
        self.0.rename(title.to_owned());
    }

    /// Tells whether the main agent has sent a request.
    pub fn has_sent_request(&self) -> bool {
        self.0.main_point().is_some()
    }

    /// The usage of the main agent's window by its last request, or by its first one as it would be now.
    pub fn context_usage(&self) -> ContextUsage {
        context_usage::context_usage(&self.0)
    }

    /// The kinds of messages in the main agent's last request; `None` before it.
    pub fn message_breakdown(&self) -> Option<MessageBreakdown> {
        message_breakdown::of_main(&self.0)
    }

    /// The usage of the session so far.
    pub fn usage(&self) -> UsageTotals {
        self.0.usage.totals.lock().clone()
    }

    /// The cost of the session, in lines for people.
    pub fn cost_text(&self) -> String {
        show::cost(&self.0)
    }

    /// Asks the main agent's model something beside its conversation, which never hears of it. Dropping the future
    /// withdraws the question.
    pub async fn ask_aside(&self, question: &str) -> Result<String, AsideError> {
        side_question::ask(&self.0, question).await
    }

    /// Names the session by what it is about, as a small model reads it.
    pub async fn generate_title(&self, about: &str) -> Result<String, InternalForkError> {
        let title = title::title(&self.0, about).await?;
        self.0.rename(title.clone());
        Ok(title)
    }

    /// Brings the files that agents changed since a prompt back to what they were, or says what that would do. What
    /// others changed meanwhile is set aside and named. Not while agents are at work.
    pub fn rewind_files(&self, prompt: RecordId, is_trial: bool) -> Result<Rewind, RewindError> {
        rewind::rewind_files(&self.0, prompt, is_trial)
    }

    /// Tells the main agent something with its next turn, without waking it.
    pub fn remind(&self, text: String) {
        self.0.add_side_note(None, text);
    }

    /// Nothing more will be submitted: the session ends when all is done.
    pub fn close(&self) {
        self.0.queue.close();
    }

    /// Stops the run that is under way or about to begin; history stays valid. Returns what still waits.
    pub fn interrupt(&self) -> Vec<RecordId> {
        let waiting = self.0.queue.pending(None);
        self.0.interrupt_run(!self.0.queue.due(None).is_empty());
        if self.0.delegation.rules.interrupt_ends_background {
            self.stop_agents();
        }
        waiting.into_iter().map(|item| item.id).collect()
    }

    /// Stops the run that is under way and every agent, and drops what waits: the session ends.
    pub fn stop(&self) {
        self.0.queue.abandon();
        for task in self.0.delegation.running() {
            task.stop(Stopper::Session);
        }
        self.interrupt();
    }

    /// Ends an agent or a shell in the background, whichever agent's; `Err` says why nothing was ended.
    pub async fn stop_task(&self, id: &str) -> Result<(), StopError> {
        if let Some(task) = self.0.delegation.find(id) {
            let was_at_rest = teammate::dismiss(&self.0, &task, Stopper::Person);
            let is_stopped = was_at_rest || task.stop(Stopper::Person);
            return if is_stopped { Ok(()) } else { Err(StopError::NotRunning) };
        }
        for shells in self.0.all_shells() {
            match shells.stop(id).await {
                Err(StopError::Unknown) => {}
                stopped => return stopped.map(drop),
            }
        }
        Err(StopError::Unknown)
    }

    /// Ends every agent in the background. The main agent is told once, of all of them.
    pub fn stop_agents(&self) -> usize {
        stop_all(&self.0, Manner::default())
    }

    /// The same for a person who has interrupted the main agent: that one is told with its next turn.
    pub fn interrupt_agents(&self) -> usize {
        stop_all(&self.0, Manner::quiet())
    }

    /// Has a small model say now and then what agents in the background are doing, or no longer.
    pub fn summarise_agents(&self, is_wanted: bool) {
        self.0.delegation.summarise(is_wanted);
    }

    /// Tells whether a small model says what agents in the background are doing.
    pub fn summarises_agents(&self) -> bool {
        self.0.delegation.summarises()
    }

    /// Lets observers see what agents say and think while a call waits for them, or no longer.
    pub fn forward_text(&self, is_wanted: bool) {
        self.0.delegation.forward_text(is_wanted);
    }

    /// The name of the output style that is in force.
    pub fn output_style(&self) -> String {
        self.0.delegation.definitions.style_name()
    }

    /// The names of the output styles that there are now. A session keeps the one that it began with.
    pub fn output_styles(&self) -> Vec<String> {
        self.0.delegation.definitions.output_styles().names()
    }

    /// Adds agents that a host brings.
    pub fn add_agents(&self, agents: Vec<ReadAgent>) {
        self.0.delegation.definitions.add(agents);
    }

    /// All agents that can be asked for.
    pub fn agents(&self) -> Vec<ActiveAgent> {
        let agents = self.0.delegation.definitions.agents();
        let is_shown = |agent: &&ActiveAgent| agent.definition.name.value != "fork";
        agents.active.iter().filter(is_shown).cloned().collect()
    }

    /// All definitions of agents, also those that cannot be asked for.
    pub fn agent_catalog(&self) -> Arc<AgentCatalog> {
        self.0.delegation.definitions.agents()
    }

    /// All skills as they are on disk now, also those that cannot be invoked.
    pub fn skill_catalog(&self) -> Arc<SkillCatalog> {
        self.0.delegation.definitions.skills_now()
    }

    /// The directory of the main agent's notes, if it keeps some.
    pub fn notes_directory(&self) -> Option<PathBuf> {
        let notes = self.0.main_agent()?.notes.as_ref()?.directory().to_owned();
        Some(notes)
    }

    /// Puts the hooks of the host in the place of earlier ones.
    pub fn set_host_hooks(&self, set: HookSet) {
        self.0.set_host_hooks(set);
    }

    /// The servers of the main agent, each with whether it is switched on.
    pub fn servers(&self) -> Vec<(Connection, bool)> {
        self.0.servers.all()
    }

    /// The servers that are declared and were not started.
    pub fn withheld_servers(&self) -> Vec<WithheldServer> {
        self.0.servers.withheld()
    }

    /// Waits until every pattern names a server that is connected and has a tool. `Err` says which one does
    /// not, and why.
    pub async fn require_servers(
        &self,
        patterns: &[String],
        patience: Duration,
    ) -> Result<(), RequireError> {
        self.0.servers.require(patterns, patience).await
    }

    /// The commands that a person can type: the program's, skills, and those that the servers bring.
    pub fn commands(&self) -> Vec<TypedCommand> {
        typed_commands(&self.0)
    }

    /// Looks at the skills as they are on disk now.
    pub fn reload_skills(&self) {
        self.0.delegation.definitions.skills_now();
    }

    /// Puts plugins in the place of those that the session knew: their agents, skills, commands and hooks count from now
    /// on.
    pub fn set_plugins(&self, parts: PluginParts) {
        let PluginParts { shown, agents, skills, skill_folders, hooks } = parts;
        self.0.delegation.definitions.set_plugins(agents, skills, skill_folders);
        self.0.set_plugins(shown, hooks);
    }

    /// The plugins that are switched on, as hosts see them.
    pub fn plugins(&self) -> InitPlugins {
        self.0.plugins()
    }

    /// Lets models invoke the skills of these names and no others; `None` is all. People may type every skill.
    pub fn choose_skills(&self, chosen: Option<BTreeSet<String>>) {
        self.0.delegation.definitions.choose_skills(chosen);
    }

    /// The skills that hosts list.
    pub fn skill_names(&self) -> Vec<String> {
        let skills = self.0.delegation.definitions.skills();
        skills.for_hosts().map(|skill| skill.name.clone()).collect()
    }

    /// Adds a server, in the place of one with the same name.
    pub fn add_server(&self, connection: Connection) {
        self.0.servers.add(connection);
    }

    /// Takes a server away; whether there was one.
    pub fn remove_server(&self, name: &str) -> bool {
        self.0.servers.remove(name)
    }

    /// Switches a server on or off; whether there is one.
    pub fn switch_server(&self, name: &str, is_on: bool) -> bool {
        self.0.servers.switch(name, is_on)
    }

    pub fn mode(&self) -> Mode {
        self.0.permissions.mode()
    }

    /// The full name of a model.
    pub fn resolve_model(&self, name: &str) -> String {
        self.0.model.resolve(name)
    }

    /// Changes how the model thinks from the next run on.
    pub fn set_thinking(&self, thinking: Thinking) {
        self.0.choose_thinking(thinking);
    }

    /// Changes the permission mode.
    pub fn set_mode(&self, mode: Mode) -> Result<(), BypassRefused> {
        self.0.permissions.set_mode(mode)?;
        self.0.show_mode(mode);
        Ok(())
    }

    /// Asks hooks whether the main agent may use another model from the next run on, or the session's own.
    pub async fn ask_model(&self, name: Option<&str>) -> Result<ModelChange, SwitchRefused> {
        let to =
            name.map_or_else(|| self.0.model.name().to_owned(), |name| self.0.model.resolve(name));
        let (from, _) = self.applied();
        let requested = name.map(str::to_owned);
        let change = ModelChange { handle: self.clone(), from, to, requested };
        change.switch().check_name(&self.0)?;
        if let Some(agent) = self.0.main_agent() {
            change.switch().ask(&agent, &self.0).await?;
        }
        Ok(change)
    }
}

/// A change of the main agent's model that hooks have nothing against.
pub struct ModelChange {
    handle: Handle,
    from: String,
    to: String,
    requested: Option<String>,
}

impl ModelChange {
    /// Makes the change; returns the full name of the model.
    pub async fn make(self) -> String {
        let shared = &self.handle.0;
        shared.choose_model(self.to.clone());
        if let Some(unknown) = shared.model.unknown(&self.to) {
            shared.inform(None, "warning", unknown.to_string());
        }
        if let Some(agent) = shared.main_agent() {
            self.switch().tell(&agent, shared).await;
        }
        self.to
    }

    fn switch(&self) -> Switch<'_> {
        let requested = self.requested.as_deref();
        Switch { from: &self.from, to: &self.to, requested, source: "sdk" }
    }
}
