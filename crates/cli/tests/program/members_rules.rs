//! The rules of teams, in each place where members run: what holds in the lead's process holds in others.

use centurion_testkit::{Lack, skip};
use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::members::{TEAMS, member, says, told_lead};
use crate::program::ended;
use crate::sandboxes::can_confine;
use crate::stage::{Stage, Told, agent, bash};

/// The places where members run.
const PLACES: [&str; 3] = ["in-process", "process", "tmux"];

/// The id of a request, as the one who answers it has read it.
const SHUTDOWN: &str = r#"${re:"requestId":"(shutdown-[^"]+)"}"#;

fn structured(to: &str, message: &Value) -> Value {
    json!({"tool": "SendMessage", "input": {"to": to, "message": message}})
}

/// Waits until a member has said this and rests: what is sent before is read in the same run. The pattern does not match
/// its own text, which is in a file while the command starts.
pub(crate) fn until_said(text: &str) -> Value {
    bash(&format!("until grep -rqs '\"text\":[\"]{text}\"' \"$HOME\"; do sleep 0.02; done"))
}

fn run(stage: &Stage, place: &str, settings: &str, more: &[&str]) -> Told {
    let flags = ["--settings", settings, "--teammate-mode", place];
    let told = stage.run("@@lead", &[&flags[..], more].concat());
    told.assert_code(0);
    told
}

#[test]
fn limits_of_the_program_that_starts_a_lead_bind_commands_of_members_everywhere() {
    // --managed-settings did not reach a member's own process, whose commands then ran outside of the sandbox
    if !can_confine() {
        return skip(Lack::Sandbox);
    }
    for place in PLACES {
        let stage = Stage::new(&json!({
            "lead": [[member("w1", "@@work")], "waiting", "done"],
            "work": [
                [bash("touch inside; touch ../outside; true")],
                [says("team-lead", "tried")],
                "resting",
            ],
        }));
        let limits = r#"{"sandbox": {"enabled": true}}"#;
        let flags = ["--settings", TEAMS, "--teammate-mode", place, "--allowedTools", "Bash"];
        let mut command =
            stage.command("@@lead", &[&flags[..], &["--managed-settings", limits]].concat());
        // Commands in a sandbox may write below that directory.
        command.env("TMPDIR", stage.program.scratch.project());
        Told::new(ended(command.output().unwrap())).assert_code(0);
        assert!(told_lead(&stage).contains("tried"));
        let project = stage.program.scratch.project();
        let made = [project.join("inside").exists(), project.join("../outside").exists()];
        assert_eq!(made, [true, false], "{place}");
    }
}

#[test]
fn a_member_that_agreed_to_end_asks_its_model_nothing_more() {
    // In a process of its own it read the result of its answer first, and made another request
    for place in PLACES {
        let agrees = json!({"type": "shutdown_response", "request_id": SHUTDOWN, "approve": true});
        let stage = Stage::new(&json!({
            "lead": [
                [member("w1", "@@work")],
                [until_said("resting")],
                [structured("w1", &json!({"type": "shutdown_request", "reason": "done"}))],
                "waiting",
                "done",
            ],
            "work": [
                [says("team-lead", "ready")],
                "resting",
                [structured("team-lead", &agrees)],
                "never said",
            ],
        }));
        run(&stage, place, TEAMS, &["--allowedTools", "Bash"]);
        assert!(told_lead(&stage).contains("shutdown_approved"), "{place}");
        let of_member = stage.agent_transcripts().concat();
        assert!(of_member.contains("You end now."), "{place}: {of_member}");
        assert!(!of_member.contains("never said"), "{place}: {of_member}");
    }
}

#[test]
fn hooks_hear_once_for_each_run_of_a_member_that_it_begins_and_stops() {
    // SubagentStop ran in the member's process and once more in the lead's
    for place in PLACES {
        let stage = Stage::new(&json!({
            "lead": [[member("w1", "@@work")], "waiting", "done"],
            "work": [[says("team-lead", "ready")], "resting"],
        }));
        let counts = |file: &str| {
            let command = format!("echo x >> \"$CLAUDE_PROJECT_DIR/{file}\"");
            json!([{"hooks": [{"type": "command", "command": command}]}])
        };
        let settings = json!({
            "subagents": {"teams": true},
            "hooks": {"SubagentStart": counts("begun"), "SubagentStop": counts("stopped")},
        });
        run(&stage, place, &settings.to_string(), &[]);
        for file in ["begun", "stopped"] {
            assert_eq!(stage.program.scratch.read(file), "x\n", "{place}: {file}");
        }
    }
}

fn task(status: &str) -> Value {
    json!({"tool": "TaskUpdate", "input": {"taskId": "1", "status": status}})
}

#[test]
fn the_task_of_a_member_that_is_asked_to_end_returns_everywhere() {
    // D-68, S-237
    let create = json!({"tool": "TaskCreate", "input": {"subject": "one", "description": "d"}});
    let list = json!({"tool": "TaskList", "input": {}});
    let refuses =
        json!({"type": "shutdown_response", "request_id": "shutdown-1@w1", "approve": true});
    let agrees = json!({"type": "shutdown_response", "request_id": SHUTDOWN, "approve": true});
    for place in PLACES {
        let stage = Stage::new(&json!({
            "lead": [
                [create],
                [member("w1", "@@work")],
                [until_said("resting")],
                [structured("w1", &json!({"type": "shutdown_request"}))],
                "waiting",
                [list],
                "done",
            ],
            "work": [
                [task("in_progress")],
                [structured("team-lead", &refuses)],
                [says("team-lead", "claimed")],
                "resting",
                [structured("team-lead", &agrees)],
                "never said",
            ],
        }));
        let told = run(&stage, place, TEAMS, &["--allowedTools", "Bash"]);
        let of_member = stage.agent_transcripts().concat();
        assert!(of_member.contains("there is no open request to end"), "{place}: {of_member}");
        assert!(told.ended.stdout.contains("#1 [pending] one"), "{place}: {}", told.ended.stdout);
    }
}

#[test]
fn a_hook_keeps_a_member_at_work_once_everywhere() {
    // TeammateIdle with exit code 2
    for place in PLACES {
        let stage = Stage::new(&json!({
            "lead": [[member("w1", "@@work")], "waiting", "done", "done"],
            "work": ["resting", [says("team-lead", "more done")], "resting again"],
        }));
        let command = "[ -e \"$CLAUDE_PROJECT_DIR/told\" ] && exit 0; touch \"$CLAUDE_PROJECT_DIR/told\"; echo do more >&2; exit 2";
        let settings = json!({
            "subagents": {"teams": true},
            "hooks": {"TeammateIdle": [{"hooks": [{"type": "command", "command": command}]}]},
        });
        run(&stage, place, &settings.to_string(), &[]);
        let of_member = stage.agent_transcripts().concat();
        assert!(of_member.contains("TeammateIdle hook feedback"), "{place}: {of_member}");
        assert!(of_member.contains("do more"), "{place}: {of_member}");
        assert!(told_lead(&stage).contains("more done"), "{place}");
    }
}

#[test]
fn a_plan_is_approved_once_and_reaches_its_member_everywhere() {
    // D-66, S-356, S-359: the script of the member is one that the approval names, so that it makes no difference in
    // which of the member's runs the approval is read
    let answers = |approve: bool, feedback: &str| {
        let id = r#"${re:"requestId":"(plan_approval-[^"]+)"}"#;
        let answer = json!({"type": "plan_approval_response", "request_id": id, "approve": approve, "feedback": feedback});
        structured("w1", &answer)
    };
    let write = |name: &str| json!({"tool": "Write", "input": {"file_path": name, "content": "x"}});
    let exits = json!({"tool": "ExitPlanMode", "input": {"plan": "write b.txt"}});
    for place in PLACES {
        let mut joins = member("w1", "@@work");
        joins["input"]["mode"] = json!("plan");
        let stage = Stage::new(&json!({
            "lead": [
                [joins],
                [bash("until grep -rqs 'plan_approval-[0-9]*@w1' \"$HOME\"/.centurion/projects/*/*.jsonl; do sleep 0.02; done")],
                [answers(false, "@@again")],
                [until_said("second")],
                [answers(true, "@@go"), answers(true, "@@go")],
                "waiting",
                "done",
            ],
            "work": [[write("a.txt"), exits], "waiting"],
            "again": [[write("a.txt"), exits], [says("team-lead", "second")], "second"],
            "go": [[write("b.txt")], [says("team-lead", "written")], "resting"],
        }));
        let told = run(
            &stage,
            place,
            TEAMS,
            &["--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
        );
        let of_member = stage.agent_transcripts().concat();
        assert!(of_member.contains("[Plan Rejected]"), "{place}: {of_member}");
        assert!(of_member.contains("[Plan Approved]"), "{place}: {of_member}");
        let project = stage.program.scratch.project();
        let made = ["a.txt", "b.txt"].map(|name| project.join(name).exists());
        assert_eq!(made, [false, true], "{place}: {of_member}");
        assert!(told_lead(&stage).contains("written"), "{place}: {of_member}");
        let twice = told.ended.stdout.matches("there is no open plan").count();
        assert!(twice >= 1, "the second answer is refused, {place}: {}", told.ended.stdout);
    }
}

/// Answers every function of the host that is called until the lead has said that it is done and a member rests, and
/// gives the inputs of the calls.
fn answer_functions(host: &mut Host) -> Vec<Value> {
    let mut called = Vec::new();
    let (mut is_done, mut is_idle) = (false, false);
    loop {
        let is_call = |event: &Value| event["request"]["subtype"] == "hook_callback";
        let is_end = |event: &Value| event["type"] == "result" && event["result"] == "done";
        let event = host.until(|event| is_call(event) || is_end(event)).pop().unwrap();
        is_done |= is_end(&event);
        is_idle |= event["request"]["input"]["hook_event_name"] == "TeammateIdle";
        if !is_call(&event) {
            if is_idle {
                return called;
            }
            continue;
        }
        called.push(event["request"]["input"].clone());
        let id = &event["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": {}});
        host.send(&json!({"type": "control_response", "response": response}));
        if is_done && is_idle {
            return called;
        }
    }
}

#[test]
fn functions_of_a_host_hear_of_members_everywhere() {
    // D-70: those for the end of an agent, and for what was called, did not hear of members in processes of their own
    for place in PLACES {
        let stage = Stage::new(&json!({
            "lead": [[member("w1", "@@work")], "waiting", "done"],
            "work": [[bash("true")], [says("team-lead", "ready")], "resting"],
        }));
        let more = ["--settings", TEAMS, "--teammate-mode", place, "--allowedTools", "Bash"];
        let model = ["--model", stage.model()];
        let mut host = Host::start(&stage.program, &[&more[..], &model].concat());
        let all = |events: &[&str]| -> Value {
            let functions = events.iter().map(|event| {
                let group = json!({"hookCallbackIds": [format!("on {event}")]});
                ((*event).to_owned(), json!([group]))
            });
            functions.collect::<serde_json::Map<_, _>>().into()
        };
        let events = ["PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "TeammateIdle"];
        host.send(&control("r1", &json!({"subtype": "initialize", "hooks": all(&events)})));
        host.say("@@lead");
        let called = answer_functions(&mut host);
        assert_eq!(host.finish(), 0);
        for event in events {
            let of_member = |input: &&Value| {
                input["hook_event_name"] == event
                    && input["teammate_name"] == "w1"
                    && input["tool_name"] != "SendMessage"
            };
            let count = called.iter().filter(of_member).count();
            assert_eq!(count, 1, "{place}: {event}: {called:?}");
        }
    }
}

#[test]
fn a_function_of_a_host_keeps_a_member_at_work_everywhere() {
    for place in PLACES {
        let stage = Stage::new(&json!({
            "lead": [[member("w1", "@@work")], "waiting", "done"],
            "work": ["resting", [says("team-lead", "more done")], "resting again"],
        }));
        let more = ["--settings", TEAMS, "--teammate-mode", place, "--model", stage.model()];
        let mut host = Host::start(&stage.program, &more);
        let hooks = json!({"SubagentStop": [{"hookCallbackIds": ["stops"]}]});
        host.send(&control("r1", &json!({"subtype": "initialize", "hooks": hooks})));
        host.say("@@lead");
        let asked = host.until(|event| event["request"]["subtype"] == "hook_callback");
        let block = json!({"decision": "block", "reason": "do more"});
        let id = &asked.last().unwrap()["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": block});
        host.send(&json!({"type": "control_response", "response": response}));
        host.until(|event| event["type"] == "result" && event["result"] == "done");
        assert_eq!(host.finish(), 0);
        let of_member = stage.agent_transcripts().concat();
        assert!(of_member.contains("do more"), "{place}: {of_member}");
        assert!(told_lead(&stage).contains("more done"), "{place}");
    }
}

#[test]
fn what_an_agent_below_a_member_says_and_takes_is_never_the_members_own() {
    // In a process of its own its messages and claims went out under the member's name
    let create = json!({"tool": "TaskCreate", "input": {"subject": "one", "description": "d"}});
    for place in PLACES {
        let stage = Stage::new(&json!({
            "lead": [[create], [member("w1", "@@work")], "waiting", "done", "done", "done"],
            "work": [
                [agent("@@below", &json!({}))],
                [says("team-lead", "my own words")],
                "resting",
            ],
            "below": [
                [says("team-lead", "of one below"), says("*", "to all of you"), task("in_progress")],
                "below is done",
            ],
        }));
        run(&stage, place, TEAMS, &[]);
        let lead = told_lead(&stage);
        let sender = |text: &str| {
            let lines = lead.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut mail = lines.filter(|line| line["type"] == "queue-operation");
            mail.find(|line| line["content"] == text).map(|line| line["origin"]["from"].clone())
        };
        assert_eq!(sender("my own words"), Some(json!("w1")), "{place}: {lead}");
        assert_eq!(sender("to all of you"), None, "{place}: it is in no team: {lead}");
        let of_one_below = sender("of one below").map(|from| from.as_str().unwrap().to_owned());
        match (place, of_one_below) {
            ("in-process", Some(from)) => assert!(from.starts_with("The agent a"), "{from}"),
            ("in-process", None) => panic!("{lead}"),
            // There it reaches no other agent.
            (_, from) => assert_eq!(from, None, "{place}"),
        }
        let session = stage.program.transcripts()[0].file_stem().unwrap().to_owned();
        let list = format!(".centurion/tasks/{}/log.jsonl", session.to_str().unwrap());
        let history = std::fs::read_to_string(stage.program.scratch.home().join(list)).unwrap();
        assert!(history.contains("one") && !history.contains("\"w1\""), "{place}: {history}");
    }
}
