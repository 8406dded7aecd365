//! Forks: agents that continue from their parent's conversation, byte for byte.

use std::sync::Arc;

use centurion_engine::{Answerer, Ask, ElicitFuture, Elicitation, Reply, ReplyFuture, SessionMode};
use centurion_permissions::{Mode, Rule, RuleOrigin};
use centurion_protocol::{Effort, Outcome, Thinking};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::agent_stage::{LAST_AGENT, agent, message, waits};
use crate::bench::{Asked, Bench, Told};
use crate::hook_stage::Stage;
use crate::skills::denies;

const PLACEHOLDER: &str = "Fork started — processing in background";

/// A bench on which agents can be forked.
fn forking(scripts: &Value) -> Bench {
    let mut bench = Bench::cast(scripts);
    bench.knows_agents(|agents| agents.rules.forks = true);
    bench.file("a.txt", "alpha\n");
    bench
}

/// The same with requests that are not the default: what is different could get lost.
fn thinking(scripts: &Value) -> Bench {
    let mut bench = forking(scripts);
    bench.also(|options| {
        options.settings.thinking = Thinking::Budget(4_321);
        options.settings.effort = Some(Effort::High);
    });
    bench
}

/// What a request asks of its model beside the conversation.
fn asks(asked: &Asked) -> (&str, Option<Effort>, Thinking) {
    (&asked.model, asked.effort, asked.thinking)
}

/// A call without a type.
fn fork(prompt: &str) -> Value {
    json!({"tool": "Agent", "input": {"description": "a branch", "prompt": prompt}})
}

fn read() -> Value {
    json!({"tool": "Read", "input": {"file_path": "a.txt"}})
}

/// The requests of forks, of each in their order.
fn of_forks(told: &Told) -> Vec<&Asked> {
    told.asked.iter().filter(|asked| asked.agent.is_some()).collect()
}

fn blocks(asked: &Asked) -> Vec<Value> {
    let messages = asked.messages.as_array().unwrap();
    messages.last().unwrap()["content"].as_array().unwrap().clone()
}

/// How many bytes two requests begin with in common.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The transcripts of the agents that were started.
fn transcripts(told: &Told) -> Vec<String> {
    let directory = told.transcript.with_extension("").join("subagents");
    let files = std::fs::read_dir(directory).unwrap().flatten().map(|it| it.path());
    let files = files.filter(|path| path.extension().is_some_and(|it| it == "jsonl"));
    files.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn results(told: &Told) -> String {
    format!("{:?}", told.results())
}

#[tokio::test(start_paused = true)]
async fn forks_share_all_bytes_up_to_their_directive_at_any_point_of_any_conversation() {
    // S-263, S-264, S-265, S-266, S-267, S-280, S-091, S-095, I-11
    for turns in [0, 1, 3, 70] {
        for forks in [1, 2, 5] {
            let mut lead: Vec<Value> = (0..turns).map(|_| json!([read()])).collect();
            let mut calls: Vec<Value> = vec![read()];
            calls.extend((0..forks).map(|n| fork(&format!("@@work:{n}"))));
            lead.push(json!(calls));
            lead.extend((0..=forks).map(|_| json!("meanwhile")));
            let told = thinking(&json!({"lead": lead, "work": [[read()], "Scope: it"]}))
                .run("@@lead")
                .await;
            assert_eq!(told.outcome, Some(Outcome::Completed));
            let parent = &told.asked[turns];
            let all = of_forks(&told);
            let firsts: Vec<&&Asked> = all
                .iter()
                .filter(|asked| {
                    blocks(asked).iter().any(|it| it.to_string().contains("FORK_DIRECTIVE"))
                })
                .collect();
            assert_eq!(firsts.len(), forks, "{}", results(&told));
            for asked in &firsts {
                assert_eq!(asked.fixed, parent.fixed);
                assert_eq!(asks(asked), asks(parent));
                assert_eq!(asked.thinking, Thinking::Budget(4_321));
                assert!(asked.wire.starts_with(&parent.wire), "history is the parent's");
                let last = blocks(asked);
                let results = &last[..=forks];
                assert!(results.iter().all(|it| it["type"] == "tool_result"), "{last:?}");
                assert!(results.iter().all(|it| it["content"] == PLACEHOLDER), "{last:?}");
                let rules = last[forks + 1]["text"].as_str().unwrap();
                assert!(rules.starts_with("<fork-boilerplate>"), "{rules}");
                assert!(
                    last.last().unwrap()["text"].as_str().unwrap().starts_with("FORK_DIRECTIVE: ")
                );
                assert_eq!(last.len(), forks + 3, "and nothing else: {last:?}");
            }
            for pair in firsts.windows(2) {
                let shared = common(&pair[0].wire, &pair[1].wire);
                let differs =
                    String::from_utf8_lossy(&pair[0].wire[shared - 30..shared]).into_owned();
                assert!(differs.ends_with("FORK_DIRECTIVE: @@work:"), "{differs}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_continues_from_the_same_bytes_when_it_is_woken_and_in_a_later_process() {
    // S-263, S-274, S-095, I-11
    let bench = thinking(&json!({
        "lead": [[read()], [fork("@@work"), read()], "meanwhile", [message(LAST_AGENT, "@@more")], "said", "heard"],
        "work": [[read()], "Scope: first"],
        "more": [[read()], "Scope: second"],
        "poke": [[message("${arg}", "@@more")], "said", "heard"],
    }));
    let told = bench.run("@@lead").await;
    let id = told.of("system", Some("task_started"))[0]["task_id"].as_str().unwrap().to_owned();
    let all = of_forks(&told);
    assert_eq!(all.len(), 4, "{}", results(&told));
    // Definitions that come meanwhile change what new agents are told, and no fork.
    bench.agent("late", "", "Late.");
    let later = bench.resume(&told, &format!("@@poke:{id}")).await;
    let woken = of_forks(&later);
    assert_eq!(woken.len(), 2, "{}", results(&later));
    for pair in all.windows(2).chain([[all[3], woken[0]].as_slice()]) {
        assert!(
            pair[1].wire.starts_with(&pair[0].wire),
            "{}",
            String::from_utf8_lossy(&pair[1].wire)
        );
        assert_eq!(pair[1].fixed, pair[0].fixed);
        assert_eq!(asks(pair[1]), asks(pair[0]));
    }
    assert_eq!(asks(all[0]), asks(&told.asked[1]), "as its parent's");
    let main = later.asked.iter().find(|asked| asked.agent.is_none()).unwrap();
    assert!(main.listing.as_ref().unwrap().contains("- late:") && main.fixed != woken[0].fixed);
    let said = format!("{:?}", later.of("system", Some("informational")));
    assert!(!said.contains("no longer begins"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn the_transcript_of_a_fork_refers_to_its_parents_and_copies_nothing() {
    let long = "word ".repeat(20_000);
    let bench = forking(&json!({
        "lead": [[fork("@@work")], "meanwhile", "heard"],
        "work": ["Scope: done"],
    }));
    let told = bench.run(&format!("{long}@@lead")).await;
    let directory = told.transcript.with_extension("").join("subagents");
    let files: Vec<_> = std::fs::read_dir(directory).unwrap().flatten().collect();
    let file =
        files.iter().find(|it| it.path().extension().is_some_and(|it| it == "jsonl")).unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert!(!text.contains("word word") && text.len() < 6_000, "{}", text.len());
    assert!(text.contains("\"status\":\"sub_agent_entered\""), "S-278: {text}");
    let spawn: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let context = &spawn["data"]["spec"]["context"];
    let record = context["record"].as_str().unwrap();
    let main = std::fs::read_to_string(&told.transcript).unwrap();
    assert!(main.contains(&format!("\"uuid\":\"{record}\"")));
    assert!(context["bytes"].as_u64().unwrap() > 100_000 && context["digest"].is_string());
    let meta = std::fs::read_to_string(file.path().with_extension("meta.json")).unwrap();
    let start = text.lines().next().unwrap().len() + 1;
    let both = start + meta.len() - "\"finished\":true,".len();
    assert!(both <= 1024, "{start} bytes of record, {both} of both files when it begins");
    let meta: Value = serde_json::from_str(&meta).unwrap();
    assert_eq!((&meta["agentType"], &meta["isFork"]), (&json!("fork"), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn forks_are_off_unless_they_are_switched_on_and_never_in_a_coordinator() {
    // S-261, S-262, D-11, D-29
    let scripts = json!({
        "lead": [[agent("fork", "@@work", &json!({}))], [fork("@@work")], "done"],
        "work": ["found"],
    });
    let told = Bench::cast(&scripts).run("@@lead").await;
    assert!(results(&told).contains("Forks are switched off"), "{}", results(&told));
    let started = told.of("system", Some("task_started"));
    assert_eq!(started.len(), 1);
    assert_eq!(started[0]["subagent_type"], "general-purpose");
    assert!(!told.asked[0].listing.as_ref().unwrap().contains("fork"));

    let mut bench = Bench::cast(&scripts);
    bench.knows_agents(|agents| {
        agents.rules.mode = SessionMode::Coordinator;
        agents.rules.forks = true;
    });
    let told = bench.run("@@lead").await;
    assert!(results(&told).contains("Forks are switched off"), "{}", results(&told));
    let started = told.of("system", Some("task_started"));
    assert!(started.iter().all(|it| it["subagent_type"] != "fork"), "{started:?}");
}

#[tokio::test(start_paused = true)]
async fn where_forks_are_on_no_call_waits() {
    // S-196, S-279
    let bench = forking(&json!({
        "lead": [[waits("@@work"), fork("@@work")], "meanwhile", "heard", "heard"],
        "work": ["found"],
    }));
    let told = bench.run("@@lead").await;
    let started = told.of("system", Some("task_started"));
    assert!(started.len() == 2 && started.iter().all(|it| it["is_backgrounded"] == true));
    let offers = &told.asked[0].offers;
    let tool = offers.iter().find(|tool| tool["name"] == "Agent").unwrap();
    assert!(tool["input_schema"]["properties"].get("run_in_background").is_none());
    assert!(told.asked[0].listing.as_ref().unwrap().contains("- fork: "));
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_not_forked_and_neither_is_who_works_for_one() {
    // S-156, S-271, S-273
    let bench = forking(&json!({
        "lead": [[agent("fork", "@@work", &json!({"name": "bob"}))], "meanwhile", "heard"],
        "work": [[fork("@@deeper")], [agent("fork", "@@deeper", &json!({}))], [waits("@@helper")], "Scope: tried", "Scope: heard"],
        "helper": [[fork("@@deeper")], "helped"],
        "deeper": ["never"],
    }));
    let told = bench.run("@@lead").await;
    let started = told.of("system", Some("task_started"));
    let kinds: Vec<&Value> = started.iter().map(|it| &it["subagent_type"]).collect();
    assert_eq!(kinds, ["fork", "general-purpose"], "{}", results(&told));
    let tools = |agent: Option<&str>| {
        told.asked.iter().find(|asked| asked.agent.as_deref() == agent).unwrap().tools.clone()
    };
    let fork = started[0]["task_id"].as_str();
    assert!(tools(fork).contains(&"Agent".to_owned()) && tools(fork) == tools(None));
    let refused =
        told.asked.iter().filter(|it| it.messages.to_string().contains("forks are not forked"));
    assert!(refused.count() >= 2);
}

#[tokio::test(start_paused = true)]
async fn deny_rules_and_limits_hold_for_forks() {
    let scripts = json!({"lead": [[fork("@@work")], "meanwhile", "heard"], "work": [[{"tool": "Write", "input": {"file_path": "w.txt", "content": "x"}}], "Scope: tried"]});
    let mut denied = forking(&scripts);
    denied.deny = "Agent(fork)";
    let told = denied.run("@@lead").await;
    assert!(results(&told).contains("denied by the rule `Agent(fork)`"), "{}", results(&told));
    assert!(!told.asked[0].listing.as_ref().unwrap().contains("- fork: "));

    let mut other = forking(&scripts);
    other.deny = "Agent(general-purpose)";
    assert!(!of_forks(&other.run("@@lead").await).is_empty(), "a rule about another type");

    let mut asking = forking(&scripts);
    let before = asking.adjust;
    asking.adjust = Box::new(move |options| {
        before(options);
        let rule = Rule::parse("Agent(fork)", RuleOrigin::Session).unwrap();
        options.permission.policy.ask = vec![rule].into();
    });
    let told = asking.run("@@lead").await;
    assert!(of_forks(&told).is_empty(), "nobody is there to be asked: {}", results(&told));

    let mut bound = forking(&scripts);
    bound.deny = "Write";
    bound.run("@@lead").await;
    assert!(!bound.project().join("w.txt").exists(), "I-1");

    let mut deep = Bench::cast(&scripts);
    deep.knows_agents(|agents| {
        agents.rules.forks = true;
        agents.rules.limits.depth = 0;
    });
    assert!(of_forks(&deep.run("@@lead").await).is_empty());

    for wish in [
        json!({"output_schema": {"type": "object"}}),
        json!({"cwd": "/"}),
        json!({"team_name": "red"}),
    ] {
        let bench =
            forking(&json!({"lead": [[agent("fork", "@@work", &wish)], "done"], "work": ["x"]}));
        let told = bench.run("@@lead").await;
        assert!(results(&told).contains("it cannot have"), "{wish}: {}", results(&told));
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_has_the_tag_of_forks_is_not_forked_whatever_its_lineage_is() {
    // S-272: after a compaction, or in a record of another program, the tag is what is left
    let scripts = json!({"lead": [[agent("fork", "@@work", &json!({}))], "done"], "work": ["x"]});
    for (prompt, forks) in [("<fork-boilerplate> @@lead", 0), ("@@lead", 1)] {
        let told = forking(&scripts).run(prompt).await;
        assert_eq!(of_forks(&told).len(), forks, "{prompt}: {}", results(&told));
        assert_eq!(results(&told).contains("forks are not forked"), forks == 0, "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_bound_by_what_binds_the_agent_that_it_comes_from() {
    let reads = |file: &str| json!({"tool": "Read", "input": {"file_path": file}});
    let mut bench = Bench::cast(&json!({
        "lead": [[fork("@@work")], "meanwhile", "heard"],
        "work": [[reads("secret.txt")], [reads("a.txt")], "Scope: tried"],
    }));
    bench.knows_agents(|agents| {
        agents.rules.forks = true;
        agents.main = Some("keeper".to_owned());
    });
    bench.agent("keeper", "tools: Agent, Read(a.txt), SendMessage\n", "Keep to a.txt.");
    bench.file("a.txt", "alpha\n");
    bench.file("secret.txt", "the-secret\n");
    let told = bench.run("@@lead").await;
    let text: String = told.asked.iter().map(|asked| asked.messages.to_string()).collect();
    assert!(text.contains("alpha") && !text.contains("the-secret"), "{}", results(&told));
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_fork_says_what_was_shared_and_a_missed_cache_is_told() {
    let usage = |read: u64| json!({"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 40_000 - read, "cache_read_input_tokens": read});
    for (read, is_missed) in [(39_000, false), (100, true)] {
        let bench = forking(&json!({
            "lead": [{"blocks": [fork("@@work")], "usage": usage(0)}, "meanwhile", "heard"],
            "work": [{"text": "Scope: done", "usage": usage(read)}],
        }));
        let told = bench.run("@@lead").await;
        let warned = told.of("system", Some("informational"));
        let misses: Vec<&&Value> = warned
            .iter()
            .filter(|it| it["content"].to_string().contains("from its cache"))
            .collect();
        assert_eq!(misses.len(), usize::from(is_missed), "{warned:?}");
        if let Some(miss) = misses.first() {
            assert_eq!(miss["agent_id"], told.of("system", Some("task_started"))[0]["task_id"]);
        }
        let news = told.asked.last().unwrap().messages.to_string();
        // All that it sent at first but for the last message.
        let first = of_forks(&told)[0];
        let last = serde_json::to_string(first.messages.as_array().unwrap().last().unwrap());
        let shared = first.fixed.len() + first.wire.len() - last.unwrap().len() - 1;
        let both = format!(
            "<shared_bytes>{shared}</shared_bytes><cache_read_tokens>{read}</cache_read_tokens>"
        );
        assert!(news.contains(&both), "{both}: {news}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_whose_parent_said_a_secret_says_so_when_it_begins_otherwise_later() {
    let bench = forking(&json!({
        "lead": [[fork("@@work")], "meanwhile", "heard"],
        "work": ["Scope: first"],
        "poke": [[message("${arg}", "@@work")], "said", "heard"],
    }));
    let told = bench.run("the key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz @@lead").await;
    let id = told.of("system", Some("task_started"))[0]["task_id"].as_str().unwrap().to_owned();
    let later = bench.resume(&told, &format!("@@poke:{id}")).await;
    assert_eq!(of_forks(&later).len(), 1, "it goes on all the same");
    let said = format!("{:?}", later.of("system", Some("informational")));
    assert!(said.contains("no longer begins with the bytes"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_asks_for_the_conversation_gets_it_beside_a_prompt_and_tools_of_its_own() {
    // S-024, S-278
    let bench = Bench::cast(&json!({
        "lead": [[read()], [agent("judge", "@@judge", &json!({}))], "done"],
        "judge": ["It is right."],
        "poke": [[message("${arg}", "@@judge")], "said", "heard"],
    }));
    bench.file("a.txt", "alpha\n");
    bench.agent("judge", "tools: Read, Grep\nforkContext: true\n", "You judge.");
    let told = bench.run("@@lead").await;
    let asked = of_forks(&told)[0];
    assert!(asked.wire.starts_with(&told.asked[1].wire), "it knows what was said");
    assert!(
        asked.system[0].contains("You judge.") && asked.tools == ["Grep", "Read"],
        "{:?}",
        asked.tools
    );
    let last = blocks(asked);
    assert_eq!(last[0]["content"], PLACEHOLDER);
    assert!(!format!("{last:?}").contains("FORK_DIRECTIVE"));
    let [record] = &transcripts(&told)[..] else { panic!("one agent") };
    assert!(record.contains("\"status\":\"sub_agent_entered\""), "S-278: {record}");
    let id = told.of("system", Some("task_started"))[0]["task_id"].as_str().unwrap().to_owned();
    let later = bench.resume(&told, &format!("@@poke:{id}")).await;
    let woken = of_forks(&later)[0];
    assert!(woken.wire.starts_with(&asked.wire) && woken.fixed == asked.fixed);
    let warned = format!("{:?}", later.of("system", Some("informational")));
    assert!(!warned.contains("no longer begins"), "it never had its parent's prompt: {warned}");
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_told_its_rules_and_the_form_of_its_report() {
    // S-268, S-269, S-279
    let bench =
        forking(&json!({"lead": [[fork("@@work")], "meanwhile", "heard"], "work": ["Scope: x"]}));
    let told = bench.run("@@lead").await;
    let rules = blocks(of_forks(&told)[0])[1]["text"].as_str().unwrap().to_owned();
    for part in [
        "You are not that agent",
        "Do not fork",
        "Instructions above to delegate by default are for the agent above",
        "Do not converse, ask questions or suggest next steps",
        "your own tools",
        "commit your changes before you report",
        "Begin your report with \"Scope:\"",
        "\nScope: ",
        "\nResult: ",
        "\nKey files: ",
        "\nFiles changed: paths with the commit's hash; only if you changed files",
        "\nIssues: only if there are any",
    ] {
        assert!(rules.contains(part), "{part}: {rules}");
    }
    assert!(rules.starts_with("<fork-boilerplate>") && rules.ends_with("</fork-boilerplate>"));
    assert!(told.asked[0].listing.as_ref().unwrap().contains("not for a specialist's role"));
}

/// Says yes, and keeps who asked.
#[derive(Default)]
struct Person(Mutex<Vec<String>>);

impl Answerer for Person {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        self.0.lock().extend(ask.agent.map(|agent| agent.name));
        Box::pin(std::future::ready(Ok(Reply::Allowed { input: None, remember: Vec::new() })))
    }

    fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
        unreachable!("no server is there to ask")
    }
}

#[tokio::test(start_paused = true)]
async fn questions_of_a_fork_reach_the_person_and_say_whose_they_are() {
    // S-270, D-28
    let write = json!({"tool": "Write", "input": {"file_path": "w.txt", "content": "x"}});
    let mut bench = forking(
        &json!({"lead": [[fork("@@work")], "meanwhile", "heard"], "work": [[write], "Scope: x"]}),
    );
    bench.mode = Mode::Default;
    let person = Arc::new(Person::default());
    bench.answerer = Some(Arc::clone(&person) as Arc<dyn Answerer>);
    bench.run("@@lead").await;
    assert!(bench.project().join("w.txt").exists());
    assert_eq!(*person.0.lock(), ["fork"]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_continues_however_little_of_its_start_was_written() {
    // a process that dies at every write of the fork, in the middle of it or behind it
    let bench = forking(&json!({
        "lead": [[read()], [fork("@@work"), read()], "meanwhile", "heard"],
        "work": [[read()], [read()], "Scope: first"],
        "more": ["Scope: second"],
        "poke": [[message("${arg}", "@@more")], "said", "heard"],
    }));
    let told = bench.run("@@lead").await;
    let id = told.of("system", Some("task_started"))[0]["task_id"].as_str().unwrap().to_owned();
    let first = of_forks(&told)[0];
    let shared = memchr::memmem::find(&first.wire, b"FORK_DIRECTIVE").unwrap();
    let path = told.transcript.with_extension("").join(format!("subagents/agent-{id}.jsonl"));
    let (main, whole) = (std::fs::read(&told.transcript).unwrap(), std::fs::read(&path).unwrap());
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', &whole).map(|at| at + 1).collect();
    assert!(ends.len() > 8);
    for (n, end) in ends.iter().enumerate() {
        let next = ends.get(n + 1).copied().unwrap_or(whole.len());
        for cut in [*end, end.midpoint(next)] {
            std::fs::write(&told.transcript, &main).unwrap();
            std::fs::write(&path, &whole[..cut]).unwrap();
            let later = bench.resume(&told, &format!("@@poke:{id}")).await;
            let all = of_forks(&later);
            let asked = all.first().unwrap_or_else(|| panic!("{cut}: {}", results(&later)));
            assert_eq!(asked.wire[..shared], first.wire[..shared], "{cut}");
            assert_eq!(asked.fixed, first.fixed, "{cut}");
            let said = asked.messages.to_string();
            assert_eq!(said.matches("FORK_DIRECTIVE: @@work").count(), 1, "{cut}: {said}");
        }
    }
}

/// A process that died behind the fork's start, with less and less of what its parent had written since its answer.
#[tokio::test(start_paused = true)]
async fn a_fork_continues_however_little_of_its_parents_record_was_written_behind_the_answer() {
    let bench = thinking(&json!({
        "lead": [[read()], [fork("@@work"), read()], "meanwhile", "heard"],
        "work": [[read()], "Scope: first"],
        "more": ["Scope: second"],
        "poke": [[message("${arg}", "@@more")], "said", "heard", "heard"],
    }));
    let told = bench.run("@@lead").await;
    let id = told.of("system", Some("task_started"))[0]["task_id"].as_str().unwrap().to_owned();
    let first = of_forks(&told)[0];
    let shared = memchr::memmem::find(&first.wire, b"FORK_DIRECTIVE").unwrap();
    let path = told.transcript.with_extension("").join(format!("subagents/agent-{id}.jsonl"));
    let about = path.with_extension("meta.json");
    let (main, of_fork) = (std::fs::read(&told.transcript).unwrap(), std::fs::read(&path).unwrap());
    let meta = std::fs::read(&about).unwrap();
    let spawn: Value =
        serde_json::from_slice(of_fork.split(|it| *it == b'\n').next().unwrap()).unwrap();
    let answer = spawn["data"]["spec"]["context"]["record"].as_str().unwrap();
    let answer = memchr::memmem::find(&main, format!("\"uuid\":\"{answer}\"").as_bytes()).unwrap();
    // What requests begin with is written before the fork.
    let prefix = memchr::memmem::find(&main, b"\"subtype\":\"prefix\"").unwrap();
    let from = answer.max(prefix);
    let ends: Vec<usize> =
        memchr::memchr_iter(b'\n', &main).map(|at| at + 1).filter(|end| *end > from).collect();
    assert!(ends.len() > 5, "{ends:?}");
    for (n, end) in ends.iter().enumerate() {
        std::fs::write(&told.transcript, &main[..*end]).unwrap();
        std::fs::write(&path, &of_fork).unwrap();
        match n % 3 {
            0 => std::fs::write(&about, &meta).unwrap(),
            1 => std::fs::write(&about, &meta[..meta.len() / 2]).unwrap(),
            _ => std::fs::remove_file(&about).unwrap_or_default(),
        }
        let later = bench.resume(&told, &format!("@@poke:{id}")).await;
        assert_eq!(later.outcome, Some(Outcome::Completed), "{end}: {}", later.result());
        let all = of_forks(&later);
        let asked = all.first().unwrap_or_else(|| panic!("{end}: {}", results(&later)));
        assert_eq!(asked.wire[..shared], first.wire[..shared], "{end}");
        assert_eq!((&asked.fixed, asks(asked)), (&first.fixed, asks(first)), "{end}");
        let said = asked.messages.to_string();
        assert_eq!(said.matches("FORK_DIRECTIVE: @@work").count(), 1, "{end}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_that_is_resumed_is_no_freer_than_the_agent_that_it_comes_from() {
    // I-1: it comes from an agent that plans, and is woken by one that edits
    let write = json!({"tool": "Write", "input": {"file_path": "w.txt", "content": "x"}});
    let bench = forking(&json!({
        "lead": [[agent("planner", "@@plan", &json!({}))], "meanwhile", "heard"],
        "plan": [[fork("@@work")], "planned", "heard"],
        "work": [[write], "Scope: tried"],
        "poke": [[message("${arg}", "@@work")], "said", "heard"],
    }));
    bench.agent("planner", "permissionMode: plan\n", "Plan.");
    let told = bench.run("@@lead").await;
    let started = told.of("system", Some("task_started"));
    let fork = started.iter().find(|it| it["subagent_type"] == "fork").unwrap();
    let id = fork["task_id"].as_str().unwrap().to_owned();
    assert!(!bench.project().join("w.txt").exists());
    let later = bench.resume(&told, &format!("@@poke:{id}")).await;
    assert!(!of_forks(&later).is_empty(), "{}", results(&later));
    assert!(!bench.project().join("w.txt").exists(), "{}", results(&later));
}

#[tokio::test(start_paused = true)]
async fn a_fork_starts_no_type_that_its_parent_may_not_start() {
    for (list, forks) in [("Agent(fork, worker)", true), ("Agent(worker)", false)] {
        let mut bench = Bench::cast(&json!({
            "lead": [[fork("@@work")], "meanwhile", "heard"],
            "work": [[agent("deployer", "@@deploy", &json!({}))], "Scope: tried"],
            "deploy": ["deployed"],
        }));
        bench.knows_agents(|agents| {
            agents.rules.forks = true;
            agents.main = Some("boss".to_owned());
        });
        bench.agent("boss", &format!("tools: {list}, Read\n"), "Direct.");
        bench.agent("worker", "", "Work.");
        bench.agent("deployer", "", "Deploy.");
        let told = bench.run("@@lead").await;
        let listing = told.asked[0].listing.as_ref().unwrap();
        assert_eq!(listing.contains("- fork: "), forks, "{list}: {listing}");
        let started = told.of("system", Some("task_started"));
        let kinds: Vec<&Value> = started.iter().map(|it| &it["subagent_type"]).collect();
        assert_eq!(kinds, vec!["fork"; usize::from(forks)], "{list}: {}", results(&told));
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_a_fork_sets_to_work_again_does_not_fork() {
    let bench = forking(&json!({
        "lead": [[waits("@@first")], [fork("@@work")], "meanwhile", "heard", "heard"],
        "first": ["ready"],
        "work": [[message(LAST_AGENT, "@@again")], "Scope: sent", "Scope: heard"],
        "again": [[fork("@@deeper")], "tried"],
        "deeper": ["never"],
    }));
    let told = bench.run("@@lead").await;
    let started = told.of("system", Some("task_started"));
    let forks = started.iter().filter(|it| it["subagent_type"] == "fork").count();
    assert_eq!(forks, 1, "{}", results(&told));
    let said: String = told.asked.iter().map(|it| it.messages.to_string()).collect();
    assert!(said.contains("forks are not forked"), "{}", results(&told));
}

#[tokio::test(start_paused = true)]
async fn a_fork_knows_the_files_that_its_parent_has_read_and_stops_after_the_turns_of_its_call() {
    let edit = json!({"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "alpha", "new_string": "beta"}});
    let mut brief = fork("@@work");
    brief["input"]["max_turns"] = json!(2);
    let bench = forking(&json!({
        "lead": [[read()], [brief], "meanwhile", "heard"],
        "work": [[edit], [read()], [read()], "Scope: never"],
    }));
    let told = bench.run("@@lead").await;
    let content = std::fs::read_to_string(bench.project().join("a.txt")).unwrap();
    assert_eq!(content, "beta\n", "it has not read it itself: {}", results(&told));
    assert_eq!(of_forks(&told).len(), 2, "{}", results(&told));
}

#[tokio::test(start_paused = true)]
async fn a_fork_without_turns_or_a_task_is_refused() {
    for (wish, reason) in [("max_turns", json!(0)), ("prompt", json!(" \n"))] {
        let mut call = fork("@@work");
        call["input"][wish] = reason;
        let bench = forking(&json!({"lead": [[call], "done"], "work": ["never"]}));
        let told = bench.run("@@lead").await;
        assert!(of_forks(&told).is_empty(), "{wish}: {}", results(&told));
        assert!(told.results()[0].1, "{wish}: {}", results(&told));
    }
}

#[tokio::test(start_paused = true)]
async fn agents_that_set_each_other_to_work_in_a_circle_do_not_fork() {
    // Whether one of them works for a fork cannot be told.
    let named = |prompt: &str, name: &str| agent("general-purpose", prompt, &json!({"name": name}));
    let slow = |call: Value| json!({"blocks": [call], "latency_ms": 5_000});
    let bench = forking(&json!({
        "lead": [[named("@@rest", "ann"), named("@@rest", "bob")], "meanwhile", [message("ann", "@@call")], "said", "heard", "heard", "heard"],
        "rest": ["ready"],
        "call": [[message("bob", "@@back")], "called"],
        "back": [slow(message("ann", "@@fork")), "called back"],
        "fork": [slow(fork("@@deeper")), "tried"],
        "deeper": ["never"],
    }));
    let told = bench.run("@@lead").await;
    let said: String = told.asked.iter().map(|it| it.messages.to_string()).collect();
    assert!(said.contains("forks are not forked"), "{}", results(&told));
    assert!(!said.contains("FORK_DIRECTIVE"), "{}", results(&told));
}

#[tokio::test(start_paused = true)]
async fn hooks_of_the_agent_that_a_fork_comes_from_bind_the_fork() {
    let write = json!({"tool": "Write", "input": {"file_path": "w.txt", "content": "x"}});
    let mut bench = Bench::cast(&json!({
        "lead": [[agent("keeper", "@@keep", &json!({}))], "meanwhile", "heard", "heard"],
        "keep": [[fork("@@work")], "kept", "heard"],
        "work": [[write], "Scope: tried"],
    }));
    bench.knows_agents(|agents| agents.rules.forks = true);
    bench.agent("keeper", &denies("Write", "the keeper says no"), "Keep.");
    let stage = Stage::silent();
    let bench = stage.set(bench);
    let told = bench.run("@@lead").await;
    let said: String = told.asked.iter().map(|it| it.messages.to_string()).collect();
    assert!(said.contains("FORK_DIRECTIVE: @@work"), "{}", results(&told));
    assert!(
        !bench.project().join("w.txt").exists() && said.contains("the keeper says no"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn forks_are_counted_like_all_agents_and_waited_for_where_nothing_runs_in_the_background() {
    let scripts = json!({
        "lead": [[fork("@@work"), fork("@@work")], "meanwhile", "heard", "heard"],
        "work": ["Scope: done"],
    });
    let mut few = Bench::cast(&scripts);
    few.knows_agents(|agents| {
        agents.rules.forks = true;
        agents.rules.limits.spawns = Some(1);
    });
    let told = few.run("@@lead").await;
    assert_eq!(of_forks(&told).len(), 1, "{}", results(&told));
    let mut alone = Bench::cast(&scripts);
    alone.knows_agents(|agents| {
        agents.rules.forks = true;
        agents.rules.background_is_off = true;
    });
    let told = alone.run("@@lead").await;
    assert_eq!(results(&told).matches("Scope: done").count(), 2, "{}", results(&told));
}

#[tokio::test(start_paused = true)]
async fn what_forks_of_one_conversation_begin_with_is_written_once() {
    let mut lead: Vec<Value> = (0..3).map(|_| json!([fork("@@work"), fork("@@work")])).collect();
    lead.extend((0..8).map(|_| json!("heard")));
    let bench = forking(&json!({"lead": lead, "work": ["Scope: done"]}));
    let told = bench.run("@@lead").await;
    assert_eq!(of_forks(&told).len(), 6, "{}", results(&told));
    let main = std::fs::read_to_string(&told.transcript).unwrap();
    assert_eq!(main.matches("\"subtype\":\"prefix\"").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_an_agent_that_has_the_conversation_of_another_continues_from_the_same_bytes() {
    let bench = forking(&json!({
        "lead": [[read(), read()], [agent("judge", "@@judge", &json!({})), read()], "meanwhile", "heard", "heard"],
        "judge": [[read()], [fork("@@work"), read()], "judged", "heard"],
        "work": [[read()], "Scope: it"],
        "more": ["Scope: more"],
        "poke": [[message("${arg}", "@@more")], "said", "heard"],
    }));
    bench.agent("judge", "forkContext: true\n", "You judge.");
    let told = bench.run("@@lead").await;
    let started = told.of("system", Some("task_started"));
    let id = started.iter().find(|it| it["subagent_type"] == "fork").unwrap()["task_id"].clone();
    let of_fork = |told: &Told| -> Vec<Asked> {
        told.asked.iter().filter(|it| it.agent.as_deref() == id.as_str()).cloned().collect()
    };
    let first = of_fork(&told);
    let sent = String::from_utf8_lossy(&first[0].wire).into_owned();
    assert!(sent.contains("It is material") && sent.contains("FORK_DIRECTIVE: @@work"), "{sent}");
    let later = bench.resume(&told, &format!("@@poke:{}", id.as_str().unwrap())).await;
    let woken = of_fork(&later);
    assert!(woken[0].wire.starts_with(&first.last().unwrap().wire), "{}", woken[0].messages);
    assert_eq!(woken[0].fixed, first[0].fixed);
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_a_prompt_of_its_own_misses_no_cache() {
    let usage = |written: u64, read: u64| json!({"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": written, "cache_read_input_tokens": read});
    let bench = Bench::cast(&json!({
        "lead": [{"blocks": [agent("judge", "@@judge", &json!({}))], "usage": usage(40_000, 0)}, "done"],
        "judge": [{"text": "Right.", "usage": usage(40_000, 0)}],
    }));
    bench.agent("judge", "forkContext: true\n", "You judge.");
    let told = bench.run("@@lead").await;
    let said = format!("{:?}", told.of("system", Some("informational")));
    assert!(!said.contains("from its cache"), "its system prompt is another: {said}");
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_session_with_a_schema_reports_in_words() {
    let hand = json!({"tool": "StructuredOutput", "input": {"n": 1}});
    let calls: Vec<Value> = (0..6).map(|_| json!([hand])).collect();
    let work: Vec<Value> = calls.into_iter().chain([json!("Scope: done")]).collect();
    let mut bench = forking(&json!({
        "lead": [[fork("@@work")], [hand], "heard", [hand]],
        "work": work,
    }));
    bench.schema = Some(r#"{"type": "object", "properties": {"n": {"type": "number"}}}"#);
    let told = bench.run("@@lead").await;
    let ended = told.of("system", Some("task_notification"));
    assert_eq!(ended[0]["status"], "completed", "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_forks_record_leads_to_no_file_but_a_transcript_of_the_session() {
    let bench = forking(&json!({
        "lead": [[fork("@@work")], "meanwhile", "heard"],
        "work": ["Scope: first"],
        "poke": [[message("${arg}", "@@work")], "said"],
    }));
    let told = bench.run("@@lead").await;
    let id = told.of("system", Some("task_started"))[0]["task_id"].as_str().unwrap().to_owned();
    let path = told.transcript.with_extension("").join(format!("subagents/agent-{id}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap();
    let forged = text.replacen("\"depth\":1", "\"depth\":1,\"parent\":\"a/../../x\"", 1);
    assert_ne!(forged, text);
    std::fs::write(&path, forged).unwrap();
    let later = bench.resume(&told, &format!("@@poke:{id}")).await;
    assert!(of_forks(&later).is_empty());
    assert!(results(&later).contains("names an agent that cannot be"), "{}", results(&later));
}

#[tokio::test(start_paused = true)]
async fn a_fork_whose_parents_record_is_cut_or_gone_is_refused_with_the_reason() {
    let bench = forking(&json!({
        "lead": [[read()], [agent("general-purpose", "@@child", &json!({})), fork("@@work")], "meanwhile", "heard", "heard"],
        "child": [[read()], [fork("@@work")], "meanwhile", "heard"],
        "work": ["Scope: first"],
        "poke": [[message("${arg}", "@@work")], "said", "heard"],
    }));
    let told = bench.run("@@lead").await;
    let started = told.of("system", Some("task_started"));
    let path =
        |id: &str| told.transcript.with_extension("").join(format!("subagents/agent-{id}.jsonl"));
    let ids = |kind: &str| -> Vec<&str> {
        let of_kind = started.iter().filter(|it| it["subagent_type"] == kind);
        of_kind.map(|it| it["task_id"].as_str().unwrap()).collect()
    };
    let child = ids("general-purpose")[0];
    let is_of_child = |id: &&str| {
        std::fs::read_to_string(path(id)).unwrap().contains(&format!("\"parent\":\"{child}\""))
    };
    let (of_child, of_main): (Vec<&str>, Vec<&str>) =
        ids("fork").into_iter().partition(is_of_child);
    let (main, of_parent) =
        (std::fs::read(&told.transcript).unwrap(), std::fs::read(path(child)).unwrap());
    // Cut before the answer that the fork begins with.
    let before = memchr::memmem::rfind(&main, b"\"prompt\":\"@@child\"").unwrap();
    let end = memchr::memrchr(b'\n', &main[..before]).unwrap() + 1;
    std::fs::write(&told.transcript, &main[..end]).unwrap();
    let later = bench.resume(&told, &format!("@@poke:{}", of_main[0])).await;
    assert_eq!(later.outcome, Some(Outcome::Completed), "{}", later.result());
    assert!(of_forks(&later).is_empty(), "{}", results(&later));
    assert!(results(&later).contains("does not hold the conversation"), "{}", results(&later));
    std::fs::write(&told.transcript, &main).unwrap();
    for (left, reason) in [(Some(&b"{}\n"[..]), "does not hold"), (None, "cannot be read")] {
        match left {
            Some(text) => std::fs::write(path(child), text).unwrap(),
            None => std::fs::remove_file(path(child)).unwrap(),
        }
        let later = bench.resume(&told, &format!("@@poke:{}", of_child[0])).await;
        assert!(of_forks(&later).is_empty(), "{}", results(&later));
        assert!(results(&later).contains(reason), "{reason}: {}", results(&later));
    }
    std::fs::write(path(child), of_parent).unwrap();
    let later = bench.resume(&told, &format!("@@poke:{}", of_child[0])).await;
    assert!(!of_forks(&later).is_empty(), "it is there again: {}", results(&later));
}
