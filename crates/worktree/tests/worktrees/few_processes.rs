//! The processes that worktrees cost, and the branches that are made and deleted without any.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_worktree::{Direct, Program, RunProgram, Running, Settled};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::support::{Scene, write};

/// Takes note of what git is asked to do.
struct Noting(UnboundedSender<String>);

impl RunProgram for Noting {
    fn run(&self, program: Program) -> Running<'_> {
        let words = program.args.iter().map(|it| it.to_string_lossy().into_owned());
        let mut words = words.filter(|it| it != "-c" && !it.contains('='));
        self.0.send(words.next().unwrap_or_default()).unwrap();
        Direct.run(program)
    }
}

#[tokio::test]
async fn a_worktree_in_which_nothing_is_done_costs_one_process_of_git() {
    let (sender, mut told) = unbounded_channel();
    let scene = Scene::run_by(Arc::new(Noting(sender)));
    let mut done = || std::iter::from_fn(|| told.try_recv().ok()).collect::<Vec<String>>();
    let worktree = scene.create("one").await;
    assert_eq!(done(), ["reset"]);
    let Settled::Removed(trash) = scene.settle(worktree).await else { panic!("kept") };
    trash.delete();
    assert_eq!(done(), Vec::<String>::new());
    assert_eq!(scene.git("branch --list worktree-one"), "");
}

#[tokio::test]
async fn a_branch_that_a_git_may_be_packing_is_deleted_by_git() {
    let (sender, mut told) = unbounded_channel();
    let scene = Scene::run_by(Arc::new(Noting(sender)));
    let worktree = scene.create("one").await;
    while told.try_recv().is_ok() {}
    // It may have read the branch, and write it to the packed ones later.
    fs::write(scene.path(".git/packed-refs.lock"), "").unwrap();
    let Settled::Removed(trash) = scene.settle(worktree).await else { panic!("kept") };
    trash.delete();
    assert_eq!(told.try_recv().unwrap(), "update-ref");
    fs::remove_file(scene.path(".git/packed-refs.lock")).unwrap();
    assert_eq!(scene.git("branch --list worktree-one"), "");
}

/// Locks, and branches of ours, that are left in a git directory.
fn left(scene: &Scene) -> Vec<String> {
    fn look(directory: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                look(&path, found);
            } else if name.strip_suffix(".lock").is_some() || name.starts_with("worktree-") {
                found.push(path.display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    look(&scene.path(".git"), &mut found);
    found
}

#[tokio::test]
async fn branches_go_while_git_packs_refs() {
    // S-300
    let scene = Scene::new();
    let (is_over, top) = (Arc::new(AtomicBool::new(false)), scene.top.clone());
    let packing = {
        let is_over = is_over.clone();
        std::thread::spawn(move || {
            let mut packed = 0;
            while !is_over.load(Ordering::Relaxed) {
                let pack = ["pack-refs", "--all", "--prune"];
                let done = Command::new("git").args(pack).current_dir(&top).output().unwrap();
                packed += usize::from(done.status.success());
            }
            packed
        })
    };
    for round in 0..40 {
        let worktree = scene.create(&format!("w{round}")).await;
        let Settled::Removed(trash) = scene.settle(worktree).await else { panic!("kept") };
        trash.delete();
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(packing.join().unwrap() > 0);
    assert_eq!(scene.git("for-each-ref refs/heads/worktree-*"), "");
    assert_eq!(left(&scene), Vec::<String>::new());
    assert!(!scene.path(".git/logs/refs/heads/worktree-w0").exists());
}

#[tokio::test]
async fn what_a_killed_process_left_of_a_deletion_is_no_obstacle() {
    // I-7
    let scene = Scene::new();
    let heads = scene.path(".git/refs/heads");
    // Its own lock, with the words of one; the branch is there still, or gone.
    for is_gone in [false, true] {
        let worktree = scene.create("one").await;
        fs::write(heads.join("worktree-one.lock"), "centurion deletes it\n").unwrap();
        if is_gone {
            fs::remove_file(heads.join("worktree-one")).unwrap();
        }
        let Settled::Removed(trash) = scene.settle(worktree).await else { panic!("kept") };
        trash.delete();
        assert_eq!(left(&scene), Vec::<String>::new(), "{is_gone}");
    }
    // The lock of a git at work is respected: the rest waits for the next process.
    let worktree = scene.create("two").await;
    fs::write(heads.join("worktree-two.lock"), "").unwrap();
    let Settled::Removed(trash) = scene.settle(worktree).await else { panic!("kept") };
    trash.delete();
    assert!(heads.join("worktree-two").exists());
    fs::remove_file(heads.join("worktree-two.lock")).unwrap();
    scene.worktrees.mend(&scene.top).await.unwrap();
    assert_eq!(left(&scene), Vec::<String>::new());
}

#[tokio::test]
async fn a_branch_that_another_has_moved_or_made_is_not_deleted() {
    // I-7
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let other = scene.git("rev-parse HEAD~1");
    scene.git(&format!("update-ref refs/heads/worktree-one {other}"));
    let Settled::Removed(trash) = scene.settle(worktree).await else { panic!("kept") };
    trash.delete();
    assert_eq!(scene.git("rev-parse worktree-one"), other);
    assert!(scene.worktrees.list(&scene.top).await.unwrap().is_empty());
    // One that is packed with an older commit goes as a whole.
    let worktree = scene.create("old").await;
    scene.git(&format!("update-ref refs/heads/worktree-old {other}"));
    scene.git("pack-refs --all");
    scene.git("update-ref refs/heads/worktree-old HEAD");
    let Settled::Removed(trash) = scene.settle(worktree).await else { panic!("kept") };
    trash.delete();
    assert_eq!(scene.git("branch --list worktree-old"), "");
    // Nor is one made over another's, in a file of its own or packed, or where others are below the name.
    for is_packed in [false, true] {
        scene.git("update-ref refs/heads/worktree-two HEAD~1");
        scene.git("update-ref refs/heads/worktree-three/x HEAD~1");
        if is_packed {
            scene.git("pack-refs --all --prune");
        }
        assert!(scene.try_create("two").await.is_err());
        assert!(scene.try_create("three").await.is_err());
        assert_eq!(scene.git("rev-parse worktree-two"), other);
        assert_eq!(
            scene.git("for-each-ref --format=%(refname) refs/heads/worktree-three"),
            "refs/heads/worktree-three/x"
        );
    }
    // An empty directory that is left of other refs is git's to remove.
    scene.git("update-ref -d refs/heads/worktree-three/x");
    fs::create_dir_all(scene.path(".git/refs/heads/worktree-three")).unwrap();
    let worktree = scene.create("three").await;
    write(&worktree.record.path, "a.txt", "x");
    scene.keep(worktree).await;
}
