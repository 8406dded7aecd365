//! Killing the program after each thing that it tells, while an agent works apart and its work is merged: nothing that was
//! written is lost.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::program::eventually;
use crate::stage::{agent, bash};
use crate::worktrees::Repository;

/// The files that the agent had written when the program died, with what is in them.
pub(crate) fn written(repository: &Repository) -> Vec<(PathBuf, String)> {
    let files = repository.worktrees().into_iter().flat_map(|worktree| {
        ["first.txt", "second.txt", "ignored.log"].map(|name| worktree.join(name))
    });
    let read = |path: PathBuf| Some((path.clone(), std::fs::read_to_string(path).ok()?));
    files.filter_map(read).filter(|(_, text)| !text.is_empty()).collect()
}

/// Whether some ref or some checkout has a text.
pub(crate) fn is_somewhere(repository: &Repository, path: &Path, text: &str) -> bool {
    let has = |path: PathBuf| std::fs::read_to_string(path).is_ok_and(|it| it == text);
    has(path.to_owned())
        || has(repository.top.join(path.file_name().unwrap()))
        || repository.git("log --all --format= -p -m").contains(&format!("+{}", text.trim_end()))
}

/// Does what is said of a lock that a killed git left.
pub(crate) fn remove_named_lock(told: &str) {
    let quoted = told
        .split(['\'', '`', ' '])
        .find(|it| Path::new(it).extension().is_some_and(|it| it == "lock"));
    let lock = quoted.unwrap_or_else(|| panic!("{told}"));
    std::fs::remove_file(lock).unwrap_or_else(|error| panic!("{error}: {told}"));
}

/// Waits until no process stands in a directory.
pub(crate) fn no_process_in(top: &Path) {
    eventually("the end of all that it started", || {
        let holds = |entry: &std::fs::DirEntry| {
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(top))
        };
        let mut all = std::fs::read_dir("/proc").unwrap().flatten();
        (!all.any(|entry| holds(&entry))).then_some(())
    });
}

#[test]
fn a_killed_program_loses_nothing_that_an_agent_wrote_apart() {
    let scripts = json!({
        "lead": [
            [agent("@@child", &json!({"isolation": "worktree"}))],
            [{"tool": "Worktrees", "input": {
                "action": "merge", "name": "${re:worktreeBranch: (worktree-agent-[0-9a-f]+)}",
            }}],
            "done",
        ],
        "child": [
            [bash("echo first > first.txt; git add -A; git commit -q -m first")],
            [bash("echo '*.log' > .gitignore; echo log > ignored.log; echo second > second.txt")],
            "I did it.",
        ],
    });
    let whole = Repository::new(&scripts).run(&[]);
    whole.assert_code(0);
    let mut lives_with_work = 0;
    for moment in 1..=whole.events.len() {
        let repository = Repository::new(&scripts);
        let mut command =
            repository.stage.command("@@lead", &["--allowedTools", "Bash,Write,Edit"]);
        let mut child = command.spawn().unwrap();
        let told = BufReader::new(child.stdout.take().unwrap()).lines().take(moment).count();
        child.kill().unwrap();
        child.wait().unwrap();
        // The processes that it had started die with it.
        no_process_in(&repository.top);
        let work = written(&repository);
        lives_with_work += usize::from(told == moment && !work.is_empty());
        let program = &repository.stage.program;
        // A process that the program had started may hold the worktree for a moment.
        let listed = eventually("a worktree in order", || {
            let mended = program.run(&["worktrees", "clean"]);
            if mended.code != Some(0) {
                remove_named_lock(&mended.stdout);
                return None;
            }
            let listed = program.run(&["worktrees"]).stdout;
            (!listed.contains("left by") && !listed.contains("half made")).then_some(listed)
        });
        for (path, text) in &work {
            assert!(
                is_somewhere(&repository, path, text),
                "{moment}: {}\n{listed}",
                path.display()
            );
        }
        repository.git("fsck --no-dangling");
    }
    assert!(lives_with_work > 0, "it never died while there was work");
}
