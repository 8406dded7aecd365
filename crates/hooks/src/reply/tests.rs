//! The meaning of exit codes, outputs and answers of models.

use super::*;

fn read(event: Event, code: Option<i32>, stdout: &str, stderr: &str) -> Reply {
    let ended = HandlerEnd {
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
        exit_code: code,
        end: End::Finished,
    };
    Reply::read(event, "cmd".to_owned(), &ended)
}

#[test]
fn exit_codes_and_output_mean_what_they_are_documented_to_mean() {
    const BLOCK: &str = r#"{"decision": "block", "reason": "R"}"#;
    let event = Event::PreToolUse;
    // Exit code, output, errors; the reason of the block, and the problem.
    for (code, stdout, stderr, block, error) in [
        (Some(0), "", "", None, None),
        (Some(0), "words", "ignored", None, None),
        (Some(0), BLOCK, "", Some("R"), None),
        (Some(0), "{broken", "", None, Some("its output is no JSON")),
        (Some(0), r#"{"decision": "block"}"#, "", Some("[cmd]: no reason was given"), None),
        (Some(2), "", "no\n", Some("[cmd]: no"), None),
        (Some(2), "", "", Some("[cmd]: no reason was given"), None),
        (Some(2), BLOCK, "no", Some("[cmd]: no"), None),
        (Some(2), BLOCK, "", Some("R"), None),
        (Some(2), "{broken", "no", Some("[cmd]: no"), Some("its output is no JSON")),
        (Some(1), "", "oops", None, Some("failed with exit code 1: oops")),
        (Some(1), "", "", None, Some("failed with exit code 1")),
        (Some(1), BLOCK, "oops", Some("R"), None),
        (Some(127), "", "", None, Some("was not found")),
        (None, "", "", None, Some("was ended by a signal")),
    ] {
        let reply = read(event, code, stdout, stderr);
        assert_eq!(reply.block().as_deref(), block, "{code:?} {stdout} {stderr}");
        let told = reply.error.clone().unwrap_or_default();
        assert_eq!(reply.error.is_some(), error.is_some(), "{code:?} {stdout}: {told}");
        assert!(told.starts_with(error.unwrap_or_default()), "{code:?} {stdout}: {told}");
    }
}

#[test]
fn exit_code_two_blocks_only_what_can_be_blocked() {
    for (event, expected) in [
        (Event::PreToolUse, true),
        (Event::PostToolUse, true),
        (Event::PermissionRequest, false),
        (Event::Notification, false),
        (Event::WorktreeRemove, false),
    ] {
        let reply = read(event, Some(2), "", "no");
        assert_eq!((reply.block().is_some(), reply.error), (expected, None), "{event}");
    }
}

#[test]
fn what_did_not_end_says_nothing_or_why() {
    let cancelled = HandlerEnd { end: End::Cancelled, ..HandlerEnd::said("{\"continue\": false}") };
    let reply = Reply::read(Event::Stop, String::new(), &cancelled);
    assert_eq!(reply, Reply::default());
    let reply = Reply::read(Event::Stop, String::new(), &HandlerEnd::failed("late"));
    assert_eq!(reply.error.as_deref(), Some("late"));
}

#[test]
fn a_models_no_does_what_the_event_makes_of_it() {
    const NO: &str = "Sure:\n```json\n{\"ok\": false, \"reason\": \"R\"}\n```";
    use Event as E;
    // Whether it blocks and whether it ends the turn, as a plain prompt and with continueOnBlock.
    for (event, plain, continuing) in [
        (E::Stop, (true, false), (true, false)),
        (E::SubagentStop, (true, false), (true, false)),
        (E::PreToolUse, (true, true), (true, false)),
        (E::PostToolUse, (false, true), (true, false)),
        (E::TeammateIdle, (false, true), (true, false)),
        (E::PostToolBatch, (false, true), (false, true)),
        (E::UserPromptSubmit, (false, true), (false, true)),
        (E::UserPromptExpansion, (false, true), (false, true)),
        (E::PostToolUseFailure, (true, false), (true, false)),
        (E::TaskCreated, (true, false), (true, false)),
        (E::TaskCompleted, (true, false), (true, false)),
        (E::PermissionRequest, (false, false), (false, false)),
        (E::PermissionDenied, (false, false), (false, false)),
    ] {
        for (continue_on_block, expected) in [(false, plain), (true, continuing)] {
            let action = PromptAction { prompt: String::new(), model: None, continue_on_block };
            let reply = Reply::judged(event, "p".to_owned(), &action, NO);
            let found = reply.refusal.as_ref().map(|it| (it.blocks, it.ends_turn));
            assert_eq!(found.unwrap_or_default(), expected, "{event} {continue_on_block}");
            assert!(reply.error.is_none() && reply.refusal.is_none_or(|it| it.reason == "R"));
        }
    }
}

#[test]
fn a_model_may_say_yes_give_up_or_ramble() {
    let action = PromptAction { prompt: String::new(), model: None, continue_on_block: false };
    let judged = |answer| Reply::judged(Event::Stop, "p".to_owned(), &action, answer);
    assert_eq!(judged("{\"ok\": true}").block(), None);
    assert_eq!(judged("{\"ok\": false, \"impossible\": true, \"reason\": \"R\"}").block(), None);
    assert_eq!(judged("{\"ok\": false}").block().as_deref(), Some("no reason was given"));
    let rambling = judged("I think it is fine");
    assert!(rambling.error.unwrap().contains("said: I think it is fine"));
}

#[test]
fn an_answer_that_was_cut_is_a_no_where_a_hook_can_say_no() {
    let cut = |stdout: &str| HandlerEnd {
        stdout: stdout.to_owned(),
        exit_code: Some(0),
        end: End::SaidTooMuch("its output is too long".to_owned()),
        ..HandlerEnd::default()
    };
    for event in Event::all() {
        let reply = Reply::read(event, "cmd".to_owned(), &cut("{\"decision\": \"bl"));
        let blocks = event.exit_two() == ExitTwo::Blocks;
        assert_eq!(reply.block().is_some(), blocks, "{event}");
        let denies = reply.specific().and_then(|it| it.decision.as_ref());
        let denies = matches!(denies, Some(RequestDecision::Deny { .. }));
        assert_eq!(denies, event == Event::PermissionRequest, "{event}");
        assert!(reply.error.is_some(), "{event}");
        let plain = Reply::read(event, "cmd".to_owned(), &cut("many words"));
        assert_eq!((plain.block(), plain.error), (None, None), "{event}");
    }
}

#[test]
fn a_function_that_must_succeed_blocks_when_it_fails() {
    use Event::{Stop, SubagentStop, TaskCompleted, TeammateIdle};
    let failed = HandlerEnd::failed("it threw");
    let strange = HandlerEnd::said("17");
    let broken = HandlerEnd::said("{\"decision\": \"perhaps\"}");
    for event in Event::all() {
        for ended in [&failed, &strange, &broken] {
            let mut reply = Reply::read(event, "hook_0".to_owned(), ended);
            assert_eq!(reply.block(), None, "{event}");
            reply.block_on_failure(event);
            let guards = event.exit_two() == ExitTwo::Blocks
                && ![Stop, SubagentStop, TaskCompleted, TeammateIdle].contains(&event);
            assert_eq!(reply.block().is_some(), guards, "{event} {ended:?}");
            let decision = reply.specific().and_then(|it| it.decision.as_ref());
            let denies = matches!(decision, Some(RequestDecision::Deny { .. }));
            assert_eq!(denies, event == Event::PermissionRequest, "{event}");
            assert!(reply.error.is_some(), "{event}");
        }
        let mut well = Reply::read(event, "hook_0".to_owned(), &HandlerEnd::said("{}"));
        well.block_on_failure(event);
        assert_eq!((well.block(), well.error), (None, None), "{event}");
    }
}
