//! Git as worktrees need it: it asks nothing, has nothing to read, takes no lock only to look, and runs no program that a
//! repository names.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::Env;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::place;
use crate::plain;

/// Settings that override any configuration: git starts and fetches nothing, and tidies nothing up beside the work.
const SETTINGS: [&str; 22] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.alternateRefsCommand=true",
    "core.untrackedCache=false",
    // Whether a file was changed is seen from all that the file system says of it.
    "core.ignoreStat=false",
    "core.trustctime=true",
    "core.checkStat=default",
    // The locks of other gits, in milliseconds: on a busy machine they are held for longer than git waits by itself.
    "core.filesRefLockTimeout=5000",
    "core.packedRefsTimeout=10000",
    "merge.verifySignatures=false",
    "log.showSignature=false",
    "protocol.ext.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    // A repository within this one names programs of its own.
    "diff.ignoreSubmodules=dirty",
    "diff.submodule=short",
    // Git dies where there is no such file.
    "diff.orderFile=/dev/null",
    "status.submoduleSummary=false",
    "commit.gpgSign=false",
    // Its paths are read here, too.
    "worktree.useRelativePaths=false",
];

/// The most that is read of what git says.
const MOST_OUTPUT: u64 = 64 * 1024 * 1024;

/// Time limit of one git process: an agent may have put something in its way that would keep it waiting for ever.
const PATIENCE: Duration = Duration::from_mins(15);

/// The waits, in milliseconds, before git is run again that met a worktree which another process was just adding or removing.
const RETRIES: [u64; 9] = [5, 10, 20, 50, 100, 200, 400, 800, 1_600];

/// A program that is to run, and what it is given.
#[derive(Clone, Debug)]
pub struct Program {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// All of its environment.
    pub environment: BTreeMap<String, String>,
    /// Its standard input; empty by default.
    pub input: Vec<u8>,
}

/// Exit code and output of a program.
#[derive(Clone, Debug, Default)]
pub struct ProgramOutput {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// A program that runs.
pub type Running<'a> = Pin<Box<dyn Future<Output = io::Result<ProgramOutput>> + Send + 'a>>;

/// Runs programs to their end. Dropping what runs ends the program.
pub trait RunProgram: Send + Sync {
    fn run(&self, program: Program) -> Running<'_>;
}

/// Runs programs as children of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl RunProgram for Direct {
    fn run(&self, program: Program) -> Running<'_> {
        Box::pin(async move {
            let mut child = Command::new(&program.program)
                .args(&program.args)
                .env_clear()
                .envs(&program.environment)
                .current_dir(&program.cwd)
                .stdin(if program.input.is_empty() { Stdio::null() } else { Stdio::piped() })
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            let (stdin, stdout, stderr) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // One that ends before it has read everything says why.
                    let _ = stdin.write_all(&program.input).await;
                }
            };
            let (stdout, stderr, ()) = tokio::join!(read(stdout), read(stderr), feed);
            let (stdout, stderr) = (stdout?, stderr?);
            Ok(ProgramOutput { code: child.wait().await?.code(), stdout, stderr })
        })
    }
}

/// Reads what a program says, to a limit.
pub async fn read(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(MOST_OUTPUT + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() as u64 > MOST_OUTPUT {
        return Err(io::Error::other(format!("it said more than {MOST_OUTPUT} bytes")));
    }
    Ok(bytes)
}

/// Reasons for which git failed.
#[derive(Debug, Error)]
pub enum GitError {
    #[error("git cannot be run: {0}")]
    NotRun(#[source] io::Error),
    /// The files that git needs.
    #[error(transparent)]
    Files(#[from] io::Error),
    #[error("`git {0}` did not end")]
    Hangs(String),
    #[error("`git {command}` failed: {said}")]
    Failed { command: String, code: Option<i32>, said: String },
    #[error("`git {command}` said what cannot be read: {said}")]
    Unreadable { command: &'static str, said: String },
}

/// The git of this machine, with its environment.
#[derive(Clone)]
pub struct Git {
    program: PathBuf,
    environment: BTreeMap<String, String>,
    runner: Arc<dyn RunProgram>,
    /// Settings by which programs that a repository names do not run.
    tame: Vec<(String, String)>,
    /// True unless the repository's configuration is known to say the same in all of its git directories.
    depends_on_place: bool,
}

/// The repository and the files that a command works on.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) git_dir: Option<&'a Path>,
    pub(crate) work_tree: Option<&'a Path>,
    pub(crate) index: Option<&'a Path>,
    pub(crate) input: &'a [u8],
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl<'a> At<'a> {
    /// The repository that git finds from a directory, by whatever `.git` there says. Only for finding one: an agent may have
    /// written what is there, so all else is done at a place that is known.
    pub(crate) fn found_from(directory: &'a Path) -> Self {
        Self {
            directory,
            git_dir: None,
            work_tree: None,
            index: None,
            input: &[],
            variables: Vec::new(),
        }
    }

    /// A repository, wherever its files are.
    pub(crate) fn git_dir(git_dir: &'a Path) -> Self {
        Self { git_dir: Some(git_dir), ..Self::found_from(git_dir) }
    }

    pub(crate) fn work_tree(self, work_tree: &'a Path) -> Self {
        Self { work_tree: Some(work_tree), directory: work_tree, ..self }
    }

    pub(crate) fn index(self, index: &'a Path) -> Self {
        Self { index: Some(index), ..self }
    }

    pub(crate) fn input(self, input: &'a [u8]) -> Self {
        Self { input, ..self }
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }
}

impl Git {
    /// A git at a path, in an environment.
    pub fn new(program: PathBuf, env: &Env, runner: Arc<dyn RunProgram>) -> Self {
        let mut environment: BTreeMap<String, String> =
            env.of_git().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        environment.extend(
            [
                // S-298
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_ASKPASS", ""),
                ("SSH_ASKPASS", ""),
                ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
                ("GIT_OPTIONAL_LOCKS", "0"),
                ("GIT_NO_LAZY_FETCH", "1"),
                // Git LFS fetches no contents either: an agent's commit may say from where.
                ("GIT_LFS_SKIP_SMUDGE", "1"),
                // A ref that another process deletes while git lists all of them, or that is broken, is passed by: git would
                // die of it. What only such a ref has is kept as if no ref had it.
                ("GIT_REF_PARANOIA", "0"),
                // No git but the one that brings work home fetches anything, not even an object that is missing.
                ("GIT_ALLOW_PROTOCOL", "none"),
                ("GIT_EDITOR", "true"),
                ("GIT_PAGER", "cat"),
                ("LC_ALL", "C"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        Self { program, environment, runner, tame: Vec::new(), depends_on_place: true }
    }

    /// The same for a repository that may name programs: filters and merge drivers of its own do not run. Those of the
    /// user's configuration do.
    pub(crate) async fn tamed(&self, git_dir: &Path) -> Result<Self, GitError> {
        if plain::names_no_program(git_dir) {
            return Ok(Self { depends_on_place: false, ..self.clone() });
        }
        let args = ["config", "--list", "--name-only", "--show-scope", "-z"];
        let said = self.run(At::git_dir(git_dir), args).await?;
        let mut fields = said.split_terminator('\0');
        let mut tame: BTreeMap<String, String> = self.tame.iter().cloned().collect();
        let mut depends_on_place = false;
        while let (Some(scope), Some(key)) = (fields.next(), fields.next()) {
            if !matches!(scope, "local" | "worktree") {
                continue;
            }
            let Some((section, name)) = key.rsplit_once('.') else { continue };
            depends_on_place |= section.starts_with("includeif");
            if section.starts_with("filter.") {
                let off = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];
                tame.extend(off.map(|(name, off)| (format!("{section}.{name}"), off.to_owned())));
            } else if section.starts_with("hook.") {
                // Hooks in the configuration, which newer gits have.
                tame.insert(format!("{section}.enabled"), "false".to_owned());
                tame.insert(format!("{section}.command"), "true".to_owned());
            } else if section.starts_with("merge.") && name == "driver" {
                // Files that it would have merged are conflicts.
                tame.insert(key.to_owned(), "false".to_owned());
            }
        }
        Ok(Self { tame: tame.into_iter().collect(), depends_on_place, ..self.clone() })
    }

    /// The directory for what git needs for a moment, as its environment says.
    pub(crate) fn scratch(&self) -> PathBuf {
        let named = self.environment.get("TMPDIR").filter(|path| path.starts_with('/'));
        PathBuf::from(named.map_or("/tmp", String::as_str))
    }

    /// Whether it has to be tamed anew for another git directory of the same repository.
    pub(crate) fn depends_on_place(&self) -> bool {
        self.depends_on_place
    }

    /// Runs git and gives what it says, whatever its exit code.
    pub(crate) async fn try_run<S: AsRef<OsStr>>(
        &self,
        at: At<'_>,
        args: impl IntoIterator<Item = S>,
    ) -> Result<ProgramOutput, GitError> {
        let mut all: Vec<OsString> = Vec::new();
        all.extend(SETTINGS.iter().flat_map(|setting| ["-c".into(), setting.into()]));
        all.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        let mut environment = self.environment.clone();
        // It works in the directory that was opened, whatever its path comes to mean.
        let opened = at.work_tree.map(place::open).transpose()?;
        let mut cwd = at.directory.to_owned();
        if let Some(opened) = &opened {
            environment.insert("GIT_WORK_TREE".to_owned(), ".".to_owned());
            cwd = opened.at("");
        }
        for (name, path) in [("GIT_DIR", at.git_dir), ("GIT_INDEX_FILE", at.index)] {
            if let Some(path) = path {
                environment.insert(name.to_owned(), path.display().to_string());
            }
        }
        environment.extend(at.variables.into_iter().map(|(name, value)| (name.to_owned(), value)));
        environment.insert("GIT_CONFIG_COUNT".to_owned(), self.tame.len().to_string());
        for (number, (key, value)) in self.tame.iter().enumerate() {
            environment.insert(format!("GIT_CONFIG_KEY_{number}"), key.clone());
            environment.insert(format!("GIT_CONFIG_VALUE_{number}"), value.clone());
        }
        let args = all.get(2 * SETTINGS.len()..).unwrap_or_default();
        let command = shown(args);
        let program = Program {
            program: self.program.clone(),
            args: all,
            cwd,
            environment,
            input: at.input.to_owned(),
        };
        for wait in RETRIES {
            let output = self.run_once(program.clone(), &command).await?;
            if !met_half_a_worktree(&output) {
                return Ok(output);
            }
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        self.run_once(program, &command).await
    }

    async fn run_once(&self, program: Program, command: &str) -> Result<ProgramOutput, GitError> {
        let ended = tokio::time::timeout(PATIENCE, self.runner.run(program)).await;
        ended.map_err(|_| GitError::Hangs(command.to_owned()))?.map_err(GitError::NotRun)
    }

    /// Runs git; what it says where it succeeds.
    pub(crate) async fn run<S: AsRef<OsStr>>(
        &self,
        at: At<'_>,
        args: impl IntoIterator<Item = S>,
    ) -> Result<String, GitError> {
        let said = self.run_raw(at, args).await?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    /// The same where it names files, which need not be text.
    pub(crate) async fn run_raw<S: AsRef<OsStr>>(
        &self,
        at: At<'_>,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Vec<u8>, GitError> {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let output = self.try_run(at, &args).await?;
        if output.code == Some(0) { Ok(output.stdout) } else { Err(failed(&args, &output)) }
    }
}

/// Checks that git broke off because the repository's directory for some worktree was not whole. Git writes and deletes such
/// a directory file by file, and dies, before it changes anything, where `commondir` is empty or goes while it is read, or
/// the directory goes after it was listed.
fn met_half_a_worktree(output: &ProgramOutput) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let is_it = |line: &str| {
        (line.contains("failed to read ") && line.contains("/commondir: "))
            || (line.contains("Invalid path '")
                && line.contains("/worktrees/")
                && line.ends_with(": No such file or directory"))
    };
    output.code != Some(0) && said.lines().any(is_it)
}

/// Names a command by its first words, without our own options.
fn shown<S: AsRef<OsStr>>(args: &[S]) -> String {
    let words: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
    let settings = words.chunks(2).take_while(|pair| pair.first().is_some_and(|it| it == "-c"));
    let words = words.iter().skip(2 * settings.count());
    let words: Vec<&str> = words.map(|it| &**it).take_while(|it| !it.starts_with('-')).collect();
    words.get(..2).unwrap_or(&words).join(" ")
}

/// The failure of a command.
pub(crate) fn failed<S: AsRef<OsStr>>(args: &[S], output: &ProgramOutput) -> GitError {
    GitError::Failed { command: shown(args), code: output.code, said: said(output) }
}

/// The error message of a command, on one line.
pub(crate) fn said(output: &ProgramOutput) -> String {
    const SHOWN: usize = 2_000;
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = said.trim().trim_start_matches("fatal: ").lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let said = lines.join("; ");
    // Git names files, and not all of them in quotes.
    said.chars().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_said_stands_on_one_line() {
        let stderr = b"fatal: it cannot be done\n  hint: \x1b[31mtry\n\n\thint: again\n".to_vec();
        let output = ProgramOutput { code: Some(128), stdout: Vec::new(), stderr };
        assert_eq!(said(&output), "it cannot be done; hint: ?[31mtry; hint: again");
    }

    #[test]
    fn a_command_is_named_without_our_options() {
        let settings = ["-c", "a.b=true", "-c", "c.d=x", "fetch", "--quiet", "--stdin", "/x"];
        assert_eq!(shown(&settings), "fetch");
        assert_eq!(shown(&["worktree", "add", "--quiet", "x"]), "worktree add");
        assert_eq!(shown(&["-c", "a.b=true"]), "");
    }
}
