//! Rules on names of agents, and names that are none: every spelling that leads to an agent is under the rule.

use centurion_engine::{OpenError, Session, Start};
use centurion_permissions::Mode;
use centurion_protocol::{SeededWorld, World};
use serde_json::{Value, json};

use crate::agent_stage::{agent, message};
use crate::bench::{Bench, Watcher};

/// A call of the Agent tool that names no type, or one.
fn start(kind: Option<&str>, tool: &str) -> Value {
    let mut input = json!({"description": "a job", "prompt": "@@child"});
    if let Some(kind) = kind {
        input["subagent_type"] = json!(kind);
    }
    json!({"tool": tool, "input": input})
}

/// An agent by all that leads to it, and rules that mean it.
struct Known {
    calls: &'static [Option<&'static str>],
    rules: &'static [&'static str],
}

const KNOWN: [Known; 3] = [
    Known {
        calls: &[
            Some("centurion-guide"),
            Some("claude-code-guide"),
            Some("Centurion_Guide"),
            Some("claude code guide"),
        ],
        rules: &[
            "Agent(centurion-guide)",
            "Agent(claude-code-guide)",
            "Task(Claude_Code Guide)",
            "Agent(claude*)",
            "Agent(*-guide)",
            "Agent(Explore, CENTURION_*)",
        ],
    },
    Known {
        calls: &[None, Some(""), Some("general-purpose"), Some("worker"), Some("General_Purpose")],
        rules: &[
            "Agent(general-purpose)",
            "Agent(general*)",
            "Agent(worker)",
            "Agent(work*)",
            "Task(GENERAL PURPOSE)",
            "Agent(*)",
            "Agent",
            "Task",
        ],
    },
    Known {
        calls: &[Some("code-reviewer"), Some("Code Reviewer"), Some("code_reviewer")],
        rules: &["Agent(Code_Reviewer)", "Agent(code*)", "Agent(*reviewer)", "Agent(c*r)"],
    },
];

#[tokio::test(start_paused = true)]
async fn a_deny_rule_on_any_spelling_of_an_agent_holds_for_every_spelling() {
    // D-20, D-50
    for known in &KNOWN {
        for call in known.calls {
            let free = bench(&json!([[start(*call, "Agent")], "done"]));
            assert_eq!(free.run("@@lead").await.agent_ids().len(), 1, "{call:?} starts one");
            for rule in known.rules {
                for (tool, mode) in
                    [("Agent", Mode::AcceptEdits), ("Task", Mode::BypassPermissions)]
                {
                    let mut bench = bench(&json!([[start(*call, tool)], "done"]));
                    (bench.deny, bench.mode) = (*rule, mode);
                    let told = bench.run("@@lead").await;
                    assert_eq!(told.agent_ids().len(), 0, "{rule} on {tool} {call:?}");
                }
            }
        }
    }
}

fn bench(lead: &Value) -> Bench {
    let bench = Bench::cast(&json!({"lead": lead, "child": ["there"]}));
    bench.agent("code-reviewer", "", "Review.");
    bench
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_the_users_with_another_ones_second_name_is_not_meant() {
    let mut bench = bench(&json!([[start(Some("worker"), "Agent")], "done"]));
    bench.agent("worker", "", "Work.");
    bench.deny = "Agent(general-purpose)";
    assert_eq!(bench.run("@@lead").await.agent_ids().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_type_was_denied_meanwhile_is_not_set_to_work_again() {
    let resume = json!({"tool": "Agent", "input": {"description": "x", "prompt": "@@again", "resume": "bob"}});
    for call in [message("bob", "@@again"), resume] {
        let mut bench = Bench::cast(&json!({
            "lead": [[agent("code-reviewer", "@@child", &json!({"name": "bob"}))], "done"],
            "child": ["there"],
            "later": [[call], "done"],
            "again": ["once more"],
        }));
        bench.agent("code-reviewer", "", "Review.");
        let told = bench.run("@@lead").await;
        bench.deny = "Agent(Code*)";
        let later = bench.resume(&told, "@@later").await;
        assert!(later.agent_ids().is_empty(), "{:?}", later.results());
        let said = later.main_texts().concat();
        assert!(said.contains("rule") && !said.contains("once more"), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_does_not_run_as_an_agent_that_a_rule_denies() {
    for (name, rule) in [
        ("Explore", "Agent(explore)"),
        ("claude-code-guide", "Agent(centurion-guide)"),
        ("centurion-guide", "Agent(claude*)"),
    ] {
        let mut bench = Bench::cast(&json!({"lead": ["hi"]}));
        bench.knows_agents(move |agents| agents.main = Some(name.to_owned()));
        bench.deny = rule;
        let watcher = std::sync::Arc::new(Watcher::default());
        let start = Start::New(SeededWorld::new(1).session_id());
        let opened = Session::open(bench.options(start, None, &watcher)).await;
        let Err(error) = opened else { panic!("{name}: it opened") };
        assert!(matches!(&error, OpenError::DeniedAgent(denied) if denied == name), "{error}");
        assert!(error.to_string().contains("deny rule"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_that_are_paths_are_refused_and_it_is_said_why() {
    // D-60
    let named = |name: &str| agent("general-purpose", "@@child", &json!({"name": name}));
    let team = |name: &str| agent("general-purpose", "@@child", &json!({"team_name": name}));
    let bench = Bench::cast(&json!({
        "lead": [
            [named("a\\b"), named("a/b"), named("a..b"), named("a\u{7}b"),
             message("a\\b", "hello"), message("../x", "hello"), team("a\\b")],
            [named("Bob the 2nd")],
            "done",
        ],
        "child": ["there"],
    }));
    let told = bench.run("@@lead").await;
    let results = told.results();
    let reasons = ["`\\`", "`/`", "`..`", "control character", "`\\`", "`/`", "is no name"];
    for ((text, is_error), reason) in results.iter().zip(reasons) {
        assert!(*is_error && text.contains(reason), "{reason}: {text}");
    }
    assert!(!results[7].1, "blanks are good: {:?}", results[7]);
    assert_eq!(told.agent_ids().len(), 1);
}
