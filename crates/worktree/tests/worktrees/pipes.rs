//! Pipes in the place of files that git reads: nothing waits for them, and no work is lost.

use std::fs;
use std::path::Path;
use std::time::Duration;

use centurion_worktree::{Mended, Unsaved};

use crate::support::{Scene, write};

fn pipe(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}

/// A git that waits for a pipe waits for ever.
async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(1), future)
        .await
        .unwrap_or_else(|_| panic!("{what} waits"))
}

#[tokio::test]
async fn a_pipe_that_git_would_read_is_named_and_not_waited_for() {
    // I-7
    let scene = Scene::new();
    let elsewhere = scene.root().join("elsewhere");
    let inner = ["HEAD", "objects/x", "refs/x", "config"];
    for name in [
        ".gitignore",
        "src/.gitattributes",
        "deep/er/.gitignore",
        "sub/.git/HEAD",
        "sub/.git/packed-refs",
        "sub/.git",
        "led/.git",
        ".lfsconfig",
    ] {
        let mut worktree = scene.create("one").await;
        let top = worktree.record.path.clone();
        scene.git_in(&top, "commit -q --allow-empty -m mine");
        write(&top, "work.txt", "work\n");
        let odd = if name == "led/.git" {
            for file in inner {
                write(&elsewhere, file, "ref: refs/heads/x\n");
            }
            write(&top, name, &format!("gitdir: {}\n", elsewhere.display()));
            elsewhere.join("HEAD")
        } else {
            if name.starts_with("sub/.git/") {
                for file in inner {
                    write(&top.join("sub/.git"), file, "ref: refs/heads/x\n");
                }
            }
            top.join(name)
        };
        pipe(&odd);
        let finished = in_time(name, scene.worktrees.finish(&mut worktree, Some(&scene.top))).await;
        let told = finished.unwrap_err().source.to_string();
        assert!(
            told.contains("is a pipe") && told.contains("centurion worktrees clean"),
            "{name}: {told}"
        );
        drop(worktree);
        let mended = in_time(name, scene.worktrees.mend(&scene.top)).await.unwrap();
        assert!(mended[0].1.is_err(), "{name}");
        assert_eq!(fs::read_to_string(top.join("work.txt")).unwrap(), "work\n");
        // Without it, all comes home.
        fs::remove_file(&odd).unwrap();
        if name.contains(".git/") || name == "led/.git" {
            fs::remove_dir_all(top.join(name.split('/').next().unwrap())).unwrap();
        }
        let mended = scene.worktrees.mend(&scene.top).await.unwrap();
        let Ok(Mended::Kept(report)) = &mended[0].1 else { panic!("{name}: {mended:?}") };
        assert_eq!((report.ahead, report.merges[0].conflicts.len()), (1, 0), "{name}: {report:?}");
        assert_eq!(scene.git("log -1 --format=%s worktree-one"), "mine");
        // One that is kept waits for nothing either.
        pipe(&top.join(".gitignore"));
        let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
        assert!(in_time(name, scene.worktrees.report(&scene.top, &entry)).await.is_err());
        assert!(in_time(name, scene.worktrees.diff(&entry, &|_| true)).await.is_err());
        let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved);
        assert!(in_time(name, gone).await.is_err());
        fs::remove_file(top.join(".gitignore")).unwrap();
        let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
        scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await.unwrap().delete();
        let saved = scene.git("for-each-ref --format=%(refname) refs/centurion");
        for saved in saved.lines() {
            scene.git(&format!("update-ref -d {saved}"));
        }
        let _ = fs::remove_dir_all(&elsewhere);
    }
}

#[tokio::test]
async fn sockets_and_pipes_of_other_names_are_no_work_and_in_no_way() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let top = worktree.record.path.clone();
    pipe(&top.join("app.pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(top.join("app.sock")).unwrap();
    write(&top, "work.txt", "work\n");
    let report = in_time("the end", scene.keep(worktree)).await;
    assert_eq!(report.files.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["work.txt"]);
}
