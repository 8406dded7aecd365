//! Agents that work apart: in a worktree of their own, on every way to start one, and back.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use centurion_testkit::{Lack, skip};
use serde_json::{Value, json};

use crate::program::eventually;
use crate::sandboxes::can_confine_completely;
use crate::stage::{Stage, Told, agent, bash, run_and};

pub(crate) const FREE: &[&str] = &["--allowedTools", "Bash,Write,Edit,Read"];

/// A stage whose project is a repository with a commit.
pub(crate) struct Repository {
    pub(crate) stage: Stage,
    pub(crate) top: PathBuf,
}

impl Repository {
    pub(crate) fn new(scripts: &Value) -> Self {
        let stage = Stage::new(scripts);
        let top = stage.program.scratch.project().canonicalize().unwrap();
        let repository = Self { stage, top };
        repository.write("a.txt", "one\n");
        repository.git("init -q -b main .");
        repository.git("config user.name T");
        repository.git("config user.email t@localhost");
        repository.git("add -A");
        repository.git("commit -q -m first");
        repository
    }

    /// Has the models follow other scripts.
    pub(crate) fn play(&self, scripts: &Value) {
        let path = self.stage.program.scratch.root().join("scenario.json");
        std::fs::write(path, json!({"scripts": scripts}).to_string()).unwrap();
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        self.stage.program.scratch.write(path, text);
    }

    pub(crate) fn git(&self, args: &str) -> String {
        git_in(&self.top, args)
    }

    pub(crate) fn run(&self, more: &[&str]) -> Told {
        self.stage.run("@@lead", &[FREE, more].concat())
    }

    pub(crate) fn worktrees(&self) -> Vec<PathBuf> {
        Self::worktrees_in(&self.top)
    }

    pub(crate) fn worktrees_in(top: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(top.join(".claude/worktrees"));
        let entries = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        let is_one = |path: &PathBuf| path.join(".git").exists();
        entries.filter(is_one).collect()
    }

    /// Everything of the checkout that an agent apart must leave alone.
    pub(crate) fn state(&self) -> String {
        let refs = self.git("for-each-ref --format=%(refname)=%(objectname)");
        let own = |line: &&str| line.contains("/worktree-") || line.contains("refs/centurion/");
        let refs: Vec<&str> = refs.lines().filter(|line| !own(line)).collect();
        let config = std::fs::read_to_string(self.top.join(".git/config")).unwrap();
        let index = self.git("ls-files --stage");
        let (files, head) = (self.git("status --porcelain"), self.git("rev-parse HEAD"));
        let mut content = String::new();
        for part in ["", ".git/hooks", ".git/info"] {
            describe(&self.top.join(part), &mut content);
        }
        format!("{refs:?}\n{config}\n{index}\n{content}\n{files}\n{head}")
    }
}

/// All files below a directory with what is in them, but for git directories and agents' worktrees.
fn describe(directory: &Path, text: &mut String) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in
        paths.iter().filter(|it| !it.ends_with(".git") && !it.ends_with(".claude/worktrees"))
    {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_symlink() {
            std::fs::read_link(path).unwrap().display().to_string()
        } else if metadata.is_dir() {
            describe(path, text);
            continue;
        } else {
            // A pipe would be waited for.
            let bytes = if metadata.is_file() { std::fs::read(path).unwrap() } else { Vec::new() };
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let mode = metadata.permissions().mode();
        text.extend([path.display().to_string(), format!(" {mode:o} {content:?}\n")]);
    }
}

pub(crate) fn git_in(directory: &Path, args: &str) -> String {
    let output = Command::new("git").args(args.split(' ')).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "git {args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The answers to an agent, and all that it was told, as text.
pub(crate) fn results(told: &Told) -> String {
    let events = told.of("user");
    events.iter().map(|event| event["message"]["content"].to_string()).collect()
}

pub(crate) fn apart(prompt: &str, more: &Value) -> Value {
    let mut wishes = json!({"isolation": "worktree"});
    wishes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent(prompt, &wishes)
}

pub(crate) fn write(path: &str, text: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": path, "content": text}})
}

#[test]
fn an_agent_apart_works_on_its_own_branch_and_its_caller_is_told_where() {
    // S-125, S-293, S-299, S-301, S-306, D-33
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [
            [write("new.txt", "new\n"), bash("pwd; git add -A && git commit -q -m work")],
            "I did it.",
        ],
    }));
    let before = repository.state();
    let told = repository.run(&[]);
    told.assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let result = told.data()[0];
    assert_eq!(result["worktreePath"], path.to_str().unwrap());
    let branch = result["worktreeBranch"].as_str().unwrap();
    let id = result["agentId"].as_str().unwrap();
    assert_eq!(branch, format!("worktree-agent-{}", &id[..8]));
    assert_eq!(*path, repository.top.join(format!(".claude/worktrees/agent-{}", &id[..8])));
    let report = &result["worktree"]["report"];
    assert_eq!(report["base"], repository.git("rev-parse HEAD"));
    assert_eq!(report["head"], repository.git(&format!("rev-parse {branch}")));
    assert_eq!((&report["ahead"], &report["behind"]), (&json!(1), &json!(0)));
    assert_eq!(report["merges"], json!([{"with": "main", "conflicts": []}]));
    let text = results(&told);
    assert!(text.contains(&format!("worktreePath: {}", path.display())), "{text}");
    assert!(text.contains(&format!("worktreeBranch: {branch}")), "{text}");
    assert!(text.contains("1 file changed") && text.contains("without conflict"), "{text}");
    assert_eq!(repository.git(&format!("show {branch}:new.txt")), "new");
    assert_eq!(repository.state(), before);
    // The card beside its transcript has it, too, and its environment names the worktree.
    let transcript = repository.stage.agent_transcripts().concat();
    assert!(transcript.contains(&format!("{}", path.display())), "{transcript}");
    let [card] = &repository.stage.agent_cards()[..] else { panic!("{transcript}") };
    assert_eq!(card["spawnedWithWorktree"], json!(true));
    assert_eq!(card["worktreePath"], path.to_str().unwrap());
    assert_eq!(card["worktreeBranch"], branch);
    assert!(card.get("worktreeCleanlyRemoved").is_none(), "{card}");
}

#[test]
fn a_path_with_a_space_and_one_that_differs_in_case_lead_to_the_worktree_and_nowhere_else() {
    // scenario 3
    let repository = Repository::new(&json!({}));
    let root = repository.stage.program.scratch.root().canonicalize().unwrap();
    let (top, other) = (root.join("My Repo"), root.join("my repo"));
    for place in [&top, &other] {
        let made =
            Command::new("git").args(["clone", "-q"]).arg(&repository.top).arg(place).status();
        assert!(made.unwrap().success());
    }
    let paths = [top.display().to_string(), other.display().to_string()];
    repository.play(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [
            [write("mine.txt", "x\n"), write(&format!("{}/a.txt", paths[0]), "bad\n"), write(&format!("{}/a.txt", paths[1]), "bad\n")],
            [bash("pwd > where.txt")],
            "did",
        ],
    }));
    let flags = ["--allowedTools", "Bash", "--permission-mode", "acceptEdits"];
    let mut command = repository.stage.command("@@lead", &flags);
    let told = Told::new(crate::program::ended(command.current_dir(&top).output().unwrap()));
    told.assert_code(0);
    let [path] = &Repository::worktrees_in(&top)[..] else { panic!("{}", told.ended.stdout) };
    assert!(path.join("mine.txt").exists() && path.starts_with(&top));
    let stood = std::fs::read_to_string(path.join("where.txt")).unwrap();
    assert_eq!(stood.trim_end(), path.to_str().unwrap());
    for place in [&top, &other] {
        assert_eq!(std::fs::read_to_string(place.join("a.txt")).unwrap(), "one\n");
    }
    assert!(Repository::worktrees_in(&other).is_empty());
}

#[test]
fn an_untracked_file_stays_when_the_session_that_left_it_is_too_old() {
    // scenario 5
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[write("new.txt", "new\n")], "did it"],
    }));
    repository.run(&[]).assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let [old] = &repository.stage.program.transcripts()[..] else { panic!("one transcript") };
    // A session is as young as its youngest part.
    let mut age = Command::new("find");
    age.arg(repository.stage.program.scratch.home()).arg(path);
    age.args(["-exec", "touch", "-h", "-d", "90 days ago", "{}", "+"]);
    assert!(age.status().unwrap().success());
    let wait = format!("until [ ! -e '{}' ]; do sleep 0.05; done", old.display());
    repository.play(&json!({"later": [[bash(&wait)], "done"]}));
    repository
        .stage
        .program
        .scratch
        .write_home(".claude/settings.json", r#"{"cleanupPeriodDays": 1}"#);
    repository.stage.run("@@later", FREE).assert_code(0);
    assert!(!old.exists());
    assert_eq!(std::fs::read_to_string(path.join("new.txt")).unwrap(), "new\n");
    let mended = repository.stage.program.run(&["worktrees", "clean"]);
    assert_eq!(mended.code, Some(0), "{}", mended.stderr);
    assert!(path.join("new.txt").exists());
    assert!(repository.git("for-each-ref refs/centurion/agents").contains("/uncommitted"));
}

#[test]
fn a_worktree_in_which_nothing_was_done_is_gone_after_the_report() {
    // S-300
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[bash("git status; ls")], "Nothing to do."],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    assert!(repository.worktrees().is_empty());
    assert_eq!(repository.git("branch --list worktree-*"), "");
    assert_eq!(repository.git("worktree list").lines().count(), 1);
    assert!(told.data()[0].get("worktreePath").is_none());
    assert!(!results(&told).contains("worktreePath"));
    let [card] = &repository.stage.agent_cards()[..] else { panic!("{}", told.ended.stdout) };
    assert_eq!(card["spawnedWithWorktree"], json!(true));
    assert_eq!(card["worktreeCleanlyRemoved"], json!(true));
    assert!(card.get("worktreePath").is_none(), "{card}");
}

#[test]
fn an_agent_in_the_background_is_told_of_with_its_worktree_before_anything_is_removed() {
    // S-305, S-306
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({"run_in_background": true})), apart("@@idle", &json!({"run_in_background": true}))], "started", "heard", "heard"],
        "child": [[write("new.txt", "new\nmore\n"), bash("echo two > a.txt")], "I did it."],
        "idle": ["Nothing."],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let news = told.ended.stdout.clone() + &transcripts(&repository.stage);
    let markup =
        format!("<worktree><worktreePath>{}</worktreePath><worktreeBranch>", path.display());
    assert!(news.contains(&markup), "{news}");
    assert_eq!(
        news.matches("<worktreePath>").count(),
        news.matches(&markup).count(),
        "one of them"
    );
    let head = repository.git("rev-parse HEAD");
    let work = format!(
        "Work in the worktree: 2 files changed since {0}: a.txt (+1 -1), new.txt (+2 -0) (+3 -1 in all); \
         its HEAD is {0}, 0 ahead, 0 behind; 2 files not committed; merges into main without conflict",
        &head[..12]
    );
    assert!(news.contains(&work), "{news}");
    // A host gets the same as data.
    let told = told.of("system");
    let ends = told.iter().filter(|event| event["subtype"] == "task_notification");
    let worktrees: Vec<&Value> = ends.filter_map(|event| event.get("worktree")).collect();
    let [worktree] = &worktrees[..] else { panic!("{worktrees:?}") };
    let report = &worktree["report"];
    assert_eq!((&report["base"], &report["head"]), (&json!(head), &json!(head)));
    assert_eq!(report["path"], path.to_str().unwrap());
    assert_eq!(
        report["files"],
        json!([{"path": "a.txt", "lines": [1, 1]}, {"path": "new.txt", "lines": [2, 0]}])
    );
    assert_eq!(report["merges"], json!([{"with": "main", "conflicts": []}]));
}

#[test]
fn a_worktree_of_the_background_is_let_go_after_the_end_of_its_agent_is_recorded() {
    // S-305
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({"run_in_background": true}))], "started", "heard"],
        "child": [[write("hooked.txt", "x\n")], "did"],
    }));
    let root = repository.stage.program.scratch.root().canonicalize().unwrap();
    let (made, seen) = (root.join("made"), root.join("seen"));
    // The transcript of the agent at that moment.
    let look = format!("cat $HOME/.centurion/projects/*/*/subagents/*.jsonl > {}", seen.display());
    let create = format!("mkdir -p {0}; echo {0}", made.display());
    let settings = json!({"hooks": {
        "WorktreeCreate": [{"hooks": [{"type": "command", "command": create}]}],
        "WorktreeRemove": [{"hooks": [{"type": "command", "command": look}]}],
    }});
    repository.run(&["--settings", &settings.to_string()]).assert_code(0);
    let seen = std::fs::read_to_string(seen).unwrap();
    let is_end = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["subtype"] == "agent_end" && line.to_string().contains("\"completed\"")
    };
    assert_eq!(seen.lines().filter(|line| is_end(line)).count(), 1, "{seen}");
}

/// A run on a machine whose user gets no namespaces, so that nothing can be mounted over the checkout.
fn run_without_namespaces(repository: &Repository, more: &[&str]) -> Told {
    let none = "for kind in user mnt; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done";
    run_after(repository, none, more)
}

/// A run in a mount namespace of its own, after commands there.
fn run_after(repository: &Repository, commands: &str, more: &[&str]) -> Told {
    let command = repository.stage.command("@@lead", &[FREE, more].concat());
    let script = format!("set -e; {commands}; exec \"$@\"");
    let mut outer = Command::new("unshare");
    outer.args(["-U", "-r", "-m", "sh", "-c", &script, "sh"]).arg(command.get_program());
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    outer.args(command.get_args()).env_clear().envs(set).current_dir(&repository.top);
    Told::new(crate::program::ended(outer.stdin(Stdio::null()).output().unwrap()))
}

#[test]
fn a_launch_fails_with_the_reason_where_nothing_can_be_written_and_leaves_nothing() {
    let available = Command::new("unshare").args(["-U", "-r", "-m", "true"]).status();
    if !available.is_ok_and(|status| status.success()) {
        return skip(Lack::Namespaces);
    }
    for (mount, reason) in [
        ("mkdir -p .claude; mount -t tmpfs -o ro none .claude", "Read-only file system"),
        (
            "mkdir -p .git/centurion; mount -t tmpfs -o ro none .git/centurion",
            "Read-only file system",
        ),
        ("mkdir -p .claude; mount -t tmpfs -o size=64k none .claude", "no space is left"),
        (
            "mkdir -p .git/centurion; mount -t tmpfs -o size=4k none .git/centurion",
            "No space left on device",
        ),
    ] {
        let repository = Repository::new(&json!({
            "lead": [[apart("@@child", &json!({}))], "done"],
            "child": ["never"],
        }));
        repository.write("large.txt", &"0123456789\n".repeat(40_000));
        repository.git("add -A");
        repository.git("commit -q -m large");
        let before = repository.state();
        let told = run_after(&repository, mount, &[]);
        told.assert_code(0);
        let text = results(&told);
        assert!(text.contains(reason), "{mount}: {text}");
        assert!(!told.ended.stdout.contains("task_started"), "{mount}");
        assert_eq!(repository.state(), before, "{mount}");
        // The next process finds nothing that it cannot bring in order.
        let cleaned = repository.stage.program.run(&["worktrees", "clean"]);
        assert_eq!(cleaned.code, Some(0), "{mount}: {}{}", cleaned.stdout, cleaned.stderr);
        assert_eq!(repository.git("branch --list worktree-*"), "", "{mount}");
        assert_eq!(repository.git("worktree list").lines().count(), 1, "{mount}");
    }
}

#[test]
fn several_processes_make_worktrees_in_one_repository_at_once() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({})), apart("@@child", &json!({}))], "done"],
        "child": [[bash("echo mine > mine.txt; git add -A; git commit -q -m mine")], "did"],
    }));
    let before = repository.state();
    let start = || repository.stage.command("@@lead", FREE).spawn().unwrap();
    let children: Vec<_> = (0..3).map(|_| start()).collect();
    for child in children {
        let ended = crate::program::ended(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(ended.stdout.matches("worktreeBranch: ").count(), 2, "{}", ended.stdout);
    }
    assert_eq!(repository.worktrees().len(), 6);
    let subjects = repository.git("for-each-ref --format=%(subject) refs/heads/worktree-*");
    assert_eq!(subjects.lines().filter(|it| *it == "mine").count(), 6);
    assert_eq!(repository.state(), before);
}

#[test]
fn a_resumed_agent_whose_worktree_is_gone_says_so() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[write("new.txt", "new\n")], "did"],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    let id = told.data()[0]["agentId"].as_str().unwrap().to_owned();
    for path in repository.worktrees() {
        std::fs::remove_dir_all(path).unwrap();
    }
    let before = repository.state();
    repository.play(&json!({
        "lead": [[{"tool": "SendMessage", "input": {"to": id, "message": "@@child again"}}], "done", "heard"],
        "child": [[write("again.txt", "bad\n")], "did"],
    }));
    let told = repository.run(&["--continue"]);
    let heard = results(&told) + &transcripts(&repository.stage);
    assert!(heard.contains(".claude/worktrees/agent-"), "{heard}");
    let is_said = ["it cannot work where it did", "No such file or directory", "entity not found"];
    assert!(is_said.iter().any(|it| heard.contains(it)), "{heard}");
    assert!(!repository.top.join("again.txt").exists());
    assert_eq!(repository.state(), before);
}

#[test]
fn what_cannot_be_kept_from_commands_is_said_at_launch_and_in_every_result_or_refused() {
    let available = Command::new("unshare").args(["-U", "-r", "-m", "true"]).status();
    if !available.is_ok_and(|status| status.success()) {
        return skip(Lack::Namespaces);
    }
    let scripts = |more: &Value| {
        json!({
            "lead": [[apart("@@child", more)], "done", "heard"],
            "child": [[write("new.txt", "new\n")], "I did it."],
        })
    };
    let words = "its commands are not kept from the checkout that it works apart from: ";
    for is_background in [false, true] {
        let repository = Repository::new(&scripts(&json!({"run_in_background": is_background})));
        let told = run_without_namespaces(&repository, &[]);
        told.assert_code(0);
        let warned = told.of("system").iter().any(|event| {
            event["subtype"] != "task_notification" && event.to_string().contains(words)
        });
        assert!(warned || told.ended.stderr.contains(words), "{}", told.ended.stdout);
        let heard = results(&told) + &transcripts(&repository.stage);
        let result = if is_background {
            format!("<not-confined>{words}")
        } else {
            format!("Note that {words}")
        };
        assert!(heard.contains(&result), "{heard}");
        // With the setting no such agent is started.
        repository.play(&scripts(&json!({})));
        let before = repository.worktrees().len();
        let strict = ["--settings", r#"{"worktree": {"requireSandbox": true}}"#];
        let told = run_without_namespaces(&repository, &strict);
        let text = results(&told);
        assert!(text.contains("commands cannot be kept from the checkout here"), "{text}");
        assert!(text.contains("worktree.requireSandbox asks for that"), "{text}");
        assert_eq!(repository.worktrees().len(), before);
    }
}

fn transcripts(stage: &Stage) -> String {
    let paths = stage.program.transcripts();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn file_tools_of_an_agent_apart_do_not_reach_the_checkout() {
    // I-6; scenario 1
    let repository = Repository::new(&json!({}));
    let top = repository.top.display().to_string();
    let edit = json!({"tool": "Edit", "input": {"file_path": format!("{top}/a.txt"), "old_string": "one", "new_string": "two"}});
    let read = json!({"tool": "Read", "input": {"file_path": format!("{top}/a.txt")}});
    repository.play(&json!({
        "lead": [[apart(&format!("@@child change {top}/a.txt"), &json!({}))], "done"],
        "child": [
            [write(&format!("{top}/a.txt"), "bad\n"), read, write("../../../up.txt", "bad\n"), write(&format!("{top}/.git/hooks/pre-commit"), "bad\n"), write(".git", "gitdir: /tmp\n")],
            [bash(&format!("ln -s {top}/a.txt link; ln {top}/a.txt hard; true"))],
            [write("link", "bad\n"), write("hard", "bad\n"), edit],
            "tried",
        ],
    }));
    let before = repository.state();
    let told = repository.run(&[]);
    told.assert_code(0);
    assert_eq!(repository.state(), before);
    assert_eq!(std::fs::read_to_string(repository.top.join("a.txt")).unwrap(), "one\n");
    assert!(!repository.top.join("up.txt").exists());
    assert!(!repository.top.join(".git/hooks/pre-commit").exists());
    let text = repository.stage.agent_transcripts().concat();
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    assert!(text.contains(&format!("its own is {}/a.txt", path.display())), "{text}");
}

#[test]
fn commands_of_an_agent_apart_begin_in_its_worktree_and_leave_the_checkout_alone() {
    // I-6; scenario 2
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    let repository = Repository::new(&json!({}));
    let top = repository.top.display().to_string();
    repository.play(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [
            [bash(&format!("cd {top} && git commit -q --allow-empty -m bad; echo bad > {top}/a.txt; git -C {top} branch bad; git push -q {top} HEAD:main; cd {top}"))],
            [bash("pwd > where.txt; git rev-parse --show-toplevel >> where.txt")],
            "tried",
        ],
    }));
    let before = repository.state();
    repository.run(&[]).assert_code(0);
    assert_eq!(repository.state(), before);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let stood = std::fs::read_to_string(path.join("where.txt")).unwrap();
    assert_eq!(stood, format!("{0}\n{0}\n", path.display()));
}

#[test]
fn the_callers_own_checkout_is_kept_wherever_it_is() {
    // I-6
    let repository = Repository::new(&json!({}));
    let root = repository.stage.program.scratch.root().canonicalize().unwrap();
    let linked = root.join("linked");
    repository.git(&format!("worktree add -q -b linked {}", linked.display()));
    let at = linked.display();
    let git = repository.top.join(".git").display().to_string();
    repository.play(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [
            [write(&format!("{at}/a.txt"), "bad\n"), write(&format!("{at}/new.txt"), "bad\n"), write(&format!("{git}/hooks/post-commit"), "bad\n")],
            [bash(&format!("echo bad >> {at}/a.txt; git -C {at} commit -q --allow-empty -m bad; true"))],
            [write("mine.txt", "x\n")],
            "tried",
        ],
    }));
    let before = (repository.state(), git_in(&linked, "rev-parse HEAD"));
    let mut command = repository.stage.command("@@lead", FREE);
    let ended = crate::program::ended(command.current_dir(&linked).output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!((repository.state(), git_in(&linked, "rev-parse HEAD")), before);
    assert_eq!(git_in(&linked, "status --porcelain"), "");
    let [path] = &repository.worktrees()[..] else { panic!("{}", ended.stdout) };
    assert!(path.join("mine.txt").exists());
}

#[test]
fn agents_below_one_apart_are_in_its_worktree_or_have_their_own() {
    let repository = Repository::new(&json!({}));
    let top = repository.top.display().to_string();
    repository.play(&json!({
        "lead": [[apart("@@outer", &json!({}))], "done"],
        "outer": [
            [bash("git commit -q --allow-empty -m outer"), agent("@@inside", &json!({}))],
            [apart("@@own", &json!({}))],
            "both",
        ],
        "inside": [[write(&format!("{top}/a.txt"), "bad\n"), write("inside.txt", "x\n"), bash("pwd")], "inside"],
        "own": [[write("own.txt", "x\n"), bash("git log --format=%s -1 > log.txt")], "own"],
    }));
    let before = repository.state();
    repository.run(&[]).assert_code(0);
    assert_eq!(repository.state(), before);
    let worktrees = repository.worktrees();
    assert_eq!(worktrees.len(), 2, "{worktrees:?}");
    let with =
        |name: &str| worktrees.iter().filter(|path| path.join(name).exists()).collect::<Vec<_>>();
    let (inside, own) = (with("inside.txt"), with("own.txt"));
    assert_eq!((inside.len(), own.len()), (1, 1));
    assert_ne!(inside, own);
    // It began at the commit of the one that started it.
    assert_eq!(std::fs::read_to_string(own[0].join("log.txt")).unwrap(), "outer\n");
}

#[test]
fn isolation_is_given_or_the_launch_fails_with_the_reason() {
    // S-125, I-5; scenario 3
    let scripts = json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": ["never"],
    });
    let stage = Stage::new(&scripts);
    let told = stage.run("@@lead", FREE);
    let text = results(&told);
    assert!(
        text.contains("isolation: worktree cannot be given")
            && text.contains("not in a git repository"),
        "{text}"
    );
    let repository = Repository::new(&scripts);
    repository.git("update-ref -d HEAD");
    let text = results(&repository.run(&[]));
    assert!(text.contains("no commit yet"), "{text}");
    // By the definition alone, it is the same.
    let repository = Repository::new(&json!({
        "lead": [[agent("@@child", &json!({"subagent_type": "apart"}))], "done"],
        "child": [[write("x.txt", "x\n")], "did"],
    }));
    repository.stage.program.scratch.write_home(
        ".claude/agents/apart.md",
        "---\nname: apart\ndescription: Works apart\nisolation: worktree\n---\nWork.\n",
    );
    repository.run(&[]).assert_code(0);
    assert_eq!(repository.worktrees().len(), 1);
    assert!(!repository.top.join("x.txt").exists());
}

#[test]
fn an_agent_that_continues_is_back_in_its_worktree_in_this_process_and_a_later_one() {
    // Scenario 6
    let message =
        |text: &str| json!({"tool": "SendMessage", "input": {"to": "worker", "message": text}});
    let repository = Repository::new(&json!({
        "lead": [
            [apart("@@child", &json!({"name": "worker"}))],
            [message("@@more")],
            "waiting", "heard",
        ],
        "child": [[write("first.txt", "1\n"), bash("git add -A && git commit -q -m first-work")], "first"],
        "more": [[write("second.txt", "2\n"), bash("git add -A && git commit -q -m second-work; pwd")], "second"],
        "again": [[message("@@third")], "waiting", "heard"],
        "third": [[write("third.txt", "3\n")], "third"],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let branch = git_in(path, "branch --show-current");
    assert_eq!(
        repository.git(&format!("log --format=%s main..{branch}")),
        "second-work\nfirst-work"
    );
    let told = repository.stage.run("@@again", &[FREE, &["--continue"]].concat());
    told.assert_code(0);
    assert!(path.join("third.txt").exists(), "{}", told.ended.stdout);
    assert!(!repository.top.join("third.txt").exists());
    assert_eq!(git_in(path, "status --porcelain"), "?? third.txt");
}

#[test]
fn a_worktree_that_another_deletes_is_missed_and_nothing_runs_elsewhere() {
    // Scenario 7
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [
            [bash("git commit -q --allow-empty -m work; touch ../../../ready 2>/dev/null; echo wait''ing")],
            [bash("touch ran.txt")],
            "tried",
        ],
    }));
    let top = repository.top.clone();
    let mut command = repository.stage.command("@@lead", FREE);
    let ended = run_and(
        &mut command,
        |line| line.contains("waiting"),
        || {
            for path in Repository::worktrees_in(&top) {
                let _ = std::fs::remove_dir_all(path);
            }
        },
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!repository.top.join("ran.txt").exists());
    // The commits that it had made are still there.
    let branches = repository.git("for-each-ref --format=%(subject) refs/heads/worktree-*");
    assert_eq!(branches, "work");
}

#[test]
fn a_fork_apart_is_told_to_mean_its_own_paths() {
    // S-275
    let repository = Repository::new(&json!({
        "lead": [[apart("@@work", &json!({"subagent_type": "fork"}))], "meanwhile", "heard"],
        "work": [[write("forked.txt", "x\n")], "Scope: did"],
    }));
    let told = repository.run(&["--settings", r#"{"subagents":{"fork":"always"}}"#]);
    told.assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{}", told.ended.stdout) };
    assert!(path.join("forked.txt").exists());
    let text = repository.stage.agent_transcripts().concat();
    let notice = format!("You work apart from the others, in {}", path.display());
    assert!(text.contains(&notice) && text.contains("read them again there"), "{text}");
}

#[test]
fn hooks_make_and_remove_worktrees_in_gits_place() {
    // S-303, S-307, D-21
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[write("hooked.txt", "x\n")], "did"],
    }));
    let place = repository.stage.program.scratch.root().canonicalize().unwrap().join("made");
    let (made, removed) = (place.display(), place.with_extension("removed"));
    let settings = json!({"hooks": {
        "WorktreeCreate": [{"hooks": [{"type": "command", "command": format!("mkdir -p {made}; echo {made}")}]}],
        "WorktreeRemove": [{"hooks": [{"type": "command", "command": format!("cat > {}", removed.display())}]}],
    }});
    let told = repository.run(&["--settings", &settings.to_string()]);
    told.assert_code(0);
    assert!(place.join("hooked.txt").exists(), "{}", told.ended.stdout);
    let result = told.data()[0];
    assert_eq!(result["worktreePath"], place.to_str().unwrap());
    assert!(result.get("worktreeBranch").is_none());
    assert!(std::fs::read_to_string(removed).unwrap().contains("\"worktree_path\""));
    let failing = json!({"hooks": {"WorktreeCreate": [{"hooks": [{"type": "command", "command": "exit 3"}]}]}});
    let text = results(&repository.run(&["--settings", &failing.to_string()]));
    assert!(text.contains("the WorktreeCreate hook made none"), "{text}");
}

#[test]
fn a_process_that_is_killed_leaves_work_that_the_next_one_brings_home() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [
            [write("work.txt", "work\n"), bash("git add -A && git commit -q -m killed; echo commit''ted")],
            {"text": "never", "latency_ms": 60_000},
        ],
        "idle": ["nothing"],
    }));
    let mut command = repository.stage.command("@@lead", FREE);
    let mut child = command.spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stdout)).map_while(Result::ok);
    assert!(lines.any(|line| line.contains("committed")));
    child.kill().unwrap();
    child.wait().unwrap();
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    assert_eq!(repository.git("for-each-ref --format=%(subject) refs/heads/worktree-*"), "first");
    // A session that starts no such agent says what there is.
    repository.play(&json!({"lead": ["done"]}));
    let warned = |told: &Told| {
        let words = "worktrees of agents are not in order here: agent-";
        told.of("system").iter().any(|it| it["content"].to_string().contains(words))
    };
    assert!(warned(&repository.run(&[])));
    // The next agent that works apart looks after it.
    repository.play(&json!({"lead": [[apart("@@idle", &json!({}))], "done"], "idle": ["nothing"]}));
    let told = repository.run(&[]);
    told.assert_code(0);
    assert_eq!(repository.git("for-each-ref --format=%(subject) refs/heads/worktree-*"), "killed");
    assert_eq!(std::fs::read_to_string(path.join("work.txt")).unwrap(), "work\n");
    assert!(
        told.ended.stdout.contains("a process that died had left work there"),
        "{}",
        told.ended.stdout
    );
}

/// The processes of git that have a directory for their home.
fn gits_of(home: &Path) -> Vec<PathBuf> {
    let home = format!("HOME={}", home.display());
    let words = |process: &Path, file: &str| {
        let bytes = std::fs::read(process.join(file)).unwrap_or_default();
        let words = String::from_utf8_lossy(&bytes).into_owned();
        words.split('\0').map(str::to_owned).collect::<Vec<_>>()
    };
    let is_git = |process: &PathBuf| {
        words(process, "cmdline")[0].ends_with("/git") && words(process, "environ").contains(&home)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.filter(is_git).collect()
}

#[test]
fn git_that_works_for_a_person_ends_with_the_command_that_asked_for_it() {
    let repository = Repository::new(&json!({}));
    let home = repository.stage.program.scratch.home();
    // Of a usual repository, git need not be asked.
    repository.git("config extensions.worktreeConfig true");
    // Git waits for a writer that never comes.
    let pipe = home.join(".gitconfig");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = repository.stage.program.command(["worktrees", "list"]).spawn().unwrap();
    let at_work = || !gits_of(&home).is_empty();
    eventually("a git at work", || at_work().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the end of git", || (!at_work()).then_some(()));
}

#[test]
fn people_see_merge_clear_away_and_bring_back_what_agents_left() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@one", &json!({"description": "Add new"})), apart("@@two", &json!({"description": "Change a"}))], "done"],
        "one": [[write("new.txt", "new\n")], "did"],
        "two": [[bash("echo two >> a.txt && git commit -q -a -m two")], "did"],
    }));
    let command = |args: &[&str]| {
        let all: Vec<&str> = [&["worktrees"], args].concat();
        crate::program::ended(repository.stage.program.command(all).output().unwrap())
    };
    assert!(command(&[]).stdout.contains("no worktrees"));
    repository.run(&[]).assert_code(0);
    let listed = command(&["list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let named = |task: &str| {
        let all = listed.as_array().unwrap();
        let entry = all.iter().find(|it| it["task"] == task).unwrap();
        (entry["name"].as_str().unwrap().to_owned(), entry["agent"].as_str().unwrap().to_owned())
    };
    let (one, agent) = named("Add new");
    let (two, _) = named("Change a");
    let shown = command(&["show", &one]).stdout;
    assert!(shown.contains("1 not committed") && shown.contains("merges:  with main"), "{shown}");
    let committed = command(&["show", &two]).stdout;
    assert!(committed.contains("1 ahead") && !committed.contains("not committed"), "{committed}");
    assert!(command(&["diff", &one]).stdout.contains("+new"));
    // One is merged with what it had not committed, and goes.
    let merged = command(&["merge", &one, "--squash", "-m", "Bring new"]);
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    assert_eq!(repository.git("log --format=%s -1"), "Bring new");
    assert_eq!(std::fs::read_to_string(repository.top.join("new.txt")).unwrap(), "new\n");
    let refused = command(&["clean", &two]);
    assert!(refused.stderr.contains("no other branch has the commits"), "{}", refused.stderr);
    let gone = command(&["clean", &one, "--force"]);
    assert!(gone.stdout.contains(&format!("restore {agent}")), "{}{}", gone.stdout, gone.stderr);
    assert_eq!(command(&["restore", &agent]).code, Some(0));
    // The other one is in conflict by now: everything stays, and the reason is told.
    repository.write("a.txt", "one\nmine\n");
    repository.git("commit -q -a -m mine");
    let before = repository.state();
    let refused = command(&["merge", &two]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("a.txt") && refused.stderr.contains("help:"),
        "{}",
        refused.stderr
    );
    assert_eq!(repository.state(), before);
    assert!(command(&["show", "nonsense"]).stderr.contains(&two));
    assert!(command(&["clean"]).stdout.contains("in order"));
}
