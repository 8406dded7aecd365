//! Killing the program at any moment, while an agent works apart and its work is merged, loses nothing that was written.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use crate::program::eventually;
use crate::stage::{agent, bash};
use crate::worktrees::Repository;

/// How many moments of a run are tried.
const MOMENTS: u32 = 18;

/// The files that the agent had written when the program died, with what is in them.
fn written(repository: &Repository) -> Vec<(PathBuf, String)> {
    let files = repository.worktrees().into_iter().flat_map(|worktree| {
        ["first.txt", "second.txt", "ignored.log"].map(|name| worktree.join(name))
    });
    let read = |path: PathBuf| Some((path.clone(), std::fs::read_to_string(path).ok()?));
    files.filter_map(read).filter(|(_, text)| !text.is_empty()).collect()
}

/// Whether some ref or some checkout has a text.
fn is_somewhere(repository: &Repository, path: &Path, text: &str) -> bool {
    let has = |path: PathBuf| std::fs::read_to_string(path).is_ok_and(|it| it == text);
    has(path.to_owned())
        || has(repository.top.join(path.file_name().unwrap()))
        || repository.git("log --all --format= -p -m").contains(&format!("+{}", text.trim_end()))
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
    let began = Instant::now();
    Repository::new(&scripts).run(&[]).assert_code(0);
    let whole = began.elapsed();
    let mut lives_with_work = 0;
    for life in (1..=MOMENTS).map(|moment| whole * moment / MOMENTS) {
        let repository = Repository::new(&scripts);
        let mut command =
            repository.stage.command("@@lead", &["--allowedTools", "Bash,Write,Edit"]);
        let mut child = command.spawn().unwrap();
        std::thread::sleep(life);
        let was_alive = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        // What it had started dies with it.
        eventually("the end of all that it started", || {
            let holds = |entry: &std::fs::DirEntry| {
                std::fs::read_link(entry.path().join("cwd"))
                    .is_ok_and(|cwd| cwd.starts_with(&repository.top))
            };
            let mut all = std::fs::read_dir("/proc").unwrap().flatten();
            (!all.any(|entry| holds(&entry))).then_some(())
        });
        let work = written(&repository);
        lives_with_work += usize::from(was_alive && !work.is_empty());
        // A git that was killed leaves its lock, as everywhere.
        let _ = std::fs::remove_file(repository.top.join(".git/index.lock"));
        let program = &repository.stage.program;
        // What the program had started may hold the worktree for a moment.
        let listed = eventually("a worktree in order", || {
            let mended = program.run(&["worktrees", "clean"]);
            assert_eq!(mended.code, Some(0), "{life:?}: {}{}", mended.stdout, mended.stderr);
            let listed = program.run(&["worktrees"]).stdout;
            (!listed.contains("left by") && !listed.contains("half made")).then_some(listed)
        });
        for (path, text) in &work {
            assert!(
                is_somewhere(&repository, path, text),
                "{life:?}: {}\n{listed}",
                path.display()
            );
        }
        repository.git("fsck --no-dangling");
    }
    assert!(lives_with_work > 0, "it never died while there was work");
}
