//! A repository to work in, and what tests ask of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use centurion_protocol::Env;
use centurion_worktree::{
    Contents, CreateError, Direct, Entry, Git, Owner, Report, RunProgram, Settled, Slug, Wish,
    Worktree, Worktrees,
};

/// A repository with two commits on `main`, in a directory with a space in its name.
pub(crate) struct Scene {
    pub(crate) top: PathBuf,
    pub(crate) worktrees: Worktrees,
    scratch: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::run_by(Arc::new(Direct))
    }

    /// The same with other means to run git.
    pub(crate) fn run_by(runner: Arc<dyn RunProgram>) -> Self {
        Self::made_by(runner, "init -q -b main .")
    }

    /// A repository that has its refs in tables.
    pub(crate) fn with_reftable() -> Self {
        Self::made_by(Arc::new(Direct), "init -q -b main --ref-format=reftable .")
    }

    /// The same in memory, where that has room for so many files: a disk is slow to make and remove a million.
    pub(crate) fn in_memory(files: usize) -> Self {
        let memory = Path::new("/dev/shm");
        let has_room = rustix::fs::statvfs(memory).is_ok_and(|room| {
            let bytes = room.f_bavail * room.f_frsize;
            room.f_favail > files as u64 && bytes > files as u64 * 1024
        });
        let place = if has_room { memory.to_owned() } else { std::env::temp_dir() };
        let scratch = tempfile::tempdir_in(place).unwrap();
        Self::made_in(scratch, Arc::new(Direct), "init -q -b main .")
    }

    fn made_by(runner: Arc<dyn RunProgram>, init: &str) -> Self {
        Self::made_in(tempfile::tempdir().unwrap(), runner, init)
    }

    fn made_in(scratch: tempfile::TempDir, runner: Arc<dyn RunProgram>, init: &str) -> Self {
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir(root.join("home")).unwrap();
        let identity = "[user]\n\tname = T\n\temail = t@localhost\n";
        fs::write(root.join("home/.gitconfig"), identity).unwrap();
        let top = root.join("my repo");
        fs::create_dir(&top).unwrap();
        let worktrees = Worktrees::new(git(&root, runner));
        let scene = Self { top, worktrees, scratch };
        scene.git(init);
        scene.write("a.txt", "one\ntwo\nthree\n");
        scene.write("src/b.txt", "b\n");
        scene.write(".gitignore", "ignored/\nnode_modules\n.env\n");
        scene.commit("first");
        scene.write("src/c.txt", "c\n");
        scene.commit("second");
        scene
    }

    /// Other means to run git in the same repository.
    pub(crate) fn other(&self, runner: Arc<dyn RunProgram>) -> Worktrees {
        Worktrees::new(git(&self.root(), runner))
    }

    /// All files of the scene as they are, to come back to: faster than to make it again.
    pub(crate) fn saved(&self) -> tempfile::TempDir {
        let saved = tempfile::tempdir().unwrap();
        copy(&self.root(), saved.path());
        saved
    }

    /// Comes back to what was saved.
    pub(crate) fn rewind(&self, saved: &tempfile::TempDir) {
        for entry in fs::read_dir(self.root()).unwrap() {
            fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
        copy(saved.path(), &self.root());
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.scratch.path().canonicalize().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.top, name, text);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git("add -A");
        self.git(&format!("commit -q -m {message}"));
    }

    /// What git says in the repository; panics if it fails.
    pub(crate) fn git(&self, args: &str) -> String {
        self.git_in(&self.top, args)
    }

    pub(crate) fn git_in(&self, directory: &Path, args: &str) -> String {
        let (said, is_fine) = self.try_git_in(directory, args);
        assert!(is_fine, "git {args}: {said}");
        said
    }

    /// The same with words that have spaces in them.
    pub(crate) fn git_args(&self, args: &[&str]) -> String {
        let (said, is_fine) = self.run_git(&self.top, args);
        assert!(is_fine, "git {args:?}: {said}");
        said
    }

    pub(crate) fn try_git_in(&self, directory: &Path, args: &str) -> (String, bool) {
        self.run_git(directory, &args.split(' ').collect::<Vec<_>>())
    }

    pub(crate) fn run_git(&self, directory: &Path, args: &[&str]) -> (String, bool) {
        let output = Command::new("git")
            .args(args)
            .current_dir(directory)
            .env("HOME", self.root().join("home"))
            .env("GIT_EDITOR", "true")
            .output()
            .unwrap();
        let said = if output.status.success() { output.stdout } else { output.stderr };
        (String::from_utf8_lossy(&said).trim().to_owned(), output.status.success())
    }

    /// Runs a command as a person types it, elsewhere; panics if it fails.
    pub(crate) fn shell(&self, command: &str) {
        assert!(self.try_shell(command), "{command}");
    }

    pub(crate) fn try_shell(&self, command: &str) -> bool {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.root()).env("GIT_EDITOR", "true");
        shell.env("HOME", self.root().join("home")).output().unwrap().status.success()
    }

    pub(crate) fn head(&self) -> String {
        self.git("rev-parse HEAD")
    }

    /// All of the repository that an agent must leave alone: refs, index, files.
    pub(crate) fn state(&self) -> String {
        let refs = self.git("for-each-ref --format=%(refname)%(objectname)");
        let refs: Vec<_> = refs
            .lines()
            .filter(|line| !line.contains("/worktree-") && !line.contains("refs/centurion/"))
            .collect();
        let config = fs::read_to_string(self.path(".git/config")).unwrap();
        let files = self.git("ls-files --stage");
        format!("{refs:?}\n{config}\n{files}\n{}\n{}", self.git("status --porcelain"), self.head())
    }

    pub(crate) async fn create(&self, name: &str) -> Worktree {
        self.try_create(name).await.unwrap()
    }

    pub(crate) async fn try_create(&self, name: &str) -> Result<Worktree, CreateError> {
        self.worktrees.create(&self.top, &wish(name)).await
    }

    pub(crate) async fn settle(&self, worktree: Worktree) -> Settled {
        self.worktrees.settle(worktree, Some(&self.top)).await.unwrap()
    }

    /// The one worktree that is listed.
    pub(crate) async fn only(&self) -> Entry {
        let mut listed = self.worktrees.list(&self.top).await.unwrap();
        assert_eq!(listed.len(), 1, "{listed:?}");
        listed.remove(0)
    }

    /// Ends a worktree that must be kept.
    pub(crate) async fn keep(&self, worktree: Worktree) -> Report {
        match self.settle(worktree).await {
            Settled::Kept(report) => *report,
            Settled::Removed(_) => panic!("removed"),
        }
    }
}

/// Copies all that is in a directory, with modes, links and times.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(copied.success());
}

/// The git of this machine, for a home.
fn git(root: &Path, runner: Arc<dyn RunProgram>) -> Git {
    let path = std::env::var("PATH").unwrap();
    let home = root.join("home").display().to_string();
    let env = Env::from([("PATH", path.as_str()), ("HOME", home.as_str())]);
    let mut directories = std::env::split_paths(&path);
    let program = directories.find_map(|it| it.join("git").canonicalize().ok()).unwrap();
    Git::new(program, &env, runner)
}

pub(crate) fn wish(name: &str) -> Wish {
    Wish {
        slug: Slug::parse(name).unwrap(),
        owner: Owner {
            agent: Some(name.to_owned()),
            session: Some("s1".to_owned()),
            task: "a task".to_owned(),
        },
        is_private: true,
        is_fresh: false,
        contents: Contents::default(),
    }
}

pub(crate) fn write(top: &Path, name: &str, text: &str) {
    let path = top.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
