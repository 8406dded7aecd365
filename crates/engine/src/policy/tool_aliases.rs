//! Names of tools that a host redirects: a model's call of one tool runs another one.
//!
//! An alias is resolved before anything else looks at a call, so that hooks, rules and questions are about the tool that
//! runs. It does not change which tools a model is offered, nor the call in the conversation.

use std::collections::HashMap;

use centurion_permissions::canonical_tool_name;
use centurion_protocol::ToolUse;
use parking_lot::RwLock;

/// The aliases of a session, which hold for all of its agents.
#[derive(Debug, Default)]
pub(crate) struct ToolAliases(RwLock<HashMap<String, String>>);

impl ToolAliases {
    /// Puts these aliases in the place of all others.
    pub(crate) fn replace(&self, aliases: HashMap<String, String>) {
        *self.0.write() = aliases;
    }

    /// The target of an alias, taken as it is written: a target that is an alias itself leads no further. An old name of
    /// a tool and its present one are the same alias.
    pub(crate) fn target(&self, name: &str) -> Option<String> {
        let aliases = self.0.read();
        if aliases.is_empty() {
            return None;
        }
        let is_same = |alias: &str| canonical_tool_name(alias) == canonical_tool_name(name);
        let exact = aliases.get(name);
        exact.or_else(|| aliases.iter().find(|(alias, _)| is_same(alias)).map(|it| it.1)).cloned()
    }

    /// Has each call of a model mean the tool that its name is redirected to.
    pub(crate) fn resolve(&self, calls: &mut [ToolUse]) {
        for call in calls {
            if let Some(target) = self.target(&call.name) {
                call.name = target;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_leads_one_step_and_old_names_are_the_same_alias() {
        let aliases = ToolAliases::default();
        assert_eq!(aliases.target("A"), None);
        let pairs = [("A", "B"), ("B", "A"), ("Task", "mcp__x__y")];
        aliases.replace(pairs.map(|(from, to)| (from.to_owned(), to.to_owned())).into());
        for (name, target) in [
            ("A", Some("B")),
            ("B", Some("A")),
            ("Task", Some("mcp__x__y")),
            ("Agent", Some("mcp__x__y")),
            ("a", None),
            ("mcp__x__y", None),
        ] {
            assert_eq!(aliases.target(name).as_deref(), target, "{name}");
        }
    }
}
