//! Worktrees that hooks make and remove instead of git.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::reply::Reply;

/// A worktree is needed.
#[derive(Clone, Debug, Serialize)]
pub struct WorktreeCreate<'a> {
    pub name: &'a str,
}

/// The result: the directory of the worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WorktreeVerdict {
    /// There is no hook: git makes it.
    #[default]
    NoHook,
    /// The directory from the first hook that made one.
    Made(PathBuf),
    /// No worktree is made, and git makes none instead.
    Failed(String),
}

impl EventInput for WorktreeCreate<'_> {
    const EVENT: Event = Event::WorktreeCreate;
    type Verdict = WorktreeVerdict;

    fn fold(&self, common: &Common, replies: &[Reply]) -> WorktreeVerdict {
        if replies.is_empty() {
            return WorktreeVerdict::NoHook;
        }
        let failure = |reply: &Reply| {
            let error = reply.error.as_ref().map(|error| reply.with_label(error));
            reply.block().or(error)
        };
        if let Some(reason) = replies.iter().find_map(failure) {
            return WorktreeVerdict::Failed(reason);
        }
        match replies.iter().find_map(printed) {
            Some(path) => usable(&common.cwd.join(path)),
            None => WorktreeVerdict::Failed("the hook named no directory".to_owned()),
        }
    }
}

/// The directory that a hook named: in its JSON, or on the last line of its output.
fn printed(reply: &Reply) -> Option<PathBuf> {
    let named = reply.specific().and_then(|it| it.worktree_path.clone());
    named.or_else(|| {
        let plain = without_colours(reply.plain.as_deref()?);
        let line = plain.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(PathBuf::from(line))
    })
}

/// Accepts a directory unless its path contains `..` or is a symbolic link.
fn usable(path: &Path) -> WorktreeVerdict {
    let shown = path.display();
    if path.components().any(|it| it == Component::ParentDir) {
        return WorktreeVerdict::Failed(format!("the hook's directory {shown} has `..` in it"));
    }
    if path.is_symlink() {
        return WorktreeVerdict::Failed(format!("the hook's directory {shown} is a symbolic link"));
    }
    WorktreeVerdict::Made(path.to_owned())
}

/// The text without escape sequences such as colours.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            plain.push(letter);
        } else if letters.next_if_eq(&'[').is_some() {
            while letters.next().is_some_and(|it| !('\u{40}'..='\u{7e}').contains(&it)) {}
        }
    }
    plain
}

/// A worktree that a hook made is no longer needed.
#[derive(Clone, Debug, Serialize)]
pub struct WorktreeRemove<'a> {
    pub worktree_path: &'a Path,
}

impl EventInput for WorktreeRemove<'_> {
    const EVENT: Event = Event::WorktreeRemove;
    type Verdict = ();

    fn fold(&self, _: &Common, _: &[Reply]) {}
}
