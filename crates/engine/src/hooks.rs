//! The hooks of one agent: what they are told of it, and where goes what they say to people.
//!
//! What they say to the model is for the places that fire them to put before it, by [`reminder`].

mod handlers;
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use centurion_hooks::{
    Common, Effects, EffortLevel, Event, EventInput, Fired, HookRules, HookSet, Hooks,
    Registration, Scope, Surroundings,
};
use centurion_protocol::sdk::{EventBody, Informational, System};
use centurion_protocol::{AgentId, Effort, RecordId};
use centurion_tools::Workspace;
use centurion_tools::guard::GuardProgram;
use tokio_util::sync::CancellationToken;

use self::handlers::Handlers;
pub use self::handlers::HookHost;
use self::watch::Watch;
use crate::journal::{Stamp, create_private_dir};
use crate::markup::contain;
use crate::permissions::Permissions;
use crate::session::Shared;

/// Which agent it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// `None` for the main agent.
    pub(crate) id: Option<AgentId>,
    pub(crate) kind: Option<String>,
    pub(crate) parent: Option<AgentId>,
    pub(crate) depth: u32,
}

/// The hooks of one agent.
pub(crate) struct AgentHooks {
    /// `None` where hooks do not reach.
    pub(crate) hooks: Option<Hooks>,
    /// What keeps the hooks of the settings in force.
    pub(crate) from_settings: Option<Registration>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) identity: Identity,
    /// The main agent's transcript.
    pub(crate) transcript: PathBuf,
    pub(crate) effort: Option<Effort>,
    /// What the agent was last told by somebody.
    pub(crate) prompt: Mutex<Option<RecordId>>,
}

/// What the hooks of a session are made from.
pub(crate) struct SessionHooks {
    pub(crate) settings: HookSet,
    pub(crate) rules: HookRules,
    pub(crate) host: Option<Arc<dyn HookHost>>,
    /// Whether every run of a hook is an event.
    pub(crate) shows_runs: bool,
    pub(crate) home: Option<PathBuf>,
    pub(crate) guard: GuardProgram,
    /// Where hooks set variables for commands.
    pub(crate) env_file: PathBuf,
    pub(crate) stamp: Stamp,
    pub(crate) transcript: PathBuf,
    pub(crate) effort: Option<Effort>,
}

impl AgentHooks {
    /// The hooks of a session, as its main agent has them.
    pub(crate) fn of_session(
        shared: &Arc<Shared>,
        workspace: Arc<Workspace>,
        parts: SessionHooks,
    ) -> Arc<Self> {
        let delegate = Handlers {
            shared: Arc::downgrade(shared),
            servers: Arc::clone(&shared.servers),
            workspace: Arc::clone(&workspace),
            host: parts.host,
            stamp: parts.stamp,
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
        Arc::new(Self {
            from_settings: Some(hooks.add(Scope::Session, parts.settings)),
            hooks: Some(hooks),
            shared: Arc::clone(shared),
            permissions: Arc::clone(&shared.permissions),
            workspace,
            identity: Identity::default(),
            transcript: parts.transcript,
            effort: parts.effort,
            prompt: Mutex::default(),
        })
    }

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
        if matches!(E::EVENT, Event::SessionStart | Event::CwdChanged) {
            // These hooks are given a file there, to set variables in.
            let made = create_private_dir(&self.workspace.output_dir);
            if let Err(error) = made {
                let place = self.workspace.output_dir.display();
                self.shared.inform("warning", format!("cannot make {place}: {error}"));
            }
        }
        let fired = hooks.fire(&self.common(), input, cancel).await;
        self.tell(&fired.effects);
        fired
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

    fn tell(&self, effects: &Effects) {
        for message in &effects.user_messages {
            self.shared.inform("info", message.clone());
        }
        for error in &effects.errors {
            self.shared.inform("warning", error.to_string());
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
