//! Commands that are one program with plain arguments.

use super::command_parser::parse_program;
use super::syntax::{Item, Node, Separator, SyntaxWord, WordPart};

/// The longest plain command.
const LONGEST: usize = 10_000;

/// The words of a command that is only one program with plain arguments: no expansion, no pattern, no escape, no
/// assignment, no redirection.
pub fn simple_command(command: &str) -> Option<Vec<String>> {
    if command.len() > LONGEST {
        return None;
    }
    let program = parse_program(command.trim_end_matches('\n')).ok()?;
    let [(and_or, Separator::Sequence)] = program.list.items.as_slice() else { return None };
    let [Node::Simple(items)] = and_or.first.commands.as_slice() else { return None };
    if and_or.first.is_negated
        || and_or.first.is_timed
        || !and_or.rest.is_empty()
        || command.contains([';', '#']) && has_marks(command)
    {
        return None;
    }
    let words: Option<Vec<String>> = items
        .iter()
        .map(|item| match item {
            Item::Word(word) => plain(word),
            Item::Assignment(_) | Item::Redirect(_) => None,
        })
        .collect();
    words.filter(|words| {
        words.first().is_some_and(|program| !program.is_empty() && !program.contains('='))
    })
}

/// Whether a `;` ends the command or a comment follows it.
fn has_marks(command: &str) -> bool {
    let bare = command.split(['\'', '"']).step_by(2);
    bare.into_iter().any(|piece| piece.contains([';', '#']))
}

/// The text of a literal word.
fn plain(word: &SyntaxWord) -> Option<String> {
    let mut text = String::new();
    for part in &word.parts {
        match part {
            WordPart::Bare(bare) => {
                let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '!');
                let tilde = bare.contains('~')
                    && (text.is_empty() && bare.starts_with('~')
                        || bare.contains("=~")
                        || bare.contains(":~"));
                if bare.contains(special) || tilde || (text.is_empty() && bare.starts_with('=')) {
                    return None;
                }
                text.push_str(bare);
            }
            WordPart::Quoted(quoted) => {
                // An escape, or a text that would be an expansion outside quotes.
                if quoted.contains(['$', '`', '\\']) {
                    return None;
                }
                text.push_str(quoted);
            }
            _ => return None,
        }
    }
    (!word.written.contains(['\\', '$'])).then_some(text)
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
