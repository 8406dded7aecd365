//! Dialogs: a question whole, with who asks, why, and what each answer would write.

use serde_json::Value;

use super::Part;
use crate::frame::{Colour, Line, Place, Style};
use crate::model::Model;
use crate::model::asks::{AskKind, Asked, Dialog, FormField, Permission, Purpose, Question};
use crate::text::{diff, foreign, wrapped};

/// A dialog in at most so many rows.
pub(super) fn dialog(
    model: &Model,
    asked: &Asked,
    dialog: &Dialog,
    columns: u16,
    rows: u16,
) -> Part {
    let inner = columns.saturating_sub(4).max(8);
    let body: Vec<Line> = body(asked, dialog).iter().flat_map(|line| broken(line, inner)).collect();
    let mut below: Vec<Line> =
        below(asked, dialog).iter().flat_map(|line| broken(line, inner)).collect();
    let mut cursor = None;
    if let Some(words) = &dialog.words {
        let purpose = match words.purpose {
            Purpose::Reason => "why not: ",
            Purpose::Input => "run this instead: ",
            Purpose::Answer => "your words: ",
        };
        below.push(Line::flush().with(purpose, Style::of(Colour::Cyan)));
        let (lines, place) = words.draft.lines(inner);
        cursor = Some(Place {
            row: u16::try_from(below.len()).unwrap_or_default() + place.row,
            column: place.column,
        });
        below.extend(lines);
    }
    let room = usize::from(rows).saturating_sub(below.len() + 2).max(1);
    let most = body.len().saturating_sub(room);
    let first = dialog.scroll.min(most);
    let mut inside: Vec<Line> = body.iter().skip(first).take(room).cloned().collect();
    if most > 0 {
        let left = body.len() - first - inside.len();
        let said = format!("… {left} more lines below · pgdn pgup");
        if let Some(last) = inside.last_mut() {
            *last = Line::flush().with(said, Style::DIM);
        }
    }
    let offset = inside.len();
    inside.extend(below);
    let mut lines = vec![border("╭", &headline(model, asked), "╮", columns)];
    lines.extend(inside.into_iter().map(|line| boxed(line, columns)));
    lines.push(border("╰", &keys(asked, dialog), "╯", columns));
    let cursor = cursor.map(|place| Place {
        row: place.row + u16::try_from(offset).unwrap_or_default() + 1,
        column: place.column + 2,
    });
    Part { lines, cursor }
}

/// A line in rows that fit, whatever it is: in a dialog nothing is cut.
fn broken(line: &Line, columns: u16) -> Vec<Line> {
    if line.width() <= usize::from(columns) {
        return vec![line.clone()];
    }
    let prose = Line { wrap: crate::frame::Wrap::Prose, ..line.clone() };
    wrapped(&prose, columns)
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

fn headline(model: &Model, asked: &Asked) -> String {
    let (place, count) = model.asks.place();
    let what = match &asked.kind {
        AskKind::Permission(permission) => permission.tool.clone(),
        AskKind::Plan { .. } => "Plan".to_owned(),
        AskKind::Questions(_) => "Question".to_owned(),
        AskKind::Form { server, .. } | AskKind::Visit { server, .. } => format!("server {server}"),
        AskKind::Choice { title, .. } => return title.clone(),
    };
    let path = std::iter::once("main".to_owned())
        .chain(asked.path.iter().cloned())
        .collect::<Vec<_>>()
        .join(" ▸ ");
    let task = asked
        .agent
        .as_ref()
        .and_then(|id| model.agents.get(id))
        .map(|row| format!(" · {}", row.task));
    format!("{place} of {count} · {what} · {path}{}", task.unwrap_or_default())
}

fn keys(asked: &Asked, dialog: &Dialog) -> String {
    if dialog.words.is_some() {
        return "enter sends · esc back".to_owned();
    }
    match &asked.kind {
        AskKind::Permission(permission) if !permission.accepting_edits().is_empty() => {
            "ctrl+n next ask · esc no · shift+tab accept edits".to_owned()
        }
        AskKind::Permission(_) | AskKind::Plan { .. } => {
            "ctrl+n next ask · esc no · ctrl+c later".to_owned()
        }
        AskKind::Questions(_) => "enter next · space picks · ← back · esc no answer".to_owned(),
        AskKind::Form { .. } => "enter next · esc declines".to_owned(),
        AskKind::Visit { .. } => "1 y copy the address · 3 n decline".to_owned(),
        AskKind::Choice { .. } => "enter takes the marked one".to_owned(),
    }
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
fn body(asked: &Asked, dialog: &Dialog) -> Vec<Line> {
    match &asked.kind {
        AskKind::Permission(permission) => input_lines(permission),
        AskKind::Plan { text } => text.lines().map(plain).collect(),
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
        (Some((old, new)), _) => lines.extend(diff(old, new)),
        (None, Some(content)) if path().is_some() => lines.extend(diff("", content)),
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

/// The reason and the choices.
fn below(asked: &Asked, dialog: &Dialog) -> Vec<Line> {
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

fn choice(key: &str, text: &str, is_selected: bool) -> Line {
    let style = if is_selected { Style::BOLD } else { Style::PLAIN };
    let mark = if is_selected { "› " } else { "  " };
    let mut line = Line { hang: 4, ..Line::flush() }.with(mark, Style::of(Colour::Cyan));
    line.spans.extend(foreign(&format!("{key} {text}"), style));
    line
}

fn numbered(choices: &[String], selected: usize) -> Vec<Line> {
    let line = |(at, text): (usize, &String)| choice(&(at + 1).to_string(), text, at == selected);
    choices.iter().enumerate().map(line).collect()
}

fn permission_choices(permission: &Permission, selected: usize) -> Vec<Line> {
    let mut lines = vec![dim(&format!("because: {}", permission.because))];
    lines.extend(permission.rule.as_ref().map(|rule| dim(&format!("rule: {rule}"))));
    lines.extend(
        permission.server.as_ref().map(|server| dim(&format!("a tool of the server {server}"))),
    );
    lines.push(choice("1 y", "once", selected == 0));
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
    let Some(question) = questions.get(dialog.tab) else { return lines };
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
