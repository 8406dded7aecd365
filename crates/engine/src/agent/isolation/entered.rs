//! Worktrees that agents go to work in, in the middle of their work, and come back from.
//!
//! Such a worktree is an ordinary one, on the repository's own git. The agent's tools work there from then on, and its
//! file tools write in no other checkout of the repository until it comes back. Its transcript notes where it is, so
//! that a resumed session continues there.

use std::path::{Path, PathBuf};

use centurion_hooks::events::{WorktreeCreate, WorktreeRemove, WorktreeVerdict};
use centurion_permissions::Apart;
use centurion_protocol::{AgentId, SessionId};
use centurion_worktree::{
    Checkout, CreateError, Entry, KeptError, Owner, Slug, Standing, Unsaved, Wish, Worktree,
    Worktrees,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::{HookedPlace, IsolationError, Isolator};
use crate::agent::Agent;
use crate::policy::permissions::{Destination, Remember, SavedChange};

/// The subtype of the note about the worktree that an agent entered.
pub(crate) const NOTE: &str = "worktree_entered";

/// A worktree that an agent works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EnteredPlace {
    pub(crate) path: PathBuf,
    /// Nothing for one that a hook made.
    pub(crate) branch: Option<String>,
    /// The directory of the agent before.
    pub(crate) came_from: PathBuf,
    /// Its name, if it is one of ours.
    slug: Option<Slug>,
    /// The checkouts that are left alone meanwhile.
    checkouts: Vec<PathBuf>,
    /// Further paths that are left alone: repositories, and the checkouts that this one is a submodule of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kept: Vec<PathBuf>,
}

impl EnteredPlace {
    /// Tells whether it is the one that a name means.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        Slug::parse(name).is_ok_and(|slug| self.slug.as_ref() == Some(&slug))
    }

    /// The name under which it is saved, unless that is the id of an agent.
    pub(crate) fn saved_as(&self) -> Option<&str> {
        self.slug.as_ref().map(Slug::as_str).filter(|name| !name.starts_with("agent-"))
    }
}

/// The state of an agent that enters worktrees.
#[derive(Default)]
pub(super) struct WorktreeEntry {
    now: Option<EnteredPlace>,
    /// Keeps other processes away from it.
    held: Option<Worktree>,
    is_noted: bool,
    /// True if agents work there only because of this.
    is_added: bool,
}

/// The reason why an agent does not go to work in a worktree, or does not come back.
#[derive(Debug, Error)]
pub enum EnterError {
    #[error("you work apart already, in {0}, and stay there to your end")]
    Isolated(PathBuf),
    #[error("you are in the worktree {0} already: leave it with ExitWorktree first")]
    AlreadyIn(PathBuf),
    #[error("{path} is no worktree of the repository {repository}")]
    NoWorktree { path: PathBuf, repository: PathBuf },
    #[error("{0} is the checkout that you are in")]
    SameCheckout(PathBuf),
    #[error("process {0} uses it")]
    InUse(String),
    #[error("give a name or a path, not both")]
    Both,
    #[error("no worktree was entered in this session: nothing is left or removed")]
    NotIn,
    #[error("{0}. Commit it, or say discard_changes: it is saved then, and can be restored")]
    Holds(String),
    #[error("others work in it ({0}): wait for their end")]
    Shared(String),
    #[error("the background shell {0} still runs, maybe there: stop it first")]
    Shell(String),
    #[error("{0} was not made by this program: leave it with `keep`, and remove it by hand")]
    NotOurs(PathBuf),
    #[error(transparent)]
    Isolation(#[from] IsolationError),
    #[error(transparent)]
    Kept(KeptError),
}

impl From<CreateError> for EnterError {
    fn from(error: CreateError) -> Self {
        Self::Isolation(error.into())
    }
}

/// The worktree that an agent asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestedWorktree<'a> {
    /// The one of this name, which is made if there is none.
    Name(&'a str),
    /// One that there is.
    Path(&'a Path),
}

/// The treatment of a worktree that an agent leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    Keep,
    Remove(Unsaved),
}

/// The default name of a session's worktree.
pub fn usual_name(session: SessionId) -> String {
    let id = session.to_string();
    format!("session-{}", id.get(..8).unwrap_or(&id))
}

/// The place that a transcript notes last.
pub(crate) fn noted(text: &[u8]) -> Option<EnteredPlace> {
    #[derive(Deserialize)]
    struct Note {
        #[serde(rename = "type")]
        kind: String,
        subtype: String,
        data: Option<EnteredPlace>,
    }
    let mark = format!("\"subtype\":\"{NOTE}\"");
    let mut before = text;
    // The words may stand in other lines, too.
    while let Some(at) = memchr::memmem::rfind(before, mark.as_bytes()) {
        let start = memchr::memrchr(b'\n', before.get(..at)?).map_or(0, |end| end + 1);
        let line = text.get(start..)?.split(|byte| *byte == b'\n').next()?;
        if let Ok(note) = serde_json::from_slice::<Note>(line)
            && (note.kind.as_str(), note.subtype.as_str()) == ("system", NOTE)
        {
            return note.data;
        }
        before = text.get(..start)?;
    }
    None
}

impl Isolator {
    /// The worktree that an agent has entered.
    pub(crate) fn entered(&self, agent: &Agent) -> Option<EnteredPlace> {
        self.entered.lock().get(&agent.identity.id)?.now.clone()
    }

    /// The worktree in which an agent works that it has entered.
    pub(crate) fn place_of(&self, id: Option<&AgentId>) -> Option<PathBuf> {
        let all = self.entered.lock();
        Some(all.get(&id.cloned())?.now.as_ref()?.path.clone())
    }

    /// The note about the worktree that a transcript does not hold yet.
    pub(crate) fn unnoted(&self, id: Option<&AgentId>) -> Option<Value> {
        let mut all = self.entered.lock();
        let entered = all.get_mut(&id.cloned()).filter(|it| !it.is_noted)?;
        entered.is_noted = true;
        Some(json!(entered.now))
    }

    /// Has the place of an agent noted again: another transcript continues its work.
    pub(crate) fn note_again(&self, id: Option<&AgentId>) {
        if let Some(entered) = self.entered.lock().get_mut(&id.cloned()) {
            entered.is_noted = false;
        }
    }

    /// Forgets what an agent entered that has ended. The worktree stays.
    pub(crate) fn forget(&self, id: Option<&AgentId>) {
        self.entered.lock().remove(&id.cloned());
    }

    /// Has an agent work in a worktree.
    pub(crate) async fn enter_worktree(
        &self,
        agent: &Agent,
        wanted: RequestedWorktree<'_>,
        cancel: &CancellationToken,
    ) -> Result<EnteredPlace, EnterError> {
        if let Some(worktree) = &agent.isolation {
            return Err(EnterError::Isolated(worktree.spec.path.clone()));
        }
        if let Some(place) = self.entered(agent) {
            return Err(EnterError::AlreadyIn(place.path));
        }
        let stands = agent.workspace.root();
        let (place, held) = match wanted {
            RequestedWorktree::Name(name) => {
                let slug = Slug::parse(name).map_err(IsolationError::Name)?;
                let fired = agent.fire(&WorktreeCreate { name: slug.as_str() }, cancel).await;
                match fired.verdict {
                    WorktreeVerdict::NoHook => self.named(agent, slug, stands).await?,
                    WorktreeVerdict::Failed(reason) => {
                        return Err(IsolationError::Hook(reason).into());
                    }
                    WorktreeVerdict::Made(path) => {
                        let HookedPlace { path, checkout, kept, hooked: _ } =
                            self.hooked_place(&path, &stands).await?;
                        let checkouts = vec![checkout.0, checkout.1];
                        let (branch, slug, came_from) = (None, None, stands);
                        (EnteredPlace { path, branch, came_from, slug, checkouts, kept }, None)
                    }
                }
            }
            RequestedWorktree::Path(path) => self.at_path(agent, path, stands).await?,
        };
        let is_added = Self::move_in(agent, &place)?;
        let entered = WorktreeEntry { now: Some(place.clone()), held, is_noted: false, is_added };
        self.entered.lock().insert(agent.identity.id.clone(), entered);
        Ok(place)
    }

    /// Has the agent of a resumed session work where it worked.
    pub(crate) async fn reenter_worktree(
        &self,
        agent: &Agent,
        place: &EnteredPlace,
    ) -> Result<(), EnterError> {
        let cancel = CancellationToken::new();
        check_place(place)?;
        let entered = match &place.slug {
            // The directory that a hook made is not made again.
            None if place.branch.is_none() && place.path.is_dir() => {
                let is_added = Self::move_in(agent, place)?;
                let now = Some(place.clone());
                let entered = WorktreeEntry { now, is_noted: true, is_added, held: None };
                self.entered.lock().insert(agent.identity.id.clone(), entered);
                return Ok(());
            }
            _ => self.enter_worktree(agent, RequestedWorktree::Path(&place.path), &cancel).await?,
        };
        let mut all = self.entered.lock();
        if let Some(known) = all.get_mut(&agent.identity.id) {
            known.now = Some(EnteredPlace { came_from: place.came_from.clone(), ..entered });
            known.is_noted = true;
        }
        Ok(())
    }

    /// Tells whether it is one more directory that agents work in.
    fn move_in(agent: &Agent, place: &EnteredPlace) -> Result<bool, EnterError> {
        check_place(place)?;
        let root = place.path.clone();
        let checkouts: Vec<PathBuf> =
            place.checkouts.iter().filter_map(|path| path.canonicalize().ok()).collect();
        agent.workspace.move_to(&root);
        let apart = Apart {
            root: root.clone(),
            readable: checkouts.clone(),
            checkouts,
            kept: place.kept.iter().filter_map(|path| path.canonicalize().ok()).collect(),
            asks_about_servers: false,
        };
        agent.permissions.work_apart(Some(apart));
        let is_new = !agent.permissions.works_in(&root);
        if is_new {
            remember(agent, SavedChange::Directories(vec![root]));
        }
        Ok(is_new)
    }

    async fn named(
        &self,
        agent: &Agent,
        slug: Slug,
        stands: PathBuf,
    ) -> Result<(EnteredPlace, Option<Worktree>), EnterError> {
        let worktrees = self.worktrees().ok_or(IsolationError::NoGit)?;
        self.mend_once(worktrees, agent, &stands).await;
        let from = worktrees.checkout(&stands).await.map_err(CreateError::from)?;
        let made = worktrees.create(&stands, &self.wish(agent, &slug)).await?;
        for warning in &made.warnings {
            agent.inform("warning", format!("worktree {slug}: {warning}"));
        }
        let place = EnteredPlace {
            path: made.record.path.clone(),
            branch: Some(made.record.branch.clone()),
            slug: Some(slug),
            checkouts: others(&from, &made.record.path),
            kept: Vec::new(),
            came_from: stands,
        };
        Ok((place, Some(made)))
    }

    async fn at_path(
        &self,
        agent: &Agent,
        path: &Path,
        stands: PathBuf,
    ) -> Result<(EnteredPlace, Option<Worktree>), EnterError> {
        let worktrees = self.worktrees().ok_or(IsolationError::NoGit)?;
        let from = worktrees.checkout(&stands).await.map_err(CreateError::from)?;
        let no_worktree =
            || EnterError::NoWorktree { path: path.to_owned(), repository: from.home.clone() };
        let to = worktrees.checkout(path).await.map_err(|_| no_worktree())?;
        if path.canonicalize().ok().as_ref() != Some(&to.top) || to.common != from.common {
            return Err(no_worktree());
        }
        if to.top == from.top || to.top == from.home {
            return Err(EnterError::SameCheckout(to.top));
        }
        if let Some(entry) = find(worktrees, &stands, |entry| is_at(entry, &to.top)).await? {
            if let Standing::InUse { process } = entry.standing {
                return Err(EnterError::InUse(process));
            }
            if let Some(record) = entry.record {
                return self.named(agent, record.slug, stands).await;
            }
        }
        let place = EnteredPlace {
            branch: Some(to.branch.unwrap_or(to.head)),
            slug: None,
            checkouts: others(&from, &to.top),
            kept: Vec::new(),
            came_from: stands,
            path: to.top,
        };
        Ok((place, None))
    }

    /// Has an agent work again where it worked before it entered a worktree.
    pub(crate) async fn come_back(
        &self,
        agent: &Agent,
        leaving: Leaving,
    ) -> Result<EnteredPlace, EnterError> {
        let Some(mut entered) = self.entered.lock().remove(&agent.identity.id) else {
            return Err(EnterError::NotIn);
        };
        let Some(place) = entered.now.clone() else { return Err(EnterError::NotIn) };
        let removed = match leaving {
            Leaving::Keep => Ok(()),
            Leaving::Remove(unsaved) => self.remove(agent, &place, &mut entered, unsaved).await,
        };
        if let Err(error) = removed {
            // It stays, and the agent stays in it.
            self.entered.lock().insert(agent.identity.id.clone(), entered);
            return Err(error);
        }
        if entered.is_added {
            remember(agent, SavedChange::LostDirectories(vec![place.path.clone()]));
        }
        agent.permissions.work_apart(None);
        agent.workspace.move_to(&place.came_from);
        self.entered.lock().insert(agent.identity.id.clone(), WorktreeEntry::default());
        Ok(place)
    }

    async fn remove(
        &self,
        agent: &Agent,
        place: &EnteredPlace,
        entered: &mut WorktreeEntry,
        unsaved: Unsaved,
    ) -> Result<(), EnterError> {
        if let Some(others) = agent.sharers() {
            return Err(EnterError::Shared(others));
        }
        let Some(slug) = &place.slug else {
            if place.branch.is_some() {
                return Err(EnterError::NotOurs(place.path.clone()));
            }
            let removed = WorktreeRemove { worktree_path: &place.path };
            agent.fire(&removed, &CancellationToken::new()).await;
            return Ok(());
        };
        let worktrees = self.worktrees().ok_or(IsolationError::NoGit)?;
        if let Some(shell) = agent.workspace.shells.running().first() {
            return Err(EnterError::Shell(shell.id.to_string()));
        }
        // Letting go takes the lease itself.
        let was_held = entered.held.take().is_some();
        let removed = Self::let_go_of(worktrees, place, slug, unsaved).await;
        if removed.is_err() && was_held {
            entered.held = self.held_again(worktrees, agent, place, slug).await;
        }
        removed
    }

    async fn let_go_of(
        worktrees: &Worktrees,
        place: &EnteredPlace,
        slug: &Slug,
        unsaved: Unsaved,
    ) -> Result<(), EnterError> {
        let named = |entry: &Entry| entry.name() == slug.as_str();
        let Some(entry) = find(worktrees, &place.came_from, named).await? else { return Ok(()) };
        let trash = worktrees.let_go(&place.came_from, &entry, unsaved).await;
        let trash = trash.map_err(|error| match error {
            KeptError::Holds(text) => EnterError::Holds(text),
            error => EnterError::Kept(error),
        })?;
        let _ = tokio::task::spawn_blocking(move || trash.delete()).await;
        Ok(())
    }

    /// Keeps other processes away again from a worktree that stays.
    async fn held_again(
        &self,
        worktrees: &Worktrees,
        agent: &Agent,
        place: &EnteredPlace,
        slug: &Slug,
    ) -> Option<Worktree> {
        if !place.path.is_dir() {
            return None;
        }
        let made = worktrees.create(&place.came_from, &self.wish(agent, slug)).await;
        made.inspect_err(|error| {
            let text = format!("worktree {slug}: other processes may use it, too: {error}");
            agent.inform("warning", text);
        })
        .ok()
    }

    fn wish(&self, agent: &Agent, slug: &Slug) -> Wish {
        Wish {
            slug: slug.clone(),
            owner: Owner {
                agent: agent.identity.id.as_ref().map(ToString::to_string),
                session: Some(self.session.id().to_string()),
                task: String::new(),
            },
            is_private: false,
            is_fresh: self.settings.is_fresh,
            contents: self.contents(),
        }
    }
}

/// Makes sure that no link is in the place of a directory, or on the way: it would lead elsewhere.
fn check_place(place: &EnteredPlace) -> Result<(), EnterError> {
    if place.path.canonicalize().ok().as_ref() == Some(&place.path) {
        return Ok(());
    }
    let repository = place.came_from.clone();
    Err(EnterError::NoWorktree { path: place.path.clone(), repository })
}

fn remember(agent: &Agent, what: SavedChange) {
    let remember = Remember { what, destination: Destination::Session };
    if let Err(error) = agent.permissions.remember(&remember) {
        agent.inform("warning", error.to_string());
    }
}

async fn find(
    worktrees: &Worktrees,
    directory: &Path,
    is_meant: impl Fn(&Entry) -> bool,
) -> Result<Option<Entry>, EnterError> {
    Ok(worktrees.list(directory).await?.into_iter().find(is_meant))
}

fn is_at(entry: &Entry, top: &Path) -> bool {
    entry.record.as_ref().is_some_and(|record| record.path == top)
}

/// The checkouts beside a worktree that an agent comes from.
fn others(from: &Checkout, path: &Path) -> Vec<PathBuf> {
    let mut others = vec![from.home.clone(), from.top.clone()];
    others.dedup();
    others.retain(|it| it != path);
    others
}
