//! Keeps the files by which other programs see the team, and takes in what they append to a mailbox: once, as words from
//! outside, without any authority.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use centurion_journal::TranscriptFile;
use centurion_protocol::RecordId;
use centurion_sandbox::awaitable;
use centurion_team::{AppendedMessage, LEAD, TeamFiles};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use serde_json::{Value, json};
use tokio::io::unix::AsyncFd;

use crate::agent::shared::Shared;
use crate::agent::task::Task;
use crate::agent::team::Team;
use crate::agent::team_view::TeamView;
use crate::message::mail::{self, Mail};
use crate::tools::send_message::deliver_from_outside;

/// The least time between two writes.
const PAUSE: Duration = Duration::from_millis(100);

/// Keeps the views of a team until the session ends.
pub(super) fn begin(shared: &Arc<Shared>) {
    let Some(team) = shared.delegation.team.clone().filter(|team| team.view().is_some()) else {
        return;
    };
    let session = Arc::downgrade(shared);
    shared.work.spawn(async move {
        if let Some(view) = team.view() {
            tokio::select! {
                biased;
                () = view.closing.cancelled() => {}
                () = keep(&session, &team, view) => {}
            }
        }
    });
}

async fn keep(session: &Weak<Shared>, team: &Team, view: &TeamView) {
    let mut watch = None;
    loop {
        let Some(shared) = session.upgrade() else { return };
        if team.is_shown()
            && let Err(error) = write(&shared, team, view)
        {
            tracing::debug!(%error, "the files of the team could not be written");
            if error.kind() == io::ErrorKind::WouldBlock {
                view.changed.notify_one();
            }
        }
        drop(shared);
        let files = view.files(&team.name());
        watch = watch.filter(|(of, _)| *of == files).or_else(|| {
            let notes = watch_inboxes(&files).ok()?;
            Some((files, notes))
        });
        tokio::time::sleep(PAUSE).await;
        tokio::select! {
            () = view.changed.notified() => {}
            () = appended(watch.as_ref().map(|(_, notes)| notes)) => {}
        }
    }
}

/// Has the kernel take note of changes of mailboxes.
fn watch_inboxes(files: &TeamFiles) -> io::Result<AsyncFd<OwnedFd>> {
    let notes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let events = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
    inotify::add_watch(&notes, files.inboxes(), events)?;
    awaitable(notes)
}

/// Waits until another program has written a mailbox, as far as that can be seen.
async fn appended(notes: Option<&AsyncFd<OwnedFd>>) {
    let Some(notes) = notes else { return std::future::pending().await };
    match notes.readable().await {
        Ok(mut ready) => {
            let mut space = [0_u8; 4096];
            while rustix::io::read(notes.get_ref(), &mut space).is_ok_and(|count| count > 0) {}
            ready.clear_ready();
        }
        Err(_) => std::future::pending().await,
    }
}

/// Writes what has changed, and takes in what was appended.
fn write(shared: &Arc<Shared>, team: &Team, view: &TeamView) -> io::Result<()> {
    let name = team.name();
    if !view.write_config(&name, &config(shared, team, view))? {
        return Ok(());
    }
    let mut late = None;
    let list = shared.delegation.task_list();
    if let Some((lists, tasks)) = list.as_ref().map(|tasks| tasks.all()) {
        late = view.write_tasks(&name, lists, &tasks).err();
    }
    let files = view.files(&name);
    let members = team.members();
    let names = members.iter().map(|task| (task.spec.name.clone().unwrap_or_default(), Some(task)));
    for (name, task) in std::iter::once((LEAD.to_owned(), None)).chain(names) {
        match files.exchange(&name, &view.inbox(&name)) {
            Ok(messages) => take_in(shared, task, messages),
            Err(error) => late = Some(error),
        }
    }
    late.map_or(Ok(()), Err)
}

/// Puts messages of other programs before an agent, but for those that it has.
fn take_in(shared: &Arc<Shared>, to: Option<&Arc<Task>>, messages: Vec<AppendedMessage>) {
    if messages.is_empty() {
        return;
    }
    let transcript = match to {
        Some(task) => task.transcript.clone(),
        None => shared.delegation.builder.files.place.transcript(),
    };
    let known: HashSet<RecordId> = TranscriptFile::open_shared(&transcript)
        .and_then(|mut file| file.read())
        .map(|text| mail::accepted(&text).into_iter().collect())
        .unwrap_or_default();
    for AppendedMessage { id, from, text } in messages {
        if known.contains(&id) {
            continue;
        }
        let from = format!("Another program, in the name of {from:?},");
        let mail = Mail { id, from, text, team: None };
        if let Err(error) = deliver_from_outside(shared, to, &mail) {
            tracing::warn!(%error, "a message of another program could not be delivered");
        }
    }
}

/// The file about the team.
fn config(shared: &Shared, team: &Team, view: &TeamView) -> Value {
    let (now, name) = (shared.world.now(), team.name());
    let (created, _) = view.joined(LEAD, now, "");
    let mut members = vec![json!({
        "agentId": format!("{LEAD}@{name}"),
        "name": LEAD,
        "agentType": LEAD,
        "joinedAt": created,
        "tmuxPaneId": "leader",
        "subscriptions": [],
        "cwd": shared.delegation.builder.first_stamp.cwd,
        "backendType": "in-process",
    })];
    for task in team.members() {
        let spec = &task.spec;
        let member = spec.name.clone().unwrap_or_default();
        let (joined, prompt) = view.joined(&member, now, &task.run().prompt);
        let processes = shared.delegation.member_processes.as_ref();
        let pane = processes.and_then(|it| it.place(&task.id)).and_then(|place| place.pane);
        members.push(json!({
            "agentId": format!("{member}@{name}"),
            "name": member,
            "color": spec.color,
            "joinedAt": joined,
            "tmuxPaneId": pane.map_or_else(|| task.back_end().to_owned(), |pane| pane.id),
            "subscriptions": [],
            "agentType": spec.agent_type,
            "model": spec.model,
            "prompt": prompt,
            "planModeRequired": spec.team.as_ref().is_some_and(|team| team.must_plan),
            "cwd": spec.cwd,
            "backendType": task.back_end(),
            "isActive": task.is_running(),
        }));
    }
    let mut config = json!({
        "name": name,
        "createdAt": created,
        "leadAgentId": format!("{LEAD}@{name}"),
        "leadSessionId": shared.id(),
        "leadProcess": {"pid": std::process::id()},
        "members": members,
    });
    if let Some(description) = team.description() {
        config["description"] = json!(description);
    }
    config
}
