//! Dialogs: a question whole, with who asks, why, and what each answer would write.

use serde_json::Value;

use super::Part;
use super::words::first_that_fits;
use crate::frame::{Colour, Line, Place, Span, Style};
use crate::model::Model;
use crate::model::asks::{AskKind, Asked, Dialog, FormField, Permission, Purpose, Question};
use crate::text::{MarkdownStream, diff_beginning, foreign, foreign_text, text_width, wrapped};

/// The fewest rows of a subject beside which everything else stands in full.
const SMALLEST_BODY: usize = 6;
/// The line in the place of the answers where the window has no room for them and the subject.
const TOO_SMALL: &str = "make the window larger to answer · esc no";

/// The parts of a dialog in a window.
///
/// Nothing is cut away: what does not fit below the subject stands whole at its end, and the subject scrolls.
pub(crate) struct DialogLayout {
    body: Vec<Line>,
    below: Vec<Line>,
    /// The keys of the answers in those rows.
    keys: Vec<Option<char>>,
    /// The rows of the subject that are shown at once.
    room: usize,
    cursor: Option<Place>,
    /// False in a window that has no room for the subject and the answers: only a no is heard then.
    pub(crate) is_answerable: bool,
}

impl DialogLayout {
    /// The layout of the dialog that is open, in the window that the model knows.
    pub(crate) fn of(model: &Model) -> Option<Self> {
        let (asked, dialog) = model.asks.current()?;
        Some(Self::new(asked, dialog, model.size.columns, super::dialog_rows(model.size)))
    }

    fn new(asked: &Asked, dialog: &Dialog, columns: u16, rows: u16) -> Self {
        let inner = columns.saturating_sub(4).max(8);
        let all = |lines: &[Line]| -> Vec<Line> {
            lines.iter().flat_map(|line| broken(line, inner)).collect()
        };
        let inside = usize::from(rows).saturating_sub(2).max(1);
        let mut body = all(&body(asked, dialog));
        let choices = choices(asked, dialog);
        let reasons: Vec<Line> = asker(asked, columns).into_iter().chain(reasons(asked)).collect();
        let (words, cursor) = words(dialog, inner, (inside / 2).max(1));
        let mut below = [all(&reasons), all(&choices)].concat();
        let is_tight = below.len() + words.len() + body.len().min(SMALLEST_BODY) > inside;
        if is_tight {
            let is_cut = |line: &&Line| line.width() > usize::from(inner);
            body.extend(all(&reasons));
            body.extend(choices.iter().filter(is_cut).flat_map(|line| broken(line, inner)));
            let most = inside.saturating_sub(words.len() + 2);
            below = if words.is_empty() { around(&choices, most) } else { Vec::new() };
            below = below.into_iter().map(|line| row_of(line, inner)).collect();
        }
        let before = if is_tight { 0 } else { all(&reasons).len() };
        let keys = answer_keys(&below, before);
        let offset = u16::try_from(below.len()).unwrap_or(u16::MAX);
        let cursor = cursor.map(|place| Place { row: place.row + offset, ..place });
        below.extend(words);
        let is_answerable = matches!(asked.kind, AskKind::Questions(_) | AskKind::Form { .. })
            || dialog.words.is_some()
            || !is_tight
            || below.len() >= choices.len();
        if !is_answerable {
            below = vec![row_of(dim(TOO_SMALL), inner)];
        }
        let room = inside.saturating_sub(below.len()).max(1);
        // The row that says how much more there is.
        let room = if body.len() > room { room.saturating_sub(1).max(1) } else { room };
        Self { body, below, keys, room, cursor, is_answerable }
    }

    /// The key of the answer in a row of the dialog.
    pub(super) fn key_at(&self, row: u16) -> Option<char> {
        let more = usize::from(self.last_scroll() > 0);
        let subject = self.body.len().min(self.room) + more;
        // The first row is the border.
        let at = usize::from(row).checked_sub(subject + 1)?;
        self.keys.get(at).copied().flatten().filter(|_| self.is_answerable)
    }

    /// The rows that a page key moves: one is seen again.
    pub(crate) fn page(&self) -> usize {
        self.room.saturating_sub(1).max(1)
    }

    /// The row of the subject that is the first one at its end.
    pub(crate) fn last_scroll(&self) -> usize {
        self.body.len().saturating_sub(self.room)
    }

    /// The rows of the subject from one on, with what says how many are not shown.
    fn shown(&self, scroll: usize) -> Vec<Line> {
        let first = scroll.min(self.last_scroll());
        let mut shown: Vec<Line> = self.body.iter().skip(first).take(self.room).cloned().collect();
        if self.last_scroll() > 0 {
            let left = self.last_scroll() - first;
            let said = match (first, left) {
                (_, 0) => "(the end) · pgup".to_owned(),
                (0, left) => format!("… {left} more lines below · pgdn"),
                (_, left) => format!("… {left} more lines below · pgdn pgup"),
            };
            shown.push(Line::flush().with(said, Style::DIM));
        }
        shown
    }
}

/// The keys of answers, in the rows behind those of the reasons. Only our own rows have one, whatever foreign text looks like.
fn answer_keys(rows: &[Line], reasons: usize) -> Vec<Option<char>> {
    let mut last = None;
    let key = |(at, line): (usize, &Line)| {
        let mark = line.spans.first().map(|span| span.text.as_str());
        last = match mark {
            _ if at < reasons => None,
            Some(MARK | "  ") => {
                let word = line.spans.get(1).and_then(|span| span.text.split_whitespace().next());
                let mut chars = word.unwrap_or_default().chars();
                chars.next().filter(|_| chars.next().is_none())
            }
            // The rest of an answer that was broken.
            Some(mark) if mark == " ".repeat(usize::from(HANG)) => last,
            _ => None,
        };
        last
    };
    rows.iter().enumerate().map(key).collect()
}

/// A dialog in at most so many rows.
pub(super) fn dialog(
    model: &Model,
    asked: &Asked,
    dialog: &Dialog,
    columns: u16,
    rows: u16,
) -> Part {
    let layout = DialogLayout::new(asked, dialog, columns, rows);
    let mut inside = layout.shown(dialog.scroll);
    let offset = u16::try_from(inside.len()).unwrap_or_default();
    inside.extend(layout.below);
    let mut top = border("╭", &headline(model, asked), "╮", columns);
    if let (Some(row), Some(name)) =
        (asked.agent.as_ref().and_then(|id| model.agents.get(id)), asked.path.last())
    {
        paint(&mut top, &format!(" ▸ {name}"), row.colour);
    }
    let mut lines = vec![top];
    lines.extend(inside.into_iter().map(|line| boxed(line, columns)));
    lines.push(border("╰", keys(asked, dialog, columns), "╯", columns));
    let cursor =
        layout.cursor.map(|place| Place { row: place.row + offset + 1, column: place.column + 2 });
    Part { lines, cursor }
}

/// The words that are being written, in at most so many rows, and the place of the cursor in them.
fn words(dialog: &Dialog, columns: u16, most: usize) -> (Vec<Line>, Option<Place>) {
    let Some(words) = &dialog.words else { return (Vec::new(), None) };
    let purpose = match words.purpose {
        Purpose::Reason => "why not: ",
        Purpose::Input => "run this instead: ",
        Purpose::Answer => "your words: ",
    };
    let mut rows = vec![Line::flush().with(purpose, Style::of(Colour::Cyan))];
    let (lines, place) = words.draft.lines(columns);
    let most = most.saturating_sub(1).max(1);
    // The row of the cursor is always among those that are shown.
    let first = (usize::from(place.row) + 1).saturating_sub(most);
    rows.extend(lines.into_iter().skip(first).take(most));
    let row = 1 + usize::from(place.row) - first;
    let place = Place { row: u16::try_from(row).unwrap_or_default(), ..place };
    (rows, Some(place))
}

/// So many of the lines, the marked one among them.
fn around(lines: &[Line], most: usize) -> Vec<Line> {
    let is_marked = |line: &Line| line.spans.first().is_some_and(|span| span.text == MARK);
    let at = lines.iter().position(is_marked).unwrap_or(0);
    let first = (at + 1).saturating_sub(most.max(1));
    lines.iter().skip(first).take(most.max(1)).cloned().collect()
}

/// A line in one row.
fn row_of(line: Line, columns: u16) -> Line {
    if line.width() > usize::from(columns) {
        return super::tree::cut(line, usize::from(columns));
    }
    line
}

/// A line in rows that fit, whatever it is: in a dialog nothing is cut.
fn broken(line: &Line, columns: u16) -> Vec<Line> {
    if line.width() <= usize::from(columns) {
        return vec![line.clone()];
    }
    let prose = Line { wrap: crate::frame::Wrap::Prose, ..line.clone() };
    wrapped(&prose, columns)
}

/// Draws a piece of a line's words in a colour.
fn paint(line: &mut Line, words: &str, colour: Colour) {
    let found = line.spans.iter().position(|span| span.text.contains(words));
    let Some(at) = found else { return };
    let span = line.spans.remove(at);
    let Some((before, after)) = span.text.rsplit_once(words) else { return };
    let pieces = [(before, span.style), (words, span.style.coloured(colour)), (after, span.style)];
    let pieces = pieces.map(|(text, style)| Span::new(text, style));
    line.spans.splice(at..at, pieces.into_iter().filter(|span| !span.text.is_empty()));
}

fn border(left: &str, words: &str, right: &str, columns: u16) -> Line {
    let mut line = Line::flush().with(format!("{left} "), Style::DIM);
    line.spans.extend(foreign(words, Style::BOLD));
    let room = usize::from(columns).saturating_sub(2);
    if line.width() > room {
        line = super::tree::cut(line, room);
    }
    line.push(" ", Style::PLAIN);
    let gap = usize::from(columns).saturating_sub(line.width() + 1);
    line.push("─".repeat(gap), Style::DIM);
    line.push(right.to_owned(), Style::DIM);
    line
}

fn boxed(line: Line, columns: u16) -> Line {
    let mut row = Line::flush().with("│ ", Style::DIM);
    row.spans.extend(line.spans);
    let gap = usize::from(columns).saturating_sub(row.width() + 1);
    row.push(" ".repeat(gap), Style::PLAIN);
    row.push("│", Style::DIM);
    row
}

impl Asked {
    /// Its subject, in a few words.
    pub(crate) fn headline(&self) -> String {
        match &self.kind {
            AskKind::Permission(permission) => format!(
                "{} {}",
                permission.tool,
                crate::model::call::subject(&permission.tool, &permission.input)
            )
            .trim_end()
            .to_owned(),
            AskKind::Plan { .. } => "a plan".to_owned(),
            AskKind::Questions(questions) if questions.len() == 1 => "a question".to_owned(),
            AskKind::Questions(questions) => format!("{} questions", questions.len()),
            AskKind::Form { server, .. } | AskKind::Visit { server, .. } => server.clone(),
            AskKind::Choice { title, .. } => title.clone(),
        }
    }
}

/// The names from the main agent down to the one that asks.
fn path_of(asked: &Asked) -> String {
    let names = std::iter::once("main").chain(asked.path.iter().map(String::as_str));
    names.collect::<Vec<_>>().join(" ▸ ")
}

/// The path of the asker, where the title has no room for it.
fn asker(asked: &Asked, columns: u16) -> Option<Line> {
    let AskKind::Permission(permission) = &asked.kind else { return None };
    let path = path_of(asked);
    let title = format!("99 of 99 · {} · {path}", foreign_text(&permission.tool));
    let is_cut = text_width(&title) + 5 > usize::from(columns);
    is_cut.then(|| dim(&format!("asked by {path}")))
}

pub(super) fn headline(model: &Model, asked: &Asked) -> String {
    let (place, count) = model.asks.place();
    let what = match &asked.kind {
        AskKind::Permission(permission) => permission.tool.clone(),
        AskKind::Plan { .. } => "Plan".to_owned(),
        AskKind::Questions(_) => "Question".to_owned(),
        AskKind::Form { server, .. } | AskKind::Visit { server, .. } => format!("server {server}"),
        AskKind::Choice { title, .. } => return title.clone(),
    };
    let path = path_of(asked);
    let task = asked
        .agent
        .as_ref()
        .and_then(|id| model.agents.get(id))
        .map(|row| format!(" · {}", row.task));
    format!("{place} of {count} · {what} · {path}{}", task.unwrap_or_default())
}

/// The keys of a dialog, in as many words as fit.
fn keys(asked: &Asked, dialog: &Dialog, columns: u16) -> &'static str {
    let wordings: &[&str] = match &asked.kind {
        _ if dialog.words.is_some() => &["enter sends · esc back"],
        AskKind::Permission(permission) if !permission.accepting_edits().is_empty() => &[
            "ctrl+n next ask · esc no · shift+tab accept edits",
            "esc no · shift+tab accept edits",
        ],
        AskKind::Permission(_) => {
            &["ctrl+n next ask · esc no · ctrl+c later", "ctrl+n next · esc no · ctrl+c later"]
        }
        AskKind::Plan { .. } => &[
            "ctrl+g your editor · pgdn pgup · ctrl+n next ask · ctrl+c later",
            "ctrl+g edit · pgdn · ctrl+c later",
        ],
        AskKind::Questions(questions) if dialog.tab >= questions.len() => &[
            "enter gives these answers · a number goes back to one · esc no answer",
            "enter gives them · 1-9 back · esc no",
        ],
        AskKind::Questions(_) => &[
            "enter next · space picks · ← back · esc no answer",
            "enter next · space picks · esc none",
        ],
        AskKind::Form { .. } => &["enter next · esc declines"],
        AskKind::Visit { .. } => &["1 y copy the address · 3 n decline"],
        AskKind::Choice { .. } => &["enter takes the marked one"],
    };
    first_that_fits(wordings, usize::from(columns).saturating_sub(4))
}

fn plain(text: &str) -> Line {
    let mut line = Line::flush();
    line.spans.extend(foreign(text, Style::PLAIN));
    line
}

fn dim(text: &str) -> Line {
    let mut line = Line::flush();
    line.spans.extend(foreign(text, Style::DIM));
    line
}

/// The whole subject of a question.
pub(super) fn body(asked: &Asked, dialog: &Dialog) -> Vec<Line> {
    match &asked.kind {
        AskKind::Permission(permission) => input_lines(permission),
        AskKind::Plan { text, .. } => {
            let mut stream = MarkdownStream::new();
            stream.feed(text);
            let mut lines = stream.finished_blocks();
            lines.extend(stream.finish());
            lines
        }
        AskKind::Questions(questions) if dialog.tab >= questions.len() => {
            vec![plain("Your answers:")]
        }
        AskKind::Questions(questions) => {
            let question = questions.get(dialog.tab);
            question
                .into_iter()
                .flat_map(|it| it.question.lines().map(plain).collect::<Vec<_>>())
                .collect()
        }
        AskKind::Form { message, .. } => message.lines().map(plain).collect(),
        AskKind::Visit { message, url, .. } => {
            message.lines().chain([url.as_str()]).map(plain).collect()
        }
        AskKind::Choice { lines, .. } => lines.iter().map(|line| plain(line)).collect(),
    }
}

/// The input of a call, whole: a command, a change, or all its fields.
fn input_lines(permission: &Permission) -> Vec<Line> {
    let input = &permission.input;
    let text = |name: &str| input[name].as_str();
    let path = || text("file_path").or(text("notebook_path"));
    if let Some(command) = text("command") {
        let mut lines: Vec<Line> = command.lines().map(plain).collect();
        lines.extend(
            text("description")
                .map(|about| dim(&format!("# {}", about.lines().next().unwrap_or_default()))),
        );
        let others = ["run_in_background", "dangerouslyDisableSandbox", "timeout"];
        let set = others.iter().filter(|name| input.get(**name).is_some_and(|it| !it.is_null()));
        lines.extend(set.map(|name| dim(&format!("{name}: {}", input[*name]))));
        return lines;
    }
    let mut lines: Vec<Line> = path().map(plain).into_iter().collect();
    match (text("old_string").zip(text("new_string")), text("content")) {
        // Every frame makes them anew: what is changed is compared only as far as that is quick.
        (Some((old, new)), _) => lines.extend(diff_beginning(old, new, usize::MAX).0),
        (None, Some(content)) if path().is_some() => {
            lines.extend(diff_beginning("", content, usize::MAX).0);
        }
        _ => {
            for (name, value) in input.as_object().into_iter().flatten() {
                let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let mut parts = said.lines();
                lines.push(plain(&format!("{name}: {}", parts.next().unwrap_or_default())));
                lines.extend(parts.map(|line| plain(&format!("  {line}"))));
            }
        }
    }
    lines
}

/// The reasons why a person is asked.
pub(super) fn reasons(asked: &Asked) -> Vec<Line> {
    let AskKind::Permission(permission) = &asked.kind else { return Vec::new() };
    let mut lines = vec![dim(&format!("because: {}", permission.because))];
    lines.extend(permission.reach.as_ref().map(|reach| dim(reach)));
    lines.extend(permission.rule.as_ref().map(|rule| dim(&format!("rule: {rule}"))));
    lines.extend(
        permission.server.as_ref().map(|server| dim(&format!("a tool of the server {server}"))),
    );
    lines
}

/// The answers.
pub(super) fn choices(asked: &Asked, dialog: &Dialog) -> Vec<Line> {
    match &asked.kind {
        AskKind::Permission(permission) => permission_choices(permission, dialog.selected),
        AskKind::Plan { .. } => {
            let choices = ["accept, ask for edits", "accept, allow edits", "keep planning: words"];
            numbered(&choices.map(str::to_owned), dialog.selected)
        }
        AskKind::Questions(questions) => question_choices(questions, dialog),
        AskKind::Form { fields, .. } => field_lines(fields, dialog),
        AskKind::Visit { .. } => Vec::new(),
        AskKind::Choice { choices, .. } => numbered(choices, dialog.selected),
    }
}

/// The mark of the selected answer.
const MARK: &str = "› ";
/// The blanks before the second and each later row of an answer.
const HANG: u16 = 4;

fn choice(key: &str, text: &str, is_selected: bool) -> Line {
    let style = if is_selected { Style::BOLD } else { Style::PLAIN };
    let mark = if is_selected { MARK } else { "  " };
    let mut line = Line { hang: HANG, ..Line::flush() }.with(mark, Style::of(Colour::Cyan));
    line.spans.extend(foreign(&format!("{key} {text}"), style));
    line
}

fn numbered(choices: &[String], selected: usize) -> Vec<Line> {
    let line = |(at, text): (usize, &String)| choice(&(at + 1).to_string(), text, at == selected);
    choices.iter().enumerate().map(line).collect()
}

fn permission_choices(permission: &Permission, selected: usize) -> Vec<Line> {
    let mut lines = vec![choice("1 y", "once", selected == 0)];
    let lasting = permission.lasting();
    if lasting.is_empty() {
        let why = if permission.rule.is_some() {
            "the rule above would ask again"
        } else {
            "not offered here"
        };
        lines.push(dim(&format!("  2   always: {why}")));
    } else {
        lines.push(choice("2 a", &format!("always: {}", written(&lasting)), selected == 1));
    }
    let session = permission.for_session();
    if !session.is_empty() {
        lines.push(choice("  s", &format!("this session: {}", written(&session)), false));
    }
    lines.push(choice("3 n", "no · tab with words · e edit first", selected == 2));
    lines
}

/// The rules that answers write, with their files.
pub(super) fn written(updates: &[Value]) -> String {
    let one = |update: &Value| {
        let place = match update["destination"].as_str() {
            Some("localSettings") => " → .claude/settings.local.json",
            Some("projectSettings") => " → .claude/settings.json",
            Some("userSettings") => " → ~/.claude/settings.json",
            _ => "",
        };
        let rule = |rule: &Value| {
            let tool = rule["toolName"].as_str().unwrap_or_default();
            rule["ruleContent"]
                .as_str()
                .map_or_else(|| tool.to_owned(), |content| format!("{tool}({content})"))
        };
        let listed = |key: &str, text: &dyn Fn(&Value) -> String| {
            update[key].as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(", ")
        };
        let what = match update["type"].as_str() {
            Some("addRules") => listed("rules", &rule),
            Some("addDirectories") => {
                format!(
                    "work in {}",
                    listed("directories", &|it| it.as_str().unwrap_or_default().to_owned())
                )
            }
            _ => String::new(),
        };
        format!("{what}{place}")
    };
    updates.iter().map(one).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}

fn question_choices(questions: &[Question], dialog: &Dialog) -> Vec<Line> {
    let mut lines = Vec::new();
    if questions.len() > 1 {
        let tab = |(at, question): (usize, &Question)| {
            let mark = if at == dialog.tab { "▸" } else { " " };
            format!("{mark}{}", question.header)
        };
        lines.push(dim(&questions.iter().enumerate().map(tab).collect::<Vec<_>>().join("  ")));
    }
    let Some(question) = questions.get(dialog.tab) else {
        for (at, question) in questions.iter().enumerate() {
            let said = dialog.answer(at, question);
            let said = if said.is_empty() { "no answer".to_owned() } else { said };
            lines.push(choice(
                &(at + 1).to_string(),
                &format!("{}: {said}", question.question),
                false,
            ));
        }
        return lines;
    };
    let picked = dialog.chosen.get(dialog.tab);
    for (at, (label, about)) in question.options.iter().enumerate() {
        let mark = match picked.is_some_and(|picked| picked.contains(&at)) {
            _ if !question.many => "",
            true => "[x] ",
            false => "[ ] ",
        };
        let about = if about.is_empty() { String::new() } else { format!(": {about}") };
        lines.push(choice(
            &(at + 1).to_string(),
            &format!("{mark}{label}{about}"),
            at == dialog.selected,
        ));
    }
    let at = question.options.len();
    let typed =
        dialog.typed.get(dialog.tab).and_then(Option::as_deref).unwrap_or("in your own words");
    lines.push(choice(&(at + 1).to_string(), typed, at == dialog.selected));
    lines
}

fn field_lines(fields: &[FormField], dialog: &Dialog) -> Vec<Line> {
    let mut lines = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let value = dialog.typed.get(at).and_then(Option::as_deref).unwrap_or("");
        let must = if field.is_required { " *" } else { "" };
        lines.push(choice("", &format!("{}{must}: {value}", field.name), at == dialog.tab));
        if at == dialog.tab {
            lines.extend((!field.about.is_empty()).then(|| dim(&format!("     {}", field.about))));
            let choices = field.choices();
            let shown = choices.iter().enumerate();
            lines.extend(shown.map(|(at, text)| choice("  ", text, at == dialog.selected)));
        }
    }
    lines
}
