//! The task list that the agents of a session share, from the first call to what a later process finds.

use serde_json::{Value, json};

use crate::stage::{Stage, Told, agent};

const ON: [&str; 2] = ["--settings", r#"{"env": {"CLAUDE_CODE_ENABLE_TASKS": "1"}}"#];

fn create(subject: &str) -> Value {
    json!({"tool": "TaskCreate", "input": {"subject": subject, "description": "all of it"}})
}

fn update(task: &str, more: &Value) -> Value {
    let mut input = json!({"taskId": task});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"tool": "TaskUpdate", "input": input})
}

fn list() -> Value {
    json!({"tool": "TaskList", "input": {}})
}

/// The texts that the calls of the main agent came to.
fn results(told: &Told) -> Vec<String> {
    let main = told.of("user").into_iter().filter(|event| event["parent_tool_use_id"].is_null());
    let text = |event: &Value| {
        let content = &event["message"]["content"][0]["content"];
        content.as_str().or_else(|| content[0]["text"].as_str()).map(str::to_owned)
    };
    main.filter_map(text).collect()
}

fn tools(told: &Told) -> Vec<&str> {
    let init = told.of("init")[0];
    init["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn agents_share_one_list_and_claims_of_those_that_end_return() {
    // S-348, D-68
    let stage = Stage::new(&json!({
        "lead": [
            [create("one"), create("two")],
            [update("2", &json!({"addBlockedBy": ["1"]}))],
            [update("2", &json!({"status": "in_progress"}))],
            [agent("@@worker", &json!({"name": "w1"}))],
            [list()],
            [update("1", &json!({"status": "completed"}))],
            [list()],
            "done",
        ],
        "worker": [[update("1", &json!({"status": "in_progress"}))], "I give up."],
    }));
    let told = stage.run("@@lead", &ON);
    told.assert_code(0);
    let results = results(&told);
    assert_eq!(results[0], "Task #1 created successfully: one");
    assert_eq!(results[2], "Updated task #2 blockedBy");
    assert!(results[3].contains("waits for #1"), "{}", results[3]);
    assert_eq!(results[5], "#1 [pending] one\n#2 [pending] two [blocked by #1]");
    let expected = "Updated task #1 owner, status\nCan be started now: #2";
    assert!(results[6].starts_with(expected), "{}", results[6]);
    assert_eq!(results[7], "#1 [completed] one (team-lead)\n#2 [pending] two");
    let names = tools(&told);
    assert!(names.contains(&"TaskUpdate") && !names.contains(&"TodoWrite"), "{names:?}");

    let lists = stage.program.run(&["tasks", "--json"]).stdout;
    let lists: Value = serde_json::from_str(&lists).unwrap();
    let name = lists[0]["name"].as_str().unwrap();
    assert_eq!(name, told.of("init")[0]["session_id"]);
    let shown = stage.program.run(&["tasks", "show", &name[..8]]).stdout;
    assert_eq!(shown.lines().count(), 2, "{shown}");
    let history = stage.program.run(&["tasks", "show", name, "1"]).stdout;
    for what in ["created by team-lead", "owner w1", "given back: w1 has ended", "completed"] {
        assert!(history.contains(what), "{history}");
    }
}

#[test]
fn a_list_is_there_when_its_session_is_resumed_and_those_who_died_hold_nothing() {
    // D-68
    let stage = Stage::new(&json!({
        "lead": [[create("one"), create("two")], [update("2", &json!({"status": "in_progress"}))], "soon"],
        "again": [[list()], "done"],
    }));
    let told = stage.run("@@lead", &ON);
    let session = told.of("init")[0]["session_id"].as_str().unwrap().to_owned();
    let log = stage.program.scratch.home().join(format!(".centurion/tasks/{session}/log.jsonl"));
    // A worker had it when its process died.
    let mut text = std::fs::read_to_string(&log).unwrap();
    text.push_str(
        r#"{"at":"2026-11-18T00:00:00.000Z","by":"w1","what":"changed","id":1,"status":"in_progress","owner":"w1"}"#,
    );
    std::fs::write(&log, text + "\n").unwrap();
    let again = stage.run("@@again", &[&ON[..], &["--resume", &session]].concat());
    again.assert_code(0);
    assert_eq!(results(&again), ["#1 [pending] one\n#2 [in_progress] two (team-lead)"]);
}

#[test]
fn hooks_take_a_task_back_and_keep_one_open() {
    let stage = Stage::new(&json!({
        "lead": [
            [create("one"), create("never")],
            [update("1", &json!({"status": "completed"}))],
            [update("9", &json!({"status": "completed"}))],
            [list()],
            "done",
        ],
    }));
    let seen = stage.program.scratch.root().join("seen");
    let hook = |script: &str| json!([{"hooks": [{"type": "command", "command": script}]}]);
    let settings = json!({
        "env": {"CLAUDE_CODE_ENABLE_TASKS": "1"},
        "hooks": {
            "TaskCreated": hook("grep -q never && { echo 'not that' >&2; exit 2; }; exit 0"),
            "TaskCompleted": hook(&format!("cat >> {}; echo 'no tests' >&2; exit 2", seen.display())),
        },
    });
    let told = stage.run("@@lead", &["--settings", &settings.to_string()]);
    told.assert_code(0);
    assert!(!told.ended.stderr.contains("does not happen"), "{}", told.ended.stderr);
    let results = results(&told);
    assert!(results[1].contains("not that"), "{}", results[1]);
    assert!(results[2].contains("no tests"), "{}", results[2]);
    assert!(results[3].contains("Task #9 not found"), "{}", results[3]);
    assert_eq!(results[4], "#1 [pending] one");
    let seen = std::fs::read_to_string(seen).unwrap();
    assert_eq!(seen.matches("\"task_id\"").count(), 1, "asked only about what could be: {seen}");
    assert!(seen.contains(r#""task_subject":"one""#), "{seen}");
}

#[test]
fn without_the_setting_each_agent_has_its_own_list_and_the_flag_asks_for_the_shared_one() {
    let stage = Stage::new(&json!({"lead": ["done"]}));
    let usual = stage.run("@@lead", &[]);
    let names = tools(&usual);
    assert!(names.contains(&"TodoWrite") && !names.contains(&"TaskCreate"), "{names:?}");
    let asked = stage.run("@@lead", &["--tools", "TaskCreate,TaskList"]);
    assert_eq!(tools(&asked), ["TaskCreate", "TaskList"]);
    assert!(!asked.ended.stderr.contains("no tool named"), "{}", asked.ended.stderr);
    let lists = stage.program.run(&["tasks"]);
    assert_eq!(lists.stdout, "There are no task lists.\n", "none was used");
    let none = stage.program.run(&["tasks", "show", "../.."]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("there is no task list"), "{}", none.stderr);
}
