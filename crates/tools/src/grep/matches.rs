//! Searches the files: several at once, with results in order, until there are enough.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use centurion_files::OpenError;
use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::report::MAX_BYTES;
use super::{ContentSearch, OutputMode};
use crate::context::lock;
use crate::{ToolError, walk};

/// The files that are searched before their results are evaluated.
const BATCH: usize = 512;

/// Fewer files than this do not need another thread.
const FEW: usize = 32;

/// Characters shown of a line.
const MAX_COLUMNS: usize = 500;

/// The matches in one file.
pub(super) struct FileMatches {
    pub(super) path: PathBuf,
    /// The time of the file's last change, in the modes that sort by it.
    pub(super) modified: Option<SystemTime>,
    /// The number of matching lines.
    pub(super) count: usize,
    /// Lines to show, in content mode.
    pub(super) lines: Vec<MatchLine>,
}

/// A line to show.
pub(super) struct MatchLine {
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Match,
    Context,
    /// The first line after a gap.
    ContextAfterGap,
    MatchAfterGap,
}

/// Searches the files in order and passes the results to `take` until that returns `false`. Returns the number of files
/// that could not be searched.
pub(super) fn search(
    search: &ContentSearch,
    files: &[PathBuf],
    cancel: &CancellationToken,
    mut take: impl FnMut(FileMatches) -> bool,
) -> Result<usize, ToolError> {
    let mut unreadable = 0;
    for batch in files.chunks(BATCH) {
        let mut results = search_batch(search, batch, cancel);
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled { partial: None });
        }
        results.sort_unstable_by_key(|(index, _)| *index);
        for (_, result) in results {
            match result {
                Ok(found) => {
                    if !take(found) {
                        return Ok(unreadable);
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a file could not be searched");
                    unreadable += 1;
                }
            }
        }
    }
    Ok(unreadable)
}

type Results = Vec<(usize, io::Result<FileMatches>)>;

fn search_batch(search: &ContentSearch, batch: &[PathBuf], cancel: &CancellationToken) -> Results {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Results::new());
    let work = || {
        let mut searcher = search.searcher();
        while !cancel.is_cancelled() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = batch.get(index) else { break };
            if let Some(result) = search_file(search, &mut searcher, path, cancel).transpose() {
                lock(&results).push((index, result));
            }
        }
    };
    if batch.len() < FEW {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 1..walk::threads() {
                scope.spawn(work);
            }
            work();
        });
    }
    results.into_inner()
}

fn search_file(
    search: &ContentSearch,
    searcher: &mut Searcher,
    path: &Path,
    cancel: &CancellationToken,
) -> io::Result<Option<FileMatches>> {
    let file = match search.candidates.open(path) {
        Ok(file) => file,
        // Another program has deleted it meanwhile.
        Err(OpenError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(OpenError::Io(error)) => return Err(error),
        Err(error) => return Err(io::Error::other(error)),
    };
    let mut collector = Collector {
        search,
        count: 0,
        lines: Vec::new(),
        after_gap: false,
        is_binary: false,
        bytes: 0,
    };
    let reader = Cancellable { file: &file, cancel };
    searcher.search_reader(&search.matcher, reader, &mut collector)?;
    let Collector { count, lines, is_binary, .. } = collector;
    if count == 0 || is_binary {
        return Ok(None);
    }
    let modified = match search.mode {
        OutputMode::FilesWithMatches => file.metadata()?.modified().ok(),
        OutputMode::Content | OutputMode::Count => None,
    };
    Ok(Some(FileMatches { path: path.to_owned(), modified, count, lines }))
}

/// A reader that stops when the call is cancelled: a file without a match can be long.
struct Cancellable<'a> {
    file: &'a File,
    cancel: &'a CancellationToken,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

/// Collects the matches of one file, in the form of the mode.
struct Collector<'a> {
    search: &'a ContentSearch,
    count: usize,
    lines: Vec<MatchLine>,
    after_gap: bool,
    is_binary: bool,
    /// The size of the collected lines.
    bytes: usize,
}

impl Collector<'_> {
    /// Whether this file alone fills an answer.
    fn is_full(&self) -> bool {
        self.lines.len() >= self.search.enough() || self.bytes > MAX_BYTES
    }

    fn push(&mut self, number: u64, bytes: &[u8], kind: Kind) {
        let kind = match (kind, std::mem::take(&mut self.after_gap)) {
            (Kind::Match, true) => Kind::MatchAfterGap,
            (Kind::Context, true) => Kind::ContextAfterGap,
            (kind, _) => kind,
        };
        let text = shorten(bytes);
        if self.lines.len() >= self.search.offset {
            self.bytes += text.len();
        }
        self.lines.push(MatchLine { number, text, kind });
    }

    /// Adds each match by itself, on the line on which it begins.
    fn push_matches(&mut self, first: u64, bytes: &[u8]) {
        let matcher = &self.search.matcher;
        let mut found = Vec::new();
        let searched = matcher.find_iter(bytes, |at| {
            found.push(at);
            found.len() < self.search.enough()
        });
        if let Err(error) = searched {
            tracing::debug!(%error, "matches of a line could not be told apart");
        }
        let (mut line, mut from) = (first, 0);
        for at in found.into_iter().filter(|at| !at.is_empty()) {
            let before = bytes.get(from..at.start()).unwrap_or_default();
            line += memchr::memchr_iter(b'\n', before).count() as u64;
            from = at.start();
            let this = bytes.get(at.start()..at.end()).unwrap_or_default();
            for (number, part) in (line..).zip(lines_of(this)) {
                self.push(number, part, Kind::Match);
            }
        }
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        match self.search.mode {
            OutputMode::FilesWithMatches => Ok(false),
            OutputMode::Count => Ok(true),
            OutputMode::Content => {
                let first = found.line_number().unwrap_or_default();
                if self.search.only_matching {
                    self.push_matches(first, found.bytes());
                } else {
                    for (number, line) in (first..).zip(lines_of(found.bytes())) {
                        self.push(number, line, Kind::Match);
                    }
                }
                Ok(!self.is_full())
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let number = context.line_number().unwrap_or_default();
        for (number, line) in (number..).zip(lines_of(context.bytes())) {
            self.push(number, line, Kind::Context);
        }
        Ok(!self.is_full())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.after_gap = !self.lines.is_empty();
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

fn lines_of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n')
}

/// A line for display: without its end, and cut to a readable length.
fn shorten(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let start = bytes.get(..MAX_COLUMNS * 4).unwrap_or(bytes);
    let text = String::from_utf8_lossy(start);
    match text.char_indices().nth(MAX_COLUMNS) {
        None => text.into_owned(),
        Some((end, _)) => {
            format!("{}… ({} bytes)", text.get(..end).unwrap_or_default(), bytes.len())
        }
    }
}
