//! What one call costs between a model's wish and its result: input, hooks, rules, run.
//!
//! `cargo bench -p centurion-engine` prints the time of one call of a tool that does next to nothing, with
//! no hooks at all and with a hundred for other tools, against a target of 20 µs.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_config::settings::Level;
use centurion_engine::{Base, Extensions, Options, Storage, ToolServer};
use centurion_hooks::{HookOrigin, HookSet, HookSource};
use centurion_model::{Model, ProviderKind, RetryPolicy, script};
use centurion_protocol::{Env, SystemWorld};
use centurion_tools::guard::GuardProgram;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const CALLS: u32 = 10_000;
const ROUNDS: usize = 5;
const LONGEST: Duration = Duration::from_micros(20);

/// A session in a directory, with these hooks.
fn options(dir: &Path, hooks: HookSet) -> Options {
    let env = Arc::new(Env::default());
    let script = script::parse(r#"{"default": "never asked"}"#, "scenario.json");
    let model = Model::with_provider(
        Arc::new(script.expect("a good scenario")),
        ProviderKind::Script,
        "script",
        RetryPolicy::new(&env),
        Arc::new(SystemWorld),
    );
    let base = Base::new(dir.to_owned(), GuardProgram::new("/nonexistent/guard"));
    Options {
        extensions: Extensions { hooks, ..Extensions::default() },
        ..Options::new(model, base, Storage::without_transcript(dir.join("output")))
    }
}

/// A hundred hooks at every step of a call, none of them for the tool that is called.
fn others() -> HookSet {
    let group = |number: usize| {
        let matcher = match number % 2 {
            0 => format!("Tool{number}"),
            _ => format!("^mcp__server{number}__.*"),
        };
        json!({"matcher": matcher, "hooks": [{"type": "command", "command": "never-run"}]})
    };
    let groups: Vec<Value> = (0..100).map(group).collect();
    let events = json!({"PreToolUse": groups, "PostToolUse": groups, "PostToolUseFailure": groups});
    HookSet::from_value(&events, &HookOrigin::new(HookSource::Settings(Level::User)))
}

/// Calls a tool many times, and says how long one call took at best: other programs run, too.
async fn measure(name: &str, dir: &Path, hooks: HookSet) -> Duration {
    let tools = ToolServer::open(options(dir, hooks)).await.expect("the tools of a session");
    let input: Box<RawValue> = to_raw_value(&json!({"todos": []})).expect("JSON");
    let cancel = CancellationToken::new();
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..CALLS {
            let reply = tools.call("TodoWrite", input.clone(), None, &cancel).await;
            assert!(!black_box(reply).expect("an offered tool").is_error);
        }
        best = best.min(started.elapsed() / CALLS);
    }
    tools.close().await;
    let share = best.as_secs_f64() / LONGEST.as_secs_f64() * 100.0;
    println!("{name}: {best:.1?} a call, {share:.0} % of the target of {LONGEST:?}");
    best
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let dir = tempfile::tempdir().expect("a scratch directory");
    let (none, hundred) = runtime.expect("a runtime").block_on(async {
        let none = measure("a dispatch without hooks", dir.path(), HookSet::default());
        let none = Box::pin(none).await;
        let hundred = "a dispatch with a hundred hooks for other tools";
        let hundred = Box::pin(measure(hundred, dir.path(), others())).await;
        (none, hundred)
    });
    assert!(none < LONGEST, "a dispatch without hooks takes {none:?}");
    println!("hooks for other tools add {:.1?}", hundred.saturating_sub(none));
}
