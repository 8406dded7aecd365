//! The words of a shell command that may name a file, and which of them run.
//!
//! A file that a command only looks at is no program: `[ -f package.json ]` and `ruff check *.py` must not make
//! programs of what people edit all day. What is not understood counts as a name.

mod expand;
mod programs;
mod segments;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use self::programs::{
    ENDINGS, KEYWORDS, READERS, RUNNERS, TESTS, is_harmless, is_interpreter, name_of, only_reads,
    runs_variable, without_prefix,
};
use self::segments::segments;

/// A word that may name a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mention {
    /// Without quotes. [`UNKNOWN`] stands for what only the shell knows.
    pub(super) text: String,
    pub(super) role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// It is a directory that the command goes to, or a pattern of some.
    Directory,
    /// It may be a program as well as an argument.
    Named,
    /// It stands where a program stands.
    Command,
    /// It stands where an interpreter expects a script.
    Script,
}

/// The letter that stands for the value of a variable or of another command.
pub(super) const UNKNOWN: char = '\u{1}';

/// The deepest nesting of commands within commands that are taken apart.
const DEEPEST: usize = 8;

/// All words of a command that may name files. `is_cut` becomes true if a word may be more texts than are told.
pub(super) fn mentions(command: &str, home: Option<&Path>, is_cut: &mut bool) -> Vec<Mention> {
    let cut = Cell::new(*is_cut);
    let assigned = AssignedVariables::new();
    let reader = CommandReader {
        home,
        assigned: &assigned,
        runs_text: false,
        runs_files: false,
        is_plain: true,
        cut: &cut,
    };
    let mut mentions = Vec::new();
    reader.read(command, 0, &mut mentions);
    // A program without arguments may have spaces in its name.
    for text in reader.expand(command, false, 0, &mut Vec::new()) {
        mentions.push(Mention { text, role: Role::Named });
    }
    mentions.sort();
    mentions.dedup();
    *is_cut = cut.get();
    mentions
}

/// A program with its arguments as commands of a shell: with all words as they are, and with their `${…}` filled in.
pub(crate) fn commands_of(words: &[&str]) -> Vec<String> {
    let join = |quote: fn(&str) -> String| {
        words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
    };
    let literal = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let has_variables = words.iter().any(|word| word.contains("${"));
    let filled = has_variables.then(|| join(with_variables));
    std::iter::once(join(literal)).chain(filled).collect()
}

/// A word in which only `${…}` means something to a shell.
fn with_variables(word: &str) -> String {
    let mut text = String::from("\"");
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_live = letter == '$' && letters.peek() == Some(&'{');
        if "\\\"'`$".contains(letter) && !is_live {
            text.push('\\');
        }
        text.push(letter);
    }
    text + "\""
}

/// The words of a text, wherever a shell might see their borders.
fn raw_words(text: &str) -> impl Iterator<Item = &str> {
    let is_border = |letter: char| letter.is_whitespace() || ";|&()<>{}\"'`".contains(letter);
    text.split(is_border).filter(|word| !word.is_empty())
}

/// Whether a command carries out text that another one prints or that a variable holds.
fn runs_text(command: &str) -> bool {
    raw_words(command).any(is_interpreter)
        || command.split(['|', ';', '&', '\n']).any(|it| {
            let first = it.split_whitespace().find(|word| !KEYWORDS.contains(word));
            first.is_some_and(|word| word.trim_start_matches('"').starts_with('$'))
        })
}

/// Whether a command carries out files whose names others print.
fn runs_files(command: &str) -> bool {
    let mut words = raw_words(command).peekable();
    while let Some(word) = words.next() {
        let has_module = words.peek() == Some(&"-m");
        if is_interpreter(word) && !word.ends_with("xargs") && !has_module {
            return true;
        }
    }
    false
}

/// Whether a command gives names another meaning, or is written in a way that is not taken apart here.
fn is_odd(command: &str) -> bool {
    let mut letters = command.chars().filter(|letter| !letter.is_whitespace() && *letter != '\\');
    let mut before = ' ';
    let has_brackets = letters.any(|letter| {
        let is_pair = before == '(' && letter == ')';
        before = letter;
        is_pair
    });
    has_brackets
        || ["<<", "$'", "\\`"].iter().any(|sign| command.contains(sign))
        || raw_words(command).any(|word| matches!(word, "function" | "alias" | "enable"))
}

/// Variables that a command sets itself, with the texts that they may hold.
type AssignedVariables = BTreeMap<String, Vec<String>>;

#[derive(Clone, Copy)]
struct CommandReader<'a> {
    home: Option<&'a Path>,
    assigned: &'a AssignedVariables,
    /// Something carries out what others print.
    runs_text: bool,
    /// Something carries out files whose names others print.
    runs_files: bool,
    /// True if the command only reads files.
    is_plain: bool,
    /// Some word may be more texts than are looked at.
    cut: &'a Cell<bool>,
}

/// A simple command with what its words may be.
struct ExpandedCommand {
    variants: Vec<Vec<String>>,
    inputs: Vec<String>,
    is_piped: bool,
}

impl CommandReader<'_> {
    fn read(&self, command: &str, depth: usize, mentions: &mut Vec<Mention>) {
        if depth > DEEPEST {
            raw_words(command).for_each(|word| add(word, Role::Script, mentions));
            return;
        }
        let assigned = self.assigned_in(command);
        let reader = CommandReader { assigned: &assigned, ..*self };
        let mut found = Vec::new();
        let moves_text = reader.gather(command, 0, &mut found, mentions);
        let first = |it: &ExpandedCommand| it.variants.iter().any(|words| runs_variable(words));
        let all_harmless = || found.iter().flat_map(|it| &it.variants).all(|it| is_harmless(it));
        let reader = CommandReader {
            runs_text: self.runs_text || runs_text(command) || found.iter().any(first),
            runs_files: self.runs_files || runs_files(command),
            is_plain: self.is_plain && !is_odd(command) && (!moves_text || all_harmless()),
            ..reader
        };
        for segment in &found {
            for words in &segment.variants {
                reader.simple_command(words, segment, depth, mentions);
            }
        }
    }

    /// The variables that a command sets, beside those around it.
    fn assigned_in(&self, command: &str) -> AssignedVariables {
        let mut assigned = self.assigned.clone();
        for token in segments(command).iter().flat_map(|segment| &segment.tokens) {
            if let Some((name, value)) = token.split_once('=').filter(|_| is_assignment(token)) {
                let reader = CommandReader { assigned: &assigned, ..*self };
                let values = reader.expand(value, false, 0, &mut Vec::new());
                assigned.entry(name.trim_end_matches('+').to_owned()).or_default().extend(values);
            }
        }
        assigned
    }

    /// The simple commands of a text and of the commands within it. Says whether text goes from one that only reads into
    /// a file or another program.
    fn gather(
        &self,
        command: &str,
        depth: usize,
        found: &mut Vec<ExpandedCommand>,
        mentions: &mut Vec<Mention>,
    ) -> bool {
        if depth > DEEPEST {
            raw_words(command).for_each(|word| add(word, Role::Script, mentions));
            return true;
        }
        let segments = segments(command);
        let mut moves_text = false;
        for (at, segment) in segments.iter().enumerate() {
            let mut inner = Vec::new();
            let mut expand = |tokens: &[String]| -> Vec<Vec<String>> {
                tokens.iter().map(|token| self.expand(token, false, 0, &mut inner)).collect()
            };
            let words = expand(&segment.tokens);
            let inputs = expand(&segment.inputs).concat();
            let outputs = expand(&segment.outputs).concat();
            for command in inner {
                moves_text |= self.gather(&command, depth + 1, found, mentions);
            }
            let next = segments.get(at + 1).and_then(|it| it.tokens.first());
            let is_read = next.is_some_and(|next| READERS.contains(&next.as_str()));
            moves_text |= segment.is_piped && !is_read;
            moves_text |= outputs.iter().any(|output| is_kept(output));
            let count = words.iter().map(Vec::len).max().unwrap_or_default().max(1);
            let pick = |at: usize| {
                let pick = |texts: &Vec<String>| texts.get(at).or(texts.first()).cloned();
                words.iter().filter_map(pick).collect()
            };
            let variants = (0..count).map(pick).collect();
            found.push(ExpandedCommand { variants, inputs, is_piped: segment.is_piped });
        }
        moves_text
    }

    /// A command of which all words are known.
    fn simple_command(
        &self,
        texts: &[String],
        segment: &ExpandedCommand,
        depth: usize,
        mentions: &mut Vec<Mention>,
    ) {
        let (before, words) = without_prefix(texts);
        // A pattern means files that run where something runs files by their names.
        let listed = |word: &str| {
            if self.runs_files && is_pattern(word) { Role::Script } else { Role::Named }
        };
        // `PATH=tools:$PATH`, `D=tools`.
        for word in before {
            add(word, Role::Named, mentions);
            if let Some((_, value)) = word.split_once('=') {
                add(value, listed(value), mentions);
            }
        }
        let name = words.first().map(|program| name_of(program)).unwrap_or_default();
        let is_reader = only_reads(words) && !self.runs_text && self.is_plain;
        if words.is_empty() || !is_reader {
            let runs = words.iter().any(|word| is_interpreter(word));
            let role = if runs { Role::Script } else { Role::Named };
            segment.inputs.iter().for_each(|word| add(word, role, mentions));
        }
        let Some((program, arguments)) = words.split_first() else { return };
        if TESTS.contains(&program.as_str()) && self.is_plain {
            return;
        }
        add(program, Role::Command, mentions);
        if is_reader {
            return;
        }
        for word in arguments {
            let role = match name {
                "cd" | "pushd" if is_pattern(word) => Role::Directory,
                "for" if self.runs_text => Role::Script,
                "for" | "set" => listed(word),
                _ if segment.is_piped => listed(word),
                _ => Role::Named,
            };
            add(word, role, mentions);
            if matches!(name, "cd" | "pushd") && role != Role::Directory {
                mentions.push(Mention { text: word.clone(), role: Role::Directory });
            }
            if word.contains(char::is_whitespace) {
                self.read(word, depth + 1, mentions);
            }
        }
        if name == "find" {
            self.found_files(arguments, segment.is_piped, mentions);
        }
        for (at, word) in words.iter().enumerate().filter(|(_, word)| is_interpreter(word)) {
            script(word, words.get(at + 1..).unwrap_or_default(), mentions);
        }
    }

    /// The files that `find` has something carry out.
    fn found_files(&self, arguments: &[String], is_piped: bool, mentions: &mut Vec<Mention>) {
        let is_exec = |word: &str| matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir");
        let runs = arguments.windows(2).any(|pair| match pair {
            [option, program] if is_exec(option) => {
                let name = name_of(program);
                program.contains(UNKNOWN) || is_interpreter(program) || RUNNERS.contains(&name)
            }
            _ => false,
        });
        if !(runs || is_piped && self.runs_files) {
            return;
        }
        let is_place = |word: &&String| !word.starts_with(['-', '(', '!']);
        let places: Vec<&str> = arguments.iter().take_while(is_place).map(String::as_str).collect();
        let places = if places.is_empty() { vec!["."] } else { places };
        let names = arguments.windows(2).filter_map(|pair| match pair {
            [option, name] if option == "-name" => Some(name.as_str()),
            _ => None,
        });
        let names: Vec<&str> = names.collect();
        let names = if names.is_empty() { vec!["*"] } else { names };
        for place in places {
            for name in &names {
                let text = format!("{place}/**/{name}");
                mentions.push(Mention { text, role: Role::Script });
            }
            add(place, Role::Script, mentions);
        }
    }
}

/// The script that an interpreter runs, whose words these are.
fn script(interpreter: &str, words: &[String], mentions: &mut Vec<Mention>) {
    /// Words that a command or the name of a task follows.
    const OTHERS: [&str; 5] = ["bun", "deno", "eval", "exec", "xargs"];
    let is_option = |word: &String| word.starts_with(['-', '+']) && word != "-m";
    let at = words.iter().position(|word| !is_option(word));
    let Some(at) = at else { return };
    let (options, operands) = words.split_at(at);
    let Some((operand, rest)) = operands.split_first() else { return };
    let takes_code = |option: &String| {
        option.ends_with('c') || matches!(option.as_str(), "-e" | "-p" | "--eval" | "-Command")
    };
    if options.last().is_some_and(takes_code) || OTHERS.contains(&interpreter) {
        add(operand, Role::Command, mentions);
        return;
    }
    if operand == "-m" {
        let module = rest.first().map(|module| module.replace('.', "/")).unwrap_or_default();
        let parts =
            module.match_indices('/').map(|(at, _)| format!("{}/__init__.py", &module[..at]));
        let own = [".py", "/__main__.py", "/__init__.py"].map(|ending| format!("{module}{ending}"));
        for text in parts.chain(own) {
            mentions.push(Mention { text, role: Role::Named });
        }
        return;
    }
    add(operand, Role::Script, mentions);
    // The word behind an option may be a part of it: `bash -o errexit tools/*.sh`.
    if !options.is_empty()
        && let Some(next) = rest.iter().position(|word| !is_option(word))
    {
        let (_, rest) = rest.split_at(next);
        script_pattern(rest, mentions);
    }
    let base = operand.trim_end_matches('/');
    for ending in ENDINGS {
        mentions.push(Mention { text: format!("{base}{ending}"), role: Role::Named });
    }
    if interpreter.ends_with("run-parts") {
        mentions.push(Mention { text: format!("{base}/*"), role: Role::Script });
    }
}

/// A script that a pattern stands for.
fn script_pattern(words: &[String], mentions: &mut Vec<Mention>) {
    if let Some(word) = words.first().filter(|word| is_pattern(word)) {
        add(word, Role::Script, mentions);
    }
}

/// Whether text that goes there can be found again.
fn is_kept(output: &str) -> bool {
    let is_number = output.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    !is_number && !matches!(output, "/dev/null" | "/dev/stderr" | "/dev/stdout" | "/dev/tty")
}

fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '[', UNKNOWN]) && !word.chars().all(|letter| letter == UNKNOWN)
}

/// Adds a word, and the parts of it that programs may take for words.
fn add(word: &str, role: Role, mentions: &mut Vec<Mention>) {
    let is_border = |letter: char| letter.is_whitespace() || ";|&()<>{}=,:`\"'".contains(letter);
    mentions.push(Mention { text: word.to_owned(), role });
    if word.contains(is_border) {
        let parts = word.split(is_border).filter(|part| !part.is_empty());
        mentions.extend(parts.map(|part| Mention { text: part.to_owned(), role: Role::Named }));
    }
    // The unknown part may be a path up to there: `$tool.sh`.
    let known = word.trim_start_matches(UNKNOWN);
    if role >= Role::Command
        && known.len() < word.len()
        && !known.is_empty()
        && !known.starts_with('/')
    {
        mentions.push(Mention { text: format!("**/{word}"), role: Role::Script });
    }
    // The unknown part may be a directory: `$(pwd)/check.sh`, `$hooks/check.sh`.
    if let Some((_, tail)) = word.rsplit_once(UNKNOWN)
        && let Some(tail) = tail.strip_prefix('/')
    {
        let text = tail.trim_start_matches('/').to_owned();
        mentions.push(Mention { text, role: Role::Named });
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_' || it == b'+')
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(command: &str) -> Vec<String> {
        mentions(command, Some(Path::new("/home/u")), &mut false)
            .into_iter()
            .map(|it| it.text)
            .collect()
    }

    #[test]
    fn words_are_what_a_shell_makes_of_them() {
        for (command, word) in [
            ("sh a\\ b/check.sh", "a b/check.sh"),
            ("sh to\\\nols/check.sh", "tools/check.sh"),
            ("sh to\"\"ols/che'ck'.sh", "tools/check.sh"),
            ("sh tools/$'check'.sh", "tools/check.sh"),
            ("sh ~/p/check.sh", "/home/u/p/check.sh"),
            ("sh \"${HOME}\"/p/check.sh", "/home/u/p/check.sh"),
            ("\"${CLAUDE_PROJECT_DIR:-.}\"/check.sh", "./check.sh"),
            ("${CLAUDE_PROJECT_DIR%/}/check.sh", "./check.sh"),
            ("\"$(git rev-parse --show-toplevel)/tools/check.sh\"", "tools/check.sh"),
            ("`pwd`/tools/check.sh", "tools/check.sh"),
            ("bash -c 'x; ./check.sh'", "./check.sh"),
            ("x=\"$(./check.sh)\"", "./check.sh"),
            ("[ -f x ] && ./check.sh", "./check.sh"),
            ("case $x in a) ./check.sh;; esac", "./check.sh"),
            ("python3 -m tools.check", "tools/check.py"),
            ("node tools/c", "tools/c.js"),
            ("cat tools/check.sh | sh", "tools/check.sh"),
            ("bash \"${CHECK:-tools/c.sh}\"", "tools/c.sh"),
            ("${CHECK:-./c.sh}", "./c.sh"),
            ("${CHECK:=./c.sh}", "./c.sh"),
            ("${CHECK/x/./c.sh}", "./c.sh"),
            ("${CHECK:-${OTHER:-./c.sh}}", "./c.sh"),
            ("echo \"${X:-$(./c.sh)}\"", "./c.sh"),
            ("echo ${X#$(./c.sh)}", "./c.sh"),
            ("true ${x#\"}\"}; ./c.sh", "./c.sh"),
            ("true ${x#{}; ./c.sh", "./c.sh"),
            ("echo \"${x:-it's}\"; ./c.sh; echo 'x'", "./c.sh"),
            ("echo \"${x:-\"a b\"}\" \"$(./c.sh)\"", "./c.sh"),
            ("(case a in *) :;; esac; ./c.sh)", "./c.sh"),
            ("case a in (a|b) x;; *) (./c.sh) ;; esac", "./c.sh"),
            ("rg --pre ./c.sh hi f.txt", "./c.sh"),
            ("O=--pre; rg $O ./c.sh hi f.txt", "./c.sh"),
            ("cat c.sh > /tmp/q; chmod +x /tmp/q; /tmp/q", "c.sh"),
            ("cat c.sh | tee /tmp/q; chmod +x /tmp/q; /tmp/q", "c.sh"),
            ("cat c.sh | (grep .; tee /tmp/q); /tmp/q", "c.sh"),
            ("x=$(cat c.sh); timeout 5 $x", "c.sh"),
            (">/tmp/x/cat ./c.sh", "./c.sh"),
            ("2>/dev/null ./c.sh", "./c.sh"),
            ("bash < c.sh", "c.sh"),
            ("/tmp/cat ./c.sh", "./c.sh"),
            ("echo() { \"$@\"; }; echo ./c.sh", "./c.sh"),
            ("function test { \"$@\"; }; test ./c.sh", "./c.sh"),
            ("cat <<E\necho it's\nE\n./c.sh\necho 'x'", "./c.sh"),
            ("echo $'\\'' ; ./c.sh ; echo '", "./c.sh"),
            ("$($($($($($($($($($($(./c.sh)))))))))))", "./c.sh"),
            ("find d -name '*.sh' -exec sh {} \\;", "d/**/*.sh"),
            ("find d | xargs -n1 sh", "d/**/*"),
        ] {
            assert!(named(command).contains(&word.to_owned()), "{command}: {:?}", named(command));
        }
    }

    #[test]
    fn what_is_only_looked_at_is_not_named() {
        for command in [
            "[ -f package.json ] && true",
            "[[ $f == package.json ]]",
            "test -e package.json && npm test",
            "case $f in package.json) npm test;; x) y;; esac",
            "jq -r .version package.json",
            "true # package.json",
            "cat package.json",
            "cat package.json | grep -q x && npm test",
            "jq -e .lint package.json > /dev/null 2>&1 && npm run lint",
            "jq -r .a >> package.json",
            "npm test > package.json",
            "case $f in a|package.json) npm test;; esac",
            "command -v jq && jq -r .a package.json",
            "rg -q lint package.json && npm run lint",
            "VERSION=$(jq -r .version package.json); echo $VERSION",
        ] {
            assert!(!named(command).contains(&"package.json".to_owned()), "{command}");
        }
    }

    proptest! {
        /// Whatever a text is, it is read to its end.
        #[test]
        fn no_text_is_too_odd(text in "[a$(){}'\"`\\\\ ;|&<>#~\n*=.-]{0,40}") {
            mentions(&text, Some(Path::new("/h")), &mut false);
        }

        /// A script is found however the words around it are quoted and joined.
        #[test]
        fn a_script_is_found_behind_whatever_precedes_it(
            before in prop::sample::select(vec!["", "true; ", "[ -f x ] && ", "a | ", "if b; then ", "(", "{ ", "! ", "x=1 ", "timeout 5 ", "env A=b ", "case q in q) "]),
            interpreter in prop::sample::select(vec!["", "sh ", "bash -e ", "/usr/bin/python3 -B ", ". "]),
            path in prop::sample::select(vec!["./d/s.sh", "d/s.sh", "\"d\"/s.sh", "d/'s.sh'", "d\\/s.sh", "d/s\\.sh"]),
        ) {
            let found = named(&format!("{before}{interpreter}{path} --fast"));
            prop_assert!(found.iter().any(|it| it.ends_with("d/s.sh")), "{:?}", found);
        }
    }
}
