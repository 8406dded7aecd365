//! Contracts of agents in the whole program: how sessions of each mode start them, and what the runtime saw them do.

use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::stage::{Stage, agent, bash};

#[test]
fn a_mode_is_chosen_by_flag_and_by_setting() {
    // S-202, S-203, S-204, S-360, S-361, S-362
    let stage = Stage::new(&json!({
        "lead": [[agent("@@child", &json!({"cwd": "below"}))], "meanwhile", "heard"],
        "child": [[{"tool": "Read", "input": {"file_path": "here.txt"}}], {"text": "there", "latency_ms": 50}],
    }));
    stage.program.scratch.write("below/here.txt", "at the bottom\n");
    let setting = |mode: &str| json!({"subagents": {"mode": mode}}).to_string();
    let (coordinator, assistant, proactive) =
        (setting("coordinator"), setting("assistant"), setting("proactive"));
    for (flags, status) in [
        (&[][..], "completed"),
        (&["--coordinator"], "async_launched"),
        (&["--assistant"], "async_launched"),
        (&["--proactive"], "async_launched"),
        (&["--settings", &coordinator], "async_launched"),
        (&["--settings", &assistant], "async_launched"),
        (&["--settings", &proactive], "async_launched"),
    ] {
        let told = stage.run("@@lead", flags);
        told.assert_code(0);
        assert_eq!(told.data()[0]["status"], status, "{flags:?}");
        let tools = told.of("init")[0]["tools"].as_array().unwrap().clone();
        let only_directs = flags.join(" ").contains("coordinator");
        assert_eq!(tools.contains(&json!("Bash")), !only_directs, "{flags:?}: {tools:?}");
        let schedules = flags.join(" ").contains("assistant");
        assert_eq!(tools.contains(&json!("CronCreate")), schedules, "{flags:?}: {tools:?}");
        let read = told.of("task_progress")[0];
        assert_eq!(
            read["description"], "Reading here.txt",
            "{flags:?}: in the directory of the call"
        );
    }
}

#[test]
fn what_an_agent_did_stands_beside_what_it_says() {
    let write = json!({"tool": "Write", "input": {"file_path": "made.txt", "content": "y"}});
    let stage = Stage::new(&json!({
        "lead": [[agent("@@child", &json!({}))], "done"],
        "child": [[bash("exit 3"), bash("true"), write], "All tests pass, nothing was changed."],
    }));
    let flags = ["--allowedTools", "Bash", "--permission-mode", "acceptEdits"];
    let told = stage.run("@@lead", &flags);
    told.assert_code(0);
    let data = told.data()[0];
    let commands =
        json!([{"command": "exit 3", "exitCode": 3}, {"command": "true", "exitCode": 0}]);
    assert_eq!(data["evidence"]["commands"], commands);
    let made = stage.program.scratch.project().canonicalize().unwrap().join("made.txt");
    assert_eq!(data["evidence"]["filesChanged"], json!([made]));
    assert_eq!(data["evidence"]["tools"], json!({"Bash": 2, "Write": 1}));
    let results = told.of("user").into_iter().filter(|it| it.get("agent_id").is_none());
    let text = results.map(Value::to_string).collect::<String>();
    assert!(
        text.contains("commands that failed: 1 of 2") && text.contains("files changed"),
        "{text}"
    );
}

#[test]
fn an_answer_that_comes_after_its_question_runs_nothing_and_is_told() {
    // S-174, S-219, I-4
    let stage = Stage::new(&json!({
        "lead": [[agent("@@child", &json!({"run_in_background": true}))], "meanwhile", "heard"],
        "child": [[bash("sh -c 'touch made'")], "never"],
        "next": ["fine"],
    }));
    let flags = ["--model", stage.model(), "--permission-prompt-tool", "stdio"];
    let mut host = Host::start(&stage.program, &flags);
    host.say("@@lead");
    let seen = host.until(|event| event["request"]["subtype"] == "can_use_tool");
    let started = seen.iter().find(|event| event["subtype"] == "task_started").unwrap();
    let ask = seen.last().unwrap();
    host.send(&control("s", &json!({"subtype": "stop_task", "task_id": started["task_id"]})));
    let seen = host.until(|event| event["subtype"] == "task_notification");
    assert_eq!(seen.last().unwrap()["status"], "stopped");
    // The question is withdrawn before the host answers it.
    let is_withdrawn = |event: &Value| {
        event["type"] == "control_cancel_request" && event["request_id"] == ask["request_id"]
    };
    assert_eq!(seen.iter().filter(|event| is_withdrawn(event)).count(), 1, "{seen:?}");
    let yes = json!({"behavior": "allow", "updatedInput": ask["request"]["input"]});
    let late = json!({"subtype": "success", "request_id": ask["request_id"], "response": yes});
    host.send(&json!({"type": "control_response", "response": late}));
    host.say("@@next");
    let seen = host.until(|event| event["result"] == "fine");
    assert!(!seen.iter().any(|event| event["type"] == "control_request"), "nobody is asked again");
    assert!(!stage.program.scratch.project().join("made").exists());
    assert_eq!(host.finish(), 0);
    let [transcript] = &stage.program.transcripts()[..] else { panic!("one session") };
    let transcript = std::fs::read_to_string(transcript).unwrap();
    let told = "The user allowed a call of Bash by the agent general-purpose only after that call had ended.";
    assert_eq!(transcript.matches(told).count(), 1, "{transcript}");
}
