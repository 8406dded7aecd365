//! The words of code and documents: the actor is named, and a comment begins with the thing that it describes.

use std::collections::BTreeSet;

use crate::sources::{before_tests, complain, product};
use crate::tree::{self, File, assert_none};

/// Written with a mark between the letters, or this file would complain about itself.
const WORDS: [&str; 5] = ["who|ever", "whom|ever", "no|body", "some|body", "any|body"];

#[test]
fn code_prompts_and_documents_say_who_acts() {
    let (sources, product) = (tree::sources(), product());
    let product = product.iter().filter(|file| !file.path.starts_with("crates/testkit/"));
    let product = product.flat_map(without_actor);
    let comments_and_names = sources.iter().flat_map(|file| {
        complain(file, |line| (is_comment_or_name(line) && leaves_open(line)).then_some(COMPLAINT))
    });
    let mut texts = tree::files(&["md"]);
    texts.retain(|file| !file.path.contains("/tests/"));
    let complaints: BTreeSet<String> =
        product.chain(comments_and_names).chain(texts.iter().flat_map(without_actor)).collect();
    assert_none(&complaints.into_iter().collect::<Vec<_>>());
}

/// Phrases with a shorter usual word. Tests may hold any words of models and people.
const PHRASES: [(&str, &str); 10] = [
    ("go on", "continue"),
    ("goes on", "continue"),
    ("going on", "continue"),
    ("gone on", "continue"),
    ("went on", "continue"),
    ("take up", "apply, resume, import"),
    ("takes up", "apply, resume, import"),
    ("taken up", "apply, resume, import"),
    ("taking up", "apply, resume, import"),
    ("took up", "apply, resume, import"),
];

#[test]
fn code_and_prompts_use_the_usual_verbs() {
    let prompts = tree::files(&["md"]).into_iter().filter(|file| file.path.contains("/src/"));
    let complaints: Vec<String> =
        product().into_iter().chain(prompts).flat_map(|it| phrases(&it)).collect();
    assert_none(&complaints);
}

/// Lines with a phrase that has a usual word, also as a name (`goes_on`).
fn phrases(file: &File) -> Vec<String> {
    complain(file, |line| {
        let line = line.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " ");
        let line = format!(" {line} ");
        let found = PHRASES.iter().find(|(phrase, _)| line.contains(&format!(" {phrase} ")));
        found.map(|(_, usual)| *usual)
    })
}

/// The crates whose comments begin with a verb or a noun phrase. Comments on booleans may begin with "Whether".
const PLAIN_CRATES: [&str; 21] = [
    "crates/cli/",
    "crates/config/",
    "crates/embed-derive/src/",
    "crates/embed/src/",
    "crates/engine/src/",
    "crates/files/src/",
    "crates/hooks/src/",
    "crates/host/",
    "crates/journal/src/",
    "crates/mcp/src/",
    "crates/model/src/",
    "crates/permissions/src/",
    "crates/protocol/src/",
    "crates/redact/src/",
    "crates/sandbox/src/",
    "crates/team/src/",
    "crates/testkit/src/",
    "crates/tools/src/",
    "crates/tui/src/",
    "crates/worktree/src/",
    "xtask/",
];

/// Words with which a comment begins that is a clause, and names no thing.
const CLAUSES: [&str; 9] =
    ["What", "Where", "How", "Why", "Who", "Whose", "Which", "Whatever", "Those"];

#[test]
fn comments_begin_with_the_thing_that_they_describe() {
    let complaints: Vec<String> = tree::sources()
        .iter()
        .filter(|file| PLAIN_CRATES.iter().any(|path| file.path.starts_with(path)))
        .flat_map(clauses)
        .collect();
    assert_none(&complaints);
}

/// Comments before the tests of a file that begin with a clause.
fn clauses(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut before: Option<&str> = None;
    for (number, line) in before_tests(&file.text).lines().enumerate() {
        let comment = comment(line);
        // The first line of a comment, or of a paragraph in it.
        if let Some(text) = comment.filter(|_| before.is_none_or(str::is_empty))
            && let Some(word) = text.split([' ', '.', ',', ':']).next()
            && CLAUSES.contains(&word)
        {
            complaints.push(format!("{}:{}: begin with a verb or a noun", file.path, number + 1));
        }
        before = comment;
    }
    complaints
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim())
}

const COMPLAINT: &str = "say who acts";

/// Lines that leave open who does something.
fn without_actor(file: &File) -> Vec<String> {
    complain(file, |line| leaves_open(line).then_some(COMPLAINT))
}

/// Data of tests may hold any word; what tests say about themselves may not.
fn is_comment_or_name(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with("fn ") || line.starts_with("async fn ")
}

fn leaves_open(line: &str) -> bool {
    // A line end in a string is no part of a word.
    let line = line.replace("\\n", " ").to_lowercase();
    let mut words = line.split(|c: char| !c.is_alphanumeric());
    words.any(|word| WORDS.iter().any(|it| it.replace('|', "") == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_begins_with_a_clause_is_found_at_the_start_of_each_paragraph() {
        let text = "//! What is kept.\n//!\n//! How it is kept.\nfn a() {}\n\n/// The directory,\n\
                    /// Where it is.\nfn b() {\n    // Why it is.\n    c();\n}\n/// Whatever.\n/// Whether.\n\
                    fn c() {}\n/// Whether.\n#[cfg(test)]\nmod tests {\n    // What.\n}\n";
        let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
        let lines = clauses(&file);
        let lines: Vec<&str> = lines.iter().filter_map(|it| it.split(':').nth(1)).collect();
        assert_eq!(lines, ["1", "3", "9", "12"]);
    }

    #[test]
    fn phrases_are_found_in_comments_texts_and_names() {
        let text = ["// It go", "es on.\nfn go", "es_on() {}\n// It got on.\n\"Take", " up: \"\n"]
            .concat();
        let lines = phrases(&File { path: "a.rs".to_owned(), text });
        assert_eq!(lines.len(), 3, "{lines:?}");
    }

    #[test]
    fn words_without_an_actor_are_found_in_texts_and_names() {
        let word = WORDS[2].replace('|', "");
        for (line, expected) in [
            (format!("{word} waits"), true),
            (format!("fn a_call_that_{word}_hears()"), true),
            (format!("bail!(\"{} is there\")", word.to_uppercase()), true),
            (format!("\"a\\\\n{word} waits\""), true),
            (format!("{word}s"), false),
            ("the caller waits".to_owned(), false),
        ] {
            assert_eq!(leaves_open(&line), expected, "{line}");
        }
        assert!(is_comment_or_name("    async fn a()") && !is_comment_or_name("let a = 1;"));
    }
}
