//! How worktrees come to be.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use centurion_worktree::{CheckoutError, Contents, CreateError, Settled, Unsaved, Wish};

use crate::support::{Scene, wish, write};

#[tokio::test]
async fn a_worktree_has_the_callers_commit_and_a_branch_and_the_repository_knows_it() {
    // S-291, S-293, S-304
    let scene = Scene::new();
    let worktree = scene.create("agent-1").await;
    let record = &worktree.record;
    assert_eq!(record.path, scene.path(".claude/worktrees/agent-1"));
    assert_eq!(record.branch, "worktree-agent-1");
    assert_eq!(record.base, scene.head());
    assert!(!worktree.existed && worktree.warnings.is_empty());
    assert!(record.path.join(".git").is_file());
    assert_eq!(fs::read_to_string(record.path.join("src/c.txt")).unwrap(), "c\n");
    assert_eq!(scene.git_in(&record.path, "rev-parse HEAD"), scene.head());
    assert_eq!(scene.git_in(&record.path, "branch --show-current"), "worktree-agent-1");
    assert_eq!(scene.git_in(&record.path, "status --porcelain"), "");
    assert_eq!(
        scene.git_in(&record.path, "rev-parse --show-toplevel"),
        record.path.to_str().unwrap()
    );
    let listed = scene.git("worktree list --porcelain");
    assert!(listed.contains("agent-1\n") && listed.contains("locked centurion"), "{listed}");
    assert_eq!(scene.git("rev-parse worktree-agent-1"), scene.head());
    // The checkout around it does not see it.
    assert_eq!(scene.git("status --porcelain"), "");
}

#[tokio::test]
async fn what_an_agent_does_with_git_stays_in_its_own_repository() {
    let scene = Scene::new();
    let before = scene.state();
    let worktree = scene.create("agent-1").await;
    let path = worktree.record.path.clone();
    let git = |args: &str| scene.git_in(&path, args);
    write(&path, "new.txt", "new\n");
    git("add -A");
    git("commit -q -m work");
    write(&path, "a.txt", "stashed\n");
    git("stash push -q");
    git("stash list");
    git("tag v1");
    git("switch -q -c side");
    write(&path, "side.txt", "side\n");
    git("add -A");
    git("commit -q -m side");
    git("switch -q worktree-agent-1");
    git("rebase -q side");
    git("stash pop -q");
    git("checkout -q -- a.txt");
    git("merge -q main");
    git("bisect start -q HEAD HEAD~2");
    git("bisect reset");
    git("branch -D side");
    git("pack-refs --all");
    git("gc -q --prune=now");
    assert_eq!(git("log --oneline main..HEAD").lines().count(), 2);
    assert_eq!(scene.state(), before);
    assert!(scene.git("tag").is_empty());
    assert!(scene.git("stash list").is_empty());
    assert_eq!(scene.git("rev-parse worktree-agent-1"), scene.head());
    scene.git("fsck --strict");
}

#[tokio::test]
async fn the_base_is_the_callers_own_commit_wherever_it_works() {
    // D-32
    let scene = Scene::new();
    // Ahead of what the remote has, in a worktree of the user's, in a directory of it.
    let feature = scene.root().join("feature");
    scene.git(&format!("worktree add -q -b feature {}", feature.display()));
    write(&feature, "src/f.txt", "f\n");
    scene.git_in(&feature, "add -A");
    scene.git_in(&feature, "commit -q -m feature");
    let tip = scene.git_in(&feature, "rev-parse HEAD");
    let one = scene.worktrees.create(&feature.join("src"), &wish("one")).await.unwrap();
    assert_eq!(one.record.base, tip);
    assert_eq!(one.record.path, scene.path(".claude/worktrees/one"));
    assert_eq!(one.record.caller, feature);
    // Without a branch.
    scene.git("checkout -q HEAD~1");
    let two = scene.create("two").await;
    assert_eq!(two.record.base, scene.head());
    assert_eq!(two.record.caller_branch, None);
    scene.git("checkout -q main");
    // In the middle of a merge.
    scene.git("checkout -q -b other HEAD~1");
    scene.write("src/c.txt", "other\n");
    scene.commit("other");
    assert!(!scene.try_git_in(&scene.top, "merge main").1);
    let three = scene.create("three").await;
    assert_eq!(three.record.base, scene.head());
    assert_eq!(fs::read_to_string(three.record.path.join("src/c.txt")).unwrap(), "other\n");
    assert!(scene.path(".git/MERGE_HEAD").exists());
}

#[tokio::test]
async fn a_worktree_of_an_isolated_agent_begins_at_that_agents_commit() {
    let scene = Scene::new();
    let outer = scene.create("outer").await;
    let path = outer.record.path.clone();
    write(&path, "outer.txt", "outer\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m outer");
    let tip = scene.git_in(&path, "rev-parse HEAD");
    let inner = scene.worktrees.create(&path, &wish("inner")).await.unwrap();
    assert_eq!(inner.record.base, tip);
    assert_eq!(inner.record.path, scene.path(".claude/worktrees/inner"));
    assert_eq!(fs::read_to_string(inner.record.path.join("outer.txt")).unwrap(), "outer\n");
    // It continues, whatever becomes of the outer one's repository.
    scene.git("gc -q --prune=now");
    let below = inner.record.path.clone();
    write(&below, "inner.txt", "inner\n");
    scene.git_in(&below, "add -A");
    scene.git_in(&below, "commit -q -m inner");
    let settled = scene.worktrees.settle(inner, Some(&path)).await.unwrap();
    let Settled::Kept(report) = settled else { panic!("{settled:?}") };
    assert_eq!((report.ahead, report.behind), (1, 0));
    // And the outer one can merge it.
    scene.git_in(&path, &format!("merge -q {}", report.head));
    assert!(path.join("inner.txt").exists());
}

#[tokio::test]
async fn there_is_a_worktree_or_a_reason() {
    let scene = Scene::new();
    let empty = scene.root().join("plain");
    fs::create_dir(&empty).unwrap();
    let refused = |directory| {
        let worktrees = scene.worktrees.clone();
        async move { worktrees.create(directory, &wish("x")).await.unwrap_err() }
    };
    let error = refused(&empty).await;
    assert!(matches!(error, CreateError::Checkout(CheckoutError::NoRepository(_))), "{error}");
    scene.git_in(&empty, "init -q");
    let error = refused(&empty).await;
    assert!(matches!(error, CreateError::Checkout(CheckoutError::NoCommit(_))), "{error}");
    let bare = scene.root().join("bare.git");
    scene.git_in(&empty, &format!("init -q --bare {}", bare.display()));
    let error = refused(&bare).await;
    assert!(matches!(error, CreateError::Checkout(CheckoutError::Bare(_))), "{error}");
    let gone = scene.root().join("gone");
    let error = refused(&gone).await;
    assert!(matches!(error, CreateError::Checkout(CheckoutError::Directory { .. })), "{error}");
    // What leads elsewhere is not followed.
    for linked in [".claude", ".claude/worktrees", ".claude/worktrees/x"] {
        let scene = Scene::new();
        let target = scene.root().join("elsewhere");
        fs::create_dir(&target).unwrap();
        fs::create_dir_all(scene.path(linked).parent().unwrap()).unwrap();
        symlink(&target, scene.path(linked)).unwrap();
        let error = scene.try_create("x").await.unwrap_err();
        assert!(matches!(error, CreateError::Link(_)), "{linked}: {error}");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
        assert!(scene.git("worktree list").lines().count() == 1, "{linked}");
    }
    // What is in the way stays.
    scene.write(".claude/worktrees/x/mine", "mine");
    let error = scene.try_create("x").await.unwrap_err();
    assert!(matches!(error, CreateError::Taken { .. }), "{error}");
    assert_eq!(scene.read(".claude/worktrees/x/mine"), "mine");
    // A branch of that name is not taken over.
    for at in ["HEAD~1", "HEAD"] {
        scene.git(&format!("branch -f worktree-y {at}"));
        let error = scene.try_create("y").await.unwrap_err();
        assert!(error.to_string().contains("already exists"), "{error}");
        assert_eq!(scene.git("rev-parse worktree-y"), scene.git(&format!("rev-parse {at}")));
    }
    assert!(!scene.path(".claude/worktrees/y").exists());
    assert!(!scene.path(".git/centurion/worktrees/y").exists());
}

#[tokio::test]
async fn a_submodule_with_changes_is_not_left_out_in_silence() {
    let scene = Scene::new();
    let library = scene.root().join("library");
    fs::create_dir(&library).unwrap();
    scene.git_in(&library, "init -q -b main .");
    write(&library, "lib.txt", "lib\n");
    scene.git_in(&library, "add -A");
    scene.git_in(&library, "commit -q -m lib");
    let add = format!("-c protocol.file.allow=always submodule add -q {} lib", library.display());
    scene.git(&add);
    scene.commit("submodule");
    let clean = scene.create("clean").await;
    assert!(fs::read_dir(clean.record.path.join("lib")).unwrap().next().is_none());
    assert!(matches!(scene.settle(clean).await, Settled::Removed(_)));
    scene.write("lib/lib.txt", "changed\n");
    let error = scene.try_create("dirty").await.unwrap_err();
    assert!(matches!(&error, CreateError::Submodule(path) if path == "lib"), "{error}");
}

#[tokio::test]
async fn directories_are_linked_and_named_files_copied() {
    // S-296, D-18
    let scene = Scene::new();
    scene.write("node_modules/x/index.js", "x");
    scene.write(".env", "SECRET=1\n");
    scene.write("ignored/big", "not wanted");
    scene.write("ignored/wanted.cfg", "wanted");
    scene.write("untracked.cfg", "git does not ignore it");
    scene.write(".worktreeinclude", ".env\n*.cfg\n");
    symlink("/etc/passwd", scene.path("ignored/link.cfg")).unwrap();
    let contents = Contents {
        links: ["node_modules", "missing", "../outside", "src"].map(str::to_owned).into(),
        ..Contents::default()
    };
    let wish = Wish { contents, ..wish("one") };
    let worktree = scene.worktrees.create(&scene.top, &wish).await.unwrap();
    let path = worktree.record.path.clone();
    assert_eq!(fs::read_link(path.join("node_modules")).unwrap(), scene.path("node_modules"));
    assert_eq!(fs::read_to_string(path.join(".env")).unwrap(), "SECRET=1\n");
    assert_eq!(fs::read_to_string(path.join("ignored/wanted.cfg")).unwrap(), "wanted");
    for absent in ["ignored/big", "untracked.cfg", "ignored/link.cfg", "missing"] {
        assert!(fs::symlink_metadata(path.join(absent)).is_err(), "{absent}");
    }
    assert!(!path.join("src").is_symlink());
    let warned = worktree.warnings.join("\n");
    assert!(warned.contains("../outside") && warned.contains("link.cfg"), "{warned}");
    assert!(!warned.contains("missing") && !warned.contains("src"), "{warned}");
    // None of it counts as work.
    let settled = scene.settle(worktree).await;
    assert!(matches!(settled, Settled::Removed(_)), "{settled:?}");
    assert_eq!(scene.read("node_modules/x/index.js"), "x");
}

#[tokio::test]
async fn some_directories_alone_are_checked_out() {
    let scene = Scene::new();
    scene.write("docs/d.txt", "d\n");
    scene.write("src/deep/e.txt", "e\n");
    scene.commit("docs");
    let contents = Contents { sparse: vec!["src/deep".to_owned()], ..Contents::default() };
    let wish = Wish { contents, ..wish("one") };
    let worktree = scene.worktrees.create(&scene.top, &wish).await.unwrap();
    let path = worktree.record.path.clone();
    assert!(path.join("a.txt").exists() && path.join("src/deep/e.txt").exists());
    assert!(!path.join("docs").exists());
    assert_eq!(scene.git_in(&path, "status --porcelain"), "");
    let settled = scene.settle(worktree).await;
    assert!(matches!(settled, Settled::Removed(_)), "{settled:?}");
}

#[tokio::test]
async fn a_worktree_that_is_there_is_opened_and_one_in_use_is_not() {
    // S-297
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let error = scene.try_create("one").await.unwrap_err();
    let ours = std::process::id().to_string();
    assert!(matches!(&error, CreateError::InUse { process, .. } if *process == ours), "{error}");
    let path = worktree.record.path.clone();
    write(&path, "new.txt", "new\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m work");
    let report = scene.keep(worktree).await;
    let again = scene.create("one").await;
    assert!(again.existed);
    assert_eq!(scene.git_in(&path, "rev-parse HEAD"), report.head);
    assert_eq!(again.record.base, report.base);
    // Without new work it stays all the same.
    let report = scene.keep(again).await;
    assert_eq!(report.ahead, 1);
}

#[tokio::test]
async fn a_fresh_base_is_the_remotes_default_branch() {
    let scene = Scene::new();
    let remote = scene.root().join("remote.git");
    scene.git(&format!("clone -q --bare . {}", remote.display()));
    scene.git(&format!("remote add origin {}", remote.display()));
    scene.git("fetch -q origin");
    let of_remote = scene.head();
    scene.write("a.txt", "ahead\n");
    scene.commit("ahead");
    let wish = |name: &str| Wish { is_fresh: true, ..wish(name) };
    let unknown = scene.worktrees.create(&scene.top, &wish("one")).await.unwrap();
    assert_eq!(unknown.record.base, scene.head());
    assert!(unknown.warnings[0].contains("set-head"), "{:?}", unknown.warnings);
    scene.git("remote set-head origin main");
    let fresh = scene.worktrees.create(&scene.top, &wish("two")).await.unwrap();
    assert_eq!(fresh.record.base, of_remote);
    assert!(fresh.warnings.is_empty());
}

#[tokio::test]
async fn many_are_made_at_once_while_others_look_and_rebase() {
    let scene = Scene::new();
    scene.git("checkout -q -b busy HEAD~1");
    for number in 0..5 {
        scene.write(&format!("busy-{number}"), "x\n");
        scene.commit("busy");
    }
    let names: Vec<String> = (0..8).map(|number| format!("agent-{number}")).collect();
    let create = names.iter().map(|name| scene.create(name));
    let look = async {
        for _ in 0..20 {
            scene.worktrees.list(&scene.top).await.unwrap();
            scene.worktrees.checkout(&scene.top).await.unwrap();
        }
    };
    let rebase = tokio::task::spawn_blocking({
        let (top, home) = (scene.top.clone(), scene.root().join("home"));
        move || {
            let mut git = std::process::Command::new("git");
            git.args(["rebase", "-q", "main"]).current_dir(top).env("HOME", home).status().unwrap()
        }
    });
    let (made, (), rebased) = tokio::join!(futures_util::future::join_all(create), look, rebase);
    assert!(rebased.unwrap().success());
    assert_eq!(made.len(), 8);
    assert_eq!(scene.git("config core.bare"), "false");
    let settle = made.into_iter().map(|worktree| scene.settle(worktree));
    for settled in futures_util::future::join_all(settle).await {
        assert!(matches!(settled, Settled::Removed(_)), "{settled:?}");
    }
    assert_eq!(scene.git("worktree list").lines().count(), 1);
    assert!(!scene.git("branch").contains("worktree-"));
}

#[tokio::test]
async fn the_base_is_the_callers_commit_in_the_middle_of_a_rebase_or_a_merge_too() {
    for begun in ["rebase side", "merge side"] {
        let scene = Scene::new();
        scene.git("switch -q -c side");
        scene.write("a.txt", "side\n");
        scene.commit("side");
        scene.git("switch -q main");
        for name in ["a.txt", "other.txt"] {
            scene.write(name, "main\n");
            scene.commit("main");
        }
        assert!(!scene.try_git_in(&scene.top, begun).1, "{begun}");
        let (head, before) = (scene.head(), scene.state());
        let made = scene.create("one").await;
        assert_eq!(made.record.base, head, "{begun}");
        assert_eq!(scene.git_in(&made.record.path, "status --porcelain"), "", "{begun}");
        assert_eq!(scene.git_in(&made.record.path, "branch --show-current"), "worktree-one");
        assert!(matches!(scene.settle(made).await, Settled::Removed(_)));
        assert_eq!(scene.state(), before, "{begun}");
        // The caller continues with what it had begun.
        scene.git("checkout --theirs a.txt");
        scene.git("add a.txt");
        scene.git(&format!("{} --continue", begun.split(' ').next().unwrap()));
    }
}

#[tokio::test]
async fn no_links_are_made_where_none_are_wanted() {
    let scene = Scene::new();
    scene.write("node_modules/m/x.js", "x\n");
    let contents = Contents { links: Vec::new(), sparse: Vec::new() };
    let made = scene.worktrees.create(&scene.top, &Wish { contents, ..wish("one") }).await.unwrap();
    assert!(!made.record.path.join("node_modules").exists());
    assert_eq!((made.linked().count(), &made.warnings[..]), (0, &[][..]));
    let usual = scene.create("two").await;
    assert!(usual.record.path.join("node_modules/m/x.js").is_file());
}

#[tokio::test]
async fn a_git_directory_on_another_file_system_has_worktrees_too() {
    // I-7: nothing can be moved from there.
    let mut scene = Scene::new();
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let elsewhere = tempfile::tempdir_in(place).unwrap();
    let git_dir = format!("--separate-git-dir={}", elsewhere.path().join("git").display());
    let (from, to) = (scene.top.clone(), scene.root().join("checkout"));
    scene.git_args(&["clone", "-q", &git_dir, from.to_str().unwrap(), to.to_str().unwrap()]);
    scene.top = to;
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    assert_eq!(scene.git_in(&path, "status --porcelain"), "");
    write(&path, "src/b.txt", "work\n");
    let told = scene.keep(worktree).await;
    assert_eq!((told.files.len(), told.uncommitted), (1, 1), "{told:?}");
    let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
    let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
    gone.unwrap().delete();
    assert!(!path.exists());
    scene.worktrees.restore(&scene.top, "one").await.unwrap();
    assert_eq!(fs::read_to_string(path.join("src/b.txt")).unwrap(), "work\n");
    let worktree = scene.create("two").await;
    let settled = scene.settle(worktree).await;
    assert!(matches!(settled, Settled::Removed(_)), "{settled:?}");
}
