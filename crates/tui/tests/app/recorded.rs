//! A recorded run, folded again: the demo's events as a session showed them, at every prefix.

use std::time::Duration;

use centurion_protocol::sdk::{
    AgentTag, EventBody, PermissionDenied, System, TaskNotification, TaskPatch, TaskProgress,
    TaskStarted, TaskUpdated, TaskUsage, User, UserMessage,
};
use centurion_protocol::{AgentId, Block, Timestamp, ToolResult, ToolUse, ToolUseId};
use centurion_tui::{Happening, Input, Key, KeyCode, Model, Size, fold, view};
use serde_json::Value;

use super::stage::{init, piece, said, turn_end};

const DEMO: &str = include_str!("recorded/demo.jsonl");

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn blocks(content: &Value) -> Vec<Block> {
    let block = |one: &Value| match one["type"].as_str() {
        Some("tool_use") => Block::ToolUse(ToolUse {
            id: ToolUseId::new(text(&one["id"])),
            name: text(&one["name"]),
            input: serde_json::value::to_raw_value(&one["input"]).unwrap(),
        }),
        Some("tool_result") => {
            let said =
                one["content"].as_str().map_or_else(|| one["content"].to_string(), str::to_owned);
            Block::ToolResult(ToolResult::text(ToolUseId::new(text(&one["tool_use_id"])), said))
        }
        _ => Block::text(text(&one["text"])),
    };
    match content.as_str() {
        Some(text) => vec![Block::text(text)],
        None => content.as_array().into_iter().flatten().map(block).collect(),
    }
}

fn tag(event: &Value) -> Option<AgentTag> {
    Some(AgentTag {
        agent_id: AgentId::new(event["agent_id"].as_str()?),
        subagent_type: text(&event["subagent_type"]),
        task_description: text(&event["task_description"]),
    })
}

fn status(value: &Value) -> &'static str {
    let known = ["pending", "running", "completed", "failed", "killed", "stopped"];
    known.into_iter().find(|known| value == known).unwrap()
}

fn usage(value: &Value) -> TaskUsage {
    let number = |name: &str| value[name].as_u64().unwrap_or_default();
    TaskUsage {
        total_tokens: number("total_tokens"),
        tool_uses: number("tool_uses"),
        duration_ms: number("duration_ms"),
    }
}

fn call_of(event: &Value) -> Option<ToolUseId> {
    event["tool_use_id"].as_str().map(ToolUseId::new)
}

/// An event of a task.
fn task(event: &Value) -> System {
    let task_id = text(&event["task_id"]);
    let tool_use_id = call_of(event);
    match event["subtype"].as_str().unwrap() {
        "task_started" => System::TaskStarted(Box::new(TaskStarted {
            task_id,
            tool_use_id,
            description: text(&event["description"]),
            subagent_type: event["subagent_type"].as_str().map(str::to_owned),
            name: event["name"].as_str().map(str::to_owned),
            is_backgrounded: event["is_backgrounded"] == true,
            parent_task_id: event["parent_task_id"].as_str().map(AgentId::new),
            task_type: "local_agent",
            prompt: event["prompt"].as_str().map(str::to_owned),
            ..TaskStarted::default()
        })),
        "task_progress" => System::TaskProgress(Box::new(TaskProgress {
            task_id,
            run_id: "r".to_owned(),
            tool_use_id,
            description: text(&event["description"]),
            subagent_type: text(&event["subagent_type"]),
            usage: usage(&event["usage"]),
            last_tool_name: None,
            summary: None,
        })),
        "task_updated" => System::TaskUpdated(TaskUpdated {
            task_id,
            run_id: None,
            patch: TaskPatch {
                status: event["patch"]["status"]
                    .as_str()
                    .map(|_| status(&event["patch"]["status"])),
                is_backgrounded: event["patch"]["is_backgrounded"].as_bool(),
                ..TaskPatch::default()
            },
        }),
        "task_notification" => System::TaskNotification(Box::new(TaskNotification {
            task_id,
            run_id: None,
            tool_use_id,
            status: status(&event["status"]),
            output_file: text(&event["output_file"]),
            summary: text(&event["summary"]),
            usage: Some(usage(&event["usage"])),
            worktree: None,
        })),
        "permission_denied" => System::PermissionDenied(PermissionDenied {
            tool_name: text(&event["tool_name"]),
            tool_use_id: tool_use_id.unwrap(),
            agent_id: event["agent_id"].as_str().map(AgentId::new),
            decision_reason_type: event["decision_reason_type"].as_str().map(str::to_owned),
            decision_reason: text(&event["decision_reason"]),
            message: text(&event["message"]),
        }),
        other => panic!("{other} is not read here"),
    }
}

fn event(event: &Value) -> EventBody {
    match event["type"].as_str().unwrap() {
        "system" if event["subtype"] == "init" => init(),
        "system" => EventBody::System(task(event)),
        "assistant" => said(blocks(&event["message"]["content"]), tag(event)),
        "user" => EventBody::User(User {
            message: UserMessage { role: "user", content: blocks(&event["message"]["content"]) },
            parent_tool_use_id: None,
            agent: tag(event),
            timestamp: Timestamp::from(jiff::Timestamp::UNIX_EPOCH),
            tool_use_result: None,
            is_synthetic: false,
            is_replay: false,
        }),
        "stream_event" => match piece(&event["event"]) {
            EventBody::StreamEvent(stream) => {
                EventBody::StreamEvent(centurion_protocol::sdk::Stream {
                    agent_id: event["agent_id"].as_str().map(AgentId::new),
                    ..stream
                })
            }
            other => other,
        },
        "result" => {
            let mut end = turn_end();
            if let EventBody::Result(result) = &mut end {
                result.result = text(&event["result"]);
                result.is_error = event["is_error"] == true;
            }
            end
        }
        other => panic!("{other} is not read here"),
    }
}

fn demo() -> Vec<EventBody> {
    DEMO.lines().map(|line| event(&serde_json::from_str(line).unwrap())).collect()
}

/// Folds events, one each 50 ms; the model and what was printed.
fn play(events: &[EventBody]) -> (Model, Vec<String>) {
    let mut model = Model::default();
    let mut printed = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let now = Duration::from_millis(50 * number as u64);
        fold(&mut model, now, Happening::Event(event));
        printed.extend(model.unprinted().iter().map(centurion_tui::Line::text));
        model.printed();
    }
    (model, printed)
}

#[test]
fn a_recorded_run_is_shown_at_every_prefix_in_every_window() {
    let events = demo();
    let mut model = Model::default();
    let mut printed = 0;
    for (number, event) in events.iter().enumerate() {
        let now = Duration::from_millis(50 * number as u64);
        fold(&mut model, now, Happening::Event(event));
        for (columns, rows) in [(40, 10), (80, 24), (120, 40)] {
            let frame = view(&model, Size { columns, rows });
            assert!(frame.live.len() < usize::from(rows), "{number}");
            assert!(frame.live.iter().all(|row| row.width() <= usize::from(columns)), "{number}");
            let cursor = frame.cursor.unwrap();
            assert!(
                usize::from(cursor.row) < frame.live.len() && cursor.column < columns,
                "{number}"
            );
        }
        printed += model.unprinted().len();
        model.printed();
    }
    assert!(printed > 50, "{printed} lines");
}

#[test]
fn a_replay_makes_the_same_model_and_prints_the_same() {
    let events = demo();
    for count in 0..=events.len() {
        let (one, printed) = play(&events[..count]);
        let (other, again) = play(&events[..count]);
        // The order in a map is not that of the next one.
        let shown = |model: &Model| view(model, Size { columns: 80, rows: 24 });
        assert_eq!(shown(&one), shown(&other), "{count}");
        assert_eq!(printed, again, "{count}");
    }
}

#[test]
fn keys_between_the_events_of_a_run_change_nothing_of_what_is_printed() {
    let events = demo();
    let (_, expected) = play(&events);
    let mut model = Model::default();
    let mut printed = Vec::new();
    let keys = [KeyCode::Char('x'), KeyCode::Left, KeyCode::Backspace, KeyCode::Up];
    for (number, event) in events.iter().enumerate() {
        let now = Duration::from_millis(50 * number as u64);
        fold(&mut model, now, Happening::Event(event));
        let key = Input::Key(Key::plain(keys[number % keys.len()]));
        fold(&mut model, now, Happening::Input(&key));
        fold(&mut model, now, Happening::Tick);
        printed.extend(model.unprinted().iter().map(centurion_tui::Line::text));
        model.printed();
    }
    assert_eq!(printed, expected);
}
