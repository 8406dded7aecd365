//! The program is killed before steps by which it, or a git that it runs, changes a file of the repository: each rename, write,
//! removal and new directory. Whatever was written is somewhere afterwards, and `centurion worktrees clean` brings the rest in
//! order.
//!
//! A seed decides which steps: all of them would take long. The step and the command are in the message of a failure.
//! `CENTURION_KILL_SEED=7` tries others.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::killed_apart::{is_somewhere, no_process_in, remove_named_lock, written};
use crate::program::{Ended, ended, eventually};
use crate::stage::{agent, bash};
use crate::worktrees::{Repository, git_in};

/// The exit code of a command that was killed at a step.
pub(crate) const KILLED: i32 = 77;

/// The most steps of a command that are tried, the last one among them.
const MOMENTS: usize = 8;

const SEED: u64 = 0x5eed_0016;

/// The processes that are killed at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victims {
    /// The program and every git that it runs.
    All,
    /// The program alone: what it started ends as after any death.
    Own,
}

/// Kills programs before a step.
pub(crate) struct Killer {
    build: tempfile::TempDir,
}

impl Killer {
    pub(crate) fn new() -> Self {
        let build = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/kill_at_step.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-o"]).arg(build.path().join("killer")).arg(source);
        assert!(compiler.status().unwrap().success(), "the C compiler builds what kills");
        Self { build }
    }

    /// The same command, killed before a step; never before step 0.
    pub(crate) fn kill(
        &self,
        command: &Command,
        victims: Victims,
        top: &Path,
        step: usize,
    ) -> Command {
        let mut killer = Command::new(self.build.path().join("killer"));
        let victims = if victims == Victims::All { "all" } else { "own" };
        killer.args([&step.to_string(), victims]).arg(top).arg(self.build.path().join("count"));
        killer.arg(command.get_program()).args(command.get_args()).env_clear();
        let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        killer.envs(set).current_dir(command.get_current_dir().unwrap());
        killer.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        killer
    }

    /// The number of steps that the last program made.
    pub(crate) fn steps(&self) -> usize {
        std::fs::read_to_string(self.build.path().join("count")).unwrap().parse().unwrap()
    }

    /// The program was killed before a step. Processes and agents that work side by side make a few steps more or fewer
    /// from run to run: one that succeeded without getting there is fine, if the step was one of the last.
    fn assert_killed(&self, end: &Ended, step: usize, at: &str) {
        if end.code == Some(0) {
            let made = self.steps();
            assert!(made < step && step - made <= step / 10, "{at}: alive after {made} steps");
        } else {
            assert_eq!(end.code, Some(KILLED), "{at}: {}", end.stderr);
        }
    }
}

/// Some of the steps, each about as likely as any other, and the last one.
fn moments(steps: usize, seed: u64) -> Vec<usize> {
    let usual = |text: String| text.parse().expect("CENTURION_KILL_SEED is a number");
    let mut state = std::env::var("CENTURION_KILL_SEED").map_or(SEED, usual) ^ seed;
    let count = MOMENTS.min(steps);
    (0..count)
        .map(|part| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (from, to) = (part * steps / count, (part + 1) * steps / count);
            let width = u64::try_from(to - from).unwrap();
            let offset = usize::try_from((state >> 33) % width).unwrap();
            if part + 1 == count { steps } else { from + offset + 1 }
        })
        .collect()
}

/// All files of a repository and a home, to come back to.
struct Saved {
    root: PathBuf,
    copy: tempfile::TempDir,
}

impl Saved {
    fn of(repository: &Repository) -> Self {
        let root = repository.stage.program.scratch.root().to_owned();
        let copy = tempfile::tempdir().unwrap();
        Self::copy(&root, copy.path());
        Self { root, copy }
    }

    fn rewind(&self) {
        for entry in std::fs::read_dir(&self.root).unwrap() {
            let path = entry.unwrap().path();
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
            removed.unwrap();
        }
        Self::copy(self.copy.path(), &self.root);
    }

    fn copy(from: &Path, to: &Path) {
        let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
        assert!(copied.success());
    }
}

/// Runs a command, as often as it names the lock of a git that was killed.
fn succeed(repository: &Repository, words: &[&str], at: &str) {
    eventually(at, || {
        let ended = repository.stage.program.run(words);
        if ended.code != Some(0) {
            remove_named_lock(&format!("{}{}", ended.stdout, ended.stderr));
        }
        (ended.code == Some(0)).then_some(())
    });
}

/// The next process explains what it finds, and what it says brings that in order.
fn mend(repository: &Repository, at: &str) {
    let program = &repository.stage.program;
    let listed = program.run(&["worktrees"]);
    assert_eq!(listed.code, Some(0), "{at}: {}", listed.stderr);
    eventually(&format!("order after {at}"), || {
        succeed(repository, &["worktrees", "clean"], at);
        let listed = program.run(&["worktrees"]).stdout;
        let is_odd =
            ["left by", "half made", "broken off", "in use"].iter().any(|it| listed.contains(it));
        (!is_odd).then_some(())
    });
}

/// Work of an agent that was kept: a commit, something staged, and a file beside it.
fn with_work() -> (Repository, String) {
    let repository = Repository::new(&json!({
        "lead": [[agent("@@child", &json!({"isolation": "worktree"}))], "done"],
        "child": [
            [bash("echo first > first.txt; git add -A; git commit -q -m first")],
            [bash("echo one changed > a.txt; echo staged > staged.txt; git add staged.txt; echo second > second.txt")],
            "I did it.",
        ],
    }));
    repository.write("mine.txt", "mine\n");
    repository.git("add -A");
    repository.git("commit -q -m mine");
    let told = repository.run(&[]);
    told.assert_code(0);
    let id = told.data()[0]["agentId"].as_str().unwrap().to_owned();
    repository.write("mine.txt", "changed by a person\n");
    (repository, id)
}

const WORK: [(&str, &str); 4] = [
    ("first.txt", "first\n"),
    ("a.txt", "one changed\n"),
    ("staged.txt", "staged\n"),
    ("second.txt", "second\n"),
];

/// Whether a directory has all of the work.
fn has_work(directory: &Path) -> bool {
    let has = |(name, text): &(&str, &str)| {
        std::fs::read_to_string(directory.join(name)).is_ok_and(|it| it == *text)
    };
    WORK.iter().all(has)
}

/// Kills a command before some of its steps, mends, and has the rest checked.
fn kill_and_mend(repository: &Repository, words: &[&str], check: impl Fn(&str)) {
    let (killer, saved) = (Killer::new(), Saved::of(repository));
    let command = repository.stage.program.command(words);
    let run = |step: usize| {
        ended(killer.kill(&command, Victims::All, &repository.top, step).output().unwrap())
    };
    let whole = run(0);
    assert_eq!(whole.code, Some(0), "{words:?}: {}", whole.stderr);
    let steps = killer.steps();
    assert!(steps > 10, "{words:?} has {steps} steps");
    let seed = words.iter().map(|word| word.len() as u64).sum();
    for step in moments(steps, seed) {
        let at = format!("{words:?} before step {step} of {steps}");
        saved.rewind();
        let end = run(step);
        killer.assert_killed(&end, step, &at);
        mend(repository, &at);
        assert_eq!(
            std::fs::read_to_string(repository.top.join("mine.txt")).unwrap(),
            "changed by a person\n",
            "{at}"
        );
        check(&at);
        repository.git("fsck --no-dangling");
    }
    saved.rewind();
}

#[test]
fn a_merge_that_is_killed_at_any_step_is_finished_or_taken_back() {
    let (repository, id) = with_work();
    let before = repository.git("rev-parse HEAD");
    let name = format!("agent-{}", &id[..8]);
    for how in [&["--message=Work"][..], &["--squash"], &["--rebase"]] {
        let words = [&["worktrees", "merge", &name], how].concat();
        kill_and_mend(&repository, &words, |at| {
            let status = repository.git("status --porcelain");
            assert_eq!(status, "M mine.txt", "{at}");
            let is_done = repository.git("rev-parse HEAD") != before;
            if !is_done {
                succeed(&repository, &words, at);
            }
            assert!(has_work(&repository.top), "{at}");
            assert_eq!(repository.git("status --porcelain"), "M mine.txt", "{at}");
            let [path] = &repository.worktrees()[..] else { panic!("{at}") };
            assert_eq!(git_in(path, "status --porcelain"), "", "{at}");
        });
    }
}

#[test]
fn a_worktree_that_is_removed_or_restored_loses_nothing_when_killed_at_any_step() {
    let (repository, id) = with_work();
    let name = format!("agent-{}", &id[..8]);
    let program = &repository.stage.program;
    let check = |at: &str| {
        if repository.worktrees().is_empty() {
            succeed(&repository, &["worktrees", "restore", &id], at);
        }
        let [path] = &repository.worktrees()[..] else { panic!("{at}") };
        assert!(has_work(path), "{at}");
        let status = git_in(path, "status --porcelain");
        assert_eq!(status, "M a.txt\nA  staged.txt\n?? second.txt", "{at}");
        assert_eq!(repository.git("status --porcelain"), "M mine.txt", "{at}");
    };
    kill_and_mend(&repository, &["worktrees", "clean", &name, "--force"], check);
    let gone = program.run(&["worktrees", "clean", &name, "--force"]);
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    kill_and_mend(&repository, &["worktrees", "restore", &id], check);
}

#[test]
fn mending_that_is_killed_at_any_step_is_done_by_the_next_one() {
    // An agent whose process died while it worked.
    let (repository, id) = with_work();
    repository.play(&json!({
        "lead": [[{"tool": "SendMessage", "input": {"to": id, "message": "@@child again"}}], "done"],
        "child": [[bash("git stash list; echo third > third.txt; git add third.txt; git commit -q -m third; echo open > open.txt; sleep 60")], "never"],
    }));
    let mut command = repository.stage.command("@@lead", &["--continue", "--allowedTools", "Bash"]);
    let mut child = command.spawn().unwrap();
    let [path] = &repository.worktrees()[..] else { panic!() };
    eventually("work", || std::fs::read(path.join("open.txt")).ok().filter(|it| it == b"open\n"));
    child.kill().unwrap();
    child.wait().unwrap();
    no_process_in(&repository.top);
    kill_and_mend(&repository, &["worktrees", "clean"], |at| {
        let [path] = &repository.worktrees()[..] else { panic!("{at}") };
        assert!(has_work(path), "{at}");
        assert_eq!(git_in(path, "log --format=%s -1"), "third", "{at}");
        assert_eq!(std::fs::read_to_string(path.join("open.txt")).unwrap(), "open\n", "{at}");
    });
}

#[test]
fn an_agent_apart_whose_program_is_killed_at_any_step_of_its_own_loses_nothing() {
    let scripts: Value = json!({
        "lead": [
            [agent("@@child", &json!({"isolation": "worktree"})), agent("@@idle", &json!({"isolation": "worktree"}))],
            [{"tool": "Worktrees", "input": {
                "action": "merge", "name": "${re:worktreeBranch: (worktree-agent-[0-9a-f]+)}",
            }}],
            "done",
        ],
        "child": [
            [bash("echo first > first.txt; git add -A; git commit -q -m first; echo second > second.txt")],
            "I did it.",
        ],
        "idle": ["Nothing."],
    });
    no_step_loses(&scripts, &["--allowedTools", "Bash,Write,Edit"], 4);
}

#[test]
fn a_session_in_a_worktree_that_is_killed_at_any_step_of_its_own_loses_nothing() {
    let work = bash(
        "echo first > first.txt; git add -A; git commit -q -m first; echo second > second.txt",
    );
    let enter = json!({"tool": "EnterWorktree", "input": {"name": "w"}});
    let exit =
        json!({"tool": "ExitWorktree", "input": {"action": "remove", "discard_changes": true}});
    let free = ["--allowedTools", "Bash,EnterWorktree,ExitWorktree"];
    no_step_loses(&json!({"lead": [[enter], [work.clone()], [exit], "done"]}), &free, 5);
    let flags = [&free[..], &["--worktree", "w"]].concat();
    no_step_loses(&json!({"lead": [[work], "done"]}), &flags, 6);
}

/// Kills the program before some of its steps, mends, and looks for all that was written.
fn no_step_loses(scripts: &Value, flags: &[&str], seed: u64) {
    let killer = Killer::new();
    let run = |step: usize| {
        let repository = Repository::new(scripts);
        let command = repository.stage.command("@@lead", flags);
        let mut dying = killer.kill(&command, Victims::Own, &repository.top, step);
        let ended = ended(dying.output().unwrap());
        (repository, ended)
    };
    let (_, whole) = run(0);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let steps = killer.steps();
    assert!(steps > 10, "{steps} steps");
    for step in moments(steps, seed) {
        let at = format!("{flags:?} before step {step} of {steps}");
        let (repository, ended) = run(step);
        killer.assert_killed(&ended, step, &at);
        no_process_in(&repository.top);
        let work = written(&repository);
        mend(&repository, &at);
        for (path, text) in &work {
            assert!(is_somewhere(&repository, path, text), "{at}: {}", path.display());
        }
        let status = repository.git("status --porcelain");
        assert_eq!(status, "", "{at}");
        repository.git("fsck --no-dangling");
    }
}

#[test]
fn what_kills_does_so_at_the_step_that_it_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path().canonicalize().unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "mkdir one; mkdir two; mkdir three"]).current_dir(&top);
    shell.env("PATH", OsString::from("/usr/bin:/bin"));
    let killer = Killer::new();
    for (step, left) in [(1, 0), (2, 1), (3, 2), (0, 3)] {
        let ended = ended(killer.kill(&shell, Victims::All, &top, step).output().unwrap());
        assert_eq!(ended.code, Some(if step == 0 { 0 } else { KILLED }), "{}", ended.stderr);
        assert_eq!(std::fs::read_dir(&top).unwrap().count(), left);
        for entry in std::fs::read_dir(&top).unwrap() {
            std::fs::remove_dir(entry.unwrap().path()).unwrap();
        }
    }
    assert_eq!(killer.steps(), 3);
}
