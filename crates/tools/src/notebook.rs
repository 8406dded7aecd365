//! Jupyter notebooks: JSON documents with a list of cells.
//!
//! Only the parts that the tools need are parsed. Edits change the text of the document, so that the rest stays byte
//! for byte as it is.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A notebook whose cells are still unparsed text.
pub(crate) struct Notebook<'a> {
    document: &'a str,
    pub(crate) cells: Vec<Cell<'a>>,
    /// The range of the list of cells in the document, brackets included.
    pub(crate) list: Range<usize>,
    /// Whether cells have ids: from version 4.5 on.
    pub(crate) has_ids: bool,
    pub(crate) language: Option<String>,
}

pub(crate) struct Cell<'a> {
    pub(crate) raw: &'a RawValue,
    pub(crate) content: CellContent,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CellContent {
    pub(crate) id: Option<String>,
    pub(crate) cell_type: String,
    pub(crate) source: CellText,
    pub(crate) outputs: Vec<Output>,
}

/// The output of a cell's run, of any kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Output {
    pub(crate) text: Option<CellText>,
    pub(crate) data: serde_json::Map<String, serde_json::Value>,
    pub(crate) ename: Option<String>,
    pub(crate) evalue: Option<String>,
    pub(crate) traceback: Vec<String>,
}

/// Text that is stored as one string or as a list of its lines.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(crate) enum CellText {
    One(String),
    Many(Vec<String>),
}

impl Default for CellText {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl CellText {
    pub(crate) fn joined(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Many(lines) => lines.concat(),
        }
    }
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    cells: &'a RawValue,
    #[serde(default)]
    nbformat: u64,
    #[serde(default)]
    nbformat_minor: u64,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    kernelspec: Language,
    language_info: Language,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Language {
    name: Option<String>,
    language: Option<String>,
}

impl<'a> Notebook<'a> {
    pub(crate) fn parse(document: &'a str) -> Result<Self, serde_json::Error> {
        let parsed: Document<'a> = serde_json::from_str(document)?;
        let raw_cells: Vec<&'a RawValue> = serde_json::from_str(parsed.cells.get())?;
        let cells = raw_cells
            .into_iter()
            .map(|raw| Ok(Cell { raw, content: serde_json::from_str(raw.get())? }))
            .collect::<Result<_, serde_json::Error>>()?;
        let Metadata { kernelspec, language_info } = parsed.metadata;
        Ok(Self {
            document,
            cells,
            list: span(document, parsed.cells),
            has_ids: (parsed.nbformat, parsed.nbformat_minor) >= (4, 5),
            language: language_info.name.or(kernelspec.language),
        })
    }

    /// The place of a cell, by its id or by `cell-N`, counted from zero.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let by_id = self.cells.iter().position(|cell| cell.content.id.as_deref() == Some(name));
        by_id.or_else(|| {
            let index: usize = name.strip_prefix("cell-")?.parse().ok()?;
            (index < self.cells.len()).then_some(index)
        })
    }

    /// The name of the cell at `index`.
    pub(crate) fn name(&self, index: usize) -> String {
        self.cells
            .get(index)
            .and_then(|cell| cell.content.id.clone())
            .unwrap_or_else(|| format!("cell-{index}"))
    }

    /// The range of the cell at `index` in the document.
    pub(crate) fn span(&self, index: usize) -> Option<Range<usize>> {
        self.cells.get(index).map(|cell| span(self.document, cell.raw))
    }
}

/// The range of a raw value within the `document` that it was read from.
fn span(document: &str, raw: &RawValue) -> Range<usize> {
    let start = raw.get().as_ptr().addr() - document.as_ptr().addr();
    start..start + raw.get().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_id_and_by_number() {
        let document = r#"{"nbformat": 4, "nbformat_minor": 5, "cells": [
            {"id": "intro", "cell_type": "markdown", "source": ["a\n", "b"]},
            {"cell_type": "code", "source": "x", "outputs": []}
        ], "metadata": {"kernelspec": {"language": "python"}}}"#;
        let notebook = Notebook::parse(document).unwrap();
        assert_eq!(notebook.find("intro"), Some(0));
        assert_eq!(notebook.find("cell-1"), Some(1));
        assert_eq!(notebook.find("cell-2"), None);
        assert_eq!(notebook.name(1), "cell-1");
        assert_eq!(notebook.cells[0].content.source.joined(), "a\nb");
        assert_eq!(notebook.language.as_deref(), Some("python"));
        assert!(notebook.has_ids);
        let span = notebook.span(1).unwrap();
        assert!(document[span].starts_with(r#"{"cell_type": "code""#));
        assert!(document[notebook.list.clone()].starts_with("[\n"));
    }
}
