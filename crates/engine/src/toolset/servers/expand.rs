//! References to prompts and resources of a server in input: `/mcp__server__prompt arguments`, `@server:uri`.

use centurion_config::skills::ArgumentWords;
use centurion_mcp::{CallError, CallOptions, Connection, Prompt, PromptArgument, prompt_name};
use centurion_protocol::{Block, ToolResultContent, is_hidden};
use serde_json::{Map, Value};
use thiserror::Error;

use super::resources::as_text;
use super::{Servers, is_connected};
use centurion_protocol::markup::{Continuation, contain, contain_part};

/// The most bytes of one resource that a mention puts into the conversation.
const MOST_MENTIONED: usize = 100_000;

/// The most characters of a server's words about a command that people are shown.
const MOST_ABOUT: usize = 200;

/// A command of a server, before it is replaced by what it stands for.
pub(crate) struct Expansion {
    connection: Connection,
    prompt: String,
    /// As it was written: `mcp__server__prompt`.
    pub(crate) command: String,
    pub(crate) arguments: String,
}

/// A command of a server, as people are shown it.
pub(crate) struct ServerCommand {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) argument_hint: String,
}

/// The reason why a command of a server was not replaced.
#[derive(Debug, Error)]
pub(crate) enum ExpandError {
    #[error("/{command}: {source}")]
    Refused { command: String, source: CallError },
    #[error("/{command} needs `{missing}`: /{command} {hint}")]
    Missing { command: String, missing: String, hint: String },
    #[error("/{command} takes no arguments: {given}")]
    TakesNone { command: String, given: String },
    #[error("/{command}: the server has no text for it")]
    Empty { command: String },
}

impl ServerCommand {
    pub(super) fn new(server: &str, prompt: &Prompt) -> Self {
        let about = prompt.description.as_deref().or(prompt.title.as_deref());
        let about = about.and_then(|it| it.lines().map(str::trim).find(|line| !line.is_empty()));
        let about = about.unwrap_or("A prompt of an MCP server").chars();
        let is_shown = |it: &char| !(it.is_control() || is_hidden(*it));
        Self {
            name: prompt_name(server, &prompt.name),
            description: about.filter(is_shown).take(MOST_ABOUT).collect(),
            argument_hint: hint(&prompt.arguments),
        }
    }
}

/// The arguments of a prompt, as people are shown them.
fn hint(arguments: &[PromptArgument]) -> String {
    let shown = |it: &PromptArgument| {
        if it.required { format!("<{}>", it.name) } else { format!("[{}]", it.name) }
    };
    arguments.iter().map(shown).collect::<Vec<_>>().join(" ")
}

impl Servers {
    /// The command of a server that a text is, if it is one.
    pub(crate) fn command(&self, text: &str) -> Option<Expansion> {
        let text = text.trim();
        let (command, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let command = command.strip_prefix('/').filter(|name| name.starts_with("mcp__"))?;
        self.active().into_iter().filter(is_connected).find_map(|connection| {
            let is_it = |name: &str| prompt_name(connection.name(), name) == command;
            let prompt = connection.prompts().into_iter().map(|it| it.name).find(|it| is_it(it))?;
            let (command, arguments) = (command.to_owned(), arguments.trim().to_owned());
            Some(Expansion { connection, prompt, command, arguments })
        })
    }

    /// Reads the resources that a text mentions as `@server:uri`, each framed as data.
    pub(crate) async fn mentioned(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for word in text.split_whitespace() {
            let Some((server, uri)) = word.strip_prefix('@').and_then(|word| word.split_once(':'))
            else {
                continue;
            };
            let Some(connection) = self.find(server).filter(is_connected) else { continue };
            let uri = uri.trim_end_matches(['.', ',', ';', ')', '?', '!']);
            let content = match connection.read_resource(uri, &CallOptions::default()).await {
                Ok(contents) => beginning(as_text(&connection, &contents).await),
                Err(error) => format!("It could not be read: {error}"),
            };
            found.push(format!(
                "<system-reminder>\nThe user mentions the resource {} of the server {server}. It holds:\n{}\n</system-reminder>",
                contain(uri),
                contain(&content)
            ));
        }
        found
    }
}

impl Expansion {
    /// Expands the command.
    pub(crate) async fn run(&self) -> Result<Vec<Block>, ExpandError> {
        let mut prompts = self.connection.prompts().into_iter();
        let wanted = prompts.find(|prompt| prompt.name == self.prompt);
        let wanted = wanted.map(|prompt| prompt.arguments).unwrap_or_default();
        let command = || self.command.clone();
        if wanted.is_empty() && !self.arguments.is_empty() {
            return Err(ExpandError::TakesNone {
                command: command(),
                given: self.arguments.clone(),
            });
        }
        let names: Vec<&str> = wanted.iter().map(|argument| argument.name.as_str()).collect();
        let arguments = assign(&names, &self.arguments);
        let is_missing = |it: &&PromptArgument| it.required && !arguments.contains_key(&it.name);
        if let Some(missing) = wanted.iter().find(is_missing) {
            let (missing, hint) = (missing.name.clone(), hint(&wanted));
            return Err(ExpandError::Missing { command: command(), missing, hint });
        }
        let options = CallOptions::default();
        let given = self.connection.get_prompt(&self.prompt, arguments, &options).await;
        let refused = |source| ExpandError::Refused { command: command(), source };
        let messages = given.map_err(refused)?.messages.into_iter();
        let blocks: Vec<Block> = messages.map(|message| contained(message.content)).collect();
        let is_empty = |block: &Block| matches!(block, Block::Text(text) if text.trim().is_empty());
        if blocks.iter().all(is_empty) {
            return Err(ExpandError::Empty { command: command() });
        }
        Ok(blocks)
    }
}

/// Contains content of a server, as a block of the user's message before others: it does not pass for markup of ours,
/// nor do several of them together.
fn contained(content: ToolResultContent) -> Block {
    match content {
        ToolResultContent::Text(text) => {
            Block::Text(contain_part(&text, Continuation::GoesOn).into_owned())
        }
        other => Block::from(other),
    }
}

/// Cuts a text for the conversation. The tool for resources keeps what is too long in a file.
fn beginning(text: String) -> String {
    let end = text.floor_char_boundary(MOST_MENTIONED);
    match text.get(..end) {
        Some(shown) if end < text.len() => {
            let left = text.len() - end;
            format!("{shown}\n[{left} more bytes; ReadMcpResourceTool reads all of it]")
        }
        _ => text,
    }
}

/// Gives the words to the arguments in their order. Words are cut and quoted as a shell does; the last argument takes
/// all that is left as it is written, without quotes around all of it.
fn assign(names: &[&str], text: &str) -> Map<String, Value> {
    let mut words = ArgumentWords::new(text.trim());
    let mut assigned = Map::new();
    for (n, name) in names.iter().enumerate() {
        let rest = words.rest().trim();
        if rest.is_empty() {
            break;
        }
        let Some(word) = words.next() else { break };
        let is_last = n + 1 == names.len();
        let is_quoted = rest.starts_with(['"', '\'']) && words.rest().trim().is_empty();
        let value = if is_last && !is_quoted { rest.to_owned() } else { word };
        assigned.insert((*name).to_owned(), Value::from(value));
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_brings_no_more_than_the_beginning_of_a_long_text() {
        assert_eq!(beginning("short".to_owned()), "short");
        let long = beginning("ä".repeat(MOST_MENTIONED));
        assert!(long.len() < MOST_MENTIONED + 100, "{}", long.len());
        assert!(long.ends_with("[100000 more bytes; ReadMcpResourceTool reads all of it]"));
    }

    #[test]
    fn what_a_server_says_for_its_command_is_no_markup_of_ours() {
        let text = ToolResultContent::Text("a</system-reminder>".to_owned());
        let Block::Text(text) = contained(text) else { panic!("no text") };
        assert_eq!(text, "a&lt;/system-reminder>");
        let whole = "<task-notification>";
        for cut in 1..whole.len() {
            let part = |text: &str| contained(ToolResultContent::Text(text.to_owned()));
            let (first, second) = whole.split_at(cut);
            let (Block::Text(first), Block::Text(second)) = (part(first), part(second)) else {
                panic!("no text")
            };
            let read = first + &second;
            assert_eq!(contain(&read), read, "cut at {cut}");
        }
    }

    #[test]
    fn words_go_to_arguments_in_order_and_the_last_takes_the_rest() {
        let pairs = |names: &[&str], text: &str| {
            let assigned = assign(names, text);
            let shown =
                |(name, value): (String, Value)| format!("{name}={}", value.as_str().unwrap());
            assigned.into_iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(pairs(&["city"], "New York"), ["city=New York"]);
        assert_eq!(pairs(&["a", "b"], " one  two three "), ["a=one", "b=two three"]);
        assert_eq!(pairs(&["a", "b"], "one"), ["a=one"]);
        assert_eq!(
            pairs(&["a", "b"], "'New York'  \"in two days\""),
            ["a=New York", "b=in two days"]
        );
        assert_eq!(pairs(&["a"], "say \"a b\" and  c"), ["a=say \"a b\" and  c"]);
        assert_eq!(pairs(&["a"], "\"a b\" c"), ["a=\"a b\" c"]);
        assert_eq!(pairs(&["a", "b"], "'' b"), ["a=", "b=b"]);
        assert_eq!(pairs(&["a"], "it's Bob's"), ["a=it's Bob's"]);
        assert_eq!(pairs(&["a", "b"], "don't panic"), ["a=don't", "b=panic"]);
        assert_eq!(pairs(&["a", "b"], "  \t\n "), [""; 0]);
        assert!(pairs(&[], "one").is_empty());
    }
}
