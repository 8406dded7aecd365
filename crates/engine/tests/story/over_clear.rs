//! `/clear` begins another session: state that goes along, and state that stays with the session that is left.

use centurion_engine::{Destination, Remember, Reply, RuleChange, SavedChange, SessionMode};
use centurion_permissions::{Mode, RuleKind};
use centurion_protocol::{Block, SeededWorld, World as _};
use serde_json::{Value, json};

use crate::agent_ends::dies_when;
use crate::agent_mail::{later, read_mail};
use crate::agent_stage::{message, starts, waits};
use crate::bench::{Asked, Bench, Told};
use crate::hook_stage::Stage;
use crate::new_conversations::{before, first, resume};
use crate::permissions::person;
use crate::skills::{bench, denies, invokes, said, skill, talk};

fn write(file: &str) -> Value {
    json!([{"tool": "Write", "input": {"file_path": file, "content": "x"}}])
}

fn results(events: &[Value], count: usize) -> bool {
    events.iter().filter(|event| event["type"] == "result").count() >= count
}

#[tokio::test(start_paused = true)]
async fn files_that_the_old_conversation_read_are_unread_in_the_new_one() {
    let edit = json!([{"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}}]);
    let bench = bench(&json!({
        "lead": [[{"tool": "Read", "input": {"file_path": "a.txt"}}], "read"],
        "then": [edit, "done"],
    }));
    let file = bench.file("a.txt", "one\n");
    let told = talk(&bench, &["@@lead", "/clear", "@@then"]).await;
    assert!(told.results()[1].1, "{:?}", told.results());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "one\n");
}

#[tokio::test(start_paused = true)]
async fn what_a_person_allows_for_the_session_stays_allowed() {
    let person = person(|_| {
        let texts = vec!["Edit".to_owned()];
        let what = SavedChange::Rules { change: RuleChange::Add, kind: RuleKind::Allow, texts };
        let remember = vec![Remember { what, destination: Destination::Session }];
        Reply::Allowed { input: None, remember }
    });
    let scripts = json!({"lead": [write("a.txt"), "done"], "then": [write("b.txt"), "done"]});
    let mut bench = Bench { answerer: Some(person.clone()), ..bench(&scripts) };
    bench.mode = Mode::Default;
    let told = talk(&bench, &["@@lead", "/clear", "@@then"]).await;
    assert!(bench.project().join("b.txt").exists(), "{:?}", told.results());
    assert_eq!(person.asked.lock().len(), 1, "a person who has answered is not asked again");
    // It ends with the process.
    let (_, told) = resume(bench, &told, "@@then").await;
    assert_eq!(person.asked.lock().len(), 2, "{:?}", told.results());
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_stays_spent() {
    let mut bench = bench(&json!({"lead": ["one"], "then": ["two"]}));
    bench.model = "claude-sonnet-5-5";
    let told = talk(&bench, &["@@lead", "/clear", "@@then", "/cost"]).await;
    let costs: Vec<f64> = told
        .of("result", None)
        .iter()
        .map(|result| result["total_cost_usd"].as_f64().unwrap())
        .collect();
    assert!(costs[0] > 0.0 && costs[1] >= costs[0] && costs[2] > costs[1], "{costs:?}");
}

#[tokio::test(start_paused = true)]
async fn checkpoints_belong_to_the_session_whose_prompts_they_are_of() {
    let mut bench = bench(&json!({
        "lead": [write("a.txt"), "done"],
        "then": [write("b.txt"), "done"],
    }));
    let session = first(&bench);
    let state = bench.dir.path().join("state");
    let history = state.join(session.to_string()).join("file-history");
    bench.also(move |options| options.storage.file_history = Some(history.clone()));
    let told = talk(&bench, &["@@lead", "/clear", "@@then", "/rewind"]).await;
    let list = told.result()["result"].as_str().unwrap().to_owned();
    assert!(list.contains("@@then") && !list.contains("@@lead"), "{list}");
    let made = |bench: &Bench, name: &str| bench.project().join(name).exists();
    let old = before(&bench, &told);
    let (mut bench, back) = resume(bench, &old, "/rewind 1 files").await;
    assert!(!made(&bench, "a.txt") && made(&bench, "b.txt"), "{}", back.result());
    let history = state.join(told.session.to_string()).join("file-history");
    bench.also(move |options| options.storage.file_history = Some(history.clone()));
    let (bench, back) = resume(bench, &told, "/rewind 1 files").await;
    assert!(!made(&bench, "b.txt"), "{}", back.result());
}

#[tokio::test(start_paused = true)]
async fn a_schedule_goes_along_and_leaves_the_old_session() {
    let schedule = json!({"tool": "CronCreate", "input": {"cron": "*/5 * * * *", "prompt": "@@tick", "durable": true}});
    let mut bench = bench(&json!({
        "lead": [[schedule], "set up"],
        "tick": ["ticked"],
        "list": [[{"tool": "CronList", "input": {}}], "listed"],
    }));
    bench.knows_agents(|agents| agents.rules.mode = SessionMode::Assistant);
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            watcher.until(|events, _| results(events, 1)).await;
            handle.submit(SeededWorld::new(60).record_id(), vec![Block::text("/clear")]);
            watcher.until(|events, _| results(events, 3)).await;
        })
        .await;
    let ticked = said(told.asked.last().unwrap());
    assert!(ticked.contains("@@tick") && !ticked.contains("@@lead"), "{ticked}");
    let old = before(&bench, &told);
    let (bench, told) = resume(bench, &told, "@@list").await;
    assert!(told.results().last().unwrap().0.contains("@@tick"), "{:?}", told.results());
    let (_, told) = resume(bench, &old, "@@list").await;
    assert!(!told.results().last().unwrap().0.contains("@@tick"), "{:?}", told.results());
}

#[test]
fn mail_that_waits_is_read_in_one_conversation_and_not_in_the_other() {
    let bench = bench(&json!({
        "lead": [[starts("@@scout")], {"text": "slow", "latency_ms": 60_000}],
        "scout": [[message("main", "WORD-FROM-SCOUT @@later")], {"text": "found", "latency_ms": 120_000}],
        "later": ["read", "again", "again"],
        "then": ["new"],
    }));
    // The process dies when the message is accepted.
    let is_scouts = |it: &&Asked| it.agent.is_some();
    let old = dies_when(&bench, |_, asked| asked.iter().filter(is_scouts).count() == 2);
    let heard = |told: &Told| {
        let main = told.asked.iter().rfind(|asked| asked.agent.is_none()).unwrap();
        said(main).matches("WORD-FROM-SCOUT").count()
    };
    // It was accepted before the command, and is read before it.
    let (bench, new) = later(resume(bench, &old, "/clear"));
    assert_ne!(new.session, old.session);
    assert_eq!(read_mail(&old.transcript), ["WORD-FROM-SCOUT @@later"]);
    assert!(read_mail(&new.transcript).is_empty());
    let (bench, again) = later(resume(bench, &new, "@@then"));
    assert_eq!(heard(&again), 0, "{:?}", again.main_texts());
    let (_, again) = later(resume(bench, &old, "@@later"));
    assert_eq!(heard(&again), 1, "{:?}", again.main_texts());
}

#[tokio::test(start_paused = true)]
async fn a_large_report_of_the_new_conversation_can_be_read_after_a_resume() {
    let long = format!("{}THE-END", "0123456789\n".repeat(8_000));
    let place = "${re:the whole report is in (\\S+\\.output)}";
    let read = json!([{"tool": "Read", "input": {"file_path": place, "offset": 7_990}}]);
    let mut bench = bench(&json!({
        "lead": ["one"],
        "then": [[waits("@@wordy")], "reported"],
        "wordy": [long],
        "more": [read, "read"],
    }));
    bench.mode = Mode::Default;
    let told = talk(&bench, &["@@lead", "/clear", "@@then"]).await;
    let (_, told) = resume(bench, &told, "@@more").await;
    let (text, is_error) = told.results().pop().unwrap();
    assert!(!is_error && text.contains("THE-END"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_skill_end_with_the_conversation_that_invoked_it() {
    for invocation in ["/care", "@@model"] {
        for (command, is_denied) in
            [("/clear", false), ("/rewind 2 conversation", false), ("/cost", true)]
        {
            let bench = bench(&json!({
                "lead": ["ready"],
                "model": [invokes("care", ""), "invoked"],
                "then": [write("then.txt"), "done"],
            }));
            skill(&bench, "care", &denies("Write", "no"), "Be careful @@lead");
            let bench = Stage::silent().set(bench);
            let told = talk(&bench, &["@@lead", invocation, command, "@@then"]).await;
            let is_made = bench.project().join("then.txt").exists();
            assert_eq!(is_made, !is_denied, "{invocation}, {command}: {:?}", told.results());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_is_invoked_again_brings_its_hooks_again() {
    let bench = bench(&json!({"lead": ["ready"], "then": [write("then.txt"), "done"]}));
    skill(&bench, "care", &denies("Write", "no"), "Be careful @@lead");
    let bench = Stage::silent().set(bench);
    let told = talk(&bench, &["/care", "/clear", "/care", "@@then"]).await;
    assert!(!bench.project().join("then.txt").exists(), "{:?}", told.results());
    assert_eq!(told.asked.iter().filter(|it| said(it).contains("Be careful")).count(), 4);
}
