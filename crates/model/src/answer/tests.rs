//! Answers from streams: whole, cut off, malformed.

use centurion_protocol::Usage;
use serde_json::json;

use super::*;
use crate::testing::{blocks, raw};

fn start() -> StreamEvent {
    StreamEvent::Start {
        id: "m".into(),
        model: "x".into(),
        usage: Usage { input_tokens: 5, ..Usage::default() }.into(),
        request_id: Some("req_1".into()),
    }
}

fn finish(stop_reason: StopReason) -> StreamEvent {
    StreamEvent::Finish {
        stop_reason,
        usage: Usage { output_tokens: 9, ..Usage::default() }.into(),
    }
}

fn block(index: usize, block: BlockStart, deltas: &[Delta]) -> Vec<StreamEvent> {
    let deltas = deltas.iter().map(|delta| StreamEvent::Delta { index, delta: delta.clone() });
    [StreamEvent::BlockStart { index, block }]
        .into_iter()
        .chain(deltas)
        .chain([StreamEvent::BlockStop { index }])
        .collect()
}

fn call(index: usize, input: &str) -> Vec<StreamEvent> {
    let start =
        BlockStart::ToolUse { id: ToolUseId::new(format!("t{index}")), name: "Read".into() };
    block(index, start, &[Delta::InputJson(input.into())])
}

fn text(index: usize, text: &str) -> Vec<StreamEvent> {
    block(index, BlockStart::Text, &[Delta::Text(text.into())])
}

fn answer(parts: &[Vec<StreamEvent>], stop_reason: StopReason) -> Answer {
    let mut builder = AnswerBuilder::default();
    builder.push(&start());
    for event in parts.concat() {
        builder.push(&event);
    }
    builder.push(&finish(stop_reason));
    builder.finish().unwrap()
}

#[test]
fn an_input_keeps_its_bytes() {
    let input = r#"{"n":1e2, "big":12345678901234567890123,"s":"\/"}"#;
    let answer = answer(&[call(0, input)], StopReason::ToolUse);
    assert_eq!(answer.calls().next().unwrap().input.get(), input);
    assert_eq!(answer.request_id.as_deref(), Some("req_1"));
    assert_eq!(answer.usage.counts.output_tokens, 9);
}

#[test]
fn no_input_is_an_empty_one() {
    let answer = answer(&[call(0, ""), call(1, " ")], StopReason::ToolUse);
    assert!(answer.calls().all(|call| call.input.get() == "{}"));
    assert!(answer.malformed_calls.is_empty());
}

#[test]
fn an_input_that_is_no_object_is_told() {
    let inputs = [r#"{"a":"#, "[1]", "null", r#"{"a":1} {"b":2}"#, "nonsense"];
    let parts: Vec<_> = inputs.iter().enumerate().map(|(n, input)| call(n, input)).collect();
    let answer = answer(&parts, StopReason::ToolUse);
    assert!(answer.calls().all(|call| call.input.get() == "{}"));
    let told: Vec<&str> = answer.malformed_calls.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(told, ["t0", "t1", "t2", "t3", "t4"]);
    assert!(answer.malformed_calls[4].1.contains("no JSON object"), "{:?}", answer.malformed_calls);
    assert!(answer.malformed_calls[4].1.ends_with(": nonsense"));
}

#[test]
fn calls_with_one_id_or_none_are_told_apart() {
    let named = |index: usize, id: &str| {
        let start = BlockStart::ToolUse { id: ToolUseId::new(id), name: "Read".into() };
        block(index, start, &[Delta::InputJson(if index == 4 { "nonsense" } else { "{}" }.into())])
    };
    let ids = ["t", "t", "t-2", "", "t", ""];
    let parts: Vec<_> = ids.iter().enumerate().map(|(n, id)| named(n, id)).collect();
    let answer = answer(&parts, StopReason::ToolUse);
    let found: Vec<&str> = answer.calls().map(|call| call.id.as_str()).collect();
    assert_eq!(found, ["t", "t-2", "t-2-2", "-2", "t-3", "-3"]);
    let told: Vec<&str> = answer.malformed_calls.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(told, ["t-3"], "what is wrong with a call is said of that call");
}

#[test]
fn a_call_that_was_cut_off_is_dropped_and_a_whole_one_stays() {
    let whole = call(1, r#"{"a":1}"#);
    for cut in [r#"{"a":"#, ""] {
        let parts = [text(0, "so"), whole.clone(), call(2, cut)];
        let answer = answer(&parts, StopReason::MaxTokens);
        assert_eq!(answer.calls().count(), 1);
        assert!(answer.malformed_calls.is_empty());
    }
    let mut open = whole.clone();
    open.pop();
    assert_eq!(answer(&[open], StopReason::MaxTokens).blocks.len(), 0);
    assert_eq!(answer(&[whole], StopReason::MaxTokens).calls().count(), 1);
}

#[test]
fn empty_blocks_are_dropped() {
    let signature = Delta::Signature("s".into());
    let parts = [
        text(0, ""),
        block(1, BlockStart::Thinking, &[]),
        block(2, BlockStart::Thinking, &[signature]),
        text(3, "yes"),
    ];
    let answer = answer(&parts, StopReason::EndTurn);
    let thinking = json!({ "type": "thinking", "thinking": "", "signature": "s" });
    assert_eq!(blocks(&answer), json!([thinking, { "type": "text", "text": "yes" }]));
    assert_eq!(answer.text(), "yes");
}

#[test]
fn text_is_there_before_the_end() {
    let mut builder = AnswerBuilder::default();
    builder.push(&start());
    builder.push(&StreamEvent::BlockStart { index: 0, block: BlockStart::Text });
    builder.push(&StreamEvent::Delta { index: 0, delta: Delta::Text("half ".into()) });
    builder.push(&StreamEvent::Delta { index: 0, delta: Delta::Text("a".into()) });
    builder.push(&StreamEvent::Ping);
    assert_eq!(builder.clone().cut_off().rest, "half a");
    assert_eq!(builder.usage().counts.input_tokens, 5);
    assert_eq!(builder.finish().unwrap_err().kind, crate::ErrorKind::Malformed);
}

#[test]
fn an_input_finds_its_place_in_an_unknown_block() {
    for (block, expected) in [
        (r#"{"type":"x","input":{},"n":1e2}"#, r#"{"type":"x","input":{"q":1},"n":1e2}"#),
        (r#"{"type":"x"}"#, r#"{"type":"x","input":{"q":1}}"#),
    ] {
        assert_eq!(with_input(raw(block), r#"{"q":1}"#).get(), expected);
        assert_eq!(with_input(raw(block), "").get(), block);
        assert_eq!(with_input(raw(block), "{\"cut").get(), block);
    }
}

#[test]
fn an_input_that_makes_an_unknown_block_too_deep_fails_the_answer() {
    let built = |depth: usize| {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let other = BlockStart::Other(raw(r#"{"type":"server_tool_use","input":{}}"#));
        let mut builder = AnswerBuilder::default();
        builder.push(&start());
        for event in block(0, other, &[Delta::InputJson(nested)]) {
            builder.push(&event);
        }
        builder.push(&finish(StopReason::EndTurn));
        builder.finish()
    };
    assert_eq!(built(limits::MOST_DEPTH - 1).unwrap().blocks.len(), 1);
    assert_eq!(built(limits::MOST_DEPTH).unwrap_err().kind, crate::ErrorKind::TooLarge);
}

#[test]
fn blocks_are_there_when_they_end_and_stay_as_they_were() {
    let mut builder = AnswerBuilder::default();
    builder.push(&start());
    for event in [
        StreamEvent::BlockStart { index: 0, block: BlockStart::Text },
        StreamEvent::Delta { index: 0, delta: Delta::Text("said".into()) },
    ] {
        builder.push(&event);
    }
    assert!(builder.take_ended().is_empty(), "it may go on");
    builder.push(&StreamEvent::BlockStop { index: 0 });
    assert!(matches!(builder.take_ended(), [Block::Text(text)] if text == "said"));
    assert!(builder.take_ended().is_empty(), "once");
    for event in call(1, "") {
        builder.push(&event);
    }
    assert!(builder.take_ended().is_empty(), "a call without input may be dropped at the end");
    builder.push(&StreamEvent::BlockStart { index: 2, block: BlockStart::Text });
    builder.push(&StreamEvent::Delta { index: 2, delta: Delta::Text("more".into()) });
    let cut = builder.clone().cut_off();
    assert_eq!((cut.ended.len(), cut.rest.as_str()), (1, "more"));
    builder.push(&finish(StopReason::ToolUse));
    let answer = builder.finish().unwrap();
    assert_eq!(answer.blocks.len(), 3);
    assert_eq!((answer.text().as_str(), answer.calls().count()), ("saidmore", 1));
}
