//! Checkouts that a hook made: what is told of them, and what they cannot do to us.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{Scene, write};

fn files(report: &centurion_worktree::Report) -> Vec<String> {
    let all = report.files.iter().map(|it| format!("{} {:?}", it.path, it.lines));
    let mut all: Vec<String> = all.collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_worktree_that_a_hook_made_is_told_of_like_one_of_ours() {
    // S-303, S-307
    let scene = Scene::new();
    let made = scene.root().join("made by a hook");
    scene.git_args(&["worktree", "add", "-q", "-b", "topic", made.to_str().unwrap()]);
    let hooked = scene.worktrees.hooked(&made).await.unwrap();
    assert_eq!((hooked.base.clone(), hooked.branch.as_deref()), (scene.head(), Some("topic")));
    let told = scene.worktrees.report_hooked(&hooked, Some(&scene.top)).await.unwrap();
    assert_eq!((told.files.len(), told.uncommitted, told.ahead, told.behind), (0, 0, 0, 0));
    // Its agent commits one file, changes another, makes one and hides a change from git.
    write(&made, "src/b.txt", "b\nmore\n");
    scene.git_in(&made, "commit -q -a -m did");
    write(&made, "a.txt", "one\ntwo, by the agent\nthree\n");
    write(&made, "new.txt", "1\n2\n");
    write(&made, "ignored/x", "x");
    scene.git_in(&made, "update-index --assume-unchanged src/c.txt");
    write(&made, "src/c.txt", "hidden\n");
    let index = fs::read(scene.path(".git/worktrees/made by a hook/index")).unwrap_or_default();
    // The caller continues, too.
    scene.write("a.txt", "one\ntwo, by the caller\nthree\n");
    scene.commit("caller");
    let before = scene.state();
    let told = scene.worktrees.report_hooked(&hooked, Some(&scene.top)).await.unwrap();
    assert_eq!(
        files(&told),
        [
            "a.txt Some((1, 1))",
            "new.txt Some((2, 0))",
            "src/b.txt Some((1, 0))",
            "src/c.txt Some((1, 1))"
        ]
    );
    assert_eq!((told.base.as_str(), told.branch.as_str()), (hooked.base.as_str(), "topic"));
    assert_eq!(told.head, scene.git("rev-parse topic"));
    assert_eq!((told.ahead, told.behind, told.uncommitted, told.ignored), (1, 1, 3, 1));
    assert_eq!(told.merges.len(), 1);
    assert_eq!(
        (told.merges[0].with.as_str(), told.merges[0].conflicts.join(" ")),
        ("main", "a.txt".to_owned())
    );
    // Nothing there or here is another than before.
    assert_eq!(scene.state(), before);
    let now = fs::read(scene.path(".git/worktrees/made by a hook/index")).unwrap_or_default();
    assert_eq!(now, index);
    // Its `.git` is its agent's to write, and is not believed.
    let other = scene.root().join("other");
    scene.git_args(&["clone", "-q", scene.top.to_str().unwrap(), other.to_str().unwrap()]);
    fs::write(made.join(".git"), format!("gitdir: {}/.git\n", other.display())).unwrap();
    let told = scene.worktrees.report_hooked(&hooked, Some(&scene.top)).await.unwrap();
    assert_eq!((told.ahead, told.behind, told.branch.as_str()), (1, 1, "topic"));
    fs::rename(&made, scene.root().join("away")).unwrap();
    assert!(scene.worktrees.report_hooked(&hooked, None).await.is_err());
    symlink(scene.root().join("away"), &made).unwrap();
    assert!(scene.worktrees.report_hooked(&hooked, None).await.is_err());
}

#[tokio::test]
async fn a_clone_that_a_hook_made_is_read_and_runs_nothing() {
    // S-307, D-77
    let scene = Scene::new();
    let made = scene.root().join("clone");
    scene.git_args(&["clone", "-q", scene.top.to_str().unwrap(), made.to_str().unwrap()]);
    let hooked = scene.worktrees.hooked(&made).await.unwrap();
    let mark = scene.root().join("MARK");
    let canary = format!("touch {}; cat", mark.display());
    write(&made, "a.txt", "changed\n");
    scene.git_in(&made, "commit -q -a -m did");
    write(&made, ".gitattributes", "*.txt filter=f diff=d merge=m\n");
    write(&made, "src/b.txt", "again\n");
    for key in [
        "filter.f.clean",
        "filter.f.smudge",
        "diff.d.textconv",
        "diff.d.command",
        "merge.m.driver",
        "core.fsmonitor",
        "diff.external",
    ] {
        scene.git_args(&["-C", made.to_str().unwrap(), "config", key, &canary]);
    }
    let told = scene.worktrees.report_hooked(&hooked, Some(&scene.top)).await.unwrap();
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap_or_default());
    assert_eq!(
        files(&told),
        [".gitattributes Some((1, 0))", "a.txt Some((1, 3))", "src/b.txt Some((1, 1))"]
    );
    assert_eq!((told.ahead, told.behind, told.uncommitted, told.merges.len()), (1, 0, 2, 0));
    assert!(told.notes.iter().any(|it| it.contains("a repository of its own")), "{told:?}");
    // Git would have run them.
    scene.try_git_in(&made, "diff HEAD");
    assert!(mark.exists());
    // Links and pipes in its repository lead git nowhere.
    let _ = fs::remove_file(made.join(".git/packed-refs"));
    symlink("/dev/zero", made.join(".git/packed-refs")).unwrap();
    let refused = scene.worktrees.report_hooked(&hooked, None).await.unwrap_err().to_string();
    assert!(refused.contains("links or pipes"), "{refused}");
}

#[tokio::test]
async fn what_is_no_checkout_of_its_own_is_not_taken_for_one() {
    let scene = Scene::new();
    let plain = scene.root().join("plain");
    fs::create_dir(&plain).unwrap();
    for place in [plain.as_path(), &scene.path("src"), Path::new("/nowhere")] {
        assert!(scene.worktrees.hooked(place).await.is_none(), "{}", place.display());
    }
    scene.git_in(&plain, "init -q -b main .");
    assert!(scene.worktrees.hooked(&plain).await.is_none(), "it has no commit");
    let ours = scene.create("one").await;
    assert!(scene.worktrees.hooked(&ours.record.path).await.is_none(), "it is one of ours");
    // On no branch.
    let made = scene.root().join("made");
    scene.git_args(&["worktree", "add", "-q", "--detach", made.to_str().unwrap()]);
    let hooked = scene.worktrees.hooked(&made).await.unwrap();
    let told = scene.worktrees.report_hooked(&hooked, Some(&scene.top)).await.unwrap();
    assert_eq!((hooked.branch, told.branch.as_str(), told.head), (None, "", scene.head()));
}
