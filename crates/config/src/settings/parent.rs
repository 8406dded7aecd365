//! Settings that the program which starts this one lays down (`--managed-settings`). They can only tighten: whatever
//! would loosen or merely change something is left out and named.

use serde_json::{Map, Value};

use super::sources::FlagError;
use crate::files::{FileError, LARGEST_SETTINGS};

/// The name that stands for a file.
pub(super) const PARENT: &str = "--managed-settings";

/// The values of a key that tighten.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TighteningValues {
    Always,
    If(bool),
}

use TighteningValues::{Always, If};

/// The keys that can tighten.
const KEYS: [(&str, TighteningValues); 24] = [
    ("permissions.deny", Always),
    ("permissions.ask", Always),
    ("permissions.disableBypassPermissionsMode", Always),
    ("permissions.disableAutoMode", Always),
    ("disableAutoMode", Always),
    ("allowManagedPermissionRulesOnly", If(true)),
    ("allowManagedHooksOnly", If(true)),
    ("allowManagedMcpServersOnly", If(true)),
    ("disableSideloadFlags", If(true)),
    ("strictPluginOnlyCustomization", Always),
    ("strictKnownMarketplaces", Always),
    ("blockedMarketplaces", Always),
    ("allowedMcpServers", Always),
    ("deniedMcpServers", Always),
    ("availableModels", Always),
    ("sandbox.enabled", If(true)),
    ("sandbox.failIfUnavailable", If(true)),
    ("sandbox.autoAllowBashIfSandboxed", If(false)),
    ("sandbox.allowUnsandboxedCommands", If(false)),
    ("sandbox.filesystem.denyWrite", Always),
    ("sandbox.filesystem.denyRead", Always),
    ("sandbox.network.deniedDomains", Always),
    ("sandbox.network.strictAllowlist", If(true)),
    ("sandbox.network.allowManagedDomainsOnly", If(true)),
];

/// Settings that a parent lays down, as far as they tighten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentSettings {
    pub(super) text: String,
    /// The keys that were left out.
    pub left_out: Vec<String>,
}

impl ParentSettings {
    /// Takes the argument of `--managed-settings`. What cannot be read is refused: limits were asked for.
    pub fn parse(argument: &str) -> Result<Self, FlagError> {
        let unusable = |error| FlagError::Unreadable { flag: PARENT, error };
        if argument.len() as u64 > LARGEST_SETTINGS {
            return Err(unusable(FileError::TooLarge { limit: LARGEST_SETTINGS }));
        }
        let said: Map<String, Value> = serde_json::from_str(argument).map_err(|error| {
            unusable(FileError::Broken {
                line: error.line(),
                column: error.column(),
                reason: error.to_string(),
            })
        })?;
        let (mut kept, mut left_out) = (Map::new(), Vec::new());
        divide("", said, &mut kept, &mut left_out);
        Ok(Self { text: Value::from(kept).to_string(), left_out })
    }
}

/// Keeps what tightens below a key, and names the rest.
fn divide(
    above: &str,
    said: Map<String, Value>,
    kept: &mut Map<String, Value>,
    left_out: &mut Vec<String>,
) {
    for (name, value) in said {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        let group = format!("{path}.");
        match value {
            Value::Object(fields) if KEYS.iter().any(|(key, _)| key.starts_with(&group)) => {
                let mut below = Map::new();
                divide(&path, fields, &mut below, left_out);
                if !below.is_empty() {
                    kept.insert(name, below.into());
                }
            }
            // The administrator's own hooks continue.
            value if path == "disableAllHooks" => {
                if value != false && value != "false" {
                    kept.insert("allowManagedHooksOnly".to_owned(), true.into());
                }
            }
            value => match KEYS.iter().find(|(key, _)| *key == path) {
                Some((_, Always)) => drop(kept.insert(name, value)),
                Some((_, If(tight))) if value == *tight => drop(kept.insert(name, value)),
                _ => left_out.push(path),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_tightens_is_kept() {
        let said = json!({
            "permissions": {"deny": ["Bash"], "allow": ["Read"], "defaultMode": "bypassPermissions"},
            "sandbox": {"enabled": true, "allowUnsandboxedCommands": true, "network": {"deniedDomains": ["x"], "allowedDomains": ["y"]}},
            "disableAllHooks": "true", "model": "opus", "env": {"A": "b"},
            "allowManagedMcpServersOnly": false,
        });
        let parent = ParentSettings::parse(&said.to_string()).unwrap();
        let kept: Value = serde_json::from_str(&parent.text).unwrap();
        assert_eq!(
            kept,
            json!({
                "permissions": {"deny": ["Bash"]},
                "sandbox": {"enabled": true, "network": {"deniedDomains": ["x"]}},
                "allowManagedHooksOnly": true,
            })
        );
        assert_eq!(
            parent.left_out,
            [
                "permissions.allow",
                "permissions.defaultMode",
                "sandbox.allowUnsandboxedCommands",
                "sandbox.network.allowedDomains",
                "model",
                "env",
                "allowManagedMcpServersOnly",
            ]
        );
        for wrong in ["", "[]", "{", "7"] {
            assert!(ParentSettings::parse(wrong).is_err(), "{wrong}");
        }
    }
}
