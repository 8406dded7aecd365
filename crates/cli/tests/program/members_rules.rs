//! The rules of teams, in each place where members run: what holds in the lead's process holds in others.

use centurion_testkit::{Lack, skip};
use serde_json::{Value, json};

use crate::members::{TEAMS, member, says, told_lead};
use crate::program::ended;
use crate::sandboxes::can_confine;
use crate::stage::{Stage, Told, bash};

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
