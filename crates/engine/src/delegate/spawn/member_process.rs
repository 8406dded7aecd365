//! The runs of a member in its own process. An agent is made as for every resume, from its transcript; its driver works
//! here, and everything about its life is the lead's.

use std::sync::Arc;

use centurion_journal::{Journal, TranscriptFile, transcript};
use centurion_protocol::Outcome;
use tokio::time::Instant;

use super::resume::RestoredAgent;
use super::{Child, SpawnError, agent_files, stamp};
use crate::agent::Agent;
use crate::agent::lead_link::BegunRun;
use crate::agent::member_frames::{BeginRun, ItemFrame, RunReport};
use crate::agent::shared::Shared;
use crate::agent::task::{RunStart, Stopper, Task, TaskRun};
use crate::message::mail;
use crate::message::queue::Item;
use crate::money::budget::{Account, Amount, Limit};

/// Carries a run out that the lead began.
pub(crate) async fn carry_out(shared: &Arc<Shared>, main: &Agent, begun: BegunRun) -> RunReport {
    let model = begun.begin.spec.model.clone();
    match prepare(shared, main, &begun) {
        Ok((child, items)) => Box::pin(child.work_led(items, begun)).await,
        Err(error) => RunReport::failed(error.to_string(), model),
    }
}

/// Makes the agent from its transcript, whose lock the lead holds.
fn prepare(
    shared: &Arc<Shared>,
    main: &Agent,
    run: &BegunRun,
) -> Result<(Child, Vec<Item>), SpawnError> {
    let (delegation, begin) = (&shared.delegation, &run.begin);
    let BeginRun { agent: id, spec, .. } = begin;
    if main.permissions.mode() != begin.mode
        && let Err(error) = main.permissions.set_mode(begin.mode)
    {
        tracing::warn!(%error, "the lead's permission mode cannot be followed");
    }
    shared.set_leads_functions(begin.host_functions.as_ref());
    let spec = Arc::new(spec.clone());
    let files = agent_files(delegation, id);
    let mut file = TranscriptFile::open_shared(&files.transcript)?;
    let text = file.read()?;
    let mut loaded = transcript::load_agent(&text);
    mail::settle_plans(&mut loaded, &text);
    let (world, stamp) = (Arc::clone(&shared.world), stamp(delegation, &spec, id));
    let recording = delegation.builder.files.recording.clone();
    let journal = Arc::new(Journal::resume(file, &loaded, stamp, world, recording));
    let run = TaskRun {
        id: begin.run.clone(),
        call: begin.call.clone(),
        asker: begin.asker.clone(),
        prompt: begin.prompt.clone(),
        cancel: run.cancel.clone(),
        started: Instant::now(),
    };
    let account = Account::new(Limit::default(), Amount::default());
    let to = Arc::clone(&journal);
    let task = Task::new(id.clone(), Arc::clone(&spec), None, files, account, run, to);
    let restored =
        RestoredAgent { loaded, inherited: None, journal, approved: mail::approved_mode(&text) };
    let parts = restored.parts(shared, main, &spec, begin.mode)?;
    let mut child = Child::new(shared, delegation, &task, parts, main)?;
    if child.beginning == RunStart::First {
        child.driver.preamble.context.extend(begin.context.iter().cloned());
    }
    for note in &begin.notes {
        shared.add_side_note(Some(id.clone()), note.clone());
    }
    shared.queue.listen(id);
    delegation.enter(&task);
    Ok((child, Vec::new()))
}

impl Child {
    /// Works until there is an outcome and nothing is left to read.
    async fn work_led(mut self, mut items: Vec<Item>, begun: BegunRun) -> RunReport {
        let BegunRun { begin, cancel, leaves } = begun;
        let id = &begin.agent;
        items.extend(begin.items.into_iter().map(|item: ItemFrame| item.into_item(id)));
        let task = Arc::clone(&self.task);
        let (mut is_stalled, mut is_unrecorded) = (false, false);
        let patience = self.shared.server_patience();
        self.agent.servers.settle(patience).await;
        loop {
            task.stall.note_activity();
            self.run.told_stop = false;
            let stall = self.shared.delegation.rules.stall;
            let leaving = async {
                leaves.cancelled().await;
                task.leave();
                std::future::pending::<()>().await;
            };
            let running = Box::pin(self.driver.run(&mut self.run, &items, &cancel));
            let ran = tokio::select! {
                biased;
                // The driver looks at it before each request.
                () = leaving => Ok(()),
                ran = running => ran,
                never = task.stop_when_stalled(stall) => match never {},
            };
            if let Err(error) = ran {
                is_unrecorded = true;
                self.run.errors.push(error.to_string());
            }
            is_stalled |= task.stopped_by() == Some(Stopper::Watchdog);
            // Something came when it had stopped, and is read now.
            if task.finish(self.end(), &self.shared.queue, |_| {}, |_| {}).is_some() {
                break;
            }
            items = self.shared.queue.pending(Some(id));
        }
        self.shared.delegation.note_end(&task);
        let report = self.report(is_stalled, is_unrecorded);
        self.hooks.clear();
        self.agent.workspace.shells.shutdown().await;
        for server in &self.servers {
            server.close().await;
        }
        report
    }

    fn report(&mut self, is_stalled: bool, is_unrecorded: bool) -> RunReport {
        let run = &mut self.run;
        RunReport {
            outcome: if is_stalled { Outcome::Cancelled } else { run.outcome },
            turns: run.turns,
            text: std::mem::take(&mut run.text),
            structured: run.structured.take(),
            errors: std::mem::take(&mut run.errors),
            denials: std::mem::take(&mut run.denials).into_iter().map(Into::into).collect(),
            denial_reasons: std::mem::take(&mut run.denial_reasons),
            ended_on_denial: run.ended_on_denial,
            evidence: std::mem::take(&mut run.evidence),
            total: run.used.total.clone(),
            last: run.used.last.clone(),
            dollars: run.used.dollars,
            model: self.driver.settings.model.clone(),
            told_stop: run.told_stop,
            is_stalled,
            is_unrecorded,
            record: self.driver.journal.last(),
        }
    }
}
