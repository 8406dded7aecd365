//! Skills that change while a session runs, and hooks that hear of it.

use std::path::Path;

use centurion_hooks::Event;
use centurion_protocol::{Block, Outcome, SeededWorld, World};
use serde_json::{Value, json};

use crate::bench::{Asked, Told};
use crate::hook_stage::Stage;
use crate::skills::{bench, invokes, said, skill};

/// A session with one skill whose `ConfigChange` hooks say this; the prompts come with a change before the second one.
async fn change_between(
    objection: bool,
    change: impl Fn(&Path) + Send + Sync + 'static,
    second: &str,
) -> (Told, Vec<Value>) {
    change_after("@@lead", objection, change, second).await
}

/// The same with another first prompt.
async fn change_after(
    first: &str,
    objection: bool,
    change: impl Fn(&Path) + Send + Sync + 'static,
    second: &str,
) -> (Told, Vec<Value>) {
    let stage = Stage::new(move |told| {
        let is_change = told["hook_event_name"] == "ConfigChange";
        let block = json!({"decision": "block", "reason": "frozen"});
        Some(if is_change && objection { block } else { json!({}) })
    });
    let bench = stage.set(bench(&json!({"lead": ["one"], "old": ["two"], "new": ["two"]})));
    skill(&bench, "deploy", "", "@@old Old text.");
    let skills = bench.project().join(".claude/skills");
    let told = bench
        .live(first, |handle, watcher| async move {
            let is_result = |event: &&Value| event["type"] == "result";
            watcher.until(|events, _| events.iter().any(|event| is_result(&event))).await;
            change(&skills);
            let id = SeededWorld::new(700).record_id();
            handle.submit(id, vec![Block::text(second)]);
        })
        .await;
    let heard = stage.heard(Event::ConfigChange);
    (told, heard)
}

fn rewrite(skills: &Path) {
    let text = "---\ndescription: d\n---\n@@new New text.\n";
    std::fs::write(skills.join("deploy/SKILL.md"), text).unwrap();
}

fn add(skills: &Path) {
    std::fs::create_dir(skills.join("fresh")).unwrap();
    std::fs::write(skills.join("fresh/SKILL.md"), "---\ndescription: d\n---\n@@new x\n").unwrap();
}

#[tokio::test(start_paused = true)]
async fn hooks_hear_of_a_change_of_skills_and_it_counts_where_none_objects() {
    for (change, second) in [(rewrite as fn(&Path), "/deploy"), (add as fn(&Path), "/fresh")] {
        let (told, heard) = change_between(false, change, second).await;
        let [heard] = heard.as_slice() else { panic!("{heard:?}") };
        assert_eq!(heard["source"], "skills");
        assert!(heard["file_path"].as_str().unwrap().ends_with("/SKILL.md"), "{heard}");
        assert!(said(&told.asked[1]).contains("@@new"), "{}", said(&told.asked[1]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_after_a_run_that_asked_no_model_is_heard_of_too() {
    let (_, heard) = change_after("/cost", true, add, "/fresh").await;
    assert_eq!(heard.len(), 1, "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_skills_that_a_hook_blocks_does_not_count() {
    for (change, second) in [(rewrite as fn(&Path), "/deploy"), (add as fn(&Path), "/fresh")] {
        let (told, heard) = change_between(true, change, second).await;
        assert_eq!(heard.len(), 1, "it is asked once about one change: {heard:?}");
        assert_eq!(told.asked.len(), 1, "the changed text reaches no model");
        assert_eq!(told.outcome, Some(Outcome::CommandFailed));
        let informed = told.of("system", Some("informational"));
        let informed = serde_json::to_string(&informed).unwrap();
        assert!(
            informed.contains("keeps the change of") && informed.contains("frozen"),
            "{informed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_a_hook_keeps_as_it_was_can_be_used_again_once_it_is_as_it_was() {
    let path = |skills: &Path| skills.join("deploy/SKILL.md");
    let (told, heard) = change_between(
        true,
        move |skills| {
            // Another file changes: this one is as it was.
            add(skills);
            assert!(path(skills).exists());
        },
        "/deploy",
    )
    .await;
    assert_eq!(heard.len(), 1);
    assert!(said(&told.asked[1]).contains("Old text."), "{}", said(&told.asked[1]));
}

#[tokio::test(start_paused = true)]
async fn the_first_skill_of_a_session_is_usable_by_models_from_the_next_prompt_on() {
    let bench = bench(&json!({
        "lead": ["one"],
        "use": [invokes("fresh", "now"), "two"],
        "again": ["three"],
    }));
    let skills = bench.project().join(".claude/skills");
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            let world = SeededWorld::new(700);
            let results =
                |events: &[Value]| events.iter().filter(|event| event["type"] == "result").count();
            watcher.until(|events, _| results(events) == 1).await;
            std::fs::create_dir_all(skills.join("fresh")).unwrap();
            let text = "---\ndescription: d\n---\nFresh text.\n";
            std::fs::write(skills.join("fresh/SKILL.md"), text).unwrap();
            handle.submit(world.record_id(), vec![Block::text("@@use")]);
            watcher.until(|events, _| results(events) == 2).await;
            // What is gone again takes no tool away: requests would begin with other bytes.
            std::fs::remove_dir_all(&skills).unwrap();
            handle.submit(world.record_id(), vec![Block::text("@@again")]);
        })
        .await;
    let offers = |asked: &Asked| asked.tools.iter().any(|tool| tool == "Skill");
    let has_tool: Vec<bool> = told.asked.iter().map(offers).collect();
    assert_eq!(has_tool, [false, true, true, true]);
    assert!(said(&told.asked[1]).contains("- fresh: d"), "{}", said(&told.asked[1]));
    assert!(said(&told.asked[2]).contains("Fresh text."), "{}", said(&told.asked[2]));
    let lists = |event: &&Value| event["tools"].to_string().contains("\"Skill\"");
    let beginnings = told.of("system", Some("init"));
    assert_eq!(beginnings.iter().filter(|it| lists(it)).count(), 2, "hosts are told");
}

#[tokio::test(start_paused = true)]
async fn the_first_skill_that_a_directory_brings_is_usable_in_the_same_turn() {
    let bench = bench(&json!({
        "lead": [[{"tool": "Read", "input": {"file_path": "web/a.txt"}}], invokes("ship", "now"), "done"],
    }));
    let nested = bench.project().join("web/.claude/skills/ship");
    std::fs::create_dir_all(&nested).unwrap();
    std::fs::write(nested.join("SKILL.md"), "---\ndescription: Ships.\n---\nShip it $0.\n")
        .unwrap();
    bench.file("web/a.txt", "x");
    let told = bench.run("@@lead").await;
    let offers = |asked: &Asked| asked.tools.iter().any(|tool| tool == "Skill");
    assert_eq!(told.asked.iter().map(offers).collect::<Vec<_>>(), [false, true, true]);
    assert!(said(&told.asked[1]).contains("- ship: Ships."), "{}", said(&told.asked[1]));
    assert!(said(&told.asked[2]).contains("Ship it now."), "{}", said(&told.asked[2]));
}
