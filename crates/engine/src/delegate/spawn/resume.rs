//! Resuming an agent that has ended, in this process or in an earlier one.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use centurion_config::agents::AgentSource;
use centurion_permissions::{Mode, OwnMode};
use centurion_protocol::{RecordId, ToolUseId};
use centurion_tools::ReadState;
use serde_json::{Value, json};

use super::{Child, ChildParts, SpawnError, begin, first_items, new_run, panic_words, stamp};
use crate::agent::Agent;
use crate::agent::builder::{BroughtBy, BroughtServers, ServersError};
use crate::agent::delegation::Delegation;
use crate::agent::fork_point::Inheritance;
use crate::agent::isolation::entered;
use crate::agent::shared::Shared;
use crate::agent::task::{End, Stopper, Task, TaskRun};
use crate::definition::spec::{AgentSpec, BroughtPart};
use crate::delegate::inherit;
use crate::delegate::powers::Powers;
use crate::delegate::recall;
use crate::message::life_records::RESUME;
use crate::message::mail::{self, Arrival, Mail};
use crate::message::queue::{Item, Origin};
use crate::toolset::structured::StructuredOutput;
use centurion_journal::transcript::{self, Loaded};
use centurion_journal::{Journal, TranscriptFile};

/// Resumes an agent that has ended, in this process or in an earlier one: its options are those of its start, its
/// conversation is what its transcript holds. In the background, always. The asker is told of the end and pays
/// for it; what the agent spent before counts. It has all its turns again.
///
/// The note of the beginning accepts the message. The caller holds the agent's access guard.
pub(crate) fn resume(
    shared: &Arc<Shared>,
    asker: &Agent,
    task: &Arc<Task>,
    call: ToolUseId,
    mail: &Mail,
) -> Result<(), SpawnError> {
    begin_again(shared, asker, task, call, Some(mail))
}

/// Sets a member of a team that has failed to work again, if there is mail that it had accepted and has not read: its
/// senders were told that it reads it. Each message does so once, so that a member that cannot work is not started for
/// ever.
pub(super) fn resume_for_mail(shared: &Arc<Shared>, task: &Arc<Task>, end: &Arc<End>) {
    let may_work = matches!(end.stopped_by, None | Some(Stopper::Watchdog));
    if task.spec.team.is_none() || !may_work || end.unread == 0 || shared.queue.is_abandoned() {
        return;
    }
    let _access = task.hold_access();
    // A message that came since has set it to work already, and it reads all of them.
    if !task.end().is_some_and(|last| Arc::ptr_eq(&last, end)) {
        return;
    }
    let pending = shared.queue.pending(Some(&task.id)).into_iter();
    let mail = pending.filter(|item| matches!(item.origin, Origin::Message { .. }));
    let Some(lead) = shared.main_agent().filter(|_| task.wakes_for(mail.map(|item| item.id)))
    else {
        return;
    };
    if let Err(error) = begin_again(shared, &lead, task, ToolUseId::new("mail"), None) {
        tracing::warn!(%error, agent = %task.id, "a member is not set to work again for its mail");
    }
}

/// Resumes an agent for a new message, or for those that it had accepted.
fn begin_again(
    shared: &Arc<Shared>,
    asker: &Agent,
    task: &Arc<Task>,
    call: ToolUseId,
    mail: Option<&Mail>,
) -> Result<(), SpawnError> {
    let delegation = &shared.delegation;
    let mut file = TranscriptFile::open(&task.transcript)?;
    let text = file.read()?;
    let waiting = mail::waiting(&text);
    let Some(first) = mail.or(waiting.first()) else { return Ok(()) };
    let inherited = inherit::inherited(delegation, task)?;
    let mut loaded = match &inherited {
        None => transcript::load_agent(&text),
        Some(inherited) => transcript::load_behind(&inherit::behind(inherited), &text),
    };
    mail::settle_plans(&mut loaded, &text);
    let has_changed = inherited.as_ref().is_some_and(|it| inherit::has_changed(&task.spec, it));
    let (world, stamp) = (Arc::clone(&shared.world), stamp(delegation, &task.spec, &task.id));
    let recording = delegation.builder.files.recording.clone();
    let journal = Arc::new(Journal::resume(file, &loaded, stamp, world, recording));
    let run = new_run(shared, asker, call, first.text.clone());
    let before = task.begin(run, Arc::clone(&journal)).ok_or(SpawnError::AtWork)?;
    let made = catch_unwind(AssertUnwindSafe(|| {
        let approved = task.spec.team.as_ref().and_then(|_| mail::approved_mode(&text));
        let parts = RestoredAgent { loaded, inherited, journal, approved };
        let mut child = rebuild(shared, delegation, asker, task, parts, mail)?;
        if has_changed {
            child.problems.push(CHANGED.to_owned());
        }
        child.items = left_unread(shared, task, &text, waiting.iter().chain(mail));
        child.goes_back_to = entered::noted(&text);
        Ok(child)
    }));
    let made = made.unwrap_or_else(|panic| Err(SpawnError::Fault(panic_words(&*panic))));
    let child = match made {
        Ok(child) => child,
        Err(error) => {
            task.restore(before);
            return Err(error);
        }
    };
    begin(delegation, Arc::clone(task), child, true);
    Ok(())
}

/// The parts of an agent that its transcripts hold.
pub(super) struct RestoredAgent {
    pub(super) loaded: Loaded,
    pub(super) inherited: Option<Inheritance>,
    pub(super) journal: Arc<Journal>,
    /// The permission mode that the lead of its team handed over with the approval of its plan.
    pub(super) approved: Option<Mode>,
}

impl RestoredAgent {
    /// The parts of the agent, with the rest from its record and from its definition as it is now. `mode` is the mode
    /// of the agent above it.
    pub(super) fn parts(
        self,
        shared: &Shared,
        asker: &Agent,
        spec: &AgentSpec,
        mode: Mode,
    ) -> Result<ChildParts, SpawnError> {
        let delegation = &shared.delegation;
        let parse = |schema: &Value| StructuredOutput::parse(&schema.to_string());
        let mut powers = Powers::on_resume(shared, delegation, spec, mode);
        if let Some(mode) = member_mode(spec, self.approved) {
            powers.own_mode = mode;
        }
        let worktree = spec.worktree.as_ref();
        let worktree = worktree.map(|it| delegation.builder.isolator.again(it)).transpose()?;
        Ok(ChildParts {
            read_state: ReadState::replayed(&self.loaded.seen_files),
            loaded: self.loaded,
            inherited: self.inherited,
            servers: servers(delegation, asker, spec, powers.mcp_servers.as_ref())?,
            structured: spec.schema.as_ref().map(parse).transpose()?,
            powers,
            parent_servers: None,
            journal: self.journal,
            allow: Vec::new(),
            worktree,
        })
    }
}

/// The warning about a fork that does not begin with the bytes that it was started with.
const CHANGED: &str = "it no longer begins with the bytes that it shared with its parent, so the provider reads them \
    anew: its parent's transcript does not hold all of them as they were sent, such as credentials";

/// Makes the agent as it was, and writes down that it begins, with this message if it is a new one.
fn rebuild(
    shared: &Arc<Shared>,
    delegation: &Delegation,
    asker: &Agent,
    task: &Arc<Task>,
    restored: RestoredAgent,
    mail: Option<&Mail>,
) -> Result<Child, SpawnError> {
    let parts = restored.parts(shared, asker, &task.spec, asker.permissions.mode())?;
    let child = Child::new(shared, delegation, task, parts, asker)?;
    let TaskRun { id, call, asker, prompt, .. } = task.run();
    let mut note = json!({
        "agentId": task.id, "run": id, "call": call, "asker": asker, "prompt": prompt,
    });
    if let Some(mail) = mail {
        note["item"] = json!(mail.id);
        note["from"] = json!(mail.from);
        if let Some(team) = &mail.team {
            note["team"] = json!(team);
        }
    }
    child.driver.journal.note(RESUME, &note)?;
    Ok(child)
}

/// The mode of a member of a team that does not depend on its definition: it plans until its plan is approved, and then
/// has what the approval handed over.
fn member_mode(spec: &AgentSpec, approved: Option<Mode>) -> Option<OwnMode> {
    let team = spec.team.as_ref()?;
    let planning = || team.must_plan.then_some(OwnMode::Given(Mode::Plan));
    approved.map(OwnMode::Modest).or_else(planning)
}

/// The first items of a resumed agent: the task that its process did not come to tell
/// it, the mail that waited, and the message that resumes it, if one does.
fn left_unread<'a>(
    shared: &Shared,
    task: &Task,
    transcript: &[u8],
    mail: impl Iterator<Item = &'a Mail>,
) -> Vec<Item> {
    let missed = recall::unread_prompt(transcript);
    let mut items =
        missed.map(|prompt| first_items(shared, task, None, &prompt)).unwrap_or_default();
    let held = shared.queue.pending(Some(&task.id));
    let mut held: HashMap<RecordId, Item> = held.into_iter().map(|item| (item.id, item)).collect();
    for mail in mail {
        items.push(held.remove(&mail.id).unwrap_or_else(|| {
            let item = mail.item(Some(&task.id), Arrival::AtBeginning);
            shared.queue.push(item.clone());
            item
        }));
    }
    items
}

/// The servers that the agent has beside those of the main agent.
fn servers(
    delegation: &Delegation,
    asker: &Agent,
    spec: &AgentSpec,
    brought: Option<&BroughtPart>,
) -> Result<BroughtServers, ServersError> {
    let Some(brought) = brought else { return Ok(BroughtServers::default()) };
    let by = BroughtBy {
        name: &spec.agent_type,
        source: AgentSource::of_name(&spec.source).unwrap_or(AgentSource::Project),
        path: &brought.path,
    };
    delegation.builder.servers(&brought.value, &by, &brought.path.display(), &asker.servers)
}
