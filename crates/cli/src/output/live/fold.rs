//! From events to lines: who does what, as a tree that grows downward.
//!
//! The main agent's lines stand at the margin. Those of every other agent are indented by its depth and
//! begin with its short name, so that many at once stay readable.

use std::collections::{HashMap, HashSet, VecDeque};

use centurion_protocol::sdk::{
    AgentTag, Assistant, EventBody, PermissionDenied, RunResult, System, TaskNotification,
    TaskProgress, TaskStarted, TaskUpdated, User,
};
use centurion_protocol::{Block, ToolResult, ToolResultContent, ToolUse, ToolUseId};
use serde_json::Value;

use super::style::{
    BOLD, CYAN, DIM, GREEN, RED, Style, YELLOW, amounts, brief, colour, subject, tokens,
};
use super::window::{columns, cut, wrap};
use crate::output::printable;

/// The most lines of a result or a report that a person is shown.
const RESULT_LINES: usize = 4;
/// The most columns that the name of an agent takes.
const LABEL: usize = 24;
/// The most columns of a line that says why something failed.
const REASON: usize = 400;
/// For measuring.
const PLAIN: Style = Style { paint: false };

/// The events seen so far, as far as later lines depend on them.
pub(super) struct Fold {
    style: Style,
    /// The columns of the window, where there is one.
    width: Option<usize>,
    /// In the order of their start.
    workers: Vec<Worker>,
    /// Calls for an agent that has not started: its start says more than the call.
    held: HashMap<ToolUseId, ToolUse>,
    /// Calls that start or resume an agent: its end says more than their result.
    started: HashSet<ToolUseId>,
    /// Calls of the main agent that have been shown and have no result.
    open: HashMap<ToolUseId, ToolUse>,
    /// The call in the last line, if there is one.
    last: Option<ToolUseId>,
}

/// An agent other than the main one, or a shell in the background.
struct Worker {
    id: String,
    /// The short name that its lines begin with.
    label: String,
    colour: &'static str,
    depth: usize,
    description: String,
    is_shell: bool,
    is_background: bool,
    is_running: bool,
    /// Calls of its last answer that have not begun.
    calls: VecDeque<ToolUse>,
    /// The last words of a model about its work.
    summary: Option<String>,
}

impl Fold {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            width: None,
            workers: Vec::new(),
            held: HashMap::new(),
            started: HashSet::new(),
            open: HashMap::new(),
            last: None,
        }
    }

    /// The lines that an event adds in a window of this many columns.
    pub(super) fn lines(&mut self, event: &EventBody, width: Option<usize>) -> Vec<String> {
        self.width = width;
        let last = self.last.take();
        let lines = match event {
            EventBody::Assistant(answer) if answer.error.is_none() => self.answer(answer),
            EventBody::User(user) => self.input(user, last.as_ref()),
            EventBody::System(event) => self.system(event),
            EventBody::Result(result) => self.result(result),
            _ => Vec::new(),
        };
        if lines.is_empty() {
            self.last = last;
        }
        lines
    }

    fn answer(&mut self, answer: &Assistant) -> Vec<String> {
        let mut lines = Vec::new();
        for block in &answer.message.content {
            match (block, &answer.agent) {
                (Block::ToolUse(call), _) if is_agent_call(call) => {
                    self.held.insert(call.id.clone(), call.clone());
                    // Its progress says nothing that its start does not.
                    self.queue(answer.agent.as_ref(), call);
                }
                (Block::ToolUse(call), None) => {
                    lines.push(self.call(call));
                    self.open.insert(call.id.clone(), call.clone());
                    self.last = Some(call.id.clone());
                }
                (Block::ToolUse(call), Some(_)) => self.queue(answer.agent.as_ref(), call),
                (Block::Text(text), None) => {
                    let bar = self.style.painted(GREEN, "│");
                    let said = self.wrapped(text, 2).into_iter();
                    lines.extend(said.map(|line| format!("{bar} {line}").trim_end().to_owned()));
                }
                (Block::Text(text), Some(tag)) => lines.extend(self.said(tag, text)),
                _ => {}
            }
        }
        lines
    }

    fn queue(&mut self, tag: Option<&AgentTag>, call: &ToolUse) {
        if let Some(tag) = tag
            && let Some(worker) = self.find_mut(tag.agent_id.as_str())
        {
            worker.calls.push_back(call.clone());
        }
    }

    /// The words of an agent while a call waits for it. One in the background speaks into the words of others: its
    /// report, when it ends, is what a person reads of it.
    fn said(&self, tag: &AgentTag, text: &str) -> Vec<String> {
        match self.find(tag.agent_id.as_str()) {
            Some(worker) if !worker.is_background => {
                let said = self.wrapped(text, columns(&worker.line(PLAIN, "│", ""))).into_iter();
                said.map(|line| worker.line(self.style, "│", &line)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A text in lines that fit beside something.
    fn wrapped(&self, text: &str, beside: usize) -> Vec<String> {
        text.trim().lines().flat_map(|line| wrap(&printable(line), beside, self.width)).collect()
    }

    fn call(&self, call: &ToolUse) -> String {
        let (mark, name) = (self.style.painted(CYAN, "●"), self.style.painted(BOLD, &call.name));
        format!("{mark} {name} {}", subject(call)).trim_end().to_owned()
    }

    /// Results of the main agent's calls. Those of others are theirs to read. One that does not stand below
    /// its call says which it is.
    fn input(&mut self, user: &User, last: Option<&ToolUseId>) -> Vec<String> {
        let mut lines = Vec::new();
        for block in &user.message.content {
            let Block::ToolResult(result) = block else { continue };
            if let Some(tag) = &user.agent {
                lines.extend(self.refusal(tag, result));
                continue;
            }
            let open = self.open.remove(&result.id).filter(|_| last != Some(&result.id));
            if self.started.contains(&result.id) {
                continue;
            }
            if let Some(call) = self.held.remove(&result.id) {
                lines.push(self.call(&call));
            }
            let receipt = user.tool_use_result.as_ref().and_then(|data| data.get("message"));
            let text = match (receipt.and_then(Value::as_str), open) {
                // It names the agent that it is about.
                (Some(receipt), _) => receipt.to_owned(),
                (None, Some(call)) => {
                    format!("{} {}: {}", call.name, subject(&call), text_of(result).trim_start())
                }
                (None, None) => text_of(result),
            };
            lines.extend(self.excerpt("  ", &text, result.is_error));
        }
        lines
    }

    /// A call of an agent for another one that never started: nothing else would tell of it.
    fn refusal(&mut self, tag: &AgentTag, result: &ToolResult) -> Option<String> {
        let call = self.held.remove(&result.id)?;
        let worker = self.find(tag.agent_id.as_str())?;
        let why = self.style.painted(RED, &brief(&text_of(result)));
        Some(worker.line(self.style, "✗", &format!("{} {}: {why}", call.name, subject(&call))))
    }

    fn system(&mut self, event: &System) -> Vec<String> {
        let line = match event {
            System::TaskStarted(started) => return vec![self.start(started)],
            System::TaskProgress(progress) => return self.progress(progress).into_iter().collect(),
            System::TaskUpdated(updated) => return self.update(updated).into_iter().collect(),
            System::TaskNotification(ended) => return self.end(ended),
            System::PermissionDenied(denied) => return vec![self.denial(denied)],
            System::ApiRetry(retry) => format!(
                "! {} ({}): trying again in {:.1} s, {} of {}",
                retry.error,
                retry.error_status.map_or("no answer".to_owned(), |status| status.to_string()),
                retry.retry_delay_ms as f64 / 1000.0,
                retry.attempt,
                retry.max_retries
            ),
            System::CompactBoundary(boundary) => {
                let data = &boundary.compact_metadata;
                let (before, after) = (tokens(data.pre_tokens), tokens(data.post_tokens));
                format!("! the conversation was compacted: {before} became {after}")
            }
            System::Informational(info) => {
                return self.remark("! ", &info.content, self.width);
            }
            _ => return Vec::new(),
        };
        vec![self.style.painted(YELLOW, &line)]
    }

    fn denial(&self, denied: &PermissionDenied) -> String {
        let text = self.style.painted(YELLOW, &brief(&denied.message));
        match denied.agent_id.as_ref().and_then(|id| self.find(id.as_str())) {
            Some(worker) => worker.line(self.style, "!", &text),
            None => format!("{} {text}", self.style.painted(YELLOW, "!")),
        }
    }

    fn start(&mut self, started: &TaskStarted) -> String {
        if let Some(call) = &started.tool_use_id {
            self.held.remove(call);
            self.started.insert(call.clone());
        }
        let style = self.style;
        let how = if started.is_backgrounded { " (in the background)" } else { "" };
        if let Some(worker) = self.find_mut(&started.task_id) {
            worker.is_running = true;
            worker.is_background = started.is_backgrounded;
            worker.calls.clear();
            worker.summary = None;
            let asked = brief(started.prompt.as_deref().unwrap_or(&started.description));
            return worker.line(style, "▶", &format!("continues{how}: {asked}"));
        }
        let worker = self.worker(started);
        let kind = match (&started.name, &started.subagent_type) {
            (Some(name), Some(kind)) if name != kind => format!(" [{}]", brief(kind)),
            _ => String::new(),
        };
        let line = worker.line(style, "▶", &format!("{}{kind}{how}", brief(&started.description)));
        self.workers.push(worker);
        line
    }

    fn worker(&self, started: &TaskStarted) -> Worker {
        let kind = started.subagent_type.as_deref();
        let name = cut(&printable(started.name.as_deref().or(kind).unwrap_or("shell")), LABEL);
        let is_taken = |label: &str| self.workers.iter().any(|worker| worker.label == label);
        let numbered = (2..).map(|number| format!("{name} {number}"));
        let mut labels = std::iter::once(name.clone()).chain(numbered);
        Worker {
            id: started.task_id.clone(),
            label: labels.find(|label| !is_taken(label)).unwrap_or(name.clone()),
            colour: colour(started.color.as_deref()),
            depth: started.spawn_depth.map_or(1, |depth| depth as usize),
            description: started.description.clone(),
            is_shell: kind.is_none(),
            is_background: started.is_backgrounded,
            is_running: true,
            calls: VecDeque::new(),
            summary: None,
        }
    }

    /// One line for each call: what it does, and what the agent has used so far.
    fn progress(&mut self, progress: &TaskProgress) -> Option<String> {
        let style = self.style;
        let worker = self.find_mut(&progress.task_id)?;
        if progress.summary != worker.summary {
            // It has begun nothing: a model says what it is doing.
            worker.summary.clone_from(&progress.summary);
            let said = progress.summary.as_deref().map(brief)?;
            return Some(worker.line(style, "◌", &style.painted(DIM, &said)));
        }
        let what = match worker.calls.pop_front() {
            Some(call) if is_agent_call(&call) => return None,
            Some(call) => format!("{} {}", call.name, subject(&call)),
            None => brief(&progress.description),
        };
        let used = style.painted(DIM, &format!("· {}", amounts(&progress.usage)));
        Some(worker.line(style, "●", &format!("{} {used}", what.trim_end())))
    }

    /// The line about an update of a task. The end of an agent is told by the notification that follows.
    fn update(&mut self, updated: &TaskUpdated) -> Option<String> {
        let style = self.style;
        let worker = self.find_mut(&updated.task_id)?;
        match updated.patch.status {
            // A member of a team rests, or has failed, until a message wakes it.
            Some("pending") => {
                worker.is_running = false;
                let line = match &updated.patch.error {
                    None => worker.line(style, "◌", "idle"),
                    Some(error) => {
                        let why = style.painted(RED, &brief(error));
                        worker.line(style, "✗", &format!("failed: {why}"))
                    }
                };
                return Some(line);
            }
            Some("running") => {
                worker.is_running = true;
                return Some(worker.line(style, "▶", "at work again"));
            }
            _ => {}
        }
        updated.patch.is_backgrounded.filter(|is_it| *is_it)?;
        worker.is_background = true;
        Some(worker.line(style, "◌", "continues in the background"))
    }

    fn end(&mut self, ended: &TaskNotification) -> Vec<String> {
        let style = self.style;
        let Some(worker) = self.find_mut(&ended.task_id) else {
            // It began before this view watched.
            return vec![style.painted(YELLOW, &format!("◆ {}", brief(&ended.summary)))];
        };
        worker.is_running = false;
        worker.calls.clear();
        let (glyph, word, is_error) = match ended.status {
            "completed" => ("✓", "done", false),
            "stopped" => ("■", "stopped", false),
            _ => ("✗", "failed", true),
        };
        if worker.is_shell {
            return vec![worker.line(style, glyph, &brief(&ended.summary))];
        }
        let used = ended.usage.as_ref().map(|usage| format!(" · {}", amounts(usage)));
        let used = style.painted(DIM, &used.unwrap_or_default());
        let mut lines = vec![worker.line(style, glyph, &format!("{word}{used}"))];
        let indent = format!("{}  ", worker.indent());
        lines.extend(self.excerpt(&indent, &ended.summary, is_error));
        lines
    }

    fn result(&self, result: &RunResult) -> Vec<String> {
        let mut lines = Vec::new();
        if result.is_error {
            let text = format!("✗ {}: {}", result.outcome, brief(&result.result));
            lines.push(self.style.painted(RED, &text));
        }
        lines.extend(self.at_work(self.width));
        lines
    }

    /// The line about agents that are still at work when the main agent has nothing to do.
    pub(super) fn at_work(&self, width: Option<usize>) -> Vec<String> {
        let left = self.workers.iter().filter(|worker| worker.is_running && worker.is_background);
        let left: Vec<String> = left
            .map(|worker| format!("{} ({})", worker.label, brief(&worker.description)))
            .collect();
        match left.as_slice() {
            [] => Vec::new(),
            left => {
                let text = format!("still at work in the background: {}", left.join(", "));
                self.remark("◌ ", &text, width)
            }
        }
    }

    /// A remark about the whole, in lines that fit.
    fn remark(&self, mark: &str, text: &str, width: Option<usize>) -> Vec<String> {
        let lines = text.trim().lines().flat_map(|line| wrap(&printable(line), 2, width));
        let marked =
            lines.enumerate().map(|(n, line)| [if n == 0 { mark } else { "  " }, &line].concat());
        marked.map(|line| self.style.painted(YELLOW, &line)).collect()
    }

    /// The beginning of a longer text. Why something failed is not cut so soon.
    fn excerpt(&self, indent: &str, text: &str, is_error: bool) -> Vec<String> {
        let (code, mark) = if is_error { (RED, "✗") } else { (DIM, "└") };
        let mut rest = text.lines().filter(|line| !line.trim().is_empty());
        let shown: Vec<&str> = rest.by_ref().take(RESULT_LINES).collect();
        let mut lines: Vec<String> = if is_error {
            shown.iter().flat_map(|line| self.reason(line, columns(indent) + 2)).collect()
        } else {
            shown.iter().map(|line| brief(line)).collect()
        };
        match rest.count() {
            _ if lines.is_empty() => lines.push("(nothing)".to_owned()),
            0 => {}
            1 => lines.push("… 1 more line".to_owned()),
            more => lines.push(format!("… {more} more lines")),
        }
        let marked = lines.iter().enumerate().map(|(n, line)| {
            let mark = if n == 0 { mark } else { " " };
            format!("{indent}{}", self.style.painted(code, &format!("{mark} {line}")))
        });
        marked.collect()
    }

    fn reason(&self, line: &str, beside: usize) -> Vec<String> {
        wrap(&cut(&printable(line.trim()), REASON), beside, self.width)
    }

    fn find(&self, id: &str) -> Option<&Worker> {
        self.workers.iter().find(|worker| worker.id == id)
    }

    fn find_mut(&mut self, id: &str) -> Option<&mut Worker> {
        self.workers.iter_mut().find(|worker| worker.id == id)
    }
}

impl Worker {
    /// A line of its own, which begins with whose it is.
    fn line(&self, style: Style, glyph: &str, text: &str) -> String {
        let who = style.painted(self.colour, &format!("{glyph} {}", self.label));
        format!("{}{who}  {text}", self.indent())
    }

    fn indent(&self) -> String {
        "  ".repeat(self.depth)
    }
}

fn is_agent_call(call: &ToolUse) -> bool {
    matches!(call.name.as_str(), "Agent" | "Task")
}

fn text_of(result: &ToolResult) -> String {
    let part = |part: &ToolResultContent| match part {
        ToolResultContent::Text(text) => text.clone(),
        ToolResultContent::Image { .. } => "[image]".to_owned(),
        ToolResultContent::Document { .. } => "[document]".to_owned(),
    };
    result.content.iter().map(part).collect()
}

#[cfg(test)]
mod tests;
