//! The view: what a terminal of a size shows of a model. Knows no clock, terminal, file or task.

pub(crate) mod dialog;
mod plain;
mod prompt;
mod screens;
pub(crate) mod table;
pub(crate) mod touch;
mod tree;
pub(crate) mod words;

use crate::draft::ViMode;
use crate::frame::{Colour, Frame, Line, Place, Size, Style};
use crate::keys::{Action, Context};
use crate::model::screen::Screen;
use crate::model::{Focus, Model};
use crate::text::foreign;

/// A window of fewer cells has the prompt alone.
const SMALLEST: Size = Size { columns: 20, rows: 6 };

/// A window of fewer columns has the shortest words.
const NARROW: u16 = 60;

/// True if a window has room for no more than the prompt: dialogs and screens are not shown, and hear no key.
pub(crate) fn is_prompt_alone(size: Size) -> bool {
    size.columns < SMALLEST.columns || size.rows < SMALLEST.rows
}

/// The rows of the viewer, which has the terminal's other screen.
pub(crate) fn viewer_rows(size: Size) -> u16 {
    size.rows
}

/// The most rows of another screen: the row above it belongs to what was printed.
fn screen_rows(size: Size) -> u16 {
    size.rows.saturating_sub(1)
}

/// The most rows of a dialog, which has the status line below it.
pub(crate) fn dialog_rows(size: Size) -> u16 {
    size.rows.saturating_sub(2)
}

/// The frame that shows the model.
pub fn view(model: &Model, size: Size) -> Frame {
    if model.taste.is_plain {
        return plain::plain(model);
    }
    let mut frame = whole_rows(model, size);
    let columns = usize::from(size.columns);
    for line in frame.live.iter_mut().filter(|line| line.width() > columns) {
        *line = tree::cut(std::mem::take(line), columns);
    }
    frame
}

/// The same with rows that may be too long.
fn whole_rows(model: &Model, size: Size) -> Frame {
    let mut frame =
        Frame { print: model.unprinted().to_vec(), title: Some(title(model)), ..Frame::default() };
    if is_prompt_alone(size) {
        let prompt = prompt::prompt(model, size.columns, 1);
        frame.cursor = prompt.cursor;
        frame.live = prompt.lines;
        return frame;
    }
    let half = half_of(size);
    if let Some(screen) = &model.screen {
        frame.is_whole = matches!(screen, Screen::Viewer(_));
        let rows = if frame.is_whole { viewer_rows(size) } else { screen_rows(size) };
        let part = screens::screen(model, screen, size.columns, rows);
        (frame.live, frame.cursor) = (part.lines, part.cursor);
        if let (Some(asks), Some(last)) = (asking(model), frame.live.last_mut()) {
            last.spans.insert(0, crate::frame::Span::new(format!(" {asks} ·"), Style::BOLD));
        }
        return frame;
    }
    if let Some((asked, dialog)) = model.asks.current() {
        let part = dialog::dialog(model, asked, dialog, size.columns, dialog_rows(size));
        frame.cursor = part.cursor;
        frame.live = part.lines;
        frame.live.push(status(model, size.columns));
        return frame;
    }
    let prompt = prompt::prompt(model, size.columns, (half / 2).max(1));
    let below = prompt.lines.len() + 1 + model.taste.status.len();
    let room = usize::from(half).saturating_sub(below);
    frame.live = above_prompt(model, size, room).into_iter().map(|(line, _)| line).collect();
    let offset = u16::try_from(frame.live.len()).unwrap_or(u16::MAX);
    frame.cursor = prompt.cursor.map(|place| Place { row: place.row + offset, ..place });
    frame.live.extend(prompt.lines);
    frame.live.extend(model.taste.status.iter().cloned());
    frame.live.push(status(model, size.columns));
    frame
}

/// The most rows of the live region at the prompt.
fn half_of(size: Size) -> u16 {
    (size.rows / 2).max(4)
}

/// Some rows, with the place of the cursor in them.
pub(crate) struct Part {
    pub(crate) lines: Vec<Line>,
    pub(crate) cursor: Option<Place>,
}

fn title(model: &Model) -> String {
    let asks = model.asks.open.len();
    match (asks, model.talk.is_busy || model.agents.any_at_work()) {
        (0, true) => "● centurion".to_owned(),
        (0, false) => "centurion".to_owned(),
        (asks, _) => format!("? {asks} · centurion"),
    }
}

/// The parts above the prompt, the most important nearest to it, in at most so many rows; each row with its agent if it is
/// one's.
fn above_prompt(model: &Model, size: Size, room: usize) -> Vec<tree::TreeRow> {
    let columns = size.columns;
    let mut parts: Vec<Vec<tree::TreeRow>> = Vec::new();
    let mut left = room;
    let plain = |lines: Vec<Line>| lines.into_iter().map(|line| (line, None)).collect();
    let take =
        |mut lines: Vec<tree::TreeRow>, left: &mut usize, parts: &mut Vec<Vec<tree::TreeRow>>| {
            if lines.len() > *left {
                lines.drain(..lines.len() - *left);
            }
            *left -= lines.len();
            parts.push(lines);
        };
    if let Some(notice) = &model.notice {
        let line = Line::flush().with("  ", Style::PLAIN);
        let line =
            foreign(notice, Style::of(Colour::Yellow)).into_iter().fold(line, |mut line, span| {
                line.spans.push(span);
                line
            });
        take(vec![(line, None)], &mut left, &mut parts);
    }
    take(plain(prompt::queue(model, columns)), &mut left, &mut parts);
    if let Focus::Agent(id) = &model.focus {
        take(plain(tree::focused(model, id, columns, left)), &mut left, &mut parts);
    } else {
        take(plain(shells(model, columns)), &mut left, &mut parts);
        take(plain(activity(model, columns)), &mut left, &mut parts);
        let most = usize::from(size.rows / 3).max(2).min(left);
        take(tree::tree(model, columns, most), &mut left, &mut parts);
        take(plain(todos(model)), &mut left, &mut parts);
        take(plain(open_block(model, columns)), &mut left, &mut parts);
    }
    parts.reverse();
    parts.concat()
}

/// The block of the answer that is still being written.
fn open_block(model: &Model, columns: u16) -> Vec<Line> {
    let Some(stream) = &model.talk.stream else { return Vec::new() };
    let lines = stream.text.open_block();
    lines.iter().flat_map(|line| crate::text::wrapped(line, columns.min(100))).collect()
}

fn todos(model: &Model) -> Vec<Line> {
    use crate::model::talk::TodoState;
    let todos = &model.talk.todos;
    if !model.talk.is_busy || todos.iter().all(|todo| todo.state == TodoState::Done) {
        return Vec::new();
    }
    let line = |todo: &crate::model::talk::Todo| {
        let (mark, style) = match todo.state {
            TodoState::Done => ("✓ ", Style::DIM),
            TodoState::Active => ("◼ ", Style::BOLD),
            TodoState::Pending => ("◻ ", Style::PLAIN),
        };
        let mut line = Line::flush().with(mark, style);
        line.spans.extend(foreign(&todo.text, style));
        line
    };
    todos.iter().filter(|todo| todo.state != TodoState::Done).take(5).map(line).collect()
}

/// The commands of the person's own that run, each with the last line that it printed.
fn shells(model: &Model, columns: u16) -> Vec<Line> {
    let rows = model.talk.shells.iter().flat_map(|shell| {
        let mut line = Line::flush().with("! ", Style::of(Colour::Yellow));
        line.spans.extend(foreign(&shell.command, Style::BOLD));
        let how = if shell.is_stopping { "stopping" } else { "esc stops it" };
        let took = words::clock(model.now.saturating_sub(shell.began));
        let rest = format!(" · {took} · {how}");
        let room = usize::from(columns).saturating_sub(rest.chars().count());
        if line.width() > room {
            line = tree::cut(line, room);
        }
        line.push(rest, Style::DIM);
        let last = (!shell.last_line.is_empty()).then(|| {
            let mut last = Line::flush().with("  ", Style::PLAIN);
            last.spans.extend(foreign(&shell.last_line, Style::DIM));
            last
        });
        std::iter::once(line).chain(last)
    });
    rows.collect()
}

/// The time after which a person is told how to let a call continue in the background.
const BACKGROUND_HINT: std::time::Duration = std::time::Duration::from_secs(2);

/// The frames of the spinner.
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The present act of the main agent.
fn activity(model: &Model, columns: u16) -> Vec<Line> {
    let talk = &model.talk;
    if !talk.is_busy {
        return Vec::new();
    }
    let calls = talk.running.iter().filter(|call| !talk.started.contains(&call.id));
    let mut lines: Vec<Line> = calls
        .take(4)
        .map(|call| {
            let mut line = Line::flush().with("● ", Style::of(Colour::Yellow));
            line.spans.extend(foreign(&call.tool, Style::BOLD));
            line.push(" ", Style::PLAIN);
            line.spans.extend(foreign(&call.subject, Style::PLAIN));
            let took = model.now.saturating_sub(call.began);
            if took.as_secs() >= 1 {
                line.push(format!(" · {}", words::clock(took)), Style::DIM);
            }
            line
        })
        .collect();
    let tick = usize::try_from(model.now.as_millis() / 250).unwrap_or_default();
    let mark = SPINNER.get(tick % SPINNER.len()).filter(|_| !model.taste.is_still).unwrap_or(&"●");
    let what = match talk.waits {
        Some(centurion_protocol::sdk::WaitsFor::Person) => "waits for you",
        Some(centurion_protocol::sdk::WaitsFor::Provider) => "waits for the provider",
        Some(centurion_protocol::sdk::WaitsFor::Agent) => "waits for agents",
        Some(centurion_protocol::sdk::WaitsFor::Servers) => "waits for servers",
        Some(centurion_protocol::sdk::WaitsFor::Slot) => "waits for a slot",
        None if talk.is_thinking => "thinking",
        None if talk.stream.is_some() => "answering",
        None => "working",
    };
    let took = words::clock(model.now.saturating_sub(talk.since));
    if columns < NARROW {
        let mut line = Line::flush().with(format!("{mark} {took}"), Style::of(Colour::Yellow));
        if talk.received > 0 {
            line.push(format!(" ↓{}", words::amount(talk.received)), Style::DIM);
        }
        line.push(" · esc", Style::DIM);
        lines.push(line);
        return lines;
    }
    let mut line = Line::flush().with(format!("{mark} {what} · {took}"), Style::of(Colour::Yellow));
    if talk.received > 0 {
        line.push(format!(" · ↓ {}", words::amount(talk.received)), Style::DIM);
    }
    let can_background = talk.running.iter().any(|call| {
        let is_waited_for = matches!(call.tool.as_str(), "Agent" | "Task" | "Bash");
        is_waited_for && model.now.saturating_sub(call.began) >= BACKGROUND_HINT
    });
    if let Some(keys) =
        model.bindings.shown(Context::Chat, Action::Background).filter(|_| can_background)
    {
        line.push(format!(" · {keys} continues without waiting"), Style::DIM);
    }
    line.push(" · esc stops this turn only", Style::DIM);
    lines.push(line);
    lines
}

/// The words that say who asks.
fn asking(model: &Model) -> Option<String> {
    let first = model.asks.open.front()?;
    let who = first.path.last().map_or("main", String::as_str);
    let more = model.asks.open.len() - 1;
    let more = if more > 0 { format!(" +{more}") } else { String::new() };
    Some(crate::text::foreign_text(&format!("? {who} asks{more}")))
}

/// The last row.
fn status(model: &Model, columns: u16) -> Line {
    let facts = &model.facts;
    let is_narrow = columns < NARROW;
    let mut words: Vec<String> = Vec::new();
    if let Some(asks) = asking(model).filter(|_| model.asks.dialog.is_none()) {
        words.push(format!("{asks}: alt+a"));
    }
    if model.taste.vi.as_ref().is_some_and(|vi| vi.mode == ViMode::Normal) {
        words.push("NORMAL".to_owned());
    }
    words.push(if facts.mode == "default" { "manual".to_owned() } else { facts.mode.clone() });
    if !is_narrow && !facts.model.is_empty() {
        words.push(facts.model.clone());
    }
    if facts.window > 0 {
        let share = facts.context * 100 / facts.window.max(1);
        let of =
            if is_narrow { String::new() } else { format!(" of {}", words::amount(facts.window)) };
        words.push(format!("{share} %{of}"));
    }
    words.push(words::money(facts.dollars));
    if !is_narrow {
        words.push(if facts.is_open { "? keys".to_owned() } else { "starting".to_owned() });
    }
    words.retain(|word| !word.is_empty());
    let mut line = Line::flush().with(" ", Style::DIM);
    line.spans.extend(foreign(&words.join(" · "), Style::DIM));
    line
}

/// A horizontal rule with words in it.
pub(crate) fn rule(words: &str, columns: u16) -> Line {
    rule_with_end(words, "", columns)
}

/// The same with a key near its end, where there is room.
fn rule_with_end(words: &str, end: &'static str, columns: u16) -> Line {
    let mut line = Line::flush().with("─ ", Style::DIM);
    line.spans.extend(foreign(words, Style::PLAIN));
    line.push(" ", Style::PLAIN);
    let left = usize::from(columns).saturating_sub(line.width());
    let of_end = crate::text::text_width(end) + 3;
    if end.is_empty() || left < of_end {
        line.push("─".repeat(left), Style::DIM);
        return line;
    }
    line.push("─".repeat(left - of_end), Style::DIM);
    line.push(format!(" {end} "), Style::PLAIN);
    line.push("─", Style::DIM);
    line
}
