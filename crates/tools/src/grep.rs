//! Grep: finds lines by a regular expression, in a file or a whole tree.

mod files;
mod matches;
mod report;

use std::path::PathBuf;
use std::sync::Arc;

use centurion_permissions::Access;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use self::files::Candidates;
use self::report::GrepReport;
use crate::paths::resolve;
use crate::{Tool, ToolContext, ToolError, ToolOutput, walk};

/// The entries shown by default.
const DEFAULT_HEAD: usize = 250;

/// The most context around a match.
const MAX_CONTEXT: usize = 100;

/// The largest line, or file in multiline mode, that is searched.
const MAX_HEAP: usize = 64 * 1024 * 1024;

/// Searches file contents with a regular expression (Rust syntax: escape literal braces, no look-around).
/// Files that git ignores and binary files are left out. By default, the files with matches are
/// listed, most recently changed first; the mode `content` gives the lines, `count` how many lines match in
/// each file. Patterns match within one line unless `multiline` is set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepInput {
    /// The regular expression.
    pattern: String,
    /// File or directory to search; by default the current directory.
    path: Option<String>,
    /// Only files like these: "*.ts", "src/**,!*.test.ts".
    glob: Option<String>,
    /// The form of the result.
    output_mode: Option<OutputMode>,
    /// Lines before each match (content mode).
    #[serde(rename = "-B")]
    before: Option<usize>,
    /// Lines after each match.
    #[serde(rename = "-A")]
    after: Option<usize>,
    /// Lines before and after each match.
    #[serde(rename = "-C")]
    around: Option<usize>,
    /// The same as -C.
    context: Option<usize>,
    /// Show line numbers (content mode; default true).
    #[serde(rename = "-n")]
    line_numbers: Option<bool>,
    /// Ignore case.
    #[serde(rename = "-i")]
    ignore_case: Option<bool>,
    /// Show only what matches of each line.
    #[serde(rename = "-o")]
    only_matching: Option<bool>,
    /// Only files of this type: js, py, rust, go, …
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// At most this many lines or files (default 250, 0 for all that fit).
    head_limit: Option<usize>,
    /// Skip this many first.
    offset: Option<usize>,
    /// Let patterns span lines, and `.` match line ends.
    multiline: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

/// The tool that searches.
#[derive(Debug, Default)]
pub struct Grep;

impl Tool for Grep {
    type Input = GrepInput;

    const NAME: &'static str = "Grep";

    fn is_read_only(&self, _: &GrepInput) -> bool {
        true
    }

    fn access(&self, input: &GrepInput, context: &ToolContext) -> Access {
        Access::Read(resolve(&named(input, context)))
    }

    async fn run(&self, input: GrepInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let search = ContentSearch::plan(&input, context)?;
        walk::run(&context.cancel, move |cancel| search.run(cancel)).await
    }
}

/// The file or directory to search, as the model named it, made absolute.
fn named(input: &GrepInput, context: &ToolContext) -> PathBuf {
    let workspace = &context.workspace;
    input.path.as_deref().map_or_else(|| workspace.cwd(), |path| workspace.absolute(path))
}

/// A search that is ready to run.
struct ContentSearch {
    candidates: Candidates,
    matcher: RegexMatcher,
    mode: OutputMode,
    multiline: bool,
    before: usize,
    after: usize,
    line_numbers: bool,
    only_matching: bool,
    offset: usize,
    head: usize,
    /// The directory to which shown paths are relative.
    base: PathBuf,
}

impl ContentSearch {
    fn plan(input: &GrepInput, context: &ToolContext) -> Result<Self, ToolError> {
        let multiline = input.multiline.unwrap_or(false);
        let mode = input.output_mode.unwrap_or_default();
        let only_matching = input.only_matching.unwrap_or(false);
        let around = input.around.or(input.context).unwrap_or(0);
        let lines = |number: Option<usize>| match mode {
            OutputMode::Content if !only_matching => number.unwrap_or(around).min(MAX_CONTEXT),
            _ => 0,
        };
        Ok(Self {
            candidates: Candidates::plan(
                context.target(&named(input, context))?,
                Arc::clone(&context.workspace),
                input.glob.as_deref(),
                input.file_type.as_deref(),
            )?,
            matcher: matcher(&input.pattern, input.ignore_case.unwrap_or(false), multiline)?,
            mode,
            multiline,
            before: lines(input.before),
            after: lines(input.after),
            line_numbers: input.line_numbers.unwrap_or(true),
            only_matching,
            offset: input.offset.unwrap_or(0),
            head: match input.head_limit.unwrap_or(DEFAULT_HEAD) {
                0 => usize::MAX,
                head => head,
            },
            base: resolve(&context.workspace.cwd()),
        })
    }

    fn run(&self, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
        let files = self.candidates.collect(cancel)?;
        let mut report = GrepReport::new(self);
        let unreadable = matches::search(self, &files, cancel, |found| report.add(found))?;
        Ok(report.finish(unreadable))
    }

    fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(true)
            .multi_line(self.multiline)
            .before_context(self.before)
            .after_context(self.after)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HEAP));
        if !self.multiline {
            builder.line_terminator(grep_matcher::LineTerminator::crlf());
        }
        builder.build()
    }

    /// The number of entries to collect: one more than shown, to know whether there are more.
    fn enough(&self) -> usize {
        self.offset.saturating_add(self.head).saturating_add(1)
    }
}

fn matcher(pattern: &str, ignore_case: bool, multiline: bool) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .case_insensitive(ignore_case)
        .dot_matches_new_line(multiline)
        .crlf(true);
    if multiline {
        builder.line_terminator(None);
    }
    builder.build(pattern).map_err(|error| {
        let error = error.to_string();
        let help = if error.contains("is not allowed") {
            "\nSet multiline to match across lines."
        } else {
            ""
        };
        ToolError::Input(format!("the pattern cannot be used: {error}{help}"))
    })
}

#[cfg(test)]
mod tests;
