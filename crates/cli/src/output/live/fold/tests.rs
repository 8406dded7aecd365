//! Runs with agents, as a person reads them.

use centurion_protocol::sdk::{
    AgentTag, Assistant, AssistantMessage, EventBody, PermissionDenied, ResultTimes, RunResult,
    System, TaskNotification, TaskPatch, TaskProgress, TaskStarted, TaskUpdated, TaskUsage, User,
    UserMessage,
};
use centurion_protocol::{
    AgentId, Block, Outcome, ReportedUsage, ToolResult, ToolResultContent, ToolUse, ToolUseId,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{Fold, Style, columns};
use crate::output::live::window::fit;

/// An agent whose events are told.
#[derive(Clone, Copy)]
struct Who {
    id: &'static str,
    kind: &'static str,
    name: Option<&'static str>,
    depth: u32,
    is_background: bool,
}

const SCOUT: Who =
    Who { id: "a1", kind: "Explore", name: Some("scout"), depth: 1, is_background: false };
const HELPER: Who = Who { id: "a2", kind: "Explore", name: None, depth: 2, is_background: false };
const WATCH: Who = Who { id: "a3", kind: "Explore", name: None, depth: 1, is_background: true };

fn story(events: impl IntoIterator<Item = EventBody>) -> String {
    let mut fold = Fold::new(Style { paint: false });
    let lines: Vec<String> =
        events.into_iter().flat_map(|event| fold.lines(&event, None)).collect();
    lines.join("\n")
}

fn started(who: Who, call: &str, description: &str) -> EventBody {
    EventBody::System(System::TaskStarted(Box::new(TaskStarted {
        task_id: who.id.to_owned(),
        tool_use_id: Some(ToolUseId::new(call)),
        description: description.to_owned(),
        subagent_type: Some(who.kind.to_owned()),
        name: who.name.map(str::to_owned),
        color: Some("purple".to_owned()),
        is_backgrounded: who.is_background,
        spawn_depth: Some(who.depth),
        task_type: "local_agent",
        prompt: Some("Also look there.\nAnd there.".to_owned()),
        ..TaskStarted::default()
    })))
}

fn usage(tool_uses: u64) -> TaskUsage {
    TaskUsage { total_tokens: 1_250 * tool_uses, tool_uses, duration_ms: 400 * tool_uses }
}

fn progress(who: Who, tool_uses: u64) -> EventBody {
    EventBody::System(System::TaskProgress(Box::new(TaskProgress {
        task_id: who.id.to_owned(),
        run_id: "r".to_owned(),
        tool_use_id: None,
        description: "Reading something".to_owned(),
        subagent_type: who.kind.to_owned(),
        usage: usage(tool_uses),
        last_tool_name: Some("Read".to_owned()),
        summary: None,
    })))
}

fn summed_up(who: Who, tool_uses: u64, summary: &str) -> EventBody {
    let EventBody::System(System::TaskProgress(mut event)) = progress(who, tool_uses) else {
        unreachable!("progress is what it is")
    };
    event.summary = Some(summary.to_owned());
    EventBody::System(System::TaskProgress(event))
}

fn moved(who: Who) -> EventBody {
    let patch = TaskPatch { is_backgrounded: Some(true), ..TaskPatch::default() };
    let task_id = who.id.to_owned();
    EventBody::System(System::TaskUpdated(TaskUpdated { task_id, run_id: None, patch }))
}

fn ended(who: Who, status: &'static str, summary: &str) -> EventBody {
    EventBody::System(System::TaskNotification(Box::new(TaskNotification {
        task_id: who.id.to_owned(),
        run_id: None,
        tool_use_id: None,
        status,
        output_file: "/o".to_owned(),
        summary: summary.to_owned(),
        usage: Some(usage(2)),
        worktree: None,
    })))
}

fn answers(who: Option<Who>, block: Block) -> EventBody {
    EventBody::Assistant(Box::new(Assistant {
        message: AssistantMessage {
            id: "m".to_owned(),
            kind: "message",
            role: "assistant",
            model: "x".to_owned(),
            content: vec![block],
            stop_reason: None,
            stop_sequence: None,
            usage: ReportedUsage::default(),
        },
        parent_tool_use_id: None,
        agent: who.map(tag),
        timestamp: "2026-01-01T00:00:00Z".parse().unwrap(),
        request_id: None,
        error: None,
        supersedes: Vec::new(),
        aborted: false,
        user_message_uuid: None,
        user_message_uuids: Vec::new(),
    }))
}

fn tag(who: Who) -> AgentTag {
    AgentTag {
        agent_id: AgentId::new(who.id),
        subagent_type: who.kind.to_owned(),
        task_description: "a job".to_owned(),
    }
}

fn says(who: Option<Who>, text: &str) -> EventBody {
    answers(who, Block::text(text))
}

fn calls(who: Option<Who>, id: &str, tool: &str, input: &Value) -> EventBody {
    let input = to_raw_value(input).unwrap();
    answers(who, Block::ToolUse(ToolUse { id: ToolUseId::new(id), name: tool.to_owned(), input }))
}

fn gets(who: Option<Who>, id: &str, text: &str, is_error: bool) -> EventBody {
    let content = vec![ToolResultContent::Text(text.to_owned())];
    let result = ToolResult { id: ToolUseId::new(id), content, is_error };
    EventBody::User(User {
        message: UserMessage { role: "user", content: vec![Block::ToolResult(result)] },
        parent_tool_use_id: None,
        agent: who.map(tag),
        timestamp: "2026-01-01T00:00:00Z".parse().unwrap(),
        tool_use_result: None,
        is_synthetic: false,
        is_replay: false,
    })
}

fn run_ends(outcome: Outcome) -> EventBody {
    EventBody::Result(Box::new(RunResult {
        subtype: "success",
        is_error: outcome != Outcome::Completed,
        outcome,
        result: "that is all".to_owned(),
        num_turns: 1,
        duration_ms: 1,
        duration_api_ms: 1,
        stop_reason: None,
        total_cost_usd: 0.0,
        usage: ReportedUsage::default(),
        model_usage: std::iter::empty().collect(),
        permission_denials: Vec::new(),
        structured_output: None,
        deferred_tool_use: None,
        terminal_reason: "completed",
        subagent_stats: None,
        api_error_status: None,
        errors: None,
        times: ResultTimes::default(),
        result_index: 0,
        user_message_uuid: None,
        user_message_uuids: Vec::new(),
        queued_turn_count: 0,
        unfinished_agents: Vec::new(),
        origin: None,
    }))
}

#[test]
fn a_child_stands_below_its_parent_with_its_name_its_calls_and_what_it_used() {
    let told = story([
        says(None, "I send a scout."),
        calls(None, "t1", "Agent", &json!({"description": "look around", "prompt": "x"})),
        started(SCOUT, "t1", "look around"),
        calls(Some(SCOUT), "c1", "Read", &json!({"file_path": "a.txt"})),
        progress(SCOUT, 1),
        gets(Some(SCOUT), "c1", "what the file says", false),
        calls(Some(SCOUT), "c2", "Agent", &json!({"description": "count", "prompt": "x"})),
        progress(SCOUT, 2),
        started(HELPER, "c2", "count"),
        calls(Some(HELPER), "d1", "Bash", &json!({"command": "wc -l a.txt"})),
        progress(HELPER, 1),
        ended(HELPER, "completed", "three lines"),
        ended(SCOUT, "completed", "It says:\none\n\ntwo\nthree\nfour\nfive"),
        gets(None, "t1", "The agent reports …", false),
        says(None, "Found."),
    ]);
    assert_eq!(
        told,
        "│ I send a scout.
  ▶ scout  look around [Explore]
  ● scout  Read a.txt · 1 call · 1.2k tokens · 0.4 s
    ▶ Explore  count
    ● Explore  Bash wc -l a.txt · 1 call · 1.2k tokens · 0.4 s
    ✓ Explore  done · 2 calls · 2.5k tokens · 0.8 s
      └ three lines
  ✓ scout  done · 2 calls · 2.5k tokens · 0.8 s
    └ It says:
      one
      two
      three
      … 2 more lines
│ Found."
    );
}

#[test]
fn several_at_once_are_told_apart_and_background_words_stay_out() {
    let told = story([
        started(HELPER, "t1", "one"),
        started(WATCH, "t2", "two"),
        calls(Some(WATCH), "c1", "Grep", &json!({"pattern": "x"})),
        says(Some(WATCH), "I found something and say so in the middle."),
        says(Some(HELPER), "I am waited for."),
        progress(WATCH, 1),
        progress(HELPER, 1),
        moved(HELPER),
        says(Some(HELPER), "My caller does not wait."),
        run_ends(Outcome::Completed),
        ended(WATCH, "stopped", "Agent \"two\" was stopped"),
        ended(HELPER, "failed", "Agent \"one\" failed: no key"),
        run_ends(Outcome::Completed),
    ]);
    assert_eq!(
        told,
        "    ▶ Explore  one
  ▶ Explore 2  two (in the background)
    │ Explore  I am waited for.
  ● Explore 2  Grep x · 1 call · 1.2k tokens · 0.4 s
    ● Explore  Reading something · 1 call · 1.2k tokens · 0.4 s
    ◌ Explore  continues in the background
◌ still at work in the background: Explore (one), Explore 2 (two)
  ■ Explore 2  stopped · 2 calls · 2.5k tokens · 0.8 s
    └ Agent \"two\" was stopped
    ✗ Explore  failed · 2 calls · 2.5k tokens · 0.8 s
      ✗ Agent \"one\" failed: no key"
    );
}

#[test]
fn a_member_of_a_team_that_rests_is_not_at_work() {
    // teams.md 11.17
    let status = |status| {
        let patch = TaskPatch { status: Some(status), ..TaskPatch::default() };
        let task_id = WATCH.id.to_owned();
        EventBody::System(System::TaskUpdated(TaskUpdated { task_id, run_id: None, patch }))
    };
    let told = story([
        started(WATCH, "t1", "two"),
        status("pending"),
        run_ends(Outcome::Completed),
        status("running"),
        run_ends(Outcome::Completed),
    ]);
    assert_eq!(
        told,
        "  ▶ Explore  two (in the background)
  ◌ Explore  idle
  ▶ Explore  at work again
◌ still at work in the background: Explore (two)"
    );
}

#[test]
fn a_line_about_an_agent_is_told_once_and_hides_no_call() {
    // S-327
    let told = story([
        started(WATCH, "t1", "two"),
        calls(Some(WATCH), "c1", "Grep", &json!({"pattern": "x"})),
        summed_up(WATCH, 0, "Looking for x\x1b[2J"),
        summed_up(WATCH, 1, "Looking for x\x1b[2J"),
        summed_up(WATCH, 1, "Reading what it found"),
    ]);
    assert_eq!(
        told,
        "  ▶ Explore  two (in the background)
  ◌ Explore  Looking for x[2J
  ● Explore  Grep x · 1 call · 1.2k tokens · 0.4 s
  ◌ Explore  Reading what it found"
    );
}

#[test]
fn an_agent_that_continues_keeps_its_name() {
    let told = story([
        started(SCOUT, "t1", "look"),
        ended(SCOUT, "completed", "seen"),
        calls(None, "t2", "SendMessage", &json!({"to": "scout", "message": "Also look there."})),
        started(Who { is_background: true, ..SCOUT }, "t2", "look"),
        gets(None, "t2", "{\"success\":true}", false),
        ended(SCOUT, "completed", "seen, too"),
    ]);
    assert_eq!(
        told,
        "  ▶ scout  look [Explore]
  ✓ scout  done · 2 calls · 2.5k tokens · 0.8 s
    └ seen
● SendMessage scout: Also look there.
  ▶ scout  continues (in the background): Also look there.
  ✓ scout  done · 2 calls · 2.5k tokens · 0.8 s
    └ seen, too"
    );
}

#[test]
fn a_call_that_started_no_agent_is_shown_with_the_reason() {
    let denied = EventBody::System(System::PermissionDenied(PermissionDenied {
        decision_reason_type: None,
        tool_name: "Write".to_owned(),
        tool_use_id: ToolUseId::new("c1"),
        agent_id: Some(AgentId::new(SCOUT.id)),
        decision_reason: "no user can be asked".to_owned(),
        message: "Write was not allowed: no user can be asked".to_owned(),
    }));
    let told = story([
        calls(None, "t0", "Agent", &json!({"description": "look", "prompt": "x"})),
        gets(None, "t0", "Agent type 'x' not found.", true),
        started(SCOUT, "t1", "look"),
        calls(Some(SCOUT), "c0", "Agent", &json!({"description": "deeper", "prompt": "x"})),
        progress(SCOUT, 1),
        gets(Some(SCOUT), "c0", "too deep", true),
        denied,
        run_ends(Outcome::MaxTurns),
    ]);
    assert_eq!(
        told,
        "● Agent look
  ✗ Agent type 'x' not found.
  ▶ scout  look [Explore]
  ✗ scout  Agent deeper: too deep
  ! scout  Write was not allowed: no user can be asked
✗ max_turns: that is all"
    );
}

#[test]
fn a_result_that_does_not_stand_below_its_call_says_whose_it_is() {
    let told = story([
        calls(None, "t1", "Read", &json!({"file_path": "a.txt"})),
        gets(None, "t1", "alpha", false),
        calls(None, "t2", "Read", &json!({"file_path": "b.txt"})),
        calls(None, "t3", "Bash", &json!({"command": "ls"})),
        gets(None, "t3", "b.txt", false),
        gets(None, "t2", "no such file", true),
    ]);
    assert_eq!(
        told,
        "● Read a.txt
  └ alpha
● Read b.txt
● Bash ls
  └ b.txt
  ✗ Read b.txt: no such file"
    );
}

#[test]
fn a_shell_in_the_background_has_lines_of_its_own() {
    let shell = EventBody::System(System::TaskStarted(Box::new(TaskStarted {
        task_id: "b1".to_owned(),
        tool_use_id: Some(ToolUseId::new("t1")),
        description: "serve".to_owned(),
        task_type: "local_bash",
        is_backgrounded: true,
        ..TaskStarted::default()
    })));
    let over = EventBody::System(System::TaskNotification(Box::new(TaskNotification {
        task_id: "b1".to_owned(),
        run_id: None,
        tool_use_id: None,
        status: "failed",
        output_file: "/o".to_owned(),
        summary: "Background command \"serve\" failed with exit code 1".to_owned(),
        usage: None,
        worktree: None,
    })));
    assert_eq!(
        story([shell, over]),
        "  ▶ shell  serve (in the background)
  ✗ shell  Background command \"serve\" failed with exit code 1"
    );
}

#[test]
fn in_a_narrow_window_every_line_takes_one_row_and_words_are_wrapped() {
    const LONG: Who = Who { name: Some("a-scout-with-a-name-that-never-ends"), ..SCOUT };
    let mut fold = Fold::new(Style { paint: true });
    let events = [
        says(None, "I send a scout to look at the whole of it, and wait."),
        started(LONG, "t1", "深く調べる：日本語の説明文がとても長いとき"),
        calls(Some(LONG), "c1", "Bash", &json!({"command": "grep -rn something very long ."})),
        progress(LONG, 1),
        started(WATCH, "t2", "watch the other one while it looks at everything"),
        ended(LONG, "failed", "Agent failed: the provider said that there is no such request"),
        run_ends(Outcome::Completed),
    ];
    let shown = events.iter().flat_map(|event| fold.lines(event, Some(40)));
    let shown: Vec<String> = shown.map(|line| plain(&fit(&line, Some(40)))).collect();
    assert!(shown.iter().all(|line| columns(line) <= 40), "{shown:#?}");
    assert_eq!(
        shown.join("\n"),
        "│ I send a scout to look at the whole of
│ it, and wait.
  ▶ a-scout-with-a-name-tha…  深く調べ…
  ● a-scout-with-a-name-tha…  Bash grep…
  ▶ Explore  watch the other one while …
  ✗ a-scout-with-a-name-tha…  failed · …
    ✗ Agent failed: the provider said
      that there is no such request
◌ still at work in the background:
  Explore (watch the other one while it
  looks at everything)"
    );
}

/// A line without its colours.
fn plain(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(|part| part.split_once('m').unwrap().1).collect::<String>()
}

#[test]
fn who_it_is_has_a_colour_beside_a_word() {
    let mut fold = Fold::new(Style { paint: true });
    let [line] = fold.lines(&started(SCOUT, "t1", "look"), None).try_into().unwrap();
    assert_eq!(line, "  \x1b[35m▶ scout\x1b[0m  look [Explore]");
}

#[test]
fn what_an_agent_says_commands_no_terminal() {
    // I-9
    let told = story([
        started(Who { name: Some("\x1b]0;x\x07bob"), ..SCOUT }, "t1", "\x1b[2Jlook"),
        ended(SCOUT, "completed", "\x1b[31mred"),
    ]);
    assert!(!told.contains('\x1b') && !told.contains('\x07'), "{told:?}");
}
