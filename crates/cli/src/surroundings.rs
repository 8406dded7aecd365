//! The surroundings of the program when it started. The one place that looks at the environment.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use centurion_config::paths::{Dirs, repo_root};
use centurion_config::trust::TrustKey;
use centurion_files::private;
use centurion_protocol::{Env, SystemWorld, World};

/// The directory of managed instructions and settings.
pub(crate) const MANAGED: &str = "/etc/claude-code";

/// The surroundings of the program when it started.
pub(crate) struct Surroundings {
    pub(crate) env: Arc<Env>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) cwd: PathBuf,
    /// The trusted checkout that `cwd` is a worktree of, where its configuration counts in the place of that in `cwd`.
    pub(crate) config_root: Option<PathBuf>,
    pub(crate) dirs: Dirs,
    /// For what must not stay: made when something is put there.
    pub(crate) scratch: PathBuf,
}

impl Surroundings {
    /// The same for a later look, without the scratch directory, which is this one's to remove.
    pub(crate) fn for_later(&self) -> Self {
        Self {
            env: Arc::clone(&self.env),
            home: self.home.clone(),
            cwd: self.cwd.clone(),
            config_root: self.config_root.clone(),
            dirs: self.dirs.clone(),
            scratch: PathBuf::new(),
        }
    }
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        // Most runs never made it.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

impl Surroundings {
    pub(crate) fn observe() -> anyhow::Result<Self> {
        let env = environment();
        let home = std::env::home_dir();
        let cwd = std::env::current_dir()
            .and_then(|cwd| cwd.canonicalize())
            .context("the working directory cannot be found")?;
        let dirs = Dirs::new(&env, home.as_deref())?;
        Ok(Self { env: Arc::new(env), home, cwd, config_root: None, dirs, scratch: scratch() })
    }

    /// Takes a variable out of the environment that commands get.
    pub(crate) fn take_variable(&mut self, name: &str) -> Option<String> {
        Arc::make_mut(&mut self.env).remove(name)
    }

    /// The same with the configuration of another checkout, as `--project-config-root` names it.
    pub(crate) fn configured_by(mut self, root: Option<&Path>) -> anyhow::Result<Self> {
        let Some(given) = root else { return Ok(self) };
        let place = given.display();
        ensure!(given.is_absolute(), "--project-config-root {place}: an absolute path is needed");
        let root =
            given.canonicalize().with_context(|| format!("--project-config-root {place}"))?;
        // Trust in the one checkout is trust in the other, so that only places of files differ.
        let is_of_one_repository =
            repo_root(&root).is_some() && TrustKey::of(&root) == TrustKey::of(&self.cwd);
        ensure!(
            root.is_dir() && (root == self.cwd || is_of_one_repository),
            "--project-config-root {place}: {} is no worktree of this checkout",
            self.cwd.display()
        );
        self.config_root = Some(root).filter(|root| *root != self.cwd);
        Ok(self)
    }

    /// The directory whose settings, servers and definitions are those of the project.
    pub(crate) fn project(&self) -> &Path {
        self.config_root.as_deref().unwrap_or(&self.cwd)
    }

    /// The same for another session, with a scratch directory of its own.
    pub(crate) fn for_another_session(&self) -> Self {
        let mut other = self.elsewhere(self.cwd.clone());
        other.config_root.clone_from(&self.config_root);
        other
    }

    /// The same for something that works elsewhere, with a scratch directory of its own.
    pub(crate) fn elsewhere(&self, cwd: PathBuf) -> Self {
        Self {
            env: Arc::clone(&self.env),
            home: self.home.clone(),
            cwd,
            config_root: None,
            dirs: self.dirs.clone(),
            scratch: scratch(),
        }
    }

    /// Makes the scratch directory, which only this user can enter.
    pub(crate) fn make_scratch(&self) -> std::io::Result<()> {
        private::create_directory(&self.scratch)
    }

    /// Whether what goes to standard error may have colours.
    pub(crate) fn paints(&self) -> bool {
        std::io::stderr().is_terminal() && self.env.get("NO_COLOR").is_none()
    }
}

/// The environment of the program.
pub(crate) fn environment() -> Env {
    Env::new(
        std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    )
}

/// A directory that no other process has.
fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("centurion-{}", SystemWorld.uuid()))
}
