//! A directory on the way to a worktree is exchanged for a link, by a command that is held back by nothing: nothing that
//! the link leads to is written, and nothing is lost.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use centurion_worktree::merge::{How, Merge};
use centurion_worktree::{CreateError, Direct, Program, RunProgram, Running, Unsaved, Worktrees};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{Scene, write};

/// The directories that are exchanged.
const WAYS: [&str; 3] = [".claude", ".claude/worktrees", ".claude/worktrees/one"];

/// The duration of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    TheEndOfGit,
    TheEnd,
}

/// Exchanges a directory for a link while one git runs that works on files, or from then on.
struct Exchanging {
    directory: PathBuf,
    victim: PathBuf,
    left: AtomicUsize,
    until: Until,
}

impl Exchanging {
    fn aside(&self) -> PathBuf {
        self.directory.with_file_name("aside")
    }

    fn exchange(&self) {
        if fs::rename(&self.directory, self.aside()).is_ok() {
            symlink(&self.victim, &self.directory).unwrap();
        }
    }

    fn exchange_back(&self) {
        if self.aside().exists() {
            // Ours may have put the link away.
            let _ = fs::remove_file(&self.directory);
            fs::rename(self.aside(), &self.directory).unwrap();
        }
    }
}

impl RunProgram for Exchanging {
    fn run(&self, program: Program) -> Running<'_> {
        Box::pin(async move {
            let less = |left: usize| left.checked_sub(1);
            if !program.environment.contains_key("GIT_WORK_TREE") {
                return Direct.run(program).await;
            }
            if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) != Ok(1) {
                return Direct.run(program).await;
            }
            self.exchange();
            let ended = Direct.run(program).await;
            if self.until == Until::TheEndOfGit {
                self.exchange_back();
            }
            ended
        })
    }
}

/// All that is below a directory: modes and contents by path.
fn content(directory: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let bytes = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if metadata.is_dir() {
            found.extend(content(&path));
        }
        found.insert(path, (metadata.permissions().mode(), bytes));
    }
    found
}

/// A directory that a link leads to, with something in all places that a worktree could be taken to be at.
fn victim(scene: &Scene) -> PathBuf {
    let victim = scene.root().join("victim");
    for place in ["", "one", "worktrees/one", ".trash/one-0", "worktrees/.trash/one-0"] {
        write(&victim.join(place), "a.txt", "precious\n");
        write(&victim.join(place), "src/c.txt", "precious\n");
        write(&victim.join(place), "mine/x.txt", "precious\n");
    }
    victim
}

/// What is done to a worktree in use, and to one that was kept.
const IN_USE: [&str; 4] = ["create", "settle", "remove", "mend"];
const KEPT: [&str; 3] = ["merge", "let go", "restore"];

async fn prepare(scene: &Scene, deed: &str) {
    if deed == "create" {
        // The directories are there already.
        let other = scene.create("other").await;
        write(&other.record.path, "x", "x");
        scene.keep(other).await;
        return;
    }
    let made = scene.create("one").await;
    let path = made.record.path.clone();
    match deed {
        "settle" | "remove" | "mend" => drop(made),
        _ => {
            work(&path);
            scene.keep(made).await;
        }
    }
    if deed == "mend" {
        work(&path);
    }
    if deed == "restore" {
        let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
        let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
        gone.unwrap().delete();
    }
}

fn work(path: &Path) {
    write(path, "a.txt", "work\n");
    write(path, "new/work.txt", "work\n");
}

/// Carries it out; it may fail.
async fn carry_out(worktrees: &Worktrees, scene: &Scene, deed: &str) {
    let entry = || async {
        let all = worktrees.list(&scene.top).await.unwrap();
        all.into_iter().find(|entry| entry.name() == "one").unwrap()
    };
    let wish = crate::support::wish("one");
    match deed {
        "create" => drop(worktrees.create(&scene.top, &wish).await),
        "settle" | "remove" => {
            let Ok(made) = worktrees.create(&scene.top, &wish).await else { return };
            if deed == "settle" {
                work(&made.record.path);
            }
            if let Ok(centurion_worktree::Settled::Removed(trash)) =
                worktrees.settle(made, Some(&scene.top)).await
            {
                trash.delete();
            }
        }
        "mend" => {
            for (_, mended) in worktrees.mend(&scene.top).await.unwrap_or_default() {
                if let Ok(centurion_worktree::Mended::Removed(trash)) = mended {
                    trash.delete();
                }
            }
        }
        "merge" => {
            let _ = worktrees.report(&scene.top, &entry().await).await;
            let _ = worktrees.diff(&entry().await, &|_| true).await;
            let merge = Merge::any(&How::Merge, "merged");
            let _ = worktrees.merge(&scene.top, &entry().await, &merge).await;
        }
        "let go" => {
            let gone = worktrees.let_go(&scene.top, &entry().await, Unsaved::IsSaved).await;
            if let Ok(trash) = gone {
                trash.delete();
            }
        }
        _ => drop(worktrees.restore(&scene.top, "one").await),
    }
    let from = worktrees.checkout(&scene.top).await.unwrap();
    worktrees.trash(&from).delete();
}

/// Whether what was done in the worktree is in it, on a branch, or saved.
fn is_kept(scene: &Scene) -> bool {
    let name = "new/work.txt";
    let refs = scene.git("for-each-ref --format=%(refname)");
    let is_there = |name: &str| scene.try_git_in(&scene.top, &format!("cat-file -e {name}")).1;
    scene.path(".claude/worktrees/one").join(name).exists()
        || scene.path(name).exists()
        || refs.lines().any(|it| is_there(&format!("{it}:{name}")))
}

/// Exchanges each of the directories in turn, at one git after the other.
async fn try_exchanges(deeds: &[&str], until: Until) {
    for (offset, deed) in deeds.iter().enumerate() {
        let scene = Scene::new();
        prepare(&scene, deed).await;
        let victim = victim(&scene);
        let (before, saved) = (content(&victim), scene.saved());
        for step in 1..60 {
            if step > 1 {
                scene.rewind(&saved);
            }
            let way = WAYS[(step + offset) % WAYS.len()];
            let exchanging = Arc::new(Exchanging {
                directory: scene.path(way),
                victim: victim.clone(),
                left: AtomicUsize::new(step),
                until,
            });
            carry_out(&scene.other(exchanging.clone()), &scene, deed).await;
            let what = format!("{deed}: {way} {until:?}, git {step}");
            assert_eq!(content(&victim), before, "{what}");
            let is_over = exchanging.left.load(Ordering::SeqCst) > 0;
            exchanging.exchange_back();
            for (name, mended) in scene.worktrees.mend(&scene.top).await.unwrap() {
                mended.unwrap_or_else(|error| panic!("{what}: {name}: {error}"));
            }
            assert_eq!(content(&victim), before, "{what}");
            if KEPT.contains(deed) || *deed == "mend" {
                assert!(is_kept(&scene), "{what}");
            }
            if is_over {
                break;
            }
            assert!(step < 59, "{what}");
        }
    }
}

#[tokio::test]
async fn a_directory_that_is_a_link_while_git_runs_leads_no_git_elsewhere() {
    try_exchanges(&IN_USE, Until::TheEndOfGit).await;
}

#[tokio::test]
async fn a_directory_that_is_a_link_while_git_merges_or_saves_leads_no_git_elsewhere() {
    try_exchanges(&KEPT, Until::TheEndOfGit).await;
}

#[tokio::test]
async fn a_directory_that_becomes_a_link_in_between_leads_nowhere() {
    try_exchanges(&IN_USE, Until::TheEnd).await;
}

#[tokio::test]
async fn a_directory_that_becomes_a_link_before_a_merge_or_a_removal_leads_nowhere() {
    try_exchanges(&KEPT, Until::TheEnd).await;
}

#[tokio::test]
async fn a_directory_exchanged_in_a_loop_leads_no_new_worktree_elsewhere() {
    for way in WAYS {
        let scene = Scene::new();
        prepare(&scene, "settle").await;
        let (directory, victim) = (scene.path(way), victim(&scene));
        let before = content(&victim);
        let link = scene.path("link");
        symlink(&victim, &link).unwrap();
        let is_done = Arc::new(AtomicBool::new(false));
        let exchange = {
            let (is_done, directory) = (is_done.clone(), directory.clone());
            move || {
                while !is_done.load(Ordering::Relaxed) {
                    let _ = renameat_with(CWD, &link, CWD, &directory, RenameFlags::EXCHANGE);
                }
            }
        };
        let looping = std::thread::spawn(exchange);
        for _ in 0..30 {
            carry_out(&scene.worktrees, &scene, "remove").await;
        }
        is_done.store(true, Ordering::Relaxed);
        looping.join().unwrap();
        assert_eq!(content(&victim), before, "{way}");
    }
}

/// Puts a directory in the place of a worktree while that gets its files.
struct Taking(PathBuf);

impl RunProgram for Taking {
    fn run(&self, program: Program) -> Running<'_> {
        if program.environment.contains_key("GIT_WORK_TREE") {
            write(&self.0, "mine.txt", "mine\n");
        }
        Direct.run(program)
    }
}

#[tokio::test]
async fn what_appears_in_the_place_of_a_new_worktree_stays_and_leaves_nothing_behind() {
    let scene = Scene::new();
    let place = scene.path(".claude/worktrees/one");
    let worktrees = scene.other(Arc::new(Taking(place.clone())));
    let before = scene.state();
    let refused = worktrees.create(&scene.top, &crate::support::wish("one")).await.unwrap_err();
    assert!(matches!(refused, CreateError::Taken { .. }), "{refused}");
    assert_eq!(fs::read_to_string(place.join("mine.txt")).unwrap(), "mine\n");
    assert_eq!(scene.worktrees.list(&scene.top).await.unwrap().len(), 0);
    assert_eq!((scene.state(), scene.git("branch --list worktree-*")), (before, String::new()));
    assert_eq!(scene.git("worktree list").lines().count(), 1);
    fs::remove_dir_all(&place).unwrap();
    scene.create("one").await;
}
