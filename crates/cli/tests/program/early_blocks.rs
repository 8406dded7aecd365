//! Hosts see a block of an answer when it ends, and each answer once; usage is told as the provider sent it.

use centurion_testkit::{Fault, Reply, sse};
use serde_json::{Value, json};

use crate::host::Host;
use crate::program::{Ended, Program, call};

const STREAM: [&str; 5] = ["-p", "go", "--output-format", "stream-json", "--verbose"];

/// The pieces of an answer up to the end of its first text.
const FIRST_BLOCK: usize = 5;

fn answers(ended: &Ended) -> Vec<Value> {
    ended.events().into_iter().filter(|event| event["type"] == "assistant").collect()
}

fn texts(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|it| it["message"]["content"][0]["text"].as_str().unwrap()).collect()
}

/// The ids and texts of the answers in the one transcript.
fn recorded(program: &Program) -> Vec<(String, String)> {
    let [path] = &program.transcripts()[..] else { panic!("one transcript") };
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answers = lines.filter(|line| line["type"] == "assistant");
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    answers
        .map(|line| (word(&line["uuid"]), word(&line["message"]["content"][0]["text"])))
        .collect()
}

#[test]
fn a_block_of_a_broken_answer_is_replaced_by_the_first_that_differs() {
    let broken = Reply::blocks([sse::text("I begin"), sse::text("and break")]);
    let program = Program::answering([
        broken.fault(Fault::Reset { after: FIRST_BLOCK }),
        Reply::blocks([sse::text("I begin anew"), sse::text("and end")]),
    ]);
    let ended = program.run(&STREAM);
    let shown = answers(&ended);
    assert_eq!(texts(&shown), ["I begin", "I begin anew", "and end"]);
    assert_eq!(shown[1]["supersedes"], json!([shown[0]["uuid"]]));
    assert!(shown[0].get("supersedes").is_none() && shown[2].get("supersedes").is_none());
    let events = ended.events();
    let at = |fits: &dyn Fn(&Value) -> bool| events.iter().position(fits).unwrap();
    let retried = at(&|event| event["subtype"] == "api_retry");
    assert!(at(&|event| event["uuid"] == shown[0]["uuid"]) < retried, "it was not held back");
    let word =
        |n: usize, text: &str| (shown[n]["uuid"].as_str().unwrap().to_owned(), text.to_owned());
    assert_eq!(recorded(&program), [word(1, "I begin anew"), word(2, "and end")]);
    assert_eq!(ended.result()["result"], "I begin anewand end");
}

#[test]
fn a_block_that_comes_again_is_shown_once() {
    let blocks = [sse::text("I begin"), sse::text("and end")];
    let program = Program::answering([
        Reply::blocks(blocks.clone()).fault(Fault::Reset { after: FIRST_BLOCK }),
        Reply::blocks(blocks),
    ]);
    let shown = answers(&program.run(&STREAM));
    assert_eq!(texts(&shown), ["I begin", "and end"]);
    assert!(shown.iter().all(|it| it.get("supersedes").is_none()));
    let ids: Vec<String> = recorded(&program).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [shown[0]["uuid"].as_str().unwrap(), shown[1]["uuid"].as_str().unwrap()]);
}

#[test]
fn an_interrupted_answer_keeps_what_was_seen_of_it() {
    let program = Program::answering([
        Reply::blocks([sse::text("seen"), sse::text("never said")])
            .fault(Fault::Silence { after: FIRST_BLOCK + 2 }),
        Reply::text("on we go"),
    ]);
    let mut host = Host::start(&program, &["--include-partial-messages"]);
    host.say("go");
    let is_half = |event: &Value| event["event"]["delta"]["text"] == "never";
    let seen = host.until(is_half);
    let early: Vec<&Value> = seen.iter().filter(|event| event["type"] == "assistant").collect();
    assert_eq!(early.len(), 1, "{early:?}");
    host.send(&crate::host::control("stop", &json!({"subtype": "interrupt"})));
    let rest = host.until(|event| event["type"] == "result");
    let last: Vec<&Value> = rest.iter().filter(|event| event["type"] == "assistant").collect();
    assert_eq!(last.len(), 1, "what was seen is not shown again: {last:?}");
    assert_eq!(
        (&last[0]["aborted"], &early[0]["message"]["content"][0]["text"]),
        (&json!(true), &json!("seen"))
    );
    host.say("on");
    host.result();
    let messages = program.server().requests()[1].json()["messages"].to_string();
    assert!(messages.contains("seen"), "{messages}");
    host.finish();
}

#[test]
fn messages_and_results_name_the_prompt_that_they_answer() {
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "a.txt"})),
        Reply::text("one"),
        Reply::text("two"),
    ]);
    program.scratch.write("a.txt", "alpha\n");
    let mut host = Host::start(&program, &["--include-partial-messages"]);
    let id = "11111111-2222-4333-8444-555555555555";
    host.send(&json!({"type": "user", "uuid": id, "message": {"role": "user", "content": "go"}}));
    let seen = host.until(|event| event["type"] == "result");
    let named: Vec<bool> = seen
        .iter()
        .filter(|event| event["type"] == "assistant")
        .map(|event| event["user_message_uuid"] == id)
        .collect();
    assert_eq!(named, [true, false], "the first message alone");
    let pieces: Vec<&Value> = seen.iter().filter(|it| it["type"] == "stream_event").collect();
    assert!(pieces.len() > 2);
    for (number, piece) in pieces.into_iter().enumerate() {
        let says_which = piece.get("user_message_uuid").is_some_and(|it| it == id);
        assert_eq!(says_which, number == 0, "the first piece alone: {piece}");
        assert_eq!(says_which, piece["user_message_uuids"] == json!([id]), "{piece}");
    }
    let result = seen.last().unwrap();
    assert_eq!(
        (&result["user_message_uuid"], &result["queued_turn_count"]),
        (&json!(id), &json!(0))
    );
    host.finish();
}

#[test]
fn usage_is_told_kept_and_charged_as_it_was_sent() {
    let usage = json!({
        "input_tokens": 10, "cache_creation_input_tokens": 4, "cache_read_input_tokens": 0,
        "output_tokens": 5,
        "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 3},
        "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
        "output_tokens_details": {"thinking_tokens": 2},
        "service_tier": "priority", "inference_geo": "eu", "speed": "fast",
        "iterations": [{"type": "message", "input_tokens": 10}],
    });
    let answer = sse::answer_with(&[sse::text("done")], "end_turn", &usage);
    let program = Program::answering([Reply::events(answer)]);
    let ended = program.run(&[&STREAM[..], &["--include-partial-messages"]].concat());
    let result = ended.result();
    let mut expected = usage.clone();
    expected["fallback_credit"] = json!(null);
    assert_eq!(result["usage"], expected);
    let events = ended.events();
    let delta = events.iter().find(|event| event["event"]["type"] == "message_delta").unwrap();
    assert_eq!(delta["event"]["usage"], usage);
    let [path] = &program.transcripts()[..] else { panic!("one transcript") };
    let transcript = std::fs::read_to_string(path).unwrap();
    let mut lines = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(lines.find(|line| line["type"] == "assistant").unwrap()["message"]["usage"], usage);
    let by_model = result["modelUsage"].as_object().unwrap().values().next().unwrap();
    for (name, value) in [
        ("webSearchRequests", json!(2)),
        ("thinkingTokens", json!(2)),
        ("cacheCreationEphemeral5mInputTokens", json!(1)),
        ("cacheCreationEphemeral1hInputTokens", json!(3)),
        ("canonicalModel", json!("claude-opus-5-5")),
        ("provider", json!("firstParty")),
        ("costBasis", json!("list")),
    ] {
        assert_eq!(by_model[name], value, "{name}");
    }
    let tokens = (10.0 * 5.0 + 5.0 * 25.0 + 6.25 + 3.0 * 10.0) / 1e6;
    let cost = result["total_cost_usd"].as_f64().unwrap();
    assert!((cost - tokens - 0.02).abs() < 1e-9, "{cost}");
}
