//! Whether nothing was done is told without git, and never when something was.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use centurion_worktree::{Direct, Finished, Program, RunProgram, Running};

use crate::support::{Scene, wish, write};

/// Counts the programs that are run.
#[derive(Default)]
struct Counting(AtomicUsize);

impl RunProgram for Counting {
    fn run(&self, program: Program) -> Running<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Direct.run(program)
    }
}

#[tokio::test]
async fn that_nothing_was_done_is_told_without_git() {
    let scene = Scene::new();
    symlink("a.txt", scene.path("link")).unwrap();
    scene.write("deep/er/file.txt", "x\n");
    scene.write(&format!("{}/long.txt", "d".repeat(200)), "x\n");
    scene.commit("more");
    scene.write("node_modules/m/x.js", "x\n");
    scene.write(".env", "KEY=1\n");
    scene.write(".worktreeinclude", ".env\n");
    let counting = Arc::new(Counting::default());
    let worktrees = scene.other(counting.clone());
    let mut wish = wish("one");
    wish.contents.links = vec!["node_modules".to_owned()];
    let mut made = worktrees.create(&scene.top, &wish).await.unwrap();
    // An agent that only looks around, by git too.
    scene.git_in(&made.record.path, "status");
    fs::read_to_string(made.record.path.join("a.txt")).unwrap();
    counting.0.store(0, Ordering::SeqCst);
    let finished = worktrees.finish(&mut made, Some(&scene.top)).await.unwrap();
    assert_eq!((finished, counting.0.load(Ordering::SeqCst)), (Finished::Untouched, 0));
}

/// Writes other text of the same length, and gives the file its old time.
fn forge(path: &Path) {
    let before = fs::metadata(path).unwrap().modified().unwrap();
    let text = fs::read_to_string(path).unwrap().replace('o', "0");
    fs::write(path, text).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(before).unwrap();
}

#[tokio::test]
async fn no_change_is_overlooked() {
    type Change = fn(&Scene, &Path);
    let changes: [(&str, Change); 12] = [
        ("a forged time", |_, top| forge(&top.join("a.txt"))),
        ("a new file", |_, top| write(top, "new.txt", "x\n")),
        ("a new file in a directory", |_, top| write(top, "src/new.txt", "x\n")),
        ("a file that git ignores", |_, top| write(top, "ignored/x", "x\n")),
        ("a file that is gone", |_, top| fs::remove_file(top.join("src/b.txt")).unwrap()),
        ("a directory that is gone", |_, top| fs::remove_dir_all(top.join("src")).unwrap()),
        ("a mode", |_, top| {
            fs::set_permissions(top.join("a.txt"), PermissionsExt::from_mode(0o755)).unwrap();
        }),
        ("a link in the place of a file", |_, top| {
            fs::remove_file(top.join("a.txt")).unwrap();
            symlink("src/b.txt", top.join("a.txt")).unwrap();
        }),
        ("a commit", |scene, top| {
            scene.git_in(top, "commit -q --allow-empty -m x");
        }),
        ("another branch", |scene, top| {
            scene.git_in(top, "switch -q -c other");
        }),
        ("a detached head", |scene, top| {
            scene.git_in(top, "checkout -q --detach HEAD~1");
        }),
        ("a tag", |scene, top| {
            scene.git_in(top, "tag mine");
        }),
    ];
    for (name, change) in changes {
        let scene = Scene::new();
        let mut made = scene.worktrees.create(&scene.top, &wish("one")).await.unwrap();
        change(&scene, &made.record.path.clone());
        let finished = scene.worktrees.finish(&mut made, Some(&scene.top)).await.unwrap();
        assert!(matches!(finished, Finished::Kept(_)), "{name}");
    }
    // What git is told not to look at is looked at.
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let scene = Scene::new();
        let mut made = scene.worktrees.create(&scene.top, &wish("one")).await.unwrap();
        scene.git_in(&made.record.path, &format!("update-index {flag} a.txt"));
        forge(&made.record.path.join("a.txt"));
        let finished = scene.worktrees.finish(&mut made, Some(&scene.top)).await.unwrap();
        assert!(matches!(finished, Finished::Kept(_)), "{flag}");
    }
}
