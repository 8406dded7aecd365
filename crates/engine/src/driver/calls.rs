//! The calls of one answer: read-only ones side by side, the others one after another, in order.

use std::path::Path;

use centurion_config::memory;
use centurion_model::Answer;
use centurion_protocol::sdk::{EventBody, PermissionDenial, PermissionDenied, System};
use centurion_protocol::{Block, Outcome, RecordId, ToolUse};
use centurion_tools::PreparedCall;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::{Driver, Run};
use crate::dispatch::Dispatched;
use crate::journal::JournalError;
use crate::prompt::instructions;
use crate::structured::StructuredOutput;

/// What the model reads after a person stopped its tools.
const INTERRUPTED_IN_TOOLS: &str = "[Request interrupted by user for tool use]";

/// A call with its input read, or with the result it has already.
type Planned<'a> = (&'a ToolUse, Result<Box<dyn PreparedCall>, Box<Dispatched>>);

impl Driver {
    /// Runs all calls of an answer and puts their results before the model, with whatever the queue holds.
    /// `Some` is how the run ends here.
    pub(super) async fn run_calls(
        &mut self,
        run: &mut Run,
        source: Option<RecordId>,
        answer: &Answer,
        calls: Vec<ToolUse>,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, JournalError> {
        // A person who says no and stop means all of these calls.
        let stop = cancel.child_token();
        let mut planned: Vec<Planned<'_>> =
            calls.iter().map(|call| (call, self.plan(answer, call))).collect();
        let mut results: Vec<Option<Block>> = vec![None; calls.len()];
        let mut reminders = Vec::new();
        let mut next = 0;
        while !planned.is_empty() {
            let group = planned.split_off(group_length(&planned));
            let group = std::mem::replace(&mut planned, group);
            let length = group.len();
            let mut ended = Vec::with_capacity(length);
            self.run_group(run, source, group, &stop, &mut ended).await?;
            for (n, dispatched) in ended {
                if let Some(path) = &dispatched.read {
                    reminders.extend(self.instructions_for(path));
                }
                results[next + n] = Some(Block::ToolResult(dispatched.result));
            }
            next += length;
        }
        let mut blocks: Vec<Block> = results.into_iter().flatten().collect();
        let handed_over = self.structured.as_ref().is_some_and(StructuredOutput::is_there);
        let outcome = if stop.is_cancelled() {
            run.cancelled_in_tools = true;
            reminders.push(INTERRUPTED_IN_TOOLS.to_owned());
            Some(Outcome::Cancelled)
        } else {
            handed_over.then_some(Outcome::Completed)
        };
        for reminder in reminders {
            self.record_attachment("instructions", &reminder)?;
            blocks.push(Block::Text(reminder));
        }
        let due = if outcome.is_none() { self.shared.queue.pending(None) } else { Vec::new() };
        self.deliver(blocks, &due)?;
        Ok(outcome)
    }

    /// Instructions that begin to apply now that a file has been read.
    fn instructions_for(&mut self, path: &Path) -> Option<String> {
        let applied = self.memory.as_mut()?.rules_for(path);
        for problem in &applied.problems {
            tracing::warn!(%problem, "an instruction file has a problem");
        }
        Some(instructions(&memory::render(&applied.files)?))
    }

    fn plan(
        &self,
        answer: &Answer,
        call: &ToolUse,
    ) -> Result<Box<dyn PreparedCall>, Box<Dispatched>> {
        match answer.malformed_calls.iter().find(|(id, _)| *id == call.id) {
            Some((id, text)) => Err(Box::new(Dispatched::malformed(id, text))),
            None => self.dispatch.prepare(call),
        }
    }

    /// Runs calls side by side and records each result when it is there.
    async fn run_group(
        &self,
        run: &mut Run,
        source: Option<RecordId>,
        group: Vec<Planned<'_>>,
        cancel: &CancellationToken,
        ended: &mut Vec<(usize, Dispatched)>,
    ) -> Result<(), JournalError> {
        let mut waiting = group.into_iter().enumerate();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < self.settings.concurrent_calls.max(1)
                && let Some((n, (call, prepared))) = waiting.next()
            {
                running.push(async move {
                    let dispatched = match prepared {
                        Err(result) => *result,
                        Ok(_) if cancel.is_cancelled() => Dispatched::not_begun(&call.id),
                        Ok(prepared) => self.dispatch.run(call, prepared, cancel).await,
                    };
                    (n, call, dispatched)
                });
            }
            let Some((n, call, dispatched)) = running.next().await else { return Ok(()) };
            if dispatched.interrupt {
                cancel.cancel();
            }
            if let Some(reason) = &dispatched.denied {
                self.record_denial(run, call, reason)?;
            }
            let block = Block::ToolResult(dispatched.result.clone());
            self.record_result(&block, source, &dispatched.data)?;
            ended.push((n, dispatched));
        }
    }

    fn record_denial(
        &self,
        run: &mut Run,
        call: &ToolUse,
        reason: &str,
    ) -> Result<(), JournalError> {
        let data =
            serde_json::json!({"tool_use_id": call.id, "tool_name": call.name, "reason": reason});
        self.journal.note("permission_denied", &data)?;
        self.shared.show(EventBody::System(System::PermissionDenied(PermissionDenied {
            tool_name: call.name.clone(),
            tool_use_id: call.id.clone(),
            decision_reason: reason.to_owned(),
            message: format!("{} was not allowed: {reason}", call.name),
        })));
        run.denials.push(PermissionDenial {
            tool_name: call.name.clone(),
            tool_use_id: call.id.clone(),
            tool_input: call.input.clone(),
        });
        Ok(())
    }
}

/// How many of the calls go next: all read-only ones up to the first that is not, or that one alone.
fn group_length(planned: &[Planned<'_>]) -> usize {
    let changes = |(_, prepared): &Planned<'_>| {
        prepared.as_ref().is_ok_and(|prepared| !prepared.is_read_only())
    };
    planned.iter().position(changes).unwrap_or(planned.len()).max(1)
}
