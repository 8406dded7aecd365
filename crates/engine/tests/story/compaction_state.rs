//! What a compaction must leave as it is: the size that it promised, modes, files read, forks of the session, and what
//! hooks say about it.

use std::sync::Arc;

use centurion_config::memory::{Memory, MemorySources};
use centurion_engine::Start;
use centurion_hooks::Event;
use centurion_permissions::Mode;
use centurion_protocol::{Outcome, SeededWorld, World as _};
use serde_json::{Value, json};

use crate::agent_stage::agent;
use crate::bench::{Asked, Bench};
use crate::compaction::{
    GOES_ON, boundaries, failures, first_behind, good, is_compaction, much, of_work, read, telling,
    text,
};
use crate::hook_stage::{Stage, every_event};

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_larger_than_what_it_stands_for_is_not_taken() {
    // context.md 8, 4: google-gemini/gemini-cli#15225, D-53
    let large = json!(format!("<summary>{}</summary>", "much ado ".repeat(2_200)));
    let steps = [json!("Short."), json!("Short again."), json!("Next.")];
    let bench = telling(200_000, &[large], &steps);
    let told = bench.run("one").await;
    let told = bench.resume(&told, "two").await;
    let failed = bench.resume(&told, "/compact").await;
    assert_eq!(failed.outcome, Some(Outcome::CompactionFailed), "{}", failed.result());
    assert!(failures(&failed)[0].contains("would not be smaller"), "{:?}", failures(&failed));
    assert_eq!(boundaries(&failed), 0);
    let next = bench.resume(&told, "next").await;
    assert!(next.asked[0].wire.starts_with(&told.asked[0].wire), "all is as it was");
    assert!(!text(&next.asked[0]).contains("much ado"));
}

#[tokio::test(start_paused = true)]
async fn a_session_forked_from_a_compacted_one_begins_at_the_boundary() {
    // context.md 4
    let bench = telling(40_000, &[good()], &much());
    let told = bench.run("PROMPT-WORDS").await;
    assert!(boundaries(&told) >= 1);
    let before = std::fs::read(&told.transcript).unwrap();
    let later = Bench { dir: bench.dir, ..telling(40_000, &[good()], &[json!("Forked.")]) };
    let id = SeededWorld::new(78).session_id();
    let start = Start::Fork { from: told.session, id };
    let fork = later.start(start, Some(told.transcript.clone()), "on").await;
    assert_eq!(fork.outcome, Some(Outcome::Completed), "{}", fork.result());
    let last = of_work(&told).pop().unwrap();
    assert!(fork.asked[0].wire.starts_with(&last.wire), "byte for byte: {}", text(&fork.asked[0]));
    assert!(text(&fork.asked[0]).contains(GOES_ON));
    assert_eq!(std::fs::read(&told.transcript).unwrap(), before, "the first session is as it was");
    // The fork stands alone: what it continues from is in its own record.
    let again = later.resume(&fork, "again").await;
    assert!(again.asked[0].wire.starts_with(&fork.asked[0].wire), "{}", text(&again.asked[0]));
}

#[tokio::test(start_paused = true)]
async fn plan_mode_is_told_again_and_still_binds() {
    // D-52, context.md 3
    let write = json!([{"tool": "Write", "input": {"file_path": "w.txt", "content": "x"}}]);
    let mut steps = much();
    steps.pop();
    steps.extend([write, json!("Planned.")]);
    let mut bench = telling(40_000, &[good()], &steps);
    bench.mode = Mode::Plan;
    let told = bench.run("PROMPT-WORDS").await;
    assert!(boundaries(&told) >= 1, "{}", told.result());
    let after = first_behind(&told);
    assert!(text(after).contains("Plan mode is on"), "{}", text(after));
    let (said, is_error) = told.results().pop().unwrap();
    assert!(is_error && !bench.project().join("w.txt").exists(), "{said}");
    // Where it is not on, nothing is said of it.
    let told = telling(40_000, &[good()], &much()).run("PROMPT-WORDS").await;
    assert!(!text(first_behind(&told)).contains("Plan mode is on"));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_read_before_a_compaction_can_be_changed_behind_it() {
    // D-52
    let edit = |from: &str, to: &str| json!([{"tool": "Edit", "input": {"file_path": "note.txt", "old_string": from, "new_string": to}}]);
    let look = json!([{"tool": "Read", "input": {"file_path": "note.txt"}}]);
    let mut steps = vec![look];
    steps.extend(much());
    steps.pop();
    steps.extend([edit("one", "two"), json!("Changed.")]);
    let bench = telling(40_000, &[good()], &steps);
    bench.file("note.txt", "one\n");
    let told = bench.run("go").await;
    assert!(boundaries(&told) >= 1 && !text(of_work(&told).pop().unwrap()).contains("\tone"));
    let content = || std::fs::read_to_string(bench.project().join("note.txt")).unwrap();
    assert_eq!(content(), "two\n", "{:?}", told.results().pop());
    // Also in a later process, where all that it knows of the file stands before the boundary.
    let compacted = bench.resume(&told, "/compact").await;
    assert_eq!(compacted.outcome, Some(Outcome::Completed), "{}", compacted.result());
    let script = telling(40_000, &[good()], &[edit("two", "three"), json!("Changed.")]).scenario;
    let later = Bench { scenario: script, ..bench };
    let next = later.resume(&told, "on").await;
    let content = || std::fs::read_to_string(later.project().join("note.txt")).unwrap();
    assert_eq!(content(), "three\n", "{:?}", next.results().pop());
    // One that others changed meanwhile cannot.
    std::fs::write(later.project().join("note.txt"), "three and more\n").unwrap();
    let script = telling(40_000, &[good()], &[edit("three", "four"), json!("Tried.")]).scenario;
    let last = Bench { scenario: script, ..later };
    let refused = last.resume(&told, "on").await;
    assert!(refused.results().pop().unwrap().1, "{:?}", refused.results());
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_says_before_a_compaction_is_heeded_and_its_json_reaches_no_model() {
    // D-57
    let says = json!({
        "systemMessage": "FOR-PEOPLE",
        "hookSpecificOutput": {"hookEventName": "PreCompact", "additionalContext": "HOOK-WISH"},
    });
    let stage = Stage::at(Event::PreCompact, says);
    let mut bench = telling(200_000, &[good()], &[read(), json!("Read."), json!("Next.")]);
    bench.also(move |options| stage.extend(options, every_event()));
    let told = bench.run("PROMPT-WORDS").await;
    let compacted = bench.resume(&told, "/compact mind the COLOURS").await;
    assert_eq!(compacted.outcome, Some(Outcome::Completed), "{}", compacted.result());
    let asked = text(compacted.asked.iter().find(|asked| is_compaction(asked)).unwrap());
    assert!(
        asked.contains("Heed this in the summary:\\nmind the COLOURS\\n\\nHOOK-WISH"),
        "{asked}"
    );
    let next = bench.resume(&told, "next").await;
    for asked in told.asked.iter().chain(&compacted.asked).chain(&next.asked) {
        for json in ["hookSpecificOutput", "additionalContext", "FOR-PEOPLE"] {
            assert!(!text(asked).contains(json), "{json}: {}", text(asked));
        }
        assert!(is_compaction(asked) || !text(asked).contains("HOOK-WISH"), "it ends there");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_before_a_compaction_can_end_the_run() {
    // D-57
    let stop = || Stage::at(Event::PreCompact, json!({"continue": false, "stopReason": "ENOUGH"}));
    let mut bench = telling(40_000, &[good()], &much());
    bench.also(move |options| stop().extend(options, every_event()));
    let told = bench.run("go").await;
    assert_eq!(told.outcome, Some(Outcome::HookStopped), "{}", told.result());
    assert!(told.result()["errors"].to_string().contains("ENOUGH"), "{}", told.result());
    let asked = bench.resume(&told, "/compact").await;
    assert_eq!(asked.outcome, Some(Outcome::HookStopped), "{}", asked.result());
    for asked in told.asked.iter().chain(&asked.asked) {
        assert!(!is_compaction(asked) && !text(asked).contains("ENOUGH"), "{}", text(asked));
    }
}

#[tokio::test(start_paused = true)]
async fn instruction_files_that_are_loaded_again_are_told_to_hooks_with_the_reason() {
    // context.md 4
    let stage = Stage::silent();
    let mut bench = telling(40_000, &[good()], &much());
    bench.file("CLAUDE.md", "RULE-WORDS");
    let cwd = bench.project();
    let staged = Arc::clone(&stage);
    bench.also(move |options| {
        staged.extend(options, every_event());
        let sources = MemorySources { cwd: cwd.clone(), ..MemorySources::default() };
        options.memory = Some(Memory::load(sources));
    });
    let told = bench.run("go").await;
    assert!(boundaries(&told) >= 1, "{}", told.result());
    let loaded = stage.heard(Event::InstructionsLoaded);
    let again: Vec<&Value> = loaded.iter().filter(|it| it["load_reason"] == "compact").collect();
    assert_eq!(again.len(), boundaries(&told), "{loaded:?}");
    assert!(again[0]["file_path"].as_str().unwrap().ends_with("CLAUDE.md"), "{again:?}");
    assert!(loaded[0]["load_reason"] != "compact", "the first time is another reason: {loaded:?}");
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_childs_compaction_say_which_child_it_is() {
    // context.md 4
    let mut steps = vec![json!([agent("general-purpose", "CHILD-TASK", &json!({}))])];
    steps.extend(much());
    steps.push(json!("Heard."));
    let stage = Stage::silent();
    let mut bench = telling(40_000, &[good()], &steps);
    let staged = Arc::clone(&stage);
    bench.also(move |options| staged.extend(options, every_event()));
    let told = bench.run("go").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    let child = told.asked.iter().find_map(|asked: &Asked| asked.agent.clone()).unwrap();
    for event in [Event::PreCompact, Event::PostCompact] {
        let heard = stage.heard(event);
        assert!(!heard.is_empty(), "{event}");
        for it in &heard {
            assert_eq!(
                (&it["agent_id"], &it["agent_type"]),
                (&json!(child), &json!("general-purpose")),
                "{it}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn thinking_of_the_newest_round_stays_as_it_was_signed_also_in_a_later_process() {
    let think = |n: usize| {
        json!([
            {"thinking": format!("THOUGHT-{n}."), "signature": format!("c2lnbmVk{n:04}")},
            {"tool": "Read", "input": {"file_path": "long.txt"}},
        ])
    };
    let mut steps: Vec<Value> = (0..14).map(think).collect();
    steps.push(json!("All read."));
    let bench = telling(40_000, &[good()], &steps);
    let told = bench.run("go").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    let at = told.asked.iter().position(is_compaction).unwrap();
    let (before, asked, after) = (&told.asked[at - 1], &told.asked[at], &told.asked[at + 1]);
    // A request for a summary is the conversation's own: thinking in it is as it was.
    assert!(asked.wire.starts_with(&before.wire[..before.wire.len() - 2]));
    let kept = &after.messages[1];
    let n = at - 1;
    let thought = json!({
        "type": "thinking", "thinking": format!("THOUGHT-{n}."), "signature": format!("c2lnbmVk{n:04}"),
    });
    assert_eq!(kept["content"][0], thought, "{kept}");
    assert_eq!(text(after).matches("THOUGHT-").count(), 1, "{}", text(after));
    // A later process begins with the very bytes.
    let last = told.asked.last().unwrap();
    let next = Bench { scenario: telling(40_000, &[good()], &[json!("On.")]).scenario, ..bench };
    let later = next.resume(&told, "on").await;
    assert!(later.asked[0].wire.starts_with(&last.wire), "{}", text(&later.asked[0]));
}
