//! No text leaves open who acts: the words that do are listed here.

use std::collections::BTreeSet;

use crate::sources::{before_tests, complain, is_below, test_modules};
use crate::tree::{self, File, assert_none};

/// Written with a mark between the letters, or this file would complain about itself.
const WORDS: [&str; 5] = ["who|ever", "whom|ever", "no|body", "some|body", "any|body"];

#[test]
fn code_prompts_and_documents_say_who_acts() {
    let sources = tree::sources();
    let for_tests: BTreeSet<String> = sources.iter().flat_map(test_modules).collect();
    let is_product = |file: &&File| {
        file.path.contains("/src/")
            && !file.path.starts_with("crates/testkit/")
            && !is_below(&file.path, &for_tests)
    };
    let product = sources.iter().filter(is_product).flat_map(|file| {
        let text = before_tests(&file.text).to_owned();
        without_actor(&File { path: file.path.clone(), text })
    });
    let comments_and_names = sources.iter().flat_map(|file| {
        complain(file, |line| (is_comment_or_name(line) && leaves_open(line)).then_some(COMPLAINT))
    });
    let mut texts = tree::files(&["md"]);
    texts.retain(|file| !file.path.contains("/tests/"));
    let complaints: BTreeSet<String> =
        product.chain(comments_and_names).chain(texts.iter().flat_map(without_actor)).collect();
    assert_none(&complaints.into_iter().collect::<Vec<_>>());
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
