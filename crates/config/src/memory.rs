//! Memory files: the instructions that people leave for agents, found, read and put in order.
//!
//! The order is: the administrator's, the user's, then each directory from the root of the file system
//! down to the working directory, so that what is nearest comes last. In a directory, `AGENTS.md` comes
//! after `CLAUDE.md`. A file is loaded once, however many ways lead to it, and an `AGENTS.md` that is a
//! copy of what is beside it is left out. What a person should know is in [`Memory::problems`]; nothing here fails.

mod globs;
mod loader;
mod markdown;
mod rules;
#[cfg(test)]
mod tests;
mod tracker;

use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobSet, GlobSetBuilder};

pub(crate) use self::globs::{relative as relative_globs, split_list as split_globs};
use self::loader::Loader;
pub use self::rules::ConditionalRule;
pub use self::tracker::{Applied, MemoryTracker};
use crate::settings::LevelChoice;
use crate::{Problem, ReadRules};

/// The places in which memory files are looked for. All paths are absolute.
#[derive(Clone, Debug, Default)]
pub struct MemorySources {
    pub cwd: PathBuf,
    pub repo_root: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// The directory that the administrator of the machine manages.
    pub managed_dir: Option<PathBuf>,
    /// The levels whose files are read. Those of the administrator always are.
    pub levels: LevelChoice,
    /// The text of managed settings, as if it stood in the file that they are in.
    pub managed_text: Option<(PathBuf, String)>,
    /// The user's directories, such as `~/.claude`.
    pub config_dirs: Vec<PathBuf>,
    /// Directories that were added to the working directory.
    pub additional_dirs: Vec<PathBuf>,
    /// Globs over absolute paths; managed files cannot be excluded.
    pub excludes: Vec<String>,
    /// Whether files of a project may import what is outside of it.
    pub allow_external_imports: bool,
    /// Whether the files of a project may be links to Markdown outside of it: the folder is trusted.
    pub follow_links_outside: bool,
    /// Deny rules for reading, which bind instructions and what they import.
    pub read_rules: ReadRules,
}

/// The owner of a file's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Managed,
    User,
    Project,
    /// The user's own for one project, kept out of version control.
    Local,
}

/// The way in which a file came to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryOrigin {
    /// By its name: `CLAUDE.md` and the like.
    Named,
    /// As a file under `rules/`.
    Rule,
    /// As a file under `rules/` that waited for a file which its `paths` mean.
    ScopedRule(Vec<String>),
    ImportedBy(PathBuf),
}

/// One file, with hidden comments removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    pub path: PathBuf,
    pub scope: Scope,
    pub origin: MemoryOrigin,
    pub content: String,
}

/// All that applies from the start, and the rules that wait for a file.
#[derive(Debug)]
pub struct Memory {
    pub files: Vec<MemoryFile>,
    /// Rules with `paths`; a [`MemoryTracker`] hands them out.
    pub rules: Vec<Arc<ConditionalRule>>,
    pub problems: Vec<Problem>,
    sources: MemorySources,
    excludes: GlobSet,
    seen: HashSet<PathBuf>,
}

impl Memory {
    pub fn load(sources: MemorySources) -> Self {
        let (excludes, mut problems) = compile_excludes(&sources.excludes);
        let mut loader = Loader::new(&sources, &excludes, HashSet::new());
        loader.launch();
        let Loader { files, rules, seen, .. } = loader;
        problems.append(&mut loader.problems);
        Self { files, rules, problems, sources, excludes, seen }
    }

    /// The memory as one text for the conversation; `None` if there is nothing to say.
    pub fn render(&self) -> Option<String> {
        introduced(&self.files)
    }
}

/// Files as one text that says what they are.
fn introduced(files: &[MemoryFile]) -> Option<String> {
    let files = render(files)?;
    Some(format!(
        "The people you work for left these instructions. Follow them as they are written. They go \
         from general to particular: where two disagree, the later one counts.\n\n{files}"
    ))
}

/// Files as one text, each under its path and what it is.
pub fn render(files: &[MemoryFile]) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let mut text = String::new();
    for file in files {
        let separator = if text.is_empty() { "" } else { "\n\n" };
        let (path, what) = (file.path.display(), file.description());
        // Writing to memory cannot fail.
        let _ = write!(text, "{separator}# {path} ({what})\n\n{}", file.content.trim());
    }
    Some(text)
}

impl MemoryFile {
    /// The description of the file, for a heading.
    pub fn description(&self) -> String {
        let what = match self.scope {
            Scope::Managed => "instructions of this machine's administrator",
            Scope::User => "the user's own instructions for all projects",
            Scope::Project => "instructions of this project",
            Scope::Local => "the user's own instructions for this project",
        };
        match &self.origin {
            MemoryOrigin::Named => what.to_owned(),
            MemoryOrigin::Rule | MemoryOrigin::ScopedRule(_) => format!("a rule among {what}"),
            MemoryOrigin::ImportedBy(path) => format!("{what}, imported by {}", path.display()),
        }
    }
}

impl Scope {
    /// Whether the user or the administrator wrote the file, and not an author of the repository.
    fn is_trusted(self) -> bool {
        matches!(self, Self::Managed | Self::User)
    }
}

impl MemorySources {
    fn are_wanted(&self, scope: Scope) -> bool {
        match scope {
            Scope::Managed => true,
            Scope::User => self.levels.user,
            Scope::Project => self.levels.project,
            Scope::Local => self.levels.local,
        }
    }

    fn project_root(&self) -> &Path {
        self.repo_root.as_ref().unwrap_or(&self.cwd)
    }

    /// Whether a directory above the repository is the checkout that the repository is a worktree of:
    /// worktrees of agents are kept inside, and hold copies of the same files.
    fn is_main_checkout_of_a_worktree(&self, directory: &Path) -> bool {
        let Some(inner) = self.repo_root.as_ref() else { return false };
        [".claude/worktrees", ".centurion/worktrees"].into_iter().any(|worktrees| {
            inner.parent().is_some_and(|parent| parent.ends_with(worktrees))
                && inner.ancestors().skip(1).take(3).any(|above| above == directory)
        })
    }

    /// The directories from below the project down to the one that holds `path`.
    fn nested_directories<'p>(&self, path: &'p Path) -> Vec<&'p Path> {
        let roots = [&self.cwd].into_iter().chain(&self.repo_root).chain(&self.additional_dirs);
        let Some(root) = roots.into_iter().find(|root| path.starts_with(root)) else {
            return Vec::new();
        };
        let mut directories: Vec<&Path> =
            path.ancestors().skip(1).take_while(|directory| *directory != root).collect();
        directories.reverse();
        directories
    }
}

fn compile_excludes(patterns: &[String]) -> (GlobSet, Vec<Problem>) {
    let mut problems = Vec::new();
    if patterns.is_empty() {
        return (GlobSet::empty(), problems);
    }
    let mut problem = |pattern: &str, message: String| {
        problems.push(Problem { path: PathBuf::from(pattern), line: None, message });
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        match globs::glob(pattern) {
            Ok(glob) => {
                set.add(glob);
            }
            Err(error) => problem(pattern, error.to_string()),
        }
    }
    let set = set.build().unwrap_or_else(|error| {
        problem("", format!("the excludes cannot be used: {error}"));
        GlobSet::empty()
    });
    (set, problems)
}
