//! A command that is called simple means the same to a real shell: the same words, and nothing else.

use std::process::Command;

use centurion_permissions::simple_command;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const ALPHABET: &str = "[a-z0-9 \t\n'\"\\\\$`;&|<>(){}*?~#!=%^@:,./_+\\[\\]é-]{1,14}";

/// Prints its arguments so that any other split of the words shows.
const PRINTER: &str = "show() { printf '<%s>' \"$@\"; printf '\\0'; }\n";

#[test]
fn bash_reads_the_words_that_we_read() {
    let mut runner = TestRunner::deterministic();
    let texts = proptest::string::string_regex(ALPHABET).unwrap();
    let mut script = PRINTER.to_owned();
    let mut expected = Vec::new();
    for _ in 0..20_000 {
        // The first word is fixed, so that every line runs the printer and nothing on this machine.
        let text = texts.new_tree(&mut runner).unwrap().current();
        let line = format!("show {text}");
        if let Some(words) = simple_command(&line) {
            script.push_str(&line);
            script.push('\n');
            expected.push((line, words));
        }
    }
    assert!(expected.len() > 500, "only {} simple lines: the test proves little", expected.len());

    let output =
        Command::new("bash").args(["--norc", "--noprofile", "-c", &script]).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.split_terminator('\0').collect();
    assert_eq!(lines.len(), expected.len());
    for (line, (command, words)) in lines.iter().zip(&expected) {
        let arguments = words.get(1..).unwrap_or_default().join("><");
        let ours = format!("<{arguments}>");
        assert_eq!(*line, ours, "{command:?}");
    }
}
