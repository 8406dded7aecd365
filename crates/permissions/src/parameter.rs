//! Rules over a parameter of a call: `Tool(parameter:value)`.
//!
//! They match nothing. They are recognised all the same, so that whoever wrote one hears that it has no
//! effect instead of relying on it.

/// Whether what stands in the parentheses means a parameter and not what else this tool's rules name.
pub(crate) fn names_parameter(tool: Option<&str>, inner: &str) -> bool {
    let Some((name, value)) = inner.split_once(':') else { return false };
    let name = name.trim();
    match tool {
        Some("Bash") => match name {
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
        // A name with a colon is one of a plugin.
        Some("Agent") => {
            let what = ["description", "isolation", "model", "name", "prompt"].contains(&name);
            what || ["run_in_background", "subagent_type"].contains(&name)
        }
        Some("Skill") => ["args", "command", "skill"].contains(&name),
        // Nothing else is named by the rules of other tools.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
