//! The bench that stories are played on: a scratch directory, a scenario, and everything that came of it.

use std::path::PathBuf;
use std::sync::Arc;

use centurion_engine::{
    Answerer, Base, Bypass, Options, PermissionOptions, Redaction, RequestSettings, Session, Start,
    Storage, StructuredOutput, View,
};
use centurion_model::{
    ErrorKind, EventStream, Model, ModelError, Provider, ProviderKind, Request, RetryPolicy, script,
};
use centurion_permissions::{Mode, Policy, Rule, RuleOrigin};
use centurion_protocol::sdk::Event;
use centurion_protocol::{Block, Effort, Env, Outcome, SeededWorld, SessionId, Thinking, World};
use centurion_tools::guard::GuardProgram;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

/// A place for one story.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) scenario: Value,
    pub(crate) allow: &'static str,
    pub(crate) deny: &'static str,
    pub(crate) mode: Mode,
    pub(crate) max_turns: Option<u32>,
    pub(crate) max_budget: Option<f64>,
    pub(crate) model: &'static str,
    pub(crate) fallback: Vec<String>,
    pub(crate) schema: Option<&'static str>,
    pub(crate) answerer: Option<Arc<dyn Answerer>>,
    pub(crate) partial_messages: bool,
    pub(crate) retries: u32,
    pub(crate) seed: u64,
    /// Why the provider refuses a request with these messages, if it does.
    pub(crate) refuses: Option<Refuses>,
    /// Whatever else a story needs of its session.
    pub(crate) adjust: Box<dyn Fn(&mut Options) + Send + Sync>,
}

/// Judges the messages of a request.
pub(crate) type Refuses = Arc<dyn Fn(&[Value]) -> Option<String> + Send + Sync>;

/// What came of a run.
#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) events: Vec<Value>,
    pub(crate) requests: Vec<Value>,
    pub(crate) asked: Vec<Asked>,
    pub(crate) session: SessionId,
    pub(crate) transcript: PathBuf,
}

impl Bench {
    /// A bench whose model plays the scenario.
    pub(crate) fn new(scenario: Value) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            scenario,
            allow: "",
            deny: "",
            mode: Mode::AcceptEdits,
            max_turns: None,
            max_budget: None,
            model: "claude-opus-5-5",
            fallback: Vec::new(),
            schema: None,
            answerer: None,
            partial_messages: false,
            retries: 10,
            seed: 1,
            refuses: None,
            adjust: Box::new(|_| {}),
        }
    }

    /// Changes something more about its sessions.
    pub(crate) fn also(&mut self, change: impl Fn(&mut Options) + Send + Sync + 'static) {
        let before = std::mem::replace(&mut self.adjust, Box::new(|_| {}));
        self.adjust = Box::new(move |options: &mut Options| {
            before(options);
            change(options);
        });
    }

    /// A model that says these steps one after another.
    pub(crate) fn says(steps: &Value) -> Self {
        Self::new(serde_json::json!({"default": steps}))
    }

    pub(crate) fn project(&self) -> PathBuf {
        let project = self.dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(&project).unwrap();
        project
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.project().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) async fn run(&self, prompt: &str) -> Told {
        self.start(Start::New(SeededWorld::new(self.seed).session_id()), None, prompt).await
    }

    pub(crate) async fn resume(&self, told: &Told, prompt: &str) -> Told {
        self.start(Start::Resume(told.session), Some(told.transcript.clone()), prompt).await
    }

    pub(crate) async fn start(&self, start: Start, resumed: Option<PathBuf>, prompt: &str) -> Told {
        let watcher = Arc::new(Watcher::default());
        let mut session = self.open(start, resumed, &watcher).await;
        session.handle().submit(self.world().record_id(), vec![Block::text(prompt)]);
        session.handle().close();
        let outcome = session.run().await;
        self.told(&session, outcome, &watcher)
    }

    pub(crate) fn told(
        &self,
        session: &Session,
        outcome: Option<Outcome>,
        watcher: &Watcher,
    ) -> Told {
        Told {
            outcome,
            events: watcher.events.lock().clone(),
            requests: watcher.requests.lock().clone(),
            asked: watcher.asked.lock().clone(),
            session: session.id(),
            transcript: self.transcript(session.id()),
        }
    }

    pub(crate) fn transcript(&self, id: SessionId) -> PathBuf {
        self.dir.path().join(format!("state/{id}.jsonl"))
    }

    fn world(&self) -> Arc<dyn World> {
        Arc::new(SeededWorld::new(self.seed + 1))
    }

    pub(crate) async fn open(
        &self,
        start: Start,
        resumed: Option<PathBuf>,
        watcher: &Arc<Watcher>,
    ) -> Session {
        Session::open(self.options(start, resumed, watcher)).await.unwrap()
    }

    pub(crate) fn options(
        &self,
        start: Start,
        resumed: Option<PathBuf>,
        watcher: &Arc<Watcher>,
    ) -> Options {
        let id = start.id();
        let script = script::parse(&self.scenario.to_string(), "scenario.json").unwrap();
        let provider = Recording {
            inner: Arc::new(script),
            watcher: Arc::clone(watcher),
            refuses: self.refuses.clone(),
        };
        let policy = RetryPolicy { max_retries: self.retries, ..RetryPolicy::new(&Env::default()) };
        let model = Model::with_provider(
            Arc::new(provider),
            ProviderKind::Script,
            self.model,
            policy,
            self.world(),
        );
        let project = self.project();
        let rules = |text: &str| Rule::parse_list(text, &RuleOrigin::Flag).unwrap();
        let base = Base {
            world: self.world(),
            time_zone: jiff::tz::TimeZone::UTC,
            entrypoint: "test".to_owned(),
            ..Base::new(project.clone(), GuardProgram::new("/nonexistent/guard"))
        };
        let storage = Storage {
            resumed_at: None,
            transcript: Some(self.transcript(id)),
            resumed,
            output_dir: self.dir.path().join("output"),
            file_history: None,
            redaction: Redaction::On,
            mirror: None,
        };
        let policy = Policy {
            mode: self.mode,
            allow: rules(self.allow).into(),
            deny: rules(self.deny).into(),
            ..PermissionOptions::in_directory(&project).policy
        };
        let mut options = Options {
            start,
            permission: PermissionOptions {
                bypass: Bypass::Enabled,
                ..PermissionOptions::new(policy)
            },
            settings: RequestSettings {
                model: self.model.to_owned(),
                fallback_models: self.fallback.clone(),
                max_turns: self.max_turns,
                partial_messages: self.partial_messages,
                concurrent_calls: 10,
                ..RequestSettings::default()
            },
            max_budget: self.max_budget,
            structured: self.schema.map(|schema| StructuredOutput::parse(schema).unwrap()),
            answerer: self.answerer.clone(),
            view: Arc::clone(watcher) as Arc<dyn View>,
            ..Options::new(model, base, storage)
        };
        (self.adjust)(&mut options);
        options
    }
}

/// What a request asked for, beside its messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// `None` for the main agent.
    pub(crate) agent: Option<String>,
    pub(crate) model: String,
    pub(crate) system: Vec<String>,
    pub(crate) tools: Vec<String>,
    /// What the Agent tool says about itself, where it is offered.
    pub(crate) listing: Option<String>,
    /// What each tool says about itself and what it takes, in the order of `tools`.
    pub(crate) offers: Vec<Value>,
    pub(crate) effort: Option<Effort>,
    pub(crate) thinking: Thinking,
    pub(crate) messages: Value,
    /// The bytes of all messages, one after another.
    pub(crate) wire: Vec<u8>,
    /// The bytes of the system prompt and of the tools.
    pub(crate) fixed: Vec<u8>,
}

/// Keeps every event and every request.
#[derive(Default)]
pub(crate) struct Watcher {
    pub(crate) events: Mutex<Vec<Value>>,
    pub(crate) requests: Mutex<Vec<Value>>,
    pub(crate) asked: Mutex<Vec<Asked>>,
    changed: Notify,
}

impl Watcher {
    /// Waits until what was seen so far is enough.
    pub(crate) async fn until(&self, is_enough: impl Fn(&[Value], &[Asked]) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the look, so that nothing in between is missed.
            changed.as_mut().enable();
            if is_enough(&self.events.lock(), &self.asked.lock()) {
                return;
            }
            changed.await;
        }
    }
}

impl View for Watcher {
    fn show(&self, event: &Event) {
        self.events.lock().push(plain(event));
        self.changed.notify_waiters();
    }
}

/// Keeps the messages of every request, and refuses what a real provider would refuse.
struct Recording {
    inner: Arc<dyn Provider>,
    watcher: Arc<Watcher>,
    refuses: Option<Refuses>,
}

impl Provider for Recording {
    fn stream(&self, request: Request) -> EventStream {
        let messages = messages_of(&request);
        assert_valid(&messages);
        self.watcher.asked.lock().push(Asked {
            agent: request.agent.as_ref().map(ToString::to_string),
            model: request.model.clone(),
            system: request.prefix.system.sections().map(str::to_owned).collect(),
            tools: request.prefix.tools.iter().map(|tool| tool.name.clone()).collect(),
            listing: request
                .prefix
                .tools
                .iter()
                .find(|tool| tool.name == "Agent")
                .map(|tool| tool.description.clone()),
            offers: request.prefix.tools.iter().map(plain).collect(),
            effort: request.effort,
            thinking: request.thinking,
            messages: Value::Array(messages.clone()),
            wire: request.prefix.conversation.iter().flat_map(|it| it.wire().to_vec()).collect(),
            fixed: [request.prefix.system.wire().to_vec(), request.prefix.tools.wire().to_vec()]
                .concat(),
        });
        let refusal = self.refuses.as_ref().and_then(|refuses| refuses(&messages));
        self.watcher.requests.lock().push(Value::Array(messages));
        self.watcher.changed.notify_waiters();
        if let Some(reason) = refusal {
            let error = ModelError::new(ErrorKind::InvalidRequest, reason).with_status(400);
            return Box::pin(futures_util::stream::iter([Err(error)]));
        }
        self.inner.stream(request)
    }

    fn credential(&self) -> &str {
        self.inner.credential()
    }
}

/// The messages of a request, as a provider reads them.
pub(crate) fn messages_of(request: &Request) -> Vec<Value> {
    let messages = request.prefix.conversation.iter();
    messages.map(|message| serde_json::from_slice(&message.wire()[1..]).unwrap()).collect()
}

/// By way of text, because raw JSON does not go into a `Value` directly.
fn plain(value: &impl serde::Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

/// The rules of the Messages API about calls, results and blocks.
pub(crate) fn assert_valid(messages: &[Value]) {
    let mut open: Vec<String> = Vec::new();
    assert_eq!(messages[0]["role"], "user", "starts with a user message");
    for message in messages {
        let blocks = message["content"].as_array().unwrap();
        assert!(!blocks.is_empty());
        let ids = |kind: &str, key: &str| -> Vec<String> {
            let of_kind = blocks.iter().filter(|block| block["type"] == kind);
            of_kind.map(|block| block[key].as_str().unwrap().to_owned()).collect()
        };
        for block in blocks {
            assert!(block["type"] != "text" || block["text"] != "", "no empty text: {message}");
        }
        if message["role"] == "user" {
            let results = ids("tool_result", "tool_use_id");
            assert_eq!(results, open, "exactly the open calls are answered, in order: {message}");
            open.clear();
        } else {
            assert!(open.is_empty(), "calls {open:?} were never answered");
            assert_ne!(blocks.last().unwrap()["type"], "thinking");
            open = ids("tool_use", "id");
        }
    }
    assert!(open.is_empty(), "calls {open:?} are open in a request");
}

impl Told {
    pub(crate) fn result(&self) -> &Value {
        self.events.iter().rfind(|event| event["type"] == "result").unwrap()
    }

    pub(crate) fn of<'a>(&'a self, kind: &'a str, subtype: Option<&'a str>) -> Vec<&'a Value> {
        self.events
            .iter()
            .filter(|event| {
                event["type"] == kind && subtype.is_none_or(|subtype| event["subtype"] == subtype)
            })
            .collect()
    }

    /// The texts of all tool results in the order of their calls, with whether each is an error. Calls of an
    /// earlier process come first.
    pub(crate) fn results(&self) -> Vec<(String, bool)> {
        let calls: Vec<&Value> =
            self.blocks("assistant", "tool_use").map(|block| &block["id"]).collect();
        let mut results: Vec<&Value> = self.blocks("user", "tool_result").collect();
        // Results are shown as they come; calls side by side end in any order.
        results.sort_by_key(|block| calls.iter().position(|id| **id == block["tool_use_id"]));
        let text = |block: &&Value| match &block["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        results.iter().map(|block| (text(block), block["is_error"] == true)).collect()
    }

    fn blocks<'a>(&'a self, event: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        let events = self.events.iter().filter(move |shown| shown["type"] == event);
        let blocks = events.flat_map(|shown| shown["message"]["content"].as_array().unwrap());
        blocks.filter(move |block| block["type"] == kind)
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.transcript).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
