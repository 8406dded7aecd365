//! What comes back of an agent: which fields for hosts, which text for the model, once for each run.

use serde_json::{Value, json};

use crate::agent_stage::{LAST_AGENT, agent, field, message, starts, waits};
use crate::bench::{Bench, Told};

fn read(file: &str) -> Value {
    json!({"tool": "Read", "input": {"file_path": file}})
}

/// Every field of some data, in order.
fn keys(data: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = data.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// The results in the last request of the main agent, as the model reads them.
fn read_by_model(told: &Told) -> Vec<Value> {
    let asked = told.asked.iter().rfind(|it| it.agent.is_none()).unwrap();
    let blocks = asked.messages.as_array().unwrap().iter();
    let blocks = blocks.flat_map(|it| it["content"].as_array().unwrap().clone());
    blocks.filter(|block| block["type"] == "tool_result").collect()
}

/// An agent that takes two requests of known size.
fn finder(more: &Value) -> Bench {
    let usage = |input: u64, output: u64| json!({"input_tokens": input, "output_tokens": output});
    let bench = Bench::cast(&json!({
        "lead": [[agent("general-purpose", "@@child", more)], "went on", "heard"],
        "child": [
            {"blocks": ["I look.", read("a.txt")], "usage": usage(100, 10), "latency_ms": 1_000},
            {"text": "found it", "usage": usage(200, 20), "latency_ms": 2_000},
        ],
    }));
    bench.file("a.txt", "alpha\n");
    bench
}

#[tokio::test(start_paused = true)]
async fn a_report_that_was_waited_for_has_the_known_fields() {
    // S-184, S-185, S-308, S-309, D-39
    let told = finder(&json!({})).run("@@lead").await;
    let data = told.agent_results()[0];
    let known = "agentId agentType canContinueAgent content cumulativeUsage effective evidence modelsUsed \
                 notification outcome outputFile prompt resolvedModel status toolStats toolsUsed \
                 totalDurationMs totalTokens totalToolUseCount usage";
    assert_eq!(keys(data), known.split_whitespace().collect::<Vec<_>>());
    assert_eq!(data["status"], "completed");
    assert_eq!(data["content"], json!([{"type": "text", "text": "found it"}]));
    assert_eq!(data["agentId"], json!(told.agent_ids()[0]));
    assert_eq!(data["prompt"], "@@child");
    assert_eq!(data["totalToolUseCount"], 1);
    assert_eq!(data["totalTokens"], 220, "the last request and its answer");
    assert_eq!(data["usage"]["input_tokens"], 200);
    assert_eq!(data["cumulativeUsage"]["input_tokens"], 300, "all of them together");
    let duration = data["totalDurationMs"].as_u64().unwrap();
    assert!((3_000..4_000).contains(&duration), "{duration}");
}

#[tokio::test(start_paused = true)]
async fn a_launch_in_the_background_has_the_known_fields_and_says_how_it_continues() {
    // S-308, S-310, S-315, S-316
    let bench = finder(&json!({"run_in_background": true}));
    let told = bench.run("@@lead").await;
    let data = told.agent_results()[0];
    let known = "agentId agentType canContinueAgent canReadOutputFile description isAsync outputFile prompt \
                 resolvedModel status";
    assert_eq!(keys(data), known.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&data["status"], &data["isAsync"]), (&json!("async_launched"), &json!(true)));
    assert_eq!((&data["description"], &data["prompt"]), (&json!("a job"), &json!("@@child")));
    assert_eq!(data["canReadOutputFile"], true);
    let text = told.results()[0].0.clone();
    let file = data["outputFile"].as_str().unwrap();
    assert!(text.contains(&format!("output_file: {file}")), "{text}");
    assert!(text.contains("You will be told when it has ended: do not wait"), "{text}");
    assert!(text.contains("You may Read that file"), "{text}");
    assert!(std::fs::read_to_string(file).unwrap().contains("found it"));
}

#[tokio::test(start_paused = true)]
async fn data_is_for_hosts_and_text_for_the_model() {
    // S-313, S-314, D-36
    let bench = Bench::cast(&json!({
        "lead": [[waits("@@child")], [agent("Explore", "@@child", &json!({}))], "done"],
        "child": ["found it"],
    }));
    let told = bench.run("@@lead").await;
    let read = read_by_model(&told);
    let [usual, once] = &read[..] else { panic!("{read:?}") };
    for block in [usual, once] {
        assert_eq!(
            keys(block),
            ["content", "tool_use_id", "type"],
            "nothing but the text: {block}"
        );
        assert!(block.to_string().contains("found it"), "{block}");
        assert!(!block.to_string().contains("cumulativeUsage"), "{block}");
    }
    let id = &told.agent_ids()[0];
    let offer = format!("SendMessage with to: '{id}' resumes this agent");
    assert!(usual.to_string().contains(&offer), "{usual}");
    assert!(
        !once.to_string().contains("SendMessage"),
        "one that answers once is no address: {once}"
    );
    let kept = told.lines().into_iter().filter(|line| line["toolUseResult"]["agentId"].is_string());
    assert_eq!(kept.count(), 2, "the transcript keeps both");
}

#[tokio::test(start_paused = true)]
async fn what_fails_later_leaves_the_first_result_as_it_was() {
    // S-222, S-317
    let mut bench = Bench::cast(&json!({
        "lead": [[waits("@@work")], [message(LAST_AGENT, "@@more")], "waiting", "heard"],
        "work": ["first"],
        "more": [{"error": {"status": 500, "type": "api_error"}, "blocks": []}],
    }));
    bench.retries = 0;
    let told = bench.run("@@lead").await;
    let [news] = told.news()[..] else { panic!("{:?}", told.news()) };
    assert_eq!(field(news, "outcome"), Some("api_error"), "{news}");
    let main = told.asked.iter().filter(|it| it.agent.is_none());
    let main: Vec<&Vec<Value>> = main.map(|it| it.messages.as_array().unwrap()).collect();
    assert!(main[1][2].to_string().contains("first"), "{}", main[1][2]);
    assert!(
        main[1..].iter().all(|messages| messages[..3] == main[1][..3]),
        "the same bytes for ever"
    );
    assert_eq!(told.agent_results()[0]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_run_has_one_report_however_much_was_said() {
    // S-318, D-6
    let wordy = json!([
        ["first thoughts", read("a.txt")],
        ["second thoughts", read("a.txt")],
        "the report"
    ]);
    let bench = Bench::cast(&json!({
        "lead": [[waits("@@child")], [starts("@@child")], "went on", "heard"],
        "child": wordy,
    }));
    bench.file("a.txt", "alpha\n");
    let told = bench.run("@@lead").await;
    let texts = told.main_texts().join("\n");
    assert_eq!(texts.matches("the report").count(), 2, "one for each: {texts}");
    assert!(!texts.contains("thoughts"), "{texts}");
    assert_eq!(told.of("system", Some("task_notification")).len(), 2);
    for id in told.agent_ids() {
        let record = std::fs::read_to_string(told.agent_transcript(&id)).unwrap();
        assert_eq!(record.matches("\"subtype\":\"agent_end\"").count(), 1, "{record}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_agents_were_not_allowed_to_do_is_in_the_result_that_tells_of_them() {
    let write =
        |file: &str| json!([{"tool": "Write", "input": {"file_path": file, "content": "y"}}]);
    let mut bench = Bench::cast(&json!({
        "lead": [[starts("@@beside")], "meanwhile", [waits("@@child")], "heard"],
        "beside": [{"blocks": write("one.txt"), "latency_ms": 5_000}, [waits("@@deep")], "could not"],
        "deep": [write("two.txt"), "could not either"],
        "child": [write("three.txt"), "nor could I"],
    }));
    bench.mode = centurion_permissions::Mode::Default;
    let told = bench.run("@@lead").await;
    let results = told.of("result", None);
    let files = |result: &Value| -> Vec<String> {
        let denials = result["permission_denials"].as_array().unwrap();
        denials
            .iter()
            .map(|it| it["tool_input"]["file_path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(files(results[0]), [] as [&str; 0], "nobody had ended");
    assert_eq!(files(results[1]), ["one.txt", "two.txt", "three.txt"], "each once: {results:?}");
    assert_eq!(results[1]["permission_denials"][0]["tool_name"], "Write");
}
