//! The `Worktrees` tool: an agent looks at what agents that worked apart have left, and brings it over.
//!
//! A merge changes files as an edit does, and is judged so: what a rule denies to edit is not merged, and what later
//! steps would run or obey is merged only if a person said yes to a call that names those files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_permissions::{Access, Call, Decision, Reason, Verdict};
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput, resolve};
use centurion_worktree::merge::{FileRefusal, How, Merge};
use centurion_worktree::{Entry, Standing, Unsaved, Worktrees};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agent::Agent;
use crate::agent::isolation::WorktreeEnd;
use crate::delegate::outcome::{counted, worktree_work};

/// Shows the work that agents with `isolation: worktree` left in this repository, and merges it into the branch that is
/// checked out here. A merge succeeds, or changes nothing and names the conflicts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorktreesInput {
    action: WorktreeAction,
    /// The worktree: its name, its branch, or the id of its agent. For all but `list`.
    name: Option<String>,
    /// For `merge`: another way than a merge commit.
    how: Option<MergeHow>,
    /// For `cherry-pick`.
    commits: Option<Vec<String>>,
    /// The message of the new commit.
    message: Option<String>,
    /// For `merge`: the protected files that it changes. A person sees them here and decides.
    protected: Option<Vec<PathBuf>>,
}

/// `clean` saves work that exists only there, then removes the worktree; `restore` brings it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WorktreeAction {
    List,
    Show,
    Diff,
    Merge,
    Clean,
    Restore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum MergeHow {
    Squash,
    Rebase,
    CherryPick,
}

impl WorktreeAction {
    fn only_looks(self) -> bool {
        matches!(self, Self::List | Self::Show | Self::Diff)
    }
}

pub(crate) struct WorktreesTool(pub(crate) Arc<Agent>);

impl Tool for WorktreesTool {
    type Input = WorktreesInput;

    const NAME: &'static str = "Worktrees";

    fn is_read_only(&self, input: &WorktreesInput) -> bool {
        input.action.only_looks()
    }

    fn access(&self, input: &WorktreesInput, context: &ToolContext) -> Access {
        if input.action.only_looks() {
            return Access::Session;
        }
        // A person is asked about the files that are named, and not about the directory alone.
        let root = context.workspace.root();
        match input.protected.as_deref().and_then(<[PathBuf]>::first) {
            Some(file) => Access::Write(resolve(&root.join(file))),
            None => Access::Write(root),
        }
    }

    async fn run(
        &self,
        input: WorktreesInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let worktrees = shared.delegation.builder.isolator.worktrees();
        let worktrees = worktrees.ok_or_else(|| ToolError::failed("there is no git here"))?;
        let desk =
            WorktreeDesk { worktrees, agent: &self.0, context, root: context.workspace.root() };
        let text = match input.action {
            WorktreeAction::List => desk.list().await,
            WorktreeAction::Show => desk.show(&desk.find(&input).await?).await,
            WorktreeAction::Diff => desk.diff(&desk.find(&input).await?).await,
            WorktreeAction::Merge => desk.merge(&desk.find_own(&input).await?, &input).await,
            WorktreeAction::Clean => desk.clean(&desk.find_own(&input).await?).await,
            WorktreeAction::Restore => desk.restore(named(&input)?).await,
        }?;
        Ok(ToolOutput::text(text.clone()).with_data(json!({"message": text})))
    }
}

fn named(input: &WorktreesInput) -> Result<&str, ToolError> {
    let missing = || ToolError::Input("`name` is missing: `list` says which there are".to_owned());
    input.name.as_deref().ok_or_else(missing)
}

fn failed(error: impl std::fmt::Display) -> ToolError {
    ToolError::failed(error.to_string())
}

/// The parts that the actions need.
struct WorktreeDesk<'a> {
    worktrees: &'a Worktrees,
    agent: &'a Agent,
    context: &'a ToolContext,
    /// The directory of the agent.
    root: PathBuf,
}

impl WorktreeDesk<'_> {
    async fn list(&self) -> Result<String, ToolError> {
        let entries = self.worktrees.list(&self.root).await.map_err(failed)?;
        if entries.is_empty() {
            return Ok("There are no worktrees of agents here.".to_owned());
        }
        let mut text = String::new();
        for entry in &entries {
            let task = entry.record.as_ref().map(|it| it.owner.task.as_str()).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {}. {task}", entry.name(), entry.standing);
        }
        Ok(text)
    }

    async fn find(&self, input: &WorktreesInput) -> Result<Entry, ToolError> {
        let name = named(input)?;
        let entries = self.worktrees.list(&self.root).await.map_err(failed)?;
        let names: Vec<String> = entries.iter().map(Entry::name).collect();
        entries.into_iter().find(|entry| entry.is_meant(name)).ok_or_else(|| {
            ToolError::failed(format!(
                "there is no worktree `{name}`; there are: {}",
                names.join(", ")
            ))
        })
    }

    /// The same for one that the agent may change: one that works apart changes what its own agents left, since all
    /// else belongs to the checkout that it is kept out of.
    async fn find_own(&self, input: &WorktreesInput) -> Result<Entry, ToolError> {
        let entry = self.find(input).await?;
        self.check_own(entry.record.as_ref().map(|it| it.caller.as_path()))?;
        Ok(entry)
    }

    /// Checks that a worktree was made for the checkout of an agent that works apart.
    fn check_own(&self, made_for: Option<&Path>) -> Result<(), ToolError> {
        let Some(apart) = &self.agent.isolation else { return Ok(()) };
        if made_for.is_some_and(|caller| apart.places.root == *caller) {
            return Ok(());
        }
        Err(ToolError::failed(
            "an agent that works apart changes only the worktrees that agents of its own left: `show` names the \
             commit of this one, which `git merge` brings over",
        ))
    }

    async fn show(&self, entry: &Entry) -> Result<String, ToolError> {
        if !matches!(entry.standing, Standing::Kept | Standing::Gone) {
            return Ok(format!("{}: {}.", entry.name(), entry.standing));
        }
        let report = self.worktrees.report(&self.root, entry).await.map_err(failed)?;
        let (path, branch) = (report.path.display().to_string(), report.branch.clone());
        let work = worktree_work(&WorktreeEnd::Kept { report: Box::new(report) });
        Ok(format!("{path}, on {branch}. {work}"))
    }

    async fn diff(&self, entry: &Entry) -> Result<String, ToolError> {
        let patch = self.worktrees.diff(entry, &|path| self.may_read(path)).await;
        let patch = patch.map_err(failed)?;
        Ok(if patch.is_empty() { "Nothing differs.".to_owned() } else { patch })
    }

    async fn merge(&self, entry: &Entry, input: &WorktreesInput) -> Result<String, ToolError> {
        if let Some(others) = self.agent.sharers().filter(|_| !self.context.is_approved) {
            return Err(ToolError::failed(format!(
                "others work in this checkout now ({others}), and a merge changes their files: wait for their end"
            )));
        }
        let how = match input.how {
            None => How::Merge,
            Some(MergeHow::Squash) => How::Squash,
            Some(MergeHow::Rebase) => How::Rebase,
            Some(MergeHow::CherryPick) => match input.commits.clone() {
                Some(commits) if !commits.is_empty() => How::CherryPick(commits),
                _ => return Err(ToolError::Input("`commits` says which to pick".to_owned())),
            },
        };
        let task = entry.record.as_ref().map(|it| it.owner.task.clone()).unwrap_or_default();
        let usual = if task.is_empty() { format!("Work of {}", entry.name()) } else { task };
        let message = input.message.as_deref().unwrap_or(&usual);
        let top = self.worktrees.checkout(&self.root).await.map_err(failed)?.top;
        let named = input.protected.as_deref().unwrap_or_default();
        let named: Vec<PathBuf> = named.iter().map(|file| self.root.join(file)).collect();
        let check = |files: &[PathBuf]| self.may_change(&top, files, &named);
        let merge = Merge { how: &how, message, check: &check };
        let merged = self.worktrees.merge(&self.root, entry, &merge).await.map_err(failed)?;
        let notes = merged.notes.iter().map(|note| format!(" Note: {note}."));
        Ok(format!(
            "{} came over; {} is checked out now. Read changed files again before you edit them.{}",
            counted(merged.commits, "commit"),
            merged.to.get(..12).unwrap_or(&merged.to),
            notes.collect::<String>()
        ))
    }

    /// Tells whether the agent may change these files of its checkout: as by this tool, and by those that edit and write.
    /// What a person would be asked about must be among those that were named to one.
    fn may_change(
        &self,
        top: &Path,
        files: &[PathBuf],
        named: &[PathBuf],
    ) -> Result<(), FileRefusal> {
        let mut unnamed: Vec<&PathBuf> = Vec::new();
        let mut first = None;
        for file in files {
            let path = top.join(file);
            let access = Access::Write(path.clone());
            for tool in [WorktreesTool::NAME, "Edit", "Write"] {
                let Decision { verdict, reason, .. } = self.judge(tool, &access);
                let is_guarded = matches!(reason, Reason::ProtectedPath(_) | Reason::Rule { .. });
                let is_fine = match verdict {
                    Verdict::Allow => true,
                    Verdict::Ask if is_guarded => self.context.is_approved && named.contains(&path),
                    // A call that no rule decides is allowed as this tool is.
                    Verdict::Ask => tool != WorktreesTool::NAME || self.context.is_approved,
                    Verdict::Deny => {
                        matches!(reason, Reason::NotAsked(_)) && tool != WorktreesTool::NAME
                    }
                };
                if is_fine {
                    continue;
                }
                let refusal = FileRefusal { file: file.clone(), reason: reason.to_string() };
                if verdict != Verdict::Ask || !is_guarded {
                    return Err(refusal);
                }
                if !unnamed.contains(&file) {
                    unnamed.push(file);
                }
                first.get_or_insert(refusal);
            }
        }
        let Some(mut refusal) = first else { return Ok(()) };
        let files = json!(unnamed);
        let FileRefusal { reason, .. } = &mut refusal;
        // Writing to a string cannot fail.
        let _ = write!(reason, "; `protected`: {files} has a person decide about them");
        Err(refusal)
    }

    /// Tells whether the agent may read a file without being asked about it.
    fn may_read(&self, path: &Path) -> bool {
        let Decision { verdict, reason, .. } = self.judge("Read", &Access::Read(resolve(path)));
        verdict == Verdict::Allow
            || (verdict == Verdict::Ask && !matches!(reason, Reason::Rule { .. }))
    }

    fn judge(&self, tool: &str, access: &Access) -> Decision {
        self.agent.permissions.decide(&Call::new(tool, access), self.context.workspace.cwd())
    }

    async fn clean(&self, entry: &Entry) -> Result<String, ToolError> {
        let trash = self.worktrees.let_go(&self.root, entry, Unsaved::IsSaved).await;
        let trash = trash.map_err(failed)?;
        let _ = tokio::task::spawn_blocking(move || trash.delete()).await;
        let agent = entry.record.as_ref().and_then(|it| it.owner.agent.clone());
        let id = agent.unwrap_or_else(|| entry.name());
        Ok(format!("{} is removed; `restore` with the name {id} brings it back.", entry.name()))
    }

    async fn restore(&self, id: &str) -> Result<String, ToolError> {
        if self.agent.isolation.is_some() {
            let caller = self.worktrees.saved_for(&self.root, id).await.map_err(failed)?;
            self.check_own(caller.as_deref())?;
        }
        let record = self.worktrees.restore(&self.root, id).await.map_err(failed)?;
        Ok(format!("{} is back, on {}.", record.path.display(), record.branch))
    }
}
