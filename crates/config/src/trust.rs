//! Which folders a person trusts: what their repositories bring may then count.
//!
//! The answers are kept in one file of ours. What another program asked about the same folders is
//! read and never written. Trust in the home directory is kept for one run only: too much lies below.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::files::{self, FileError};
use crate::paths::main_checkout;
use crate::settings::Standing;

/// The other program keeps histories in its file too.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The folder that trust is about: a repository as a whole, or a directory that is in none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrustKey(PathBuf);

impl TrustKey {
    /// The key for a directory: the real path of the checkout around it, which for a worktree is the
    /// main one, or its own.
    pub fn of(directory: &Path) -> Self {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        Self(main_checkout(&directory).unwrap_or(directory))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Where the answers are kept.
#[derive(Clone, Debug, Default)]
pub struct TrustSources {
    /// Our own file, [`Dirs::trust_file`](crate::paths::Dirs::trust_file).
    pub store: PathBuf,
    /// Another program's `.claude.json`.
    pub other: Option<PathBuf>,
    pub home: Option<PathBuf>,
}

/// Whether a folder is trusted, and who said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustState {
    Trusted(TrustedBy),
    /// A folder above it is trusted.
    Parent(PathBuf),
    Untrusted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedBy {
    /// An answer that is kept.
    Store,
    /// An answer for this run.
    ThisRun,
    /// An answer to another program.
    Other,
}

impl TrustState {
    /// What the folder's repository has been given.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Trusted(_) => Standing::Full,
            Self::Parent(_) => Standing::Partly,
            Self::Untrusted => Standing::Untrusted,
        }
    }
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Stored,
    /// It is about the home directory, or one around it.
    ThisRunOnly,
}

#[derive(Debug, Error)]
#[error("{}{}: {error}", file.display(), error.line().map(|line| format!(":{line}")).unwrap_or_default())]
pub struct TrustError {
    file: PathBuf,
    error: FileError,
}

/// The answers about all folders.
#[derive(Debug)]
pub struct Trust {
    sources: TrustSources,
    stored: Store,
    /// What another program was told.
    others: HashSet<PathBuf>,
    this_run: HashSet<PathBuf>,
}

/// The file. Fields of a later version are kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Store {
    #[serde(default)]
    folders: BTreeMap<PathBuf, Folder>,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Folder {
    trusted: bool,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

impl Trust {
    /// Reads the answers. A file of ours that cannot be read is an error, for a revoked trust may be in
    /// it; another program's counts as empty.
    pub fn open(sources: TrustSources) -> Result<Self, TrustError> {
        let stored = read_store(&sources.store)?;
        let others = sources.other.as_deref().map(read_other).unwrap_or_default();
        let home = sources.home.as_deref().map(|it| it.canonicalize().unwrap_or(it.to_owned()));
        let sources = TrustSources { home, ..sources };
        Ok(Self { sources, stored, others, this_run: HashSet::new() })
    }

    /// Whether a folder is trusted. The nearest answer counts, and a no is final for its folder.
    pub fn state(&self, key: &TrustKey) -> TrustState {
        let path = key.path();
        match self.answer(path) {
            Some(Ok(by)) => return TrustState::Trusted(by),
            Some(Err(Refused)) => return TrustState::Untrusted,
            None => {}
        }
        for parent in path.ancestors().skip(1) {
            match self.answer(parent) {
                Some(Ok(_)) => return TrustState::Parent(parent.to_owned()),
                Some(Err(Refused)) => return TrustState::Untrusted,
                None => {}
            }
        }
        TrustState::Untrusted
    }

    fn answer(&self, path: &Path) -> Option<Result<TrustedBy, Refused>> {
        if self.this_run.contains(path) {
            return Some(Ok(TrustedBy::ThisRun));
        }
        if self.is_around_home(path) {
            return None;
        }
        match self.stored.folders.get(path) {
            Some(folder) if folder.trusted => Some(Ok(TrustedBy::Store)),
            Some(_) => Some(Err(Refused)),
            None => self.others.contains(path).then_some(Ok(TrustedBy::Other)),
        }
    }

    fn is_around_home(&self, path: &Path) -> bool {
        self.sources.home.as_ref().is_some_and(|home| home.starts_with(path))
    }

    /// Trusts a folder from now on.
    pub fn grant(&mut self, key: &TrustKey) -> Result<Kept, TrustError> {
        if self.is_around_home(key.path()) {
            self.this_run.insert(key.path().to_owned());
            return Ok(Kept::ThisRunOnly);
        }
        self.store(key, true)?;
        Ok(Kept::Stored)
    }

    /// Trusts a folder no longer, whatever another program was told.
    pub fn revoke(&mut self, key: &TrustKey) -> Result<(), TrustError> {
        self.this_run.remove(key.path());
        if self.is_around_home(key.path()) { Ok(()) } else { self.store(key, false) }
    }

    /// All folders that are trusted, in order.
    pub fn list(&self) -> Vec<(&Path, TrustedBy)> {
        let stored = self.stored.folders.keys();
        let mut folders: Vec<&PathBuf> = stored.chain(&self.others).chain(&self.this_run).collect();
        folders.sort();
        folders.dedup();
        let trusted = |path: &'_ Path| self.answer(path).and_then(Result::ok);
        folders.into_iter().filter_map(|path| Some((path.as_path(), trusted(path)?))).collect()
    }

    fn store(&mut self, key: &TrustKey, trusted: bool) -> Result<(), TrustError> {
        let file = &self.sources.store;
        let failed = |error| TrustError { file: file.clone(), error };
        let _guard =
            files::lock_directory(file.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        // Another run may have written meanwhile.
        let mut store = read_store(file)?;
        let folder = Folder { trusted, rest: serde_json::Map::new() };
        store.folders.entry(key.path().to_owned()).or_insert(folder).trusted = trusted;
        let text = serde_json::to_string_pretty(&store)
            .map_err(|error| failed(FileError::Unwritable(error.into())))?;
        files::replace(file, &(text + "\n")).map_err(failed)?;
        self.stored = store;
        Ok(())
    }
}

/// A folder that is expressly not trusted.
struct Refused;

fn read_store(file: &Path) -> Result<Store, TrustError> {
    let failed = |error| TrustError { file: file.to_owned(), error };
    let Some(text) = files::read(file, LARGEST).1.map_err(failed)? else {
        return Ok(Store::default());
    };
    serde_json::from_str(&text).map_err(|error| {
        let reason = error.to_string();
        failed(FileError::Broken { line: error.line(), column: error.column(), reason })
    })
}

/// The folders that another program was told to trust.
fn read_other(file: &Path) -> HashSet<PathBuf> {
    #[derive(Default, Deserialize)]
    struct Other {
        #[serde(default)]
        projects: BTreeMap<PathBuf, Project>,
    }
    #[derive(Deserialize)]
    struct Project {
        #[serde(default, rename = "hasTrustDialogAccepted")]
        accepted: Value,
    }
    let text = match files::read(file, LARGEST).1 {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => {
            tracing::debug!(file = %file.display(), %error, "no trust is taken over");
            return HashSet::new();
        }
    };
    let other: Other = serde_json::from_str(&text).unwrap_or_default();
    let accepted = other.projects.into_iter().filter(|(_, it)| it.accepted == Value::Bool(true));
    accepted.map(|(path, _)| path).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(machine.path("home/repo/.git/worktrees/wt")).unwrap();
            fs::create_dir_all(machine.path("home/repo/src")).unwrap();
            fs::create_dir_all(machine.path("home/wt")).unwrap();
            fs::create_dir_all(machine.path("home/plain/sub")).unwrap();
            machine
        }

        fn path(&self, relative: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(relative)
        }

        fn key(&self, relative: &str) -> TrustKey {
            TrustKey::of(&self.path(relative))
        }

        fn open(&self) -> Trust {
            Trust::open(TrustSources {
                store: self.path("home/.centurion/trust.json"),
                other: Some(self.path("home/.claude.json")),
                home: Some(self.path("home")),
            })
            .unwrap()
        }
    }

    #[test]
    fn an_answer_is_kept_for_the_whole_repository() {
        let machine = Machine::new();
        let mut trust = machine.open();
        let key = machine.key("home/repo/src");
        assert_eq!(key.path(), machine.path("home/repo"));
        assert_eq!(trust.state(&key), TrustState::Untrusted);
        assert_eq!(trust.grant(&key).unwrap(), Kept::Stored);
        let trusted = TrustState::Trusted(TrustedBy::Store);
        assert_eq!((trust.state(&key), machine.open().state(&key)), (trusted.clone(), trusted));
        let file = machine.path("home/.centurion/trust.json");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(trust.list(), [(key.path(), TrustedBy::Store)]);
        trust.revoke(&key).unwrap();
        assert_eq!(machine.open().state(&key), TrustState::Untrusted);
        assert_eq!(machine.open().list(), []);
    }

    #[test]
    fn a_folder_below_a_trusted_one_is_partly_trusted() {
        let machine = Machine::new();
        let mut trust = machine.open();
        trust.grant(&machine.key("home/plain")).unwrap();
        let below = trust.state(&machine.key("home/plain/sub"));
        assert_eq!(below, TrustState::Parent(machine.path("home/plain")));
        assert_eq!(below.standing(), Standing::Partly);
        trust.revoke(&machine.key("home/plain/sub")).unwrap();
        assert_eq!(trust.state(&machine.key("home/plain/sub")), TrustState::Untrusted);
    }

    #[test]
    fn the_home_directory_is_trusted_for_one_run() {
        let machine = Machine::new();
        let json = format!(
            r#"{{"projects": {{"{}": {{"hasTrustDialogAccepted": true}}}}}}"#,
            machine.path("home").display()
        );
        fs::write(machine.path("home/.claude.json"), json).unwrap();
        let mut trust = machine.open();
        let home = machine.key("home");
        assert_eq!(trust.state(&home), TrustState::Untrusted);
        assert_eq!(trust.grant(&home).unwrap(), Kept::ThisRunOnly);
        assert_eq!(trust.state(&home), TrustState::Trusted(TrustedBy::ThisRun));
        assert_eq!(machine.open().state(&home), TrustState::Untrusted);
        assert!(!machine.path("home/.centurion/trust.json").exists());
        trust.revoke(&home).unwrap();
        assert_eq!(trust.state(&home), TrustState::Untrusted);
    }

    #[test]
    fn another_programs_answers_count_and_are_left_alone() {
        let machine = Machine::new();
        let repo = machine.path("home/repo").display().to_string();
        let plain = machine.path("home/plain").display().to_string();
        let json = format!(
            r#"{{"x": 1, "projects": {{"{repo}": {{"hasTrustDialogAccepted": true, "history": []}},
               "{plain}": {{"hasTrustDialogAccepted": "yes"}}}}}}"#
        );
        fs::write(machine.path("home/.claude.json"), &json).unwrap();
        let mut trust = machine.open();
        assert_eq!(trust.state(&machine.key("home/repo")), TrustState::Trusted(TrustedBy::Other));
        assert_eq!(trust.state(&machine.key("home/plain")), TrustState::Untrusted);
        trust.revoke(&machine.key("home/repo")).unwrap();
        assert_eq!(machine.open().state(&machine.key("home/repo")), TrustState::Untrusted);
        assert_eq!(fs::read_to_string(machine.path("home/.claude.json")).unwrap(), json);
        fs::write(machine.path("home/.claude.json"), "{broken").unwrap();
        assert_eq!(machine.open().list(), []);
    }

    #[test]
    fn a_worktree_has_its_checkouts_trust_and_nobody_else_gets_it() {
        let machine = Machine::new();
        let admin = machine.path("home/repo/.git/worktrees/wt");
        let git_file = |at: &str, admin: &Path| {
            fs::create_dir_all(machine.path(at)).unwrap();
            fs::write(machine.path(at).join(".git"), format!("gitdir: {}\n", admin.display()))
                .unwrap();
        };
        git_file("home/wt", &admin);
        fs::write(admin.join("gitdir"), format!("{}\n", machine.path("home/wt/.git").display()))
            .unwrap();
        assert_eq!(machine.key("home/wt").path(), machine.path("home/repo"));
        // Says that it is that worktree, and is not.
        git_file("home/evil", &admin);
        assert_eq!(machine.key("home/evil").path(), machine.path("home/evil"));
        // Borrows the real worktree's file.
        fs::create_dir(machine.path("home/thief")).unwrap();
        std::os::unix::fs::symlink(machine.path("home/wt/.git"), machine.path("home/thief/.git"))
            .unwrap();
        assert_eq!(machine.key("home/thief").path(), machine.path("home/thief"));
        // Brings the administration itself.
        let own = machine.path("home/forger/admin/worktrees/x");
        fs::create_dir_all(&own).unwrap();
        git_file("home/forger", &own);
        fs::write(own.join("gitdir"), machine.path("home/forger/.git").display().to_string())
            .unwrap();
        fs::write(own.join("commondir"), machine.path("home/repo/.git").display().to_string())
            .unwrap();
        assert_eq!(machine.key("home/forger").path(), machine.path("home/forger"));
    }

    #[test]
    fn a_broken_store_is_an_error_with_its_place() {
        let machine = Machine::new();
        fs::create_dir_all(machine.path("home/.centurion")).unwrap();
        fs::write(machine.path("home/.centurion/trust.json"), "{\n\"folders\": 1}").unwrap();
        let sources = TrustSources {
            store: machine.path("home/.centurion/trust.json"),
            ..TrustSources::default()
        };
        let error = Trust::open(sources).unwrap_err().to_string();
        assert!(error.contains("trust.json:2: is not valid JSON"), "{error}");
    }

    #[test]
    fn what_a_later_version_wrote_is_kept() {
        let machine = Machine::new();
        fs::create_dir_all(machine.path("home/.centurion")).unwrap();
        let file = machine.path("home/.centurion/trust.json");
        fs::write(&file, r#"{"later": 1, "folders": {"/x": {"trusted": true, "by": "me"}}}"#)
            .unwrap();
        machine.open().grant(&machine.key("home/repo")).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"later\": 1") && text.contains("\"by\": \"me\""), "{text}");
    }
}
