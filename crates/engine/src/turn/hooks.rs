//! The hooks of a session: what carries them out, and what becomes visible of them.

mod handlers;
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use centurion_hooks::{HookRules, Hooks, Surroundings};
use centurion_protocol::{Env, World};
use centurion_tools::guard::GuardProgram;

use self::handlers::Handlers;
pub use self::handlers::HookHost;
use self::watch::HookWatch;
use crate::agent::shared::Shared;

/// The parts of a session's hooks.
pub(crate) struct SessionHooks {
    pub(crate) rules: HookRules,
    pub(crate) host: Option<Arc<dyn HookHost>>,
    /// True if every run of a hook is an event.
    pub(crate) shows_runs: bool,
    pub(crate) home: Option<PathBuf>,
    pub(crate) guard: GuardProgram,
    /// The file in which hooks set variables for commands.
    pub(crate) env_file: PathBuf,
    pub(crate) env: Arc<Env>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) project_dir: PathBuf,
    pub(crate) output_dir: PathBuf,
}

impl SessionHooks {
    /// The hooks of a session, before any are registered. `session` is the one that is being built.
    pub(crate) fn build(self, session: &Weak<Shared>) -> Hooks {
        let delegate = Handlers { shared: Weak::clone(session), host: self.host };
        let watcher = HookWatch { shared: Weak::clone(session), shows_runs: self.shows_runs };
        let around = Surroundings {
            guard: self.guard,
            env: self.env,
            project_dir: self.project_dir,
            home: self.home,
            overflow_dir: self.output_dir,
            env_file: Some(self.env_file),
            world: self.world,
            delegate: Arc::new(delegate),
            watcher: Arc::new(watcher),
        };
        Hooks::new(around, self.rules)
    }
}
