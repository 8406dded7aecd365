//! The capabilities of this machine to confine a command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::namespaces::Processes;
use crate::{Network, devices, filter, namespaces, processes, system};

/// The results of trying, not the promises of the kernel's version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Support {
    /// The version of Landlock.
    pub landlock: Option<u32>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    pub namespaces: Namespaces,
    /// Whether namespaces can have processes of their own.
    pub process_namespace: bool,
    pub bubblewrap: Bubblewrap,
}

/// Whether this user can make namespaces for mounts and network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Namespaces {
    Available,
    /// For this reason.
    Missing(String),
}

/// The helper program for machines where namespaces need privileges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Bubblewrap {
    Works(PathBuf),
    Broken { path: PathBuf, reason: String },
    Missing,
}

impl Support {
    /// Tries everything. Starts a few short-lived processes.
    pub fn detect() -> Self {
        Self {
            landlock: system::landlock_version().ok(),
            seccomp: system::has_filters() && filter::architecture().is_ok(),
            namespaces: try_namespaces(),
            process_namespace: try_process_namespace(),
            bubblewrap: try_bubblewrap(),
        }
    }
}

/// For people: a line for each method of confinement.
impl fmt::Display for Support {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespaces {
            Namespaces::Available if self.process_namespace => {
                writeln!(formatter, "namespaces: available")?;
            }
            Namespaces::Available => {
                writeln!(formatter, "namespaces: available, but for processes")?;
            }
            Namespaces::Missing(reason) => writeln!(formatter, "namespaces: {reason}")?,
        }
        match self.landlock {
            Some(version @ 6..) => writeln!(formatter, "landlock: version {version}")?,
            Some(version) => {
                writeln!(
                    formatter,
                    "landlock: version {version}, which does not hold back signals"
                )?;
            }
            None => writeln!(formatter, "landlock: the kernel does not have it")?,
        }
        let seccomp = if self.seccomp { "available" } else { "the kernel does not have it" };
        writeln!(formatter, "seccomp: {seccomp}")?;
        match &self.bubblewrap {
            Bubblewrap::Works(path) => write!(formatter, "bubblewrap: {}", path.display()),
            Bubblewrap::Broken { path, reason } => {
                write!(formatter, "bubblewrap: {} does not work: {reason}", path.display())
            }
            Bubblewrap::Missing => formatter.write_str("bubblewrap: not installed"),
        }
    }
}

fn try_namespaces() -> Namespaces {
    /// The failed step, by the exit code of the child.
    const STEPS: [&str; 3] = [
        "this user may not have namespaces",
        "mounts cannot be made read-only (Linux 5.12 can)",
        "a file system in memory cannot be mounted",
    ];
    const SUCCESS: u8 = 3;
    let tried = system::in_child(|| {
        // Each step changes objects that the step before it made this process's own.
        let Ok(own) = namespaces::enter(&Network::Off, Processes::Shared) else { return 0 };
        if namespaces::make_all_read_only(&own).is_err() {
            return 1;
        }
        if devices::try_cover(&own).is_err() {
            return 2;
        }
        SUCCESS
    });
    match tried {
        Ok(Some(step)) => match STEPS.get(usize::from(step)) {
            None => Namespaces::Available,
            Some(reason) => Namespaces::Missing((*reason).to_owned()),
        },
        Ok(None) => Namespaces::Missing("the attempt was killed".to_owned()),
        Err(error) => Namespaces::Missing(format!("no process could be started: {error}")),
    }
}

fn try_process_namespace() -> bool {
    let tried = system::in_child(|| {
        let Ok(own) = namespaces::enter(&Network::Off, Processes::Own) else { return 1 };
        // If parts of the machine's `/proc` are covered, the kernel refuses a new one.
        let mounted = system::in_child(|| u8::from(processes::mount_own(&own).is_err()));
        u8::from(!matches!(mounted, Ok(Some(0))))
    });
    matches!(tried, Ok(Some(0)))
}

/// The directories of the system's own programs. A user's search path may lead to anything.
const PROGRAMS: [&str; 4] =
    ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

fn try_bubblewrap() -> Bubblewrap {
    let Some(path) = PROGRAMS.iter().map(PathBuf::from).find(|path| path.is_file()) else {
        return Bubblewrap::Missing;
    };
    match run_bubblewrap(&path) {
        Ok(()) => Bubblewrap::Works(path),
        Err(error) => Bubblewrap::Broken { path, reason: error.to_string() },
    }
}

/// A bubblewrap that cannot confine anything here, with what it says about it.
#[derive(Debug, Error)]
enum BubblewrapError {
    #[error(transparent)]
    Start(#[from] io::Error),
    #[error("{0}")]
    Failed(String),
}

fn run_bubblewrap(path: &Path) -> Result<(), BubblewrapError> {
    let attempt = Command::new(path)
        .args(crate::bubblewrap::BASE)
        .args(["--unshare-net", "--", "/proc/self/exe", "--version"])
        .stdin(Stdio::null())
        .output()?;
    if attempt.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&attempt.stderr);
    Err(BubblewrapError::Failed(said.lines().next().unwrap_or("it says nothing").to_owned()))
}
