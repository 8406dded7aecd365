//! The answer of the main agent as it streams in: finished blocks are printed, the open one is shown.

use centurion_protocol::sdk::Stream;
use serde::Deserialize;

use super::lines::marked;
use crate::frame::{Colour, Line};
use crate::model::Model;
use crate::model::talk::AnswerStream;
use crate::text::MarkdownStream;

/// A piece of an answer, as far as people are shown it.
#[derive(Deserialize)]
struct AnswerPiece<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    index: Option<u64>,
    content_block: Option<BlockHead<'a>>,
    delta: Option<Delta>,
    usage: Option<PieceUsage>,
}

#[derive(Deserialize)]
struct BlockHead<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
}

#[derive(Deserialize)]
struct PieceUsage {
    output_tokens: Option<u64>,
}

/// Takes one piece.
pub(super) fn piece(model: &mut Model, piece: &Stream) {
    let Ok(piece) = serde_json::from_str::<AnswerPiece<'_>>(piece.event.get()) else { return };
    let talk = &mut model.talk;
    match piece.kind {
        "message_start" => {
            if talk.stream.is_some() || talk.streamed > 0 {
                finish(model);
                let line =
                    marked("!", Colour::Yellow, "that answer was cut off, and is asked for again");
                model.talk.print_apart([line]);
            }
            model.talk.streamed = 0;
        }
        "content_block_start" => match piece.content_block.map(|block| block.kind) {
            Some("text") => {
                talk.is_thinking = false;
                let index = piece.index.unwrap_or_default();
                talk.stream = Some(AnswerStream { index, text: MarkdownStream::new() });
                talk.print_text(vec![Line::default()]);
            }
            kind => talk.is_thinking = kind == Some("thinking"),
        },
        "content_block_delta" => {
            let Some(text) = piece.delta.and_then(|delta| delta.text) else { return };
            let Some(stream) = talk.stream.as_mut().filter(|it| Some(it.index) == piece.index)
            else {
                return;
            };
            stream.text.feed(&text);
            let lines = stream.text.finished_blocks();
            talk.received += text.len().div_ceil(4) as u64;
            (talk.has_answered, talk.has_spoken) = (true, true);
            talk.print_text(lines);
            model.prompts.unanswered = None;
        }
        "content_block_stop"
            if talk.stream.as_ref().is_some_and(|it| Some(it.index) == piece.index) =>
        {
            finish(model);
            model.talk.streamed += 1;
        }
        "message_delta" => {
            let tokens = piece.usage.and_then(|usage| usage.output_tokens);
            talk.received = talk.received.max(tokens.unwrap_or_default());
        }
        _ => {}
    }
}

/// Prints what is left of the text that streams in.
pub(super) fn finish(model: &mut Model) {
    if let Some(mut stream) = model.talk.stream.take() {
        let lines = stream.text.finish();
        model.talk.print_text(lines);
    }
}

/// A whole text of an answer, which has been shown if it was streamed.
pub(super) fn text(model: &mut Model, text: &str, is_error: bool) {
    let is_streaming = model.talk.stream.is_some();
    finish(model);
    // The text may come before the event that ends its block.
    if is_streaming && !is_error {
        return;
    }
    if model.talk.streamed > 0 {
        model.talk.streamed -= 1;
        return;
    }
    model.talk.has_spoken = true;
    if is_error {
        let lines: Vec<Line> = text.lines().map(|line| marked("✗", Colour::Red, line)).collect();
        return model.talk.print_apart(lines);
    }
    say(model, text);
}

/// Prints a text as Markdown.
fn say(model: &mut Model, text: &str) {
    let mut stream = MarkdownStream::new();
    stream.feed(text);
    let mut lines = stream.finished_blocks();
    lines.extend(stream.finish());
    model.talk.print_text(vec![Line::default()]);
    model.talk.print_text(lines);
}
