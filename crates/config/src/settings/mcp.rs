//! Settings about MCP servers: those that run unasked, and those that may run at all.

use serde_json::Value;

use super::level::{Level, Origin, Sourced};
use super::merge::MergedValues;

/// The keys about MCP servers of all levels together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpSettings {
    /// The setting by which all servers of a project's `.mcp.json` run without being asked about.
    pub enable_all_of_project: Option<Origin>,
    /// Servers of a project's `.mcp.json` that do, by name.
    pub enabled_of_project: Vec<Sourced<String>>,
    /// Servers of a project's `.mcp.json` that do not run, by name.
    pub disabled_of_project: Vec<Sourced<String>>,
    /// The only servers that may run, as they were written; `None` if no setting limits them.
    pub allowed: Option<Vec<Sourced<Value>>>,
    /// Servers that may not run, as they were written. They count whatever is allowed.
    pub denied: Vec<Sourced<Value>>,
    /// The setting by which only managed settings name the servers that may run.
    pub managed_only: Option<Origin>,
}

impl McpSettings {
    pub(super) fn new(merged: &MergedValues) -> Self {
        let on = |path: &str| {
            let judged = merged.first(path)?;
            (judged.entry.value == Value::Bool(true)).then(|| judged.origin.clone())
        };
        // Each file's list is one value.
        let lists = |path: &'static str| -> Vec<Sourced<Vec<Value>>> {
            let judged = merged.all(path);
            judged
                .map(|it| Sourced {
                    value: it.entry.value.as_array().cloned().unwrap_or_default(),
                    origin: it.origin.clone(),
                })
                .collect()
        };
        let managed_only = on("allowManagedMcpServersOnly");
        let mut allowed = lists("allowedMcpServers");
        if managed_only.is_some() {
            allowed.retain(|list| list.origin.level == Level::Managed);
        }
        let is_limited = managed_only.is_some() || !allowed.is_empty();
        Self {
            enable_all_of_project: on("enableAllProjectMcpServers"),
            enabled_of_project: merged.texts("enabledMcpjsonServers"),
            disabled_of_project: merged.texts("disabledMcpjsonServers"),
            allowed: is_limited.then(|| items(allowed)),
            denied: items(lists("deniedMcpServers")),
            managed_only,
        }
    }
}

/// The items of all lists, each with the place of its list.
fn items(lists: Vec<Sourced<Vec<Value>>>) -> Vec<Sourced<Value>> {
    let each = |list: Sourced<Vec<Value>>| {
        let origin = list.origin;
        list.value.into_iter().map(move |value| Sourced { value, origin: origin.clone() })
    };
    lists.into_iter().flat_map(each).collect()
}
