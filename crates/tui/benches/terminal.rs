//! The speed of folds and frames with 100 agents at work: `cargo bench -p centurion-tui --bench terminal`.
//!
//! Prints each time with its share of the target, and fails above a target.
#![expect(clippy::print_stdout, reason = "a measurement prints")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use centurion_protocol::AgentId;
use centurion_protocol::sdk::{EventBody, System, TaskProgress, TaskStarted, TaskUsage};
use centurion_tui::{Happening, Input, Key, KeyCode, Model, Size, fold, view};

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
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
