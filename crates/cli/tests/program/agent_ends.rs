//! Ends of runs with agents: when the wait for them runs out, by signals, and in the middle of everything.

use serde_json::{Value, json};

use crate::processes::processes;
use crate::program::{ended, eventually, signal};
use crate::stage::{Stage, Told, agent, bash};

const ID: &str = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f12";

/// The notes about an agent's end in its transcript.
fn ends(transcript: &str) -> Vec<Value> {
    let lines = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["subtype"] == "agent_end").map(|line| line["data"].clone()).collect()
}

fn statuses(stage: &Stage) -> Vec<Value> {
    stage
        .agent_transcripts()
        .iter()
        .flat_map(|it| ends(it))
        .map(|end| end["status"].clone())
        .collect()
}

#[test]
fn the_wait_for_background_agents_is_bounded() {
    // S-210
    let stage = Stage::new(&json!({
        "lead": [[agent("@@stuck", &json!({"run_in_background": true}))], "not waiting"],
        "stuck": [[bash("sleep 98821")], "never"],
    }));
    let mut command = stage.command("@@lead", &["--allowedTools", "Bash"]);
    command.env("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", "300");
    let told = Told::new(ended(command.output().unwrap()));
    told.assert_code(1);
    assert_eq!(told.ended.result()["result"], "not waiting");
    assert_eq!(told.of("task_notification")[0]["status"], "stopped");
    assert_eq!(told.of("background_tasks_changed").last().unwrap()["tasks"], json!([]));
    assert_eq!(statuses(&stage), ["killed"], "the record is complete");
    eventually("its command ended", || processes("sleep 98821").is_empty().then_some(()));
}

#[test]
fn a_signal_ends_all_agents_with_complete_records_and_no_processes() {
    // I-13
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let stage = Stage::new(&json!({
            "lead": [[
                agent("@@behind", &json!({"run_in_background": true})),
                agent("@@before", &json!({})),
            ]],
            "behind": [[bash("touch behind; sleep 98831")], "never"],
            "before": [[bash("touch before; sleep 98832")], "never"],
        }));
        let child = stage.command("@@lead", &["--allowedTools", "Bash"]).spawn().unwrap();
        let project = stage.program.scratch.project();
        for file in ["behind", "before"] {
            eventually("the agents are at work", || project.join(file).exists().then_some(()));
        }
        signal(&child, name);
        let told = Told::new(ended(child.wait_with_output().unwrap()));
        told.assert_code(code);
        assert_eq!(told.ended.result()["outcome"], "cancelled", "{name}");
        let told_ends: Vec<&Value> =
            told.of("task_notification").into_iter().map(|event| &event["status"]).collect();
        assert_eq!(told_ends, ["stopped", "stopped"], "{name}");
        assert_eq!(statuses(&stage), ["killed", "killed"], "{name}");
        eventually("their commands ended", || processes("sleep 9883").is_empty().then_some(()));
    }
}

#[test]
fn after_a_kill_each_interrupted_agent_is_told_of_once_and_can_continue() {
    // S-221, S-231, I-3, I-13
    let stage = Stage::new(&json!({
        "lead": [[
            agent("@@one", &json!({"run_in_background": true, "description": "job one"})),
            agent("@@two", &json!({"run_in_background": true, "description": "job two"})),
        ], bash("sleep 98843")],
        "one": [["I begin with one.", bash("touch one; sleep 98841")]],
        "two": [["I begin with two.", bash("touch two; sleep 98842")]],
        "after": [
            [{"tool": "SendMessage", "input": {
                "to": "${re:<task-id>(a[0-9a-f]+)</task-id>(?s:.*)job one}",
                "message": "@@more",
            }}],
            "told it",
            "heard of it",
        ],
        "more": ["went on"],
        "later": ["nothing new"],
    }));
    let more = ["--allowedTools", "Bash", "--session-id", ID];
    let mut child = stage.command("@@lead", &more).spawn().unwrap();
    let project = stage.program.scratch.project();
    for file in ["one", "two"] {
        eventually("the agents are at work", || project.join(file).exists().then_some(()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("their commands ended", || processes("sleep 9884").is_empty().then_some(()));
    assert!(statuses(&stage).is_empty(), "nobody could write an end");

    let told = stage.run("@@after", &["--resume", ID]);
    told.assert_code(0);
    let main = || std::fs::read_to_string(&stage.program.transcripts()[0]).unwrap();
    for job in ["one", "two"] {
        let notice = format!("Agent \\\"job {job}\\\" was interrupted");
        assert_eq!(main().matches(&notice).count(), 1, "{}", main());
    }
    assert!(told.data().iter().any(|data| data["status"] == "resumed"), "{:?}", told.data());
    assert_eq!(told.of("task_notification")[0]["summary"], "went on");
    let results: Vec<&Value> = told.of("result").into_iter().map(|it| &it["result"]).collect();
    assert_eq!(results, ["told it", "heard of it"]);
    let transcripts = stage.agent_transcripts();
    let one = transcripts.iter().find(|it| it.contains("I begin with one.")).unwrap();
    let outcomes: Vec<Value> = ends(one).iter().map(|end| end["end"]["outcome"].clone()).collect();
    assert_eq!(outcomes, ["interrupted", "completed"], "it went on from its own record");

    stage.run("@@later", &["--resume", ID]).assert_code(0);
    assert_eq!(main().matches("was interrupted").count(), 2, "and nobody hears of it again");
}
