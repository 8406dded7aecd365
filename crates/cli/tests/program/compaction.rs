//! Compaction, as people and hosts meet it.

use std::sync::Arc;

use centurion_testkit::{Recorded, Reply, sse};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cache::{Cache, Charged};
use crate::program::{Ended, Program, call, ended};

const QUESTION: &str = "about to leave its window";

/// The charge for each request, and true if it asked for a summary.
type Charges = Arc<Mutex<(Cache, Vec<(bool, Charged)>)>>;

/// A model that reads the same file again and again, and summarises when it is asked to.
fn reader(summary: &'static str) -> (Program, Charges) {
    let charges = Charges::default();
    let seen = Arc::clone(&charges);
    let program = Program::with_handler(move |request: &Recorded| {
        let body = request.json();
        let mut seen = seen.lock();
        let taken = seen.0.take(&body);
        let last = body["messages"].as_array().unwrap().last().unwrap().to_string();
        let is_summary = last.contains(QUESTION);
        seen.1.push((is_summary, taken));
        let reads = seen.1.iter().filter(|(is_summary, _)| !is_summary).count();
        let block = match reads % 8 {
            _ if is_summary => sse::text(summary),
            0 => sse::text("All read."),
            _ => sse::tool_use(&format!("toolu_{reads}"), "Read", json!({"file_path": "long.txt"})),
        };
        let bytes = |bytes: usize| u64::try_from(bytes / 4).unwrap();
        let usage = sse::usage(bytes(taken.plain), bytes(taken.written), bytes(taken.read), 5);
        let blocks = [block];
        Reply::events(sse::answer_with(&blocks, sse::natural_stop(&blocks), &usage))
    });
    std::fs::write(program.scratch.project().join("long.txt"), "0123456789abcde\n".repeat(500))
        .unwrap();
    (program, charges)
}

fn run(program: &Program, arguments: &[&str], window: Option<&str>) -> Ended {
    let stream = ["--output-format", "stream-json", "--verbose"];
    let mut command = program.command([arguments, &stream].concat());
    if let Some(window) = window {
        command.env("CENTURION_CONTEXT_WINDOW", window);
    }
    ended(command.output().unwrap())
}

fn boundaries(ended: &Ended) -> Vec<Value> {
    let events = ended.events().into_iter();
    events.filter(|event| event["subtype"] == "compact_boundary").collect()
}

#[test]
fn a_small_window_is_compacted_from_the_cache_and_the_session_continues_in_the_next_process() {
    // D-52, S-276
    let (program, charges) = reader("<summary>SUMMARY-1</summary>");
    let first = run(&program, &["-p", "read it PROMPT-WORDS"], Some("30000"));
    assert_eq!(first.code, Some(0), "{}{}", first.stdout, first.stderr);
    assert!(!boundaries(&first).is_empty(), "{}", first.stdout);
    let commands = first.events()[0]["slash_commands"].clone();
    assert!(commands.as_array().unwrap().contains(&json!("compact")), "{commands}");
    let paid = charges.lock().1.clone();
    let (_, summary) = paid.iter().find(|(is_summary, _)| *is_summary).unwrap();
    // The question alone is new.
    assert!(summary.written + summary.plain < 4_000, "all that is cached is read: {summary:?}");
    assert!(summary.read > 50_000, "{summary:?}");
    let next = run(&program, &["-p", "--continue", "again"], Some("30000"));
    assert_eq!(next.code, Some(0), "{}{}", next.stdout, next.stderr);
}

#[test]
fn a_person_asks_for_a_compaction_and_sees_what_became_of_it() {
    // D-53
    let (program, _) = reader("<summary>SUMMARY-1</summary>");
    assert_eq!(run(&program, &["-p", "read it"], None).code, Some(0));
    let compacted = run(&program, &["-p", "--continue", "/compact mind the colours"], None);
    assert_eq!(compacted.code, Some(0), "{}{}", compacted.stdout, compacted.stderr);
    let result = compacted.result();
    assert_eq!(
        (&result["subtype"], &result["num_turns"]),
        (&json!("success"), &json!(0)),
        "{result}"
    );
    assert_eq!(boundaries(&compacted)[0]["compact_metadata"]["trigger"], "manual");
    let asked = program.server().last().json()["messages"].to_string();
    assert!(asked.contains("mind the colours"), "{asked}");

    let (program, _) = reader("<summary></summary>");
    assert_eq!(run(&program, &["-p", "read it"], None).code, Some(0));
    let failed = run(&program, &["-p", "--continue", "/compact"], None);
    assert_eq!(failed.code, Some(1), "{}{}", failed.stdout, failed.stderr);
    assert_eq!(failed.result()["is_error"], true);
    let text = program.run(&["-p", "--continue", "/compact"]);
    assert_eq!(text.code, Some(1), "{}", text.stdout);
    assert!(
        format!("{}{}", text.stdout, text.stderr).contains("Error during compaction"),
        "{}",
        text.stderr
    );
}

#[test]
fn flags_variables_and_settings_say_when_conversations_are_compacted() {
    // A window that is chosen is never less than 100,000 tokens, and one that cannot be read is an error.
    let program = Program::answering([Reply::text("hi")]);
    for bad in ["none", "0", "12q", "-1"] {
        let ended = program.run(&["-p", "hi", "--autocompact", bad]);
        assert_eq!(ended.code, Some(2), "{bad}: {}", ended.stderr);
    }
    let mut command = program.command(["-p", "hi"]);
    let ended = ended(command.env("CENTURION_CONTEXT_WINDOW", "many").output().unwrap());
    assert!(
        ended.code != Some(0) && ended.stderr.contains("CENTURION_CONTEXT_WINDOW"),
        "{}",
        ended.stderr
    );

    let compactions = |arguments: &[&str], variables: &[(&str, &str)]| {
        let (program, _) = reader("<summary>SUMMARY-1</summary>");
        let stream = ["-p", "read it", "--output-format", "stream-json", "--verbose"];
        let mut command = program.command([&stream[..], arguments].concat());
        let ended =
            crate::program::ended(command.envs(variables.iter().copied()).output().unwrap());
        boundaries(&ended).len()
    };
    let percent = ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "25");
    let window = ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let settings = json!({"autoCompactWindow": 100_000}).to_string();
    let off = json!({"autoCompactEnabled": false}).to_string();
    assert_eq!(compactions(&[], &[percent]), 0, "a quarter of a million tokens is much");
    for (arguments, variables) in [
        (&["--autocompact", "100k"][..], &[percent][..]),
        (&[], &[percent, window]),
        (&["--settings", &settings], &[percent]),
        // Of a model that is not known the user can say the window.
        (&["--model", "strange-model"], &[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "30000")]),
    ] {
        assert!(compactions(arguments, variables) > 0, "{arguments:?} {variables:?}");
    }
    for (arguments, variables) in [
        (&["--autocompact", "auto"][..], &[percent, window][..]),
        (&["--autocompact", "100k"], &[percent, ("DISABLE_AUTO_COMPACT", "1")]),
        (&["--autocompact", "100k"], &[percent, ("DISABLE_COMPACT", "1")]),
        (&["--autocompact", "100k", "--settings", &off], &[percent]),
        (&["--model", "claude-opus-5-5"], &[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "30000")]),
        // Half of 80,000 is more than there is to read, and half of what 30,000 leave is less.
        (&["--autocompact", "30k"], &[("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50")]),
    ] {
        assert_eq!(compactions(arguments, variables), 0, "{arguments:?} {variables:?}");
    }
}

#[test]
fn a_hook_before_a_compaction_says_what_the_summary_should_heed() {
    // D-57
    let (program, _) = reader("<summary>SUMMARY-1</summary>");
    assert_eq!(run(&program, &["-p", "read it"], None).code, Some(0));
    let hook = |command: &str| {
        let hooks = json!([{"hooks": [{"type": "command", "command": command}]}]);
        json!({"hooks": {"PreCompact": hooks}}).to_string()
    };
    let json = r#"echo '{"systemMessage": "FOR-PEOPLE", "suppressOutput": true}'"#;
    for (command, heeds) in [("echo HOOK-WISH", true), (json, false)] {
        let settings = hook(command);
        let flags = ["-p", "--continue", "/compact", "--settings", &settings];
        let ended = run(&program, &flags, None);
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        let asked = program.server().last().json()["messages"].to_string();
        let heeded = asked.contains("Heed this in the summary:\\nHOOK-WISH");
        assert_eq!(heeded, heeds, "{asked}");
        assert!(!asked.contains("systemMessage") && !asked.contains("FOR-PEOPLE"), "{asked}");
        run(&program, &["-p", "--continue", "read it again"], None);
    }
}

#[test]
fn prompts_are_suggested_only_where_nonessential_requests_are_allowed() {
    // context.md 6
    let requests = |variable: Option<&str>| {
        let program = Program::answering([Reply::text("hi"), Reply::text("do the next thing")]);
        let flags =
            ["-p", "hi", "--prompt-suggestions", "--output-format", "stream-json", "--verbose"];
        let mut command = program.command(flags);
        if let Some(name) = variable {
            command.env(name, "1");
        }
        let ended = ended(command.output().unwrap());
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        program.server().requests().len()
    };
    assert_eq!(requests(None), 2);
    assert_eq!(requests(Some("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")), 1);
}

#[test]
fn a_refused_request_ends_a_run_that_may_not_compact_by_itself_and_compacting_by_hand_works() {
    // context.md 1
    let too_long = || {
        let why = "prompt is too long: 250000 tokens > 200000 maximum";
        Reply::error(400, "invalid_request_error", why)
    };
    let read = |id: &str| call(id, "Read", json!({"file_path": "long.txt"}));
    let off = json!({"autoCompactEnabled": false}).to_string();
    for (flags, variable) in [
        (&[][..], "DISABLE_AUTO_COMPACT"),
        (&["--settings", &off], "NONE"),
        (&[], "DISABLE_COMPACT"),
    ] {
        let replies =
            [read("t1"), read("t2"), too_long(), Reply::text("<summary>SUMMARY-1</summary>")];
        let program = Program::answering(replies);
        program.scratch.write("long.txt", "0123456789abcde\n".repeat(500));
        let run = |arguments: &[&str]| {
            let stream = ["--output-format", "stream-json", "--verbose"];
            let mut command = program.command([arguments, flags, &stream].concat());
            ended(command.env(variable, "1").output().unwrap())
        };
        let refused = run(&["-p", "read it"]);
        assert_eq!(refused.code, Some(1), "{variable}: {}", refused.stderr);
        let result = refused.result();
        assert_eq!(result["terminal_reason"], "prompt_too_long", "{variable}: {result}");
        assert!(result.to_string().contains("Prompt is too long"), "{variable}: {result}");
        assert_eq!(program.server().requests().len(), 3, "{variable}");
        let may = variable != "DISABLE_COMPACT";
        let compacted = run(&["-p", "--continue", "/compact"]);
        assert_eq!(compacted.code, Some(i32::from(!may)), "{variable}: {}", compacted.stdout);
        assert_eq!(boundaries(&compacted).len(), usize::from(may), "{variable}");
    }
}
