//! Keeping "always allow": the right rule in the right settings file.

use centurion_config::settings::{self, Level, RuleList, Settings, SettingsFile};
use centurion_engine::{Destination, Remember, Remembered, RuleChange, RuleStore};
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
            Remembered::Rules { change, kind, texts } => {
                let list = match kind {
                    RuleKind::Allow => RuleList::Allow,
                    RuleKind::Ask => RuleList::Ask,
                    RuleKind::Deny => RuleList::Deny,
                };
                match change {
                    RuleChange::Add => texts
                        .iter()
                        .try_for_each(|text| settings::add_rule(file, list, text).map(drop)),
                    RuleChange::Replace => settings::replace_rules(file, list, texts).map(drop),
                    RuleChange::Remove => settings::remove_rules(file, list, texts).map(drop),
                }
            }
            Remembered::LostDirectories(directories) => {
                let texts = directories.iter().map(|directory| directory.display().to_string());
                settings::remove_directories(file, &texts.collect::<Vec<_>>()).map(drop)
            }
            Remembered::Directories(directories) => directories.iter().try_for_each(|directory| {
                settings::add_directory(file, &directory.display().to_string()).map(drop)
            }),
            Remembered::Mode(mode) => settings::set_default_mode(file, mode.name()).map(drop),
        };
        kept.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn each_change_reaches_the_file_it_is_for() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("settings.json");
        fs::write(&path, r#"{"permissions": {"allow": ["A", "B"], "deny": ["D"]}}"#).unwrap();
        let user = Some(SettingsFile::of_user(path.clone()));
        let files = RuleFiles { local: None, project: None, user };
        let keep = |what, destination| files.keep(&Remember { what, destination });
        let rules = |change, kind, text: &str| Remembered::Rules {
            change,
            kind,
            texts: vec![text.to_owned()],
        };
        let user = Destination::UserSettings;
        keep(rules(RuleChange::Remove, RuleKind::Allow, "A"), user).unwrap();
        keep(rules(RuleChange::Add, RuleKind::Allow, "C"), user).unwrap();
        keep(rules(RuleChange::Replace, RuleKind::Deny, "E"), user).unwrap();
        keep(Remembered::Directories(vec![PathBuf::from("/d"), PathBuf::from("/e")]), user)
            .unwrap();
        keep(Remembered::LostDirectories(vec![PathBuf::from("/d")]), user).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let permissions = serde_json::json!({
            "allow": ["B", "C"], "deny": ["E"], "additionalDirectories": ["/e"],
        });
        assert_eq!(value, serde_json::json!({ "permissions": permissions }));
        let nowhere =
            keep(rules(RuleChange::Remove, RuleKind::Ask, "A"), Destination::LocalSettings);
        assert_eq!(nowhere, Err("there is no such settings file".to_owned()));
    }
}
