//! The repository of one agent: its refs, objects, index and logs are its own, and what was there before is read from the
//! repository that it belongs to.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use centurion_files::private;
use centurion_protocol::bounded;

use crate::checkout::Checkout;
use crate::files::{LONG, SHORT, read_text};
use crate::git::{At, Git, GitError};
use crate::place;
use crate::record::{Kept, Record};
use crate::refs::all_refs;

/// The most names that are tried for a file beside another.
const MOST_NAMES: usize = 100;

/// Files that must stay as they were made: git carries out whatever these say.
const FIXED: [&str; 4] = ["config", "config.worktree", "commondir", "objects/info/alternates"];

/// The private repository of a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateRepository {
    path: PathBuf,
    common: PathBuf,
}

impl PrivateRepository {
    /// The one at a git directory, if that is one.
    pub(crate) fn at(git_dir: &Path) -> Option<Self> {
        let (_, common) = Kept::around(git_dir)?;
        Some(Self { path: git_dir.to_owned(), common })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The git directory of the repository that it belongs to.
    pub(crate) fn common(&self) -> &Path {
        &self.common
    }

    /// The paths in it that must stay as they are while an agent works.
    pub fn fixed(&self) -> Vec<PathBuf> {
        let mut fixed: Vec<PathBuf> = FIXED.iter().map(|name| self.path.join(name)).collect();
        // A directory, which may be missing.
        fixed.push(self.path.join("hooks/"));
        fixed
    }
}

/// The refs that an agent is not told of: those of one worktree, and ours.
const LEFT_OUT: [&str; 5] =
    ["refs/stash", "refs/centurion/", "refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// Makes the private repository, with the refs that the caller sees.
pub(crate) async fn make(
    git: &Git,
    from: &Checkout,
    kept: &Kept,
    record: &Record,
    sparse: &[String],
) -> Result<(), GitError> {
    let path = kept.private_repository();
    for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "logs"] {
        private::create_directory(&path.join(directory))?;
    }
    let write = |name: &str, text: &str| private::write(&path.join(name), text.as_bytes());
    write("HEAD", &format!("ref: refs/heads/{}\n", record.branch))?;
    write("objects/info/alternates", &format!("{}\n", from.common.join("objects").display()))?;
    for shared in ["info/exclude", "info/attributes", "shallow"] {
        match bounded::read_file(&from.common.join(shared), LONG) {
            Ok(bytes) => private::write(&path.join(shared), &bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    if !sparse.is_empty() {
        write("info/sparse-checkout", &sparse_patterns(sparse))?;
    }
    let format = format_settings(git, &from.common).await?;
    write("config", &config(from, record, &format, !sparse.is_empty()))?;
    let refs = refs(git, &from.git_dir, &record.branch, &record.base).await?;
    write("packed-refs", &refs)?;
    private::write(&kept.refs(), refs.as_bytes())?;
    Ok(())
}

/// All refs of a repository.
pub(crate) async fn listed_refs(git: &Git, at: At<'_>) -> Result<String, GitError> {
    git.run(at, ["for-each-ref", "--format=%(refname) %(objectname)"]).await
}

/// The refs of a repository, and one branch, in the form of a `packed-refs` file.
pub(crate) async fn refs(
    git: &Git,
    git_dir: &Path,
    branch: &str,
    tip: &str,
) -> Result<String, GitError> {
    let all = if let Some(all) = all_refs(git_dir) {
        all
    } else {
        let listed = listed_refs(git, At::git_dir(git_dir)).await?;
        let parted = listed.lines().filter_map(|line| line.split_once(' '));
        parted.map(|(name, id)| (name.to_owned(), id.to_owned())).collect()
    };
    let own = format!("refs/heads/{branch}");
    let below = format!("{own}/");
    let is_other = |name: &str| {
        // Git cannot have both.
        name != own && !name.starts_with(&below) && !LEFT_OUT.iter().any(|it| name.starts_with(it))
    };
    let parted = all.iter().map(|(name, id)| (name.as_str(), id.as_str()));
    let mut refs: Vec<(&str, &str)> = parted.filter(|(name, _)| is_other(name)).collect();
    refs.push((&own, tip));
    refs.sort_unstable();
    let lines = refs.iter().map(|(name, id)| format!("{id} {name}\n"));
    Ok(std::iter::once("# pack-refs with: sorted \n".to_owned()).chain(lines).collect())
}

/// The settings of the object store; git reads them from the repository's own file alone.
async fn format_settings(git: &Git, common: &Path) -> Result<String, GitError> {
    let file = common.join("config");
    let text = bounded::read_text_file(&file, LONG).unwrap_or_default().to_lowercase();
    let mut format = "[core]\n\trepositoryformatversion = 0\n".to_owned();
    if !text.contains("extensions") {
        return Ok(format);
    }
    let file = file.display().to_string();
    let args = ["config", "--file", &file, "--get-regexp", r"^extensions\."];
    let output = git.try_run(At::git_dir(common), args).await?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, "true"));
        if matches!(name, "extensions.objectformat" | "extensions.partialclone") {
            let name = name.trim_start_matches("extensions.");
            format = format.replace("version = 0", "version = 1");
            format = [&format, "[extensions]\n\t", name, " = ", &quoted(value), "\n"].concat();
        }
    }
    Ok(format)
}

/// The configuration: the repository's, but for what says where the files and hooks are.
fn config(from: &Checkout, record: &Record, format: &str, is_sparse: bool) -> String {
    let path = |path: PathBuf| quoted(&path.display().to_string());
    format!(
        "{format}[core]\n\thooksPath = {hooks}\n[include]\n\tpath = {shared}\n[core]\n\tbare = false\n\tworktree = {tree}\n\
         \tlogAllRefUpdates = true\n\tsparseCheckout = {is_sparse}\n\tsparseCheckoutCone = true\n[gc]\n\tauto = 0\n\
         [maintenance]\n\tauto = false\n[branch]\n\tautoSetupMerge = false\n",
        hooks = path(from.common.join("hooks")),
        shared = path(from.common.join("config")),
        tree = path(record.path.clone()),
    )
}

/// A value as a file of git's configuration has it.
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// The patterns by which git checks out some directories, and the files at the top.
fn sparse_patterns(directories: &[String]) -> String {
    let mut patterns = vec!["/*".to_owned(), "!/*/".to_owned()];
    for directory in directories {
        let directory = directory.trim_matches('/');
        let mut above = String::new();
        for name in directory.split('/') {
            if !above.is_empty() {
                let shown = format!("/{above}/");
                if !patterns.contains(&shown) {
                    patterns.push(shown);
                    patterns.push(format!("!/{above}/*/"));
                }
                above.push('/');
            }
            above.push_str(name);
        }
        patterns.push(format!("/{directory}/"));
    }
    patterns.push(String::new());
    patterns.join("\n")
}

/// The first entry of a private repository that is neither a file nor a directory. Git would write through links, and wait for pipes.
pub(crate) fn first_odd(repository: &Path) -> Option<PathBuf> {
    let is_plain = |path: &Path| match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.is_file() || metadata.is_dir(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    let mut directories = vec![repository.to_owned()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { return Some(directory) };
        for entry in entries {
            let Ok(path) = entry.map(|entry| entry.path()) else { return Some(directory) };
            if !is_plain(&path) {
                return Some(path);
            }
            if path.is_dir() {
                directories.push(path);
            }
        }
    }
    None
}

/// Lets the checkout's git use one git directory.
pub(crate) fn point(work_tree: &Path, git_dir: &Path) -> io::Result<()> {
    let opened = place::open(work_tree)?;
    // In one step, and not through a link: what is there may be what an agent put there.
    for number in 0..MOST_NAMES {
        let name = format!(".git.centurion-{number}");
        let new = opened.at(&name);
        // One of a process that died.
        if let Ok((file, _)) = opened.regular_file(Path::new(&name))
            && bounded::read_all(file, SHORT).is_ok_and(|text| text.starts_with(b"gitdir: "))
        {
            fs::remove_file(&new)?;
        }
        let mut written = match File::create_new(&new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            written => written?,
        };
        written.write_all(format!("gitdir: {}\n", git_dir.display()).as_bytes())?;
        return fs::rename(&new, opened.at(".git"));
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The target of the checkout's `.git` file.
pub(crate) fn pointed(work_tree: &Path) -> Option<PathBuf> {
    let text = read_text(&work_tree.join(".git"), SHORT).ok()?;
    Some(PathBuf::from(text.strip_prefix("gitdir:")?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_configuration_are_quoted() {
        assert_eq!(quoted("/a b"), "\"/a b\"");
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\nd\"");
    }

    #[test]
    fn directories_are_checked_out_with_what_is_above_them() {
        let patterns = sparse_patterns(&["a/b/c".to_owned(), "/a/d/".to_owned(), "e".to_owned()]);
        assert_eq!(patterns, "/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n!/a/b/*/\n/a/b/c/\n/a/d/\n/e/\n");
    }
}
