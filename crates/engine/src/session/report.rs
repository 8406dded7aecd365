//! The end of a run: what a host reads and what the journal keeps.

use centurion_protocol::sdk::{ResultTimes, RunResult, SubagentStats};
use centurion_protocol::{Outcome, RecordId};
use serde_json::Value;

use crate::agent::shared::Shared;
use crate::message::queue::{Item, Origin};
use crate::turn::driver::Run;
use centurion_journal::{Journal, JournalError};

/// The subtype of a run in which nothing failed.
const SUCCESS: &str = "success";

/// The result event of a run.
pub(crate) fn result(
    shared: &Shared,
    run: &Run,
    prompts: &[RecordId],
    index: u32,
    origin: Option<Value>,
) -> RunResult {
    let waiting = shared.queue.pending(None);
    let is_prompt = |item: &&Item| matches!(item.origin, Origin::Person) && !item.manner.is_quiet;
    let usage_totals = shared.usage.totals.lock().clone();
    let (subtype, terminal_reason) = words(run);
    let text = text(run);
    // Hosts expect a reason beside every kind of failure.
    let has_none = is_error(run.outcome) && run.errors.is_empty();
    let errors = if has_none { vec![text.clone()] } else { run.errors.clone() };
    let errors = Some(errors).filter(|errors| subtype != SUCCESS || !errors.is_empty());
    RunResult {
        subtype,
        is_error: is_error(run.outcome),
        outcome: run.outcome,
        result: text,
        num_turns: run.turns,
        duration_ms: millis(run.started.elapsed()),
        duration_api_ms: millis(run.api_time),
        stop_reason: run.stop_reason.clone(),
        total_cost_usd: usage_totals.total_cost(),
        usage: run.used.total.clone().completed(),
        model_usage: usage_totals.by_model().clone(),
        permission_denials: run.denials.clone(),
        structured_output: run.structured.clone(),
        deferred_tool_use: run
            .deferred
            .as_ref()
            .map(|call| serde_json::json!({"id": call.id, "name": call.name, "input": call.input})),
        terminal_reason,
        subagent_stats: subagent_stats(shared),
        api_error_status: run.failure.and_then(|failure| failure.status),
        errors,
        times: ResultTimes {
            request: run.times.request.map(millis),
            event: run.times.event.map(millis),
            token: run.times.token.map(millis),
            shown: run.times.shown.map(millis),
        },
        result_index: index,
        user_message_uuid: prompts.last().copied(),
        user_message_uuids: prompts.to_vec(),
        queued_turn_count: waiting.iter().filter(is_prompt).count(),
        unfinished_agents: Vec::new(),
        origin,
    }
}

/// Adds what the session has consumed and the fate of its agents since the result was made.
pub(crate) fn bring_up_to_date(shared: &Shared, result: &mut RunResult) {
    let usage_totals = shared.usage.totals.lock().clone();
    result.total_cost_usd = usage_totals.total_cost();
    result.model_usage.clone_from(usage_totals.by_model());
    result.subagent_stats = subagent_stats(shared);
}

/// The statistics of started agents, if there are any.
fn subagent_stats(shared: &Shared) -> Option<Box<SubagentStats>> {
    let stats = shared.delegation.stats();
    (stats != SubagentStats::default()).then(|| Box::new(stats))
}

/// Tells whether hosts are told that something went wrong. A turn that a person stopped did not go wrong: adapters of
/// editors would show it as a fault.
fn is_error(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Completed | Outcome::Deferred | Outcome::Cancelled)
}

/// Records how the run ended and what the session has cost, and waits until the disk has it.
pub(crate) async fn record(
    journal: &Journal,
    run: &Run,
    result: &RunResult,
) -> Result<(), JournalError> {
    let data = serde_json::json!({
        "outcome": run.outcome,
        "numTurns": run.turns,
        "durationMs": result.duration_ms,
        "totalCostUSD": result.total_cost_usd,
        "modelUsage": result.model_usage,
        "errors": run.errors,
    });
    journal.note("outcome", &data)?;
    journal.sync().await
}

/// The text of the result: the answer, or why there is none.
fn text(run: &Run) -> String {
    if run.outcome.is_success() {
        return match &run.structured {
            Some(output) if run.text.trim().is_empty() => output.to_string(),
            _ => run.text.clone(),
        };
    }
    if !run.errors.is_empty() {
        return run.errors.join("\n");
    }
    match run.outcome {
        Outcome::Empty => "The model ended its turn without an answer.".to_owned(),
        Outcome::MaxTurns => {
            format!("Stopped after {} model requests, the most allowed.", run.turns)
        }
        Outcome::MaxTokens if run.text.is_empty() => {
            "The answer was cut off before it began.".to_owned()
        }
        Outcome::Refusal if run.text.is_empty() => "The model declined to answer.".to_owned(),
        Outcome::SchemaMismatch => {
            "The model did not hand over output of the required shape.".to_owned()
        }
        Outcome::Deferred => "A hook put a call off: resume the session to continue it.".to_owned(),
        Outcome::DeferredUnavailable => {
            "The call that was put off has no tool any more.".to_owned()
        }
        Outcome::HookStopped if run.text.is_empty() => "A hook ended the run.".to_owned(),
        Outcome::Cancelled if run.text.is_empty() => "Interrupted.".to_owned(),
        _ => run.text.clone(),
    }
}

/// The outcome in the words of the headless protocol: subtype and terminal reason.
fn words(run: &Run) -> (&'static str, &'static str) {
    match run.outcome {
        Outcome::Completed => (SUCCESS, "completed"),
        Outcome::MaxTurns => ("error_max_turns", "max_turns"),
        Outcome::Budget => ("error_max_budget_usd", "budget_exhausted"),
        Outcome::SchemaMismatch => {
            ("error_max_structured_output_retries", "structured_output_retry_exhausted")
        }
        Outcome::ContextOverflow if run.compactions.has_given_up() => {
            ("error_during_execution", "rapid_refill_breaker")
        }
        Outcome::ContextOverflow if run.compactions.are_blocked() => {
            ("error_during_execution", "blocking_limit")
        }
        Outcome::ContextOverflow => ("error_during_execution", "prompt_too_long"),
        Outcome::ApiError => ("error_during_execution", "api_error"),
        Outcome::GoalMissed => ("error_during_execution", "stop_hook_prevented"),
        // `Stalled`, `Denied` and `InterruptedRun` are ends of agents that another one started.
        Outcome::Empty
        | Outcome::MaxTokens
        | Outcome::Refusal
        | Outcome::Stalled
        | Outcome::Denied
        | Outcome::Interrupted
        | Outcome::Fault => ("error_during_execution", "model_error"),
        // Hosts know few reasons; `outcome` is exact.
        Outcome::JournalFailed | Outcome::CommandFailed | Outcome::CompactionFailed => {
            ("error_during_execution", "turn_setup_failed")
        }
        Outcome::HookStopped => ("error_during_execution", "hook_stopped"),
        // Nothing failed: the decision comes later.
        Outcome::Deferred => (SUCCESS, "tool_deferred"),
        Outcome::DeferredUnavailable => ("error_during_execution", "tool_deferred_unavailable"),
        Outcome::Cancelled if run.cancelled_in_tools => ("error_during_execution", "aborted_tools"),
        Outcome::Cancelled => ("error_during_execution", "aborted_streaming"),
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
