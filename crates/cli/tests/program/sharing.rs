//! Agents that work in the same files: no change is lost, and the ground stays where it is.

use serde_json::{Value, json};

use crate::members::{TEAMS, member, says};
use crate::stage::{agent, bash};
use crate::worktrees::{Repository, results, write};

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

#[test]
fn members_in_either_kind_of_process_overwrite_nothing_and_are_asked_about_what_moves_the_tree() {
    let cell = json!({"cell_type": "code", "id": "c", "metadata": {}, "source": "1", "outputs": [], "execution_count": null});
    let notebook = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    for mode in ["in-process", "process"] {
        let repository = Repository::new(&json!({}));
        repository.write("n.ipynb", &notebook.to_string());
        repository.write("b.txt", "b\n");
        let path = |name: &str| repository.top.join(name);
        let tool = |name: &str, input: Value| json!({"tool": name, "input": input});
        let read = |name: &str| tool("Read", json!({"file_path": path(name)}));
        let edit = |name: &str, old: &str, new: &str| {
            tool("Edit", json!({"file_path": path(name), "old_string": old, "new_string": new}))
        };
        let source = |text: &str| {
            let input =
                json!({"notebook_path": path("n.ipynb"), "cell_id": "c", "new_source": text});
            tool("NotebookEdit", input)
        };
        let wait = |file: &str| bash(&format!("until [ -e {file} ]; do sleep 0.05; done"));
        repository.play(&json!({
            "lead": [
                [read("a.txt"), read("n.ipynb"), read("b.txt")],
                [member("w1", "@@work")],
                [wait("did")],
                [edit("a.txt", "one", "lead"), source("lead"), write("b.txt", "lead\n")],
                [read("a.txt")],
                [edit("a.txt", "w1", "lead")],
                [bash("touch go")],
                "waiting",
                "done",
            ],
            "work": [
                [read("a.txt"), read("n.ipynb")],
                [edit("a.txt", "one", "w1"), source("w1")],
                [agent("@@below", &json!({"run_in_background": false}))],
                [bash("git reset -q --hard")],
                [bash("touch did")],
                [wait("go")],
                [edit("a.txt", "w1", "again")],
                [says("team-lead", "it is done")],
                "resting",
            ],
            "below": [[read("b.txt")], [edit("b.txt", "b", "below")], "ended"],
        }));
        let allow = ["Bash", "Read", "Edit", "Write", "NotebookEdit"];
        let mut settings: Value = serde_json::from_str(TEAMS).unwrap();
        settings["permissions"] = json!({"allow": allow});
        let told = repository
            .stage
            .run("@@lead", &["--settings", &settings.to_string(), "--teammate-mode", mode]);
        told.assert_code(0);
        let text = results(&told);
        let others = repository.stage.agent_transcripts().concat();
        let by = "has changed since it was read, by agent";
        assert_eq!(text.matches(&format!("{by} w1 (")).count(), 2, "{mode}: {text}");
        assert_eq!(text.matches(by).count(), 3, "{mode}: {text}");
        assert!(text.contains("-one\\n+w1"), "{mode}: {text}");
        assert!(
            others.contains("has changed since it was read, by the main agent"),
            "{mode}: {others}"
        );
        assert!(others.contains("(the main agent): wait for their end"), "{mode}: {others}");
        assert_eq!(std::fs::read_to_string(path("a.txt")).unwrap(), "lead\n", "{mode}");
        assert_eq!(std::fs::read_to_string(path("b.txt")).unwrap(), "below\n", "{mode}");
    }
}
