//! Permission: one dispatch, one broker, no call without a verdict.

use std::sync::Arc;

use centurion_engine::{Answerer, Ask, ElicitFuture, Reply, ReplyFuture};
use centurion_mcp::Elicitation;
use centurion_permissions::Mode;
use centurion_protocol::Outcome;
use parking_lot::Mutex;
use serde_json::json;

use crate::bench::Bench;

/// Answers every question the same way and remembers what was asked.
pub(crate) struct Person {
    reply: fn(&Ask) -> Reply,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Answerer for Person {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        self.asked.lock().push(ask.tool.clone());
        let reply = (self.reply)(&ask);
        Box::pin(std::future::ready(Ok(reply)))
    }

    fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
        unreachable!("no server is there to ask")
    }
}

pub(crate) fn person(reply: fn(&Ask) -> Reply) -> Arc<Person> {
    Arc::new(Person { reply, asked: Mutex::default() })
}

fn raw(value: &serde_json::Value) -> Box<serde_json::value::RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn writes() -> Bench {
    let mut bench = Bench::says(
        &json!([[{"tool": "Write", "input": {"file_path": "x.txt", "content": "y"}}], "done"]),
    );
    bench.mode = Mode::Default;
    bench
}

#[tokio::test]
async fn without_an_answerer_a_call_is_denied_and_the_denial_is_told_everywhere() {
    let bench = writes();
    let told = bench.run("write").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert!(!bench.project().join("x.txt").exists());
    assert!(told.results()[0].0.contains("no user can be asked"), "the model knows why");
    let denial = &told.result()["permission_denials"][0];
    assert_eq!(
        (&denial["tool_name"], &denial["tool_input"]["content"]),
        (&json!("Write"), &json!("y"))
    );
    assert_eq!(told.of("system", Some("permission_denied")).len(), 1);
    assert!(told.lines().iter().any(|line| line["subtype"] == "permission_denied"));
}

/// A text that bash reads otherwise than it looks, or that a deny rule may mean, runs for no rule: a person
/// decides, and where none is there it is denied.
#[tokio::test]
async fn a_command_that_is_not_understood_runs_nothing_although_bash_is_allowed() {
    for (command, deny) in [
        ("\r#; touch marker", "Bash(rm *)"),
        ("\u{a0}#; touch marker", ""),
        ("echo \"open\ntouch marker", ""),
        ("x=touch; $x marker", "Bash(touch *)"),
        ("echo touch marker | sh", "Bash(touch *)"),
        ("to\0uch marker", ""),
    ] {
        let steps = json!([[{"tool": "Bash", "input": {"command": command}}], "done"]);
        let mut bench = Bench { allow: "Bash", ..Bench::says(&steps) };
        if !deny.is_empty() {
            bench.deny = deny;
        }
        bench.mode = Mode::Default;
        let told = bench.run("run it").await;
        assert_eq!(told.outcome, Some(Outcome::Completed));
        assert!(told.results()[0].1, "{command:?} is an error");
        let made = std::fs::read_dir(bench.project()).unwrap();
        let made: Vec<_> = made.map(|entry| entry.unwrap().file_name()).collect();
        assert!(!made.iter().any(|name| name == "marker"), "{command:?} made {made:?}");
        if !command.contains('\0') {
            assert!(told.results()[0].0.contains("no user can be asked"), "{:?}", told.results());
        }
    }
}

#[tokio::test]
async fn a_person_decides_and_may_change_the_input() {
    let person = person(|_| Reply::Allowed {
        input: Some(raw(&json!({"file_path": "x.txt", "content": "as the person wants it"}))),
        remember: Vec::new(),
    });
    let bench = Bench { answerer: Some(person.clone()), ..writes() };
    bench.run("write").await;
    let written = std::fs::read_to_string(bench.project().join("x.txt")).unwrap();
    assert_eq!(written, "as the person wants it");
    assert_eq!(*person.asked.lock(), ["Write"]);
}

/// What the program itself refuses is not told as the words of a person.
#[tokio::test]
async fn a_plan_outside_of_planning_is_put_before_no_user_and_none_is_said_to_have_refused_it() {
    let person = person(|_| Reply::Allowed { input: None, remember: Vec::new() });
    let steps = json!([[{"tool": "ExitPlanMode", "input": {"plan": "1. do it"}}], "done"]);
    let bench =
        Bench { answerer: Some(Arc::clone(&person) as Arc<dyn Answerer>), ..Bench::says(&steps) };
    let told = bench.run("plan").await;
    let (text, is_error) = &told.results()[0];
    assert!(
        *is_error && text.ends_with("the plan was not submitted: plan mode is not on"),
        "{text}"
    );
    assert!(person.asked.lock().is_empty());
}

#[tokio::test]
async fn a_no_that_interrupts_stops_the_run() {
    let person = person(|_| Reply::Denied { reason: "stop this".into(), interrupt: true });
    let bench = Bench { answerer: Some(person), ..writes() };
    let told = bench.run("write").await;
    assert_eq!(told.outcome, Some(Outcome::Cancelled));
    assert_eq!(told.result()["terminal_reason"], "aborted_tools");
    assert_eq!(told.requests.len(), 1);
}

#[tokio::test]
async fn a_yes_to_another_input_does_not_undo_a_denial() {
    let person = person(|_| Reply::Allowed {
        input: Some(raw(&json!({"file_path": "secret.txt", "content": "leaked"}))),
        remember: Vec::new(),
    });
    let bench = Bench { answerer: Some(person), deny: "Edit(secret.txt)", ..writes() };
    let told = bench.run("write").await;
    assert!(!bench.project().join("secret.txt").exists());
    assert!(told.results()[0].1);
}

#[tokio::test]
async fn a_no_that_interrupts_holds_for_the_calls_after_it() {
    let person = person(|_| Reply::Denied { reason: "stop this".into(), interrupt: true });
    let steps = json!([[
        {"tool": "Write", "input": {"file_path": "x.txt", "content": "y"}},
        {"tool": "Write", "input": {"file_path": "allowed.txt", "content": "y"}},
    ], "done"]);
    let mut bench =
        Bench { answerer: Some(person), allow: "Edit(allowed.txt)", ..Bench::says(&steps) };
    bench.mode = Mode::Default;
    let told = bench.run("write").await;
    assert_eq!(told.outcome, Some(Outcome::Cancelled));
    assert!(!bench.project().join("allowed.txt").exists());
    assert!(told.results()[1].0.contains("had no effect"));
}

#[tokio::test]
async fn a_denied_file_is_not_found_by_a_search() {
    let mut bench = Bench::says(&json!([
        [
            {"tool": "Grep", "input": {"pattern": "hidden", "output_mode": "content"}},
            {"tool": "Glob", "input": {"pattern": "**/*"}},
        ],
        "done"
    ]));
    bench.deny = "Read(secrets/**)";
    std::fs::create_dir(bench.project().join("secrets")).unwrap();
    bench.file("secrets/key.txt", "hidden key\n");
    bench.file("open.txt", "nothing hidden here\n");
    let results = bench.run("search").await.results();
    for (text, _) in &results {
        assert!(!text.contains("key"), "{text}");
    }
    assert!(results[0].0.contains("nothing hidden here"));
}

#[tokio::test]
async fn a_question_goes_through_the_broker_and_brings_the_answer_back() {
    let person = person(|_| Reply::Allowed {
        input: Some(raw(&json!({"answers": {"Which colour?": "blue"}}))),
        remember: Vec::new(),
    });
    let question = json!({"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [
        {"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}
    ]});
    let bench = Bench {
        answerer: Some(person),
        ..Bench::says(
            &json!([[{"tool": "AskUserQuestion", "input": {"questions": [question]}}], "done"]),
        )
    };
    let told = bench.run("ask").await;
    assert!(told.results()[0].0.contains("blue"), "{:?}", told.results());
}

#[tokio::test]
async fn plan_mode_changes_nothing_until_the_plan_is_approved() {
    let write = json!({"tool": "Write", "input": {"file_path": "x.txt", "content": "y"}});
    let person = person(|_| Reply::Allowed { input: None, remember: Vec::new() });
    let bench = Bench {
        answerer: Some(person),
        ..Bench::says(&json!([
            [{"tool": "EnterPlanMode", "input": {}}],
            [write],
            [{"tool": "ExitPlanMode", "input": {"plan": "write x.txt"}}],
            [write],
            "done"
        ]))
    };
    let told = bench.run("plan").await;
    let errors: Vec<bool> = told.results().into_iter().map(|(_, is_error)| is_error).collect();
    assert_eq!(errors, [false, true, false, false]);
    assert!(bench.project().join("x.txt").exists());
    let modes: Vec<_> = told
        .of("system", Some("status"))
        .iter()
        .map(|event| event["permissionMode"].clone())
        .filter(|mode| !mode.is_null())
        .collect();
    assert_eq!(modes, [json!("plan"), json!("acceptEdits")]);
}
