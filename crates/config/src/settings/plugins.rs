//! Settings about plugins, file by file.
//!
//! The parts of a plugin are not known here.

use serde_json::Value;

use super::Settings;
use super::level::{Origin, Sourced};
use super::merge::{MergedValues, Off};

/// The keys about plugins of all levels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginSettings {
    /// The entries of each file under `enabledPlugins`, the strongest first. Entries of an untrusted repository are
    /// there, too.
    pub switches: Vec<PluginSwitch>,
    /// Marketplaces that settings make known, as they were written, each name once.
    pub marketplaces: Vec<(String, Sourced<Value>)>,
    /// The only sources that marketplaces may have, as they were written; `None` if no setting limits
    /// them.
    pub allowed: Option<Vec<Sourced<Value>>>,
    /// Sources that marketplaces may not have, as they were written.
    pub blocked: Vec<Sourced<Value>>,
    /// `pluginConfigs` of the levels that may say it, as one object.
    pub configs: Value,
}

/// One plugin that one file switches on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginSwitch {
    /// `plugin@marketplace`, as it was written.
    pub id: String,
    pub is_on: bool,
    pub origin: Origin,
    /// The reason why it does not count, if so.
    pub off: Option<Off>,
}

impl Settings {
    /// The settings about plugins.
    pub fn plugins(&self) -> PluginSettings {
        let merged = &self.merged;
        let allowed = lists(merged, ["strictKnownMarketplaces", "allowedMarketplaces"]);
        let blocked = lists(merged, ["blockedMarketplaces"]);
        PluginSettings {
            switches: switches(merged),
            marketplaces: marketplaces(merged),
            allowed: (!allowed.is_empty()).then(|| items(allowed)),
            blocked: items(blocked),
            configs: merged.value("pluginConfigs").unwrap_or_default(),
        }
    }
}

fn switches(merged: &MergedValues) -> Vec<PluginSwitch> {
    let judged = merged.values.iter().filter(|judged| judged.entry.key.path == "enabledPlugins");
    let switches = judged.filter_map(|judged| {
        Some(PluginSwitch {
            id: judged.entry.name.clone()?,
            is_on: judged.entry.value.as_bool()?,
            origin: judged.origin.clone(),
            off: judged.off.clone(),
        })
    });
    switches.collect()
}

fn marketplaces(merged: &MergedValues) -> Vec<(String, Sourced<Value>)> {
    let mut found: Vec<(String, Sourced<Value>)> = Vec::new();
    for key in ["extraKnownMarketplaces", "additionalMarketplaces"] {
        for judged in merged.all(key) {
            let Some(name) = &judged.entry.name else { continue };
            if !found.iter().any(|(known, _)| known == name) {
                let value = judged.entry.value.clone();
                found.push((name.clone(), Sourced { value, origin: judged.origin.clone() }));
            }
        }
    }
    found
}

/// The lists under any of these keys, each with its place.
fn lists<const N: usize>(merged: &MergedValues, keys: [&str; N]) -> Vec<Sourced<Vec<Value>>> {
    let mut lists = Vec::new();
    for key in keys {
        lists.extend(merged.all(key).map(|judged| Sourced {
            value: judged.entry.value.as_array().cloned().unwrap_or_default(),
            origin: judged.origin.clone(),
        }));
    }
    lists
}

/// The items of all lists, each with the place of its list.
fn items(lists: Vec<Sourced<Vec<Value>>>) -> Vec<Sourced<Value>> {
    let each = |list: Sourced<Vec<Value>>| {
        let origin = list.origin;
        list.value.into_iter().map(move |value| Sourced { value, origin: origin.clone() })
    };
    lists.into_iter().flat_map(each).collect()
}
