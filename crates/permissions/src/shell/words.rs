//! The strict reading: plain commands in a row, or nothing.

use super::script::{Redirection, Word};

/// Longer commands are not looked at.
pub(super) const LONGEST: usize = 10_000;

/// Words that begin a construct of the shell instead of naming a program.
const KEYWORDS: [&str; 19] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "time", "coproc", "in", "[[", "]]",
];

/// How a command is joined to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    And,
    Or,
    Pipe,
    /// `;` or a new line.
    Sequence,
    /// `&`
    Background,
    /// Nothing follows.
    End,
}

/// One program with plain arguments, files that it opens, and what joins it to the next.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlainCommand {
    pub(super) words: Vec<Word>,
    pub(super) redirections: Vec<Redirection>,
    /// Whether it has words only: no file is opened, no descriptor moved.
    pub(super) is_bare: bool,
    /// Whether a file is its standard input.
    pub(super) fed: bool,
    pub(super) link: Link,
}

/// The commands of a line in which every word is plain and every operator joins commands or opens a
/// file.
///
/// Nothing if any part could mean something else to a shell: expansions, patterns, escapes, comments,
/// assignments, keywords, groups. Quotes are read where their content is plain. What is read here needs
/// no grammar: outside quotes, `;`, `&`, `|`, `<`, `>` and the end of a line end a word in every shell.
pub(super) fn plain_line(line: &str) -> Option<Vec<PlainCommand>> {
    if line.len() > LONGEST {
        return None;
    }
    let mut reader = Reader { rest: line.trim_matches(BLANK_OR_LINE_END) };
    let mut commands = Vec::new();
    while !reader.rest.is_empty() {
        commands.push(reader.command()?);
    }
    match commands.last()?.link {
        Link::And | Link::Or | Link::Pipe => None,
        Link::Sequence | Link::Background | Link::End => Some(commands),
    }
}

/// The words of a command that is one program with plain arguments, and nothing else.
pub fn simple_command(command: &str) -> Option<Vec<String>> {
    let line = plain_line(command)?;
    match <[PlainCommand; 1]>::try_from(line).ok()? {
        [PlainCommand { words, is_bare: true, link: Link::End, .. }] => {
            words.into_iter().map(|word| word.value).collect()
        }
        _ => None,
    }
}

/// Most words fit into this many bytes.
const USUAL_WORD: usize = 24;

const BLANK: [char; 2] = [' ', '\t'];
const BLANK_OR_LINE_END: [char; 3] = [' ', '\t', '\n'];

/// Takes a line apart from its beginning.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    /// Takes the next character if it is this one.
    fn takes(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// One command with the operator behind it.
    fn command(&mut self) -> Option<PlainCommand> {
        let (mut words, mut redirections) = (Vec::new(), Vec::new());
        let (mut is_bare, mut fed, mut link) = (true, false, Link::End);
        loop {
            self.rest = self.rest.trim_start_matches(BLANK);
            match self.peek() {
                None => break,
                Some(';' | '&' | '|' | '\n') => {
                    link = self.link()?;
                    self.rest = self.rest.trim_start_matches(BLANK_OR_LINE_END);
                    break;
                }
                Some(_) => {}
            }
            if !matches!(self.peek(), Some('<' | '>')) {
                let word = self.word()?;
                if !matches!(self.peek(), Some('<' | '>')) {
                    words.push(word);
                    continue;
                }
                // What touches the operator is a descriptor, or left to the grammar.
                is_digit(&word.written).then_some(())?;
            }
            // Files before the program, or without one, are left to the grammar.
            words.first()?;
            is_bare = false;
            fed |= self.peek() == Some('<');
            self.redirection(&mut redirections)?;
        }
        let program = words.first()?.value.as_deref()?;
        let runs = !program.is_empty() && !program.contains('=') && !KEYWORDS.contains(&program);
        runs.then_some(PlainCommand { words, redirections, is_bare, fed, link })
    }

    fn link(&mut self) -> Option<Link> {
        Some(match self.next()? {
            '&' if self.takes('&') => Link::And,
            '|' if self.takes('|') => Link::Or,
            '&' => Link::Background,
            '|' => Link::Pipe,
            _ => Link::Sequence,
        })
    }

    /// `>file`, `>>file` or `<file`; nothing is opened by `>&1`.
    fn redirection(&mut self, found: &mut Vec<Redirection>) -> Option<()> {
        let writes = self.next()? == '>';
        if writes && self.takes('&') {
            let is_descriptor = self.next()?.is_ascii_digit();
            let ends =
                self.rest.is_empty() || self.rest.starts_with([' ', '\t', '\n', ';', '|', '&']);
            return (is_descriptor && ends).then_some(());
        }
        if writes {
            self.takes('>');
        }
        self.rest = self.rest.trim_start_matches(BLANK);
        let target = self.word()?;
        let ends = !matches!(self.peek(), Some('<' | '>'));
        found.push(Redirection { writes, target });
        ends.then_some(())
    }

    /// A word of at least one character, written and meant.
    fn word(&mut self) -> Option<Word> {
        let start = self.rest;
        let mut value = String::with_capacity(USUAL_WORD);
        let mut begun = false;
        while let Some(character) = self.peek() {
            match character {
                '\'' | '"' => {
                    self.next();
                    loop {
                        match self.next()? {
                            end if end == character => break,
                            inner if is_plain_in_quotes(inner) => value.push(inner),
                            _ => return None,
                        }
                    }
                }
                plain if is_plain(plain, begun.then_some(value.as_str())) => {
                    self.next();
                    value.push(plain);
                }
                _ => break,
            }
            begun = true;
        }
        let length = start.len() - self.rest.len();
        let written = start.get(..length).filter(|written| !written.is_empty())?.to_owned();
        Some(Word { written, value: Some(value) })
    }
}

fn is_digit(written: &str) -> bool {
    matches!(written.as_bytes(), [byte] if byte.is_ascii_digit())
}

/// Whether a word outside quotes means itself, whatever stands around it.
pub(super) fn is_plain_word(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:@%+".contains(&byte);
    !word.is_empty() && word.bytes().all(plain)
}

/// Whether a character outside quotes means itself, after what its word holds so far.
fn is_plain(character: char, word: Option<&str>) -> bool {
    match character {
        '-' | '_' | '.' | '/' | ',' | ':' | '@' | '%' | '+' | '^' => true,
        // `=name` is a path in some shells.
        '=' => word.is_some_and(|word| !word.is_empty()),
        // A tilde is a home directory at the start of a word and after `=` or `:`, and nothing in
        // `HEAD~2`.
        '~' => word.is_some_and(|word| {
            word.ends_with(|before: char| before.is_ascii_alphanumeric() || before == '^')
        }),
        other => other.is_alphanumeric(),
    }
}

fn is_plain_in_quotes(character: char) -> bool {
    match character {
        '$' | '`' | '\\' => false,
        '\n' | '\t' => true,
        other => !other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_commands_are_split_into_words() {
        for (command, words) in [
            ("ls", &["ls"][..]),
            ("  ls  -la\tsrc ", &["ls", "-la", "src"]),
            ("git log --format='%h %s' HEAD~2", &["git", "log", "--format=%h %s", "HEAD~2"]),
            ("git show HEAD^^ HEAD^~1", &["git", "show", "HEAD^^", "HEAD^~1"]),
            ("grep -n \"a; b | c\" 'x > y'", &["grep", "-n", "a; b | c", "x > y"]),
            ("r'm' a", &["rm", "a"]),
            ("echo '' \"\"", &["echo", "", ""]),
            ("cat übersicht.md", &["cat", "übersicht.md"]),
            ("git commit -m 'one\ntwo'", &["git", "commit", "-m", "one\ntwo"]),
            ("echo a\n", &["echo", "a"]),
            ("dd of=x", &["dd", "of=x"]),
        ] {
            assert_eq!(simple_command(command).unwrap(), words, "{command}");
        }
    }

    #[test]
    fn anything_a_shell_may_read_otherwise_is_refused() {
        for command in [
            "",
            "   ",
            "''",
            "a; b",
            "a & b",
            "a && b",
            "a | b",
            "a || b",
            "a\nb",
            "a\rb",
            "a\u{b}b",
            "a\u{a0}b",
            "a\0b",
            "a > b",
            "a < b",
            "a <<< b",
            "a 2>&1",
            "echo $HOME",
            "echo \"$HOME\"",
            "echo '$HOME'",
            "echo `id`",
            "echo \"`id`\"",
            "echo $(id)",
            "(a)",
            "{ a; }",
            "echo {a,b}",
            "echo *",
            "echo a?",
            "echo [ab]",
            "!a",
            "a !b",
            "echo ~",
            "echo ~root",
            "--dir=~/x",
            "PATH:~/x",
            "a # b",
            "a\\ b",
            "\\ls",
            "echo \"a\\\"b\"",
            "A=1 ls",
            "A=1",
            "'A'=1",
            "a =ls",
            "if a",
            "time ls",
            "coproc ls",
            "function x",
            "[[ a",
            "echo 'open",
            "echo \"open",
        ] {
            assert_eq!(simple_command(command), None, "{command:?}");
        }
    }

    #[test]
    fn very_long_commands_are_refused() {
        assert!(simple_command(&format!("echo {}", "a".repeat(9_000))).is_some());
        assert!(simple_command(&format!("echo {}", "a".repeat(10_000))).is_none());
    }
}
