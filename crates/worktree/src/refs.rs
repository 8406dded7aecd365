//! Refs of a repository, read from its files without a git process. What is not plain there is left to git.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::files::{LONG, SHORT, read_text};
use crate::ordinary::has_reftable;

/// A ref as the files of a repository have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FiledRef {
    Id(String),
    Missing,
    /// Another ref, a broken one, or one in tables: only git can read it.
    Unclear,
}

/// Reads a ref of the repository itself. A ref that git packs meanwhile is found: git deletes its file after that.
pub(crate) fn filed_ref(common: &Path, name: &str) -> FiledRef {
    if has_reftable(common) {
        return FiledRef::Unclear;
    }
    let file = common.join(name);
    match fs::symlink_metadata(&file) {
        // A directory of other refs.
        Ok(metadata) if metadata.is_dir() => packed_ref(common, name),
        Ok(_) => match read_text(&file, SHORT) {
            Ok(text) if is_id(text.trim()) => FiledRef::Id(text.trim().to_owned()),
            _ => FiledRef::Unclear,
        },
        Err(error) if is_absence(error.kind()) => packed_ref(common, name),
        Err(_) => FiledRef::Unclear,
    }
}

/// Reads a ref as the file of packed refs has it.
pub(crate) fn packed_ref(common: &Path, name: &str) -> FiledRef {
    let file = common.join("packed-refs");
    match fs::symlink_metadata(&file) {
        Err(error) if is_absence(error.kind()) => return FiledRef::Missing,
        Err(_) => return FiledRef::Unclear,
        Ok(_) => {}
    }
    let Ok(text) = read_text(&file, LONG) else { return FiledRef::Unclear };
    let id = text.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '));
    match id {
        Some(id) if is_id(id) => FiledRef::Id(id.to_owned()),
        Some(_) => FiledRef::Unclear,
        None => FiledRef::Missing,
    }
}

/// The most refs in files of their own that are read here.
const MOST_LOOSE: usize = 20_000;

/// The most refs of which one names the next.
const LONGEST_CHAIN: usize = 5;

/// All refs of a repository with their ids, read from its files; `None` where something is not plain.
pub(crate) fn all_refs(common: &Path) -> Option<BTreeMap<String, String>> {
    if has_reftable(common) || fs::symlink_metadata(common.join("commondir")).is_ok() {
        return None;
    }
    let (mut loose, mut symbolic) = (BTreeMap::new(), BTreeMap::new());
    let mut directories = vec!["refs".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(common.join(&directory)).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            // Git passes these by, too.
            if name.starts_with('.') || name.strip_suffix(".lock").is_some() {
                continue;
            }
            let (kind, name) = (entry.file_type().ok()?, format!("{directory}/{name}"));
            if kind.is_dir() {
                directories.push(name);
                continue;
            }
            let text = match read_text(&entry.path(), SHORT) {
                // Deleted or packed meanwhile.
                Err(_) if fs::symlink_metadata(entry.path()).is_err() => continue,
                text => text.ok()?,
            };
            if !kind.is_file() || !is_plain_name(&name) || loose.len() >= MOST_LOOSE {
                return None;
            }
            match (text.trim_end(), text.strip_prefix("ref: ")) {
                (id, _) if is_id(id) => loose.insert(name, id.to_owned()),
                (_, Some(to)) => symbolic.insert(name, to.trim_end().to_owned()),
                _ => return None,
            };
        }
    }
    // After those in files of their own: git packs a ref before it deletes its file.
    let mut all = packed_refs(common)?;
    all.extend(loose);
    let resolved: Vec<Option<(String, String)>> = symbolic
        .iter()
        .map(|(name, to)| {
            let mut chain = std::iter::successors(Some(to), |to| symbolic.get(*to));
            let end = chain.by_ref().take(LONGEST_CHAIN).find(|to| !symbolic.contains_key(*to))?;
            Some((name.clone(), all.get(end)?.clone()))
        })
        .collect();
    for resolved in resolved {
        let (name, id) = resolved?;
        all.insert(name, id);
    }
    Some(all)
}

fn packed_refs(common: &Path) -> Option<BTreeMap<String, String>> {
    let file = common.join("packed-refs");
    match fs::symlink_metadata(&file) {
        Err(error) if is_absence(error.kind()) => return Some(BTreeMap::new()),
        metadata => metadata.ok()?,
    };
    let text = read_text(&file, LONG).ok()?;
    let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
    let parted = lines.map(|line| {
        let (id, name) = line.split_once(' ').filter(|(id, _)| is_id(id))?;
        is_plain_name(name).then(|| (name.to_owned(), id.to_owned()))
    });
    parted.collect()
}

/// Checks that git surely takes a name for that of a ref, and that it leads nowhere else.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_+=,%#/.".contains(c) || !c.is_ascii();
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with(['.', '/'])
            && part.strip_suffix(".lock").is_none()
    };
    name.chars().all(is_plain) && name.split('/').all(is_part) && !name.contains("..")
}

/// The directories of other worktrees whose `HEAD` is a branch, as the repository has them; `None` where only git can tell.
/// `own` is the directory of the worktree that is not looked for.
pub(crate) fn worktrees_on(common: &Path, branch: &str, own: &Path) -> Option<Vec<PathBuf>> {
    if has_reftable(common) {
        return None;
    }
    let mut git_dirs = vec![common.to_owned()];
    match fs::read_dir(common.join("worktrees")) {
        Ok(entries) => {
            for entry in entries {
                git_dirs.push(entry.ok()?.path());
            }
        }
        Err(error) if is_absence(error.kind()) => {}
        Err(_) => return None,
    }
    let wanted = format!("ref: refs/heads/{branch}");
    let mut found = Vec::new();
    for git_dir in git_dirs.iter().filter(|it| *it != own) {
        let head = git_dir.join("HEAD");
        match fs::symlink_metadata(&head) {
            // It went, or is not there yet: then it is on no branch that is there for longer.
            Err(error) if is_absence(error.kind()) => continue,
            Ok(metadata) if metadata.is_file() => {}
            _ => return None,
        }
        match read_text(&head, SHORT) {
            Ok(text) if text.trim() == wanted => found.push(git_dir.clone()),
            Ok(_) => {}
            Err(_) if fs::symlink_metadata(&head).is_err() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

/// Checks for the id of an object, as git writes it.
pub(crate) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        && text.bytes().any(|byte| byte != b'0')
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 6] = [
        "refs/heads/main",
        "refs/heads/worktree-a",
        "refs/heads/worktree-ab",
        "refs/heads/a/worktree-a",
        "refs/centurion/agents/a/base",
        "refs/tags/t",
    ];

    #[derive(Clone, Debug)]
    enum Step {
        Set(usize, bool),
        Delete(usize),
        Pack,
        Link(usize, usize),
        Break(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let name = || 0..NAMES.len();
        let step = prop_oneof![
            4 => (name(), any::<bool>()).prop_map(|(name, id)| Step::Set(name, id)),
            2 => name().prop_map(Step::Delete),
            2 => Just(Step::Pack),
            1 => (name(), name()).prop_map(|(from, to)| Step::Link(from, to)),
            1 => name().prop_map(Step::Break),
        ];
        prop::collection::vec(step, 1..10)
    }

    fn git(top: &Path, args: &[&str]) -> Option<String> {
        let output = Command::new("git").args(args).current_dir(top).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(said)
    }

    fn commit(top: &Path, message: &str) -> String {
        let tree = git(top, &["hash-object", "-t", "tree", "-w", "/dev/null"]).unwrap();
        let identity = ["-c", "user.name=T", "-c", "user.email=t@localhost"];
        git(top, &[&identity[..], &["commit-tree", &tree, "-m", message]].concat()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

        #[test]
        fn what_the_files_say_of_a_ref_is_what_git_says(steps in steps()) {
            let scratch = tempfile::tempdir().unwrap();
            let top = scratch.path();
            git(top, &["init", "-q", "."]).unwrap();
            let ids = [commit(top, "one"), commit(top, "two")];
            let common = top.join(".git");
            for step in steps {
                // What git refuses is not done.
                match step {
                    Step::Set(name, id) => {
                        git(top, &["update-ref", NAMES[name], &ids[usize::from(id)]]);
                    }
                    Step::Delete(name) => {
                        git(top, &["update-ref", "--no-deref", "-d", NAMES[name]]);
                    }
                    Step::Pack => {
                        git(top, &["pack-refs", "--all", "--prune"]);
                    }
                    Step::Link(from, to) => {
                        git(top, &["symbolic-ref", NAMES[from], NAMES[to]]);
                    }
                    Step::Break(name) => {
                        let _ = fs::write(common.join(NAMES[name]), "");
                    }
                }
            }
            for name in NAMES {
                let gits = git(top, &["rev-parse", "--verify", "--quiet", name]);
                match filed_ref(&common, name) {
                    FiledRef::Id(id) => prop_assert_eq!(Some(id), gits, "{}", name),
                    FiledRef::Missing => prop_assert_eq!(None, gits, "{}", name),
                    FiledRef::Unclear => {}
                }
            }
            let gits = git(top, &["for-each-ref", "--format=%(refname) %(objectname)"]).unwrap();
            if let Some(all) = all_refs(&common) {
                let all: Vec<String> = all.iter().map(|(name, id)| format!("{name} {id}")).collect();
                prop_assert_eq!(all.join("\n"), gits);
            }
        }
    }
}
