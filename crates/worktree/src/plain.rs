//! Repositories as most are: a git directory in the checkout, refs in files, a configuration that says nothing unusual.
//!
//! The files of such a repository are read without a git process. Any doubt is no answer: then git is asked.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::checkout::Checkout;
use crate::files::{LONG, SHORT, read_text};
use crate::ordinary::has_reftable;
use crate::refs::{FiledRef, filed_ref, is_id, is_plain_name};

/// The configuration file of a repository, in small letters; nothing where it cannot be read as text.
fn configuration(common: &Path) -> Option<String> {
    Some(read_text(&common.join("config"), LONG).ok()?.to_ascii_lowercase())
}

/// Checks that the configuration of a repository surely names no filter, merge driver or hook, includes no other file, and is
/// the same in all of its git directories. The name of a section stands right behind its bracket.
pub(crate) fn names_no_program(git_dir: &Path) -> bool {
    const TELLING: [&str; 5] = ["[filter", "[merge", "[hook", "[include", "worktreeconfig"];
    // That of a linked worktree is in another directory, which its own files name.
    if fs::symlink_metadata(git_dir.join("commondir")).is_ok() {
        return false;
    }
    configuration(git_dir).is_some_and(|text| !TELLING.iter().any(|it| text.contains(it)))
}

/// Checks that a configuration says nothing of where the files are, and that the repository has some.
fn is_usual(configuration: &str) -> bool {
    const TELLING: [&str; 3] = ["[include", "extensions", "worktree"];
    let mut bare = configuration.lines().filter(|line| line.contains("bare"));
    !TELLING.iter().any(|it| configuration.contains(it))
        && bare.all(|line| line.split_whitespace().eq(["bare", "=", "false"]))
}

/// The checkout around a directory that has no link in its path.
pub(crate) fn checkout(directory: &Path) -> Option<Checkout> {
    let is_there = |at: &&Path| fs::symlink_metadata(at.join(".git")).is_ok();
    let top = directory.ancestors().find(is_there)?;
    let common = top.join(".git");
    let metadata = fs::symlink_metadata(&common).ok()?;
    // Git looks at nothing that another user owns, and in no other file system, unless it is told to.
    let is_own = |it: &Metadata| it.uid() == rustix::process::geteuid().as_raw();
    let here = fs::metadata(directory).ok()?;
    let is_plain = metadata.is_dir()
        && is_own(&metadata)
        && is_own(&fs::metadata(top).ok()?)
        && metadata.dev() == here.dev()
        && ["objects", "refs"].iter().all(|name| is_directory(&common.join(name)))
        && !common.join("commondir").exists()
        && !has_reftable(&common)
        && !is_git_directory(directory, top)
        && is_usual(&configuration(&common)?);
    if !is_plain || [top, &common].iter().any(|path| !is_line(path)) {
        return None;
    }
    let text = read_text(&common.join("HEAD"), SHORT).ok()?;
    let name = text.strip_suffix('\n')?;
    let (head, branch) = match name.strip_prefix("ref: refs/heads/") {
        Some(branch) if is_plain_name(branch) => {
            (filed_ref(&common, &format!("refs/heads/{branch}")), Some(branch))
        }
        None if is_id(name) => (FiledRef::Id(name.to_owned()), None),
        _ => return None,
    };
    // One without a commit is git's to refuse.
    let FiledRef::Id(head) = head else { return None };
    let (top, branch) = (top.to_owned(), branch.map(str::to_owned));
    Some(Checkout { home: top.clone(), git_dir: common.clone(), common, top, head, branch })
}

/// Checks that a directory below a top, or one between, is itself a git directory, such as a bare repository.
fn is_git_directory(directory: &Path, top: &Path) -> bool {
    let below = directory.ancestors().take_while(|at| *at != top);
    below
        .into_iter()
        .any(|at| at.join("HEAD").exists() || at.file_name().is_some_and(|it| it == ".git"))
}

fn is_directory(path: &PathBuf) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
}

/// Checks that git can say a path on one line.
fn is_line(path: &Path) -> bool {
    path.to_str().is_some_and(|text| !text.contains('\n'))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;

    use centurion_protocol::Env;
    use proptest::prelude::*;

    use super::*;
    use crate::git::{Direct, Git};

    fn git(top: &Path, args: &str) -> Option<String> {
        let identity = ["-c", "user.name=T", "-c", "user.email=t@localhost"];
        let mut command = Command::new("git");
        command.args(identity).args(args.split(' ')).current_dir(top).env("HOME", "/nonexistent");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(said)
    }

    fn repository() -> (tempfile::TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().canonicalize().unwrap().join("it");
        fs::create_dir_all(top.join("a/b")).unwrap();
        git(&top, "init -q -b main .").unwrap();
        fs::write(top.join("a/b/c"), "c").unwrap();
        git(&top, "add -A").unwrap();
        git(&top, "commit -q -m one").unwrap();
        fs::write(top.join("included"), "[filter \"i\"]\n\tclean = cat\n").unwrap();
        (scratch, top)
    }

    /// Pieces of a configuration, of which some name programs, in all forms that git reads.
    fn pieces() -> impl Strategy<Value = Vec<&'static str>> {
        let pieces = prop::sample::select(vec![
            "[user]\n\tname = T\n",
            "[branch \"main\"]\n\tmerge = refs/heads/main\n",
            "[remote \"filter\"]\n\turl = /merge.driver\n",
            "[merge]\n\tconflictStyle = diff3\n",
            "[merge \"m\"]\n\tname = m\n",
            "[Merge \"m\"]\n\tDriver = cat\n",
            "[merge.m] driver = cat\n",
            "[filter \"x=y\"]\n\tclean = cat\n",
            "[FILTER \"f\"] smudge = cat\n",
            "[user] [filter \"g\"] process = cat\n",
            "[user] name = [filter\n",
            "\t[ filter \"h\"] clean = cat\n",
            "[include]\n\tpath = ../included\n",
            "[Include] path = ../included\n",
            "[includeIf \"gitdir:/\"]\n\tpath = ../included\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "[core]\n\trepositoryformatversion = 1\n",
            "[core]\n\tworktree = ../a\n",
            "[core]\n\tworktree = /tmp\n",
            "[core]\n\tbare = true\n",
            "[core] bare\n",
            "[core]\n\tBare=false\n",
            "# a comment\n",
            "\\\n",
        ]);
        prop::collection::vec(pieces, 0..4)
    }

    fn asked(directory: &Path) -> Result<Checkout, String> {
        let env = Env::from([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent")]);
        let found = std::env::split_paths("/usr/local/bin:/usr/bin:/bin").map(|it| it.join("git"));
        let program = found.into_iter().find(|it| it.is_file()).unwrap();
        let git = Git::new(program, &env, Arc::new(Direct));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let asked = runtime.block_on(Checkout::asked(&git, directory.to_owned()));
        asked.map_err(|error| error.to_string())
    }

    fn filters_of(top: &Path) -> Option<Vec<String>> {
        let said = git(top, "config --list --name-only --show-scope")?;
        let lines = said.lines().filter_map(|line| line.split_once('\t'));
        let own = lines.filter(|(scope, _)| matches!(*scope, "local" | "worktree"));
        let is_program = |key: &&str| {
            key.starts_with("filter.") || (key.starts_with("merge.") && key.ends_with(".driver"))
        };
        Some(own.map(|(_, key)| key).filter(is_program).map(str::to_owned).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn what_is_taken_for_plain_is_what_git_takes_it_for(pieces in pieces(), at in 0..4_usize) {
            let (_scratch, top) = repository();
            let config = top.join(".git/config");
            let before = fs::read_to_string(&config).unwrap();
            fs::write(&config, before + &pieces.concat()).unwrap();
            fs::write(top.join(".git/config.worktree"), "[filter \"w\"]\n\tclean = cat\n").unwrap();
            if names_no_program(&top.join(".git")) {
                // Git may not read it at all.
                prop_assert_eq!(filters_of(&top).unwrap_or_default(), Vec::<String>::new(), "{:?}", pieces);
            }
            let directory = top.join(["", "a", "a/b", ".git"][at]);
            let directory = directory.canonicalize().unwrap();
            // What git cannot read at all, it says when it is to do something.
            if let (Some(found), Ok(asked)) = (checkout(&directory), asked(&directory)) {
                prop_assert_eq!(found, asked, "{:?}", pieces);
            }
        }
    }

    #[test]
    fn checkouts_are_found_in_all_states_of_a_repository() {
        let (_scratch, top) = repository();
        let is_same = |directory: &Path, is_known: bool| {
            let found = checkout(directory);
            assert_eq!(found.is_some(), is_known, "{}", directory.display());
            if let Some(found) = found {
                assert_eq!(Ok(found), asked(directory));
            }
        };
        is_same(&top.join("a/b"), true);
        git(&top, "checkout -q --detach").unwrap();
        is_same(&top, true);
        git(&top, "checkout -q -b x/y").unwrap();
        git(&top, "pack-refs --all").unwrap();
        is_same(&top.join("a"), true);
        git(&top, "symbolic-ref refs/heads/link refs/heads/main").unwrap();
        git(&top, "symbolic-ref HEAD refs/heads/link").unwrap();
        is_same(&top, false);
        git(&top, "symbolic-ref HEAD refs/heads/unborn").unwrap();
        is_same(&top, false);
        git(&top, "checkout -q main").unwrap();
        git(&top, "worktree add -q linked").unwrap();
        is_same(&top.join("linked"), false);
        git(&top, "init -q --bare bare.git").unwrap();
        is_same(&top.join("bare.git"), false);
        is_same(&top.join("bare.git/refs"), false);
        is_same(&top.join(".git/refs"), false);
        is_same(&top, true);
        for (head, is_known) in [
            ("ref: refs/heads/../heads/main\n", false),
            ("ref:refs/heads/main\n", false),
            ("ref: refs/heads/main \n", false),
            ("ref: refs/heads/main", false),
            ("ref: refs/heads/main\n", true),
        ] {
            fs::write(top.join(".git/HEAD"), head).unwrap();
            is_same(&top, is_known);
        }
    }
}
