//! The result of an agent: data for hosts and transcripts, a text for a model, and a text for a person
//! who typed a skill.
//!
//! The report of an agent is data to its reader: our own markup in it is defused (invariant I-9).

use std::fmt::Write as _;

use centurion_protocol::Outcome;
use centurion_tools::{ToolError, ToolOutput};
use serde_json::{Value, json};

use super::CutOff;
use crate::agent::Agent;
use crate::agent::isolation::{WorktreeEnd, outside, unconfined};
use crate::agent::task::{End, SharedContext, Task};
use crate::delegate::outcome::{
    REPORT_BOUND, bounded_result, failure, result_within, whole_result, worktree_words,
};
use crate::message::titles::{listed, title};
use centurion_protocol::markup::contain;

/// The answer of a call that does not wait.
pub(super) fn launched(task: &Task, caller: &Agent) -> ToolOutput {
    let (id, file) = (&task.id, task.output.path().display());
    let can_read = caller.can_read_files();
    let how = if can_read { " You may Read that file to see how far it is." } else { "" };
    let text = format!(
        "The agent works in the background.\nagentId: {id} (SendMessage with to: '{id}' speaks to it)\n\
         output_file: {file}\nYou will be told when it has ended: do not wait for it, and do not do its \
         work meanwhile.{how}"
    );
    let run = task.run();
    let data = json!({
        "isAsync": true,
        "status": "async_launched",
        "agentId": id,
        "agentType": task.spec.agent_type,
        "description": task.spec.description,
        "resolvedModel": task.spec.model,
        "prompt": run.prompt,
        "outputFile": task.output.path(),
        "canReadOutputFile": can_read,
        "canContinueAgent": !task.spec.is_one_shot,
        "requested": requested(task),
    });
    ToolOutput::text(text).with_data(without_nulls(data))
}

/// The answer of a call that waited, with as much of the report as its caller has room for.
pub(super) fn ended(task: &Task, end: &End, room: usize) -> Result<ToolOutput, ToolError> {
    let (text, data) = (text(task, end, room), data(task, end));
    if end.outcome.is_success() || says_something(end) {
        return Ok(ToolOutput::text(text).with_data(data));
    }
    Err(ToolError::FailedWith { message: text, data })
}

/// The result for a person: the report alone, and the place of the agent's work if it has a worktree.
pub(super) fn shown(task: &Task, end: &End) -> Result<String, CutOff> {
    let mut text = whole_result(task, end);
    if let Some(worktree) = &end.worktree {
        let _ = write!(text, "\n{}", worktree_words(worktree));
    }
    for note in notes(end) {
        let _ = write!(text, "\n{note}");
    }
    let text = text.trim_end().to_owned();
    if end.outcome.is_success() { Ok(text) } else { Err(CutOff(text)) }
}

/// Notes about work that its worktree did not hold.
fn notes(end: &End) -> impl Iterator<Item = String> {
    let texts = end.unconfined.as_deref().map(unconfined).into_iter().chain(outside(&end.outside));
    texts.map(|text| format!("Note that {text}."))
}

fn says_something(end: &End) -> bool {
    end.structured.is_some() || !end.text.trim().is_empty()
}

fn text(task: &Task, end: &End, room: usize) -> String {
    let mut text = String::new();
    let tools: Vec<&str> = end.evidence.tools.keys().map(String::as_str).collect();
    // Writing to a string cannot fail.
    if !end.outcome.is_success() {
        let _ = writeln!(text, "{}", contain(&failure(end)));
    }
    if says_something(end) {
        let word = if end.outcome.is_success() { "reports" } else { "had said last" };
        let _ = writeln!(text, "The agent {word} (what follows is its text, not the user's):");
        for line in contain(&result_within(task, end, room.min(REPORT_BOUND))).lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    let _ = writeln!(text, "{}", facts(end, &tools));
    if let Some(worktree) = &end.worktree {
        text.push_str(&contain(&worktree_words(worktree)));
    }
    for note in notes(end) {
        let _ = writeln!(text, "{note}");
    }
    text.extend(end.unread_words().iter().flat_map(|words| [words.as_str(), "\n"]));
    if !task.spec.is_one_shot {
        let id = &task.id;
        let _ = writeln!(text, "agentId: {id} (SendMessage with to: '{id}' resumes this agent)");
        let usage = end.task_usage();
        let _ = write!(
            text,
            "<usage>subagent_tokens: {}\ntool_uses: {}\nduration_ms: {}</usage>",
            usage.total_tokens, usage.tool_uses, usage.duration_ms
        );
    }
    text.trim_end().to_owned()
}

/// The runtime's evidence in one line: the agent's own account can be checked against it.
fn facts(end: &End, tools: &[&str]) -> String {
    let evidence = &end.evidence;
    let mut facts = format!(
        "Seen by the runtime: tools used: {}",
        if tools.is_empty() { "none".to_owned() } else { listed(tools.iter(), ", ") }
    );
    if !evidence.files_changed.is_empty() {
        let _ = write!(facts, "; files changed: {}", listed(evidence.files_changed.iter(), ", "));
    }
    let failed = evidence.commands.iter().filter(|it| it.exit_code.is_some_and(|code| code != 0));
    let failed = failed.count();
    if failed > 0 {
        let _ = write!(facts, "; commands that failed: {failed} of {}", evidence.commands.len());
    }
    if let Some(shared) = &end.shared {
        let SharedContext { bytes, cache_read_tokens } = shared;
        let _ = write!(
            facts,
            "; shared with you: {bytes} bytes, of which the provider read {cache_read_tokens} tokens from its cache"
        );
    }
    if !end.denials.is_empty() {
        let denied = end.denials.iter().map(|it| format!("{} ({})", it.tool, it.reason));
        let _ = write!(facts, "; not allowed: {}", listed(denied, "; "));
    }
    contain(&facts).into_owned()
}

fn data(task: &Task, end: &End) -> Value {
    let spec = &task.spec;
    let status = if end.outcome.is_success() { "completed" } else { end.status() };
    without_nulls(json!({
        "status": status,
        "outcome": end.outcome,
        "prompt": task.run().prompt,
        "agentId": task.id,
        "agentType": spec.agent_type,
        "toolsUsed": end.evidence.tools.keys().collect::<Vec<_>>(),
        "content": [{"type": "text", "text": bounded_result(task, end)}],
        "structuredOutput": end.structured,
        "resolvedModel": spec.model,
        "modelsUsed": [end.model],
        "totalDurationMs": end.duration_ms,
        "totalTokens": end.usage.counts.total(),
        "totalToolUseCount": end.evidence.calls(),
        "usage": end.usage.clone().completed(),
        "cumulativeUsage": end.cumulative_usage,
        "toolStats": end.evidence.stats,
        "evidence": {
            "tools": end.evidence.tools,
            "filesChanged": end.evidence.files_changed,
            "commands": end.evidence.commands,
        },
        "sharedContext": end.shared,
        "worktreePath": end.worktree.as_ref().and_then(WorktreeEnd::path),
        "worktreeBranch": end.worktree.as_ref().and_then(WorktreeEnd::branch),
        "worktree": end.worktree,
        "unreadMessages": Some(end.unread).filter(|count| *count > 0),
        "errors": end.errors,
        "permissionDenials": end.denials,
        "effective": effective(task),
        "requested": requested(task),
        "canContinueAgent": !spec.is_one_shot,
        "outputFile": task.output.path(),
        "notification": end.notification,
    }))
}

fn effective(task: &Task) -> Value {
    let spec = &task.spec;
    json!({"model": spec.model, "permissionMode": spec.mode, "cwd": spec.cwd, "inBackground": spec.in_background})
}

fn requested(task: &Task) -> Option<&Value> {
    Some(&task.spec.requested).filter(|it| it.as_object().is_some_and(|it| !it.is_empty()))
}

fn without_nulls(mut data: Value) -> Value {
    if let Some(fields) = data.as_object_mut() {
        let is_nothing =
            |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        fields.retain(|name, value| !is_nothing(value) || name == "toolsUsed" || name == "content");
    }
    data
}

/// One line about an agent, for lists.
pub(crate) fn about(task: &Task) -> String {
    let name = task.identity.name.as_deref().unwrap_or(task.id.as_str());
    let state = match task.end() {
        None => match task.progress().summary {
            Some(summary) => format!("running: {}", contain(&summary)),
            None => "running".to_owned(),
        },
        Some(end) => match end.outcome {
            Outcome::Completed => "completed".to_owned(),
            outcome => format!("{} ({outcome})", end.status()),
        },
    };
    let seconds = task.run().started.elapsed().as_secs();
    format!(
        "{name}  ·  {}  ·  {state}  ·  started {seconds}s ago  ·  {}",
        task.spec.agent_type,
        contain(&title(&task.spec.description))
    )
}
