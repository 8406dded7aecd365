//! Sessions that `/clear` leaves while commands run in the background and other programs look at their team.

use serde_json::{Value, json};

use crate::host::Host;
use crate::members::{TEAMS, member};
use crate::program::eventually;
use crate::stage::Stage;

/// Says a text, and returns the result of the run.
fn turn(host: &mut Host, text: &str) -> Value {
    host.say(text);
    host.result()
}

#[test]
fn a_command_in_the_background_outlives_the_conversation_and_reports_to_the_next_one() {
    let waits = "until [ -e over ]; do sleep 0.02; done; echo FOUND-IT # @@heard";
    let input = json!({"command": waits, "description": "@@heard", "run_in_background": true});
    let start = json!({"tool": "Bash", "input": input});
    let stage = Stage::new(&json!({"lead": [[start], "started"], "heard": ["heard"]}));
    let flags = ["--model", stage.model(), "--allowedTools", "Bash"];
    let mut host = Host::start(&stage.program, &flags);
    let old = turn(&mut host, "@@lead")["session_id"].clone();
    let new = turn(&mut host, "/clear")["session_id"].clone();
    assert_ne!(old, new);
    stage.program.scratch.write("over", "");
    let told = host.until(|event| event["subtype"] == "task_notification").pop().unwrap();
    assert_eq!((&told["session_id"], &told["status"]), (&new, &json!("completed")), "{told}");
    let output = std::fs::read_to_string(told["output_file"].as_str().unwrap()).unwrap();
    assert!(output.contains("FOUND-IT"), "{output}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn the_file_about_a_team_names_the_session_that_its_lead_is_in() {
    let stage = Stage::new(&json!({
        "lead": [[member("w1", "@@work")], "started", "heard"],
        "work": ["rests"],
    }));
    let flags = ["--model", stage.model(), "--settings", TEAMS];
    let mut host = Host::start(&stage.program, &flags);
    let old = turn(&mut host, "@@lead")["session_id"].clone();
    let teams = stage.program.scratch.home().join(".centurion/teams");
    let names = |session: &Value| {
        let entries = std::fs::read_dir(&teams).into_iter().flatten().flatten();
        let configs = entries.filter_map(|it| std::fs::read(it.path().join("config.json")).ok());
        let configs: Vec<Value> =
            configs.filter_map(|text| serde_json::from_slice(&text).ok()).collect();
        let [config] = configs.as_slice() else { return None };
        let has_member = config["members"].as_array()?.iter().any(|it| it["name"] == "w1");
        (config["leadSessionId"] == *session && has_member).then_some(())
    };
    eventually("the file of the team", || names(&old));
    // The report of the member may come before.
    host.say("/clear");
    let seen = host.until(|event| event["type"] == "conversation_reset");
    let new = seen.last().unwrap()["new_conversation_id"].clone();
    assert_ne!(old, new);
    eventually("the file with the new session", || names(&new));
    assert_eq!(host.finish(), 0);
    assert!(!teams.exists() || std::fs::read_dir(&teams).unwrap().next().is_none());
}
