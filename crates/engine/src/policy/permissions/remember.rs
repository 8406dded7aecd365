//! Answers that hold for longer than one call: what they change, and where they are kept.

use std::path::PathBuf;

use centurion_hooks::{PermissionUpdate, RuleBehavior, RuleValue, UpdateDestination};
use centurion_permissions::{Mode, RuleKind, RuleLevel};
use thiserror::Error;

use crate::definition::bypass::BypassRefused;
use crate::policy::rule_text::RuleTextError;

/// An answer that holds for longer than one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remember {
    pub what: SavedChange,
    pub destination: Destination,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedChange {
    Rules {
        change: RuleChange,
        kind: RuleKind,
        texts: Vec<String>,
    },
    Directories(Vec<PathBuf>),
    /// Directories in which the agent works no longer.
    LostDirectories(Vec<PathBuf>),
    Mode(Mode),
}

/// The reason why an answer is not kept for longer than the session.
#[derive(Debug, Error)]
pub enum KeepError {
    #[error("there is no such settings file")]
    NoFile,
    #[error("it holds a credential, which no file of ours may hold")]
    Credential,
    #[error(transparent)]
    Write(Box<dyn std::error::Error + Send + Sync>),
}

/// An answer that does not hold, or not for as long as it was meant to.
#[derive(Debug, Error)]
pub(crate) enum RememberError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    UnreadRules(Vec<RuleTextError>),
    #[error(
        "agents still work in {}: it is part of another directory that they work in; deny rules keep them out",
        .0.display()
    )]
    PartOfDirectory(PathBuf),
    #[error(transparent)]
    Mode(#[from] BypassRefused),
    #[error(transparent)]
    Keep(#[from] KeepError),
}

/// The effect of rules on rules of the same kind in the same store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleChange {
    /// They come along with the others.
    Add,
    /// They stand in the place of all others.
    Replace,
    /// They are no longer among them.
    Remove,
}

/// The store of an answer.
pub type Destination = UpdateDestination;

impl Remember {
    /// Reads a change as hooks and hosts send it; `None` for one that this program does not make.
    pub fn from_update(update: PermissionUpdate) -> Option<Self> {
        let (what, destination) = match update {
            PermissionUpdate::AddRules { rules, behavior, destination } => {
                (SavedChange::rules(RuleChange::Add, behavior, rules), destination)
            }
            PermissionUpdate::ReplaceRules { rules, behavior, destination } => {
                (SavedChange::rules(RuleChange::Replace, behavior, rules), destination)
            }
            PermissionUpdate::RemoveRules { rules, behavior, destination } => {
                (SavedChange::rules(RuleChange::Remove, behavior, rules), destination)
            }
            PermissionUpdate::AddDirectories { directories, destination } => {
                (SavedChange::Directories(directories), destination)
            }
            PermissionUpdate::RemoveDirectories { directories, destination } => {
                (SavedChange::LostDirectories(directories), destination)
            }
            PermissionUpdate::SetMode { mode, destination } => {
                let Ok(mode) = mode.parse() else {
                    tracing::warn!(mode, "there is no such permission mode");
                    return None;
                };
                (SavedChange::Mode(mode), destination)
            }
        };
        Some(Self { what, destination })
    }
}

impl SavedChange {
    fn rules(change: RuleChange, behavior: RuleBehavior, rules: Vec<RuleValue>) -> Self {
        let kind = match behavior {
            RuleBehavior::Allow => RuleKind::Allow,
            RuleBehavior::Ask => RuleKind::Ask,
            RuleBehavior::Deny => RuleKind::Deny,
        };
        Self::Rules { change, kind, texts: rules.into_iter().map(rule_text).collect() }
    }
}

/// The level of the rules that are kept in a place.
pub(super) fn level(destination: Destination) -> RuleLevel {
    match destination {
        Destination::Session => RuleLevel::Session,
        Destination::LocalSettings => RuleLevel::Local,
        Destination::ProjectSettings => RuleLevel::Project,
        Destination::UserSettings => RuleLevel::User,
    }
}

fn rule_text(rule: RuleValue) -> String {
    match rule.rule_content {
        Some(content) => format!("{}({content})", rule.tool_name),
        None => rule.tool_name,
    }
}
