//! The open questions: counted, in the order in which they came, none replaced by another.
//!
//! A dialog opens when no key was pressed for a while, and hears keys only some time after it was shown: what a person types
//! meanwhile is for the draft, and answers nothing.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use centurion_protocol::{AgentId, ToolUseId};
use serde_json::Value;

use super::Moment;
use crate::draft::Draft;

/// The pause of the keys before a dialog opens by itself.
pub(crate) const QUIET: Duration = Duration::from_millis(700);
/// The time after it was shown in which a dialog hears no key.
pub(crate) const GUARD: Duration = Duration::from_millis(400);

/// A question, by the order in which it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskNumber(pub u64);

/// A question that waits for a person.
#[derive(Clone, Debug)]
pub struct Asked {
    pub number: AskNumber,
    /// The call that it is about, if it is about one.
    pub call: Option<ToolUseId>,
    /// The asking agent; `None` is the main agent.
    pub agent: Option<AgentId>,
    /// The names from the main agent's children down to it.
    pub path: Vec<String>,
    pub kind: AskKind,
}

#[derive(Clone, Debug)]
pub enum AskKind {
    Permission(Box<Permission>),
    Plan {
        text: String,
        /// True if the person has changed it.
        is_edited: bool,
    },
    Questions(Vec<Question>),
    /// A server asks for fields.
    Form {
        server: String,
        message: String,
        fields: Vec<FormField>,
    },
    /// A server asks to visit a page.
    Visit {
        server: String,
        message: String,
        url: String,
    },
    /// Something of the program's own, with choices: trust, a start without a model.
    Choice {
        title: String,
        lines: Vec<String>,
        choices: Vec<String>,
    },
}

/// A call that may not run without a person's answer.
#[derive(Clone, Debug, Default)]
pub struct Permission {
    pub tool: String,
    pub input: Value,
    pub because: String,
    /// The rule that asks, with its file and line.
    pub rule: Option<String>,
    pub server: Option<String>,
    /// The places that the call may touch, and what confines it, in words.
    pub reach: Option<String>,
    /// Answers that hold for longer, in the shape of the public protocol.
    pub suggestions: Vec<Value>,
}

#[derive(Clone, Debug, Default)]
pub struct Question {
    pub question: String,
    pub header: String,
    /// Labels, each with what it means.
    pub options: Vec<(String, String)>,
    pub many: bool,
}

/// A field of a form.
#[derive(Clone, Debug, Default)]
pub struct FormField {
    pub name: String,
    pub about: String,
    pub kind: FieldKind,
    pub is_required: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FieldKind {
    #[default]
    Text,
    Number,
    Truth,
    OneOf(Vec<String>),
}

/// The open questions and the dialog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asks {
    pub(crate) open: VecDeque<Asked>,
    pub(crate) dialog: Option<Dialog>,
    /// Dialogs that closed unanswered with something written or chosen in them.
    begun: HashMap<AskNumber, Dialog>,
    /// True while a person answers one question after the other.
    is_in_row: bool,
    /// True if a person looks at something else first: no dialog opens by itself.
    is_put_off: bool,
}

/// The dialog of one question.
#[derive(Clone, Debug)]
pub(crate) struct Dialog {
    pub(crate) number: AskNumber,
    /// The moment from which it hears keys.
    pub(crate) hears_from: Moment,
    pub(crate) selected: usize,
    pub(crate) scroll: usize,
    /// The words that are being written.
    pub(crate) words: Option<Words>,
    /// Words that were left for the choices.
    pub(crate) aside: Option<Words>,
    /// The answers so far, of the tabs of a question.
    pub(crate) tab: usize,
    pub(crate) chosen: Vec<Vec<usize>>,
    pub(crate) typed: Vec<Option<String>>,
}

impl Dialog {
    /// The answer to a question so far, in words.
    pub(crate) fn answer(&self, tab: usize, question: &Question) -> String {
        let typed = self.typed.get(tab).cloned().flatten();
        let picked = self.chosen.get(tab).into_iter().flatten();
        let labels =
            picked.filter_map(|at| question.options.get(*at)).map(|(label, _)| label.clone());
        labels.chain(typed).collect::<Vec<_>>().join(", ")
    }
}

/// The use of the words in a dialog.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    pub(crate) purpose: Purpose,
    pub(crate) draft: Draft,
    /// The text that the dialog put there itself.
    pub(crate) given: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The reason of a no.
    Reason,
    /// The input of the call, changed.
    Input,
    /// An answer in own words.
    Answer,
}

impl Dialog {
    fn new(number: AskNumber) -> Self {
        Self {
            number,
            hears_from: Moment::ZERO,
            selected: 0,
            scroll: 0,
            words: None,
            aside: None,
            tab: 0,
            chosen: Vec::new(),
            typed: Vec::new(),
        }
    }

    /// True if a person has written or chosen something.
    fn is_begun(&self) -> bool {
        self.words.is_some()
            || self.aside.is_some()
            || self.chosen.iter().any(|picked| !picked.is_empty())
            || self.typed.iter().any(Option::is_some)
    }
}

impl Permission {
    /// The suggestions that would be written to a file: with `always`.
    pub(crate) fn lasting(&self) -> Vec<Value> {
        let lasts = self
            .suggestions
            .iter()
            .any(|it| it["type"] == "addRules" && it["destination"] != "session");
        if !lasts {
            return Vec::new();
        }
        self.suggestions.iter().filter(|it| it["type"] != "setMode").cloned().collect()
    }

    /// The same for this session alone.
    pub(crate) fn for_session(&self) -> Vec<Value> {
        let mut kept: Vec<Value> =
            self.suggestions.iter().filter(|it| it["type"] != "setMode").cloned().collect();
        for one in &mut kept {
            one["destination"] = Value::from("session");
        }
        kept
    }

    /// The change of the mode after which edits are not asked about.
    pub(crate) fn accepting_edits(&self) -> Vec<Value> {
        self.suggestions.iter().filter(|it| it["type"] == "setMode").cloned().collect()
    }
}

impl Asks {
    pub(crate) fn add(&mut self, asked: Asked) {
        self.open.push_back(asked);
        self.is_put_off = false;
    }

    /// A person has answered a question: the next one opens at once.
    pub(crate) fn answered(&mut self, number: AskNumber, now: Moment) {
        let was_shown = self.dialog.as_ref().is_some_and(|dialog| dialog.number == number);
        drop(self.withdrawn(number));
        match self.open.front().map(|asked| asked.number) {
            Some(next) if was_shown && self.is_in_row => self.show(next, now + GUARD),
            _ => {}
        }
    }

    /// A question is withdrawn and its dialog closes. The next one opens when the keys are quiet: a person may be in
    /// the middle of a word. Returns the dialog, if the person had one.
    pub(crate) fn withdrawn(&mut self, number: AskNumber) -> Option<Dialog> {
        self.open.retain(|asked| asked.number != number);
        if self.open.is_empty() {
            self.is_in_row = false;
        }
        let begun = self.begun.remove(&number);
        self.dialog.take_if(|dialog| dialog.number == number).or(begun)
    }

    /// Opens the dialog of a question, with what was written in it before.
    pub(crate) fn show(&mut self, number: AskNumber, hears_from: Moment) {
        self.close();
        let begun = self.begun.remove(&number);
        self.dialog = Some(Dialog { hears_from, ..begun.unwrap_or_else(|| Dialog::new(number)) });
    }

    /// Closes the dialog. The question stays, with what was written and chosen so far.
    pub(crate) fn close(&mut self) {
        if let Some(dialog) = self.dialog.take().filter(Dialog::is_begun) {
            self.begun.insert(dialog.number, dialog);
        }
    }

    /// Opens the oldest question because a person wants it.
    pub(crate) fn show_oldest(&mut self, now: Moment) {
        if let Some(number) = self.open.front().map(|asked| asked.number) {
            self.is_in_row = true;
            self.show(number, now);
        }
    }

    /// Opens the question after the present one.
    pub(crate) fn show_next(&mut self, now: Moment) {
        let Some(dialog) = &self.dialog else { return };
        let at = self.open.iter().position(|asked| asked.number == dialog.number).unwrap_or(0);
        let next = self.open.get(at + 1).or(self.open.front()).map(|asked| asked.number);
        if let Some(next) = next {
            self.show(next, now + GUARD);
        }
    }

    /// Opens a dialog if keys have been quiet for long enough.
    pub(crate) fn pass(&mut self, now: Moment, last_key: Option<Moment>) {
        let Some(first) = self.open.front().map(|asked| asked.number) else { return };
        let is_quiet = last_key.is_none_or(|last| now.saturating_sub(last) >= QUIET);
        if self.dialog.is_none() && is_quiet && !self.is_put_off {
            self.show(first, now + GUARD);
        }
    }

    /// Tells whether a key is for the dialog. A key that comes too soon closes the dialog until keys are quiet.
    pub(crate) fn hears(&mut self, now: Moment) -> bool {
        let Some(dialog) = &self.dialog else { return false };
        if now < dialog.hears_from {
            // A person is typing: the dialog opens again when the keys are quiet.
            self.close();
            return false;
        }
        self.is_in_row = true;
        true
    }

    /// A person looks at something else: the dialog closes and the question stays.
    pub(crate) fn put_off(&mut self) {
        self.close();
        self.is_in_row = false;
        self.is_put_off = true;
    }

    pub(crate) fn current(&self) -> Option<(&Asked, &Dialog)> {
        let dialog = self.dialog.as_ref()?;
        Some((self.open.iter().find(|asked| asked.number == dialog.number)?, dialog))
    }

    /// The place of the present question among all, from one.
    pub(crate) fn place(&self) -> (usize, usize) {
        let shown = self.dialog.as_ref().map(|dialog| dialog.number);
        let at = self.open.iter().position(|asked| Some(asked.number) == shown).unwrap_or(0);
        (at + 1, self.open.len())
    }

    /// The moment at which a dialog may open.
    pub(crate) fn next_change(&self, last_key: Option<Moment>) -> Option<Moment> {
        (self.dialog.is_none() && !self.open.is_empty() && !self.is_put_off)
            .then(|| last_key.map_or(Moment::ZERO, |last| last + QUIET))
    }
}
