//! Keeping "always allow": the right rule in the right settings file.

use centurion_config::settings::{self, Level, RuleList, Settings, SettingsFile};
use centurion_engine::{Destination, Remember, Remembered, RuleStore};
use centurion_permissions::RuleKind;

/// The settings files that answers go to.
pub(crate) struct RuleFiles {
    local: Option<SettingsFile>,
    project: Option<SettingsFile>,
    user: Option<SettingsFile>,
}

impl RuleFiles {
    pub(crate) fn new(settings: &Settings) -> Self {
        let file = |level| settings.sources().file_for(level);
        Self { local: file(Level::Local), project: file(Level::Project), user: file(Level::User) }
    }

    fn file(&self, destination: Destination) -> Option<&SettingsFile> {
        match destination {
            Destination::Session => None,
            Destination::LocalSettings => self.local.as_ref(),
            Destination::ProjectSettings => self.project.as_ref(),
            Destination::UserSettings => self.user.as_ref(),
        }
    }
}

impl RuleStore for RuleFiles {
    fn keep(&self, remember: &Remember) -> Result<(), String> {
        let file = self.file(remember.destination).ok_or("there is no such settings file")?;
        let kept = match &remember.what {
            Remembered::Rules { kind, texts } => {
                let list = match kind {
                    RuleKind::Allow => RuleList::Allow,
                    RuleKind::Ask => RuleList::Ask,
                    RuleKind::Deny => RuleList::Deny,
                };
                texts.iter().try_for_each(|text| settings::add_rule(file, list, text).map(drop))
            }
            Remembered::Directories(directories) => directories.iter().try_for_each(|directory| {
                settings::add_directory(file, &directory.display().to_string()).map(drop)
            }),
            Remembered::Mode(mode) => settings::set_default_mode(file, mode.name()).map(drop),
        };
        kept.map_err(|error| error.to_string())
    }
}
