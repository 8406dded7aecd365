//! The parts of a request that are not compared with a recording.
//!
//! A run elsewhere and at another time asks the same thing in slightly other words. Before two requests are compared,
//! these are replaced in every string of both (never in a sent request, and never in a replayed answer):
//!
//! | in the text | compared as |
//! |---|---|
//! | a section `# Environment`: directory, platform, date, git state | `<environment>` |
//! | the path of the working directory that such a section names, there or here | `<cwd>` |
//! | the same path as the name of a project directory | `<cwd-slug>` |
//! | an additional directory of such a section | `<added>` |
//! | an ISO date, with or without a time | `<date>` |
//! | a UUID | `<id>` |
//! | an agent's id, whole or in the name of its worktree; a background shell's id | `<agent>`, `<task>` |
//! | a whole commit hash | `<commit>` |
//! | the number after `duration_ms` | `<duration>` |

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// One alternative per row of the table above; the name of its group is its label.
static VOLATILE: LazyLock<Regex> = LazyLock::new(|| {
    let hex = "[0-9a-fA-F]";
    let date = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])";
    let time = r"[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?";
    let pattern = [
        format!(r"(?<date>\b{date}(?:{time})?\b)"),
        format!(r"(?<id>\b{hex}{{8}}-(?:{hex}{{4}}-){{3}}{hex}{{12}}\b)"),
        r"(?<commit>\b[0-9a-f]{40}\b)".to_owned(),
        r"(?<agent>\ba[0-9a-f]{16}\b|\bagent-a[0-9a-f]{7}\b)".to_owned(),
        r"(?<task>\bb[0-9a-z]{8}\b)".to_owned(),
        r#"(?<duration>\bduration_ms"?\s*[:=>]\s*\d+)"#.to_owned(),
    ]
    .join("|");
    Regex::new(&pattern).expect("invariant: the pattern is constant")
});

/// A directory whose path differs from one machine to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownDirectory {
    label: &'static str,
    path: String,
}

/// The start of the system prompt's section about the agent's environment.
const ENVIRONMENT: &str = "# Environment\n";

/// The directories that a part of a system prompt names.
pub(super) fn places_in(part: &Value) -> Vec<KnownDirectory> {
    let Some(section) = part.as_str().and_then(|text| text.strip_prefix(ENVIRONMENT)) else {
        return Vec::new();
    };
    let place = |line: &str| {
        let names =
            [("cwd", "- Working directory: "), ("added", "- Additional working directory: ")];
        let (label, path) =
            names.iter().find_map(|(label, name)| Some((*label, line.strip_prefix(name)?)))?;
        // An agent's own worktree lies in the checkout: other texts name it so.
        let checkout = ["/.claude/worktrees/", "/.centurion/worktrees/"]
            .iter()
            .find_map(|inside| path.split_once(inside))
            .map_or(path, |(checkout, _)| checkout);
        Some(KnownDirectory { label, path: checkout.to_owned() })
    };
    section.lines().filter_map(place).collect()
}

/// Replaces the parts that are not compared.
#[derive(Debug, Default)]
pub(super) struct Normaliser {
    /// Texts with their replacements, longest first so that a path wins over its parent.
    replacements: Vec<(String, String)>,
}

impl Normaliser {
    pub(super) fn new<'p>(places: impl IntoIterator<Item = &'p KnownDirectory>) -> Self {
        let mut replacements = Vec::new();
        for place in places {
            let path = place.path.trim_end_matches('/');
            // The root is part of every path and means nothing.
            if path.len() > 1 {
                let slug = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
                replacements
                    .push((path.chars().map(slug).collect(), format!("<{}-slug>", place.label)));
                replacements.push((path.to_owned(), format!("<{}>", place.label)));
            }
        }
        replacements.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        replacements.dedup();
        Self { replacements }
    }

    pub(super) fn apply(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(normal) = self.text(text) {
                    *text = normal;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply(item)),
            Value::Object(entries) => entries.values_mut().for_each(|value| self.apply(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if let Some(section) = text.strip_prefix(ENVIRONMENT) {
            let rest = section.split_once("\n# ").map_or("", |(_, rest)| rest);
            return Cow::Owned(format!("<environment>{}", self.text(rest)));
        }
        let mut text = Cow::Borrowed(text);
        for (path, label) in &self.replacements {
            if text.contains(path.as_str()) {
                text = Cow::Owned(replace_whole(&text, path, label));
            }
        }
        match VOLATILE.replace_all(&text, |found: &Captures<'_>| {
            let names = VOLATILE.capture_names().flatten();
            let label = names.into_iter().find(|name| found.name(name).is_some());
            format!("<{}>", label.unwrap_or_default())
        }) {
            Cow::Borrowed(_) => text,
            Cow::Owned(normal) => Cow::Owned(normal),
        }
    }
}

/// Replaces `path` where it is not part of a longer name.
fn replace_whole(text: &str, path: &str, label: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let (before, from) = rest.split_at(at);
        let after = from.get(path.len()..).unwrap_or_default();
        let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let inside = before.ends_with(char::is_alphanumeric)
            || (before.is_empty() && result.ends_with(char::is_alphanumeric))
            || after.starts_with(joins);
        result.push_str(before);
        result.push_str(if inside { path } else { label });
        rest = after;
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> String {
        let place = |path: &str| KnownDirectory { label: "cwd", path: path.into() };
        let places = [place("/home/ann/proj"), place("/home/ann/proj/deep/")];
        Normaliser::new(&places).text(text).into_owned()
    }

    #[test]
    fn each_volatile_part_has_its_label() {
        for (text, expected) in [
            ("in /home/ann/proj/src.", "in <cwd>/src."),
            ("/home/ann/proj/deep/x", "<cwd>/x"),
            ("/home/ann/project /mnt/home/ann/proj", "/home/ann/project /mnt/home/ann/proj"),
            ("projects/-home-ann-proj/x", "projects/<cwd-slug>/x"),
            ("Today is 2026-11-15.\n2026-11-15", "Today is <date>.\n<date>"),
            ("at 2026-11-15T22:09:27.123Z ok", "at <date> ok"),
            ("2026-13-45 and 12026-11-15", "2026-13-45 and 12026-11-15"),
            ("6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f10", "<id>"),
            ("agent a0123456789abcdef ended", "agent <agent> ended"),
            ("task b0k3j2h1x", "task <task>"),
            ("da39a3ee5e6b4b0d3255bfef95601890afd80709", "<commit>"),
            (r#"{"duration_ms": 17}"#, r#"{"<duration>}"#),
            ("in .claude/worktrees/agent-a1234567/x", "in .claude/worktrees/<agent>/x"),
            ("# Environment\n- Date: x\n\nM a.rs\n", "<environment>"),
            ("# Environment\n- Date: x\n# More 2026-11-15\n", "<environment>More <date>\n"),
            ("about the\n# Environment\n- Date: x", "about the\n# Environment\n- Date: x"),
            ("nothing special, 42 and abc", "nothing special, 42 and abc"),
        ] {
            assert_eq!(normal(text), expected);
        }
    }

    #[test]
    fn an_environment_names_its_directories_and_a_worktree_its_checkout() {
        let part = |cwd: &str| {
            Value::from(format!(
                "# Environment\n- Working directory: {cwd}\n- Additional working directory: /b\n"
            ))
        };
        let places = |cwd: &str| {
            let places = places_in(&part(cwd)).into_iter();
            places.map(|place| (place.label, place.path)).collect::<Vec<_>>()
        };
        assert_eq!(places("/a/x"), [("cwd", "/a/x".into()), ("added", "/b".into())]);
        assert_eq!(places("/a/x/.claude/worktrees/agent-a1")[0].1, "/a/x");
        assert_eq!(places_in(&Value::from("- Working directory: /a")), []);
    }
}
