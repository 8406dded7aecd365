//! The calls of one answer: read-only ones side by side, the others one after another, in order.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use centurion_config::memory::{self, MemoryTracker};
use centurion_hooks::Event;
use centurion_hooks::events::{BatchCall, PostToolBatch};
use centurion_permissions::canonical_tool_name;
use centurion_protocol::sdk::{EventBody, PermissionDenial, PermissionDenied, System};
use centurion_protocol::{
    Block, Outcome, RecordId, StopReason, ToolResult, ToolUse, ToolUseId, Usage,
};
use centurion_tools::PreparedCall;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::admit::Loads;
use super::{Driver, Run};
use crate::agent::builder::AGENT_TOOL;
use crate::agent::context_file::ContextFile;
use crate::agent::fork_point::{CachedPrefix, ForkPoint, StartPoint};
use crate::agent::hooks::reminder;
use crate::agent::member_frames::CallDenied;
use crate::agent::task::Denial;
use crate::definition::prompt::instructions;
use crate::toolset::structured::StructuredOutput;
use crate::turn::dispatch::{CallGrouping, CallResult, HookOutput, text_of};
use centurion_journal::JournalError;
use centurion_journal::transcript::DEFERRED;

/// The text for a model after a person stopped its tools.
const INTERRUPTED_IN_TOOLS: &str = "[Request interrupted by user for tool use]";

/// A call with its input read, or with the result it has already.
type PlannedCall<'a> = (&'a ToolUse, Result<Box<dyn PreparedCall>, Box<CallResult>>);

impl Driver {
    /// Runs all calls of an answer and puts their results before the model, with whatever the queue holds.
    /// `Some` is how the run ends here.
    pub(super) async fn run_calls(
        &mut self,
        run: &mut Run,
        source: Option<RecordId>,
        malformed: &[(ToolUseId, String)],
        mut calls: Vec<ToolUse>,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, JournalError> {
        self.shared.delegation.aliases.resolve(&mut calls);
        self.run_resolved(run, source, malformed, calls, cancel).await
    }

    /// Runs calls that name the tools that they mean.
    pub(super) async fn run_resolved(
        &mut self,
        run: &mut Run,
        source: Option<RecordId>,
        malformed: &[(ToolUseId, String)],
        calls: Vec<ToolUse>,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, JournalError> {
        let point = self.fork_point(run, source, &calls);
        self.dispatch.agent.set_fork_point(point);
        let outcome = self.run_all(run, source, malformed, calls, cancel).await;
        self.dispatch.agent.set_fork_point(None);
        outcome
    }

    /// The point that agents started by these calls continue from.
    fn fork_point(
        &self,
        run: &Run,
        source: Option<RecordId>,
        calls: &[ToolUse],
    ) -> Option<Arc<ForkPoint>> {
        let starts_agent = |call: &ToolUse| canonical_tool_name(&call.name) == AGENT_TOOL;
        calls.iter().any(starts_agent).then(|| Arc::new(self.point(run, source)))
    }

    /// The conversation as it is now, as a fork begins with it.
    pub(super) fn point(&self, run: &Run, source: Option<RecordId>) -> ForkPoint {
        self.point_after(source, &run.used.last.counts)
    }

    /// The same after an answer with this usage.
    fn point_after(&self, source: Option<RecordId>, used: &Usage) -> ForkPoint {
        ForkPoint {
            prefix: self.prefix(),
            settings: self.settings.clone(),
            tools: self.dispatch.toolbox.all_names().map(str::to_owned).collect(),
            announced: self.known_servers.announced.clone(),
            counted: self.counted,
            record: source.or_else(|| self.journal.last()),
            journal: Some(Arc::clone(&self.journal)),
            cached: CachedPrefix::of(used),
            used: Some(*used).filter(|used| used.total() > 0),
            digests: OnceLock::new(),
        }
    }

    /// Keeps what the session's first request will hold, for hosts that ask before it.
    pub(crate) fn keep_start(&self) {
        self.keep_context_files();
        let point = self.point_after(None, &Usage::default());
        let view = self.dispatch.toolbox.view().clone();
        self.shared.set_start(StartPoint { point, view });
    }

    /// Keeps which instruction files are in the window.
    pub(crate) fn keep_context_files(&self) {
        let files = self.memory.iter().flat_map(MemoryTracker::files);
        self.shared.set_context_files(files.map(ContextFile::from).collect());
    }

    /// Keeps the main agent's conversation, for questions beside it. It has no open calls now.
    pub(super) fn keep_point(&self, run: &Run) {
        if self.identity().is_main() {
            self.shared.set_main_point(self.point(run, None));
        }
    }

    /// The same at the end of a run, however that ended.
    pub(crate) fn keep_end(&self, run: &Run) {
        if self.conversation.open_calls().is_empty() {
            self.keep_point(run);
        }
    }

    async fn run_all(
        &mut self,
        run: &mut Run,
        source: Option<RecordId>,
        malformed: &[(ToolUseId, String)],
        calls: Vec<ToolUse>,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, JournalError> {
        self.dispatch.agent.note_settings(&self.settings);
        self.share_room(&calls);
        // A person who says no and stop means all of these calls.
        let stop = cancel.child_token();
        let mut planned: Vec<PlannedCall<'_>> =
            calls.iter().map(|call| (call, self.plan(malformed, call))).collect();
        let mut results: Vec<Option<ToolResult>> = vec![None; calls.len()];
        let mut reminders = Vec::new();
        let mut ends = None;
        let company = if calls.len() == 1 { CallGrouping::Alone } else { CallGrouping::WithOthers };
        let mut next = 0;
        while !planned.is_empty() {
            let group = planned.split_off(group_length(&planned));
            let group = std::mem::replace(&mut planned, group);
            let length = group.len();
            let mut ended = Vec::with_capacity(length);
            self.run_group(run, source, group, company, &stop, &mut ended).await?;
            for (n, dispatched) in ended {
                if let Some(path) = &dispatched.read {
                    reminders.extend(self.instructions_for(path).await);
                }
                if dispatched.is_deferred {
                    return self.put_off(run, &calls);
                }
                reminders.extend(dispatched.aside.context.iter().map(|text| reminder(text)));
                ends = ends.or(dispatched.aside.stop);
                results[next + n] = Some(dispatched.result);
            }
            next += length;
        }
        let results: Vec<ToolResult> = results.into_iter().flatten().collect();
        if ends.is_none() && !stop.is_cancelled() {
            ends = self.tell_batch(&calls, &results, &mut reminders, cancel).await;
        }
        if ends.is_none() && !stop.is_cancelled() {
            self.begin_call_summary(&calls, &results);
        }
        let mut blocks: Vec<Block> = results.into_iter().map(Block::ToolResult).collect();
        let handed_over = self.structured.as_ref().is_some_and(StructuredOutput::is_there);
        let outcome = if let Some(reason) = ends {
            run.errors.push(reason);
            Some(Outcome::HookStopped)
        } else if stop.is_cancelled() {
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
        if outcome.is_none() {
            self.wait_for_foreground(cancel).await;
        }
        let mut due = match outcome {
            None => self.shared.queue.pending(self.identity().id.as_ref()),
            Some(_) => Vec::new(),
        };
        due.retain(|item| !item.waits_for_turn());
        // Nothing that waits may keep the results from being told.
        let due = self.admit(run, self.before_command(&due), cancel).await?.unwrap_or_default();
        self.deliver(blocks, &due)?;
        Ok(outcome)
    }

    /// Ends the run before its only call, which waits until the session is resumed.
    fn put_off(
        &mut self,
        run: &mut Run,
        calls: &[ToolUse],
    ) -> Result<Option<Outcome>, JournalError> {
        if let [call] = calls {
            let data = json!({"tool_use_id": call.id, "name": call.name, "input": call.input});
            self.journal.note(DEFERRED, &data)?;
            run.stop_reason = Some(StopReason::Other(DEFERRED.to_owned()));
            run.deferred = Some(call.clone());
            self.deferred = Some(call.clone());
        }
        Ok(Some(Outcome::Deferred))
    }

    /// Lets hooks see all calls of an answer together; why the run ends, if they end it.
    async fn tell_batch(
        &self,
        calls: &[ToolUse],
        results: &[ToolResult],
        reminders: &mut Vec<String>,
        cancel: &CancellationToken,
    ) -> Option<String> {
        if !self.dispatch.agent.has_hooks(Event::PostToolBatch) {
            return None;
        }
        let texts: Vec<String> = results.iter().map(text_of).collect();
        let calls: Vec<BatchCall<'_>> = calls
            .iter()
            .zip(&texts)
            .map(|(call, text)| BatchCall {
                tool_name: &call.name,
                tool_input: &call.input,
                tool_use_id: call.id.as_str(),
                tool_response: text,
            })
            .collect();
        let fired = self.dispatch.agent.fire(&PostToolBatch { tool_calls: &calls }, cancel).await;
        let mut aside = HookOutput::default();
        aside.take(fired.context_for_model(), &fired.effects);
        reminders.extend(aside.context.iter().map(|text| reminder(text)));
        aside.stop.or(fired.verdict.0)
    }

    /// Instructions that begin to apply now that a file has been read.
    async fn instructions_for(&mut self, path: &Path) -> Option<String> {
        Some(instructions(&self.newly_applied(path).await?))
    }

    /// The same as it stands in the files.
    pub(crate) async fn newly_applied(&mut self, path: &Path) -> Option<String> {
        let applied = self.memory.as_mut()?.rules_for(path);
        self.tell_instructions(&applied.files, Loads::ForFile(path)).await;
        for problem in &applied.problems {
            self.dispatch.agent.inform("warning", problem.to_string());
        }
        memory::render(&applied.files)
    }

    fn plan(
        &self,
        malformed: &[(ToolUseId, String)],
        call: &ToolUse,
    ) -> Result<Box<dyn PreparedCall>, Box<CallResult>> {
        match malformed.iter().find(|(id, _)| *id == call.id) {
            Some((id, text)) => Err(Box::new(CallResult::malformed(id, text))),
            None => self.dispatch.prepare(call),
        }
    }

    /// Runs calls side by side and records each result when it is there.
    async fn run_group(
        &self,
        run: &mut Run,
        source: Option<RecordId>,
        group: Vec<PlannedCall<'_>>,
        company: CallGrouping,
        cancel: &CancellationToken,
        ended: &mut Vec<(usize, CallResult)>,
    ) -> Result<(), JournalError> {
        let group: Vec<(usize, PlannedCall<'_>)> = group.into_iter().enumerate().collect();
        let mut waiting = group.into_iter();
        run.ended_on_denial = false;
        let mut running = FuturesUnordered::new();
        loop {
            while self.may_begin(running.len(), waiting.as_slice().first())
                && let Some((n, (call, prepared))) = waiting.next()
            {
                self.tell_call(call);
                running.push(async move {
                    let dispatched = match prepared {
                        Err(result) => *result,
                        Ok(_) if cancel.is_cancelled() => CallResult::not_begun(&call.id),
                        Ok(prepared) => self.dispatch.run(call, prepared, company, cancel).await,
                    };
                    (n, call, dispatched)
                });
            }
            let Some((n, call, dispatched)) = running.next().await else { return Ok(()) };
            let denied = dispatched.denied.as_ref();
            if denied.is_some_and(|it| it.interrupt) || dispatched.aside.stop.is_some() {
                cancel.cancel();
            }
            if let Some(denied) = denied {
                self.record_denial(run, call, denied)?;
            }
            run.ended_on_denial |= denied.is_some();
            let lines = run.evidence.add(call, &dispatched.data, dispatched.result.is_error);
            self.shared.usage.totals.lock().add_lines(lines);
            self.tell_progress();
            // A call that looked at an agent may have told of its end.
            let news = dispatched.data.get("notification");
            let news = news.and_then(|news| RecordId::deserialize(news).ok());
            if let Some(news) = news {
                self.dispatch.agent.note_denials(self.shared.take_denials(news));
            }
            if !dispatched.is_deferred {
                let block = Block::ToolResult(dispatched.result.clone());
                self.record_result(&block, source, &dispatched.data)?;
            }
            ended.push((n, dispatched));
        }
    }

    /// Tells whether another call may begin beside this many. Agents have a limit of their own.
    fn may_begin(&self, running: usize, next: Option<&(usize, PlannedCall<'_>)>) -> bool {
        let starts_agent =
            next.is_some_and(|(_, (call, _))| canonical_tool_name(&call.name) == "Agent");
        starts_agent || running < self.settings.concurrent_calls.max(1)
    }

    fn record_denial(
        &self,
        run: &mut Run,
        call: &ToolUse,
        denied: &CallDenied,
    ) -> Result<(), JournalError> {
        let reason = &denied.reason;
        let data =
            serde_json::json!({"tool_use_id": call.id, "tool_name": call.name, "reason": reason});
        self.journal.note("permission_denied", &data)?;
        if !denied.is_told {
            self.shared.show(EventBody::System(System::PermissionDenied(PermissionDenied {
                tool_name: call.name.clone(),
                tool_use_id: call.id.clone(),
                agent_id: self.identity().id.clone(),
                decision_reason_type: denied.kind.clone(),
                decision_reason: reason.clone(),
                message: format!("{} was not allowed: {reason}", call.name),
            })));
        }
        run.denial_reasons.push(Denial { tool: call.name.clone(), reason: reason.clone() });
        run.denials.push(PermissionDenial {
            tool_name: call.name.clone(),
            tool_use_id: call.id.clone(),
            tool_input: call.input.clone(),
        });
        Ok(())
    }
}

/// The number of calls that run next: all read-only ones up to the first that is not, or that one alone.
fn group_length(planned: &[PlannedCall<'_>]) -> usize {
    let changes = |(_, prepared): &PlannedCall<'_>| {
        prepared.as_ref().is_ok_and(|prepared| !prepared.is_read_only())
    };
    planned.iter().position(changes).unwrap_or(planned.len()).max(1)
}
