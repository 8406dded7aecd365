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
mod early;
mod fit;
mod goal;
mod partial;
mod progress;
mod record;
mod refused;
mod request;
mod skills;
mod stop;
mod title;
mod worktree;

use std::sync::Arc;
use std::time::Duration;

use centurion_config::memory::MemoryTracker;
use centurion_hooks::events::StopCap;
use centurion_model::{Answer, SystemPrompt};
use centurion_protocol::sdk::{ActiveGoal, PermissionDenial};
use centurion_protocol::{
    Block, Conversation, Message, Outcome, RecordId, ReportedUsage, Role, StopReason, ToolUse,
    ToolUseId,
};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::call_summary::PendingSummary;
use self::compact::{CompactionCount, compaction_asked};
use self::early::EarlyBlocks;
use self::skills::SKILL_LISTING;
use crate::agent::evidence::Evidence;
use crate::agent::fork_point::{Cached, Inheritance};
use crate::agent::hooks::reminder;
use crate::agent::listing::Listing;
use crate::agent::shared::Shared;
use crate::agent::task::{Denial, Task};
use crate::definition::identity::Identity;
use crate::definition::prompt::instructions;
use crate::definition::request_settings::RequestSettings;
use crate::message::queue::{Item, Origin};
use crate::toolset::servers::KnownServers;
use crate::toolset::structured::{REMINDER, STRUCTURED_OUTPUT, StructuredOutput};
use crate::turn::commands::command_of;
use crate::turn::dispatch::{Aside, Dispatch};
use crate::turn::skill::is_for_program;
use centurion_journal::transcript::{KeptRecord, Loaded, SESSION_CONTEXT, Standing, interrupted};
use centurion_journal::{Journal, JournalError};

/// The text for a model after a person stopped it.
const INTERRUPTED: &str = "[Request interrupted by user]";
/// The text for a model whose answer was cut off at the end of the window.
const CUT_OFF: &str =
    "Your last answer was cut off: the window was full. The conversation is shorter now. Go on.";
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
    pub(crate) cached: Option<Cached>,
    /// Calls of an earlier process whose results were never recorded.
    pub(crate) unanswered: Vec<ToolUseId>,
    /// The call that a hook deferred; it runs before anything else.
    pub(crate) deferred: Option<ToolUse>,
    pub(crate) structured: Option<StructuredOutput>,
    /// Instructions that apply once a file in their place is read.
    pub(crate) memory: Option<MemoryTracker>,
    /// The provider's token count of the last request, and our own estimate of the same history.
    pub(crate) counted: Option<(u64, usize)>,
    /// The output of hooks of the session's start and the like, for the next message.
    pub(crate) aside: Aside,
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
        }
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

/// The usage of a run's requests.
#[derive(Debug, Default)]
pub(crate) struct RunUsage {
    pub(crate) total: ReportedUsage,
    /// Of the first answer.
    pub(crate) first: Option<ReportedUsage>,
    /// Of the last one.
    pub(crate) last: ReportedUsage,
    /// The cost of all of them.
    pub(crate) dollars: f64,
}

/// The state of one run until its outcome.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) started: Instant,
    pub(crate) turns: u32,
    pub(crate) api_time: Duration,
    pub(crate) times: RunTimes,
    pub(crate) used: RunUsage,
    pub(crate) text: String,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) denials: Vec<PermissionDenial>,
    pub(crate) errors: Vec<String>,
    pub(crate) structured: Option<Value>,
    pub(crate) outcome: Outcome,
    /// True if a cancelled run was at its tools when it was cancelled.
    pub(crate) cancelled_in_tools: bool,
    /// The failure of the provider.
    pub(crate) failure: Option<ProviderFailure>,
    /// The effects of the calls.
    pub(crate) evidence: Evidence,
    /// Calls that were not allowed, and why.
    pub(crate) denial_reasons: Vec<Denial>,
    /// True if only words followed a denied call.
    pub(crate) ended_on_denial: bool,
    /// True if hooks know that the agent stops.
    pub(crate) told_stop: bool,
    /// The call that a hook put off.
    pub(crate) deferred: Option<ToolUse>,
    pub(crate) compactions: CompactionCount,
    /// The refused parts of the conversation that were replaced.
    pub(crate) refused: Vec<&'static str>,
}

/// The moments of a run, counted from its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTimes {
    /// The first request was sent.
    pub(crate) request: Option<Duration>,
    /// The first event of its answer came.
    pub(crate) event: Option<Duration>,
    /// The first piece of a block came.
    pub(crate) token: Option<Duration>,
    /// Observers were shown the first piece or block.
    pub(crate) shown: Option<Duration>,
}

/// A failure of a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProviderFailure {
    /// The status of its answer, if there was one.
    pub(crate) status: Option<u16>,
    /// Its name for hosts and hooks.
    pub(crate) name: &'static str,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            turns: 0,
            api_time: Duration::ZERO,
            times: RunTimes::default(),
            used: RunUsage::default(),
            text: String::new(),
            stop_reason: None,
            denials: Vec::new(),
            errors: Vec::new(),
            structured: None,
            outcome: Outcome::Cancelled,
            cancelled_in_tools: false,
            failure: None,
            evidence: Evidence::default(),
            denial_reasons: Vec::new(),
            ended_on_denial: false,
            told_stop: false,
            deferred: None,
            compactions: CompactionCount::default(),
            refused: Vec::new(),
        }
    }
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
            unanswered: conversation.open_calls().to_vec(),
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
            aside: Aside::default(),
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
        self.unanswered.clear();
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

    /// Tells whether something came for an agent that would otherwise end; the model is told. What comes for the
    /// main agent begins a run of its own.
    async fn deliver_mail(
        &mut self,
        run: &mut Run,
        cancel: &CancellationToken,
    ) -> Result<bool, JournalError> {
        let due = match &self.identity().id {
            Some(id) => self.shared.queue.pending(Some(id)),
            None => return Ok(false),
        };
        let due = self.admit(run, &due, cancel).await?.unwrap_or_default();
        if due.is_empty() {
            return Ok(false);
        }
        self.deliver(Vec::new(), &due)?;
        Ok(true)
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

    /// The host's instructions for planning, if the main agent has just begun to plan.
    fn plan_instructions(&self) -> Option<String> {
        let mode = self.dispatch.agent.permissions.mode();
        self.identity().is_main().then(|| self.shared.delegation.plan.due(mode)).flatten()
    }

    /// Puts items into the conversation without asking the model.
    pub(crate) fn take_note(&mut self, items: &[Item]) -> Result<(), JournalError> {
        self.deliver(Vec::new(), items)
    }

    /// Puts results, context and queue items before the model, as one message.
    fn deliver(&mut self, mut blocks: Vec<Block>, items: &[Item]) -> Result<(), JournalError> {
        let opening = self.preamble.opening.take().map(|it| it.opening()).unwrap_or_default();
        if !opening.is_empty() {
            self.record_opening(&opening)?;
        }
        for id in std::mem::take(&mut self.unanswered) {
            let block = interrupted(&id);
            self.record_result(&block, None, &Value::Null)?;
            blocks.push(block);
        }
        let told = std::mem::take(&mut self.preamble.instructions);
        let memory = self.memory.as_ref().filter(|_| told);
        if let Some(text) = memory.and_then(MemoryTracker::render) {
            let text = instructions(&text);
            self.record_attachment("instructions", &text)?;
            blocks.push(Block::Text(text));
        }
        if let Some(text) = told.then(|| self.notes_index()).flatten() {
            self.record_attachment(NOTES, &text)?;
            blocks.push(Block::Text(text));
        }
        for text in std::mem::take(&mut self.preamble.context) {
            let record = self.record_attachment(SESSION_CONTEXT, &text)?;
            let kept = KeptRecord { record, blocks: vec![Block::Text(text.clone())] };
            self.standing.context.push(kept);
            blocks.push(Block::Text(text));
        }
        let context = std::mem::take(&mut self.aside.context);
        let mut aside: Vec<String> = context.iter().map(|text| reminder(text)).collect();
        let side_notes = self.shared.take_side_notes(self.identity().id.as_ref());
        aside.extend(side_notes.iter().map(|text| reminder(text)));
        aside.extend(self.plan_instructions().map(|text| reminder(&text)));
        aside.extend(self.serve());
        for text in aside {
            self.record_attachment("aside", &text)?;
            blocks.push(Block::Text(text));
        }
        if let Some(text) = self.skill_news(!items.is_empty()) {
            self.record_attachment(SKILL_LISTING, &text)?;
            blocks.push(Block::Text(text));
        }
        self.record_worktree()?;
        let items = self.fit(items, &blocks);
        let mut delivered = Vec::with_capacity(items.len());
        for item in &*items {
            let record = match &self.shared.delegation.builder.files.checkpoints {
                Some(checkpoints) if matches!(item.origin, Origin::Person) => {
                    checkpoints.begin(|| self.record_item(item))?
                }
                _ => self.record_item(item)?,
            };
            self.remember_task(record, item);
            if matches!(item.origin, Origin::Person) {
                self.early.answer_prompt(record);
            }
            if let Origin::Message { hands_over: Some(mode), .. } = item.origin {
                self.dispatch.agent.permissions.hand_over(mode);
                // The lead of the team approved the plan.
                self.dispatch.agent.workspace.plan.lock().approve();
            }
            for news in item.origin.told_ends(item.id) {
                self.dispatch.agent.note_denials(self.shared.take_denials(news));
            }
            blocks.extend(item.content.iter().cloned());
            delivered.push(item.id);
        }
        // Behind their texts: a note says that the conversation has one.
        self.record_skills()?;
        if !opening.is_empty() || !blocks.is_empty() {
            self.push_message(Message::with_shared(Role::User, &opening, &blocks));
        }
        self.shared.queue.delivered(&delivered);
        Ok(())
    }

    /// Remembers what an agent is to do: it stays in the conversation word for word.
    fn remember_task(&mut self, record: RecordId, item: &Item) {
        let kept = || KeptRecord { record, blocks: item.content.clone() };
        if matches!(item.origin, Origin::Person) {
            self.standing.turns.push(record);
        }
        match item.origin {
            Origin::Delegation | Origin::Initial => self.standing.task.push(kept()),
            // News is told once; only where nothing else was said is it what the agent works on.
            _ if item.origin.is_news() && !self.standing.prompt.is_empty() => {}
            _ => self.standing.prompt.push(kept()),
        }
    }

    /// The announcement of servers for the model, if there is a new one.
    fn serve(&mut self) -> Option<String> {
        self.refresh_servers();
        self.known_servers
            .announced
            .news(&self.dispatch.agent.servers, self.dispatch.toolbox.served())
    }

    /// Takes up what the servers bring now.
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
