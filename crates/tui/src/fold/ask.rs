//! Questions: they come, go, and are answered by keys.

use centurion_protocol::AgentId;
use serde_json::{Map, Value, json};

use super::intent;
use super::panes;
use crate::draft::Draft;
use crate::effect::Effect;
use crate::input::{Key, KeyCode};
use crate::keys::{Action, Context, Meaning};
use crate::model::Model;
use crate::model::asks::{
    AskKind, AskNumber, Asked, Dialog, FieldKind, FormField, Permission, Purpose, Question, Words,
};
use crate::view::dialog::DialogLayout;

pub(super) fn asked(model: &mut Model, asked: Asked, effects: &mut Vec<Effect>) {
    let who = asked.path.last().cloned().unwrap_or_else(|| "main".to_owned());
    if let Some(agent) = &asked.agent {
        panes::asks(model, agent, true);
    }
    model.asks.add(asked);
    if model.facts.is_away {
        effects.push(Effect::Notify(format!("{who} asks")));
    }
    if model.screen.is_none() {
        let (now, last_key) = (model.now, model.hands.last_key);
        model.asks.pass(now, last_key);
    }
}

/// A question needs no answer any more. The words that a person was writing in its dialog go to the prompt.
pub(super) fn withdrawn(model: &mut Model, number: AskNumber, effects: &mut Vec<Effect>) {
    let agent = agent_of(model, number);
    let dialog = model.asks.withdrawn(number);
    let words = dialog.and_then(|dialog| dialog.words.or(dialog.aside));
    let words = words.map(|words| (words.draft.text(), words.given));
    if let Some((text, _)) = words.filter(|(text, given)| text.trim() != given.trim()) {
        let draft = model.draft().map(Draft::text).unwrap_or_default();
        let joined = if draft.is_empty() { text } else { format!("{draft}\n{text}") };
        model.set_draft(&joined);
        model.notice = Some("the question is gone · your words are in the prompt".to_owned());
        super::chat::draft_changed(model, effects);
    }
    no_longer_asks(model, agent);
}

/// The agent that asks a question.
fn agent_of(model: &Model, number: AskNumber) -> Option<AgentId> {
    let asked = model.asks.open.iter().find(|asked| asked.number == number);
    asked.and_then(|asked| asked.agent.clone())
}

fn no_longer_asks(model: &mut Model, agent: Option<AgentId>) {
    let Some(agent) = agent else { return };
    let still_asks = model.asks.open.iter().any(|asked| asked.agent.as_ref() == Some(&agent));
    panes::asks(model, &agent, still_asks);
}

/// Gives the answer of a person and closes the dialog.
fn answer(model: &mut Model, number: AskNumber, answer: Value, effects: &mut Vec<Effect>) {
    effects.push(Effect::Answer { number, answer });
    let agent = agent_of(model, number);
    model.asks.answered(number, model.now);
    no_longer_asks(model, agent);
}

/// A key in a dialog: what it means there, and the character that it writes elsewhere.
#[derive(Clone, Copy, Debug)]
struct Pressed {
    action: Option<Action>,
    char: Option<char>,
}

impl Pressed {
    fn new(model: &mut Model, key: Key) -> Self {
        let action = match model.bindings.meaning(Context::Confirmation, key) {
            Meaning::Action(action) => Some(action),
            Meaning::Insert(_) | Meaning::ChordBegun | Meaning::None => None,
        };
        let char = match key {
            Key { code: KeyCode::Char(char), ctrl: false, alt: false, .. } => Some(char),
            _ => None,
        };
        Self { action, char }
    }

    /// The place of the choice whose number this key is.
    fn place(self) -> Option<usize> {
        self.char.filter(|char| ('1'..='9').contains(char)).map(|it| it as usize - '1' as usize)
    }

    /// The same where letters are no answers.
    fn without_letters(self) -> Self {
        let action = self.action.filter(|_| self.char.is_none_or(|char| char == ' '));
        Self { action, ..self }
    }
}

/// Keys in a dialog.
pub(super) fn key(model: &mut Model, key: Key, effects: &mut Vec<Effect>) {
    let now = model.now;
    let Some((asked, dialog)) = model.asks.current() else {
        model.asks.put_off();
        return;
    };
    let (number, kind) = (asked.number, asked.kind.clone());
    if dialog.words.is_some() {
        return words_key(model, number, &kind, key, effects);
    }
    let pressed = Pressed::new(model, key);
    match pressed.action {
        Some(Action::NextAsk) => return model.asks.show_next(now),
        Some(Action::Clear) => return model.asks.put_off(),
        Some(Action::ViewerPageDown) => return page(model, true),
        Some(Action::ViewerPageUp) => return page(model, false),
        Some(Action::ViewerTop) => return scroll(model, isize::MIN),
        Some(Action::ViewerBottom) => return scroll(model, isize::MAX),
        Some(Action::Redraw) => return effects.push(Effect::Redraw),
        Some(Action::Suspend) => return effects.push(Effect::Suspend),
        _ => {}
    }
    if !is_no(&kind, pressed) && !can_say_yes(model) {
        return;
    }
    match &kind {
        AskKind::Permission(permission) => {
            permission_key(model, number, permission, pressed, effects);
        }
        AskKind::Plan { text, is_edited } => {
            plan_key(model, number, (text, *is_edited), pressed, effects);
        }
        AskKind::Questions(questions) => question_key(model, number, questions, pressed, effects),
        AskKind::Form { fields, .. } => form_key(model, number, fields, pressed, effects),
        AskKind::Visit { url, .. } => match pressed.action {
            Some(Action::Once | Action::Accept) => {
                effects.push(Effect::Copy(url.clone()));
                answer(model, number, json!({"action": "accept"}), effects);
            }
            Some(Action::Deny | Action::Close) => {
                answer(model, number, json!({"action": "decline"}), effects);
            }
            _ => {}
        },
        AskKind::Choice { choices, .. } => {
            choice_key(model, number, choices.len(), pressed, effects);
        }
    }
}

/// Tells whether a key allows nothing.
fn is_no(kind: &AskKind, pressed: Pressed) -> bool {
    match (kind, pressed.action) {
        (_, Some(Action::Close)) => true,
        (AskKind::Choice { .. }, _) => false,
        (_, action) => action == Some(Action::Deny),
    }
}

/// A yes needs a window in which its subject can be read. Statements in words are read whole in every one.
fn can_say_yes(model: &Model) -> bool {
    model.taste.is_plain || DialogLayout::of(model).is_none_or(|layout| layout.is_answerable)
}

/// The action of the marked choice, where a key takes that one.
fn taken(action: Option<Action>, selected: usize) -> Option<Action> {
    const CHOICES: [Action; 3] = [Action::Once, Action::Always, Action::Deny];
    action.map(|action| match action {
        Action::Accept => CHOICES.get(selected).copied().unwrap_or(Action::Deny),
        action => action,
    })
}

fn permission_key(
    model: &mut Model,
    number: AskNumber,
    permission: &Permission,
    pressed: Pressed,
    effects: &mut Vec<Effect>,
) {
    let mut allow = |model: &mut Model, remember: Vec<Value>| {
        let mut yes = json!({"behavior": "allow"});
        if !remember.is_empty() {
            yes["updatedPermissions"] = Value::Array(remember);
        }
        answer(model, number, yes, effects);
    };
    // The keys for an answer that lasts are dead where none may.
    let mut allow_for_longer = |model: &mut Model, remember: Vec<Value>| {
        if !remember.is_empty() {
            allow(model, remember);
        }
    };
    match taken(pressed.action, selected(model)) {
        Some(Action::Always) => allow_for_longer(model, permission.lasting()),
        Some(Action::Scoped) => allow_for_longer(model, permission.for_session()),
        Some(Action::AcceptEdits) => allow_for_longer(model, permission.accepting_edits()),
        Some(Action::Once) => allow(model, Vec::new()),
        Some(Action::Deny | Action::Close) => {
            answer(model, number, no("the user said no"), effects);
        }
        Some(Action::DenyWithWords) => write(model, Purpose::Reason, ""),
        Some(Action::EditFirst) => {
            write(model, Purpose::Input, &editable(&permission.tool, &permission.input));
        }
        Some(Action::Up) => move_selection(model, -1, 3),
        Some(Action::Down) => move_selection(model, 1, 3),
        _ => {}
    }
}

fn no(reason: &str) -> Value {
    json!({"behavior": "deny", "message": reason})
}

fn selected(model: &Model) -> usize {
    model.asks.dialog.as_ref().map_or(0, |dialog| dialog.selected)
}

fn move_selection(model: &mut Model, step: isize, count: usize) {
    if let Some(dialog) = &mut model.asks.dialog {
        let last = count.saturating_sub(1);
        dialog.selected = dialog.selected.saturating_add_signed(step).min(last);
    }
}

/// Scrolls the subject by what is shown of it.
fn page(model: &mut Model, is_down: bool) {
    let page = DialogLayout::of(model).map_or(1, |layout| layout.page());
    let step = isize::try_from(page).unwrap_or(1);
    scroll(model, if is_down { step } else { -step });
}

fn scroll(model: &mut Model, step: isize) {
    let last = DialogLayout::of(model).map_or(0, |layout| layout.last_scroll());
    if let Some(dialog) = &mut model.asks.dialog {
        dialog.scroll = dialog.scroll.min(last).saturating_add_signed(step).min(last);
    }
}

/// Scrolls the subject by some rows.
pub(super) fn scroll_rows(model: &mut Model, rows: usize, is_up: bool) {
    let step = isize::try_from(rows).unwrap_or(1);
    scroll(model, if is_up { -step } else { step });
}

/// Begins to write words in the dialog, or continues with those that were left.
fn write(model: &mut Model, purpose: Purpose, text: &str) {
    if let Some(dialog) = &mut model.asks.dialog {
        dialog.words = dialog.aside.take_if(|it| it.purpose == purpose && it.given == text);
        if dialog.words.is_some() {
            return;
        }
        dialog.words = Some(Words { purpose, draft: Draft::of(text), given: text.to_owned() });
    }
}

/// The part of an input that a person may want to change.
fn editable(tool: &str, input: &Value) -> String {
    match (tool, input["command"].as_str()) {
        ("Bash", Some(command)) => command.to_owned(),
        _ => serde_json::to_string_pretty(input).unwrap_or_default(),
    }
}

fn words_key(
    model: &mut Model,
    number: AskNumber,
    kind: &AskKind,
    key: Key,
    effects: &mut Vec<Effect>,
) {
    let meaning = model.bindings.meaning(Context::Chat, key);
    let Some(dialog) = &mut model.asks.dialog else { return };
    let Some(words) = &mut dialog.words else { return };
    match meaning {
        Meaning::Action(Action::Redraw) => effects.push(Effect::Redraw),
        Meaning::Action(Action::Suspend) => effects.push(Effect::Suspend),
        Meaning::Action(Action::Interrupt | Action::Clear) => dialog.aside = dialog.words.take(),
        Meaning::Action(Action::Submit) => {
            let (purpose, text) = (words.purpose, words.draft.text());
            dialog.words = None;
            finish_words(model, number, kind, purpose, text, effects);
        }
        meaning => {
            if let Some(change) = intent::change_of(meaning) {
                change.apply(&mut words.draft);
            }
        }
    }
}

fn finish_words(
    model: &mut Model,
    number: AskNumber,
    kind: &AskKind,
    purpose: Purpose,
    text: String,
    effects: &mut Vec<Effect>,
) {
    match (purpose, kind) {
        (Purpose::Reason, AskKind::Plan { .. }) => {
            answer(model, number, no(&format!("keep planning: {text}")), effects);
        }
        (Purpose::Reason, _) => {
            answer(model, number, no(&format!("the user said no: {text}")), effects);
        }
        (Purpose::Input, AskKind::Permission(permission)) => {
            let input = if permission.tool == "Bash" {
                let mut input = permission.input.clone();
                input["command"] = Value::String(text);
                Some(input)
            } else {
                serde_json::from_str(&text).ok()
            };
            match input {
                Some(input) => answer(
                    model,
                    number,
                    json!({"behavior": "allow", "updatedInput": input}),
                    effects,
                ),
                None => model.notice = Some("that is no JSON: nothing was allowed".to_owned()),
            }
        }
        (_, AskKind::Questions(questions)) => {
            if let Some(dialog) = &mut model.asks.dialog {
                let at = dialog.tab;
                dialog.typed.resize(questions.len(), None);
                if let Some(typed) = dialog.typed.get_mut(at) {
                    *typed = Some(text).filter(|text| !text.trim().is_empty());
                }
            }
            next_question(model, number, questions, effects);
        }
        (_, AskKind::Form { fields, .. }) => {
            if let Some(dialog) = &mut model.asks.dialog {
                let at = dialog.tab;
                dialog.typed.resize(fields.len(), None);
                if let Some(typed) = dialog.typed.get_mut(at) {
                    *typed = Some(text);
                }
            }
            next_field(model, number, fields, effects);
        }
        _ => {}
    }
}

fn plan_key(
    model: &mut Model,
    number: AskNumber,
    (text, is_edited): (&str, bool),
    pressed: Pressed,
    effects: &mut Vec<Effect>,
) {
    let mut yes = json!({"behavior": "allow"});
    if is_edited {
        yes["updatedInput"] = json!({"plan": text});
    }
    let at = selected(model);
    match taken(pressed.action, at) {
        Some(Action::Once) => answer(model, number, yes, effects),
        Some(Action::Always) => {
            answer(model, number, yes, effects);
            effects.push(Effect::SetMode("acceptEdits".to_owned()));
        }
        Some(Action::Deny | Action::DenyWithWords) => write(model, Purpose::Reason, ""),
        Some(Action::Close) => answer(model, number, no("keep planning"), effects),
        Some(Action::Editor) => effects.push(Effect::EditPlan { number, text: text.to_owned() }),
        Some(Action::Up) if at == 0 => scroll(model, -1),
        Some(Action::Up) => move_selection(model, -1, 3),
        Some(Action::Down) => move_selection(model, 1, 3),
        _ => {}
    }
}

/// Takes a plan as a person left it in the editor.
pub(super) fn plan_edited(model: &mut Model, number: AskNumber, edited: String) {
    let asked = model.asks.open.iter_mut().find(|asked| asked.number == number);
    if let Some(AskKind::Plan { text, is_edited }) = asked.map(|asked| &mut asked.kind) {
        *is_edited |= *text != edited;
        *text = edited;
    }
}

fn choice_key(
    model: &mut Model,
    number: AskNumber,
    count: usize,
    pressed: Pressed,
    effects: &mut Vec<Effect>,
) {
    let chosen = match (pressed.place(), pressed.without_letters().action) {
        (Some(place), _) => place,
        (None, Some(Action::Accept)) => selected(model),
        // The first choice is the harmless one: it changes and allows nothing.
        (None, Some(Action::Close)) => 0,
        (None, Some(Action::Up)) => return move_selection(model, -1, count),
        (None, Some(Action::Down)) => return move_selection(model, 1, count),
        _ => return,
    };
    if chosen < count {
        answer(model, number, json!({"chosen": chosen}), effects);
    }
}

fn question_key(
    model: &mut Model,
    number: AskNumber,
    questions: &[Question],
    pressed: Pressed,
    effects: &mut Vec<Effect>,
) {
    let Some(dialog) = &mut model.asks.dialog else { return };
    dialog.chosen.resize(questions.len(), Vec::new());
    if dialog.tab >= questions.len() {
        return review_key(model, number, questions, pressed, effects);
    }
    let Some(question) = questions.get(dialog.tab) else { return };
    // Behind the choices stands one for own words.
    let count = question.options.len() + 1;
    let place = pressed.place().filter(|place| *place < count);
    let at = place.unwrap_or(dialog.selected);
    let action = pressed.without_letters().action;
    let takes = place.is_some() || action == Some(Action::Accept);
    let toggles = question.many && (place.is_some() || action == Some(Action::Toggle));
    let picked = dialog.chosen.get_mut(dialog.tab);
    if toggles && at < question.options.len() {
        if let Some(picked) = picked {
            match picked.iter().position(|one| *one == at) {
                Some(place) => drop(picked.remove(place)),
                None => picked.push(at),
            }
            picked.sort_unstable();
        }
        dialog.selected = at;
        return;
    }
    if takes && at == question.options.len() {
        return write(model, Purpose::Answer, "");
    }
    if takes {
        if let Some(picked) = picked.filter(|picked| !question.many || picked.is_empty()) {
            *picked = vec![at];
        }
        return next_question(model, number, questions, effects);
    }
    match action {
        Some(Action::Close) => {
            answer(model, number, no("the user did not want to answer"), effects);
        }
        Some(Action::Up) => move_selection(model, -1, count),
        Some(Action::Down) => move_selection(model, 1, count),
        Some(Action::PreviousField) => {
            (dialog.tab, dialog.selected) = (dialog.tab.saturating_sub(1), 0);
        }
        Some(Action::NextField) if is_answered(dialog, dialog.tab) => {
            (dialog.tab, dialog.selected) = (dialog.tab + 1, 0);
        }
        _ => {}
    }
}

/// Tells whether a question has an answer already.
fn is_answered(dialog: &Dialog, tab: usize) -> bool {
    dialog.chosen.get(tab).is_some_and(|picked| !picked.is_empty())
        || dialog.typed.get(tab).is_some_and(Option::is_some)
}

/// Keys where all answers are looked at once more before they are given.
fn review_key(
    model: &mut Model,
    number: AskNumber,
    questions: &[Question],
    pressed: Pressed,
    effects: &mut Vec<Effect>,
) {
    let Some(dialog) = &mut model.asks.dialog else { return };
    if let Some(place) = pressed.place().filter(|place| *place < questions.len()) {
        (dialog.tab, dialog.selected) = (place, 0);
        return;
    }
    match pressed.without_letters().action {
        Some(Action::Accept) => give_answers(model, number, questions, effects),
        Some(Action::PreviousField) => {
            (dialog.tab, dialog.selected) = (questions.len().saturating_sub(1), 0);
        }
        Some(Action::Close) => {
            answer(model, number, no("the user did not want to answer"), effects);
        }
        _ => {}
    }
}

/// Moves on to the next question, or gives all answers.
fn next_question(
    model: &mut Model,
    number: AskNumber,
    questions: &[Question],
    effects: &mut Vec<Effect>,
) {
    let Some(dialog) = &mut model.asks.dialog else { return };
    dialog.selected = 0;
    // Several answers are looked at once more: the first of them was given some keys ago.
    dialog.tab += 1;
    if questions.len() == 1 {
        give_answers(model, number, questions, effects);
    }
}

/// Gives the answers to all questions.
fn give_answers(
    model: &mut Model,
    number: AskNumber,
    questions: &[Question],
    effects: &mut Vec<Effect>,
) {
    let Some(dialog) = &model.asks.dialog else { return };
    let mut answers = Map::new();
    for (at, question) in questions.iter().enumerate() {
        let said = dialog.answer(at, question);
        answers.insert(question.question.clone(), Value::String(said));
    }
    answer(
        model,
        number,
        json!({"behavior": "allow", "updatedInput": {"answers": answers}}),
        effects,
    );
}

fn form_key(
    model: &mut Model,
    number: AskNumber,
    fields: &[FormField],
    pressed: Pressed,
    effects: &mut Vec<Effect>,
) {
    let tab = model.asks.dialog.as_ref().map_or(0, |dialog| dialog.tab);
    let choices = fields.get(tab).map_or_else(Vec::new, FormField::choices);
    let set = |model: &mut Model, text: String| {
        if let Some(dialog) = &mut model.asks.dialog {
            dialog.typed.resize(fields.len(), None);
            if let Some(typed) = dialog.typed.get_mut(tab) {
                *typed = Some(text);
            }
        }
    };
    if let Some(char) = pressed.char.filter(|_| choices.is_empty() && !fields.is_empty()) {
        return write(model, Purpose::Answer, char.encode_utf8(&mut [0; 4]));
    }
    match pressed.without_letters().action {
        Some(Action::Close) => answer(model, number, json!({"action": "decline"}), effects),
        Some(Action::Accept) if fields.is_empty() => {
            answer(model, number, json!({"action": "accept"}), effects);
        }
        Some(Action::Up) => move_selection(model, -1, choices.len()),
        Some(Action::Down) => move_selection(model, 1, choices.len()),
        Some(Action::Accept) if choices.is_empty() => write(model, Purpose::Answer, ""),
        Some(Action::Accept) => {
            if let Some(choice) = choices.get(selected(model)) {
                set(model, choice.clone());
                next_field(model, number, fields, effects);
            }
        }
        _ => {}
    }
}

fn next_field(
    model: &mut Model,
    number: AskNumber,
    fields: &[FormField],
    effects: &mut Vec<Effect>,
) {
    let Some(dialog) = &mut model.asks.dialog else { return };
    if dialog.tab + 1 < fields.len() {
        dialog.tab += 1;
        dialog.selected = 0;
        return;
    }
    let mut content = Map::new();
    for (at, field) in fields.iter().enumerate() {
        let text = dialog.typed.get(at).cloned().flatten().unwrap_or_default();
        if text.is_empty() && !field.is_required {
            continue;
        }
        content.insert(field.name.clone(), field.value(text));
    }
    answer(model, number, json!({"action": "accept", "content": content}), effects);
}

impl FormField {
    /// The values that can be chosen, where they are few.
    pub(crate) fn choices(&self) -> Vec<String> {
        match &self.kind {
            FieldKind::Truth => vec!["true".to_owned(), "false".to_owned()],
            FieldKind::OneOf(choices) => choices.clone(),
            FieldKind::Text | FieldKind::Number => Vec::new(),
        }
    }

    fn value(&self, text: String) -> Value {
        match self.kind {
            FieldKind::Number => serde_json::from_str::<serde_json::Number>(text.trim())
                .map_or(Value::String(text), Value::Number),
            FieldKind::Truth => Value::Bool(text == "true"),
            FieldKind::Text | FieldKind::OneOf(_) => Value::String(text),
        }
    }
}

/// Pastes into the words of a dialog; whether there are any.
pub(super) fn paste(model: &mut Model, text: &str) -> bool {
    let words = model.asks.dialog.as_mut().and_then(|dialog| dialog.words.as_mut());
    words.map(|words| words.draft.paste(text)).is_some()
}
