//! A change to a text as hosts show it: hunks of lines with context.

use std::time::Duration;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// How much text a patch may hold. A transcript grows with what agents write, not with the files that
/// they touch.
const MAX_BYTES: usize = 64 * 1024;

/// The hunks that lead from `old` to `new`, in the form of a host's `structuredPatch`. Hunks that would
/// make it too large are left out.
pub(crate) fn structured(old: &str, new: &str) -> Value {
    let diff = TextDiff::configure().timeout(Duration::from_millis(200)).diff_lines(old, new);
    let mut bytes = 0;
    let mut hunks = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old_range = first.old_range().start..last.old_range().end;
        let new_range = first.new_range().start..last.new_range().end;
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let line = change.value();
            bytes += line.len() + 1;
            if bytes > MAX_BYTES {
                return Value::Array(hunks);
            }
            lines.push(format!("{sign}{}", line.trim_end_matches(['\r', '\n'])));
            if change.missing_newline() {
                lines.push("\\ No newline at end of file".to_owned());
            }
        }
        hunks.push(json!({
            "oldStart": start_line(&old_range),
            "oldLines": old_range.len(),
            "newStart": start_line(&new_range),
            "newLines": new_range.len(),
            "lines": lines,
        }));
    }
    Value::Array(hunks)
}

/// An empty range stands after the line before it, as in any unified diff.
fn start_line(range: &std::ops::Range<usize>) -> usize {
    if range.is_empty() { range.start } else { range.start + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_hunk_with_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let patch = structured(old, &old.replace("5\n", "five\n"));
        assert_eq!(
            patch,
            json!([{
                "oldStart": 2, "oldLines": 7, "newStart": 2, "newLines": 7,
                "lines": [" 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"],
            }])
        );
    }

    #[test]
    fn a_new_file_starts_from_nothing() {
        assert_eq!(
            structured("", "a"),
            json!([{
                "oldStart": 0, "oldLines": 0, "newStart": 1, "newLines": 1,
                "lines": ["+a", "\\ No newline at end of file"],
            }])
        );
        assert_eq!(structured("a\n", "a\n"), json!([]));
    }

    #[test]
    fn a_patch_does_not_grow_with_the_file() {
        let old = "old line\n".repeat(100_000);
        let patch = structured(&old, "new\n").to_string();
        assert!(patch.len() < 2 * MAX_BYTES, "{}", patch.len());
    }
}
