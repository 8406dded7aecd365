//! Keys in tables. What they have in common is here; each table has a file of its own with its keys and what they do.

mod agent_fields;
mod agents;
mod contexts;
mod costs;
mod hooks;
mod memory;
mod points;
mod rules;
mod servers;
mod sessions;
mod settings;
mod skills;
mod team;

use centurion_protocol::AgentId;

use super::{intent, panes};
use crate::draft::Draft;
use crate::effect::{Effect, TableChange};
use crate::frame::Line;
use crate::input::{Key, KeyCode};
use crate::keys::{Action, Context, Meaning};
use crate::model::Model;
use crate::model::screen::Screen;
use crate::model::table::{Table, TableOf, TableWords};
use crate::view::table::last_scroll;

/// The rows by which a page key moves the detail.
const PAGE: usize = 8;

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableKey {
    pub(crate) letter: char,
    /// True if it is pressed with Ctrl: letters are words to look for there.
    pub(crate) is_ctrl: bool,
    /// The words for it in the last row.
    pub(crate) label: &'static str,
}

/// A letter and its meaning.
const fn letter(letter: char, label: &'static str) -> TableKey {
    TableKey { letter, is_ctrl: false, label }
}

/// A letter with Ctrl and its meaning.
const fn ctrl(letter: char, label: &'static str) -> TableKey {
    TableKey { letter, is_ctrl: true, label }
}

/// Something that a person does in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Press {
    Enter,
    Key(char),
    /// The words that were written for a key.
    Words(char, String),
}

/// The act of a table: changes the model and the table, wants effects, and tells whether the table stays.
type Act = fn(&mut Model, &mut Table, &Press, &mut Vec<Effect>) -> bool;

/// One kind of table.
pub(crate) struct TableScreen {
    /// True if every letter is a word to look for.
    pub(crate) is_typed: bool,
    /// The words for Enter; empty where it does nothing.
    pub(crate) enter: &'static str,
    pub(crate) keys: &'static [TableKey],
    /// The table that Esc goes back to.
    back: Option<TableOf>,
    act: Act,
}

/// The screen of a kind of table.
pub(crate) fn screen(of: TableOf) -> &'static TableScreen {
    match of {
        TableOf::Sessions => &sessions::SCREEN,
        TableOf::Points => &points::SCREEN,
        TableOf::Costs => &costs::SCREEN,
        TableOf::Contexts => &contexts::SCREEN,
        TableOf::Rules => &rules::SCREEN,
        TableOf::Settings => &settings::SCREEN,
        TableOf::Agents => &agents::SCREEN,
        TableOf::AgentFields => &agent_fields::SCREEN,
        TableOf::Team => &team::SCREEN,
        TableOf::Servers => &servers::SCREEN,
        TableOf::Hooks => &hooks::SCREEN,
        TableOf::Skills => &skills::SCREEN,
        TableOf::Memory => &memory::SCREEN,
    }
}

/// Opens a table, which comes when it was read.
pub(super) fn open(of: TableOf, subject: &str, effects: &mut Vec<Effect>) {
    effects.push(Effect::Table { of, subject: subject.to_owned(), is_again: false });
}

/// Reads the table once more: something of it has changed.
fn again(table: &Table, effects: &mut Vec<Effect>) {
    let (of, subject) = (table.of, table.subject.clone());
    effects.push(Effect::Table { of, subject, is_again: true });
}

/// Has a change made, and the table read again behind it.
fn change(table: &Table, change: TableChange, effects: &mut Vec<Effect>) {
    let (of, subject) = (table.of, table.subject.clone());
    effects.push(Effect::Change { change, of, subject });
}

/// Shows a table that has come. One that was read again is shown only where it still is.
pub(super) fn came(
    model: &mut Model,
    mut table: Box<Table>,
    is_again: bool,
    effects: &mut Vec<Effect>,
) {
    let is_shown = matches!(
        &model.screen,
        Some(Screen::Table(shown)) if shown.of == table.of && shown.subject == table.subject
    );
    if is_again && !is_shown {
        return;
    }
    if table.of == TableOf::Settings && !is_shown {
        table.state.typed.clone_from(&table.subject);
        table.mark_first();
    }
    if table.of == TableOf::Rules {
        rules::add_denied(&mut table, model.talk.denied.iter().cloned());
    }
    if let Some(Screen::Table(before)) = model.screen.take_if(|_| is_shown) {
        table.restore_view_of(*before);
    }
    want_detail(&mut table, effects);
    super::show_screen(model, Screen::Table(table));
}

/// Takes the detail of a row.
pub(super) fn detail_came(model: &mut Model, of: TableOf, id: String, lines: Vec<Line>) {
    if let Some(Screen::Table(table)) = &mut model.screen
        && table.of == of
    {
        table.add_detail(id, lines);
    }
}

/// Takes the rows in which words were found.
pub(super) fn found(model: &mut Model, words: String, rows: Vec<(String, Vec<Line>)>) {
    // Searches may end in another order than they began.
    if let Some(Screen::Table(table)) = &mut model.screen
        && table.state.typed == words
    {
        table.state.found = Some((words, rows.into_iter().collect()));
        table.mark_first();
    }
}

/// Asks for the detail of the marked row, once.
fn want_detail(table: &mut Table, effects: &mut Vec<Effect>) {
    let Some(row) = table.marked() else { return };
    if row.detail.is_some() || table.state.asked.contains(&row.id) {
        return;
    }
    let (of, subject, id) = (table.of, table.subject.clone(), row.id.clone());
    table.state.asked.insert(id.clone());
    effects.push(Effect::Detail { of, subject, id });
}

/// Has a person write words for a key, beginning with a text.
fn write(table: &mut Table, key: char, prompt: impl Into<String>, text: &str) {
    let row = table.marked().map(|row| row.id.clone()).unwrap_or_default();
    table.state.words =
        Some(TableWords { key, row, prompt: prompt.into(), draft: Draft::of(text) });
}

/// Opens the file of the marked row in the person's editor, and reads the table again.
fn open_file(model: &mut Model, table: &Table, effects: &mut Vec<Effect>) {
    match table.marked().and_then(|row| row.file.clone()) {
        Some(file) => {
            effects.push(Effect::OpenFile(file));
            again(table, effects);
        }
        None => model.notice = Some("no file says this".to_owned()),
    }
}

/// Opens the agent of the marked row; whether the table closes for it.
fn focus_row(model: &mut Model, table: &Table) -> bool {
    let id = table.marked().map(|row| AgentId::new(row.id.as_str()));
    match id.filter(|id| model.agents.get(id).is_some()) {
        Some(id) => panes::focus(model, &id),
        None => return false,
    }
    true
}

/// Takes a key in a table.
pub(super) fn key(model: &mut Model, mut table: Box<Table>, key: Key, effects: &mut Vec<Effect>) {
    let stays = if table.state.words.is_some() {
        words_key(model, &mut table, key, effects)
    } else {
        table_key(model, &mut table, key, effects)
    };
    // A key may have opened another screen.
    if stays && model.screen.is_none() {
        want_detail(&mut table, effects);
        model.screen = Some(Screen::Table(table));
    }
}

impl Table {
    /// True if rows are or were looked for in a table whose letters are keys.
    fn is_searched(&self) -> bool {
        let has_words = !screen(self.of).is_typed && !self.state.typed.is_empty();
        self.state.is_searching || has_words
    }
}

/// The key of a table that a key of the terminal is.
fn pressed(table: &Table, key: Key) -> Option<char> {
    let is_typing = screen(table.of).is_typed || table.state.is_searching;
    let KeyCode::Char(char) = key.code else { return None };
    // Letters are words while something is looked for.
    let is_heard = key.ctrl || !is_typing;
    let is_meant = |it: &&TableKey| is_heard && it.is_ctrl == key.ctrl && it.letter == char;
    let found = screen(table.of).keys.iter().find(is_meant);
    found.filter(|_| !key.alt).map(|it| it.letter)
}

fn table_key(model: &mut Model, table: &mut Table, key: Key, effects: &mut Vec<Effect>) -> bool {
    let act = screen(table.of).act;
    if let Some(letter) = pressed(table, key) {
        return act(model, table, &Press::Key(letter), effects);
    }
    let is_typing = screen(table.of).is_typed || table.state.is_searching;
    let is_blank = table.state.typed.is_empty();
    let meaning = model.bindings.meaning(Context::Select, key);
    match (meaning, key.code) {
        (Meaning::Action(Action::Redraw), _) => effects.push(Effect::Redraw),
        (Meaning::Action(Action::Suspend), _) => effects.push(Effect::Suspend),
        (Meaning::Action(Action::OldestAsk), _) => {
            model.asks.show_oldest(model.now);
            return false;
        }
        (Meaning::Action(Action::Close), _) if table.state.is_wide => table.state.is_wide = false,
        (Meaning::Action(Action::Close), _) if table.is_searched() => {
            table.state.is_searching = false;
            table.state.typed.clear();
            table.mark_first();
        }
        (Meaning::Action(Action::Close), _) if screen(table.of).back.is_some() => {
            screen(table.of).back.iter().for_each(|of| open(*of, "", effects));
        }
        (Meaning::Action(Action::Close | Action::Clear | Action::Exit), _) => return false,
        (Meaning::Action(Action::Up), _) => table.move_by(-1),
        (Meaning::Action(Action::Down), _) => table.move_by(1),
        // The rows that were found stay, and letters are keys for them.
        (Meaning::Action(Action::Accept), _) if table.state.is_searching => {
            table.state.is_searching = false;
        }
        (Meaning::Action(Action::Accept), _) => {
            return table.marked().is_none() || act(model, table, &Press::Enter, effects);
        }
        (_, KeyCode::PageDown) => scroll(model, table, true),
        (_, KeyCode::PageUp) => scroll(model, table, false),
        (_, KeyCode::Tab) => table.state.is_wide = !table.state.is_wide,
        (Meaning::Insert(' '), _) if !is_typing || is_blank => {
            table.state.is_wide = !table.state.is_wide;
        }
        (Meaning::Insert('/'), _) if !is_typing => table.state.is_searching = true,
        (Meaning::Insert('q'), _) if !is_typing => return false,
        (meaning, _) if is_typing => search(model, table, meaning, key, effects),
        _ => {}
    }
    true
}

/// Moves the detail, which ends at its last row.
fn scroll(model: &Model, table: &mut Table, is_down: bool) {
    let last = last_scroll(table, model.notice.as_deref(), model.size);
    let now = table.state.scroll.min(last);
    table.state.scroll = if is_down { (now + PAGE).min(last) } else { now.saturating_sub(PAGE) };
}

/// Changes the words that are looked for.
fn search(
    model: &mut Model,
    table: &mut Table,
    meaning: Meaning,
    key: Key,
    effects: &mut Vec<Effect>,
) {
    let own = model.bindings.own(Context::Chat, key).map(Meaning::Action);
    let meaning = if meaning == Meaning::None { own.unwrap_or(meaning) } else { meaning };
    if panes::type_words(&mut table.state.typed, meaning) {
        typed(table, effects);
    }
}

/// The words that are looked for have changed.
fn typed(table: &mut Table, effects: &mut Vec<Effect>) {
    table.mark_first();
    if table.of == TableOf::Sessions && table.state.typed.chars().count() >= 3 {
        effects.push(Effect::SearchSessions {
            words: table.state.typed.clone(),
            places: table.subject.clone(),
        });
    }
}

/// Takes a paste: into the words that are written, or looked for.
pub(super) fn paste(table: &mut Table, text: &str, effects: &mut Vec<Effect>) {
    if let Some(words) = &mut table.state.words {
        words.draft.paste(text);
        return;
    }
    if screen(table.of).is_typed || table.state.is_searching {
        table.state.typed.push_str(text.lines().next().unwrap_or_default());
        typed(table, effects);
    }
}

fn words_key(model: &mut Model, table: &mut Table, key: Key, effects: &mut Vec<Effect>) -> bool {
    let meaning = model.bindings.meaning(Context::Chat, key);
    let Some(words) = &mut table.state.words else { return true };
    match meaning {
        Meaning::Action(Action::Redraw) => effects.push(Effect::Redraw),
        Meaning::Action(Action::Suspend) => effects.push(Effect::Suspend),
        Meaning::Action(Action::Interrupt | Action::Clear) => table.state.words = None,
        Meaning::Action(Action::Submit) => {
            let (key, row, text) = (words.key, words.row.clone(), words.draft.take().text);
            table.state.words = None;
            // The rows may have changed meanwhile: the words are for the row that was marked then, or for none.
            if !row.is_empty() && !table.mark(&row) {
                model.notice = Some("that row is not there any more: nothing was done".to_owned());
                return true;
            }
            return (screen(table.of).act)(model, table, &Press::Words(key, text), effects);
        }
        meaning => {
            if let Some(change) = intent::change_of(meaning) {
                change.apply(&mut words.draft);
            }
        }
    }
    true
}

/// Takes a line of a terminal that edits lines itself: the number of a row alone, or behind the letter of a key; words for the
/// key may follow. Tells whether it was one.
pub(super) fn line(model: &mut Model, text: &str, effects: &mut Vec<Effect>) -> bool {
    let Some(Screen::Table(table)) = &model.screen else { return false };
    let rows: Vec<String> = table
        .fitting()
        .into_iter()
        .filter(|row| row.tone != crate::model::table::Tone::Head)
        .map(|row| row.id.clone())
        .collect();
    let mut words = text.splitn(3, char::is_whitespace);
    let first = words.next().unwrap_or_default();
    let is_letter = first.chars().count() == 1 && first.parse::<usize>().is_err();
    let letter = first.chars().next().filter(|_| is_letter);
    let number = if is_letter { words.next().unwrap_or_default() } else { first };
    let Some(place) = number.parse::<usize>().ok().and_then(|it| rows.get(it.checked_sub(1)?))
    else {
        return false;
    };
    let place = place.clone();
    let rest = words.next().unwrap_or_default().to_owned();
    let Some(Screen::Table(mut table)) = model.screen.take() else { return false };
    table.mark(&place);
    if letter == Some('d') {
        // The whole detail of a row.
        table.state.is_wide = true;
        want_detail(&mut table, effects);
        model.screen = Some(Screen::Table(table));
        return true;
    }
    table.state.is_wide = false;
    let press = match (letter, rest.is_empty()) {
        (None, _) => Press::Enter,
        (Some(letter), true) => Press::Key(letter),
        (Some(letter), false) => Press::Words(letter, rest),
    };
    let is_known = letter.is_none_or(|it| screen(table.of).keys.iter().any(|key| key.letter == it));
    let stays = !is_known || (screen(table.of).act)(model, &mut table, &press, effects);
    if table.state.words.take().is_some() {
        model.notice = Some("write the words behind the number".to_owned());
    }
    if stays && model.screen.is_none() {
        want_detail(&mut table, effects);
        model.screen = Some(Screen::Table(table));
    }
    true
}
