//! A scratch directory with a hostile tree, and observers for it.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use centurion_permissions::{Access, Call, Mode, Policy, Rule, RuleOrigin, Verdict, decide};
use centurion_tools::DiskLinks;
use rustix::fs::inotify;

/// The text of a file outside the working directory.
pub(crate) const OUTSIDE: &str = "OUTSIDE-CANARY";

/// The text of a file that a rule denies.
pub(crate) const DENIED: &str = "DENIED-CANARY";

/// Programs that other programs are known to start. Each of them leaves a trace here.
const HELPERS: [&str; 18] = [
    "compress",
    "ed",
    "editor",
    "evil",
    "gpg",
    "gpgsm",
    "gzip",
    "less",
    "lzip",
    "more",
    "pager",
    "pr",
    "ssh",
    "ssh-keygen",
    "uncompress",
    "vi",
    "xz",
    "zstd",
];

/// More of them, which lines also begin with.
const TOOLS: [&str; 14] = [
    "awk", "bash", "bzip2", "cat", "cp", "dd", "diff", "git", "ls", "perl", "python3", "rm", "sh",
    "touch",
];

pub(crate) struct Scratch {
    _directory: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) work: PathBuf,
    trace: PathBuf,
}

impl Scratch {
    /// A working directory with links that lead out, and a directory and a home outside.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let work = root.join("work");
        let scratch = Self { trace: root.join("trace"), _directory: directory, root, work };
        scratch.write_recorders();
        scratch.write_tree();
        scratch
    }

    fn write_recorders(&self) {
        let recorder = self.root.join("recorder");
        let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", self.trace.display());
        write(&recorder, &text);
        fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755)).unwrap();
        for (directory, names) in [("helpers", &HELPERS[..]), ("tools", &TOOLS)] {
            let directory = self.root.join(directory);
            fs::create_dir(&directory).unwrap();
            for name in names {
                symlink(&recorder, directory.join(name)).unwrap();
            }
        }
    }

    fn write_tree(&self) {
        let lines = |text: &str| format!("{text} one\n{text} two\n");
        for (path, text) in [
            ("outside/secret.txt", lines(OUTSIDE)),
            ("outside/c.txt", lines(OUTSIDE)),
            ("outside/a.txt", lines(OUTSIDE)),
            ("home/.bashrc", lines(OUTSIDE)),
            ("home/secret.txt", lines(OUTSIDE)),
            ("work/a.txt", "alpha\nbeta\n".to_owned()),
            ("work/b.txt", "alpha\ngamma\n".to_owned()),
            ("work/data.json", "{\"a\": [1, 2], \"b\": \"x\"}\n".to_owned()),
            ("work/secret.env", lines(DENIED)),
            ("work/names", "../outside/secret.txt\n/etc/hostname\n".to_owned()),
            ("work/names0", "../outside/secret.txt\0secret.env\0".to_owned()),
            ("work/script.sed", "w ../outside/made\n".to_owned()),
            ("work/dir/c.txt", "alpha\n".to_owned()),
            ("work/dir/sub/d.txt", "delta\n".to_owned()),
            ("work/dir2/c.txt", "beta\n".to_owned()),
            ("work/dir2/a.txt", "alpha\n".to_owned()),
            ("work/dir2/secret.env", lines(DENIED)),
            ("work/fixtures/.git/config", "[core]\n".to_owned()),
            ("work/fixtures/.envrc", "evil\n".to_owned()),
            ("work/fixtures/plain.txt", "plain\n".to_owned()),
            ("work/.claude/settings.json", "{}\n".to_owned()),
            ("work/.bash", "evil\n".to_owned()),
        ] {
            write(&self.root.join(path), &text);
        }
        for (link, target) in [
            ("work/out-file", "../outside/secret.txt"),
            ("work/out-dir", "../outside"),
            ("work/out-new", "../outside/new"),
            ("work/home-link", "../home"),
            ("work/denied-link", "secret.env"),
            ("work/in-link", "a.txt"),
            ("work/in-dir", "dir"),
            ("work/settings-link", ".claude/settings.json"),
            ("work/dir/out", "../../outside/secret.txt"),
            ("work/dir/out-dir", "../../outside"),
            ("work/dir/a.txt", "../../outside/a.txt"),
            ("work/dir/sub/up", "../../out-dir"),
            ("work/dir/sub/plain", "../../dir2"),
            ("work/dir2/out", "../../outside/c.txt"),
            ("work/dir2/b.txt", "../../home/.bashrc"),
            ("work/-n", "../outside/secret.txt"),
            ("work/1", "../outside/secret.txt"),
            ("work/HEAD~1", "../outside/secret.txt"),
        ] {
            symlink(target, self.root.join(link)).unwrap();
        }
    }

    /// A policy for the working directory. With `denies`, reading `secret.env` is denied.
    pub(crate) fn policy(&self, mode: Mode, denies: bool) -> Policy {
        let rules = if denies { "Read(secret.env)" } else { "" };
        Policy {
            mode,
            deny: Rule::parse_list(rules, &RuleOrigin::Flag).unwrap().into(),
            cwd: self.work.clone(),
            project_root: self.work.clone(),
            home: Some(self.root.join("home")),
            directories: vec![self.work.clone()],
            ..Policy::default()
        }
    }

    /// Runs the words unchanged, with the recorders in front of the path.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let (program, arguments) = words.split_first().unwrap();
        let program = program_path(program).unwrap();
        self.command(program, &["tools", "helpers"]).args(arguments).output().unwrap()
    }

    /// Runs a line in bash, as the Bash tool does.
    pub(crate) fn run_line(&self, line: &str) -> Output {
        let arguments = ["--norc", "--noprofile", "-c", line];
        self.command("/bin/bash", &["helpers"]).args(arguments).output().unwrap()
    }

    fn command(&self, program: impl AsRef<Path>, recorders: &[&str]) -> Command {
        let recorders = recorders.iter().map(|name| self.root.join(name));
        let places = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        let search = std::env::join_paths(recorders.chain(places)).unwrap();
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", search)
            .env("HOME", self.root.join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("TRACE", &self.trace)
            .current_dir(&self.work)
            .stdin(Stdio::null());
        command
    }

    /// The programs that left a trace.
    pub(crate) fn started(&self) -> Option<String> {
        fs::read_to_string(&self.trace).ok()
    }

    pub(crate) fn trace(&self) -> &Path {
        &self.trace
    }

    /// The state of every file and directory. Any change of one changes this.
    pub(crate) fn state(&self) -> BTreeMap<PathBuf, State> {
        let mut state = BTreeMap::new();
        gather(&self.root, &mut state);
        state
    }
}

/// The path of a program on this machine, past the recorders.
pub(crate) fn program_path(name: &str) -> Option<PathBuf> {
    ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.exists())
}

/// Whether the line runs without a question.
pub(crate) fn is_allowed(policy: &Policy, line: &str) -> bool {
    let access = Access::Shell(line.to_owned());
    let call = Call { links: &DiskLinks, ..Call::new("Bash", &access) };
    decide(policy, &call).verdict == Verdict::Allow
}

/// The values that distinguish two states of a file: inode, size, mode, and the time of its last change.
pub(crate) type State = (u64, u64, u32, i64, i64);

fn gather(directory: &Path, state: &mut BTreeMap<PathBuf, State>) {
    let metadata = fs::symlink_metadata(directory).unwrap();
    let is_directory = metadata.is_dir();
    let mark =
        (metadata.ino(), metadata.size(), metadata.mode(), metadata.ctime(), metadata.ctime_nsec());
    state.insert(directory.to_owned(), mark);
    if is_directory {
        for entry in fs::read_dir(directory).unwrap() {
            gather(&entry.unwrap().path(), state);
        }
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Observes whether a file or directory is opened.
pub(crate) struct Watch(OwnedFd);

impl Watch {
    pub(crate) fn new(paths: &[PathBuf]) -> Self {
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        for path in paths {
            inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).unwrap();
        }
        Self(watch)
    }

    /// Whether something was opened since the last call.
    pub(crate) fn was_opened(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4_096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        let mut opened = false;
        while reader.next().is_ok() {
            opened = true;
        }
        opened
    }
}
