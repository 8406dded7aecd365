//! `centurion tasks`: the task lists that agents share, for people.

use std::process::ExitCode;

use anyhow::anyhow;
use centurion_team::{ListName, LogEntry, Status, Task, TaskChange, TaskList, TaskNumber};
use clap::{Parser, Subcommand};
use serde_json::{Value, json};

use crate::output::{Output, printable};
use crate::surroundings::Surroundings;

/// Shows the task lists that agents share.
#[derive(Debug, Parser)]
#[command(name = "centurion tasks")]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    action: Option<TasksAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum TasksAction {
    /// Name the lists that there are, the one that changed last first
    List,
    /// Print the tasks of a list, or one of them with its history
    Show {
        /// The list: the id of its session, or how that begins
        list: String,
        number: Option<TaskNumber>,
    },
}

/// The parts that the commands need.
struct TasksContext {
    surroundings: Surroundings,
    output: Output,
    json: bool,
}

pub(crate) fn run(args: &TasksArgs) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::observe()?;
    let desk = TasksContext { surroundings, output: Output::default(), json: args.json };
    match &args.action {
        None | Some(TasksAction::List) => desk.list()?,
        Some(TasksAction::Show { list, number: None }) => desk.show(list)?,
        Some(TasksAction::Show { list, number: Some(number) }) => desk.show_one(list, *number)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl TasksContext {
    fn line(&self, text: &str) {
        self.output.write_text(&format!("{}\n", printable(text)));
    }

    fn open(&self, name: &ListName) -> anyhow::Result<TaskList> {
        Ok(TaskList::open_existing(&self.surroundings.dirs.task_lists_dir(), name)?)
    }

    fn names(&self) -> Vec<ListName> {
        TaskList::names(&self.surroundings.dirs.task_lists_dir())
    }

    /// The list whose name is this, or alone begins with it.
    fn find(&self, asked: &str) -> anyhow::Result<TaskList> {
        let names = self.names();
        let mut meant = names.iter().filter(|name| name.as_str().starts_with(asked));
        if let Some(name) = names.iter().find(|name| name.as_str() == asked) {
            return self.open(name);
        }
        match (meant.next(), meant.next()) {
            (Some(name), None) => self.open(name),
            (Some(_), Some(_)) => Err(anyhow!(
                "several task lists begin with `{asked}`\nhelp: write more of the name; `centurion tasks` names them"
            )),
            (None, _) => {
                Err(anyhow!("there is no task list `{asked}`\nhelp: `centurion tasks` names them"))
            }
        }
    }

    fn list(&self) -> anyhow::Result<()> {
        let mut all = Vec::new();
        for name in self.names() {
            let tasks = self.open(&name)?.tasks()?;
            let count = |status| tasks.iter().filter(|task| task.status == status).count();
            let [open, begun, done] =
                [Status::Pending, Status::InProgress, Status::Completed].map(count);
            if self.json {
                let counts = json!({"pending": open, "inProgress": begun, "completed": done});
                all.push(json!({"name": name.as_str(), "tasks": counts}));
            } else {
                let counts = format!("{done} of {} done, {begun} in progress", tasks.len());
                self.line(&format!("{:<36}  {counts}", name.as_str()));
            }
        }
        if self.json {
            self.output.json_line(&all);
        } else if self.names().is_empty() {
            self.line("There are no task lists.");
        }
        Ok(())
    }

    fn show(&self, asked: &str) -> anyhow::Result<()> {
        let mut list = self.find(asked)?;
        let tasks = list.tasks()?;
        if self.json {
            let tasks: Vec<Value> = tasks.iter().map(as_json).collect();
            self.output.json_line(&tasks);
            return Ok(());
        }
        if tasks.is_empty() {
            self.line("The list is empty.");
        }
        for task in &tasks {
            let owner = task.owner.as_ref().map(|owner| format!("  ({owner})")).unwrap_or_default();
            let waits = match &list.open_blockers(task)[..] {
                [] => String::new(),
                blockers => format!("  waits for {}", numbers(blockers)),
            };
            let (id, status) = (task.id, task.status.as_str());
            self.line(&format!("#{id:<4} {status:<11}  {}{owner}{waits}", task.subject));
        }
        Ok(())
    }

    fn show_one(&self, asked: &str, number: TaskNumber) -> anyhow::Result<()> {
        let mut list = self.find(asked)?;
        let history = list.history(number)?;
        let task = list.get(number).ok();
        if self.json {
            let task = task.as_ref().map(as_json);
            self.output.json_line(&json!({"task": task, "history": history}));
            return Ok(());
        }
        match &task {
            None => self.line(&format!("#{number} was deleted")),
            Some(task) => {
                self.line(&format!("#{number} {}: {}", task.status.as_str(), task.subject));
                for line in task.description.lines() {
                    self.line(&format!("    {line}"));
                }
            }
        }
        for entry in &history {
            self.line(&format!("{}  {}", entry.at, told(entry)));
        }
        Ok(())
    }
}

fn numbers(numbers: &[TaskNumber]) -> String {
    numbers.iter().map(|number| format!("#{number}")).collect::<Vec<_>>().join(", ")
}

/// An entry in words.
fn told(entry: &LogEntry) -> String {
    let by = &entry.by;
    match &entry.what {
        TaskChange::Created { .. } => format!("created by {by}"),
        TaskChange::Released { .. } => format!("given back: {by} has ended"),
        TaskChange::Changed { status, owner, .. } => {
            let status = status.map(|status| format!(", {}", status.as_str()));
            let owner = owner.as_ref().map(|owner| match owner.as_str() {
                "" => ", without an owner".to_owned(),
                owner => format!(", owner {owner}"),
            });
            let words = [status, owner].into_iter().flatten().collect::<String>();
            format!("changed by {by}{words}")
        }
    }
}

fn as_json(task: &Task) -> Value {
    let texts = |numbers: &std::collections::BTreeSet<TaskNumber>| -> Vec<String> {
        numbers.iter().map(ToString::to_string).collect()
    };
    json!({
        "id": task.id.to_string(),
        "subject": task.subject,
        "description": task.description,
        "activeForm": task.active_form,
        "owner": task.owner,
        "status": task.status,
        "blocks": texts(&task.blocks),
        "blockedBy": texts(&task.blocked_by),
        "metadata": task.metadata,
    })
}
