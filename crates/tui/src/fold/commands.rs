//! Commands of the terminal's own that ask nothing of the model.

use super::{picker, send, tables};
use crate::effect::Effect;
use crate::look::Theme;
use crate::model::Model;
use crate::model::picker::{PickFor, PickRow, Picker};
use crate::model::prompts::When;
use crate::model::screen::Screen;
use crate::model::table::TableOf;
use crate::surface::Tui;
use crate::text::text_width;

/// Carries out a command; whether it is one of these.
pub(super) fn own(
    model: &mut Model,
    name: &str,
    arguments: &str,
    effects: &mut Vec<Effect>,
) -> bool {
    if let Some(of) = table_of(name).filter(|_| arguments.is_empty()) {
        tables::open(of, "", effects);
        return true;
    }
    match (name, arguments) {
        ("tasks" | "list-agents" | "bashes", "") => picker::tasks(model),
        ("background", "") => effects.push(Effect::Background(model.addressee())),
        ("copy", number) => copy(model, number, effects),
        ("plan", words) => {
            effects.push(Effect::SetMode("plan".to_owned()));
            if !words.is_empty() {
                send::command(model, words, When::Next, effects);
            }
        }
        ("branch" | "fork", "") => effects.push(Effect::Branch),
        ("theme", "") => themes(model),
        ("theme", name) => match Theme::named(name) {
            Some(theme) => {
                effects.push(Effect::Restyle(theme));
                effects.push(Effect::KeepSetting { key: "theme", value: name.to_owned() });
            }
            None => model.notice = Some(format!("there is no theme {name}")),
        },
        ("tui", "") => screens(model),
        ("tui", name) => match Tui::named(name) {
            Some(tui) => {
                let value = if tui == Tui::Fullscreen { "fullscreen" } else { "default" };
                effects.push(Effect::Use(tui));
                effects.push(Effect::KeepSetting { key: "tui", value: value.to_owned() });
            }
            None => model.notice = Some(format!("there is no {name}: default or fullscreen")),
        },
        ("effort", "") => efforts(model),
        ("effort", level) => effects.push(Effect::SetEffort(level.to_owned())),
        ("keybindings", "") => effects.push(Effect::EditKeys),
        ("model", "") => effects.push(Effect::Show { command: "model".to_owned() }),
        ("config", words) => tables::open(TableOf::Settings, words, effects),
        ("help", "") => help(model),
        ("diff" | "doctor" | "trust" | "plugin" | "sandbox", "") => {
            effects.push(Effect::Show { command: name.to_owned() });
        }
        ("statusline", words) => {
            let what = if words.is_empty() { "as my shell's prompt is" } else { words };
            let text = format!("Use the statusline-setup agent to set my status line: {what}");
            send::command(model, &text, When::Next, effects);
        }
        _ => return false,
    }
    true
}

/// The table that a command without words opens.
fn table_of(name: &str) -> Option<TableOf> {
    Some(match name {
        "agents" => TableOf::Agents,
        "context" => TableOf::Contexts,
        "cost" | "usage" => TableOf::Costs,
        "hooks" => TableOf::Hooks,
        "mcp" => TableOf::Servers,
        "memory" => TableOf::Memory,
        "permissions" => TableOf::Rules,
        "resume" => TableOf::Sessions,
        "rewind" => TableOf::Points,
        "skills" => TableOf::Skills,
        "team" => TableOf::Team,
        _ => return None,
    })
}

/// Copies one of the last answers: the newest is 1.
fn copy(model: &mut Model, number: &str, effects: &mut Vec<Effect>) {
    let place: usize = number.parse().unwrap_or(1);
    match model.talk.answers.get(place.saturating_sub(1)) {
        Some(answer) => {
            let lines = answer.lines().count();
            effects.push(Effect::Copy(answer.clone()));
            model.notice = Some(format!("copied {lines} lines"));
        }
        None => model.notice = Some("there is no such answer".to_owned()),
    }
}

/// Shows all commands: those of the session, and those of the terminal.
fn help(model: &mut Model) {
    const WIDEST: usize = 28;
    let mut rows: Vec<(String, &str)> = model
        .commands
        .iter()
        .map(|it| (format!("/{} {}", it.name, it.arguments), it.about.as_str()))
        .collect();
    rows.sort();
    rows.dedup();
    let widths = rows.iter().map(|(head, _)| text_width(head.trim_end()));
    let widest = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
    let row = |(head, about): &(String, &str)| format!("{:<widest$}  {about}", head.trim_end());
    let text = rows.iter().map(row).collect::<Vec<_>>().join("\n");
    super::facts::shown(model, "/help".to_owned(), &text);
}

fn screens(model: &mut Model) {
    let rows = [
        ("default", "below what the terminal shows, with its own scrollback"),
        ("fullscreen", "the whole window, with the mouse"),
    ];
    let row = |(name, about): (&str, &str)| PickRow {
        text: name.to_owned(),
        hint: about.to_owned(),
        value: format!("/tui {name}"),
    };
    let rows = rows.into_iter().map(row).collect();
    super::show_screen(model, Screen::Picker(Picker::new("Screen", PickFor::Command, rows)));
}

fn efforts(model: &mut Model) {
    const LEVELS: [(&str, &str); 6] = [
        ("low", "quick answers"),
        ("medium", ""),
        ("high", ""),
        ("xhigh", ""),
        ("max", "whatever it takes"),
        ("usual", "the model's own measure"),
    ];
    let row = |(name, about): &(&str, &str)| PickRow {
        text: (*name).to_owned(),
        hint: (*about).to_owned(),
        value: format!("/effort {name}"),
    };
    let rows = LEVELS.iter().map(row).collect();
    super::show_screen(model, Screen::Picker(Picker::new("Effort", PickFor::Command, rows)));
}

fn themes(model: &mut Model) {
    let about = |theme: Theme| match theme {
        Theme::Terminal => "the sixteen colours of your terminal",
        Theme::Daltonized => "the same without red beside green",
        Theme::Plain => "no colours",
    };
    let row = |(name, theme): &(&str, Theme)| PickRow {
        text: (*name).to_owned(),
        hint: about(*theme).to_owned(),
        value: format!("/theme {name}"),
    };
    let rows = Theme::NAMES.iter().map(row).collect();
    super::show_screen(model, Screen::Picker(Picker::new("Theme", PickFor::Command, rows)));
}
