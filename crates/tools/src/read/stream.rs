//! Text too large for memory: reads up to the last requested line and no further.
//!
//! Such a file cannot be edited either, so its view is not recorded.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Take};

use centurion_protocol::ToolResultContent;
use serde_json::json;

use super::Request;
use super::page::{TextPage, with_notes};
use crate::disk::{explain, human_size};
use crate::text_file::Encoding;
use crate::{ToolError, ToolOutput};

/// The bytes of a file in which lines are counted.
const MAX_SCAN: u64 = 256 * 1024 * 1024;

const BUFFER: usize = 256 * 1024;

pub(super) fn read(
    request: &Request,
    head: &[u8],
    rest: Take<File>,
    size: u64,
) -> Result<ToolOutput, ToolError> {
    match Encoding::sniff(head) {
        Some(Encoding::Utf8 | Encoding::Utf8WithMark | Encoding::Windows1252) => {}
        Some(encoding) => {
            return Err(ToolError::failed(format!(
                "{} has {} of {}: turn it into UTF-8 first, as with `iconv`",
                request.named().display(),
                human_size(size),
                encoding.name(),
            )));
        }
        None => return Err(request.refuse_binary(head, size)),
    }
    let mut page = TextPage::new(request);
    let reader = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(rest));
    let mut scan = Scan { request, reader, scanned: 0, end: None };
    for _ in 1..page.first {
        if scan.line(0)?.is_none() {
            break;
        }
    }
    while !page.is_full() {
        let Some(line) = scan.line(page.columns() * 4)? else { break };
        let text = String::from_utf8_lossy(&line.start);
        let unseen = line.length - line.start.len();
        if !page.push(&text, unseen) {
            break;
        }
    }
    if page.count == 0 {
        return Err(nothing_there(request, page.first, scan.end));
    }
    let notes = page.notes((scan.end == Some(End::File)).then_some(page.last()));
    let data = json!({
        "type": "text",
        "file": {
            "filePath": request.named().to_string_lossy(), "content": page.plain, "numLines": page.count,
            "startLine": page.first, "totalLines": page.last(),
        },
    });
    let text = with_notes(page.numbered, &notes);
    Ok(ToolOutput { content: vec![ToolResultContent::Text(text)], data })
}

fn nothing_there(request: &Request, line: usize, end: Option<End>) -> ToolError {
    let path = request.named().display();
    ToolError::failed(match end {
        Some(End::Patience) => format!(
            "line {line} lies more than {} into {path}: take it out with a command in Bash, such as \
             `sed -n` or `tail -c`",
            human_size(MAX_SCAN)
        ),
        _ => format!("{path} has no line {line}"),
    })
}

struct Scan<'a, R> {
    request: &'a Request,
    reader: R,
    scanned: u64,
    /// The reason that there are no more lines.
    end: Option<End>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    File,
    /// The call has read as much as it may.
    Patience,
}

/// One line: as much of its start as was wanted, and its length in bytes, as far as it was read.
struct ReadLine {
    start: Vec<u8>,
    length: usize,
}

impl<R: BufRead> Scan<'_, R> {
    /// The next line, of which at most `keep` bytes are kept.
    fn line(&mut self, keep: usize) -> Result<Option<ReadLine>, ToolError> {
        let mut line = ReadLine { start: Vec::new(), length: 0 };
        let mut any = false;
        while self.end.is_none() {
            if self.request.cancel.is_cancelled() {
                return Err(ToolError::Cancelled { partial: None });
            }
            let buffer = self
                .reader
                .fill_buf()
                .map_err(|error| explain("read", self.request.named(), &error))?;
            if buffer.is_empty() {
                self.end = Some(End::File);
                break;
            }
            any = true;
            let end = memchr::memchr(b'\n', buffer);
            let piece = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let room = keep.saturating_sub(line.start.len());
            line.start.extend_from_slice(piece.get(..room).unwrap_or(piece));
            line.length += piece.len();
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            self.scanned += used as u64;
            if self.scanned > MAX_SCAN {
                self.end = Some(End::Patience);
            }
            if end.is_some() {
                line.drop_cr();
                return Ok(Some(line));
            }
        }
        Ok(any.then_some(line))
    }
}

impl ReadLine {
    fn drop_cr(&mut self) {
        if self.start.len() == self.length && self.start.last() == Some(&b'\r') {
            self.start.pop();
            self.length -= 1;
        }
    }
}
