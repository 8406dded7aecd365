//! Worktrees that were kept: looked at, let go, and brought back.

use std::fs;

use centurion_worktree::merge::{How, Merge};
use centurion_worktree::{Finished, KeptError, Standing, Unsaved};

use crate::support::{Scene, wish, write};

/// A worktree with a commit, a change, a new file and an ignored one.
async fn prepared() -> Scene {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "committed.txt", "committed\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m work");
    write(&path, "a.txt", "changed\n");
    write(&path, "new.txt", "new\n");
    write(&path, "ignored/result.bin", "result\n");
    scene.keep(worktree).await;
    scene
}

#[tokio::test]
async fn what_is_in_a_worktree_is_told_and_shown() {
    let scene = prepared().await;
    let entry = scene.only().await;
    assert_eq!(entry.standing, Standing::Kept);
    let report = scene.worktrees.report(&scene.top, &entry).await.unwrap();
    assert_eq!((report.ahead, report.behind, report.uncommitted, report.ignored), (1, 0, 2, 1));
    let patch = scene.worktrees.diff(&entry, &|_| true).await.unwrap();
    for part in ["+committed", "+changed", "-two", "+new"] {
        assert!(patch.contains(part), "{part}: {patch}");
    }
    assert!(!patch.contains("result"), "{patch}");
}

#[tokio::test]
async fn a_commit_of_no_branch_keeps_a_worktree_whose_branch_is_merged() {
    // I-7
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    scene.git_in(&path, "commit -q --allow-empty -m branch");
    scene.git_in(&path, "checkout -q --detach");
    scene.git_in(&path, "commit -q --allow-empty -m detached");
    scene.keep(worktree).await;
    scene.git("merge -q worktree-one");
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    let gone = scene.worktrees.let_go(&scene.top, &listed[0], Unsaved::Stays).await;
    assert!(matches!(gone, Err(KeptError::Holds(_))), "{gone:?}");
    assert!(path.is_dir());
}

#[tokio::test]
async fn a_worktree_goes_when_all_of_it_is_elsewhere_and_not_before() {
    let scene = prepared().await;
    let path = scene.path(".claude/worktrees/one");
    let refused = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::Stays).await;
    assert!(matches!(refused, Err(KeptError::Holds(_))), "{refused:?}");
    fs::remove_file(path.join("new.txt")).unwrap();
    fs::remove_dir_all(path.join("ignored")).unwrap();
    scene.git_in(&path, "checkout -q -- a.txt");
    let refused = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::Stays).await;
    assert!(refused.unwrap_err().to_string().contains("no other branch has the commits"));
    assert!(path.is_dir());
    scene.git("merge -q --ff-only worktree-one");
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::Stays).await;
    gone.unwrap().delete();
    assert!(!path.exists());
    assert_eq!(scene.git("branch --list worktree-*"), "");
    assert_eq!(scene.git("worktree list").lines().count(), 1);
    assert!(scene.worktrees.list(&scene.top).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_removed_by_force_comes_back_whole() {
    // I-7
    let scene = prepared().await;
    let path = scene.path(".claude/worktrees/one");
    let tip = scene.git("rev-parse worktree-one");
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
    gone.unwrap().delete();
    assert!(!path.exists());
    scene.git("gc -q --prune=now");
    let restored = scene.worktrees.restore(&scene.top, "one").await.unwrap();
    let path = restored.path;
    assert_eq!(scene.git_in(&path, "rev-parse HEAD"), tip);
    for (name, text) in [
        ("committed.txt", "committed\n"),
        ("a.txt", "changed\n"),
        ("new.txt", "new\n"),
        ("ignored/result.bin", "result\n"),
    ] {
        assert_eq!(fs::read_to_string(path.join(name)).unwrap(), text, "{name}");
    }
    assert_eq!(scene.only().await.standing, Standing::Kept);
    assert!(matches!(scene.worktrees.restore(&scene.top, "one").await, Err(KeptError::Taken(_))));
    let unknown = scene.worktrees.restore(&scene.top, "nothing").await;
    assert!(matches!(unknown, Err(KeptError::NothingSaved(_))), "{unknown:?}");
}

#[tokio::test]
async fn a_worktree_that_comes_back_is_the_one_that_was_removed() {
    // I-7
    for detached in [false, true] {
        let scene = prepared().await;
        let path = scene.path(".claude/worktrees/one");
        if detached {
            scene.git_in(&path, "checkout -q --detach");
            write(&path, "detached.txt", "detached\n");
            scene.git_in(&path, "add detached.txt");
            scene.git_in(&path, "commit -q -m detached");
        }
        write(&path, "staged.txt", "staged\n");
        write(&path, "src/b.txt", "staged\n");
        scene.git_in(&path, "add staged.txt src/b.txt");
        write(&path, "src/b.txt", "later\n");
        fs::remove_file(path.join("src/c.txt")).unwrap();
        scene.git_in(&path, "rm -q --cached src/c.txt");
        let entry = scene.only().await;
        let before = scene.worktrees.report(&scene.top, &entry).await.unwrap();
        let differs = scene.worktrees.diff(&entry, &|_| true).await.unwrap();
        let status = scene.git_in(&path, "status --porcelain --ignored --branch");
        let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
        gone.unwrap().delete();
        let restored = scene.worktrees.restore(&scene.top, "one").await.unwrap();
        assert_eq!(scene.git_in(&path, "status --porcelain --ignored --branch"), status);
        let record = entry.record.unwrap();
        assert_eq!((&restored.path, &restored.base), (&record.path, &record.base));
        assert_eq!((&restored.owner, restored.made), (&record.owner, record.made));
        let entry = scene.only().await;
        assert_eq!(entry.standing, Standing::Kept);
        assert_eq!(scene.worktrees.report(&scene.top, &entry).await.unwrap(), before);
        assert_eq!(scene.worktrees.diff(&entry, &|_| true).await.unwrap(), differs);
        // Its agent continues apart from the others.
        let again = scene.create("one").await;
        assert!(again.private_repository().is_some());
        scene.git_in(&path, "commit -q -m more");
        let report = scene.keep(again).await;
        assert_eq!(report.ahead, before.ahead + 1);
    }
}

#[tokio::test]
async fn what_others_say_of_a_saved_worktree_is_not_believed() {
    let scene = prepared().await;
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
    gone.unwrap().delete();
    let name = "refs/centurion/agents/one/record";
    let said = scene.git(&format!("cat-file commit {name}"));
    let (_, record) = said.split_at(said.find("\n{").unwrap());
    for (from, to) in [
        ("\"agent\": \"one\"", "\"agent\": \"../../heads\""),
        ("\"slug\": \"one\"", "\"slug\": \"../../x\""),
        ("\"base\": \"", "\"base\": \"--output=x"),
    ] {
        let forged = record.replace(from, to);
        assert_ne!(forged, record);
        let args = ["commit-tree", "HEAD^{tree}", "-m", &format!("x\n{forged}")];
        let commit = scene.git_args(&args);
        scene.git(&format!("update-ref {name} {commit}"));
        let restored = scene.worktrees.restore(&scene.top, "one").await.unwrap();
        // As far as it is known without.
        assert_eq!(restored.path, scene.path(".claude/worktrees/agent-one"));
        assert_eq!(restored.base, scene.git("rev-parse refs/centurion/agents/one/branch"));
        let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
        gone.unwrap().delete();
    }
}

#[tokio::test]
async fn a_worktree_in_use_or_left_is_not_let_go() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let entry = scene.only().await;
    let refused = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
    assert!(matches!(refused, Err(KeptError::InUse(_))), "{refused:?}");
    drop(worktree);
    let refused = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
    assert!(matches!(refused, Err(KeptError::Left)), "{refused:?}");
}

#[tokio::test]
async fn a_worktree_that_a_person_moved_is_found_and_not_removed() {
    let scene = prepared().await;
    let path = scene.path(".claude/worktrees/one");
    let to = scene.root().join("new place");
    let words = ["worktree", "move", path.to_str().unwrap(), to.to_str().unwrap()];
    scene.git_args(&words);
    let entry = scene.only().await;
    assert_eq!(entry.standing, Standing::Moved { to: to.clone() });
    scene.worktrees.mend(&scene.top).await.unwrap();
    let mut told = Vec::new();
    for unsaved in [Unsaved::Stays, Unsaved::IsSaved] {
        let refused = scene.worktrees.let_go(&scene.top, &entry, unsaved).await;
        told.push(refused.unwrap_err().to_string());
    }
    told.push(scene.worktrees.report(&scene.top, &entry).await.unwrap_err().to_string());
    let merge = Merge::any(&How::Merge, "m");
    told.push(scene.worktrees.merge(&scene.top, &entry, &merge).await.unwrap_err().to_string());
    assert!(told.iter().all(|it| *it == told[0]), "{told:?}");
    assert!(scene.try_create("one").await.unwrap_err().to_string().ends_with(&told[0]));
    assert_eq!(fs::read_to_string(to.join("new.txt")).unwrap(), "new\n");
    assert_eq!(scene.git_in(&to, "branch --show-current"), "worktree-one");
    scene.shell(told[0].split('`').nth(1).unwrap());
    let entry = scene.only().await;
    assert_eq!(entry.standing, Standing::Kept);
    let report = scene.worktrees.report(&scene.top, &entry).await.unwrap();
    assert_eq!((report.ahead, report.uncommitted), (1, 2));
}

#[tokio::test]
async fn a_repository_that_an_agent_made_in_its_worktree_stays_there_and_is_named() {
    for has_commit in [false, true] {
        let scene = Scene::new();
        let mut made = scene.worktrees.create(&scene.top, &wish("one")).await.unwrap();
        let path = made.record.path.clone();
        scene.git_in(&path, "init -q lib/inner");
        write(&path, "lib/inner/x", "x\n");
        if has_commit {
            scene.git_in(&path.join("lib/inner"), "add -A");
            scene.git_in(&path.join("lib/inner"), "commit -q -m x");
        }
        write(&path, "new.txt", "new\n");
        let Finished::Kept(report) =
            scene.worktrees.finish(&mut made, Some(&scene.top)).await.unwrap()
        else {
            panic!("{has_commit}");
        };
        drop(made);
        assert!(report.notes.iter().any(|note| note.contains("lib/inner")), "{:?}", report.notes);
        let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
        assert_eq!(entry.standing, Standing::Kept);
        let merge = Merge::any(&How::Merge, "m");
        scene.worktrees.merge(&scene.top, &entry, &merge).await.unwrap();
        assert_eq!(scene.read("new.txt"), "new\n");
        assert!(!scene.git("ls-files --stage").contains("160000"), "{has_commit}");
        let stays = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
        assert!(stays.is_err() && path.join("lib/inner/x").exists(), "{has_commit}");
    }
}

#[tokio::test]
async fn files_come_back_byte_for_byte_whatever_attributes_say() {
    // I-7
    for (attributes, setting) in [
        ("* text=auto\n", "core.autocrlf=false"),
        ("* text eol=crlf\n", "core.autocrlf=false"),
        ("*.txt text eol=lf\n*.u working-tree-encoding=UTF-16LE\n", "core.autocrlf=true"),
        ("*.txt ident\n", "core.autocrlf=true"),
    ] {
        let scene = Scene::new();
        scene.write(".gitattributes", attributes);
        scene.write("kept.txt", "kept\n");
        scene.commit("attributes");
        let (key, value) = setting.split_once('=').unwrap();
        scene.git(&format!("config {key} {value}"));
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        let files: [(&str, &[u8]); 6] = [
            ("crlf.txt", b"a\r\nb\r\n"),
            ("mixed.txt", b"a\r\nb\nc\r\n"),
            ("a.txt", b"changed\r\nhere\n"),
            ("id.txt", b"$Id: mine $\n"),
            ("wide.u", b"a\0\r\0\n\0"),
            ("sub/bare \"q\".txt", b"a\nb\rc\r\n"),
        ];
        for (name, bytes) in files {
            fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
            fs::write(path.join(name), bytes).unwrap();
        }
        std::os::unix::fs::symlink("crlf.txt", path.join("link")).unwrap();
        let before = fs::read(path.join("kept.txt")).unwrap();
        scene.keep(worktree).await;
        let status = scene.git_in(&path, "status --porcelain");
        let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
        gone.unwrap().delete();
        scene.worktrees.restore(&scene.top, "one").await.unwrap();
        for (name, bytes) in files {
            assert_eq!(fs::read(path.join(name)).unwrap(), bytes, "{attributes}: {name}");
        }
        assert_eq!(fs::read(path.join("kept.txt")).unwrap(), before, "{attributes}");
        assert_eq!(fs::read_link(path.join("link")).unwrap().to_str(), Some("crlf.txt"));
        assert_eq!(scene.git_in(&path, "status --porcelain"), status, "{attributes}");
    }
}

#[tokio::test]
async fn what_was_saved_of_a_worktree_whose_directory_is_gone_comes_back() {
    // I-7
    let scene = prepared().await;
    let path = scene.path(".claude/worktrees/one");
    fs::remove_dir_all(&path).unwrap();
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
    gone.unwrap().delete();
    scene.worktrees.restore(&scene.top, "one").await.unwrap();
    for (name, text) in
        [("committed.txt", "committed\n"), ("a.txt", "changed\n"), ("new.txt", "new\n")]
    {
        assert_eq!(fs::read_to_string(path.join(name)).unwrap(), text, "{name}");
    }
}
