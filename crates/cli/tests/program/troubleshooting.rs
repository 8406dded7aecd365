//! The manual about finding out what went wrong: each place that it names has the answer.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::stage::{Stage, Told, agent, bash};

/// The files below the state of the one session that a stage has had.
fn kept(stage: &Stage, relative: &str) -> PathBuf {
    let [transcript] = &stage.program.transcripts()[..] else { panic!("one session") };
    transcript.with_extension("").join(relative)
}

fn printed(stage: &Stage, arguments: &[&str]) -> String {
    let ended = stage.program.run(arguments);
    assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
    ended.stdout
}

fn session(told: &Told) -> String {
    told.of("init")[0]["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn what_became_of_an_agent_is_found_where_the_manual_says() {
    // S-366: missing news, a target that is not there, a wait that ends
    let id = "${re:agentId: (a[0-9a-f]+)}";
    let look = json!({"tool": "TaskOutput", "input": {"task_id": id, "timeout": 1}});
    let stage = Stage::new(&json!({
        "lead": [
            [agent("@@child", &json!({"name": "ann", "run_in_background": true}))],
            [{"tool": "SendMessage", "input": {"to": "bob", "message": "hello?"}}],
            [look],
            [bash("touch go")],
            "meanwhile",
            "heard",
        ],
        "child": [[bash("until [ -e go ]; do sleep 0.01; done")], "the report"],
    }));
    let told = stage.run("@@lead", &["--allowedTools", "Bash", "--debug"]);
    told.assert_code(0);
    for log in ["an agent begins", "an agent has ended"] {
        assert!(told.ended.stderr.contains(log), "{}", told.ended.stderr);
    }
    let data = told.data();
    let reached = data.iter().find(|it| it["status"] == "no_such_agent").unwrap();
    assert!(reached["message"].as_str().unwrap().contains("ann"), "{reached}");
    let waited = data.iter().find(|it| it["retrieval_status"].is_string()).unwrap();
    assert_eq!(waited["retrieval_status"], "timeout", "{waited}");
    let id = told.of("task_started")[0]["task_id"].as_str().unwrap();
    let output = kept(&stage, &format!("tool-results/tasks/{id}.output"));
    assert!(std::fs::read_to_string(output).unwrap().ends_with("the report\n=== completed\n"));
    let shown = printed(&stage, &["sessions", "show", &session(&told)]);
    assert!(shown.contains(&format!("<task-id>{id}</task-id>")), "{shown}");
    let card = std::fs::read_to_string(kept(&stage, &format!("subagents/agent-{id}.meta.json")));
    let card: Value = serde_json::from_str(&card.unwrap()).unwrap();
    assert_eq!((&card["name"], &card["finished"]), (&json!("ann"), &json!(true)));
    let transcript = &stage.agent_transcripts()[0];
    let subtypes: Vec<Value> =
        transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    assert_eq!(subtypes[0]["subtype"], "agent_spawn");
    assert_eq!(subtypes.last().unwrap()["subtype"], "agent_end", "{transcript}");
}

#[test]
fn what_an_agent_has_and_may_is_explained_with_what_decided_it() {
    // S-366: missing tools, surprising permissions, agents that are not offered
    let stage = Stage::new(&json!({
        "lead": [[agent("@@child", &json!({"subagent_type": "reader"}))], "done"],
        "child": [[bash("make it so")], [{"tool": "Write", "input": {"file_path": "/x", "content": "y"}}], "could not"],
    }));
    let scratch = &stage.program.scratch;
    let file = "---\nname: reader\ndescription: Reads.\ntools: Read, Write, mcp__docs__search\n---\nYou read.\n";
    let path = scratch.write(".claude/agents/reader.md", file);
    scratch.write(".claude/agents/broken.md", "---\nname: broken\n---\nx\n");
    let told = stage.run("@@lead", &[]);
    let denied = &told.data()[0]["permissionDenials"];
    assert_eq!(denied[0]["tool"], "Write", "{denied}");
    let explained = printed(&stage, &["agents", "explain", "reader", "--json"]);
    let explained: Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(explained["unresolved"], json!(["mcp__docs__search (there is no such tool)"]));
    assert_eq!(explained["leftOut"]["Bash"], "`tools` does not list it");
    let text = printed(&stage, &["agents", "explain", "reader"]);
    let mode = "permissionMode: default   [the agent that starts it]";
    assert!(text.contains(mode) && text.contains(&format!("{}:4", path.display())), "{text}");
    let verdict = printed(&stage, &["permissions", "explain", "Bash(make it so)"]);
    assert!(verdict.contains("asked about") && verdict.contains("because"), "{verdict}");
    let listed = printed(&stage, &["agents", "list"]);
    assert!(listed.contains("broken.md:2: has no `description`"), "{listed}");
}
