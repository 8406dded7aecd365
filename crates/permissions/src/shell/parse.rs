//! From text to a [`Script`]: the strict reading of plain commands, a shell grammar for the rest, and
//! a second grammar that must not find more.

use std::panic::catch_unwind;
use std::path::Path;

use brush_parser::{ParserOptions, Token, ast, parse_tokens, uncached_tokenize_str};

use super::places::Places;
use super::script::{Command, Script, Unclear, Word};
use super::second_reading;
use super::walker::Walker;
use super::words::{LONGEST, simple_command};

/// Parentheses that open a group, at most, with each `case` counted twice. Where the grammar fails
/// behind them, it has tried every one of them in two ways.
const MOST_GROUPS: usize = 12;

/// Words that may begin a block, at most: the grammar calls itself for each.
const MOST_BLOCKS: usize = 60;

/// Openings of substitutions, at most, for the same reason.
const MOST_SUBSTITUTIONS: usize = 60;

/// A longer number before `<` or `>` is no file descriptor.
const LONGEST_DESCRIPTOR: usize = 4;

/// What the command line runs, as far as two grammars can tell.
pub(crate) fn parse(text: &str, cwd: &Path, home: Option<&Path>) -> Script {
    let options = options();
    let mut walker = Walker::new(home, &options);
    let places = Places::at(cwd);
    if let Some(words) = simple_command(text) {
        let words = words
            .iter()
            .zip(written(text, &words))
            .map(|(value, written)| Word { written, value: Some(value.clone()) });
        walker.finish(Command { words: words.collect(), places, ..Command::default() });
        return walker.script;
    }
    if let Some(why) = refused(text) {
        return Script { unclear: Some(why), ..Script::default() };
    }
    let program = match parse_program(text, &options) {
        Ok(program) => program,
        Err(why) => return Script { unclear: Some(why), ..Script::default() },
    };
    walker.program(&program, places);
    let Walker { mut script, programs, .. } = walker;
    if !second_reading::agrees(text, &programs) {
        script.unclear.get_or_insert(Unclear::TwoReadings);
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

/// The words of a simple command as they are written: only blanks outside quotes part them.
fn written(text: &str, words: &[String]) -> Vec<String> {
    let mut parts = Vec::with_capacity(words.len());
    let mut part = String::new();
    let mut quote = None;
    for character in text.trim_matches([' ', '\t', '\n']).chars() {
        match (quote, character) {
            (None, ' ' | '\t') => {
                if !part.is_empty() {
                    parts.push(std::mem::take(&mut part));
                }
                continue;
            }
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        part.push(character);
    }
    parts.push(part);
    parts
}
