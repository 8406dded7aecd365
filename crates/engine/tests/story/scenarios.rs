//! What goes wrong with delegation elsewhere: who is asked, what binds all agents, what a resumed agent keeps.

use std::sync::Arc;

use centurion_engine::{
    Answerer, Ask, AskingAgent, Change, ElicitFuture, Reply, ReplyFuture, Rules,
};
use centurion_mcp::Elicitation;
use centurion_permissions::Mode;
use centurion_protocol::Outcome;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::agent_stage::{LAST_AGENT, agent, field, message, starts, waits};
use crate::bench::{Asked, Bench, Told};
use crate::hook_stage::Stage;
use crate::hooks::Changes;

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

fn write(file: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": file, "content": "y"}})
}

/// Says no to everything, and keeps who asked.
#[derive(Default)]
struct Refuser(Mutex<Vec<Option<AskingAgent>>>);

impl Answerer for Refuser {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        self.0.lock().push(ask.agent);
        let reason = "not on a Friday".to_owned();
        Box::pin(std::future::ready(Ok(Reply::Denied { reason, interrupt: false })))
    }

    fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
        unreachable!("no server is there to ask")
    }
}

/// Three agents below each other; the last one needs a person.
fn asks_at_depth_three() -> Bench {
    let bench = Bench::cast(&json!({
        "lead": [[waits("@@one")], "top"],
        "one": [[waits("@@two")], "middle"],
        "two": [[agent("digger", "@@three", &json!({"name": "bob"}))], "above"],
        "three": [[bash("make it so")], "could not"],
    }));
    bench.agent("digger", "color: red\n", "Dig.");
    bench
}

#[tokio::test(start_paused = true)]
async fn a_question_from_three_levels_down_comes_with_who_asks() {
    // scenario 9, D-28, S-172
    let refuser = Arc::new(Refuser::default());
    let bench = Bench {
        answerer: Some(Arc::clone(&refuser) as Arc<dyn Answerer>),
        ..asks_at_depth_three()
    };
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let asked = refuser.0.lock().clone();
    let [Some(who)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((who.name.as_str(), who.color), ("bob", Some("red")));
    assert_eq!(who.path, ["general-purpose", "general-purpose", "bob"]);
    assert_eq!(who.id.as_str(), told.agent_ids()[2]);
    for reader in ["@@three", "@@two"] {
        let texts = told.asked_by(reader).last().unwrap().texts().join("\n");
        assert!(texts.contains("not on a Friday"), "{reader}: {texts}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answerer_is_denied_and_child_and_parent_read_why() {
    // scenario 9, D-28, I-4
    let told = asks_at_depth_three().run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "nobody hangs");
    for reader in ["@@three", "@@two"] {
        let texts = told.asked_by(reader).last().unwrap().texts().join("\n");
        assert!(texts.contains("no user can be asked"), "{reader}: {texts}");
    }
    let [denied] = told.of("system", Some("permission_denied"))[..] else { panic!() };
    assert_eq!(denied["agent_id"].as_str(), Some(told.agent_ids()[2].as_str()));
}

#[tokio::test(start_paused = true)]
async fn a_background_agent_that_was_not_allowed_to_write_does_not_report_success() {
    // scenario 10
    let mut bench = Bench::cast(&json!({
        "lead": [[starts("@@writer")], "meanwhile", "heard"],
        "writer": [[write("secret.txt")], "All written."],
    }));
    bench.deny = "Edit(secret.txt)";
    let told = bench.run("@@lead").await;
    let [news] = told.news()[..] else { panic!("{:?}", told.news()) };
    assert_eq!(field(news, "status"), Some("failed"), "{news}");
    assert_eq!(field(news, "outcome"), Some("denied"), "{news}");
    let denied = field(news, "not-allowed").unwrap();
    assert!(denied.starts_with("Write: ") && denied.contains("Edit(secret.txt)"), "{denied}");
    assert!(
        field(news, "result").unwrap().contains("All written."),
        "what it said is kept: {news}"
    );
    assert_eq!(told.result()["subagent_stats"]["failed"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_found_another_way_succeeds_and_says_what_was_denied() {
    // scenario 10
    let mut bench = Bench::cast(&json!({
        "lead": [[waits("@@writer")], "done"],
        "writer": [[write("secret.txt")], [write("open.txt")], "Written elsewhere."],
    }));
    bench.deny = "Edit(secret.txt)";
    let told = bench.run("@@lead").await;
    let result = told.agent_results()[0];
    assert_eq!(result["status"], "completed");
    assert_eq!(result["permissionDenials"][0]["tool"], "Write");
    assert_eq!(result["evidence"]["filesChanged"], json!([bench.project().join("open.txt")]));
    assert!(told.results()[0].0.contains("not allowed: Write"), "{:?}", told.results());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_for_a_planner_by_its_agents() {
    // scenario 11, S-087, D-5a, I-1
    let mut bench = Bench::cast(&json!({
        "lead": [[agent("builder", "@@build", &json!({}))], "planned"],
        "build": [[write("one.txt")], [bash("echo hi > two.txt")], [agent("builder", "@@deeper", &json!({}))], "tried"],
        "deeper": [[write("three.txt")], [bash("echo hi > four.txt")], "tried too"],
    }));
    bench.agent("builder", "permissionMode: bypassPermissions\n", "Build.");
    bench.mode = Mode::Plan;
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(told.of("system", Some("permission_denied")).len(), 4, "{:?}", told.results());
    for file in ["one.txt", "two.txt", "three.txt", "four.txt"] {
        assert!(!bench.project().join(file).exists(), "{file}");
    }
    assert_eq!(told.agent_results()[0]["effective"]["permissionMode"], "plan");
}

#[tokio::test(start_paused = true)]
async fn a_deny_rule_binds_children_grandchildren_and_resumed_agents() {
    // scenario 12, S-088, S-161, I-1
    let mut bench = Bench::cast(&json!({
        "lead": [[waits("@@child")], [message(LAST_AGENT, "@@again")], "waiting", "done"],
        "child": [[bash("curl http://a")], [waits("@@grandchild")], "no luck"],
        "grandchild": [[bash("curl http://b")], "no luck either"],
        "again": [[bash("curl http://c")], "still no luck"],
    }));
    bench.deny = "Bash(curl *)";
    bench.mode = Mode::BypassPermissions;
    let told = bench.run("@@lead").await;
    let denied = told.of("system", Some("permission_denied"));
    let by: Vec<&str> = denied.iter().map(|it| it["agent_id"].as_str().unwrap()).collect();
    let ids = told.agent_ids();
    assert_eq!(by, [&ids[0], &ids[1], &ids[0]], "{denied:?}");
    assert!(
        denied.iter().all(|it| it["decision_reason"].as_str().unwrap().contains("Bash(curl *)"))
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_role_may_not_do_does_not_bind_its_workers() {
    // scenario 12, D-7
    let mut bench = Bench::cast(&json!({
        "lead": [[write("mine.txt")], [agent("worker", "@@work", &json!({}))], "done"],
        "work": [[write("theirs.txt")], "written"],
    }));
    bench.agent("boss", "disallowedTools: Write, Edit\n", "Direct others.");
    bench.agent("worker", "tools: Write\n", "Write.");
    bench.knows_agents(|agents| agents.main = Some("boss".to_owned()));
    let told = bench.run("@@lead").await;
    assert!(!told.asked[0].tools.contains(&"Write".to_owned()), "{:?}", told.asked[0].tools);
    assert!(!bench.project().join("mine.txt").exists());
    assert!(bench.project().join("theirs.txt").exists(), "{:?}", told.results());
    let work = told.asked_by("@@work")[0];
    assert_eq!(work.tools, ["Write"], "and it has what it lists, nothing else");
}

#[tokio::test(start_paused = true)]
async fn a_deny_rule_that_is_gone_does_not_live_on_in_a_child() {
    // scenario 13
    let mut bench = Bench::cast(&json!({
        "lead": [[waits("@@writer")], "done"],
        "writer": [[write("x.txt")], "written"],
    }));
    bench.deny = "Edit(x.txt)";
    let knows = bench.adjust;
    bench.adjust = Box::new(move |options| {
        knows(options);
        let rules = Rules { directories: vec![options.base.cwd.clone()], ..Rules::default() };
        let change = Change { rules, ..Change::default() };
        options.permission.rule_source = Some(Box::new(Changes(vec![change])));
    });
    let told = bench.run("@@lead").await;
    assert!(bench.project().join("x.txt").exists(), "{:?}", told.results());
}

/// What the requests of an agent have in common.
fn kept(asked: &Asked) -> Value {
    json!([asked.agent, asked.model, asked.system, asked.tools, asked.effort, asked.thinking])
}

fn small_writer() -> Bench {
    let bench = Bench::cast(&json!({
        "lead": [[agent("small", "@@work", &json!({"model": "claude-haiku-5-5"}))], [message(LAST_AGENT, "@@more")], "waiting", "done"],
        "poke": [[message("${arg}", "@@more")], "waiting", "done"],
        "work": [[write("x.txt")], "first"],
        "more": [[write("x.txt")], "second"],
    }));
    bench.agent("small", "tools: Read, Write\npermissionMode: plan\neffort: low\n", "Be small.");
    bench
}

#[tokio::test(start_paused = true)]
async fn a_resumed_agent_keeps_its_model_tools_prompt_and_mode() {
    // scenario 14, S-230, S-180
    let mut bench = small_writer();
    let told = bench.run("@@lead").await;
    let asked = told.asked_by("@@work");
    assert_eq!(asked.len(), 4);
    assert_eq!(asked[0].model, "claude-haiku-5-5");
    assert_eq!(asked[0].tools, ["Read", "Write"]);
    assert!(asked.iter().all(|it| kept(it) == kept(asked[0])), "{asked:?}");
    assert!(!bench.project().join("x.txt").exists(), "it plans, both times");
    // And in a later process, from the record of its start alone.
    bench.seed = 40;
    std::fs::remove_dir_all(bench.project().join(".claude")).unwrap();
    let later = bench.resume(&told, &format!("@@poke:{}", told.agent_ids()[0])).await;
    assert_eq!(later.news().len(), 2, "{:?}", later.news());
    let again = later.asked_by("@@work");
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|it| kept(it) == kept(asked[0])), "{again:?}");
    assert!(!bench.project().join("x.txt").exists());
}

/// Lets a later process set the agent to work again, and gives what came of it.
async fn poke(bench: &Bench, told: &Told, id: &str) -> Told {
    bench.resume(told, &format!("@@poke:{id}")).await
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_record_was_cut_anywhere_continues() {
    // scenario 15, S-231
    let mut bench = Bench::cast(&json!({
        "lead": [[waits("@@work")], "done"],
        "poke": [[message("${arg}", "@@more")], "waiting", "done", "done"],
        "work": [
            [{"text": "looking"}, {"tool": "Read", "input": {"file_path": "a.txt"}}, {"tool": "Read", "input": {"file_path": "a.txt"}}],
            "first"
        ],
        "more": ["second"],
    }));
    bench.file("a.txt", "alpha\n");
    let told = bench.run("@@lead").await;
    let id = &told.agent_ids()[0];
    let (path, main) = (told.agent_transcript(id), std::fs::read(&told.transcript).unwrap());
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    assert!(lines.len() > 7, "{lines:#?}");
    for cut in 1..=lines.len() {
        bench.seed += 10;
        std::fs::write(&told.transcript, &main).unwrap();
        std::fs::write(&path, lines[..cut].join("\n") + "\n").unwrap();
        let later = poke(&bench, &told, id).await;
        assert_eq!(later.outcome, Some(Outcome::Completed), "cut after line {cut}");
        let news = later.news().join("\n");
        assert!(news.contains("second"), "cut after line {cut}: {news}");
        let was_whole = cut == lines.len();
        assert_eq!(news.contains("was interrupted"), !was_whole, "cut after line {cut}: {news}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_continues_without_a_tool_that_is_gone() {
    // scenario 16
    let mut bench = Bench::cast(&json!({
        "lead": [[waits("@@work")], "done"],
        "poke": [[message("${arg}", "@@more")], "waiting", "done"],
        "work": [[{"tool": "mcp__desk__greet", "input": {}}], "greeted"],
        "more": [[{"tool": "mcp__desk__greet", "input": {}}], "did without"],
    }));
    bench.allow = "mcp__desk";
    let stage = Stage::silent();
    let bench = stage.set(bench);
    let told = bench.run("@@lead").await;
    assert_eq!(stage.desk.calls.lock().len(), 1);
    let mut later =
        Bench { dir: bench.dir, scenario: bench.scenario, seed: 40, ..Bench::new(json!({})) };
    later.knows_agents(|_| {});
    let told = poke(&later, &told, &told.agent_ids()[0]).await;
    let child = told.asked_by("@@work");
    assert!(!child[0].tools.iter().any(|tool| tool.starts_with("mcp__")), "{:?}", child[0].tools);
    let texts = child.last().unwrap().texts().join("\n");
    assert!(texts.contains("mcp__desk__greet"), "{texts}");
    assert!(told.news().join("\n").contains("did without"), "{:?}", told.news());
}
