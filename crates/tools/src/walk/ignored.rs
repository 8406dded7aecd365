//! The paths that ignore files, of a directory and of those above it, exclude from a walk.
//!
//! `.ignore` counts before `.gitignore`, and both before git's `info/exclude`; of one kind, the file nearest to the
//! entry decides. A person's own ignore file is not used: its path is in the environment, which this crate does not
//! read.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_files::{Directory, Kind, Listed, open_regular};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::paths::resolve;

/// The bytes of an ignore file that are read.
const LARGEST: u64 = 1024 * 1024;

/// Kinds of ignore files, the strongest first.
#[derive(Clone, Copy)]
enum Source {
    Ignore,
    GitIgnore,
    GitExclude,
}

const SOURCES: [Source; 3] = [Source::Ignore, Source::GitIgnore, Source::GitExclude];

/// The rules of one directory, and those of the nearest directory above it that has any.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    rules: [Option<Gitignore>; 3],
    outer: Option<Arc<Ignored>>,
}

impl Ignored {
    /// The rules of the directories above a root.
    pub(super) fn above(root: &Path) -> Self {
        let mut above: Vec<&Path> = root.ancestors().skip(1).collect();
        above.reverse();
        let mut outer = Arc::new(Self::default());
        for directory in above {
            let rules = SOURCES.map(|source| {
                let file = match source {
                    Source::Ignore => open_regular(&directory.join(".ignore")),
                    Source::GitIgnore => open_regular(&directory.join(".gitignore")),
                    Source::GitExclude => open_regular(&directory.join(".git/info/exclude")),
                };
                match (source, file) {
                    (_, Ok((file, _))) => parse(directory, file),
                    (Source::GitExclude, Err(_)) => {
                        let link = open_regular(&directory.join(".git")).ok();
                        link.and_then(|(file, _)| worktree_rules(directory, file))
                    }
                    (_, Err(_)) => None,
                }
            });
            outer = Self::below(outer, rules);
        }
        Self { rules: [const { None }; 3], outer: Some(outer) }
    }

    /// The rules for a directory below, at `path`, with these entries.
    pub(super) fn with(
        self: &Arc<Self>,
        path: &Path,
        directory: &Directory,
        listed: &[Listed],
    ) -> Arc<Self> {
        let mut rules = [const { None }; 3];
        for entry in listed {
            let (index, file) = match (entry.name.as_encoded_bytes(), entry.kind) {
                (b".ignore", Kind::File) => (0, ".ignore"),
                (b".gitignore", Kind::File) => (1, ".gitignore"),
                (b".git", Kind::Directory) => (2, ".git/info/exclude"),
                (b".git", Kind::File) => (2, ".git"),
                _ => continue,
            };
            let opened = directory.regular_file(Path::new(file));
            if let (Ok((opened, _)), Some(rules)) = (opened, rules.get_mut(index)) {
                *rules = match file {
                    ".git" => worktree_rules(path, opened),
                    _ => parse(path, opened),
                };
            }
        }
        Self::below(Arc::clone(self), rules)
    }

    fn below(outer: Arc<Self>, rules: [Option<Gitignore>; 3]) -> Arc<Self> {
        if rules.iter().all(Option::is_none) {
            return outer;
        }
        Arc::new(Self { rules, outer: Some(outer) })
    }

    /// Whether an entry is excluded.
    pub(super) fn matches(&self, path: &Path, is_directory: bool) -> bool {
        for source in SOURCES {
            let mut here = Some(self);
            while let Some(ignored) = here {
                let [ignore, git_ignore, git_exclude] = &ignored.rules;
                let rules = match source {
                    Source::Ignore => ignore,
                    Source::GitIgnore => git_ignore,
                    Source::GitExclude => git_exclude,
                };
                match rules.as_ref().map(|rules| rules.matched(path, is_directory)) {
                    Some(Match::Ignore(_)) => return true,
                    Some(Match::Whitelist(_)) => return false,
                    Some(Match::None) | None => {}
                }
                here = ignored.outer.as_deref();
            }
        }
        false
    }
}

/// Parses the rules in a file, for paths below `directory`. Skips invalid lines.
fn parse(directory: &Path, file: File) -> Option<Gitignore> {
    let text = read(file)?;
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        if let Err(error) = builder.add_line(None, line) {
            tracing::debug!(%error, directory = %directory.display(), "a line of an ignore file");
        }
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// The rules of the repository that a worktree belongs to, whose `.git` is a file that names it.
fn worktree_rules(directory: &Path, dot_git: File) -> Option<Gitignore> {
    let git_dir = directory.join(named_in(&read(dot_git)?, "gitdir: ")?);
    let (common, _) = open_regular(&resolve(&git_dir.join("commondir"))).ok()?;
    let common = git_dir.join(named_in(&read(common)?, "")?);
    let (exclude, _) = open_regular(&resolve(&common.join("info/exclude"))).ok()?;
    parse(directory, exclude)
}

fn named_in(text: &str, prefix: &str) -> Option<PathBuf> {
    text.lines().next()?.strip_prefix(prefix).map(PathBuf::from)
}

fn read(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
