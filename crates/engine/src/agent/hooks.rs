//! The hooks of one agent: what they are told of it, and where goes what they say to people.
//!
//! The callers that fire hooks put their output before the model, by [`reminder`].

use std::sync::Arc;

use centurion_files::private::create_directory;
use centurion_hooks::events::{ConfigChange, FileChanged};
use centurion_hooks::{
    Common, Effects, EffortLevel, Event, EventInput, HookResult, HookRules, HookSet, Hooks,
    Registration,
};
use centurion_protocol::markup::contain;
use centurion_protocol::sdk::{EventBody, Informational, System};
use centurion_protocol::{AgentId, Effort};
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::agent::session_place::SessionPlace;
use crate::agent::shared::Shared;

/// The most files of a change of skills that hooks hear of one by one.
const MOST_NAMED: usize = 16;

/// The hooks of one agent, and what they are told of it.
pub(crate) struct AgentHooks {
    /// `None` where hooks do not reach.
    hooks: Option<Hooks>,
    /// Keeps the hooks of the settings in force.
    from_settings: Option<Arc<Registration>>,
    effort: Option<Effort>,
}

impl AgentHooks {
    pub(crate) fn new(
        hooks: Hooks,
        from_settings: Arc<Registration>,
        effort: Option<Effort>,
    ) -> Self {
        Self { hooks: Some(hooks), from_settings: Some(from_settings), effort }
    }

    /// For an agent that is itself a hook: a hook does not set off others.
    pub(crate) fn none() -> Self {
        Self { hooks: None, from_settings: None, effort: None }
    }

    pub(crate) async fn shutdown(&self) {
        if let Some(hooks) = &self.hooks {
            hooks.shutdown().await;
        }
    }
}

impl Agent {
    /// Tells whether a hook would run. Costs next to nothing: every call of every agent asks.
    pub(crate) fn has_hooks(&self, event: Event) -> bool {
        self.hooks.hooks.as_ref().is_some_and(|hooks| !hooks.is_empty_for(event))
    }

    /// Runs the hooks of an event and tells people what the hooks have to say to them.
    pub(crate) async fn fire<E: EventInput>(
        &self,
        input: &E,
        cancel: &CancellationToken,
    ) -> HookResult<E::Verdict> {
        let hooks = self.hooks.hooks.as_ref().filter(|hooks| !hooks.is_empty_for(E::EVENT));
        let Some((hooks, shared)) = hooks.zip(self.shared.upgrade()) else {
            return HookResult::default();
        };
        if E::EVENT.has_env_file() {
            // These hooks are given a file there, to set variables in.
            let place = &self.workspace.output_dir;
            if let Err(error) = create_directory(place) {
                self.inform("warning", format!("cannot make {}: {error}", place.display()));
            }
        }
        let fired =
            hooks.fire(&self.common(&shared.delegation.builder.files.place), input, cancel).await;
        self.tell_people(&fired.hook_name, &fired.effects);
        fired
    }

    /// Tells hooks of the files that they watch and that changed since the last look.
    pub(crate) async fn fire_file_changes(&self, cancel: &CancellationToken) {
        let Some(hooks) = &self.hooks.hooks else { return };
        for change in hooks.changed_files(&self.workspace.cwd()) {
            let changed = FileChanged { file_path: &change.path, event: change.event };
            self.fire(&changed, cancel).await;
        }
    }

    /// Applies skills that changed on disk. Where hooks want to hear of it, a change counts only if none of them
    /// objects.
    pub(crate) async fn refresh_skills(&self, cancel: &CancellationToken) {
        let (Some(_), Some(shared)) = (&self.hooks.hooks, self.shared.upgrade()) else { return };
        let definitions = &shared.delegation.definitions;
        if !self.has_hooks(Event::ConfigChange) {
            definitions.allow_skill_changes();
            return;
        }
        let _asking = definitions.ask_alone().await;
        let Some(change) = definitions.skill_change() else { return };
        // Of many files the first are named, and the others told of as one.
        let named = change.files.iter().take(MOST_NAMED).map(|file| Some(file.as_path()));
        let others = (change.files.len() > MOST_NAMED).then_some(None);
        let mut is_kept_out = false;
        for file_path in named.chain(others) {
            let fired = self.fire(&ConfigChange { source: "skills", file_path }, cancel).await;
            if let Some(reason) = fired.verdict.reason() {
                is_kept_out = true;
                let what = file_path.map_or("skills".to_owned(), |it| it.display().to_string());
                self.inform("warning", format!("a hook keeps the change of {what} out: {reason}"));
            }
        }
        match (cancel.is_cancelled(), is_kept_out) {
            // A hook that was cut off might have said no: it is asked again.
            (true, _) => {}
            (false, true) => definitions.keep_skills_out(change),
            (false, false) => definitions.take_skills(change),
        }
    }

    /// Puts the hooks of changed settings in force.
    pub(crate) fn replace_hooks(&self, set: HookSet, rules: HookRules) {
        if let (Some(hooks), Some(registration)) = (&self.hooks.hooks, &self.hooks.from_settings) {
            hooks.limit(rules);
            registration.replace(set);
        }
    }

    fn tell_people(&self, hook_name: &str, effects: &Effects) {
        for message in &effects.user_messages {
            self.inform("info", message.clone());
        }
        for error in &effects.errors {
            self.inform("warning", error.to_string());
        }
        if !effects.terminal_sequences.is_empty() {
            let message = format!(
                "{hook_name} hook: its terminalSequence has no effect: this session has no terminal"
            );
            self.inform("warning", message);
        }
    }

    fn common(&self, place: &SessionPlace) -> Common {
        Common {
            session_id: place.id(),
            prompt_id: self.prompt().map(|id| id.to_string()),
            transcript_path: place.transcript(),
            cwd: self.workspace.cwd(),
            permission_mode: Some(self.permissions.mode().to_string()),
            effort: self.hooks.effort.map(|level| EffortLevel { level }),
            agent_id: self.identity.id.clone(),
            agent_type: self.identity.kind.clone(),
            parent_agent_id: self.identity.parent.clone(),
            depth: self.identity.depth,
            teammate_name: self.identity.name.clone().filter(|_| self.identity.team.is_some()),
            team_name: self.identity.team.as_ref().map(ToString::to_string),
        }
    }
}

impl Shared {
    /// Tells people something that is no part of a conversation: about an agent, or about the main agent and the
    /// session.
    pub(crate) fn inform(&self, agent: Option<&AgentId>, level: &'static str, content: String) {
        let said = Informational { content, level, agent_id: agent.cloned() };
        self.show(EventBody::System(System::Informational(said)));
    }
}

/// Frames the output of hooks for a model: it is data, whatever it looks like (invariant I-9).
pub(crate) fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{}\n</system-reminder>", contain(text))
}
