//! The body of a skill or command for one invocation: its arguments put in, its commands told apart.
//!
//! Runs nothing and reads no files. The author's body is cut into texts and commands first, and values are
//! put in afterwards, in one pass: nothing in a value can become a command, and a value is never looked
//! through for placeholders.
//!
//! In a command a value is data to the shell (`shell_data.rs`). What a program makes of its own
//! arguments is beyond that: `eval "$0"` and `sh -c "$0"` run what they are given, as their author asks.

mod arguments;
mod cut;
mod evaluating;
mod placeholder;
mod shell_context;
mod shell_data;
#[cfg(test)]
mod tests;
mod values;

use std::ops::Range;
use std::path::Path;

use centurion_protocol::SessionId;
use thiserror::Error;

pub use self::arguments::{ArgumentWords, split_arguments};
pub(super) use self::cut::{BodyPart, CommandPart, cut};
use self::placeholder::{Placeholder, Placeholders, Segment};
use self::values::{PlaceholderValue, Values};
use super::definition::{Shell, SkillDefinition};
use crate::Located;
use crate::agents::AgentEffort;
use crate::plugins::PluginVariables;

/// The longest text that a body may become. A body that names its arguments again and again would make any amount of it.
pub(super) const LONGEST: usize = 8 * 1024 * 1024;

/// Surroundings of one invocation of a skill.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'i> {
    /// As the user or the model wrote them, in one text.
    pub arguments: &'i str,
    pub project_dir: &'i Path,
    pub session: SessionId,
    /// Effort of the agent. Where this is `None`, `${CLAUDE_EFFORT}` stays as it is written.
    pub effort: Option<AgentEffort>,
}

/// The part of a skill that is expanded.
#[derive(Clone, Copy, Debug)]
pub struct Template<'t> {
    pub body: &'t Located<String>,
    /// The names that the skill declares for its arguments, in order.
    pub names: &'t [String],
    /// The skill's directory.
    pub directory: &'t Path,
    /// The shell that runs its commands.
    pub shell: Shell,
    /// Variables of the plugin that it belongs to.
    pub plugin: &'t PluginVariables,
}

/// The body of a skill for one invocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expanded {
    /// In the order of the body. Arguments change neither their number nor their kinds, except that
    /// arguments without a placeholder may add a text at the end.
    pub pieces: Vec<Piece>,
}

/// A part of an expanded body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(FilledText),
    Command(SkillCommand),
}

/// A text with its values in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilledText {
    pub text: String,
    /// Ranges of values in it, in order; all else is the author's.
    pub values: Vec<Range<usize>>,
}

impl FilledText {
    fn push_value(&mut self, value: &str) {
        let start = self.text.len();
        self.text.push_str(value);
        self.values.push(start..self.text.len());
    }
}

/// A command in a skill's text, with its arguments in place. Its output takes its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCommand {
    /// The text for the shell.
    pub text: String,
    /// Line of the command in the skill's file.
    pub line: usize,
    pub form: CommandForm,
}

/// Form in which an author writes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandForm {
    /// `` !`command` `` in a line.
    Inline,
    /// A fenced block that begins with ```` ```! ````.
    Block,
}

/// Reasons for which a body cannot be expanded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpandError {
    #[error("line {line}: the value of `{placeholder}` cannot be put into the command: {reason}")]
    Command { line: usize, placeholder: String, reason: QuotingError },
    #[error(
        "line {line}: nothing is left of the command `{command}`, because the arguments that it is made of were not given"
    )]
    Empty { line: usize, command: String },
    #[error(
        "with its arguments in place its text is longer than {} MiB",
        LONGEST / (1024 * 1024)
    )]
    TooLong,
}

/// Reasons for which a value cannot be written as data of the shell.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum QuotingError {
    #[error(
        "it holds characters that the shell may give a meaning here; write the placeholder in double \
         quotes, outside of other syntax and of builtins such as `read`, `unset`, `let` and `[ -v`"
    )]
    UnknownContext,
    #[error("no value is put in after `<<`, where it could end the here-document")]
    HereDocument,
    #[error("it follows a `$`, which would give it another meaning")]
    AfterDollar,
    #[error("it holds a NUL character")]
    Nul,
}

/// Expands a body for one invocation.
pub fn expand(
    template: &Template<'_>,
    invocation: &Invocation<'_>,
) -> Result<Expanded, ExpandError> {
    let mut filler = Filler {
        placeholders: Placeholders::with_names(template.names, template.plugin),
        values: Values::new(invocation, template.directory),
        shell: template.shell,
        room: LONGEST,
        has_used_arguments: false,
    };
    let mut pieces = Vec::new();
    for part in cut(template.body, template.body.line) {
        pieces.push(match part {
            BodyPart::Text(text) => Piece::Text(filler.fill_text(text)?),
            BodyPart::Command(command) => {
                let text = filler.fill_command(command.text, command.text_line)?;
                if text.trim().is_empty() {
                    let written = crate::settings::printable(command.text);
                    return Err(ExpandError::Empty { line: command.line, command: written });
                }
                Piece::Command(SkillCommand { text, line: command.line, form: command.form })
            }
        });
    }
    if !filler.has_used_arguments && !invocation.arguments.trim().is_empty() {
        append_arguments(&mut pieces, invocation.arguments);
    }
    Ok(Expanded { pieces })
}

/// The body with the session's variables put in and everything else as written, commands too.
pub(super) fn fill_variables(template: &Template<'_>, invocation: &Invocation<'_>) -> String {
    let mut filler = Filler {
        placeholders: Placeholders::variables(template.plugin),
        values: Values::new(invocation, template.directory),
        shell: Shell::Bash,
        // The variables are the program's and the user's own, and there is room for all of them.
        room: usize::MAX,
        has_used_arguments: false,
    };
    filler.fill_text(template.body).map(|filled| filled.text).unwrap_or_default()
}

/// Present value of a placeholder.
fn value_of<'v>(
    placeholders: &Placeholders<'v>,
    values: &'v Values<'_>,
    placeholder: Placeholder,
) -> PlaceholderValue<'v> {
    match placeholder {
        Placeholder::Plugin(index) => {
            let value = placeholders.of_plugin(index);
            value.map_or(PlaceholderValue::Unset, |value| PlaceholderValue::One(value.into()))
        }
        other => values.get(other),
    }
}

/// Adds arguments that the body has no place for.
fn append_arguments(pieces: &mut Vec<Piece>, arguments: &str) {
    let mut text = match pieces.pop() {
        Some(Piece::Text(text)) => text,
        last => {
            pieces.extend(last);
            FilledText::default()
        }
    };
    if !(pieces.is_empty() && text.text.is_empty()) {
        text.text.push_str("\n\n");
    }
    text.text.push_str("ARGUMENTS: ");
    text.push_value(arguments);
    pieces.push(Piece::Text(text));
}

impl SkillDefinition {
    /// The parts of the skill that are expanded when it is invoked.
    pub fn template(&self) -> Template<'_> {
        Template {
            body: &self.body,
            names: self.arguments.as_ref().map_or(&[], |names| names.value.as_slice()),
            directory: self.origin.directory(),
            shell: self.shell.as_ref().map_or(Shell::Bash, |shell| shell.value),
            plugin: &self.plugin_variables,
        }
    }
}

impl Expanded {
    /// The commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = &SkillCommand> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Command(command) => Some(command),
            Piece::Text(_) => None,
        })
    }
}

/// Puts values into texts and commands, and remembers whether arguments had a place.
struct Filler<'f> {
    placeholders: Placeholders<'f>,
    values: Values<'f>,
    shell: Shell,
    /// The bytes that the text may still have.
    room: usize,
    has_used_arguments: bool,
}

/// Takes room for a part of the text.
fn take_room(room: &mut usize, bytes: usize) -> Result<(), ExpandError> {
    *room = room.checked_sub(bytes).ok_or(ExpandError::TooLong)?;
    Ok(())
}

impl Filler<'_> {
    fn fill_text(&mut self, text: &str) -> Result<FilledText, ExpandError> {
        let mut filled = FilledText { text: String::with_capacity(text.len()), values: Vec::new() };
        for segment in self.placeholders.segments(text) {
            let before = filled.text.len();
            match segment {
                Segment::Literal(literal) => filled.text.push_str(literal),
                Segment::Placeholder { placeholder, source } => {
                    let value = value_of(&self.placeholders, &self.values, placeholder);
                    self.has_used_arguments |=
                        placeholder.is_argument() && !matches!(value, PlaceholderValue::Unset);
                    match value {
                        PlaceholderValue::Unset => filled.text.push_str(source),
                        PlaceholderValue::Missing => {}
                        PlaceholderValue::One(value) => filled.push_value(&value),
                        PlaceholderValue::All { raw, .. } => filled.push_value(raw),
                    }
                }
            }
            take_room(&mut self.room, filled.text.len() - before)?;
        }
        Ok(filled)
    }

    fn fill_command(&mut self, text: &str, line: usize) -> Result<String, ExpandError> {
        let mut command = shell_data::CommandWriter::new(self.shell);
        let mut segments = self.placeholders.segments(text).peekable();
        let mut line = line;
        while let Some(segment) = segments.next() {
            let (placeholder, source) = match segment {
                Segment::Literal(literal) => {
                    line += literal.bytes().filter(|byte| *byte == b'\n').count();
                    command.push_literal(literal);
                    continue;
                }
                Segment::Placeholder { placeholder, source } => (placeholder, source),
            };
            let value = value_of(&self.placeholders, &self.values, placeholder);
            if let PlaceholderValue::Unset = value {
                command.push_literal(source);
                continue;
            }
            self.has_used_arguments |= placeholder.is_argument();
            let next = match segments.peek() {
                Some(Segment::Literal(literal)) => literal.bytes().next(),
                // The beginning of another value does not matter: it is no blank.
                Some(Segment::Placeholder { .. }) => Some(b'$'),
                None => None,
            };
            command.push_value(&value, next).map_err(|reason| ExpandError::Command {
                line,
                placeholder: crate::settings::printable(source),
                reason,
            })?;
            if command.len() > self.room {
                return Err(ExpandError::TooLong);
            }
        }
        let text = command.finish();
        take_room(&mut self.room, text.len())?;
        Ok(text)
    }
}
