//! The handling of an item beside what its origin says: what a host may ask for with a message.

use serde_json::Value;

/// The kinds of origins that a host can declare.
const KINDS: [&str; 8] = [
    "auto-continuation",
    "channel",
    "coordinator",
    "human",
    "observer",
    "peer",
    "task-notification",
    "unclassified",
];

/// The longest origin that is kept.
const LONGEST_ORIGIN: usize = 16 * 1024;

/// The handling of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct Manner {
    /// True if its words reach the model as they are: they are no command, and mention no files.
    pub is_verbatim: bool,
    /// True if it begins no turn by itself: it goes along with the next one.
    pub is_quiet: bool,
    /// True if a person did not write it.
    pub is_synthetic: bool,
    /// The number of blocks at the end that were pasted: nothing in them is a command or mentions a file.
    pub pastes: usize,
    /// True if the pastes were piped to the program beside a prompt: model and transcript get one text of both.
    pub is_piped: bool,
    /// The origin that the host declares.
    origin: Option<Value>,
}

impl Manner {
    /// A prompt whose last block was piped to the program as data.
    pub fn piped() -> Self {
        Self { pastes: 1, is_piped: true, ..Self::default() }
    }

    /// Begins no turn.
    pub(crate) fn quiet() -> Self {
        Self { is_quiet: true, ..Self::default() }
    }

    /// Stores the origin that a host declares for its message. Returns whether it is a known one. Only what people
    /// type can be a command.
    pub fn declare(&mut self, origin: &Value) -> bool {
        let kind = origin.get("kind").and_then(Value::as_str);
        let Some(kind) = kind.filter(|kind| KINDS.contains(kind)) else { return false };
        if origin.to_string().len() > LONGEST_ORIGIN {
            return false;
        }
        self.is_verbatim |= kind != "human";
        self.origin = Some(origin.clone());
        true
    }

    /// The origin that the host declared.
    pub(crate) fn declared(&self) -> Option<&Value> {
        self.origin.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_origin_is_taken_as_it_is_or_not_at_all() {
        for (origin, is_taken, is_verbatim) in [
            (json!({"kind": "human"}), true, false),
            (json!({"kind": "peer", "from": "x", "name": "X"}), true, true),
            (json!({"kind": "channel", "server": "chat"}), true, true),
            (json!({"kind": "stranger"}), false, false),
            (json!({"kind": "peer", "from": "x".repeat(LONGEST_ORIGIN)}), false, false),
            (json!("human"), false, false),
        ] {
            let mut manner = Manner::default();
            assert_eq!(manner.declare(&origin), is_taken, "{origin}");
            assert_eq!(manner.is_verbatim, is_verbatim, "{origin}");
            assert_eq!(manner.declared().is_some(), is_taken, "{origin}");
        }
    }
}
