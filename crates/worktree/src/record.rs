//! The record of a worktree, and the lease of the process that uses it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use centurion_files::private;
use centurion_protocol::bounded;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::checkout::{Checkout, WORKTREES};
use crate::files;
use crate::git::At;
use crate::names::shown;
use crate::slug::Slug;

/// The directory of everything that is kept here, in a repository's git directory.
const KEPT: &str = "centurion/worktrees";
const RECORD: &str = "record.json";
const LEASE: &str = "lease";

/// Larger is no record.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Owner of a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The agent's id; of a session's own worktree, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The agent's task, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Stage in the life of a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Stage {
    /// It is being made: nothing has been done in it yet.
    Making,
    /// It may be worked in.
    Ready,
    /// Nothing was done in it, and it is being removed.
    Removing,
}

/// Facts about a worktree, noted when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub slug: Slug,
    /// Its top directory.
    pub path: PathBuf,
    pub branch: String,
    /// The commit that it began at.
    pub base: String,
    /// The checkout that it was made for, and its branch then.
    pub caller: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_branch: Option<String>,
    #[serde(flatten)]
    pub owner: Owner,
    /// Seconds since 1970.
    pub made: u64,
    pub(crate) stage: Stage,
    /// Set where it has a private repository while its agent works.
    pub(crate) is_private: bool,
    /// Set while the private repository is in use: its history is not in the repository yet.
    #[serde(default)]
    pub(crate) is_out: bool,
    /// The directories of its submodules, which are empty.
    #[serde(default)]
    pub(crate) submodules: Vec<PathBuf>,
    /// Links and copies, with digests, that were put into it beside git's files.
    #[serde(default)]
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    #[serde(default)]
    pub(crate) copies: Vec<(PathBuf, String)>,
    /// Last known commit of the branch in the repository.
    #[serde(default)]
    pub(crate) tip: String,
    /// The git directory that the repository has for it.
    #[serde(default)]
    pub(crate) admin: PathBuf,
}

impl Record {
    /// That of an ordinary worktree which is being brought back.
    pub(crate) fn restored(
        slug: Slug,
        path: PathBuf,
        tip: &str,
        agent: &str,
        from: &Checkout,
    ) -> Self {
        Self {
            branch: slug.branch(),
            slug,
            path,
            base: tip.to_owned(),
            caller: from.top.clone(),
            caller_branch: from.branch.clone(),
            owner: Owner { agent: is_word(agent).then(|| agent.to_owned()), ..Owner::default() },
            made: now(),
            stage: Stage::Making,
            is_private: false,
            is_out: false,
            submodules: Vec::new(),
            links: Vec::new(),
            copies: Vec::new(),
            tip: tip.to_owned(),
            admin: PathBuf::new(),
        }
    }

    /// The last known commit of its branch in the repository.
    pub(crate) fn known_tip(&self) -> &str {
        if self.tip.is_empty() { &self.base } else { &self.tip }
    }

    /// Git's place in the worktree while it is an ordinary one, whatever its `.git` file says.
    pub(crate) fn at_home(&self) -> At<'_> {
        At::git_dir(&self.admin).work_tree(&self.path)
    }

    /// Prefix of the refs that hold its agent's work in the repository.
    pub fn saved_refs(&self) -> String {
        let key = self.owner.agent.as_deref().unwrap_or(self.slug.as_str());
        format!("refs/centurion/agents/{key}")
    }
}

/// The directory of one worktree's record, lease and private repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept(PathBuf);

impl Kept {
    pub(crate) fn of(common: &Path, slug: &Slug) -> Self {
        Self(common.join(KEPT).join(slug.as_str()))
    }

    /// All that there are in a repository, in the order of their names.
    pub(crate) fn all(common: &Path) -> io::Result<Vec<Self>> {
        let directory = common.join(KEPT);
        check_way(&directory)?;
        let entries = match std::fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found: Vec<Self> = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                found.push(Self(entry.path()));
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// The git directory of the repository, from that of a private one.
    pub(crate) fn around(private: &Path) -> Option<(Self, PathBuf)> {
        let kept = private.parent()?;
        let common = kept.ancestors().nth(3)?;
        (kept.parent()? == common.join(KEPT)).then(|| (Self(kept.to_owned()), common.to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Takes the name. Fails where it is taken.
    pub(crate) fn reserve(&self) -> io::Result<()> {
        check_way(&self.0)?;
        if let Some(above) = self.0.parent() {
            private::create_directory(above)?;
        }
        std::fs::create_dir(&self.0)
    }

    /// Gives the name back, if nothing is kept under it; whether that is so.
    pub(crate) fn free(&self) -> bool {
        let freed = check_way(&self.0).and_then(|()| self.remove_empty());
        if let Err(error) = &freed {
            tracing::debug!(%error, path = %self.0.display(), "the name of a worktree stays taken");
        }
        freed.is_ok()
    }

    /// Removes the directory, in which there is no record: a lease, and records that were never whole, are nothing.
    fn remove_empty(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_unfinished = name.starts_with(RECORD) && name.ends_with(".new");
            if entry.file_type()?.is_file() && (name == LEASE || is_unfinished) {
                std::fs::remove_file(entry.path())?;
            }
        }
        std::fs::remove_dir(&self.0)
    }

    /// Deletes all that is kept, and gives the name back. The record goes last: it says that the rest is to go.
    pub(crate) fn delete(&self) -> io::Result<()> {
        check_way(&self.0)?;
        for entry in std::fs::read_dir(&self.0)? {
            let entry = entry?;
            let is_last = [RECORD, LEASE].iter().any(|name| entry.file_name() == *name);
            if entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())?;
            } else if !is_last {
                std::fs::remove_file(entry.path())?;
            }
        }
        files::remove_if_there(&self.0.join(RECORD))?;
        self.remove_empty()
    }

    pub(crate) fn private_repository(&self) -> PathBuf {
        self.0.join("git")
    }

    /// The repository's former directory for the worktree, until the rest of this is deleted.
    pub(crate) fn removed_admin(&self) -> PathBuf {
        self.0.join("removed")
    }

    /// The repository's directory for the worktree, before it is moved to its place.
    pub(crate) fn new_admin(&self) -> PathBuf {
        self.0.join("new")
    }

    /// The directory of the worktree until it is whole.
    pub(crate) fn building(&self) -> PathBuf {
        self.0.join("building")
    }

    /// The index as it was when the worktree was made.
    pub(crate) fn index(&self) -> PathBuf {
        self.0.join("index")
    }

    /// The refs that the private repository began with.
    pub(crate) fn refs(&self) -> PathBuf {
        self.0.join("refs")
    }

    pub(crate) fn record(&self) -> io::Result<Record> {
        check_way(&self.0)?;
        let path = self.0.join(RECORD);
        path.symlink_metadata()?;
        let text = files::read(&path, LARGEST)?;
        let record: Record = serde_json::from_slice(&text)?;
        self.check(&record).map(|()| record)
    }

    /// Checks that a record is about a worktree at its place: a stranger may have written into a git directory.
    fn check(&self, record: &Record) -> io::Result<()> {
        let common = self.0.ancestors().nth(3);
        let admins = common.map(|common| common.join("worktrees"));
        let place = Path::new(WORKTREES).join(record.slug.as_str());
        let is_here = self.0.file_name().is_some_and(|name| name == record.slug.as_str())
            && record.path.is_absolute()
            && record.path.ends_with(place)
            && !record.path.components().any(|it| it == Component::ParentDir)
            && record.branch == record.slug.branch()
            && !record.admin.is_symlink()
            && (record.admin.as_os_str().is_empty() || record.admin.parent() == admins.as_deref());
        if !is_here {
            return Err(io::Error::other("it speaks of another place"));
        }
        // These become words of git's command lines and names of refs.
        let is_plain = is_commit(&record.base)
            && (record.tip.is_empty() || is_commit(&record.tip))
            && record.owner.agent.as_deref().is_none_or(is_word);
        if is_plain { Ok(()) } else { Err(io::Error::other("it does not say what it should")) }
    }

    pub(crate) fn write(&self, record: &Record) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(record)?;
        text.push(b'\n');
        private::replace(&self.0.join(RECORD), &text)
    }

    /// Takes the lease, unless another process has it.
    pub(crate) fn lease(&self) -> io::Result<Option<Lease>> {
        check_way(&self.0)?;
        let mut options = File::options();
        let path = self.0.join(LEASE);
        // A pipe would be waited for.
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(io::Error::other(format!("{} is no file: remove it", shown(&path))));
        }
        let mut file = private::open(options.read(true).write(true).create(true), &path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Some(Lease { _file: file }))
    }

    /// The process that has the lease, if one has.
    pub(crate) fn holder(&self) -> Option<String> {
        let (file, _) = centurion_files::open_regular(&self.0.join(LEASE)).ok()?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let text = bounded::read_all(file, LARGEST).ok()?;
                Some(String::from_utf8_lossy(&text).trim().to_owned())
            }
            _ => None,
        }
    }
}

/// Checks that a text is the id of a commit, and nothing else to git.
pub(crate) fn is_commit(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Checks that a text can be part of a ref's name, and leads nowhere else.
pub(crate) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
}

/// Makes sure that our own directories are directories: a link in their place would lead us elsewhere.
pub(crate) fn check_way(directory: &Path) -> io::Result<()> {
    // Down to what the repository itself is in.
    let own = directory.ancestors().take_while(|it| !it.ends_with("centurion"));
    let outermost = directory.ancestors().find(|it| it.ends_with("centurion"));
    for path in own.chain(outermost) {
        match path.symlink_metadata() {
            Ok(metadata) if !metadata.is_dir() => {
                return Err(io::Error::other(format!("{} is no directory", path.display())));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// A worktree is in use as long as this is held, which a process cannot do beyond its end.
#[derive(Debug)]
pub struct Lease {
    _file: File,
}
