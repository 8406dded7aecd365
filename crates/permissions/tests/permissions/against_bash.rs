//! Comparison with the real shell: a command that counts as simple has the same words there, and an allowed line runs
//! nothing else.

use std::process::Command;

use centurion_permissions::{Access, Call, Policy, Verdict, decide, simple_command};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::fixture;

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

/// Pieces with a meaning for the shell, and programs, some of which may run.
const PIECES: [&str; 58] = [
    "good",
    "good",
    "good",
    "good x",
    "good -a",
    "evil",
    "evil x",
    "good",
    "cat in",
    "echo",
    "a",
    " ",
    " ",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    ";",
    " ; ",
    "&",
    " && ",
    " || ",
    " | ",
    ">",
    "> ok/x",
    "<",
    "< in",
    "$",
    "$(",
    ")",
    "`",
    "(",
    "{",
    "}",
    "{ ",
    "; }",
    "!",
    "#",
    "=",
    "A=1",
    "a=1",
    "\\",
    "'",
    "\"",
    ",",
    "$x",
    "${x:-",
    "$'",
    "\\x67",
    "<<X\n",
    "\nX\n",
    "<<<",
    "if ",
    "; then ",
    "; fi",
    "for a in b; do ",
    "; done",
];

/// Allowed lines run in a real shell: only the allowed program runs, and only paths that a rule permits are written.
#[test]
fn an_allowed_line_runs_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let (bin, work) = (root.join("bin"), root.join("work"));
    for directory in [&bin, &work, &work.join("ok")] {
        std::fs::create_dir(directory).unwrap();
    }
    std::fs::write(work.join("in"), "evil\n").unwrap();
    // Every program except the allowed one leaves a trace.
    for (name, body) in [("good", "exit 0"), ("evil", "echo evil >> \"$TRACE\""), ("cat", "exit 0")]
    {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/bash\n{body}\n")).unwrap();
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(&path, permissions).unwrap();
    }
    let policy = Policy {
        allow: fixture::rules("Bash(good *) Edit(ok/**)"),
        cwd: work.clone(),
        project_root: work.clone(),
        directories: vec![work.clone()],
        ..Policy::default()
    };
    let mut runner = TestRunner::deterministic();
    let lines = prop::collection::vec(prop::sample::select(&PIECES[..]), 1..14)
        .prop_map(|pieces| pieces.concat());
    let mut allowed = std::collections::BTreeSet::new();
    for _ in 0..30_000 {
        let line = lines.new_tree(&mut runner).unwrap().current();
        let access = Access::Shell(line.clone());
        if decide(&policy, &Call::new("Bash", &access)).verdict == Verdict::Allow {
            allowed.insert(line);
        }
    }
    let composed = allowed.iter().filter(|line| simple_command(line).is_none()).count();
    assert!(composed > 150, "only {composed} of {} are more than simple", allowed.len());

    let trace = root.join("trace");
    for line in &allowed {
        let status = Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c", line])
            .env_clear()
            .env("PATH", &bin)
            .env("TRACE", &trace)
            .current_dir(&work)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        status.unwrap();
        assert!(!trace.exists(), "{line:?} ran something else");
        let written: Vec<_> =
            std::fs::read_dir(&work).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(written.len(), 2, "{line:?} wrote {written:?}");
    }
}

/// A text that a real shell refuses to parse is not understood here either.
#[test]
fn what_bash_cannot_read_is_never_allowed() {
    let mut runner = TestRunner::deterministic();
    let lines = prop::collection::vec(prop::sample::select(&PIECES[..]), 1..10)
        .prop_map(|pieces| pieces.concat());
    let policy = Policy {
        allow: fixture::rules("Bash(good *) Bash(evil *) Bash(echo *)"),
        ..fixture::policy(centurion_permissions::Mode::Default)
    };
    let mut checked = 0;
    while checked < 150 {
        let line = lines.new_tree(&mut runner).unwrap().current();
        let access = Access::Shell(line.clone());
        let decision = decide(&policy, &Call::new("Bash", &access));
        if decision.verdict != Verdict::Allow || simple_command(&line).is_some() {
            continue;
        }
        checked += 1;
        let output = Command::new("/bin/bash").args(["-n", "-c", &line]).output().unwrap();
        assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
