//! What is told of a worktree is what is there, to every one that asks and whenever.

use std::fs;

use centurion_worktree::{KeptError, Report, Settled, Unsaved};

use crate::support::{Scene, write};

async fn show(scene: &Scene) -> Report {
    scene.worktrees.report(&scene.top, &scene.only().await).await.unwrap()
}

fn files(report: &Report) -> Vec<String> {
    report.files.iter().map(|file| file.path.clone()).collect()
}

/// A file that is large and takes no space.
fn large(path: &std::path::Path) {
    fs::File::create(path).unwrap().set_len(65 * 1024 * 1024).unwrap();
}

#[tokio::test]
async fn more_than_can_be_saved_is_said_and_never_removed() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    large(&path.join("large.bin"));
    write(&path, "small.txt", "small\n");
    let report = scene.keep(worktree).await;
    assert_eq!(report.uncommitted, 2);
    assert!(report.notes[0].contains("in the worktree alone"), "{:?}", report.notes);
    assert_eq!(show(&scene).await.notes, report.notes);
    for unsaved in [Unsaved::Stays, Unsaved::IsSaved] {
        let refused = scene.worktrees.let_go(&scene.top, &scene.only().await, unsaved).await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused, KeptError::Large { count: 2, .. }), "{refused}");
        scene.shell(refused.to_string().split('`').nth(1).unwrap());
    }
    assert!(path.join("large.bin").exists() && path.join("small.txt").exists());
    // So is what git ignores.
    fs::rename(path.join("large.bin"), path.join("node_modules")).unwrap();
    assert!(show(&scene).await.notes.is_empty());
    let refused = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
    assert!(matches!(refused, Err(KeptError::Large { .. })), "{refused:?}");
    // What is committed is in the repository.
    scene.git_in(&path, "add -f node_modules");
    scene.git_in(&path, "commit -q -m large");
    let report = show(&scene).await;
    assert_eq!((report.uncommitted, report.ignored, &report.notes[..]), (1, 0, &[][..]));
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
    gone.unwrap().delete();
}

#[tokio::test]
async fn files_that_are_added_although_git_ignores_them_are_work() {
    let scene = Scene::new();
    scene.write("ignored/tracked.txt", "tracked\n");
    scene.git("add -f ignored/tracked.txt");
    scene.git("commit -q -m tracked");
    // Those that were there are none.
    let worktree = scene.create("none").await;
    assert!(matches!(scene.settle(worktree).await, Settled::Removed(_)));
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    for name in ["committed", "staged", "meant", "left"] {
        write(&path, &format!("ignored/{name}.txt"), "x\n");
    }
    write(&path, ".env", "x\n");
    scene.git_in(&path, "add -f ignored/committed.txt");
    scene.git_in(&path, "commit -q -m committed");
    scene.git_in(&path, "add -f ignored/staged.txt");
    scene.git_in(&path, "add -f -N ignored/meant.txt");
    let report = scene.keep(worktree).await;
    let expected = ["ignored/committed.txt", "ignored/meant.txt", "ignored/staged.txt"];
    assert_eq!(files(&report), expected);
    assert_eq!((report.ahead, report.uncommitted, report.ignored), (1, 2, 2));
    let saved = scene.git("ls-tree -r --name-only refs/centurion/agents/one/uncommitted ignored");
    let tracked =
        "ignored/committed.txt\nignored/meant.txt\nignored/staged.txt\nignored/tracked.txt";
    assert_eq!(saved, tracked);
    let shown = show(&scene).await;
    assert_eq!((files(&shown), shown.uncommitted, shown.ignored), (files(&report), 2, 2));
}

#[tokio::test]
async fn an_added_name_alone_keeps_the_worktree() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "ignored/meant.txt", "x\n");
    scene.git_in(&path, "add -f -N ignored/meant.txt");
    let report = scene.keep(worktree).await;
    assert_eq!((report.uncommitted, report.ignored), (1, 0));
}

#[tokio::test]
async fn the_result_and_a_later_look_say_the_same_wherever_head_is() {
    for (kind, head) in
        [("branch", ""), ("other", "switch -q -c other"), ("none", "checkout -q --detach")]
    {
        let scene = Scene::new();
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        write(&path, "first.txt", "first\n");
        scene.git_in(&path, "add -A");
        scene.git_in(&path, "commit -q -m first");
        if !head.is_empty() {
            scene.git_in(&path, head);
        }
        write(&path, "second.txt", "second\n");
        scene.git_in(&path, "add -A");
        scene.git_in(&path, "commit -q -m second");
        write(&path, "a.txt", "changed\n");
        write(&path, "open.txt", "open\n");
        write(&path, "ignored/x", "x\n");
        let told = scene.keep(worktree).await;
        let shown = show(&scene).await;
        assert_eq!(
            (told.ahead, told.behind, told.uncommitted, told.ignored),
            (2, 0, 2, 1),
            "{kind}"
        );
        assert_eq!(files(&told), ["a.txt", "first.txt", "open.txt", "second.txt"], "{kind}");
        // But for the refs that were written.
        assert_eq!(shown, Report { saved: Vec::new(), ..told.clone() }, "{kind}");
        assert_eq!(told.notes.is_empty(), kind == "branch", "{:?}", told.notes);
    }
}

#[tokio::test]
async fn a_change_right_after_a_commit_is_not_missed() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    // As long as before, and as old as the index: git cannot tell but by looking into it.
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(10);
    let age = |path: &std::path::Path| {
        fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    };
    write(&path, "quick.txt", "one\n");
    age(&path.join("quick.txt"));
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m quick");
    write(&path, "quick.txt", "two\n");
    age(&path.join("quick.txt"));
    age(&scene.path(".git/centurion/worktrees/one/git/index"));
    let report = scene.keep(worktree).await;
    assert_eq!(report.uncommitted, 1);
    assert_eq!(scene.git_in(&path, "status --porcelain"), "M quick.txt");
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
    gone.unwrap().delete();
    scene.worktrees.restore(&scene.top, "one").await.unwrap();
    assert_eq!(fs::read_to_string(path.join("quick.txt")).unwrap(), "two\n");
}
