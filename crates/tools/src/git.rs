//! Git as this program runs it for itself, in two ways.
//!
//! [`Git::reading`] reads a repository that may be hostile. Filters, hooks, monitors, remotes, pagers and all other
//! programs that its configuration names cannot run: the kernel lets this git start no program and no process, write
//! nothing, and read nothing outside the repository (see [`Reader`](centurion_sandbox::Reader)). Where the kernel
//! cannot do that, git does not run.
//!
//! [`InstalledGit::fetching`] fetches a repository into a new directory, where nothing is configured yet.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use centurion_protocol::Env;
use centurion_sandbox::{Reader, ReaderError};
use tokio::io::AsyncReadExt as _;

/// Settings that override every configuration. The kernel refuses the programs in any case; but a git that knows that
/// there is none reads files in the usual way.
const NOTHING_RUNS: [&str; 10] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "diff.ignoreSubmodules=dirty",
    "log.showSignature=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
    "credential.helper=",
];

/// Settings that restrict git while it fetches, over the user's own configuration.
const FETCHING: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "credential.interactive=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    "safe.bareRepository=explicit",
    // A server that says nothing for this long will not answer.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
];

/// The bytes of git's output that are read.
const MOST_OUTPUT: u64 = 1024 * 1024;

/// The first bytes of files that the kernel runs by itself.
const ELF: [u8; 4] = *b"\x7fELF";

/// The repository to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitPlaces {
    /// The top of the checkout. Its own settings cannot move it elsewhere.
    pub work_tree: PathBuf,
    /// The directories of its history, if they are not below the work tree.
    pub directories: Vec<PathBuf>,
}

/// The output of git, in whole or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitText {
    pub text: String,
    /// Whether there was more, which was not read.
    pub is_cut: bool,
}

/// An installed git, and the variables that it gets.
#[derive(Clone, Debug)]
pub struct InstalledGit {
    program: PathBuf,
    home: BTreeMap<String, String>,
}

impl InstalledGit {
    /// Finds the first git of the user's search path that is a program and not a script. Skips entries that are
    /// relative or lie below `untrusted`.
    pub fn find(env: &Env, untrusted: &Path) -> Option<Self> {
        let program = on_path(env, Some(untrusted)).find(|path| is_elf(path))?;
        let home = ["HOME", "XDG_CONFIG_HOME"];
        let home =
            home.iter().filter_map(|name| Some(((*name).to_owned(), env.get(name)?.to_owned())));
        Some(Self { program, home: home.collect() })
    }

    /// The program that was found.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A git command that only reads. The caller sets its streams.
    pub fn reading(&self, places: &GitPlaces, arguments: &[&str]) -> Result<Command, ReaderError> {
        let path = |path: &Path| path.display().to_string();
        let mut environment = self.home.clone();
        let parent = places.work_tree.parent().unwrap_or(&places.work_tree);
        environment.extend(
            [
                // Neither the work tree that a file of the repository names, nor a repository further up.
                ("GIT_WORK_TREE", path(&places.work_tree)),
                ("GIT_CEILING_DIRECTORIES", path(parent)),
                ("GIT_NO_LAZY_FETCH", "1".to_owned()),
                ("GIT_NO_REPLACE_OBJECTS", "1".to_owned()),
                ("GIT_TERMINAL_PROMPT", "0".to_owned()),
                ("GIT_PAGER", "cat".to_owned()),
                ("LC_ALL", "C".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let mut args = vec!["--no-optional-locks".into(), "--no-pager".into()];
        args.extend(NOTHING_RUNS.iter().flat_map(|setting| ["-c".into(), setting.into()]));
        args.extend(arguments.iter().map(Into::into));
        let mut readable = vec![places.work_tree.clone()];
        readable.extend(places.directories.iter().cloned());
        readable.extend(self.own_files());
        Reader {
            program: self.program.clone(),
            args,
            environment,
            cwd: places.work_tree.clone(),
            readable,
        }
        .into_command()
    }

    /// The files of git itself and of the user: libraries beside the program, and configuration.
    fn own_files(&self) -> Vec<PathBuf> {
        let home = self.home.get("HOME").map(PathBuf::from);
        let is_home = |path: &Path| home.as_ref().is_some_and(|home| home.starts_with(path));
        let prefix = self.program.parent().and_then(Path::parent);
        let prefix = prefix.filter(|prefix| prefix.parent().is_some() && !is_home(prefix));
        let mut files: Vec<PathBuf> = prefix
            .into_iter()
            .flat_map(|it| ["lib", "share", "etc"].map(|name| it.join(name)))
            .collect();
        let configured = self.home.get("XDG_CONFIG_HOME").map(PathBuf::from);
        let configured = configured.or_else(|| Some(home.as_ref()?.join(".config")));
        files.extend(configured.map(|directory| directory.join("git")));
        files.extend(home.map(|home| home.join(".gitconfig")));
        files
    }

    /// Runs a git command that only reads, and returns its output; `None` if it fails. Dropping the future ends git.
    pub async fn read(&self, places: &GitPlaces, arguments: &[&str]) -> Option<GitText> {
        if let Some(text) = self.try_to_read(places, arguments).await {
            return Some(text);
        }
        // The user's configuration may include files that this git cannot read.
        let without = Self {
            home: BTreeMap::from([("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned())]),
            ..self.clone()
        };
        without.try_to_read(places, arguments).await
    }

    async fn try_to_read(&self, places: &GitPlaces, arguments: &[&str]) -> Option<GitText> {
        let mut command = self
            .reading(places, arguments)
            .inspect_err(|error| tracing::debug!(%error, "git is not run"))
            .ok()?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut command = tokio::process::Command::from(command);
        let mut child = command
            .kill_on_drop(true)
            .spawn()
            .inspect_err(|error| tracing::debug!(%error, "git cannot be run"))
            .ok()?;
        let mut bytes = Vec::new();
        child.stdout.take()?.take(MOST_OUTPUT + 1).read_to_end(&mut bytes).await.ok()?;
        let is_cut = bytes.len() as u64 > MOST_OUTPUT;
        if is_cut {
            let _ = child.kill().await;
        } else if !child.wait().await.ok()?.success() {
            return None;
        }
        Some(GitText { text: String::from_utf8_lossy(&bytes).into_owned(), is_cut })
    }

    /// A git command that fetches into a directory of ours, or works in the fetched repository. It may reach servers
    /// and run its own helpers, asks nothing, and runs in a directory that no repository configures.
    pub fn fetching(env: &Env, directory: &Path) -> io::Result<Command> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no git");
        let mut command = Command::new(on_path(env, None).next().ok_or_else(missing)?);
        command.current_dir(directory);
        for setting in FETCHING {
            command.args(["-c", setting]);
        }
        command
            .env_clear()
            .envs(env.of_git())
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS", "")
            .env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
            .env("GIT_LFS_SKIP_SMUDGE", "1")
            .stdin(Stdio::null());
        if let Some(parent) = directory.parent() {
            command.env("GIT_CEILING_DIRECTORIES", parent);
        }
        Ok(command)
    }
}

/// The executables named `git` in the order of the search path.
fn on_path<'e>(env: &'e Env, untrusted: Option<&'e Path>) -> impl Iterator<Item = PathBuf> + 'e {
    let is_foreign =
        move |path: &Path| untrusted.is_some_and(|untrusted| path.starts_with(untrusted));
    let directories = std::env::split_paths(env.get("PATH").unwrap_or_default());
    let directories: Vec<PathBuf> = directories.filter(|it| it.is_absolute()).collect();
    directories.into_iter().filter_map(move |directory| {
        let program = directory.join("git").canonicalize().ok()?;
        let metadata = program.metadata().ok()?;
        let is_executable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        (is_executable && !is_foreign(&directory) && !is_foreign(&program)).then_some(program)
    })
}

fn is_elf(program: &Path) -> bool {
    let mut beginning = [0; ELF.len()];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && beginning == ELF
}
