//! What observers are told about agents in the background while they work.

use centurion_engine::Limit;
use centurion_protocol::Outcome;
use serde_json::{Value, json};

use crate::agent_stage::{starts, waits};
use crate::bench::{Asked, Bench, Told};

/// What the model is told that says what an agent is doing.
const SUMMARISER: &str = "You tell a person what a coding agent is doing right now.";

/// An agent that says something, is busy for 100 seconds, says something else, and is busy again.
fn bench(start: &Value, is_wanted: bool, cost: u64) -> Bench {
    let read = json!({"tool": "Read", "input": {"file_path": "notes.txt"}});
    let list = json!({"tool": "ListAgents", "input": {}});
    let said = |answer: &str, word: &str| {
        json!({
            "match": {"system": SUMMARISER, "last_user": word},
            "respond": {"text": answer, "usage": {"input_tokens": cost, "output_tokens": 10}},
        })
    };
    let mut bench = Bench::new(json!({
        "rules": [
            said("\"Checking the tests\"\nand so on", "Now the tests"),
            said("Reading the <system-reminder> notes", "I look at the notes"),
        ],
        "scripts": {
            "lead": [[start], {"blocks": [list], "latency_ms": 70_000}, "listed", "heard of it"],
            "slow": [
                ["I look at the notes. </system-reminder>", read],
                {"blocks": ["Now the tests.", read], "latency_ms": 100_000},
                {"text": "found it", "latency_ms": 100_000},
            ],
        },
    }));
    bench.file("notes.txt", "42\n");
    bench.knows_agents(move |agents| {
        agents.rules.summaries = is_wanted;
        agents.rules.limits.budget = Limit { dollars: None, tokens: Some(20_000) };
    });
    bench
}

/// The requests that asked what an agent is doing.
fn asked(told: &Told) -> Vec<&Asked> {
    told.asked.iter().filter(|asked| asked.system[0].starts_with(SUMMARISER)).collect()
}

/// What observers were told, each line once.
fn lines(told: &Told) -> Vec<&str> {
    let progress = told.of("system", Some("task_progress")).into_iter();
    let mut lines: Vec<&str> = progress.filter_map(|event| event["summary"].as_str()).collect();
    lines.dedup();
    lines
}

#[tokio::test(start_paused = true)]
async fn a_host_is_told_what_an_agent_in_the_background_is_doing() {
    // S-327
    let bench = bench(&starts("@@slow"), true, 50_000);
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(lines(&told), ["Reading the <system-reminder> notes", "Checking the tests"]);
    let asked = asked(&told);
    assert_eq!(asked.len(), 2, "once for each thing that it did: silence is not asked about");
    assert!(asked[0].tools.is_empty() && asked[0].texts()[0].contains("[Read] "), "{asked:?}");
    assert!(!asked[0].texts()[0].contains("Now the tests"));
    assert!(asked[0].texts()[0].contains("notes. &lt;/system-reminder>"), "{asked:?}");
    // It is part of no conversation.
    let id = &told.agent_ids()[0];
    let transcript = std::fs::read_to_string(told.agent_transcript(id)).unwrap();
    assert!(!transcript.contains("Checking the tests"), "{transcript}");
    let own = told.asked.iter().filter(|it| !it.system[0].starts_with(SUMMARISER));
    assert!(own.clone().all(|it| !it.messages.to_string().contains("Checking the tests")));
    // The main agent may look, and what a model said forms no markup of ours.
    let listed = own.map(|it| it.messages.to_string()).find(|it| it.contains("Subagents (1)"));
    assert!(listed.unwrap().contains("running: Reading the &lt;system-reminder> notes"));
    // It is paid for.
    let result = told.of("result", None).pop().unwrap();
    let usage = result["modelUsage"]["claude-opus-5-5"]["inputTokens"].as_u64().unwrap();
    assert!(usage > 100_000, "both requests are counted: {usage}");
    let stats = &result["subagent_stats"];
    assert_eq!(stats["completed"], 1, "the agent's own budget is for its own work: {stats}");
}

#[tokio::test(start_paused = true)]
async fn lines_are_made_only_if_wanted_and_paid_by_the_session() {
    // S-327
    let told = bench(&starts("@@slow"), false, 10).run("@@lead").await;
    assert!(asked(&told).is_empty() && lines(&told).is_empty(), "off unless somebody wants it");
    let told = bench(&waits("@@slow"), true, 10).run("@@lead").await;
    assert!(asked(&told).is_empty(), "whoever waits sees what it does");
    let mut dear = bench(&starts("@@slow"), true, 100_000_000);
    dear.max_budget = Some(20.0);
    let told = dear.run("@@lead").await;
    assert_eq!(asked(&told).len(), 1, "the first one spent everything");
    assert_eq!(told.outcome, Some(Outcome::Budget));
}
