//! Delegated hooks; the order of their answers does not matter.

use std::sync::Arc;

use centurion_config::settings::Level;
use centurion_hooks::{HookScope, HookSet, ToolDecision};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::stage::Stage;

#[tokio::test]
async fn a_model_is_asked_and_its_no_is_the_next_instruction() {
    let stage = Stage::new();
    let prompt = json!({"type": "prompt", "prompt": "Done? $ARGUMENTS", "model": "haiku"});
    stage.settings(Level::User, &json!({"Stop": [{"hooks": [prompt]}]}));
    stage.answers.say("{\"ok\": false, \"reason\": \"tests fail\"}");
    let fired = stage.stop().await;
    assert_eq!(fired.verdict.instruction().as_deref(), Some("Stop hook feedback:\ntests fail"));
    let asked = stage.asked();
    assert!(asked[0].starts_with("haiku: Done? {") && asked[0].contains("\"Stop\""), "{asked:?}");
    stage.answers.say("{\"ok\": true}");
    assert!(!stage.stop().await.verdict.should_continue);
}

#[tokio::test]
async fn an_agents_no_denies_and_lets_the_turn_continue() {
    let stage = Stage::new();
    let agent = json!({"type": "agent", "prompt": "Safe?"});
    stage.settings(Level::User, &json!({"PreToolUse": [{"hooks": [agent]}]}));
    stage.answers.say("{\"ok\": false, \"reason\": \"no\"}");
    let fired = stage.bash(&stage.common(), "ls").await;
    assert_eq!(fired.verdict.decision, Some(ToolDecision::Deny));
    assert_eq!(fired.effects.stop, None);
    assert!(stage.asked()[0].starts_with("agent at PreToolUse: Safe?\n\n{"));
}

#[tokio::test]
async fn a_servers_tool_gets_parts_of_the_event() {
    let stage = Stage::new();
    let tool = json!({"type": "mcp_tool", "server": "s", "tool": "t",
                      "input": {"line": "${tool_input.command}"}});
    stage.settings(Level::User, &json!({"PreToolUse": [{"hooks": [tool]}]}));
    stage.answers.say("{\"decision\": \"block\", \"reason\": \"R\"}");
    let fired = stage.bash(&stage.common(), "ls").await;
    assert_eq!(fired.verdict.reason.as_deref(), Some("R"));
    assert_eq!(stage.asked(), ["s/t {\"line\":\"ls\"}"]);
    *stage.answers.says.lock() = Err("the server is not connected".to_owned());
    let fired = stage.bash(&stage.common(), "ls").await;
    assert_eq!(fired.verdict.decision, None);
    assert_eq!(
        fired.effects.errors[0].to_string(),
        "PreToolUse:Bash hook error: [mcp__s__t]: the server is not connected"
    );
}

/// Hooks of the host, one for each number.
fn host(stage: &Stage, count: usize) {
    let ids: Vec<_> = (0..count).map(|number| number.to_string()).collect();
    let set = HookSet::from_host(&json!({"PreToolUse": [{"hookCallbackIds": ids}]}));
    std::mem::forget(stage.hooks.add(HookScope::Session, set));
}

#[tokio::test]
async fn a_function_of_the_host_gets_the_call_and_may_rewrite_it() {
    let stage = Stage::new();
    host(&stage, 1);
    *stage.answers.callback.lock() = Some(Arc::new(|_, input| {
        let line = format!("{} -l", input["tool_input"]["command"].as_str().unwrap());
        let output = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
            "permissionDecision": "allow", "updatedInput": {"command": line}}});
        Box::pin(async { Ok(output) })
    }));
    let fired = stage.bash(&stage.common(), "ls").await;
    assert_eq!(fired.verdict.decision, Some(ToolDecision::Allow));
    assert_eq!(fired.verdict.updated_input.unwrap()["command"], "ls -l");
    assert_eq!(stage.asked(), ["0 toolu_1"]);
}

/// The output of the hook with this number.
fn output(number: usize, word: usize) -> Value {
    json!({
        "continue": word != 4,
        "stopReason": number.to_string(),
        "systemMessage": number.to_string(),
        "hookSpecificOutput": {
            "permissionDecision": (["allow", "ask", "defer", "deny", "ask"][word]),
            "permissionDecisionReason": number.to_string(),
            "updatedInput": {"command": number},
            "additionalContext": number.to_string(),
        },
    })
}

/// Fires an event whose hooks end in the order of their ranks.
async fn fire(words: &[usize], ranks: &[usize]) -> String {
    let stage = Stage::new();
    host(&stage, words.len());
    let turn = watch::Sender::new(0_usize);
    let (words, ranks) = (words.to_vec(), ranks.to_vec());
    *stage.answers.callback.lock() = Some(Arc::new(move |id, _| {
        let number: usize = id.parse().unwrap();
        let (word, rank, turn) = (words[number], ranks[number], turn.clone());
        Box::pin(async move {
            turn.subscribe().wait_for(|turn| *turn == rank).await.unwrap();
            turn.send_modify(|turn| *turn += 1);
            Ok(output(number, word))
        })
    }));
    format!("{:?}", stage.bash(&stage.common(), "ls").await)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The verdict does not depend on the speed of hooks.
    #[test]
    fn the_order_of_answers_does_not_matter(
        (words, ranks) in prop::collection::vec(0..5_usize, 1..7).prop_flat_map(|words| {
            let ranks: Vec<usize> = (0..words.len()).collect();
            (Just(words), Just(ranks).prop_shuffle())
        }),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let in_order: Vec<usize> = (0..words.len()).collect();
            let expected = fire(&words, &in_order).await;
            assert_eq!(fire(&words, &ranks).await, expected);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_answers_is_given_up_on() {
    let stage = Stage::new();
    host(&stage, 1);
    *stage.answers.callback.lock() = Some(Arc::new(|_, _| Box::pin(std::future::pending())));
    let fired = stage.bash(&stage.common(), "ls").await;
    assert!(fired.effects.errors[0].message.contains("took longer than 600s"), "{fired:?}");
}
