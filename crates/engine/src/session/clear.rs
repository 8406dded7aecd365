//! A conversation that begins anew is another session, with an id and a transcript of its own. The one before is complete
//! on disk and can be resumed.
//!
//! Agents in the background belong to the process: they continue, and report to the new conversation. Two notes keep that
//! true across a crash: the transcript that is left says which agents and schedules it gives away, and the new one says
//! which it takes over. What is given away counts as soon as the new transcript says that.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use centurion_journal::{Journal, JournalError, MOST_TRANSCRIPT};
use centurion_protocol::{AgentId, RecordId, SessionId, bounded};
use centurion_tools::resolve;
use serde_json::json;
use thiserror::Error;

use super::{FILE_HISTORY, Session};
use crate::agent::session_place::SessionPlace;
use crate::agent::shared::Shared;
use crate::agent::task::Task;
use crate::delegate::recall::{CARRIED, CarriedAgent, CarriedNote, LEFT};
use crate::message::mail::{self, Mail};
use crate::message::queue::Origin;
use crate::turn::driver::Run;

/// The paths of a session's record that its model may read.
pub(super) fn readable(place: &SessionPlace) -> Vec<PathBuf> {
    let agents = resolve(&place.agents_dir());
    let transcript = place.directory().map(|_| resolve(&place.transcript()));
    std::iter::once(agents).chain(transcript).collect()
}

/// The beginning of a session in the process of another one.
pub(super) struct BegunAnew {
    /// The session that was left.
    pub(super) from: SessionId,
    pub(super) to: SessionId,
    /// The first record of the new session.
    pub(super) record: RecordId,
}

/// The reason why no other session was begun.
#[derive(Debug, Error)]
#[error("the conversation is as it was: {0}")]
pub(super) struct NotBegun(JournalError);

impl Session {
    /// Begins another session with an empty conversation behind the same main agent. Where its transcript cannot be
    /// begun, the session before is as it was.
    pub(super) async fn begin_anew(
        &mut self,
        run: &Run,
    ) -> Result<Result<BegunAnew, NotBegun>, JournalError> {
        let shared = &self.shared;
        let files = &shared.delegation.builder.files;
        let (from, to) = (shared.id(), new_id(shared));
        let agents = carried_agents(shared);
        if self.driver.journal.has_begun() {
            shared.record_title();
            let ids: Vec<_> = agents.iter().map(|agent| &agent.id).collect();
            files.journal.note(LEFT, &json!({"to": to, "agents": ids}))?;
            if let Some(peers) = &shared.delegation.peers {
                peers.give_away(&files.journal, to)?;
            }
            files.journal.sync().await?;
        }
        let kept: HashSet<_> = agents.iter().map(|agent| agent.id.clone()).collect();
        let (journal, record) = match self.begin_transcript(from, to, agents) {
            Ok(begun) => begun,
            Err(error) => return Ok(Err(NotBegun(error))),
        };
        if let Some(memory) = &mut self.memory {
            memory.keep_conversation(shared);
        }
        files.journal.continue_as(journal);
        files.place.begin_anew(to);
        shared.permissions.let_read(readable(&files.place));
        if let (Some(checkpoints), Some(directory)) = (&files.checkpoints, files.place.directory())
        {
            checkpoints.begin_anew(directory.join(FILE_HISTORY));
        }
        begin_lists_anew(shared, (from, to), &kept);
        shared.set_title(None);
        shared.delegation.builder.isolator.note_again(None);
        if let Some(peers) = &shared.delegation.peers {
            peers.begin_anew(to);
        }
        if let Some(view) = shared.delegation.team.as_ref().and_then(|team| team.view()) {
            view.changed.notify_one();
        }
        self.driver.start_conversation(run);
        Ok(Ok(BegunAnew { from, to, record }))
    }

    /// Writes the beginning of the new session's transcript: what it takes over. Returns its journal and its first
    /// record.
    fn begin_transcript(
        &self,
        from: SessionId,
        to: SessionId,
        agents: Vec<CarriedAgent>,
    ) -> Result<(Journal, RecordId), JournalError> {
        let shared = &self.shared;
        let files = &shared.delegation.builder.files;
        let path = files.place.transcript_of(to).unwrap_or_default();
        let journal = files.journal.of_session(to, path);
        let write = || {
            let outputs = files.output_dir.clone();
            let record = journal.note(CARRIED, &CarriedNote { from, outputs, agents })?;
            for mail in unread_mail(shared) {
                mail.accept(&journal)?;
            }
            if let Some(peers) = &shared.delegation.peers {
                peers.take_over(&journal)?;
            }
            self.record_agent(&journal)?;
            if let Some(schedules) = &shared.schedules {
                schedules.note_again(&journal, &shared.queue)?;
                if files.journal.has_begun() {
                    schedules.leave()?;
                }
            }
            Ok(record)
        };
        match write() {
            Ok(record) => Ok((journal, record)),
            Err(error) => {
                if let Err(error) = journal.discard() {
                    tracing::error!(%error, "the beginning of a transcript could not be removed");
                }
                Err(error)
            }
        }
    }
}

/// An id that no session of the project has.
fn new_id(shared: &Shared) -> SessionId {
    let place = &shared.delegation.builder.files.place;
    loop {
        let id = shared.world.session_id();
        let is_taken = place.transcript_of(id).is_some_and(|path| path.exists());
        if id != place.id() && !is_taken {
            return id;
        }
    }
}

/// The agents that go along: those that are at work, members of the team, and those whose end is yet to be told.
fn carried_agents(shared: &Shared) -> Vec<CarriedAgent> {
    let pending = shared.queue.pending(None);
    let untold: HashSet<RecordId> =
        pending.iter().flat_map(|item| item.origin.told_ends(item.id)).collect();
    let carried = |task: &Arc<Task>| {
        let end = task.end();
        let is_told = end.as_ref().is_some_and(|end| !untold.contains(&end.notification));
        let is_member =
            task.spec.team.is_some() && end.as_ref().is_some_and(|end| !end.leaves_team());
        (!is_told || is_member).then(|| CarriedAgent {
            id: task.id.clone(),
            transcript: task.transcript.clone(),
            run: task.run().id,
            is_told,
        })
    };
    shared.delegation.tasks().iter().filter_map(carried).collect()
}

/// The mail that the main agent has accepted and not read. The new transcript holds it from now on.
fn unread_mail(shared: &Shared) -> Vec<Mail> {
    let pending = shared.queue.pending(None);
    let is_mail = |origin: &Origin| matches!(origin, Origin::Message { .. });
    let ids: HashSet<RecordId> =
        pending.iter().filter(|item| is_mail(&item.origin)).map(|item| item.id).collect();
    if ids.is_empty() {
        return Vec::new();
    }
    let transcript = shared.delegation.builder.files.place.transcript();
    let text = bounded::read_file(&transcript, MOST_TRANSCRIPT).unwrap_or_default();
    let mut unread = mail::waiting(&text);
    unread.retain(|mail| ids.contains(&mail.id));
    unread
}

/// Gives the session a task list of its own. Agents that stay at work keep theirs.
fn begin_lists_anew(shared: &Shared, (from, to): (SessionId, SessionId), kept: &HashSet<AgentId>) {
    let delegation = &shared.delegation;
    delegation.forget_but(kept);
    // A list of another name is one that the user chose, whatever the session.
    if let Some(lists) = &delegation.task_lists
        && lists.now().is_named(&from.to_string())
        && let Ok(name) = to.to_string().parse()
    {
        lists.begin_anew(lists.now().named(name), kept.iter().cloned());
    }
}
