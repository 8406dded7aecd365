//! What is said of a merge and of a removal is what is so, and nothing is lost beside it.

use std::path::PathBuf;

use centurion_worktree::merge::{FileRefusal, How, Merge, MergeError, Merged};
use centurion_worktree::{Unsaved, Wish};

use crate::support::{Scene, wish, write};

async fn merge(scene: &Scene) -> Result<Merged, MergeError> {
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    scene.worktrees.merge(&scene.top, &listed[0], &Merge::any(&How::Merge, "Work")).await
}

/// A worktree that was kept, with a change of a file that is committed and a file that is not.
async fn kept() -> Scene {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "a.txt", "changed\n");
    write(&path, "new.txt", "new\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m work");
    write(&path, "rest.txt", "rest\n");
    scene.keep(worktree).await;
    scene
}

#[tokio::test]
async fn a_merge_that_git_breaks_off_leaves_everything_as_it_was() {
    for lock in [".git/HEAD.lock", ".git/refs/heads/main.lock", ".git/index.lock"] {
        let scene = kept().await;
        scene.write("src/b.txt", "mine\n");
        scene.write("staged.txt", "staged\n");
        scene.git("add staged.txt");
        let before = scene.state();
        std::fs::write(scene.path(lock), "").unwrap();
        let error = merge(&scene).await.unwrap_err();
        assert!(error.to_string().contains(".lock"), "{lock}: {error}");
        std::fs::remove_file(scene.path(lock)).unwrap();
        assert_eq!(scene.state(), before, "{lock}");
        assert!(!scene.path("new.txt").exists(), "{lock}");
        // What stood in the way is gone.
        merge(&scene).await.unwrap();
        assert_eq!(scene.read("new.txt"), "new\n");
    }
}

#[tokio::test]
async fn a_merge_that_git_breaks_off_leaves_what_a_person_had_staged_of_it() {
    // I-7
    for lock in [".git/HEAD.lock", ".git/refs/heads/main.lock"] {
        let scene = kept().await;
        // The same change as the agent's.
        scene.write("a.txt", "changed\n");
        scene.git("add a.txt");
        let before = scene.state();
        std::fs::write(scene.path(lock), "").unwrap();
        merge(&scene).await.unwrap_err();
        std::fs::remove_file(scene.path(lock)).unwrap();
        assert_eq!(scene.state(), before, "{lock}");
        assert_eq!(scene.read("a.txt"), "changed\n", "{lock}");
    }
}

#[tokio::test]
async fn a_merge_that_is_refused_for_one_of_its_files_changes_nothing() {
    let scene = kept().await;
    let before = scene.state();
    let check = |files: &[PathBuf]| {
        assert_eq!(files, ["a.txt", "new.txt", "rest.txt"].map(PathBuf::from));
        Err(FileRefusal { file: files[1].clone(), reason: "not that one".to_owned() })
    };
    let merge = Merge { check: &check, ..Merge::any(&How::Merge, "Work") };
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    let refused = scene.worktrees.merge(&scene.top, &listed[0], &merge).await.unwrap_err();
    assert!(matches!(refused, MergeError::Refused(_)), "{refused}");
    assert_eq!(scene.state(), before);
}

#[tokio::test]
async fn a_merge_that_is_done_is_said_to_be_done_whatever_fails_behind_it() {
    let scene = kept().await;
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    let path = listed[0].record.as_ref().unwrap().path.clone();
    let admin = scene.git_in(&path, "rev-parse --absolute-git-dir");
    std::fs::write(format!("{admin}/HEAD.lock"), "").unwrap();
    let merged = merge(&scene).await.unwrap();
    assert_eq!(merged.to, scene.head());
    assert_eq!(scene.read("rest.txt"), "rest\n");
    let told = merged.notes.concat();
    assert!(told.contains("HEAD.lock") && told.contains("`centurion worktrees clean`"), "{told}");
    // As long as that stands in the way, the worktree is not in order.
    assert!(scene.worktrees.mend(&scene.top).await.unwrap()[0].1.is_err());
    std::fs::remove_file(format!("{admin}/HEAD.lock")).unwrap();
    assert!(scene.worktrees.mend(&scene.top).await.unwrap()[0].1.is_ok());
    assert_eq!(scene.git_in(&path, "status --porcelain"), "");
    assert_eq!(scene.git_in(&path, "show HEAD:rest.txt"), "rest");
}

#[tokio::test]
async fn what_is_only_staged_is_kept_by_a_merge() {
    let scene = kept().await;
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    let path = listed[0].record.as_ref().unwrap().path.clone();
    write(&path, "gone.txt", "only staged\n");
    write(&path, "rest.txt", "staged text\n");
    scene.git_in(&path, "add gone.txt rest.txt");
    std::fs::remove_file(path.join("gone.txt")).unwrap();
    write(&path, "rest.txt", "text of the file\n");
    let merged = merge(&scene).await.unwrap();
    assert_eq!(scene.read("rest.txt"), "text of the file\n");
    let staged = "refs/centurion/agents/one/staged";
    assert!(merged.notes.concat().contains(staged), "{:?}", merged.notes);
    assert_eq!(scene.git(&format!("show {staged}:gone.txt")), "only staged");
    assert_eq!(scene.git(&format!("show {staged}:rest.txt")), "staged text");
}

#[tokio::test]
async fn an_encoding_that_the_files_are_not_in_keeps_nothing_from_coming_home() {
    for attributes in ["* working-tree-encoding=UTF-16\n", "* working-tree-encoding=nonsense\n"] {
        let scene = Scene::new();
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        write(&path, "new.txt", "plain\n");
        write(&path, ".gitattributes", attributes);
        let report = scene.keep(worktree).await;
        assert_eq!(report.uncommitted, 2, "{attributes}: {report:?}");
        let kept = "refs/centurion/agents/one/uncommitted";
        assert_eq!(scene.git(&format!("show {kept}:new.txt")), "plain", "{attributes}");
    }
}

#[tokio::test]
async fn commits_that_were_reset_away_are_saved_when_a_worktree_goes() {
    for unsaved in [Unsaved::Stays, Unsaved::IsSaved] {
        let scene = Scene::new();
        // As a session enters it: on the repository's own git.
        let wish = Wish { is_private: false, ..wish("mine") };
        let worktree = scene.worktrees.create(&scene.top, &wish).await.unwrap();
        let path = worktree.record.path.clone();
        write(&path, "lost.txt", "lost\n");
        scene.git_in(&path, "add -A");
        scene.git_in(&path, "commit -q -m lost");
        let lost = scene.git_in(&path, "rev-parse HEAD");
        scene.git_in(&path, "reset -q --hard HEAD~1");
        drop(worktree);
        let listed = scene.worktrees.list(&scene.top).await.unwrap();
        let removed = scene.worktrees.let_go(&scene.top, &listed[0], unsaved).await;
        removed.unwrap().delete();
        scene.git("reflog expire --expire=now --all");
        scene.git("gc -q --prune=now");
        assert_eq!(scene.git(&format!("show {lost}:lost.txt")), "lost");
        let name = format!("refs/centurion/agents/mine/log/{}", &lost[..12]);
        assert_eq!(scene.git(&format!("rev-parse {name}")), lost);
    }
}
