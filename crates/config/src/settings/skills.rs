//! Settings about skills.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Settings;
use super::merge::MergedValues;

/// The share of the window that the list of skills may take where the settings do not say.
const USUAL_FRACTION: f64 = 0.01;

/// The most characters of the text about one skill in that list if the settings do not say.
const USUAL_DESCRIPTION: usize = 1536;

/// The settings about skills.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillSettings {
    /// The share of the window that the list of skills may take.
    pub listing_fraction: f64,
    /// The most characters of the text about one skill in that list.
    pub most_description: usize,
    /// The settings about single skills, by name.
    pub overrides: BTreeMap<String, SkillOverride>,
    /// Whether the program's own skills are there.
    pub bundled: bool,
    /// Whether commands in the texts of skills may run.
    pub runs_commands: bool,
}

impl Default for SkillSettings {
    fn default() -> Self {
        Self {
            listing_fraction: USUAL_FRACTION,
            most_description: USUAL_DESCRIPTION,
            overrides: BTreeMap::new(),
            bundled: true,
            runs_commands: true,
        }
    }
}

/// The setting about one skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillOverride {
    On,
    /// A model is told its name alone.
    NameOnly,
    /// Only people invoke it.
    UserInvocableOnly,
    Off,
}

impl SkillOverride {
    fn read(text: &str) -> Option<Self> {
        match text {
            "on" => Some(Self::On),
            "name-only" => Some(Self::NameOnly),
            "user-invocable-only" => Some(Self::UserInvocableOnly),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// Whether all values of `skillOverrides` can be used.
pub(super) fn are_overrides(value: &Value) -> bool {
    let is_known =
        |value: &Value| value.as_str().is_some_and(|it| SkillOverride::read(it).is_some());
    value.as_object().is_some_and(|values| values.values().all(is_known))
}

impl SkillSettings {
    fn new(merged: &MergedValues) -> Self {
        let usual = Self::default();
        let number = |path| merged.first(path).map(|it| &it.entry.value);
        let overrides = merged.value("skillOverrides");
        let overrides = overrides.as_ref().and_then(Value::as_object).into_iter().flatten();
        let read = |(name, value): (&String, &Value)| {
            Some((name.clone(), SkillOverride::read(value.as_str()?)?))
        };
        let description = number("skillListingMaxDescChars").and_then(Value::as_u64);
        Self {
            listing_fraction: number("skillListingBudgetFraction")
                .and_then(Value::as_f64)
                .unwrap_or(usual.listing_fraction),
            most_description: description
                .and_then(|it| usize::try_from(it).ok())
                .unwrap_or(usual.most_description),
            overrides: overrides.filter_map(read).collect(),
            bundled: !merged.bool("disableBundledSkills").unwrap_or(false),
            runs_commands: !merged.bool("disableSkillShellExecution").unwrap_or(false),
        }
    }
}

impl Settings {
    /// The settings about skills.
    pub fn skills(&self) -> SkillSettings {
        SkillSettings::new(&self.merged)
    }
}
