//! From text to a [`Script`]: the strict reading of plain lines, a shell grammar for the rest, and a
//! second grammar that must not find more.

use std::panic::catch_unwind;
use std::path::Path;

use brush_parser::{ParserOptions, Token, ast, parse_tokens, uncached_tokenize_str};

use super::chain;
use super::places::Places;
use super::script::{Script, Unclear};
use super::second_reading;
use super::walker::Walker;
use super::words::{LONGEST, plain_line};

/// Parentheses that open a group, at most, with each `case` counted twice. Where the grammar fails
/// behind them, it has tried every one of them in two ways.
const MOST_GROUPS: usize = 12;

/// Words that may begin a block, at most: the grammar calls itself for each.
const MOST_BLOCKS: usize = 60;

/// Openings of substitutions, at most, for the same reason.
const MOST_SUBSTITUTIONS: usize = 60;

/// A longer number before `<` or `>` is no file descriptor.
const LONGEST_DESCRIPTOR: usize = 4;

/// What the command line runs, and whether it is so plain that no grammar was asked.
pub(crate) fn parse(text: &str, cwd: &Path, home: Option<&Path>) -> (Script, bool) {
    match plain_line(text) {
        Some(line) => {
            let options = options();
            let mut walker = Walker::new(home, &options);
            chain::walk(line, &mut walker, Places::at(cwd));
            (walker.script, true)
        }
        None => (parse_grammar(text, cwd, home), false),
    }
}

/// What the command line runs, as far as two grammars can tell.
fn parse_grammar(text: &str, cwd: &Path, home: Option<&Path>) -> Script {
    let options = options();
    let program = match parse_program(text, &options) {
        Ok(program) => program,
        Err(why) => return Script { unclear: Some(why), ..Script::default() },
    };
    let mut walker = Walker::new(home, &options);
    walker.program(&program, Places::at(cwd));
    let Walker { mut script, programs, .. } = walker;
    if script.unclear.is_none() && !second_reading::agrees(text, &programs) {
        script.unclear = Some(Unclear::TwoReadings);
    }
    script
}

/// One program of the grammar.
pub(crate) fn parse_program(text: &str, options: &ParserOptions) -> Result<ast::Program, Unclear> {
    if let Some(why) = refused(text) {
        return Err(why);
    }
    // The grammar is somebody else's: should it ever panic, the command counts as not understood.
    let parsed = catch_unwind(|| {
        let tokens = uncached_tokenize_str(text, &options.tokenizer_options())
            .map_err(|_| Unclear::Syntax)?;
        if let Some(why) = refused_tokens(&tokens) {
            return Err(why);
        }
        parse_tokens(&tokens, options).map_err(|_| Unclear::Syntax)
    });
    parsed.unwrap_or(Err(Unclear::Syntax))
}

/// Why the grammar should not even try.
fn refused_tokens(tokens: &[Token]) -> Option<Unclear> {
    let (mut groups, mut blocks) = (0, 0);
    let mut after_number = false;
    for token in tokens {
        let mut is_number = false;
        match token {
            Token::Operator(operator, _) => {
                if after_number && operator.starts_with(['<', '>']) {
                    return Some(Unclear::Syntax);
                }
                groups += operator.matches('(').count();
            }
            Token::Word(word, _) => {
                is_number =
                    word.len() > LONGEST_DESCRIPTOR && word.chars().all(|c| c.is_ascii_digit());
                match word.as_str() {
                    "case" => groups += 2,
                    "{" | "if" | "elif" | "while" | "until" | "for" | "coproc" | "function"
                    | "!" | "time" | "[[" => blocks += 1,
                    _ => {}
                }
            }
        }
        after_number = is_number;
    }
    (groups > MOST_GROUPS || blocks > MOST_BLOCKS).then_some(Unclear::TooDeep)
}

fn options() -> ParserOptions {
    ParserOptions {
        // Off in a shell that runs one command, and `~` is resolved here.
        enable_extended_globbing: false,
        tilde_expansion_at_word_start: false,
        ..ParserOptions::default()
    }
}

fn refused(text: &str) -> Option<Unclear> {
    if text.len() > LONGEST {
        return Some(Unclear::TooLong);
    }
    let odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || (c.is_whitespace() && !c.is_ascii())
    };
    if text.contains(odd) {
        return Some(Unclear::OddCharacter);
    }
    let openings = ["$(", "${", "<(", ">(", "`"].map(|opening| text.matches(opening).count());
    (openings.iter().sum::<usize>() > MOST_SUBSTITUTIONS).then_some(Unclear::TooDeep)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    const PIECES: [&str; 46] = [
        "ls",
        "cd",
        "cd src",
        "cd ..",
        "git log",
        "xargs",
        "timeout 5",
        "eval",
        "make",
        "if",
        "time",
        "!",
        "x",
        "-n",
        "a=b",
        "A=1 ",
        "é",
        "1",
        "2",
        "22",
        "HEAD~2",
        "~",
        " ",
        " ",
        " ",
        "\t",
        "\n",
        ";",
        "; ",
        "&",
        " && ",
        " || ",
        " | ",
        "|",
        ">",
        " >> ",
        "<",
        ">&",
        "2>&1",
        " > out/x",
        "2>/dev/null",
        "'a; b'",
        "\"c | d\"",
        "''",
        "'2'",
        "#",
    ];

    /// What is read without a grammar is what both grammars read.
    #[test]
    fn plain_lines_are_read_as_the_grammars_read_them() {
        let mut runner = TestRunner::deterministic();
        let lines = prop::collection::vec(prop::sample::select(&PIECES[..]), 1..12)
            .prop_map(|pieces| pieces.concat());
        let (cwd, home) = (Path::new("/p"), Some(Path::new("/home/ada")));
        let mut compound = 0;
        for _ in 0..40_000 {
            let line = lines.new_tree(&mut runner).expect("a line").current();
            let (script, is_plain) = parse(&line, cwd, home);
            if is_plain {
                assert_eq!(script, parse_grammar(&line, cwd, home), "{line:?}");
                compound += usize::from(script.commands.len() > 1);
            }
        }
        assert!(compound > 500, "only {compound} compound lines: the test proves little");
    }
}
