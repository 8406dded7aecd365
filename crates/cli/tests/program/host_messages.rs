//! Facts that a host tells about its messages: text that no person typed, context without a turn, pastes, origins, and urgency.

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::host::Host;
use crate::program::{Program, call, eventually};

/// A message of a user with fields beside it.
fn message(text: &str, more: &Value) -> Value {
    let mut line = json!({"type": "user", "message": {"role": "user", "content": text}});
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

/// The texts of the last message that the model was sent.
fn last_texts(program: &Program) -> Vec<String> {
    let messages = program.server().last().json()["messages"].clone();
    let content = messages.as_array().unwrap().last().unwrap()["content"].clone();
    let texts = content.as_array().unwrap().iter();
    texts.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn text_that_a_client_composed_reaches_the_model_as_it_is() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    program.scratch.write("secret.txt", "the words of the file");
    let skill = program.scratch.project().join(".claude/skills/greet");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\ndescription: Greets.\n---\nSay hello.").unwrap();
    let mut host = Host::start(&program, &[]);
    let composed = json!({"client_composed": true});
    for (text, more) in [
        ("/cost", &composed),
        ("/compact", &composed),
        ("/greet", &composed),
        ("/no-such-command", &composed),
        ("read @secret.txt", &composed),
        ("/cost", &json!({"origin": {"kind": "channel", "server": "chat"}})),
    ] {
        host.send(&message(text, more));
        assert_eq!(host.result()["result"], "ok", "{text}");
        assert_eq!(last_texts(&program).last().unwrap(), text);
        assert!(!last_texts(&program).concat().contains("the words of the file"), "{text}");
    }
    // The same words of a person are commands.
    let before = program.server().requests().len();
    host.send(&message("/cost", &json!({"origin": {"kind": "human"}})));
    assert!(host.result()["result"].as_str().unwrap().contains('$'));
    assert_eq!(program.server().requests().len(), before);
    host.say("read @secret.txt");
    host.result();
    assert!(last_texts(&program).concat().contains("the words of the file"));
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_message_that_asks_for_no_answer_is_told_with_the_next_one() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let id = "5e8f3c1e-3c37-4c51-9f43-0f4a7e3a6a11";
    let quiet = json!({"shouldQuery": false});
    let mut host = Host::start(&program, &["--session-id", id]);
    host.send(&message("the build is green", &quiet));
    // A command of the program is no turn of the model.
    host.say("/cost");
    host.result();
    assert!(program.server().requests().is_empty());
    host.say("how is it?");
    let result = host.result();
    assert_eq!((&result["result"], &result["result_index"]), (&json!("ok"), &json!(1)));
    let texts = last_texts(&program);
    assert!(
        texts.ends_with(&["the build is green".to_owned(), "how is it?".to_owned()]),
        "{texts:?}"
    );
    // A message that no turn takes along is in the transcript, and a later process begins with it.
    host.send(&message("the night is quiet", &quiet));
    assert_eq!(host.finish(), 0);
    assert_eq!(program.server().requests().len(), 1);
    let mut later = Host::start(&program, &["--resume", id]);
    later.say("and now?");
    later.result();
    let texts = last_texts(&program);
    assert!(texts.iter().any(|text| text == "the night is quiet"), "{texts:?}");
    assert_eq!(later.finish(), 0);
}

#[test]
fn pastes_follow_what_was_typed_and_are_no_commands() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    program.scratch.write("secret.txt", "the words of the file");
    let mut host = Host::start(&program, &[]);
    let pastes = json!({"pasted_content": [
        "/cost is a line of a log with @secret.txt",
        [{"type": "text", "text": "second"}, {"type": "image"}, {"type": "text", "text": "paste"}],
        "  ",
    ]});
    host.send(&message("what is this?", &pastes));
    host.result();
    let texts = last_texts(&program);
    let expected = ["what is this?", "/cost is a line of a log with @secret.txt", "second\npaste"];
    assert!(texts.ends_with(&expected.map(str::to_owned)), "{texts:?}");
    // A paste alone is a message, and no command.
    host.send(&message("", &json!({"pasted_content": ["/cost"]})));
    assert_eq!(host.result()["result"], "ok");
    assert_eq!(last_texts(&program).last().unwrap(), "/cost");
    let many = vec!["x"; 1_001];
    host.send(&message("too many", &json!({"pasted_content": many})));
    host.result();
    assert_eq!(last_texts(&program).last().unwrap(), "too many");
    assert_eq!(host.finish(), 0);
}

#[test]
fn the_origin_of_a_message_is_in_its_result_and_its_record() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let mut host = Host::start(&program, &["--replay-user-messages"]);
    let origin = json!({"kind": "peer", "from": "another session", "name": "The other"});
    host.send(&message("hello", &json!({"origin": origin, "isSynthetic": true})));
    let seen = host.until(|event| event["type"] == "result");
    assert_eq!(seen.last().unwrap()["origin"], origin);
    let echo = seen.iter().find(|event| event["isReplay"] == true).unwrap();
    assert_eq!(echo["isSynthetic"], true);
    // One that is not known is no reason to lose the message.
    host.send(&message("hello", &json!({"origin": {"kind": "stranger"}})));
    assert!(host.result().get("origin").is_none());
    assert_eq!(host.finish(), 0);
    let transcript = std::fs::read_to_string(&program.transcripts()[0]).unwrap();
    let lines = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said: Vec<Value> = lines.filter(|line| line["message"]["content"] == "hello").collect();
    assert_eq!((&said[0]["origin"], &said[0]["isMeta"]), (&origin, &json!(true)));
    assert!(said[1].get("origin").is_none());
}

#[test]
fn a_message_for_later_waits_for_the_end_of_the_turn() {
    let program = Program::answering([
        call(
            "t1",
            "Bash",
            json!({"command": "touch started; until [ -e go ]; do sleep 0.01; done"}),
        ),
        Reply::text("first"),
        Reply::text("second"),
    ]);
    let mut host = Host::start(&program, &["--allowedTools", "Bash"]);
    host.say("begin");
    let started = program.scratch.project().join("started");
    eventually("the command started", || started.exists().then_some(()));
    host.send(&message("said later", &json!({"priority": "later"})));
    host.send(&message("said next", &json!({"priority": "next"})));
    // An answer shows that the messages before it were taken.
    host.ask(&json!({"subtype": "mcp_status"}));
    program.scratch.write("go", "");
    let first = host.result();
    assert_eq!((&first["result"], &first["queued_turn_count"]), (&json!("first"), &json!(1)));
    let texts = last_texts(&program);
    assert!(texts.contains(&"said next".to_owned()), "{texts:?}");
    assert!(!texts.contains(&"said later".to_owned()), "{texts:?}");
    assert_eq!(host.result()["result"], "second");
    assert_eq!(last_texts(&program), ["said later"]);
    assert_eq!(host.finish(), 0);
}
