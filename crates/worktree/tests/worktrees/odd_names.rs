//! Files whose names have line breaks, commands for terminals, or bytes that are no text.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use centurion_worktree::merge::{How, Merge, MergeError};
use centurion_worktree::{CheckoutError, CreateError, KeptError, Unsaved};

use crate::support::{Scene, wish, write};

const NAMES: [&[u8]; 3] = [b"esc\x1b[31m.txt", b"new\nline.txt", b"raw\xff.txt"];
const SHOWN: [&str; 3] = [r#""esc\033[31m.txt""#, r#""new\nline.txt""#, r#""raw\377.txt""#];

fn odd(top: &Path, name: &[u8]) -> PathBuf {
    top.join(OsStr::from_bytes(name))
}

#[tokio::test]
async fn they_are_named_kept_shown_and_restored_as_they_are() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    for name in NAMES {
        fs::write(odd(&path, name), "one\n").unwrap();
    }
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m odd");
    for name in NAMES {
        fs::write(odd(&path, name), "two\n").unwrap();
        fs::write(odd(&path, &[b"open-", name].concat()), "open\n").unwrap();
    }
    let report = scene.keep(worktree).await;
    let listed: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(report.uncommitted, 6);
    for name in SHOWN {
        let open = name.replacen('"', "\"open-", 1);
        assert!(listed.contains(&name) && listed.contains(&open.as_str()), "{name}: {listed:?}");
    }
    serde_json::to_string(&report).unwrap();
    let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
    let differs = scene.worktrees.diff(&entry, &|_| true).await.unwrap();
    for name in SHOWN {
        assert!(differs.contains(&format!("\"b/{}", &name[1..])), "{name}: {differs}");
        assert!(differs.contains(&format!("\"b/open-{}", &name[1..])), "{name}: {differs}");
    }
    assert!(!differs.contains('\u{1b}'), "{differs}");
    let gone = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
    gone.unwrap().delete();
    scene.worktrees.restore(&scene.top, "one").await.unwrap();
    for name in NAMES {
        assert_eq!(fs::read_to_string(odd(&path, name)).unwrap(), "two\n");
        assert_eq!(fs::read_to_string(odd(&path, &[b"open-", name].concat())).unwrap(), "open\n");
    }
}

#[tokio::test]
async fn reasons_name_them() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    for (top, text) in [(&path, "one\n"), (&scene.top, "two\n")] {
        for name in NAMES {
            fs::write(odd(top, name), text).unwrap();
        }
        scene.git_in(top, "add -A");
        scene.git_in(top, "commit -q -m odd");
    }
    let report = scene.keep(worktree).await;
    assert_eq!(report.conflicts().next().unwrap().conflicts, SHOWN);
    let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
    let error =
        scene.worktrees.merge(&scene.top, &entry, &Merge::any(&How::Merge, "m")).await.unwrap_err();
    assert!(matches!(&error, MergeError::Conflicts { files, .. } if files == &SHOWN), "{error}");
    // A repository within a worktree.
    let inner = odd(&path, b"in\n\xffner");
    fs::create_dir(&inner).unwrap();
    scene.git_in(&inner, "init -q .");
    write(&inner, "work.txt", "work\n");
    scene.git_in(&inner, "add -A");
    scene.git_in(&inner, "commit -q -m inner");
    let refused = scene.worktrees.let_go(&scene.top, &entry, Unsaved::IsSaved).await;
    let KeptError::Submodule(name) = refused.unwrap_err() else { panic!() };
    assert_eq!(name.trim_end_matches("/\""), r#""in\n\377ner"#);
    // What cannot be copied.
    scene.write(".worktreeinclude", "*.cfg\n");
    fs::write(scene.path(".git/info/exclude"), "*.cfg\n").unwrap();
    fs::write(odd(&scene.top, b"line\nbreak.cfg"), "x").unwrap();
    fs::write(odd(&scene.top, b"raw\xff.cfg"), "x").unwrap();
    let two = scene.create("two").await;
    assert!(odd(&two.record.path, b"line\nbreak.cfg").exists());
    assert!(
        two.warnings[0].starts_with(r#""raw\377.cfg" could not be copied"#),
        "{:?}",
        two.warnings
    );
}

#[tokio::test]
async fn a_repository_at_such_a_place_is_refused_by_name() {
    let scene = Scene::new();
    for (slug, name, shown) in
        [("x", b"re\npo".as_slice(), r"re\npo"), ("y", b"re\xffpo", r"re\377po")]
    {
        let top = odd(&scene.root(), name);
        fs::create_dir(&top).unwrap();
        scene.git_in(&top, "init -q .");
        scene.git_in(&top, "commit -q --allow-empty -m first");
        let error = scene.worktrees.create(&top, &wish("x")).await.unwrap_err();
        assert!(matches!(&error, CreateError::Checkout(CheckoutError::Path(_))), "{error}");
        assert!(error.to_string().contains(shown), "{error}");
        // Within a directory it is no matter.
        let inner = odd(&scene.top, name);
        fs::create_dir(&inner).unwrap();
        scene.worktrees.create(&inner, &wish(slug)).await.unwrap();
    }
}
