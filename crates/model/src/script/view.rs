//! A scenario's view of one request.

use std::cell::OnceCell;

use centurion_protocol::{Block, Message, Role, ToolResult, ToolResultContent};

use crate::Request;

/// A request, parsed only as far as a scenario asks.
pub(super) struct View<'a> {
    pub(super) request: &'a Request,
    messages: Vec<&'a Message>,
    history: OnceCell<String>,
    first_user: OnceCell<String>,
    last_user: OnceCell<Vec<Block>>,
}

/// A `@@name` or `@@name:arg` in a user text.
pub(super) struct Marker {
    pub(super) name: String,
    pub(super) argument: Option<String>,
    /// The number of the message that carries it.
    pub(super) message: usize,
    /// The number of assistant messages after it.
    pub(super) step: usize,
}

impl<'a> View<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self {
            request,
            messages: request.prefix.conversation.iter().collect(),
            history: OnceCell::new(),
            first_user: OnceCell::new(),
            last_user: OnceCell::new(),
        }
    }

    /// The number of assistant messages so far.
    pub(super) fn turn(&self) -> usize {
        count_assistant(&self.messages)
    }

    pub(super) fn messages(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn system(&self) -> String {
        self.request.prefix.system.sections().collect::<Vec<_>>().join("\n")
    }

    pub(super) fn offers(&self, tool: &str) -> bool {
        self.request.prefix.tools.iter().any(|spec| spec.name == tool)
    }

    pub(super) fn first_user(&self) -> &str {
        self.first_user.get_or_init(|| {
            let first = self.messages.iter().find(|message| message.role() == Role::User);
            first.map(|message| texts(&message.blocks())).unwrap_or_default()
        })
    }

    pub(super) fn last_user(&self) -> String {
        texts(self.last_user_blocks())
    }

    /// The texts of the results in the newest user message.
    pub(super) fn last_tool_results(&self) -> impl Iterator<Item = String> {
        self.last_user_blocks().iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result_text(result)),
            _ => None,
        })
    }

    fn last_user_blocks(&self) -> &[Block] {
        self.last_user.get_or_init(|| {
            let last = self.messages.iter().rev().find(|message| message.role() == Role::User);
            last.map(|message| message.blocks()).unwrap_or_default()
        })
    }

    /// User texts and tool results, oldest first.
    pub(super) fn history(&self) -> &str {
        self.history.get_or_init(|| {
            let user = self.messages.iter().filter(|message| message.role() == Role::User);
            user.flat_map(|message| message.blocks())
                .filter_map(|block| match block {
                    Block::Text(text) => Some(text),
                    Block::ToolResult(result) => Some(result_text(&result)),
                    _ => None,
                })
                .collect::<Vec<_>>()
                .join("\n")
        })
    }

    /// The newest marker whose name is wanted.
    pub(super) fn marker(&self, wanted: impl Fn(&str) -> bool) -> Option<Marker> {
        for (number, message) in self.messages.iter().enumerate().rev() {
            // Most messages contain no marker and need no parsing.
            if message.role() != Role::User || !message.wire().windows(2).any(|pair| pair == b"@@")
            {
                continue;
            }
            for block in message.blocks().iter().rev() {
                let Block::Text(text) = block else { continue };
                if let Some((name, argument)) = last_marker(text, &wanted) {
                    let step = count_assistant(self.messages.get(number..).unwrap_or_default());
                    let argument = argument.map(str::to_owned);
                    return Some(Marker { name: name.to_owned(), argument, message: number, step });
                }
            }
        }
        None
    }
}

fn count_assistant(messages: &[&Message]) -> usize {
    messages.iter().filter(|message| message.role() == Role::Assistant).count()
}

fn texts(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

fn result_text(result: &ToolResult) -> String {
    let texts: Vec<&str> = result
        .content
        .iter()
        .filter_map(|part| match part {
            ToolResultContent::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// Whether a script's name in a marker may contain this character.
pub(super) fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

fn last_marker<'t>(
    text: &'t str,
    wanted: &impl Fn(&str) -> bool,
) -> Option<(&'t str, Option<&'t str>)> {
    text.rmatch_indices("@@").find_map(|(at, _)| {
        let rest = text.get(at + 2..)?;
        let end = rest.find(|c| !is_name_character(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let argument = rest.strip_prefix(':').map(|rest| {
            let ends = |c: char| c.is_whitespace() || matches!(c, '<' | '"' | '\'' | '\\');
            rest.split(ends).next().unwrap_or_default()
        });
        wanted(name).then_some((name, argument.filter(|argument| !argument.is_empty())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_known_marker_of_a_text_wins() {
        let known = |name: &str| name == "one" || name == "two";
        assert_eq!(last_marker("@@one then @@two:x/y z", &known), Some(("two", Some("x/y"))));
        assert_eq!(last_marker("@@one: and @@three", &known), Some(("one", None)));
        assert_eq!(last_marker("<b>@@two:a</b>", &known), Some(("two", Some("a"))));
        assert_eq!(last_marker("@@@one", &known), Some(("one", None)));
        assert_eq!(last_marker("mail@one @@", &known), None);
    }
}
