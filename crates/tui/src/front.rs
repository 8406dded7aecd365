//! The front: events are folded at once under the model's lock, and questions wait here for a person's answer.
//!
//! Nothing queues, nothing is dropped, and the engine does not wait: a frame is drawn when the loop comes to it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use centurion_engine::{
    Answerer, Ask, ElicitFuture, Elicitation, ElicitationAnswer, ElicitationKind, Handle,
    ReplyFuture, Unanswered, View,
};
use centurion_host::Front;
use centurion_protocol::RecordId;
use centurion_protocol::sdk::Event;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use crate::app::earlier_in;
use crate::effect::Effect;
use crate::fold::{Fact, Happening, fold};
use crate::model::asks::{AskKind, AskNumber, Asked, FieldKind, FormField, Permission, Question};
use crate::model::prompts::PromptNumber;
use crate::model::{Model, Moment};

/// A terminal as a front of a session.
pub struct TerminalFront {
    state: Mutex<State>,
    changed: Notify,
    began: Instant,
}

struct State {
    model: Model,
    effects: Vec<Effect>,
    answers: HashMap<AskNumber, oneshot::Sender<Value>>,
    asked: u64,
    handle: Option<Handle>,
    /// The transcript of the session that is resumed.
    resumed: Option<PathBuf>,
    /// The ids of the prompts that no agent has read, as far as is known.
    sent: HashMap<PromptNumber, RecordId>,
}

impl TerminalFront {
    pub fn new(model: Model) -> Arc<Self> {
        let answers = HashMap::new();
        let (effects, sent) = (Vec::new(), HashMap::new());
        let (handle, resumed) = (None, None);
        let state = State { model, effects, answers, asked: 0, handle, resumed, sent };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new(), began: Instant::now() })
    }

    /// From now on effects reach this session.
    pub fn attach(&self, handle: Handle) {
        self.state.lock().handle = Some(handle);
        self.changed.notify_one();
    }

    /// Shows the end of a session that is resumed, while it opens.
    pub fn resumes(&self, transcript: PathBuf) {
        let said = earlier_in(&transcript);
        self.state.lock().resumed = Some(transcript);
        if let Some(said) = said {
            self.happens(Happening::Fact(said));
        }
    }

    /// The end of what was said before this process, for a screen of its own.
    pub(crate) fn earlier(&self) -> Option<Fact> {
        let state = self.state.lock();
        let transcript = match &state.handle {
            Some(handle) => handle.transcript(None)?,
            None => state.resumed.clone()?,
        };
        drop(state);
        earlier_in(&transcript)
    }

    /// The time since the start of the terminal.
    pub(crate) fn now(&self) -> Moment {
        self.began.elapsed()
    }

    /// Folds something that happened now.
    pub fn happens(&self, happening: Happening<'_>) {
        let now = self.now();
        let mut state = self.state.lock();
        let effects = fold(&mut state.model, now, happening);
        state.effects.extend(effects);
        drop(state);
        self.changed.notify_one();
    }

    /// Time has passed: nothing needs to be woken for that.
    pub(crate) fn tick(&self) {
        self.folds(Happening::Tick);
    }

    /// Folds what the loop itself has seen before it draws: nothing needs to be woken for that.
    pub(crate) fn folds(&self, happening: Happening<'_>) {
        let now = self.now();
        let mut state = self.state.lock();
        let effects = fold(&mut state.model, now, happening);
        state.effects.extend(effects);
    }

    /// Waits until something has changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(crate) fn model(&self) -> parking_lot::MappedMutexGuard<'_, Model> {
        MutexGuard::map(self.state.lock(), |state| &mut state.model)
    }

    pub(crate) fn take_effects(&self) -> Vec<Effect> {
        std::mem::take(&mut self.state.lock().effects)
    }

    /// Wants something done that no happening has asked for.
    pub fn wants(&self, effect: Effect) {
        self.state.lock().effects.push(effect);
        self.changed.notify_one();
    }

    /// The session, once it is open.
    pub fn session(&self) -> Option<Handle> {
        self.state.lock().handle.clone()
    }

    /// Takes note of a prompt that goes to the session.
    pub(crate) fn sends(&self, number: PromptNumber, id: RecordId) {
        self.state.lock().sent.insert(number, id);
    }

    /// Takes a prompt back from those that were sent.
    pub(crate) fn takes_back(&self, number: PromptNumber) -> Option<RecordId> {
        self.state.lock().sent.remove(&number)
    }

    /// Folds that prompts were read, if some were. `early` are those that wait for the session to open.
    pub(crate) fn look_at_prompts(&self, early: &[PromptNumber]) {
        let now = self.now();
        let mut state = self.state.lock();
        let Some(handle) = state.handle.clone().filter(|_| !state.sent.is_empty()) else { return };
        let before = state.sent.len();
        state.sent.retain(|_, id| handle.is_waiting(*id));
        if state.sent.len() < before {
            let held = state.sent.keys().chain(early).copied().collect();
            let effects = fold(&mut state.model, now, Happening::Fact(Fact::Held(held)));
            state.effects.extend(effects);
        }
    }

    /// Hands a person's answer to the question that waits for it.
    pub(crate) fn settle(&self, number: AskNumber, answer: Value) {
        if let Some(waiting) = self.state.lock().answers.remove(&number) {
            // A call that ended meanwhile needs no answer.
            let _ = waiting.send(answer);
        }
    }

    /// Puts a question to the person and waits for the answer. Dropping the future withdraws it.
    pub async fn ask(&self, mut asked: Asked) -> Option<Value> {
        let (sender, receiver) = oneshot::channel();
        let number = {
            let mut state = self.state.lock();
            state.asked += 1;
            let number = AskNumber(state.asked);
            state.answers.insert(number, sender);
            number
        };
        asked.number = number;
        let _open = OpenAsk { front: self, number };
        self.happens(Happening::Asked(Box::new(asked)));
        receiver.await.ok()
    }
}

/// Withdraws a question that is dropped.
struct OpenAsk<'a> {
    front: &'a TerminalFront,
    number: AskNumber,
}

impl Drop for OpenAsk<'_> {
    fn drop(&mut self) {
        self.front.state.lock().answers.remove(&self.number);
        self.front.happens(Happening::Withdrawn(self.number));
    }
}

impl View for TerminalFront {
    fn show(&self, event: &Event) {
        // A prompt that was read stands before the answer to it.
        self.look_at_prompts(&[]);
        self.happens(Happening::Event(&event.body));
    }
}

impl Front for TerminalFront {}

impl Answerer for TerminalFront {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        Box::pin(async move {
            let answer = TerminalFront::ask(self, asked(&ask)).await;
            answer.map(|answer| centurion_host::reply(&answer)).ok_or_else(gone)
        })
    }

    fn elicit(&self, question: Elicitation) -> ElicitFuture<'_> {
        Box::pin(async move {
            let answer =
                TerminalFront::ask(self, asked_by_server(question)).await.ok_or_else(gone)?;
            Ok(match answer["action"].as_str() {
                Some("accept") => ElicitationAnswer::Accept(
                    answer["content"].as_object().cloned().unwrap_or_default(),
                ),
                Some("decline") => ElicitationAnswer::Decline,
                _ => ElicitationAnswer::Cancel,
            })
        })
    }
}

fn gone() -> Unanswered {
    Unanswered::because("the terminal is gone")
}

/// A question of an agent, as a person is shown it.
fn asked(ask: &Ask) -> Asked {
    let input: Value = serde_json::from_str(ask.input.get()).unwrap_or_default();
    let kind = match ask.tool.as_str() {
        "AskUserQuestion" => AskKind::Questions(questions(&input)),
        "ExitPlanMode" => AskKind::Plan {
            text: input["plan"].as_str().unwrap_or_default().to_owned(),
            is_edited: false,
        },
        _ => AskKind::Permission(Box::new(Permission {
            tool: ask.tool.clone(),
            input,
            because: ask.reason.text.clone(),
            rule: ask.reason.rule.as_ref().map(ToString::to_string),
            server: ask
                .server
                .as_ref()
                .map(|server| format!("{} ({})", server.name, server.source)),
            reach: ask.reach.clone(),
            suggestions: ask.suggestions.clone(),
        })),
    };
    Asked {
        number: AskNumber(0),
        call: Some(ask.call.clone()),
        agent: ask.agent.as_ref().map(|agent| agent.id.clone()),
        path: ask.agent.as_ref().map(|agent| agent.path.clone()).unwrap_or_default(),
        kind,
    }
}

fn questions(input: &Value) -> Vec<Question> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let option = |one: &Value| (text(&one["label"]), text(&one["description"]));
    let question = |one: &Value| Question {
        question: text(&one["question"]),
        header: text(&one["header"]),
        options: one["options"].as_array().into_iter().flatten().map(option).collect(),
        many: one["multiSelect"].as_bool().unwrap_or_default(),
    };
    input["questions"].as_array().into_iter().flatten().map(question).collect()
}

fn asked_by_server(question: Elicitation) -> Asked {
    let Elicitation { server, message, kind } = question;
    let kind = match kind {
        ElicitationKind::Form { schema } => {
            AskKind::Form { server, message, fields: fields(&schema) }
        }
        ElicitationKind::Url { url, .. } => AskKind::Visit { server, message, url },
    };
    Asked { number: AskNumber(0), call: None, agent: None, path: Vec::new(), kind }
}

/// The fields of a flat schema.
fn fields(schema: &Value) -> Vec<FormField> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let field = |(name, about): (&String, &Value)| {
        let choices = about["enum"]
            .as_array()
            .map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let kind = match (choices, about["type"].as_str()) {
            (Some(choices), _) => FieldKind::OneOf(choices),
            (None, Some("boolean")) => FieldKind::Truth,
            (None, Some("number" | "integer")) => FieldKind::Number,
            _ => FieldKind::Text,
        };
        let said = about["description"].as_str().or(about["title"].as_str()).unwrap_or_default();
        FormField {
            name: name.clone(),
            about: said.to_owned(),
            kind,
            is_required: required.contains(&name.as_str()),
        }
    };
    schema["properties"].as_object().into_iter().flatten().map(field).collect()
}
