//! The settings of a run in progress: read again when a file changes, and changed by its host.

use std::sync::Arc;

use centurion_config::settings::{Additions, Level, Settings, set_text};
use centurion_host::{DeskError, SettingsDesk, SettingsView};
use parking_lot::Mutex;
use serde_json::{Map, Value};

/// The settings as they are now. Clones are of the same settings.
#[derive(Clone)]
pub(crate) struct LiveSettings(Arc<Mutex<SettingsState>>);

pub(crate) struct SettingsState {
    pub(crate) settings: Settings,
    /// Whether the host has changed something since the rules were last made.
    pub(crate) is_changed: bool,
}

impl LiveSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(Mutex::new(SettingsState { settings, is_changed: false })))
    }

    /// Looks at the settings, or changes them.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut SettingsState) -> T) -> T {
        act(&mut self.0.lock())
    }
}

impl SettingsDesk for LiveSettings {
    fn view(&self) -> SettingsView {
        self.with(|SettingsState { settings, .. }| {
            let problem = |it: &centurion_config::Problem| {
                (it.path.display().to_string(), it.message.clone())
            };
            SettingsView {
                effective: settings.effective(),
                documents: settings.documents(),
                problems: settings.problems().map(problem).collect(),
                is_safe: settings.sources().additions == Additions::Named,
            }
        })
    }

    fn change_flag(&self, change: &Map<String, Value>) -> Result<(), DeskError> {
        self.with(|state| {
            state.settings.change_flag(change).map_err(DeskError::new)?;
            state.is_changed = true;
            Ok(())
        })
    }

    fn write(&self, level: Level, key: &str, text: &str) -> Result<(), DeskError> {
        self.with(|SettingsState { settings, .. }| {
            let sources = settings.sources();
            if !sources.levels.wants(level) {
                return Err(DeskError::new("--setting-sources leaves these settings out"));
            }
            let file = sources.file_for(level);
            let file = file.ok_or_else(|| DeskError::new("there is no file for these settings"))?;
            set_text(&file, key, text).map(drop).map_err(DeskError::new)
        })
    }
}
