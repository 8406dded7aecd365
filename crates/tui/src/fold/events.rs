//! Events of the session: what agents say and do.

use centurion_protocol::sdk::{
    AgentWaiting, Assistant, EventBody, RunResult, System, TaskNotification, TaskProgress,
    TaskStarted, TaskUpdated, User, WaitsFor,
};
use centurion_protocol::{AgentId, Block};
use serde_json::Value;

use super::answer;
use super::lines::{as_it_is, call_lines, end_lines, marked};
use super::send;
use crate::effect::Effect;
use crate::frame::{Colour, Line, Style};
use crate::model::Model;
use crate::model::agents::AgentState;
use crate::model::call::Call;
use crate::model::talk::{Todo, TodoState};
use crate::text::foreign;
use crate::view::words::amount;

/// The most denied calls that are remembered.
const MOST_DENIED: usize = 20;

pub(super) fn event(model: &mut Model, event: &EventBody, effects: &mut Vec<Effect>) {
    match event {
        EventBody::System(event) => system(model, event, effects),
        EventBody::Assistant(said) => assistant(model, said),
        EventBody::User(user) => input(model, user),
        EventBody::StreamEvent(piece) if piece.agent_id.is_none() => answer::piece(model, piece),
        EventBody::Result(result) => turn_ended(model, result, effects),
        EventBody::ConversationReset { new_conversation_id, .. } => {
            model.facts.session = Some(*new_conversation_id);
            model.talk.print_apart([Line::from("─ a new conversation ─")]);
            model.facts.context = 0;
        }
        // A member of a team in another process tells of itself by its messages and its end.
        EventBody::StreamEvent(_)
        | EventBody::ToolProgress(_)
        | EventBody::PromptSuggestion(_)
        | EventBody::RateLimitEvent(_)
        | EventBody::ToolUseSummary(_)
        | EventBody::ActiveGoal { .. }
        | EventBody::Relayed(_) => {}
    }
}

fn system(model: &mut Model, event: &System, effects: &mut Vec<Effect>) {
    let warning = |text: &str| marked("!", Colour::Yellow, text);
    match event {
        System::Init(init) => {
            let facts = &mut model.facts;
            facts.model.clone_from(&init.model);
            facts.mode.clone_from(&init.permission_mode);
            facts.cwd.clone_from(&init.cwd);
            turn_began(model);
        }
        System::Status(status) if status.agent_id.is_none() => {
            if let Some(mode) = &status.permission_mode {
                model.facts.mode.clone_from(mode);
            }
        }
        System::TaskStarted(started) => task_started(model, started),
        System::TaskProgress(progress) => task_progressed(model, progress),
        System::TaskUpdated(updated) => task_updated(model, updated),
        System::TaskNotification(ended) => task_ended(model, ended, effects),
        System::AgentWaiting(waiting) => agent_waits(model, waiting),
        System::PermissionDenied(denied) => {
            let said = format!("{} was denied: {}", denied.tool_name, denied.message);
            model.talk.denied.push_front(said.clone());
            model.talk.denied.truncate(MOST_DENIED);
            tell(model, denied.agent_id.as_ref(), warning(&said));
        }
        System::ApiRetry(retry) => {
            let seconds = retry.retry_delay_ms as f64 / 1000.0;
            let (attempt, most) = (retry.attempt, retry.max_retries);
            let said =
                format!("{}: trying again in {seconds:.1} s ({attempt} of {most})", retry.error);
            tell(model, retry.agent_id.as_ref(), warning(&said));
        }
        System::CompactBoundary(boundary) => {
            let data = &boundary.compact_metadata;
            let (before, after) = (amount(data.pre_tokens), amount(data.post_tokens));
            let said = format!("the conversation was compacted: {before} became {after} tokens");
            tell(model, boundary.agent_id.as_ref(), warning(&said));
        }
        System::Informational(info) => {
            for line in info.content.lines() {
                tell(model, info.agent_id.as_ref(), warning(line));
            }
        }
        System::Status(_)
        | System::BackgroundTasksChanged { .. }
        | System::SessionStateChanged { .. }
        | System::CommandsChanged { .. }
        | System::ThinkingTokens(_)
        | System::Notification(_)
        | System::ElicitationComplete { .. }
        | System::LocalCommandOutput { .. }
        | System::SessionWritesLost(_)
        | System::ModelRefusalNoFallback(_)
        | System::HookStarted(_)
        | System::HookProgress(_)
        | System::HookResponse(_) => {}
    }
}

/// Prints a line of the main agent, or notes one of another agent.
fn tell(model: &mut Model, agent: Option<&AgentId>, line: Line) {
    match agent.map(|id| model.agents.get_mut(id)) {
        None => model.talk.print_apart([line]),
        Some(Some(row)) => row.note(line),
        Some(None) => {}
    }
}

fn turn_began(model: &mut Model) {
    let now = model.now;
    let talk = &mut model.talk;
    if !talk.is_busy {
        (talk.since, talk.received) = (now, 0);
    }
    talk.is_busy = true;
    (talk.has_answered, talk.has_spoken) = (false, false);
    talk.running.clear();
}

fn turn_ended(model: &mut Model, result: &RunResult, effects: &mut Vec<Effect>) {
    answer::finish(model);
    let talk = &mut model.talk;
    let has_spoken = std::mem::take(&mut talk.has_spoken);
    (talk.is_busy, talk.waits, talk.streamed) = (false, None, 0);
    talk.running.clear();
    talk.started.clear();
    model.facts.dollars = model.facts.dollars.max(result.total_cost_usd);
    if let Some(usage) =
        result.model_usage.get(&model.facts.model).or(result.model_usage.values().next())
    {
        model.facts.window = usage.context_window;
    }
    if result.is_error {
        let errors = result.errors.as_deref().unwrap_or_default();
        let said = (!has_spoken && errors.is_empty()).then_some(result.result.as_str());
        let why = errors.iter().map(String::as_str).chain(said);
        let mut lines: Vec<Line> =
            why.flat_map(str::lines).map(|it| marked("✗", Colour::Red, it)).collect();
        if lines.is_empty() {
            lines.push(marked("■", Colour::Yellow, "stopped"));
        }
        model.talk.print_apart(lines);
    } else if !has_spoken && !result.result.trim().is_empty() {
        // A command of the program answers with its result alone.
        model.talk.print_apart(as_it_is(&result.result));
    }
    model.prompts.unanswered = None;
    send::release(model, effects);
    notify_if_done(model, effects);
}

/// Calls a person who looks elsewhere, once nothing works any more.
fn notify_if_done(model: &Model, effects: &mut Vec<Effect>) {
    let is_over =
        !model.talk.is_busy && !model.agents.any_at_work() && model.prompts.waiting.is_empty();
    if model.facts.is_away && is_over {
        effects.push(Effect::Notify("all done".to_owned()));
    }
}

fn assistant(model: &mut Model, said: &Assistant) {
    let now = model.now;
    let agent = said.agent.as_ref().map(|tag| tag.agent_id.clone());
    if agent.is_none() {
        model.talk.has_answered = true;
        model.talk.is_thinking = false;
        model.prompts.unanswered = None;
        let usage = said.message.usage.counts;
        if usage.context() > 0 {
            model.facts.context = usage.context() + usage.output_tokens;
        }
    }
    for block in &said.message.content {
        match (block, &agent) {
            (Block::Text(text), None) => {
                model.talk.remember(text);
                answer::text(model, text, said.error.is_some());
            }
            (Block::Text(text), Some(id)) => {
                if let Some(row) = model.agents.get_mut(id) {
                    text.trim()
                        .lines()
                        .for_each(|line| row.note(Line::from(foreign(line, Style::PLAIN))));
                }
            }
            (Block::ToolUse(call), None) => {
                let call = Call::new(call, now);
                if call.tool == "TodoWrite" {
                    model.talk.todos = todos(&call.input);
                }
                model.talk.running.push(call);
            }
            (Block::ToolUse(call), Some(id)) => {
                if let Some(row) = model.agents.get_mut(id) {
                    let call = Call::new(call, now);
                    let activity = format!("{} {}", call.tool, call.subject);
                    activity.trim_end().clone_into(&mut row.activity);
                    row.running.push(call);
                }
            }
            _ => {}
        }
    }
}

fn todos(input: &Value) -> Vec<Todo> {
    let todo = |one: &Value| {
        let state = match one["status"].as_str()? {
            "completed" => TodoState::Done,
            "in_progress" => TodoState::Active,
            _ => TodoState::Pending,
        };
        Some(Todo { text: one["content"].as_str()?.to_owned(), state })
    };
    input["todos"].as_array().into_iter().flatten().filter_map(todo).take(100).collect()
}

/// Results of calls, and what agents are asked for.
fn input(model: &mut Model, user: &User) {
    let now = model.now;
    let before = user.tool_use_result.as_ref().and_then(|it| it["originalFile"].as_str());
    for block in &user.message.content {
        match (block, &user.agent) {
            (Block::ToolResult(result), None) => {
                let running = &mut model.talk.running;
                let Some(at) = running.iter().position(|call| call.id == result.id) else {
                    continue;
                };
                let call = running.remove(at);
                let is_row = model.talk.started.contains(&call.id);
                if !is_row && (call.tool != "TodoWrite" || result.is_error) {
                    model.talk.print_apart(call_lines(&call, result, before, now));
                }
            }
            (Block::ToolResult(result), Some(tag)) => {
                let Some(row) = model.agents.get_mut(&tag.agent_id) else { continue };
                if let Some(at) = row.running.iter().position(|call| call.id == result.id) {
                    let call = row.running.remove(at);
                    for line in call_lines(&call, result, before, now) {
                        row.note(line);
                    }
                }
                row.activity.clear();
            }
            (Block::Text(text), Some(tag)) => {
                if let Some(row) = model.agents.get_mut(&tag.agent_id) {
                    row.note(marked("›", Colour::Cyan, text));
                }
            }
            _ => {}
        }
    }
}

fn task_started(model: &mut Model, started: &TaskStarted) {
    if let Some(call) = &started.tool_use_id {
        model.talk.started.insert(call.clone());
    }
    let id = model.agents.begin(started, model.now);
    let path = model.agents.path(&id).join(" ▸ ");
    let Some(row) = model.agents.get_mut(&id) else { return };
    for line in started.prompt.iter().flat_map(|prompt| prompt.lines()).take(20) {
        row.note(marked("›", Colour::Cyan, line));
    }
    let how = if row.is_background { " · in the background" } else { "" };
    let line = marked("▶", Colour::Cyan, &format!("{path}  {}{how}", row.task));
    model.talk.print_apart([line]);
}

fn task_progressed(model: &mut Model, progress: &TaskProgress) {
    let id = AgentId::new(progress.task_id.as_str());
    let Some(row) = model.agents.get_mut(&id).filter(|row| !row.state.has_ended()) else { return };
    row.use_up(progress.usage);
    row.activity.clone_from(&progress.description);
    if row.state != AgentState::Asks {
        row.state = AgentState::Works;
    }
}

fn task_updated(model: &mut Model, updated: &TaskUpdated) {
    let id = AgentId::new(updated.task_id.as_str());
    let now = model.now;
    let Some(row) = model.agents.get_mut(&id) else { return };
    if let Some(is_background) = updated.patch.is_backgrounded {
        row.is_background = is_background;
    }
    match updated.patch.status {
        // A member of a team that failed can be woken like one that rests.
        Some("pending") if updated.patch.error.is_some() => {
            model.agents.end(&id, AgentState::Failed, None, now);
        }
        Some("pending") => row.state = AgentState::Rests,
        Some("running") => (row.state, row.ended) = (AgentState::Works, None),
        Some(status @ ("completed" | "failed" | "killed")) => {
            model.agents.end(&id, end_state(status), None, now);
        }
        _ => {}
    }
}

fn end_state(status: &str) -> AgentState {
    match status {
        "completed" => AgentState::Done,
        "killed" | "stopped" => AgentState::Stopped,
        _ => AgentState::Failed,
    }
}

fn task_ended(model: &mut Model, ended: &TaskNotification, effects: &mut Vec<Effect>) {
    let id = AgentId::new(ended.task_id.as_str());
    let state = end_state(ended.status);
    model.agents.end(&id, state, ended.usage, model.now);
    let path = model.agents.path(&id).join(" ▸ ");
    let Some(row) = model.agents.get(&id) else { return };
    let lines = end_lines(row, &path, &ended.summary, state);
    model.talk.print_apart(lines);
    notify_if_done(model, effects);
}

fn agent_waits(model: &mut Model, waiting: &AgentWaiting) {
    let waits = (!waiting.is_over).then_some(waiting.waits_for);
    let Some(id) = &waiting.agent_id else {
        model.talk.waits = waits;
        return;
    };
    if let Some(row) = model.agents.get_mut(id).filter(|row| !row.state.has_ended()) {
        row.state = match waits {
            Some(WaitsFor::Person) => AgentState::Asks,
            Some(other) => AgentState::Waits(other),
            None => AgentState::Works,
        };
    }
}
