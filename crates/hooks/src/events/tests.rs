//! The input of hooks for each event, and the combination of several replies.

use std::path::{Path, PathBuf};

use centurion_permissions::Access;
use centurion_protocol::{AgentId, Effort, Env, SeededWorld, ToolUseId, World as _};
use proptest::prelude::*;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::*;
use crate::effects::Effects;
use crate::event::Event;
use crate::input::{Common, EffortLevel, EventInput, ToolCall, compose, hook_name};
use crate::output::{ElicitationAction, HookOutput, RequestDecision, ToolDecision};
use crate::reply::{End, HandlerEnd, Reply};

fn common() -> Common {
    Common {
        session_id: SeededWorld::new(1).session_id(),
        prompt_id: None,
        transcript_path: "/t.jsonl".into(),
        cwd: "/p".into(),
        permission_mode: None,
        effort: None,
        agent_id: None,
        agent_type: None,
        parent_agent_id: None,
        depth: 0,
        teammate_name: None,
        team_name: None,
    }
}

/// The replies of hooks that print these texts and exit with zero.
fn say(event: Event, outputs: &[Value]) -> Vec<Reply> {
    let reply = |output: &Value| Reply {
        label: "cmd".to_owned(),
        output: HookOutput::from_value(event, output.clone()).unwrap(),
        ..Reply::default()
    };
    outputs.iter().map(reply).collect()
}

fn exit(event: Event, code: i32, stdout: &str, stderr: &str) -> Vec<Reply> {
    let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
    let ended = HandlerEnd { stdout, stderr, exit_code: Some(code), end: End::Finished };
    vec![Reply::read(event, "cmd".to_owned(), &ended)]
}

fn specific(output: impl Into<Value>) -> Value {
    json!({"hookSpecificOutput": output.into()})
}

/// Passes a call of Bash to a function.
fn with_call<T>(act: impl FnOnce(ToolCall<'_>) -> T) -> T {
    let input: Box<RawValue> = to_raw_value(&json!({"command": "ls"})).unwrap();
    let id = ToolUseId::new("toolu_1");
    let access = Access::Shell("ls".to_owned());
    act(ToolCall {
        tool: "Bash",
        input: &input,
        id: &id,
        mcp_server: None,
        access: &access,
        named: None,
    })
}

fn pre(outputs: &[Value]) -> PreToolVerdict {
    let replies = say(Event::PreToolUse, outputs);
    with_call(|call| PreToolUse { call }.fold(&common(), &replies))
}

#[test]
fn hooks_are_told_the_event_and_who_it_happens_to() {
    let common = Common {
        prompt_id: Some("p1".to_owned()),
        permission_mode: Some("plan".to_owned()),
        effort: Some(EffortLevel { level: Effort::High }),
        agent_id: Some(AgentId::new("a1")),
        agent_type: Some("Explore".to_owned()),
        parent_agent_id: Some(AgentId::new("a0")),
        depth: 2,
        teammate_name: None,
        team_name: None,
        ..common()
    };
    let told = with_call(|call| compose(&common, &PreToolUse { call }).unwrap());
    assert_eq!(
        told,
        json!({
            "session_id": common.session_id, "prompt_id": "p1", "transcript_path": "/t.jsonl",
            "cwd": "/p", "permission_mode": "plan", "effort": {"level": "high"}, "agent_id": "a1",
            "agent_type": "Explore", "parent_agent_id": "a0", "depth": 2,
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"},
            "tool_use_id": "toolu_1",
        })
    );
    assert_eq!(with_call(|call| hook_name(&PreToolUse { call })), "PreToolUse:Bash");
}

#[test]
fn what_is_not_known_is_left_out() {
    let stop = Stop {
        stop_hook_active: true,
        last_assistant_message: "done",
        background_tasks: &[BackgroundWork {
            id: "a1".to_owned(),
            kind: "subagent".to_owned(),
            status: "running".to_owned(),
            description: "look".to_owned(),
            agent_type: Some("Explore".to_owned()),
            ..BackgroundWork::default()
        }],
        session_crons: &[],
    };
    let told = compose(&common(), &stop).unwrap();
    assert_eq!(
        told,
        json!({
            "session_id": common().session_id, "transcript_path": "/t.jsonl", "cwd": "/p", "depth": 0,
            "hook_event_name": "Stop", "stop_hook_active": true, "last_assistant_message": "done",
            "background_tasks": [{"id": "a1", "type": "subagent", "status": "running",
                                  "description": "look", "agent_type": "Explore"}],
            "session_crons": [],
        })
    );
    assert_eq!(hook_name(&stop), "Stop");
    let task =
        Task { id: "1", subject: "s", description: None, teammate_name: None, team_name: None };
    let told = compose(&common(), &TaskCreated(task)).unwrap();
    assert_eq!((&told["task_id"], &told["task_subject"]), (&json!("1"), &json!("s")));
}

#[test]
fn the_strictest_word_about_a_call_wins_with_all_its_reasons() {
    use ToolDecision::{Allow, Ask, Defer, Deny};
    let word = |word: &str, reason: &str| {
        specific(json!({"permissionDecision": word, "permissionDecisionReason": reason}))
    };
    for (outputs, decision, reason) in [
        (vec![], None, None),
        (vec![json!({})], None, None),
        (vec![word("allow", "A")], Some(Allow), Some("A")),
        (vec![word("allow", "A"), word("ask", "B")], Some(Ask), Some("B")),
        (vec![word("defer", "A"), word("ask", "B")], Some(Defer), Some("A")),
        (vec![word("deny", "A"), word("allow", "B"), word("deny", "C")], Some(Deny), Some("A\nC")),
        (vec![json!({"decision": "approve", "reason": "A"})], Some(Allow), Some("A")),
        (
            vec![json!({"decision": "block", "reason": "A"}), word("allow", "B")],
            Some(Deny),
            Some("A"),
        ),
    ] {
        let verdict = pre(&outputs);
        assert_eq!(
            (verdict.decision, verdict.reason.as_deref()),
            (decision, reason),
            "{outputs:?}"
        );
    }
    let denied = pre(&[word("deny", "not here")]);
    assert_eq!(denied.denial("Bash").as_deref(), Some("PreToolUse:Bash hook error: not here"));
    assert_eq!(pre(&[word("ask", "A")]).denial("Bash"), None);
    let replies = exit(Event::PreToolUse, 2, "", "no");
    let verdict = with_call(|call| PreToolUse { call }.fold(&common(), &replies));
    assert_eq!(verdict.denial("Read").as_deref(), Some("PreToolUse:Read hook error: [cmd]: no"));
}

#[test]
fn the_input_that_was_declared_last_counts() {
    let update = |value: i32| specific(json!({"updatedInput": {"command": value}}));
    let verdict = pre(&[update(1), update(2), json!({})]);
    assert_eq!(verdict.updated_input.unwrap()["command"], 2);
}

#[test]
fn a_no_to_a_question_wins_over_a_yes() {
    let fold = |outputs: &[Value]| {
        let replies = say(Event::PermissionRequest, outputs);
        with_call(|call| {
            PermissionRequest { call, permission_suggestions: &[] }.fold(&common(), &replies)
        })
    };
    let yes = specific(json!({"decision": {"behavior": "allow", "updatedInput": {"a": 1}}}));
    let no = specific(json!({"decision": {"behavior": "deny", "message": "M", "interrupt": true}}));
    assert_eq!(fold(&[]), None);
    assert!(matches!(
        fold(std::slice::from_ref(&yes)),
        Some(RequestDecision::Allow { updated_input: Some(_), .. })
    ));
    assert_eq!(
        fold(&[yes, no]),
        Some(RequestDecision::Deny { message: Some("M".to_owned()), interrupt: true })
    );
}

#[test]
fn a_result_can_be_commented_and_replaced() {
    let outputs = [
        json!({"decision": "block", "reason": "A",
               "hookSpecificOutput": {"updatedToolOutput": "x"}}),
        specific(json!({"updatedToolOutput": {"y": 1}, "updatedMCPToolOutput": "z"})),
    ];
    let replies = say(Event::PostToolUse, &outputs);
    let (response, common) = (Value::Null, common());
    let verdict = with_call(|call| {
        PostToolUse { call, tool_response: &response, duration_ms: 1 }.fold(&common, &replies)
    });
    assert_eq!(verdict.block.reason(), Some("A"));
    assert_eq!(verdict.updated_output, Some(json!({"y": 1})));
    assert_eq!(verdict.updated_mcp_output, Some(json!("z")));
    let denied = say(Event::PermissionDenied, &[specific(json!({"retry": true}))]);
    assert!(with_call(|call| PermissionDenied { call, reason: "R" }.fold(&common, &denied)));
}

#[test]
fn an_agent_continues_for_feedback_or_context_but_not_forever() {
    let stop = Stop {
        stop_hook_active: false,
        last_assistant_message: "",
        background_tasks: &[],
        session_crons: &[],
    };
    let fold = |replies: &[Reply]| stop.fold(&common(), replies);
    let blocked = fold(&say(Event::Stop, &[json!({"decision": "block", "reason": "R"})]));
    assert_eq!(blocked.instruction().as_deref(), Some("Stop hook feedback:\nR"));
    assert_eq!(fold(&exit(Event::Stop, 2, "", "no")).feedback.as_deref(), Some("[cmd]: no"));
    let context = fold(&say(Event::Stop, &[specific(json!({"additionalContext": "C"}))]));
    assert!(context.should_continue && context.feedback.is_none());
    let free = fold(&say(Event::Stop, &[json!({})]));
    let mut cap = StopCap::new(&Env::from([("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "2")]));
    let turns = [&blocked, &context, &blocked, &blocked, &free];
    assert_eq!(turns.map(|it| cap.should_continue(it)), [true, true, false, true, false]);
    assert!(!cap.is_active());
    let mut usual = StopCap::new(&Env::default());
    assert_eq!((0..20).take_while(|_| usual.should_continue(&blocked)).count(), 8);
    let mut endless = StopCap::new(&Env::from([("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0")]));
    assert!((0..100).all(|_| endless.should_continue(&blocked)));
}

#[test]
fn other_events_read_their_own_fields() {
    let common = common();
    let start = SessionStart { source: "startup", model: None, session_title: None };
    let outputs = [
        specific(json!({"hookEventName": "SessionStart", "initialUserMessage": "go",
                        "sessionTitle": "T", "watchPaths": ["a", "/b"], "reloadSkills": true})),
        specific(json!({"watchPaths": ["a"]})),
    ];
    let verdict = start.fold(&common, &say(Event::SessionStart, &outputs));
    assert_eq!(
        verdict,
        SessionStartVerdict {
            initial_user_message: Some("go".to_owned()),
            session_title: Some("T".to_owned()),
            watch_paths: Some(vec!["/p/a".into(), "/b".into()]),
            reload_skills: true,
        }
    );
    let prompt = UserPromptSubmit { prompt: "hi" };
    let output = json!({"decision": "block", "reason": "R",
                        "hookSpecificOutput": {"suppressOriginalPrompt": true}});
    let verdict = prompt.fold(&common, &say(Event::UserPromptSubmit, &[output]));
    assert!(verdict.suppress_original && verdict.block.reason() == Some("R"));
    let display =
        MessageDisplay { turn_id: "t", message_id: "m", index: 0, is_final: true, delta: "d" };
    let shown = display
        .fold(&common, &say(Event::MessageDisplay, &[specific(json!({"displayContent": "D"}))]));
    assert_eq!(shown.as_deref(), Some("D"));
    let task =
        Task { id: "1", subject: "s", description: None, teammate_name: None, team_name: None };
    let created = TaskCreated(task).fold(&common, &exit(Event::TaskCreated, 2, "", "no"));
    assert_eq!(created.reason(), Some("TaskCreated hook feedback:\n[cmd]: no"));
    let compact = PreCompact { trigger: CompactTrigger::Auto, custom_instructions: "" };
    assert_eq!(compact.subject(), Some("auto"));
    assert!(compact.fold(&common, &exit(Event::PreCompact, 2, "", "no")).reason().is_some());
    let changed = FileChanged { file_path: Path::new("/p/.env"), event: "change" };
    assert_eq!(changed.subject(), Some(".env"));
}

#[test]
fn no_hook_blocks_what_the_administrator_changes() {
    for (source, blocked) in [("user_settings", true), ("policy_settings", false)] {
        let change = ConfigChange { source, file_path: None };
        let verdict = change.fold(&common(), &exit(Event::ConfigChange, 2, "", "no"));
        assert_eq!(verdict.reason().is_some(), blocked, "{source}");
    }
}

#[test]
fn a_hook_answers_a_servers_question() {
    let question = Elicitation {
        mcp_server_name: "s",
        message: "m",
        mode: None,
        url: None,
        elicitation_id: None,
        requested_schema: None,
    };
    let accept = specific(json!({"action": "accept", "content": {"a": 1}}));
    let fold = |replies: &[Reply]| question.fold(&common(), replies);
    let replies = say(Event::Elicitation, &[accept]);
    let answer = fold(&replies).unwrap();
    assert_eq!((answer.action, answer.content), (ElicitationAction::Accept, Some(json!({"a": 1}))));
    let both = [replies, exit(Event::Elicitation, 2, "", "no")].concat();
    assert_eq!(fold(&both).unwrap().action, ElicitationAction::Decline);
    assert_eq!(fold(&[]), None);
}

#[test]
fn a_worktree_is_where_the_hook_says_unless_that_leads_elsewhere() {
    let scratch = tempfile::tempdir().unwrap();
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink("/", &link).unwrap();
    let create = WorktreeCreate { name: "agent-1" };
    let event = Event::WorktreeCreate;
    let fold = |replies: &[Reply]| create.fold(&common(), replies);
    let made = |path: &str| WorktreeVerdict::Made(PathBuf::from(path));
    assert_eq!(fold(&[]), WorktreeVerdict::NoHook);
    assert_eq!(fold(&exit(event, 0, "log\n\u{1b}[32m/w/a\u{1b}[0m\n\n", "")), made("/w/a"));
    assert_eq!(fold(&exit(event, 0, "w", "")), made("/p/w"));
    assert_eq!(fold(&say(event, &[specific(json!({"worktreePath": "/w/b"}))])), made("/w/b"));
    for replies in [
        exit(event, 0, "", ""),
        exit(event, 0, "/w/../etc", ""),
        exit(event, 0, &link.display().to_string(), ""),
        exit(event, 1, "/w/a", "oops"),
        exit(event, 2, "/w/a", "oops"),
        exit(event, 3, r#"{"hookSpecificOutput": {"worktreePath": "/w/b"}}"#, ""),
    ] {
        let verdict = fold(&replies);
        assert!(matches!(verdict, WorktreeVerdict::Failed(_)), "{replies:?}: {verdict:?}");
    }
}

#[test]
fn effects_are_gathered_from_all_hooks() {
    let outputs = [
        json!({"systemMessage": "S", "hookSpecificOutput": {"additionalContext": "A"}}),
        json!({"continue": false, "stopReason": "R", "terminalSequence": "\u{7}"}),
        json!({"continue": false, "stopReason": "later", "terminalSequence": "\u{1b}[2J"}),
        specific(json!({"additionalContext": "B"})),
    ];
    let mut replies = say(Event::UserPromptSubmit, &outputs);
    replies.extend(exit(Event::UserPromptSubmit, 0, "plain", ""));
    replies.extend(exit(Event::UserPromptSubmit, 1, "", "oops"));
    let effects = Effects::gather(Event::UserPromptSubmit, "UserPromptSubmit", &replies);
    assert_eq!(effects.context, ["A", "B", "plain"]);
    assert_eq!(effects.stop.unwrap().reason.as_deref(), Some("R"));
    assert_eq!(effects.user_messages, ["S"]);
    assert_eq!(effects.terminal_sequences, ["\u{7}"]);
    assert!(effects.errors[0].message.contains("only titles"));
    assert_eq!(
        effects.errors[1].to_string(),
        "UserPromptSubmit hook error: [cmd]: failed with exit code 1: oops"
    );
    // Plain output is context only at events of a person or a session.
    let plain = exit(Event::PostToolUse, 0, "plain", "");
    assert_eq!(Effects::gather(Event::PostToolUse, "", &plain), Effects::default());
    let told = exit(Event::SessionEnd, 2, "", "no");
    assert_eq!(Effects::gather(Event::SessionEnd, "", &told).user_messages, ["[cmd]: no"]);
    let model = say(Event::DirectoryAdded, &[json!({"systemMessage": "S"})]);
    assert_eq!(Effects::gather(Event::DirectoryAdded, "", &model).context, ["S"]);
}

#[test]
fn a_field_that_does_nothing_is_told_and_the_rest_of_the_answer_counts() {
    // The event, the fields of a hook, and the messages for people.
    for (event, fields, expected) in [
        (
            Event::PreToolUse,
            json!({"sessionTitle": "T"}),
            "its sessionTitle has no effect at PreToolUse",
        ),
        (Event::Stop, json!({"watchPaths": []}), "its watchPaths has no effect at Stop"),
        (
            Event::SessionStart,
            json!({"suppressOriginalPrompt": true}),
            "its suppressOriginalPrompt has no effect at SessionStart",
        ),
        (
            Event::PostToolUse,
            json!({"classifierContext": "c"}),
            "its classifierContext has no effect here: no model classifies calls",
        ),
        (Event::SessionStart, json!({"sessionTitle": "T", "watchPaths": ["a"]}), ""),
        (Event::UserPromptSubmit, json!({"sessionTitle": "T", "suppressOriginalPrompt": true}), ""),
        (Event::FileChanged, json!({"watchPaths": []}), ""),
    ] {
        let mut fields = fields;
        fields["additionalContext"] = json!("C");
        let effects = Effects::gather(event, "", &say(event, &[specific(fields.clone())]));
        let errors: Vec<&str> = effects.errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(errors.concat(), expected, "{event}: {fields}");
        assert_eq!(effects.context, ["C"]);
    }
}

#[test]
fn what_is_to_be_watched_is_said_or_left_open() {
    let (old_cwd, new_cwd) = (Path::new("/o"), Path::new("/p"));
    let fold = |outputs: &[Value]| {
        let moved = CwdChanged { old_cwd, new_cwd };
        moved.fold(&common(), &say(Event::CwdChanged, outputs))
    };
    assert_eq!(fold(&[json!({})]), None);
    assert_eq!(fold(&[json!({}), specific(json!({"watchPaths": []}))]), Some(Vec::new()));
}

proptest! {
    /// However many hooks allow a call, one that denies it is enough.
    #[test]
    fn nothing_outweighs_a_denial(words in prop::collection::vec(0..4_usize, 0..8), place: prop::sample::Index) {
        let names = ["allow", "ask", "defer", "deny"];
        let mut outputs: Vec<Value> =
            words.iter().map(|word| specific(json!({"permissionDecision": names[*word]}))).collect();
        let strictest = pre(&outputs).decision;
        prop_assert_eq!(strictest.map(|it| it as usize), words.iter().max().copied());
        outputs.insert(place.index(outputs.len() + 1), json!({"decision": "block"}));
        prop_assert_eq!(pre(&outputs).decision, Some(ToolDecision::Deny));
    }
}
