//! A program that only reads: it starts no program, writes no file, reaches no network, and sees only the given paths.
//!
//! For our own programs in a hostile directory, such as git in a repository whose configuration names programs. The
//! kernel refuses to start them; so it does not matter which settings, attributes or links of the directory name them.

use std::collections::BTreeMap;
use std::ffi::{CString, NulError, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use thiserror::Error;

use crate::{filter, system};

/// The paths that programs of a system need to start: libraries, the loader's cache, configuration for all users.
const SYSTEM: [&str; 13] = [
    "/etc",
    "/gnu/store",
    "/lib",
    "/lib64",
    "/nix/store",
    "/run/current-system",
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/etc",
    "/usr/local/lib",
    "/usr/local/share",
    "/usr/share",
];

/// The memory limit of such a program.
const MEMORY: u64 = 1 << 30;
/// The limit of its processor time, in seconds.
const SECONDS: u64 = 10;

/// A program that only reads.
#[derive(Clone, Debug)]
pub struct Reader {
    /// An executable in the machine's format; a script would need another program to run it.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// The readable paths besides the files of the system.
    pub readable: Vec<PathBuf>,
}

/// The reason that a program cannot be confined to reading. It must not run then.
#[derive(Debug, Error)]
pub enum ReaderError {
    #[error("cannot open {}: {source}", .program.display())]
    Program { program: PathBuf, source: io::Error },
    #[error("an argument holds a zero byte")]
    Argument(#[from] NulError),
    #[error("the kernel cannot restrict reading: {0}")]
    Rules(#[from] RulesetError),
    #[error("the kernel has no Landlock")]
    NoLandlock,
    #[error("cannot filter system calls: {0}")]
    Filter(#[from] seccompiler::Error),
}

impl Reader {
    /// The command that becomes the program, confined. The caller sets its standard streams; its arguments and
    /// environment are fixed. It ends with the thread that starts it.
    pub fn into_command(self) -> Result<Command, ReaderError> {
        let opened = File::open(&self.program)
            .map_err(|source| ReaderError::Program { program: self.program.clone(), source })?;
        let mut words = vec![word(self.program.as_os_str())?];
        for argument in &self.args {
            words.push(word(argument)?);
        }
        let variables = self.environment.iter().map(|(name, value)| {
            CString::new(format!("{name}={value}")).map_err(ReaderError::from)
        });
        let becoming = system::ReaderParts {
            program: opened.into(),
            words: system::Words::new(words),
            variables: system::Words::new(variables.collect::<Result<_, _>>()?),
            rules: self.rules()?,
            filter: filter::reader()?,
            memory: MEMORY,
            seconds: SECONDS,
        };
        let mut command = Command::new(&self.program);
        command.current_dir(&self.cwd);
        system::become_reader(&mut command, becoming);
        Ok(command)
    }

    /// Landlock's rules: these paths can be read, nothing can be written except the null device.
    fn rules(&self) -> Result<OwnedFd, ReaderError> {
        if system::landlock_version().is_err() {
            return Err(ReaderError::NoLandlock);
        }
        let reading = AccessFs::ReadFile | AccessFs::ReadDir;
        // The filter refuses execution: the program's own loader must be executable here.
        let handled = AccessFs::from_all(ABI::V5) & !AccessFs::Execute;
        let places = SYSTEM.iter().map(Path::new).chain(self.readable.iter().map(PathBuf::as_path));
        let places = places.chain([self.program.as_path()]);
        let nowhere = [Path::new("/dev/null")];
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(handled)?
            .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?
            .scope(Scope::Signal | Scope::AbstractUnixSocket)?
            .create()?
            .add_rules(path_beneath_rules(places, reading))?
            .add_rules(path_beneath_rules(nowhere, AccessFs::ReadFile | AccessFs::WriteFile))?;
        Option::<OwnedFd>::from(ruleset).ok_or(ReaderError::NoLandlock)
    }
}

fn word(text: &OsStr) -> Result<CString, NulError> {
    CString::new(text.as_bytes())
}
