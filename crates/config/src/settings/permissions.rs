//! Settings about what may run. The rules stay as they were written: the crate that judges calls reads them.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::level::{Origin, Sourced};
use super::merge::MergedValues;
use super::sources::SettingsSources;

/// The `permissions` of all levels together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permissions {
    /// In the order managed, flag, local, project, user.
    pub allow: Vec<RuleText>,
    pub ask: Vec<RuleText>,
    pub deny: Vec<RuleText>,
    pub default_mode: Option<Sourced<DefaultMode>>,
    /// Absolute paths; whether they exist is not looked at.
    pub additional_directories: Vec<Sourced<PathBuf>>,
    /// The setting by which no permission may be bypassed.
    pub bypass_disabled: Option<Origin>,
    /// The setting by which there is no auto mode.
    pub auto_disabled: Option<Origin>,
    /// The setting by which only managed allow rules count.
    pub managed_rules_only: Option<Origin>,
}

/// A rule and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleText {
    pub form: RuleForm,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RuleForm {
    /// `Tool` or `Tool(specifier)`.
    Text(String),
    /// An object with a `tool` and perhaps `args`, or for rules that take away whatever else was written.
    Object(Value),
}

/// The mode a session starts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultMode {
    Default,
    AcceptEdits,
    Plan,
    Auto,
    DontAsk,
    BypassPermissions,
}

impl DefaultMode {
    const ALL: [Self; 6] = [
        Self::Default,
        Self::AcceptEdits,
        Self::Plan,
        Self::Auto,
        Self::DontAsk,
        Self::BypassPermissions,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::Auto => "auto",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }

    fn read(name: &str) -> Option<Self> {
        let name = if name == "manual" { "default" } else { name };
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for DefaultMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Permissions {
    pub(super) fn new(merged: &MergedValues, sources: &SettingsSources) -> Self {
        let rules = |path: &str| {
            let rule = |value: &Value| match value {
                Value::String(text) => RuleForm::Text(text.clone()),
                other => RuleForm::Object(other.clone()),
            };
            let judged = merged.all(path);
            judged
                .map(|it| RuleText { form: rule(&it.entry.value), origin: it.origin.clone() })
                .collect()
        };
        let origin = |path: &str| merged.first(path).map(|judged| judged.origin.clone());
        let mode = merged.text("permissions.defaultMode").and_then(|mode| {
            Some(Sourced { value: DefaultMode::read(&mode.value)?, origin: mode.origin })
        });
        let directories = merged.texts("permissions.additionalDirectories");
        let managed_only = "allowManagedPermissionRulesOnly";
        Self {
            allow: rules("permissions.allow"),
            ask: rules("permissions.ask"),
            deny: rules("permissions.deny"),
            default_mode: mode,
            additional_directories: directories
                .into_iter()
                .map(|it| Sourced { value: absolute(&it.value, sources), origin: it.origin })
                .collect(),
            bypass_disabled: origin("permissions.disableBypassPermissionsMode"),
            auto_disabled: origin("permissions.disableAutoMode")
                .or_else(|| origin("disableAutoMode")),
            managed_rules_only: origin(managed_only)
                .filter(|_| merged.bool(managed_only) == Some(true)),
        }
    }
}

/// A directory as a person writes it: from the home directory, or from where the program was started.
fn absolute(text: &str, sources: &SettingsSources) -> PathBuf {
    match (text.strip_prefix('~'), &sources.home) {
        (Some(""), Some(home)) => home.clone(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => sources.start_dir.join(Path::new(text)),
    }
}
