//! The mail of a team as other programs see it: what each mailbox holds, until a task of the session has written it.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use centurion_protocol::RecordId;
use centurion_team::{InboxEntry, Task, TeamFiles, TeamName, TeamTaskViews};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::message::mail::Mail;

/// The most messages of a mailbox that are shown: the newest.
const MOST_SHOWN: usize = 200;

/// The views of a team.
pub(crate) struct TeamView {
    teams: PathBuf,
    state: Mutex<ViewState>,
    /// Something is to be written.
    pub(crate) changed: Notify,
    /// The session has ended.
    pub(crate) closing: CancellationToken,
}

#[derive(Default)]
struct ViewState {
    inboxes: HashMap<String, VecDeque<InboxEntry>>,
    /// The mailbox of each message that is shown as unread.
    unread: HashMap<RecordId, String>,
    /// The name under which the files are, and what the file about the team says.
    shown: Option<(TeamName, Value)>,
    /// When each member was seen first, and its first prompt.
    joined: HashMap<String, (i64, String)>,
    /// True if another session has files of that name.
    is_taken: bool,
    tasks: Option<TeamTaskViews>,
}

impl ViewState {
    fn remove_tasks(&mut self) {
        self.tasks.take().iter().for_each(TeamTaskViews::remove);
    }
}

impl TeamView {
    pub(crate) fn new(teams: PathBuf) -> Self {
        Self {
            teams,
            state: Mutex::default(),
            changed: Notify::new(),
            closing: CancellationToken::new(),
        }
    }

    pub(crate) fn files(&self, team: &TeamName) -> TeamFiles {
        TeamFiles::new(&self.teams, team)
    }

    /// A message was accepted for a member or the lead.
    pub(crate) fn note(&self, to: &str, mail: &Mail, now: Timestamp) {
        let team = mail.team.clone().unwrap_or_default();
        let entry = InboxEntry {
            from: mail.from.clone(),
            text: mail.text.clone(),
            summary: team.summary,
            timestamp: now.to_string(),
            color: team.color,
            read: false,
            msg_id: mail.id,
        };
        let mut state = self.state.lock();
        let inbox = state.inboxes.entry(to.to_owned()).or_default();
        inbox.push_back(entry);
        let surplus = (inbox.len() > MOST_SHOWN).then(|| inbox.pop_front()).flatten();
        if let Some(entry) = surplus {
            state.unread.remove(&entry.msg_id);
        }
        state.unread.insert(mail.id, to.to_owned());
        drop(state);
        self.changed.notify_one();
    }

    /// A recorded turn contains these messages.
    pub(crate) fn note_read(&self, ids: &[RecordId]) {
        let mut state = self.state.lock();
        let mut has_changed = false;
        for id in ids {
            let Some(to) = state.unread.remove(id) else { continue };
            let inbox = state.inboxes.get_mut(&to).into_iter().flatten();
            inbox.filter(|entry| entry.msg_id == *id).for_each(|entry| entry.read = true);
            has_changed = true;
        }
        drop(state);
        if has_changed {
            self.changed.notify_one();
        }
    }

    /// The messages that the mailbox of an agent shows.
    pub(crate) fn inbox(&self, of: &str) -> Vec<InboxEntry> {
        self.state.lock().inboxes.get(of).into_iter().flatten().cloned().collect()
    }

    /// When a member was seen first, and its first prompt.
    pub(crate) fn joined(&self, name: &str, now: Timestamp, prompt: &str) -> (i64, String) {
        let mut state = self.state.lock();
        let first = || (now.as_millisecond(), prompt.to_owned());
        state.joined.entry(name.to_owned()).or_insert_with(first).clone()
    }

    /// Writes the file about the team; `false` if another session that is at work has one of that name.
    pub(crate) fn write_config(&self, team: &TeamName, config: &Value) -> std::io::Result<bool> {
        let files = self.files(team);
        let mut state = self.state.lock();
        let shown = state.shown.as_ref();
        if shown.is_some_and(|(name, value)| name == team && value == config) {
            return Ok(!state.is_taken);
        }
        let is_new = shown.is_none_or(|(name, _)| name != team);
        if let Some((earlier, _)) = state.shown.take().filter(|(name, _)| name != team)
            && !state.is_taken
        {
            self.files(&earlier).remove();
            state.remove_tasks();
        }
        if is_new {
            state.is_taken = files.read_config().is_some_and(|other| is_others(&other, config));
        }
        state.shown = Some((team.clone(), config.clone()));
        if state.is_taken {
            tracing::warn!(%team, "another session has files of a team of this name: this one is not shown");
            return Ok(false);
        }
        if let Err(error) = files.write_config(config) {
            state.shown = None;
            return Err(error);
        }
        Ok(true)
    }

    /// Writes the tasks of the team that have changed.
    pub(crate) fn write_tasks(
        &self,
        team: &TeamName,
        lists: &Path,
        tasks: &[Task],
    ) -> std::io::Result<()> {
        let mut state = self.state.lock();
        let views = state.tasks.get_or_insert_with(|| TeamTaskViews::new(lists, team));
        views.show(tasks)
    }

    /// Removes the files: the session ends in order.
    pub(crate) fn close(&self) {
        self.closing.cancel();
        let mut state = self.state.lock();
        if let Some((team, _)) = state.shown.take()
            && !state.is_taken
        {
            self.files(&team).remove();
            state.remove_tasks();
        }
    }
}

/// Tells whether a file about a team is that of another session whose process is there. The session of a process has
/// another id after `/clear`.
fn is_others(config: &Value, own: &Value) -> bool {
    let is_other = |key: &str| config[key] != own[key];
    let pid = config["leadProcess"]["pid"].as_u64();
    let is_alive = pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists());
    is_alive && is_other("leadProcess") && is_other("leadSessionId")
}
