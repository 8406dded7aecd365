//! Surroundings of a directory that an agent works apart from: checkouts and repositories, which belong to others.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::checkout::{Checkout, CheckoutError, WORKTREES};
use crate::files::{SHORT, read_text};
use crate::git::{At, Git};
use crate::names::shown;
use crate::worktrees::{Worktree, Worktrees};

/// The most repositories that are within each other.
const DEEPEST: usize = 16;

/// The checkouts and repositories around a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The checkout around it.
    pub checkout: Checkout,
    /// Checkouts of the same repository, and of those that this one is a submodule of.
    pub checkouts: Vec<PathBuf>,
    /// The git directories of these repositories.
    pub repositories: Vec<PathBuf>,
}

/// Reasons for which a directory that a hook made is no place to work apart in.
#[derive(Debug, Error)]
pub enum PlaceError {
    #[error("{} cannot be used: {source}", shown(.path))]
    Unusable { path: PathBuf, source: io::Error },
    #[error("{} is no directory", shown(.0))]
    NoDirectory(PathBuf),
    #[error("{} is, or has in it, {}, which work there would change", shown(.path), shown(.holds))]
    Holds { path: PathBuf, holds: PathBuf },
    #[error("{} lies in {}, which work there would change", shown(.path), shown(.around))]
    Within { path: PathBuf, around: PathBuf },
}

impl Worktrees {
    /// Looks for what is around a directory.
    pub async fn surroundings(&self, directory: &Path) -> Result<Surroundings, CheckoutError> {
        let checkout = Checkout::around(&self.git, directory).await?;
        let mut found = OuterRepositories {
            checkouts: vec![checkout.home.clone(), checkout.top.clone()],
            repositories: vec![checkout.common.clone()],
        };
        found.look(&self.git, &checkout.common, &checkout.home).await;
        let OuterRepositories { checkouts, repositories } = found;
        Ok(Surroundings { checkout, checkouts, repositories })
    }

    /// The checkouts and git directories of the repositories that a worktree's is a submodule of.
    pub async fn above(&self, worktree: &Worktree) -> Vec<PathBuf> {
        let mut found = OuterRepositories::default();
        if let Some(home) = worktree.record.path.ancestors().nth(3) {
            found.look(&self.git, &worktree.common, home).await;
        }
        found.checkouts.into_iter().chain(found.repositories).collect()
    }
}

/// Repositories around one, with their checkouts.
#[derive(Default)]
struct OuterRepositories {
    checkouts: Vec<PathBuf>,
    repositories: Vec<PathBuf>,
}

impl OuterRepositories {
    async fn look(&mut self, git: &Git, common: &Path, home: &Path) {
        let (mut common, mut home) = (common.to_owned(), home.to_owned());
        for _ in 0..DEEPEST {
            if let Some(own) = submodule_home(&common) {
                self.checkouts.push(own.clone());
                home = own;
            }
            let Some(above) = superproject(git, &home).await else { break };
            let Ok(here) = Checkout::around(git, &above).await else {
                // It has no commit yet.
                self.repositories.push(above.join(".git"));
                self.checkouts.push(above);
                break;
            };
            self.checkouts.extend([here.home.clone(), here.top]);
            self.repositories.push(here.common.clone());
            (common, home) = (here.common, here.home);
        }
    }
}

impl Surroundings {
    /// The paths outside of its own checkout that an agent leaves alone which works apart from here.
    pub fn kept(&self) -> Vec<PathBuf> {
        self.checkouts.iter().chain(&self.repositories).cloned().collect()
    }

    /// Checks that work in a directory changes nothing of what is around; the directory without links.
    pub async fn check_place(
        &self,
        worktrees: &Worktrees,
        path: &Path,
    ) -> Result<PathBuf, PlaceError> {
        let real = check_directory(path, &self.kept())?;
        let within =
            |around: &PathBuf| PlaceError::Within { path: real.clone(), around: around.clone() };
        if let Some(around) = self.repositories.iter().find(|it| real.starts_with(it)) {
            return Err(within(around));
        }
        let mut places = self.checkouts.iter().map(|checkout| checkout.join(WORKTREES));
        if places.any(|place| real.starts_with(&place) && real != place) {
            return Ok(real);
        }
        let Some(around) = self.checkouts.iter().find(|it| real.starts_with(it)) else {
            return Ok(real);
        };
        // A worktree or a clone that lies in the checkout is not a part of it; a submodule is.
        let own = Checkout::around(&worktrees.git, &real).await.ok().filter(|it| it.top == real);
        let is_apart = own.is_some_and(|own| {
            let is_part = |it: &PathBuf| own.common.starts_with(it) && own.common != *it;
            !self.repositories.iter().any(is_part)
        });
        if is_apart { Ok(real) } else { Err(within(around)) }
    }
}

/// Checks that a path is a directory that holds none of these paths; the directory without links.
pub fn check_directory(path: &Path, others: &[PathBuf]) -> Result<PathBuf, PlaceError> {
    let real = path
        .canonicalize()
        .map_err(|source| PlaceError::Unusable { path: path.to_owned(), source })?;
    if !real.is_dir() {
        return Err(PlaceError::NoDirectory(real));
    }
    let real_of = |it: &PathBuf| it.canonicalize().unwrap_or_else(|_| it.clone());
    match others.iter().map(real_of).find(|it| it.starts_with(&real)) {
        Some(holds) => Err(PlaceError::Holds { path: real, holds }),
        None => Ok(real),
    }
}

/// The checkout of a submodule whose git directory is in that of the repository around it.
fn submodule_home(common: &Path) -> Option<PathBuf> {
    if common.file_name()? == ".git" {
        return None;
    }
    let config = read_text(&common.join("config"), SHORT).ok()?;
    let named = config.lines().filter_map(|line| line.trim().strip_prefix("worktree"));
    let mut named = named.filter_map(|rest| rest.trim_start().strip_prefix('='));
    let named = named.next_back()?.trim().trim_matches('"');
    common.join(named).canonicalize().ok().filter(|it| it.is_dir())
}

/// The checkout that has this one as a submodule. Git is asked only where a repository is around.
async fn superproject(git: &Git, home: &Path) -> Option<PathBuf> {
    let mut above = home.ancestors().skip(1);
    above.find(|directory| directory.join(".git").exists())?;
    let args = ["rev-parse", "--show-superproject-working-tree"];
    let output = git.try_run(At::found_from(home), args).await.ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let said = said.trim_end_matches('\n');
    (output.code == Some(0) && !said.is_empty()).then(|| PathBuf::from(said))
}
