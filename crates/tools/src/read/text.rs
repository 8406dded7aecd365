//! Text that fits in memory.

use std::fs::File;
use std::io::Take;

use centurion_protocol::ToolResultContent;
use serde_json::json;

use super::Request;
use super::page::{TextPage, with_notes};
use crate::disk::{MAX_IN_MEMORY, explain, read_after};
use crate::read_state::View;
use crate::text_file::{Encoding, decode, line_count, lines};
use crate::{ToolError, ToolOutput};

pub(super) fn read(
    request: &Request,
    head: Vec<u8>,
    rest: Take<File>,
    size: u64,
) -> Result<ToolOutput, ToolError> {
    let bytes = read_after(head, rest, MAX_IN_MEMORY, size)
        .map_err(|error| explain("read", request.named(), &error))?
        .ok_or_else(|| {
            ToolError::failed(format!("{} grows while it is read", request.named().display()))
        })?;
    request.refuse_large(bytes.len() as u64)?;
    let hash = blake3::hash(&bytes);
    if Encoding::sniff(&bytes).is_none() {
        return Err(request.refuse_binary(&bytes, bytes.len() as u64));
    }
    request.workspace.files.keep(hash, &bytes);
    let text = decode(bytes).map_err(|_| request.refuse_binary(&[], size))?;

    let total = line_count(&text.content);
    let mut page = TextPage::new(request);
    for line in lines(&text.content).skip(page.first - 1) {
        if !page.push(line, 0) {
            break;
        }
    }
    let view = View::lines(page.first, page.count, total);
    request.state().record(&request.path, hash, view);
    let shown = show(request, &page, total, text.encoding);
    let data = json!({
        "type": "text",
        "file": {
            "filePath": request.named().to_string_lossy(), "content": page.plain, "numLines": page.count,
            "startLine": page.first, "totalLines": total, "contentHash": hash.to_hex().as_str(),
        },
    });
    Ok(ToolOutput { content: vec![ToolResultContent::Text(shown)], data })
}

fn show(request: &Request, page: &TextPage, total: usize, encoding: Encoding) -> String {
    let path = request.named().display();
    if total == 0 {
        return format!("{path} is empty.");
    }
    if page.count == 0 {
        let noun = if total == 1 { "line" } else { "lines" };
        return format!("{path} has {total} {noun}; there is none at offset {}.", page.first);
    }
    let mut notes = page.notes(Some(total));
    match encoding {
        Encoding::Utf8 | Encoding::Utf8WithMark => {}
        Encoding::Windows1252 => {
            notes.push(format!("not valid UTF-8: read as {}", encoding.name()));
        }
        Encoding::Utf16Le | Encoding::Utf16Be => {
            notes.push(format!("the file is {}", encoding.name()));
        }
    }
    with_notes(page.numbered.clone(), &notes)
}
