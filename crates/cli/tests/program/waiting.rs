//! Results that a run shows while agents work beside it, and the moments at which it does.

use serde_json::{Value, json};

use crate::host::Host;
use crate::program::{Ended, ended, eventually, signal};
use crate::stage::{Stage, Told, agent, bash, run_and};

const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.01; done";

/// A lead with an agent in the background that ends when the file `go` is there.
fn stage(last: &Value) -> Stage {
    let slow = json!({"run_in_background": true, "name": "bob", "description": "take long"});
    Stage::new(&json!({
        "lead": [[agent("@@slow", &slow)], "meanwhile", last],
        "slow": [[bash(&format!("touch slow; {UNTIL_GO}"))], "slow result"],
    }))
}

fn is_there(stage: &Stage, file: &str) {
    let path = stage.program.scratch.project().join(file);
    eventually("the agent is at work", || path.exists().then_some(()));
}

/// A run in a format, without events; the agent is let go when it is at work.
fn run(stage: &Stage, format: &str) -> Ended {
    let flags = ["-p", "@@lead", "--output-format", format, "--allowedTools", "Bash"];
    let command = &mut stage.program.command([&flags[..], &["--model", stage.model()]].concat());
    let child = command.spawn().unwrap();
    is_there(stage, "slow");
    stage.program.scratch.write("go", "");
    ended(child.wait_with_output().unwrap())
}

/// The answers of all results, in their order.
fn answers(told: &Told) -> Vec<&Value> {
    told.of("result").into_iter().map(|event| &event["result"]).collect()
}

#[test]
fn a_host_that_keeps_talking_sees_each_result_at_once() {
    // S-210
    let stage = stage(&json!("heard of it"));
    let mut host =
        Host::start(&stage.program, &["--model", stage.model(), "--allowedTools", "Bash"]);
    host.say("@@lead");
    let first = host.result();
    assert_eq!([&first["result"], &first["result_index"]], [&json!("meanwhile"), &json!(0)]);
    stage.program.scratch.write("go", "");
    let second = host.result();
    assert_eq!([&second["result"], &second["result_index"]], [&json!("heard of it"), &json!(1)]);
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_that_leaves_before_its_agents_are_done_learns_it_from_how_the_run_ends() {
    // S-210
    let stage = stage(&json!("never"));
    let settings = json!({"env": {"CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS": "300"}}).to_string();
    let flags = ["--model", stage.model(), "--allowedTools", "Bash", "--settings", &settings];
    let mut host = Host::start(&stage.program, &flags);
    host.say("@@lead");
    let result = host.result();
    assert_eq!([&result["result"], &result["is_error"]], [&json!("meanwhile"), &json!(false)]);
    assert!(result.get("unfinished_agents").is_none(), "nobody knows that yet");
    assert_eq!(host.finish(), 1);
}

#[test]
fn a_shell_in_the_background_holds_no_result_back() {
    // S-214
    let shell = json!({"tool": "Bash", "input": {"command": UNTIL_GO, "run_in_background": true}});
    let stage = Stage::new(&json!({"lead": [[shell], "meanwhile", "heard of it"]}));
    let mut command = stage.command("@@lead", &["--allowedTools", "Bash"]);
    let is_result = |line: &str| line.contains("\"type\":\"result\"");
    let go = || drop(stage.program.scratch.write("go", ""));
    let told = Told::new(run_and(&mut command, is_result, go));
    told.assert_code(0);
    assert_eq!(answers(&told), ["meanwhile", "heard of it"]);
    let origin = json!({"kind": "task-notification", "producer": "session-task"});
    assert_eq!(told.of("result")[1]["origin"], origin, "shells have no runs");
}

#[test]
fn text_is_the_last_answer_and_json_the_last_result() {
    // S-210
    let ended = run(&stage(&json!("heard of it")), "text");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "heard of it\n"), "{}", ended.stderr);
    let ended = run(&stage(&json!("heard of it")), "json");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!([&result["result"], &result["result_index"]], [&json!("heard of it"), &json!(1)]);
    assert!(result.get("unfinished_agents").is_none());
    let (model, own) = (result["modelUsage"].as_object().unwrap(), &result["usage"]);
    let total = model.values().next().unwrap();
    assert!(
        total["inputTokens"].as_u64() > own["input_tokens"].as_u64(),
        "what the agent and the first turn consumed is in the sum: {result}"
    );
}

#[test]
fn a_last_turn_without_an_answer_keeps_the_result_before_it() {
    let ended = run(&stage(&json!({"blocks": []})), "text");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(ended.stdout, "meanwhile\n\nThe model ended its turn without an answer.\n");
    assert!(ended.stderr.contains("the run did not complete: empty"), "{}", ended.stderr);
}

#[test]
fn a_signal_while_agents_work_shows_what_was_held_back_and_who_did_not_finish() {
    // D-31
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let stage = stage(&json!("never"));
        let child = stage.command("@@lead", &["--allowedTools", "Bash"]).spawn().unwrap();
        is_there(&stage, "slow");
        let main = || std::fs::read_to_string(stage.program.transcripts().first()?).ok();
        eventually("the first turn is over", || main()?.contains("\"outcome\"").then_some(()));
        signal(&child, name);
        let told = Told::new(ended(child.wait_with_output().unwrap()));
        told.assert_code(code);
        assert_eq!(answers(&told), ["meanwhile"], "{name}");
        let result = told.of("result")[0];
        let id = &told.of("task_started")[0]["task_id"];
        assert_eq!(
            result["unfinished_agents"],
            json!([{
                "agent_id": id, "name": "bob", "subagent_type": "general-purpose",
                "description": "take long",
            }])
        );
        assert_eq!(result["subagent_stats"]["killed"]["system"], 1, "{name}");
        assert_eq!(told.events.last().unwrap()["type"], "result", "nothing follows it");
        assert_eq!(told.of("task_notification")[0]["status"], "stopped");
    }
}

#[test]
fn a_run_that_waited_long_enough_fails_and_names_who_did_not_finish() {
    // S-210
    for format in ["text", "json"] {
        let stage = stage(&json!("never"));
        let flags = ["-p", "@@lead", "--output-format", format, "--allowedTools", "Bash"];
        let mut command = stage.program.command([&flags[..], &["--model", stage.model()]].concat());
        command.env("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", "300");
        let ended = ended(command.output().unwrap());
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        if format == "text" {
            assert_eq!(ended.stdout, "meanwhile\n");
            assert_eq!(
                ended.stderr,
                "error: the run ended before these agents had: bob (take long)\n"
            );
        } else {
            let result: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_eq!(result["result"], "meanwhile");
            assert_eq!(result["unfinished_agents"][0]["name"], "bob");
        }
    }
}
