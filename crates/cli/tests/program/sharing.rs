//! Agents that work in the same files: no change is lost, and the ground stays where it is.

use serde_json::json;

use crate::stage::{agent, bash};
use crate::worktrees::{Repository, results};

#[test]
fn a_file_that_another_agent_changed_is_not_overwritten_and_the_other_is_named() {
    let repository = Repository::new(&json!({"lead": []}));
    let path = repository.top.join("a.txt");
    let edit = |old: &str, new: &str| json!({"tool": "Edit", "input": {"file_path": path, "old_string": old, "new_string": new}});
    let read = json!({"tool": "Read", "input": {"file_path": path}});
    repository.play(&json!({
        "lead": [
            [read],
            [agent("@@other", &json!({}))],
            [edit("one", "lead")],
            [json!({"tool": "Write", "input": {"file_path": path, "content": "lead\n"}})],
            [bash("echo more >> a.txt")],
            [edit("other", "lead")],
            "done",
        ],
        "other": [[read], [edit("one", "other")], "changed"],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    let id = told.data()[1]["agentId"].as_str().unwrap().to_owned();
    let text = results(&told);
    let by = format!("has changed since it was read, by agent {id}");
    assert_eq!(text.matches(&by).count(), 2, "{text}");
    assert_eq!(text.matches("-one\\n+other").count(), 3, "{text}");
    // A change that no tool of an agent made is said to be such, with all that differs.
    assert!(text.contains("by a person, a command or another program"), "{text}");
    assert!(text.contains("+other\\n+more"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "other\nmore\n");
}

#[test]
fn commands_that_change_what_is_checked_out_are_asked_about_while_others_work_there() {
    let wait = "until [ -e go ]; do sleep 0.05; done";
    let repository = Repository::new(&json!({
        "lead": [
            [agent("@@other", &json!({"run_in_background": true}))],
            [bash("git status --short; git stash list"), bash("sh -c 'git switch -c moved'")],
            [bash("touch go; git reset --hard")],
            [bash("touch go")],
            "waiting",
            [bash("git switch -q -c later && git branch --show-current")],
            "done",
        ],
        "other": [[bash(wait)], "ended"],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    let text = results(&told);
    let asked =
        format!("changes the files of others that work in {} now", repository.top.display());
    assert_eq!(text.matches(&asked).count(), 2, "{text}");
    assert_eq!(repository.git("branch --show-current"), "later", "{text}");
    assert_eq!(repository.git("branch --list moved"), "");
}

#[test]
fn an_isolated_agent_shares_its_checkout_with_no_other() {
    let repository = Repository::new(&json!({
        "lead": [
            [agent("@@other", &json!({"run_in_background": true, "isolation": "worktree"}))],
            [bash("git switch -q -c moved && git branch --show-current")],
            [bash("touch go")],
            "waiting",
            "done",
        ],
        "other": [
            [bash("git switch -q -c mine; until [ -e ../../../go ]; do sleep 0.05; done")],
            "ended",
        ],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    assert_eq!(repository.git("branch --show-current"), "moved", "{}", results(&told));
}

#[test]
fn an_agent_in_the_background_is_asked_about_what_the_main_agent_works_on() {
    let repository = Repository::new(&json!({
        "lead": [
            [agent("@@other", &json!({"run_in_background": true}))],
            [bash("until [ -e tried ]; do sleep 0.05; done")],
            "waiting",
            "done",
        ],
        "other": [[bash("git reset -q; git reset --hard")], [bash("touch tried")], "ended"],
    }));
    repository.write("a.txt", "mine\n");
    let told = repository.run(&[]);
    told.assert_code(0);
    let transcript = repository.stage.agent_transcripts().concat();
    assert!(transcript.contains("(the main agent): wait for their end"), "{transcript}");
    assert_eq!(std::fs::read_to_string(repository.top.join("a.txt")).unwrap(), "mine\n");
}

#[test]
fn who_waits_for_an_agent_shares_nothing_with_it() {
    let repository = Repository::new(&json!({
        "lead": [[agent("@@other", &json!({"run_in_background": false}))], "done"],
        "other": [[bash("git switch -q -c moved")], "ended"],
    }));
    repository.run(&[]).assert_code(0);
    assert_eq!(repository.git("branch --show-current"), "moved");
}

#[test]
fn an_agent_that_went_into_a_worktree_shares_the_checkout_that_it_left_with_no_other() {
    let repository = Repository::new(&json!({
        "lead": [
            [agent("@@other", &json!({"run_in_background": true}))],
            [bash("until [ -e .claude/worktrees/w/there ]; do sleep 0.05; done")],
            [bash("git switch -q -c moved && git branch --show-current")],
            [bash("touch go")],
            "waiting",
            "done",
        ],
        "other": [
            [json!({"tool": "EnterWorktree", "input": {"name": "w"}})],
            [bash("touch there; until [ -e ../../../go ]; do sleep 0.05; done")],
            "ended",
        ],
    }));
    let told = repository.run(&["--allowedTools", "EnterWorktree"]);
    told.assert_code(0);
    assert_eq!(repository.git("branch --show-current"), "moved", "{}", results(&told));
}

#[test]
fn agents_that_went_into_the_same_worktree_as_the_session_share_it() {
    let repository = Repository::new(&json!({
        "lead": [
            [json!({"tool": "EnterWorktree", "input": {"name": "w"}})],
            [agent("@@other", &json!({"run_in_background": true}))],
            [bash("git switch -q -c moved")],
            [bash("touch go")],
            "waiting",
            "done",
        ],
        "other": [[bash("until [ -e go ]; do sleep 0.05; done")], "ended"],
    }));
    let told = repository.run(&["--allowedTools", "EnterWorktree"]);
    told.assert_code(0);
    assert_eq!(repository.git("branch --list moved"), "", "{}", results(&told));
}
