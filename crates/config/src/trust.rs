//! Folders that a person trusts, and the contents of them that were accepted: what a repository brings counts as it
//! was then, and no further.
//!
//! The answers are kept in one file of ours, the contents in one for each folder. What another program
//! asked about the same folders is read and never written. Trust in the home directory is kept for one run
//! only: too much lies below.

mod commands;
mod content;
mod difference;
mod programs;
mod record;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::SystemWorld;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

pub(crate) use self::commands::commands_of;
use self::content::definitions_base;
pub use self::content::{ContentTrust, FolderTrust, PowerItem, Reach, Unaccepted};
pub use self::content::{collect_hook_texts, collect_texts};
pub use self::difference::{Difference, ItemChange};
pub use self::programs::{Lookup, NamedFiles, named_files};
pub use self::record::AcceptedItem;
use self::record::Record;
pub use self::survey::{Survey, survey};
use crate::files::{self, FileError};
use crate::mcp::McpServer;
use crate::paths::{main_checkout, repo_root};
use crate::repository::git_programs;
use crate::settings::RepositoryTrust;

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

/// The files that keep the answers.
#[derive(Clone, Debug, Default)]
pub struct TrustSources {
    /// Our own file, [`Dirs::trust_file`](crate::paths::Dirs::trust_file).
    pub store: PathBuf,
    /// Another program's `.claude.json`.
    pub other: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// The directory in which commands of hooks and servers are run.
    pub start_dir: Option<PathBuf>,
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
    /// The trust that the folder's repository has.
    pub fn standing(&self) -> RepositoryTrust {
        match self {
            Self::Trusted(_) => RepositoryTrust::Full,
            Self::Parent(_) => RepositoryTrust::Partly,
            Self::Untrusted => RepositoryTrust::Untrusted,
        }
    }
}

/// The result of keeping an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerStorage {
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
    /// The folders that another program was told to trust.
    others: HashSet<PathBuf>,
    this_run: HashSet<PathBuf>,
    /// The contents that were accepted, by folder, as far as anything asked for them.
    records: Mutex<HashMap<PathBuf, Arc<Record>>>,
    /// The folders that directories of definitions belong to.
    locations: Mutex<HashMap<PathBuf, (TrustKey, PathBuf)>>,
}

/// Takes secrets out of a text before it is kept.
pub type Redact<'r> = &'r dyn Fn(&str) -> String;

/// The name of a program's content among the items of a folder.
const PROGRAM: &str = "program";

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
        Ok(Self {
            sources,
            stored,
            others,
            this_run: HashSet::new(),
            records: Mutex::default(),
            locations: Mutex::default(),
        })
    }

    /// Whether a folder is trusted. The nearest answer counts, and a no is final for its folder.
    pub fn state(&self, key: &TrustKey) -> TrustState {
        let path = key.path();
        match self.answer(path) {
            Some(Ok(by)) => return TrustState::Trusted(by),
            Some(Err(RefusedFolder)) => return TrustState::Untrusted,
            None => {}
        }
        for parent in path.ancestors().skip(1) {
            match self.answer(parent) {
                Some(Ok(_)) => return TrustState::Parent(parent.to_owned()),
                Some(Err(RefusedFolder)) => return TrustState::Untrusted,
                None => {}
            }
        }
        TrustState::Untrusted
    }

    fn answer(&self, path: &Path) -> Option<Result<TrustedBy, RefusedFolder>> {
        if self.this_run.contains(path) {
            return Some(Ok(TrustedBy::ThisRun));
        }
        if self.is_around_home(path) {
            return None;
        }
        match self.stored.folders.get(path) {
            Some(folder) if folder.trusted => Some(Ok(TrustedBy::Store)),
            Some(_) => Some(Err(RefusedFolder)),
            None => self.others.contains(path).then_some(Ok(TrustedBy::Other)),
        }
    }

    fn is_around_home(&self, path: &Path) -> bool {
        self.sources.home.as_ref().is_some_and(|home| home.starts_with(path))
    }

    /// Trusts a folder from now on, with all that was found in it.
    pub fn grant(
        &mut self,
        key: &TrustKey,
        survey: &Survey,
        redact: Redact<'_>,
    ) -> Result<AnswerStorage, TrustError> {
        if self.is_around_home(key.path()) {
            self.this_run.insert(key.path().to_owned());
            return Ok(AnswerStorage::ThisRunOnly);
        }
        let accepted = survey.items.iter().flat_map(|item| self.accepted(item, survey, redact));
        let mut accepted: Vec<AcceptedItem> = accepted.collect();
        // A worktree speaks for itself alone: what was accepted stays so where its checkout still has it.
        if survey.root != key.path() {
            let checkout = self::survey(key.path(), self.sources.home.as_deref(), &SystemWorld);
            let present =
                checkout.items.iter().flat_map(|item| self.accepted(item, &checkout, redact));
            let record = self.record(key.path())?;
            accepted.extend(present.filter(|it| record.has(&it.file, &it.item, &it.digest)));
        }
        self.keep(key.path(), Record::new(accepted))?;
        self.store(key, true)?;
        Ok(AnswerStorage::Stored)
    }

    /// Trusts a folder no longer, whatever another program was told, and accepts nothing of it.
    pub fn revoke(&mut self, key: &TrustKey) -> Result<(), TrustError> {
        self.this_run.remove(key.path());
        if self.is_around_home(key.path()) {
            return Ok(());
        }
        self.store(key, false)?;
        self.records().remove(key.path());
        record::remove(&self.record_file(key.path()))
    }

    /// Accepts single items, which this program wrote on the user's word, in whatever folder they are.
    pub fn accept(&self, items: &[PowerItem], redact: Redact<'_>) -> Result<(), TrustError> {
        for item in items {
            let (key, root) = self.location(item.base());
            if self.is_around_home(key.path()) {
                continue;
            }
            let survey = Survey::new(root);
            let _guard = self.lock_records()?;
            let mut accepted = self.record(key.path())?.items.clone();
            accepted.extend(self.accepted(item, &survey, redact));
            self.keep(key.path(), Record::new(accepted))?;
        }
        Ok(())
    }

    /// The difference between the contents now and those that were accepted.
    pub fn difference(
        &self,
        key: &TrustKey,
        survey: &Survey,
        redact: Redact<'_>,
    ) -> Result<Difference, TrustError> {
        let present = survey.items.iter().flat_map(|item| self.accepted(item, survey, redact));
        Ok(Difference::new(&self.record(key.path())?.items, present.collect()))
    }

    /// The trust that the folder of a run has.
    pub fn folder(self: &Arc<Self>, key: &TrustKey) -> FolderTrust {
        let content = ContentTrust::remembered(Arc::clone(self));
        FolderTrust { standing: self.state(key).standing(), content }
    }

    /// The files of a folder that accepted items run.
    pub fn programs(&self, root: &Path) -> Vec<PathBuf> {
        let (key, root) = self.location(root);
        let record = self.record(key.path()).unwrap_or_default();
        let programs = record.items.iter().filter(|it| it.item == PROGRAM);
        programs.map(|it| root.join(&it.file)).collect()
    }

    /// Whether git runs nothing in a checkout but what was accepted with its folder; if not, what it would run.
    pub fn judge_git(&self, root: &Path) -> Result<(), UnacceptedGit> {
        let key = TrustKey::of(root);
        match self.state(&key) {
            TrustState::Trusted(TrustedBy::ThisRun) => return Ok(()),
            TrustState::Trusted(_) => {}
            TrustState::Parent(_) | TrustState::Untrusted => {
                return Err(UnacceptedGit::Checkout(Unaccepted::Untrusted));
            }
        }
        let found = git_programs(root, self.sources.home.as_deref());
        if !found.is_whole {
            return Err(UnacceptedGit::Unreadable);
        }
        let record = self.record(key.path()).unwrap_or_default();
        for item in &found.items {
            let judged = self.judge_in(item, &record, root);
            judged.map_err(|source| UnacceptedGit::Item {
                file: item.file.clone(),
                name: item.name.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// Whether everything in a folder that a command of a definition in it would run, started in this directory, is
    /// as it was accepted. The command is a command line, or a program with its arguments.
    pub fn judge_command(
        &self,
        file: &Path,
        words: &[String],
        cwd: &Path,
    ) -> Result<(), Unaccepted> {
        let commands = match words {
            [line] => vec![line.clone()],
            words => commands_of(&words.iter().map(String::as_str).collect::<Vec<_>>()),
        };
        self.judge_programs(file, &commands, cwd, UnknownProgram::Refused)
    }

    /// Whether everything that an accepted server of a repository would run, started in this directory, is as it was
    /// accepted.
    pub fn judge_server(&self, server: &McpServer, cwd: &Path) -> Result<(), Unaccepted> {
        let (Some(file), Some(accepted)) = (&server.origin.file, &server.accepted) else {
            return Ok(());
        };
        self.judge_programs(file, accepted, cwd, UnknownProgram::Refused)?;
        // The user's environment may name files that were never shown for acceptance.
        self.judge_programs(file, &server.commands(), cwd, UnknownProgram::Counts)
    }

    fn judge_programs(
        &self,
        file: &Path,
        commands: &[String],
        cwd: &Path,
        unknown: UnknownProgram,
    ) -> Result<(), Unaccepted> {
        let cwd = &cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let base = definitions_base(file);
        let (key, root) = self.location(base);
        if self.this_run.contains(key.path()) {
            return Ok(());
        }
        let start_dir = self.sources.start_dir.as_deref();
        let places: Vec<&Path> = [cwd, base, &root].into_iter().chain(start_dir).collect();
        let home = self.sources.home.as_deref();
        let named = |root| named_files(commands, &Lookup { places: &places, root, home });
        // A command may stand in another folder by now.
        let elsewhere = if cwd.starts_with(&root) { NamedFiles::default() } else { named(cwd) };
        let own = named(&root);
        if own.is_cut || elsewhere.is_cut {
            return Err(Unaccepted::TooManyFiles);
        }
        let above: Vec<&Path> =
            root.ancestors().skip(1).filter(|folder| self.is_trusted(folder)).collect();
        for program in own.present.into_iter().chain(elsewhere.present) {
            let is_accepted = |(digest, _): (String, String)| {
                let has = |folder: &Path, root: &Path| {
                    let record = self.record(folder).unwrap_or_default();
                    let place = place(&program, root);
                    let is_unknown = || !record.names(&place, PROGRAM);
                    record.has(&place, PROGRAM, &digest)
                        || unknown == UnknownProgram::Counts && is_unknown()
                };
                has(key.path(), &root) || above.iter().any(|folder| has(folder, folder))
            };
            if !programs::content(&program).is_ok_and(is_accepted) {
                return Err(Unaccepted::Program(program));
            }
        }
        Ok(())
    }

    /// Whether an item counts as it is now.
    fn judge(&self, item: &PowerItem, reach: Reach) -> Result<(), Unaccepted> {
        let (key, root) = self.location(item.base());
        if self.this_run.contains(key.path()) {
            return Ok(());
        }
        // A record that cannot be read accepts nothing.
        let record = self.record(key.path()).unwrap_or_default();
        let own = self.judge_in(item, &record, &root);
        let state = self.state(&key);
        let (Err(reason), Reach::Parent, TrustState::Parent(_)) = (&own, reach, &state) else {
            let is_given = matches!(state, TrustState::Trusted(_));
            return own.map_err(|reason| match reason {
                _ if !is_given => Unaccepted::Untrusted,
                _ if !record.exists() => Unaccepted::Unrecorded,
                reason => reason,
            });
        };
        let mut above = root.ancestors().skip(1).filter(|it| self.is_trusted(it));
        let is_accepted = above.any(|folder| {
            let record = self.record(folder).unwrap_or_default();
            self.judge_in(item, &record, folder).is_ok()
        });
        if is_accepted { Ok(()) } else { Err(reason.clone()) }
    }

    fn is_trusted(&self, folder: &Path) -> bool {
        matches!(self.answer(folder), Some(Ok(_)))
    }

    fn judge_in(&self, item: &PowerItem, record: &Record, root: &Path) -> Result<(), Unaccepted> {
        let place = place(&item.file, root);
        if !record.has(&place, &item.name, &item.digest()) {
            let was_there = record.names(&place, &item.name);
            return Err(if was_there { Unaccepted::Changed } else { Unaccepted::New });
        }
        let named = self.programs_of(item, root);
        if named.is_cut {
            return Err(Unaccepted::TooManyFiles);
        }
        for program in named.present {
            let is_same = |(digest, _): (String, String)| {
                record.has(&self::place(&program, root), PROGRAM, &digest)
            };
            if !programs::content(&program).is_ok_and(is_same) {
                return Err(Unaccepted::Program(program));
            }
        }
        Ok(())
    }

    fn programs_of(&self, item: &PowerItem, root: &Path) -> NamedFiles {
        item.programs(root, self.sources.start_dir.as_deref(), self.sources.home.as_deref())
    }

    /// An item and what it runs, as they are accepted in a folder.
    fn accepted(&self, item: &PowerItem, survey: &Survey, redact: Redact<'_>) -> Vec<AcceptedItem> {
        let root = &survey.root;
        let shown = |text: &str| redact(&programs::shortened(text));
        let mut accepted = vec![AcceptedItem {
            file: place(&item.file, root),
            item: item.name.clone(),
            digest: item.digest(),
            text: shown(&item.text),
        }];
        for program in self.programs_of(item, root).present {
            if let Ok((digest, text)) = programs::content(&program) {
                let (file, item) = (place(&program, root), PROGRAM.to_owned());
                accepted.push(AcceptedItem { file, item, digest, text: shown(&text) });
            }
        }
        accepted
    }

    fn location(&self, base: &Path) -> (TrustKey, PathBuf) {
        let mut locations = self.locations.lock();
        locations.entry(base.to_owned()).or_insert_with(|| location(base)).clone()
    }

    fn records(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<Record>>> {
        self.records.lock()
    }

    fn record_dir(&self) -> PathBuf {
        self.sources.store.with_extension("d")
    }

    fn record_file(&self, folder: &Path) -> PathBuf {
        record::file_of(&self.record_dir(), folder)
    }

    fn lock_records(&self) -> Result<std::fs::File, TrustError> {
        let directory = self.record_dir();
        files::lock_directory(&directory)
            .map_err(|error| TrustError { file: directory.clone(), error })
    }

    /// The record of a folder as it is now.
    fn record(&self, folder: &Path) -> Result<Arc<Record>, TrustError> {
        let file = self.record_file(folder);
        if let Some(known) = self.records().get(folder).filter(|it| it.is_current(&file)) {
            return Ok(Arc::clone(known));
        }
        let record = Arc::new(Record::read(&file, folder)?);
        self.records().insert(folder.to_owned(), Arc::clone(&record));
        Ok(record)
    }

    fn keep(&self, folder: &Path, record: Record) -> Result<(), TrustError> {
        let file = self.record_file(folder);
        let directory = self.record_dir();
        std::fs::create_dir_all(&directory).map_err(|error| TrustError {
            file: directory.clone(),
            error: FileError::Unwritable(error),
        })?;
        let record = record.write(&file, folder)?;
        self.records().insert(folder.to_owned(), Arc::new(record));
        Ok(())
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

/// The reason that git may run something in a checkout that was not accepted with its folder.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnacceptedGit {
    #[error(transparent)]
    Checkout(Unaccepted),
    #[error("its configuration or its index cannot be read as git reads it")]
    Unreadable,
    #[error("{}: `{name}`: {source}", file.display())]
    Item { file: PathBuf, name: String, source: Unaccepted },
}

/// A folder that is expressly not trusted.
struct RefusedFolder;

/// The rule for a program of which no content was ever accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnknownProgram {
    Refused,
    Counts,
}

/// The folder that a directory of definitions belongs to, and the top of its checkout.
fn location(base: &Path) -> (TrustKey, PathBuf) {
    let base = base.canonicalize().unwrap_or_else(|_| base.to_owned());
    let root = repo_root(&base).unwrap_or_else(|| base.clone());
    (TrustKey::of(&base), root)
}

/// A file as it is called in a record: from the top of its folder.
fn place(file: &Path, root: &Path) -> PathBuf {
    let directory = file.parent().and_then(|directory| directory.canonicalize().ok());
    let file = match (directory, file.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => file.to_owned(),
    };
    file.strip_prefix(root).unwrap_or(&file).to_owned()
}

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
