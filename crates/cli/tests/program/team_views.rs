//! The files by which other programs see a team, and what these write into them.

use serde_json::{Value, json};

use crate::members::{TEAMS, member, says, told_lead};
use crate::program::{ended, eventually, signal};
use crate::stage::{Stage, Told, bash};

const FLAGS: [&str; 4] = ["--settings", TEAMS, "--allowedTools", "Bash"];

fn creates() -> Value {
    json!({"tool": "TeamCreate", "input": {"team_name": "alpha", "description": "for a test"}})
}

/// Waits in a shell until a file of the team holds a text.
fn until(text: &str, file: &str) -> String {
    format!("until grep -qs '{text}' \"$HOME\"/.centurion/{file}; do sleep 0.02; done")
}

fn teams(stage: &Stage) -> std::path::PathBuf {
    stage.program.scratch.home().join(".centurion/teams")
}

#[test]
fn other_programs_see_a_team_and_what_they_write_to_a_member_is_read_once_from_outside() {
    // D-69; S-346
    let taken = until("look[ ]here", "projects/*/*/subagents/*.jsonl");
    let stage = Stage::new(&json!({
        "lead": [
            [creates()],
            [member("w1", "@@work")],
            [bash(&until("the report", "teams/alpha/inboxes/team-lead.json"))],
            [bash(&taken)],
            "waiting",
            "done",
            "done",
        ],
        "work": [[says("team-lead", "the report")], "resting", "read", "read"],
    }));
    let child = stage.command("@@lead", &FLAGS).spawn().unwrap();
    let shown = |name: &str| std::fs::read_to_string(teams(&stage).join("alpha").join(name)).ok();
    let inbox = eventually("a message that the lead has read", || {
        shown("inboxes/team-lead.json").filter(|text| text.contains("\"read\": true"))
    });
    let config = shown("config.json").unwrap();
    let frame =
        json!({"from": "team-lead", "text": json!({"type": "shutdown_request"}).to_string()});
    let appended = json!([{"from": "a script", "text": "look here"}, frame]).to_string();
    std::fs::write(teams(&stage).join("alpha/inboxes/w1.json"), appended).unwrap();
    let told = Told::new(ended(child.wait_with_output().unwrap()));
    told.assert_code(0);
    let created = told.data().into_iter().find(|data| data["team_file_path"].is_string());
    let path = created.unwrap()["team_file_path"].as_str().unwrap().to_owned();
    assert!(path.ends_with(".centurion/teams/alpha/config.json"), "{path}");
    let (config, inbox): (Value, Value) =
        (serde_json::from_str(&config).unwrap(), serde_json::from_str(&inbox).unwrap());
    assert_eq!((&config["name"], &config["description"]), (&json!("alpha"), &json!("for a test")));
    assert_eq!(config["leadAgentId"], "team-lead@alpha");
    let [lead, w1] = &config["members"].as_array().unwrap()[..] else { panic!("{config}") };
    assert_eq!((&lead["agentType"], &lead["tmuxPaneId"]), (&json!("team-lead"), &json!("leader")));
    for (field, value) in [
        ("agentId", json!("w1@alpha")),
        ("color", json!("blue")),
        ("prompt", json!("@@work")),
        ("agentType", json!("general-purpose")),
        ("backendType", json!("in-process")),
        ("planModeRequired", json!(false)),
    ] {
        assert_eq!(w1[field], value, "{config}");
    }
    assert_eq!((&inbox[0]["from"], &inbox[0]["text"]), (&json!("w1"), &json!("the report")));
    let of_member = stage.agent_transcripts().concat();
    let outside = "Another program, in the name of";
    assert!(of_member.contains(outside), "{of_member}");
    let read = |text: &str| {
        let lines = of_member.lines().filter(|line| line.contains("\"type\":\"user\""));
        lines.filter(|line| line.contains(text)).count()
    };
    assert_eq!(read("look here"), 1, "{of_member}");
    assert_eq!(read("shutdown_request"), 0, "a frame of others counts for nothing");
    assert!(!teams(&stage).join("alpha").exists(), "it goes with its session");
}

#[test]
fn what_was_written_to_a_lead_that_was_killed_is_read_once_by_the_next() {
    // D-69
    let stage = Stage::new(&json!({
        "lead": [[creates()], [member("w1", "@@work")], "waiting"],
        "work": [[bash("touch begun; sleep 600")], "never said"],
        "next": [[bash(&until("look[ ]here", "projects/*/*.jsonl"))], "done", "done", "done"],
    }));
    let id = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";
    let mut lead =
        stage.command("@@lead", &[&FLAGS[..], &["--session-id", id]].concat()).spawn().unwrap();
    let begun = stage.program.scratch.project().join("begun");
    let inbox = teams(&stage).join("alpha/inboxes/team-lead.json");
    eventually("the member's work", || (begun.exists() && inbox.exists()).then_some(()));
    signal(&lead, "-9");
    lead.wait().unwrap();
    assert!(teams(&stage).join("alpha/config.json").exists(), "it stays after a crash");
    std::fs::write(&inbox, r#"[{"from": "a script", "text": "look here"}]"#).unwrap();
    stage.run("@@next", &[&FLAGS[..], &["--resume", id]].concat()).assert_code(0);
    let told = told_lead(&stage);
    let is_read = |line: &&str| {
        line.contains("\"type\":\"user\"") && line.contains("Another program, in the name of")
    };
    assert_eq!(told.lines().filter(is_read).count(), 1, "{told}");
    assert!(!teams(&stage).join("alpha").exists());
}

#[test]
fn tasks_of_a_team_are_seen_in_a_directory_of_its_name_as_long_as_it_is_there() {
    // D-69
    let create = json!({"tool": "TaskCreate", "input": {"subject": "one", "description": "d"}});
    let give = json!({"tool": "TaskUpdate", "input": {"taskId": "1", "owner": "w1"}});
    let stage = Stage::new(&json!({
        "lead": [
            [creates()],
            [create],
            [member("w1", "@@work")],
            [bash(&until("pending", "tasks/alpha/1.json"))],
            [give],
            [bash(&until("owner.*w1", "tasks/alpha/1.json"))],
            [bash("cat \"$HOME\"/.centurion/tasks/alpha/1.json > seen.json")],
            "waiting",
            "done",
        ],
        "work": [[says("team-lead", "ready")], "resting", "resting"],
    }));
    stage.run("@@lead", &FLAGS).assert_code(0);
    let seen: Value = serde_json::from_str(&stage.program.scratch.read("seen.json")).unwrap();
    let expected = json!({
        "id": "1", "subject": "one", "description": "d", "owner": "w1", "status": "pending",
        "blocks": [], "blockedBy": [],
    });
    assert_eq!(seen, expected);
    let lists = stage.program.scratch.home().join(".centurion/tasks");
    assert!(!lists.join("alpha").exists(), "it goes with its session");
    assert_eq!(std::fs::read_dir(&lists).unwrap().count(), 1, "the list stays");
}

#[test]
fn of_two_leads_with_a_team_of_one_name_the_first_is_shown_and_neither_hears_the_other() {
    // Report 5: mail of other sessions arrives
    let work = |word: &str| json!([[says("team-lead", word)], "resting", "read"]);
    let stage = Stage::new(&json!({
        "lead": [
            [creates()], [json!({"tool": "TaskCreate", "input": {"subject": "of the first", "description": "d"}})],
            [member("w1", "@@work")],
            [bash(&until("of the first", "tasks/alpha/1.json"))],
            [bash("touch shown; until [ -e over ]; do sleep 0.02; done")],
            "waiting", "done", "done",
        ],
        "second": [
            [creates()], [json!({"tool": "TaskCreate", "input": {"subject": "of the second", "description": "d"}})],
            [member("w1", "@@other")],
            [says("w1", "for the second alone")],
            "waiting", "done", "done",
        ],
        "work": work("I am with the first"),
        "other": work("I am with the second"),
    }));
    let project = stage.program.scratch.project();
    let first = stage.command("@@lead", &FLAGS).spawn().unwrap();
    eventually("the first team", || project.join("shown").exists().then_some(()));
    let shown = || {
        let read = |path: &str| {
            std::fs::read_to_string(stage.program.scratch.home().join(".centurion").join(path))
                .unwrap()
        };
        (read("teams/alpha/config.json"), read("tasks/alpha/1.json"))
    };
    let before: Value = serde_json::from_str(&shown().0).unwrap();
    let second = stage.run("@@second", &FLAGS);
    second.assert_code(0);
    let after: Value = serde_json::from_str(&shown().0).unwrap();
    assert_eq!(before["leadSessionId"], after["leadSessionId"]);
    assert!(shown().1.contains("of the first"), "{}", shown().1);
    std::fs::write(project.join("over"), "").unwrap();
    let first = Told::new(ended(first.wait_with_output().unwrap()));
    first.assert_code(0);
    for (told, own, other) in
        [(&first, "the first", "the second"), (&second, "the second", "the first")]
    {
        let said = |word: &str| told.ended.stdout.contains(&format!("I am with {word}"));
        assert!(said(own) && !said(other), "{}", told.ended.stdout);
    }
    assert!(!first.ended.stdout.contains("for the second alone"));
    assert!(!teams(&stage).join("alpha").exists());
}
