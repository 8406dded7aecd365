//! Files that git is told not to look at: what is changed in them is work like any other.

use std::fs;
use std::path::{Path, PathBuf};

use centurion_worktree::merge::{How, Merge};
use centurion_worktree::{Contents, KeptError, Unsaved, Wish, Worktree};

use crate::support::{Scene, wish, write};

const MARKS: [&str; 2] = ["--skip-worktree", "--assume-unchanged"];

/// Changes a file that git is told not to look at.
fn hide(scene: &Scene, path: &Path, mark: &str) {
    scene.git_in(path, &format!("update-index {mark} a.txt"));
    write(path, "a.txt", "precious\n");
    assert_eq!(scene.git_in(path, "status --porcelain"), "");
}

/// A session's worktree with such a change.
async fn entered(scene: &Scene, mark: &str) -> PathBuf {
    let wish = Wish { is_private: false, ..wish("one") };
    let worktree = scene.worktrees.create(&scene.top, &wish).await.unwrap();
    hide(scene, &worktree.record.path, mark);
    worktree.record.path.clone()
}

/// The kept worktree of an agent that made a commit and such a change.
async fn left(scene: &Scene, mark: &str) -> PathBuf {
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "x.txt", "x\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m x");
    hide(scene, &path, mark);
    assert_eq!(scene.keep(worktree).await.uncommitted, 1);
    path
}

#[tokio::test]
async fn what_git_is_told_not_to_look_at_keeps_a_worktree() {
    // I-7
    for mark in MARKS {
        for is_agents in [false, true] {
            let scene = Scene::new();
            let path =
                if is_agents { left(&scene, mark).await } else { entered(&scene, mark).await };
            let entry = scene.only().await;
            let refused = scene.worktrees.let_go(&scene.top, &entry, Unsaved::Stays).await;
            let said = refused.unwrap_err();
            assert!(
                said.to_string().contains("1 of its files are not committed"),
                "{mark}: {said}"
            );
            assert_eq!(fs::read_to_string(path.join("a.txt")).unwrap(), "precious\n");
            let shown = scene.worktrees.diff(&entry, &|_| true).await.unwrap();
            assert!(shown.contains("+precious"), "{mark}: {shown}");
            let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
            gone.unwrap().delete();
            assert!(!path.exists());
            let restored = scene.worktrees.restore(&scene.top, "one").await.unwrap();
            assert_eq!(fs::read_to_string(restored.path.join("a.txt")).unwrap(), "precious\n");
        }
    }
}

#[tokio::test]
async fn what_git_is_told_not_to_look_at_is_merged() {
    for mark in MARKS {
        let scene = Scene::new();
        let path = left(&scene, mark).await;
        let merge = Merge::any(&How::Merge, "m");
        scene.worktrees.merge(&scene.top, &scene.only().await, &merge).await.unwrap();
        assert_eq!(scene.read("a.txt"), "precious\n", "{mark}");
        let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::Stays).await;
        gone.unwrap().delete();
        assert!(!path.exists());
    }
}

#[tokio::test]
async fn what_is_not_checked_out_is_not_missing_and_what_is_written_there_counts() {
    let sparse = Contents { sparse: vec!["src".to_owned()], ..Contents::default() };
    let scene = Scene::new();
    scene.write("docs/d.txt", "d\n");
    scene.commit("docs");
    let make = async || -> Worktree {
        let wish = Wish { contents: sparse.clone(), ..wish("one") };
        scene.worktrees.create(&scene.top, &wish).await.unwrap()
    };
    let worktree = make().await;
    let path = worktree.record.path.clone();
    assert!(!path.join("docs").exists());
    write(&path, "docs/d.txt", "precious\n");
    write(&path, "docs/new.txt", "new\n");
    scene.git_in(&path, "config sparse.expectFilesOutsideOfPatterns true");
    let report = scene.keep(worktree).await;
    assert_eq!(report.uncommitted, 2, "{report:?}");
    let entry = scene.only().await;
    let refused = scene.worktrees.let_go(&scene.top, &entry, Unsaved::Stays).await;
    assert!(matches!(refused, Err(KeptError::Holds(_))), "{refused:?}");
    let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
    gone.unwrap().delete();
    let restored = scene.worktrees.restore(&scene.top, "one").await.unwrap();
    for (name, text) in [("docs/d.txt", "precious\n"), ("docs/new.txt", "new\n")] {
        assert_eq!(fs::read_to_string(restored.path.join(name)).unwrap(), text, "{name}");
    }
    let merge = Merge::any(&How::Merge, "m");
    scene.worktrees.merge(&scene.top, &scene.only().await, &merge).await.unwrap();
    assert_eq!(scene.read("docs/d.txt"), "precious\n");
    assert_eq!(scene.read("src/b.txt"), "b\n");
}

#[tokio::test]
async fn earlier_work_that_was_saved_stays_saved_when_a_worktree_goes() {
    // I-7
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "new.txt", "precious\n");
    scene.keep(worktree).await;
    let saved = scene.git("rev-parse refs/centurion/agents/one/uncommitted");
    fs::remove_file(path.join("new.txt")).unwrap();
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::Stays).await;
    gone.unwrap().delete();
    let refs = scene.git("for-each-ref --format=%(objectname) refs/centurion/agents/one");
    assert!(refs.lines().any(|id| id == saved), "{refs}");
    // And it is not taken for how the worktree was at the end.
    let restored = scene.worktrees.restore(&scene.top, "one").await.unwrap();
    assert!(!restored.path.join("new.txt").exists());
}
