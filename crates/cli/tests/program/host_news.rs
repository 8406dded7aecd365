//! News for hosts about the conversation itself: it is begun anew, the model declines, other commands are there.

use centurion_testkit::{Reply, sse};
use serde_json::{Value, json};

use crate::host::Host;
use crate::program::Program;

fn turn(host: &mut Host, prompt: &str) -> Vec<Value> {
    host.say(prompt);
    host.until(|event| event["type"] == "result")
}

fn only(events: &[Value], fits: impl Fn(&Value) -> bool) -> &Value {
    let found: Vec<&Value> = events.iter().filter(|event| fits(event)).collect();
    assert_eq!(found.len(), 1, "{events:?}");
    found[0]
}

#[test]
fn a_refusal_of_the_model_is_told_with_its_prompt() {
    let no = sse::answer(&[sse::text("I would rather not.")], "refusal");
    let program =
        Program::answering([Reply::events(no).header("request-id", "req_7"), Reply::text("yes")]);
    let mut host = Host::start(&program, &["--replay-user-messages"]);
    let events = turn(&mut host, "do harm");
    let refusal = only(&events, |event| event["subtype"] == "model_refusal_no_fallback");
    let prompt = only(&events, |event| event["isReplay"] == true);
    assert_eq!(refusal["refused_user_message_uuid"], prompt["uuid"]);
    assert_eq!(refusal["request_id"], "req_7");
    assert_eq!(refusal["original_model"], "test-model");
    let events = turn(&mut host, "something else");
    assert!(events.iter().all(|event| event["subtype"] != "model_refusal_no_fallback"));
    host.finish();
}

#[test]
fn a_conversation_that_begins_anew_is_told_with_what_discarded_it() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    let mut host = Host::start(&program, &[]);
    turn(&mut host, "first");
    let events = turn(&mut host, "/clear");
    let reset = only(&events, |event| event["type"] == "conversation_reset");
    assert_eq!(reset["trigger"], "clear");
    assert!(reset["timestamp"].as_str().unwrap().ends_with('Z'), "{reset}");
    turn(&mut host, "second");
    assert!(!program.server().last().json()["messages"].to_string().contains("first"));
    assert_eq!(host.finish(), 0);
}

#[test]
fn commands_that_come_while_a_session_continues_are_told_of() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    let mut host = Host::start(&program, &[]);
    let events = turn(&mut host, "first");
    let init = only(&events, |event| event["subtype"] == "init");
    assert_eq!(init["terminal_slash_commands"], json!([]));
    let ship = "---\ndescription: Ships it\n---\nShip.\n";
    program.scratch.write_home(".claude/commands/ship.md", ship);
    let events = turn(&mut host, "second");
    let changed = only(&events, |event| event["subtype"] == "commands_changed");
    let commands = changed["commands"].as_array().unwrap();
    assert!(commands.iter().any(|command| command["name"] == "ship"), "{changed}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_system_prompt_for_all_users_says_nothing_of_this_machine() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    let place = program.scratch.project().display().to_string();
    let told = |flags: &[&str], wishes: &Value| {
        let mut host = Host::start(&program, flags);
        host.ask(wishes);
        host.say("hi");
        host.result();
        let session = host.ask(&json!({"subtype": "list_permission_rules"}));
        assert_eq!(session["subtype"], "success");
        assert_eq!(host.finish(), 0);
        let sent = program.server().last().json();
        (sent["system"].to_string().contains(&place), sent["messages"].to_string().contains(&place))
    };
    let plain = json!({"subtype": "initialize"});
    assert_eq!(told(&[], &plain), (true, false));
    let wish = json!({"subtype": "initialize", "excludeDynamicSections": true});
    assert_eq!(told(&[], &wish), (false, true));
    let flag = ["--exclude-dynamic-system-prompt-sections"];
    assert_eq!(told(&flag, &plain), (false, true));
    assert_eq!(
        told(&[flag[0], "--continue"], &plain),
        (false, true),
        "a resumed session is told, too"
    );
}

#[test]
fn the_functions_of_a_later_beginning_are_in_the_place_of_the_earlier_ones() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    let mut host = Host::start(&program, &[]);
    for id in ["first", "second"] {
        let hooks = json!({"Stop": [{"hookCallbackIds": [id]}]});
        let answer = host.ask(&json!({"subtype": "initialize", "hooks": hooks}));
        assert_eq!(answer["response"]["hooks_applied"], true);
    }
    host.say("hi");
    let asked = host.until(|event| event["type"] == "control_request").pop().unwrap();
    assert_eq!(asked["request"]["callback_id"], "second");
    let response = json!({"subtype": "success", "request_id": asked["request_id"], "response": {}});
    host.send(&json!({"type": "control_response", "response": response}));
    let rest = host.until(|event| event["type"] == "result");
    assert!(rest.iter().all(|event| event["type"] != "control_request"), "{rest:?}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_message_with_an_odd_field_is_answered_and_a_request_without_a_request_too() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    let mut host = Host::start(&program, &[]);
    for (field, value) in [
        ("uuid", json!("msg-1")),
        ("uuid", json!(7)),
        ("priority", json!("soon")),
        ("isSynthetic", json!("yes")),
        ("shouldQuery", json!("no")),
        ("client_composed", json!("yes")),
        ("origin", json!(7)),
        ("pasted_content", json!(7)),
        ("session_id", json!(7)),
    ] {
        let message = json!({"role": "user", "content": "/cost"});
        let mut line = json!({"type": "user", "message": message});
        line[field] = value;
        host.send(&line);
        let result = host.result();
        // A value that is not understood frees nothing.
        let is_verbatim = field == "client_composed";
        assert_eq!(result["result"] == "heard", is_verbatim, "{field}: {result}");
    }
    host.send(&json!({"type": "control_request", "request_id": "bare"}));
    let answer = host.until(|event| event["response"]["request_id"] == "bare").pop().unwrap();
    assert_eq!(answer["response"]["error_code"], "invalid_request");
    let odd = json!({"subtype": "list_models"});
    host.send(&json!({"type": "control_request", "request_id": "odd", "request": odd, "uuid": 7}));
    let answer = host.until(|event| event["response"]["request_id"] == "odd").pop().unwrap();
    assert_eq!(answer["response"]["subtype"], "success");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_finds_files_by_parts_of_their_names() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    program.scratch.write("src/main.rs", "");
    program.scratch.write("src/model.rs", "");
    program.scratch.write("keys/main.key", "");
    let mut host = Host::start(&program, &["--disallowedTools", "Read(keys/**)"]);
    let mut found = |query: &str| {
        let answer = host.ask(&json!({"subtype": "file_suggestions", "query": query}));
        let found = answer["response"]["suggestions"].as_array().unwrap().clone();
        found.into_iter().map(|it| it["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // Before and after the first turn.
    assert_eq!(found("main"), ["src/main.rs"]);
    assert_eq!(found("srmo"), ["src/model.rs"]);
    assert_eq!(found("nothing like it"), Vec::<String>::new());
    let wrong = host.ask(&json!({"subtype": "file_suggestions"}));
    assert_eq!(wrong["error_code"], "invalid_request");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_gets_the_names_of_the_users_own_command_and_none_of_a_repository_that_is_not_trusted() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    program.scratch.write("src/main.rs", "");
    let command = |text: &str| json!({"fileSuggestion": {"type": "command", "command": text}});
    let ask = |host: &mut Host, query: &str| {
        let answer = host.ask(&json!({"subtype": "file_suggestions", "query": query}));
        let found = answer["response"]["suggestions"].as_array().unwrap().clone();
        found.into_iter().map(|it| it["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // A command of a repository does not run before the folder is trusted.
    let planted = command("touch planted; echo planted").to_string();
    program.scratch.write(".claude/settings.json", planted);
    let mut host = Host::start(&program, &[]);
    assert_eq!(ask(&mut host, "main"), ["src/main.rs"]);
    assert!(!program.scratch.project().join("planted").exists());
    assert_eq!(host.finish(), 0);
    let own = command("query=$(cat); printf 'one %s\\n' \"$query\"; echo; echo ' two '");
    program.scratch.write_home(".claude/settings.json", own.to_string());
    std::fs::remove_file(program.scratch.project().join(".claude/settings.json")).unwrap();
    let mut host = Host::start(&program, &[]);
    let found = ask(&mut host, "a \"b\"");
    let [first, second] = &found[..] else { panic!("{found:?}") };
    let query: Value = serde_json::from_str(first.strip_prefix("one ").unwrap()).unwrap();
    assert_eq!((&query["query"], second.as_str()), (&json!("a \"b\""), "two"));
    assert_eq!(host.finish(), 0);
    // One that fails, and one where hooks are off: the names are our own again.
    let failing = command("exit 1");
    let mut off = own;
    off["disableAllHooks"] = json!(true);
    for settings in [failing, off] {
        program.scratch.write_home(".claude/settings.json", settings.to_string());
        let mut host = Host::start(&program, &[]);
        assert_eq!(ask(&mut host, "main"), ["src/main.rs"], "{settings}");
        assert_eq!(host.finish(), 0);
    }
}
