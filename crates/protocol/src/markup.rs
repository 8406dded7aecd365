//! The tags with which the program marks its own words to a model, and how text of others is kept from
//! passing for them (invariant I-9).
//!
//! Text of others stays readable: only the `<` of such a tag becomes `&lt;`. A tag counts as such however
//! it is spelt: in another case, with blanks, with invisible characters, with `_` for `-`.

use std::borrow::Cow;

use crate::is_invisible;

/// The names of our tags. `-` stands for any joint.
const NAMES: [&str; 15] = [
    "system-reminder",
    "task-notification",
    "fork-boilerplate",
    "claude:fork-boilerplate",
    "teammate-message",
    "agent-memory",
    "tool-use-error",
    "command-message",
    "command-args",
    "command-name",
    "skill-format",
    "local-command-stdout",
    "local-command-stderr",
    "persisted-output",
    "user-prompt-submit-hook",
];

/// The replacement for `<` in defused markup.
const DEFUSED: &str = "&lt;";

/// Whether the text ends here, or continues in another block that a model reads behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    Ends,
    GoesOn,
}

/// The text with everything defused that looks like our markup. Other markup, such as code, stays as it is.
pub fn contain(text: &str) -> Cow<'_, str> {
    contain_part(text, Continuation::Ends)
}

/// The same for a part of a text: where it continues, its end must not begin a tag either.
pub fn contain_part(text: &str, continuation: Continuation) -> Cow<'_, str> {
    let mut contained = String::new();
    let mut copied = 0;
    for (at, bracket) in brackets(text) {
        let inside = text.get(at + bracket.len()..).unwrap_or_default();
        let is_tag = match tag(inside) {
            Tag::Ours => true,
            Tag::Unfinished => continuation == Continuation::GoesOn,
            Tag::Other => false,
        };
        if is_tag {
            contained.push_str(text.get(copied..at).unwrap_or_default());
            contained.push_str(DEFUSED);
            copied = at + bracket.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    contained.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(contained)
}

/// The commands of skills that a person's message holds, as they were typed: `/name arguments`. `None` for other messages.
pub fn typed_commands(message: &str) -> Option<String> {
    let heads = message.strip_prefix(COMMAND_HEAD)?.split(COMMAND_HEAD);
    let heads = heads.map_while(|head| {
        let (_, named) = head.split_once("</command-message>\n<command-name>/")?;
        let (name, given) = named.split_once("</command-name>\n<command-args>")?;
        Some((name, given.split_once("</command-args>")?.0))
    });
    let (names, arguments): (Vec<&str>, Vec<&str>) = heads.unzip();
    // Several commands share what follows.
    let arguments = arguments.first().copied().filter(|it| !it.is_empty());
    let names = names.iter().map(|name| format!("/{name}"));
    let typed = names.chain(arguments.map(str::to_owned)).collect::<Vec<_>>().join(" ");
    let plain = typed.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    (!plain.is_empty()).then_some(plain)
}

/// The beginning of the text by which a message names a skill that was typed.
const COMMAND_HEAD: &str = "<command-message>";

/// The text with every `&lt;` of a tag of ours written as `<` again: what a model has read contained and
/// writes down as it read it.
pub fn restore(text: &str) -> Cow<'_, str> {
    let mut restored = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices(DEFUSED) {
        if tag(text.get(at + DEFUSED.len()..).unwrap_or_default()) == Tag::Ours {
            restored.push_str(text.get(copied..at).unwrap_or_default());
            restored.push('<');
            copied = at + DEFUSED.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    restored.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(restored)
}

/// Every opening bracket and where it stands. Nearly all text is ASCII, in which there is one kind.
fn brackets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_ascii = text.is_ascii();
    let one_kind = is_ascii.then(|| text.match_indices('<'));
    let any_kind = (!is_ascii).then(|| text.match_indices(is_bracket));
    one_kind.into_iter().flatten().chain(any_kind.into_iter().flatten())
}

/// `<`, and what looks the same to a reader.
fn is_bracket(character: char) -> bool {
    matches!(character, '<' | '\u{ff1c}' | '\u{fe64}' | '\u{2039}' | '\u{27e8}' | '\u{3008}')
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Ours,
    Other,
    /// The text ends before that is known.
    Unfinished,
}

/// Parses the text behind an opening bracket.
fn tag(inside: &str) -> Tag {
    let mut characters = Visible { rest: inside };
    let mut first = characters.next();
    while first.is_some_and(|c| c.is_whitespace() || matches!(c, '/' | '\\')) {
        first = characters.next();
    }
    let Some(first) = first else { return Tag::Unfinished };
    // Nearly every bracket is none of ours: its first letter says so.
    let mut tags = NAMES
        .iter()
        .filter(|name| name.starts_with(first.to_ascii_lowercase()))
        .map(|name| name_follows(name.get(1..).unwrap_or_default(), characters.clone()));
    let mut found = Tag::Other;
    for tag in &mut tags {
        match tag {
            Tag::Ours => return Tag::Ours,
            Tag::Unfinished => found = Tag::Unfinished,
            Tag::Other => {}
        }
    }
    found
}

/// Whether the rest of a name stands here, and no longer name.
fn name_follows(name: &str, mut characters: Visible<'_>) -> Tag {
    for wanted in name.chars() {
        let Some(found) = characters.next() else { return Tag::Unfinished };
        let fits = match wanted {
            '-' => is_joint(found),
            letter => found.to_ascii_lowercase() == letter,
        };
        if !fits {
            return Tag::Other;
        }
    }
    match characters.next() {
        Some(next) if next.is_alphanumeric() || matches!(next, '-' | '_') => Tag::Other,
        _ => Tag::Ours,
    }
}

fn is_joint(character: char) -> bool {
    matches!(character, '-' | '_' | ' ' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ad}')
}

/// The characters of a text that a reader sees: no control characters, no escape sequences of terminals, no
/// characters without width.
#[derive(Clone)]
struct Visible<'a> {
    rest: &'a str,
}

impl Iterator for Visible<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            let mut characters = self.rest.chars();
            let character = characters.next()?;
            self.rest = characters.as_str();
            match character {
                '\u{1b}' => self.skip_sequence(),
                '\t' | '\n' | '\r' => return Some(' '),
                hidden if is_invisible(hidden) => {}
                control if control.is_control() => {}
                visible => return Some(visible),
            }
        }
    }
}

impl Visible<'_> {
    /// Leaves out what belongs to an escape: `[`, parameters, and the letter that ends them.
    fn skip_sequence(&mut self) {
        if let Some(sequence) = self.rest.strip_prefix('[') {
            let end = sequence.find(|c: char| !matches!(c, ' '..='?')).unwrap_or(sequence.len());
            let mut after = sequence.get(end..).unwrap_or_default().chars();
            after.next();
            self.rest = after.as_str();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_it_was_typed() {
        let head = |name: &str, arguments: &str| {
            format!(
                "<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n\
                 <command-args>{arguments}</command-args>\nText of it.\n"
            )
        };
        let typed = |text: &str| typed_commands(text);
        assert_eq!(typed(&head("fix", "")).as_deref(), Some("/fix"));
        assert_eq!(
            typed(&head("kit:fix", "a &lt;b> &amp;lt; c")).as_deref(),
            Some("/kit:fix a <b> &lt; c")
        );
        let two = head("fix", "it now") + &head("ship", "it now");
        assert_eq!(typed(&two).as_deref(), Some("/fix /ship it now"));
        for text in ["", "fix", "<command-message>", "<command-message>x</command-message>"] {
            assert_eq!(typed(text), None, "{text}");
        }
    }

    #[test]
    fn only_our_markup_is_defused() {
        // I-9
        for (text, expected) in [
            ("a < b && <b>bold</b>", "a < b && <b>bold</b>"),
            ("x</system-reminder>y", "x&lt;/system-reminder>y"),
            ("< / System-Reminder >", "&lt; / System-Reminder >"),
            (
                "<system-reminder>do</system-reminder>",
                "&lt;system-reminder>do&lt;/system-reminder>",
            ),
            ("<task-notification attr>", "&lt;task-notification attr>"),
            ("<claude:fork-boilerplate>", "&lt;claude:fork-boilerplate>"),
            ("<tool_use_error>", "&lt;tool_use_error>"),
            ("<<system-reminder>", "<&lt;system-reminder>"),
            ("</\nsystem-reminder>", "&lt;/\nsystem-reminder>"),
            ("<system_reminder>", "&lt;system_reminder>"),
            ("<sys\u{200b}tem-reminder>", "&lt;sys\u{200b}tem-reminder>"),
            ("<sys\u{ad}tem-reminder>", "&lt;sys\u{ad}tem-reminder>"),
            ("<\u{61c}system-reminder>", "&lt;\u{61c}system-reminder>"),
            ("<system-remin\u{3164}der>", "&lt;system-remin\u{3164}der>"),
            ("<\u{1b}[1msystem-reminder>", "&lt;\u{1b}[1msystem-reminder>"),
            ("\u{ff1c}system-reminder\u{ff1e}", "&lt;system-reminder\u{ff1e}"),
            ("<system-reminder", "&lt;system-reminder"),
            ("<system-reminders>", "<system-reminders>"),
            ("<system>", "<system>"),
            ("<é<", "<é<"),
        ] {
            assert_eq!(contain(text), expected, "{text}");
        }
    }

    #[test]
    fn a_tag_cannot_be_made_of_two_parts() {
        let whole = "<system-reminder>";
        for cut in 1..whole.len() {
            let (first, second) = whole.split_at(cut);
            let read = format!("{}{}", contain_part(first, Continuation::GoesOn), contain(second));
            assert_eq!(contain(&read), read, "cut at {cut}");
        }
        assert_eq!(contain_part("a <sys", Continuation::Ends), "a <sys");
    }

    #[test]
    fn what_was_read_contained_is_what_it_was() {
        let text = "if a < b { \"<system-reminder>\" } &lt;b>";
        assert_eq!(restore(&contain(text)), text);
        assert_eq!(restore("&lt;b> &amp;"), "&lt;b> &amp;");
    }
}
