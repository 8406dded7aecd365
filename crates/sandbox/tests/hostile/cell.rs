//! A sandbox in a scratch directory, with things around it that it must not touch.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use centurion_sandbox::{
    Bubblewrap, CommandPlace, Gap, Hold, Method, Namespaces, Network, Plan, Sandbox, Support,
};
use centurion_testkit::{Lack, skip};
use tempfile::TempDir;

/// The text that no hostile command may read.
pub(crate) const SECRET: &str = "the-secret-words";
/// The content that no hostile command may change.
const ORIGINAL: &str = "original";

/// The ordinary user that root's tests also run as.
const NOBODY: u32 = 65534;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Own,
    Nobody,
}

/// One sandbox: `project` may be written, `outside` and `private` must stay untouched.
pub(crate) struct Cell {
    pub(crate) plan: Plan,
    pub(crate) user: User,
    pub(crate) root: PathBuf,
    pub(crate) project: PathBuf,
    program: PathBuf,
    before: Vec<(PathBuf, State)>,
    _scratch: TempDir,
}

/// The output of a command, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) ok: bool,
}

/// The whole state of a file except its access time.
#[derive(Debug, PartialEq, Eq)]
struct State {
    content: Option<String>,
    names: Vec<String>,
    mode: u32,
    owner: (u32, u32),
    modified: i64,
}

impl Cell {
    /// A cell for every method that this machine has and every user that the tests can be.
    pub(crate) fn all(adapt: impl Fn(&mut Sandbox)) -> Vec<Self> {
        let users = if rustix::process::geteuid().is_root() {
            vec![User::Own, User::Nobody]
        } else {
            vec![User::Own]
        };
        let cells: Vec<_> =
            users.into_iter().flat_map(|user| Self::with_every_method(user, &adapt)).collect();
        if cells.is_empty() {
            skip(Lack::Sandbox);
        } else if !cells.iter().any(|cell| cell.plan.gaps.is_empty()) {
            skip(Lack::CompleteSandbox);
        }
        for cell in &cells {
            let Plan { method, own_processes, gaps, .. } = &cell.plan;
            println!("{method:?} as {:?}, own processes {own_processes}, gaps {gaps:?}", cell.user);
        }
        cells
    }

    /// A cell for attempts outside of it.
    pub(crate) fn any() -> Self {
        Self::with_every_method(User::Own, &|_| ()).pop().expect("a method")
    }

    fn with_every_method(user: User, adapt: &impl Fn(&mut Sandbox)) -> Vec<Self> {
        let scratch = scratch();
        let support = run_as(user, &program_in(scratch.path())).output().unwrap();
        let support: Support = serde_json::from_slice(&support.stdout).unwrap();
        let no_namespaces = || Namespaces::Missing("left out".to_owned());
        let bubblewrap = support.bubblewrap.clone();
        let supports = [
            Support { bubblewrap: Bubblewrap::Missing, ..support.clone() },
            Support {
                bubblewrap: Bubblewrap::Missing,
                process_namespace: false,
                ..support.clone()
            },
            Support { namespaces: no_namespaces(), bubblewrap, ..support.clone() },
            Support {
                namespaces: no_namespaces(),
                bubblewrap: Bubblewrap::Missing,
                ..support.clone()
            },
        ];
        let mut cells: Vec<Self> = Vec::new();
        for support in supports {
            let Some(cell) = Self::new(user, &support, adapt) else { continue };
            let kind = |cell: &Self| (cell.plan.method.clone(), cell.plan.own_processes);
            if cells.iter().all(|known| kind(known) != kind(&cell)) {
                cells.push(cell);
            }
        }
        let count = usize::from(support.namespaces == Namespaces::Available)
            + usize::from(matches!(support.bubblewrap, Bubblewrap::Works(_)));
        assert!(cells.len() >= count, "what the machine has is tested: {support:?}");
        cells
    }

    fn new(user: User, support: &Support, adapt: &impl Fn(&mut Sandbox)) -> Option<Self> {
        let scratch = scratch();
        let root = scratch.path().canonicalize().unwrap();
        let project = root.join("project");
        for directory in ["project/.keep", "project/deep/secret", "outside/sub", "private"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        let kept = ["project/.keep/config", "outside/file", "outside/sub/file"];
        let secret = ["project/deep/secret/key", "private/key", "private-file"];
        for (files, content) in [(kept.as_slice(), ORIGINAL), (&secret, SECRET)] {
            for name in files {
                fs::write(root.join(name), content).unwrap();
            }
        }
        // Only the sandbox restricts the command.
        open_to_all(&root, user);
        let program = program_in(&root);

        let at = |name: &str| root.join(name);
        let mut sandbox = Sandbox {
            write: vec![project.clone()],
            deny_write: vec![at("project/.keep/config"), at("project/.new/config")],
            deny_read: vec![at("private"), at("private-file"), at("project/deep/secret")],
            ..Sandbox::default()
        };
        adapt(&mut sandbox);
        let plan = Plan::new(sandbox, support).ok()?;
        let guarded = ["outside", "outside/file", "outside/sub", "outside/sub/file"];
        let before = guarded.iter().map(|name| (at(name), State::of(&at(name)))).collect();
        Some(Self { plan, user, root, project, program, before, _scratch: scratch })
    }

    /// Runs a command in the sandbox.
    pub(crate) fn run(&self, command: &str) -> Said {
        self.finish(self.command(command))
    }

    /// Runs a command as the same user without a sandbox.
    pub(crate) fn run_free(&self, command: &str) -> Said {
        let mut free = run_as(self.user, Path::new("bash"));
        free.args(["-c", command]).current_dir(&self.project);
        self.finish(free)
    }

    /// The process that enters the sandbox and becomes `bash`.
    pub(crate) fn command(&self, command: &str) -> Command {
        let mut process = run_as(self.user, &self.program);
        process.args(self.args()).args(["bash", "-c", command]).current_dir(&self.project);
        process
    }

    /// The same as a line for a shell, to be followed by the command.
    pub(crate) fn line(&self) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let args = self.args().map(|arg| quoted(&arg)).join(" ");
        format!("{} {args}", quoted(self.program.to_str().unwrap()))
    }

    fn args(&self) -> [String; 2] {
        let place = serde_json::to_string(&self.place()).unwrap();
        [serde_json::to_string(&self.plan).unwrap(), place]
    }

    /// The hold that the guard of the commands would keep.
    pub(crate) fn hold(&self) -> Hold {
        self.plan.hold(&self.place()).unwrap()
    }

    fn place(&self) -> CommandPlace {
        let id = self.root.file_name().unwrap().to_string_lossy().into_owned();
        CommandPlace { id, cwd: self.project.clone(), ..CommandPlace::default() }
    }

    fn finish(&self, mut process: Command) -> Said {
        let output = process
            .env("TMPDIR", &self.project)
            .env("HOME", &self.project)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        Said { text, ok: output.status.success() }
    }

    pub(crate) fn guarantees(&self, gap: Gap) -> bool {
        !self.plan.gaps.contains(&gap)
    }

    pub(crate) fn has_namespaces(&self) -> bool {
        self.plan.method != Method::Landlock
    }

    /// Asserts that nothing outside has changed.
    pub(crate) fn assert_untouched(&self, attack: &str) {
        for (path, before) in &self.before {
            let place = format!("{attack}: {} {:?}", path.display(), self.plan.method);
            assert_eq!(State::of(path), *before, "{place}");
        }
        let mut names = names(&self.root);
        names.retain(|name| name != "sandboxed");
        assert_eq!(names, ["outside", "private", "private-file", "project"], "{attack}");
    }

    /// The content of a file of the project, as it is outside of the sandbox.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.project.join(name)).ok()
    }

    pub(crate) fn open(network: Network) -> impl Fn(&mut Sandbox) {
        move |sandbox| sandbox.network = network.clone()
    }
}

impl State {
    fn of(path: &Path) -> Self {
        let metadata = fs::symlink_metadata(path).unwrap();
        Self {
            content: fs::read_to_string(path).ok(),
            names: if metadata.is_dir() { names(path) } else { Vec::new() },
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            modified: metadata.mtime(),
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The program that enters a sandbox, where every user can reach it.
///
/// Copied by another process: while this one has it open for writing, a child of another test has, too, and
/// it cannot be started.
pub(crate) fn program_in(directory: &Path) -> PathBuf {
    let program = directory.join("sandboxed");
    let original = env!("CARGO_BIN_EXE_centurion-sandboxed");
    assert!(Command::new("cp").arg(original).arg(&program).status().unwrap().success());
    program
}

/// A directory that another user can reach, too.
pub(crate) fn scratch() -> TempDir {
    let scratch = tempfile::tempdir().unwrap();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o777)).unwrap();
    scratch
}

/// Gives everything to the user, so that file permissions stop nothing.
fn open_to_all(path: &Path, user: User) {
    let owner = (user == User::Nobody).then_some(NOBODY);
    chown(path, owner, owner).unwrap();
    let is_directory = path.is_dir();
    let mode = if is_directory { 0o777 } else { 0o666 };
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    if is_directory {
        for entry in fs::read_dir(path).unwrap() {
            open_to_all(&entry.unwrap().path(), user);
        }
    }
}

/// A program as one of the users.
pub(crate) fn run_as(user: User, program: &Path) -> Command {
    match user {
        User::Own => Command::new(program),
        User::Nobody => {
            let mut command = Command::new("setpriv");
            let id = NOBODY.to_string();
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(program);
            command
        }
    }
}
