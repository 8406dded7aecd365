//! Forks, as a provider with a cache sees them.

use std::process::Stdio;
use std::sync::Arc;

use centurion_testkit::{Recorded, Reply, sse};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cache::{Cache, Charged};
use crate::program::{Program, call, ended};

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

/// A body without the marks for a provider's cache, which move from request to request, and without its messages.
pub(crate) fn taken_apart(body: &Value) -> (Value, Vec<Value>) {
    fn unmark(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(unmark);
            }
            Value::Array(values) => values.iter_mut().for_each(unmark),
            _ => {}
        }
    }
    let mut rest = body.clone();
    unmark(&mut rest);
    let messages = rest.as_object_mut().unwrap().remove("messages").unwrap();
    (rest, messages.as_array().unwrap().clone())
}

#[test]
fn whole_requests_of_forks_are_their_parents_up_to_the_last_message_also_when_they_are_woken() {
    // S-263, I-11
    let program = Program::with_handler(move |request: &Recorded| {
        let body = request.json();
        let said = body["messages"].to_string();
        if request.header("x-claude-code-agent-id").is_some() {
            return Reply::text("Scope: done");
        }
        let fork = |id: &str, prompt: &str| {
            let input = json!({"description": "a branch", "prompt": prompt});
            sse::tool_use(id, "Agent", input)
        };
        let is_told = said.contains("<task-notification>");
        let agent = said.split("agentId: ").nth(1).map(|rest| &rest[..17]);
        match (agent, is_told) {
            (None, _) => {
                Reply::blocks([fork("toolu_1", "look at one"), fork("toolu_2", "look at two")])
            }
            (Some(agent), true) if !said.contains("MORE-WORK") => {
                let id = agent.trim_end_matches(|it: char| !it.is_ascii_hexdigit());
                call(
                    "toolu_3",
                    "SendMessage",
                    json!({"to": id, "message": "MORE-WORK", "summary": "more"}),
                )
            }
            _ => Reply::text("heard"),
        }
    });
    let flags = ["-p", "begin", "--effort", "low", "--max-thinking-tokens", "5000", "--verbose"];
    let mut command = program.command(flags);
    let ended = ended(command.env("CLAUDE_CODE_FORK_SUBAGENT", "1").output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let requests = program.server().requests();
    let is_of_agent = |it: &&Recorded| it.header("x-claude-code-agent-id").is_some();
    let of_forks: Vec<Value> = requests.iter().filter(is_of_agent).map(Recorded::json).collect();
    let (parent, before) = taken_apart(&requests[0].json());
    assert!(parent["thinking"].is_object() && !parent["output_config"].is_null(), "{parent}");
    let woken = |body: &&Value| body.to_string().contains("MORE-WORK");
    assert_eq!((of_forks.len(), of_forks.iter().filter(woken).count()), (3, 1));
    let first = taken_apart(&of_forks[0]).1;
    for body in &of_forks {
        let (rest, messages) = taken_apart(body);
        assert_eq!(rest, parent, "all but the messages");
        assert!(messages.starts_with(&before), "what the parent had sent");
        // The parent's answer, too; and what follows differs in the directive alone.
        assert_eq!(messages[before.len()], first[before.len()]);
        let [opening, directive] = [0, 1].map(|from_end| {
            let blocks = messages[before.len() + 1]["content"].as_array().unwrap();
            if from_end == 0 {
                json!(blocks[..blocks.len() - 1])
            } else {
                blocks.last().unwrap().clone()
            }
        });
        let blocks = first[before.len() + 1]["content"].as_array().unwrap();
        assert_eq!(opening, json!(blocks[..blocks.len() - 1]));
        assert!(directive.to_string().contains("FORK_DIRECTIVE: look at"), "{directive}");
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
