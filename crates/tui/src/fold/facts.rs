//! Facts: what was asked for and has come, and states of the session that were looked at.

use centurion_protocol::{AgentId, SessionId};

use super::lines::{marked, said, told};
use super::{brought, chat, panes, tables};
use crate::attachment::Attachment;
use crate::effect::Effect;
use crate::frame::{Colour, Line, Style};
use crate::keys::Bindings;
use crate::look::Theme;
use crate::model::asks::AskNumber;
use crate::model::picker::Picker;
use crate::model::prompts::{PromptNumber, Stage, When};
use crate::model::screen::{Screen, TextScreen};
use crate::model::table::{Table, TableOf};
use crate::model::{Addressee, CommandHint, Model};
use crate::surface::Tui;
use crate::text::{foreign, text_width};

/// The most characters that are shown of what a command prints while it runs.
const MOST_SHOWN: usize = 400;

#[derive(Debug)]
pub enum Fact {
    /// The session is open.
    Opened {
        session: SessionId,
        model: String,
        mode: String,
        cwd: String,
        window: u64,
    },
    Commands(Vec<CommandHint>),
    /// The prompt that the program was started with.
    Prompt(String),
    /// The prompts that the session holds and no turn has read.
    Held(Vec<PromptNumber>),
    /// A prompt could not be delivered, and why.
    Undelivered {
        number: PromptNumber,
        why: String,
    },
    /// The spending of the session, and of each agent with everything below it.
    Spending {
        dollars: f64,
        agents: Vec<(AgentId, f64)>,
    },
    Mode(String),
    /// A text that a command shows.
    Shown {
        title: String,
        text: String,
    },
    /// A list to choose from.
    Pick(Picker),
    /// The person's ways, from their settings.
    Taste {
        has_vi: bool,
        is_still: bool,
        is_far: bool,
        wants_status: bool,
        theme: Theme,
        tui: Tui,
    },
    /// The status line that the person's own command has made.
    StatusLine(Vec<String>),
    /// The same for rows of agents.
    AgentRows(Vec<(AgentId, String)>),
    /// An image for the draft.
    Image(Attachment),
    /// A pasted text that was no image.
    Pasted(String),
    /// The keys of the person's files.
    Keys(Bindings),
    /// The plan that comes back from an editor.
    PlanEdited {
        number: AskNumber,
        text: String,
    },
    /// A table that was asked for; `is_again` if it was shown already.
    Table {
        table: Box<Table>,
        is_again: bool,
    },
    /// All that is known of a row of a table.
    Detail {
        of: TableOf,
        id: String,
        lines: Vec<Line>,
    },
    /// The rows in which words were found, each with the place.
    Found {
        words: String,
        rows: Vec<(String, Vec<Line>)>,
    },
    /// A page of a transcript: its lines, and the offset before which the next one ends.
    Page {
        agent: Option<AgentId>,
        lines: Vec<Line>,
        start: u64,
    },
    Files {
        word: String,
        files: Vec<String>,
    },
    /// A command of the person's own has printed this.
    ShellPrinted {
        number: u64,
        text: String,
    },
    /// A command of the person's own has ended.
    ShellEnded {
        number: u64,
        command: String,
        output: String,
        is_success: bool,
    },
    /// The text that comes back from an editor.
    Edited(String),
    /// Something that a person is told in one line.
    Notice(String),
    /// Something that is printed.
    Said(String),
    /// The end of what was said before this process.
    Earlier(Vec<Line>),
}

pub(super) fn fact(model: &mut Model, fact: Fact, effects: &mut Vec<Effect>) {
    match fact {
        Fact::Opened { session, model: name, mode, cwd, window } => {
            let facts = &mut model.facts;
            (facts.session, facts.model, facts.mode, facts.cwd) = (Some(session), name, mode, cwd);
            (facts.window, facts.is_open) = (window, true);
        }
        Fact::Commands(commands) => model.commands = commands,
        Fact::Prompt(text) => {
            let number = model.prompts.add(None, text.clone(), When::Next, Stage::Sent);
            effects.push(Effect::Submit { number, text, when: When::Next });
        }
        Fact::Held(held) => delivered(model, &held),
        Fact::Undelivered { number, why } => {
            if let Some(waiting) = model.prompts.take(number) {
                model.talk.print_apart([marked(
                    "✗",
                    Colour::Red,
                    &format!("not delivered: {why}"),
                )]);
                give_back(model, &waiting.to, &waiting.text);
            }
        }
        Fact::Spending { dollars, agents } => {
            model.facts.dollars = dollars;
            for (id, dollars) in agents {
                if let Some(row) = model.agents.get_mut(&id) {
                    row.dollars = dollars;
                }
            }
        }
        Fact::Mode(mode) => model.facts.mode = mode,
        Fact::Shown { title, text } => shown(model, title, &text),
        Fact::Table { table, is_again } => tables::came(model, table, is_again, effects),
        Fact::Detail { of, id, lines } => tables::detail_came(model, of, id, lines),
        Fact::Found { words, rows } => tables::found(model, words, rows),
        Fact::Page { agent, lines, start } => {
            panes::page_came(model, agent.as_ref(), lines, start, effects);
        }
        Fact::Files { word, files } => model.add_files(&word, files),
        Fact::ShellPrinted { number, text } => {
            let line = text.lines().rev().find(|line| !line.trim().is_empty());
            let shell = model.talk.shells.iter_mut().find(|shell| shell.number == number);
            if let Some((line, shell)) = line.zip(shell) {
                line.chars().take(MOST_SHOWN).collect::<String>().clone_into(&mut shell.last_line);
            }
        }
        Fact::ShellEnded { number, command, output, is_success } => {
            model.talk.shells.retain(|shell| shell.number != number);
            let colour = if is_success { Colour::Green } else { Colour::Red };
            let shown = |line: &str| {
                let mut shown = Line::flush().with("  ", Style::PLAIN);
                shown.spans.extend(foreign(line, Style::PLAIN));
                shown
            };
            let head = marked("!", colour, &command);
            model.talk.print_apart(std::iter::once(head).chain(output.lines().map(shown)));
        }
        Fact::Edited(text) => {
            model.set_draft(text.trim_end_matches('\n'));
            chat::draft_changed(model, effects);
        }
        Fact::Notice(text) => model.notice = Some(text),
        Fact::Said(text) => model.talk.print_apart(told(&text)),
        Fact::Earlier(lines) => model.talk.print_apart(lines),
        fact => brought::fact(model, fact, effects),
    }
}

/// The cells before the second column of a row, where one begins soon: what is too long for the window continues there.
fn second_column(row: &str) -> u16 {
    const SOON: usize = 30;
    let first = row.trim_start();
    let found = first.find("  ").map(|at| row.len() - first[at..].trim_start().len());
    let cells = found.map_or(0, |at| text_width(&row[..at]));
    if cells <= SOON { u16::try_from(cells).unwrap_or_default() } else { 0 }
}

/// Shows a text of a command.
pub(super) fn shown(model: &mut Model, title: String, text: &str) {
    let style = |line: &str| match line.as_bytes() {
        _ if title != "/diff" => Style::PLAIN,
        [b'+', ..] => Style::of(Colour::Green),
        [b'-', ..] => Style::of(Colour::Red),
        [b'@', ..] => Style::of(Colour::Cyan),
        _ => Style::PLAIN,
    };
    let line =
        |line: &str| Line { hang: second_column(line), ..Line::from(foreign(line, style(line))) };
    let lines: Vec<Line> = text.lines().map(line).collect();
    super::show_screen(model, Screen::Text(TextScreen { title, lines, scroll: 0 }));
}

/// Prints what the session has read.
fn delivered(model: &mut Model, held: &[PromptNumber]) {
    for waiting in model.prompts.delivered(held) {
        let Some(agent) = &waiting.to else {
            if !model.talk.has_answered {
                model.prompts.unanswered = Some(waiting.text.clone());
            }
            model.talk.print_apart(said(&waiting.text));
            continue;
        };
        let name = model.agents.path(agent).join(" ▸ ");
        if let Some(row) = model.agents.get_mut(agent) {
            for line in said(&waiting.text) {
                row.note(line);
            }
        }
        model.talk.print_apart([marked("›", Colour::Cyan, &format!("{name}: {}", waiting.text))]);
    }
}

/// Puts words that were not read back into the draft of the agent that they were for, before what is there.
pub(super) fn give_back(model: &mut Model, to: &Addressee, text: &str) {
    let draft = model.drafts.entry(to.clone()).or_default();
    let there = draft.text();
    let joined = if there.is_empty() { text.to_owned() } else { format!("{text}\n{there}") };
    draft.set(&joined);
    model.unsaved.insert(to.clone(), model.now);
}
