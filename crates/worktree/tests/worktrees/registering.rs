//! A worktree that is noted without git is to git what it would have made itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use centurion_worktree::{Settled, Wish};

use crate::support::{Scene, wish};

/// The files of a directory that git has for a worktree, without what differs from one to the next.
fn contents(admin: &Path, name: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(admin).unwrap().map(Result::unwrap) {
        let file = entry.file_name().into_string().unwrap();
        let text = fs::read_to_string(entry.path()).unwrap_or_else(|_| "a directory".to_owned());
        found.insert(file, text.replace(name, "<name>"));
    }
    found
}

#[tokio::test]
async fn what_is_noted_of_a_worktree_is_what_git_notes() {
    let scene = Scene::new();
    let ordinary = Wish { is_private: false, ..wish("one") };
    let made = scene.worktrees.create(&scene.top, &ordinary).await.unwrap();
    let path = made.record.path.clone();
    scene.git("branch worktree-two");
    let other = scene.top.join(".claude/worktrees/two");
    scene.git_args(&["worktree", "add", "-q", &other.display().to_string(), "worktree-two"]);
    let mut ours = contents(&scene.path(".git/worktrees/one"), "one");
    let mut gits = contents(&scene.path(".git/worktrees/two"), "two");
    // Git notes the first move of `HEAD` or does not.
    for noted in [&mut ours, &mut gits] {
        noted.remove("logs");
    }
    let names = |of: &BTreeMap<String, String>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&gits));
    for name in ["HEAD", "commondir", "gitdir", "refs"] {
        assert_eq!(ours.get(name), gits.get(name), "{name}");
    }
    let file = |path: &Path| fs::read_to_string(path.join(".git")).unwrap();
    assert_eq!(file(&path).replace("one", "two"), file(&other));
    // Git finds nothing to prune, to repair or to complain of.
    for args in ["worktree prune -v", "worktree repair", "fsck --strict"] {
        assert_eq!(scene.git(args), "", "{args}");
    }
    assert_eq!(scene.git_in(&path, "status --porcelain"), "");
    drop(made);
    // One that is worked in is locked, and says for whom.
    let private = scene.create("three").await;
    let listed = scene.git("worktree list --porcelain");
    let listed = listed.split("\n\n").find(|it| it.contains("/three\n")).unwrap().to_owned();
    assert!(listed.contains("locked centurion works in it (process "), "{listed}");
    assert!(listed.contains("branch refs/heads/worktree-three"), "{listed}");
    assert!(matches!(scene.settle(private).await, Settled::Removed(_)));
}

#[tokio::test]
async fn a_name_that_git_has_taken_is_left_to_its_worktree() {
    let scene = Scene::new();
    let elsewhere = scene.root().join("elsewhere/one");
    scene.git_args(&["worktree", "add", "-q", "-b", "x", &elsewhere.display().to_string()]);
    // A worktree that another process is just adding: there is a name, and nothing else yet.
    fs::create_dir(scene.path(".git/worktrees/one1")).unwrap();
    let made = scene.create("one").await;
    assert_eq!(fs::read_dir(scene.path(".git/worktrees/one1")).unwrap().count(), 0);
    assert!(scene.path(".git/worktrees/one2/gitdir").exists());
    assert_eq!(scene.git_in(&elsewhere, "status --porcelain"), "");
    assert!(matches!(scene.settle(made).await, Settled::Removed(_)));
    assert!(scene.path(".git/worktrees/one").exists() && elsewhere.join("a.txt").exists());
}

#[tokio::test]
async fn one_whose_directory_was_deleted_by_hand_is_left_to_its_user() {
    let scene = Scene::new();
    let path = scene.top.join(".claude/worktrees/one");
    scene.git_args(&["worktree", "add", "-q", "-b", "x", &path.display().to_string()]);
    fs::remove_dir_all(&path).unwrap();
    for _ in 0..2 {
        let refused = scene.try_create("one").await.unwrap_err().to_string();
        assert!(refused.contains("`git worktree prune` removes that"), "{refused}");
    }
    let listed = scene.git("worktree list --porcelain");
    assert_eq!(listed.matches(&format!("worktree {}\n", path.display())).count(), 1, "{listed}");
    scene.git("worktree prune");
    let made = scene.create("one").await;
    assert!(matches!(scene.settle(made).await, Settled::Removed(_)));
}

#[tokio::test]
async fn an_empty_directory_of_worktrees_that_git_removes_is_in_no_ones_way() {
    let scene = Scene::new();
    let top = scene.top.clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let pruning = std::thread::spawn(move || {
        while stopped.try_recv().is_err() {
            let mut git = Command::new("git");
            git.args(["worktree", "prune", "--expire", "now"]).current_dir(&top);
            assert!(git.status().unwrap().success());
        }
    });
    for number in 0..20 {
        let made = scene.create(&format!("w{number}")).await;
        assert!(made.record.path.join("a.txt").exists());
        assert!(matches!(scene.settle(made).await, Settled::Removed(_)));
    }
    stop.send(()).unwrap();
    pruning.join().unwrap();
    assert_eq!(scene.git("worktree list").lines().count(), 1);
}
