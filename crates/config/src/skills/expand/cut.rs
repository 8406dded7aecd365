//! Finding the commands in a body. Looks at the author's text only, before any value is put in.
//!
//! A command is `` !`command` `` at the beginning of a line or after a blank, on one line and not empty, or
//! a fenced block whose first line begins with ```` ```! ````; what else that line says is not run. A
//! block that is never closed is text. Where an ordinary code block shows `` !`command` ``, it is an
//! example and not run; the documentation of the format says nothing about this case.

use super::CommandForm;

/// A piece of a body, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::skills) enum BodyPart<'b> {
    /// Never empty.
    Text(&'b str),
    Command(CommandPart<'b>),
}

/// A command, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::skills) struct CommandPart<'b> {
    /// The command without the marks around it.
    pub(in crate::skills) text: &'b str,
    /// The line of the mark before it.
    pub(in crate::skills) line: usize,
    /// The line on which its text begins.
    pub(in crate::skills) text_line: usize,
    pub(in crate::skills) form: CommandForm,
}

/// Cuts a body into texts and commands. Lines are counted from the first line that is given.
pub(in crate::skills) fn cut(body: &str, first_line: usize) -> Vec<BodyPart<'_>> {
    let mut cutter = Cutter { body, parts: Vec::new(), text_start: 0 };
    let mut open: Option<OpenFence> = None;
    let mut start = 0;
    for (number, line) in (first_line..).zip(body.split_inclusive('\n')) {
        let end = start + line.len();
        match open.take() {
            Some(fence) if fence.is_closed_by(line) => {
                if fence.has_commands {
                    cutter.push_block(&fence, start, start + line.trim_end_matches('\n').len());
                }
            }
            Some(fence) => open = Some(fence),
            None => match OpenFence::opened_by(line, start, number) {
                Some(fence) => open = Some(fence),
                None => cutter.push_inline(line, start, number),
            },
        }
        start = end;
    }
    cutter.push_text(body.len());
    cutter.parts
}

struct Cutter<'b> {
    body: &'b str,
    parts: Vec<BodyPart<'b>>,
    /// Start of the text that is in no part yet.
    text_start: usize,
}

impl Cutter<'_> {
    fn push_text(&mut self, end: usize) {
        let text = self.body.get(self.text_start..end).unwrap_or_default();
        if !text.is_empty() {
            self.parts.push(BodyPart::Text(text));
        }
    }

    /// The commands in one line.
    fn push_inline(&mut self, line: &str, start: usize, number: usize) {
        let mut from = 0;
        while let Some((at, length)) = find_inline(line, from) {
            let command = start + at + 2;
            self.push_text(start + at);
            self.parts.push(BodyPart::Command(CommandPart {
                text: self.body.get(command..command + length).unwrap_or_default(),
                line: number,
                text_line: number,
                form: CommandForm::Inline,
            }));
            from = at + 2 + length + 1;
            self.text_start = start + from;
        }
    }

    /// The commands of a block whose closing line has this start and end.
    fn push_block(&mut self, fence: &OpenFence, closing: usize, end: usize) {
        let text = self.body.get(fence.content..closing).unwrap_or_default();
        if text.trim().is_empty() {
            return;
        }
        self.push_text(fence.start);
        self.parts.push(BodyPart::Command(CommandPart {
            text: text.strip_suffix('\n').unwrap_or(text),
            line: fence.line,
            text_line: fence.line + 1,
            form: CommandForm::Block,
        }));
        self.text_start = end;
    }
}

/// The next command in a line: where its exclamation mark is, and how long the command is.
fn find_inline(line: &str, from: usize) -> Option<(usize, usize)> {
    let mut from = from;
    loop {
        let at = from + line.get(from..)?.find("!`")?;
        let command = line.get(at + 2..)?;
        // Without a closing backtick no later mark has one either.
        let length = command.find('`')?;
        let before = line.get(..at)?.chars().next_back();
        let is_blank = command.get(..length)?.trim().is_empty();
        if before.is_none_or(char::is_whitespace) && !is_blank {
            return Some((at, length));
        }
        from = at + 2;
    }
}

/// An open fenced block.
struct OpenFence {
    /// A backtick or a tilde.
    mark: char,
    length: usize,
    has_commands: bool,
    /// Starts of the opening line and of the line after it.
    start: usize,
    content: usize,
    line: usize,
}

impl OpenFence {
    fn opened_by(line: &str, start: usize, number: usize) -> Option<Self> {
        let (mark, length, info) = fence_of(line)?;
        // A line that looks like a fence and continues with backticks is code within a line.
        if mark == '`' && info.contains('`') {
            return None;
        }
        Some(Self {
            mark,
            length,
            has_commands: mark == '`' && length == 3 && info.starts_with('!'),
            start,
            content: start + line.len(),
            line: number,
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        fence_of(line).is_some_and(|(mark, length, info)| {
            mark == self.mark && length >= self.length && info.trim().is_empty()
        })
    }
}

/// The mark of a line that opens or closes a block, how often it stands there, and what follows.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = line.trim_start_matches(mark);
    let length = line.len() - info.len();
    (length >= 3).then_some((mark, length, info))
}
