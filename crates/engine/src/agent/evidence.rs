//! The work of an agent as the runtime saw it: tools, files, commands and their ends.
//!
//! It stands beside what the agent says about itself. Bounded, so that an agent at work for hours keeps a
//! small record.

use centurion_protocol::ToolUse;
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most files and the most commands that are kept by name.
const MOST: usize = 50;
/// The most bytes of a command that are kept.
const COMMAND_BYTES: usize = 200;

/// The effects of an agent's calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Evidence {
    /// The number of uses of each tool, in the order of first use.
    pub(crate) tools: IndexMap<String, u64>,
    pub(crate) files_changed: IndexSet<String>,
    pub(crate) commands: Vec<Command>,
    /// Files and commands that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) not_listed: u64,
    pub(crate) stats: ToolStats,
}

/// A command and how it ended; `None` where it was ended or runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Command {
    pub(crate) command: String,
    pub(crate) exit_code: Option<i64>,
}

/// Counts by kind, as hosts know them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ToolStats {
    read_count: u64,
    search_count: u64,
    bash_count: u64,
    edit_file_count: u64,
    lines_added: u64,
    lines_removed: u64,
    other_tool_count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Evidence {
    /// Records the effects of a call. Returns the number of lines that it added and removed.
    pub(crate) fn add(&mut self, call: &ToolUse, data: &Value, is_error: bool) -> (u64, u64) {
        let before = (self.stats.lines_added, self.stats.lines_removed);
        *self.tools.entry(call.name.clone()).or_default() += 1;
        let stats = &mut self.stats;
        match call.name.as_str() {
            "Read" => stats.read_count += 1,
            "Glob" | "Grep" => stats.search_count += 1,
            "Bash" => {
                stats.bash_count += 1;
                self.add_command(call, data);
            }
            "Edit" | "Write" | "NotebookEdit" => {
                stats.edit_file_count += 1;
                if !is_error {
                    self.add_change(data);
                }
            }
            _ => stats.other_tool_count += 1,
        }
        (self.stats.lines_added - before.0, self.stats.lines_removed - before.1)
    }

    /// The number of calls.
    pub(crate) fn calls(&self) -> u64 {
        self.tools.values().sum()
    }

    fn add_command(&mut self, call: &ToolUse, data: &Value) {
        #[derive(Deserialize)]
        struct Input {
            command: String,
        }
        let Ok(Input { mut command }) = serde_json::from_str(call.input.get()) else { return };
        if self.commands.len() >= MOST {
            self.not_listed += 1;
            return;
        }
        if command.len() > COMMAND_BYTES {
            command.truncate(command.floor_char_boundary(COMMAND_BYTES));
            command.push('…');
        }
        let exit_code = data.get("exitCode").and_then(Value::as_i64);
        self.commands.push(Command { command, exit_code });
    }

    fn add_change(&mut self, data: &Value) {
        let path = data.get("filePath").or_else(|| data.get("notebook_path"));
        if let Some(path) = path.and_then(Value::as_str) {
            if self.files_changed.len() < MOST {
                self.files_changed.insert(path.to_owned());
            } else if !self.files_changed.contains(path) {
                self.not_listed += 1;
            }
        }
        let hunks = data.get("structuredPatch").and_then(Value::as_array);
        let lines = hunks.into_iter().flatten().filter_map(|hunk| hunk.get("lines")?.as_array());
        for line in lines.flatten().filter_map(Value::as_str) {
            self.stats.lines_added += u64::from(line.starts_with('+'));
            self.stats.lines_removed += u64::from(line.starts_with('-'));
        }
        if data.get("type").and_then(Value::as_str) == Some("create") {
            let content = data.get("content").and_then(Value::as_str).unwrap_or_default();
            self.stats.lines_added += content.lines().count() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use centurion_protocol::ToolUseId;
    use serde_json::json;

    fn call(name: &str, input: &Value) -> ToolUse {
        let input = serde_json::value::to_raw_value(input).unwrap();
        ToolUse { id: ToolUseId::new("t"), name: name.to_owned(), input }
    }

    #[test]
    fn files_and_commands_are_listed_with_how_they_ended() {
        let mut evidence = Evidence::default();
        evidence.add(&call("Bash", &json!({"command": "false"})), &json!({"exitCode": 1}), true);
        let write = json!({"type": "create", "filePath": "/p/a", "content": "1\n2\n"});
        evidence.add(&call("Write", &json!({})), &write, false);
        let patch = json!({"filePath": "/p/a", "structuredPatch": [{"lines": ["-1", "+x", " 2"]}]});
        evidence.add(&call("Edit", &json!({})), &patch, false);
        evidence.add(&call("Edit", &json!({})), &json!("Error: no"), true);
        assert_eq!(evidence.commands[0].exit_code, Some(1));
        assert_eq!(evidence.files_changed.len(), 1);
        assert_eq!(evidence.calls(), 4);
        let stats = serde_json::to_value(&evidence.stats).unwrap();
        assert_eq!((&stats["linesAdded"], &stats["linesRemoved"]), (&json!(3), &json!(1)));
        assert_eq!(stats["editFileCount"], 3);
    }

    #[test]
    fn it_stays_small() {
        let mut evidence = Evidence::default();
        for n in 0..1_000 {
            let long = "é".repeat(1_000);
            evidence.add(&call("Bash", &json!({"command": long})), &Value::Null, false);
            evidence.add(&call("Write", &json!({})), &json!({"filePath": format!("/{n}")}), false);
        }
        assert!(serde_json::to_vec(&evidence).unwrap().len() < 20_000);
        assert_eq!(evidence.not_listed, 1_900);
    }
}
