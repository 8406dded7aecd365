//! Read: shows a file to a model. Text as numbered lines, images and PDF pages as such, notebooks as cells.

mod image;
mod notebook;
mod page;
mod pdf;
mod stream;
mod text;

use std::fs::File;
use std::io::{Read as _, Take};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_permissions::Access;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use self::pdf::PageRange;
use crate::disk::{self, MAX_IN_MEMORY, explain, human_size, read_after, run_sized};
use crate::paths::resolve;
use crate::read_state::{ReadState, View};
use crate::{Tool, ToolContext, ToolError, ToolOutput, Workspace};

/// The bytes of a file that tell its type.
const HEAD: u64 = 8 * 1024;

/// The largest file that is shown without a range.
const MAX_WITHOUT_RANGE: u64 = 256 * 1024;

/// Reads a file: text as lines, each with its number and a tab before it; images and PDF files as
/// themselves; Jupyter notebooks as cells with their outputs. Without a range, text is shown up to line
/// 2000, and files over 256 KB are refused: give `offset` and `limit`, or find the place with Grep first.
/// For a PDF file of more than 10 pages, give `pages`. A file must be read before it is edited.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// Absolute path of the file.
    file_path: String,
    /// Line to start from, counted from 1.
    offset: Option<usize>,
    /// Number of lines.
    limit: Option<NonZeroUsize>,
    /// Pages of a PDF file, at most 20: "3", "1-5", "7-".
    pages: Option<String>,
    /// Show a large file, and long lines, up to 1 MB.
    allow_large: Option<bool>,
}

/// The tool that reads files.
#[derive(Debug, Default)]
pub struct Read;

impl Tool for Read {
    type Input = ReadInput;

    const NAME: &'static str = "Read";

    fn is_read_only(&self, _: &ReadInput) -> bool {
        true
    }

    fn access(&self, input: &ReadInput, context: &ToolContext) -> Access {
        Access::Read(resolve(&context.workspace.absolute(&input.file_path)))
    }

    async fn run(&self, input: ReadInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let pages = input.pages.as_deref().map(PageRange::parse).transpose()?;
        let named = context.workspace.absolute(&input.file_path);
        let request = Request {
            path: context.target(&named)?,
            named,
            offset: input.offset,
            limit: input.limit.map(NonZeroUsize::get),
            pages,
            allow_large: input.allow_large.unwrap_or(false),
            workspace: Arc::clone(&context.workspace),
            cancel: context.cancel.clone(),
        };
        match run_sized(disk::size_hint(&request.path), move || request.look()).await? {
            ReadStep::Done(output) => Ok(*output),
            // Parsers of foreign formats run on another thread: a panic there is only an error.
            ReadStep::Pdf(request, bytes) => {
                run_sized(u64::MAX, move || pdf::read(&request, bytes)).await
            }
        }
    }
}

/// A request to read a file.
struct Request {
    /// The path as the model named it, made absolute.
    named: PathBuf,
    /// The path with links resolved: it is opened, and identifies the file.
    path: PathBuf,
    offset: Option<usize>,
    limit: Option<usize>,
    pages: Option<PageRange>,
    allow_large: bool,
    workspace: Arc<Workspace>,
    cancel: CancellationToken,
}

enum ReadStep {
    Done(Box<ToolOutput>),
    Pdf(Request, Vec<u8>),
}

impl Request {
    /// Reads the first bytes and continues by the type that they show.
    fn look(self) -> Result<ReadStep, ToolError> {
        let (mut file, metadata) = disk::open(&self.path, &self.named)?;
        let expected = usize::try_from(metadata.len().min(HEAD)).unwrap_or_default();
        let mut head = Vec::with_capacity(expected + 1);
        (&mut file)
            .take(HEAD)
            .read_to_end(&mut head)
            .map_err(|error| explain("read", &self.named, &error))?;
        let size = metadata.len().max(head.len() as u64);
        // Most files end within their first bytes: there is no need to read more.
        let has_ended = (head.len() as u64) < HEAD;
        let rest = file.take(if has_ended { 0 } else { u64::MAX });
        if head.starts_with(b"%PDF-") {
            self.refuse_range("a PDF file: choose with pages")?;
            let bytes =
                self.whole(head, rest, size, pdf::MAX_FILE, "split it first, as with qpdf")?;
            return Ok(ReadStep::Pdf(self, bytes));
        }
        if self.pages.is_some() {
            return Err(ToolError::Input(format!(
                "pages is for PDF files, and {} is none",
                self.named.display()
            )));
        }
        let output = if let Some(media_type) = image::media_type(&head) {
            self.refuse_range("an image")?;
            let advice = "make it smaller first, as with `convert`";
            let bytes = self.whole(head, rest, size, image::MAX_FILE, advice)?;
            image::read(&self, media_type, &bytes)
        } else if self.is_notebook() && !self.has_range() {
            let advice = "read its JSON in parts, with offset and limit";
            let bytes = self.whole(head, rest, size, MAX_IN_MEMORY, advice)?;
            notebook::read(&self, bytes)?
        } else {
            self.refuse_large(size)?;
            if size > MAX_IN_MEMORY {
                stream::read(&self, &head, rest, size)?
            } else {
                text::read(&self, head, rest, size)?
            }
        };
        Ok(ReadStep::Done(Box::new(output)))
    }

    /// The whole content, if it is not larger than `limit`.
    fn whole(
        &self,
        head: Vec<u8>,
        rest: Take<File>,
        size: u64,
        limit: u64,
        advice: &str,
    ) -> Result<Vec<u8>, ToolError> {
        read_after(head, rest, limit, size)
            .map_err(|error| explain("read", &self.named, &error))?
            .ok_or_else(|| {
                ToolError::failed(format!(
                    "{} has {}, more than {}: {advice}",
                    self.named.display(),
                    human_size(size),
                    human_size(limit),
                ))
            })
    }

    fn has_range(&self) -> bool {
        self.offset.is_some() || self.limit.is_some()
    }

    fn is_notebook(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "ipynb")
    }

    fn refuse_range(&self, what: &str) -> Result<(), ToolError> {
        if self.has_range() {
            return Err(ToolError::Input(format!(
                "offset and limit are for text, and {} is {what}",
                self.named.display()
            )));
        }
        Ok(())
    }

    fn refuse_large(&self, size: u64) -> Result<(), ToolError> {
        if size > MAX_WITHOUT_RANGE && !self.has_range() && !self.allow_large {
            return Err(ToolError::failed(format!(
                "{} has {}: read a part with offset and limit, or find the place with Grep",
                self.named.display(),
                human_size(size),
            )));
        }
        Ok(())
    }

    /// The first requested line, counted from one.
    fn first_line(&self) -> usize {
        self.offset.unwrap_or(1).max(1)
    }

    fn refuse_binary(&self, head: &[u8], size: u64) -> ToolError {
        ToolError::failed(format!(
            "{} is no text but {}, {}: look into it with a program in Bash, such as `file` or `xxd`",
            self.named.display(),
            image::kind_of(head),
            human_size(size),
        ))
    }

    /// Records the view; returns the hash of the whole content, in hex.
    fn remember(&self, bytes: &[u8], view: View) -> String {
        self.workspace.note_seen(&self.path, bytes, view).to_hex().to_string()
    }

    fn state(&self) -> &ReadState {
        &self.workspace.read_state
    }

    fn named(&self) -> &Path {
        &self.named
    }
}

#[cfg(test)]
mod tests;
