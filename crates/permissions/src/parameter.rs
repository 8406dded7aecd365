//! Rules over a parameter of a call: `Tool(parameter:value)`.

use serde_json::{Map, Value};

use crate::wildcard::Wildcard;

/// The fields that a tool's own rules are about.
const PRIMARY: [&str; 5] = ["command", "file_path", "notebook_path", "path", "url"];

/// One field at the top of a call's input, and the required value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    name: String,
    value: Wildcard,
}

impl Parameter {
    /// Reads `name:value`; spaces around the colon do not count.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, value) = text.split_once(':')?;
        Some(Self { name: name.trim().to_owned(), value: Wildcard::parse(value.trim()) })
    }

    /// Whether the tool has its own form of rule for this field.
    pub(crate) fn is_primary(&self) -> bool {
        PRIMARY.contains(&self.name.as_str())
    }

    /// Whether the input has the field with a matching value. A missing field matches nothing.
    pub(crate) fn fits(&self, input: &Map<String, Value>) -> bool {
        match input.get(&self.name) {
            Some(Value::String(text)) => self.value.fits(text),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => {
                self.value.fits(&value.to_string())
            }
            _ => false,
        }
    }
}

/// Whether the text in the parentheses means a parameter and not another part that this tool's rules name.
pub(crate) fn names_parameter(tool: Option<&str>, inner: &str) -> bool {
    let Some((name, value)) = inner.split_once(':') else { return false };
    let name = name.trim();
    match tool {
        // A path may contain a colon.
        Some("Cd") => false,
        Some("Bash" | "PowerShell") => match name {
            "run_in_background" => true,
            // `timeout:*` and `command:*` are commands with any arguments.
            "command" | "description" | "timeout" => value.trim() != "*",
            _ => false,
        },
        Some("Read") => ["file_path", "offset", "limit", "pages", "allow_large"].contains(&name),
        Some("Write") => ["file_path", "content"].contains(&name),
        Some("Edit") => ["file_path", "old_string", "new_string", "replace_all"].contains(&name),
        Some("NotebookEdit") => {
            ["notebook_path", "cell_id", "cell_type", "edit_mode", "new_source"].contains(&name)
        }
        Some("Glob") => ["path", "pattern"].contains(&name),
        Some("Grep") => {
            let letters = ["-A", "-B", "-C", "-i", "-n", "-o"].contains(&name);
            let words = ["context", "glob", "head_limit", "multiline", "offset", "output_mode"];
            letters || words.contains(&name) || ["path", "pattern", "type"].contains(&name)
        }
        // A plugin's name contains a colon.
        Some("Agent") => {
            let what = ["description", "isolation", "model", "name", "prompt"].contains(&name);
            what || ["run_in_background", "subagent_type"].contains(&name)
        }
        Some("Skill") => ["args", "command", "skill"].contains(&name),
        // The rules of other tools name nothing else.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_compared_as_it_was_given() {
        let input = serde_json::json!({
            "model": "opus", "run_in_background": true, "limit": 5, "list": [1], "none": null
        });
        let input = input.as_object().unwrap();
        for (text, expected) in [
            ("model:opus", true),
            ("model : opus", true),
            ("model:op*", true),
            ("model:*", true),
            ("model:sonnet", false),
            ("run_in_background:true", true),
            ("limit:5", true),
            ("isolation:*", false),
            ("list:*", false),
            ("none:*", false),
        ] {
            assert_eq!(Parameter::parse(text).unwrap().fits(input), expected, "{text}");
        }
    }

    #[test]
    fn parameters_are_told_from_commands_paths_and_names() {
        for (tool, inner, expected) in [
            ("Bash", "run_in_background:true", true),
            ("Bash", "run_in_background: *", true),
            ("Bash", "timeout : 5000", true),
            ("Bash", "timeout:*", false),
            ("Bash", "command:*", false),
            ("Bash", "git:*", false),
            ("Bash", "npm run test:unit", false),
            ("Bash", "ls", false),
            ("Read", "limit:5", true),
            ("Read", "C:notes", false),
            ("Edit", "replace_all:true", true),
            ("Write", "file_path:/etc/*", true),
            ("NotebookEdit", "edit_mode:delete", true),
            ("Glob", "pattern:**", true),
            ("Grep", "-A:3", true),
            ("Grep", "src/**", false),
            ("Agent", "model:opus", true),
            ("Agent", "security:scan", false),
            ("PowerShell", "run_in_background:true", true),
            ("PowerShell", "ls:*", false),
            ("Cd", "~/a:b", false),
            ("Skill", "args:x", true),
            ("Skill", "plugin:review", false),
            ("WebSearch", "query:rust", true),
            ("mcp__git__push", "remote:origin", true),
            ("mcp__git__push", "origin", false),
        ] {
            assert_eq!(names_parameter(Some(tool), inner), expected, "{tool}({inner})");
        }
    }
}
