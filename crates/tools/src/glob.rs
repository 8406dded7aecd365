//! Glob: finds files by a pattern for their paths.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use centurion_files::{Directory, Kind, Stat};
use centurion_permissions::Access;
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::change::answer;
use crate::disk::explain;
use crate::paths::{resolve, shown};
use crate::walk::{self, Entry, Step, Walk};
use crate::{Tool, ToolContext, ToolError, ToolOutput, Workspace};

/// The most files that one answer names.
const MAX_FILES: usize = 100;

/// Finds files by a pattern such as `**/*.rs` or `src/{a,b}/*.ts`; `**` stands for any number of
/// directories. Gives up to 100 paths, the most recently changed first. Files that git ignores are left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobInput {
    /// The pattern, relative to `path`, or absolute.
    pattern: String,
    /// Directory to search; by default the current one.
    path: Option<String>,
}

/// The tool that finds files.
#[derive(Debug, Default)]
pub struct Glob;

impl Tool for Glob {
    type Input = GlobInput;

    const NAME: &'static str = "Glob";

    fn is_read_only(&self, _: &GlobInput) -> bool {
        true
    }

    fn access(&self, input: &GlobInput, context: &ToolContext) -> Access {
        Access::Read(resolve(&SearchStart::of(input, &context.workspace).named))
    }

    async fn run(&self, input: GlobInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let place = SearchStart::of(&input, &context.workspace);
        let root = context.target(&place.named)?;
        if let Some(path) = &input.path {
            refuse_non_directory(&context.workspace.absolute(path))?;
        }
        let matcher = place.matcher()?;
        let search = FileSearch {
            root,
            depth: place.depth(),
            matcher,
            base: resolve(&context.workspace.cwd()),
            workspace: Arc::clone(&context.workspace),
        };
        walk::run(&context.cancel, move |cancel| search.run(cancel)).await
    }
}

/// A directory in which a pattern can match, and the rest of the pattern below it.
#[derive(Debug)]
struct SearchStart {
    /// The directory as the model named it, made absolute.
    named: PathBuf,
    pattern: String,
}

impl SearchStart {
    fn of(input: &GlobInput, workspace: &Workspace) -> Self {
        let base =
            input.path.as_deref().map_or_else(|| workspace.cwd(), |path| workspace.absolute(path));
        let pattern = if input.pattern.starts_with("~/") {
            workspace.absolute(&input.pattern).to_string_lossy().into_owned()
        } else {
            input.pattern.clone()
        };
        let (literal, rest) = split(&pattern);
        Self { named: base.join(literal), pattern: rest }
    }

    fn matcher(&self) -> Result<GlobMatcher, ToolError> {
        let wrong = |why: &str| ToolError::Input(format!("the pattern cannot be used: {why}"));
        if self.pattern.is_empty() {
            return Err(wrong("it is empty"));
        }
        GlobBuilder::new(&self.pattern)
            .literal_separator(true)
            .build()
            .map(|glob| glob.compile_matcher())
            .map_err(|error| wrong(&error.to_string()))
    }

    /// The depth of the deepest possible match, if that is bounded.
    fn depth(&self) -> Option<usize> {
        let bounded = !self.pattern.contains("**") && !self.pattern.contains('{');
        bounded.then(|| self.pattern.split('/').count())
    }
}

/// Splits a pattern into the directories that it names literally and the rest.
fn split(pattern: &str) -> (&str, String) {
    let is_special = |part: &str| part.contains(['*', '?', '[', '{', '\\']);
    let mut rest_start = 0;
    let mut literal_end = 0;
    for part in pattern.split_inclusive('/') {
        if is_special(part) || !part.ends_with('/') {
            break;
        }
        rest_start += part.len();
        literal_end = rest_start;
    }
    let literal = pattern.get(..literal_end).unwrap_or_default();
    let rest = pattern.get(rest_start..).unwrap_or_default();
    // A directory alone means its entries.
    if rest.is_empty() && !pattern.is_empty() {
        return (literal, "**".to_owned());
    }
    let rest = rest.strip_suffix('/').map_or_else(|| rest.to_owned(), |dir| format!("{dir}/**"));
    (literal, rest)
}

/// Refuses a named directory that is none. Takes the resolved path.
fn refuse_non_directory(named: &Path) -> Result<(), ToolError> {
    let shown = named.display();
    match resolve(named).symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(ToolError::failed(format!("{shown} is a file: give a directory as path"))),
        Err(error) => Err(ToolError::failed(format!("{shown} cannot be searched: {error}"))),
    }
}

/// The time of a file's last change.
fn modified(stat: &Stat) -> Modified {
    (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or_default())
}

/// Seconds and nanoseconds.
type Modified = (i64, i64);

/// A search that is ready to run.
struct FileSearch {
    /// With links resolved.
    root: PathBuf,
    depth: Option<usize>,
    matcher: GlobMatcher,
    /// The directory to which shown paths are relative.
    base: PathBuf,
    workspace: Arc<Workspace>,
}

impl FileSearch {
    fn run(&self, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        let mut found = match Directory::open(&self.root) {
            Ok(directory) => {
                let walk = Walk {
                    root: &self.root,
                    directory: &directory,
                    workspace: &self.workspace,
                    max_depth: self.depth,
                };
                walk.collect(cancel, |entry| self.visit(entry))?
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Vec::new()
            }
            Err(error) => return Err(explain("search", &self.root, &error)),
        };
        found.sort_unstable_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.cmp(&two.1)));
        Ok(self.report(&found, started))
    }

    /// Takes a file that matches, with the time of its last change. Links to files count as files.
    fn visit(&self, entry: &Entry<'_>) -> Step<(Modified, PathBuf)> {
        if entry.kind == Kind::Directory {
            return Step::Enter;
        }
        if !self.matcher.is_match(entry.below) {
            return Step::Skip;
        }
        let modified = match entry.kind {
            Kind::Link => self.modified_at_target(entry.path),
            _ => entry.directory.stat(entry.name).ok().map(|stat| modified(&stat)),
        };
        modified.map_or(Step::Skip, |modified| Step::Take((modified, entry.path.to_owned())))
    }

    /// The time of a link's target, if that exists, may be read and is no directory.
    fn modified_at_target(&self, link: &Path) -> Option<Modified> {
        let target = resolve(link);
        let metadata = target.symlink_metadata().ok()?;
        let is_there = !metadata.is_dir() && !metadata.is_symlink();
        let counts = is_there && (self.workspace.may_read)(&target);
        counts.then(|| (metadata.mtime(), metadata.mtime_nsec()))
    }

    fn report(&self, found: &[(Modified, PathBuf)], started: Instant) -> ToolOutput {
        let total = found.len();
        let names: Vec<String> =
            found.iter().take(MAX_FILES).map(|(_, path)| shown(path, &self.base)).collect();
        let mut text = names.join("\n");
        if total == 0 {
            text.push_str("No files match. Files that git ignores are not searched.");
        } else if total > MAX_FILES {
            let _ = write!(
                text,
                "\n\n(the {MAX_FILES} most recently changed of {total} files; narrow the pattern for others)"
            );
        }
        let data = json!({
            "filenames": names, "numFiles": names.len(), "truncated": total > MAX_FILES,
            "totalMatches": total, "countIsComplete": true,
            "durationMs": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        answer(text, data)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    use tempfile::{TempDir, tempdir};

    use super::*;
    use crate::testing::{call, context, decide, forbid, text};

    fn tree(files: &[&str]) -> TempDir {
        let dir = tempdir().unwrap();
        for (age, name) in files.iter().enumerate() {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        dir
    }

    async fn found(dir: &TempDir, input: serde_json::Value) -> Vec<String> {
        let output = call(Glob, &context(dir.path()), input).await.unwrap();
        serde_json::from_value(output.data["filenames"].clone()).unwrap()
    }

    #[tokio::test]
    async fn patterns_match_paths_newest_first() {
        let dir = tree(&["src/b.rs", "src/deep/a.rs", "c.rs", "src/d.ts", "x/e.tsx"]);
        assert_eq!(
            found(&dir, json!({"pattern": "**/*.rs"})).await,
            ["src/b.rs", "src/deep/a.rs", "c.rs"]
        );
        assert_eq!(found(&dir, json!({"pattern": "*.rs"})).await, ["c.rs"]);
        assert_eq!(
            found(&dir, json!({"pattern": "src/*.{rs,ts}"})).await,
            ["src/b.rs", "src/d.ts"]
        );
        assert_eq!(found(&dir, json!({"pattern": "*.rs", "path": "src"})).await, ["src/b.rs"]);
        assert_eq!(found(&dir, json!({"pattern": "src/deep/"})).await, ["src/deep/a.rs"]);
        assert_eq!(found(&dir, json!({"pattern": "../x/*", "path": "src"})).await, ["x/e.tsx"]);
        let absolute = dir.path().join("src/**/*.rs");
        assert_eq!(found(&dir, json!({"pattern": absolute})).await, ["src/b.rs", "src/deep/a.rs"]);
        assert!(found(&dir, json!({"pattern": "missing/**"})).await.is_empty());
    }

    #[tokio::test]
    async fn ignored_files_are_left_out_and_hidden_ones_are_not() {
        let dir = tree(&["a.log", ".github/ci.yml", ".git/config", "b.txt", "sub/c.log"]);
        fs::write(dir.path().join(".gitignore"), "*.log\n").unwrap();
        let mut names = found(&dir, json!({"pattern": "**"})).await;
        names.sort();
        assert_eq!(names, [".github/ci.yml", ".gitignore", "b.txt"]);
    }

    #[tokio::test]
    async fn a_hundred_files_are_named_and_the_rest_is_counted() {
        let names: Vec<String> = (0..130).map(|number| format!("f{number:03}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let dir = tree(&names);
        let output = call(Glob, &context(dir.path()), json!({"pattern": "f*"})).await.unwrap();
        assert_eq!(output.data["numFiles"], 100);
        assert_eq!(output.data["truncated"], true);
        assert!(
            text(&output).starts_with("f000\nf001\n") && text(&output).contains("of 130 files")
        );
    }

    #[tokio::test]
    async fn bad_input_is_explained() {
        let dir = tree(&["file"]);
        let context = context(dir.path());
        for (input, expected) in [
            (json!({"pattern": "a[b"}), "cannot be used"),
            (json!({"pattern": ""}), "it is empty"),
            (json!({"pattern": "*", "path": "nope"}), "cannot be searched"),
            (json!({"pattern": "*", "path": "file"}), "is a file"),
        ] {
            let error = call(Glob, &context, input).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let output = call(Glob, &context, json!({"pattern": "*.none"})).await.unwrap();
        assert!(text(&output).starts_with("No files match"));
    }

    #[tokio::test]
    async fn a_cancelled_search_ends() {
        let dir = tree(&["file"]);
        let context = context(dir.path());
        context.cancel.cancel();
        let result = call(Glob, &context, json!({"pattern": "*"})).await;
        assert!(matches!(result, Err(ToolError::Cancelled { .. })));
    }

    #[tokio::test]
    async fn what_may_not_be_read_is_not_listed() {
        let dir = tree(&["src/a.rs", "secrets/key", "src/secrets/deep/b.rs", "src/c.pem"]);
        let mut context = context(dir.path());
        forbid(&mut context, |path| path.ends_with("secrets") || path.ends_with("c.pem"));
        for (pattern, expected) in [
            ("**", json!(["src/a.rs"])),
            ("*/*", json!(["src/a.rs"])),
            ("**/key", json!([])),
            ("src/c.pem", json!([])),
        ] {
            let output = call(Glob, &context, json!({"pattern": pattern})).await.unwrap();
            assert_eq!(output.data["filenames"], expected, "{pattern}");
        }
    }

    #[tokio::test]
    async fn a_link_that_was_changed_after_the_decision_is_not_searched() {
        let dir = tree(&["src/a", "secrets/key"]);
        let link = dir.path().join("link");
        symlink("src", &link).unwrap();
        for input in [json!({"pattern": "link/*"}), json!({"pattern": "*", "path": "link"})] {
            let mut context = context(dir.path());
            decide(Glob, &mut context, &input);
            let output = call(Glob, &context, input.clone()).await.unwrap();
            assert_eq!(output.data["filenames"], json!(["src/a"]));
            fs::remove_file(&link).unwrap();
            symlink("secrets", &link).unwrap();
            let error = call(Glob, &context, input).await.unwrap_err().to_string();
            assert!(error.contains("when the call was allowed"), "{error}");
            fs::remove_file(&link).unwrap();
            symlink("src", &link).unwrap();
        }
    }

    #[tokio::test]
    async fn access_is_to_the_directory_that_the_pattern_names() {
        let dir = tree(&["src/a"]);
        let context = context(dir.path());
        let input = GlobInput { pattern: "/etc/**/x".to_owned(), path: None };
        assert_eq!(Glob.access(&input, &context), Access::Read(resolve(Path::new("/etc"))));
        let input = GlobInput { pattern: "src/*".to_owned(), path: None };
        let src = resolve(&dir.path().join("src"));
        assert_eq!(Glob.access(&input, &context), Access::Read(src));
    }
}
