//! Lists of definitions: in words, grouped under titles, and in JSON.

use centurion_config::Problem;
use serde_json::{Value, json};

use crate::output::{Output, printable};

/// The most characters of a description that a list shows.
const LONGEST: usize = 160;

/// Whether a list is for people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
}

impl Form {
    pub(crate) fn new(is_json: bool) -> Self {
        if is_json { Self::Json } else { Self::Text }
    }

    /// Prints a list in this form.
    pub(crate) fn print(self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) {
        let output = Output::default();
        match self {
            Self::Json => output.json_line(&json()),
            Self::Text => output.write_text(&text()),
        }
    }
}

/// Lines under titles; titles without lines are left out. `None` if there are no lines at all.
pub(crate) fn titled<'t>(
    groups: impl IntoIterator<Item = (&'t str, Vec<String>)>,
) -> Option<String> {
    let parts: Vec<String> = groups
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .map(|(title, lines)| {
            let lines: Vec<String> = lines.iter().map(|line| printable(line)).collect();
            format!("{title}:\n  {}\n", lines.join("\n  "))
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The beginning of a text, on one line.
pub(crate) fn shortened(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line,
    }
}

/// A file that cannot be used.
pub(crate) fn failed_json(failed: &Problem) -> Value {
    json!({"path": failed.path, "line": failed.line, "reason": failed.message})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_description_is_cut_between_letters() {
        assert_eq!(shortened("a\n  b\tc"), "a b c");
        let long = "ä".repeat(200);
        assert_eq!(shortened(&long), "ä".repeat(160) + "…");
    }
}
