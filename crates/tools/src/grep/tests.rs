//! Grep as a whole tool.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::testing::{call, context, decide, forbid, text};

fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempdir().unwrap();
    for (age, (name, content)) in files.iter().enumerate() {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + age as u64);
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    dir
}

async fn grep(dir: &TempDir, input: Value) -> ToolOutput {
    call(Grep, &context(dir.path()), input).await.unwrap()
}

async fn content(dir: &TempDir, mut input: Value) -> String {
    input["output_mode"] = json!("content");
    text(&grep(dir, input).await)
}

fn sample() -> TempDir {
    tree(&[
        ("src/a.rs", "one\nTwo needle\nthree\n"),
        ("src/b.rs", "needle\nneedle needle\n"),
        ("c.md", "nothing\nneedle\n"),
    ])
}

#[tokio::test]
async fn files_are_listed_newest_first_by_default() {
    let dir = sample();
    let output = grep(&dir, json!({"pattern": "needle"})).await;
    assert_eq!(text(&output), "c.md\nsrc/b.rs\nsrc/a.rs");
    assert_eq!(output.data["mode"], "files_with_matches");
    assert_eq!(output.data["numFiles"], 3);
    let output = grep(&dir, json!({"pattern": "needle", "head_limit": 1, "offset": 1})).await;
    assert!(text(&output).starts_with("src/b.rs\n\n(1 of 3 shown"), "{}", text(&output));
    assert!(text(&output).contains("offset 2"));
    assert_eq!(output.data["filenames"], json!(["src/b.rs"]));
    assert_eq!(text(&grep(&dir, json!({"pattern": "absent"})).await), "No matches.");
}

#[tokio::test]
async fn content_is_ordered_by_path_with_line_numbers() {
    let dir = sample();
    assert_eq!(
        content(&dir, json!({"pattern": "needle"})).await,
        "c.md:2:needle\nsrc/a.rs:2:Two needle\nsrc/b.rs:1:needle\nsrc/b.rs:2:needle needle"
    );
    assert_eq!(content(&dir, json!({"pattern": "TWO", "-n": false})).await, "No matches.");
    assert_eq!(
        content(&dir, json!({"pattern": "TWO", "-i": true, "-n": false})).await,
        "src/a.rs:Two needle"
    );
    assert_eq!(
        content(&dir, json!({"pattern": "n\\w+e\\b", "-o": true, "path": "src/b.rs"})).await,
        "1:needle\n2:needle\n2:needle"
    );
}

#[tokio::test]
async fn counts_are_of_lines() {
    let output = grep(&sample(), json!({"pattern": "needle", "output_mode": "count"})).await;
    assert_eq!(text(&output), "c.md:1\nsrc/a.rs:1\nsrc/b.rs:2\n\n(4 matching lines in 3 files)");
    assert_eq!(output.data["numMatches"], 4);
}

#[tokio::test]
async fn context_is_marked_and_gaps_are_shown() {
    let dir = tree(&[("f", "1\n2\nx\n4\n5\n6\n7\nx\n9\n")]);
    assert_eq!(
        content(&dir, json!({"pattern": "x", "-C": 1})).await,
        "f-2-2\nf:3:x\nf-4-4\n--\nf-7-7\nf:8:x\nf-9-9"
    );
    assert_eq!(
        content(&dir, json!({"pattern": "x", "-B": 1, "path": "f"})).await,
        "2-2\n3:x\n--\n7-7\n8:x"
    );
    assert_eq!(
        content(&dir, json!({"pattern": "x", "-A": 1, "context": 0, "path": "f"})).await,
        "3:x\n4-4\n--\n8:x\n9-9"
    );
}

#[tokio::test]
async fn filters_choose_files() {
    let dir = sample();
    let listed = async |input: Value| text(&grep(&dir, input).await);
    assert_eq!(listed(json!({"pattern": "needle", "type": "rust"})).await, "src/b.rs\nsrc/a.rs");
    assert_eq!(listed(json!({"pattern": "needle", "glob": "*.md"})).await, "c.md");
    assert_eq!(
        listed(json!({"pattern": "needle", "glob": "*.{md,rs},!a.*"})).await,
        "c.md\nsrc/b.rs"
    );
    assert_eq!(listed(json!({"pattern": "needle", "glob": "!src/"})).await, "c.md");
    assert_eq!(listed(json!({"pattern": "needle", "path": "src"})).await, "src/b.rs\nsrc/a.rs");
}

#[tokio::test]
async fn ignored_binary_and_vcs_files_are_left_out() {
    let dir = tree(&[
        (".gitignore", "target/\n"),
        ("target/x", "needle"),
        (".git/x", "needle"),
        ("binary", "needle\n\0\n"),
        (".hidden", "needle"),
    ]);
    assert_eq!(text(&grep(&dir, json!({"pattern": "needle"})).await), ".hidden");
    assert_eq!(text(&grep(&dir, json!({"pattern": "needle", "glob": "*"})).await), ".hidden");
}

#[tokio::test]
async fn patterns_span_lines_on_request() {
    let dir = tree(&[("f", "start {\n  body\n}\nend\n")]);
    let pattern = json!({"pattern": "start.*?\\}", "multiline": true});
    assert_eq!(content(&dir, pattern).await, "f:1:start {\nf:2:  body\nf:3:}");
    let only = json!({"pattern": "\\{.*?b", "multiline": true, "-o": true});
    assert_eq!(content(&dir, only).await, "f:1:{\nf:2:  b");
    let error = call(Grep, &context(dir.path()), json!({"pattern": "a\\nb"})).await.unwrap_err();
    assert!(error.to_string().contains("multiline"), "{error}");
}

#[tokio::test]
async fn ends_of_lines_match_in_files_with_cr() {
    let dir = tree(&[("f", "word\r\nother\r\n")]);
    assert_eq!(content(&dir, json!({"pattern": "word$"})).await, "f:1:word");
}

#[tokio::test]
async fn answers_are_bounded_and_can_be_continued() {
    let long = format!("needle {}\n", "x".repeat(3_000));
    let dir = tree(&[("f", &long.repeat(300))]);
    let shown = content(&dir, json!({"pattern": "needle"})).await;
    assert!(shown.len() < 21_000, "{}", shown.len());
    assert!(shown.contains("… (3007 bytes)"));
    let next = shown.rsplit_once("offset ").unwrap().1.split(',').next().unwrap();
    let again =
        content(&dir, json!({"pattern": "needle", "offset": next.parse::<usize>().unwrap()}));
    let expected = format!("f:{}:", next.parse::<usize>().unwrap() + 1);
    assert!(again.await.starts_with(&expected));
    let shown = content(&dir, json!({"pattern": "needle", "head_limit": 2})).await;
    assert_eq!(shown.lines().filter(|line| line.starts_with("f:")).count(), 2);
    let past = content(&dir, json!({"pattern": "needle", "offset": 999})).await;
    assert!(past.contains("past the end"), "{past}");
}

#[tokio::test]
async fn bad_input_is_explained() {
    let dir = sample();
    let context = context(dir.path());
    for (input, expected) in [
        (json!({"pattern": "a(b"}), "^"),
        (json!({"pattern": "a", "glob": "{"}), "the glob cannot be used"),
        (json!({"pattern": "a", "type": "nope"}), "no file type \"nope\""),
        (json!({"pattern": "a", "path": "nope"}), "does not exist"),
    ] {
        let error = call(Grep, &context, input).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    let dir = sample();
    let context = context(dir.path());
    context.cancel.cancel();
    let result = call(Grep, &context, json!({"pattern": "x"})).await;
    assert!(matches!(result, Err(ToolError::Cancelled { .. })));
}

#[tokio::test]
async fn many_files_are_searched_in_order() {
    let names: Vec<(String, String)> = (0..1_500)
        .map(|number| (format!("d{}/f{number:04}", number % 7), format!("n{number}\n")))
        .collect();
    let files: Vec<(&str, &str)> =
        names.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
    let dir = tree(&files);
    let output = grep(&dir, json!({"pattern": "n", "output_mode": "count", "head_limit": 0})).await;
    assert_eq!(output.data["numMatches"], 1_500);
    let shown = content(&dir, json!({"pattern": "n", "head_limit": 3})).await;
    assert!(shown.starts_with("d0/f0000:1:n0\nd0/f0007:1:n7\nd0/f0014:1:n14\n"), "{shown}");
}

#[tokio::test]
async fn an_answer_without_a_limit_is_still_bounded() {
    let dir = tree(&[("f", &"needle\n".repeat(100_000))]);
    let shown = content(&dir, json!({"pattern": "needle", "head_limit": 0})).await;
    assert!(shown.len() < 21_000 && shown.contains("there are more"), "{}", shown.len());
    let late = json!({"pattern": "needle", "head_limit": 0, "offset": 99_999});
    assert_eq!(content(&dir, late).await, "f:100000:needle");
}

#[tokio::test]
async fn what_may_not_be_read_is_not_searched() {
    let dir = tree(&[
        ("src/a.rs", "needle\n"),
        ("secrets/key", "needle\n"),
        ("src/secrets/deep/b.rs", "needle\n"),
        ("src/c.pem", "needle\n"),
    ]);
    let mut context = context(dir.path());
    forbid(&mut context, |path| path.ends_with("secrets") || path.ends_with("c.pem"));
    for mode in ["content", "files_with_matches", "count"] {
        let input = json!({"pattern": "needle", "output_mode": mode});
        let said = text(&call(Grep, &context, input).await.unwrap());
        assert!(said.contains("src/a.rs"), "{said}");
        assert!(!said.contains("secrets") && !said.contains("c.pem"), "{said}");
    }
    // Neither a filter that names it helps, nor naming the file itself.
    let input = json!({"pattern": "needle", "glob": "*.pem"});
    assert_eq!(text(&call(Grep, &context, input).await.unwrap()), "No matches.");
    let input = json!({"pattern": "needle", "path": "src/c.pem"});
    let error = call(Grep, &context, input).await.unwrap_err().to_string();
    assert!(error.contains("c.pem may not be read"), "{error}");
}

#[tokio::test]
async fn a_link_that_was_changed_after_the_decision_is_not_searched() {
    let dir = tree(&[("open.txt", "needle here\n"), ("secret.txt", "needle there\n")]);
    let link = dir.path().join("link");
    symlink("open.txt", &link).unwrap();
    let input = json!({"pattern": "needle", "path": "link", "output_mode": "content"});
    let mut context = context(dir.path());
    decide(Grep, &mut context, &input);
    let output = call(Grep, &context, input.clone()).await.unwrap();
    assert!(text(&output).contains("needle here"), "{}", text(&output));
    fs::remove_file(&link).unwrap();
    symlink("secret.txt", &link).unwrap();
    let error = call(Grep, &context, input).await.unwrap_err().to_string();
    assert!(error.contains("when the call was allowed") && !error.contains("there"), "{error}");
}
