//! What a person deletes and prunes in the repository while an agent works, and what it has built on that.

use std::fs;
use std::path::Path;

use centurion_worktree::{Mended, Standing, Unsaved};

use crate::support::{Scene, write};

/// A repository with a branch of its own history, in files of a directory, too.
fn with_feature() -> Scene {
    let scene = Scene::new();
    scene.git("switch -q -c feature");
    scene.write("feature.txt", "feature\n");
    scene.write("deep/er/feature.txt", "feature\n");
    scene.commit("feature");
    scene.git("switch -q main");
    scene
}

fn forget_feature(scene: &Scene) {
    scene.git("branch -q -D feature");
    scene.git("reflog expire --expire=now --all");
    scene.git("gc -q --prune=now");
}

/// Work of an agent that merged the branch, before and after it.
fn work(scene: &Scene, path: &Path) -> String {
    write(path, "own.txt", "own\n");
    scene.git_in(path, "add -A");
    scene.git_in(path, "commit -q -m own");
    let own = scene.git_in(path, "rev-parse HEAD");
    scene.git_in(path, "merge -q --no-edit feature");
    write(path, "later.txt", "later\n");
    scene.git_in(path, "add -A");
    scene.git_in(path, "commit -q -m later");
    write(path, "loose.txt", "loose\n");
    own
}

#[tokio::test]
async fn what_an_agent_made_comes_home_although_what_it_merged_is_pruned() {
    // I-7
    for is_left in [false, true] {
        let scene = with_feature();
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        let own = work(&scene, &path);
        forget_feature(&scene);
        if is_left {
            // By a process that died.
            drop(worktree);
            let mended = scene.worktrees.mend(&scene.top).await.unwrap();
            assert!(matches!(mended[..], [(_, Ok(Mended::Kept(_)))]), "{mended:?}");
        } else {
            let report = scene.keep(worktree).await;
            assert!(report.notes.iter().any(|it| it.contains("no longer has")), "{report:?}");
            assert_eq!((report.head.as_str(), report.uncommitted), (own.as_str(), 4));
        }
        let mut listed = scene.worktrees.list(&scene.top).await.unwrap();
        assert_eq!(listed[0].standing, Standing::Kept);
        assert_eq!(scene.git("rev-parse worktree-one"), own);
        let names = ["own.txt", "feature.txt", "deep/er/feature.txt", "later.txt", "loose.txt"];
        let texts = || names.map(|name| fs::read_to_string(path.join(name)).unwrap());
        let before = texts();
        let status = scene.git_in(&path, "status --porcelain");
        assert_eq!(status, "?? deep/\n?? feature.txt\n?? later.txt\n?? loose.txt");
        let saved = scene.git("ls-tree -r --name-only refs/centurion/agents/one/uncommitted");
        assert!(names.iter().all(|name| saved.contains(name)), "{saved}");
        scene.git("fsck --connectivity-only");
        // It goes and comes back like any other.
        let gone = scene.worktrees.let_go(&scene.top, &listed.remove(0), Unsaved::IsSaved).await;
        gone.unwrap().delete();
        scene.worktrees.restore(&scene.top, "one").await.unwrap();
        assert_eq!(texts(), before);
    }
}

#[tokio::test]
async fn other_failures_are_not_taken_for_missing_commits() {
    let scene = with_feature();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    let tip = work(&scene, &path);
    assert_ne!(scene.git_in(&path, "rev-parse HEAD"), tip);
    let report = scene.keep(worktree).await;
    assert!(report.notes.is_empty(), "{report:?}");
    assert_eq!((report.ahead, report.uncommitted), (4, 1));
}
