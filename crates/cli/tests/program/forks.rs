//! Forks, as a provider with a cache sees them.

use std::process::Stdio;
use std::sync::Arc;

use centurion_testkit::{Recorded, Reply, sse};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cache::{Cache, Charged};
use crate::program::{Program, ended};

const FORKS: usize = 20;

/// The main agent starts all forks in one message; every fork reports at once.
fn answer(request: &Value) -> Reply {
    let said = request["messages"].to_string();
    if said.contains("FORK_DIRECTIVE: ") {
        return Reply::text("Scope: done");
    }
    if said.contains("tool_result") {
        return Reply::text("meanwhile");
    }
    let fork = |n: usize| {
        let input = json!({"description": "a branch", "prompt": format!("look at part {n}")});
        sse::tool_use(&format!("toolu_{n}"), "Agent", input)
    };
    Reply::blocks((0..FORKS).map(fork).collect::<Vec<_>>())
}

#[test]
fn twenty_forks_pay_an_eighth_of_what_fresh_agents_would() {
    // S-277, I-11: a conversation of 50,000 tokens
    let charges: Arc<Mutex<(Cache, Vec<Charged>)>> = Arc::default();
    let seen = Arc::clone(&charges);
    let program = Program::with_handler(move |request: &Recorded| {
        let body = request.json();
        let mut seen = seen.lock();
        let taken = seen.0.take(&body);
        if request.header("x-claude-code-agent-id").is_some() {
            seen.1.push(taken);
        }
        answer(&body)
    });
    let prompt = format!("{}\nnow fork", "a word or two ".repeat(14_300));
    let mut command = program.command(["-p", "--output-format", "stream-json", "--verbose"]);
    let mut child =
        command.env("CLAUDE_CODE_FORK_SUBAGENT", "1").stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), prompt.as_bytes()).unwrap();
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let charges = charges.lock().1.clone();
    assert_eq!(charges.len(), FORKS);
    let paid: f64 = charges.iter().map(|charged| charged.cost()).sum();
    let fresh: usize = charges.iter().map(|charged| charged.all()).sum();
    let share = paid / f64::from(u32::try_from(fresh).unwrap());
    assert!(share <= 0.12, "{share}: {charges:?}");
    assert!(charges[0].all() > 200_000, "{charges:?}");
    for later in &charges[1..] {
        assert!(later.written + later.plain < 300, "all that is shared is read: {later:?}");
    }
}

#[test]
fn forks_are_switched_on_by_a_setting_or_a_variable() {
    // D-11
    let offers = |variable: Option<(&str, &str)>, settings: Value| {
        let program = Program::answering([Reply::text("hello")]);
        let settings = settings.to_string();
        let mut command = program.command(["-p", "hi", "--settings", &settings]);
        if let Some((name, value)) = variable {
            command.env(name, value);
        }
        let ended = ended(command.output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        program.server().last().json()["tools"].to_string().contains("- fork: ")
    };
    let setting = |value: &str| json!({"subagents": {"fork": value}});
    let by = |name, value| Some((name, value));
    for (variable, settings, is_on) in [
        (None, json!({}), false),
        (None, setting("off"), false),
        (None, setting("interactive"), false),
        (None, setting("always"), true),
        (by("CLAUDE_CODE_FORK_SUBAGENT", "1"), json!({}), true),
        (by("CLAUDE_CODE_FORK_SUBAGENT", "0"), setting("always"), false),
        (by("FEATURE_FORK_SUBAGENT", "1"), json!({}), false),
        (by("CLAUDE_CODE_COORDINATOR_MODE", "1"), setting("always"), false),
    ] {
        assert_eq!(offers(variable, settings.clone()), is_on, "{variable:?} {settings}");
    }
}
