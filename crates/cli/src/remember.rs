//! Keeping "always allow": the right rule in the right settings file, accepted as it was answered.

use std::sync::Arc;

use centurion_config::settings::{self, Level, RuleList, Settings, SettingsFile, answered_power};
use centurion_config::trust::{PowerItem, Trust};
use centurion_engine::{Destination, KeepError, Remember, RuleChange, RuleStore, SavedChange};
use centurion_permissions::RuleKind;
use serde_json::Value;

use crate::trust::without_secrets;

/// The settings files that answers go to.
pub(crate) struct RuleFiles {
    local: Option<SettingsFile>,
    project: Option<SettingsFile>,
    user: Option<SettingsFile>,
    trust: Arc<Trust>,
}

impl RuleFiles {
    pub(crate) fn new(settings: &Settings, trust: Arc<Trust>) -> Self {
        let file = |level| settings.sources().file_for(level);
        let (local, project, user) = (file(Level::Local), file(Level::Project), file(Level::User));
        Self { local, project, user, trust }
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
    fn keep(&self, remember: &Remember) -> Result<(), KeepError> {
        let file = self.file(remember.destination).ok_or(KeepError::NoFile)?;
        if holds_credential(&remember.what) {
            return Err(KeepError::Credential);
        }
        let kept = match &remember.what {
            SavedChange::Rules { change, kind, texts } => {
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
            SavedChange::LostDirectories(directories) => {
                let texts = directories.iter().map(|directory| directory.display().to_string());
                settings::remove_directories(file, &texts.collect::<Vec<_>>()).map(drop)
            }
            SavedChange::Directories(directories) => directories.iter().try_for_each(|directory| {
                settings::add_directory(file, &directory.display().to_string()).map(drop)
            }),
            SavedChange::Mode(mode) => settings::set_default_mode(file, mode.name()).map(drop),
        };
        kept.map_err(|error| KeepError::Write(error.into()))?;
        if remember.destination == Destination::UserSettings {
            return Ok(());
        }
        let accepted = answered_items(file, &remember.what);
        let trusted = self.trust.accept(&accepted, &without_secrets);
        trusted.map_err(|error| KeepError::Write(error.into()))
    }
}

/// Whether a rule would bring a credential into a file. Without it, it would be another rule.
fn holds_credential(what: &SavedChange) -> bool {
    let SavedChange::Rules { change: RuleChange::Add | RuleChange::Replace, texts, .. } = what
    else {
        return false;
    };
    texts.iter().any(|text| without_secrets(text) != *text)
}

/// The items that an answer allows, as the file has them now. Nothing else in the file is accepted with it.
fn answered_items(file: &SettingsFile, what: &SavedChange) -> Vec<PowerItem> {
    let item = |key: &str, text: &str| {
        answered_power(file.path(), key, None, &Value::String(text.to_owned()))
    };
    match what {
        SavedChange::Rules { change: RuleChange::Remove, .. }
        | SavedChange::Rules { kind: RuleKind::Ask | RuleKind::Deny, .. }
        | SavedChange::LostDirectories(_) => Vec::new(),
        SavedChange::Rules { texts, .. } => {
            texts.iter().map(|text| item("permissions.allow", text)).collect()
        }
        SavedChange::Directories(directories) => {
            let texts = directories.iter().map(|directory| directory.display().to_string());
            texts.map(|text| item("permissions.additionalDirectories", &text)).collect()
        }
        SavedChange::Mode(mode) => vec![item("permissions.defaultMode", mode.name())],
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use centurion_config::trust::TrustSources;
    use centurion_testkit::secrets::secrets;

    use super::*;

    #[test]
    fn each_change_reaches_the_file_it_is_for() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("settings.json");
        fs::write(&path, r#"{"permissions": {"allow": ["A", "B"], "deny": ["D"]}}"#).unwrap();
        let user = Some(SettingsFile::of_user(path.clone()));
        let trust = Arc::new(Trust::open(TrustSources::default()).unwrap());
        let files = RuleFiles { local: None, project: None, user, trust };
        let keep = |what, destination| files.keep(&Remember { what, destination });
        let rules = |change, kind, text: &str| SavedChange::Rules {
            change,
            kind,
            texts: vec![text.to_owned()],
        };
        let user = Destination::UserSettings;
        keep(rules(RuleChange::Remove, RuleKind::Allow, "A"), user).unwrap();
        keep(rules(RuleChange::Add, RuleKind::Allow, "C"), user).unwrap();
        keep(rules(RuleChange::Replace, RuleKind::Deny, "E"), user).unwrap();
        keep(SavedChange::Directories(vec![PathBuf::from("/d"), PathBuf::from("/e")]), user)
            .unwrap();
        keep(SavedChange::LostDirectories(vec![PathBuf::from("/d")]), user).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let permissions = serde_json::json!({
            "allow": ["B", "C"], "deny": ["E"], "additionalDirectories": ["/e"],
        });
        assert_eq!(value, serde_json::json!({ "permissions": permissions }));
        for secret in secrets() {
            let rule = format!("Bash(curl {})", secret.text);
            for change in [RuleChange::Add, RuleChange::Replace] {
                let kept = keep(rules(change, RuleKind::Allow, &rule), user);
                assert!(matches!(kept, Err(KeepError::Credential)), "{}", secret.kind);
            }
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let nowhere =
            keep(rules(RuleChange::Remove, RuleKind::Ask, "A"), Destination::LocalSettings);
        assert!(matches!(nowhere, Err(KeepError::NoFile)));
    }
}
