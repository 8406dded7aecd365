//! Hooks as closures.

use std::sync::Arc;

use centurion_embed::{Event, HookEvent, HookReply, Model, Outcome, Session};
use parking_lot::Mutex;
use serde_json::json;

const READS: &str = "
default:
  - {tool: Glob, input: {pattern: '*.md'}}
  - 'It said: ${re:(.+)}'
";

#[tokio::test]
async fn a_hook_changes_the_input_of_a_call_and_adds_context() {
    let builder = Session::builder(Model::script(READS))
        .hook(HookEvent::PreToolUse, "Glob", |call| async move {
            assert_eq!(call.input, Some(json!({"pattern": "*.md"})));
            HookReply::allow().with_input(json!({"pattern": "*.txt"}))
        })
        .hook(HookEvent::PostToolUse, "", |call| async move {
            let pattern = call.input.unwrap()["pattern"].to_string();
            HookReply::proceed().with_context(format!("the hook saw {pattern}"))
        });
    let mut session = builder.open().await.unwrap();
    let answer = session.ask("look").await.unwrap();
    assert_eq!(answer.outcome, Outcome::Completed);
}

#[tokio::test]
async fn hooks_hear_of_their_events_and_of_no_others() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listen = |name: &'static str| {
        let heard = Arc::clone(&heard);
        move |call: centurion_embed::HookCall| {
            heard.lock().push((name, call.event, call.tool));
            async { HookReply::proceed() }
        }
    };
    let builder = Session::builder(Model::script(READS))
        .hook(HookEvent::UserPromptSubmit, "", listen("prompt"))
        .hook(HookEvent::PreToolUse, "Read", listen("other tool"))
        .hook(HookEvent::PreToolUse, "Glob|Grep", listen("tool"))
        .hook(HookEvent::Stop, "", listen("stop"));
    let mut session = builder.open().await.unwrap();
    session.ask("look").await.unwrap();
    let glob = Some("Glob".to_owned());
    assert_eq!(
        *heard.lock(),
        [
            ("prompt", HookEvent::UserPromptSubmit, None),
            ("tool", HookEvent::PreToolUse, glob),
            ("stop", HookEvent::Stop, None),
        ]
    );
}

#[tokio::test]
async fn a_hook_blocks_a_call_with_a_reason_that_the_model_reads() {
    let builder =
        Session::builder(Model::script(READS))
            .hook(HookEvent::PreToolUse, "Glob", |_| async { HookReply::block("not on a Sunday") });
    let mut session = builder.open().await.unwrap();
    let mut turn = session.send("look");
    let mut ends = Vec::new();
    while let Some(event) = turn.next().await {
        if let Event::CallEnded { text, is_error, .. } = event {
            ends.push((text, is_error));
        }
    }
    assert!(matches!(&ends[..], [(text, true)] if text.contains("not on a Sunday")), "{ends:?}");
}

#[tokio::test]
async fn a_hook_ends_a_run() {
    let builder =
        Session::builder(Model::script(READS))
            .hook(HookEvent::UserPromptSubmit, "", |_| async { HookReply::end_run("closed") });
    let mut session = builder.open().await.unwrap();
    assert_eq!(session.ask("look").await.unwrap().outcome, Outcome::Stopped);
}
