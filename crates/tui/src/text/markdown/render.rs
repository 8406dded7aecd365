//! Markdown as lines.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::frame::{Colour, Line, Style};
use crate::text::{foreign, highlighted, text_width};

/// The lines of a whole text.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut made = Renderer::default();
    for event in Parser::new_ext(text, options) {
        made.take(event);
    }
    made.end_line();
    made.lines
}

#[derive(Default)]
struct Renderer {
    lines: Vec<Line>,
    open: Line,
    styles: Vec<Style>,
    /// The text before each line: bars of quotes, blanks of items.
    prefix: Vec<(String, Style)>,
    /// The numbers of the lists that are open; bullets have none.
    lists: Vec<Option<u64>>,
    /// The mark of an item whose text has not begun.
    mark: Option<String>,
    needs_gap: bool,
    code: Option<(String, String)>,
    link: Option<(String, usize)>,
    table: Option<TableText>,
}

#[derive(Default)]
struct TableText {
    rows: Vec<Vec<Line>>,
    heads: usize,
}

impl Renderer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, self.style()),
            },
            Event::Code(text) => self.text(&text, self.style().coloured(Colour::Cyan)),
            Event::Html(text) | Event::InlineHtml(text) => {
                for (index, line) in text.trim_end_matches('\n').split('\n').enumerate() {
                    if index > 0 {
                        self.end_line();
                    }
                    self.text(line, self.style().dim());
                }
            }
            Event::SoftBreak => self.text(" ", self.style()),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.begin_block();
                self.text(&"─".repeat(20), Style::DIM);
                self.end_block();
            }
            Event::TaskListMarker(is_done) => {
                self.mark = None;
                self.text(if is_done { "✓ " } else { "◻ " }, self.style());
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text, self.style());
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                let style = Style::BOLD;
                self.styles.push(if level as u8 == 1 { style.underlined() } else { style });
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.prefix.push(("│ ".to_owned(), Style::DIM));
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(number) => {
                if self.lists.is_empty() {
                    self.begin_block();
                } else {
                    self.end_line();
                }
                self.lists.push(number);
            }
            Tag::Item => {
                self.end_line();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "- ".to_owned(),
                };
                self.prefix.push((" ".repeat(mark.len()), Style::PLAIN));
                self.mark = Some(mark);
                self.needs_gap = false;
            }
            Tag::Emphasis => self.styles.push(self.style().italic()),
            Tag::Strong => self.styles.push(self.style().bold()),
            Tag::Strikethrough => self.styles.push(self.style().dim()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.styles.push(self.style().underlined());
                self.link = Some((dest_url.to_string(), self.open.text().len()));
            }
            Tag::Table(_) => {
                self.begin_block();
                self.table = Some(TableText::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.prefix.pop();
                self.needs_gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
                self.needs_gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_line();
                self.prefix.pop();
                self.mark = None;
                self.needs_gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some((target, start)) = self.link.take()
                    && self.open.text().get(start..) != Some(target.as_str())
                {
                    self.text(&format!(" ({target})"), self.style().dim());
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.open);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::TableHead => {
                if let Some(table) = &mut self.table {
                    table.heads = table.rows.len();
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn text(&mut self, text: &str, style: Style) {
        if self.open.spans.is_empty() && self.table.is_none() {
            self.begin_line();
        }
        self.open.spans.extend(foreign(text, style));
    }

    /// Writes what stands before a line.
    fn begin_line(&mut self) {
        let mark = self.mark.take();
        let last = self.prefix.len();
        for (index, (text, style)) in self.prefix.iter().enumerate() {
            let is_marked = index + 1 == last;
            match mark.as_ref().filter(|_| is_marked) {
                Some(mark) => self.open.push(mark.as_str(), Style::PLAIN),
                None => self.open.push(text.as_str(), *style),
            }
        }
        self.open.hang = u16::try_from(self.open.width()).unwrap_or_default();
    }

    fn begin_block(&mut self) {
        self.end_line();
        if std::mem::take(&mut self.needs_gap) {
            self.lines.push(Line::default());
        }
    }

    fn end_block(&mut self) {
        self.end_line();
        self.needs_gap = true;
    }

    fn end_line(&mut self) {
        if !self.open.spans.is_empty() {
            self.lines.push(std::mem::take(&mut self.open));
        }
    }

    /// Code stands at the left margin, so that it is copied as it is.
    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        if self.mark.is_some() {
            self.begin_line();
            self.end_line();
        }
        self.lines.extend(highlighted(&code, &language));
        self.needs_gap = true;
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            table
                .rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(Line::width)
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in table.rows.iter().enumerate() {
            let mut line = Line::flush();
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    line.push(" │ ", Style::DIM);
                }
                let cell = row.get(column).cloned().unwrap_or_default();
                let used: usize = cell.spans.iter().map(|span| text_width(&span.text)).sum();
                for span in cell.spans {
                    let style = if index < table.heads { span.style.bold() } else { span.style };
                    line.push(span.text, style);
                }
                line.push(" ".repeat(width - used), Style::PLAIN);
            }
            self.lines.push(line);
            if index + 1 == table.heads {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.lines.push(Line::flush().with(rules.join("─┼─"), Style::DIM));
            }
        }
        self.needs_gap = true;
    }
}
