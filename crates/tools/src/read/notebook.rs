//! A notebook as its cells: source, then the output of the last run.

use std::fmt::Write as _;

use centurion_protocol::ToolResultContent;
use serde_json::{Value, json};

use super::{Request, image};
use crate::notebook::{CellText, Notebook, Output};
use crate::read_state::View;
use crate::text_file::decode;
use crate::{ToolError, ToolOutput};

/// Characters shown of one output.
const MAX_OUTPUT: usize = 4_000;

/// Characters shown of the whole notebook.
const MAX_TEXT: usize = 256 * 1024;

/// The same for a call that allows a large answer.
const MAX_LARGE_TEXT: usize = 1024 * 1024;

const MAX_IMAGES: usize = 10;

pub(super) fn read(request: &Request, bytes: Vec<u8>) -> Result<ToolOutput, ToolError> {
    let wrong = |why: String| {
        ToolError::failed(format!(
            "{} is no valid notebook: {why}; read its JSON with offset and limit",
            request.named().display()
        ))
    };
    let hash = request.remember(&bytes, View::Whole);
    let text = decode(bytes).map_err(|error| wrong(error.to_string()))?;
    let notebook = Notebook::parse(&text.content).map_err(|error| wrong(error.to_string()))?;

    let bound = if request.allow_large { MAX_LARGE_TEXT } else { MAX_TEXT };
    let mut rendering = Rendering { text: String::new(), images: Vec::new(), images_left_out: 0 };
    let mut shown = 0;
    while shown < notebook.cells.len() && rendering.text.len() < bound {
        rendering.cell(&notebook, shown);
        shown += 1;
    }
    if let Some((end, _)) = rendering.text.char_indices().nth(bound) {
        rendering.text.truncate(end);
        rendering.text.push('…');
    }
    let total = notebook.cells.len();
    if total == 0 {
        rendering.text.push_str("The notebook has no cells.");
    }
    if shown < total {
        let _ = write!(
            rendering.text,
            "\n\n({shown} of {total} cells; for the others, read the JSON with offset and limit)"
        );
    }
    if rendering.images_left_out > 0 {
        let left_out = rendering.images_left_out;
        let _ = write!(rendering.text, "\n\n({left_out} images of outputs are not shown)");
    }
    let data = json!({
        "type": "notebook",
        "file": {
            "filePath": request.named().to_string_lossy(), "numCells": total, "language": notebook.language,
            "content": rendering.text, "contentHash": hash,
        },
    });
    let mut content = vec![ToolResultContent::Text(rendering.text)];
    content.append(&mut rendering.images);
    Ok(ToolOutput { content, data })
}

struct Rendering {
    text: String,
    images: Vec<ToolResultContent>,
    images_left_out: usize,
}

impl Rendering {
    fn cell(&mut self, notebook: &Notebook<'_>, index: usize) {
        let Some(cell) = notebook.cells.get(index) else { return };
        if index > 0 {
            self.text.push_str("\n\n");
        }
        let _ = write!(self.text, "[{}: {}", notebook.name(index), cell.content.cell_type);
        if let Some(language) = &notebook.language
            && cell.content.cell_type == "code"
        {
            let _ = write!(self.text, ", {language}");
        }
        let _ = write!(self.text, "]\n{}", cell.content.source.joined());
        for output in &cell.content.outputs {
            self.output(output);
        }
    }

    fn output(&mut self, output: &Output) {
        if let Some(text) = &output.text {
            self.output_text(&text.joined());
        }
        if let Some(name) = &output.ename {
            let reason = output.evalue.as_deref().unwrap_or_default();
            self.output_text(&format!("{name}: {reason}\n{}", output.traceback.join("\n")));
        }
        for media_type in ["image/png", "image/jpeg", "image/gif", "image/webp"] {
            if let Some(data) = output.data.get(media_type).and_then(text_of) {
                self.image(media_type, &data);
            }
        }
        // The plain form stands for the others; that of a picture is only a name in memory.
        if !output.data.keys().any(|media_type| media_type.starts_with("image/"))
            && let Some(text) = output.data.get("text/plain").and_then(text_of)
        {
            self.output_text(&text);
        }
    }

    fn output_text(&mut self, text: &str) {
        self.text.push_str("\n[output]\n");
        self.text.extend(text.trim_end().chars().take(MAX_OUTPUT));
        if text.trim_end().chars().nth(MAX_OUTPUT).is_some() {
            let _ = write!(self.text, "… ({} characters)", text.chars().count());
        }
    }

    fn image(&mut self, media_type: &str, data: &str) {
        let data: String = data.split_ascii_whitespace().collect();
        let fits = data.len() as u64 <= image::MAX_FILE / 3 * 4;
        if !fits || self.images.len() >= MAX_IMAGES {
            self.images_left_out += 1;
            return;
        }
        self.images.push(ToolResultContent::Image { media_type: media_type.to_owned(), data });
        let _ = write!(self.text, "\n[output: image {} below]", self.images.len());
    }
}

fn text_of(value: &Value) -> Option<String> {
    serde_json::from_value::<CellText>(value.clone()).ok().map(|lines| lines.joined())
}
