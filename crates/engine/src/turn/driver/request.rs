//! One request: budget and window checked before, the answer folded while it streams, honest ends after.

use std::time::Duration;

use centurion_model::{
    Answer, AnswerBuilder, CutOff, ErrorKind, ModelError, ModelEvent, Patience, Prefix, Request,
    RetryNotice, StreamEvent,
};
use centurion_protocol::sdk::{
    ApiRetry, Assistant, AssistantMessage, EventBody, Stream, System, WaitsFor,
};
use centurion_protocol::{Block, Outcome, ReportedUsage, StopReason, Usage};
use futures_util::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::progress::ThinkingCount;
use super::record::shown_message;
use super::{Driver, INTERRUPTED, ProviderFailure, Run, is_blank, stream_events};
use crate::definition::context_rules::ContextRules;
use crate::money::budget::Amount;
use crate::turn::model_switch::Switch;
use centurion_journal::JournalError;

/// The least tokens of an answer, for the checks of money and window before it.
pub(super) const SMALL_ANSWER: u64 = 1024;

/// A wait for a provider during which an agent gives its slot away.
const LONG_WAIT: Duration = Duration::from_secs(5);

/// The reason why an answer has no end.
pub(super) const CUT_OFF: &str = "cut_off";

/// The most bytes that are kept of an answer above the size limit.
const LARGEST_EXCERPT: usize = 64 * 1024;

impl Driver {
    /// Sends the conversation and waits for the answer. `Err` is how the run ends instead.
    pub(super) async fn request(
        &mut self,
        run: &mut Run,
        cancel: &CancellationToken,
    ) -> Result<Result<Answer, Outcome>, JournalError> {
        loop {
            self.wait_for_reader(cancel).await;
            let info = self.shared.model.info(&self.settings.model);
            let window = self.context_rules().window(&info);
            let estimate = self.estimate();
            if estimate + SMALL_ANSWER.min(window / 10) > window {
                let Some(outcome) = self.make_room(run, cancel).await? else { continue };
                if outcome == Outcome::ContextOverflow {
                    run.compactions.is_blocked = self.context_rules().switched_off_by().is_some();
                    run.errors.push(format!(
                        "the conversation has about {estimate} tokens, more than the {window} of {}",
                        self.settings.model
                    ));
                }
                return Ok(Err(outcome));
            }
            let least = self.least_usage(estimate);
            let amount = Amount { dollars: info.cost(&least), tokens: least.total() };
            let reservation = match self.dispatch.agent.budget.set_aside(amount).await {
                Ok(reservation) => reservation,
                Err(refused) => {
                    run.errors.push(refused.to_string());
                    return Ok(Err(Outcome::Budget));
                }
            };
            // Some providers refuse an answer that could outgrow the window.
            let room = window.saturating_sub(estimate);
            let max_tokens = info.max_output.min(u32::try_from(room).unwrap_or(u32::MAX));
            let started = Instant::now();
            let mut used = ReportedUsage::default();
            let streamed = self.stream(run, max_tokens, &mut used, cancel).await?;
            let took = started.elapsed();
            run.api_time += took;
            self.shared.usage.totals.lock().api_time += took;
            if let StreamEnd::Answer(answer) = &streamed {
                used += &answer.usage;
            }
            // The usage of broken tries and cut-off answers is paid for like the rest.
            if used.counts.total() > 0 {
                let dollars = self.shared.add_usage(&self.settings.model, &used);
                reservation.settle(Amount { dollars, tokens: used.counts.total() });
                run.used.total += &used;
                run.used.dollars += dollars;
            }
            match streamed {
                StreamEnd::Answer(answer) => {
                    self.window.is_refused = false;
                    run.used.last.clone_from(&answer.usage);
                    run.used.first.get_or_insert_with(|| answer.usage.clone());
                    // The answer itself is not in the history yet, and so counts with what comes now.
                    let guess = self.conversation.tokens();
                    self.counted = Some((answer.usage.counts.context(), guess))
                        .filter(|(total, _)| *total > 0);
                    return Ok(Ok(answer));
                }
                StreamEnd::Cancelled(builder) => {
                    self.keep_partial(run, builder.cut_off(), usize::MAX)?;
                    self.add_notice(INTERRUPTED)?;
                    return Ok(Err(Outcome::Cancelled));
                }
                StreamEnd::Failed(error, builder) => {
                    if let Some(outcome) = self.recover(run, &error, builder, cancel).await? {
                        return Ok(Err(outcome));
                    }
                }
            }
        }
    }

    /// Sees to a request that failed. `Some` is how the run ends; without it the request is to be sent again.
    async fn recover(
        &mut self,
        run: &mut Run,
        error: &ModelError,
        builder: AnswerBuilder,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, JournalError> {
        if self.fall_back(error).await? || self.replace_refused(run, error)? {
            return Ok(None);
        }
        if error.kind == ErrorKind::ContextOverflow {
            match self.make_room(run, cancel).await? {
                Some(Outcome::ContextOverflow) => {}
                made => return Ok(made),
            }
        }
        let most = if error.kind == ErrorKind::TooLarge { LARGEST_EXCERPT } else { usize::MAX };
        self.keep_partial(run, builder.cut_off(), most)?;
        self.failed(run, error).map(Some)
    }

    /// Estimates the tokens of the next request: the provider's last count, and
    /// a guess for what came since.
    pub(super) fn estimate(&self) -> u64 {
        // Nothing counted yet: system prompt and tools are part of the guess.
        let (counted, guess) = self.counted.unwrap_or_else(|| (self.fixed_tokens(), 0));
        counted + self.conversation.tokens().saturating_sub(guess) as u64
    }

    /// About how many tokens the system prompt and the tools have.
    pub(super) fn fixed_tokens(&self) -> u64 {
        let fixed = self.system.wire().len() + self.dispatch.toolbox.specs().wire().len();
        fixed as u64 / 4
    }

    pub(super) fn context_rules(&self) -> ContextRules {
        self.shared.delegation.builder.context
    }

    /// The least that a request of this size will consume: what the provider has counted before is likely to
    /// come from its cache.
    fn least_usage(&self, estimate: u64) -> Usage {
        let cached = self.counted.map_or(0, |(counted, _)| counted.min(estimate));
        Usage {
            input_tokens: estimate - cached,
            cache_read_input_tokens: cached,
            output_tokens: SMALL_ANSWER,
            ..Usage::default()
        }
    }

    /// The prefix of the next request.
    pub(super) fn prefix(&self) -> Prefix {
        Prefix {
            system: self.system.clone(),
            tools: self.dispatch.toolbox.specs().clone(),
            conversation: self.conversation.clone(),
        }
    }

    fn next_request(&self, max_tokens: u32) -> Request {
        Request {
            model: self.settings.model.clone(),
            prefix: self.prefix(),
            max_tokens,
            thinking: self.settings.thinking,
            effort: self.settings.effort,
            session: self.shared.id(),
            agent: self.identity().provider_id(),
            parent_agent: self.identity().parent.clone(),
        }
    }

    async fn stream(
        &mut self,
        run: &mut Run,
        max_tokens: u32,
        used: &mut ReportedUsage,
        cancel: &CancellationToken,
    ) -> Result<StreamEnd, JournalError> {
        let request = self.next_request(max_tokens);
        let is_last = self.settings.fallback_models.is_empty();
        let patience = if is_last { Patience::Full } else { Patience::Brief };
        let task = self.task().cloned();
        let waits = || task.as_ref().map(|task| task.stall.pause());
        // While the provider wants it to wait, its silence is no stall.
        let mut held = None;
        let mut events = self.shared.model.stream(request, patience);
        let mut builder = AnswerBuilder::default();
        let mut thinking = ThinkingCount::default();
        self.early.begin_try();
        self.tell_request(run);
        loop {
            let event = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    *used += builder.usage();
                    return Ok(StreamEnd::Cancelled(builder));
                }
                event = events.next() => event,
            };
            match event {
                Some(Ok(ModelEvent::Held)) => {
                    held = held.take().or_else(waits);
                    self.wait_out(Duration::ZERO, cancel).await;
                }
                Some(Ok(ModelEvent::Stream(event))) => {
                    drop(held.take());
                    if let Some(task) = &task {
                        task.stall.note_activity();
                    }
                    if matches!(event, StreamEvent::Start { .. }) {
                        self.tell_limit();
                    }
                    self.tell_thinking(&mut thinking, &event);
                    self.show_piece(run, &event);
                    builder.push(&event);
                    if matches!(event, StreamEvent::BlockStop { .. }) {
                        self.show_ended(run, &mut builder, cancel).await;
                    }
                    if self.settings.partial_messages {
                        self.wait_for_reader(cancel).await;
                    }
                }
                Some(Ok(ModelEvent::Retry(notice))) => {
                    held = held.take().or_else(waits);
                    // The partial answer is forgotten: the next try tells it from the start.
                    *used += std::mem::take(&mut builder).usage();
                    self.await_retry(&notice, cancel).await?;
                }
                Some(Err(error)) => {
                    self.tell_limit();
                    *used += builder.usage();
                    return Ok(StreamEnd::Failed(error, builder));
                }
                None => {
                    let usage = builder.usage().clone();
                    return Ok(match builder.finish() {
                        Ok(answer) => StreamEnd::Answer(answer),
                        Err(error) => {
                            *used += &usage;
                            StreamEnd::Failed(error, AnswerBuilder::default())
                        }
                    });
                }
            }
        }
    }

    /// Waits for the next try of a request.
    async fn await_retry(
        &mut self,
        notice: &RetryNotice,
        cancel: &CancellationToken,
    ) -> Result<(), JournalError> {
        self.tell_limit();
        self.early.begin_try();
        self.tell_retry(notice)?;
        self.wait_out(notice.delay, cancel).await;
        Ok(())
    }

    /// Tells of a fork whose provider did not read from its cache what it should have there.
    pub(super) fn check_cache(&mut self, usage: &Usage) -> Result<(), JournalError> {
        let Some(cached) = self.cached.take() else { return Ok(()) };
        let tokens = cached.tokens;
        let read = usage.cache_read_input_tokens;
        // Providers cache by blocks of some hundred tokens.
        if read + tokens / 10 >= tokens {
            return Ok(());
        }
        let reason = if cached.is_fresh() {
            "the provider has not kept it, or not for this request".to_owned()
        } else {
            let waited = cached.at.elapsed().as_secs();
            format!("it began {waited} s after its parent's request")
        };
        let data = serde_json::json!({"expected": tokens, "read": read, "reason": reason});
        self.journal.note("cache_miss", &data)?;
        let text = format!(
            "the provider read {read} of about {tokens} tokens from its cache that this fork shares: {reason}"
        );
        self.dispatch.agent.inform("warning", text);
        Ok(())
    }

    /// Records and shows that a request is sent again.
    fn tell_retry(&self, notice: &RetryNotice) -> Result<(), JournalError> {
        let event = ApiRetry {
            attempt: notice.attempt,
            max_retries: notice.max_retries,
            retry_delay_ms: u64::try_from(notice.delay.as_millis()).unwrap_or(u64::MAX),
            error_status: notice.status,
            error: notice.error.sdk_name(),
            agent_id: self.identity().id.clone(),
        };
        let data = serde_json::to_value(&event).unwrap_or_default();
        self.journal.note("api_retry", &data)?;
        self.shared.show(EventBody::System(System::ApiRetry(event)));
        Ok(())
    }

    /// Waits for the delay, and longer while the provider asks all agents for patience. During a long wait the agent gives
    /// its slot to another, whose provider may have time, and takes it again before it sends anything, so that no more
    /// agents compute at once than may. During a short one it keeps the slot: the agent that took it could keep it for
    /// long.
    async fn wait_out(&self, delay: Duration, cancel: &CancellationToken) {
        let (model, name) = (&self.shared.model, &self.settings.model);
        if delay.max(model.held_back(name)) < LONG_WAIT {
            return;
        }
        let waiting = async {
            tokio::time::sleep(delay).await;
            model.passable(name).await;
        };
        let waiting = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = waiting => {}
            }
        };
        self.dispatch.agent.wait(WaitsFor::Provider, waiting).await;
    }

    /// Waits while far too much is kept for a reader that does not read.
    async fn wait_for_reader(&self, cancel: &CancellationToken) {
        let Some(room) = self.shared.view.wait_for_room() else { return };
        let waiting = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = room => {}
            }
        };
        // The reader would read of it when it is over.
        self.dispatch.agent.wait_untold(waiting).await;
    }

    fn show_piece(&mut self, run: &mut Run, event: &StreamEvent) {
        let since = run.started.elapsed();
        run.times.event.get_or_insert(since);
        if matches!(event, StreamEvent::Delta { .. }) {
            run.times.token.get_or_insert(since);
            if self.settings.partial_messages {
                run.times.shown.get_or_insert(since);
            }
        }
        if self.settings.partial_messages {
            let ends = matches!(event, StreamEvent::Finish { .. })
                .then(stream_events::message_stop)
                .flatten();
            for event in stream_events::to_json(event).into_iter().chain(ends) {
                let prompts = self.early.take_prompts_for_piece();
                self.shared.show(EventBody::StreamEvent(Stream {
                    event,
                    parent_tool_use_id: self.identity().call.clone(),
                    agent_id: self.identity().id.clone(),
                    user_message_uuid: prompts.last().copied(),
                    user_message_uuids: prompts,
                }));
            }
        }
    }

    /// Goes over to the next model when the one in use is overloaded and the user named another.
    async fn fall_back(&mut self, error: &ModelError) -> Result<bool, JournalError> {
        let is_overloaded = matches!(
            error.kind,
            ErrorKind::Overloaded
                | ErrorKind::RateLimit
                | ErrorKind::Server
                | ErrorKind::ModelNotFound
        );
        if !is_overloaded || self.settings.fallback_models.is_empty() {
            return Ok(false);
        }
        let next = self.settings.fallback_models.remove(0);
        let content = format!("{} failed ({error}); continuing with {next}", self.settings.model);
        self.journal.note("model_fallback", &serde_json::json!({"to": next, "reason": content}))?;
        self.dispatch.agent.inform("warning", content);
        let from = std::mem::replace(&mut self.settings.model, next);
        if self.identity().is_main() {
            let (to, requested) = (&self.settings.model, Some(self.settings.model.as_str()));
            let switch = Switch { from: &from, to, requested, source: "auto" };
            switch.tell(&self.dispatch.agent, &self.shared).await;
        }
        Ok(true)
    }

    /// Keeps the texts of an answer that was cut off, so that nothing said is lost: as much as is said of a very long
    /// one.
    fn keep_partial(
        &mut self,
        run: &mut Run,
        cut_off: CutOff,
        most: usize,
    ) -> Result<(), JournalError> {
        let CutOff { ended, mut rest, .. } = cut_off;
        let mut room = most;
        let mut places = Vec::new();
        for (place, block) in ended.iter().enumerate() {
            let Block::Text(text) = block else { continue };
            if !is_blank(block) && text.len() <= room {
                room -= text.len();
                places.push(place);
            }
        }
        rest.truncate(rest.floor_char_boundary(room));
        let has_ended = !ended.is_empty();
        let mut blocks = ended;
        if !rest.trim().is_empty() {
            places.push(blocks.len());
            blocks.push(Block::Text(rest));
        }
        if places.is_empty() {
            return Ok(());
        }
        // Blocks that observers saw keep the id of their answer.
        let unseen = || format!("msg_cut_off_{}", self.shared.world.record_id());
        let answer = Answer {
            id: if has_ended { cut_off.id } else { unseen() },
            model: if has_ended { cut_off.model } else { self.settings.model.clone() },
            request_id: cut_off.request_id.filter(|_| has_ended),
            blocks,
            stop_reason: StopReason::Other(CUT_OFF.to_owned()),
            usage: ReportedUsage::default(),
            malformed_calls: Vec::new(),
        };
        run.text = places.iter().filter_map(|at| text_of(&answer.blocks[*at])).collect();
        run.turns += 1;
        self.record_answer(&answer, &places)?;
        Ok(())
    }

    /// Records and shows a failure that no retry cured.
    pub(super) fn failed(
        &mut self,
        run: &mut Run,
        error: &ModelError,
    ) -> Result<Outcome, JournalError> {
        let name = error.kind.sdk_name();
        run.failure = Some(ProviderFailure { status: error.status, name });
        let text = format!("API Error: {error}");
        let data = serde_json::json!({"status": error.status, "error": error.kind.sdk_name(), "message": text});
        let record = self.journal.note("api_error", &data)?;
        let id = self.shared.world.record_id().to_string();
        let message = AssistantMessage {
            stop_reason: Some(StopReason::StopSequence),
            ..shown_message(
                (&id, "<synthetic>"),
                Block::Text(text.clone()),
                ReportedUsage::default(),
            )
        };
        let shown = Assistant { error: Some(error.kind.sdk_name()), ..self.shown(message) };
        self.shared.show_as(record, EventBody::Assistant(Box::new(shown)));
        run.errors.push(text);
        Ok(match error.kind {
            ErrorKind::ContextOverflow => Outcome::ContextOverflow,
            _ => Outcome::ApiError,
        })
    }
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(text),
        _ => None,
    }
}

/// The end of a stream.
enum StreamEnd {
    Answer(Answer),
    Failed(ModelError, AnswerBuilder),
    Cancelled(AnswerBuilder),
}
