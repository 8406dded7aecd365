//! Members of a team, as their definitions and the mode of their lead have them begin.

use centurion_permissions::Mode;
use serde_json::{Value, json};

use crate::agent_stage::{agent, message};
use crate::teams::{member, of_agent, team};

fn writes(name: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": name, "content": "x"}})
}

/// A call that starts a member of a type.
fn of_type(kind: &str, name: &str, prompt: &str) -> Value {
    json!({"tool": "Agent", "input": {
        "description": "a job", "prompt": prompt, "subagent_type": kind, "name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_runs_in_the_background_is_refused_to_a_member() {
    // S-150, D-71: `background: true` of a definition is the same as `run_in_background` of a call
    let bench = team(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "done"],
        "work": [
            [agent("aside", "@@x", &json!({}))],
            [message("team-lead", "tried")], "resting",
        ],
        "x": ["never said"],
    }));
    bench.agent("aside", "background: true\n", "You work aside.");
    let told = bench.run("@@lead").await;
    let text = of_agent(&told, "w1").last().unwrap().texts().join("\n");
    assert!(text.contains("do not start agents in the background"), "{text}");
    assert!(!told.requests.iter().any(|it| it.to_string().contains("never said")));
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_definition_plans_changes_nothing_before_its_plan_is_approved() {
    // D-66, S-356
    let bench = team(&json!({
        "lead": [[of_type("planner", "w1", "@@work")], "waiting", "done"],
        "work": [[writes("a.txt")], [message("team-lead", "tried")], "resting"],
    }));
    bench.agent("planner", "permissionMode: plan\n", "You plan.");
    let told = bench.run("@@lead").await;
    assert_eq!(told.data_of("teammate_spawned")[0]["plan_mode_required"], true);
    assert!(told.team_mail().join("\n").contains("tried"));
    assert!(!bench.project().join("a.txt").exists());
}

#[tokio::test(start_paused = true)]
async fn a_member_of_a_lead_that_plans_changes_nothing_before_its_plan_is_approved() {
    // D-66, S-356: also if its definition would let it
    let mut bench = team(&json!({
        "lead": [[of_type("eager", "w1", "@@work")], "waiting", "done"],
        "work": [[writes("a.txt")], [message("team-lead", "tried")], "resting"],
    }));
    bench.mode = Mode::Plan;
    bench.agent("eager", "permissionMode: acceptEdits\n", "You are eager.");
    let told = bench.run("@@lead").await;
    assert_eq!(told.data_of("teammate_spawned")[0]["plan_mode_required"], true);
    assert!(told.team_mail().join("\n").contains("tried"));
    assert!(!bench.project().join("a.txt").exists());
}
