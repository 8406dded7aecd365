//! Memories of agents: where each agent keeps its notes from run to run, which part of them an agent is told, and how
//! they are carried between projects.
//!
//! A memory is a directory with a `MEMORY.md` in it, in one of three places:
//!
//! | scope | directory | whose |
//! |---|---|---|
//! | user | `<state>/agent-memory/<agent>` | the user's, in all projects |
//! | project | `<root>/.claude/agent-memory/<agent>` | shared by all who work on the project |
//! | local | `<root>/.claude/agent-memory-local/<agent>` | the user's, in this project |
//!
//! The main agent of every session in a project has one memory, the user's for this project, in
//! `<state>/projects/<project>/memory` or where `autoMemoryDirectory` says.
//!
//! The root is that of the repository, and for a worktree the main checkout: an agent remembers the same
//! wherever in the project it is started. Nothing is read or written outside of the directory, by
//! whatever link. Reading and writing notes is for the agent to do; this only keeps the place.

mod confine;
mod notes;
mod snapshot;
#[cfg(test)]
mod tests;
mod text;
mod tree;

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use centurion_protocol::Env;
use thiserror::Error;

use self::confine::{is_inside, straight};
pub use self::notes::{NewNote, NoteError, NoteKind, NoteName, Notes, Rearrangement};
pub use self::snapshot::{
    MemorySnapshot, SnapshotError, SnapshotLook, SnapshotStanding, snapshots_at_load,
};
pub use self::text::{MemoryText, NotesIndex};
pub use self::tree::{Laid, MemoryTreeError};
use self::tree::{MemoryTree, create_folder, create_folders};
use crate::Problem;
use crate::agents::{MemoryScope, directory_name};
use crate::files::{self, FileError, Readers};
use crate::paths::{Dirs, main_checkout, project_slug};
use crate::settings::{RepositoryTrust, Settings};

/// The folders of memories, in the user's directory and in the project's.
const SHARED: &str = "agent-memory";
const LOCAL: &str = "agent-memory-local";

/// The folder of the main agent's memory, in the user's directory for the project.
const MAIN: &str = "memory";

/// The file in it that says which project it is for.
const PROJECT: &str = ".project";
const LARGEST_PATH: u64 = 16 * 1024;

/// The longest name of a directory before it is cut.
const LONGEST_NAME: usize = 200;

/// The directories of memories, and the switches for them. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlaces {
    /// The directory of the program's state, such as `~/.centurion`.
    pub state_dir: PathBuf,
    /// Other programs' directories of the user, such as `~/.claude`: read once, never written.
    pub other_dirs: Vec<PathBuf>,
    pub project_root: PathBuf,
    /// The directory that the user chose for the memory of the main agent.
    pub chosen_dir: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// Whether the project is under version control.
    pub is_repository: bool,
    /// Whether agents remember anything at all.
    pub auto_memory: bool,
    /// Whether what agents remember of a user is carried between projects.
    pub snapshots: bool,
}

impl MemoryPlaces {
    /// The places for a session in this directory, as the settings want them. `envs`: the environment of the process,
    /// and what settings make of it; each can switch memories off, and none can switch them on again.
    pub fn new(
        dirs: &Dirs,
        home: Option<&Path>,
        cwd: &Path,
        settings: &Settings,
        envs: &[&Env],
    ) -> Self {
        let is_off = envs.iter().any(|env| env.is_on("CLAUDE_CODE_DISABLE_AUTO_MEMORY"));
        let checkout = main_checkout(cwd);
        let (state_dir, other_dirs) = match dirs.config_dirs().split_last() {
            Some((ours, others)) => (ours.clone(), others.to_vec()),
            None => (PathBuf::new(), Vec::new()),
        };
        Self {
            state_dir,
            other_dirs,
            is_repository: checkout.is_some(),
            project_root: checkout.unwrap_or_else(|| cwd.to_owned()),
            chosen_dir: chosen_dir(settings, home),
            home: home.map(Path::to_owned),
            auto_memory: settings.auto_memory() && !is_off,
            // A snapshot speaks in all projects: a repository must be trusted for that.
            snapshots: settings.subagents().memory_snapshot
                && settings.standing() == RepositoryTrust::Full,
        }
    }

    /// The directory that the user chose for the main agent's memory, with links resolved, and what it lies in. All of
    /// it is the agent's to write, so that it must not hold other things.
    fn chosen(&self, chosen: &Path) -> Result<(PathBuf, PathBuf), MemoryError> {
        let unusable = |reason| MemoryError::Unusable { directory: chosen.to_owned(), reason };
        let real = confine::real_path(chosen).ok_or_else(|| unusable("cannot be reached"))?;
        if real.exists() && !real.is_dir() {
            return Err(unusable("is no directory"));
        }
        let others = [Some(&self.state_dir), Some(&self.project_root), self.home.as_ref()];
        let mut others = others.into_iter().flatten().chain(&self.other_dirs);
        let holds = |other: &PathBuf| {
            confine::real_path(other).is_some_and(|other| other.starts_with(&real))
        };
        if others.any(holds) {
            return Err(unusable("holds more than notes"));
        }
        let is_git = |part: std::path::Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
        if real.components().any(is_git) {
            return Err(unusable("belongs to a repository"));
        }
        let anchor = real.parent().ok_or_else(|| unusable("holds more than notes"))?.to_owned();
        Ok((real, anchor))
    }

    /// The usual directory of the main agent's memory. Two projects whose names look the same when they are written as
    /// one have memories of their own.
    fn usual_main_dir(&self) -> PathBuf {
        let slug = project_slug(&self.project_root);
        let usual = projects_dir(&self.state_dir, &slug).join(MAIN);
        let root = self.project_root.to_string_lossy();
        match files::read(&usual.join(PROJECT), LARGEST_PATH).1 {
            // A project that is gone was moved here, perhaps, with its notes.
            Ok(Some(other)) if other.trim_end() != root && Path::new(other.trim_end()).is_dir() => {
                let hash = blake3::hash(root.as_bytes()).to_hex();
                projects_dir(&self.state_dir, &format!("{slug}-{}", &hash[..8])).join(MAIN)
            }
            _ => usual,
        }
    }

    /// The directory of what belongs to the project. In a home directory that would be another
    /// program's own one, which is never written to.
    fn project_dir(&self) -> PathBuf {
        let usual = self.project_root.join(".claude");
        let real = confine::real_path(&usual);
        let is_anothers = |other: &PathBuf| real.is_some() && confine::real_path(other) == real;
        if self.other_dirs.iter().any(is_anothers) { self.state_dir.clone() } else { usual }
    }
}

/// The directory that the settings name for the memory of the main agent.
fn chosen_dir(settings: &Settings, home: Option<&Path>) -> Option<PathBuf> {
    let chosen = settings.auto_memory_directory()?.value;
    Some(match (chosen.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(chosen),
    })
}

/// The owner of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOwner {
    /// The main agent of each session in the project.
    Main,
    /// An agent by whose definition it is shared with these.
    Agent(MemoryScope),
}

/// The memory of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMemory {
    owner: MemoryOwner,
    /// The name of the agent's directory.
    name: String,
    directory: PathBuf,
    /// Below which no link may stand.
    anchor: PathBuf,
    places: MemoryPlaces,
}

/// The reason why a memory cannot be used.
#[derive(Debug, Error)]
pub enum MemoryError {
    #[error("the memory in {} is not used: a link below {} leads elsewhere", .directory.display(), .anchor.display())]
    Linked { directory: PathBuf, anchor: PathBuf },
    #[error("`autoMemoryDirectory` is not used: {} {reason}", .directory.display())]
    Unusable { directory: PathBuf, reason: &'static str },
    #[error("the memory in {} cannot be made: {source}", .directory.display())]
    Unmakable { directory: PathBuf, source: io::Error },
    #[error("the memory in {} cannot be taken over: {source}", .directory.display())]
    NotTaken { directory: PathBuf, source: MemoryTreeError },
    #[error("the directory of memories {} {source}", .directory.display())]
    Lock { directory: PathBuf, source: FileError },
}

impl AgentMemory {
    /// The memory of an agent; `None` where agents remember nothing, and for a name that no directory
    /// can have.
    pub fn locate(scope: MemoryScope, agent: &str, places: &MemoryPlaces) -> Option<Self> {
        let name = shortened(directory_name(agent));
        if !places.auto_memory || name.trim().is_empty() {
            return None;
        }
        let (base, folder, anchor) = match scope {
            MemoryScope::User => (places.state_dir.clone(), SHARED, &places.state_dir),
            MemoryScope::Project => (places.project_dir(), SHARED, &places.project_root),
            MemoryScope::Local => (places.project_dir(), LOCAL, &places.project_root),
        };
        let (directory, anchor) = (base.join(folder).join(&name), anchor.clone());
        let owner = MemoryOwner::Agent(scope);
        Some(Self { owner, name, directory, anchor, places: places.clone() })
    }

    /// The memory of the main agent; `None` where agents remember nothing.
    pub fn of_main(places: &MemoryPlaces) -> Result<Option<Self>, MemoryError> {
        if !places.auto_memory {
            return Ok(None);
        }
        let (directory, anchor) = match &places.chosen_dir {
            Some(chosen) => places.chosen(chosen)?,
            None => (places.usual_main_dir(), places.state_dir.clone()),
        };
        let (owner, name) = (MemoryOwner::Main, MAIN.to_owned());
        let memory = Self { owner, name, directory, anchor, places: places.clone() };
        let directory = memory.check()?;
        let anchor = confine::real_path(&memory.anchor).unwrap_or_else(|| memory.anchor.clone());
        Ok(Some(Self { directory, anchor, ..memory }))
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn owner(&self) -> MemoryOwner {
        self.owner
    }

    /// Whether it is the user's alone, in all projects.
    fn is_users(&self) -> bool {
        self.owner == MemoryOwner::Agent(MemoryScope::User)
    }

    /// Whether a path leads to this memory, or to something in it that may not exist yet.
    pub fn contains(&self, path: &Path) -> bool {
        self.confined().is_some() && is_inside(path, &self.directory)
    }

    /// The directory without links, if it is where it says: a repository may hold any link, be it to its own `.git`,
    /// and the agent may write here unasked.
    fn confined(&self) -> Option<PathBuf> {
        straight(&self.directory, &self.anchor)
    }

    /// Makes the directory, if need be. The first time, what another program keeps for the same agent
    /// is copied in. The problems are what was left out of that.
    pub fn prepare(&self) -> Result<Vec<Problem>, MemoryError> {
        self.check()?;
        let unmakable =
            |source| MemoryError::Unmakable { directory: self.directory.clone(), source };
        let mut problems = Vec::new();
        if !self.directory.is_dir() {
            problems = self.make()?;
            // Another process may have made the directory meanwhile.
            self.check()?;
        }
        if self.owner == MemoryOwner::Main && self.places.chosen_dir.is_none() {
            self.claim_for_project()?;
        }
        if self.owner == MemoryOwner::Agent(MemoryScope::Local) && self.places.is_repository {
            hide_from_git(&self.directory).map_err(unmakable)?;
        }
        Ok(problems)
    }

    /// Says in the directory which project it is for.
    fn claim_for_project(&self) -> Result<(), MemoryError> {
        let path = self.directory.join(PROJECT);
        let root = self.places.project_root.to_string_lossy();
        if files::read(&path, LARGEST_PATH).1.is_ok_and(|said| said.as_deref() == Some(&*root)) {
            return Ok(());
        }
        let directory = || self.directory.clone();
        let failed = |source| MemoryError::Lock { directory: directory(), source };
        files::replace_for(&path, &root, Readers::Owner).map_err(failed)
    }

    /// The directory without links, if none leads out of it.
    fn check(&self) -> Result<PathBuf, MemoryError> {
        let (directory, anchor) = (self.directory.clone(), self.anchor.clone());
        self.confined().ok_or(MemoryError::Linked { directory, anchor })
    }

    fn readers(&self) -> Readers {
        match self.owner {
            MemoryOwner::Agent(MemoryScope::Project) => Readers::Usual,
            _ => Readers::Owner,
        }
    }

    fn make(&self) -> Result<Vec<Problem>, MemoryError> {
        let unmakable =
            |source| MemoryError::Unmakable { directory: self.directory.clone(), source };
        let parent = self.directory.parent().unwrap_or(&self.anchor);
        let above = parent.parent().unwrap_or(&self.anchor);
        fs::create_dir_all(above).map_err(unmakable)?;
        create_folders(parent, self.readers()).map_err(unmakable)?;
        let lock = |source| MemoryError::Lock { directory: parent.to_owned(), source };
        let _guard = files::lock_directory(parent).map_err(lock)?;
        if self.directory.is_dir() {
            return Ok(Vec::new());
        }
        let mut problems = Vec::new();
        match self.theirs(&mut problems) {
            Some(theirs) => problems.append(&mut self.take_over(theirs)?),
            None => create_folders(&self.directory, self.readers()).map_err(unmakable)?,
        }
        Ok(problems)
    }

    /// The memory that another program of the user keeps for the same agent. A memory that cannot be copied as a
    /// whole is left to the user: the agent must not go without one for it.
    fn theirs(&self, problems: &mut Vec<Problem>) -> Option<MemoryTree> {
        let others = self.places.other_dirs.iter().rev();
        for other in others {
            let path = match self.owner {
                MemoryOwner::Main if self.places.chosen_dir.is_none() => {
                    projects_dir(other, &project_slug(&self.places.project_root)).join(MAIN)
                }
                MemoryOwner::Agent(MemoryScope::User) => other.join(SHARED).join(&self.name),
                _ => continue,
            };
            match MemoryTree::read(&path) {
                Ok(tree) if tree.files.is_empty() => {}
                Ok(tree) => return Some(tree),
                Err(error) => {
                    let ours = self.directory.display();
                    let message =
                        format!("is not taken over: {error}; copy what is wanted to {ours}");
                    problems.push(Problem { path, line: None, message });
                }
            }
        }
        None
    }

    /// Puts a whole copy in place in one step: half of a memory would pass for all of it.
    fn take_over(&self, theirs: MemoryTree) -> Result<Vec<Problem>, MemoryError> {
        let unmakable =
            |source| MemoryError::Unmakable { directory: self.directory.clone(), source };
        let copy = self.directory.with_file_name(format!(".{}.new", self.name));
        // Left from an unfinished copy. The lock is held, so no other process is writing it.
        match fs::remove_dir_all(&copy) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(unmakable(error)),
            _ => {}
        }
        create_folder(&copy, Readers::Owner).map_err(unmakable)?;
        let laid = theirs.lay(&copy, Readers::Owner).map_err(|source| MemoryError::NotTaken {
            directory: self.directory.clone(),
            source,
        })?;
        fs::rename(&copy, &self.directory).map_err(unmakable)?;
        Ok(laid.problems)
    }

    /// The beginning of what the agent remembers.
    pub fn load(&self) -> MemoryText {
        MemoryText::load(self)
    }

    /// The section about the memory for the agent's system prompt. What the index says is part of it, unless the memory
    /// is the main agent's: that one is told by [`Self::index`], so that its prompt stays the same.
    pub fn render(&self, text: &MemoryText) -> String {
        text::render(self, text)
    }

    /// The text about its notes that the main agent is told when a conversation begins: the index, and the last
    /// sessions.
    pub fn index(&self) -> NotesIndex {
        let text = self.load();
        NotesIndex { text: text::index(self, &text), problem: text.problem }
    }

    /// A system prompt with that section at its end.
    pub fn append_to(&self, prompt: &str, text: &MemoryText) -> String {
        format!("{}\n\n{}", prompt.trim_end(), self.render(text)).trim_start().to_owned()
    }

    /// The snapshot that the project may hold of this memory; `None` if it is not the user's own, or
    /// snapshots are off.
    pub fn snapshot(&self) -> Option<MemorySnapshot<'_>> {
        (self.is_users() && self.places.snapshots).then(|| MemorySnapshot::new(self))
    }
}

/// The directory in which a program of the user keeps the files of a project.
fn projects_dir(state_dir: &Path, slug: &str) -> PathBuf {
    state_dir.join("projects").join(slug)
}

/// A name that a file system takes, told apart by a hash where it had to be cut.
fn shortened(name: String) -> String {
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let start = name.get(..name.floor_char_boundary(LONGEST_NAME)).unwrap_or_default();
    format!("{start}-{}", hash.chars().take(16).collect::<String>())
}

/// Has git ignore the directory and all in it, unless a `.gitignore` is there already.
fn hide_from_git(directory: &Path) -> io::Result<()> {
    let path = directory.join(".gitignore");
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(b"*\n"),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
