//! Values of `${NAME}` in the texts of a plugin.

use std::collections::BTreeMap;
use std::path::Path;

use centurion_protocol::Env;
use serde_json::Value;

use crate::mcp::McpVariables;

const ROOT: &str = "CLAUDE_PLUGIN_ROOT";
const DATA: &str = "CLAUDE_PLUGIN_DATA";
const PROJECT: &str = "CLAUDE_PROJECT_DIR";

/// The beginning of the names of values that a plugin's user configured.
pub(super) const OPTION: &str = "user_config.";

/// Characters that mean something to a shell even inside of double quotes.
const UNSAFE_IN_A_SHELL: [char; 6] = ['"', '\'', '$', '`', '\\', '\n'];

/// The variables of one plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginVariables(BTreeMap<String, String>);

impl PluginVariables {
    pub(super) fn new(
        root: &Path,
        data: &Path,
        project: &Path,
        options: &BTreeMap<String, String>,
    ) -> Self {
        let places = [(ROOT, root), (DATA, data), (PROJECT, project)];
        let places = places.map(|(name, path)| (name.to_owned(), path.display().to_string()));
        let options = options.iter().map(|(key, value)| (format!("{OPTION}{key}"), value.clone()));
        Self(places.into_iter().chain(options).collect())
    }

    /// The text with each `${NAME}` that is known replaced, once; anything else stays as it is written.
    pub fn fill(&self, text: &str) -> String {
        McpVariables { env: &Env::default(), known: &self.0 }.expand_known(text)
    }

    /// The same in all texts of a value.
    pub(crate) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(members) => {
                let filled = members.iter().map(|(name, it)| (name.clone(), self.fill_value(it)));
                Value::Object(filled.collect())
            }
            other => other.clone(),
        }
    }

    /// The variables that may stand in a shell's command: the plugin's own places, if no shell would take a part of
    /// them for something else. The project is in the environment of a hook, which quotes itself.
    pub(crate) fn for_shell(&self) -> Self {
        let own = self.0.iter().filter(|(name, value)| {
            [ROOT, DATA].contains(&name.as_str()) && !value.contains(UNSAFE_IN_A_SHELL)
        });
        Self(own.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// All names, each with what it stands for.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn known(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// The variables that a plugin's own programs find in their environment.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().filter(|(name, _)| [ROOT, DATA].contains(&name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variables(root: &str) -> PluginVariables {
        let options = BTreeMap::from([("level".to_owned(), "${CLAUDE_PLUGIN_ROOT}".to_owned())]);
        PluginVariables::new(Path::new(root), Path::new("/d"), Path::new("/repo"), &options)
    }

    #[test]
    fn known_names_are_replaced_once_and_others_stay() {
        let text = "${CLAUDE_PLUGIN_ROOT}/x ${CLAUDE_PLUGIN_DATA} ${CLAUDE_PROJECT_DIR} ${HOME} \
                    ${user_config.level} ${user_config.none} $CLAUDE_PLUGIN_ROOT ${";
        let filled = "/p/x /d /repo ${HOME} ${CLAUDE_PLUGIN_ROOT} ${user_config.none} \
                      $CLAUDE_PLUGIN_ROOT ${";
        assert_eq!(variables("/p").fill(text), filled);
        let value = json!({"a": ["${CLAUDE_PLUGIN_DATA}", 1], "${CLAUDE_PLUGIN_DATA}": null});
        let filled = json!({"a": ["/d", 1], "${CLAUDE_PLUGIN_DATA}": null});
        assert_eq!(variables("/p").fill_value(&value), filled);
    }

    #[test]
    fn a_shell_is_given_only_places_that_it_cannot_misread() {
        let text = "${CLAUDE_PLUGIN_ROOT} ${CLAUDE_PLUGIN_DATA} ${CLAUDE_PROJECT_DIR} ${user_config.level}";
        let rest = "${CLAUDE_PROJECT_DIR} ${user_config.level}";
        assert_eq!(variables("/my kit").for_shell().fill(text), format!("/my kit /d {rest}"));
        let odd = variables("/p$(x)").for_shell().fill(text);
        assert_eq!(odd, format!("${{CLAUDE_PLUGIN_ROOT}} /d {rest}"));
    }
}
