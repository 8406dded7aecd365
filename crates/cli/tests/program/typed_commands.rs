//! The program's own commands, each typed as a prompt of `-p` and by a host, with what it prints.

use centurion_testkit::{Recorded, Reply};
use serde_json::{Value, json};

use crate::host::Host;
use crate::program::{Ended, Program, ended};

/// The words of a request for a summary, and of one whether a goal is reached.
const SUMMARY: &str = "about to leave its window";
const GOAL: &str = "Decide whether the goal below is reached";

/// A session's project with one of everything that commands show, and a model that answers what commands ask of it.
fn furnished() -> Program {
    let program = Program::with_handler(|request: &Recorded| {
        let body = request.json();
        let last = body["messages"].as_array().unwrap().last().unwrap().to_string();
        let reply = match () {
            () if last.contains(SUMMARY) => "<summary>What was said.</summary>".to_owned(),
            () if last.contains(GOAL) => "YES: it holds".to_owned(),
            () if last.contains("how many?") => "forty-two".to_owned(),
            () if last.contains("<command-name>/init") => "instructions written".to_owned(),
            () => format!("ANSWER {}", "word ".repeat(5_000)),
        };
        Reply::text(&reply)
    });
    let scratch = &program.scratch;
    scratch.write("CLAUDE.md", "Always be brief.\n");
    scratch.write_home(".claude/agents/mine.md", "---\nname: mine\ndescription: Mine.\n---\nx\n");
    let settings = json!({
        "permissions": {"deny": ["Read(secret/**)"]},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]},
    });
    scratch.write_home(".claude/settings.json", settings.to_string());
    let servers = json!({"mcpServers": {"desk": {"command": "/nonexistent/server"}}});
    scratch.write_home(".claude.json", servers.to_string());
    program
}

/// A command, a part of what it prints, and whether it asks the model.
type Case = (&'static str, &'static str, bool);

/// All commands that make sense without a terminal, in an order in which each has something to show.
const COMMANDS: [Case; 25] = [
    ("/context", "| Messages | ", false),
    ("/cost", "Total cost: $0.", false),
    ("/usage", "Total cost: $0.", false),
    ("/model", "The model is test-model.", false),
    ("/model other-model", "The model is other-model from now on.", false),
    ("/agents", "mine  (userSettings)  Mine.", false),
    ("/tasks", "Nothing works in the background.", false),
    ("/bashes", "Nothing works in the background.", false),
    ("/mcp", "desk  ", false),
    ("/hooks", "Stop", false),
    ("/permissions", "Read(secret/**)", false),
    ("/memory", "CLAUDE.md", false),
    ("/help", "/rewind [number] [files|conversation|both] [--dry-run]  List the prompts", false),
    ("/skills", "review  (bundled)  ", false),
    ("/reload-skills", " skills and commands now.", false),
    ("/status", "Session: ", false),
    ("/export", "## User\n\nFIRST-PROMPT", false),
    ("/rename A title", "The session is called A title from now on.", false),
    ("/resume", "There are no other sessions of this directory.", false),
    ("/btw how many?", "forty-two", true),
    ("/goal", "There is no goal.", false),
    ("/rewind", "1. FIRST-PROMPT", false),
    ("/rewind 1 conversation --dry-run", "would be taken back: FIRST-PROMPT", false),
    ("/goal it holds", "ANSWER", true),
    ("/init", "instructions written", true),
];

/// Checks what came of a command against its case.
fn check(case: Case, result: &Value, asked: usize) {
    let (command, expected, asks) = case;
    assert_eq!(result["is_error"], false, "{command}: {result}");
    let shown = result["result"].as_str().unwrap();
    assert!(shown.contains(expected), "{command}: {shown}");
    assert_eq!(asked > 0, asks, "{command}: {asked} requests");
}

fn in_text(program: &Program, prompt: &str, more: &[&str]) -> Ended {
    let flags = [&["-p", prompt, "--model", "test-model"], more].concat();
    ended(program.command(flags).output().unwrap())
}

#[test]
fn each_command_prints_what_it_has_to_say_as_a_prompt() {
    let program = furnished();
    assert_eq!(in_text(&program, "FIRST-PROMPT", &[]).code, Some(0));
    for case in COMMANDS {
        let before = program.server().requests().len();
        let told = in_text(&program, case.0, &["--continue", "--output-format", "json"]);
        assert_eq!(told.code, Some(0), "{}: {}", case.0, told.stderr);
        let result: Value = serde_json::from_str(&told.stdout).unwrap();
        check(case, &result, program.server().requests().len() - before);
    }
    // A person reads the text alone.
    let told = in_text(&program, "/cost", &["--continue"]);
    assert!(told.stdout.starts_with("Total cost: $"), "{}", told.stdout);
    let told = in_text(&program, "/compact the colours", &["--continue"]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    assert!(program.server().last().json()["messages"].to_string().contains("the colours"));
    let file = in_text(&program, "/export said.md", &["--continue"]);
    assert!(file.stdout.contains("The conversation is in ") && file.code == Some(0));
    assert!(program.scratch.read("said.md").contains("What was said."));
}

#[test]
fn each_command_gives_a_host_its_result() {
    let program = furnished();
    let mut host = Host::start(&program, &["--model", "test-model"]);
    host.say("FIRST-PROMPT");
    host.result();
    for case in COMMANDS {
        let before = program.server().requests().len();
        host.say(case.0);
        let events = host.until(|event| event["type"] == "result");
        let init = events.iter().find(|event| event["subtype"] == "init").unwrap();
        let known = init["slash_commands"].as_array().unwrap();
        let name = case.0.split_whitespace().next().unwrap().trim_start_matches('/');
        assert!(name == "bashes" || known.contains(&json!(name)), "{name}: {known:?}");
        check(case, events.last().unwrap(), program.server().requests().len() - before);
        let output = events.iter().filter(|event| event["subtype"] == "local_command_output");
        let is_shown = output.count() == 1;
        assert_eq!(is_shown, !matches!(name, "init") && !case.0.starts_with("/goal it"), "{name}");
    }
    host.say("/compact");
    let events = host.until(|event| event["type"] == "result");
    assert!(events.iter().any(|event| event["subtype"] == "compact_boundary"), "{events:?}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_command_that_is_not_there_ends_with_code_one_and_no_request() {
    let program = furnished();
    for (typed, near) in [
        ("/contxt", "there is no command /contxt; did you mean /context?"),
        ("/statsu now", "there is no command /statsu; did you mean /status?"),
        ("/zzzzzzzz", "there is no command /zzzzzzzz"),
    ] {
        let told = in_text(&program, typed, &[]);
        assert_eq!(told.code, Some(1), "{typed}");
        let said = format!("{}{}", told.stdout, told.stderr);
        assert!(said.contains(near), "{typed}: {said}");
        let mut host = Host::start(&program, &["--model", "test-model"]);
        host.say(typed);
        let result = host.result();
        assert_eq!((&result["is_error"], &result["result"]), (&json!(true), &json!(near)));
        assert_eq!(host.finish(), 1, "{typed}");
    }
    assert!(program.server().requests().is_empty(), "no model was asked");
}

#[test]
fn a_conversation_that_is_begun_anew_is_another_session_in_every_way_of_running() {
    // context.md 6
    let program = furnished();
    let json = ["--output-format", "json"];
    let result = |told: &Ended| -> Value { serde_json::from_str(&told.stdout).unwrap() };
    let first = result(&in_text(&program, "FIRST-PROMPT", &json));
    let old = first["session_id"].as_str().unwrap();
    let cleared = result(&in_text(&program, "/clear", &["--resume", old, json[0], json[1]]));
    let new = cleared["session_id"].as_str().unwrap();
    assert_ne!(old, new);
    assert_eq!((&cleared["is_error"], &cleared["result"]), (&json!(false), &json!("")));
    let names = |program: &Program| -> Vec<String> {
        let paths = program.transcripts();
        paths.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert!([old, new].iter().all(|id| names(&program).contains(&(*id).to_owned())));
    let sent = |program: &Program| program.server().last().json()["messages"].to_string();
    let next = result(&in_text(&program, "SECOND-PROMPT", &["--resume", new, json[0], json[1]]));
    assert_eq!(next["session_id"], new);
    assert!(!sent(&program).contains("FIRST-PROMPT"), "{}", sent(&program));
    let again = result(&in_text(&program, "THIRD-PROMPT", &["--resume", old, json[0], json[1]]));
    assert_eq!(again["session_id"], old);
    assert!(sent(&program).contains("FIRST-PROMPT") && !sent(&program).contains("SECOND-PROMPT"));

    let extra = ["--model", "test-model", "--replay-user-messages"];
    let mut host = Host::start(&program, &extra);
    host.say("FOURTH-PROMPT");
    let old = host.result()["session_id"].clone();
    host.say("/clear");
    let events = host.until(|event| event["type"] == "result");
    let reset = events.iter().find(|event| event["type"] == "conversation_reset").unwrap();
    let new = &reset["new_conversation_id"];
    assert_eq!((&reset["session_id"], &reset["trigger"]), (&old, &json!("clear")));
    let typed = events.iter().find(|event| event["isReplay"] == true).unwrap();
    assert_eq!(reset["user_message_uuid"], typed["uuid"]);
    assert_eq!(&events.last().unwrap()["session_id"], new);
    host.say("FIFTH-PROMPT");
    let events = host.until(|event| event["type"] == "result");
    assert!(events.iter().all(|event| event["session_id"] == *new), "{events:?}");
    assert!(events.iter().any(|event| event["isReplay"] == true && event["session_id"] == *new));
    assert!(!sent(&program).contains("FOURTH-PROMPT"));
    assert_eq!(host.finish(), 0);
    assert!(names(&program).contains(&new.as_str().unwrap().to_owned()));
}
