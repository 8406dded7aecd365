//! Skills and tools of servers that come and go in a conversation: what a provider has cached stays as it was, and the
//! model is told.

use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::McpServer;
use centurion_engine::Handle;
use centurion_protocol::{Block, Env, Outcome, SeededWorld, World as _};
use serde_json::{Value, json};

use crate::bench::{Asked, Bench, Told};
use crate::compaction::{GOES_ON, QUESTION, good, is_compaction};
use crate::hook_stage::{Stage, server};
use crate::skills::{said, skill};

/// What the list of skills begins with.
const LISTED: &str = "Skills that you can invoke with the Skill tool";

/// Something that happens before a prompt.
type Change = Box<dyn Fn(&Handle)>;

fn nothing() -> Change {
    Box::new(|_| {})
}

/// Says one prompt after the other, each behind the result of the one before and behind a change.
async fn talk(bench: &Bench, first: &str, rest: Vec<(Change, &'static str)>) -> Told {
    bench
        .live(first, |handle, watcher| async move {
            let ids = SeededWorld::new(700);
            for (n, (change, prompt)) in rest.iter().enumerate() {
                let results = |events: &[Value]| {
                    events.iter().filter(|event| event["type"] == "result").count()
                };
                watcher.until(|events, _| results(events) > n).await;
                change(&handle);
                handle.submit(ids.record_id(), vec![Block::text(*prompt)]);
            }
        })
        .await
}

/// A bench whose model plays these scripts and summarises when it is asked to.
fn bench(scripts: &Value) -> Bench {
    let mut bench = Bench { allow: "mcp__desk,mcp__notes", ..Bench::cast(scripts) };
    bench.scenario["rules"] = json!([{"match": {"last_user": QUESTION}, "respond": good()}]);
    bench.file("long.txt", &"0123456789abcde\n".repeat(900));
    bench
}

fn read() -> Value {
    json!({"tool": "Read", "input": {"file_path": "long.txt"}})
}

fn greet(server: &str) -> Value {
    json!({"tool": format!("mcp__{server}__greet"), "input": {}})
}

/// What a request has behind the one before. Fails if it does not begin with all of that.
fn news(before: &Asked, after: &Asked) -> String {
    assert_eq!(after.fixed, before.fixed, "the same system prompt and tools");
    assert!(after.wire.starts_with(&before.wire), "{}", after.messages);
    String::from_utf8(after.wire[before.wire.len()..].to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn skills_that_come_change_and_go_are_told_behind_what_is_cached() {
    let bench = bench(&json!({
        "lead": [[read()], "one"],
        "second": ["two"], "third": ["three"], "fourth": ["four"], "fifth": ["five"], "last": ["six"],
    }));
    skill(&bench, "old", "", "Old.");
    let skills = bench.project().join(".claude/skills");
    let write = |name: &'static str, about: &'static str| -> Change {
        let directory = skills.join(name);
        Box::new(move |_| {
            std::fs::create_dir_all(&directory).unwrap();
            let text = format!("---\ndescription: {about}\n---\nText.\n");
            std::fs::write(directory.join("SKILL.md"), text).unwrap();
        })
    };
    let gone = skills.join("fresh");
    let rest: Vec<(Change, &str)> = vec![
        (write("fresh", "FIRST-WORDS"), "@@second"),
        (nothing(), "@@third"),
        (write("fresh", "OTHER-WORDS"), "@@fourth"),
        (Box::new(move |_| std::fs::remove_dir_all(&gone).unwrap()), "@@fifth"),
        (nothing(), "/compact"),
        (nothing(), "@@last"),
    ];
    let told = talk(&bench, "@@lead", rest).await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    let [first, again, second, third, fourth, fifth, summary, last] = &told.asked[..] else {
        panic!("{}", told.asked.len())
    };
    assert!(said(first).contains("- old: About old") && !said(first).contains("fresh"));
    assert!(!news(first, again).contains(LISTED));
    let come = news(again, second);
    assert!(come.contains("- fresh: FIRST-WORDS") && come.contains("- old: "), "{come}");
    assert!(!news(second, third).contains(LISTED), "what has not changed is not told again");
    assert!(news(third, fourth).contains("- fresh: OTHER-WORDS"));
    let went = news(fourth, fifth);
    assert!(went.contains(LISTED) && !went.contains("fresh"), "{went}");
    // A summary is asked for from the cache, and behind it the list stands once, as it is now.
    assert!(is_compaction(summary) && summary.fixed == fifth.fixed && last.fixed == fifth.fixed);
    assert!(summary.wire.starts_with(&fifth.wire[..fifth.wire.len() - 2]));
    let text = said(last);
    assert!(text.contains(GOES_ON) && !text.contains("fresh"), "{text}");
    assert_eq!(text.matches(LISTED).count(), 1, "{text}");
}

/// A server whose tools are named until they are asked for.
fn deferred(name: &str) -> McpServer {
    McpServer { always_load: false, ..server(name) }
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_only_named_come_and_go_without_a_change_of_what_is_cached() {
    let find = json!({"tool": "ToolSearch", "input": {"query": "select:mcp__desk__greet"}});
    let bench = bench(&json!({
        "lead": [[find], [greet("desk"), read()], "one"],
        "second": ["two"], "third": [[greet("notes")], "three"], "last": [[greet("desk")], "four"],
    }));
    let stage = Stage::silent();
    let mut bench = stage.set(bench);
    let desk = Arc::clone(&stage.desk);
    bench.also(move |options| {
        options.base.env = Arc::new(Env::from([("ENABLE_TOOL_SEARCH", "true")]));
        options.extensions.servers = vec![desk.own(deferred("desk"))];
    });
    let notes = stage.desk.own(deferred("notes"));
    let rest: Vec<(Change, &str)> = vec![
        (Box::new(move |handle| handle.add_server(notes.clone())), "@@second"),
        (Box::new(|handle| assert!(handle.remove_server("notes"))), "@@third"),
        (nothing(), "/compact"),
        (nothing(), "@@last"),
    ];
    let told = talk(&bench, "@@lead", rest).await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    let [first, found, greeted, second, third, refused, summary, last, end] = &told.asked[..]
    else {
        panic!("{}", told.asked.len())
    };
    let named = "Tools that ToolSearch can load for you";
    assert!(said(first).contains(named) && said(first).contains("mcp__desk__greet"));
    assert!(!first.tools.contains(&"mcp__desk__greet".to_owned()));
    // What a search loads stands behind all others.
    assert_eq!(found.offers[..first.offers.len()], first.offers);
    assert_eq!(found.tools[first.tools.len()..], ["mcp__desk__greet"]);
    assert!(!news(found, greeted).contains(named));
    let come = news(greeted, second);
    assert!(come.contains(named) && come.contains("mcp__notes__greet"), "{come}");
    assert!(!come.contains("mcp__desk"), "only what is new: {come}");
    let went = news(second, third);
    assert!(went.contains("no longer there") && went.contains("mcp__notes__greet"), "{went}");
    assert!(!went.contains("mcp__desk"), "{went}");
    let answer = news(third, refused);
    assert!(answer.contains("No such tool available: mcp__notes__greet"), "{answer}");
    // What was loaded stays loaded behind a compaction, which is asked for from the cache; the names stand there once.
    assert!(is_compaction(summary) && summary.fixed == refused.fixed);
    assert_eq!(last.fixed, refused.fixed);
    let text = said(last);
    assert!(text.contains(GOES_ON) && !text.contains("mcp__notes__"), "{text}");
    assert_eq!(text.matches("mcp__desk__fail").count(), 1, "{text}");
    assert!(news(last, end).contains("hello"), "it can be called: {:?}", told.results());
}

#[tokio::test(start_paused = true)]
async fn tools_of_a_server_stand_behind_all_others_and_are_gone_without_a_trace_in_what_is_cached()
{
    let bench = bench(&json!({
        "lead": ["one"], "second": [[greet("desk")], "two"], "third": [[greet("desk")], "three"],
        "last": [[greet("desk")], "four"],
    }));
    let stage = Stage::silent();
    let mut bench = stage.set(bench);
    bench.also(|options| options.extensions.servers.clear());
    let desk = [stage.desk.connection(), stage.desk.connection()];
    let [one, other] = desk;
    let rest: Vec<(Change, &str)> = vec![
        (Box::new(move |handle| handle.add_server(one.clone())), "@@second"),
        (Box::new(|handle| assert!(handle.remove_server("desk"))), "@@third"),
        (Box::new(move |handle| handle.add_server(other.clone())), "@@last"),
    ];
    let told = talk(&bench, "@@lead", rest).await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    let [first, with, greeted, without, refused, back, end] = &told.asked[..] else {
        panic!("{}", told.asked.len())
    };
    assert_eq!(with.offers[..first.offers.len()], first.offers);
    assert!(with.tools[first.tools.len()..].contains(&"mcp__desk__greet".to_owned()));
    assert!(with.wire.starts_with(&first.wire) && news(with, greeted).contains("hello"));
    // The very bytes of before: a provider may still have them.
    assert_eq!(without.fixed, first.fixed);
    assert!(without.wire.starts_with(&greeted.wire), "with the call of a tool that is gone");
    assert!(news(without, refused).contains("No such tool available: mcp__desk__greet"));
    assert_eq!(back.fixed, with.fixed);
    assert!(back.wire.starts_with(&refused.wire) && news(back, end).contains("hello"));
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_not_told_again_which_tools_can_be_loaded() {
    let fork = json!({"tool": "Agent", "input": {"description": "a branch", "prompt": "@@work"}});
    let mut bench =
        bench(&json!({"lead": [[fork], "meanwhile", "heard"], "work": [[read()], "Scope: it"]}));
    bench.knows_agents(|agents| agents.rules.forks = true);
    let stage = Stage::silent();
    let mut bench = stage.set(bench);
    let desk = Arc::clone(&stage.desk);
    bench.also(move |options| {
        options.base.env = Arc::new(Env::from([("ENABLE_TOOL_SEARCH", "true")]));
        options.extensions.servers = vec![desk.own(deferred("desk"))];
    });
    let told = bench.run("@@lead").await;
    let all: Vec<&Asked> = told.asked.iter().filter(|asked| asked.agent.is_some()).collect();
    assert_eq!(all.len(), 2, "{:?}", told.results());
    for asked in all {
        assert_eq!(said(asked).matches("Tools that ToolSearch can load").count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_keeps_what_it_began_with_while_skills_and_servers_come_and_go() {
    // I-11
    let slow = json!({"blocks": [read()], "latency_ms": 1_000});
    let fork = json!({"tool": "Agent", "input": {"description": "a branch", "prompt": "@@work"}});
    let mut bench = bench(&json!({
        "lead": [[fork], "meanwhile", "heard"],
        "work": [slow, slow, {"blocks": [greet("desk")], "latency_ms": 1_000}, "Scope: it"],
    }));
    bench.knows_agents(|agents| agents.rules.forks = true);
    let stage = Stage::silent();
    let bench = stage.set(bench);
    skill(&bench, "old", "", "Old.");
    let skills = bench.project().join(".claude/skills");
    let notes = stage.desk.own(server("notes"));
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            let turn = |number: usize| {
                let watcher = Arc::clone(&watcher);
                async move {
                    let of_fork = |asked: &&Asked| asked.agent.is_some();
                    let has_come = |_: &[Value], asked: &[Asked]| {
                        asked.iter().filter(of_fork).count() == number
                    };
                    watcher.until(has_come).await;
                }
            };
            turn(1).await;
            assert!(handle.remove_server("desk"));
            std::fs::create_dir_all(skills.join("fresh")).unwrap();
            let text = "---\ndescription: d\n---\nText.\n";
            std::fs::write(skills.join("fresh/SKILL.md"), text).unwrap();
            turn(2).await;
            handle.add_server(notes);
            tokio::time::sleep(Duration::from_millis(1)).await;
        })
        .await;
    let all: Vec<&Asked> = told.asked.iter().filter(|asked| asked.agent.is_some()).collect();
    assert_eq!(all.len(), 4, "{:?}", told.results());
    assert_eq!(all[0].fixed, told.asked[0].fixed, "as its parent's");
    for pair in all.windows(2) {
        let new = news(pair[0], pair[1]);
        assert!(!new.contains("fresh") && !new.contains("mcp__notes"), "{new}");
    }
    // It still sends the tool, and learns that its server is gone.
    assert!(all[3].tools.contains(&"mcp__desk__greet".to_owned()));
    assert!(news(all[2], all[3]).contains("\"is_error\":true"), "{}", all[3].messages);
    assert!(stage.desk.calls.lock().is_empty());
}
