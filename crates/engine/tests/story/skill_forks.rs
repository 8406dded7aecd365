//! Skills that an agent of its own carries out (`context: fork`): what the person is shown, what the model is told, and
//! the rules of every launch.

use centurion_engine::{AgentOptions, SessionMode};
use centurion_protocol::{Block, Effort, Outcome, SeededWorld, World};
use serde_json::{Value, json};

use crate::agent_stage::starts;
use crate::bench::Bench;
use crate::hook_stage::Stage;
use crate::skills::{bench, denies, said, skill, talk};

#[tokio::test(start_paused = true)]
async fn a_person_is_shown_the_report_and_not_what_models_are_told_about_it() {
    // S-284
    let bench = bench(&json!({"scout": ["found it"], "then": ["done"]}));
    skill(&bench, "find", "context: fork\n", "@@scout Find $ARGUMENTS.");
    let told = talk(&bench, &["/find gold", "@@then"]).await;
    let results = told.of("result", None);
    assert_eq!(results[0]["result"], "found it");
    let main = said(&told.asked[1]);
    assert!(main.contains("<local-command-stdout>") && main.contains("found it"), "{main}");
    assert!(main.contains("what follows is its text, not the user's"), "{main}");
}

#[tokio::test(start_paused = true)]
async fn a_person_is_told_that_the_agent_of_a_skill_works_in_the_background() {
    // S-285, D-30
    for assistant in [false, true] {
        let mut bench = Bench::cast(&json!({"scout": ["found it"]}));
        bench.knows_agents(move |agents: &mut AgentOptions| {
            if assistant {
                agents.rules.mode = SessionMode::Assistant;
            }
        });
        let background = if assistant { "" } else { "background: true\n" };
        skill(&bench, "find", &format!("context: fork\n{background}"), "@@scout Find it.");
        let told = bench.run("/find").await;
        let id = &told.agent_ids()[0];
        let results = told.of("result", None);
        let expected = format!(
            "/find works in the background as agent {id}. You are shown its report when it has ended."
        );
        assert_eq!(results[0]["result"], expected);
        let news = said(told.asked.last().unwrap());
        assert!(news.contains("<task-notification>") && news.contains("found it"), "{news}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_that_is_too_long_is_shown_in_part_with_the_file_that_has_all_of_it() {
    let long = format!("{}the end", "0123456789".repeat(4_000));
    let bench = bench(&json!({"scout": [long], "then": ["done"]}));
    skill(&bench, "find", "context: fork\n", "@@scout");
    let told = talk(&bench, &["/find", "@@then"]).await;
    let results = told.of("result", None);
    let shown = results[0]["result"].as_str().unwrap();
    assert!(shown.len() < 33_000, "{} bytes", shown.len());
    let (_, file) = shown.rsplit_once("the whole report is in ").unwrap();
    let file = std::fs::read_to_string(file.trim_end_matches(']')).unwrap();
    assert!(file.contains(&long));
    assert!(said(&told.asked[1]).len() < 40_000);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_cut_off_is_no_success_of_the_command() {
    let read = json!([{"text": "so far"}, {"tool": "Read", "input": {"file_path": "a.txt"}}]);
    let mut bench = Bench::cast(&json!({"scout": vec![read; 9]}));
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|_| {});
    bench.agent("brief", "maxTurns: 2\n", "You are brief.");
    skill(&bench, "find", "context: fork\nagent: brief\n", "@@scout");
    let told = bench.run("/find").await;
    assert_eq!(told.outcome, Some(Outcome::CommandFailed));
    let errors = told.result()["errors"].to_string();
    assert!(errors.contains("stopped after 2 requests") && errors.contains("so far"), "{errors}");
    assert!(!errors.contains("agentId"), "{errors}");
}

fn reads(file: &str) -> Value {
    json!([{"tool": "Read", "input": {"file_path": file}}])
}

#[tokio::test(start_paused = true)]
async fn what_a_skill_says_about_its_agent_holds_for_that_agent_alone() {
    let bench =
        bench(&json!({"scout": [reads("a.txt"), "blind"], "then": [reads("a.txt"), "seen"]}));
    bench.file("a.txt", "alpha\n");
    let front = format!(
        "context: fork\nmodel: claude-haiku-5-5\neffort: low\ndisallowed-tools: Write\n{}",
        denies("Read", "the skill says no")
    );
    skill(&bench, "find", &front, "@@scout");
    let bench = Stage::silent().set(bench);
    let told = talk(&bench, &["/find", "@@then"]).await;
    let [first, second, main, last] = told.asked.as_slice() else { panic!("{}", told.asked.len()) };
    assert_eq!((first.model.as_str(), first.effort), ("claude-haiku-5-5", Some(Effort::Low)));
    assert!(!first.tools.contains(&"Write".to_owned()) && main.tools.contains(&"Write".to_owned()));
    assert!(said(second).contains("the skill says no") && !said(second).contains("alpha"));
    assert_eq!((main.model.as_str(), main.agent.is_none()), ("claude-opus-5-5", true));
    assert!(said(last).contains("alpha"), "its hooks ended with it: {}", said(last));
}

#[tokio::test(start_paused = true)]
async fn a_typed_fork_is_shown_and_recorded_like_every_agent() {
    // S-284: with progress
    let bench = bench(&json!({"scout": [reads("a.txt"), "found it"]}));
    bench.file("a.txt", "alpha\n");
    skill(&bench, "find", "context: fork\n", "@@scout Find it.");
    let told = bench.run("/find").await;
    let id = told.agent_ids()[0].clone();
    let of = |subtype| -> Vec<&Value> {
        let events = told.of("system", Some(subtype)).into_iter();
        events.filter(|event| event["task_id"] == id.as_str()).collect()
    };
    let started = of("task_started");
    assert_eq!((started.len(), &started[0]["description"]), (1, &json!("/find")));
    assert!(!of("task_progress").is_empty(), "people see how far it is");
    assert_eq!(of("task_notification")[0]["status"], "completed");
    let own = std::fs::read_to_string(told.agent_transcript(&id)).unwrap();
    assert!(own.contains("Find it.") && own.contains("found it"), "{own}");
    let is_command =
        |line: &Value| line["subtype"] == "command" && line["data"]["command"] == "find";
    assert!(told.lines().iter().any(is_command));
    assert_eq!(told.result()["subagent_stats"]["spawned"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_typed_fork_passes_the_limits_of_every_launch() {
    let refused = |change: fn(&mut AgentOptions)| {
        let mut bench = Bench::cast(&json!({"scout": ["found it"]}));
        bench.knows_agents(change);
        skill(&bench, "find", "context: fork\n", "@@scout");
        bench
    };
    for (change, reason) in [
        ((|agents| agents.rules.limits.depth = 0) as fn(&mut AgentOptions), "at most 0 may be"),
        (|agents| agents.rules.limits.spawns = Some(0), "subagents.limits.spawns is 0"),
        (
            |agents| agents.rules.limits.spawns_per_minute = Some(0),
            "subagents.limits.spawnsPerMinute is 0",
        ),
    ] {
        let told = refused(change).run("/find").await;
        assert_eq!((told.asked.len(), told.outcome), (0, Some(Outcome::CommandFailed)));
        let errors = told.result()["errors"].to_string();
        assert!(errors.contains(reason), "{errors}");
        assert!(told.agent_ids().is_empty());
    }
    let mut bench = refused(|_| {});
    bench.max_budget = Some(0.0);
    let told = bench.run("/find").await;
    assert_eq!((told.asked.len(), told.outcome), (0, Some(Outcome::CommandFailed)));
    assert!(told.result()["errors"].to_string().contains("budget"), "{}", told.result());
    let mut bench = refused(|_| {});
    bench.deny = "Agent(general-purpose)";
    let told = bench.run("/find").await;
    assert_eq!((told.asked.len(), told.outcome), (0, Some(Outcome::CommandFailed)));
}

#[tokio::test(start_paused = true)]
async fn a_typed_fork_waits_for_a_free_slot() {
    let scripts = json!({
        "lead": [[starts("@@slow")], "started"],
        "slow": [{"text": "slow and steady", "latency_ms": 60_000}],
        "scout": ["found it"],
    });
    let mut bench = Bench::cast(&scripts);
    bench.knows_agents(|agents| agents.rules.limits.running = 1);
    skill(&bench, "find", "context: fork\n", "@@scout");
    let told = talk(&bench, &["@@lead", "/find"]).await;
    let order: Vec<bool> = told.asked.iter().map(|it| said(it).contains("@@scout")).collect();
    assert!(order.iter().any(|it| *it), "it ran: {order:?}");
    let results = told.of("result", None);
    assert!(results.iter().any(|it| it["result"] == "found it"), "{results:?}");
    assert_eq!(told.result()["subagent_stats"]["completed"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_of_a_typed_fork_ends_its_agent_and_the_session_continues() {
    let scripts = json!({
        "scout": [{"text": "never", "latency_ms": 3_600_000}],
        "next": ["fine"],
    });
    let bench = bench(&scripts);
    skill(&bench, "find", "context: fork\n", "@@scout");
    let told = bench
        .live("/find", |handle, watcher| async move {
            watcher.until(|_, asked| asked.len() == 1).await;
            handle.interrupt();
            watcher.until(|events, _| events.iter().any(|it| it["type"] == "result")).await;
            handle.submit(SeededWorld::new(900).record_id(), vec![Block::text("@@next")]);
        })
        .await;
    let results = told.of("result", None);
    assert!(results[0]["terminal_reason"].as_str().unwrap().starts_with("aborted_"), "{results:?}");
    assert_eq!(results[1]["result"], "fine");
    let ended = told.of("system", Some("task_notification"));
    assert_eq!((ended.len(), &ended[0]["status"]), (1, &json!("stopped")));
    assert_eq!(told.news().len(), 0, "its end was the command's to tell");
}
