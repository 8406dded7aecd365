//! The real git in repositories that configure programs, and point elsewhere.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A repository with a commit, beside a private one.
struct Hostile {
    scratch: tempfile::TempDir,
    env: Env,
}

impl Hostile {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path().join("home");
        fs::create_dir(&home).unwrap();
        let path = std::env::var("PATH").unwrap();
        let env = Env::from([("PATH", path.as_str()), ("HOME", home.to_str().unwrap())]);
        let hostile = Self { scratch, env };
        for (name, subject) in [("repo", "first"), ("private", "CANARY subject")] {
            hostile.git(&["init", "-q", "-b", "main", hostile.path(name).to_str().unwrap()], "");
            hostile.write(&format!("{name}/file"), "text\n");
            if name == "private" {
                hostile.write("private/CANARY-name", "");
            }
            hostile.git(&["add", "."], name);
            hostile.git(&["commit", "-q", "-m", subject], name);
        }
        hostile
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(relative)
    }

    fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The ordinary git, to set things up and to show its behaviour.
    fn git(&self, arguments: &[&str], directory: &str) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=T", "-c", "user.email=t@localhost"])
            .args(arguments)
            .current_dir(self.path(directory))
            .env("HOME", self.path("home"))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn configure(&self, text: &str) {
        let config = self.path("repo/.git/config");
        let before = fs::read_to_string(&config).unwrap();
        fs::write(config, before + text).unwrap();
    }

    /// A program that leaves a mark when it is run.
    fn canary(&self) -> String {
        let program = self.path("canary.sh");
        let mark = self.path("MARK");
        fs::write(&program, format!("#!/bin/sh\ntouch '{}'\n", mark.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program.display().to_string()
    }

    fn is_marked(&self) -> bool {
        self.path("MARK").exists()
    }

    async fn read(&self, arguments: &[&str]) -> Option<String> {
        let root = self.path("repo");
        let places = GitPlaces { work_tree: root.clone(), directories: Vec::new() };
        let git = InstalledGit::find(&self.env, &root).unwrap();
        git.read(&places, arguments).await.map(|text| text.text)
    }

    async fn status(&self) -> Option<String> {
        self.read(&["status", "--porcelain=v1", "--ignore-submodules=dirty"]).await
    }

    async fn log(&self) -> Option<String> {
        self.read(&["log", "-5", "--format=%h %s"]).await
    }
}

#[tokio::test]
async fn an_ordinary_repository_is_described() {
    let hostile = Hostile::new();
    hostile.write("repo/file", "changed\n");
    hostile.write("repo/new", "");
    hostile.write("home/.gitconfig", "[core]\n\texcludesFile = ~/.config/git/mine\n");
    hostile.write("home/.config/git/mine", "*.log\n");
    hostile.write("repo/x.log", "");
    assert_eq!(hostile.status().await.as_deref(), Some(" M file\n?? new\n"));
    assert!(hostile.log().await.unwrap().ends_with(" first\n"));
    // A file of the user that it may not read does not silence it.
    hostile.write("home/dotfiles", "[core]\n\tabbrev = 12\n");
    hostile.write("home/.gitconfig", "[include]\n\tpath = ~/dotfiles\n");
    hostile.write("home/.gitconfig.broken", "");
    assert!(hostile.status().await.unwrap().starts_with(" M file\n?? new\n"));
}

/// Makes git read the content of a file through a filter.
fn filtered(hostile: &Hostile, key: &str, canary: &str, more: &str) {
    hostile.configure(&format!("[filter \"x\"]\n\t{key} = {canary}\n{more}"));
    hostile.write("repo/.gitattributes", "* filter=x\n");
    // The same size with another time: git must read the content.
    hostile.write("repo/file", "next\n");
}

/// Every kind of program that a configuration can name, and whether an ordinary git would run it here.
#[tokio::test]
async fn nothing_that_a_repository_configures_is_run() {
    // D-77
    type Prepare = fn(&Hostile, &str);
    let clean = |hostile: &Hostile, canary: &str| filtered(hostile, "clean", canary, "");
    let process = |hostile: &Hostile, canary: &str| filtered(hostile, "process", canary, "");
    let required =
        |hostile: &Hostile, canary: &str| filtered(hostile, "clean", canary, "\trequired = true\n");
    let info = |hostile: &Hostile, canary: &str| {
        filtered(hostile, "clean", canary, "");
        fs::remove_file(hostile.path("repo/.gitattributes")).unwrap();
        hostile.write("repo/.git/info/attributes", "* filter=x\n");
    };
    let fsmonitor = |hostile: &Hostile, canary: &str| {
        hostile.configure(&format!("[core]\n\tfsmonitor = {canary}\n"));
    };
    let included = |hostile: &Hostile, canary: &str| {
        hostile.write("repo/evil.config", &format!("[core]\n\tfsmonitor = {canary}\n"));
        hostile.configure("[include]\n\tpath = ../evil.config\n");
    };
    let hooks = |hostile: &Hostile, canary: &str| {
        let hook = hostile.path("repo/hooks/post-index-change");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        symlink(canary, hook).unwrap();
        hostile.configure("[core]\n\thooksPath = hooks\n");
        hostile.write("repo/file", "text\n");
    };
    let promisor = |hostile: &Hostile, canary: &str| {
        hostile.configure(&format!(
            "[remote \"origin\"]\n\turl = ext::{canary}\n\tpromisor = true\n[extensions]\n\tpartialClone = origin\n[protocol]\n\tallow = always\n[core]\n\trepositoryformatversion = 1\n"
        ));
        let tree = hostile.git(&["rev-parse", "HEAD^{tree}"], "repo");
        let (start, rest) = tree.trim().split_at(2);
        fs::remove_file(hostile.path("repo/.git/objects").join(start).join(rest)).unwrap();
    };
    let submodule = |hostile: &Hostile, canary: &str| {
        hostile.git(&["init", "-q", "sub"], "repo");
        hostile.write("repo/sub/file", "x\n");
        hostile.git(&["add", "."], "repo/sub");
        hostile.git(&["commit", "-q", "-m", "sub"], "repo/sub");
        hostile.git(&["add", "sub"], "repo");
        hostile.git(&["commit", "-q", "-m", "with sub"], "repo");
        let config = hostile.path("repo/sub/.git/config");
        let before = fs::read_to_string(&config).unwrap();
        fs::write(config, format!("{before}[core]\n\tfsmonitor = {canary}\n")).unwrap();
    };
    let forms: [(&str, Prepare); 9] = [
        ("clean", clean),
        ("process", process),
        ("required", required),
        ("info/attributes", info),
        ("fsmonitor", fsmonitor),
        ("include", included),
        ("hooksPath", hooks),
        ("promisor", promisor),
        ("submodule", submodule),
    ];
    for (name, prepare) in forms {
        let hostile = Hostile::new();
        let canary = hostile.canary();
        prepare(&hostile, &canary);
        let _ = (hostile.status().await, hostile.log().await);
        assert!(!hostile.is_marked(), "{name}");
        // The ordinary git would have run it: the test can fail.
        hostile.git(&["status"], "repo");
        assert!(hostile.is_marked(), "{name}, ordinary git");
    }
}

/// Git does not describe another place that the repository points to.
#[tokio::test]
async fn nothing_outside_of_the_repository_is_described() {
    type Prepare = fn(&Hostile);
    let worktree: Prepare = |hostile| {
        let private = hostile.path("private");
        hostile.configure(&format!("[core]\n\tworktree = {}\n", private.display()));
    };
    let git_file: Prepare = |hostile| {
        fs::remove_dir_all(hostile.path("repo/.git")).unwrap();
        let gitdir = hostile.path("private/.git");
        hostile.write("repo/.git", &format!("gitdir: {}\n", gitdir.display()));
    };
    let git_link: Prepare = |hostile| {
        fs::remove_dir_all(hostile.path("repo/.git")).unwrap();
        symlink(hostile.path("private/.git"), hostile.path("repo/.git")).unwrap();
    };
    let alternates: Prepare = |hostile| {
        let objects = hostile.path("private/.git/objects");
        hostile.write("repo/.git/objects/info/alternates", &format!("{}\n", objects.display()));
        let head = hostile.git(&["rev-parse", "HEAD"], "private");
        hostile.write("repo/.git/refs/heads/main", &head);
    };
    let commondir: Prepare = |hostile| {
        let common = hostile.path("private/.git");
        hostile.write("repo/.git/commondir", &format!("{}\n", common.display()));
    };
    let linked_parts: Prepare = |hostile| {
        for part in ["objects", "refs"] {
            fs::remove_dir_all(hostile.path(&format!("repo/.git/{part}"))).unwrap();
            let private = hostile.path(&format!("private/.git/{part}"));
            symlink(private, hostile.path(&format!("repo/.git/{part}"))).unwrap();
        }
    };
    for (name, prepare) in [
        ("core.worktree", worktree),
        ("gitdir", git_file),
        (".git link", git_link),
        ("alternates", alternates),
        ("commondir", commondir),
        ("linked parts", linked_parts),
    ] {
        let hostile = Hostile::new();
        prepare(&hostile);
        let said = format!("{:?} {:?}", hostile.status().await, hostile.log().await);
        assert!(!said.contains("CANARY"), "{name}: {said}");
        let ordinary = hostile.git(&["status", "--porcelain"], "repo")
            + &hostile.git(&["log", "--format=%s"], "repo");
        assert!(ordinary.contains("CANARY"), "{name}, ordinary git: {ordinary}");
    }
}

#[tokio::test]
async fn a_directory_that_only_looks_like_a_repository_is_none() {
    let hostile = Hostile::new();
    let canary = hostile.canary();
    fs::remove_dir_all(hostile.path("repo/.git")).unwrap();
    hostile.write("repo/HEAD", "ref: refs/heads/main\n");
    hostile.write("repo/objects/x", "");
    hostile.write("repo/refs/x", "");
    hostile.write(
        "repo/config",
        &format!("[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = {canary}\n"),
    );
    assert_eq!(hostile.status().await, None);
    assert!(!hostile.is_marked());
}

#[test]
fn git_is_found_outside_of_the_repository_only() {
    let hostile = Hostile::new();
    let own = PathBuf::from("/usr/bin:/bin");
    let program = |path: &str, name: &str| {
        let file = hostile.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::copy(InstalledGit::find(&hostile.env, Path::new("/nowhere")).unwrap().program, &file)
            .unwrap();
        let env = Env::from([("PATH", format!("{path}:{}", own.display()).as_str())]);
        InstalledGit::find(&env, &hostile.path("repo")).map(|git| git.program)
    };
    let bin = hostile.path("repo/bin");
    let found = program(bin.to_str().unwrap(), "repo/bin/git");
    assert!(found.is_none_or(|program| !program.starts_with(hostile.path("repo"))));
    assert!(program(".:bin:", "bin/git").is_none_or(|program| program.is_absolute()));
    // A script would need a shell.
    let scripts = hostile.path("scripts");
    hostile.write("scripts/git", "#!/bin/sh\n");
    fs::set_permissions(scripts.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let env = Env::from([("PATH", scripts.to_str().unwrap())]);
    assert!(InstalledGit::find(&env, &hostile.path("repo")).is_none());
}
