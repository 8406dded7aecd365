//! A session that runs as an agent of a definition: what the definition means for the main agent.

use std::path::Path;

use centurion_config::agents::{ActiveAgent, AgentDefinition};
use centurion_hooks::{HookScope, Registration};
use centurion_permissions::Role;
use centurion_protocol::markup::contain;

use super::{OpenError, Shared};
use crate::agent::ToolScope;
use crate::agent::builder::{BroughtBy, ServersError};
use crate::agent::hooks::reminder;
use crate::definition::environment::Environment;
use crate::definition::identity::Identity;
use crate::definition::prompt::{PromptOptions, left_out};
use crate::definition::request_settings::RequestSettings;
use crate::definition::resolve::{
    AgentPosition, EffectiveAgent, MainFlags, Reach, Starter, ToolView,
};
use crate::definition::rules::SessionMode;
use crate::definition::spec::BroughtHooks;
use crate::delegate::preload::{PreloadedTexts, Purpose, Skills, hook_set, preload};
use crate::toolset::servers::REQUIRED_PATIENCE;

/// The main agent as flags and a definition describe it.
pub(super) struct MainAgent {
    pub(super) settings: RequestSettings,
    pub(super) prompt: PromptOptions,
    pub(super) view: ToolView,
    /// Its memory: the last section of its system prompt.
    pub(super) memory: Option<String>,
    /// True if it is told what the instruction files say.
    pub(super) instructions: bool,
    /// Texts before the first input.
    pub(super) context: Vec<String>,
    pub(super) initial_prompt: Option<String>,
    pub(super) hooks: Vec<BroughtHooks>,
}

/// The identity of the main agent.
pub(super) fn identity(agent: Option<&ActiveAgent>) -> Identity {
    Identity {
        kind: agent.map(|agent| agent.definition.name.value.clone()),
        color: agent.map(|agent| agent.color),
        ..Identity::default()
    }
}

impl MainAgent {
    /// The main agent of a session that runs as no agent in particular.
    pub(super) fn plain(
        settings: RequestSettings,
        prompt: PromptOptions,
        mode: SessionMode,
    ) -> Self {
        let reach = match mode {
            SessionMode::Coordinator => Reach::Coordinator,
            _ => Reach::Main,
        };
        Self {
            settings,
            prompt,
            view: ToolView::all(reach),
            memory: None,
            instructions: true,
            context: Vec::new(),
            initial_prompt: None,
            hooks: Vec::new(),
        }
    }

    /// Takes the texts before the first input, with what a prompt that is the same for all users leaves out.
    pub(super) fn take_context(&mut self, environment: &Environment) -> Vec<String> {
        let of_place = left_out(&self.prompt, environment, self.memory.as_deref());
        let mut context = std::mem::take(&mut self.context);
        context.splice(0..0, of_place.map(|text| reminder(&text)));
        context
    }

    /// Applies a definition. What the user said on the command line stays.
    pub(super) async fn become_agent(
        &mut self,
        agent: &ActiveAgent,
        shared: &Shared,
        flags: &MainFlags,
        cwd: &Path,
    ) -> Result<(), OpenError> {
        let name = &agent.definition.name.value;
        if let Some(required) = &agent.definition.required_mcp_servers {
            let unmet = |source| OpenError::RequiredServers { name: name.clone(), source };
            shared.servers.require(required, REQUIRED_PATIENCE).await.map_err(unmet)?;
        }
        let patience = shared.server_patience();
        if let Some(settling) = shared.servers.settle_listed(&agent.definition, patience) {
            settling.await;
        }
        let mut effective = self.resolve(agent, shared, flags, cwd)?;
        let definition = &agent.definition;
        let PreloadedTexts { memory, skills: Skills { texts, hooks: skill_hooks }, problems } =
            preload(shared, definition, &mut effective, Purpose::Run);
        for problem in &problems {
            shared.inform(None, "warning", format!("agent {name}: {problem}"));
        }
        Self::add_servers(&effective, shared, definition)
            .map_err(|source| OpenError::AgentServers { name: name.clone(), source })?;
        if !flags.has_mode {
            let changed = shared.permissions.set_mode(effective.permission_mode.value);
            changed.map_err(|source| OpenError::AgentMode { name: name.clone(), source })?;
        }
        shared.permissions.confine(Role {
            only: effective.only.clone(),
            memory: memory
                .as_ref()
                .map(|memory| memory.directory.clone())
                .filter(|_| definition.withheld.is_none()),
            only_reads: effective.only_reads,
            ..Role::default()
        });
        let settings = &mut self.settings;
        settings.model = effective.model.value;
        settings.effort = effective.effort.value;
        settings.thinking = effective.thinking;
        settings.max_turns = effective.max_turns.value.or(settings.max_turns);
        if self.prompt.replace.is_none() {
            self.prompt.replace = Some(effective.prompt.value);
        }
        self.view = effective.view;
        self.instructions = effective.instructions.value;
        self.memory = memory.map(|memory| memory.section);
        self.context.extend(texts);
        self.context.extend(effective.reminder.map(|it| reminder(&it.value)));
        self.initial_prompt = effective.initial_prompt.map(|it| contain(&it.value).into_owned());
        let own = effective.hooks.map(|hooks| BroughtHooks {
            value: hooks.value,
            path: definition.origin.path.clone(),
            skill: None,
        });
        self.hooks = own.into_iter().chain(skill_hooks).collect();
        Ok(())
    }

    pub(super) fn resolve(
        &self,
        agent: &ActiveAgent,
        shared: &Shared,
        flags: &MainFlags,
        cwd: &Path,
    ) -> Result<EffectiveAgent, OpenError> {
        let starter = Starter {
            model: self.settings.model.clone(),
            effort: self.settings.effort,
            thinking: self.settings.thinking,
            stance: shared.permissions.stance(),
            depth: 0,
            cwd: cwd.to_owned(),
        };
        let scope = ToolScope {
            permissions: &shared.permissions,
            servers: &shared.servers,
            startable: None,
            is_main: true,
        };
        let builder = &shared.delegation.builder;
        Ok(builder.resolve(shared, agent, AgentPosition::Main(flags), &starter, &scope)?)
    }

    /// Adds the servers that the definition asks for to those of the session.
    fn add_servers(
        effective: &EffectiveAgent,
        shared: &Shared,
        definition: &AgentDefinition,
    ) -> Result<(), ServersError> {
        let Some(asked) = &effective.mcp_servers else { return Ok(()) };
        let (name, origin) = (definition.name.as_str(), &definition.origin);
        let by = BroughtBy { name, source: origin.source, path: &origin.path };
        let builder = &shared.delegation.builder;
        let brought = builder.servers(&asked.value, &by, &asked.by, &shared.servers)?;
        // The session already has the servers that it names.
        for own in brought.own {
            shared.servers.add(own);
        }
        Ok(())
    }

    /// Puts the hooks of the definition in force, for the main agent alone.
    pub(super) fn register_hooks(&self, shared: &Shared, identity: &Identity) -> Vec<Registration> {
        let hooks = &shared.delegation.builder.hooks;
        let agent = identity.kind.as_deref().unwrap_or_default();
        let register =
            |brought| hooks.add(HookScope::Agent(None), hook_set(shared, None, agent, brought));
        self.hooks.iter().map(register).collect()
    }
}
