//! Walks compared with those of the `ignore` crate, which opens everything by its path.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use ignore::WalkBuilder;
use proptest::prelude::*;
use tempfile::tempdir;

use super::*;
use crate::testing::context;

/// The entries of a walk below `root`, without `.git`.
fn walked(root: &Path, max_depth: Option<usize>) -> BTreeSet<PathBuf> {
    let context = context(root);
    let directory = Directory::open(root).unwrap();
    let (workspace, cancel) = (&*context.workspace, CancellationToken::new());
    let found = Mutex::new(BTreeSet::new());
    let walk = Walk { root, directory: &directory, workspace, max_depth };
    walk.collect(&cancel, |entry| {
        lock(&found).insert(entry.below.to_owned());
        Step::<()>::Enter
    })
    .unwrap();
    found.into_inner()
}

fn expected(root: &Path, max_depth: Option<usize>) -> BTreeSet<PathBuf> {
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .max_depth(max_depth)
        .filter_entry(|entry| entry.file_name() != ".git");
    let paths = builder.build().map(|entry| entry.unwrap().into_path());
    let below = paths.map(|path| path.strip_prefix(root).unwrap().to_owned());
    below.filter(|path| !path.as_os_str().is_empty()).collect()
}

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c.log", "d.txt", ".hidden", "build"]).prop_map(Into::into)
}

fn rules() -> impl Strategy<Value = String> {
    let patterns = vec![
        "*.log", "!c.log", "/a", "a/", "b", "build/", "**/d.txt", "a/**", "!a/b", "# note", "",
        "*", "!.hidden", "a/b/", " c.log ", "[", "d.*",
    ];
    prop::collection::vec(prop::sample::select(patterns), 0..4).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn ignore_files_mean_what_they_mean_elsewhere(
        files in prop::collection::vec(prop::collection::vec(names(), 1..5), 1..20),
        ignore_files in prop::collection::vec(
            (
                prop::collection::vec(names(), 0..3),
                prop::sample::select(vec![".gitignore", ".ignore", ".git/info/exclude"]),
                rules(),
            ),
            0..6,
        ),
        start in prop::collection::vec(names(), 0..2),
        max_depth in prop::option::of(1_usize..5),
    ) {
        let scratch = tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for file in files {
            let path = root.join(file.iter().collect::<PathBuf>());
            // A path that is a file already cannot be a directory.
            let _ = fs::create_dir_all(path.parent().unwrap()).and_then(|()| fs::write(path, ""));
        }
        for (directory, name, text) in ignore_files {
            let path = root.join(directory.iter().collect::<PathBuf>()).join(name);
            let _ = fs::create_dir_all(path.parent().unwrap()).and_then(|()| fs::write(path, text));
        }
        let start = root.join(start.iter().collect::<PathBuf>());
        let start = if start.is_dir() { start } else { root };
        prop_assert_eq!(walked(&start, max_depth), expected(&start, max_depth));
    }
}

#[test]
fn a_large_tree_is_walked_by_several_threads_to_its_end() {
    let scratch = tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    for one in 0..30 {
        for two in 0..10 {
            let directory = root.join(format!("{one}/{two}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("file"), "").unwrap();
        }
    }
    let found = walked(&root, None);
    assert_eq!(found.len(), 30 + 300 + 300);
    assert_eq!(found, expected(&root, None));
}

#[test]
fn a_worktree_has_the_excludes_of_its_repository() {
    let scratch = tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    let git_dir = root.join("main/.git/worktrees/w");
    fs::create_dir_all(&git_dir).unwrap();
    fs::create_dir_all(root.join("main/.git/info")).unwrap();
    fs::create_dir_all(root.join("w/sub")).unwrap();
    fs::write(root.join("main/.git/info/exclude"), "secret\n").unwrap();
    fs::write(git_dir.join("commondir"), "../..\n").unwrap();
    fs::write(root.join("w/.git"), format!("gitdir: {}\n", git_dir.display())).unwrap();
    for name in ["w/secret", "w/open", "w/sub/secret"] {
        fs::write(root.join(name), "").unwrap();
    }
    let names = |found: BTreeSet<PathBuf>| -> Vec<String> {
        found.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(walked(&root.join("w"), None)), ["open", "sub"]);
    assert!(walked(&root.join("w/sub"), None).is_empty(), "from above the root, too");
}

#[test]
fn ignore_files_that_are_pipes_or_links_are_passed_over() {
    let scratch = tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    fs::write(root.join("sub/file"), "").unwrap();
    fs::write(root.join("rules"), "*\n").unwrap();
    let owner = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join(".gitignore"), owner).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("sub/.ignore"), owner).unwrap();
    symlink("../rules", root.join("sub/.gitignore")).unwrap();
    // As git does, and without waiting.
    assert!(walked(&root, None).contains(Path::new("sub/file")));
    assert!(walked(&root.join("sub"), None).contains(Path::new("file")));
}
