//! The team: members with what each does, the tasks that they share with who waits for what, and their mail.

use std::fmt::Write as _;

use anyhow::Context as _;
use centurion_engine::{Handle, MemberStanding, TeamMember, TeamMessage, TeamReport};
use centurion_team::{Status, Task};
use centurion_tui::{Table, TableOf, TableRow, Tone};

use super::{amount, one_line};

/// The beginning of the id of a row that is a member; the id of its agent follows.
const MEMBER: &str = "member ";
/// The most messages that are shown.
const MOST_MAIL: usize = 200;

pub(super) fn table(handle: &Handle) -> anyhow::Result<Table> {
    let team = handle.team().context("this session has no team")?;
    let TeamReport { name, members, tasks, mail } = team;
    let done = tasks.iter().filter(|task| task.status == Status::Completed).count();
    let mut rows = Vec::new();
    if !members.is_empty() {
        rows.push(TableRow::head(format!("Members · lead main · {}", members.len())));
    }
    rows.extend(members.iter().map(member_row));
    if !tasks.is_empty() {
        rows.push(TableRow::head(format!("Tasks {done}/{}", tasks.len())));
    }
    rows.extend(tasks.iter().map(|task| task_row(task, &tasks)));
    if !mail.is_empty() {
        rows.push(TableRow::head("Mail"));
    }
    let mail = mail.iter().take(MOST_MAIL).enumerate();
    rows.extend(mail.map(|(at, message)| message_row(at, message)));
    Ok(Table::new(TableOf::Team, format!("Team · {name}"), rows))
}

fn member_row(member: &TeamMember) -> TableRow {
    let (mark, tone) = match member.standing {
        MemberStanding::AtWork => ("●", Tone::Good),
        MemberStanding::AtRest => ("◌", Tone::Plain),
        MemberStanding::Left => ("■", Tone::Faint),
    };
    let does = match member.standing {
        MemberStanding::AtWork if member.activity.is_empty() => "thinking",
        MemberStanding::AtWork => &member.activity,
        MemberStanding::AtRest => "idle",
        MemberStanding::Left => "has left",
    };
    let asked = if member.is_asked_to_end { " · asked to end" } else { "" };
    let does = one_line(does);
    let text = format!(
        "{} is a {} on {}, {}{asked}\n{does}",
        member.name,
        member.agent_type,
        member.model,
        if member.place.is_empty() { "in this process" } else { member.place },
    );
    let cells = vec![format!("{mark} {does}{asked}"), amount(member.tokens)];
    let hint = member.agent_type.clone();
    let id = format!("{MEMBER}{}", member.id);
    TableRow { cells, hint, tone, ..TableRow::new(id, &*member.name) }.with_detail(&text)
}

fn task_row(task: &Task, all: &[Task]) -> TableRow {
    let (mark, tone) = match task.status {
        Status::Completed => ("✓", Tone::Faint),
        Status::InProgress => ("◼", Tone::Good),
        Status::Pending | Status::Deleted => ("◻", Tone::Plain),
    };
    let is_open = |number: &&centurion_team::TaskNumber| {
        all.iter().any(|other| other.id == **number && other.status != Status::Completed)
    };
    let waits: Vec<String> =
        task.blocked_by.iter().filter(is_open).map(|number| format!("#{number}")).collect();
    let owner = task.owner.clone().unwrap_or_default();
    let who = match (owner.as_str(), waits.is_empty()) {
        (_, false) => format!("after {}", waits.join(", ")),
        ("", true) if task.status == Status::Completed => String::new(),
        ("", true) => "free".to_owned(),
        (owner, true) => owner.to_owned(),
    };
    let mut text = format!("#{} {}\n{}", task.id, task.subject, task.status.as_str());
    // Writing to a string cannot fail.
    if !owner.is_empty() {
        let _ = write!(text, ", {owner}'s");
    }
    let _ = write!(text, "\n\n{}", task.description);
    let name = format!("{mark} #{} {}", task.id, one_line(&task.subject));
    let id = format!("task {}", task.id);
    TableRow { cells: vec![who], tone, ..TableRow::new(id, name) }.with_detail(&text)
}

fn message_row(at: usize, message: &TeamMessage) -> TableRow {
    let read = if message.is_read { "read" } else { "unread" };
    let text = format!(
        "from {} to {}, {} ({read})\n\n{}",
        message.from, message.to, message.at, message.text
    );
    let name = format!("✉ {}→{}", message.from, message.to);
    let tone = if message.is_read { Tone::Faint } else { Tone::Plain };
    let (cells, hint) = (vec![read.to_owned()], one_line(&message.summary));
    TableRow { cells, hint, tone, ..TableRow::new(format!("mail {at}"), name) }.with_detail(&text)
}
