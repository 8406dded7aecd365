//! Contents of a worktree beside git's files: links to directories that are shared, and copies of files that git
//! ignores.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use centurion_files::Directory;
use centurion_protocol::bounded;

use crate::checkout::Checkout;
use crate::git::{Git, GitError};
use crate::names::{self, shown};

/// File that names the ignored files to copy, in the form of a `.gitignore`.
const INCLUDE: &str = ".worktreeinclude";

/// A file that is larger is not copied.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Links, copies and directories that the user wants in a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Directories that lead to those of the caller's checkout.
    pub links: Vec<String>,
    /// The only directories that are checked out; none means all.
    pub sparse: Vec<String>,
}

impl Default for Contents {
    fn default() -> Self {
        Self { links: vec!["node_modules".to_owned()], sparse: Vec::new() }
    }
}

/// Links and copies that were put into a worktree.
#[derive(Debug, Default)]
pub(crate) struct PlacedFiles {
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    pub(crate) copies: Vec<(PathBuf, String)>,
    /// Failed links and copies.
    pub(crate) warnings: Vec<String>,
}

/// Puts links and copies into a new worktree.
pub(crate) async fn put(
    git: &Git,
    from: &Checkout,
    top: &Path,
    contents: &Contents,
) -> Result<PlacedFiles, GitError> {
    let mut put = PlacedFiles::default();
    for name in &contents.links {
        link(from, top, name, &mut put);
    }
    for name in included(git, from).await? {
        let copied = copy(&from.top.join(&name), &top.join(&name));
        match copied {
            Ok(Some(digest)) => put.copies.push((name, digest)),
            // Git's own files are not touched.
            Ok(None) => {}
            Err(error) => {
                put.warnings.push(format!("{} could not be copied: {error}", shown(&name)));
            }
        }
    }
    Ok(put)
}

/// A path of a setting that stays within a checkout.
pub(crate) fn is_inner(path: &Path) -> bool {
    let mut components = path.components();
    path.components().next().is_some() && components.all(|it| matches!(it, Component::Normal(_)))
}

fn link(from: &Checkout, top: &Path, name: &str, put: &mut PlacedFiles) {
    let path = Path::new(name.trim_end_matches('/'));
    if !is_inner(path) {
        put.warnings.push(format!("`{name}` is not linked: it is no path within the checkout"));
        return;
    }
    // Another checkout may be without it: then the repository's own may have it.
    let target = [&from.top, &from.home].into_iter().map(|top| top.join(path));
    let Some(target) = target.into_iter().find(|target| target.exists()) else { return };
    match link_below(top, path, &target) {
        Ok(()) => put.links.push((path.to_owned(), target)),
        // S-296: it is not there, or git has it.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => {}
        Err(error) => put.warnings.push(format!("`{name}` could not be linked: {error}")),
    }
}

/// Makes a link below a directory, and in none that a link in it leads to.
fn link_below(top: &Path, path: &Path, target: &Path) -> io::Result<()> {
    let (above, name) = (path.parent().unwrap_or(Path::new("")), path.file_name());
    let above = Directory::open(&top.canonicalize()?)?.directory(above)?;
    symlink(target, above.at(name.unwrap_or_default()))
}

/// The files that `.worktreeinclude` names and git ignores.
async fn included(git: &Git, from: &Checkout) -> Result<Vec<PathBuf>, GitError> {
    let file = from.top.join(INCLUDE);
    if !file.is_file() {
        return Ok(Vec::new());
    }
    let named = format!("--exclude-from={}", file.display());
    let args = ["ls-files", "-z", "--others", "--ignored", &named];
    let listed = git.run_raw(from.at(), args).await?;
    if listed.is_empty() {
        return Ok(Vec::new());
    }
    let args = ["check-ignore", "-z", "--stdin"];
    let at = from.at().input(&listed);
    let ignored = git.try_run(at, args).await?;
    let inner = names::parts(&ignored.stdout).map(names::path).filter(|path| is_inner(path));
    // Other worktrees are no part of this one.
    Ok(inner.filter(|path| !path.starts_with(".claude/worktrees")).collect())
}

/// Copies a regular file, unless something is there; the digest of its content.
fn copy(from: &Path, to: &Path) -> io::Result<Option<String>> {
    if fs::symlink_metadata(to).is_ok() {
        return Ok(None);
    }
    if to.to_str().is_none() {
        return Err(io::Error::other("its name is not UTF-8, which records cannot hold"));
    }
    // A link may lead anywhere, and what it leads to is not the repository's.
    let (file, metadata) = centurion_files::open_regular(from).map_err(io::Error::other)?;
    let bytes = bounded::read_all(file, LARGEST)?;
    let mode = metadata.permissions().mode() & 0o777;
    centurion_files::create_with_mode(to, &bytes, Some(mode)).map_err(io::Error::other)?;
    Ok(Some(blake3::hash(&bytes).to_hex().to_string()))
}

/// Checks that a path of a worktree is still what we put there.
pub(crate) fn is_untouched(
    top: &Path,
    path: &Path,
    links: &[(PathBuf, PathBuf)],
    copies: &[(PathBuf, String)],
) -> bool {
    let path = path.to_str().map_or(path, |text| Path::new(text.trim_end_matches('/')));
    let at = top.join(path);
    // Git names an ignored directory, and not what is in it.
    if fs::symlink_metadata(&at).is_ok_and(|metadata| metadata.is_dir()) {
        let Ok(entries) = fs::read_dir(&at) else { return false };
        return entries.into_iter().all(|entry| {
            entry.is_ok_and(|it| is_untouched(top, &path.join(it.file_name()), links, copies))
        });
    }
    if let Some((_, target)) = links.iter().find(|(link, _)| link == path) {
        return fs::read_link(&at).is_ok_and(|leads| leads == *target);
    }
    let digest = |path: &Path| {
        let (mut file, _) = centurion_files::open_regular(path).ok()?;
        let mut hasher = blake3::Hasher::new();
        io::copy(&mut file, &mut hasher).ok()?;
        Some(hasher.finalize().to_hex().to_string())
    };
    copies.iter().any(|(copy, was)| copy == path && digest(&at).as_ref() == Some(was))
}
