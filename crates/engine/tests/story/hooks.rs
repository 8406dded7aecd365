//! The matrix of hooks: every way in which calls happen × every event, told once, with the right ids.
//!
//! A way is data: what the model says, what surrounds it, and all that hooks must hear of it. A new way in which
//! an agent can run is added here.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use centurion_config::memory::{Memory, MemorySources};
use centurion_engine::{
    Answerer, Ask, Change, ElicitFuture, Reply, ReplyFuture, RuleSource, Rules, Start, ToolServer,
};
use centurion_hooks::Event;
use centurion_mcp::{Elicitation, ElicitationAnswer};
use centurion_permissions::Mode;
use centurion_protocol::{Block, Outcome, SeededWorld, World};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent_stage::LAST_AGENT;
use crate::bench::{Bench, Watcher};
use crate::hook_stage::{Stage, every_event};

/// Events that these stories do not make happen. The tests of the whole program do:
/// `every_hook_event_reaches_the_sdk_for_typescript` and, in detail, `every_event_of_a_session_reaches_a_command`,
/// `hooks_take_a_task_back_and_keep_one_open`, `the_hooks_of_a_setup_run_before_those_of_the_start`, those of
/// `hook_events`, and those of worktrees that hooks make.
const ELSEWHERE: [Event; 11] = [
    Event::Setup,
    Event::MessageDisplay,
    Event::TeammateIdle,
    Event::PreModelSwitch,
    Event::PostModelSwitch,
    Event::DirectoryAdded,
    Event::CwdChanged,
    Event::TaskCreated,
    Event::TaskCompleted,
    Event::WorktreeCreate,
    Event::WorktreeRemove,
];

const SCHEMA: &str = r#"{"type": "object", "properties": {"n": {"type": "number"}}}"#;

/// One way in which calls can happen, and what hooks hear of it.
struct Way {
    name: &'static str,
    bench: Bench,
    stage: Arc<Stage>,
    prompt: &'static str,
    how: How,
    outcome: Option<Outcome>,
    /// In order; calls side by side may come in another.
    expected: &'static [&'static str],
}

/// How the agent is set to work.
enum How {
    Run,
    /// After another run, of which hooks have heard already.
    Resume,
    /// In a copy of another session, of which hooks have heard already.
    Fork,
    /// Another program calls a tool.
    Serve,
}

fn way(name: &'static str, steps: &Value, expected: &'static [&'static str]) -> Way {
    let bench = Bench { allow: "mcp__desk", ..Bench::says(steps) };
    bench.file("a.txt", "alpha\n");
    bench.file("b.txt", "beta\n");
    let stage = Stage::silent();
    let outcome = Some(Outcome::Completed);
    Way { name, bench, stage, prompt: "go", how: How::Run, outcome, expected }
}

fn read(id: &str, file: &str) -> Value {
    json!({"tool": "Read", "id": id, "input": {"file_path": file}})
}

fn write(id: &str, file: &str) -> Value {
    json!({"tool": "Write", "id": id, "input": {"file_path": file, "content": "y"}})
}

fn ask_desk(id: &str, tool: &str) -> Value {
    json!({"tool": format!("mcp__desk__{tool}"), "id": id, "input": {}})
}

/// The ways in which one agent calls tools.
#[rustfmt::skip]
fn calls() -> Vec<Way> {
    vec![
        way("no call at all", &json!(["done"]), &[
            "SessionStart startup", "UserPromptSubmit go", "Stop", "SessionEnd other",
        ]),
        way("read-only calls side by side", &json!([[read("t1", "a.txt"), read("t2", "b.txt")], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Read t1", "PreToolUse Read t2", "PostToolUse Read t1", "PostToolUse Read t2",
            "PostToolBatch t1 t2", "Stop", "SessionEnd other",
        ]),
        way("one call that writes", &json!([[write("t1", "x.txt")], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Write t1", "PostToolUse Write t1",
            "PostToolBatch t1", "Stop", "SessionEnd other",
        ]),
        way("several answers with several calls", &json!([
            [read("t1", "a.txt"), write("t2", "x.txt"), read("t3", "x.txt")], [read("t4", "b.txt")], "done",
        ]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Read t1", "PostToolUse Read t1", "PreToolUse Write t2", "PostToolUse Write t2",
            "PreToolUse Read t3", "PostToolUse Read t3", "PostToolBatch t1 t2 t3",
            "PreToolUse Read t4", "PostToolUse Read t4", "PostToolBatch t4",
            "Stop", "SessionEnd other",
        ]),
        way("tools of a server", &json!([[ask_desk("t1", "greet")], [ask_desk("t2", "fail")], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse mcp__desk__greet t1", "PostToolUse mcp__desk__greet t1", "PostToolBatch t1",
            "PreToolUse mcp__desk__fail t2", "PostToolUseFailure mcp__desk__fail t2", "PostToolBatch t2",
            "Stop", "SessionEnd other",
        ]),
        way("a call that fails", &json!([[read("t1", "none.txt")], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Read t1", "PostToolUseFailure Read t1",
            "PostToolBatch t1", "Stop", "SessionEnd other",
        ]),
        way("calls that cannot be read", &json!([[
            {"tool": "Frobnicate", "id": "t1", "input": {}}, {"tool": "Read", "id": "t2", "input": {"path": 7}},
        ], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go", "PostToolBatch t1 t2", "Stop", "SessionEnd other",
        ]),
        Way {
            outcome: Some(Outcome::Cancelled),
            ..way("a call that is cancelled while it runs", &json!([[ask_desk("t1", "hang")], "done"]), &[
                "SessionStart startup", "UserPromptSubmit go",
                "PreToolUse mcp__desk__hang t1", "PostToolUseFailure mcp__desk__hang t1",
                "SessionEnd other",
            ])
        },
        with(way("an answer that is data", &json!([
            [{"tool": "StructuredOutput", "id": "t1", "input": {"n": 1}}],
        ]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse StructuredOutput t1", "PostToolUse StructuredOutput t1", "PostToolBatch t1",
            "Stop", "SessionEnd other",
        ]), |bench| bench.schema = Some(SCHEMA)),
        Way {
            how: How::Serve,
            outcome: None,
            ..way("a call of somebody else", &json!([]), &[
                "SessionStart startup", "PreToolUse Read served_0", "PostToolUse Read served_0",
                "SessionEnd other",
            ])
        },
    ]
}

/// The ways in which a call is decided about.
#[rustfmt::skip]
fn decisions() -> Vec<Way> {
    vec![
        with(way("a call that a rule denies", &json!([[write("t1", "x.txt")], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Write t1", "PostToolBatch t1", "Stop", "SessionEnd other",
        ]), |bench| bench.deny = "Edit(x.txt)"),
        with(way("a call about which nobody can be asked", &json!([[write("t1", "x.txt")], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Write t1", "PermissionRequest Write t1",
            "PostToolBatch t1", "Stop", "SessionEnd other",
        ]), |bench| bench.mode = Mode::Default),
        with(way("a call that auto mode denies", &json!([
            [{"tool": "Bash", "id": "t1", "input": {"command": "make it so"}}], "done",
        ]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Bash t1", "PermissionRequest Bash t1", "PermissionDenied Bash t1",
            "PostToolBatch t1", "Stop", "SessionEnd other",
        ]), |bench| bench.mode = Mode::Auto),
        with(way("a call that a person allows", &json!([[write("t1", "x.txt")], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Write t1", "PermissionRequest Write t1", "Notification permission_prompt",
            "PostToolUse Write t1", "PostToolBatch t1", "Stop", "SessionEnd other",
        ]), |bench| {
            bench.mode = Mode::Default;
            bench.answerer = Some(Arc::new(Yes));
        }),
        with(way("a server that asks a person", &json!([[ask_desk("t1", "ask")], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse mcp__desk__ask t1", "Elicitation desk", "Notification elicitation_dialog",
            "ElicitationResult desk", "PostToolUse mcp__desk__ask t1",
            "PostToolBatch t1", "Stop", "SessionEnd other",
        ]), |bench| bench.answerer = Some(Arc::new(Yes))),
    ]
}

/// The ways in which a run begins, continues and ends.
#[rustfmt::skip]
fn runs() -> Vec<Way> {
    vec![
        Way {
            how: How::Resume,
            ..way("after a resume", &json!(["first", [read("t1", "a.txt")], "done"]), &[
                "SessionStart resume", "UserPromptSubmit go",
                "PreToolUse Read t1", "PostToolUse Read t1", "PostToolBatch t1", "Stop", "SessionEnd other",
            ])
        },
        Way {
            how: How::Fork,
            ..way("in a fork", &json!(["first", [read("t1", "a.txt")], "done"]), &[
                "SessionStart fork", "UserPromptSubmit go",
                "PreToolUse Read t1", "PostToolUse Read t1", "PostToolBatch t1", "Stop", "SessionEnd other",
            ])
        },
        with(Way {
            stage: stops_late(),
            ..way("data after a stop that was blocked", &json!([
                [{"tool": "StructuredOutput", "id": "t1", "input": {"n": 1}}],
                [{"tool": "StructuredOutput", "id": "t2", "input": {"n": 2}}],
            ]), &[
                "SessionStart startup", "UserPromptSubmit go",
                "PreToolUse StructuredOutput t1", "PostToolUse StructuredOutput t1", "PostToolBatch t1", "Stop",
                "PreToolUse StructuredOutput t2", "PostToolUse StructuredOutput t2", "PostToolBatch t2", "Stop again",
                "SessionEnd other",
            ])
        }, |bench| bench.schema = Some(SCHEMA)),
        Way {
            stage: stops_late(),
            ..way("after a stop that was blocked", &json!(["done?", [read("t1", "a.txt")], "done"]), &[
                "SessionStart startup", "UserPromptSubmit go", "Stop",
                "PreToolUse Read t1", "PostToolUse Read t1", "PostToolBatch t1", "Stop again",
                "SessionEnd other",
            ])
        },
        with(Way {
            outcome: Some(Outcome::ApiError),
            ..way("a provider that fails", &json!([{"error": {"status": 429, "type": "rate_limit_error"}}]), &[
                "SessionStart startup", "UserPromptSubmit go", "StopFailure rate_limit", "SessionEnd other",
            ])
        }, |bench| bench.retries = 0),
        with(way("a conversation that is compacted", &json!([
            [read("t1", "a.txt")], {"blocks": [read("t2", "a.txt")], "usage": {"input_tokens": 980_000}},
        ]), &[
            "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Read t1", "PostToolUse Read t1", "PostToolBatch t1",
            "PreToolUse Read t2", "PostToolUse Read t2", "PostToolBatch t2",
            "PreCompact auto", "PostCompact auto", "SessionStart compact", "Stop", "SessionEnd other",
        ]), |bench| {
            bench.file("a.txt", &"word\n".repeat(1_000));
            bench.scenario["rules"] = json!([
                {"match": {"last_user": "about to leave its window"}, "respond": "<summary>It read.</summary>"},
                {"match": {"first_user": "continues from an earlier part"}, "respond": "done"},
            ]);
        }),
        Way {
            prompt: "/mcp__desk__brief",
            ..way("a command of a server", &json!(["done"]), &[
                "SessionStart startup", "UserPromptExpansion mcp__desk__brief",
                "UserPromptSubmit the whole brief", "Stop", "SessionEnd other",
            ])
        },
        instructed(way("instructions", &json!([[read("t1", "deep/c.txt")], "done"]), &[
            "InstructionsLoaded session_start", "SessionStart startup", "UserPromptSubmit go",
            "PreToolUse Read t1", "PostToolUse Read t1", "InstructionsLoaded nested_traversal",
            "PostToolBatch t1", "Stop", "SessionEnd other",
        ])),
        Way {
            stage: watches(),
            ..way("a file that is watched", &json!([[write("t1", "x.txt")], "done"]), &[
                "SessionStart startup", "UserPromptSubmit go", "PreToolUse Write t1", "PostToolUse Write t1",
                "PostToolBatch t1", "FileChanged add", "Stop", "SessionEnd other",
            ])
        },
        with(way("settings that change", &json!([[read("t1", "a.txt")], "done"]), &[
            "SessionStart startup", "UserPromptSubmit go", "ConfigChange user_settings",
            "PreToolUse Read t1", "PostToolUse Read t1", "PostToolBatch t1", "Stop", "SessionEnd other",
        ]), |bench| {
            bench.adjust = Box::new(|options| {
                let rules = Rules { directories: vec![options.base.cwd.clone()], ..Rules::default() };
                let files = vec![("user_settings", "/settings.json".into())];
                let hooks = every_event();
                let change = Change { rules, files, hooks, ..Change::default() };
                options.permission.rule_source = Some(Box::new(Changes(vec![change])));
            });
        }),
    ]
}

/// The ways in which agents start others.
#[rustfmt::skip]
fn agents() -> Vec<Way> {
    let start = |id: &str, prompt: &str, in_background: bool| json!({"tool": "Agent", "id": id, "input": {
        "description": "a job", "prompt": prompt, "run_in_background": in_background,
    }});
    let child = json!([[read("t1", "a.txt")], "found"]);
    vec![
        cast("an agent that is waited for", &json!({
            "lead": [[start("t0", "@@child", false)], "done"], "child": child,
        }), &[
            "SessionStart startup", "UserPromptSubmit @@lead", "PreToolUse Agent t0",
            "SubagentStart general-purpose at 1",
            "PreToolUse Read t1 at 1", "PostToolUse Read t1 at 1", "PostToolBatch t1 at 1",
            "SubagentStop general-purpose at 1",
            "PostToolUse Agent t0", "PostToolBatch t0", "Stop", "SessionEnd other",
        ]),
        cast("an agent in the background", &json!({
            "lead": [[start("t0", "@@child", true)], "meanwhile", "heard"], "child": child,
        }), &[
            "SessionStart startup", "UserPromptSubmit @@lead",
            "PreToolUse Agent t0", "PostToolUse Agent t0", "PostToolBatch t0", "Stop",
            "SubagentStart general-purpose at 1",
            "PreToolUse Read t1 at 1", "PostToolUse Read t1 at 1", "PostToolBatch t1 at 1",
            "SubagentStop general-purpose at 1",
            "UserPromptSubmit news", "Stop", "SessionEnd other",
        ]),
        cast("an agent of an agent", &json!({
            "lead": [[start("t0", "@@middle", false)], "done"],
            "middle": [[start("m0", "@@child", false)], "passed on"], "child": child,
        }), &[
            "SessionStart startup", "UserPromptSubmit @@lead", "PreToolUse Agent t0",
            "SubagentStart general-purpose at 1", "PreToolUse Agent m0 at 1",
            "SubagentStart general-purpose at 2",
            "PreToolUse Read t1 at 2", "PostToolUse Read t1 at 2", "PostToolBatch t1 at 2",
            "SubagentStop general-purpose at 2",
            "PostToolUse Agent m0 at 1", "PostToolBatch m0 at 1", "SubagentStop general-purpose at 1",
            "PostToolUse Agent t0", "PostToolBatch t0", "Stop", "SessionEnd other",
        ]),
        cast("an agent that goes on", &json!({
            "lead": [
                [start("t0", "@@first", false)],
                [{"tool": "SendMessage", "id": "t9", "input": {"to": LAST_AGENT, "message": "@@child"}}],
                "waiting", "heard",
            ],
            "first": ["first"], "child": child,
        }), &[
            "SessionStart startup", "UserPromptSubmit @@lead", "PreToolUse Agent t0",
            "SubagentStart general-purpose at 1", "SubagentStop general-purpose at 1",
            "PostToolUse Agent t0", "PostToolBatch t0",
            "PreToolUse SendMessage t9", "PostToolUse SendMessage t9", "PostToolBatch t9", "Stop",
            "SubagentStart general-purpose at 1",
            "PreToolUse Read t1 at 1", "PostToolUse Read t1 at 1", "PostToolBatch t1 at 1",
            "SubagentStop general-purpose at 1",
            "UserPromptSubmit news", "Stop", "SessionEnd other",
        ]),
    ]
}

fn cast(name: &'static str, scripts: &Value, expected: &'static [&'static str]) -> Way {
    let bench = Bench::cast(scripts);
    bench.file("a.txt", "alpha\n");
    Way { bench, prompt: "@@lead", ..way(name, &json!([]), expected) }
}

/// Hooks that want to hear of a file.
fn watches() -> Arc<Stage> {
    let watched = json!({"hookEventName": "SessionStart", "watchPaths": ["x.txt"]});
    Stage::at(Event::SessionStart, json!({"hookSpecificOutput": watched}))
}

/// Hooks that keep an agent from stopping the first time.
fn stops_late() -> Arc<Stage> {
    Stage::new(|told| {
        let is_first = told["hook_event_name"] == "Stop" && told["stop_hook_active"] == false;
        let block = json!({"decision": "block", "reason": "not yet"});
        Some(if is_first { block } else { json!({}) })
    })
}

fn with(mut way: Way, change: impl FnOnce(&mut Bench)) -> Way {
    change(&mut way.bench);
    way
}

/// Instructions in the project and in a directory below it.
fn instructed(way: Way) -> Way {
    std::fs::create_dir(way.bench.project().join("deep")).unwrap();
    way.bench.file("CLAUDE.md", "be brief");
    way.bench.file("deep/CLAUDE.md", "be briefer");
    way.bench.file("deep/c.txt", "gamma\n");
    with(way, |bench| {
        bench.adjust = Box::new(|options| {
            let cwd = options.base.cwd.clone();
            options.memory = Some(Memory::load(MemorySources { cwd, ..MemorySources::default() }));
        });
    })
}

/// Settings that change with every look, until there are no more changes.
pub(crate) struct Changes(pub(crate) Vec<Change>);

impl RuleSource for Changes {
    fn changed(&mut self) -> Option<Change> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }
}

/// Says yes to everything.
struct Yes;

impl Answerer for Yes {
    fn answer(&self, _: Ask) -> ReplyFuture<'_> {
        Box::pin(std::future::ready(Ok(Reply::Allowed { input: None, remember: Vec::new() })))
    }

    fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
        Box::pin(std::future::ready(Ok(ElicitationAnswer::Accept(serde_json::Map::new()))))
    }
}

impl Way {
    /// Plays it; gives what hooks were told.
    async fn play(self) -> Vec<Value> {
        let Self { name, bench, stage, prompt, how, outcome, expected } = self;
        let bench = stage.set(bench);
        let watcher = Arc::new(Watcher::default());
        let id = SeededWorld::new(bench.seed).session_id();
        let fork = SeededWorld::new(77).session_id();
        let (start, earlier) = match how {
            How::Run | How::Serve => (Start::New(id), None),
            How::Resume => (Start::Resume(id), Some(bench.run("before").await)),
            How::Fork => (Start::Fork { from: id, id: fork }, Some(bench.run("before").await)),
        };
        stage.take();
        let (id, earlier) = (start.id(), earlier.map(|told| told.transcript));
        let mut transcript = bench.transcript(id);
        if let How::Serve = how {
            transcript.clear();
            let server = ToolServer::open(bench.options(start, earlier, &watcher)).await.unwrap();
            let input = to_raw_value(&json!({"file_path": "a.txt"})).unwrap();
            let reply = server.call("Read", input, None, &CancellationToken::new()).await.unwrap();
            assert!(!reply.is_error, "{name}");
            server.close().await;
        } else {
            let mut session = bench.open(start, earlier, &watcher).await;
            let handle = session.handle();
            handle.submit(SeededWorld::new(9).record_id(), vec![Block::text(prompt)]);
            handle.close();
            assert!(stage.desk.handle.set(handle).is_ok());
            assert_eq!(session.run().await, outcome, "{name}");
        }
        let heard = stage.take();
        let found: Vec<String> = heard.iter().map(occasion).collect();
        assert_eq!(sorted(&found), sorted(expected), "{name}: {found:#?}");
        assert_paired(name, &found);
        for told in &heard {
            let session = id.to_string();
            assert_common(name, told, &session, &transcript, &bench.project(), bench.mode);
        }
        heard
    }
}

/// What happened, in a few words, and how deep.
fn occasion(told: &Value) -> String {
    match told["depth"].as_u64() {
        Some(depth) if depth > 0 => format!("{} at {depth}", happened(told)),
        _ => happened(told),
    }
}

fn happened(told: &Value) -> String {
    let text = |key: &str| told[key].as_str().map(str::to_owned);
    let event = text("hook_event_name").unwrap();
    if let Some(calls) = told["tool_calls"].as_array() {
        let ids: Vec<&str> =
            calls.iter().map(|call| call["tool_use_id"].as_str().unwrap()).collect();
        return format!("{event} {}", ids.join(" "));
    }
    if let (Some(tool), Some(id)) = (text("tool_name"), text("tool_use_id")) {
        return format!("{event} {tool} {id}");
    }
    if event == "Stop" {
        return if told["stop_hook_active"] == true { "Stop again".to_owned() } else { event };
    }
    if event.starts_with("Subagent") {
        return format!("{event} {}", text("agent_type").unwrap());
    }
    if text("prompt").is_some_and(|prompt| prompt.starts_with("<task-notification>")) {
        return format!("{event} news");
    }
    let subjects = [
        "source",
        "load_reason",
        "command_name",
        "notification_type",
        "error",
        "mcp_server_name",
        "reason",
        "prompt",
        "event",
        "trigger",
    ];
    let subject = subjects.into_iter().find_map(text).unwrap_or_else(|| panic!("{told}"));
    format!("{event} {subject}")
}

fn sorted<T: AsRef<str>>(texts: &[T]) -> Vec<&str> {
    let mut texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    texts.sort_unstable();
    texts
}

/// What begins ends, once, and in this order.
fn assert_paired(way: &str, found: &[String]) {
    let place = |text: &str| found.iter().position(|it| it == text);
    for (at, call) in found.iter().enumerate() {
        let Some(call) = call.strip_prefix("PreToolUse ") else { continue };
        let ends: Vec<usize> = ["PostToolUse", "PostToolUseFailure"]
            .iter()
            .filter_map(|event| place(&format!("{event} {call}")))
            .collect();
        assert!(ends.len() <= 1, "{way}: {call} ended twice");
        assert!(ends.iter().all(|end| *end > at), "{way}: {call} ended before it began");
    }
    for call in found
        .iter()
        .filter_map(|it| it.strip_prefix("PostToolUse").and_then(|it| it.split_once(' ')))
    {
        assert!(place(&format!("PreToolUse {}", call.1)).is_some(), "{way}: {call:?} never began");
    }
    let begins = found.iter().position(|it| it.starts_with("SessionStart ")).unwrap();
    let before = &found[..begins];
    assert!(before.iter().all(|it| it.starts_with("InstructionsLoaded ")), "{way}: {found:?}");
    assert_eq!(found.last().unwrap(), "SessionEnd other", "{way}");
}

/// What every hook is told, of the main agent and of others.
fn assert_common(
    way: &str,
    told: &Value,
    session: &str,
    transcript: &Path,
    cwd: &Path,
    mode: Mode,
) {
    let expected = json!([session, transcript, cwd, mode.to_string()]);
    let fields = ["session_id", "transcript_path", "cwd", "permission_mode"];
    let found: Vec<Value> = fields.iter().map(|field| told[*field].clone()).collect();
    assert_eq!(Value::Array(found), expected, "{way}: {told}");
    let depth = told["depth"].as_u64().unwrap();
    for (field, from) in [("agent_id", 1), ("agent_type", 1), ("parent_agent_id", 2)] {
        assert_eq!(
            told[field].is_string(),
            depth >= from,
            "{way}: {field} at depth {depth}: {told}"
        );
    }
    let is_input = told["tool_input"].get("file_path").and_then(Value::as_str);
    assert!(is_input.is_none_or(|path| Path::new(path).is_absolute()), "{way}: {told}");
}

/// Agents are told of by the same ids from their start to their stop, each below its parent.
fn assert_related(way: &str, heard: &[Value]) {
    let of =
        |event: Event| heard.iter().filter(move |told| told["hook_event_name"] == event.name());
    let ids = |event| -> Vec<&Value> { of(event).map(|told| &told["agent_id"]).collect() };
    let (mut starts, mut stops) = (ids(Event::SubagentStart), ids(Event::SubagentStop));
    starts.sort_by_key(ToString::to_string);
    stops.sort_by_key(ToString::to_string);
    assert_eq!(starts, stops, "{way}: whoever starts stops");
    for told in heard.iter().filter(|told| told["depth"] != 0) {
        assert!(starts.contains(&&told["agent_id"]), "{way}: {told}");
        let above =
            of(Event::SubagentStart).find(|start| start["agent_id"] == told["parent_agent_id"]);
        let depth = above.map_or(0, |above| above["depth"].as_u64().unwrap());
        assert_eq!(told["depth"].as_u64(), Some(depth + 1), "{way}: {told}");
    }
    for stop in of(Event::SubagentStop) {
        let file = format!("agent-{}.jsonl", stop["agent_id"].as_str().unwrap());
        assert!(
            Path::new(stop["agent_transcript_path"].as_str().unwrap()).ends_with(file),
            "{way}"
        );
    }
}

#[tokio::test]
async fn every_event_is_told_once_for_each_occasion_with_the_right_ids() {
    // S-337, S-333; scenario 28
    let mut seen = BTreeSet::from(ELSEWHERE);
    for way in calls().into_iter().chain(decisions()).chain(runs()).chain(agents()) {
        let name = way.name;
        let heard = Box::pin(way.play()).await;
        seen.extend(
            heard
                .iter()
                .map(|told| told["hook_event_name"].as_str().unwrap().parse::<Event>().unwrap()),
        );
        // All that belongs to a prompt says to which, and only that.
        let submitted = heard.iter().position(|told| told["hook_event_name"] == "UserPromptSubmit");
        let (before, after) = heard.split_at(submitted.unwrap_or(heard.len()));
        assert!(before.iter().all(|told| told.get("prompt_id").is_none()), "{name}");
        assert!(after.iter().all(|told| told["prompt_id"].is_string()), "{name}");
        let is_news = |pair: &[Value]| pair[1]["hook_event_name"] == "UserPromptSubmit";
        let is_same = |pair: &[Value]| pair[0]["prompt_id"] == pair[1]["prompt_id"];
        assert!(after.windows(2).all(|pair| is_news(pair) || is_same(pair)), "{name}");
        assert_related(name, &heard);
    }
    let fired: BTreeSet<Event> = Event::all().filter(|event| event.is_fired()).collect();
    assert_eq!(seen, fired, "every event that is said to happen does, and no other");
}
