//! Merges that broke off while the caller's checkout was moved: what git had done is finished or taken back, and what another
//! hand did stays.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_worktree::merge::{How, MendedMerge, Merge, MergeEnd, MergeError, Merged};
use centurion_worktree::{
    CreateError, Direct, MendError, Mended, Program, ProgramOutput, RunProgram, Running, Standing,
};

use crate::support::{Scene, write};

/// What the agent's commit does to files, in the order in which a git may do it.
const STEPS: usize = 10;

/// Makes all that the agent makes, or the first half of a file of it.
fn step(top: &Path, number: usize, is_torn: bool) {
    let text =
        |text: &str| if is_torn { text[..text.len() / 2].to_owned() } else { text.to_owned() };
    match number {
        0 => write(top, "a.txt", &text("one\ntwo\nTHREE AND MORE\n")),
        1 => write(top, "new/deep/n.txt", &text("new file\n")),
        2 => drop(fs::remove_file(top.join("gone.txt"))),
        3 => {
            let mode = fs::Permissions::from_mode(if is_torn { 0o644 } else { 0o755 });
            fs::set_permissions(top.join("tool.sh"), mode).unwrap();
        }
        4 => {
            fs::remove_file(top.join("link")).unwrap();
            if !is_torn {
                symlink("src/b.txt", top.join("link")).unwrap();
            }
        }
        // A file becomes a directory, and the other way around.
        5 => {
            fs::remove_file(top.join("file")).unwrap();
            write(top, "file/inner.txt", &text("inner\n"));
        }
        6 => {
            fs::remove_dir_all(top.join("directory")).unwrap();
            write(top, "directory", &text("now a file\n"));
        }
        7 => write(top, "odd\nname \"x\".txt", &text("odd and longer\n")),
        8 => write(top, "empty.txt", &text("no longer empty\n")),
        9 => write(top, "lines.txt", &text("one\r\ntwo\r\nthree\r\n")),
        _ => unreachable!(),
    }
}

/// A worktree with one commit that does all that to files, while the caller has other changes that are not committed.
async fn prepared() -> Scene {
    let scene = Scene::new();
    for (name, text) in [
        ("gone.txt", "gone\n"),
        ("tool.sh", "tool\n"),
        ("file", "file\n"),
        ("directory/inner.txt", "inner\n"),
        ("odd\nname \"x\".txt", "odd\n"),
        ("empty.txt", ""),
        ("lines.txt", "one\r\n"),
        ("mine.txt", "mine\n"),
        (".gitattributes", "lines.txt text eol=crlf\n"),
    ] {
        scene.write(name, text);
    }
    symlink("a.txt", scene.path("link")).unwrap();
    scene.commit("ground");
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    for number in 0..STEPS {
        step(&path, number, false);
    }
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m agent");
    scene.keep(worktree).await;
    scene.write("src/b.txt", "edited\n");
    scene.write("staged.txt", "staged\n");
    scene.git("add staged.txt");
    scene.write("untracked.txt", "untracked\n");
    scene
}

/// The files of a checkout with all that git can know of them, and its index.
fn all(scene: &Scene) -> String {
    let mut found = vec![scene.state()];
    let mut left = vec![scene.top.clone()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            if path.ends_with(".git") || path.ends_with(".claude") {
                continue;
            }
            if metadata.is_dir() {
                left.push(path);
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.push(format!("{} -> {}", path.display(), target.display()));
            } else {
                let (mode, text) = (metadata.permissions().mode(), fs::read(&path).unwrap());
                let (path, text) = (path.display(), String::from_utf8_lossy(&text));
                found.push(format!("{path} {mode:o} {text:?}"));
            }
        }
    }
    found[1..].sort();
    found.join("\n")
}

/// Writes down a merge as one that has begun.
fn note(scene: &Scene, set_aside: &[&str]) {
    let set_aside: Vec<&[u8]> = set_aside.iter().map(|it| it.as_bytes()).collect();
    let note = serde_json::json!({
        "top": scene.top, "from": scene.head(), "to": scene.git("rev-parse worktree-one"), "setAside": set_aside,
    });
    let path = scene.path(".git/centurion/worktrees/one/merging.json");
    fs::write(path, note.to_string()).unwrap();
}

async fn mend(scene: &Scene) -> Result<MendedMerge, MendError> {
    let mut mended = scene.worktrees.mend(&scene.top).await.unwrap();
    assert_eq!(mended.len(), 1, "{mended:?}");
    match mended.remove(0).1 {
        Ok(Mended::Merge(merge)) => Ok(merge),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    }
}

async fn merge(scene: &Scene) -> Result<Merged, MergeError> {
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    scene.worktrees.merge(&scene.top, &listed[0], &Merge::any(&How::Merge, "Work")).await
}

async fn standing(scene: &Scene) -> Standing {
    scene.worktrees.list(&scene.top).await.unwrap().remove(0).standing
}

#[tokio::test]
async fn whatever_part_of_the_files_git_had_written_is_taken_back() {
    // Each file alone and torn, all before it whole, none, and some by a seed.
    let mut cases: Vec<(u32, bool)> = (0..STEPS).map(|number| (1 << number, true)).collect();
    cases.extend((0..=STEPS).map(|number| ((1 << number) - 1, false)));
    let mut seed = 0x9e37_79b9_u32;
    cases.extend((0..8).map(|number| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((seed >> 16) % (1 << STEPS), number % 2 == 0)
    }));
    let scene = prepared().await;
    note(&scene, &[]);
    let (saved, before) = (scene.saved(), all(&scene));
    for (mask, is_torn) in cases {
        scene.rewind(&saved);
        for number in (0..STEPS).filter(|number| mask & (1 << number) != 0) {
            step(&scene.top, number, is_torn);
        }
        assert_eq!(standing(&scene).await, Standing::Merging { into: scene.top.clone() });
        let mended = mend(&scene).await.unwrap();
        assert_eq!((&mended.end, &mended.stays), (&MergeEnd::TakenBack, &Vec::new()), "{mask:b}");
        assert_eq!(all(&scene), before, "{mask:b} {is_torn}");
    }
    // It can be merged as if nothing had been.
    merge(&scene).await.unwrap();
    assert_eq!(scene.read("a.txt"), "one\ntwo\nTHREE AND MORE\n");
}

/// Does what git does up to its last step.
fn all_but_the_branch(scene: &Scene) -> String {
    let (from, to) = (scene.head(), scene.git("rev-parse worktree-one"));
    scene.git("merge -q --ff-only worktree-one");
    scene.git(&format!("update-ref HEAD {from} {to}"));
    to
}

#[tokio::test]
async fn a_merge_of_which_only_the_branch_is_missing_is_finished() {
    let scene = prepared().await;
    note(&scene, &[]);
    let to = all_but_the_branch(&scene);
    // A person continued with one of its files.
    scene.write("a.txt", "mine\n");
    let mended = mend(&scene).await.unwrap();
    assert_eq!(mended.end, MergeEnd::Finished);
    let told = mended.to_string();
    assert!(told.contains("is finished") && told.contains(&to[..12]), "{told}");
    assert_eq!(scene.head(), to);
    let status = scene.git("status --porcelain");
    assert_eq!(status, "M a.txt\n M src/b.txt\nA  staged.txt\n?? untracked.txt");
    assert_eq!(standing(&scene).await, Standing::Kept);
    assert_eq!(scene.worktrees.mend(&scene.top).await.unwrap().len(), 0);
}

#[tokio::test]
async fn an_index_of_the_new_commit_over_files_of_the_old_is_taken_back() {
    let scene = prepared().await;
    let before = all(&scene);
    note(&scene, &[]);
    all_but_the_branch(&scene);
    scene.write("a.txt", "one\ntwo\nthree\n");
    fs::remove_file(scene.path("new/deep/n.txt")).unwrap();
    assert_eq!(mend(&scene).await.unwrap().end, MergeEnd::TakenBack);
    assert_eq!(all(&scene), before);
}

#[tokio::test]
async fn what_another_hand_changed_stays_and_is_named() {
    let scene = prepared().await;
    note(&scene, &["empty.txt"]);
    for number in 0..STEPS {
        step(&scene.top, number, false);
    }
    // One that was begun by git and changed by a person, a new one, and one that was not as in the commit before.
    scene.write("a.txt", "a person's\n");
    scene.write("new/deep/n.txt", "new file, and a person's\n");
    scene.write("empty.txt", "no");
    let mended = mend(&scene).await.unwrap();
    assert_eq!(mended.stays, ["a.txt", "new/deep/n.txt"]);
    assert!(mended.to_string().contains("another hand changed a.txt, new/deep/n.txt"), "{mended}");
    assert_eq!(scene.read("a.txt"), "a person's\n");
    assert_eq!(scene.read("new/deep/n.txt"), "new file, and a person's\n");
    assert_eq!(scene.read("empty.txt"), "no");
    assert_eq!(scene.read("file"), "file\n");
    assert_eq!(standing(&scene).await, Standing::Kept);
    // What is staged by a person is not reset.
    let scene = prepared().await;
    note(&scene, &[]);
    scene.write("a.txt", "staged by a person\n");
    scene.git("add a.txt");
    step(&scene.top, 8, true);
    assert_eq!(mend(&scene).await.unwrap().stays, ["a.txt"]);
    assert_eq!(scene.git("show :a.txt"), "staged by a person");
    assert_eq!(scene.read("empty.txt"), "");
}

#[tokio::test]
async fn a_link_on_the_way_to_a_file_leads_nowhere() {
    let scene = prepared().await;
    note(&scene, &[]);
    let outside = scene.root().join("outside");
    write(&outside, "deep/n.txt", "new file\n");
    symlink(&outside, scene.path("new")).unwrap();
    let mended = mend(&scene).await.unwrap();
    assert_eq!(mended.stays, ["new/deep/n.txt"]);
    assert_eq!(fs::read_to_string(outside.join("deep/n.txt")).unwrap(), "new file\n");
}

#[tokio::test]
async fn the_lock_of_a_git_that_died_is_named_with_the_command_that_removes_it() {
    let scene = prepared().await;
    let before = all(&scene);
    note(&scene, &[]);
    step(&scene.top, 0, true);
    fs::write(scene.path(".git/index.lock"), "").unwrap();
    let told = mend(&scene).await.unwrap_err().to_string();
    // Until then nothing is done with either.
    assert!(matches!(merge(&scene).await, Err(MergeError::Left)));
    let entered = scene.try_create("one").await;
    assert!(matches!(entered, Err(CreateError::Left { .. })), "{entered:?}");
    scene.shell(told.split('`').nth(1).unwrap());
    assert!(told.ends_with("then run `centurion worktrees clean`"), "{told}");
    assert_eq!(mend(&scene).await.unwrap().end, MergeEnd::TakenBack);
    assert_eq!(all(&scene), before);
    // One of a git that works is no more than a reason to fail.
    fs::write(scene.path(".git/index.lock"), "").unwrap();
    let refused = merge(&scene).await.unwrap_err().to_string();
    assert!(refused.contains("index.lock"), "{refused}");
    fs::remove_file(scene.path(".git/index.lock")).unwrap();
    merge(&scene).await.unwrap();
}

#[tokio::test]
async fn a_checkout_that_was_moved_since_is_left_alone() {
    let scene = prepared().await;
    note(&scene, &[]);
    scene.git("stash -q --include-untracked");
    scene.git("commit -q --allow-empty -m mine");
    scene.write("a.txt", "one\n");
    let before = all(&scene);
    assert_eq!(mend(&scene).await.unwrap().end, MergeEnd::Elsewhere);
    assert_eq!(all(&scene), before);
    // One that has the commit is where it was to be.
    note(&scene, &[]);
    scene.git("checkout -q a.txt");
    scene.git("merge -q worktree-one -m merged");
    assert_eq!(mend(&scene).await.unwrap().end, MergeEnd::Finished);
    // Another checkout that is gone, or is another repository's.
    for (place, is_refused) in [("nowhere", false), ("other", true)] {
        let path = scene.root().join(place);
        scene.shell(
            "test -d other || git init -q other && git -C other commit -q --allow-empty -m x",
        );
        let note = serde_json::json!({"top": path, "from": scene.head(), "to": scene.head()});
        fs::write(scene.path(".git/centurion/worktrees/one/merging.json"), note.to_string())
            .unwrap();
        assert_eq!(mend(&scene).await.is_err(), is_refused, "{place}");
    }
    // What is no note is told of, and keeps the worktree from being used.
    let file = scene.path(".git/centurion/worktrees/one/merging.json");
    for text in ["{", r#"{"top": "/", "from": "--all", "to": "x"}"#] {
        fs::write(&file, text).unwrap();
        assert!(matches!(standing(&scene).await, Standing::Unreadable { .. }), "{text}");
        assert!(merge(&scene).await.is_err());
    }
}

#[tokio::test]
async fn a_checkout_in_which_a_merge_broke_off_gets_no_other() {
    let scene = prepared().await;
    let other = scene.create("two").await;
    write(&other.record.path, "two.txt", "two\n");
    scene.keep(other).await;
    note(&scene, &[]);
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    let merged = scene.worktrees.merge(&scene.top, &listed[1], &Merge::any(&How::Merge, "m")).await;
    assert!(matches!(&merged, Err(MergeError::BrokenOff(name)) if name == "one"), "{merged:?}");
    mend(&scene).await.unwrap();
    let merged = scene.worktrees.merge(&scene.top, &listed[1], &Merge::any(&How::Merge, "m")).await;
    merged.unwrap();
}

#[tokio::test]
async fn a_merge_that_git_gives_up_half_way_is_taken_back_and_says_why() {
    // The user's own filter fails at a file when others are written already.
    let scene = prepared().await;
    let config = "[filter \"strict\"]\n\tsmudge = ! grep .\n\tclean = cat\n\trequired = true\n";
    let path = scene.root().join("home/.gitconfig");
    let identity = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{identity}{config}")).unwrap();
    write(&scene.path(".git/info"), "attributes", "empty.txt filter=strict\n");
    let before = all(&scene);
    let error = merge(&scene).await.unwrap_err().to_string();
    assert!(error.contains("strict"), "{error}");
    assert_eq!(all(&scene), before);
    assert_eq!(standing(&scene).await, Standing::Kept);
    // A branch that cannot be moved.
    fs::remove_file(scene.path(".git/info/attributes")).unwrap();
    write(&scene.path(".git/refs/heads"), "main.lock", "");
    let error = merge(&scene).await.unwrap_err().to_string();
    assert!(error.contains("main.lock"), "{error}");
    assert_eq!(all(&scene), before);
    fs::remove_file(scene.path(".git/refs/heads/main.lock")).unwrap();
    merge(&scene).await.unwrap();
}

/// A git whose merge is killed: one file is half written, and its lock is there.
struct Killed(PathBuf);

impl RunProgram for Killed {
    fn run(&self, program: Program) -> Running<'_> {
        if !program.args.iter().any(|arg| arg == "merge") {
            return Direct.run(program);
        }
        step(&self.0, 0, true);
        fs::write(self.0.join(".git/index.lock"), "").unwrap();
        let stderr = b"fatal: the first reason".to_vec();
        Box::pin(async { Ok(ProgramOutput { code: None, stdout: Vec::new(), stderr }) })
    }
}

#[tokio::test]
async fn the_first_reason_of_a_failure_is_told_and_the_merge_is_mended_later() {
    let scene = prepared().await;
    let before = all(&scene);
    let worktrees = scene.other(Arc::new(Killed(scene.top.clone())));
    let listed = worktrees.list(&scene.top).await.unwrap();
    let merged = worktrees.merge(&scene.top, &listed[0], &Merge::any(&How::Merge, "Work")).await;
    let told = merged.unwrap_err().to_string();
    assert_eq!(told, "`git merge` failed: the first reason");
    assert_eq!(standing(&scene).await, Standing::Merging { into: scene.top.clone() });
    fs::remove_file(scene.path(".git/index.lock")).unwrap();
    assert_eq!(mend(&scene).await.unwrap().end, MergeEnd::TakenBack);
    assert_eq!(all(&scene), before);
}

#[tokio::test]
async fn files_that_are_not_checked_out_stay_so() {
    for only_branch_missing in [false, true] {
        let scene = prepared().await;
        scene.git("commit -q -a -m mine");
        scene.git("sparse-checkout set src");
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        scene.git_in(&path, "merge -q main -m main");
        write(&path, "new/deep/n.txt", "changed\n");
        scene.git_in(&path, "commit -q -a -m changed");
        scene.keep(worktree).await;
        let before = all(&scene);
        note(&scene, &[]);
        let to = all_but_the_branch(&scene);
        if !only_branch_missing {
            scene.write("a.txt", "one\n");
        }
        let end = mend(&scene).await.unwrap().end;
        if only_branch_missing {
            assert_eq!((end, scene.head()), (MergeEnd::Finished, to));
        } else {
            assert_eq!(end, MergeEnd::TakenBack);
            assert_eq!(all(&scene), before);
        }
        assert!(!scene.path("new").exists());
    }
}

#[tokio::test]
async fn merges_into_one_checkout_wait_for_each_other() {
    let scene = Scene::new();
    for name in ["one", "two", "three", "four"] {
        let worktree = scene.create(name).await;
        write(&worktree.record.path, &format!("{name}.txt"), "work\n");
        scene.keep(worktree).await;
    }
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    let how = How::Merge;
    let merges = listed.iter().map(|entry| async {
        scene.worktrees.merge(&scene.top, entry, &Merge::any(&how, "m")).await
    });
    for merged in futures_util::future::join_all(merges).await {
        merged.unwrap();
    }
    for name in ["one", "two", "three", "four"] {
        assert_eq!(scene.read(&format!("{name}.txt")), "work\n");
    }
    assert_eq!(scene.git("status --porcelain"), "");
}
