//! Answers that come after their questions: the call has ended, so that they let nothing run. The main agent
//! is told with its next turn, because a person who says yes expects something to happen.

use std::collections::VecDeque;

use centurion_protocol::ToolUseId;
use parking_lot::Mutex;
use serde_json::Value;

/// The most withdrawn questions that are remembered.
const MOST: usize = 256;

/// Permission questions that were withdrawn before they were answered, oldest first.
#[derive(Default)]
pub(super) struct Withdrawn(Mutex<VecDeque<(String, Subject)>>);

/// The subject of a permission question.
pub(super) struct Subject {
    /// In words.
    text: String,
    call: String,
}

impl Withdrawn {
    pub(super) fn remember(&self, id: &str, subject: Subject) {
        let mut questions = self.0.lock();
        if questions.len() == MOST {
            questions.pop_front();
        }
        questions.push_back((id.to_owned(), subject));
    }

    /// The question about this call was answered elsewhere: a late answer to it says nothing.
    pub(super) fn forget(&self, call: &ToolUseId) {
        self.0.lock().retain(|(_, subject)| subject.call != call.as_str());
    }

    /// The warning about an answer, if it is one to a question that was withdrawn.
    pub(super) fn telling(&self, id: &str, response: &Value) -> Option<String> {
        let subject = {
            let mut questions = self.0.lock();
            let at = questions.iter().position(|(known, _)| known == id)?;
            questions.remove(at)?.1.text
        };
        let answer = match response.pointer("/response/behavior").and_then(Value::as_str)? {
            "allow" => "allowed",
            _ => "refused",
        };
        Some(format!(
            "The user {answer} {subject} only after that call had ended. Nothing ran because of the answer: if \
             the matter still stands, call the tool again."
        ))
    }
}

/// The subject of a permission question; `None` for other requests.
pub(super) fn subject(request: &Value) -> Option<Subject> {
    if request.get("subtype").and_then(Value::as_str) != Some("can_use_tool") {
        return None;
    }
    let tool = request.get("tool_name").and_then(Value::as_str)?;
    let path = request.pointer("/agent/path").and_then(Value::as_array);
    let names: Vec<&str> = path.into_iter().flatten().filter_map(Value::as_str).collect();
    let text = match names.as_slice() {
        [] => format!("a call of {tool}"),
        names => format!("a call of {tool} by the agent {}", names.join(" > ")),
    };
    let call = request.get("tool_use_id").and_then(Value::as_str)?.to_owned();
    Some(Subject { text, call })
}
