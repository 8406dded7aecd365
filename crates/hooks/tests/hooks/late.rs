//! Asynchronous hooks.

use centurion_config::settings::Level;
use centurion_hooks::Event;
use serde_json::json;

use crate::stage::Stage;

fn leave(stage: &Stage, handler: &serde_json::Value) {
    stage.settings(Level::User, &json!({"UserPromptSubmit": [{"hooks": [handler]}]}));
}

#[tokio::test]
async fn what_a_hook_says_later_is_told_later() {
    let mut stage = Stage::new();
    let fifo = stage.scratch.project().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    leave(
        &stage,
        &json!({"type": "command", "async": true, "command": "read line < fifo; \
            echo '{\"continue\": false, \"systemMessage\": \"S\", \"hookSpecificOutput\": \
            {\"additionalContext\": \"C\"}}'"}),
    );
    let fired = stage.prompt().await;
    // It still waits for its line.
    assert_eq!((fired.runs, fired.effects.stop), (1, None));
    assert!(stage.late.is_empty());
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "go\n")).await.unwrap().unwrap();
    let late = stage.late.recv().await.unwrap();
    assert_eq!(late.event, Event::UserPromptSubmit);
    assert_eq!(
        late.context,
        [
            "UserPromptSubmit hook additional context: C",
            "UserPromptSubmit hook additional context: S"
        ]
    );
    assert_eq!((late.wakes, late.error), (None, None));
}

#[tokio::test]
async fn exit_code_two_wakes_only_if_it_was_asked_to() {
    let mut stage = Stage::new();
    let command = "echo look >&2; exit 2";
    leave(&stage, &json!({"type": "command", "asyncRewake": true, "command": command}));
    stage.prompt().await;
    let late = stage.late.recv().await.unwrap();
    let expected = format!("UserPromptSubmit hook feedback:\n[{command}]: look");
    assert_eq!(late.wakes.as_deref(), Some(expected.as_str()));
    let mut stage = Stage::new();
    leave(&stage, &json!({"type": "command", "async": true, "command": command}));
    stage.prompt().await;
    assert_eq!(stage.late.recv().await.unwrap().wakes, None);
}

#[tokio::test]
async fn async_hooks_end_with_the_session() {
    let stage = Stage::new();
    leave(
        &stage,
        &json!({"type": "command", "async": true, "command": "echo $$ > pid; sleep 1000"}),
    );
    stage.prompt().await;
    let file = stage.scratch.project().join("pid");
    let pid = loop {
        match std::fs::read_to_string(&file) {
            Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
            _ => tokio::task::yield_now().await,
        }
    };
    stage.hooks.shutdown().await;
    while std::fs::exists(format!("/proc/{pid}")).unwrap() {
        tokio::task::yield_now().await;
    }
    assert!(stage.late.is_empty());
}
