//! MCP servers of agents: shared with the parent, brought by the definition, or required.

use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::{McpReference, McpScope, McpServer};
use centurion_engine::{
    AgentOptions, AgentServers, AgentServersError, BroughtBy, ServerPatience, Session, Start, View,
};
use centurion_hooks::Event as HookEvent;
use centurion_mcp::{Connection, State};
use centurion_protocol::sdk::{Event, EventBody, System};
use centurion_protocol::{Block, SeededWorld, World};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::agent_stage::{agent, message, starts, waits as waits_for};
use crate::bench::{Asked, Bench, Told, Watcher};
use crate::hook_stage::{Desk, Stage, server};

fn greet(server: &str) -> Value {
    json!({"tool": format!("mcp__{server}__greet"), "input": {}})
}

/// Reads names as references and objects as servers of the host; keeps what it started.
struct Bringer {
    desk: Arc<Desk>,
    started: Mutex<Vec<Connection>>,
    brought_by: Mutex<Vec<String>>,
}

impl AgentServers for Bringer {
    fn read(
        &self,
        servers: &Value,
        by: &BroughtBy<'_>,
    ) -> Result<Vec<McpReference>, AgentServersError> {
        self.brought_by.lock().push(by.name.to_owned());
        let items = servers.as_array().unwrap();
        let reference = |item: &Value| match item {
            Value::String(name) => McpReference::Named(name.clone()),
            object => {
                let name = object.as_object().unwrap().keys().next().unwrap();
                McpReference::Inline(Box::new(server(name)))
            }
        };
        Ok(items.iter().map(reference).collect())
    }

    fn own(&self, server: McpServer) -> Connection {
        let connection = self.desk.own(server);
        self.started.lock().push(connection.clone());
        connection
    }
}

/// A bench with the server `desk`, and agents that may bring others.
fn bench(scripts: &Value) -> (Bench, Arc<Stage>, Arc<Bringer>) {
    let mut bench = Bench { allow: "mcp__desk,mcp__notes", ..Bench::cast(scripts) };
    let stage = Stage::silent();
    let bringer = Arc::new(Bringer {
        desk: Arc::clone(&stage.desk),
        started: Mutex::default(),
        brought_by: Mutex::default(),
    });
    let servers = Arc::clone(&bringer) as Arc<dyn AgentServers>;
    bench
        .knows_agents(move |agents: &mut AgentOptions| agents.servers = Some(Arc::clone(&servers)));
    (stage.set(bench), stage, bringer)
}

fn has(told: &Told, prompt: &str, tool: &str) -> bool {
    told.asked_by(prompt)[0].tools.iter().any(|name| name == tool)
}

#[tokio::test(start_paused = true)]
async fn a_server_by_name_is_the_parents_and_stays_open() {
    // S-329, S-177
    let (bench, stage, bringer) = bench(&json!({
        "lead": [[agent("guest", "@@child", &json!({}))], [greet("desk")], "done"],
        "child": [[greet("desk")], "greeted"],
    }));
    bench.agent("guest", "mcpServers:\n  - desk\n", "Greet.");
    let told = bench.run("@@lead").await;
    assert_eq!(stage.desk.calls.lock().len(), 2, "{:?}", told.results());
    assert!(told.results().iter().all(|(_, is_error)| !is_error), "{:?}", told.results());
    assert!(bringer.started.lock().is_empty(), "nothing was started for it");
    assert_eq!(*bringer.brought_by.lock(), ["guest"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_of_the_definition_is_the_agents_own_and_ends_with_it() {
    // S-260, S-330, S-331, S-332
    let (bench, _stage, bringer) = bench(&json!({
        "lead": [[agent("keeper", "@@child", &json!({}))], [message("${re:agentId: (a[0-9a-f]+)}", "@@more")], "waiting", "done"],
        "child": [[greet("notes")], [greet("desk")], "greeted"],
        "more": [[greet("notes")], "greeted again"],
    }));
    bench.agent("keeper", "mcpServers:\n  - notes: {}\n", "Keep notes.");
    let told = bench.run("@@lead").await;
    assert!(told.results().iter().all(|(_, is_error)| !is_error), "{:?}", told.results());
    assert!(has(&told, "@@child", "mcp__notes__greet"), "its own");
    assert!(has(&told, "@@child", "mcp__desk__greet"), "and those of its parent");
    assert!(
        told.asked
            .iter()
            .filter(|it| it.agent.is_none())
            .all(|it| !it.tools.contains(&"mcp__notes__greet".to_owned()))
    );
    let started = bringer.started.lock().clone();
    assert_eq!(started.len(), 2, "a new one when it goes on");
    for connection in started {
        let mut changes = connection.changes();
        let closed = async {
            while connection.state() != State::Closed {
                changes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(10), closed).await.unwrap();
    }
}

/// Notes how an agent's own server stands in the moment in which its end is shown.
struct Peek {
    inner: Arc<dyn View>,
    bringer: Arc<Bringer>,
    seen: Arc<Mutex<Vec<State>>>,
}

impl View for Peek {
    fn show(&self, event: &Event) {
        if matches!(event.body, EventBody::System(System::TaskNotification(_))) {
            let started = self.bringer.started.lock();
            self.seen.lock().push(started[0].state());
        }
        self.inner.show(event);
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_is_known_before_the_slow_rest_of_it() {
    // S-258
    for more in [json!({}), json!({"run_in_background": true})] {
        let (mut bench, _stage, bringer) = bench(&json!({
            "lead": [[agent("keeper", "@@child", &more)], "went on", "heard"],
            "child": [[greet("notes")], "greeted"],
        }));
        bench.agent("keeper", "mcpServers:\n  - notes: {}\n", "Keep notes.");
        let (seen, before) = (Arc::<Mutex<Vec<State>>>::default(), bench.adjust);
        let (noted, watched) = (Arc::clone(&seen), Arc::clone(&bringer));
        bench.adjust = Box::new(move |options| {
            before(options);
            let (inner, bringer) = (Arc::clone(&options.view), Arc::clone(&watched));
            options.view = Arc::new(Peek { inner, bringer, seen: Arc::clone(&noted) });
        });
        bench.run("@@lead").await;
        let seen = seen.lock().clone();
        assert!(seen.len() == 1 && seen[0] != State::Closed, "{more}: {seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_an_agent_brings_outlives_those_who_only_name_it() {
    // S-329, S-332
    let (bench, _stage, bringer) = bench(&json!({
        "lead": [[agent("keeper", "@@keeper", &json!({}))], "done"],
        "keeper": [[agent("guest", "@@guest", &json!({}))], [greet("notes")], "kept"],
        "guest": [[greet("notes")], "greeted"],
    }));
    bench.agent("keeper", "mcpServers:\n  - notes: {}\n", "Keep notes.");
    bench.agent("guest", "mcpServers:\n  - notes\n", "Greet.");
    let told = bench.run("@@lead").await;
    let keeper = told.asked_by("@@keeper").last().unwrap().texts().join("\n");
    assert!(keeper.contains("hello"), "it is still there when the guest has left: {keeper}");
    let started = bringer.started.lock();
    assert_eq!(started.iter().map(Connection::state).collect::<Vec<_>>(), [State::Closed]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_server_name_fails_the_launch() {
    // D-16, I-5
    let (bench, _stage, _) = bench(&json!({
        "lead": [[agent("guest", "@@child", &json!({}))], "done"],
        "child": ["never"],
    }));
    bench.agent("guest", "mcpServers:\n  - nowhere\n", "Greet.");
    let told = bench.run("@@lead").await;
    let (text, is_error) = told.results().remove(0);
    assert!(
        is_error
            && text.contains("agent `guest` cannot start: it asks for the MCP server `nowhere`"),
        "{text}"
    );
    assert!(text.contains("guest.md:4"), "and where it is written: {text}");
    assert!(told.agent_ids().is_empty());
}

#[tokio::test(start_paused = true)]
async fn servers_that_cannot_be_started_are_not_left_out_in_silence() {
    // I-5, D-16
    let mut bench = Bench::cast(&json!({
        "lead": [[agent("guest", "@@child", &json!({}))], "done"],
        "child": ["never"],
    }));
    bench.agent("guest", "mcpServers:\n  - desk\n", "Greet.");
    let told = bench.run("@@lead").await;
    let (text, is_error) = told.results().remove(0);
    assert!(
        is_error && text.contains("agent `guest` cannot start: it asks for MCP servers"),
        "{text}"
    );
    bench.knows_agents(|agents| agents.main = Some("guest".to_owned()));
    let start = Start::New(SeededWorld::new(1).session_id());
    let opened = Session::open(bench.options(start, None, &Arc::new(Watcher::default()))).await;
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("the agent `guest` cannot run: it asks for MCP servers"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_servers_are_not_there_is_hidden_and_says_what_is_missing() {
    // S-060, S-061, S-155, S-163
    let (bench, _stage, _) = bench(&json!({
        "lead": [[agent("needy", "@@child", &json!({})), agent("served", "@@child", &json!({}))], "done"],
        "child": ["there"],
    }));
    bench.agent("needy", "requiredMcpServers:\n  - nowhere\n", "Need.");
    bench.agent("served", "requiredMcpServers:\n  - DE*\n", "Need.");
    let told = bench.run("@@lead").await;
    let listing = told.asked[0].listing.as_deref().unwrap();
    assert!(listing.contains("- served: test agent") && !listing.contains("needy"), "{listing}");
    let results = told.results();
    let missing = "agent `needy` cannot start: the MCP server `nowhere` is required and cannot be used: no server has this name";
    assert!(results[0].1 && results[0].0.contains(missing), "{results:?}");
    assert!(!results[1].1, "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn the_types_that_can_be_started_depend_on_the_servers_of_the_parent() {
    let (bench, ..) = bench(&json!({
        "lead": [[agent("writer", "@@one", &json!({}))], [agent("painter", "@@two", &json!({}))], "done"],
        "one": ["written"],
        "two": ["painted"],
    }));
    bench.agent("writer", "mcpServers:\n  - notes: {}\n", "Write.");
    bench.agent("painter", "mcpServers:\n  - board: {}\n", "Paint.");
    bench.agent("scribe", "requiredMcpServers:\n  - notes\n", "Copy.");
    let told = bench.run("@@lead").await;
    let offers = |prompt: &str| {
        let listing = told.asked_by(prompt)[0].listing.clone().unwrap();
        listing.contains("- scribe: ")
    };
    assert!(offers("@@one"), "its own server is what the scribe needs");
    assert!(!offers("@@two"), "it has as many servers, and another one");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_server_that_is_still_coming_and_not_for_ever() {
    // S-155, D-16
    for (latency, is_there) in [(12, true), (3_600, false)] {
        let (mut bench, stage, _) = bench(&json!({
            "lead": [[agent("served", "@@child", &json!({}))], "done"],
            "child": [[greet("desk")], "there"],
        }));
        bench.agent("served", "requiredMcpServers:\n  - desk\n", "Need.");
        *stage.desk.latency.lock() = Duration::from_secs(latency);
        let before = bench.adjust;
        bench.adjust = Box::new(move |options| {
            before(options);
            options.extensions.server_patience = ServerPatience::default();
        });
        let begun = tokio::time::Instant::now();
        let told = bench.run("@@lead").await;
        let listing = told.asked[0].listing.as_deref().unwrap();
        assert!(
            listing.contains("- served: "),
            "one that may still come keeps it listed: {listing}"
        );
        let (text, is_error) = told.results().last().unwrap().clone();
        assert_eq!(!is_error, is_there, "{text}");
        assert!(begun.elapsed() >= Duration::from_secs(latency.min(30)), "{:?}", begun.elapsed());
        assert_eq!(stage.desk.calls.lock().len(), usize::from(is_there));
        if !is_there {
            assert!(text.contains("the MCP server `desk` is required"), "{text}");
            assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn agents_in_the_background_have_the_tools_of_servers() {
    // S-089
    let (bench, stage, _) = bench(&json!({
        "lead": [[starts("@@child")], "meanwhile", "heard"],
        "child": [[greet("desk")], "greeted"],
    }));
    let told = bench.run("@@lead").await;
    assert!(has(&told, "@@child", "mcp__desk__greet"));
    assert_eq!(stage.desk.calls.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_waits_for_its_servers_can_be_stopped() {
    // S-260
    let (bench, stage, bringer) = bench(&json!({
        "lead": [{"blocks": [starts("@@child")], "latency_ms": 1_000}, "meanwhile", "done"],
        "child": [[greet("notes")], "greeted"],
    }));
    bench.agent("general-purpose", "mcpServers:\n  - notes: {}\n", "Keep notes.");
    let waited = Arc::new(Mutex::new(Duration::MAX));
    let told = bench
        .live("@@lead", |handle, watcher| {
            let (stage, waited) = (Arc::clone(&stage), Arc::clone(&waited));
            async move {
                watcher.until(|_, asked| !asked.is_empty()).await;
                // From now on, no server connects within any waiting time.
                *stage.desk.latency.lock() = Duration::from_hours(10);
                let has_begun = || !stage.heard(HookEvent::SubagentStart).is_empty();
                while !has_begun() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                // The clock continues only when all others wait.
                tokio::time::sleep(Duration::from_secs(1)).await;
                let began = tokio::time::Instant::now();
                assert_eq!(handle.stop_agents(), 1);
                let is_end = |event: &Value| event["subtype"] == "task_notification";
                watcher.until(|events, _| events.iter().any(is_end)).await;
                *waited.lock() = began.elapsed();
            }
        })
        .await;
    let waited = *waited.lock();
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    assert_eq!(bringer.started.lock().len(), 1);
    assert!(told.asked_by("@@child").is_empty(), "it never came to speak");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_runs_sees_servers_come_and_go_from_its_next_turn_on() {
    // S-177
    let look = json!({"blocks": [{"tool": "Read", "input": {"file_path": "absent"}}], "latency_ms": 1_000});
    for front in ["", "mcpServers:\n  - desk\n", "mcpServers:\n  - notes: {}\n"] {
        let (bench, stage, _) = bench(&json!({
            "lead": [[starts("@@child")], "meanwhile", "heard"],
            "child": [look, look, look, look, "looked"],
        }));
        bench.agent("general-purpose", front, "Look.");
        let told = bench
            .live("@@lead", |handle, watcher| {
                let stage = Arc::clone(&stage);
                async move {
                    let turn = |number| {
                        let watcher = Arc::clone(&watcher);
                        async move {
                            let of_child = |asked: &&Asked| asked.agent.is_some();
                            let has_come = |_: &[Value], asked: &[Asked]| {
                                asked.iter().filter(of_child).count() == number
                            };
                            watcher.until(has_come).await;
                        }
                    };
                    turn(1).await;
                    assert!(handle.switch_server("desk", false));
                    turn(2).await;
                    assert!(handle.switch_server("desk", true));
                    turn(3).await;
                    assert!(handle.remove_server("desk"));
                    turn(4).await;
                    handle.add_server(stage.desk.connection());
                }
            })
            .await;
        let child = told.asked.iter().filter(|asked| asked.agent.is_some());
        let has = |asked: &Asked, tool: &str| asked.tools.iter().any(|name| name == tool);
        let turns: Vec<bool> = child.clone().map(|it| has(it, "mcp__desk__greet")).collect();
        assert_eq!(turns, [true, false, true, false, true], "{front}");
        let own = front.contains("notes");
        assert!(child.clone().all(|it| has(it, "mcp__notes__greet") == own), "{front}");
    }
}

/// Has the server `desk` come from somewhere else than the host, and be there after so many seconds.
fn desk_of(scope: McpScope, seconds: u64, mut bench: Bench, stage: &Arc<Stage>) -> Bench {
    *stage.desk.latency.lock() = Duration::from_secs(seconds);
    let (before, stage) = (bench.adjust, Arc::clone(stage));
    bench.adjust = Box::new(move |options| {
        before(options);
        let mut server = server("desk");
        server.origin.scope = scope.clone();
        options.extensions.servers = vec![stage.desk.own(server)];
        let (asked_for, others) = (Duration::from_secs(20), Duration::from_secs(5));
        options.extensions.server_patience = ServerPatience { asked_for, others };
    });
    bench
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_waited_for_once_and_longer_only_if_it_was_asked_for() {
    let named = || vec!["Read".to_owned(), "mcp__desk__greet".to_owned()];
    for (scope, asked_tools, waits) in [
        (McpScope::Project, Vec::new(), 5),
        (McpScope::User, Vec::new(), 5),
        (McpScope::Flag, Vec::new(), 20),
        (McpScope::Project, named(), 20),
    ] {
        let (bench, stage, _) = bench(&json!({
            "lead": [[waits_for("@@child")], "done"],
            "child": ["there"],
        }));
        let mut bench = desk_of(scope.clone(), 36_000, bench, &stage);
        let before = bench.adjust;
        bench.adjust = Box::new(move |options| {
            before(options);
            options.extensions.asked_tools.clone_from(&asked_tools);
        });
        let begun = tokio::time::Instant::now();
        let watcher = Arc::new(Watcher::default());
        let start = Start::New(SeededWorld::new(3).session_id());
        let mut session = bench.open(start, None, &watcher).await;
        session.handle().submit(SeededWorld::new(4).record_id(), vec![Block::text("@@lead")]);
        session.handle().close();
        let first = async {
            watcher.until(|_, asked| !asked.is_empty()).await;
            begun.elapsed()
        };
        let (_, first) = tokio::join!(session.run(), first);
        assert_eq!(first.as_secs(), waits, "{scope:?}");
        let init = watcher.events.lock().iter().find(|it| it["subtype"] == "init").cloned();
        assert_eq!(init.unwrap()["mcp_servers"][0]["status"], "pending", "{scope:?}");
        if waits == 5 {
            assert!(begun.elapsed() < Duration::from_secs(waits + 2), "the child waits no more");
        }
        assert_eq!(watcher.asked.lock().len(), 3, "{scope:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_a_server_that_comes_late_are_there_when_it_is() {
    let look = json!({"blocks": [{"tool": "Read", "input": {"file_path": "absent"}}], "latency_ms": 3_000});
    let (bench, stage, _) = bench(&json!({"lead": [look, [greet("desk")], "done"]}));
    let bench = desk_of(McpScope::Project, 7, bench, &stage);
    let told = bench.run("@@lead").await;
    let has = |asked: &Asked| asked.tools.iter().any(|name| name == "mcp__desk__greet");
    assert_eq!(told.asked.iter().map(has).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(stage.desk.calls.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_lists_tools_of_a_server_waits_for_it() {
    // D-16
    let (bench, stage, _) = bench(&json!({
        "lead": [[agent("lister", "@@child", &json!({}))], "done"],
        "child": [[greet("desk")], "greeted"],
    }));
    bench.agent("lister", "tools: mcp__desk__greet\n", "Greet.");
    let bench = desk_of(McpScope::Project, 12, bench, &stage);
    let told = bench.run("@@lead").await;
    assert!(has(&told, "@@child", "mcp__desk__greet"), "{:?}", told.results());
    assert_eq!(stage.desk.calls.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_runs_as_an_agent_waits_for_the_servers_whose_tools_that_lists() {
    let (mut bench, stage, _) = bench(&json!({"lead": [[greet("desk")], "greeted"]}));
    bench.agent("lister", "tools: mcp__desk__greet\n", "Greet.");
    bench.knows_agents(|agents| agents.main = Some("lister".to_owned()));
    let bench = desk_of(McpScope::Project, 12, bench, &stage);
    let told = bench.run("@@lead").await;
    assert!(has(&told, "@@lead", "mcp__desk__greet"), "{:?}", told.results());
    assert_eq!(stage.desk.calls.lock().len(), 1);
}
