//! Compaction: a conversation continues with a summary in the place of its earlier part.
//!
//! It happens before the conversation outgrows its window, when a person asks for it (`/compact`), and when a provider
//! refuses a request as too long. What stays word for word: the newest round (the last answer and all behind it), the
//! prompt that is being worked on, an agent's task, what it began with. What is put back from state, not from prose:
//! instruction files as they are on disk, the list of things to do, agents and shells at work, files that were read, the
//! mode. A summary counts only if it is whole and makes the conversation smaller. Where no model can help and the
//! conversation must become shorter, a fixed rule writes the summary: the fallback without a model.
//!
//! The transcript only grows: one write adds the boundary, what follows it, and the names of the records that stay.

mod rule;
mod shorter;
mod state;
mod summary;

use std::sync::Arc;
use std::time::Duration;

use centurion_hooks::events::{CompactTrigger, PostCompact, PreCompact};
use centurion_journal::{Compacted, JournalError};
use centurion_model::{ErrorKind, ModelError};
use centurion_protocol::sdk::{CompactBoundary, EventBody, Status, System};
use centurion_protocol::transcript::BoundaryData;
use centurion_protocol::{Block, Message, Outcome, Role};
use serde_json::json;
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::shorter::{CutTexts, Newest, Shorter};
use self::summary::Summary;
use super::admit::COMPACT;
use super::request::SMALL_ANSWER;
use super::{Driver, INTERRUPTED, Run};
use crate::agent::shared::Shared;
use crate::message::queue::Item;
use crate::toolset::servers::Announcements;
use crate::turn::commands::command_of;
use crate::turn::internal_fork::InternalForkError;
use crate::turn::refusal::is_about_conversation;

/// The most times in a row that a conversation may fill up again at once, or fail to become shorter.
const MOST_IN_A_ROW: u32 = 3;
/// The end of a run whose conversation does not fit and may not be made shorter, in the words that hosts know.
const TOO_LONG: &str = "Prompt is too long";
/// The least turns that a useful compaction lasts.
const LEAST_TURNS: u32 = 3;

/// The reason why a conversation is to become shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It comes near the window.
    Automatic,
    /// It does not fit any more.
    Overflow,
    /// A person asked for it, with what the summary should heed.
    Asked(String),
}

impl Cause {
    fn trigger(&self) -> CompactTrigger {
        match self {
            Self::Automatic | Self::Overflow => CompactTrigger::Auto,
            Self::Asked(_) => CompactTrigger::Manual,
        }
    }

    fn instructions(&self) -> &str {
        match self {
            Self::Automatic | Self::Overflow => "",
            Self::Asked(text) => text,
        }
    }
}

/// The reason why a conversation is as long as before.
#[derive(Debug, Error)]
pub(crate) enum CompactError {
    #[error("compaction isn't available in this environment (DISABLE_COMPACT)")]
    Off,
    #[error("there is nothing to compact yet")]
    Nothing,
    #[error("a hook keeps the conversation as it is: {0}")]
    Blocked(String),
    #[error("a hook ended the run: {0}")]
    Stopped(String),
    #[error("the model gave no summary: {0}")]
    NoSummary(#[from] InternalForkError),
    #[error("the model's summary has about {size} tokens, more than the {most} allowed")]
    TooLong { size: u64, most: u64 },
    #[error("the conversation would not be smaller: about {before} tokens before, {after} after")]
    NotSmaller { before: usize, after: usize },
    #[error("it was interrupted")]
    Cancelled,
}

impl CompactError {
    /// Tells whether the conversation is too long even to be summarised.
    fn is_overflow(&self) -> bool {
        use InternalForkError::Model;
        let too_long = |error: &ModelError| error.kind == ErrorKind::ContextOverflow;
        matches!(self, Self::NoSummary(Model(error)) if too_long(error))
    }

    /// Tells whether the provider refuses to read the conversation.
    fn is_refusal(&self) -> bool {
        use InternalForkError::Model;
        let refused = |error: &ModelError| {
            error.kind == ErrorKind::InvalidRequest && is_about_conversation(&error.message)
        };
        matches!(self, Self::NoSummary(Model(error)) if refused(error))
    }

    /// Tells whether another try, at another time, would be as futile: the model was there and gave nothing of use. Where it
    /// could not be reached or paid, the conversation is better left as it is.
    fn is_futile(&self) -> bool {
        use InternalForkError::{Called, CutOff, Empty, Endless, Model};
        match self {
            Self::Nothing
            | Self::TooLong { .. }
            | Self::NotSmaller { .. }
            | Self::NoSummary(Called | CutOff | Empty | Endless(_)) => true,
            Self::NoSummary(Model(error)) => {
                matches!(error.kind, ErrorKind::ContextOverflow | ErrorKind::InvalidRequest)
            }
            _ => false,
        }
    }
}

/// The results of the compactions of one run.
#[derive(Debug, Default)]
pub(crate) struct CompactionCount {
    /// After how many turns the last one was.
    last: Option<u32>,
    /// The number of useless compactions in a row.
    useless: u32,
    /// The number of failed compactions in a row.
    failed: u32,
    /// A request was not sent because it would not fit, and the user has switched compaction off.
    pub(super) is_blocked: bool,
}

impl CompactionCount {
    /// Tells whether so many in a row were of no use that the run ended for it.
    pub(crate) fn has_given_up(&self) -> bool {
        self.useless >= MOST_IN_A_ROW
    }

    /// Tells whether the run ended because compaction is off and the next request would not have fitted.
    pub(crate) fn are_blocked(&self) -> bool {
        self.is_blocked
    }
}

impl Driver {
    /// Makes room where the conversation comes near its window. `Some` is how the run ends instead.
    pub(super) async fn keep_room(
        &mut self,
        run: &mut Run,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, JournalError> {
        let info = self.shared.model.info(&self.settings.model);
        let threshold = self.context_rules().threshold(&info);
        if threshold.is_none_or(|most| self.estimate() <= most)
            || run.compactions.failed >= MOST_IN_A_ROW
        {
            return Ok(None);
        }
        if !run.may_compact() {
            return Ok(Some(Outcome::ContextOverflow));
        }
        // Seldom needed, and large: an agent's future has no room for it.
        match Box::pin(self.compact(run, &Cause::Automatic, cancel)).await? {
            Ok(()) | Err(CompactError::Nothing | CompactError::Cancelled) => Ok(None),
            Err(CompactError::Stopped(reason)) => {
                run.errors.push(reason);
                Ok(Some(Outcome::HookStopped))
            }
            Err(error) => {
                run.compactions.failed += 1;
                let message = format!("the conversation was not compacted: {error}");
                self.dispatch.agent.inform("warning", message);
                Ok(None)
            }
        }
    }

    /// Makes a conversation shorter that does not fit any more. `Some` is how the run ends instead.
    pub(super) async fn make_room(
        &mut self,
        run: &mut Run,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, JournalError> {
        if let Some(switch) = self.context_rules().switched_off_by() {
            run.errors.extend([TOO_LONG.to_owned(), switch.to_owned()]);
            return Ok(Some(Outcome::ContextOverflow));
        }
        if !run.may_compact() {
            return Ok(Some(Outcome::ContextOverflow));
        }
        let error = match Box::pin(self.compact(run, &Cause::Overflow, cancel)).await? {
            Ok(()) => return Ok(None),
            Err(error) => error,
        };
        if !matches!(error, CompactError::Cancelled) {
            run.errors.push(error.to_string());
        }
        Ok(Some(match error {
            CompactError::Cancelled => {
                self.add_notice(INTERRUPTED)?;
                Outcome::Cancelled
            }
            CompactError::Stopped(_) => Outcome::HookStopped,
            CompactError::NoSummary(InternalForkError::Budget(_)) => Outcome::Budget,
            CompactError::NoSummary(InternalForkError::Model(error))
                if error.kind != ErrorKind::ContextOverflow =>
            {
                self.failed(run, &error)?
            }
            _ => Outcome::ContextOverflow,
        }))
    }

    /// A run that is nothing but a compaction, which a person asked for by this item.
    pub(super) async fn run_compaction(
        &mut self,
        run: &mut Run,
        item: &Item,
        text: String,
        cancel: &CancellationToken,
    ) -> Result<Outcome, JournalError> {
        // It is for the program, and the model never reads it.
        let note = json!({"command": "compact", "arguments": text, "item": item.id});
        self.journal.note("command", &note)?;
        self.shared.queue.delivered(&[item.id]);
        if !self.unanswered.is_empty() {
            // Calls of a process that died: nothing can be asked behind them before they are answered.
            self.deliver(Vec::new(), &[])?;
        }
        let made = Box::pin(self.compact(run, &Cause::Asked(text), cancel)).await?;
        Ok(match made {
            Ok(()) => Outcome::Completed,
            Err(CompactError::Nothing) => {
                "There is nothing to compact yet.".clone_into(&mut run.text);
                Outcome::Completed
            }
            Err(CompactError::Cancelled) => Outcome::Cancelled,
            Err(CompactError::Stopped(reason)) => {
                run.errors.push(reason);
                Outcome::HookStopped
            }
            Err(error) => {
                run.errors.push(format!("Error during compaction: {error}"));
                Outcome::CompactionFailed
            }
        })
    }

    /// Puts a summary in the place of the earlier part.
    async fn compact(
        &mut self,
        run: &mut Run,
        cause: &Cause,
        cancel: &CancellationToken,
    ) -> Result<Result<(), CompactError>, JournalError> {
        if !self.context_rules().allowed {
            return Ok(Err(CompactError::Off));
        }
        let started = Instant::now();
        // The refused part must go, if a person asks for a compaction.
        let is_refused = self.window.is_refused && matches!(cause, Cause::Asked(_));
        let mut drawn = self.draw(if is_refused { Newest::Goes } else { Newest::Stays });
        let info = self.shared.model.info(&self.settings.model);
        // Over the limit is reason enough, for whatever can be done.
        let must = *cause == Cause::Overflow
            || self.estimate() + SMALL_ANSWER > self.context_rules().window(&info);
        let may_be_refused = is_refused && !self.conversation.is_empty();
        let may_help = must && *cause != Cause::Automatic && !self.is_first_request();
        if !drawn.has_exchange() && !may_be_refused && !may_help {
            return Ok(Err(CompactError::Nothing));
        }
        let instructions = match self.ask_hooks(cause, cancel).await {
            Ok(instructions) => instructions,
            Err(error) => return self.tell_failed(error, cause).map(Err),
        };
        self.show_status(Some("compacting"), None, None);
        let receipt = Arc::default();
        let written = {
            let _waits = self.task().map(|task| task.stall.pause());
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(CompactError::Cancelled),
                written = self.summarise(&drawn, &instructions, &receipt) => written,
            }
        };
        run.used.dollars += *receipt.lock();
        // In a compaction that a person asked for, the prompt may be cut as well: no answer is under way that needs it.
        let cut = match cause {
            Cause::Automatic => CutTexts::None,
            Cause::Overflow => CutTexts::Old,
            Cause::Asked(_) => CutTexts::All,
        };
        let made = written.and_then(|summary| self.shorten(&drawn, summary, cut));
        let (shorter, is_by_rule) = match made {
            Ok(shorter) => (shorter, false),
            // There must be a way on, also where no model can say what was said.
            Err(error) if self.may_go_by_rule(&error, cause, must) => {
                if matches!(cause, Cause::Asked(_)) && error.is_refusal() {
                    drawn = self.draw(Newest::Goes);
                }
                let summary =
                    Summary::by_rule(rule::summary(&drawn, &self.standing, &self.state()));
                match self.shorten(&drawn, summary, cut) {
                    Ok(shorter) => (shorter, true),
                    Err(_) => return self.tell_failed(error, cause).map(Err),
                }
            }
            Err(error) => return self.tell_failed(error, cause).map(Err),
        };
        let summary = shorter.summary.text.clone();
        self.take_over(shorter, cause, is_by_rule, started.elapsed())?;
        run.compactions.last = Some(run.turns);
        run.compactions.failed = 0;
        let stopped = self.tell_compacted(cause, &summary, cancel).await?;
        Ok(stopped.map_or(Ok(()), |reason| Err(CompactError::Stopped(reason))))
    }

    /// Tells whether the conversation holds nothing but the input that is worked on: no rule makes that shorter.
    fn is_first_request(&self) -> bool {
        let is_said = |message: &Message| message.role() == Role::Assistant;
        self.window.dropped_tokens == 0
            && self.standing.turns.len() <= 1
            && !self.conversation.iter().any(is_said)
    }

    /// Tells whether a rule writes what stands for the earlier part, because no model does and there must be a way on.
    fn may_go_by_rule(&self, error: &CompactError, cause: &Cause, must: bool) -> bool {
        let is_asked = matches!(cause, Cause::Asked(_));
        let is_refused = is_asked && (self.window.is_refused || error.is_refusal());
        error.is_futile() && (must || error.is_overflow() || is_refused)
    }

    /// Lets hooks object to a compaction, or say what its summary should heed.
    async fn ask_hooks(
        &self,
        cause: &Cause,
        cancel: &CancellationToken,
    ) -> Result<String, CompactError> {
        let custom_instructions = cause.instructions();
        let event = PreCompact { trigger: cause.trigger(), custom_instructions };
        let fired = self.dispatch.agent.fire(&event, cancel).await;
        if let Some(stop) = fired.effects.stop {
            let reason = stop.reason.unwrap_or_else(|| "it gave no reason".to_owned());
            return Err(CompactError::Stopped(reason));
        }
        if let Some(reason) = fired.verdict.reason() {
            return Err(CompactError::Blocked(reason.to_owned()));
        }
        let said = std::iter::once(custom_instructions.to_owned()).chain(fired.effects.context);
        Ok(said.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n"))
    }

    /// Records the shorter conversation, and continues with it.
    fn take_over(
        &mut self,
        shorter: Shorter,
        cause: &Cause,
        by_rule: bool,
        took: Duration,
    ) -> Result<(), JournalError> {
        let before = self.estimate();
        let fixed = self.fixed_tokens();
        let after = fixed + shorter.conversation.tokens() as u64;
        self.window.dropped_tokens += before.saturating_sub(after);
        let data = BoundaryData {
            trigger: cause.trigger().name().to_owned(),
            by_rule,
            pre_tokens: before,
            post_tokens: after,
            cumulative_dropped_tokens: self.window.dropped_tokens,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            preserved_segment: None,
            preserved_messages: None,
            last_uuid: None,
            todos: serde_json::to_value(&*self.dispatch.agent.workspace.todos.lock()).ok(),
            plan: self.dispatch.agent.workspace.plan.lock().approved.clone(),
        };
        let parent = self.journal.last();
        let compacted = self.journal.compact(shorter.records(data))?;
        shorter.follow(&compacted, &mut self.standing);
        self.conversation = shorter.conversation;
        self.window.is_refused = false;
        self.counted = None;
        self.cached = None;
        self.memory = shorter.memory;
        self.known_servers.announced = shorter.announced;
        self.dispatch.agent.forget_skill_texts();
        self.show_status(None, Some("success"), None);
        let Compacted { boundary, data, lines, .. } = compacted;
        let event = CompactBoundary {
            content: "Conversation compacted",
            compact_metadata: data.into(),
            logical_parent_uuid: parent,
            agent_id: self.identity().id.clone(),
        };
        self.shared.show_as(boundary, EventBody::System(System::CompactBoundary(Box::new(event))));
        if let Some(record) = lines.get(shorter.summary_line) {
            self.show_input(*record, &Block::Text(shorter.introduced), None, true);
        }
        Ok(())
    }

    /// Tells hooks that the conversation begins anew; what they say goes along with the next message. `Some` is why they
    /// end the run.
    async fn tell_compacted(
        &mut self,
        cause: &Cause,
        summary: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, JournalError> {
        let event = PostCompact { trigger: cause.trigger(), compact_summary: summary };
        self.dispatch.agent.fire(&event, cancel).await;
        self.begin(COMPACT, cancel).await;
        // An answer is under way, and reads it at once.
        if self.conversation.last().is_some_and(|last| last.role() == Role::User) {
            self.deliver(Vec::new(), &[])?;
        }
        Ok(self.aside.stop.take())
    }

    /// Records and shows that a compaction failed. `overflow` in the record: the conversation does not fit, so that the run
    /// ends; after another failure of an automatic compaction the run continues.
    fn tell_failed(
        &self,
        error: CompactError,
        cause: &Cause,
    ) -> Result<CompactError, JournalError> {
        let reason = error.to_string();
        let overflow = *cause == Cause::Overflow;
        let note =
            json!({"reason": reason, "trigger": cause.trigger().name(), "overflow": overflow});
        self.journal.note("compact_failed", &note)?;
        self.show_status(None, Some("failed"), Some(reason));
        Ok(error)
    }

    fn show_status(
        &self,
        status: Option<&'static str>,
        compact_result: Option<&'static str>,
        compact_error: Option<String>,
    ) {
        self.shared.show(EventBody::System(System::Status(Status {
            status,
            permission_mode: Some(self.dispatch.agent.permissions.mode().to_string()),
            compact_result,
            compact_error,
            agent_id: self.identity().id.clone(),
        })));
    }

    /// The announcement of servers to an agent that has read none.
    fn announce_anew(&self) -> (Announcements, Option<String>) {
        let mut announced = Announcements::default();
        let agent = &self.dispatch.agent;
        let news = announced.news(&agent.servers, self.dispatch.toolbox.served());
        (announced, news)
    }
}

impl Run {
    /// Tells whether another compaction may be of use. Where the last ones were not, the run ends.
    fn may_compact(&mut self) -> bool {
        let count = &mut self.compactions;
        let is_soon = count.last.is_some_and(|last| self.turns < last + LEAST_TURNS);
        count.useless = if is_soon { count.useless + 1 } else { 0 };
        if !count.has_given_up() {
            return true;
        }
        self.errors.push(format!(
            "the conversation was compacted {MOST_IN_A_ROW} times in a row and was full again within \
             {LEAST_TURNS} turns each time"
        ));
        false
    }
}

/// The instructions of a `/compact` that a person typed; `None` if the item is something else.
pub(super) fn compaction_asked(shared: &Shared, item: &Item) -> Option<String> {
    let typed = command_of(shared, item).filter(|typed| typed.name == "compact")?;
    Some(typed.arguments.to_owned())
}
