//! Repositories that have their refs in tables (`git init --ref-format=reftable`).

use std::fs;

use centurion_testkit::{Lack, skip};
use centurion_worktree::merge::{How, Merge};
use centurion_worktree::{Settled, Standing, Unsaved};

use crate::support::{Scene, write};

/// Whether this machine's git knows such repositories.
fn is_known() -> bool {
    let scratch = tempfile::tempdir().unwrap();
    let mut git = std::process::Command::new("git");
    let git = git.args(["init", "-q", "--ref-format=reftable", "."]).current_dir(&scratch);
    git.output().unwrap().status.success()
}

#[tokio::test]
async fn worktrees_come_and_go_and_come_home_from_any_head() {
    if !is_known() {
        return skip(Lack::Reftable);
    }
    for (kind, head) in
        [("branch", ""), ("none", "checkout -q --detach"), ("new", "checkout -q --orphan x")]
    {
        let scene = Scene::with_reftable();
        if kind == "none" {
            scene.git("checkout -q --detach");
        }
        let untouched = scene.create("none").await;
        let settled = scene.settle(untouched).await;
        assert!(matches!(settled, Settled::Removed(_)), "{kind}: {settled:?}");
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        write(&path, "a.txt", "committed\n");
        scene.git_in(&path, "commit -q -a -m first");
        if !head.is_empty() {
            scene.git_in(&path, head);
            write(&path, "second.txt", "second\n");
            scene.git_in(&path, "add -A");
        }
        if kind == "none" {
            scene.git_in(&path, "commit -q -m second");
        }
        write(&path, "open.txt", "open\n");
        let report = scene.keep(worktree).await;
        let commits = if kind == "none" { 2 } else { 1 };
        assert_eq!(report.ahead, commits, "{kind}");
        assert_eq!(scene.git_in(&path, "rev-parse HEAD"), report.head, "{kind}");
        let on = scene.git_in(&path, "branch --show-current");
        assert_eq!(on, if kind == "none" { "" } else { "worktree-one" }, "{kind}");
        assert!(scene.git_in(&path, "status --porcelain").ends_with("?? open.txt"), "{kind}");
        // An agent continues, and people do.
        let again = scene.create("one").await;
        assert_eq!(scene.git_in(&path, "rev-parse HEAD"), report.head, "{kind}");
        assert_eq!(scene.git_in(&path, "branch --show-current"), on, "{kind}");
        scene.git_in(&path, "add -A");
        scene.git_in(&path, "commit -q -m again");
        assert_eq!(scene.keep(again).await.ahead, commits + 1, "{kind}");
        let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
        assert_eq!(entry.standing, Standing::Kept, "{kind}");
        let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
        gone.unwrap().delete();
        scene.worktrees.restore(&scene.top, "one").await.unwrap();
        let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
        scene
            .worktrees
            .merge(&scene.top, &entry, &Merge::any(&How::Merge, "merged"))
            .await
            .unwrap();
        assert_eq!(fs::read_to_string(scene.path("open.txt")).unwrap(), "open\n", "{kind}");
        scene.git("fsck --strict");
    }
}

#[tokio::test]
async fn what_is_begun_in_one_is_noticed() {
    if !is_known() {
        return skip(Lack::Reftable);
    }
    let scene = Scene::with_reftable();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "a.txt", "agent\n");
    scene.git_in(&path, "commit -q -a -m agent");
    scene.keep(worktree).await;
    scene.write("a.txt", "main\n");
    scene.commit("main");
    assert!(!scene.try_git_in(&path, "cherry-pick main").1);
    let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
    let refused = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
    let told = refused.unwrap_err().to_string();
    assert!(told.starts_with("a cherry-pick is not finished"), "{told}");
    scene.shell(told.split('`').nth(1).unwrap());
    let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
    gone.unwrap().delete();
}
