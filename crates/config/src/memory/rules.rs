//! Rules: Markdown files under `rules/`, some of which wait until a file they are about is read.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use globset::GlobSet;
use serde::Deserialize;
use thiserror::Error;

use super::Scope;
use super::globs::{relative, split_list};
use crate::frontmatter;

/// A rule that applies once a file that it names has been read.
#[derive(Debug)]
pub struct ConditionalRule {
    pub path: PathBuf,
    pub scope: Scope,
    /// The patterns of its `paths`.
    pub patterns: Vec<String>,
    /// The real path of the file, to which its imports are relative.
    pub(super) real: PathBuf,
    /// The directory that the patterns are relative to.
    pub(super) base: PathBuf,
    pub(super) globs: GlobSet,
    pub(super) body: String,
    pub(super) first_line: usize,
}

impl ConditionalRule {
    pub(super) fn applies_to(&self, path: &Path) -> bool {
        path.strip_prefix(&self.base).is_ok_and(|relative| self.globs.is_match(relative))
    }
}

/// A rule's file, taken apart.
pub(super) struct RuleFile<'t> {
    pub(super) body: &'t str,
    pub(super) first_line: usize,
    /// `None` for a rule that always applies.
    pub(super) condition: Option<(Vec<String>, GlobSet)>,
    /// The fault in it, and its line. The rule then applies always, unless its subject cannot be told.
    pub(super) problem: Option<(usize, String)>,
}

impl<'t> RuleFile<'t> {
    pub(super) fn parse(text: &'t str) -> Self {
        let always =
            |body, first_line, problem| Self { body, first_line, condition: None, problem };
        let document = match frontmatter::split(text) {
            Ok(document) => document,
            Err(error) => return always(text, 1, Some((1, error.to_string()))),
        };
        let frontmatter::Part { text: body, first_line } = document.body;
        let Some(front) = document.frontmatter.filter(|front| front.text.contains("paths")) else {
            return always(body, first_line, None);
        };
        let patterns = match paths_of(front.text) {
            Ok(patterns) if patterns.is_empty() => return always(body, first_line, None),
            Ok(patterns) => patterns,
            Err(error) => {
                return always(body, first_line, Some((front.first_line, error.to_string())));
            }
        };
        match relative(&patterns) {
            Ok(globs) => {
                let condition = Some((patterns, globs));
                Self { body, first_line, condition, problem: None }
            }
            Err(error) => {
                let problem = Some((front.first_line, format!("{error}; the rule never applies")));
                Self { body, first_line, condition: Some((patterns, GlobSet::empty())), problem }
            }
        }
    }
}

#[derive(Deserialize)]
struct Front {
    paths: Option<Paths>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Paths {
    One(String),
    Many(Vec<String>),
}

/// The frontmatter of a rule is no YAML, and has no paths that can be read without it.
#[derive(Debug, Error)]
#[error("the frontmatter cannot be read, the rule applies always: {}", .0.without_snippet())]
struct FrontError(#[source] Box<serde_saphyr::Error>);

/// The patterns of a rule's frontmatter. People write globs without quotes, which YAML takes for
/// something else; those are read line by line.
fn paths_of(front: &str) -> Result<Vec<String>, FrontError> {
    let paths = match serde_saphyr::from_str::<Front>(front) {
        Ok(front) => front.paths.map_or_else(Vec::new, |paths| match paths {
            Paths::One(list) => vec![list],
            Paths::Many(lists) => lists,
        }),
        Err(error) => plain_paths(front).ok_or_else(|| FrontError(Box::new(error)))?,
    };
    Ok(paths.iter().flat_map(|list| split_list(list)).map(str::to_owned).collect())
}

/// Reads `paths: a, b` and `paths:` with `- a` lines from text that is no YAML.
fn plain_paths(front: &str) -> Option<Vec<String>> {
    let mut lines = front.lines();
    let value = lines.find_map(|line| line.strip_prefix("paths:"))?.trim();
    let plain = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    if value.is_empty() {
        let items = lines.map_while(|line| line.trim().strip_prefix('-'));
        return Some(items.map(plain).collect());
    }
    let list = value.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(value);
    Some(split_list(list).into_iter().map(plain).collect())
}

/// The Markdown files under a directory, in the order of their names. A directory that is reached
/// twice, through links, is read once.
pub(super) fn find(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(directory, &mut HashSet::new(), &mut found);
    found
}

fn walk(directory: &Path, visited: &mut HashSet<PathBuf>, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    if !directory.canonicalize().is_ok_and(|real| visited.insert(real)) {
        return;
    }
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            walk(&path, visited, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(front: &str) -> Vec<String> {
        paths_of(front).unwrap()
    }

    #[test]
    fn paths_are_a_text_a_list_or_a_list_with_commas() {
        assert_eq!(patterns("paths: src/**"), ["src/**"]);
        assert_eq!(patterns("paths: 'a/*.{x,y}, b'\nname: z"), ["a/*.{x,y}", "b"]);
        assert_eq!(patterns("paths:\n  - a\n  - 'b, c'\n"), ["a", "b", "c"]);
        assert!(patterns("name: paths").is_empty());
        assert!(patterns("paths: []").is_empty());
    }

    #[test]
    fn globs_without_quotes_are_read_as_they_were_meant() {
        assert_eq!(patterns("paths: **/*.ts, *.js"), ["**/*.ts", "*.js"]);
        assert_eq!(
            patterns("name: x\npaths:\n  - **/*.ts\n  - \"*.js\"\nother: y"),
            ["**/*.ts", "*.js"]
        );
        assert_eq!(patterns("paths: [**/*.ts, 'b']"), ["**/*.ts", "b"]);
    }

    #[test]
    fn what_cannot_be_read_says_so() {
        assert!(paths_of("a: [\n# paths\n").unwrap_err().to_string().contains("cannot be read"));
        let rule = RuleFile::parse("---\npaths: 'a['\n---\nbody");
        assert_eq!(rule.problem.unwrap().0, 2);
        assert!(rule.condition.is_some_and(|(_, globs)| globs.is_empty()));
    }
}
