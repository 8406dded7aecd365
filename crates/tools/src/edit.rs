//! Edit: replaces one piece of a file by another.

mod apply;
mod mismatch;

pub use apply::{Applied, EditError, apply};
pub use mismatch::{Excerpt, Mismatch};

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use centurion_permissions::Access;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::change::{self, Refusal, RequiredView, answer, check_known, editable_text};
use crate::disk::{self, Existing};
use crate::paths::resolve;
use crate::read_state::View;
use crate::text_file::{Encoding, Text, line_count, lines};
use crate::{Tool, ToolContext, ToolError, ToolOutput, Workspace, patch};

/// The lines shown around a change.
const CONTEXT: usize = 3;

/// The bounds of the text that is shown of a changed file.
const MAX_SHOWN_LINES: usize = 40;
const MAX_SHOWN_COLUMNS: usize = 300;

/// Replaces text in a file that has been read with Read. `old_string` must be exactly what the file holds,
/// white space included, without the line numbers that Read shows, and must occur once unless `replace_all`
/// is set. An empty `old_string` creates a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// Absolute path of the file.
    file_path: String,
    /// The text to replace.
    old_string: String,
    /// The text to put there.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

/// The tool that edits files.
#[derive(Debug, Default)]
pub struct Edit;

impl Tool for Edit {
    type Input = EditInput;

    const NAME: &'static str = "Edit";

    fn is_read_only(&self, _: &EditInput) -> bool {
        false
    }

    fn access(&self, input: &EditInput, context: &ToolContext) -> Access {
        Access::Write(resolve(&context.workspace.absolute(&input.file_path)))
    }

    async fn run(&self, input: EditInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let named = context.workspace.absolute(&input.file_path);
        let path = context.target(&named)?;
        let target = path.clone();
        change::alone(context, &path, 0, move |workspace| edit(workspace, &named, &target, &input))
            .await
    }
}

fn edit(
    workspace: &Workspace,
    named: &Path,
    path: &Path,
    input: &EditInput,
) -> Result<ToolOutput, ToolError> {
    let existing = disk::load(path, named)?;
    let Some(existing) = existing.filter(|existing| !existing.bytes.is_empty()) else {
        return create(workspace, named, path, input);
    };
    let text = editable_text(named, &existing)?;
    let known = check_known(workspace, path, &existing, RequiredView::Part)
        .map_err(|refusal| explain(&refusal, named, &text, input))?;
    let applied = apply(&text.content, &input.old_string, &input.new_string, input.replace_all)
        .map_err(|error| not_edited(named, &error))?;

    let view = view_after(known, &applied);
    let hash = change::write(
        workspace,
        path,
        named,
        &applied.content,
        text.encoding,
        Some(&existing),
        view.clone(),
    )?;
    let mut data = data(named, input, Some(&text.content), &applied.content, &hash);
    if let (View::Lines { ranges, total }, Some(data)) = (&view, data.as_object_mut())
        && let [(start, end)] = ranges.as_slice()
    {
        data.insert("startLine".to_owned(), json!(start));
        data.insert("numLines".to_owned(), json!(end + 1 - start));
        data.insert("totalLines".to_owned(), json!(total));
    }
    Ok(answer(report(named, &applied), data))
}

/// Fills a missing or empty file, for an edit of nothing.
fn create(
    workspace: &Workspace,
    named: &Path,
    path: &Path,
    input: &EditInput,
) -> Result<ToolOutput, ToolError> {
    // Tells a missing file from an empty one, with suggestions.
    let existing: Option<Existing> = match disk::load(path, named)? {
        None if !input.old_string.is_empty() => {
            return Err(disk::explain_missing(path, named));
        }
        existing => existing,
    };
    let applied = apply("", &input.old_string, &input.new_string, false)
        .map_err(|error| not_edited(named, &error))?;
    let hash = change::write(
        workspace,
        path,
        named,
        &applied.content,
        Encoding::Utf8,
        existing.as_ref(),
        View::Whole,
    )?;
    let verb = if existing.is_some() { "Filled" } else { "Created" };
    let count = line_count(&applied.content);
    Ok(answer(
        format!("{verb} {} (lines: {count}).", named.display()),
        data(named, input, existing.map(|_| ""), &applied.content, &hash),
    ))
}

fn not_edited(named: &Path, error: &EditError) -> ToolError {
    let mut message = format!("{} was not edited: {error}", named.display());
    if matches!(error, EditError::NotFound(_))
        && named.extension().is_some_and(|extension| extension == "ipynb")
    {
        message.push_str("\nThe cells of a notebook are changed with NotebookEdit.");
    }
    ToolError::failed(message)
}

fn data(named: &Path, input: &EditInput, old: Option<&str>, new: &str, hash: &str) -> Value {
    json!({
        "filePath": named.to_string_lossy(),
        "oldString": input.old_string,
        "newString": input.new_string,
        "structuredPatch": patch::structured(old.unwrap_or_default(), new),
        "originalFile": change::original(old),
        "userModified": false,
        "replaceAll": input.replace_all,
        "contentHash": hash,
    })
}

/// Explains a refusal. When the file has changed since it was read, also says whether the edit would still fit.
fn explain(refusal: &Refusal, named: &Path, text: &Text, input: &EditInput) -> ToolError {
    let mut message = refusal.explain(named);
    if let Refusal::Outdated(_) = refusal {
        let fits = apply(&text.content, &input.old_string, &input.new_string, input.replace_all);
        match fits {
            Ok(applied) => {
                let at = applied.replaced.first().map_or(0, |place| place.start);
                let line = line_of(&applied.content, at);
                let _ = write!(message, " (old_string is still there, on line {line})");
            }
            Err(error) => {
                let _ = write!(message, " ({error})");
            }
        }
    }
    ToolError::failed(message)
}

/// The agent's view after an edit: still all of a file that it knew completely, else the changed lines.
fn view_after(known: View, applied: &Applied) -> View {
    if known == View::Whole {
        return known;
    }
    let (start, end) = changed_lines(applied);
    View::lines(start, end + 1 - start, line_count(&applied.content))
}

/// The first and the last line that an edit touched.
fn changed_lines(applied: &Applied) -> (usize, usize) {
    let start = applied.replaced.first().map_or(0, |place| place.start);
    let end = applied.replaced.last().map_or(0, last_byte);
    (line_of(&applied.content, start), line_of(&applied.content, end))
}

fn last_byte(place: &Range<usize>) -> usize {
    place.end.saturating_sub(1).max(place.start)
}

fn line_of(content: &str, at: usize) -> usize {
    memchr::memchr_iter(b'\n', content.as_bytes().get(..at).unwrap_or_default()).count() + 1
}

/// The answer for the model: the number of replacements, and the changed lines.
fn report(named: &Path, applied: &Applied) -> String {
    let count = applied.replaced.len();
    let mut report = match count {
        1 => format!("Edited {}:", named.display()),
        _ => format!("Edited {} in {count} places, the first of them:", named.display()),
    };
    let Some(first) = applied.replaced.first() else { return report };
    let from = line_of(&applied.content, first.start).saturating_sub(CONTEXT).max(1);
    let to = line_of(&applied.content, last_byte(first)) + CONTEXT;
    let all = lines(&applied.content).enumerate().skip(from - 1).take(to + 1 - from);
    for (shown, (index, line)) in all.enumerate() {
        if shown == MAX_SHOWN_LINES {
            report.push_str("\n…");
            break;
        }
        let _ = write!(report, "\n{}\t", index + 1);
        report.extend(line.chars().take(MAX_SHOWN_COLUMNS));
        if line.chars().nth(MAX_SHOWN_COLUMNS).is_some() {
            report.push('…');
        }
    }
    report
}

#[cfg(test)]
mod tests;
