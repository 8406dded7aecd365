//! What git was in the middle of when a process died: it is told, and every way out that is named is one.

use std::fs;
use std::path::Path;

use centurion_worktree::merge::{How, Merge};
use centurion_worktree::{Mended, Operation, Settled, Standing, Unsaved};

use crate::support::{Scene, write};

/// Two branches that do not go together; the worktree is on its own.
fn diverge(scene: &Scene, path: &Path) {
    scene.git_in(path, "switch -q -c side");
    write(path, "a.txt", "side\n");
    scene.git_in(path, "commit -q -a -m side");
    scene.git_in(path, "switch -q worktree-one");
    write(path, "a.txt", "own\n");
    scene.git_in(path, "commit -q -a -m own");
}

/// Begins something that does not end.
fn begin(scene: &Scene, path: &Path, operation: Operation) {
    diverge(scene, path);
    let fails = |args: &str| assert!(!scene.try_git_in(path, args).1, "{args}");
    match operation {
        Operation::Merge => fails("merge side"),
        Operation::Rebase => fails("rebase side"),
        Operation::CherryPick => fails("cherry-pick side"),
        Operation::Revert => {
            write(path, "a.txt", "later\n");
            scene.git_in(path, "commit -q -a -m later");
            fails("revert HEAD~1");
        }
        Operation::Am => {
            scene.git_in(path, "format-patch -q -1 -o .. side");
            fails("am ../0001-side.patch");
            fs::remove_file(path.join("../0001-side.patch")).unwrap();
        }
        Operation::Bisect => {
            // Begun on a branch that the repository does not get.
            scene.git_in(path, "switch -q side");
            scene.git_in(path, "bisect start HEAD HEAD~2");
        }
        Operation::Conflict => {
            write(path, "a.txt", "stashed\n");
            scene.git_in(path, "stash push -q");
            write(path, "a.txt", "again\n");
            scene.git_in(path, "commit -q -a -m again");
            fails("stash pop");
        }
    }
}

/// The command that a text names.
fn command(text: &str) -> &str {
    let rest = &text[text.find("`git -C").unwrap_or_else(|| panic!("{text}")) + 1..];
    &rest[..rest.find('`').unwrap()]
}

#[tokio::test]
async fn what_was_begun_is_named_with_the_command_that_gives_it_up() {
    for operation in [
        Operation::Merge,
        Operation::Rebase,
        Operation::CherryPick,
        Operation::Revert,
        Operation::Am,
        Operation::Bisect,
        Operation::Conflict,
    ] {
        let scene = Scene::new();
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        begin(&scene, &path, operation);
        let tip = scene.git_in(&path, "rev-parse worktree-one");
        write(&path, "new.txt", "new\n");
        drop(worktree);
        let mended = scene.worktrees.mend(&scene.top).await.unwrap();
        let Ok(Mended::Kept(report)) = &mended[0].1 else { panic!("{operation:?} {mended:?}") };
        assert_eq!(report.operation, Some(operation));
        let told = report.notes[0].clone();
        // All of it is home but what git is in the middle of.
        assert_eq!(scene.git("rev-parse worktree-one"), tip, "{operation:?}");
        assert_eq!(scene.git("show refs/centurion/agents/one/uncommitted:new.txt"), "new");
        assert_eq!(scene.git("show refs/centurion/agents/one/refs/heads/side:a.txt"), "side");
        if operation != Operation::Conflict {
            let entry = scene.only().await;
            assert_eq!(entry.standing, Standing::Paused { operation });
            let report = scene.worktrees.report(&scene.top, &entry).await.unwrap();
            assert_eq!(report.notes[0], told);
            assert!(
                scene.worktrees.diff(&entry, &|_| true).await.unwrap().contains("+new"),
                "{operation:?}"
            );
            let merged =
                scene.worktrees.merge(&scene.top, &entry, &Merge::any(&How::Merge, "m")).await;
            assert_eq!(merged.unwrap_err().to_string(), told);
            let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
            assert_eq!(gone.unwrap_err().to_string(), told);
        }
        // As a person may have done meanwhile, which leads the worktree's git elsewhere.
        scene.git("worktree repair");
        scene.worktrees.mend(&scene.top).await.unwrap();
        scene.shell(command(&told));
        assert!(told.ends_with("then run `centurion worktrees clean`"), "{told}");
        let mended = scene.worktrees.mend(&scene.top).await.unwrap();
        let Ok(Mended::Kept(report)) = &mended[0].1 else { panic!("{operation:?} {mended:?}") };
        assert_eq!(report.operation, None, "{operation:?}");
        let entry = scene.only().await;
        assert_eq!(entry.standing, Standing::Kept, "{operation:?}");
        assert_eq!(fs::read_to_string(path.join("new.txt")).unwrap(), "new\n", "{operation:?}");
        let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
        gone.unwrap().delete();
        scene.git("fsck --strict");
    }
}

#[tokio::test]
async fn what_a_person_begins_in_a_worktree_that_was_kept_is_named_as_well() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    diverge(&scene, &path);
    scene.keep(worktree).await;
    assert!(!scene.try_git_in(&path, "merge refs/centurion/agents/one/refs/heads/side").1);
    let entry = scene.only().await;
    let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
    let told = gone.unwrap_err().to_string();
    assert!(told.starts_with("a merge is not finished in it"), "{told}");
    let refused = scene.try_create("one").await.unwrap_err().to_string();
    assert!(refused.ends_with(&told), "{refused}");
    scene.shell(command(&told));
    let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
    gone.unwrap().delete();
}

#[tokio::test]
async fn an_agent_continues_with_what_it_had_begun() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    begin(&scene, &path, Operation::Rebase);
    drop(worktree);
    scene.worktrees.mend(&scene.top).await.unwrap();
    let again = scene.create("one").await;
    write(&path, "a.txt", "both\n");
    scene.git_in(&path, "add a.txt");
    scene.git_in(&path, "rebase --continue");
    let report = scene.keep(again).await;
    assert_eq!(report.operation, None);
    assert_eq!(scene.git("log --format=%s -2 worktree-one"), "own\nside");
    assert_eq!(scene.only().await.standing, Standing::Kept);
}

#[tokio::test]
async fn what_cannot_be_mended_says_why_each_time() {
    let scene = Scene::new();
    // A link where an agent's own repository has a file.
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "work.txt", "work\n");
    let link = scene.path(".git/centurion/worktrees/one/git/refs/heads/odd");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    drop(worktree);
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    let told = mended[0].1.as_ref().unwrap_err().to_string();
    assert!(told.contains(&format!("remove '{}'", link.display())), "{told}");
    fs::remove_file(&link).unwrap();
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    assert!(matches!(mended[0].1, Ok(Mended::Kept(_))), "{mended:?}");
    // One that is half removed, and another's files in its place.
    let file = scene.path(".git/centurion/worktrees/one/record.json");
    let record = fs::read_to_string(&file).unwrap();
    fs::write(&file, record.replace("\"ready\"", "\"removing\"")).unwrap();
    fs::remove_file(path.join(".git")).unwrap();
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    let told = mended[0].1.as_ref().unwrap_err().to_string();
    assert!(told.contains("is not the worktree that was made there"), "{told}");
    // One whose record cannot be read.
    fs::write(&file, "{").unwrap();
    let refused = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::Stays).await;
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("cannot be read") && told.contains("worktrees/one"), "{told}");
}

#[tokio::test]
async fn locks_of_a_git_that_was_killed_are_passed_by_or_named_and_nothing_is_taken_for_done() {
    // One that kept an agent's own git from its index: what was staged comes home without it.
    for split in [false, true] {
        let scene = Scene::new();
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        if split {
            scene.git_in(&path, "update-index --split-index");
        }
        write(&path, "work.txt", "work\n");
        scene.git_in(&path, "add work.txt");
        write(&path, "work.txt", "more work\n");
        drop(worktree);
        fs::write(scene.path(".git/centurion/worktrees/one/git/index.lock"), "").unwrap();
        let mended = scene.worktrees.mend(&scene.top).await.unwrap();
        let Ok(Mended::Kept(report)) = &mended[0].1 else { panic!("{split} {mended:?}") };
        assert_eq!(report.operation, None, "{split}");
        assert_eq!(scene.git("show refs/centurion/agents/one/staged:work.txt"), "work");
        assert_eq!(scene.git("show refs/centurion/agents/one/uncommitted:work.txt"), "more work");
        assert_eq!(scene.git_in(&path, "status --short"), "AM work.txt", "{split}");
    }
    // One that keeps a branch from being removed: the worktree is known until it is.
    let scene = Scene::new();
    let worktree = scene.create("two").await;
    let lock = scene.path(".git/refs/heads/worktree-two.lock");
    fs::write(&lock, "").unwrap();
    assert!(matches!(scene.settle(worktree).await, Settled::Removed(_)));
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    assert_eq!(listed[0].standing, Standing::Unfinished);
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    let told = mended[0].1.as_ref().unwrap_err().to_string();
    assert!(told.contains(lock.to_str().unwrap()), "{told}");
    let refused = scene.try_create("two").await.unwrap_err().to_string();
    assert!(refused.contains(lock.to_str().unwrap()), "{refused}");
    fs::remove_file(&lock).unwrap();
    scene.worktrees.mend(&scene.top).await.unwrap();
    assert_eq!(scene.git("branch --list worktree-two"), "");
    scene.create("two").await;
}

#[tokio::test]
async fn what_is_left_of_a_name_or_of_a_removal_is_nothing() {
    // Killed before the first record was whole.
    let scene = Scene::new();
    let kept = scene.path(".git/centurion/worktrees/one");
    write(&kept, "record.json.77.new", "");
    write(&kept, "lease", "77\n");
    assert_eq!(scene.only().await.standing, Standing::Unfinished);
    scene.worktrees.mend(&scene.top).await.unwrap();
    assert!(!kept.exists());
    // A git that was killed has made the file that names the repository, and has not written to it.
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    drop(worktree);
    let file = scene.path(".git/centurion/worktrees/one/record.json");
    let record = fs::read_to_string(&file).unwrap();
    fs::write(&file, record.replace("\"ready\"", "\"making\"")).unwrap();
    fs::remove_dir_all(&path).unwrap();
    write(&path, ".git", "");
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    assert!(matches!(mended[0].1, Ok(Mended::Removed(_))), "{mended:?}");
    assert!(!path.exists());
}

#[tokio::test]
async fn history_of_a_dead_process_survives_the_removal_of_its_files() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "a.txt", "agent\n");
    scene.git_in(&path, "commit -q -a -m agent");
    let tip = scene.git_in(&path, "rev-parse HEAD");
    drop(worktree);
    fs::remove_dir_all(&path).unwrap();
    let refused = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::Stays).await;
    assert!(refused.is_err(), "{refused:?}");
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    assert!(matches!(mended[0].1, Ok(Mended::Kept(_))), "{mended:?}");
    assert_eq!(scene.git("rev-parse worktree-one"), tip);
    assert_eq!(scene.only().await.standing, Standing::Gone);
}

#[tokio::test]
async fn a_branch_without_a_commit_comes_home_with_its_files() {
    for kept in [false, true] {
        let scene = Scene::new();
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        write(&path, "a.txt", "committed\n");
        scene.git_in(&path, "commit -q -a -m agent");
        let tip = scene.git_in(&path, "rev-parse HEAD");
        if kept {
            // A person does the same later.
            scene.keep(worktree).await;
            scene.git_in(&path, "checkout -q --orphan fresh");
            write(&path, "new.txt", "new\n");
            scene.git_in(&path, "add new.txt");
        } else {
            scene.git_in(&path, "checkout -q --orphan fresh");
            scene.git_in(&path, "rm -q --cached src/b.txt");
            write(&path, "new.txt", "new\n");
            scene.git_in(&path, "add new.txt");
            drop(worktree);
            let mended = scene.worktrees.mend(&scene.top).await.unwrap();
            let Ok(Mended::Kept(report)) = &mended[0].1 else { panic!("{mended:?}") };
            assert!(report.notes.join(" ").contains("a branch without a commit"), "{report:?}");
            assert_eq!((report.uncommitted, report.ahead), (1, 1));
            assert_eq!(scene.git_in(&path, "branch --show-current"), "worktree-one");
            let status = scene.git_in(&path, "status --porcelain");
            assert_eq!(status, "A  new.txt\nD  src/b.txt\n?? src/b.txt");
            assert_eq!(scene.git("show refs/centurion/agents/one/staged:new.txt"), "new");
        }
        assert_eq!(scene.git("rev-parse worktree-one"), tip);
        let entry = scene.only().await;
        assert_eq!(entry.standing, Standing::Kept);
        let report = scene.worktrees.report(&scene.top, &entry).await.unwrap();
        assert_eq!((report.head, report.ahead), (tip, 1));
        let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
        gone.unwrap().delete();
        scene.worktrees.restore(&scene.top, "one").await.unwrap();
    }
}
