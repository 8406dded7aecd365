//! Changing one field of an agent's file: everything else stays as its author wrote it.
//!
//! The changed text is read again before it counts: a change that would alter another field, or that does not read back as
//! what was meant, is refused.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::markdown::{AGENT_GRAMMAR, AgentScope, read_markdown};
use super::reading::{AGENT_KEYS, Vocabulary};
use crate::Problem;
use crate::files::{self, FileError, Readers};
use crate::frontmatter::{self, Member, Shape, Value, names};
use crate::settings::closest;

/// The largest file of an agent that is changed.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The name by which the text below the frontmatter is changed.
pub const PROMPT_FIELD: &str = "prompt";

/// Fields that are lists of names.
const LISTS: [&str; 4] = ["tools", "disallowedTools", "requiredMcpServers", "skills"];
/// Fields that are written as JSON.
const STRUCTURES: [&str; 2] = ["mcpServers", "hooks"];
/// Fields that are nothing but text.
const TEXTS: [&str; 3] = ["description", "initialPrompt", "criticalSystemReminder_EXPERIMENTAL"];

/// The reason why a field was not changed.
#[derive(Debug, Error)]
pub enum FieldError {
    #[error("agents have no field `{field}`{}", nearest.map(|it| format!("; help: `{it}`")).unwrap_or_default())]
    Unknown { field: String, nearest: Option<&'static str> },
    #[error("`{0}` cannot be taken out: every agent has one")]
    Needed(&'static str),
    #[error("the file has no frontmatter between two lines of `---`: change it in your editor")]
    NoFrontmatter,
    #[error("`{field}` {reason}; nothing was written")]
    Unfit { field: String, reason: String },
    #[error("the file cannot be changed in one place alone: change it in your editor")]
    Entangled,
    #[error("{} is a link; nothing was written", .0.display())]
    Link(PathBuf),
    #[error("{}: {error}; nothing was written", path.display())]
    File { path: PathBuf, error: FileError },
}

/// The text of an agent's file with another value of a field, or without the field. The name of the prompt is
/// [`PROMPT_FIELD`].
pub fn change_field(text: &str, field: &str, value: Option<&str>) -> Result<String, FieldError> {
    if field == PROMPT_FIELD {
        return change_prompt(text, value.unwrap_or_default());
    }
    if !AGENT_KEYS.contains(&field) {
        let nearest = closest(field, AGENT_KEYS);
        return Err(FieldError::Unknown { field: field.to_owned(), nearest });
    }
    if let (None, Some(needed)) = (value, ["name", "description"].iter().find(|it| **it == field)) {
        return Err(FieldError::Needed(needed));
    }
    let wanted = value.map(|value| value_of(field, value)).transpose()?;
    let before = members(text)?;
    let written = wanted
        .clone()
        .map(|value| frontmatter::write(&[Member { key: field.to_owned(), line: 1, value }]));
    let changed = with_lines(text, &before, field, written.as_deref().unwrap_or_default())?;
    let after = members(&changed)?;
    if !is_same_but(field, &before, &after) {
        return Err(FieldError::Entangled);
    }
    let read = last(&after, field).map(Value::to_json);
    if read != wanted.as_ref().map(Value::to_json) {
        return Err(FieldError::Entangled);
    }
    Ok(changed)
}

/// Changes a field in a file. Returns what its author should know about the file as it is then.
pub fn change_field_in(
    path: &Path,
    field: &str,
    value: Option<&str>,
    scope: &AgentScope,
    vocabulary: &Vocabulary,
) -> Result<Vec<Problem>, FieldError> {
    let failed = |error| FieldError::File { path: path.to_owned(), error };
    let directory = path.parent().unwrap_or(Path::new("/"));
    // A link may have come with a repository and lead anywhere.
    if path.is_symlink() || files::leads_out(path, directory) {
        return Err(FieldError::Link(path.to_owned()));
    }
    let _guard = files::lock_directory(directory).map_err(failed)?;
    let text = files::read(path, LARGEST).1.map_err(failed)?.unwrap_or_default();
    let has_returns = text.contains("\r\n");
    let changed = change_field(&text.replace("\r\n", "\n"), field, value)?;
    let read = read_markdown(&changed, path, scope, vocabulary)
        .map_err(|it| FieldError::Unfit { field: field.to_owned(), reason: it.reason })?;
    let problems = read.map(|read| read.problems).unwrap_or_default();
    let names = [format!("`{field}`"), format!("`{field}:")];
    let is_about = |it: &&Problem| names.iter().any(|name| it.message.contains(name));
    if let Some(problem) = problems.iter().find(is_about) {
        let reason = format!("would be wrong: {}", problem.message);
        return Err(FieldError::Unfit { field: field.to_owned(), reason });
    }
    let changed = if has_returns { changed.replace('\n', "\r\n") } else { changed };
    files::replace_for(path, &changed, Readers::Usual).map_err(failed)?;
    Ok(problems)
}

/// The value that a text means for a field.
fn value_of(field: &str, text: &str) -> Result<Value, FieldError> {
    let text = text.trim();
    let unfit =
        |reason: &str| FieldError::Unfit { field: field.to_owned(), reason: reason.to_owned() };
    if LISTS.contains(&field) {
        let (names, _) = names(&Value::plain(1, text)).ok_or_else(|| unfit("must be names"))?;
        let items = names.into_iter().map(|name| Value::quoted(1, name)).collect();
        return Ok(Value::new(1, Shape::List(items)));
    }
    if STRUCTURES.contains(&field) {
        let json = serde_json::from_str(text).map_err(|_| unfit("must be JSON"))?;
        return Ok(Value::of_json(&json, 1));
    }
    if text.is_empty() {
        return Err(unfit("must say something, or be taken out"));
    }
    Ok(if TEXTS.contains(&field) { Value::quoted(1, text) } else { Value::plain(1, text) })
}

/// The fields of a file.
fn members(text: &str) -> Result<Vec<Member>, FieldError> {
    let page = frontmatter::read(text, &AGENT_GRAMMAR).map_err(|_| FieldError::NoFrontmatter)?;
    Ok(page.frontmatter.ok_or(FieldError::NoFrontmatter)?.members)
}

fn last<'m>(members: &'m [Member], field: &str) -> Option<&'m Value> {
    members.iter().rev().find(|it| it.key == field).map(|it| &it.value)
}

/// Tells whether all other fields say the same.
fn is_same_but(field: &str, before: &[Member], after: &[Member]) -> bool {
    let others = |members: &[Member]| -> Vec<(String, serde_json::Value)> {
        let others = members.iter().filter(|it| it.key != field);
        others.map(|it| (it.key.clone(), it.value.to_json())).collect()
    };
    others(before) == others(after)
}

/// The text with other lines in the place of those of a field, or behind all others where it has none.
fn with_lines(
    text: &str,
    members: &[Member],
    field: &str,
    written: &str,
) -> Result<String, FieldError> {
    let document = frontmatter::split(text).map_err(|_| FieldError::NoFrontmatter)?;
    let (front, body) = (document.frontmatter.ok_or(FieldError::NoFrontmatter)?, document.body);
    let lines: Vec<&str> = front.text.split_inclusive('\n').collect();
    let at = |line: usize| line.saturating_sub(front.first_line).min(lines.len());
    let mut kept: Vec<&str> = Vec::new();
    let (mut next, mut is_written) = (0, false);
    for (index, member) in members.iter().enumerate().filter(|(_, it)| it.key == field) {
        let begin = at(member.line);
        let mut end = members.get(index + 1).map_or(lines.len(), |it| at(it.line));
        // Comments and blank lines above the next field are that one's.
        let is_between = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
        while end > begin + 1 && lines.get(end - 1).is_some_and(is_between) {
            end -= 1;
        }
        kept.extend(lines.get(next..begin).unwrap_or_default());
        if !std::mem::replace(&mut is_written, true) {
            kept.push(written);
        }
        next = end;
    }
    kept.extend(lines.get(next..).unwrap_or_default());
    if !is_written {
        kept.push(written);
    }
    let head = text.len() - body.text.len();
    let fences = text.get(..head).unwrap_or_default();
    let begin = fences.find(front.text).filter(|_| !front.text.is_empty());
    let begin = begin.or_else(|| fences.find('\n').map(|at| at + 1)).unwrap_or(head);
    let (before, after) = (
        text.get(..begin).unwrap_or_default(),
        text.get(begin + front.text.len()..).unwrap_or_default(),
    );
    Ok(format!("{before}{}{after}", kept.concat()))
}

/// The text with another prompt below the frontmatter.
fn change_prompt(text: &str, prompt: &str) -> Result<String, FieldError> {
    let document = frontmatter::split(text).map_err(|_| FieldError::NoFrontmatter)?;
    if document.frontmatter.is_none() {
        return Err(FieldError::NoFrontmatter);
    }
    let before = members(text)?;
    let head = text.get(..text.len() - document.body.text.len()).unwrap_or_default();
    let changed = format!("{head}{}\n", prompt.trim());
    if !is_same_but("", &before, &members(&changed)?) {
        return Err(FieldError::Entangled);
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "---\nname: reviewer\n# when\ndescription: >\n  Reviews what\n  was changed\ntools:\n  - Read\n  - Grep\n\n# cheap\nmodel: haiku\n---\n\nYou review.\n";

    #[test]
    fn one_field_is_changed_and_its_neighbours_stay_as_they_were_written() {
        let changed = change_field(FILE, "tools", Some("Read, Bash(git diff *)")).unwrap();
        assert!(changed.contains("tools: [Read, \"Bash(git diff *)\"]\n\n# cheap\n"), "{changed}");
        assert!(changed.contains("description: >\n  Reviews what\n  was changed\n"), "{changed}");
        assert!(changed.ends_with("---\n\nYou review.\n"));
        let changed = change_field(FILE, "description", Some("Looks: twice # and again")).unwrap();
        assert!(
            changed.contains("# when\ndescription: \"Looks: twice # and again\"\ntools:"),
            "{changed}"
        );
        let changed = change_field(FILE, "model", None).unwrap();
        assert!(!changed.contains("model") && changed.contains("# cheap"), "{changed}");
        let changed = change_field(FILE, "maxTurns", Some("4")).unwrap();
        assert!(changed.contains("model: haiku\nmaxTurns: 4\n---\n"), "{changed}");
        let changed = change_field(FILE, PROMPT_FIELD, Some("You look.\n\nTwice.")).unwrap();
        assert!(changed.ends_with("model: haiku\n---\nYou look.\n\nTwice.\n"), "{changed}");
    }

    #[test]
    fn what_cannot_be_changed_says_why() {
        for (text, field, value, expected) in [
            (FILE, "modle", Some("x"), "help: `model`"),
            (FILE, "name", None, "every agent has one"),
            (FILE, "hooks", Some("no json"), "must be JSON"),
            (FILE, "color", Some("  "), "must say something"),
            ("no frontmatter\n", "model", Some("haiku"), "no frontmatter"),
            ("---\nname: x\n", "model", Some("haiku"), "no frontmatter"),
        ] {
            let error = change_field(text, field, value).unwrap_err().to_string();
            assert!(error.contains(expected), "{field}: {error}");
        }
    }

    #[test]
    fn a_value_that_would_be_wrong_and_a_link_are_not_written() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.md");
        std::fs::write(&path, FILE.replace('\n', "\r\n")).unwrap();
        let scope = AgentScope::Own(super::super::AgentSource::Project);
        let change = |path: &Path, field, value| {
            change_field_in(path, field, value, &scope, &Vocabulary::default())
        };
        let error = change(&path, "maxTurns", Some("many")).unwrap_err().to_string();
        assert!(error.contains("maxTurns"), "{error}");
        let error = change(&path, "name", Some("a:b")).unwrap_err().to_string();
        assert!(error.contains("nothing was written"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), FILE.replace('\n', "\r\n"));
        change(&path, "model", Some("opus")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, FILE.replace("haiku", "opus").replace('\n', "\r\n"));
        let link = place.path().join("b.md");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(change(&link, "model", Some("x")), Err(FieldError::Link(_))));
        // A directory of a repository that leads out of it.
        let repository = place.path().join("repository");
        std::fs::create_dir_all(repository.join(".git")).unwrap();
        std::os::unix::fs::symlink(place.path(), repository.join(".claude")).unwrap();
        let led = change(&repository.join(".claude/a.md"), "model", Some("x"));
        assert!(matches!(led, Err(FieldError::Link(_))), "{led:?}");
    }

    proptest! {
        #[test]
        fn whatever_a_file_holds_a_change_reads_back_and_alters_nothing_else(
            front in "(name|description|model|tools|color): ?[a-z\"'\\[\\]{}#,:& -]{0,20}\n( [a-z-]{0,9}\n)?(model|tools|color|- x|#): ?[a-z\"#,> ]{0,12}\n",
            body in "[a-z\n#-]{0,30}",
            value in "\\PC{1,24}",
            field in prop::sample::select(vec!["description", "model", "tools", "color"]),
        ) {
            let text = format!("---\n{front}---\n{body}");
            // Some of these texts have no frontmatter that can be changed.
            if let Ok(changed) = change_field(&text, field, Some(&value)) {
                let (before, after) = (members(&text).unwrap(), members(&changed).unwrap());
                prop_assert!(is_same_but(field, &before, &after));
                prop_assert!(changed.ends_with(&body));
                let wanted = value_of(field, &value).unwrap().to_json();
                prop_assert_eq!(last(&after, field).map(Value::to_json), Some(wanted));
                // A second change of the same kind changes nothing.
                prop_assert_eq!(change_field(&changed, field, Some(&value)).unwrap(), changed);
            }
        }
    }
}
