//! The judgement of git commands, compared with the real git.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command as Process;

use super::*;

/// Makes, in an empty directory, a checkout on `main` with every kind of change, one without changes, a worktree and a
/// repository to fetch from.
const SCENE: &str = r"
set -e
git init -q -b main lib && cd lib && echo l > l.txt && git add . && git commit -q -m lib && cd ..
git init -q -b main repo && cd repo
git config core.trustctime false && git config core.checkStat minimal
mkdir dir && echo 1 > dir/1.txt && echo 2 > dir/2.txt
echo one > a.txt && echo d > d.txt && echo s > s.txt && echo '*.o' > .gitignore
git -c protocol.file.allow=always submodule --quiet add ../lib sub
git add . && git commit -q -m first
git branch old
echo two > a.txt && git commit -q -a -m second
git switch -q -c other && echo other > dir/1.txt && git commit -q -a -m other
git format-patch -q -1 --stdout > ../p.patch
git switch -q main && echo three >> d.txt && git commit -q -a -m third
cd .. && git clone -q --bare repo remote.git && cd repo && git remote add origin ../remote.git
git push -q -f origin other:new && git worktree add -q ../wt -b wt
echo stashed > s.txt && git stash -q
cp -a ../repo ../clean
echo dirty > d.txt && echo staged > s.txt && git add s.txt && echo u > u.txt && echo o > i.o
";

/// Commands that change a file, check out another branch, or move commits or stashes.
const CHANGING: &str = "
am ../p.patch
apply ../p.patch
apply --index ../p.patch
apply --stat --apply ../p.patch
bisect start HEAD HEAD~2
branch -m renamed
branch -M renamed
checkout other
checkout -b new
checkout -- d.txt
checkout HEAD~2 a.txt
checkout-index -f -a
cherry-pick other
clean -fd
clean -f -x
commit --amend -m x
commit -q -a --amen -m x
fetch -q -u origin +old:main
fetch -q --update-head-ok origin +old:main
merge -q other
mv a.txt b.txt
pull -q --no-rebase origin new
read-tree -u --reset HEAD~1
rebase -q other
reflog delete --updateref main@{0}
reflog expire --expire=now --all
reset --hard
reset --har
reset --soft HEAD~1
reset HEAD~1
reset -q old
reset --keep HEAD~1
restore .
restore --staged --worktree s.txt
restore -SW s.txt
revert --no-edit HEAD
revert -n HEAD
rm -r dir
rm -q a.txt
sparse-checkout set nowhere
stash
stash push -q
stash -u
stash pop
stash drop -q
stash clear
submodule deinit -f --all
switch -q other
switch -c new
symbolic-ref HEAD refs/heads/other
update-ref HEAD HEAD~1
worktree remove --force ../wt
worktree move ../wt ../moved
";

/// Commands that change none of these.
const LEAVING: &str = "
add -A
apply --check ../p.patch
apply --stat --summary ../p.patch
apply --cached ../p.patch
bisect log
branch new
branch -q -f old HEAD
branch -D other
branch -a -vv
branch --show-current
branch --sort=-committerdate
checkout -h
clean -nd
clean -fdxn
commit -q -m x
commit -q -a -m x
commit -q --allow-empty -m x
diff --stat
fetch -q origin
fetch -q --upload-pack=git-upload-pack origin
log -1
merge-tree --write-tree main other
mv -n a.txt b.txt
notes add -m x
pull -q --dry-run origin new
push -q origin HEAD:refs/heads/mine
read-tree -n -m -u HEAD~1
reflog
reflog -2 main
reflog exists HEAD
reset
reset -q
reset --mixed
reset HEAD
reset -q HEAD s.txt
reset -- s.txt
reset -q @ -- dir/1.txt
restore --staged s.txt
restore -qS .
rm -q --cached a.txt
rm -rn dir
rm -r --cached -q dir
sparse-checkout list
stash list
stash show
stash create
status --short
submodule status
submodule
symbolic-ref HEAD
symbolic-ref --short HEAD
tag new
update-index --refresh
worktree add -q ../wt2 old
worktree list
write-tree
";

/// A scratch directory, in memory where possible: it is copied for every command.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn shell(directory: &Path, script: &str) -> (String, bool) {
    let output = Process::new("sh")
        .args(["-c", script])
        .current_dir(directory)
        .stdin(std::process::Stdio::null())
        .env("HOME", directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TEMPLATE_DIR", "")
        // A scratch repository need not survive a crash.
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.fsync")
        .env("GIT_CONFIG_VALUE_0", "none")
        .env("GIT_EDITOR", "true")
        .env("GIT_AUTHOR_NAME", "T")
        .env("GIT_AUTHOR_EMAIL", "t@localhost")
        .env("GIT_COMMITTER_NAME", "T")
        .env("GIT_COMMITTER_EMAIL", "t@localhost")
        .env("GIT_CEILING_DIRECTORIES", directory)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).trim().to_owned(), output.status.success())
}

/// The files of a scene, without git's own data.
fn files(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with(".git") || path.ends_with("remote.git") {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

/// The state of a checkout: its branch, its commit, and the number of its stashes.
fn place(top: &Path) -> (String, String, usize) {
    let read = |name: &str| fs::read_to_string(top.join(".git").join(name)).unwrap_or_default();
    let head = read("HEAD");
    let commit = head.trim().strip_prefix("ref: ").map(read);
    (head.clone(), commit.unwrap_or(head), read("logs/refs/stash").lines().count())
}

/// Whether a command changes the checkout `name` of a scene, or another one.
fn changes(scene: &Path, name: &str, command: &str) -> bool {
    let scratch = scratch();
    let (said, is_fine) = shell(scratch.path(), &format!("cp -a '{}'/. .", scene.display()));
    assert!(is_fine, "{said}");
    let top = scratch.path().join(name);
    if command.starts_with("worktree") {
        // Worktrees store their paths.
        shell(&top, "git worktree repair ../wt");
    }
    let mut before = BTreeMap::new();
    files(scratch.path(), &mut before);
    let (branch, commit, stashes) = place(&top);
    shell(&top, &format!("git {command}"));
    let mut after = BTreeMap::new();
    files(scratch.path(), &mut after);
    let (branch_now, commit_now, stashes_now) = place(&top);
    let continues = || {
        let (was, is) = (commit.trim(), commit_now.trim());
        was == is || shell(&top, &format!("git merge-base --is-ancestor {was} {is}")).1
    };
    before.iter().any(|(path, text)| after.get(path) != Some(text))
        || branch != branch_now
        || stashes_now < stashes
        || !continues()
}

#[test]
fn what_is_asked_about_is_what_git_does() {
    let scene = scratch();
    let (said, is_fine) = shell(scene.path(), SCENE);
    assert!(is_fine, "{said}");
    let does =
        |command: &str| ["repo", "clean"].iter().any(|name| changes(scene.path(), name, command));
    let is_asked = |command: &str| TreeMove::of_text(&format!("git {command}")).is_some();
    let rows = |rows: &'static str| rows.lines().filter(|row| !row.is_empty());
    let changing = rows(CHANGING).map(|command| (command, true));
    let wrong: Vec<_> = changing
        .chain(rows(LEAVING).map(|command| (command, false)))
        .map(|(command, expected)| (command, expected, is_asked(command), does(command)))
        .filter(|(_, expected, asked, does)| asked != expected || does != expected)
        .collect();
    assert!(wrong.is_empty(), "changes, is asked about, does change: {wrong:#?}");
    for name in CHANGES {
        let is_tried = rows(CHANGING).any(|row| row.split(' ').next() == Some(name));
        assert!(is_tried, "{name}");
    }
}

#[test]
fn commands_are_found_behind_the_options_of_git() {
    for text in ["git -C sub switch x", "/usr/bin/git -c a=b stash", "git --no-pager rebase x"] {
        assert!(TreeMove::of_text(text).is_some(), "{text}");
    }
    for text in
        ["git -C reset status", "digit checkout x", "git", "git --version", "git log checkout"]
    {
        assert!(TreeMove::of_text(text).is_none(), "{text}");
    }
}
