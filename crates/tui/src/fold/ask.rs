//! Questions: they come, go, and are answered by keys.

use centurion_protocol::AgentId;
use serde_json::{Map, Value, json};

use super::intent;
use super::panes;
use crate::draft::Draft;
use crate::effect::Effect;
use crate::input::{Key, KeyCode};
use crate::model::Model;
use crate::model::asks::{
    AskKind, AskNumber, Asked, FieldKind, FormField, Permission, Purpose, Question, Words,
};
use crate::view::dialog::Layout;

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
    match key.code {
        KeyCode::Char('n') if key.ctrl => return model.asks.show_next(now),
        KeyCode::Char('c') if key.ctrl => return model.asks.put_off(),
        KeyCode::PageDown => return page(model, true),
        KeyCode::PageUp => return page(model, false),
        KeyCode::Home => return scroll(model, isize::MIN),
        KeyCode::End => return scroll(model, isize::MAX),
        _ => {}
    }
    // A yes needs a window in which its subject can be read.
    let is_no = matches!(key.code, KeyCode::Escape | KeyCode::Char('n' | '3'));
    if !is_no && Layout::of(model).is_some_and(|layout| !layout.is_answerable) {
        return;
    }
    match &kind {
        AskKind::Permission(permission) => permission_key(model, number, permission, key, effects),
        AskKind::Plan { .. } => plan_key(model, number, key, effects),
        AskKind::Questions(questions) => question_key(model, number, questions, key, effects),
        AskKind::Form { fields, .. } => form_key(model, number, fields, key, effects),
        AskKind::Visit { url, .. } => match key.code {
            KeyCode::Char('1' | 'y') | KeyCode::Enter => {
                effects.push(Effect::Copy(url.clone()));
                answer(model, number, json!({"action": "accept"}), effects);
            }
            KeyCode::Char('3' | 'n') | KeyCode::Escape => {
                answer(model, number, json!({"action": "decline"}), effects);
            }
            _ => {}
        },
        AskKind::Choice { choices, .. } => choice_key(model, number, choices.len(), key, effects),
    }
}

fn permission_key(
    model: &mut Model,
    number: AskNumber,
    permission: &Permission,
    key: Key,
    effects: &mut Vec<Effect>,
) {
    let at = selected(model);
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
    match key.code {
        KeyCode::Char('2' | 'a') | KeyCode::Enter if is_choice(key, at, 1) => {
            allow_for_longer(model, permission.lasting());
        }
        KeyCode::Char('s') => allow_for_longer(model, permission.for_session()),
        KeyCode::Tab if key.shift => allow_for_longer(model, permission.accepting_edits()),
        KeyCode::Char('1' | 'y') | KeyCode::Enter if is_choice(key, at, 0) => {
            allow(model, Vec::new());
        }
        KeyCode::Char('3' | 'n') | KeyCode::Enter | KeyCode::Escape if is_choice(key, at, 2) => {
            answer(model, number, no("the user said no"), effects);
        }
        KeyCode::Tab => write(model, Purpose::Reason, ""),
        KeyCode::Char('e') => {
            write(model, Purpose::Input, &editable(&permission.tool, &permission.input));
        }
        KeyCode::Up => move_selection(model, -1, 3),
        KeyCode::Down => move_selection(model, 1, 3),
        _ => {}
    }
}

/// True if a key means this choice: by its letter, or by Enter on the marked one.
fn is_choice(key: Key, selected: usize, choice: usize) -> bool {
    key.code != KeyCode::Enter || selected == choice
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
    let page = Layout::of(model).map_or(1, |layout| layout.page());
    let step = isize::try_from(page).unwrap_or(1);
    scroll(model, if is_down { step } else { -step });
}

fn scroll(model: &mut Model, step: isize) {
    let last = Layout::of(model).map_or(0, |layout| layout.last_scroll());
    if let Some(dialog) = &mut model.asks.dialog {
        dialog.scroll = dialog.scroll.min(last).saturating_add_signed(step).min(last);
    }
}

/// Begins to write words in the dialog, or goes on with those that were left.
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
    let change = intent::change(model, key);
    let Some(dialog) = &mut model.asks.dialog else { return };
    let Some(words) = &mut dialog.words else { return };
    match (key.code, change) {
        (KeyCode::Escape, _) => dialog.aside = dialog.words.take(),
        (_, Some(change)) => change.apply(&mut words.draft),
        (KeyCode::Enter, None) => {
            let (purpose, text) = (words.purpose, words.draft.text());
            dialog.words = None;
            finish_words(model, number, kind, purpose, text, effects);
        }
        _ => {}
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

fn plan_key(model: &mut Model, number: AskNumber, key: Key, effects: &mut Vec<Effect>) {
    let yes = json!({"behavior": "allow"});
    let at = selected(model);
    match key.code {
        KeyCode::Char('1' | 'y') => answer(model, number, yes, effects),
        KeyCode::Enter if at == 0 => answer(model, number, yes, effects),
        KeyCode::Char('2' | 'a') | KeyCode::Enter if is_choice(key, at, 1) => {
            answer(model, number, yes, effects);
            effects.push(Effect::SetMode("acceptEdits".to_owned()));
        }
        KeyCode::Char('3' | 'n') | KeyCode::Tab | KeyCode::Enter => {
            write(model, Purpose::Reason, "");
        }
        KeyCode::Escape => answer(model, number, no("keep planning"), effects),
        KeyCode::Up if at == 0 => scroll(model, -1),
        KeyCode::Up => move_selection(model, -1, 3),
        KeyCode::Down => move_selection(model, 1, 3),
        _ => {}
    }
}

fn choice_key(
    model: &mut Model,
    number: AskNumber,
    count: usize,
    key: Key,
    effects: &mut Vec<Effect>,
) {
    let chosen = match key.code {
        KeyCode::Enter => selected(model),
        KeyCode::Escape => count.saturating_sub(1),
        KeyCode::Char(digit @ '1'..='9') => digit as usize - '1' as usize,
        KeyCode::Up => return move_selection(model, -1, count),
        KeyCode::Down => return move_selection(model, 1, count),
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
    key: Key,
    effects: &mut Vec<Effect>,
) {
    let Some(dialog) = &mut model.asks.dialog else { return };
    dialog.chosen.resize(questions.len(), Vec::new());
    let Some(question) = questions.get(dialog.tab) else { return };
    // Behind the choices stands one for own words.
    let count = question.options.len() + 1;
    let at = match key.code {
        KeyCode::Char(digit @ '1'..='9') => digit as usize - '1' as usize,
        _ => dialog.selected,
    };
    let picked = dialog.chosen.get_mut(dialog.tab);
    match key.code {
        KeyCode::Escape => answer(model, number, no("the user did not want to answer"), effects),
        KeyCode::Up => move_selection(model, -1, count),
        KeyCode::Down => move_selection(model, 1, count),
        KeyCode::Left => (dialog.tab, dialog.selected) = (dialog.tab.saturating_sub(1), 0),
        KeyCode::Char(' ' | '1'..='9') if question.many && at < question.options.len() => {
            if let Some(picked) = picked {
                match picked.iter().position(|one| *one == at) {
                    Some(place) => drop(picked.remove(place)),
                    None => picked.push(at),
                }
                picked.sort_unstable();
            }
            dialog.selected = at;
        }
        KeyCode::Enter | KeyCode::Char('1'..='9') if at == question.options.len() => {
            write(model, Purpose::Answer, "");
        }
        KeyCode::Enter | KeyCode::Char('1'..='9') if at < question.options.len() => {
            if let Some(picked) = picked.filter(|picked| !question.many || picked.is_empty()) {
                *picked = vec![at];
            }
            next_question(model, number, questions, effects);
        }
        _ => {}
    }
}

/// Goes on to the next question, or gives all answers.
fn next_question(
    model: &mut Model,
    number: AskNumber,
    questions: &[Question],
    effects: &mut Vec<Effect>,
) {
    let Some(dialog) = &mut model.asks.dialog else { return };
    if dialog.tab + 1 < questions.len() {
        dialog.tab += 1;
        dialog.selected = 0;
        return;
    }
    let mut answers = Map::new();
    for (at, question) in questions.iter().enumerate() {
        let typed = dialog.typed.get(at).cloned().flatten();
        let picked = dialog.chosen.get(at).into_iter().flatten();
        let labels =
            picked.filter_map(|at| question.options.get(*at)).map(|(label, _)| label.clone());
        let said: Vec<String> = labels.chain(typed).collect();
        answers.insert(question.question.clone(), Value::String(said.join(", ")));
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
    key: Key,
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
    match key.code {
        KeyCode::Escape => answer(model, number, json!({"action": "decline"}), effects),
        KeyCode::Enter if fields.is_empty() => {
            answer(model, number, json!({"action": "accept"}), effects);
        }
        KeyCode::Up => move_selection(model, -1, choices.len()),
        KeyCode::Down => move_selection(model, 1, choices.len()),
        KeyCode::Enter if choices.is_empty() => write(model, Purpose::Answer, ""),
        KeyCode::Enter => {
            if let Some(choice) = choices.get(selected(model)) {
                set(model, choice.clone());
                next_field(model, number, fields, effects);
            }
        }
        KeyCode::Char(char) if choices.is_empty() => {
            write(model, Purpose::Answer, char.encode_utf8(&mut [0; 4]));
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
