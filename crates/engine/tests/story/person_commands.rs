//! Commands by which a person moves, adds, loops, branches off and asks where things stand.

use std::sync::Arc;

use centurion_engine::{Answerer, Ask, Reply};
use centurion_permissions::{Mode, Rule, RuleOrigin};
use centurion_protocol::{Block, SeededWorld, World};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::agent_stage::field;
use crate::bench::Bench;
use crate::permissions::person;
use crate::skills::{said, talk};

fn read(path: &str) -> Value {
    json!({"tool": "Read", "input": {"file_path": path}})
}

fn errors(told: &crate::bench::Told, at: usize) -> Value {
    told.of("result", None)[at]["errors"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_recap_is_asked_beside_the_conversation_which_never_hears_of_it() {
    let bench = Bench::cast(&json!({
        "lead": ["first answer", "it stands well", "second answer"],
    }));
    let told = talk(&bench, &["@@lead", "/recap", "go on"]).await;
    let results = told.of("result", None);
    let recap = results[1]["result"].as_str().unwrap();
    assert!(!recap.is_empty() && recap != "first answer", "{recap}");
    let asked = said(&told.asked[1]);
    assert!(asked.contains("where it stands") && asked.contains("first answer"), "{asked}");
    let next = said(told.asked.last().unwrap());
    assert!(!next.contains("where it stands") && !next.contains(recap), "{next}");
    let told = bench.run("/recap").await;
    assert_eq!(errors(&told, 0), json!(["nothing has been said yet: ask the agent itself"]));
    assert!(told.asked.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_a_person_adds_can_be_read_from_then_on() {
    let mut bench = Bench::cast(&json!({
        "lead": [[read("../elsewhere/note.txt")], "no", [read("../elsewhere/note.txt")], "yes"],
    }));
    bench.mode = Mode::Default;
    let other = bench.project().join("../elsewhere");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("note.txt"), "NOTED").unwrap();
    std::fs::write(other.join("CLAUDE.md"), "THE RULES OF ELSEWHERE").unwrap();
    let told = talk(&bench, &["@@lead", "/add-dir ../elsewhere", "and now"]).await;
    let reads: Vec<bool> = told.results().iter().map(|(text, _)| text.contains("NOTED")).collect();
    assert_eq!(reads, [false, true], "{:?}", told.results());
    let told_person = told.of("result", None)[1]["result"].as_str().unwrap();
    assert!(told_person.contains("elsewhere is a working directory"), "{told_person}");
    for (command, reason) in [
        ("/add-dir", "say which directory: /add-dir PATH"),
        ("/add-dir ../nowhere", "nowhere is no directory"),
        ("/add-dir a.txt", "a.txt is no directory"),
        ("/add-dir .", "is a working directory already"),
    ] {
        bench.file("a.txt", "x");
        let told = bench.run(command).await;
        let said = errors(&told, 0);
        assert!(said[0].as_str().unwrap().ends_with(reason), "{command}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_moves_the_commands_of_the_main_agent_and_it_is_told() {
    let bench = Bench::cast(&json!({
        "lead": ["here", [read("deep.txt")], "there"],
    }));
    std::fs::create_dir(bench.project().join("sub dir")).unwrap();
    std::fs::write(bench.project().join("sub dir/deep.txt"), "DEEP").unwrap();
    let told = talk(&bench, &["@@lead", "/cd 'sub dir'", "look"]).await;
    assert!(told.results()[0].0.contains("DEEP"), "{:?}", told.results());
    let next = said(told.asked.last().unwrap());
    assert!(next.contains("The user has moved you: commands run in"), "{next}");
    for (command, reason) in [
        ("/cd", "say where to: /cd PATH"),
        ("/cd nowhere", "nowhere is no directory"),
        ("/cd ..", "is outside of the directories of this session: /add-dir adds one"),
        ("/cd /", "/ is outside of the directories of this session: /add-dir adds one"),
    ] {
        let told = bench.run(command).await;
        let said = errors(&told, 0);
        assert!(said[0].as_str().unwrap().ends_with(reason), "{command}: {said}");
    }
    // A link does not lead out.
    std::os::unix::fs::symlink("/", bench.project().join("out")).unwrap();
    let told = bench.run("/cd out").await;
    assert!(errors(&told, 0)[0].as_str().unwrap().contains("is outside of"), "{:?}", told.result());
}

/// A bench with directories `sub`, `sub/deep` and `live`, and rules for them.
fn with_entry_rules(kind: &'static str, rules: &'static str) -> Bench {
    let mut bench = Bench::cast(&json!({"lead": ["here"]}));
    std::fs::create_dir_all(bench.project().join("sub/deep")).unwrap();
    std::fs::create_dir(bench.project().join("live")).unwrap();
    std::os::unix::fs::symlink("live", bench.project().join("alias")).unwrap();
    bench.also(move |options| {
        let rules = Rule::parse_list(rules, &RuleOrigin::Flag).unwrap().into();
        let policy = &mut options.permission.policy;
        match kind {
            "deny" => policy.deny = rules,
            "ask" => policy.ask = rules,
            _ => policy.allow = rules,
        }
    });
    bench
}

#[tokio::test(start_paused = true)]
async fn rules_say_which_directories_a_person_may_enter() {
    for (kind, rules, command, refused) in [
        ("deny", "Cd(/live)", "/cd live", Some("live: ")),
        ("deny", "Cd(/live)", "/cd alias", Some("live: ")),
        ("deny", "Cd(/live)", "/cd sub", None),
        ("allow", "Cd(/sub)", "/cd sub", None),
        ("allow", "Cd(/sub)", "/cd sub/deep", Some("sub/deep: ")),
        ("allow", "Cd(/sub)", "/cd live", Some("live: ")),
        ("allow", "Cd(/sub)", "/cd alias", Some("live: ")),
        ("ask", "Cd(/live)", "/cd live", Some("no user can be asked")),
    ] {
        let told = with_entry_rules(kind, rules).run(command).await;
        match refused {
            None => assert!(told.result()["result"].as_str().unwrap().starts_with("Commands run")),
            Some(words) => {
                let said = errors(&told, 0);
                assert!(
                    said[0].as_str().unwrap().contains(words),
                    "{kind} {rules} {command}: {said}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_is_asked_where_a_rule_asks_before_a_directory_is_entered() {
    let yes = |_: &Ask| Reply::Allowed { input: None, remember: Vec::new() };
    let no = |_: &Ask| Reply::Denied { reason: "not there".to_owned(), interrupt: false };
    for (person, said) in [(person(yes), "Commands run in"), (person(no), "live: not there")] {
        let mut bench = with_entry_rules("ask", "Cd(/live)");
        bench.answerer = Some(Arc::clone(&person) as Arc<dyn Answerer>);
        let told = bench.run("/cd live").await;
        assert!(told.result().to_string().contains(said), "{:?}", told.result());
        assert_eq!(*person.asked.lock(), ["Cd"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subtask_goes_on_from_the_conversation_and_reports_though_models_may_not_fork() {
    let bench = Bench::cast(&json!({
        "lead": ["the word is alpha", "heard of it"],
        "work": ["Scope: looked"],
    }));
    let told = talk(&bench, &["@@lead", "/subtask @@work Look into it"]).await;
    let fork = told.asked.iter().find(|it| it.agent.is_some()).unwrap();
    let text = said(fork);
    assert!(text.contains("Look into it"), "{text}");
    assert!(fork.messages.to_string().contains("the word is alpha"), "{text}");
    assert!(fork.wire.starts_with(&told.asked[0].wire), "byte for byte");
    let [news] = told.news()[..] else { panic!("{:?}", told.news()) };
    assert_eq!(field(news, "result"), Some("Scope: looked"));
    let shown = told.of("result", None)[1]["result"].as_str().unwrap();
    assert!(shown.contains("works in the background as agent"), "{shown}");
    let told = talk(&bench, &["@@lead", "/subtask"]).await;
    assert_eq!(errors(&told, 1), json!(["say what is to be done: /subtask TASK"]));
    let told = bench.run("/subtask do it").await;
    assert_eq!(errors(&told, 0), json!(["nothing has been said yet: ask the agent itself"]));
}

/// A bench in whose sessions a person may have prompts come again.
fn looping(scripts: &Value) -> Bench {
    let mut bench = Bench::cast(scripts);
    bench.knows_agents(|agents| agents.rules.loops = true);
    bench
}

#[tokio::test(start_paused = true)]
async fn a_loop_works_at_once_and_again_until_a_person_stops_it() {
    let bench = looping(&json!({"tick": ["ticked", "ticked again", "and again"]}));
    let list = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&list);
    let told = bench
        .live("/loop 5m @@tick", |handle, watcher| async move {
            let results =
                |events: &[Value]| events.iter().filter(|event| event["type"] == "result").count();
            let world = SeededWorld::new(70);
            // At once, and once when it is due.
            watcher.until(|events, _| results(events) >= 2).await;
            for (at, command) in ["/loop", "/loop stop", "/loop"].into_iter().enumerate() {
                handle.submit(world.record_id(), vec![Block::text(command)]);
                watcher.until(|events, _| results(events) >= 3 + at).await;
                let result =
                    watcher.events.lock().iter().rfind(|it| it["type"] == "result").cloned();
                seen.lock().push(result.unwrap()["result"].as_str().unwrap().to_owned());
            }
        })
        .await;
    assert_eq!(told.asked.len(), 2, "it does not come again");
    let list = list.lock().clone();
    assert!(list[0].contains("*/5 * * * *  @@tick"), "{list:?}");
    assert_eq!(
        list[1..],
        ["It does not come again.", "Nothing is scheduled. /loop 5m PROMPT begins."]
    );
    assert!(
        told.asked[0].tools.iter().all(|tool| !tool.starts_with("Cron")),
        "models schedule nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_cannot_be_says_why() {
    let bench = looping(&json!({"tick": ["ticked"]}));
    for (command, reason) in [
        ("/loop 2d x", "the longest interval is a day"),
        (
            "/loop 5m",
            "say what is to be done each time: /loop 5m PROMPT, or write it to .claude/loop.md",
        ),
        ("/loop stop zzz", "there is no schedule `zzz`; CronList shows those that there are"),
    ] {
        let told = bench.run(command).await;
        assert_eq!(errors(&told, 0), json!([reason]), "{command}");
        assert!(told.asked.is_empty());
    }
    let told = Bench::cast(&json!({"tick": ["x"]})).run("/loop 5m @@tick").await;
    assert_eq!(errors(&told, 0), json!(["nothing can be scheduled in this session"]));
    // The project's own words, where a person says none.
    std::fs::create_dir(bench.project().join(".claude")).unwrap();
    bench.file(".claude/loop.md", "@@tick Look at the build.");
    let told = bench.run("/loop 1h").await;
    assert!(said(&told.asked[0]).contains("Look at the build."));
}
