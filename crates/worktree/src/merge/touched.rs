//! The files that differ between two commits, and what a checkout between the two has of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use centurion_protocol::bounded;

use crate::checkout::Checkout;
use crate::git::{At, Git, GitError};
use crate::names::{self, shown};

/// Larger files are not compared byte by byte.
const LARGEST: u64 = 64 * 1024 * 1024;

const LINK: &str = "120000";
const REPOSITORY: &str = "160000";
const EXECUTABLE: &str = "100755";

/// A file as a commit or an index has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileVersion {
    pub(crate) mode: String,
    pub(crate) id: String,
}

/// A file that differs between two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TouchedFile {
    pub(crate) path: PathBuf,
    pub(crate) before: Option<FileVersion>,
    pub(crate) after: Option<FileVersion>,
}

impl TouchedFile {
    /// Set for a repository within this one, whose files git leaves alone here.
    pub(crate) fn is_repository(&self) -> bool {
        self.sides().any(|side| side.mode == REPOSITORY)
    }

    fn sides(&self) -> impl Iterator<Item = &FileVersion> {
        self.before.iter().chain(&self.after)
    }
}

/// Of which commit something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Before,
    After,
    /// Of neither: another hand made it.
    Neither,
}

/// State of a path on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDisk {
    Is(Of),
    /// A part of one of the two, or nothing where both have a file: git was writing it.
    Torn,
    /// It is not checked out here, in either.
    LeftOut,
}

/// State of a file in a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckoutFile {
    pub(crate) file: TouchedFile,
    pub(crate) staged: Of,
    pub(crate) on_disk: OnDisk,
}

impl CheckoutFile {
    /// The file is as it was before.
    pub(crate) fn is_before(&self) -> bool {
        self.staged == Of::Before
            && matches!(self.on_disk, OnDisk::Is(Of::Before) | OnDisk::LeftOut)
    }
}

/// The files that differ between two commits.
pub(crate) async fn touched(
    git: &Git,
    into: &Checkout,
    (from, to): (&str, &str),
) -> Result<Vec<TouchedFile>, GitError> {
    let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to];
    let said = git.run_raw(At::git_dir(&into.git_dir), args).await?;
    let entries = raw(&said).into_iter();
    Ok(entries.map(|(path, before, after)| TouchedFile { path, before, after }).collect())
}

/// The entries of a raw difference: a path, and what it is on each side.
fn raw(said: &[u8]) -> Vec<(PathBuf, Option<FileVersion>, Option<FileVersion>)> {
    let mut parts = names::parts(said);
    let mut entries = Vec::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        let head = String::from_utf8_lossy(head);
        let mut words = head.trim_start_matches(':').split(' ').map(str::to_owned);
        let mut next = || words.next().unwrap_or_default();
        let (old, new, before, after) = (next(), next(), next(), next());
        let side = |mode: String, id: String| {
            (mode.bytes().any(|byte| byte != b'0')).then_some(FileVersion { mode, id })
        };
        entries.push((names::path(path), side(old, before), side(new, after)));
    }
    entries
}

/// States of such files in a checkout.
pub(crate) async fn look(
    git: &Git,
    into: &Checkout,
    from: &str,
    files: Vec<TouchedFile>,
) -> Result<Vec<CheckoutFile>, GitError> {
    let at = || into.at();
    let args = ["diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", from];
    let staged = git.run_raw(at(), args).await?;
    let staged: BTreeMap<PathBuf, Option<FileVersion>> =
        raw(&staged).into_iter().map(|(path, _, now)| (path, now)).collect();
    let left_out = left_out(git, into, &files).await?;
    let hashes = hashes(git, into, &files).await?;
    let mut seen = Vec::with_capacity(files.len());
    for file in files {
        let staged = match staged.get(&file.path) {
            None => Of::Before,
            Some(now) if *now == file.after => Of::After,
            Some(_) => Of::Neither,
        };
        let on_disk = if left_out.contains(&file.path) || file.is_repository() {
            OnDisk::LeftOut
        } else {
            on_disk(git, into, &file, hashes.get(&file.path)).await?
        };
        seen.push(CheckoutFile { file, staged, on_disk });
    }
    Ok(seen)
}

/// The files that are not checked out here, since people want some directories only.
async fn left_out(
    git: &Git,
    into: &Checkout,
    files: &[TouchedFile],
) -> Result<BTreeSet<PathBuf>, GitError> {
    if !into.git_dir.join("info/sparse-checkout").is_file() {
        return Ok(BTreeSet::new());
    }
    let at = || into.at();
    let listed = git.run_raw(at(), ["ls-files", "-t", "-z"]).await?;
    let marked = names::parts(&listed).filter_map(|entry| entry.strip_prefix(b"S "));
    let mut left_out: BTreeSet<PathBuf> = marked.map(names::path).collect();
    // The index has no mark for those that it does not have. An older git cannot be asked for them.
    let is_missing = |path: &&PathBuf| fs::symlink_metadata(into.top.join(path)).is_err();
    let missing: Vec<&PathBuf> = files.iter().map(|it| &it.path).filter(is_missing).collect();
    let input = names::joined(missing.iter().copied());
    let args = ["sparse-checkout", "check-rules", "-z"];
    let output = git.try_run(at().input(&input), args).await?;
    if output.code == Some(0) {
        let wanted: BTreeSet<PathBuf> = names::parts(&output.stdout).map(names::path).collect();
        left_out.extend(missing.into_iter().filter(|path| !wanted.contains(*path)).cloned());
    }
    Ok(left_out)
}

/// The ids that git would give to the regular files among these.
async fn hashes(
    git: &Git,
    into: &Checkout,
    files: &[TouchedFile],
) -> Result<BTreeMap<PathBuf, String>, GitError> {
    let is_regular = |path: &&PathBuf| centurion_files::open_regular(&into.top.join(path)).is_ok();
    let paths: Vec<&PathBuf> = files.iter().map(|file| &file.path).filter(is_regular).collect();
    if paths.is_empty() {
        return Ok(BTreeMap::new());
    }
    let input: String = paths.iter().flat_map(|path| [shown(path), "\n".to_owned()]).collect();
    let at = into.at().input(input.as_bytes());
    let said = git.run(at, ["hash-object", "--stdin-paths"]).await?;
    Ok(paths.into_iter().cloned().zip(said.lines().map(str::to_owned)).collect())
}

async fn on_disk(
    git: &Git,
    into: &Checkout,
    file: &TouchedFile,
    hash: Option<&String>,
) -> Result<OnDisk, GitError> {
    let path = into.top.join(&file.path);
    let metadata = match fs::symlink_metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => return Ok(absent(file)),
        Err(error) => return Err(error.into()),
    };
    // One of the two has files below this path.
    if metadata.is_dir() {
        return Ok(absent(file));
    }
    if metadata.is_symlink() {
        let target = fs::read_link(&path)?;
        for (side, of) in [(&file.before, Of::Before), (&file.after, Of::After)] {
            if let Some(side) = side.as_ref().filter(|side| side.mode == LINK)
                && git.run_raw(At::git_dir(&into.git_dir), ["cat-file", "blob", &side.id]).await?
                    == target.as_os_str().as_bytes()
            {
                return Ok(OnDisk::Is(of));
            }
        }
        return Ok(OnDisk::Is(Of::Neither));
    }
    // A file that cannot be opened without a link on the way is not what git put there.
    let Some(hash) = hash else { return Ok(OnDisk::Is(Of::Neither)) };
    let is_executable = metadata.permissions().mode() & 0o100 != 0;
    let has = |side: &Option<FileVersion>| {
        side.as_ref().is_some_and(|it| it.mode != LINK && it.id == *hash)
    };
    let has_mode = |side: &Option<FileVersion>| {
        side.as_ref().is_some_and(|it| (it.mode == EXECUTABLE) == is_executable)
    };
    match (has(&file.before), has(&file.after)) {
        // Only its mode differs.
        (true, true) if has_mode(&file.after) => Ok(OnDisk::Is(Of::After)),
        (true, _) => Ok(OnDisk::Is(Of::Before)),
        (false, true) => Ok(OnDisk::Is(Of::After)),
        (false, false) if is_part(git, into, file).await? => Ok(OnDisk::Torn),
        (false, false) => Ok(OnDisk::Is(Of::Neither)),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Turns the absence of a file into `None`.
fn absent(file: &TouchedFile) -> OnDisk {
    match (&file.before, &file.after) {
        (_, None) => OnDisk::Is(Of::After),
        (None, _) => OnDisk::Is(Of::Before),
        _ => OnDisk::Torn,
    }
}

/// Checks that a file is the beginning of its content in one of the commits: nothing is in it that is not in git.
async fn is_part(git: &Git, into: &Checkout, file: &TouchedFile) -> Result<bool, GitError> {
    let Ok(bytes) = content(&into.top.join(&file.path)) else { return Ok(false) };
    for side in file.sides().filter(|side| side.mode != LINK) {
        // As git writes it, which may be another text than the one that it keeps.
        let mut path = OsString::from("--path=");
        path.push(&file.path);
        let args = [OsStr::new("cat-file"), OsStr::new("--filters"), &path, OsStr::new(&side.id)];
        let output = git.try_run(into.at(), args).await?;
        if output.code == Some(0) && output.stdout.starts_with(&bytes) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The content of a regular file of a checkout.
pub(crate) fn content(path: &Path) -> io::Result<Vec<u8>> {
    let (file, _) = centurion_files::open_regular(path).map_err(io::Error::other)?;
    bounded::read_all(file, LARGEST)
}
