//! The speed of folds and frames with 100 agents at work, of a transcript of 10,000 messages, and the growth over a million
//! events: `cargo bench -p centurion-tui --bench terminal`.
//!
//! Prints each number with its share of the target, and fails above a target.
#![expect(clippy::print_stdout, reason = "a measurement prints")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use centurion_protocol::AgentId;
use centurion_protocol::sdk::{
    EventBody, Stream, System, TaskNotification, TaskProgress, TaskStarted, TaskUsage,
};
use centurion_tui::{
    Capabilities, Fact, FullscreenSurface, Happening, InlineSurface, Input, Key, KeyCode, Line,
    Look, Model, Size, Surface, fold, view,
};

const AGENTS: usize = 100;
const EVENTS: u32 = 200_000;
const FRAMES: u32 = 2_000;
/// The targets of the design.
const FOLD: Duration = Duration::from_micros(20);
const FRAME: Duration = Duration::from_micros(500);
const KEY: Duration = Duration::from_millis(2);

fn started(number: usize) -> EventBody {
    EventBody::System(System::TaskStarted(Box::new(TaskStarted {
        task_id: format!("a{number}"),
        description: format!("Look at part {number}"),
        subagent_type: Some("scout".to_owned()),
        parent_task_id: (number >= 10).then(|| AgentId::new(format!("a{}", number / 10))),
        is_backgrounded: true,
        task_type: "local_agent",
        ..TaskStarted::default()
    })))
}

fn progress(number: usize) -> EventBody {
    EventBody::System(System::TaskProgress(Box::new(TaskProgress {
        task_id: format!("a{}", number % AGENTS),
        run_id: "r".to_owned(),
        tool_use_id: None,
        description: format!("Bash ./step.sh {number}"),
        subagent_type: "scout".to_owned(),
        usage: TaskUsage { total_tokens: number as u64, tool_uses: 3, duration_ms: 5 },
        last_tool_name: None,
        summary: None,
    })))
}

/// Prints a time beside its target; whether it is within.
fn told(what: &str, taken: Duration, count: u32, target: Duration) -> bool {
    let each = taken / count;
    let share = each.as_secs_f64() / target.as_secs_f64();
    println!("{what:<28} {each:>12.2?}   target {target:>8.0?}   {share:.3} of it");
    each <= target
}

/// An agent that ends.
fn ended(id: &str) -> EventBody {
    EventBody::System(System::TaskNotification(Box::new(TaskNotification {
        task_id: id.to_owned(),
        run_id: None,
        tool_use_id: None,
        status: "completed",
        output_file: String::new(),
        summary: "found it".to_owned(),
        usage: None,
        worktree: None,
    })))
}

/// The pieces of a text that streams in.
fn streamed() -> Vec<EventBody> {
    let delta = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"words and\\n\\nmore "}}"#;
    let begin =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let end = r#"{"type":"content_block_stop","index":0}"#;
    let texts = std::iter::once(begin).chain(std::iter::repeat_n(delta, 18)).chain([end]);
    let event = |text: &str| {
        let event = serde_json::value::RawValue::from_string(text.to_owned()).ok()?;
        Some(EventBody::StreamEvent(Stream {
            event,
            parent_tool_use_id: None,
            agent_id: None,
            user_message_uuid: None,
            user_message_uuids: Vec::new(),
        }))
    };
    texts.filter_map(event).collect()
}

/// The memory of this process in pages; 0 where the system does not tell.
fn pages() -> usize {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    told.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

/// A million events, drawn as they come; whether the second half took no more memory than the first.
fn growth(surface: &mut dyn Surface, name: &str) -> bool {
    const ROUNDS: u64 = 44_000;
    let size = Size { columns: 120, rows: 40 };
    let (mut model, mut out, mut halves) = (Model::default(), Vec::new(), Vec::new());
    let pieces = streamed();
    let mut events = 0_u64;
    for round in 0..ROUNDS {
        let id = format!("b{round}");
        let now = Duration::from_secs(2 * round);
        let start = EventBody::System(System::TaskStarted(Box::new(TaskStarted {
            task_id: id.clone(),
            description: "Look around".to_owned(),
            subagent_type: Some("scout".to_owned()),
            is_backgrounded: true,
            task_type: "local_agent",
            ..TaskStarted::default()
        })));
        let end = ended(&id);
        for event in std::iter::once(&start).chain(&pieces).chain([&end]) {
            fold(&mut model, now, Happening::Event(event));
            events += 1;
        }
        out.clear();
        surface.draw(&view(&model, size), size, &mut out);
        model.printed();
        if round == ROUNDS / 2 || round == ROUNDS - 1 {
            halves.push(pages());
        }
    }
    let [half, all] = halves[..] else { return false };
    #[expect(clippy::cast_precision_loss, reason = "pages are few")]
    let ratio = all as f64 / half.max(1) as f64;
    println!(
        "memory after {events} events, {name}: {ratio:.3} of that after half of them (target 1.05)"
    );
    ratio <= 1.05
}

/// The viewer with all lines that it keeps, which are more than 10,000 messages have.
fn viewer() -> bool {
    let size = Size { columns: 120, rows: 40 };
    let mut model = Model::default();
    let now = Duration::ZERO;
    fold(&mut model, now, Happening::Input(&Input::Resized(size)));
    fold(&mut model, now, Happening::Input(&Input::Key(Key::plain(KeyCode::Char('o')).ctrl())));
    let words = "words of a message that is about as long as one is ";
    let lines =
        (0..50_000).map(|number| Line::from(format!("{number} {}", words.repeat(3)).as_str()));
    let page = Fact::Page { agent: None, lines: lines.collect(), start: 0 };
    fold(&mut model, now, Happening::Fact(page));
    let keys = [KeyCode::Char('g'), KeyCode::PageDown, KeyCode::Char('G'), KeyCode::PageUp];
    let (began, mut rows) = (Instant::now(), 0);
    for key in keys.iter().cycle().take(400) {
        fold(&mut model, now, Happening::Input(&Input::Key(Key::plain(*key))));
        rows += view(&model, size).live.len();
    }
    assert_eq!(rows, 400 * 40, "the viewer has the whole window");
    told("viewer of 50,000 lines, a key", began.elapsed(), 400, KEY)
}

fn main() -> ExitCode {
    let mut model = Model::default();
    for number in 0..AGENTS {
        fold(&mut model, Duration::ZERO, Happening::Event(&started(number)));
    }
    model.printed();
    let events: Vec<EventBody> = (0..1_000).map(progress).collect();
    let size = Size { columns: 120, rows: 40 };
    let began = Instant::now();
    for (at, event) in (0..EVENTS).zip(events.iter().cycle()) {
        fold(&mut model, Duration::from_millis(u64::from(at)), Happening::Event(event));
    }
    let mut holds = told("fold of an event", began.elapsed(), EVENTS, FOLD);
    let began = Instant::now();
    let mut rows = 0;
    for _ in 0..FRAMES {
        rows += view(&model, size).live.len();
    }
    holds &= told("frame with 100 agents", began.elapsed(), FRAMES, FRAME);
    let began = Instant::now();
    for at in 0..FRAMES {
        let key = Input::Key(Key::plain(KeyCode::Char('x')));
        fold(&mut model, Duration::from_millis(u64::from(at)), Happening::Input(&key));
        rows += view(&model, size).live.len();
        let key = Input::Key(Key::plain(KeyCode::Backspace));
        fold(&mut model, Duration::from_millis(u64::from(at)), Happening::Input(&key));
    }
    holds &= told("key with its frame", began.elapsed(), FRAMES, KEY);
    println!("({rows} rows were made)");
    holds &= viewer();
    let look = Look::default();
    let can = Capabilities::default();
    holds &= growth(&mut InlineSurface::new(size, look, can), "inline");
    holds &= growth(&mut FullscreenSurface::new(size, look, can, true), "fullscreen");
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
