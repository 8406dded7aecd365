//! What happens, as it happens, for a person who watches: each call with a line of its result.
//!
//! Colours are the named ANSI ones, always beside a glyph or a word; `NO_COLOR` switches them off.

use centurion_engine::View;
use centurion_protocol::sdk::{Event, EventBody, System};
use centurion_protocol::{Block, ToolResult, ToolResultContent, ToolUse};
use serde_json::Value;

use super::{note, printable};

/// How much of a line a person is shown.
const WIDTH: usize = 100;
/// How many lines of a result a person is shown.
const RESULT_LINES: usize = 4;

/// Shows events on standard error and hands them on.
pub(crate) struct LiveView<V> {
    pub(crate) next: V,
    pub(crate) paint: bool,
}

impl<V> LiveView<V> {
    pub(crate) fn new(next: V, paint: bool) -> Self {
        Self { next, paint }
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.paint { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn show_call(&self, call: &ToolUse) {
        let subject = subject(call);
        note(&format!("{} {} {subject}", self.painted("36", "●"), self.painted("1", &call.name)));
    }

    fn show_result(&self, result: &ToolResult) {
        let text: String = result
            .content
            .iter()
            .map(|part| match part {
                ToolResultContent::Text(text) => text.as_str(),
                ToolResultContent::Image { .. } => "[image]",
                ToolResultContent::Document { .. } => "[document]",
            })
            .collect();
        let (code, mark) = if result.is_error { ("31", "✗") } else { ("2", "└") };
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or("(nothing)");
        note(&self.painted(code, &format!("  {mark} {}", brief(first))));
        for line in lines.by_ref().take(RESULT_LINES - 1) {
            note(&self.painted(code, &format!("    {}", brief(line))));
        }
        let more = lines.count();
        if more > 0 {
            note(&self.painted(code, &format!("    … {more} more lines")));
        }
    }

    fn show_system(&self, event: &System) {
        let line = match event {
            System::ApiRetry(retry) => format!(
                "! {} ({}): trying again in {:.1} s, {} of {}",
                retry.error,
                retry.error_status.map_or("no answer".to_owned(), |status| status.to_string()),
                retry.retry_delay_ms as f64 / 1000.0,
                retry.attempt,
                retry.max_retries
            ),
            System::Informational(info) => format!("! {}", info.content),
            System::TaskNotification(task) => format!("◆ {}", brief(&task.summary)),
            System::PermissionDenied(denied) => format!("! {}", brief(&denied.message)),
            _ => return,
        };
        note(&self.painted("33", &line));
    }
}

impl<V: View> View for LiveView<V> {
    fn show(&self, event: &Event) {
        match &event.body {
            EventBody::Assistant(answer) if answer.error.is_none() => {
                for block in &answer.message.content {
                    match block {
                        Block::ToolUse(call) => self.show_call(call),
                        Block::Text(text) => {
                            for line in text.trim().lines() {
                                note(&format!("{} {}", self.painted("32", "│"), printable(line)));
                            }
                        }
                        _ => {}
                    }
                }
            }
            EventBody::User(user) => {
                for block in &user.message.content {
                    if let Block::ToolResult(result) = block {
                        self.show_result(result);
                    }
                }
            }
            EventBody::System(event) => self.show_system(event),
            EventBody::Result(result) if result.is_error => {
                note(
                    &self
                        .painted("31", &format!("✗ {}: {}", result.outcome, brief(&result.result))),
                );
            }
            _ => {}
        }
        self.next.show(event);
    }
}

/// Where events end that nobody else wants.
pub(crate) struct Nowhere;

impl View for Nowhere {
    fn show(&self, _: &Event) {}
}

/// The one thing about a call that tells a person what it does.
fn subject(call: &ToolUse) -> String {
    let input: Value = serde_json::from_str(call.input.get()).unwrap_or_default();
    ["command", "file_path", "notebook_path", "pattern", "url", "task_id", "plan"]
        .iter()
        .find_map(|key| input.get(key).and_then(Value::as_str))
        .map(brief)
        .unwrap_or_default()
}

/// The first line of a text, cut to what fits, without control characters.
fn brief(text: &str) -> String {
    let line = printable(text.lines().next().unwrap_or(""));
    match line.char_indices().nth(WIDTH) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}
