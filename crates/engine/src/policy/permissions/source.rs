//! The sources of rules while a session runs, and the store of answers that outlive it.

use std::path::PathBuf;
use std::time::Duration;

use centurion_hooks::{HookRules, HookSet};
use centurion_permissions::RuleSet;
use tokio::time::Instant;

use super::remember::{KeepError, Remember};

/// Rules as they are at one moment.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub allow: RuleSet,
    pub ask: RuleSet,
    pub deny: RuleSet,
    /// The working directories of the agent.
    pub directories: Vec<PathBuf>,
}

/// Settings that changed while a session runs.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub rules: Rules,
    /// The files that changed, each with what hooks call it: `user_settings` and the like.
    pub files: Vec<(&'static str, PathBuf)>,
    /// The hooks of the settings, as they are now.
    pub hooks: HookSet,
    pub hook_rules: HookRules,
}

/// A source of rules while a session runs, such as settings files.
pub trait RuleSource: Send + Sync {
    /// The settings, if they changed since the last look.
    fn changed(&mut self) -> Option<Change>;
}

/// The store of answers that hold for longer than a session.
pub trait RuleStore: Send + Sync {
    /// Keeps what a person decided.
    fn keep(&self, remember: &Remember) -> Result<(), KeepError>;
}

/// The source of rules, and the time of the last look.
pub(super) struct WatchedSource {
    pub(super) source: Option<Box<dyn RuleSource>>,
    pub(super) looked: Option<Instant>,
}

/// The interval between looks of all agents below the main agent together: there may be hundreds.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(100);

impl WatchedSource {
    pub(super) fn is_due(&self) -> bool {
        self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_INTERVAL)
    }

    pub(super) fn changed(&mut self) -> Option<Change> {
        let source = self.source.as_mut()?;
        self.looked = Some(Instant::now());
        source.changed()
    }
}

/// A change that is not in force.
pub(super) struct KeptOut {
    pub(super) change: Change,
    pub(super) objection: Objection,
}

/// The reason why a change is not in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    /// A hook said no.
    Refused,
    /// The hooks were interrupted before they had answered.
    Unheard,
}
