//! Sessions that go to work in a worktree: by the tools, by `--worktree`, and again when they are resumed.

use serde_json::{Value, json};

use crate::stage::bash;
use crate::worktrees::{Repository, apart, git_in, results};

fn enter(input: &Value) -> Value {
    json!({"tool": "EnterWorktree", "input": input})
}

fn exit(input: &Value) -> Value {
    json!({"tool": "ExitWorktree", "input": input})
}

fn edit(path: &str, text: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": path, "content": text}})
}

const TOOLS: &[&str] = &["--allowedTools", "EnterWorktree,ExitWorktree"];

#[test]
fn a_session_works_in_a_worktree_and_comes_back() {
    // The model's shell, its relative paths and its agents are there; the checkout stays as it is.
    let repository = Repository::new(&json!({"lead": []}));
    let top = repository.top.display().to_string();
    repository.play(&json!({
        "lead": [
            [enter(&json!({"name": "user/feat"}))],
            [bash("pwd; git branch --show-current"), edit("new.txt", "new\n")],
            [edit(&format!("{top}/a.txt"), "two\n")],
            [crate::stage::agent("@@child", &json!({}))],
            [enter(&json!({"name": "other"}))],
            [bash("git add -A && git commit -q -m work")],
            [exit(&json!({"action": "keep"}))],
            [bash("pwd"), edit(&format!("{top}/b.txt"), "b\n")],
            "done",
        ],
        "child": [[bash("echo child in $(pwd)")], "fine"],
    }));
    let told = repository.run(TOOLS);
    told.assert_code(0);
    let text = results(&told);
    let place = repository.top.join(".claude/worktrees/user+feat");
    assert!(text.contains(&format!("{}\\nworktree-user+feat", place.display())), "{text}");
    assert!(text.contains(&format!("its own is {}/a.txt", place.display())), "{text}");
    assert!(text.contains("leave it with ExitWorktree first"), "{text}");
    assert!(
        text.contains(&format!("Primary working directory: {top} (was {})", place.display())),
        "{text}"
    );
    assert!(
        repository
            .stage
            .agent_transcripts()
            .concat()
            .contains(&format!("child in {}", place.display()))
    );
    assert_eq!(repository.git("show worktree-user+feat:new.txt"), "new");
    assert_eq!(repository.git("status --porcelain"), "?? b.txt");
    assert!(repository.top.join("b.txt").exists());
}

#[test]
fn what_is_nowhere_else_stays_or_is_saved_before_a_worktree_goes() {
    let repository = Repository::new(&json!({
        "lead": [
            [enter(&json!({"name": "gone"}))],
            [exit(&json!({"action": "remove"}))],
            [enter(&json!({"name": "work"}))],
            [edit("kept.txt", "kept\n")],
            [exit(&json!({"action": "remove"}))],
            [bash("pwd")],
            [exit(&json!({"action": "remove", "discard_changes": true}))],
            [exit(&json!({"action": "keep"}))],
            "done",
        ],
    }));
    let told = repository.run(TOOLS);
    told.assert_code(0);
    let text = results(&told);
    let place = repository.top.join(".claude/worktrees/work");
    assert!(text.contains("1 of its files are not committed"), "{text}");
    assert!(text.contains(&format!("{}\"", place.display())), "{text}");
    assert!(text.contains("is saved"), "{text}");
    assert!(text.contains("no worktree was entered"), "{text}");
    assert!(!place.exists() && repository.worktrees().is_empty());
    assert_eq!(repository.git("branch --list worktree-*"), "");
    let saved = repository.git("for-each-ref --format=%(refname) refs/centurion/");
    let files = saved.lines().find(|name| name.ends_with("/uncommitted")).unwrap();
    assert_eq!(repository.git(&format!("show {files}:kept.txt")), "kept");
    // The command that both name restores it.
    assert!(text.contains("`centurion worktrees restore work`"), "{text}");
    for _ in 0..2 {
        let back = repository.stage.program.run(&["worktrees", "restore", "work"]);
        assert_eq!(back.code, Some(0), "{}", back.stderr);
        assert_eq!(std::fs::read_to_string(place.join("kept.txt")).unwrap(), "kept\n");
        let gone = repository.stage.program.run(&["worktrees", "clean", "work", "--force"]);
        assert!(gone.stdout.contains("centurion worktrees restore work"), "{}", gone.stdout);
    }
}

#[test]
fn a_session_begins_in_a_worktree_and_continues_there_when_it_is_resumed() {
    let repository = Repository::new(&json!({
        "lead": [[bash("pwd")], "done"],
    }));
    let place = repository.top.join(".claude/worktrees/mine");
    let told = repository.run(&["--worktree", "mine"]);
    told.assert_code(0);
    assert_eq!(told.of("system")[0]["cwd"], place.to_str().unwrap());
    assert!(results(&told).contains(place.to_str().unwrap()));
    // No clean-up by a run without a person.
    assert!(place.join(".git").exists());
    let session = told.of("result")[0]["session_id"].as_str().unwrap().to_owned();
    let again = repository.run(&["--resume", &session]);
    again.assert_code(0);
    assert!(results(&again).contains(place.to_str().unwrap()), "{}", results(&again));
    // Gone in between: that is said, and the session works where it was started.
    git_in(&repository.top, "worktree remove --force .claude/worktrees/mine");
    let again = repository.run(&["--resume", &session]);
    again.assert_code(0);
    assert!(!results(&again).contains(place.to_str().unwrap()), "{}", results(&again));
    let told: String = again.of("system").iter().map(ToString::to_string).collect();
    assert!(told.contains("this session worked in"), "{told}");
    // Without a name it is called after the session.
    let unnamed = repository.run(&["--session-id", "0b0e8a1c-0000-4000-8000-000000000001", "-w"]);
    unnamed.assert_code(0);
    assert!(repository.top.join(".claude/worktrees/session-0b0e8a1c/.git").exists());
    // A name that leads elsewhere, and a place that is no repository.
    for name in ["../up", "/abs", "a/../b", "#12"] {
        let refused = repository.run(&["--worktree", name]);
        refused.assert_code(1);
        assert!(refused.ended.stderr.contains("--worktree"), "{}", refused.ended.stderr);
    }
}

#[test]
fn only_worktrees_of_this_repository_are_entered_by_their_paths() {
    let repository = Repository::new(&json!({"lead": []}));
    let scratch = repository.stage.program.scratch.root().to_owned();
    let (own, foreign) = (scratch.join("linked"), scratch.join("foreign"));
    repository.git(&format!("worktree add -q -b linked {}", own.display()));
    std::fs::create_dir(&foreign).unwrap();
    git_in(&foreign, "init -q .");
    git_in(&foreign, "-c user.name=T -c user.email=t@localhost commit -q --allow-empty -m x");
    let path = |path: &std::path::Path| enter(&json!({"path": path}));
    repository.play(&json!({
        "lead": [
            [path(&foreign)],
            [path(&repository.top)],
            [path(&own.join("sub"))],
            [enter(&json!({"path": own, "name": "x"}))],
            [path(&own)],
            [bash("pwd"), edit("c.txt", "c\n")],
            [exit(&json!({"action": "remove"}))],
            [exit(&json!({"action": "keep"}))],
            "done",
        ],
    }));
    let told = repository.run(TOOLS);
    told.assert_code(0);
    let text = results(&told);
    assert!(text.contains("is no worktree of the repository"), "{text}");
    assert!(text.contains("is the checkout that you are in"), "{text}");
    assert!(text.contains("not both"), "{text}");
    assert!(text.contains("was not made by this program"), "{text}");
    assert_eq!(std::fs::read_to_string(own.join("c.txt")).unwrap(), "c\n");
}

#[test]
fn entering_a_worktree_needs_permission_as_a_write_does() {
    let repository = Repository::new(&json!({
        "lead": [[enter(&json!({"name": "asked"}))], [bash("pwd")], "done"],
    }));
    let run = |more: &[&str]| {
        repository.stage.run("@@lead", &[&["--allowedTools", "Bash"], more].concat())
    };
    let told = run(&[]);
    told.assert_code(0);
    assert!(!repository.top.join(".claude/worktrees/asked").exists());
    let told = run(&["--permission-mode", "acceptEdits"]);
    told.assert_code(0);
    assert!(repository.top.join(".claude/worktrees/asked/.git").exists(), "{}", results(&told));
}

#[test]
fn a_directory_that_was_entered_is_given_back() {
    // While the session is there, and after: what rules say of the checkout, they say of it.
    let repository = Repository::new(&json!({"lead": []}));
    repository.write("conf/key", "s3cret\n");
    repository.git("add -A");
    repository.git("commit -q -m key");
    let elsewhere = repository.stage.program.scratch.root().join("elsewhere");
    repository.git(&format!("worktree add -q -b linked {}", elsewhere.display()));
    let read = json!({"tool": "Read", "input": {"file_path": elsewhere.join("conf/key")}});
    let new = elsewhere.join("new.rs").display().to_string();
    repository.play(&json!({
        "lead": [
            [enter(&json!({"path": elsewhere}))],
            [read],
            [exit(&json!({"action": "keep"}))],
            [read, edit(&new, "x\n")],
            "done",
        ],
    }));
    let deny = json!({"permissions": {"deny": ["Read(/conf/key)"]}}).to_string();
    let told = repository.stage.run(
        "@@lead",
        &[
            "--allowedTools",
            "EnterWorktree",
            "--permission-mode",
            "acceptEdits",
            "--settings",
            &deny,
        ],
    );
    told.assert_code(0);
    let text = results(&told);
    assert!(text.contains("Primary working directory"), "{text}");
    assert!(!text.contains("s3cret") && !elsewhere.join("new.rs").exists(), "{text}");
}

#[test]
fn a_resumed_session_follows_no_link_and_no_words_to_its_worktree() {
    let repository = Repository::new(&json!({
        "lead": [
            [enter(&json!({"name": "mine"}))],
            [json!({"tool": "Bash", "input": {"command": "true", "subtype": "worktree_entered"}})],
            "done",
        ],
        "again": [[bash("pwd")], "done"],
    }));
    let told = repository.run(TOOLS);
    told.assert_code(0);
    let session = told.of("result")[0]["session_id"].as_str().unwrap().to_owned();
    let again =
        || repository.stage.run("@@again", &["--allowedTools", "Bash", "--resume", &session]);
    let place = repository.top.join(".claude/worktrees/mine");
    let told = again();
    assert!(results(&told).contains(place.to_str().unwrap()), "{}", results(&told));
    // In its place there is a link to another worktree of the repository now.
    let elsewhere = repository.stage.program.scratch.root().join("elsewhere");
    repository.git(&format!("worktree add -q -b linked {}", elsewhere.display()));
    std::fs::rename(&place, repository.top.join(".claude/worktrees/aside")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &place).unwrap();
    let text = results(&again());
    assert!(!text.contains("elsewhere"), "{text}");
}

#[test]
fn a_worktree_in_which_an_agent_works_is_not_removed() {
    let wait = "until [ -e go ]; do sleep 0.05; done; echo work > late.txt";
    let repository = Repository::new(&json!({
        "lead": [
            [enter(&json!({"name": "shared"}))],
            [crate::stage::agent("@@child", &json!({"run_in_background": true}))],
            [exit(&json!({"action": "remove", "discard_changes": true}))],
            [bash("touch go")],
            "waiting",
            "done",
        ],
        "child": [[bash(wait)], "ended"],
    }));
    let told = repository.run(TOOLS);
    told.assert_code(0);
    let text = results(&told);
    assert!(text.contains("others work in it"), "{text}");
    let late = repository.top.join(".claude/worktrees/shared/late.txt");
    assert_eq!(std::fs::read_to_string(late).unwrap(), "work\n");
}

#[test]
fn an_agent_that_is_sent_on_works_in_the_worktree_that_it_had_entered() {
    let repository = Repository::new(&json!({
        "lead": [
            [crate::stage::agent("@@child", &json!({"name": "kid"}))],
            [json!({"tool": "SendMessage", "input": {"to": "kid", "message": "@@more", "summary": "on"}})],
            "waiting",
            "done",
        ],
        "child": [[enter(&json!({"name": "kids"}))], "there"],
        "more": [[bash("echo now in $(pwd)")], "done"],
    }));
    let told = repository.run(TOOLS);
    told.assert_code(0);
    let place = repository.top.join(".claude/worktrees/kids");
    let transcripts = repository.stage.agent_transcripts().concat();
    assert!(transcripts.contains(&format!("now in {}", place.display())), "{transcripts}");
}

#[test]
fn a_main_agent_whose_definition_says_so_works_in_a_worktree() {
    let agents = json!({"loner": {
        "description": "d", "prompt": "p", "isolation": "worktree",
    }})
    .to_string();
    let repository = Repository::new(&json!({
        "lead": [[bash("pwd; git branch --show-current")], [edit("new.txt", "new\n")], "done"],
    }));
    let told = repository.run(&["--agents", &agents, "--agent", "loner"]);
    told.assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let text = results(&told);
    assert!(text.contains(&format!("{}\\nworktree-session-", path.display())), "{text}");
    assert!(path.join("new.txt").exists() && !repository.top.join("new.txt").exists());
    assert_eq!(repository.git("status --porcelain"), "");
    // The session does not start if it can have no worktree.
    std::fs::remove_dir_all(repository.top.join(".git")).unwrap();
    std::fs::remove_dir_all(repository.top.join(".claude")).unwrap();
    let refused = repository.run(&["--agents", &agents, "--agent", "loner"]);
    assert_ne!(refused.ended.code, Some(0));
    assert!(refused.ended.stderr.contains("isolation: worktree"), "{}", refused.ended.stderr);
}

#[test]
fn a_worktree_that_cannot_go_stays_away_from_other_processes() {
    let held = "sh ../../../held.sh";
    let repository = Repository::new(&json!({
        "lead": [
            [enter(&json!({"name": "w"}))],
            [bash(held)],
            [edit("kept.txt", "kept\n")],
            [exit(&json!({"action": "remove"}))],
            [bash(held)],
            "done",
        ],
    }));
    let lease = repository.top.join(".git/centurion/worktrees/w/lease");
    repository.write("held.sh", &format!("flock -n {} echo free || echo held", lease.display()));
    let told = repository.run(TOOLS);
    told.assert_code(0);
    let text = results(&told);
    assert!(text.contains("1 of its files are not committed"), "{text}");
    assert_eq!((text.matches("held").count(), text.matches("free").count()), (2, 0), "{text}");
}

#[test]
fn what_cannot_be_entered_or_left_says_why() {
    let repository = Repository::new(&json!({}));
    let background = |command: &str| json!({"tool": "Bash", "input": {"command": command, "run_in_background": true}});
    repository.play(&json!({
        "lead": [
            [apart("@@child", &json!({}))],
            [enter(&json!({"name": "one", "path": "two"}))],
            [enter(&json!({"name": "mine"}))],
            [background("until [ -e stop ]; do sleep 0.05; done")],
            [exit(&json!({"action": "remove", "discard_changes": true}))],
            [bash("touch stop; pwd")],
            [exit(&json!({"action": "keep"}))],
            "waiting",
            "done",
        ],
        "child": [[enter(&json!({"name": "theirs"}))], [bash("touch here.txt")], "tried"],
    }));
    let told = repository.run(TOOLS);
    told.assert_code(0);
    let (text, below) = (results(&told), repository.stage.agent_transcripts().concat());
    assert!(below.contains("No such tool available: EnterWorktree"), "{below}");
    assert!(!repository.top.join(".claude/worktrees/theirs").exists());
    assert!(text.contains("give a name or a path, not both"), "{text}");
    assert!(text.contains("still runs, maybe there: stop it first"), "{text}");
    let place = repository.top.join(".claude/worktrees/mine");
    assert!(text.contains(place.to_str().unwrap()) && place.join("stop").exists(), "{text}");
}

#[test]
fn a_directory_that_a_hook_made_is_entered_and_its_removal_is_told() {
    // D-21, S-303, S-307
    let repository = Repository::new(&json!({
        "lead": [
            [enter(&json!({"name": "mine"}))],
            [bash("pwd"), edit("new.txt", "new\n")],
            [exit(&json!({"action": "remove"}))],
            [bash("pwd > back.txt")],
            "done",
        ],
    }));
    let place = repository.stage.program.scratch.root().canonicalize().unwrap().join("made");
    let removed = place.with_extension("removed");
    let hook = |command: String| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {
        "WorktreeCreate": hook(format!("mkdir -p {0}; echo {0}", place.display())),
        "WorktreeRemove": hook(format!("cat > {}", removed.display())),
    }});
    let told = repository.run(&[TOOLS, &["--settings", &settings.to_string()]].concat());
    told.assert_code(0);
    let text = results(&told);
    // Ours removes nothing there.
    assert_eq!(std::fs::read_to_string(place.join("new.txt")).unwrap(), "new\n", "{text}");
    let heard = std::fs::read_to_string(&removed).unwrap();
    assert!(heard.contains(&format!("\"worktree_path\":\"{}\"", place.display())), "{heard}");
    let back = std::fs::read_to_string(repository.top.join("back.txt")).unwrap();
    assert_eq!(back.trim(), repository.top.to_str().unwrap());
    assert!(!repository.top.join(".claude/worktrees/mine").exists());
}
