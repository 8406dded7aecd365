//! The customisation that a managed policy leaves: the kinds of things that only plugins, managed files and the
//! program itself may bring.

use serde_json::Value;

use super::Settings;
use super::keys::SURFACES;
use super::layer::Layer;
use super::level::{Level, Origin};
use super::merge::Off;

const KEY: &str = "strictPluginOnlyCustomization";

/// The setting, for each kind, by which only plugins and managed files bring it; `None` if all files may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginOnly {
    pub skills: Option<Origin>,
    pub agents: Option<Origin>,
    pub hooks: Option<Origin>,
    pub mcp: Option<Origin>,
}

impl PluginOnly {
    /// The policy of managed settings. The lists of several files add up; a plain yes or no decides about all that no
    /// stronger file has named.
    pub(super) fn of(layers: &[Layer]) -> Self {
        let mut policy = Self::default();
        for layer in layers.iter().filter(|layer| layer.level == Level::Managed) {
            for entry in layer.entries.iter().filter(|entry| entry.key.path == KEY) {
                let origin = layer.origin(entry.line);
                let (words, is_last) = match &entry.value {
                    Value::Array(words) => {
                        (words.iter().filter_map(Value::as_str).collect(), false)
                    }
                    Value::Bool(true) => (SURFACES.to_vec(), true),
                    _ => (Vec::new(), true),
                };
                for word in words {
                    policy.close(word, &origin);
                }
                if is_last {
                    return policy;
                }
            }
        }
        policy
    }

    fn close(&mut self, surface: &str, origin: &Origin) {
        let slot = match surface {
            "skills" => &mut self.skills,
            "agents" => &mut self.agents,
            "hooks" => &mut self.hooks,
            "mcp" => &mut self.mcp,
            _ => return,
        };
        slot.get_or_insert_with(|| origin.clone());
    }

    /// The reason why a key of a file does not count under the policy.
    pub(super) fn refusal(&self, level: Level, key: &str) -> Option<Off> {
        let by = match key {
            "hooks" => self.hooks.as_ref(),
            "agents" => self.agents.as_ref(),
            _ => None,
        };
        by.filter(|_| level != Level::Managed).map(|origin| Off::PluginOnly(origin.clone()))
    }
}

impl Settings {
    /// The kinds of things that the administrator leaves to plugins and managed files alone.
    pub fn plugin_only(&self) -> PluginOnly {
        PluginOnly::of(&self.layers)
    }
}
