//! A process that dies at any step loses nothing, and the next one can tell what is there.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use centurion_worktree::{Direct, Program, RunProgram, Running, Settled, Standing};
use tokio::sync::Notify;

use crate::support::{Scene, wish, write};

/// Runs so many programs, with the last one or up to it, and then nothing ever again: what waits for it is dropped, as by a
/// process that is killed.
struct Dying {
    left: AtomicUsize,
    runs_last: bool,
    died: Notify,
}

impl RunProgram for Dying {
    fn run(&self, program: Program) -> Running<'_> {
        Box::pin(async move {
            let less = |left: usize| left.checked_sub(1);
            let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
            match left {
                Ok(1) if self.runs_last => drop(Direct.run(program).await?),
                Ok(_) => return Direct.run(program).await,
                Err(_) => {}
            }
            self.died.notify_one();
            std::future::pending().await
        })
    }
}

fn dying(steps: usize, runs_last: bool) -> Arc<Dying> {
    Arc::new(Dying { left: AtomicUsize::new(steps), runs_last, died: Notify::new() })
}

/// Runs something until it is over, or until the process dies.
async fn until_death<T>(work: impl Future<Output = T>, runner: &Dying) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = runner.died.notified() => None,
    }
}

#[tokio::test]
async fn dying_while_a_worktree_is_made_leaves_what_the_next_process_mends() {
    let mut was_made = false;
    for step in (1..40).flat_map(|step| [(step, false), (step, true)]) {
        let scene = Scene::new();
        let before = scene.state();
        let runner = dying(step.0, step.1);
        let worktrees = scene.other(runner.clone());
        let wish = wish("one");
        let made = until_death(worktrees.create(&scene.top, &wish), &runner).await;
        if let Some(made) = made {
            made.unwrap();
            was_made = true;
            break;
        }
        for entry in scene.worktrees.list(&scene.top).await.unwrap() {
            assert_eq!(entry.standing, Standing::Unfinished, "{step:?}");
        }
        // It is made when it is asked for again, and nothing is left over.
        let worktree = scene.create("one").await;
        assert_eq!(
            fs::read_to_string(worktree.record.path.join("a.txt")).unwrap(),
            "one\ntwo\nthree\n"
        );
        let settled = scene.settle(worktree).await;
        assert!(matches!(settled, Settled::Removed(_)), "{step:?}: {settled:?}");
        assert_eq!(scene.state(), before, "{step:?}");
        assert_eq!(scene.git("worktree list").lines().count(), 1, "{step:?}");
        assert_eq!(scene.git("branch --list worktree-*"), "", "{step:?}");
        assert_eq!(scene.worktrees.list(&scene.top).await.unwrap().len(), 0);
    }
    assert!(was_made);
}

#[tokio::test]
async fn dying_while_work_is_brought_home_loses_none_of_it() {
    let mut was_settled = false;
    for step in (0..60).flat_map(|step| [(step, false), (step, true)]) {
        let scene = Scene::new();
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        write(&path, "committed.txt", "committed\n");
        scene.git_in(&path, "add -A");
        scene.git_in(&path, "commit -q -m work");
        write(&path, "a.txt", "stashed\n");
        scene.git_in(&path, "stash push -q");
        write(&path, "later.txt", "later\n");
        let tip = scene.git_in(&path, "rev-parse HEAD");
        let runner = dying(step.0, step.1);
        let worktrees = scene.other(runner.clone());
        let settled = until_death(worktrees.settle(worktree, Some(&scene.top)), &runner).await;
        let is_settled = settled.is_some();
        for _ in 0..2 {
            for (name, mended) in scene.worktrees.mend(&scene.top).await.unwrap() {
                assert!(matches!(mended, Ok(Settled::Kept(_))), "{step:?}: {name} {mended:?}");
            }
        }
        let listed = scene.worktrees.list(&scene.top).await.unwrap();
        assert_eq!(listed[0].standing, Standing::Kept, "{step:?}");
        assert_eq!(scene.git("rev-parse worktree-one"), tip, "{step:?}");
        assert_eq!(scene.git("show refs/centurion/agents/one/stash/0:a.txt"), "stashed");
        assert_eq!(fs::read_to_string(path.join("later.txt")).unwrap(), "later\n");
        assert_eq!(scene.git_in(&path, "status --porcelain"), "?? later.txt", "{step:?}");
        scene.git("fsck --strict");
        if is_settled {
            was_settled = true;
            break;
        }
    }
    assert!(was_settled);
}

#[tokio::test]
async fn dying_while_a_worktree_is_removed_or_in_use_is_explained() {
    // S-302
    for step in 0..3 {
        let scene = Scene::new();
        let worktree = scene.create("one").await;
        let runner = dying(step, false);
        let worktrees = scene.other(runner.clone());
        let settled = until_death(worktrees.settle(worktree, Some(&scene.top)), &runner).await;
        assert!(settled.is_none() || step == 2, "{step}");
        scene.worktrees.mend(&scene.top).await.unwrap();
        assert_eq!(scene.worktrees.list(&scene.top).await.unwrap().len(), 0, "{step}");
        assert_eq!(scene.git("worktree list").lines().count(), 1);
        assert_eq!(scene.git("branch --list worktree-*"), "");
    }
    // In use: the lease ends with the process, the work stays.
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    assert!(matches!(listed[0].standing, Standing::InUse { .. }), "{listed:?}");
    assert!(scene.worktrees.mend(&scene.top).await.unwrap().is_empty());
    let path = worktree.record.path.clone();
    write(&path, "untracked.txt", "untracked\n");
    drop(worktree);
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    assert_eq!(listed[0].standing, Standing::Left);
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    assert!(matches!(&mended[0].1, Ok(Settled::Kept(report)) if report.uncommitted == 1));
    assert_eq!(fs::read_to_string(path.join("untracked.txt")).unwrap(), "untracked\n");
}
