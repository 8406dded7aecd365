//! Snapshots: what an agent remembers of a user, put into a project so that it comes along with it.
//!
//! A snapshot is a directory of texts with a `snapshot.json` that says when it was made. It is imported
//! by itself only where the user's memory is empty; later ones are offered. What another text takes the
//! place of is kept beside it, on either side.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use centurion_protocol::{self as protocol, World};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::confine::straight;
use super::tree::{Laid, MemoryTree, MemoryTreeError, create_folders};
use super::{AgentMemory, MemoryError, MemoryPlaces};
use crate::Problem;
use crate::agents::AgentCatalog;
use crate::files::{self, FileError, Readers};

/// The folder of snapshots in a project's directory.
const SNAPSHOTS: &str = "agent-memory-snapshots";

/// Says when a snapshot was made.
const MANIFEST: &str = "snapshot.json";

/// Says in a user's memory which snapshots it knows.
const TAKEN: &str = ".snapshots.json";

/// Both hold a few lines.
const LARGEST: u64 = 256 * 1024;

/// The most projects whose last imported snapshot is remembered.
const MOST_PROJECTS: usize = 500;

/// The snapshot of one agent's memory in one project. It may not exist yet.
#[derive(Clone, Debug)]
pub struct MemorySnapshot<'m> {
    memory: &'m AgentMemory,
    directory: PathBuf,
}

/// The action that a snapshot calls for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotStanding {
    /// The project has none.
    Absent,
    /// The memory was empty, and begins with this snapshot now.
    Initialised { written: Vec<PathBuf> },
    /// It is newer than the snapshot that was last imported from this project: [`MemorySnapshot::import`].
    Update { made_at: Timestamp },
    /// It was imported before.
    UpToDate,
}

/// The result of a look at a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotLook {
    pub standing: SnapshotStanding,
    /// Files that were not copied, with the reasons.
    pub problems: Vec<Problem>,
}

#[derive(Debug, Error)]
pub enum SnapshotError {
    #[error("the snapshot in {} is not used: a link below {} leads elsewhere", .directory.display(), .root.display())]
    Linked { directory: PathBuf, root: PathBuf },
    #[error("the project has no snapshot in {}", .0.display())]
    Absent(PathBuf),
    #[error("there is nothing to put into a snapshot: {} holds no texts", .0.display())]
    Empty(PathBuf),
    #[error("{} {source}", .path.display())]
    File { path: PathBuf, source: FileError },
    #[error("{} does not say in `updatedAt` when it was made: {reason}", .path.display())]
    Manifest { path: PathBuf, reason: String },
    #[error("the snapshot cannot be copied: {0}")]
    Tree(#[from] MemoryTreeError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotManifest {
    updated_at: protocol::Timestamp,
}

/// The snapshot that was last imported from each project.
#[derive(Default, Deserialize, Serialize)]
struct LastImports {
    taken: BTreeMap<PathBuf, protocol::Timestamp>,
}

/// Looks at the snapshots of all agents that remember something of the user, when agents are loaded. Those
/// without a snapshot are left out.
pub fn snapshots_at_load(
    catalog: &AgentCatalog,
    places: &MemoryPlaces,
) -> Vec<(String, Result<SnapshotLook, SnapshotError>)> {
    let mut looks = Vec::new();
    for agent in &catalog.active {
        let Some(scope) = &agent.definition.memory else { continue };
        let name = &agent.definition.name.value;
        let memory = AgentMemory::locate(scope.value, name, places);
        let snapshot = memory.as_ref().and_then(AgentMemory::snapshot);
        match snapshot.map(|snapshot| snapshot.at_load()) {
            None | Some(Ok(SnapshotLook { standing: SnapshotStanding::Absent, .. })) => {}
            Some(look) => looks.push((name.clone(), look)),
        }
    }
    looks
}

impl<'m> MemorySnapshot<'m> {
    pub(super) fn new(memory: &'m AgentMemory) -> Self {
        let directory = memory.places.project_dir().join(SNAPSHOTS).join(&memory.name);
        Self { memory, directory }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Looks at the snapshot when the agent is loaded. A memory that is empty begins with it; any other
    /// memory waits for the user's decision.
    pub fn at_load(&self) -> Result<SnapshotLook, SnapshotError> {
        let Some(made_at) = self.made_at()? else {
            return Ok(SnapshotLook { standing: SnapshotStanding::Absent, problems: Vec::new() });
        };
        // A memory that another program keeps for the agent goes first.
        let mut problems = self.memory.prepare()?;
        let _guard = self.lock()?;
        let known = self.taken().taken.get(self.root()).copied();
        let standing = if known.is_some_and(|known| *known >= made_at) {
            SnapshotStanding::UpToDate
        } else if MemoryTree::read(&self.memory.directory)?.files.is_empty() {
            let mut laid = self.copy_in(made_at)?;
            problems.append(&mut laid.problems);
            SnapshotStanding::Initialised { written: laid.written }
        } else {
            SnapshotStanding::Update { made_at }
        };
        Ok(SnapshotLook { standing, problems })
    }

    /// Takes the snapshot's texts into the memory.
    pub fn import(&self) -> Result<Laid, SnapshotError> {
        let made_at =
            self.made_at()?.ok_or_else(|| SnapshotError::Absent(self.directory.clone()))?;
        let problems = self.memory.prepare()?;
        let _guard = self.lock()?;
        Ok(self.copy_in(made_at)?.with(problems))
    }

    /// Writes the memory's texts into the project. What was there and is no longer in the memory stays.
    pub fn export(&self, world: &dyn World) -> Result<Laid, SnapshotError> {
        self.check()?;
        let problems = self.memory.prepare()?;
        let _guard = self.lock()?;
        let mut tree = MemoryTree::read(&self.memory.directory)?;
        if tree.files.remove(Path::new(MANIFEST)).is_some() {
            let path = self.memory.directory.join(MANIFEST);
            tree.leave_out(path, "has the name of the snapshot's own file, and is left out");
        }
        if tree.files.is_empty() {
            return Err(SnapshotError::Empty(self.memory.directory.clone()));
        }
        // A manifest that cannot be read is replaced: this is how a broken snapshot is mended.
        let before = self.made_at().ok().flatten();
        let made_at = before.map_or(world.now(), |before| {
            // A new snapshot is newer than the one before, whatever the clock says.
            let after = before.saturating_add(SignedDuration::from_millis(1));
            world.now().max(after.unwrap_or(before))
        });
        create_folders(&self.directory, Readers::Usual).map_err(|source| {
            MemoryTreeError::Unwritable { path: self.directory.clone(), source }
        })?;
        let laid = tree.lay(&self.directory, Readers::Usual)?;
        write(
            &self.directory.join(MANIFEST),
            &SnapshotManifest { updated_at: made_at.into() },
            Readers::Usual,
        )?;
        self.note_taken(made_at)?;
        Ok(laid.with(problems))
    }

    fn root(&self) -> &Path {
        &self.memory.places.project_root
    }

    /// Keeps other sessions from copying at the same time.
    fn lock(&self) -> Result<std::fs::File, SnapshotError> {
        let path = self.memory.directory.clone();
        files::lock_directory(&path).map_err(|source| SnapshotError::File { path, source })
    }

    fn check(&self) -> Result<(), SnapshotError> {
        if straight(&self.directory, self.root()).is_some() {
            return Ok(());
        }
        let (directory, root) = (self.directory.clone(), self.root().to_owned());
        Err(SnapshotError::Linked { directory, root })
    }

    /// When the snapshot was made; `None` where there is none.
    fn made_at(&self) -> Result<Option<Timestamp>, SnapshotError> {
        self.check()?;
        let path = self.directory.join(MANIFEST);
        if path.is_symlink() {
            let reason = "it is a link, which is not followed".to_owned();
            return Err(SnapshotError::Manifest { path, reason });
        }
        let text = match files::read(&path, LARGEST).1 {
            Ok(None) => return Ok(None),
            Ok(Some(text)) => text,
            Err(source) => return Err(SnapshotError::File { path, source }),
        };
        match serde_json::from_str::<SnapshotManifest>(&text) {
            Ok(manifest) => Ok(Some(*manifest.updated_at)),
            Err(error) => Err(SnapshotError::Manifest { path, reason: error.to_string() }),
        }
    }

    fn copy_in(&self, made_at: Timestamp) -> Result<Laid, SnapshotError> {
        let mut tree = MemoryTree::read(&self.directory)?;
        tree.files.remove(Path::new(MANIFEST));
        let laid = tree.lay(&self.memory.directory, Readers::Owner)?;
        self.note_taken(made_at)?;
        tracing::debug!(
            snapshot = %self.directory.display(),
            written = laid.written.len(),
            kept = laid.kept.len(),
            "memory taken from a snapshot"
        );
        Ok(laid)
    }

    /// The snapshots that were imported before. An unreadable file only means that a snapshot is offered again.
    fn taken(&self) -> LastImports {
        let path = self.memory.directory.join(TAKEN);
        if path.is_symlink() {
            return LastImports::default();
        }
        let text = files::read(&path, LARGEST).1.ok().flatten();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    fn note_taken(&self, made_at: Timestamp) -> Result<(), SnapshotError> {
        let mut taken = self.taken();
        taken.taken.insert(self.root().to_owned(), made_at.into());
        while taken.taken.len() > MOST_PROJECTS {
            let others = taken.taken.iter().filter(|(root, _)| *root != self.root());
            let Some(oldest) = others.min_by_key(|(_, at)| **at).map(|(root, _)| root.clone())
            else {
                break;
            };
            taken.taken.remove(&oldest);
        }
        write(&self.memory.directory.join(TAKEN), &taken, Readers::Owner)
    }
}

fn write(path: &Path, value: &impl Serialize, readers: Readers) -> Result<(), SnapshotError> {
    let failed = |source| SnapshotError::File { path: path.to_owned(), source };
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| failed(FileError::Unwritable(error.into())))?;
    files::replace_for(path, &(text + "\n"), readers).map_err(failed)
}
