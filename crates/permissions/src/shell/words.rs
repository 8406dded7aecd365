//! The strict reading: one simple command, or nothing.

/// Longer commands are not looked at.
pub(super) const LONGEST: usize = 10_000;

/// Words that begin a construct of the shell instead of naming a program.
const KEYWORDS: [&str; 19] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "time", "coproc", "in", "[[", "]]",
];

/// The words of a command that is one program with plain arguments.
///
/// Nothing if any part could mean something else to a shell: operators, redirections, expansions,
/// patterns, escapes, comments, assignments, keywords. Quotes are read where their content is plain.
pub fn simple_command(command: &str) -> Option<Vec<String>> {
    if command.len() > LONGEST {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = command.trim_matches([' ', '\t', '\n']).chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let text = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        end if end == character => break,
                        inner if is_plain_in_quotes(inner) => text.push(inner),
                        _ => return None,
                    }
                }
            }
            plain if is_plain(plain, word.as_deref()) => {
                word.get_or_insert_default().push(plain);
            }
            _ => return None,
        }
    }
    words.extend(word);
    let program = words.first()?;
    let runs =
        !program.is_empty() && !program.contains('=') && !KEYWORDS.contains(&program.as_str());
    runs.then_some(words)
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
