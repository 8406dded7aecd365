//! The globs of a rule's `paths` and of excludes.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;

/// The most patterns that the braces of one rule may stand for.
const BUDGET: usize = 1000;

/// The most braces of one pattern: each is looked through for its contents.
const MOST_BRACES: usize = 100;

/// Splits a list at its commas, but not at those within braces.
pub(crate) fn split_list(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                items.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    items.extend(text.get(start..));
    items.into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// The reason that patterns cannot be used.
#[derive(Debug, Error)]
pub(crate) enum GlobError {
    #[error("the braces of `paths` stand for more than {BUDGET} patterns")]
    TooMany,
    #[error("`{pattern}` is no glob: {}", .source.kind())]
    NoGlob { pattern: String, source: globset::Error },
    #[error(transparent)]
    Unusable(globset::Error),
}

/// A matcher for paths relative to the directory of a rule. As in an ignore file, a pattern without a
/// slash matches at any depth, and one that names a directory matches all in it.
pub(crate) fn relative(patterns: &[String]) -> Result<GlobSet, GlobError> {
    let mut set = GlobSetBuilder::new();
    let mut budget = BUDGET;
    for pattern in patterns {
        let expanded = expand(pattern, budget).ok_or(GlobError::TooMany)?;
        budget -= expanded.len();
        for pattern in expanded {
            let pattern = pattern.trim_end_matches('/');
            let anywhere = if pattern.contains('/') { "" } else { "**/" };
            let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
            set.add(glob(&format!("{anywhere}{pattern}"))?);
            set.add(glob(&format!("{anywhere}{pattern}/**"))?);
        }
    }
    set.build().map_err(GlobError::Unusable)
}

/// One glob in which `*` stays within a directory.
pub(super) fn glob(pattern: &str) -> Result<Glob, GlobError> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|source| GlobError::NoGlob { pattern: pattern.to_owned(), source })
}

/// The patterns that a pattern with braces stands for; `None` if they are more than `budget`, or too many to look
/// through.
fn expand(pattern: &str, budget: usize) -> Option<Vec<String>> {
    if pattern.matches('{').count() > MOST_BRACES {
        return None;
    }
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(next) = open.pop() {
        match first_group(&next) {
            None => done.push(next),
            Some((before, choices, after)) => {
                open.extend(choices.iter().rev().map(|choice| format!("{before}{choice}{after}")));
            }
        }
        if done.len() + open.len() > budget {
            return None;
        }
    }
    Some(done)
}

/// The first braces that hold a choice: what stands before them, the choices, what stands after.
fn first_group(pattern: &str) -> Option<(&str, Vec<&str>, &str)> {
    for (open, _) in pattern.match_indices('{') {
        let inside = pattern.get(open + 1..)?;
        let (mut depth, mut start, mut choices) = (0_usize, 0, Vec::new());
        for (at, character) in inside.char_indices() {
            match character {
                '{' => depth += 1,
                ',' if depth == 0 => {
                    choices.extend(inside.get(start..at));
                    start = at + 1;
                }
                '}' if depth > 0 => depth -= 1,
                '}' => {
                    choices.extend(inside.get(start..at));
                    if choices.len() > 1 {
                        return Some((pattern.get(..open)?, choices, inside.get(at + 1..)?));
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_but_not_within_braces() {
        assert_eq!(split_list("src/*.{ts,tsx}, lib/** ,,"), ["src/*.{ts,tsx}", "lib/**"]);
        assert!(split_list(" , ").is_empty());
    }

    #[test]
    fn braces_are_expanded_in_order_and_nested() {
        assert_eq!(expand("{a,b{1,2}}.{x}/c", 10).unwrap(), ["a.{x}/c", "b1.{x}/c", "b2.{x}/c"]);
        assert_eq!(expand("plain", 1).unwrap(), ["plain"]);
        assert_eq!(expand("{a", 10).unwrap(), ["{a"]);
    }

    #[test]
    fn an_explosion_of_braces_is_refused() {
        let began = std::time::Instant::now();
        assert_eq!(expand(&"{".repeat(30_000), BUDGET), None);
        assert_eq!(expand(&format!("{}{}", "{".repeat(30_000), "}".repeat(30_000)), BUDGET), None);
        assert!(began.elapsed().as_secs() < 2);
        assert_eq!(expand(&"{a,b}".repeat(40), BUDGET), None);
        assert!(relative(&["{a,b}".repeat(12)]).unwrap_err().to_string().contains("1000"));
    }

    #[test]
    fn patterns_match_as_in_an_ignore_file() {
        for (pattern, path, expected) in [
            ("*.ts", "a/b/c.ts", true),
            ("src/*.ts", "src/a.ts", true),
            ("src/*.ts", "src/b/a.ts", false),
            ("src/**/*.ts", "src/a.ts", true),
            ("./src/", "src/b/a.ts", true),
            ("/src", "lib/src/a.ts", false),
            ("docs", "x/docs/a.md", true),
            ("*.{ts,tsx}", "a.tsx", true),
        ] {
            let set = relative(&[pattern.to_owned()]).unwrap();
            assert_eq!(set.is_match(path), expected, "{pattern} {path}");
        }
        let error = relative(&["a[".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("`**/a[` is no glob"));
    }
}
