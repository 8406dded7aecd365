//! A run of a member in a process of its own, as the lead's process sees it.
//!
//! Only the driver works there. Its beginning and its end, the slot, hooks about the member, worktree, budget and the
//! record of the end are here, as for every agent; so are the answers to what the process asks.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use centurion_journal::{JournalError, TranscriptFile};
use centurion_protocol::sdk::EventBody;
use centurion_protocol::{AgentId, Outcome, RecordId, ReportedUsage};
use centurion_tools::ContentHash;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Child;
use super::relay::Relay;
use crate::agent::member_frames::{
    BeginRun, FromMember, FunctionCall, FunctionFault, ItemFrame, LeadAnswer, LeadQuestion,
    RunReport, ToMember,
};
use crate::agent::member_processes::{FOR_ONE, MemberLink, MemberProcesses};
use crate::agent::progress::show_progress;
use crate::agent::task::{Stopper, TaskRun};
use crate::message::mail;
use crate::message::queue::{Item, Origin};
use crate::money::budget::Reservation;

/// The longest wait for a process that was told to end its run.
const GRACE: Duration = Duration::from_secs(10);

type Answering<'a> = FuturesUnordered<BoxFuture<'a, (u64, LeadAnswer)>>;

/// The end of the work of a process on a run.
enum ProcessRunEnd {
    Reported(Box<RunReport>),
    /// The process is gone. `was_heard` is false if it was gone before the run began.
    Lost {
        was_heard: bool,
    },
}

impl Child {
    /// The processes of members, if this agent works in one.
    pub(super) fn processes(&self) -> Option<Arc<MemberProcesses>> {
        let processes = self.shared.delegation.member_processes.as_ref()?;
        let has_process = self.task.spec.team.is_some() && self.task.spec.context.is_none();
        has_process.then(|| Arc::clone(processes))
    }

    /// Has a process carry the run out.
    pub(super) async fn run_in_process(
        &mut self,
        processes: &Arc<MemberProcesses>,
        items: &[Item],
        cancel: &CancellationToken,
    ) -> Result<(), JournalError> {
        // The lock of the transcript is held here, for both processes.
        self.driver.journal.wake_shared()?;
        let (shared, task) = (Arc::clone(&self.shared), Arc::clone(&self.task));
        // The member's process watches over its silence.
        let pause = task.stall.pause();
        let context = std::mem::take(&mut self.driver.preamble.context);
        let notes = std::mem::take(&mut self.driver.aside.context);
        let notes: Vec<String> =
            notes.into_iter().chain(shared.take_side_notes(Some(&task.id))).collect();
        let mut resting = processes.resume(&task.id).await;
        let mut used = ProcessUsage::default();
        loop {
            let was_resting = resting.is_some();
            let mut link = match resting.take() {
                Some(link) => link,
                None => match processes.start(&shared, &task.id, &task.spec).await {
                    Ok(link) => link,
                    Err(error) => {
                        self.run.outcome = Outcome::Fault;
                        self.run.errors.push(error.to_string());
                        return Ok(());
                    }
                },
            };
            let begin = ToMember::Begin(Box::new(self.begin_run(items, &context, &notes)));
            let carried = self.await_report(&mut link, &begin, (items, &mut used), cancel).await;
            match carried {
                ProcessRunEnd::Reported(report) => {
                    processes.keep(&task.id, link);
                    self.driver.journal.follow(report.record);
                    self.take_report(*report);
                    break;
                }
                // It died while the member rested: another one begins.
                ProcessRunEnd::Lost { was_heard: false }
                    if was_resting && !self.has_read_any(items)? =>
                {
                    link.end().await;
                }
                ProcessRunEnd::Lost { .. } => {
                    // Its transcript may lack the answers that were paid for last.
                    self.run.used.total += &used.usage;
                    self.run.used.dollars += used.dollars;
                    self.end_lost(link, cancel).await?;
                    break;
                }
            }
        }
        drop(pause);
        Ok(())
    }

    fn begin_run(&self, items: &[Item], context: &[String], notes: &[String]) -> BeginRun {
        let TaskRun { id, call, asker, prompt, .. } = self.task.run();
        BeginRun {
            agent: self.task.id.clone(),
            spec: self.task.spec.as_ref().clone(),
            run: id,
            call,
            asker,
            prompt,
            items: items.iter().map(ItemFrame::from).collect(),
            context: context.to_vec(),
            notes: notes.to_vec(),
            mode: self.shared.permissions.mode(),
            host_functions: self.shared.delegation.builder.hooks.host_functions(),
        }
    }

    /// Sees to the process until it reports, or is gone.
    async fn await_report(
        &self,
        link: &mut MemberLink,
        begin: &ToMember,
        (items, used): (&[Item], &mut ProcessUsage),
        cancel: &CancellationToken,
    ) -> ProcessRunEnd {
        let mut was_heard = false;
        let working = link.working;
        let (reader, writer) = (&mut link.connection.reader, &mut link.connection.writer);
        if writer.write(begin, FOR_ONE).await.is_err() {
            return ProcessRunEnd::Lost { was_heard };
        }
        let mut known: HashSet<RecordId> = items.iter().map(|item| item.id).collect();
        let mut handed: HashMap<RecordId, Item> =
            items.iter().map(|item| (item.id, item.clone())).collect();
        let mut open = OpenQuestions::new(self.task.id.clone());
        let (mut told_cancel, mut told_leave) = (false, false);
        let mut deadline = std::pin::pin!(async {
            cancel.cancelled().await;
            tokio::time::sleep(GRACE).await;
        });
        loop {
            let frame = tokio::select! {
                biased;
                () = cancel.cancelled(), if !told_cancel => {
                    told_cancel = true;
                    Some(ToMember::Cancel)
                }
                () = &mut deadline => return ProcessRunEnd::Lost { was_heard: true },
                frame = reader.read::<FromMember>(working) => {
                    let Ok(Some(frame)) = frame else { return ProcessRunEnd::Lost { was_heard } };
                    was_heard |= frame.is_of_run();
                    match frame {
                        FromMember::Ended(report) => return ProcessRunEnd::Reported(report),
                        FromMember::Took(ids) => self.taken(&ids, &mut handed),
                        FromMember::Asks { id, question } => {
                            if let Some(answer) = self.ask(id, question, &mut open) {
                                open.answering.push(Box::pin(async move { (id, answer) }));
                            }
                        }
                        FromMember::Used { model, usage } => {
                            used.dollars += self.shared.add_usage(&model, &usage);
                            used.usage += &usage;
                        }
                        other => self.hear(other, &mut open),
                    }
                    None
                }
                Some((id, answer)) = open.answering.next(), if !open.answering.is_empty() => {
                    open.calls.remove(&id);
                    Some(ToMember::Answers { id, answer })
                }
                new = self.shared.queue.await_others(&self.task.id, &known) => {
                    for item in &new {
                        known.insert(item.id);
                        handed.insert(item.id, item.clone());
                        let frame = ToMember::Item(ItemFrame::from(item));
                        if writer.write(&frame, FOR_ONE).await.is_err() {
                            return ProcessRunEnd::Lost { was_heard };
                        }
                    }
                    None
                }
            };
            // Before the answer to the call by which it agreed to end: its next step is no request.
            if self.task.is_leaving() && !std::mem::replace(&mut told_leave, true) {
                // If it cannot be told, the next read says so.
                let _ = writer.write(&ToMember::Leave, FOR_ONE).await;
            }
            if let Some(frame) = frame
                && writer.write(&frame, FOR_ONE).await.is_err()
            {
                return ProcessRunEnd::Lost { was_heard };
            }
        }
    }

    /// The conversation contains these items. Those that the process was not handed are not its to take.
    fn taken(&self, ids: &[RecordId], handed: &mut HashMap<RecordId, Item>) {
        let taken: Vec<Item> = ids.iter().filter_map(|id| handed.remove(id)).collect();
        let ids: Vec<RecordId> = taken.iter().map(|item| item.id).collect();
        self.shared.queue.delivered(&ids);
        for item in taken {
            if let Origin::Message { hands_over: Some(mode), .. } = item.origin {
                self.agent.permissions.hand_over(mode);
            }
        }
    }

    /// Begins to answer a question; `Some` is an answer that there is at once.
    fn ask<'a>(
        &'a self,
        id: u64,
        question: LeadQuestion,
        open: &mut OpenQuestions<'a>,
    ) -> Option<LeadAnswer> {
        match question {
            LeadQuestion::Reserve(amount) => {
                let reserved = self.agent.budget.reserve(amount);
                Some(LeadAnswer::Reserved(reserved.map(|reservation| {
                    open.reservations.insert(id, reservation);
                })))
            }
            LeadQuestion::Keep { path, written } => {
                Some(LeadAnswer::Kept(self.keep_file(&path, &written)))
            }
            LeadQuestion::Function(function) => {
                let cancel = CancellationToken::new();
                open.calls.insert(id, cancel.clone());
                open.answering.push(Box::pin(async move {
                    let called = tokio::select! {
                        biased;
                        () = cancel.cancelled() => Err(FunctionFault::Withdrawn),
                        called = self.call_function(&function) => called,
                    };
                    (id, LeadAnswer::Function(called))
                }));
                None
            }
            LeadQuestion::Call(call) => {
                let cancel = CancellationToken::new();
                open.calls.insert(id, cancel.clone());
                let dispatch = &self.driver.dispatch;
                open.answering.push(Box::pin(async move {
                    (id, dispatch.answer_member(call, &cancel).await)
                }));
                None
            }
        }
    }

    /// Has the host carry out one of its functions that are hooks, for an event in the member's process.
    async fn call_function(&self, function: &FunctionCall) -> Result<Value, FunctionFault> {
        let hooks = &self.shared.delegation.builder.hooks;
        let FunctionCall { id, input, call } = function;
        match hooks.call_function(id, input, call.as_ref()) {
            Some(answer) => answer.await.map_err(|error| FunctionFault::Failed(error.to_string())),
            None => Err(FunctionFault::Unknown),
        }
    }

    /// Keeps a file that the member is about to change; why it is not kept, if so.
    fn keep_file(&self, path: &Path, written: &str) -> Option<String> {
        let checkpoints = self.shared.delegation.builder.files.checkpoints.as_ref()?;
        let Ok(written) = ContentHash::from_hex(written) else {
            return Some("its digest cannot be read".to_owned());
        };
        let agent = self.task.identity.path.join(" ▸ ");
        checkpoints.keep_for(Some(&agent), path, &written).err().map(|error| error.to_string())
    }

    fn hear(&self, frame: FromMember, open: &mut OpenQuestions<'_>) {
        let (shared, task) = (&self.shared, &self.task);
        match frame {
            FromMember::Withdraws(id) => {
                open.calls.get(&id).into_iter().for_each(CancellationToken::cancel);
            }
            FromMember::Closes { reservation, cost } => {
                if let Some(reservation) = open.reservations.remove(&reservation) {
                    reservation.settle(cost);
                }
            }
            FromMember::Progress(news) => {
                task.advance(|progress| {
                    progress.tokens = news.tokens;
                    progress.tool_uses = news.tool_uses;
                    progress.last_tool = news.last_tool;
                    progress.activity = news.activity;
                });
                show_progress(shared, task);
            }
            FromMember::Informs { level, text } => {
                let level = if level == "warning" { "warning" } else { "info" };
                self.agent.inform(level, text);
            }
            FromMember::Shows { uuid, body } => {
                let is_known = |id: &str| shared.delegation.find(id).is_some();
                if open.relay.admits(&body, is_known) {
                    shared.show_as(uuid, EventBody::Relayed(body));
                } else {
                    tracing::debug!(agent = %task.id, "an event of a member's process is not its to tell");
                }
            }
            FromMember::Hello { .. }
            | FromMember::Ready
            | FromMember::Unable(_)
            | FromMember::Took(_)
            | FromMember::Used { .. }
            | FromMember::Asks { .. }
            | FromMember::Alive
            | FromMember::Ended(_) => {}
        }
    }

    /// Applies the result of the run.
    fn take_report(&mut self, report: RunReport) {
        if report.is_stalled {
            self.task.stop(Stopper::Watchdog);
        }
        let run = &mut self.run;
        run.outcome = report.outcome;
        run.turns += report.turns;
        run.text = report.text;
        run.structured = report.structured;
        run.errors.extend(report.errors);
        run.denials.extend(report.denials.into_iter().map(Into::into));
        run.denial_reasons.extend(report.denial_reasons);
        run.ended_on_denial = report.ended_on_denial;
        run.evidence = report.evidence;
        run.told_stop = report.told_stop;
        run.used.total += &report.total;
        run.used.last = report.last;
        run.used.dollars += report.dollars;
        if report.is_unrecorded {
            run.outcome = Outcome::JournalFailed;
        }
        self.driver.settings.model = report.model;
    }

    /// The process is gone in the middle of a run: the member has failed, and what it had read is not told again.
    async fn end_lost(
        &mut self,
        mut link: MemberLink,
        cancel: &CancellationToken,
    ) -> Result<(), JournalError> {
        if cancel.is_cancelled() {
            self.run.outcome = Outcome::Cancelled;
        } else {
            let how = link.ended().await;
            self.run.outcome = Outcome::Fault;
            self.run.errors.push(format!("its process has ended: {how}"));
        }
        link.end().await;
        // Fences a line off that the process did not come to finish.
        self.driver.journal.rest();
        self.driver.journal.wake_shared()?;
        let read = self.read_items()?;
        let pending = self.shared.queue.pending(Some(&self.task.id));
        let read: Vec<RecordId> =
            pending.iter().map(|item| item.id).filter(|id| read.contains(id)).collect();
        self.shared.queue.delivered(&read);
        Ok(())
    }

    /// Tells whether the conversation contains one of these items. A process writes that down before it says so, and may
    /// die in between.
    fn has_read_any(&self, items: &[Item]) -> Result<bool, JournalError> {
        let read = self.read_items()?;
        Ok(items.iter().any(|item| read.contains(&item.id)))
    }

    fn read_items(&self) -> Result<HashSet<RecordId>, JournalError> {
        let text = TranscriptFile::open_shared(&self.task.transcript)?.read()?;
        Ok(mail::read_items(&text))
    }
}

/// The usage of the requests of a process in one run.
#[derive(Default)]
struct ProcessUsage {
    usage: ReportedUsage,
    dollars: f64,
}

/// The questions of a process that have no answer yet, and the money that it holds.
struct OpenQuestions<'a> {
    answering: Answering<'a>,
    calls: HashMap<u64, CancellationToken>,
    reservations: HashMap<u64, Reservation>,
    relay: Relay,
}

impl OpenQuestions<'_> {
    fn new(member: AgentId) -> Self {
        Self {
            answering: Answering::new(),
            calls: HashMap::new(),
            reservations: HashMap::new(),
            relay: Relay::new(member),
        }
    }
}
