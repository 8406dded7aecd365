//! The hooks that settings declare, file by file and with the line of every part, and what the settings
//! say about hooks as a whole.
//!
//! The meaning of a hook is not known here: the crate that runs hooks reads them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Settings;
use super::document::{Json, Node};
use super::level::{Origin, Sourced};
use super::merge::Off;
use crate::files::FileError;

/// A group of hooks in a file: one event, and one entry of its list.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredHooks {
    pub value: Value,
    pub lines: Lines,
    /// Its line is that of the group.
    pub origin: Origin,
    /// The reason why it does not count, if so.
    pub off: Option<Off>,
}

/// The lines that the parts of a JSON value were written on, by their JSON pointers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines(BTreeMap<String, usize>);

/// The settings about all hooks together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookLimits {
    /// The setting that switched hooks off. Only managed settings can switch off managed hooks.
    pub disabled: Option<Origin>,
    /// The setting by which only managed hooks count.
    pub managed_only: Option<Origin>,
    /// Patterns of the URLs that hooks may be posted to; `None` if no setting limits them.
    pub http_urls: Option<Vec<Sourced<String>>>,
    /// The variables that headers may name; `None` if no setting limits them.
    pub http_variables: Option<Vec<Sourced<String>>>,
}

/// The deepest nesting of hooks: events, groups, `hooks`, handlers, and one more for what a file puts around it.
const DEEPEST: usize = 6;

impl Lines {
    /// Reads a JSON text, such as a plugin's file of hooks.
    pub fn read(text: &str) -> Result<(Value, Self), FileError> {
        let node = super::document::parse(text)?;
        Ok((node.to_value(), Self::of(&node)))
    }

    pub(crate) fn of(node: &Node) -> Self {
        let mut lines = Self::default();
        lines.note(node, String::new(), 0);
        lines
    }

    fn note(&mut self, node: &Node, pointer: String, depth: usize) {
        if depth < DEEPEST {
            match &node.json {
                Json::List(items) => {
                    for (index, item) in items.iter().enumerate() {
                        self.note(item, format!("{pointer}/{index}"), depth + 1);
                    }
                }
                Json::Object(members) => {
                    for member in members {
                        let name = member.name.replace('~', "~0").replace('/', "~1");
                        self.note(&member.node, format!("{pointer}/{name}"), depth + 1);
                    }
                }
                _ => {}
            }
        }
        self.0.insert(pointer, node.line);
    }

    /// The line of the part that a JSON pointer leads to, or of the closest one around it.
    pub fn line(&self, pointer: &str) -> Option<usize> {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.0.get(pointer) {
                return Some(*line);
            }
            pointer = pointer.rsplit_once('/')?.0;
        }
    }
}

impl Settings {
    /// The hooks of each file, the strongest first.
    pub fn hooks(&self) -> Vec<DeclaredHooks> {
        let declared = self.merged.values.iter().filter(|judged| judged.entry.key.path == "hooks");
        declared
            .map(|judged| DeclaredHooks {
                value: judged.entry.value.clone(),
                lines: judged.entry.lines.clone(),
                origin: judged.origin.clone(),
                off: judged.off.clone(),
            })
            .collect()
    }

    pub fn hook_limits(&self) -> HookLimits {
        let switched_on = |key: &str| {
            let judged = self.merged.first(key)?;
            (judged.entry.value == Value::Bool(true)).then(|| judged.origin.clone())
        };
        let limit = |key: &str| self.merged.first(key).map(|_| self.merged.texts(key));
        HookLimits {
            disabled: switched_on("disableAllHooks"),
            managed_only: switched_on("allowManagedHooksOnly"),
            http_urls: limit("allowedHttpHookUrls"),
            http_variables: limit("httpHookAllowedEnvVars"),
        }
    }
}
