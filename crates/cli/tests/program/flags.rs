//! Flags and values that are wrong: what, why, help.

use centurion_testkit::{Lack, Reply, skip};
use serde_json::json;

use crate::program::{Program, call};

#[test]
fn unknown_flags_and_bad_values_are_refused_with_help() {
    let program = Program::alone();
    for (arguments, says) in [
        (&["-p", "x", "--modle", "opus"][..], "--model"),
        (&["-p", "x", "--output-format", "xml"], "stream-json"),
        (&["-p", "x", "--max-turns", "0"], "1.."),
        (&["-p", "x", "--permission-mode", "yolo"], "acceptEdits"),
        (&["-p", "x", "--effort", "heroic"], "xhigh"),
        (&["-p", "x", "--fork-session"], "--resume"),
        (&["-p", "x", "--resume", " "], "name"),
        (&["-p", "x", "--init", "--maintenance"], "--init"),
        (&["--init-only", "x"], "no model"),
        (&["-p", "x", "--model", ""], "missing"),
        (&["-p", "x", "--model", "openai:"], "missing"),
        (&["-p", "x", "--input-format", "stream-json"], "--output-format stream-json"),
    ] {
        let ended = program.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(ended.stderr.contains(says), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_sent() {
    let program = Program::answering([]);
    for (arguments, says) in [
        (&["-p", "x", "--add-dir", "/nowhere/at/all"][..], "/nowhere/at/all"),
        (&["-p", "x", "--json-schema", "{\"type\":\"array\"}"], "object"),
        (&["-p", "x", "--json-schema", "no-such-file.json"], "no-such-file.json"),
        (&["-p", "x", "--allowedTools", "Bash(unclosed"], "Bash(unclosed"),
        (&["-p", "x", "--resume", "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11"], "centurion sessions"),
        (&["-p", "x", "--system-prompt-file", "missing.md"], "missing.md"),
        (&["-p", "x", "--model", "script:missing.yaml"], "missing.yaml"),
        (&["-p", ""], "no prompt"),
        (&["-p", "x", "--json-schema", "[]"], "object"),
        (&["-p", "x", "--tools", "Nope"], "Nope"),
        (&["-p", "x", "--resume", "zzz"], "centurion sessions"),
        (&["-p", "x", "--resume"], "needs the id or the name"),
    ] {
        let ended = program.run(arguments);
        assert_eq!(ended.code, Some(1), "{arguments:?}");
        assert!(
            ended.stderr.contains("error: ") && ended.stderr.contains(says),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
    assert!(program.server().requests().is_empty());
    assert!(program.transcripts().is_empty(), "nothing is left behind");
}

#[test]
fn without_a_model_the_message_says_what_to_set_and_names_the_demo() {
    let ended = Program::alone().run(&["-p", "hi"]);
    if ended.code == Some(0) {
        return skip(Lack::NoModelServer);
    }
    assert_eq!(ended.code, Some(1));
    for word in ["ANTHROPIC_API_KEY", "OPENAI_", "centurion demo"] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    let program = Program::alone();
    for flag in ["--version", "-v"] {
        assert!(program.run(&[flag]).stdout.starts_with("centurion "));
    }
    let help = program.run(&["--help"]);
    assert_eq!(help.code, Some(0));
    for word in ["--output-format", "--allowedTools", "--resume", "centurion demo"] {
        assert!(help.stdout.contains(word), "{word}");
    }
}

#[test]
fn an_added_directory_can_be_read_and_others_cannot() {
    let program = Program::answering([]);
    let added = program.scratch.root().join("added");
    std::fs::create_dir(&added).unwrap();
    std::fs::write(added.join("a.txt"), "from beside\n").unwrap();
    let read = json!({"file_path": added.join("a.txt")});
    for (extra, is_seen) in [(&[][..], false), (&["--add-dir", added.to_str().unwrap()][..], true)]
    {
        let answers =
            Program::answering([call("toolu_1", "Read", read.clone()), Reply::text("done")]);
        let ended = answers.run(&[&["-p", "read"], extra].concat());
        assert_eq!(ended.code, Some(0));
        let last = answers.server().last().json()["messages"].to_string();
        assert_eq!(last.contains("from beside"), is_seen, "{last}");
    }
}

#[test]
fn limits_effort_and_logging_do_what_they_say() {
    let looping = || call("toolu_1", "Glob", json!({"pattern": "*"}));
    let program = Program::answering([looping(), Reply::text("never")]);
    let ended = program.run(&["-p", "go", "--max-turns", "1", "--effort", "high", "--debug"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(program.server().requests().len(), 1);
    assert_eq!(program.server().last().json()["output_config"]["effort"], "high");
    assert!(ended.stderr.contains("DEBUG"), "{}", ended.stderr);
    let broke = Program::answering([Reply::text("never")]);
    assert_eq!(broke.run(&["-p", "go", "--max-budget-usd", "0"]).code, Some(1));
    assert!(broke.server().requests().is_empty());
}

#[test]
fn a_rule_that_can_never_match_is_said_once() {
    let program = Program::answering([Reply::text("ok")]);
    let ended = program.run(&["-p", "hi", "--allowedTools", "WebSearch(x)"]);
    assert_eq!(ended.stderr.matches("warning: --allowedTools").count(), 1, "{}", ended.stderr);
}
