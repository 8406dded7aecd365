//! A change to a text in the form that hosts show: hunks of lines with context.

use centurion_diff::LineDiff;
use serde_json::{Value, json};

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The bytes of text that a patch may hold. A transcript should grow with the text that agents write, not with the
/// files that they touch.
const MAX_BYTES: usize = 64 * 1024;

/// The hunks from `old` to `new`, in the form of a host's `structuredPatch`. Hunks that would make it too large are
/// left out.
pub(crate) fn structured(old: &str, new: &str) -> Value {
    let diff = LineDiff::new(old, new);
    let mut bytes = 0;
    let mut hunks = Vec::new();
    for hunk in diff.hunks(CONTEXT) {
        let (old_range, new_range) = hunk.ranges();
        let mut lines = Vec::new();
        for line in hunk.lines() {
            bytes += line.text.len() + 1;
            if bytes > MAX_BYTES {
                return Value::Array(hunks);
            }
            lines.push(format!("{}{}", line.sign, line.content()));
            lines.extend(line.remark().map(str::to_owned));
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
