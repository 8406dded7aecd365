//! Failures of other programs with the worktrees of agents, which do not happen here.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::program::ended;
use crate::stage::{Told, bash};
use crate::worktrees::{FREE, Repository, apart, git_in, results, write};

#[test]
fn in_a_linked_worktree_an_agent_begins_at_the_tip_of_its_branch() {
    // D-32; scenario 4
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[bash("git rev-parse HEAD > head.txt")], "did"],
    }));
    let root = repository.stage.program.scratch.root().canonicalize().unwrap();
    let (clone, feature) = (root.join("clone"), root.join("feature"));
    repository.git(&format!("clone -q . {}", clone.display()));
    git_in(&clone, &format!("worktree add -q -b feature {}", feature.display()));
    let commit = "-c user.name=T -c user.email=t@localhost commit -q --allow-empty -m ahead";
    git_in(&feature, commit);
    let tip = git_in(&feature, "rev-parse HEAD");
    assert_ne!(git_in(&clone, "rev-parse origin/HEAD"), tip);
    let mut command = repository.stage.command("@@lead", FREE);
    let told = Told::new(ended(command.current_dir(&feature).output().unwrap()));
    told.assert_code(0);
    let [path] = &Repository::worktrees_in(&clone)[..] else { panic!("{}", told.ended.stdout) };
    assert_eq!(std::fs::read_to_string(path.join("head.txt")).unwrap().trim(), tip);
    let report = &told.data()[0]["worktree"]["report"];
    assert_eq!((&report["base"], &report["merges"][0]["with"]), (&json!(tip), &json!("feature")));
}

#[test]
fn a_commit_of_no_branch_is_there_after_everything_is_cleaned() {
    // I-7; scenario 5
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [
            [bash("git checkout -q --detach; echo x > lost.txt; git add -A; git commit -q -m lost; git checkout -q -")],
            "did",
        ],
    }));
    repository.run(&[]).assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let name = path.file_name().unwrap().to_str().unwrap();
    let gone = repository.stage.program.run(&["worktrees", "clean", name, "--force"]);
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    assert!(repository.worktrees().is_empty());
    repository.git("reflog expire --expire=now --all");
    repository.git("gc -q --prune=now");
    let lost = repository.git("log --all --format=%H --grep=lost --fixed-strings");
    assert_eq!(repository.git(&format!("show {lost}:lost.txt")), "x");
}

#[test]
fn an_agent_that_continues_and_does_nothing_keeps_what_it_did_before() {
    // I-7; scenario 6
    let message =
        |text: &str| json!({"tool": "SendMessage", "input": {"to": "worker", "message": text}});
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({"name": "worker"}))], [message("@@idle")], "waiting", "heard"],
        "child": [[bash("echo 1 > first.txt; git add -A; git commit -q -m first-work")], "first"],
        "idle": ["nothing more to do"],
        "again": [[message("@@idle")], "waiting", "heard"],
    }));
    repository.run(&[]).assert_code(0);
    repository.stage.run("@@again", &[FREE, &["--continue"]].concat()).assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    assert_eq!(std::fs::read_to_string(path.join("first.txt")).unwrap(), "1\n");
    let branch = git_in(path, "branch --show-current");
    assert_eq!(repository.git(&format!("log --format=%s main..{branch}")), "first-work");
    // Nor does a person remove it who only clears up.
    let name = path.file_name().unwrap().to_str().unwrap();
    for args in [&["worktrees", "clean"][..], &["worktrees", "clean", name]] {
        repository.stage.program.run(args);
        assert!(path.join("first.txt").exists(), "{args:?}");
    }
}

#[test]
fn eight_agents_at_once_meet_no_lock_while_one_rebases_and_others_look() {
    // scenario 8
    let work =
        "echo $$ > mine.txt; git add -A && git commit -q -m mine && git stash list && git gc -q";
    let rebase = "git reset -q --hard HEAD~1 && echo t > t.txt && git add -A && git commit -q -m mine && git rebase -q main";
    let agents = |number: usize| {
        let prompt = if number == 3 { "@@rebase" } else { "@@child" };
        apart(prompt, &json!({}))
    };
    let calls: Vec<Value> = (0..8).map(agents).collect();
    let repository = Repository::new(&json!({
        "lead": [calls, "done"],
        "child": [[bash(work)], "did"],
        "rebase": [[bash(rebase)], "did"],
    }));
    repository.git("commit -q --allow-empty -m second");
    let before = repository.state();
    let is_over = AtomicBool::new(false);
    let told = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // One that takes locks, and one of ours that takes none.
                repository.git("status --short");
                let listed = repository.stage.program.run(&["worktrees"]);
                assert_eq!(listed.code, Some(0), "{}", listed.stderr);
            }
        });
        let told = repository.run(&[]);
        is_over.store(true, Ordering::Relaxed);
        told
    });
    told.assert_code(0);
    let said = results(&told) + &repository.stage.agent_transcripts().concat();
    assert!(!said.contains(".lock"), "{said}");
    assert_eq!(repository.worktrees().len(), 8, "{said}");
    let subjects = repository.git("for-each-ref --format=%(subject) refs/heads/worktree-*");
    assert_eq!(subjects.lines().filter(|it| *it == "mine").count(), 8, "{said}");
    assert_eq!(repository.git("config core.bare"), "false");
    assert_eq!(repository.state(), before);
}

#[test]
fn what_differs_can_be_applied_by_git_as_it_is_printed() {
    let make = "printf 'all:\\n\\techo one\\r\\n\\tcaf\\351\\n' > Makefile; printf '\\tnew\\351\\n' > 'new file.txt'; echo two > a.txt";
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[bash(make)], "did"],
    }));
    repository.stage.program.scratch.write_home(
        ".gitconfig",
        "[color]\n\tui = always\n[diff]\n\tnoprefix = true\n\tmnemonicPrefix = true\n\tsubmodule = log\n",
    );
    repository.run(&[]).assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut diff = repository.stage.program.command(["worktrees", "diff", name]);
    let printed = diff.output().unwrap().stdout;
    let file = repository.stage.program.scratch.root().join("it.patch");
    std::fs::write(&file, &printed).unwrap();
    repository.git(&format!("apply {}", file.display()));
    for name in ["Makefile", "new file.txt", "a.txt"] {
        let (here, there) = (repository.top.join(name), path.join(name));
        assert_eq!(std::fs::read(here).unwrap(), std::fs::read(there).unwrap(), "{name}");
    }
}

#[test]
fn an_agent_in_a_repository_within_another_is_told_of_the_right_one() {
    // D-32: the nearest repository is the caller's, also where its name has other letters and spaces.
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[write("mine.txt", "x\n")], "did"],
    }));
    let inner = repository.top.join("tools/Größe 2");
    std::fs::create_dir_all(&inner).unwrap();
    git_in(&inner, "init -q -b main .");
    git_in(&inner, "-c user.name=T -c user.email=t@localhost commit -q --allow-empty -m inner");
    let before = repository.git("for-each-ref");
    let mut command = repository.stage.command("@@lead", FREE);
    let told = Told::new(ended(command.current_dir(&inner).output().unwrap()));
    told.assert_code(0);
    let [path] = &Repository::worktrees_in(&inner)[..] else { panic!("{}", told.ended.stdout) };
    assert!(path.join("mine.txt").exists());
    assert!(repository.worktrees().is_empty());
    assert_eq!(repository.git("for-each-ref"), before);
}
