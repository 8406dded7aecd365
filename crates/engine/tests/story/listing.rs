//! What a model is told about the agents that it can start.

use centurion_engine::SessionMode;
use serde_json::json;

use crate::agent_parameters::Rules;
use crate::bench::Bench;

/// The lines about agents in what the main agent is told about its tools.
async fn listed(bench: &Bench) -> Vec<String> {
    let told = bench.run("@@lead").await;
    let text = told.asked[0].listing.clone().unwrap();
    text.lines().filter(|line| line.starts_with("- ")).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn agents_are_listed_one_a_line_in_a_fixed_form() {
    // S-141, S-142, S-143, S-146
    let mut bench = Bench::cast(&json!({"lead": ["hello"]}));
    bench.deny = "Agent(Plan)";
    bench.agent("a-lister", "tools: Read, Grep\n", "x");
    bench.agent("b-taker", "disallowedTools: Bash, Write\n", "x");
    bench.agent("c-all", "forkContext: true\n", "x");
    let lines = listed(&bench).await;
    let line =
        |name: &str| lines.iter().find(|line| line.starts_with(&format!("- {name}:"))).unwrap();
    assert_eq!(line("a-lister"), "- a-lister: test agent (Tools: Read, Grep)");
    assert_eq!(line("b-taker"), "- b-taker: test agent (Tools: All tools except Bash, Write)");
    let context = "- c-all: test agent (Properties: access to current context; Tools: All tools)";
    assert_eq!(line("c-all"), context);
    assert!(!lines.iter().any(|line| line.starts_with("- Plan:")), "denied ones are left out");
    assert!(!lines.iter().any(|line| line.starts_with("- fork:")));
    assert_eq!(lines, listed(&bench).await, "the same agents give the same bytes");
}

#[tokio::test(start_paused = true)]
async fn the_text_says_how_to_use_them_and_speaks_of_the_background_only_where_there_is_one() {
    // S-144, S-145, D-48
    let mut bench = Bench::cast(&json!({"lead": ["hello"]}));
    let told = bench.run("@@lead").await;
    let text = told.asked[0].listing.as_ref().unwrap();
    assert!(text.contains("at the same time") && text.contains("SendMessage"), "{text}");
    assert!(text.contains("an agent in the background has ended"), "{text}");
    bench.knows_agents(|agents| agents.rules.background_is_off = true);
    let told = bench.run("@@lead").await;
    assert!(
        !told.asked[0].listing.as_ref().unwrap().contains("an agent in the background has ended")
    );
}

#[tokio::test(start_paused = true)]
async fn the_text_says_which_way_to_delegate() {
    // S-367; forks and worktrees are spoken of when they are there
    let mut bench = Bench::cast(&json!({"lead": ["hello"]}));
    let told = bench.run("@@lead").await;
    let text = told.asked[0].listing.as_ref().unwrap();
    for advice in [
        "general-purpose where none does",
        "do yourself",
        "Wait for an agent whose report you need next",
        "better than a new agent for the same subject",
    ] {
        assert!(text.contains(advice), "{advice}: {text}");
    }
    assert!(!text.contains("fork") && !text.contains("worktree"), "{text}");
    // No advice about what is not there: no call waits for workers, and nothing runs in the background.
    let cases: [(Rules, &str); 3] = [
        (|agents| agents.rules.background_is_off = true, ""),
        (|agents| agents.rules.mode = SessionMode::Coordinator, ""),
        (|_| {}, "Agent(general-purpose)"),
    ];
    for (change, deny) in cases {
        bench.deny = deny;
        bench.knows_agents(change);
        let told = bench.run("@@lead").await;
        let text = told.asked[0].listing.as_ref().unwrap();
        assert_eq!(text.contains("put an agent in the background"), !deny.is_empty(), "{text}");
        assert_eq!(text.contains("general-purpose where none does"), deny.is_empty(), "{text}");
    }
}
