//! One agent hands work to another: waiting for it, continuing without it, speaking to it.

use centurion_protocol::Outcome;
use serde_json::{Value, json};

use crate::agent_stage::{agent, message};
use crate::bench::{Asked, Bench, Told};

/// What the sender of a message was answered, as data.
fn receipt<'a>(told: &'a Told, status: &str) -> &'a Value {
    let results = told.of("user", None).into_iter().map(|event| &event["tool_use_result"]);
    let mut receipts = results.filter(|data| data["msg_id"].is_string());
    receipts.find(|data| data["status"] == status).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_report_and_the_parent_continues_with_it() {
    // S-187, S-188, S-194
    let bench = Bench::cast(&json!({
        "lead": [[agent("general-purpose", "look @@scout", &json!({}))], "all done"],
        "scout": [[{"tool": "Read", "input": {"file_path": "notes.txt"}}], "I found 42."],
    }));
    bench.file("notes.txt", "42\n");
    let told = bench.run("go @@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let [result] = told.agent_results()[..] else { panic!("{:?}", told.agent_results()) };
    assert_eq!(result["status"], "completed");
    assert_eq!(result["content"][0]["text"], "I found 42.");
    assert_eq!(result["toolsUsed"], json!(["Read"]));
    assert_eq!(result["totalToolUseCount"], 1);
    let last = told.last_texts("go @@lead");
    assert!(last.contains("I found 42.") && last.contains("agentId: a"), "{last}");
    // The child saw its prompt and nothing of the parent's conversation.
    let child = told.last_texts("look @@scout");
    assert!(!child.contains("go @@lead"), "{child}");
}

#[tokio::test(start_paused = true)]
async fn several_in_one_message_work_at_the_same_time() {
    // S-179
    let bench = Bench::cast(&json!({
        "lead": [
            [agent("general-purpose", "@@one", &json!({})), agent("general-purpose", "@@two", &json!({}))],
            "both",
        ],
        "one": [{"text": "one is done", "latency_ms": 60_000}],
        "two": [{"text": "two is done", "latency_ms": 60_000}],
    }));
    let started = tokio::time::Instant::now();
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(told.agent_results().len(), 2);
    assert!(started.elapsed() < std::time::Duration::from_secs(90), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_agent_in_the_background_is_told_of_once_when_it_ends() {
    // S-121, S-255, S-197, S-206, S-207, S-210, S-222
    let bench = Bench::cast(&json!({
        "lead": [
            [agent("general-purpose", "@@slow", &json!({"run_in_background": true}))],
            "meanwhile",
            "heard",
        ],
        "slow": [{"text": "slow <b>result</b>", "latency_ms": 30_000}],
    }));
    let told = bench.run("@@lead").await;
    let launched = told.agent_results()[0];
    assert_eq!(launched["status"], "async_launched");
    let last = told.last_texts("@@lead");
    assert_eq!(last.matches("<task-notification>").count(), 1, "{last}");
    assert!(last.contains("Agent \\\"a job\\\" completed"), "{last}");
    assert!(last.contains("slow &lt;b&gt;result&lt;/b&gt;"), "{last}");
    assert_eq!(told.of("result", None).len(), 2, "one for the prompt, one for the news");
    let file = launched["outputFile"].as_str().unwrap();
    let output = std::fs::read_to_string(file).unwrap();
    assert!(
        output.contains("slow <b>result</b>") && output.ends_with("=== completed\n"),
        "{output}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_reaches_a_running_agent_before_its_next_step() {
    // S-122, S-229, S-243
    let bench = Bench::cast(&json!({
        "lead": [
            [agent("general-purpose", "@@worker", &json!({"run_in_background": true, "name": "bob"}))],
            [{"tool": "SendMessage", "input": {"to": "bob", "message": "also count the lines"}}],
            "told it",
            "fine",
        ],
        "worker": [
            {"blocks": [{"tool": "Read", "input": {"file_path": "notes.txt"}}], "latency_ms": 5_000},
            "counted",
        ],
    }));
    bench.file("notes.txt", "x\n");
    let told = bench.run("@@lead").await;
    let [first, second] = told.asked_by("@@worker")[..] else {
        panic!("it has two steps, and the message makes no third: {:?}", told.requests);
    };
    let has_it = |asked: &Asked| asked.texts().concat().contains("also count the lines");
    assert!(!has_it(first), "it was not sent yet: {:?}", first.texts());
    assert!(has_it(second), "the step after the message: {:?}", second.texts());
    assert_eq!(receipt(&told, "queued")["success"], true);
    assert!(!told.last_texts("@@lead").contains("\"origin\""), "the parent sees only its own call");
}

#[tokio::test(start_paused = true)]
async fn a_name_is_an_address_of_an_agent_that_is_waited_for() {
    // S-122
    let bench = Bench::cast(&json!({
        "lead": [
            [
                agent("general-purpose", "@@worker", &json!({"name": "bob"})),
                agent("general-purpose", "@@friend", &json!({})),
            ],
            [message("bob", "@@more")],
            "waiting",
            "done",
        ],
        "worker": [
            {"blocks": [{"tool": "Read", "input": {"file_path": "notes.txt"}}], "latency_ms": 5_000},
            "counted",
        ],
        "friend": [[message("bob", "also count the lines")], "told it"],
        "more": ["second report"],
    }));
    bench.file("notes.txt", "x\n");
    let told = bench.run("@@lead").await;
    // While its parent waits for it, another agent reaches it by name.
    let second = told.asked_by("@@worker")[1].texts().concat();
    assert!(second.contains("also count the lines"), "{second}");
    assert!(told.last_texts("@@friend").contains("Queued: bob"), "{}", told.last_texts("@@friend"));
    // After its end, the name still leads to it.
    let is_bobs = |result: &&&Value| result["content"][0]["text"] == "counted";
    let report = told.agent_results().iter().find(is_bobs).copied().unwrap().clone();
    assert_eq!(receipt(&told, "resumed")["resumedAgentId"], report["agentId"]);
    assert!(told.last_texts("@@lead").contains("second report"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_ended_continues_with_a_message() {
    // S-230, S-232, S-242
    let bench = Bench::cast(&json!({
        "lead": [
            [agent("general-purpose", "@@worker", &json!({}))],
            [{"tool": "SendMessage", "input": {"to": "${re:agentId: (a[0-9a-f]+)}", "message": "@@more"}}],
            "waiting",
            "done",
        ],
        "worker": ["first report"],
        "more": ["second report"],
    }));
    let told = bench.run("@@lead").await;
    let last = told.last_texts("@@lead");
    assert!(last.contains("first report") && last.contains("second report"), "{last}");
    // The second run saw the first.
    let child = told
        .requests
        .iter()
        .rfind(|it| it.to_string().contains("@@more") && it.to_string().contains("@@worker"))
        .unwrap();
    assert!(child.to_string().contains("first report"), "{child}");
    assert_eq!(told.of("system", Some("task_started")).len(), 2);
    // The agent that sent the message reads where the output is, and the file has what came of it.
    let file = receipt(&told, "resumed")["outputFile"].as_str().unwrap();
    let (answer, _) = told.results().into_iter().find(|(it, _)| it.contains("resumed")).unwrap();
    assert!(answer.contains(file), "{answer}");
    let output = std::fs::read_to_string(file).unwrap();
    assert!(output.contains("second report") && output.ends_with("=== completed\n"), "{output}");
}

#[tokio::test(start_paused = true)]
async fn unknown_and_denied_types_start_nothing_and_say_why() {
    // S-152, S-163
    let mut bench = Bench::cast(&json!({
        "lead": [
            [agent("nobody", "x", &json!({})), agent("Explore", "x", &json!({})), agent("fork", "x", &json!({})), agent("Plan", "x", &json!({"isolation": "worktree"}))],
            "none of them",
        ],
    }));
    bench.deny = "Agent(Explore)";
    let told = bench.run("@@lead").await;
    let results = told.results();
    assert!(results.iter().all(|(_, is_error)| *is_error), "{results:?}");
    assert!(results[0].0.contains("Agent type 'nobody' not found"), "{results:?}");
    assert!(!results[0].0.contains("Explore"), "denied ones are not offered: {results:?}");
    assert!(results[1].0.contains("not allowed"), "{results:?}");
    assert!(results[2].0.contains("fork"), "{results:?}");
    assert!(results[3].0.contains("worktree"), "{results:?}");
    assert!(told.of("system", Some("task_started")).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_agents_runs_with_one_slot_and_stops_at_the_depth() {
    // S-158, D-12, I-8
    let mut bench = Bench::cast(&json!({
        "lead": [[agent("general-purpose", "@@down", &json!({}))], "top"],
        "down": [[agent("general-purpose", "@@down", &json!({}))], "level done"],
    }));
    bench.knows_agents(|agents| agents.rules.limits.running = 1);
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(told.of("system", Some("task_started")).len(), 3);
    let depths: Vec<&Value> =
        told.of("system", Some("task_started")).iter().map(|it| &it["spawn_depth"]).collect();
    assert_eq!(depths, [1, 2, 3]);
    assert_eq!(told.result()["subagent_stats"]["max_depth"], 3);
    assert_eq!(told.result()["subagent_stats"]["completed"], 3);
}
