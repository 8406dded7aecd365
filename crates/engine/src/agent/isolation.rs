//! Worktrees of the agents of a session: how one is made, entered again, shared with agents below, and left.
//!
//! An agent that works apart has an [`AgentWorktree`], and so have the agents that it starts and that have none of their own:
//! they work in the same one. While one of them is at work, the worktree is out (see `centurion-worktree`); the last one to
//! leave brings its history home. What is to be removed is removed only after the end of that agent is recorded.

pub(crate) mod entered;
pub(crate) mod guarded_git;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use centurion_config::settings::WorktreeSettings;
use centurion_hooks::events::{WorktreeCreate, WorktreeRemove, WorktreeVerdict};
use centurion_permissions::Apart;
use centurion_protocol::{AgentId, CurrentSession, Env};
use centurion_sandbox::Support;
use centurion_tools::guard::GuardProgram;
use centurion_tools::{Guarantee, InstalledGit, IsolatedPlaces, SandboxPolicy, WorktreePaths};
use centurion_worktree::{
    Checkout, CheckoutError, Contents, CreateError, Finished, Git, HookedCheckout, MendError,
    Mended, Owner, PlaceError, Report, Settled, Slug, SlugError, Wish, Worktree, Worktrees,
    check_directory,
};
use parking_lot::Mutex as Lock;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::{Mutex, OnceCell};
use tokio_util::sync::CancellationToken;

use self::entered::WorktreeEntry;
use self::guarded_git::GuardedGit;
use crate::agent::Agent;
use crate::definition::spec::{GitWorktree, WorktreeSpec};
use crate::message::titles::listed;

/// The longest wait of a launch for the cleanup after dead processes.
const MENDING: Duration = Duration::from_secs(20);

/// The longest time for looking at a worktree and bringing its history home.
const PATIENCE: Duration = Duration::from_mins(5);

/// The reason why an agent cannot work apart.
#[derive(Debug, Error)]
pub enum IsolationError {
    #[error("there is no git on this machine")]
    NoGit,
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error("no worktree can be named after it: {0}")]
    Name(#[from] SlugError),
    #[error("the WorktreeCreate hook made none: {0}")]
    Hook(String),
    #[error("the WorktreeCreate hook made none that can be used: {0}")]
    HookPlace(#[from] PlaceError),
    #[error("{path}: {source}")]
    Place { path: PathBuf, source: std::io::Error },
    #[error(
        "commands cannot be kept from the checkout here ({0}), and worktree.requireSandbox asks for that"
    )]
    NotConfined(String),
}

/// The end of an agent's work in a worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub(crate) enum WorktreeEnd {
    /// Nothing was done in it.
    Untouched,
    /// It was kept, and this is in it.
    Kept { report: Box<Report> },
    /// It stays as it is.
    Stays { path: PathBuf, branch: Option<String>, reason: String },
}

impl WorktreeEnd {
    /// Its path, if it is still there.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Untouched => None,
            Self::Kept { report } => Some(&report.path),
            Self::Stays { path, .. } => Some(path),
        }
    }

    /// That of an agent whose process died.
    pub(crate) fn left_by_death(spec: &WorktreeSpec) -> Self {
        let reason = "the process died in which its agent worked; `centurion worktrees` shows it";
        Self::Stays {
            path: spec.path.clone(),
            branch: spec.git.as_ref().map(|git| git.branch.clone()),
            reason: reason.to_owned(),
        }
    }

    pub(crate) fn branch(&self) -> Option<&str> {
        match self {
            Self::Untouched => None,
            // One that a hook made may be on none.
            Self::Kept { report } => Some(report.branch.as_str()).filter(|it| !it.is_empty()),
            Self::Stays { branch, .. } => branch.as_deref(),
        }
    }
}

/// Makes the worktrees of a session.
pub(crate) struct Isolator {
    /// Nothing where there is no git. Looked for when an agent works apart, which few sessions have.
    worktrees: OnceLock<Option<Worktrees>>,
    guard: GuardProgram,
    cwd: PathBuf,
    settings: WorktreeSettings,
    /// The sandbox of agents without a worktree.
    sandbox: Option<Arc<SandboxPolicy>>,
    env: Arc<Env>,
    session: CurrentSession,
    /// The confinement that this machine supports.
    support: OnceLock<Support>,
    /// True if what dead processes left was looked after.
    mended: OnceCell<()>,
    /// The worktrees that agents of this session have, by their paths: each is one value.
    known: Lock<HashMap<PathBuf, Weak<AgentWorktree>>>,
    /// The worktrees that agents entered in the middle of their work.
    entered: Lock<HashMap<Option<AgentId>, WorktreeEntry>>,
}

/// A directory that a hook made, and what is around the agent that it was made for.
struct HookedPlace {
    /// Without links.
    path: PathBuf,
    /// The repository's own checkout, and the agent's.
    checkout: (PathBuf, PathBuf),
    kept: Vec<PathBuf>,
    /// The state in which git found it.
    hooked: Option<HookedCheckout>,
}

/// The worktree of one agent, and of those below it that have none of their own.
pub(crate) struct AgentWorktree {
    pub(crate) spec: WorktreeSpec,
    pub(crate) places: Arc<IsolatedPlaces>,
    pub(crate) sandbox: Arc<SandboxPolicy>,
    /// Tools of servers that its agents called and that may have changed something elsewhere.
    outside: Lock<BTreeSet<String>>,
    asks_about_servers: bool,
    held: Mutex<WorktreeUse>,
}

impl AgentWorktree {
    /// The warning where commands of its agents are not kept from the checkout.
    pub(crate) fn unconfined(&self) -> Option<String> {
        let fault = self.sandbox.isolation_fault()?;
        Some(unconfined(&fault))
    }

    /// The directories that its agents' file tools reach.
    pub(crate) fn apart(&self) -> Apart {
        let links = self.spec.links.iter();
        let real = |path: &PathBuf| path.canonicalize().ok();
        let caller = self.spec.caller_top.as_ref().and_then(real);
        Apart {
            root: self.places.root.clone(),
            checkouts: [self.places.checkout.clone()].into_iter().chain(caller).collect(),
            kept: self.places.kept.clone(),
            readable: links.filter_map(|link| link.canonicalize().ok()).collect(),
            asks_about_servers: self.asks_about_servers,
        }
    }

    /// Takes note of a call of one of its agents that no worktree holds.
    pub(crate) fn note_outside(&self, tool: &str) {
        self.outside.lock().insert(tool.to_owned());
    }

    pub(crate) fn outside(&self) -> Vec<String> {
        self.outside.lock().iter().cloned().collect()
    }
}

/// The use of a worktree by this process.
struct WorktreeUse {
    /// The number of agents at work in it.
    users: usize,
    /// While it is in use.
    worktree: Option<Worktree>,
    /// True if nothing was done in it when the last one left.
    is_untouched: bool,
}

impl Isolator {
    pub(crate) fn new(
        settings: WorktreeSettings,
        sandbox: Option<Arc<SandboxPolicy>>,
        guard: GuardProgram,
        (env, cwd): (Arc<Env>, &Path),
        session: CurrentSession,
    ) -> Self {
        Self {
            worktrees: OnceLock::new(),
            guard,
            cwd: cwd.to_owned(),
            settings,
            sandbox,
            env,
            session,
            support: OnceLock::new(),
            mended: OnceCell::new(),
            known: Lock::default(),
            entered: Lock::default(),
        }
    }

    pub(crate) fn worktrees(&self) -> Option<&Worktrees> {
        let look = || {
            let program = InstalledGit::find(&self.env, &self.cwd)?.program().to_owned();
            let runner = Arc::new(GuardedGit::new(self.guard.clone()));
            Some(Worktrees::new(Git::new(program, &self.env, runner)))
        };
        self.worktrees.get_or_init(look).as_ref()
    }

    /// Makes a worktree for an agent that is about to start.
    pub(crate) async fn make(
        &self,
        caller: &Agent,
        id: &AgentId,
        task: &str,
        cancel: &CancellationToken,
    ) -> Result<Arc<AgentWorktree>, IsolationError> {
        let slug = Slug::of_agent(id.as_str())?;
        let stands = caller.workspace.root();
        let fired = caller.fire(&WorktreeCreate { name: slug.as_str() }, cancel).await;
        match fired.verdict {
            WorktreeVerdict::NoHook => {}
            WorktreeVerdict::Failed(reason) => return Err(IsolationError::Hook(reason)),
            WorktreeVerdict::Made(path) => return self.made_by_hook(caller, path, stands).await,
        }
        let worktrees = self.worktrees().ok_or(IsolationError::NoGit)?;
        self.mend_once(worktrees, caller, &stands).await;
        let wish = Wish {
            slug,
            owner: Owner {
                agent: Some(id.to_string()),
                session: Some(self.session.id().to_string()),
                task: task.to_owned(),
            },
            is_private: true,
            is_fresh: self.settings.is_fresh,
            contents: self.contents(),
        };
        let above = caller.isolation.as_ref().and_then(|worktree| worktree.spec.git.as_ref());
        let create = async |wish: &Wish| match above {
            // Its agent may have written to all that is in it.
            Some(git) => worktrees.create_in(&git.common, &stands, wish).await,
            None => worktrees.create(&stands, wish).await,
        };
        let made = match create(&wish).await {
            Err(CreateError::Taken { .. } | CreateError::InUse { .. }) => {
                let slug = Slug::of_whole_agent(id.as_str())?;
                create(&Wish { slug, ..wish }).await
            }
            made => made,
        }?;
        for warning in &made.warnings {
            caller.inform("warning", format!("worktree {}: {warning}", made.record.slug));
        }
        let own = made.private_repository().map(|it| it.path().to_owned()).unwrap_or_default();
        let spec = WorktreeSpec {
            path: made.record.path.clone(),
            checkout: checkout_of(&made.record.path),
            caller_top: Some(made.record.caller.clone()),
            kept: worktrees.above(&made).await,
            links: made.linked().map(Path::to_owned).collect(),
            caller: stands,
            git: Some(GitWorktree {
                slug: made.record.slug.clone(),
                branch: made.record.branch.clone(),
                base: made.record.base.clone(),
                own,
                common: made.common().to_owned(),
            }),
            hooked: None,
        };
        match self.worktree(spec, Some(made)) {
            Ok(worktree) => Ok(worktree),
            Err((error, made)) => {
                if let Some(made) = made {
                    delete(worktrees.settle(*made, None).await).await;
                }
                Err(error)
            }
        }
    }

    /// Looks after what a process left that died, before there is more.
    async fn mend_once(&self, worktrees: &Worktrees, caller: &Agent, stands: &Path) {
        let mend = || async {
            match tokio::time::timeout(MENDING, worktrees.mend(stands)).await {
                Ok(Ok(mended)) => tell_mended(caller, mended),
                Ok(Err(error)) => tracing::debug!(%error, "nothing was mended"),
                Err(_) => {
                    let text = "worktrees that a process left could not be mended in time";
                    caller.inform("warning", text.to_owned());
                }
            }
        };
        self.mended.get_or_init(mend).await;
    }

    fn contents(&self) -> Contents {
        Contents {
            links: self.settings.symlink_directories.clone(),
            sparse: self.settings.sparse_paths.clone(),
        }
    }

    async fn made_by_hook(
        &self,
        caller: &Agent,
        path: PathBuf,
        stands: PathBuf,
    ) -> Result<Arc<AgentWorktree>, IsolationError> {
        let place = self.hooked_place(&path, &stands).await?;
        let (home, top) = place.checkout;
        let spec = WorktreeSpec {
            path: place.path,
            checkout: match &caller.isolation {
                Some(worktree) => worktree.spec.checkout.clone(),
                None => home,
            },
            caller_top: Some(top),
            kept: place.kept,
            links: Vec::new(),
            caller: stands,
            git: None,
            hooked: place.hooked,
        };
        self.worktree(spec, None).map_err(|(error, _)| error)
    }

    /// Checks the directory that a hook made for an agent that stands in another one.
    async fn hooked_place(
        &self,
        path: &Path,
        stands: &Path,
    ) -> Result<HookedPlace, IsolationError> {
        let around = match self.worktrees() {
            Some(worktrees) => match worktrees.surroundings(stands).await {
                Ok(around) => Some((worktrees, around)),
                Err(CheckoutError::NoRepository(_)) => None,
                // A repository that git cannot tell of cannot be kept.
                Err(error) => return Err(CreateError::from(error).into()),
            },
            None => None,
        };
        let Some((worktrees, around)) = around else {
            // Of a repository that git does not know of, its top is known.
            let top = centurion_config::paths::repo_root(stands);
            let top = top.unwrap_or_else(|| stands.to_owned());
            let path = check_directory(path, &[stands.to_owned(), top.clone()])?;
            let hooked = match self.worktrees() {
                Some(worktrees) => worktrees.hooked(&path).await,
                None => None,
            };
            let checkout = (top.clone(), top);
            return Ok(HookedPlace { path, checkout, kept: Vec::new(), hooked });
        };
        let path = around.check_place(worktrees, path).await?;
        let kept = around.kept();
        let Checkout { home, top, .. } = around.checkout;
        let hooked = worktrees.hooked(&path).await;
        Ok(HookedPlace { path, checkout: (home, top), kept, hooked })
    }

    /// The worktree of an agent that continues, possibly in another process.
    pub(crate) fn again(&self, spec: &WorktreeSpec) -> Result<Arc<AgentWorktree>, IsolationError> {
        let known = self.known.lock().get(&spec.path).and_then(Weak::upgrade);
        match known {
            Some(worktree) => Ok(worktree),
            None => self.worktree(spec.clone(), None).map_err(|(error, _)| error),
        }
    }

    fn worktree(
        &self,
        spec: WorktreeSpec,
        worktree: Option<Worktree>,
    ) -> Result<Arc<AgentWorktree>, (IsolationError, Option<Box<Worktree>>)> {
        let places = match &spec.git {
            Some(git) => {
                let paths = WorktreePaths {
                    root: &spec.path,
                    checkout: &spec.checkout,
                    git_dir: &git.own,
                    common_dir: &git.common,
                };
                IsolatedPlaces::of_worktree(&paths, &self.env)
            }
            None => IsolatedPlaces::of_directory(&spec.path, &spec.checkout, &self.env),
        };
        // The caller may stand in another checkout than the repository's own, and a linked directory may be elsewhere.
        let kept = spec.caller_top.iter().chain(&spec.kept).chain(&spec.links);
        let kept = kept.filter_map(|path| path.canonicalize().ok());
        let places = match places.map(|places| places.keeping(kept)) {
            Ok(places) => places,
            Err(source) => {
                let error = IsolationError::Place { path: spec.path, source };
                return Err((error, worktree.map(Box::new)));
            }
        };
        let guarantee =
            if self.settings.requires_sandbox { Guarantee::Required } else { Guarantee::Wanted };
        let support = self.support.get_or_init(Support::detect);
        let policy = SandboxPolicy::isolated(self.sandbox.as_deref(), &places, guarantee, support);
        if let Some(fault) = policy.isolation_fault().filter(|_| self.settings.requires_sandbox) {
            return Err((IsolationError::NotConfined(fault), worktree.map(Box::new)));
        }
        // One that was just made is for the agent that it was made for.
        let users = usize::from(worktree.is_some());
        let worktree = Arc::new(AgentWorktree {
            spec,
            places: Arc::new(places),
            sandbox: Arc::new(policy),
            outside: Lock::default(),
            asks_about_servers: self.settings.requires_sandbox,
            held: Mutex::new(WorktreeUse { users, worktree, is_untouched: false }),
        });
        let mut known = self.known.lock();
        known.retain(|_, known| known.strong_count() > 0);
        known.insert(worktree.spec.path.clone(), Arc::downgrade(&worktree));
        drop(known);
        Ok(worktree)
    }

    /// An agent begins to work in a worktree.
    pub(crate) async fn enter(&self, worktree: &AgentWorktree) -> Result<(), IsolationError> {
        let mut held = worktree.held.lock().await;
        if let (None, Some(git)) = (&held.worktree, &worktree.spec.git) {
            let worktrees = self.worktrees().ok_or(IsolationError::NoGit)?;
            let wish = Wish {
                slug: git.slug.clone(),
                owner: Owner::default(),
                is_private: true,
                is_fresh: false,
                contents: Contents::default(),
            };
            if !worktree.spec.path.is_dir() {
                let source = std::io::ErrorKind::NotFound.into();
                return Err(IsolationError::Place { path: worktree.spec.path.clone(), source });
            }
            held.worktree =
                Some(worktrees.create_in(&git.common, &worktree.spec.checkout, &wish).await?);
        }
        held.users += 1;
        held.is_untouched = false;
        Ok(())
    }

    /// An agent has ended its work in a worktree. The last one brings its history home.
    pub(crate) async fn leave(&self, worktree: &AgentWorktree) -> WorktreeEnd {
        let mut held = worktree.held.lock().await;
        held.users = held.users.saturating_sub(1);
        let spec = &worktree.spec;
        let stays = |reason: String| WorktreeEnd::Stays {
            path: spec.path.clone(),
            branch: spec.git.as_ref().map(|git| git.branch.clone()),
            reason,
        };
        if held.users > 0 {
            return stays("other agents still work in it".to_owned());
        }
        if spec.git.is_none() {
            return self.leave_hooked(spec, stays).await;
        }
        let (Some(worktrees), Some(out)) = (self.worktrees(), &mut held.worktree) else {
            return stays("it is in use no longer".to_owned());
        };
        let finished = worktrees.finish(out, Some(&spec.caller));
        match tokio::time::timeout(PATIENCE, finished).await {
            Ok(Ok(Finished::Untouched)) => {
                held.is_untouched = true;
                WorktreeEnd::Untouched
            }
            Ok(Ok(Finished::Kept(report))) => {
                held.worktree = None;
                WorktreeEnd::Kept { report }
            }
            Ok(Err(error)) => stays(error.source.to_string()),
            Err(_) => stays(too_long()),
        }
    }

    /// Describes the work in a directory that a hook made, or says why it is not known. It stays.
    async fn leave_hooked(
        &self,
        spec: &WorktreeSpec,
        stays: impl Fn(String) -> WorktreeEnd,
    ) -> WorktreeEnd {
        let (Some(worktrees), Some(hooked)) = (self.worktrees(), &spec.hooked) else {
            let reason = "a hook made it, and it is no checkout of git's that can be compared";
            return stays(reason.to_owned());
        };
        let looking = worktrees.report_hooked(hooked, Some(&spec.caller));
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(Ok(report)) => WorktreeEnd::Kept { report: Box::new(report) },
            Ok(Err(error)) => stays(format!("a hook made it, and git cannot look at it ({error})")),
            Err(_) => stays(too_long()),
        }
    }

    /// Lets go of a worktree that no agent works in, after the end of the last one is recorded. If nothing was done in it
    /// it is removed.
    pub(crate) async fn let_go(&self, worktree: &AgentWorktree, agent: &Agent) {
        let mut held = worktree.held.lock().await;
        if held.users > 0 {
            return;
        }
        if worktree.spec.git.is_none() {
            let removed = WorktreeRemove { worktree_path: &worktree.spec.path };
            agent.fire(&removed, &CancellationToken::new()).await;
        }
        let (Some(worktrees), Some(out)) = (self.worktrees(), held.worktree.take()) else { return };
        if !held.is_untouched {
            // It is told of already, and stays as it is for the next process to look at.
            return;
        }
        // Looked at once more: it is another moment.
        delete(worktrees.settle(out, Some(&worktree.spec.caller)).await).await;
    }

    /// Ends a worktree whose agent was never started.
    pub(crate) async fn discard(&self, worktree: &AgentWorktree) {
        let mut held = worktree.held.lock().await;
        if let (Some(worktrees), Some(out)) = (self.worktrees(), held.worktree.take()) {
            delete(worktrees.settle(out, None).await).await;
        }
    }
}

fn too_long() -> String {
    format!("it took longer than {} s to look at it", PATIENCE.as_secs())
}

/// The warning about commands that are not kept from a checkout.
pub(crate) fn unconfined(fault: &str) -> String {
    format!("its commands are not kept from the checkout that it works apart from: {fault}")
}

/// The note about tools of servers that agents of a worktree called.
pub(crate) fn outside(tools: &[String]) -> Option<String> {
    if tools.is_empty() {
        return None;
    }
    let tools = listed(tools.iter(), ", ");
    Some(format!(
        "tools of servers that it called ({tools}) work outside of its worktree and may have changed files elsewhere, such \
         as in the checkout"
    ))
}

/// The checkout that a worktree lies in.
fn checkout_of(path: &Path) -> PathBuf {
    path.ancestors().nth(3).unwrap_or(path).to_owned()
}

/// Deletes what was put aside, which may take long.
async fn delete(settled: Result<Settled, centurion_worktree::SettleError>) {
    match settled {
        Ok(Settled::Removed(trash)) => {
            let _ = tokio::task::spawn_blocking(move || trash.delete()).await;
        }
        Ok(Settled::Kept(report)) => {
            tracing::info!(path = %report.path.display(), "a worktree stays");
        }
        Err(error) => tracing::warn!(%error, "a worktree stays"),
    }
}

/// Tells people what was found of processes that died.
fn tell_mended(caller: &Agent, mended: Vec<(String, Result<Mended, MendError>)>) {
    for (name, ended) in mended {
        let text = match ended {
            Ok(Mended::Kept(report)) => {
                let notes = report.notes.iter().map(|note| format!("; {note}"));
                format!(
                    "worktree {name}: a process that died had left work there; it is on branch {} now ({}){}",
                    report.branch,
                    report.path.display(),
                    notes.collect::<String>()
                )
            }
            Ok(Mended::Removed(trash)) => {
                trash.delete();
                continue;
            }
            Ok(Mended::Merge(merge)) => format!("worktree {name}: {merge}"),
            Err(error) => format!("worktree {name}: {error}"),
        };
        caller.inform("warning", text);
    }
}

/// The notice to an agent in a worktree.
pub(crate) fn notice(spec: &WorktreeSpec) -> String {
    let (path, checkout) = (spec.path.display(), spec.checkout.display());
    let on = spec.git.as_ref().map_or_else(String::new, |git| {
        let base = git.base.get(..12).unwrap_or(&git.base);
        format!(", on the branch {} that begins at commit {base}", git.branch)
    });
    format!(
        "You work apart from the others, in {path}: a checkout of its own{on}. Files below {checkout} that your task or \
         this conversation names are meant below {path}; read them again there before you change them, because what you \
         know of them may be another state. {checkout} itself cannot be changed from here, and what was not committed \
         there is missing here. Commit what belongs together; whatever you leave stays, and those who started you are \
         told of it."
    )
}
