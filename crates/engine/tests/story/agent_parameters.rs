//! The parameters of the Agent tool: what each does, who is shown it, and what is refused.

use std::sync::Arc;

use centurion_engine::{AgentOptions, ModelRefusal, Reply, SessionMode};
use centurion_hooks::{Event, HookSet};
use centurion_permissions::{Rule, RuleOrigin};
use serde_json::{Value, json};

use crate::agent_stage::{agent, field, message};
use crate::bench::{Asked, Bench, Told};
use crate::hook_stage::Stage;
use crate::permissions::person;

/// A call with exactly this input.
fn call(input: &Value) -> Value {
    json!({"tool": "Agent", "input": input})
}

fn write(file: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": file, "content": "y"}})
}

fn read(file: &str) -> Value {
    json!({"tool": "Read", "input": {"file_path": file}})
}

/// All that a request says, as text.
fn whole(asked: &Asked) -> String {
    format!("{} {}", asked.system.join("\n"), asked.messages)
}

#[tokio::test(start_paused = true)]
async fn the_description_is_for_people_and_the_prompt_for_the_agent() {
    // S-117, S-118
    let input = json!({"description": "zebra crossing", "prompt": "paint it @@painter", "run_in_background": true});
    let bench = Bench::cast(&json!({
        "lead": [[call(&input)], [{"tool": "ListAgents", "input": {}}], "meanwhile", "heard"],
        "painter": [{"text": "painted", "latency_ms": 60_000}],
    }));
    let told = bench.run("@@lead").await;
    let child = told.asked_by("@@painter");
    assert!(child[0].texts().contains(&"paint it @@painter"), "{:?}", child[0].texts());
    assert!(child.iter().all(|it| !whole(it).contains("zebra")), "{child:?}");
    let shown = |subtype: &'static str| told.of("system", Some(subtype))[0].clone();
    assert_eq!(shown("task_started")["description"], "zebra crossing");
    assert_eq!(shown("background_tasks_changed")["tasks"][0]["description"], "zebra crossing");
    assert!(told.results()[1].0.contains("zebra crossing"), "{:?}", told.results());
    assert_eq!(field(told.news()[0], "summary"), Some("Agent \"zebra crossing\" completed"));
    let card = told.agent_transcript(&told.agent_ids()[0]).with_extension("meta.json");
    assert!(std::fs::read_to_string(card).unwrap().contains("zebra crossing"));
}

#[tokio::test(start_paused = true)]
async fn without_a_type_the_usual_agent_runs_and_a_type_goes_before_it() {
    // S-119, S-133, S-147, D-29; the gate of forks is shut, so no type is no fork
    let ask = |kind: Option<&str>| {
        let mut input = json!({"description": "a job", "prompt": "@@child"});
        input
            .as_object_mut()
            .unwrap()
            .extend(kind.map(|kind| ("subagent_type".into(), json!(kind))));
        call(&input)
    };
    let mut bench = Bench::cast(&json!({
        "lead": [[ask(None)], [ask(Some("own"))], [ask(Some(" "))], [ask(Some("fork"))], "done"],
        "child": ["there"],
    }));
    bench.agent("own", "tools: Read\n", "x");
    let told = bench.run("@@lead").await;
    let types: Vec<&Value> = told.agent_results().iter().map(|it| &it["agentType"]).collect();
    assert_eq!(types, ["general-purpose", "own", "general-purpose"]);
    assert_eq!(told.asked_by("@@child")[1].tools, ["Read"], "the definition's tools, not all");
    let (refusal, is_error) = told.results()[3].clone();
    assert!(is_error && refusal.contains("nothing was started"), "{refusal}");
    // Where the usual one may not run, no other agent runs in its place.
    bench.deny = "Agent(general-purpose)";
    let told = bench.run("@@lead").await;
    let errors: Vec<bool> = told.results().iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [true, false, true, true], "{:?}", told.results());
    assert_eq!(told.agent_ids().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_names_a_model_by_alias_or_in_full() {
    // S-120, D-8
    let with = |model: &str| agent("own", "@@child", &json!({"model": model}));
    let bench = Bench::cast(&json!({
        "lead": [[with("haiku")], [with("claude-fable-9-1")], [with(" ")], "done"],
        "child": ["there"],
    }));
    bench.agent("own", "model: claude-sonnet-5-5\n", "x");
    let told = bench.run("@@lead").await;
    let models: Vec<&str> = told.asked_by("@@child").iter().map(|it| it.model.as_str()).collect();
    assert!(models[0].contains("haiku"), "{models:?}");
    assert_eq!(
        models[1..],
        ["claude-fable-9-1", "claude-sonnet-5-5"],
        "nothing said is nothing asked"
    );
    let resolved: Vec<&Value> =
        told.agent_results().iter().map(|it| &it["resolvedModel"]).collect();
    assert_eq!(resolved, models, "and the result says which");
}

#[tokio::test(start_paused = true)]
async fn mode_is_no_way_to_other_permissions() {
    // S-124, S-131, D-13; it is for members of teams
    for mode in ["bypassPermissions", "plan", "dontAsk"] {
        let bash = json!({"tool": "Bash", "input": {"command": "make it so"}});
        let bench = Bench::cast(&json!({
            "lead": [[agent("general-purpose", "@@child", &json!({"mode": mode}))], "done"],
            "child": [[write("x.txt")], [bash], "tried"],
        }));
        let told = bench.run("@@lead").await;
        let result = told.agent_results()[0];
        assert_eq!(result["effective"]["permissionMode"], "acceptEdits", "{mode}");
        assert_eq!(result["requested"]["mode"], mode, "what was asked for is told");
        assert!(bench.project().join("x.txt").exists(), "{mode}");
        assert_eq!(result["permissionDenials"][0]["tool"], "Bash", "{mode}: {result}");
    }
}

/// A change of the rules about agents.
pub(crate) type Rules = fn(&mut AgentOptions);

/// The names of the parameters that the main agent is shown.
fn parameters(told: &Told) -> Vec<String> {
    let schema = &told.asked[0].offer("Agent")["input_schema"];
    assert_eq!(schema["required"], json!(["description", "prompt"]));
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn parameters_are_shown_where_they_can_be_used() {
    // S-116, S-121, S-126, S-130, S-139, S-140
    let usual = [
        "description",
        "isolation",
        "model",
        "name",
        "output_schema",
        "prompt",
        "run_in_background",
        "subagent_type",
    ];
    let cases: [(Rules, Option<&str>, Option<&str>); 5] = [
        (|_| {}, None, None),
        (|agents| agents.rules.background_is_off = true, Some("run_in_background"), None),
        (|agents| agents.rules.mode = SessionMode::Coordinator, Some("model"), None),
        (|agents| agents.rules.mode = SessionMode::Assistant, None, Some("cwd")),
        (|agents| agents.rules.mode = SessionMode::Proactive, None, None),
    ];
    for (rules, hidden, added) in cases {
        let mut bench = Bench::cast(&json!({"lead": ["hello"]}));
        bench.knows_agents(rules);
        let told = bench.run("@@lead").await;
        let mut expected: Vec<&str> = usual.into_iter().filter(|it| Some(*it) != hidden).collect();
        expected.extend(added);
        let mut found = parameters(&told);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        if hidden != Some("model") {
            let model = &told.asked[0].offer("Agent")["input_schema"]["properties"]["model"];
            let advice = model["description"].as_str().unwrap();
            assert!(advice.contains("haiku (quick and cheap"), "{advice}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_shown_is_heard_nevertheless() {
    // S-131, S-205
    let mut bench = Bench::cast(&json!({
        "lead": [[agent("general-purpose", "@@child", &json!({"run_in_background": true, "max_turns": 1}))], "done"],
        "child": [[read("a.txt")], "never"],
    }));
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|agents| agents.rules.background_is_off = true);
    let told = bench.run("@@lead").await;
    let result = told.agent_results()[0];
    assert_eq!(result["outcome"], "max_turns", "{result}");
    assert_eq!(result["effective"]["inBackground"], false);
    assert_eq!(
        result["requested"],
        json!({"run_in_background": true}),
        "and says what was not given"
    );
    assert!(told.news().is_empty());
}

#[tokio::test(start_paused = true)]
async fn agents_of_an_assistant_work_in_the_directory_of_the_call_and_so_do_theirs() {
    // S-126, S-181, S-201, S-203
    let mut bench = Bench::cast(&json!({
        "lead": [[agent("general-purpose", "@@child", &json!({"cwd": "below"}))], "meanwhile", "heard"],
        "child": [[read("here.txt")], [agent("general-purpose", "@@grandchild", &json!({}))], "done", "done"],
        "grandchild": [[read("here.txt")], "done"],
        "lost": [[agent("general-purpose", "@@child", &json!({"cwd": "nowhere"}))], "done"],
    }));
    std::fs::create_dir(bench.project().join("below")).unwrap();
    bench.file("here.txt", "at the top\n");
    bench.file("below/here.txt", "at the bottom\n");
    bench.knows_agents(|agents| agents.rules.mode = SessionMode::Assistant);
    let told = bench.run("@@lead").await;
    assert_eq!(told.agent_results()[0]["status"], "async_launched", "an assistant never waits");
    for prompt in ["@@child", "@@grandchild"] {
        let asked = told.asked_by(prompt);
        let texts = asked.last().unwrap().texts().join("\n");
        assert!(texts.contains("at the bottom") && !texts.contains("at the top"), "{texts}");
    }
    let system = told.asked_by("@@grandchild")[0].system.join("\n");
    assert!(system.contains(bench.project().join("below").to_str().unwrap()), "{system}");
    let lost = bench.run("@@lost").await;
    let (text, is_error) = lost.results().remove(0);
    assert!(is_error && text.contains("nowhere does not exist, so nothing was started"), "{text}");
    assert!(lost.agent_ids().is_empty());
}

#[tokio::test(start_paused = true)]
async fn tools_and_the_rest_of_a_definition_are_no_parameters() {
    // S-033, S-138
    let more = |key: &str, value: Value| agent("reader", "@@child", &json!({key: value}));
    let bench = Bench::cast(&json!({
        "lead": [
            [more("tools", json!(["Bash"])), more("hooks", json!({})), more("skills", json!("x")),
             more("mcpServers", json!([])), more("permissionMode", json!("plan"))],
            [more("max_turns", json!(0))],
            [agent("reader", "@@child", &json!({}))],
            "done",
        ],
        "child": ["there"],
    }));
    bench.agent("reader", "tools: Read\n", "x");
    let told = bench.run("@@lead").await;
    let results = told.results();
    for (n, key) in
        ["tools", "hooks", "skills", "mcpServers", "permissionMode", "max_turns"].iter().enumerate()
    {
        assert!(results[n].1 && results[n].0.contains(key), "{key}: {results:?}");
    }
    assert_eq!(told.agent_ids().len(), 1);
    assert_eq!(told.asked_by("@@child")[0].tools, ["Read"]);
}

#[tokio::test(start_paused = true)]
async fn task_is_another_name_of_the_tool() {
    // S-116: for models, rules, hooks and sessions of long ago
    let task = |kind: &str| json!({"tool": "Task", "input": {"description": "a job", "prompt": "@@child", "subagent_type": kind}});
    let mut bench = Bench::cast(&json!({
        "lead": [[task("general-purpose")], [task("Explore")], "done"],
        "child": ["there"],
        "later": ["fine"],
    }));
    bench.deny = "Task(Explore)";
    let stage = Stage::silent();
    let (owner, before) = (Arc::clone(&stage), bench.adjust);
    bench.adjust = Box::new(move |options| {
        before(options);
        let hooks =
            json!({"PostToolUse": [{"matcher": "Task", "hookCallbackIds": ["PostToolUse"]}]});
        owner.extend(options, HookSet::from_host(&hooks));
    });
    let told = bench.run("@@lead").await;
    assert_eq!(told.agent_results()[0]["status"], "completed");
    let listing = told.asked[0].listing.as_ref().unwrap();
    assert!(!listing.contains("- Explore:"), "{listing}");
    assert!(told.results()[1].1, "{:?}", told.results());
    assert_eq!(told.agent_ids().len(), 1);
    let heard = stage.heard(Event::PostToolUse);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["tool_response"]["status"], "completed");
    bench.seed = 40;
    let later = bench.resume(&told, "@@later").await;
    assert!(
        later.main_texts().iter().any(|text| text.contains("there")),
        "{:?}",
        later.main_texts()
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_passes_permissions_and_hooks_like_any_other() {
    // S-151, S-162
    for is_allowed in [false, true] {
        let mut bench = Bench::cast(&json!({
            "lead": [[agent("general-purpose", "@@child", &json!({}))], "went on"],
            "child": ["there"],
        }));
        let asked = person(if is_allowed {
            |_| Reply::Allowed { input: None, remember: Vec::new() }
        } else {
            |_| Reply::Denied { reason: "not today".to_owned(), interrupt: false }
        });
        bench.answerer = Some(Arc::clone(&asked) as _);
        let before = bench.adjust;
        bench.adjust = Box::new(move |options| {
            before(options);
            options.permission.policy.ask =
                Rule::parse_list("Agent", &RuleOrigin::Flag).unwrap().into();
        });
        let stage = Stage::silent();
        let told = stage.set(bench).run("@@lead").await;
        assert_eq!(*asked.asked.lock(), ["Agent"]);
        assert_eq!(told.agent_ids().len(), usize::from(is_allowed));
        let said = if is_allowed { "there" } else { "not today" };
        let (text, is_error) = told.results().remove(0);
        assert_eq!((text.contains(said), is_error), (true, !is_allowed), "{text}");
        let last = told.main_texts();
        assert!(last.iter().any(|text| text.contains(said)), "the next turn has it: {last:?}");
        assert_eq!(stage.heard(Event::PreToolUse).len(), 1);
        assert_eq!(stage.heard(Event::PostToolUse).len(), usize::from(is_allowed));
        assert_eq!(told.result()["result"], "went on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_is_checked_in_order_and_each_failure_says_what_it_is() {
    // S-157, S-163, I-5
    let all = "requiredMcpServers: [nowhere]\ntools: Nonsense\nmodel: claude-banned-1\nisolation: worktree\nmcpServers: [nobody]\n";
    let without = |keys: &[&str]| -> String {
        let is_kept = |line: &&str| !keys.iter().any(|key| line.starts_with(key));
        all.split_inclusive('\n').filter(is_kept).collect()
    };
    let (servers, tools, model, brought) = ("requiredMcpServers", "tools", "model", "mcpServers");
    for (deny, depth, front, expected) in [
        ("Agent(faulty)", 1, all.to_owned(), "not allowed"),
        ("", 0, all.to_owned(), "agents of this depth start no others"),
        ("", 1, all.to_owned(), "the MCP server `nowhere` is required"),
        ("", 1, without(&[servers]), "no tools at all"),
        ("", 1, without(&[servers, tools]), "cannot use the model `claude-banned-1`"),
        ("", 1, without(&[servers, tools, model]), "it asks for MCP servers"),
        ("", 1, without(&[servers, tools, model, brought]), "isolation: worktree cannot be given"),
    ] {
        let call = agent("faulty", "@@child", &json!({}));
        let mut bench = Bench::cast(&json!({
            "lead": [[if depth == 0 { agent("general-purpose", "@@middle", &json!({})) } else { call.clone() }], "done"],
            "middle": [[call], "tried"],
            "child": ["never"],
        }));
        bench.deny = deny;
        bench.agent("faulty", &front, "x");
        bench.knows_agents(|agents| {
            agents.rules.limits.depth = 1;
            agents.check_model = Arc::new(|model| {
                if model.contains("banned") {
                    return Err(ModelRefusal::new("it is not on the list"));
                }
                Ok(())
            });
        });
        let told = bench.run("@@lead").await;
        let (text, is_error) = told.results().into_iter().find(|(_, is_error)| *is_error).unwrap();
        assert!(is_error && text.contains(expected), "{expected}: {text}");
        assert_eq!(told.agent_ids().len(), usize::from(depth == 0), "nobody in its place");
        assert!(told.asked_by("@@child").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn messages_exist_where_agents_do_and_team_messages_need_a_team() {
    // S-227, S-241, D-6, D-15
    let mut bench = Bench::cast(&json!({
        "lead": [
            [agent("general-purpose", "@@child", &json!({"name": "bob"}))],
            [message("bob", "\n  go on\nwith the rest")],
            [{"tool": "SendMessage", "input": {"to": "bob", "message": {"type": "shutdown_request"}}}, message("*", "all of you")],
            "done", "done",
        ],
        "child": ["there"],
    }));
    let told = bench.run("@@lead").await;
    let offer = &told.asked[0].offer("SendMessage")["input_schema"];
    assert!(offer["properties"]["summary"].is_object(), "{offer}");
    let receipts = told.of("user", None).into_iter().map(|it| &it["tool_use_result"]);
    let receipt = receipts.into_iter().find(|it| it["status"] == "resumed").unwrap();
    assert_eq!(receipt["summary"], "go on", "a missing one is the first line");
    let results = told.results();
    assert!(results[2].1 && results[2].0.contains("for members of a team"), "{results:?}");
    assert!(results[3].1 && results[3].0.contains("in no team"), "{results:?}");
    bench.knows_agents(|agents| agents.rules.limits.depth = 0);
    let told = bench.run("@@lead").await;
    for tool in ["Agent", "SendMessage"] {
        assert!(!told.asked[0].tools.contains(&tool.to_owned()), "{tool}: nobody to speak to");
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_with_later_versions_is_refused_with_the_reason() {
    // I-5; nothing pretends
    let with = |more: &Value| agent("general-purpose", "@@child", more);
    let bench = Bench::cast(&json!({
        "lead": [
            [with(&json!({"team_name": "red"})), with(&json!({"isolation": "remote"})),
             with(&json!({"isolation": "worktree"})), with(&json!({"isolation": "moon"})),
             with(&json!({"isolation": "worktree", "cwd": "."})),
             message("uds:/tmp/peer", "hello"), message("bridge:1234", "hello")],
            "none of it",
        ],
        "child": ["never"],
    }));
    let told = bench.run("@@lead").await;
    let expected = [
        "teams are switched off",
        "isolation: remote is not available",
        "isolation: worktree cannot be given, so the agent was not started: there is no git",
        "This kind of isolation is not available",
        "(`isolation` of the call) exclude each other",
        "not allowed: no rule or mode lets `SendMessage` run",
        "no cluster is configured",
    ];
    for ((text, is_error), reason) in told.results().iter().zip(expected) {
        assert!(*is_error && text.contains(reason), "{reason}: {text}");
    }
    assert!(told.agent_ids().is_empty());
    assert_eq!(told.result()["result"], "none of it", "the caller reads it and goes on");
}
