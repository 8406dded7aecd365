//! A command that is not understood is asked about, whatever else would allow it.

use centurion_testkit::{Lack, Reply, skip};
use serde_json::{Value, json};

use crate::program::{Program, call};
use crate::real_servers::results;
use crate::sandboxes::can_confine;

/// Texts that bash reads otherwise than they look. Each would make the file `marker`.
const TEXTS: [&str; 4] = [
    "\r#; touch marker",
    "\u{a0}#; touch marker",
    "\u{b}#; touch marker",
    "echo \"open\ntouch marker",
];

/// The results of the texts, after a command that shows that others are allowed.
fn try_all(settings: &Value, flags: &[&str]) -> (Program, Vec<String>) {
    let all = ["touch fine"].into_iter().chain(TEXTS).enumerate();
    let all = all.map(|(n, it)| call(&format!("toolu_{n}"), "Bash", json!({"command": it})));
    let program = Program::answering(all.chain([Reply::text("done")]));
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let stream = ["-p", "go", "--output-format", "stream-json", "--verbose"];
    let ended = program.run(&[&stream[..], flags].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    (program, results(&ended))
}

fn assert_asked(what: &str, program: &Program, results: &[String]) {
    assert!(program.scratch.project().join("fine").exists(), "{what}: {}", results[0]);
    assert!(!program.scratch.project().join("marker").exists(), "{what}: {results:?}");
    for (text, result) in TEXTS.iter().zip(&results[1..]) {
        assert!(result.contains("no user can be asked"), "{what}: {text:?}: {result}");
    }
}

#[test]
fn a_hook_allows_no_command_that_is_not_understood() {
    let allow = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "permissionDecisionReason": "x",
    }});
    let hook = json!({"type": "command", "command": format!("echo '{allow}'")});
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
    for flags in [&[][..], &["--permission-mode", "acceptEdits"]] {
        let (program, results) = try_all(&settings, flags);
        assert_asked("a hook", &program, &results);
    }
}

#[test]
fn a_sandbox_allows_no_command_that_is_not_understood() {
    if !can_confine() {
        return skip(Lack::Sandbox);
    }
    let sandbox = json!({"enabled": true, "autoAllowBashIfSandboxed": true});
    let (program, results) = try_all(&json!({"sandbox": sandbox}), &[]);
    assert_asked("a sandbox", &program, &results);
}
