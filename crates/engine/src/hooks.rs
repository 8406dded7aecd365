//! The hooks of one agent: what they are told of it, and where goes what they say to people.
//!
//! What they say to the model is for the places that fire them to put before it, by [`reminder`].

mod handlers;
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use centurion_hooks::events::FileChanged;
use centurion_hooks::{
    Common, Effects, EffortLevel, Event, EventInput, Fired, HookRules, HookSet, Hooks,
    Registration, Surroundings,
};
use centurion_protocol::sdk::{EventBody, Informational, System};
use centurion_protocol::{Effort, RecordId};
use centurion_tools::Workspace;
use centurion_tools::guard::GuardProgram;
use tokio_util::sync::CancellationToken;

use self::handlers::Handlers;
pub use self::handlers::HookHost;
use self::watch::Watch;
use crate::ground::ModelRefusal;
use crate::identity::Identity;
use crate::permissions::Permissions;
use crate::session::Shared;
use centurion_files::private::create_directory;
use centurion_journal::Stamp;
use centurion_protocol::markup::contain;

/// The hooks of one agent.
pub(crate) struct AgentHooks {
    /// `None` where hooks do not reach.
    pub(crate) hooks: Option<Hooks>,
    /// What keeps the hooks of the settings in force.
    pub(crate) from_settings: Option<Arc<Registration>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) identity: Arc<Identity>,
    /// The main agent's transcript.
    pub(crate) transcript: PathBuf,
    pub(crate) effort: Option<Effort>,
    /// What the agent was last told by somebody.
    pub(crate) prompt: Arc<Mutex<Option<RecordId>>>,
}

/// What the hooks of a session are made from.
pub(crate) struct SessionHooks {
    pub(crate) rules: HookRules,
    pub(crate) host: Option<Arc<dyn HookHost>>,
    /// Whether every run of a hook is an event.
    pub(crate) shows_runs: bool,
    pub(crate) home: Option<PathBuf>,
    pub(crate) guard: GuardProgram,
    /// Where hooks set variables for commands.
    pub(crate) env_file: PathBuf,
    pub(crate) stamp: Stamp,
    /// Why a model may not be used, if so.
    pub(crate) refuse_model: ModelRefusal,
}

/// The hooks of a session, before anybody has brought any.
pub(crate) fn session_hooks(
    shared: &Arc<Shared>,
    workspace: &Arc<Workspace>,
    parts: SessionHooks,
) -> Hooks {
    let delegate = Handlers {
        shared: Arc::downgrade(shared),
        servers: Arc::clone(&shared.servers),
        workspace: Arc::clone(workspace),
        host: parts.host,
        stamp: parts.stamp,
        refuse_model: parts.refuse_model,
    };
    let watcher = Watch { shared: Arc::downgrade(shared), shows_runs: parts.shows_runs };
    let around = Surroundings {
        guard: parts.guard,
        env: Arc::clone(&workspace.env),
        project_dir: workspace.root.clone(),
        home: parts.home,
        overflow_dir: workspace.output_dir.clone(),
        env_file: Some(parts.env_file),
        world: Arc::clone(&shared.world),
        delegate: Arc::new(delegate),
        watcher: Arc::new(watcher),
    };
    let hooks = Hooks::new(around, parts.rules);
    shared.keep_hooks(hooks.clone());
    hooks
}

impl AgentHooks {
    /// Whether nothing would run. Costs next to nothing: every call of every agent asks.
    pub(crate) fn has_none(&self, event: Event) -> bool {
        self.hooks.as_ref().is_none_or(|hooks| hooks.is_empty_for(event))
    }

    /// Runs the hooks of an event and tells people what the hooks have to say to them.
    pub(crate) async fn fire<E: EventInput>(
        &self,
        input: &E,
        cancel: &CancellationToken,
    ) -> Fired<E::Verdict> {
        let Some(hooks) = self.hooks.as_ref().filter(|hooks| !hooks.is_empty_for(E::EVENT)) else {
            return Fired::default();
        };
        if matches!(E::EVENT, Event::SessionStart | Event::CwdChanged | Event::FileChanged) {
            // These hooks are given a file there, to set variables in.
            let made = create_directory(&self.workspace.output_dir);
            if let Err(error) = made {
                let place = self.workspace.output_dir.display();
                self.shared.inform("warning", format!("cannot make {place}: {error}"));
            }
        }
        let fired = hooks.fire(&self.common(), input, cancel).await;
        self.tell(&fired.hook_name, &fired.effects);
        fired
    }

    /// Tells hooks of the files that they watch and that changed since the last look.
    pub(crate) async fn tell_changed_files(&self, cancel: &CancellationToken) {
        let Some(hooks) = &self.hooks else { return };
        for change in hooks.changed_files(&self.workspace.cwd()) {
            let changed = FileChanged { file_path: &change.path, event: change.event };
            self.fire(&changed, cancel).await;
        }
    }

    /// Puts the hooks of changed settings in force.
    pub(crate) fn replace(&self, set: HookSet, rules: HookRules) {
        if let (Some(hooks), Some(registration)) = (&self.hooks, &self.from_settings) {
            hooks.limit(rules);
            registration.replace(set);
        }
    }

    pub(crate) fn set_prompt(&self, id: RecordId) {
        *self.prompt.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
    }

    fn common(&self) -> Common {
        let prompt = *self.prompt.lock().unwrap_or_else(PoisonError::into_inner);
        Common {
            session_id: self.shared.id,
            prompt_id: prompt.map(|id| id.to_string()),
            transcript_path: self.transcript.clone(),
            cwd: self.workspace.cwd(),
            permission_mode: Some(self.permissions.mode().to_string()),
            effort: self.effort.map(|level| EffortLevel { level }),
            agent_id: self.identity.id.clone(),
            agent_type: self.identity.kind.clone(),
            parent_agent_id: self.identity.parent.clone(),
            depth: self.identity.depth,
        }
    }

    fn tell(&self, hook_name: &str, effects: &Effects) {
        for message in &effects.user_messages {
            self.shared.inform("info", message.clone());
        }
        for error in &effects.errors {
            self.shared.inform("warning", error.to_string());
        }
        if !effects.terminal_sequences.is_empty() {
            let message = format!(
                "{hook_name} hook: its terminalSequence has no effect: this session has no terminal"
            );
            self.shared.inform("warning", message);
        }
    }
}

impl Shared {
    /// Tells people something that is no part of the conversation.
    pub(crate) fn inform(&self, level: &'static str, content: String) {
        self.show(EventBody::System(System::Informational(Informational { content, level })));
    }
}

/// What hooks have to say to a model, as it reads it: data, whatever it looks like (invariant I-9).
pub(crate) fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{}\n</system-reminder>", contain(text))
}
