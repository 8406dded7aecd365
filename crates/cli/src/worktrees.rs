//! `centurion worktrees`: what agents that worked apart have left, and what becomes of it.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use centurion_engine::GuardedGit;
use centurion_worktree::merge::{How, Merge, MergeError, Merged};
use centurion_worktree::{Entry, Git, Mended, Record, Report, Standing, Unsaved, Worktrees};
use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};

use crate::output::{Output, printable, without_commands};
use crate::setup::guard;
use crate::surroundings::Surroundings;

/// The most files of a worktree that are listed.
const MOST_FILES: usize = 40;

/// Shows the worktrees of agents, merges what they hold, and clears them away.
#[derive(Debug, Parser)]
#[command(name = "centurion worktrees")]
pub(crate) struct WorktreesArgs {
    #[command(subcommand)]
    action: Option<WorktreesAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum WorktreesAction {
    /// List the worktrees of this repository
    List,
    /// Say what is in one, and whether it would merge here
    Show { name: String },
    /// Print all that differs in one from the commit that it began at
    Diff { name: String },
    /// Bring the work of one into the branch that is checked out here
    Merge(MergeArgs),
    /// Bring back what was saved of an agent's worktree
    Restore {
        /// The id of the agent, as `clean --force` and results say it
        id: String,
    },
    /// Mend what a process left that died; with a name, remove that worktree
    Clean {
        name: Option<String>,
        /// Save what is nowhere else, and remove the worktree then
        #[arg(long, requires = "name")]
        force: bool,
    },
}

#[derive(Debug, Args)]
struct MergeArgs {
    name: String,
    /// As one commit
    #[arg(long, conflicts_with_all = ["rebase", "cherry_pick"])]
    squash: bool,
    /// Each commit again, on top of this branch
    #[arg(long, conflicts_with = "cherry_pick")]
    rebase: bool,
    /// Only these commits
    #[arg(long, value_name = "COMMIT", num_args = 1..)]
    cherry_pick: Vec<String>,
    /// The message of the new commit
    #[arg(long, short)]
    message: Option<String>,
}

impl MergeArgs {
    fn how(&self) -> How {
        match (self.squash, self.rebase, self.cherry_pick.is_empty()) {
            (true, ..) => How::Squash,
            (_, true, _) => How::Rebase,
            (.., false) => How::CherryPick(self.cherry_pick.clone()),
            _ => How::Merge,
        }
    }
}

/// The parts that the commands need.
struct WorktreesContext {
    surroundings: Surroundings,
    worktrees: Worktrees,
    output: Output,
    json: bool,
}

pub(crate) async fn run(args: WorktreesArgs) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::observe()?;
    let found = centurion_tools::InstalledGit::find(&surroundings.env, &surroundings.cwd);
    let program = found.context("there is no git on this machine")?.program().to_owned();
    let runner = Arc::new(GuardedGit::new(guard()?));
    let worktrees = Worktrees::new(Git::new(program, &surroundings.env, runner));
    let desk =
        WorktreesContext { surroundings, worktrees, output: Output::default(), json: args.json };
    match args.action.unwrap_or(WorktreesAction::List) {
        WorktreesAction::List => desk.list().await,
        WorktreesAction::Show { name } => desk.show(&name).await,
        WorktreesAction::Diff { name } => {
            let patch = desk.worktrees.patch(&desk.find(&name).await?, &|_| true).await?;
            // A program gets it as it is.
            if std::io::stdout().is_terminal() {
                let text = without_commands(&String::from_utf8_lossy(&patch));
                desk.output.write(text.as_bytes());
            } else {
                desk.output.write(&patch);
            }
            Ok(())
        }
        WorktreesAction::Merge(merge) => desk.merge(&merge).await,
        WorktreesAction::Restore { id } => desk.restore(&id).await,
        WorktreesAction::Clean { name: Some(name), force } => desk.remove(&name, force).await,
        WorktreesAction::Clean { name: None, .. } => desk.mend().await,
    }?;
    Ok(ExitCode::SUCCESS)
}

impl WorktreesContext {
    fn line(&self, text: &str) {
        self.output.write_text(&format!("{text}\n"));
    }

    async fn entries(&self) -> anyhow::Result<Vec<Entry>> {
        Ok(self.worktrees.list(&self.surroundings.cwd).await?)
    }

    /// The worktree that a name, an agent's id or a branch means.
    async fn find(&self, name: &str) -> anyhow::Result<Entry> {
        let entries = self.entries().await?;
        let names: Vec<String> = entries.iter().map(Entry::name).collect();
        entries.into_iter().find(|entry| entry.is_meant(name)).with_context(|| {
            let help = match &names[..] {
                [] => "there are none here".to_owned(),
                names => names.join(", "),
            };
            format!("there is no worktree `{name}`\nhelp: {help}")
        })
    }

    async fn list(&self) -> anyhow::Result<()> {
        let entries = self.entries().await?;
        if self.json {
            let all: Vec<Value> = entries.iter().map(described).collect();
            self.output.json_line(&all);
            return Ok(());
        }
        if entries.is_empty() {
            self.line("There are no worktrees of agents here.");
        }
        for entry in &entries {
            let task = entry.record.as_ref().map(|it| it.owner.task.as_str()).unwrap_or_default();
            let line = format!("{:<20}  {:<28}  {task}", entry.name(), entry.standing.to_string());
            self.line(&printable(line.trim_end()));
        }
        Ok(())
    }

    async fn show(&self, name: &str) -> anyhow::Result<()> {
        let entry = self.find(name).await?;
        let report = match entry.standing {
            Standing::Kept | Standing::Gone | Standing::Paused { .. } => {
                Some(self.worktrees.report(&self.surroundings.cwd, &entry).await?)
            }
            _ => None,
        };
        if self.json {
            let mut shown = described(&entry);
            shown["report"] = json!(report);
            self.output.json_line(&shown);
            return Ok(());
        }
        self.line(&format!("{}: {}", entry.name(), entry.standing));
        if let Some(record) = &entry.record {
            self.line(&printable(&format!("path:    {}", record.path.display())));
            self.line(&format!("branch:  {}", record.branch));
            self.line(&printable(&format!("task:    {}", record.owner.task)));
            self.line(&format!("base:    {}", record.base));
        }
        if let Some(report) = &report {
            self.show_report(report);
        }
        Ok(())
    }

    fn show_report(&self, report: &Report) {
        self.line(&format!("head:    {}", report.head));
        self.line(&format!("commits: {} ahead, {} behind", report.ahead, report.behind));
        if report.uncommitted > 0 || report.ignored > 0 {
            let (open, ignored) = (report.uncommitted, report.ignored);
            self.line(&format!("files:   {open} not committed, {ignored} that git ignores"));
        }
        for file in report.files.iter().take(MOST_FILES) {
            let lines =
                file.lines.map_or_else(String::new, |(plus, minus)| format!("+{plus} -{minus}"));
            self.line(&printable(&format!("  {lines:<12} {}", file.path)));
        }
        if report.files.len() > MOST_FILES {
            self.line(&format!("  and {} more", report.files.len() - MOST_FILES));
        }
        for merge in &report.merges {
            let text = match &merge.conflicts[..] {
                [] => format!("merges:  with {}", merge.with),
                files => format!("conflicts with {} in {}", merge.with, files.join(", ")),
            };
            self.line(&printable(&text));
        }
        self.show_notes(&report.notes);
    }

    fn show_notes(&self, notes: &[String]) {
        for note in notes {
            self.line(&printable(&format!("note:    {note}")));
        }
    }

    async fn merge(&self, args: &MergeArgs) -> anyhow::Result<()> {
        let entry = self.find(&args.name).await?;
        let task = entry.record.as_ref().map(|it| it.owner.task.clone()).unwrap_or_default();
        let usual = if task.is_empty() { format!("Work of {}", entry.name()) } else { task };
        let message = args.message.as_deref().unwrap_or(&usual);
        let cwd = &self.surroundings.cwd;
        let merged = self.worktrees.merge(cwd, &entry, &Merge::any(&args.how(), message)).await;
        let merged = merged.map_err(|error| match &error {
            MergeError::Conflicts { help, .. } => {
                anyhow!("{} was not merged: {error}\nhelp: {help}", entry.name())
            }
            _ => anyhow!("{} was not merged: {error}", entry.name()),
        })?;
        if self.json {
            let Merged { from, to, commits, notes } = &merged;
            let merged = json!({"from": from, "to": to, "commits": commits, "notes": notes});
            self.output.json_line(&merged);
            return Ok(());
        }
        self.line(&format!("{} commits came over: {} is checked out.", merged.commits, merged.to));
        self.show_notes(&merged.notes);
        self.line(&format!(
            "help: centurion worktrees clean {} removes the worktree",
            entry.name()
        ));
        Ok(())
    }

    async fn restore(&self, id: &str) -> anyhow::Result<()> {
        let record = self.worktrees.restore(&self.surroundings.cwd, id).await?;
        if self.json {
            self.output.json_line(&record);
        } else {
            self.line(&printable(&format!(
                "{} is back, on {}.",
                record.path.display(),
                record.branch
            )));
        }
        Ok(())
    }

    async fn remove(&self, name: &str, force: bool) -> anyhow::Result<()> {
        let entry = self.find(name).await?;
        let unsaved = if force { Unsaved::IsSaved } else { Unsaved::Stays };
        let cwd = &self.surroundings.cwd;
        let trash = self.worktrees.let_go(cwd, &entry, unsaved).await;
        trash.with_context(|| format!("{} stays", entry.name()))?.delete();
        self.line(&format!("{} was removed.", entry.name()));
        if force {
            // That of a session is saved under its own name.
            let name = entry.name();
            let id = entry.record.and_then(|it| it.owner.agent).unwrap_or(name);
            self.line(&format!("help: centurion worktrees restore {id} brings it back"));
        }
        Ok(())
    }

    async fn mend(&self) -> anyhow::Result<()> {
        let cwd = &self.surroundings.cwd;
        let mended = self.worktrees.mend(cwd).await?;
        if mended.is_empty() {
            self.line("Everything is in order.");
        }
        let mut has_failed = false;
        for (name, ended) in &mended {
            let text = match ended {
                Ok(Mended::Removed(trash)) => {
                    trash.clone().delete();
                    format!("{name}: nothing was done in it; it was removed")
                }
                Ok(Mended::Kept(report)) => format!(
                    "{name}: its work is on {} now ({} commits, {} files not committed)",
                    report.branch, report.ahead, report.uncommitted
                ),
                Ok(Mended::Merge(merge)) => format!("{name}: {merge}"),
                Err(error) => {
                    has_failed = true;
                    format!("{name}: {error}")
                }
            };
            self.line(&printable(&text));
            if let Ok(Mended::Kept(report)) = ended {
                self.show_notes(&report.notes);
            }
        }
        self.worktrees.trash(&self.worktrees.checkout(cwd).await?).delete();
        if has_failed {
            bail!("not everything could be mended; nothing was removed that holds work");
        }
        Ok(())
    }
}

fn described(entry: &Entry) -> Value {
    let record: Option<&Record> = entry.record.as_ref();
    json!({
        "name": entry.name(),
        "standing": entry.standing.to_string(),
        "path": record.map(|it| &it.path),
        "branch": record.map(|it| &it.branch),
        "base": record.map(|it| &it.base),
        "agent": record.and_then(|it| it.owner.agent.as_ref()),
        "session": record.and_then(|it| it.owner.session.as_ref()),
        "task": record.map(|it| &it.owner.task),
    })
}
