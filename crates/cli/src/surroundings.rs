//! The surroundings of the program when it started. The one place that looks at the environment.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use centurion_config::paths::Dirs;
use centurion_files::private;
use centurion_protocol::{Env, SystemWorld, World};

/// The directory of managed instructions and settings.
pub(crate) const MANAGED: &str = "/etc/claude-code";

/// The surroundings of the program when it started.
pub(crate) struct Surroundings {
    pub(crate) env: Arc<Env>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) cwd: PathBuf,
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
        let env = Env::new(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }));
        let home = std::env::home_dir();
        let cwd = std::env::current_dir()
            .and_then(|cwd| cwd.canonicalize())
            .context("the working directory cannot be found")?;
        let dirs = Dirs::new(&env, home.as_deref())?;
        Ok(Self { env: Arc::new(env), home, cwd, dirs, scratch: scratch() })
    }

    /// The same for another session, with a scratch directory of its own.
    pub(crate) fn for_another_session(&self) -> Self {
        self.elsewhere(self.cwd.clone())
    }

    /// The same for something that works elsewhere, with a scratch directory of its own.
    pub(crate) fn elsewhere(&self, cwd: PathBuf) -> Self {
        Self {
            env: Arc::clone(&self.env),
            home: self.home.clone(),
            cwd,
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

/// A directory that no other process has.
fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("centurion-{}", SystemWorld.uuid()))
}
