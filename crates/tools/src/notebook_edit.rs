//! `NotebookEdit`: replaces, inserts or deletes one cell of a notebook.

use std::path::Path;

use centurion_permissions::Access;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::change::{self, RequiredView, answer, check_known, editable_text};
use crate::disk;
use crate::notebook::{CellText, Notebook};
use crate::paths::resolve;
use crate::read_state::View;
use crate::text_file::line_count;
use crate::{Tool, ToolContext, ToolError, ToolOutput, Workspace, patch};

/// Changes one cell of a Jupyter notebook that has been read with Read. `cell_id` is the name that Read
/// shows for it. Replacing a code cell clears its outputs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotebookEditInput {
    /// Absolute path of the .ipynb file.
    notebook_path: String,
    /// The cell to replace or delete, or after which to insert; without it, insert at the start.
    cell_id: Option<String>,
    /// The cell's new source.
    new_source: String,
    /// Needed to insert; when replacing, the cell keeps its type by default.
    cell_type: Option<CellType>,
    /// "replace" by default.
    edit_mode: Option<EditMode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CellType {
    Code,
    Markdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EditMode {
    Replace,
    Insert,
    Delete,
}

/// The tool that edits notebooks.
#[derive(Debug, Default)]
pub struct NotebookEdit;

impl Tool for NotebookEdit {
    type Input = NotebookEditInput;

    const NAME: &'static str = "NotebookEdit";

    fn is_read_only(&self, _: &NotebookEditInput) -> bool {
        false
    }

    fn access(&self, input: &NotebookEditInput, context: &ToolContext) -> Access {
        Access::Write(resolve(&context.workspace.absolute(&input.notebook_path)))
    }

    async fn run(
        &self,
        input: NotebookEditInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let named = context.workspace.absolute(&input.notebook_path);
        let path = context.target(&named)?;
        if path.extension().is_none_or(|extension| extension != "ipynb") {
            return Err(ToolError::Input(format!(
                "{} is no notebook (.ipynb): use Edit",
                named.display()
            )));
        }
        let target = path.clone();
        change::alone(context, &path, 0, move |workspace| edit(workspace, &named, &target, &input))
            .await
    }
}

fn edit(
    workspace: &Workspace,
    named: &Path,
    path: &Path,
    input: &NotebookEditInput,
) -> Result<ToolOutput, ToolError> {
    let Some(existing) = disk::load(path, named)? else {
        return Err(disk::explain_missing(path, named));
    };
    let view = check_known(workspace, path, &existing, RequiredView::Part)
        .map_err(|refusal| ToolError::failed(refusal.explain(named)))?;
    let text = editable_text(named, &existing)?;
    let notebook = Notebook::parse(&text.content).map_err(|error| {
        ToolError::failed(format!("{} is no valid notebook: {error}", named.display()))
    })?;
    let new_id = || format!("{:08x}", workspace.world.random() >> 32);
    let change = Change::plan(&text.content, &notebook, input, new_id)?;
    let content = change.content;
    // The result must be a notebook again, whatever the old one looked like.
    Notebook::parse(&content).map_err(|error| {
        ToolError::failed(format!("{} was not changed: it would break: {error}", named.display()))
    })?;
    // Lines of the JSON that the agent has read are no longer where they were.
    let view = match view {
        View::Whole => View::Whole,
        View::Lines { .. } => View::lines(1, 0, line_count(&content)),
    };
    let hash =
        change::write(workspace, path, named, &content, text.encoding, Some(&existing), view)?;
    Ok(answer(
        format!("{} cell {} in {}.", change.verb, change.cell, named.display()),
        json!({
            "filePath": named.to_string_lossy(), "cell_id": change.cell, "edit_mode": change.mode,
            "cell_type": change.cell_type, "new_source": input.new_source,
            "structuredPatch": patch::structured(&text.content, &content), "contentHash": hash,
        }),
    ))
}

/// A notebook with one cell changed.
#[derive(Debug)]
struct Change {
    content: String,
    cell: String,
    cell_type: String,
    mode: EditMode,
    verb: &'static str,
}

impl Change {
    fn plan(
        document: &str,
        notebook: &Notebook<'_>,
        input: &NotebookEditInput,
        new_id: impl Fn() -> String,
    ) -> Result<Self, ToolError> {
        let mode = input.edit_mode.unwrap_or(EditMode::Replace);
        let index = match &input.cell_id {
            Some(name) => Some(notebook.find(name).ok_or_else(|| no_such_cell(notebook, name))?),
            None if mode == EditMode::Insert => None,
            None => {
                return Err(ToolError::Input(
                    "cell_id is missing: which cell is meant?".to_owned(),
                ));
            }
        };
        match (mode, index) {
            (EditMode::Replace, Some(index)) => {
                Self::replace(document, notebook, input, index, new_id)
            }
            (EditMode::Delete, Some(index)) => Self::delete(document, notebook, index),
            (_, after) => Self::insert(document, notebook, input, after, new_id),
        }
    }

    fn replace(
        document: &str,
        notebook: &Notebook<'_>,
        input: &NotebookEditInput,
        index: usize,
        new_id: impl Fn() -> String,
    ) -> Result<Self, ToolError> {
        let (Some(cell), Some(span)) = (notebook.cells.get(index), notebook.span(index)) else {
            return Err(no_such_cell(notebook, &notebook.name(index)));
        };
        let mut fields: IndexMap<String, Box<RawValue>> =
            serde_json::from_str(cell.raw.get()).map_err(|error| unwritable(&error))?;
        let cell_type = match input.cell_type {
            Some(CellType::Code) => "code".to_owned(),
            Some(CellType::Markdown) => "markdown".to_owned(),
            None => cell.content.cell_type.clone(),
        };
        let one_string = matches!(cell.content.source, CellText::One(_));
        set(&mut fields, "cell_type", &cell_type)?;
        set(&mut fields, "source", &source(&input.new_source, one_string))?;
        if notebook.has_ids && cell.content.id.is_none() {
            set(&mut fields, "id", &new_id())?;
        }
        if cell_type == "code" {
            set(&mut fields, "outputs", &json!([]))?;
            set(&mut fields, "execution_count", &json!(null))?;
        } else {
            fields.shift_remove("outputs");
            fields.shift_remove("execution_count");
        }
        let layout = Layout::of(document, notebook);
        let rendered = layout.render(&fields)?;
        Ok(Self {
            content: splice(document, span.start, span.end, &rendered),
            cell: notebook.name(index),
            cell_type,
            mode: EditMode::Replace,
            verb: "Replaced",
        })
    }

    fn insert(
        document: &str,
        notebook: &Notebook<'_>,
        input: &NotebookEditInput,
        after: Option<usize>,
        new_id: impl Fn() -> String,
    ) -> Result<Self, ToolError> {
        let cell_type = input.cell_type.ok_or_else(|| {
            ToolError::Input("cell_type is missing: \"code\" or \"markdown\"?".to_owned())
        })?;
        let mut fields = IndexMap::new();
        set(&mut fields, "cell_type", &cell_type)?;
        if cell_type == CellType::Code {
            set(&mut fields, "execution_count", &json!(null))?;
        }
        let place = after.map_or(0, |index| index + 1);
        let mut name = format!("cell-{place}");
        if notebook.has_ids {
            name = new_id();
            set(&mut fields, "id", &name)?;
        }
        set(&mut fields, "metadata", &json!({}))?;
        if cell_type == CellType::Code {
            set(&mut fields, "outputs", &json!([]))?;
        }
        set(&mut fields, "source", &source(&input.new_source, false))?;

        let layout = Layout::of(document, notebook);
        let rendered = layout.render(&fields)?;
        let between = layout.between_cells();
        let content = match (after.and_then(|index| notebook.span(index)), notebook.span(0)) {
            (Some(before), _) => {
                splice(document, before.end, before.end, &format!(",{between}{rendered}"))
            }
            (None, Some(first)) => {
                splice(document, first.start, first.start, &format!("{rendered},{between}"))
            }
            (None, None) => {
                let list = format!("[{between}{rendered}{}]", layout.before_list_end());
                splice(document, notebook.list.start, notebook.list.end, &list)
            }
        };
        let cell_type = if cell_type == CellType::Code { "code" } else { "markdown" };
        Ok(Self {
            content,
            cell: name,
            cell_type: cell_type.to_owned(),
            mode: EditMode::Insert,
            verb: "Inserted",
        })
    }

    fn delete(document: &str, notebook: &Notebook<'_>, index: usize) -> Result<Self, ToolError> {
        let name = notebook.name(index);
        let Some(span) = notebook.span(index) else { return Err(no_such_cell(notebook, &name)) };
        let before = index.checked_sub(1).and_then(|index| notebook.span(index));
        let content = match (before, notebook.span(index + 1)) {
            (Some(before), _) => splice(document, before.end, span.end, ""),
            (None, Some(next)) => splice(document, span.start, next.start, ""),
            (None, None) => splice(document, notebook.list.start, notebook.list.end, "[]"),
        };
        let cell_type = notebook.cells.get(index).map(|cell| cell.content.cell_type.clone());
        Ok(Self {
            content,
            cell: name,
            cell_type: cell_type.unwrap_or_default(),
            mode: EditMode::Delete,
            verb: "Deleted",
        })
    }
}

fn no_such_cell(notebook: &Notebook<'_>, name: &str) -> ToolError {
    let names: Vec<_> =
        (0..notebook.cells.len().min(30)).map(|index| notebook.name(index)).collect();
    ToolError::failed(format!("there is no cell {name}; the cells are {}", names.join(", ")))
}

fn unwritable(error: &serde_json::Error) -> ToolError {
    ToolError::failed(format!("the cell cannot be written: {error}"))
}

fn set(
    fields: &mut IndexMap<String, Box<RawValue>>,
    name: &str,
    value: &impl Serialize,
) -> Result<(), ToolError> {
    fields.insert(name.to_owned(), to_raw_value(value).map_err(|error| unwritable(&error))?);
    Ok(())
}

fn source(text: &str, one_string: bool) -> serde_json::Value {
    if one_string { json!(text) } else { json!(text.split_inclusive('\n').collect::<Vec<_>>()) }
}

fn splice(document: &str, start: usize, end: usize, new: &str) -> String {
    let before = document.get(..start).unwrap_or_default();
    let after = document.get(end..).unwrap_or_default();
    [before, new, after].concat()
}

/// The layout of a document: in one line, or with an indentation.
struct Layout<'a> {
    /// One step of indentation; `None` for a document in one line.
    indent: Option<&'a str>,
}

impl<'a> Layout<'a> {
    fn of(document: &'a str, notebook: &Notebook<'_>) -> Self {
        // The first key of the document stands one step in.
        let after_brace = document.trim_start().get(1..).unwrap_or_default();
        let space = after_brace.len() - after_brace.trim_start().len();
        let lead = after_brace.get(..space).unwrap_or_default();
        let indent = lead.rsplit_once('\n').map(|(_, indent)| indent);
        let in_lines = notebook.span(0).is_none_or(|first| {
            document.get(notebook.list.start..first.start).is_some_and(|lead| lead.contains('\n'))
        });
        Self { indent: indent.filter(|_| in_lines) }
    }

    /// The text between two cells, after the comma.
    fn between_cells(&self) -> String {
        self.indent.map_or_else(String::new, |indent| format!("\n{}", indent.repeat(2)))
    }

    fn before_list_end(&self) -> String {
        self.indent.map_or_else(String::new, |indent| format!("\n{indent}"))
    }

    /// A cell as text, indented for its place in the list.
    fn render(&self, fields: &IndexMap<String, Box<RawValue>>) -> Result<String, ToolError> {
        let Some(indent) = self.indent else {
            return serde_json::to_string(fields).map_err(|error| unwritable(&error));
        };
        // Raw fields are printed as they are: they already have the indentation of their place. New fields are laid out
        // here.
        let mut lines = vec!["{".to_owned()];
        let last = fields.len().saturating_sub(1);
        for (position, (name, value)) in fields.iter().enumerate() {
            let comma = if position == last { "" } else { "," };
            let name = serde_json::to_string(name).map_err(|error| unwritable(&error))?;
            let value = if value.get().contains('\n') {
                value.get().to_owned()
            } else {
                pretty(value, indent)?.replace('\n', &format!("\n{}", indent.repeat(3)))
            };
            lines.push(format!("{}{name}: {value}{comma}", indent.repeat(3)));
        }
        lines.push(format!("{}}}", indent.repeat(2)));
        Ok(lines.join("\n"))
    }
}

fn pretty(value: &RawValue, indent: &str) -> Result<String, ToolError> {
    let value: serde_json::Value =
        serde_json::from_str(value.get()).map_err(|error| unwritable(&error))?;
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    value
        .serialize(&mut Serializer::with_formatter(&mut bytes, formatter))
        .map_err(|error| unwritable(&error))?;
    String::from_utf8(bytes).map_err(|error| ToolError::failed(error.to_string()))
}

#[cfg(test)]
mod tests;
