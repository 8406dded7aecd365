//! How the work of an agent comes into the caller's checkout, or does not.

use centurion_worktree::merge::{How, Merge, MergeError, Merged};

use crate::support::{Scene, write};

/// A worktree with two commits and something that is not committed, while the caller has moved on.
async fn prepared(conflict: bool) -> Scene {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    for (name, text) in [("x.txt", "x\n"), ("a.txt", "one\ntwo\nTHREE\n")] {
        write(&path, name, text);
        scene.git_in(&path, "add -A");
        scene.git_in(&path, &format!("commit -q -m agent-{name}"));
    }
    write(&path, "rest.txt", "rest\n");
    let text = if conflict { "one\ntwo\n3\n" } else { "ONE\ntwo\nthree\n" };
    scene.write("a.txt", text);
    scene.commit("caller");
    scene.keep(worktree).await;
    scene
}

async fn merge(scene: &Scene, how: &How) -> Result<Merged, MergeError> {
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    scene.worktrees.merge(&scene.top, &listed[0], &Merge::any(how, "Work of one")).await
}

#[tokio::test]
async fn work_is_merged_in_each_way_and_other_changes_stay() {
    let subjects = "log --format=%s HEAD~5..";
    for (how, commits) in [(How::Merge, 4), (How::Squash, 1), (How::Rebase, 3)] {
        let scene = prepared(false).await;
        // The caller's tree need not be clean.
        scene.write("src/b.txt", "edited\n");
        scene.write("staged.txt", "staged\n");
        scene.git("add staged.txt");
        let before = scene.head();
        let merged = merge(&scene, &how).await.unwrap();
        assert_eq!(
            (merged.from, merged.to, merged.commits),
            (before, scene.head(), commits),
            "{how:?}"
        );
        assert_eq!(scene.read("a.txt"), "ONE\ntwo\nTHREE\n");
        assert_eq!((scene.read("x.txt"), scene.read("rest.txt")), ("x\n".into(), "rest\n".into()));
        assert_eq!(scene.read("src/b.txt"), "edited\n");
        assert_eq!(scene.git("status --porcelain"), "M src/b.txt\nA  staged.txt".trim());
        let log = scene.try_git_in(&scene.top, subjects).0;
        match how {
            How::Rebase => {
                assert_eq!(
                    scene.git("log --format=%s -3"),
                    "Work of one\nagent-a.txt\nagent-x.txt"
                );
                assert_eq!(scene.git("log --merges --oneline"), "");
            }
            How::Squash => {
                assert_eq!(scene.git("log --format=%s -2"), "Work of one\ncaller", "{log}");
            }
            _ => assert_eq!(scene.git("log --merges --format=%s"), "Work of one"),
        }
        // What is merged already is nothing.
        if how == How::Merge {
            assert!(matches!(merge(&scene, &how).await, Err(MergeError::Nothing(_))));
        }
    }
}

#[tokio::test]
async fn one_commit_is_picked() {
    let scene = prepared(true).await;
    let commit = scene.git("rev-parse worktree-one~1");
    let merged = merge(&scene, &How::CherryPick(vec![commit])).await.unwrap();
    assert_eq!(merged.commits, 1);
    assert_eq!(scene.read("x.txt"), "x\n");
    assert_eq!(scene.read("a.txt"), "one\ntwo\n3\n");
    assert_eq!(scene.git("log --format=%s%an -1"), "agent-x.txtT");
}

#[tokio::test]
async fn a_conflict_leaves_everything_as_it_was_and_names_the_files() {
    for how in [How::Merge, How::Squash, How::Rebase] {
        let scene = prepared(true).await;
        scene.write("src/b.txt", "edited\n");
        let before = scene.state();
        let error = merge(&scene, &how).await.unwrap_err();
        let MergeError::Conflicts { files, .. } = &error else { panic!("{error}") };
        assert_eq!(files, &["a.txt"], "{how:?}");
        assert_eq!(scene.state(), before, "{how:?}");
    }
    // So does a change of the caller's that is not committed.
    let scene = prepared(false).await;
    scene.write("x.txt", "mine\n");
    let before = scene.state();
    let error = merge(&scene, &How::Merge).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("x.txt") && told.contains("overwritten by merge"), "{told}");
    assert_eq!((scene.state(), scene.read("x.txt")), (before, "mine\n".to_owned()));
}

#[tokio::test]
async fn a_worktree_in_use_is_not_merged() {
    let scene = prepared(false).await;
    let again = scene.create("one").await;
    let error = merge(&scene, &How::Merge).await.unwrap_err();
    assert!(matches!(error, MergeError::InUse(_)), "{error}");
    scene.keep(again).await;
    merge(&scene, &How::Merge).await.unwrap();
}

#[tokio::test]
async fn the_commands_that_are_named_after_a_conflict_solve_it() {
    for how in [How::Merge, How::Squash, How::Rebase] {
        let scene = prepared(true).await;
        let path = scene.path(".claude/worktrees/one");
        let error = merge(&scene, &how).await.unwrap_err();
        let MergeError::Conflicts { help, .. } = &error else { panic!("{error}") };
        let mut commands: Vec<&str> = help.split('`').skip(1).step_by(2).collect();
        let continues = commands.pop().unwrap();
        let begins = commands.pop().unwrap();
        for command in commands {
            scene.shell(command);
        }
        assert!(!scene.try_shell(begins), "{begins}");
        write(&path, "a.txt", "one\ntwo\nboth\n");
        scene.git_in(&path, "add a.txt");
        scene.shell(continues);
        merge(&scene, &how).await.unwrap();
        assert_eq!(scene.read("a.txt"), "one\ntwo\nboth\n", "{how:?}");
        assert_eq!(scene.read("rest.txt"), "rest\n", "{how:?}");
    }
    let scene = prepared(true).await;
    let commit = scene.git("rev-parse worktree-one");
    let error = merge(&scene, &How::CherryPick(vec![commit])).await.unwrap_err();
    let MergeError::Conflicts { help, .. } = &error else { panic!("{error}") };
    assert!(!scene.try_shell(help.split('`').nth(1).unwrap()));
    assert!(scene.path(".git/CHERRY_PICK_HEAD").exists());
}
