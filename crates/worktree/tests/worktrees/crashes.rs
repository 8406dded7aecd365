//! A process that dies at any step loses nothing, and the next one can tell what is there.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use centurion_worktree::merge::{How, Merge, MergeEnd};
use centurion_worktree::{
    Direct, Mended, Program, RunProgram, Running, Settled, Standing, Unsaved,
};
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
                assert!(matches!(mended, Ok(Mended::Kept(_))), "{step:?}: {name} {mended:?}");
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
    let mut deaths = 0;
    loop {
        let scene = Scene::new();
        let worktree = scene.create("one").await;
        // Then git deletes the branch.
        scene.git("pack-refs --all");
        let runner = dying(deaths, false);
        let worktrees = scene.other(runner.clone());
        let settled = until_death(worktrees.settle(worktree, Some(&scene.top)), &runner).await;
        scene.worktrees.mend(&scene.top).await.unwrap();
        assert_eq!(scene.worktrees.list(&scene.top).await.unwrap().len(), 0, "{deaths}");
        assert_eq!(scene.git("worktree list").lines().count(), 1);
        assert_eq!(scene.git("branch --list worktree-*"), "");
        if settled.is_some() {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 0);
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
    assert!(matches!(&mended[0].1, Ok(Mended::Kept(report)) if report.uncommitted == 1));
    assert_eq!(fs::read_to_string(path.join("untracked.txt")).unwrap(), "untracked\n");
}

/// A worktree with a commit, with something that is only staged and with more that is not committed.
async fn with_work() -> Scene {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "committed.txt", "committed\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m work");
    write(&path, "staged.txt", "staged\n");
    scene.git_in(&path, "add -A");
    write(&path, "later.txt", "later\n");
    scene.keep(worktree).await;
    scene
}

/// Runs programs, and counts them.
#[derive(Default)]
struct Counting(AtomicUsize);

impl RunProgram for Counting {
    fn run(&self, program: Program) -> Running<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Direct.run(program)
    }
}

/// Before and after each of the last programs, and before or after some of the others, by a number.
fn moments(programs: usize, number: usize) -> impl Iterator<Item = (usize, bool)> {
    let is_late = move |step: usize| step + 6 >= programs;
    let all = (0..programs).flat_map(|step| [(step, false), (step + 1, true)]);
    all.filter(move |(step, runs_last)| {
        is_late(*step) || (*step % 4 == number && *runs_last == (*step % 8 == number))
    })
}

#[tokio::test]
async fn dying_while_work_is_merged_leaves_a_merge_that_is_finished_or_taken_back() {
    let scene = with_work().await;
    let picked = scene.git("rev-parse worktree-one");
    // The caller has moved on, and has changes of its own.
    scene.write("a.txt", "ONE\ntwo\nthree\n");
    scene.commit("caller");
    scene.write("src/b.txt", "edited\n");
    let (saved, before) = (scene.saved(), scene.state());
    let hows = [How::Merge, How::Squash, How::Rebase, How::CherryPick(vec![picked])];
    for (number, how) in hows.iter().enumerate() {
        let (counting, merge) = (Arc::new(Counting::default()), Merge::any(how, "Work of one"));
        scene.rewind(&saved);
        let entry = scene.only().await;
        scene.other(counting.clone()).merge(&scene.top, &entry, &merge).await.unwrap();
        let mut ends = Vec::new();
        for moment in moments(counting.0.load(Ordering::SeqCst), number) {
            let at = format!("{how:?} {moment:?}");
            scene.rewind(&saved);
            let runner = dying(moment.0, moment.1);
            let worktrees = scene.other(runner.clone());
            let entry = scene.only().await;
            let merged = until_death(worktrees.merge(&scene.top, &entry, &merge), &runner).await;
            assert!(merged.is_none(), "{at}");
            let found = scene.only().await.standing;
            assert!(matches!(found, Standing::Kept | Standing::Merging { .. }), "{at} {found}");
            let mended = scene.worktrees.mend(&scene.top).await.unwrap();
            assert_eq!(mended.len(), usize::from(found != Standing::Kept), "{at} {mended:?}");
            let is_done = scene.state() != before;
            if let [(_, Ok(Mended::Merge(merge)))] = &mended[..] {
                let end = if is_done { MergeEnd::Finished } else { MergeEnd::TakenBack };
                assert_eq!((&merge.end, &merge.notes), (&end, &Vec::new()), "{at} {merge}");
                ends.push(end);
            }
            assert_eq!(scene.only().await.standing, Standing::Kept, "{at}");
            if !is_done {
                let again = scene.worktrees.merge(&scene.top, &scene.only().await, &merge).await;
                again.unwrap_or_else(|error| panic!("{at}: {error}"));
            }
            assert_eq!(scene.read("committed.txt"), "committed\n");
            assert_eq!(scene.git("status --porcelain"), "M src/b.txt", "{at}");
            let path = scene.path(".claude/worktrees/one");
            for name in ["staged.txt", "later.txt"] {
                assert!(path.join(name).is_file());
                let is_picked = matches!(how, How::CherryPick(_));
                assert_eq!(scene.path(name).exists(), !is_picked, "{at}");
            }
            assert_eq!(scene.git_in(&path, "status --porcelain"), "", "{at}");
        }
        scene.git("fsck --strict");
        assert!(
            ends.contains(&MergeEnd::Finished) && ends.contains(&MergeEnd::TakenBack),
            "{how:?}"
        );
    }
}

/// Whether all of the work is in the worktree.
fn is_whole(scene: &Scene) -> bool {
    let path = scene.path(".claude/worktrees/one");
    let has = |name: &str| fs::read_to_string(path.join(name)).is_ok();
    ["committed.txt", "staged.txt", "later.txt"].iter().all(|name| has(name))
        && scene.git_in(&path, "status --porcelain") == "A  staged.txt\n?? later.txt"
        && scene.git_in(&path, "log --format=%s -1") == "work"
}

#[tokio::test]
async fn dying_while_a_worktree_is_saved_and_removed_or_restored_loses_nothing_of_it() {
    let scene = with_work().await;
    for is_removed in [true, false] {
        if !is_removed {
            let entry = scene.only().await;
            let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
            gone.unwrap().delete();
        }
        let (saved, before) = (scene.saved(), scene.state());
        let mut was_done = false;
        for step in 0..60 {
            scene.rewind(&saved);
            let runner = dying(step, step % 2 == 1);
            let worktrees = scene.other(runner.clone());
            was_done = if is_removed {
                let entry = scene.only().await;
                let gone = worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved);
                until_death(gone, &runner).await.map(|gone| gone.unwrap().delete()).is_some()
            } else {
                let restored = worktrees.restore(&scene.top, "one");
                until_death(restored, &runner).await.map(Result::unwrap).is_some()
            };
            // The next process brings it in order, and it is there, or can be restored.
            for (name, mended) in scene.worktrees.mend(&scene.top).await.unwrap() {
                assert!(matches!(mended, Ok(Mended::Removed(_))), "{step}: {name} {mended:?}");
            }
            let listed = scene.worktrees.list(&scene.top).await.unwrap();
            if listed.is_empty() {
                assert_eq!(scene.git("worktree list").lines().count(), 1, "{step}");
                scene.worktrees.restore(&scene.top, "one").await.unwrap();
            }
            assert_eq!(scene.only().await.standing, Standing::Kept, "{step}");
            assert!(is_whole(&scene), "{is_removed} {step}");
            assert_eq!(scene.state(), before, "{step}");
            if was_done {
                break;
            }
        }
        scene.git("fsck --strict");
        assert!(was_done, "{is_removed}");
    }
}
