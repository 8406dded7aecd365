//! The judgement of a command line that no ask or deny rule matches: every command in it must be allowed on its own.

use std::path::{Path, PathBuf};

use crate::decide::Decision;
use crate::mode::Mode;
use crate::paths::normalize;
use crate::protected;
use crate::query::{Query, RuleMatch};
use crate::reason::Reason;
use crate::rule::RuleKind;
use crate::scene::Scene;
use crate::shell::{self, Analysis, Command, Part, Redirection, edits_inside, is_free, is_sink};

/// The reason that one command, or one file that it opens, is permitted.
#[derive(Clone, Copy)]
pub(crate) enum Grant<'a> {
    ReadOnly,
    Mode,
    Rule(RuleMatch<'a>),
}

/// Whether every command only reads readable paths, and writes nothing.
pub(crate) fn is_read_only(analysis: &Analysis, scene: Scene<'_>) -> bool {
    analysis.unclear().is_none()
        && analysis.script().commands.iter().all(|command| {
            is_free(command, scene)
                && command
                    .redirections
                    .iter()
                    .all(|redirection| is_free_file(redirection, command, scene))
        })
}

/// Whether every command only reads, from any path, and writes nothing. Unlike [`is_read_only`], this does not depend
/// on rules.
pub(crate) fn changes_nothing(analysis: &Analysis, scene: Scene<'_>) -> bool {
    analysis.unclear().is_none()
        && analysis.script().commands.iter().all(|command| {
            shell::changes_nothing(command, scene)
                && command.redirections.iter().all(|redirection| {
                    !redirection.writes || redirection.target.value.as_deref().is_some_and(is_sink)
                })
        })
}

/// Judges a command line after deny rules, plan mode, ask rules and the checks that always ask.
pub(crate) fn judge(query: &Query<'_>, analysis: &Analysis) -> Decision {
    if query.is_read_only_command() {
        return Decision::allow(Reason::ReadOnlyCommand);
    }
    if let Some(path) = protected_write(analysis, query.scene) {
        return Decision::ask(Reason::ProtectedPath(path));
    }
    if let Some(hit) = query.given_by() {
        return Decision::by_rule(RuleKind::Allow, hit);
    }
    if let Some(why) = analysis.unclear() {
        return Decision::ask(Reason::Unclear { command: analysis.text().to_owned(), why });
    }
    let mut by_mode = false;
    let mut by_rule = None;
    for part in analysis.parts() {
        match grants(query, &part, &analysis.script().commands) {
            Ok(grants) => {
                for grant in grants {
                    match grant {
                        Grant::ReadOnly => {}
                        Grant::Mode => by_mode = true,
                        Grant::Rule(hit) => {
                            by_rule.get_or_insert(hit);
                        }
                    }
                }
            }
            Err(reason) => return Decision::ask(reason),
        }
    }
    match by_rule {
        Some(hit) => Decision::by_rule(RuleKind::Allow, hit),
        None if by_mode => Decision::by_mode(query.policy.mode),
        None => Decision::allow(Reason::ReadOnlyCommand),
    }
}

/// A protected path that the command line may write, as far as its text and its patterns tell.
fn protected_write(analysis: &Analysis, scene: Scene<'_>) -> Option<PathBuf> {
    analysis.mentions().writes().iter().find_map(|shape| match shape.text() {
        Some(path) => {
            let path = PathBuf::from(path);
            scene.is_protected(&path).then(|| normalize(&path))
        }
        None => match scene.matches(shape) {
            Some(paths) => paths.into_iter().find(|path| scene.is_protected(path)),
            None => protected::may_be(shape),
        },
    })
}

/// The grants of a command and each of its redirections, or the reason of a refusal.
pub(crate) fn grants<'a>(
    query: &Query<'a>,
    part: &Part<'_>,
    line: &[Command],
) -> Result<Vec<Grant<'a>>, Reason> {
    let command = part.command;
    let mut grants = Vec::with_capacity(1 + command.redirections.len());
    grants.push(if is_free(command, query.scene) {
        Grant::ReadOnly
    } else if query.policy.mode == Mode::AcceptEdits && edits_inside(command, line, query.scene) {
        Grant::Mode
    } else {
        let hit = query.part_given_by(part);
        Grant::Rule(hit.ok_or_else(|| Reason::Command(part.text().to_owned()))?)
    });
    for redirection in &command.redirections {
        grants.push(file_grant(query, redirection, command)?);
    }
    Ok(grants)
}

/// The grant for a file that the shell opens, or the reason of a refusal.
fn file_grant<'a>(
    query: &Query<'a>,
    redirection: &Redirection,
    command: &Command,
) -> Result<Grant<'a>, Reason> {
    if is_free_file(redirection, command, query.scene) {
        return Ok(Grant::ReadOnly);
    }
    let refused = |path: &Path| {
        let path = normalize(path);
        if redirection.writes { Reason::Write(path) } else { Reason::ReadOutside(path) }
    };
    let mut given = None;
    let targets = targets(redirection, command);
    for path in &targets {
        let accepted = redirection.writes
            && query.policy.mode == Mode::AcceptEdits
            && query.scene.is_inside(path)
            && !query.scene.is_protected(path);
        let grant = if accepted {
            Grant::Mode
        } else {
            let hit = query.file_given_by(path, redirection.writes);
            Grant::Rule(hit.ok_or_else(|| refused(path))?)
        };
        given.get_or_insert(grant);
    }
    given.ok_or_else(|| refused(Path::new(&redirection.target.written)))
}

/// Whether every file that the shell opens for a command needs no permission or has it.
pub(crate) fn are_files_given(
    command: &Command,
    scene: Scene<'_>,
    is_given: impl Fn(&Path, &Redirection) -> bool,
) -> bool {
    command.redirections.iter().all(|redirection| {
        let targets = targets(redirection, command);
        is_free_file(redirection, command, scene)
            || (!targets.is_empty() && targets.iter().all(|path| is_given(path, redirection)))
    })
}

/// Whether opening the file needs no permission.
fn is_free_file(redirection: &Redirection, command: &Command, scene: Scene<'_>) -> bool {
    if redirection.target.value.as_deref().is_some_and(is_sink) {
        return true;
    }
    let targets = targets(redirection, command);
    !redirection.writes
        && !targets.is_empty()
        && targets.iter().all(|path| scene.is_open_to_reading(path))
}

/// The files that a redirection may open; empty if its text does not tell.
fn targets(redirection: &Redirection, command: &Command) -> Vec<PathBuf> {
    let Some(target) = redirection.target.value.as_deref() else { return Vec::new() };
    if target.starts_with('/') {
        return vec![PathBuf::from(target)];
    }
    command.places.known().iter().map(|place| place.join(target)).collect()
}
