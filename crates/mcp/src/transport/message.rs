//! Parses one message of a server: a message that cannot be accepted fails the call that it answers, at once.
//!
//! A message that is too large, nested too deep or invalid would otherwise be dropped, and its call would wait for
//! ever.

use centurion_protocol::{JsonScanner, JsonShape};
use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::service::RxJsonRpcMessage;

pub(crate) type Incoming = RxJsonRpcMessage<RoleClient>;

/// The largest message that is accepted.
pub(crate) const MOST_MESSAGE: usize = 16 * 1024 * 1024;

/// The most values in a message: each takes far more memory than text.
const MOST_VALUES: usize = 500_000;

/// Fewer bytes than this cannot contain too many values.
const SMALL: usize = MOST_VALUES;

/// Parses a message. `None` is nothing that concerns us: a line of a log, or a message without a recipient.
pub(crate) fn parse(bytes: &[u8]) -> Option<Incoming> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    if bytes.is_empty() {
        return None;
    }
    let problem = if bytes.len() > SMALL && JsonShape::of(bytes).values > MOST_VALUES {
        format!("it has more than {MOST_VALUES} values")
    } else {
        match serde_json::from_slice(bytes) {
            Ok(message) => return Some(message),
            Err(error) => error.to_string(),
        }
    };
    let mut outline = Outline::default();
    outline.push(bytes);
    tracing::debug!(problem, "an MCP server sent what cannot be taken");
    outline.refusal(&problem)
}

/// An error in place of an answer that cannot be accepted.
pub(crate) fn refusal(id: RequestId, problem: &str) -> Incoming {
    let problem: String = problem.chars().take(500).collect();
    let text = format!("the server's answer cannot be read: {problem}");
    Incoming::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, text, None), Some(id))
}

/// Finds the call that a message answers without parsing it: examines only the members of its outermost object, at any
/// position.
#[derive(Default)]
pub(crate) struct Outline {
    scanner: JsonScanner,
    /// The parser is in a member's name, or in the value of one that matters.
    place: MessageField,
    name: Vec<u8>,
    id: Vec<u8>,
    has_method: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum MessageField {
    #[default]
    Name,
    Id,
    Other,
}

/// The most bytes of a name or an id that are kept.
const MOST_KEPT: usize = 256;

impl Outline {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.push_byte(*byte);
        }
    }

    fn push_byte(&mut self, byte: u8) {
        let was_member = self.scanner.depth() == 1;
        let is_outside = was_member && !self.scanner.is_in_text();
        self.scanner.push(byte);
        match byte {
            b':' if is_outside => {
                self.place = match self.name.trim_ascii() {
                    b"\"id\"" => MessageField::Id,
                    b"\"method\"" => {
                        self.has_method = true;
                        MessageField::Other
                    }
                    _ => MessageField::Other,
                };
            }
            b',' | b'}' if is_outside => {
                self.place = MessageField::Name;
                self.name.clear();
            }
            _ if was_member && self.scanner.depth() == 1 => match self.place {
                MessageField::Name if self.name.len() < MOST_KEPT => self.name.push(byte),
                MessageField::Id if self.id.len() < MOST_KEPT => self.id.push(byte),
                _ => {}
            },
            _ => {}
        }
    }

    /// The error for the call that the message answers, if it answers one.
    pub(crate) fn refusal(&self, problem: &str) -> Option<Incoming> {
        if self.has_method {
            return None;
        }
        let id = serde_json::from_slice(&self.id).ok()?;
        Some(refusal(id, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn refused(bytes: &[u8]) -> Option<Value> {
        let message = serde_json::to_value(parse(bytes)?).unwrap();
        message.get("error").map(|_| message["id"].clone())
    }

    #[test]
    fn an_answer_that_cannot_be_taken_is_an_error_for_its_call() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let wide = format!("[{}1]", "[],".repeat(MOST_VALUES));
        for bad in [deep.as_str(), &wide] {
            for message in [
                format!(r#"{{"jsonrpc":"2.0","id":7,"result":{bad}}}"#),
                format!(r#"{{"result":{{"content":{bad}}},"jsonrpc":"2.0","id" : 7 }}"#),
                format!("\u{feff} {{\"result\":{bad},\n\"id\":7,\"jsonrpc\":\"2.0\"}}\r"),
            ] {
                assert_eq!(refused(message.as_bytes()), Some(json!(7)));
            }
            let named = format!(r#"{{"jsonrpc":"2.0","id":"a\"b","result":{bad}}}"#);
            assert_eq!(refused(named.as_bytes()), Some(json!("a\"b")));
            let asked = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":{bad}}}"#);
            assert_eq!(refused(asked.as_bytes()), None, "what a server asks is no answer");
        }
        assert_eq!(refused(br#"{"id":7,"result":{}}"#), Some(json!(7)), "not our protocol");
        assert_eq!(refused(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\xff}"), Some(json!(7)));
        for nothing in ["", "   ", "Listening on port 3", "{", "[1,2]", r#"{"a":{"id":7}}"#] {
            assert_eq!(refused(nothing.as_bytes()), None, "{nothing}");
        }
    }

    proptest! {
        /// In any context, the id of an answer is found where a JSON parser finds it.
        #[test]
        fn the_id_is_found_wherever_it_stands(
            before in proptest::collection::vec(("[a-z\"\\\\{}:,]{0,8}", ".{0,20}"), 0..4),
            after in proptest::collection::vec(("[a-z\"\\\\{}:,]{0,8}", ".{0,20}"), 0..4),
            id in 0_u32..1000,
            cut in 1_usize..9,
        ) {
            let mut object = serde_json::Map::new();
            let usual = |name: &str| name != "id" && name != "method";
            for (name, text) in before.into_iter().filter(|(name, _)| usual(name)) {
                object.insert(name, json!({"id": text, "x": [text, {"id": 5}]}));
            }
            object.insert("id".into(), json!(id));
            for (name, text) in after.into_iter().filter(|(name, _)| usual(name)) {
                object.insert(name, json!([text]));
            }
            let text = Value::Object(object).to_string();
            let mut outline = Outline::default();
            for piece in text.as_bytes().chunks(cut) {
                outline.push(piece);
            }
            let message = serde_json::to_value(outline.refusal("no").unwrap()).unwrap();
            prop_assert_eq!(&message["id"], &json!(id));
        }
    }
}
