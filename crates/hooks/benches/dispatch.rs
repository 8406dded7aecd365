//! Measures the cost of hooks for a call that no hook matches.
//!
//! `cargo bench -p centurion-hooks` prints the time of one call, and fails above the bounds.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_config::settings::Level;
use centurion_hooks::events::PreToolUse;
use centurion_hooks::{
    Common, Delegate, DelegateFuture, Event, HookOrigin, HookResponse, HookRules, HookScope,
    HookSet, HookSource, HookStarted, HookWatcher, Hooks, LateReply, ModelRequest, Surroundings,
    ToolCall,
};
use centurion_permissions::Access;
use centurion_protocol::{Env, SystemWorld, ToolUseId, World as _};
use centurion_tools::guard::GuardProgram;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

const TIMES: u32 = 100_000;

/// The bound for a check of the events.
const LOOK: Duration = Duration::from_nanos(100);

/// The bound for a call that no hook matches.
const CALL: Duration = Duration::from_micros(20);

/// Answers nothing: no hook of this benchmark runs.
struct Nobody;

impl Delegate for Nobody {
    fn prompt<'a>(&'a self, _: ModelRequest<'a>) -> DelegateFuture<'a, String> {
        Box::pin(async { Err("none".into()) })
    }

    fn agent<'a>(&'a self, _: ModelRequest<'a>) -> DelegateFuture<'a, String> {
        Box::pin(async { Err("none".into()) })
    }

    fn mcp_tool<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: Map<String, Value>,
    ) -> DelegateFuture<'a, String> {
        Box::pin(async { Err("none".into()) })
    }

    fn callback<'a>(
        &'a self,
        _: &'a str,
        _: &'a Value,
        _: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value> {
        Box::pin(async { Err("none".into()) })
    }
}

impl HookWatcher for Nobody {
    fn started(&self, _: HookStarted) {}
    fn ended(&self, _: HookResponse) {}
    fn late(&self, _: LateReply) {}
}

fn hooks() -> Hooks {
    let around = Surroundings {
        guard: GuardProgram::new("/nonexistent"),
        env: Arc::new(Env::default()),
        project_dir: "/p".into(),
        home: None,
        overflow_dir: "/nonexistent".into(),
        env_file: None,
        world: Arc::new(SystemWorld),
        delegate: Arc::new(Nobody),
        watcher: Arc::new(Nobody),
    };
    Hooks::new(around, HookRules::default())
}

/// A hundred hooks for other tools.
fn others() -> HookSet {
    let group = |number: usize| {
        let matcher = if number.is_multiple_of(2) {
            format!("Tool{number}")
        } else {
            format!("^mcp__s{number}__.*")
        };
        json!({"matcher": matcher, "hooks": [{"type": "command", "command": "x"}]})
    };
    let groups: Vec<Value> = (0..100).map(group).collect();
    let origin = HookOrigin::new(HookSource::Settings(Level::User));
    HookSet::from_value(&json!({"PreToolUse": groups}), &origin)
}

fn measure(name: &str, most: Duration, mut act: impl FnMut()) {
    let started = Instant::now();
    for _ in 0..TIMES {
        act();
    }
    let each = started.elapsed() / TIMES;
    println!("{name}: {each:?}");
    assert!(each < most, "{name}: {each:?} is more than {most:?}");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let hooks = hooks();
    let input = to_raw_value(&json!({"command": "ls"})).expect("JSON");
    let (id, access) = (ToolUseId::new("t"), Access::Shell("ls".to_owned()));
    let call = ToolCall {
        tool: "Bash",
        input: &input,
        id: &id,
        mcp_server: None,
        access: &access,
        named: None,
    };
    let event = PreToolUse { call };
    let common = Common {
        session_id: SystemWorld.session_id(),
        prompt_id: None,
        transcript_path: PathBuf::from("/t"),
        cwd: PathBuf::from("/p"),
        permission_mode: None,
        effort: None,
        agent_id: None,
        agent_type: None,
        parent_agent_id: None,
        teammate_name: None,
        team_name: None,
        depth: 0,
    };
    let cancel = CancellationToken::new();
    let fire = || runtime.block_on(async { black_box(hooks.fire(&common, &event, &cancel).await) });
    measure("a look whether there are hooks", LOOK, || {
        black_box(hooks.is_empty_for(black_box(Event::PreToolUse)));
    });
    measure("a call without hooks", CALL, || drop(fire()));
    let _others = hooks.add(HookScope::Session, others());
    measure("a call with a hundred hooks for other tools", CALL, || drop(fire()));
}
