//! Headless output: text, JSON and a stream of events.

use centurion_testkit::{Reply, sse};
use serde_json::{Value, json};

use crate::program::{Program, call};

#[test]
fn text_output_is_the_answer_and_nothing_else() {
    let program = Program::answering([Reply::text("forty-two")]);
    let ended = program.run(&["-p", "what is it?"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (Some(0), "forty-two\n", "")
    );
    let request = program.server().last().json();
    assert_eq!(request["model"], "claude-opus-5-5");
    assert_eq!(request["stream"], true);
    let prompt = request["messages"][0]["content"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(prompt["text"], "what is it?");
    assert_eq!(
        prompt["cache_control"]["type"], "ephemeral",
        "the last block is a cache breakpoint"
    );
    assert!(request["system"].as_array().unwrap().last().unwrap()["cache_control"].is_object());
}

#[test]
fn the_first_request_of_a_default_run_is_small() {
    let program = Program::answering([Reply::text("ok")]);
    program.run(&["-p", "hi"]);
    let size = program.server().last().body.len();
    assert!(size <= 25_000, "{size} bytes");
}

#[test]
fn json_output_is_one_object_with_the_result() {
    let program = Program::answering([Reply::text("forty-two")]);
    let ended = program.run(&["-p", "what?", "--output-format", "json"]);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    for key in [
        "type",
        "subtype",
        "is_error",
        "result",
        "num_turns",
        "duration_ms",
        "duration_api_ms",
        "stop_reason",
        "session_id",
        "total_cost_usd",
        "usage",
        "modelUsage",
        "permission_denials",
        "terminal_reason",
        "uuid",
    ] {
        assert!(result.get(key).is_some(), "{key} is missing in {result}");
    }
    assert_eq!((&result["type"], &result["result"]), (&json!("result"), &json!("forty-two")));
}

#[test]
fn a_stream_shows_init_answers_results_and_the_result_in_order() {
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "a.txt"})),
        Reply::text("it says alpha"),
    ]);
    program.scratch.write("a.txt", "alpha\n");
    let ended = program.run(&["-p", "read it", "--output-format", "stream-json", "--verbose"]);
    let events = ended.events();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "system", "assistant", "user", "system", "assistant", "result"]);
    assert_eq!(events[0]["subtype"], "init");
    for key in [
        "cwd",
        "session_id",
        "tools",
        "mcp_servers",
        "model",
        "permissionMode",
        "apiKeySource",
        "uuid",
    ] {
        assert!(events[0].get(key).is_some(), "{key}");
    }
    assert_eq!(events[0]["apiKeySource"], "ANTHROPIC_API_KEY");
    assert_eq!(events[3]["message"]["content"][0]["content"], "1\talpha");
    assert_eq!(events[3]["parent_tool_use_id"], json!(null));
    assert_eq!(ended.result()["num_turns"], 2);
}

#[test]
fn partial_messages_are_shown_on_request() {
    let program = Program::answering([Reply::text("hello")]);
    let ended = program.run(&[
        "-p",
        "hi",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
    ]);
    let deltas = ended.events().iter().filter(|event| event["type"] == "stream_event").count();
    assert!(deltas >= 5, "{deltas}");
}

#[test]
fn a_failed_run_has_a_failing_exit_code_and_says_why() {
    let program =
        Program::answering([Reply::error(401, "authentication_error", "invalid x-api-key")]);
    let ended = program.run(&["-p", "hi"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stdout.contains("invalid x-api-key"), "{}", ended.stdout);
    assert!(ended.stderr.contains("api_error"), "{}", ended.stderr);
    assert_eq!(program.server().requests().len(), 1);
}

#[test]
fn piped_input_is_the_prompt_or_is_added_to_it() {
    let program = Program::answering([Reply::text("a"), Reply::text("b")]);
    program.run_with_input(&["-p"], "from the pipe");
    program.run_with_input(&["-p", "explain:"], "from the pipe\n");
    let prompt = |n: usize| {
        let request = program.server().requests()[n].json();
        request["messages"][0]["content"].as_array().unwrap().last().unwrap()["text"].clone()
    };
    assert_eq!(prompt(0), "from the pipe");
    assert_eq!(prompt(1), "explain:\n\nfrom the pipe");
}

#[test]
fn what_is_piped_beside_a_prompt_mentions_no_files_and_is_no_command() {
    let program = Program::answering(["a", "b", "c"].map(Reply::text));
    program.scratch.write("note.txt", "TOPSECRET");
    let request = |n: usize| program.server().requests()[n].json()["messages"].to_string();
    program.run_with_input(&["-p", "review this change"], "+ see @note.txt\n/help\n");
    assert!(
        request(0).contains("review this change\\n\\n+ see @note.txt\\n/help"),
        "{}",
        request(0)
    );
    assert!(!request(0).contains("TOPSECRET"), "{}", request(0));
    program.run_with_input(&["-p", "review @note.txt"], "+ a change\n");
    assert!(
        request(1).contains("TOPSECRET") && request(1).contains("+ a change"),
        "{}",
        request(1)
    );
    program.run_with_input(&["-p"], "what is in @note.txt?\n");
    assert!(request(2).contains("TOPSECRET"), "what is piped alone is the prompt: {}", request(2));
}

#[test]
fn system_prompt_tools_and_instructions_reach_the_model() {
    let program = Program::answering([Reply::text("a"), Reply::text("b")]);
    program.scratch.write("CLAUDE.md", "Always answer in rhyme.\n");
    program.run(&[
        "-p",
        "hi",
        "--append-system-prompt",
        "Speak softly.",
        "--disallowedTools",
        "Bash",
    ]);
    let first = program.server().requests()[0].json();
    assert!(
        first["messages"][0]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("Always answer in rhyme.")
    );
    assert!(first["system"].to_string().contains("Speak softly."));
    assert!(first["system"].to_string().contains(&program.scratch.project().display().to_string()));
    assert!(!first["tools"].to_string().contains("\"Bash\""));
    program.run(&["-p", "hi", "--system-prompt", "You are a parrot.", "--tools", "Read,Glob"]);
    let second = program.server().requests()[1].json();
    assert_eq!(second["system"][0]["text"], "You are a parrot.");
    let names: Vec<&str> = second["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Glob", "Read"]);
}

#[test]
fn a_schema_gives_structured_output() {
    let program = Program::answering([call("toolu_1", "StructuredOutput", json!({"n": 3}))]);
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let ended = program.run(&["-p", "count", "--output-format", "json", "--json-schema", schema]);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &result["structured_output"]), (Some(0), &json!({"n": 3})));
}

#[test]
fn a_reader_that_goes_away_is_told_of_once_and_in_one_line() {
    let program = Program::answering([
        Reply::blocks([sse::tool_use("toolu_1", "Glob", json!({"pattern": "*"}))]),
        Reply::text("x"),
    ]);
    let mut command = program.command(["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told, "error: standard output was closed before the end\n");
}

#[test]
fn verbose_json_is_all_events() {
    let program = Program::answering([Reply::text("ok")]);
    let ended = program.run(&["-p", "hi", "--output-format", "json", "--verbose"]);
    let events: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "system", "assistant", "result"]);
}

#[test]
fn a_transcript_that_cannot_be_written_ends_the_run_once() {
    let program = Program::answering([Reply::text("never")]);
    program.scratch.write_home(".centurion/projects", "in the way");
    let ended = program.run(&["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    assert_eq!(ended.code, Some(1));
    let results = ended.events().iter().filter(|event| event["type"] == "result").count();
    assert_eq!(results, 1);
    assert_eq!(ended.result()["outcome"], "journal_failed");
    assert!(program.server().requests().is_empty(), "what cannot be recorded is not done");
}

#[test]
fn a_picture_does_not_fill_the_window() {
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "big.png"})),
        Reply::text("seen"),
    ]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    png.resize(3_000_000, 0);
    program.scratch.write("big.png", png);
    let ended = program.run(&["-p", "look", "--model", "haiku"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "seen\n"), "{}", ended.stderr);
}

#[test]
fn the_model_can_read_the_output_that_it_is_pointed_to() {
    let program = Program::with_handler(|request| {
        let body = request.json();
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap().to_string();
        match messages.len() {
            1 => call("toolu_1", "Bash", json!({"command": "seq 1 100000"})),
            3 => {
                let start =
                    last.find("/home/").map(|_| ()).and_then(|()| last.find("/tmp")).unwrap_or(0);
                let path: String =
                    last[start..].chars().take_while(|c| !" ]\"\\".contains(*c)).collect();
                call(
                    "toolu_2",
                    "Read",
                    json!({"file_path": path.trim_end_matches('.'), "offset": 50_000, "limit": 1}),
                )
            }
            _ => Reply::text(if last.contains("50000") { "found it" } else { "not there" }),
        }
    });
    let ended = program.run(&["-p", "count", "--allowedTools", "Bash"]);
    assert_eq!(ended.stdout, "found it\n", "{}", program.server().last().json()["messages"]);
}

#[test]
fn verbose_text_shows_what_happens_on_standard_error() {
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "a.txt"})),
        Reply::text("it says alpha"),
    ]);
    program.scratch.write("a.txt", "alpha\n");
    let ended = program.run(&["-p", "read it", "--verbose"]);
    assert_eq!(ended.stdout, "it says alpha\n");
    assert!(
        ended.stderr.contains("● Read a.txt") && ended.stderr.contains("└ 1 alpha"),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_openai_compatible_server_works_with_parallel_calls() {
    let chunk = |delta: Value, finish: Value| {
        sse::event(&json!({"id": "c1", "model": "local", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
            .replace("event: null\n", "")
    };
    let call = |index: u32, path: &str| {
        json!({"tool_calls": [{"index": index, "id": format!("call_{index}"), "type": "function",
            "function": {"name": "Read", "arguments": json!({"file_path": path}).to_string()}}]})
    };
    let first = [
        chunk(json!({"role": "assistant", "content": ""}), json!(null)),
        chunk(call(0, "a.txt"), json!(null)),
        chunk(call(1, "b.txt"), json!(null)),
        chunk(json!({}), json!("tool_calls")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let second = [
        chunk(json!({"content": "both read"}), json!(null)),
        chunk(json!({}), json!("stop")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let program = Program::answering([Reply::events(first), Reply::events(second)]);
    program.scratch.write("a.txt", "alpha\n");
    program.scratch.write("b.txt", "beta\n");
    let ended = ended_openai(&program, &["-p", "read both", "--model", "openai:local"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "both read\n"), "{}", ended.stderr);
    let request = program.server().requests()[1].json();
    let messages = request["messages"].as_array().unwrap();
    let tools: Vec<_> = messages.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(tools.len(), 2);
    assert!(
        tools[0]["content"].to_string().contains("alpha")
            && tools[1]["content"].to_string().contains("beta")
    );
}

fn ended_openai(program: &Program, arguments: &[&str]) -> crate::program::Ended {
    let mut command = program.command(arguments);
    command
        .env_remove("ANTHROPIC_BASE_URL")
        .env_remove("ANTHROPIC_API_KEY")
        .env("OPENAI_BASE_URL", format!("{}/v1", program.server().url()));
    crate::program::ended(command.output().unwrap())
}

#[test]
fn a_mention_that_is_not_attached_is_told() {
    let program = Program::answering(["a", "b"].map(Reply::text));
    program.scratch.write(".env", "TOPSECRET");
    program.scratch.write("note.txt", "alpha");
    let denied =
        ["-p", "see @.env, @missing.txt, @note.txt and @alice", "--disallowedTools", "Read(.env)"];
    let told = program.run(&denied).stderr;
    assert!(
        told.contains("warning: `@.env` is not attached") && told.contains("Read(.env)"),
        "{told}"
    );
    assert!(told.contains("warning: `@missing.txt` is not attached"), "{told}");
    assert!(!told.contains("note.txt") && !told.contains("alice"), "{told}");
    let ended =
        program.run(&[&denied[..], &["--output-format", "stream-json", "--verbose"]].concat());
    let is_told = |event: &Value| {
        event["subtype"] == "informational"
            && event["content"].as_str().unwrap().contains("`@.env`")
    };
    assert!(ended.events().iter().any(is_told), "{}", ended.stdout);
}
