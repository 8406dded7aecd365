//! Commands of PowerShell, as far as rules need to know them.
//!
//! There is no parser for PowerShell here. Allow rules therefore accept only statements of plain words; ask and deny
//! rules look at every piece that may be a statement. Case never counts, and an alias counts as its command.

use crate::shell::{CommandPattern, is_interpreter, is_package_runner};

/// Longer commands are not examined.
const LONGEST: usize = 10_000;

/// Commands that run their arguments.
const RUNNERS: [&str; 6] =
    ["cmd", "invoke-command", "invoke-expression", "powershell", "pwsh", "start-process"];

/// Aliases of PowerShell, each before its command.
const ALIASES: [(&str, &str); 64] = [
    ("ac", "add-content"),
    ("cat", "get-content"),
    ("cd", "set-location"),
    ("chdir", "set-location"),
    ("clc", "clear-content"),
    ("clear", "clear-host"),
    ("cls", "clear-host"),
    ("copy", "copy-item"),
    ("cp", "copy-item"),
    ("cpi", "copy-item"),
    ("curl", "invoke-webrequest"),
    ("del", "remove-item"),
    ("diff", "compare-object"),
    ("dir", "get-childitem"),
    ("echo", "write-output"),
    ("erase", "remove-item"),
    ("foreach", "foreach-object"),
    ("gc", "get-content"),
    ("gci", "get-childitem"),
    ("gcm", "get-command"),
    ("gi", "get-item"),
    ("gl", "get-location"),
    ("gp", "get-itemproperty"),
    ("gps", "get-process"),
    ("group", "group-object"),
    ("gsv", "get-service"),
    ("icm", "invoke-command"),
    ("iex", "invoke-expression"),
    ("ii", "invoke-item"),
    ("irm", "invoke-restmethod"),
    ("iwr", "invoke-webrequest"),
    ("kill", "stop-process"),
    ("ls", "get-childitem"),
    ("measure", "measure-object"),
    ("mi", "move-item"),
    ("move", "move-item"),
    ("mv", "move-item"),
    ("ni", "new-item"),
    ("popd", "pop-location"),
    ("ps", "get-process"),
    ("pushd", "push-location"),
    ("pwd", "get-location"),
    ("rd", "remove-item"),
    ("ren", "rename-item"),
    ("ri", "remove-item"),
    ("rm", "remove-item"),
    ("rmdir", "remove-item"),
    ("rni", "rename-item"),
    ("saps", "start-process"),
    ("sasv", "start-service"),
    ("sc", "set-content"),
    ("select", "select-object"),
    ("set", "set-variable"),
    ("si", "set-item"),
    ("sl", "set-location"),
    ("sleep", "start-sleep"),
    ("sls", "select-string"),
    ("sort", "sort-object"),
    ("sp", "set-itemproperty"),
    ("spps", "stop-process"),
    ("start", "start-process"),
    ("tee", "tee-object"),
    ("type", "get-content"),
    ("wget", "invoke-webrequest"),
];

/// The pattern in `PowerShell(…)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatementPattern(CommandPattern);

impl StatementPattern {
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.to_lowercase();
        // A star or `:*` directly behind the name means that the name is not whole.
        let end = text.find([' ', '*', ':']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let whole = !rest.starts_with('*');
        let name = if whole { canonical(name) } else { name };
        Self(CommandPattern::parse(&format!("{name}{rest}")))
    }

    /// Whether the pattern matches a statement in the form of [`statements`] and [`possible_statements`].
    pub(crate) fn fits(&self, statement: &str) -> bool {
        self.0.fits(statement)
    }

    /// Whether it permits almost anything.
    pub(crate) fn is_broad(&self) -> bool {
        let runs =
            |name: &str| RUNNERS.contains(&name) || is_interpreter(name) || is_package_runner(name);
        !self.0.is_exact() && self.0.program().is_none_or(runs)
    }
}

/// The statements of a command in which every word is plain, in lower case with aliases resolved.
///
/// `None` if any part could be something else: variables, blocks, expressions, redirections, escapes, the call
/// operator, comments.
pub(crate) fn statements(command: &str) -> Option<Vec<String>> {
    if command.len() > LONGEST {
        return None;
    }
    let mut pieces = vec![String::new()];
    let mut quoted = false;
    let mut characters = command.trim_matches([' ', '\t', '\n']).chars().peekable();
    while let Some(character) = characters.next() {
        let piece = pieces.last_mut()?;
        match character {
            '\'' => {
                quoted = !quoted;
                piece.push(character);
            }
            inner if quoted && is_plain_in_quotes(inner) => piece.push(inner),
            _ if quoted => return None,
            ';' | '\n' => pieces.push(String::new()),
            '|' => {
                characters.next_if_eq(&'|');
                pieces.push(String::new());
            }
            '&' => {
                // A single `&` calls the next word, or runs the statement in the background.
                characters.next_if_eq(&'&')?;
                pieces.push(String::new());
            }
            plain if is_plain(plain) => piece.push(plain),
            _ => return None,
        }
    }
    if quoted {
        return None;
    }
    let statements: Vec<String> = pieces.iter().map(|piece| clean(piece)).collect();
    // A name in quotes is a text, and a name with a leading dash is an operator.
    let named =
        |statement: &String| statement.starts_with(|c: char| c.is_alphanumeric() || c == '.');
    statements.iter().all(named).then_some(statements)
}

/// Every possible statement within a command, and the whole.
pub(crate) fn possible_statements(command: &str) -> Vec<String> {
    let bare = command.replace(['`', '\'', '"'], "");
    let cuts = [';', '|', '&', '\n', '(', ')', '{', '}', '$', '=', '<', '>', '@', ','];
    let mut found: Vec<String> = std::iter::once(clean(command))
        .chain(bare.split(cuts).map(clean_program))
        .filter(|statement| !statement.is_empty())
        .collect();
    // The arguments of a runner may begin at any of its words.
    let inner: Vec<String> = found.iter().flat_map(|statement| behind_runner(statement)).collect();
    found.extend(inner);
    found
}

/// Every word of a command that may be a path, with `/` between its names.
pub(crate) fn possible_paths(command: &str) -> Vec<String> {
    let cuts = |c: char| c.is_whitespace() || ";|&(){}$=<>@,'\"".contains(c);
    let words = command.split(cuts).filter(|word| !word.is_empty());
    words.map(|word| word.replace('`', "").replace('\\', "/")).collect()
}

/// The statements that a statement with a runner may run.
fn behind_runner(statement: &str) -> Vec<String> {
    let mut words = statement.split(' ');
    let runs =
        |name: &str| RUNNERS.contains(&name) || matches!(name, "foreach-object" | "where-object");
    if !words.next().is_some_and(runs) {
        return Vec::new();
    }
    let words: Vec<&str> = words.collect();
    (0..words.len())
        .filter_map(|start| Some(clean_program(&words.get(start..)?.join(" "))))
        .collect()
}

/// In lower case, one space between words, the first of them without alias.
fn clean(statement: &str) -> String {
    let lower = statement.to_lowercase();
    let mut words: Vec<&str> = lower.split_whitespace().collect();
    if let Some(name) = words.first_mut() {
        *name = canonical(name);
    }
    words.join(" ")
}

/// As [`clean`], and the first word without the directory and the extension of a program.
fn clean_program(statement: &str) -> String {
    let statement = clean(statement);
    let (program, rest) = statement.split_at(statement.find(' ').unwrap_or(statement.len()));
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    format!("{}{rest}", canonical(name))
}

fn canonical(name: &str) -> &str {
    let known = ALIASES.binary_search_by_key(&name, |(alias, _)| alias).ok();
    known.and_then(|index| ALIASES.get(index)).map_or(name, |(_, command)| command)
}

/// Whether a character outside quotes can only be a part of a word.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || " \t-_./\\:*?+=".contains(character)
}

fn is_plain_in_quotes(character: char) -> bool {
    // Several kinds of quotes close a `'`.
    !character.is_control() && !matches!(character, '‘' | '’' | '‚' | '‛')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whatever_the_case_and_the_alias() {
        for (pattern, statement, expected) in [
            ("Get-ChildItem *", "get-childitem", true),
            ("Get-ChildItem *", "ls -Recurse src", true),
            ("ls *", "Get-ChildItem src", true),
            ("ls:*", "gci src", true),
            ("ls*", "gci src", false),
            ("git status", "GIT Status", true),
            ("git status", "git  status", true),
            ("git *", "gitk", false),
            ("rm *", "Remove-Item x", true),
            ("remove-item *", "del x", true),
            ("*", "anything at all", true),
        ] {
            let found = statements(statement).unwrap();
            assert_eq!(StatementPattern::parse(pattern).fits(&found[0]), expected, "{pattern}");
        }
    }

    #[test]
    fn plain_statements_are_cut_apart() {
        for (command, expected) in [
            ("ls", &["get-childitem"][..]),
            ("ls; git status", &["get-childitem", "git status"]),
            ("ls src\\a | Sort", &["get-childitem src\\a", "sort-object"]),
            ("a && b || c\nd", &["a", "b", "c", "d"]),
            ("echo 'a; b | c'", &["write-output 'a; b | c'"]),
        ] {
            assert_eq!(statements(command).unwrap(), expected, "{command}");
        }
    }

    #[test]
    fn what_may_be_more_than_words_is_refused() {
        for command in [
            "",
            "ls;",
            "ls $x",
            "ls (iwr x)",
            "ls > out",
            "& ls",
            "ls & rm x",
            "'ls' x",
            "ls \"$(rm x)\"",
            "l`s",
            "ls 'open",
            "ls ’x’",
            "{ ls }",
            "ls # x",
            "@(ls)",
            "ls %x",
            "-join x",
        ] {
            assert_eq!(statements(command), None, "{command:?}");
        }
    }

    #[test]
    fn a_hidden_statement_is_found() {
        let pattern = StatementPattern::parse("Remove-Item *");
        for command in [
            "rm x",
            "DEL x",
            "ls; rm x",
            "ls | rm",
            "$(rm x)",
            "& { rm x }",
            "& 'rm' x",
            "$y = rm x",
            "if ($true) { Remove-Item x }",
            "r`m x",
            "iex 'rm x'",
            "powershell -c rm x",
            "pwsh -Command \"rm x\"",
            "ls\nrm x",
            "ls && rm x",
            "C:\\Windows\\pwsh.exe -c 'rm x'",
        ] {
            let found = possible_statements(command);
            assert!(found.iter().any(|one| pattern.fits(one)), "{command:?} gave {found:?}");
        }
        assert!(!possible_statements("ls x").iter().any(|one| pattern.fits(one)));
    }

    #[test]
    fn the_aliases_are_in_order() {
        assert!(ALIASES.is_sorted_by(|(first, _), (second, _)| first < second));
    }
}
