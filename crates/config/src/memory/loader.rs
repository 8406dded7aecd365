//! Reading memory files: each once, with what it imports.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_files::{OpenError, open_regular};
use centurion_protocol::bounded;
use globset::GlobSet;
use thiserror::Error;

use super::markdown::{self, Import};
use super::rules::{self, ConditionalRule, RuleFile};
use super::{MemoryFile, MemoryOrigin, MemorySources, Scope};
use crate::Problem;
use crate::files::LEADS_OUT;

/// Instructions are texts for a model; what is larger than this is something else.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The longest chain of imports.
const DEEPEST: usize = 4;

/// The files that have been read so far.
pub(super) struct Loader<'m> {
    sources: &'m MemorySources,
    excludes: &'m GlobSet,
    /// The real paths of all files that were read.
    pub(super) seen: HashSet<PathBuf>,
    pub(super) files: Vec<MemoryFile>,
    pub(super) rules: Vec<Arc<ConditionalRule>>,
    pub(super) problems: Vec<Problem>,
    /// The real paths of the project's directories, needed only where a link or an import is met.
    project: OnceCell<Vec<PathBuf>>,
}

/// By what a file is reached, which decides where it may lie.
#[derive(Clone, Copy)]
enum FileReach<'p> {
    /// It belongs to this directory.
    Own(&'p Path),
    /// A file imports it.
    Import(&'p Path),
}

/// A text on its way into the memory.
struct Source<'t> {
    path: &'t Path,
    real: &'t Path,
    scope: Scope,
    origin: MemoryOrigin,
    text: &'t str,
    first_line: usize,
}

impl<'m> Loader<'m> {
    pub(super) fn new(
        sources: &'m MemorySources,
        excludes: &'m GlobSet,
        seen: HashSet<PathBuf>,
    ) -> Self {
        Self {
            sources,
            excludes,
            seen,
            files: Vec::new(),
            rules: Vec::new(),
            problems: Vec::new(),
            project: OnceCell::new(),
        }
    }

    /// Everything that applies from the start, in its order.
    pub(super) fn launch(&mut self) {
        let sources = self.sources;
        if let Some((path, text)) = &sources.managed_text {
            self.files.push(MemoryFile {
                path: path.clone(),
                scope: Scope::Managed,
                origin: MemoryOrigin::Named,
                content: text.clone(),
            });
        }
        if let Some(managed) = &sources.managed_dir {
            self.instructions(managed, managed, Scope::Managed);
        }
        for directory in &sources.config_dirs {
            self.instructions(directory, directory, Scope::User);
        }
        for directory in &sources.config_dirs {
            self.rules(&directory.join("rules"), sources.project_root(), Scope::User);
        }
        let mut chain: Vec<&Path> = sources.cwd.ancestors().collect();
        chain.reverse();
        for directory in chain {
            if sources.is_main_checkout_of_a_worktree(directory) {
                // The worktree has these files itself, but for the one that git ignores.
                self.file(&directory.join("CLAUDE.local.md"), directory, Scope::Local);
            } else {
                self.project_directory(directory);
            }
        }
        for directory in &sources.additional_dirs {
            self.project_directory(directory);
        }
    }

    /// The files of one directory of a project.
    pub(super) fn project_directory(&mut self, directory: &Path) {
        // A file of the user was read as such, or was moved elsewhere and is not wanted.
        let is_home = self.sources.home.as_deref() == Some(directory);
        let (claude, ours) = (directory.join(".claude"), directory.join(".centurion"));
        let first = self.files.len();
        self.file(&directory.join("CLAUDE.md"), directory, Scope::Project);
        if !is_home {
            self.file(&claude.join("CLAUDE.md"), directory, Scope::Project);
        }
        self.agents_file(directory, directory, Scope::Project, first);
        if !is_home {
            self.instructions(&ours, directory, Scope::Project);
            self.rules(&claude.join("rules"), directory, Scope::Project);
            self.rules(&ours.join("rules"), directory, Scope::Project);
        }
        self.file(&directory.join("CLAUDE.local.md"), directory, Scope::Local);
    }

    /// `CLAUDE.md` of a directory, then its `AGENTS.md`. They belong to `owner`.
    fn instructions(&mut self, directory: &Path, owner: &Path, scope: Scope) {
        let first = self.files.len();
        self.file(&directory.join("CLAUDE.md"), owner, scope);
        self.agents_file(directory, owner, scope, first);
    }

    /// `AGENTS.md` of a directory whose other files are those from `first` on. A link to one of them,
    /// or a file that one of them imports, was read already; a copy of one of them says nothing new.
    fn agents_file(&mut self, directory: &Path, owner: &Path, scope: Scope, first: usize) {
        let path = directory.join("AGENTS.md");
        let index = self.files.len();
        self.file(&path, owner, scope);
        let (before, added) = self.files.split_at(index);
        let Some(agents) = added.first().filter(|file| file.path == path) else { return };
        let text = agents.content.trim();
        if before.iter().skip(first).any(|file| file.content.trim() == text) {
            self.files.remove(index);
        }
    }

    /// Reads a file of a directory if it is there.
    fn file(&mut self, path: &Path, owner: &Path, scope: Scope) {
        if self.sources.are_wanted(scope)
            && self.is_file(path)
            && let Some((real, text)) = self.read(path, scope, FileReach::Own(owner))
        {
            let origin = MemoryOrigin::Named;
            let text = Source { path, real: &real, scope, origin, text: &text, first_line: 1 };
            self.add(text, 0);
        }
    }

    fn rules(&mut self, directory: &Path, base: &Path, scope: Scope) {
        if !self.sources.are_wanted(scope) {
            return;
        }
        for path in rules::find(directory) {
            if self.is_file(&path)
                && let Some((real, text)) = self.read(&path, scope, FileReach::Own(base))
            {
                self.rule(path, real, &text, base, scope);
            }
        }
    }

    fn rule(&mut self, path: PathBuf, real: PathBuf, text: &str, base: &Path, scope: Scope) {
        let rule = RuleFile::parse(text);
        if let Some((line, message)) = rule.problem {
            self.problem(&path, Some(line), message);
        }
        let RuleFile { body, first_line, .. } = rule;
        let Some((patterns, globs)) = rule.condition else {
            let (path, real, origin) = (path.as_path(), real.as_path(), MemoryOrigin::Rule);
            self.add(Source { path, real, scope, origin, text: body, first_line }, 0);
            return;
        };
        self.rules.push(Arc::new(ConditionalRule {
            path,
            scope,
            patterns,
            real,
            base: base.to_owned(),
            globs,
            body: body.to_owned(),
            first_line,
        }));
    }

    /// Adds a rule whose condition has come true.
    pub(super) fn apply(&mut self, rule: &ConditionalRule) {
        let text = Source {
            path: &rule.path,
            real: &rule.real,
            scope: rule.scope,
            origin: MemoryOrigin::ScopedRule(rule.patterns.clone()),
            text: &rule.body,
            first_line: rule.first_line,
        };
        self.add(text, 0);
    }

    /// Adds a text and, after it, what it imports; `depth` imports have led to it.
    fn add(&mut self, source: Source<'_>, depth: usize) {
        let Source { path, real, scope, .. } = source;
        let scan = markdown::scan(source.text, source.first_line);
        if !scan.text.trim().is_empty() {
            let content = scan.text.into_owned();
            self.files.push(MemoryFile {
                path: path.to_owned(),
                scope,
                origin: source.origin,
                content,
            });
        }
        for import in scan.imports {
            self.import(path, real, scope, &import, depth + 1);
        }
    }

    fn import(&mut self, from: &Path, real: &Path, scope: Scope, import: &Import, depth: usize) {
        let name = &import.path;
        let Some(target) = self.resolve(real, name) else {
            if looks_like_a_path(name) {
                let message = format!("the import `@{name}` leads to no file");
                self.problem(from, Some(import.line), message);
            }
            return;
        };
        if depth > DEEPEST {
            let message =
                format!("imports are followed {DEEPEST} files deep; `@{name}` is one too many");
            self.problem(from, Some(import.line), message);
            return;
        }
        if !self.may_read(&real_or_self(&target), scope, FileReach::Import(from)) {
            let message = format!(
                "the import `@{name}` leads outside the project and is not followed until external \
                 imports are allowed"
            );
            self.problem(from, Some(import.line), message);
            return;
        }
        if let Some((real, text)) = self.read(&target, scope, FileReach::Import(from)) {
            let origin = MemoryOrigin::ImportedBy(from.to_owned());
            let text =
                Source { path: &target, real: &real, scope, origin, text: &text, first_line: 1 };
            self.add(text, depth);
        }
    }

    /// The file that an import means: as it is written, or without the punctuation of the sentence
    /// around it.
    fn resolve(&self, importer: &Path, name: &str) -> Option<PathBuf> {
        let name = name.split('#').next().unwrap_or_default();
        let bare = name.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '*']);
        [name, bare].into_iter().filter(|name| !name.is_empty()).find_map(|name| {
            let path = match name.strip_prefix("~/") {
                Some(rest) => self.sources.home.as_ref()?.join(rest),
                None => importer.parent()?.join(name),
            };
            path.is_file().then(|| clean(&path))
        })
    }

    /// Whether the file at a real path may be put before the model. What is the user's own may lie
    /// anywhere; what a project brings must be in the project, in the directory it belongs to, or beside
    /// the file that imports it. A link that leads elsewhere could show any file of the user's: it counts
    /// only where the folder is trusted, and only to Markdown.
    fn may_read(&self, real: &Path, scope: Scope, reach: FileReach<'_>) -> bool {
        if scope.is_trusted() || self.sources.allow_external_imports || self.is_in_project(real) {
            return true;
        }
        let (near, may_link) = match reach {
            // Directories above the working directory are as they are called. Of those below, some may be
            // links themselves: there, only what is in the project counts.
            FileReach::Own(directory) => (
                Some(directory).filter(|directory| self.sources.cwd.starts_with(directory)),
                self.sources.follow_links_outside,
            ),
            FileReach::Import(from) => (from.parent(), false),
        };
        let is_near = near
            .and_then(|near| near.canonicalize().ok())
            .is_some_and(|near| real.starts_with(near));
        is_near || (may_link && real.extension().is_some_and(|extension| extension == "md"))
    }

    /// The deny rule for reading that a file comes under. Rules bind imports of every file, also of the user's own.
    fn denial(&self, path: &Path, real: &Path, reach: FileReach<'_>) -> Option<String> {
        let rules = &self.sources.read_rules;
        match reach {
            FileReach::Own(_) => rules.denial_of_named(path, real),
            FileReach::Import(_) => rules.denial(path, real),
        }
    }

    fn is_in_project(&self, real: &Path) -> bool {
        let roots = self.project.get_or_init(|| {
            let sources = self.sources;
            let roots = [sources.project_root(), &sources.cwd].into_iter();
            let roots = roots.chain(sources.additional_dirs.iter().map(PathBuf::as_path));
            roots.filter_map(|root| root.canonicalize().ok()).collect()
        });
        roots.iter().any(|root| real.starts_with(root))
    }

    fn is_file(&mut self, path: &Path) -> bool {
        match std::fs::metadata(path) {
            Ok(metadata) => metadata.is_file(),
            Err(error) => {
                let absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                if !absent {
                    self.problem(path, None, format!("cannot be read: {error}"));
                }
                false
            }
        }
    }

    /// The real path and the text of a file that is wanted and was not read before. What was judged is what
    /// is opened: a link that comes up meanwhile is not followed.
    fn read(
        &mut self,
        path: &Path,
        scope: Scope,
        reach: FileReach<'_>,
    ) -> Option<(PathBuf, String)> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) => {
                self.problem(path, None, format!("cannot be read: {error}"));
                return None;
            }
        };
        let excluded = scope != Scope::Managed
            && (self.excludes.is_match(path) || self.excludes.is_match(&real));
        if excluded || !self.seen.insert(real.clone()) {
            return None;
        }
        if !self.may_read(&real, scope, reach) {
            let message = if self.sources.follow_links_outside {
                "is a link to something outside the project that is no Markdown, and is not followed"
            } else {
                LEADS_OUT
            };
            self.problem(path, None, message.to_owned());
            return None;
        }
        if let Some(denial) = self.denial(path, &real, reach) {
            self.problem(path, None, denial);
            return None;
        }
        match read_text(&real) {
            Ok(text) => Some((real, text)),
            Err(error) => {
                self.problem(path, None, error.to_string());
                None
            }
        }
    }

    fn problem(&mut self, path: &Path, line: Option<usize>, message: String) {
        self.problems.push(Problem { path: path.to_owned(), line, message });
    }
}

fn real_or_self(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The reason that a file is not loaded, as the end of a sentence about it.
#[derive(Debug, Error)]
enum TextError {
    #[error("cannot be read: {0}")]
    Unopened(#[source] OpenError),
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    #[error("is larger than {} MiB and is not loaded", LARGEST / 1024 / 1024)]
    TooLarge,
    #[error("is no text and is not loaded")]
    Binary,
}

/// The text of the file at a real path.
fn read_text(path: &Path) -> Result<String, TextError> {
    let (file, _) = open_regular(path).map_err(TextError::Unopened)?;
    let bytes = bounded::read_all(file, LARGEST).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => TextError::TooLarge,
        _ => TextError::Unreadable(error),
    })?;
    if bytes.contains(&0) {
        return Err(TextError::Binary);
    }
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    Ok(if text.contains('\r') { text.replace("\r\n", "\n") } else { text })
}

/// Whether a word after an `@` is meant as a file: people also write `@alice` and `@types/node`.
fn looks_like_a_path(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    let has_extension = last.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && extension.starts_with(char::is_alphabetic)
    });
    ["./", "../", "~/", "/"].iter().any(|start| name.starts_with(start)) || has_extension
}

/// A path without `.` and `..`.
pub(super) fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                cleaned.pop();
            }
            other => cleaned.push(other),
        }
    }
    cleaned
}
