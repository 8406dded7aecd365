//! What hooks say beside their verdict: a name for the session, files to watch, a prompt that is given back
//! or not, and what has no effect.

use std::sync::Arc;

use centurion_config::memory::{Memory, MemorySources};
use centurion_hooks::{Event, HookSet};
use centurion_protocol::Outcome;
use serde_json::{Value, json};

use crate::bench::{Bench, Told};
use crate::hook_stage::Stage;

fn specific(event: Event, mut fields: Value) -> Value {
    fields["hookEventName"] = json!(event.name());
    json!({"hookSpecificOutput": fields})
}

/// Says what stands beside the event, and nothing else.
fn saying(answers: Vec<(Event, Value)>) -> Arc<Stage> {
    Stage::new(move |told| {
        let is_it = |(event, _): &&(Event, Value)| told["hook_event_name"] == event.name();
        let answer = answers.iter().find(is_it).map(|(_, answer)| answer.clone());
        Some(answer.unwrap_or_else(|| json!({})))
    })
}

fn write(id: &str, file: &str) -> Value {
    json!([{"tool": "Write", "id": id, "input": {"file_path": file, "content": id}}])
}

fn informed(told: &Told, level: &str) -> Vec<String> {
    let events = told.of("system", Some("informational"));
    let of_level = events.iter().filter(|event| event["level"] == level);
    of_level.map(|event| event["content"].as_str().unwrap().to_owned()).collect()
}

fn titles(told: &Told) -> Vec<String> {
    let lines = told.lines();
    let named = lines.iter().filter(|line| line["type"] == "custom-title");
    named.map(|line| line["customTitle"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_hook_names_the_session_and_hears_the_name_when_it_continues() {
    let start = specific(Event::SessionStart, json!({"sessionTitle": " First name\nmore"}));
    let stage = saying(vec![(Event::SessionStart, start)]);
    let bench = stage.set(Bench::says(&json!(["one", "two"])));
    let told = bench.run("go").await;
    // Once when it is given, and once where the session ends.
    assert_eq!(titles(&told), ["First name", "First name"]);
    assert!(stage.take()[0].get("session_title").is_none());

    let prompt = specific(Event::UserPromptSubmit, json!({"sessionTitle": "Second name"}));
    let blank = specific(Event::SessionStart, json!({"sessionTitle": "  "}));
    let later = saying(vec![(Event::SessionStart, blank), (Event::UserPromptSubmit, prompt)]);
    let bench = later.set(bench);
    let resumed = bench.resume(&told, "again").await;
    assert_eq!(later.heard(Event::SessionStart)[0]["session_title"], "First name");
    assert_eq!(titles(&resumed)[2..], ["Second name", "Second name"]);
    let text = std::fs::read(&resumed.transcript).unwrap();
    let loaded = centurion_journal::transcript::load(&text);
    assert_eq!(loaded.title.as_deref(), Some("Second name"));
    assert_eq!(loaded.broken_lines, 0);
}

#[tokio::test]
async fn a_file_that_hooks_watch_is_told_between_turns_when_it_changes() {
    let start = specific(Event::SessionStart, json!({"watchPaths": ["x.txt"]}));
    let changed = specific(Event::FileChanged, json!({"watchPaths": ["y.txt"]}));
    let stage = saying(vec![(Event::SessionStart, start), (Event::FileChanged, changed)]);
    // The second write of x.txt is not told any more, because a hook asked for y.txt instead.
    let steps = json!([
        write("w1", "x.txt"),
        write("w2", "x.txt"),
        write("w3", "y.txt"),
        write("w4", "z.txt"),
        "done",
    ]);
    let bench = stage.set(Bench::says(&steps));
    let told = bench.run("go").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let heard = stage.heard(Event::FileChanged);
    let heard: Vec<_> = heard.iter().map(|told| (&told["file_path"], &told["event"])).collect();
    let path = |name: &str| json!(bench.project().join(name));
    let (x, y, add) = (path("x.txt"), path("y.txt"), json!("add"));
    assert_eq!(heard, [(&x, &add), (&y, &add)]);
}

#[tokio::test]
async fn a_file_that_a_matcher_names_is_watched_without_being_asked_for() {
    let stage = Stage::silent();
    let set =
        json!({"FileChanged": [{"matcher": ".env|x.txt", "hookCallbackIds": ["FileChanged"]}]});
    let mut bench = Bench::says(&json!([write("w1", "x.txt"), write("w2", "y.txt"), "done"]));
    let acting = Arc::clone(&stage);
    bench.adjust = Box::new(move |options| acting.extend(options, HookSet::from_host(&set)));
    bench.run("go").await;
    let heard = stage.heard(Event::FileChanged);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["file_path"], json!(bench.project().join("x.txt")));
}

#[tokio::test]
async fn nothing_is_told_where_nothing_is_watched() {
    let stage = Stage::silent();
    let bench = stage.set(Bench::says(&json!([write("w1", "x.txt"), "done"])));
    bench.run("go").await;
    assert_eq!(stage.heard(Event::FileChanged), Vec::<Value>::new());
}

#[tokio::test]
async fn a_prompt_that_is_kept_out_is_given_back_unless_a_hook_says_not_to() {
    for (suppresses, expected) in [(false, 1), (true, 0)] {
        let answer = json!({
            "decision": "block", "reason": "not this",
            "hookSpecificOutput": {
                "hookEventName": "UserPromptSubmit", "suppressOriginalPrompt": suppresses,
            },
        });
        let stage = Stage::at(Event::UserPromptSubmit, answer);
        let bench = stage.set(Bench::says(&json!(["never"])));
        let told = bench.run("the swordfish prompt").await;
        assert_eq!(told.outcome, Some(Outcome::HookStopped));
        let shown = Value::Array(told.events.clone()).to_string();
        assert_eq!(shown.matches("swordfish").count(), expected, "{shown}");
        assert!(!std::fs::read_to_string(&told.transcript).unwrap().contains("swordfish"));
        assert_eq!(informed(&told, "warning"), ["the input was kept from the model: not this"]);
    }
}

#[tokio::test]
async fn what_has_no_effect_is_said_so() {
    let mut answer = specific(
        Event::PostToolUse,
        json!({"classifierContext": "it is fine", "sessionTitle": "T", "additionalContext": "noted"}),
    );
    answer["terminalSequence"] = json!("\u{1b}]0;title\u{7}");
    let stage = Stage::at(Event::PostToolUse, answer);
    let bench = stage.set(Bench::says(&json!([write("w1", "x.txt"), "done"])));
    let told = bench.run("go").await;
    let label = "PostToolUse:Write hook";
    let warnings = informed(&told, "warning");
    for expected in [
        "its sessionTitle has no effect at PostToolUse",
        "its classifierContext has no effect here: no model classifies calls",
        "its terminalSequence has no effect: this session has no terminal",
    ] {
        let found =
            warnings.iter().filter(|text| text.starts_with(label) && text.ends_with(expected));
        assert_eq!(found.count(), 1, "{expected}: {warnings:?}");
    }
    assert_eq!(warnings.len(), 3);
    assert!(told.requests.last().unwrap().to_string().contains("noted"));
    assert_eq!(titles(&told), Vec::<String>::new());
}

#[tokio::test]
async fn hooks_hear_which_paths_a_rule_waited_for() {
    let stage = Stage::silent();
    let read = json!([{"tool": "Read", "id": "r1", "input": {"file_path": "a.txt"}}]);
    let mut bench = Bench::says(&json!([read, "done"]));
    let file = bench.file("a.txt", "alpha\n");
    let rules = bench.project().join(".claude/rules");
    std::fs::create_dir_all(&rules).unwrap();
    std::fs::write(rules.join("all.md"), "Be kind.").unwrap();
    std::fs::write(rules.join("some.md"), "---\npaths: [\"*.txt\", \"src/**\"]\n---\nBe brief.")
        .unwrap();
    bench.adjust = Box::new(|options| {
        let cwd = options.base.cwd.clone();
        options.memory = Some(Memory::load(MemorySources { cwd, ..MemorySources::default() }));
    });
    let bench = stage.set(bench);
    bench.run("go").await;
    let heard = stage.heard(Event::InstructionsLoaded);
    let told = |index: usize, field: &str| heard[index].get(field).cloned();
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert_eq!(told(0, "load_reason"), Some(json!("session_start")));
    assert_eq!(told(0, "globs"), None);
    assert_eq!(told(1, "load_reason"), Some(json!("path_glob_match")));
    assert_eq!(told(1, "globs"), Some(json!(["*.txt", "src/**"])));
    assert_eq!(told(1, "trigger_file_path"), Some(json!(file)));
}
