//! The part of a transcript that a return to an earlier record would leave behind.

use std::borrow::Cow;

use centurion_protocol::RecordId;
use centurion_protocol::transcript::LineKind;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line, as far as it tells whose input it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputView<'a> {
    #[serde(rename = "type")]
    kind: LineKind,
    uuid: Option<RecordId>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(borrow, default)]
    message: Option<ContentView<'a>>,
}

#[derive(Deserialize)]
struct ContentView<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct BlockView<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

/// The reason that the records behind one cannot be left behind as one turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOneTurn {
    #[error("the prompt {0} does not follow")]
    NoSuchPrompt(RecordId),
    #[error("the message {0} belongs to no such turn")]
    OtherInput(RecordId),
    #[error("a line cannot be read")]
    Unreadable,
}

/// Whether all of `rest` is the turn of this prompt: no other input came in it. What cannot be read may be input.
pub fn check_one_turn(rest: &[u8], prompt: RecordId) -> Result<(), NotOneTurn> {
    let mut has_prompt = false;
    for line in rest.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let line: InputView<'_> =
            serde_json::from_slice(line).map_err(|_| NotOneTurn::Unreadable)?;
        if line.kind != LineKind::User || line.is_sidechain || !line.is_input() {
            continue;
        }
        match line.uuid {
            Some(id) if id == prompt => has_prompt = true,
            Some(id) => return Err(NotOneTurn::OtherInput(id)),
            None => return Err(NotOneTurn::Unreadable),
        }
    }
    if has_prompt { Ok(()) } else { Err(NotOneTurn::NoSuchPrompt(prompt)) }
}

impl InputView<'_> {
    /// Whether it is more than results of calls.
    fn is_input(&self) -> bool {
        let Some(message) = &self.message else { return true };
        match serde_json::from_str::<Vec<BlockView<'_>>>(message.content.get()) {
            Ok(blocks) => blocks.iter().any(|block| block.kind != "tool_result"),
            Err(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PROMPT: &str = "00000000-0000-4000-8000-000000000001";
    const OTHER: &str = "00000000-0000-4000-8000-000000000002";

    fn user(uuid: &str, content: &Value) -> Value {
        json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}})
    }

    fn check(lines: &[Value]) -> Result<(), NotOneTurn> {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let text = lines.join("\n");
        check_one_turn(text.as_bytes(), PROMPT.parse().unwrap())
    }

    #[test]
    fn only_what_one_prompt_led_to_is_one_turn() {
        let prompt = || user(PROMPT, &json!("go"));
        let result = || user(OTHER, &json!([{"type": "tool_result", "tool_use_id": "t"}]));
        let answer = || json!({"type": "assistant", "uuid": OTHER});
        assert_eq!(check(&[prompt(), answer(), result(), answer()]), Ok(()));
        let of_agent = json!({"type": "user", "uuid": OTHER, "isSidechain": true});
        assert_eq!(check(&[of_agent, prompt()]), Ok(()));
        let absorbed = user(OTHER, &json!([{"type": "tool_result"}, {"type": "text"}]));
        for other in [user(OTHER, &json!("more")), absorbed] {
            let expected = Err(NotOneTurn::OtherInput(OTHER.parse().unwrap()));
            assert_eq!(check(&[prompt(), answer(), other.clone()]), expected);
            assert_eq!(check(&[other, prompt()]), expected);
        }
        let missing = Err(NotOneTurn::NoSuchPrompt(PROMPT.parse().unwrap()));
        assert_eq!(check(&[answer()]), missing);
        assert_eq!(check_one_turn(b"{torn", PROMPT.parse().unwrap()), Err(NotOneTurn::Unreadable));
    }
}
