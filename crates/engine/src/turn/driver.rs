//! The driver: runs one agent from an input to an outcome.
//!
//! It owns the agent's conversation; no other task touches it. It delivers what the queue holds, sends a request,
//! streams the answer, takes the calls through the dispatch, records every step, and repeats. Its end is an
//! [`Outcome`]: data, never a panic or a false success.

mod admit;
mod call_summary;
mod calls;
mod command_output;
mod compact;
mod context_parts;
mod conversation_state;
mod deliver;
mod early_blocks;
mod fit_results;
mod foreground;
mod goal;
mod progress;
mod record;
mod refused;
mod request;
mod run;
mod skills;
mod stop;
mod stream_events;
mod title;
mod worktree;

use std::sync::Arc;

use centurion_config::memory::MemoryTracker;
use centurion_hooks::events::StopCap;
use centurion_model::{Answer, SystemPrompt};
use centurion_protocol::sdk::ActiveGoal;
use centurion_protocol::{
    Block, Conversation, Message, Outcome, Role, StopReason, ToolUse, ToolUseId,
};
use tokio_util::sync::CancellationToken;

use self::call_summary::PendingSummary;
use self::compact::compaction_asked;
use self::early_blocks::EarlyBlocks;
pub(crate) use self::run::{ProviderFailure, Run};
use crate::agent::fork_point::{CachedPrefix, Inheritance};
use crate::agent::listing::Listing;
use crate::agent::shared::Shared;
use crate::agent::task::Task;
use crate::definition::identity::Identity;
use crate::definition::request_settings::RequestSettings;
use crate::message::queue::Item;
use crate::toolset::servers::KnownServers;
use crate::toolset::structured::{REMINDER, STRUCTURED_OUTPUT, StructuredOutput};
use crate::turn::commands::command_of;
use crate::turn::dispatch::{Dispatch, HookOutput};
use crate::turn::skill::is_for_program;
use centurion_journal::transcript::{Loaded, Standing};
use centurion_journal::{Journal, JournalError};

/// The text for a model after a person stopped it.
const INTERRUPTED: &str = "[Request interrupted by user]";
/// The text for a model whose answer was cut off at the end of the window.
const CUT_OFF: &str =
    "Your last answer was cut off: the window was full. The conversation is shorter now. Continue.";
/// The most reminders to hand the answer over as data.
const SCHEMA_REMINDERS: u32 = 4;

/// One agent at work.
pub(crate) struct Driver {
    pub(crate) shared: Arc<Shared>,
    /// This agent's transcript.
    pub(crate) journal: Arc<Journal>,
    pub(crate) dispatch: Dispatch,
    pub(crate) conversation: Conversation,
    pub(crate) system: SystemPrompt,
    pub(crate) settings: RequestSettings,
    pub(crate) preamble: Preamble,
    /// Records that stay in the conversation through all compactions.
    pub(crate) standing: Standing,
    pub(crate) window: WindowState,
    /// The part of a fork's first request that the provider should read from its cache.
    pub(crate) cached: Option<CachedPrefix>,
    pub(crate) unanswered: UnansweredCalls,
    /// The call that a hook deferred; it runs before anything else.
    pub(crate) deferred: Option<ToolUse>,
    pub(crate) structured: Option<StructuredOutput>,
    /// Instructions that apply once a file in their place is read.
    pub(crate) memory: Option<MemoryTracker>,
    /// The provider's token count of the last request, and our own estimate of the same history.
    pub(crate) counted: Option<(u64, usize)>,
    /// The output of hooks of the session's start and the like, for the next message.
    pub(crate) aside: HookOutput,
    pub(crate) known_servers: KnownServers,
    /// Blocks that observers saw before their answer was whole.
    pub(crate) early: EarlyBlocks,
    pub(crate) stop_rules: StopRules,
    /// The line about the last calls, where a host wants one.
    pub(crate) call_summary: Option<PendingSummary>,
}

/// The state of a conversation at the end of an earlier process, as its transcript has it.
#[derive(Debug, Default)]
pub(crate) struct EarlierState {
    /// The provider's token count of the last request, and our own estimate of the same history.
    pub(crate) counted: Option<(u64, usize)>,
    pub(crate) standing: Standing,
    pub(crate) window: WindowState,
    /// The call that a hook put off.
    pub(crate) deferred: Option<ToolUse>,
    /// Calls whose results the transcript lacks, and the conversation has.
    pub(crate) interrupted: Vec<ToolUseId>,
}

impl EarlierState {
    /// Takes the state out of what was loaded.
    pub(crate) fn take(loaded: &mut Loaded) -> Self {
        let (dropped_tokens, is_refused) = (loaded.dropped_tokens, loaded.is_refused);
        Self {
            counted: loaded.counted,
            standing: std::mem::take(&mut loaded.standing),
            window: WindowState { dropped_tokens, is_refused },
            deferred: loaded.deferred.take(),
            interrupted: std::mem::take(&mut loaded.interrupted),
        }
    }
}

/// Calls of an earlier process whose results were never recorded.
#[derive(Debug, Default)]
pub(crate) struct UnansweredCalls {
    /// Calls that wait for their results in the conversation, too.
    open: Vec<ToolUseId>,
    /// Calls that got `interrupted` results when the conversation was read, because others of the same answer had theirs.
    interrupted: Vec<ToolUseId>,
}

impl UnansweredCalls {
    pub(crate) fn of(conversation: &Conversation, interrupted: Vec<ToolUseId>) -> Self {
        Self { open: conversation.open_calls().to_vec(), interrupted }
    }

    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.interrupted.is_empty()
    }
}

/// The state of a conversation in its window.
#[derive(Debug, Default)]
pub(crate) struct WindowState {
    /// The number of tokens that compactions left out.
    pub(crate) dropped_tokens: u64,
    /// True if the provider refused the last request for a part of it that no rule finds.
    pub(crate) is_refused: bool,
}

/// The rules for the end of an agent's turn.
pub(crate) struct StopRules {
    /// The most times in a row that hooks may keep it from stopping.
    pub(crate) cap: StopCap,
    /// The goal that a person set, which has to be reached before it stops.
    pub(crate) goal: Option<ActiveGoal>,
    /// The reason why the goal was given up, until the run ends.
    pub(crate) given_up: Option<String>,
}

impl StopRules {
    fn new(cap: StopCap) -> Self {
        Self { cap, goal: None, given_up: None }
    }
}

/// The kind of the records that tell an agent of its notes.
pub(super) const NOTES: &str = "notes";

/// Texts before the first input.
#[derive(Default)]
pub(crate) struct Preamble {
    /// The beginning of a fork's first message, the same for every fork from the same point.
    pub(crate) opening: Option<Inheritance>,
    /// True if it is told what the instruction files say.
    pub(crate) instructions: bool,
    /// Other texts.
    pub(crate) context: Vec<String>,
}

/// The step after an answer.
enum Step {
    /// These calls are to be run.
    Calls(Vec<ToolUse>),
    /// The provider paused in the middle of a turn: ask it to continue.
    Continue,
    /// The model has something to say and ended its turn.
    End,
    /// The run is over for another reason.
    Stop(Outcome),
}

impl Driver {
    /// A driver with defaults for all that only some agents have.
    pub(crate) fn new(
        shared: Arc<Shared>,
        journal: impl Into<Arc<Journal>>,
        dispatch: Dispatch,
        conversation: Conversation,
        system: SystemPrompt,
        settings: RequestSettings,
    ) -> Self {
        Self {
            stop_rules: StopRules::new(StopCap::new(&dispatch.agent.workspace.env)),
            unanswered: UnansweredCalls::of(&conversation, Vec::new()),
            shared,
            journal: journal.into(),
            dispatch,
            conversation,
            system,
            settings,
            deferred: None,
            preamble: Preamble::default(),
            standing: Standing::default(),
            window: WindowState::default(),
            cached: None,
            structured: None,
            memory: None,
            counted: None,
            aside: HookOutput::default(),
            known_servers: KnownServers::default(),
            early: EarlyBlocks::default(),
            call_summary: None,
        }
    }

    /// Runs from the given input to an outcome. History is valid whenever this returns.
    pub(crate) async fn run(
        &mut self,
        run: &mut Run,
        items: &[Item],
        cancel: &CancellationToken,
    ) -> Result<(), JournalError> {
        self.early.begin_run();
        if let Some(call) = self.deferred.take() {
            let ended = self.resume_deferred(run, call, cancel).await?;
            // Pending items went along with the result, or they cannot be delivered yet.
            if let Some(outcome) = ended {
                let reason = "a call has to be decided about first; say it again afterwards";
                self.keep_all_out(run, items, reason)?;
                run.outcome = outcome;
                return Ok(());
            }
        } else {
            if let Some(item) = items.first()
                && let Some(text) = compaction_asked(&self.shared, item)
            {
                // Other pending items are for the next run.
                run.outcome = self.run_compaction(run, item, text, cancel).await?;
                self.keep_end(run);
                return Ok(());
            }
            let items = self.before_command(items);
            if items.iter().any(|item| !item.origin.is_news()) {
                self.standing.prompt.clear();
            }
            let Some(items) = self.admit(run, items, cancel).await? else {
                run.outcome = match run.outcome {
                    Outcome::CommandFailed => Outcome::CommandFailed,
                    _ if cancel.is_cancelled() => Outcome::Cancelled,
                    _ => Outcome::HookStopped,
                };
                return Ok(());
            };
            self.deliver(Vec::new(), &items)?;
        }
        run.outcome = self.answer(run, cancel).await?;
        self.keep_end(run);
        run.denials.extend(self.dispatch.agent.take_denials());
        run.structured = self.structured.as_ref().and_then(StructuredOutput::take);
        self.tell_failure(run).await;
        Ok(())
    }

    /// The items that come before a command of the program: they are worked on first, and the command by itself.
    fn before_command<'i>(&self, items: &'i [Item]) -> &'i [Item] {
        let is_command = |item: &Item| {
            command_of(&self.shared, item).is_some_and(|typed| is_for_program(&self.shared, &typed))
        };
        &items[..items.iter().position(is_command).unwrap_or(items.len())]
    }

    /// Continues with the call that was put off; what waits in the queue goes along with its result. `Some` is
    /// how the run ends here.
    async fn resume_deferred(
        &mut self,
        run: &mut Run,
        call: ToolUse,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, JournalError> {
        self.refresh_servers();
        if self.dispatch.toolbox.get(&call.name).is_err() {
            run.errors.push(format!("{} was put off and is no longer there", call.name));
            self.deliver(Vec::new(), &[])?;
            return Ok(Some(Outcome::DeferredUnavailable));
        }
        self.unanswered = UnansweredCalls::default();
        self.run_resolved(run, None, &[], vec![call], cancel).await
    }

    /// The outcome of a run that takes no other turn.
    fn find_end(
        &mut self,
        run: &Run,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, JournalError> {
        if cancel.is_cancelled() {
            self.add_notice(INTERRUPTED)?;
            return Ok(Some(Outcome::Cancelled));
        }
        if self.task().is_some_and(|task| task.is_leaving()) {
            return Ok(Some(Outcome::Completed));
        }
        let has_reached_limit = self.settings.max_turns.is_some_and(|most| run.turns >= most);
        Ok(has_reached_limit.then_some(Outcome::MaxTurns))
    }

    /// Takes turns until there is an outcome.
    async fn answer(
        &mut self,
        run: &mut Run,
        cancel: &CancellationToken,
    ) -> Result<Outcome, JournalError> {
        let mut reminders = 0;
        Ok(loop {
            if let Some(outcome) = self.find_end(run, cancel)? {
                break outcome;
            }
            self.refresh(cancel).await;
            self.follow_skills();
            if let Some(outcome) = self.keep_room(run, cancel).await? {
                break outcome;
            }
            if cancel.is_cancelled() {
                continue;
            }
            self.keep_point(run);
            let answered = self.request(run, cancel).await?;
            self.tell_call_summary(cancel).await;
            let answer = match answered {
                Ok(answer) => answer,
                Err(outcome) => break outcome,
            };
            self.check_cache(&answer.usage.counts)?;
            run.turns += 1;
            run.stop_reason = Some(answer.stop_reason.clone());
            let (step, places) = next_step(&answer);
            let source = self.record_answer(&answer, &places)?;
            if !places.is_empty() {
                run.text = answer.text();
            }
            match step {
                Step::Stop(Outcome::ContextOverflow) => match self.make_room(run, cancel).await? {
                    None => self.add_notice(CUT_OFF)?,
                    Some(outcome) => break outcome,
                },
                Step::Stop(outcome) => break self.tell_refusal(&answer, outcome),
                Step::Continue => {}
                Step::Calls(calls) => {
                    let hands_over = self.structured.is_some()
                        && calls.iter().any(|call| call.name == STRUCTURED_OUTPUT);
                    match self
                        .run_calls(run, source, &answer.malformed_calls, calls, cancel)
                        .await?
                    {
                        Some(Outcome::Completed) if self.should_continue(run, cancel).await? => {
                            // The output that was handed over is not the last one.
                            self.structured.as_ref().and_then(StructuredOutput::take);
                            continue;
                        }
                        Some(outcome) => break outcome,
                        None => {}
                    }
                    // The output that was handed over did not fit, or the run would be over.
                    reminders += u32::from(hands_over);
                    if reminders > SCHEMA_REMINDERS {
                        break Outcome::SchemaMismatch;
                    }
                }
                Step::End if self.structured.is_none() => {
                    self.keep_point(run);
                    if !self.deliver_mail(run, cancel).await?
                        && !self.should_continue(run, cancel).await?
                    {
                        break self.stop_rules.given_up.take().map_or(Outcome::Completed, |why| {
                            run.errors.push(why);
                            Outcome::GoalMissed
                        });
                    }
                }
                Step::End if reminders < SCHEMA_REMINDERS => {
                    reminders += 1;
                    self.add_notice(REMINDER)?;
                }
                Step::End => break Outcome::SchemaMismatch,
            }
        })
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.dispatch.agent.identity
    }

    /// The agent as a task, unless it is the main agent.
    pub(crate) fn task(&self) -> Option<&Arc<Task>> {
        self.dispatch.agent.task.as_ref()
    }

    /// The text about the agent's notes, as they are on disk now.
    pub(super) fn notes_index(&self) -> Option<String> {
        let index = self.dispatch.agent.notes.as_ref()?.index();
        if let Some(problem) = &index.problem {
            self.dispatch.agent.inform("warning", problem.to_string());
        }
        // The text of the notes is contained already, and the tags around it are ours.
        index.text.map(|text| format!("<system-reminder>\n{text}\n</system-reminder>"))
    }

    /// The announcement of servers for the model, if there is a new one.
    fn serve(&mut self) -> Option<String> {
        self.refresh_servers();
        self.known_servers
            .announced
            .news(&self.dispatch.agent.servers, self.dispatch.toolbox.served())
    }

    /// Updates the tools of the servers.
    pub(crate) fn refresh_servers(&mut self) {
        let servers = &self.dispatch.agent.servers;
        let version = servers.version();
        if self.known_servers.version != version {
            let window = self.shared.window_of(&self.settings.model);
            let served = servers.serve(&self.dispatch.agent.permissions, window);
            self.dispatch.toolbox.serve(served);
            self.known_servers.version = version;
        }
    }

    /// Tells the model of agents that came or went since it was last told.
    pub(crate) fn refresh_agents(&mut self) {
        let agent = &self.dispatch.agent;
        if let Some(listing) = Listing::of(&self.shared.delegation, &agent.tool_scope()) {
            let hash = Listing::hash(Some(&listing));
            let make = self.shared.delegation.builder.engine_tools.starting;
            let tool = make(Arc::clone(agent), listing);
            self.dispatch.toolbox.replace(tool, hash);
        }
    }

    /// Says something to the model that no person typed.
    fn add_notice(&mut self, text: &str) -> Result<(), JournalError> {
        self.add_notices(&[text.to_owned()])
    }

    fn add_notices(&mut self, texts: &[String]) -> Result<(), JournalError> {
        let blocks: Vec<Block> = texts.iter().map(Block::text).collect();
        for block in &blocks {
            self.record_said(block)?;
        }
        self.push(Role::User, &blocks);
        Ok(())
    }

    fn push(&mut self, role: Role, blocks: &[Block]) {
        if !blocks.is_empty() {
            self.push_message(Message::new(role, blocks));
        }
    }

    fn push_message(&mut self, message: Message) {
        if let Err(error) = self.conversation.push(message) {
            // Every path that gets here answers exactly the open calls.
            debug_assert!(false, "invariant: history stays valid: {error}");
            tracing::error!(%error, "a message did not fit the history");
        }
    }
}

/// Decides what an answer asks for, and the places of those of its blocks that stand in history.
fn next_step(answer: &Answer) -> (Step, Vec<usize>) {
    let calls: Vec<ToolUse> = answer.calls().cloned().collect();
    let keeps_calls =
        !matches!(answer.stop_reason, StopReason::Refusal | StopReason::ModelContextWindowExceeded);
    let places = recordable(answer, keeps_calls);
    let says_something = places.iter().any(|at| matches!(answer.blocks[*at], Block::Text(_)));
    let step = match &answer.stop_reason {
        StopReason::Refusal => Step::Stop(Outcome::Refusal),
        StopReason::ModelContextWindowExceeded => Step::Stop(Outcome::ContextOverflow),
        _ if !calls.is_empty() => Step::Calls(calls),
        StopReason::PauseTurn if !places.is_empty() => Step::Continue,
        StopReason::MaxTokens => Step::Stop(Outcome::MaxTokens),
        StopReason::EndTurn | StopReason::StopSequence if says_something => Step::End,
        _ => Step::Stop(Outcome::Empty),
    };
    (step, places)
}

/// The places of the blocks that a provider takes back: no blank texts, no calls that will not be answered,
/// and nothing that ends in thinking.
fn recordable(answer: &Answer, keeps_calls: bool) -> Vec<usize> {
    let is_kept = |block: &Block| match block {
        Block::ToolUse(_) => keeps_calls,
        block => !is_blank(block),
    };
    let is_thinking =
        |block: &Block| matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
    let blocks = answer.blocks.iter().enumerate().filter(|(_, block)| is_kept(block));
    let mut kept: Vec<(usize, &Block)> = blocks.collect();
    while kept.pop_if(|(_, block)| is_thinking(block)).is_some() {}
    kept.into_iter().map(|(place, _)| place).collect()
}

/// Tells whether a block is a text that says nothing.
fn is_blank(block: &Block) -> bool {
    matches!(block, Block::Text(text) if text.trim().is_empty())
}
