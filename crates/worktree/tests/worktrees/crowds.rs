//! Many agents at once in a large repository.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_worktree::{Direct, Program, ProgramOutput, RunProgram, Running, Settled};

use crate::support::{Scene, wish, write};

const DIRECTORIES: usize = 200;
const FILES: usize = 100;
const AGENTS: usize = 50;

/// Gives the repository 20,000 more files, without writing them one by one. Most are empty: fifty checkouts have a million
/// files, and those of a file system in memory take no page each.
fn grow(scene: &Scene) {
    let mut commands = String::from(
        "commit refs/heads/main\ncommitter T <t@localhost> 1700000000 +0000\ndata 3\nall\nfrom refs/heads/main^0\n",
    );
    for directory in 0..DIRECTORIES {
        for file in 0..FILES {
            let text = if directory == 7 { format!("{file}\n") } else { String::new() };
            let length = text.len();
            // Writing to a string cannot fail.
            let _ =
                write!(commands, "M 644 inline d{directory}/f{file}.txt\ndata {length}\n{text}\n");
        }
    }
    let mut import = Command::new("git");
    import.args(["fast-import", "--quiet"]).current_dir(&scene.top).stdin(Stdio::piped());
    let mut import = import.spawn().unwrap();
    import.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    assert!(import.wait().unwrap().success());
    // The caller's own checkout need not have them.
    scene.git("sparse-checkout set src");
    scene.git("reset -q --hard");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_agents_at_once_in_a_repository_of_20_000_files_are_all_made_and_ended_rightly() {
    let scene = Scene::in_memory(AGENTS * (DIRECTORIES + 2) * FILES);
    grow(&scene);
    assert_eq!(scene.git("ls-files").lines().count(), DIRECTORIES * FILES + 4);
    let before = scene.state();
    let agents = (0..AGENTS).map(|number| {
        let (worktrees, top) = (scene.worktrees.clone(), scene.top.clone());
        tokio::spawn(async move {
            let name = format!("many{number}");
            let made = worktrees.create(&top, &wish(&name)).await.unwrap();
            let path = made.record.path.clone();
            for directory in 0..DIRECTORIES {
                let files = fs::read_dir(path.join(format!("d{directory}"))).unwrap().count();
                assert_eq!(files, FILES, "{name}: d{directory}");
            }
            if number % 2 == 0 {
                write(&path, "d7/f0.txt", &name);
                write(&path, "d7/new.txt", &name);
            }
            (number, path, worktrees.settle(made, Some(&top)).await.unwrap())
        })
    });
    let agents: Vec<_> = agents.collect();
    for agent in agents {
        let (number, path, settled) = agent.await.unwrap();
        match settled {
            Settled::Removed(trash) => {
                assert!(number % 2 == 1 && !path.exists(), "{number}");
                trash.delete();
            }
            Settled::Kept(report) => {
                assert!(number % 2 == 0, "{report:?}");
                assert_eq!((report.uncommitted, report.files.len()), (2, 2), "{report:?}");
                assert_eq!(
                    fs::read_to_string(path.join("d7/new.txt")).unwrap(),
                    format!("many{number}")
                );
                let kept = format!("refs/centurion/agents/many{number}/uncommitted");
                assert_eq!(scene.git(&format!("show {kept}:d7/f0.txt")), format!("many{number}"));
            }
        }
    }
    assert_eq!(scene.worktrees.list(&scene.top).await.unwrap().len(), AGENTS / 2);
    assert_eq!(scene.git("branch --list worktree-many*").lines().count(), AGENTS / 2);
    assert_eq!(scene.state(), before);
}

/// Other processes that add worktrees all the time: every git meets one that is half there, and does not when it is run
/// again.
struct Adding {
    commondir: PathBuf,
    has_met: AtomicBool,
}

impl RunProgram for Adding {
    fn run(&self, program: Program) -> Running<'_> {
        Box::pin(async move {
            let is_whole = self.has_met.swap(false, Ordering::Relaxed);
            fs::write(&self.commondir, if is_whole { "../..\n" } else { "" })?;
            let output = Direct.run(program).await?;
            let has_met = String::from_utf8_lossy(&output.stderr).contains("commondir");
            self.has_met.store(has_met, Ordering::Relaxed);
            assert!(!(is_whole && has_met));
            Ok(output)
        })
    }
}

/// Another process whose worktrees go while git looks at them: every git meets that once.
struct Removing {
    has_met: AtomicBool,
    said: String,
}

impl RunProgram for Removing {
    fn run(&self, program: Program) -> Running<'_> {
        Box::pin(async move {
            if self.has_met.fetch_xor(true, Ordering::Relaxed) {
                return Direct.run(program).await;
            }
            let stderr = self.said.clone().into_bytes();
            Ok(ProgramOutput { code: Some(128), stdout: Vec::new(), stderr })
        })
    }
}

#[tokio::test]
async fn refs_that_go_while_git_lists_them_are_in_no_ones_way() {
    let scene = Scene::new();
    // Git lists the files of refs, and then reads them. One that is gone meanwhile is to git what an empty one is.
    fs::write(scene.path(".git/refs/heads/gone"), "").unwrap();
    assert!(!scene.try_git_in(&scene.top, "rev-list --all").1, "git goes along with it by now");
    for (name, is_done) in [("done", true), ("idle", false)] {
        let made = scene.worktrees.create(&scene.top, &wish(name)).await.unwrap();
        let path = made.record.path.clone();
        if is_done {
            write(&path, "new.txt", "new");
            scene.git_in(&path, "add new.txt");
            scene.git_in(&path, "commit -q -m new");
            write(&path, "loose.txt", "loose");
        }
        match scene.worktrees.settle(made, Some(&scene.top)).await.unwrap() {
            Settled::Removed(trash) => trash.delete(),
            Settled::Kept(report) => {
                assert!(is_done, "{report:?}");
                assert_eq!((report.ahead, report.uncommitted), (1, 1), "{report:?}");
            }
        }
        assert_eq!(path.exists(), is_done);
    }
    assert_eq!(scene.git("show refs/centurion/agents/done/uncommitted:loose.txt"), "loose");
    assert_eq!(scene.worktrees.list(&scene.top).await.unwrap().len(), 1);
}

#[tokio::test]
async fn worktrees_that_go_while_git_looks_at_them_are_in_no_ones_way() {
    let scene = Scene::new();
    // Git lists the directories of all worktrees, and then reads them. One is gone meanwhile.
    let gone = scene.path(".git/worktrees/gone");
    let said = format!("fatal: Invalid path '{}': No such file or directory\n", gone.display());
    let removing = Removing { has_met: AtomicBool::new(false), said };
    let worktrees = scene.other(Arc::new(removing));
    let made = worktrees.create(&scene.top, &wish("one")).await.unwrap();
    let path = made.record.path.clone();
    assert!(path.join("a.txt").exists());
    let Settled::Removed(trash) = worktrees.settle(made, Some(&scene.top)).await.unwrap() else {
        panic!("nothing was done in it");
    };
    trash.delete();
    assert!(!path.exists());
    assert_eq!(scene.git("branch --list worktree-one"), "");
}

#[tokio::test]
async fn worktrees_that_other_processes_are_adding_are_in_no_ones_way() {
    let scene = Scene::new();
    // What git has written of one in between two of its steps.
    let admin = scene.path(".git/worktrees/half");
    fs::create_dir_all(&admin).unwrap();
    fs::write(admin.join("gitdir"), scene.path("../half/.git").display().to_string()).unwrap();
    fs::write(admin.join("HEAD"), format!("{}\n", scene.head())).unwrap();
    let commondir = admin.join("commondir");
    fs::write(&commondir, "").unwrap();
    assert!(!scene.try_git_in(&scene.top, "worktree list").1, "git goes along with it by now");
    let adding = Adding { commondir, has_met: AtomicBool::new(false) };
    let worktrees = scene.other(Arc::new(adding));
    for (name, is_done) in [("done", true), ("idle", false)] {
        let made = worktrees.create(&scene.top, &wish(name)).await.unwrap();
        let path = made.record.path.clone();
        if is_done {
            write(&path, "new.txt", "new");
            scene.git_in(&path, "add new.txt");
            scene.git_in(&path, "commit -q -m new");
        }
        match worktrees.settle(made, Some(&scene.top)).await.unwrap() {
            Settled::Removed(trash) => trash.delete(),
            Settled::Kept(report) => assert!(is_done && report.ahead == 1, "{report:?}"),
        }
        assert_eq!(path.exists(), is_done);
    }
    let branches = scene.git("for-each-ref --format=%(refname:short) refs/heads/worktree-*");
    assert_eq!(branches, "worktree-done");
}
