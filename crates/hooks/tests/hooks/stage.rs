//! The stage for hooks: a scratch project, observers and answers.

use std::path::PathBuf;
use std::sync::Arc;

use centurion_config::settings::Level;
use centurion_hooks::events::{PreToolUse, PreToolVerdict, Stop, UserPromptSubmit};
use centurion_hooks::{
    Common, Delegate, DelegateFuture, HookOrigin, HookResponse, HookResult, HookRules, HookScope,
    HookSet, HookSource, HookStarted, HookWatcher, Hooks, LateReply, ModelRequest, PluginSource,
    Registration, Surroundings, ToolCall,
};
use centurion_permissions::Access;
use centurion_protocol::{Env, SeededWorld, SystemWorld, ToolUseId, World as _};
use centurion_testkit::Scratch;
use centurion_tools::guard::GuardProgram;
use parking_lot::Mutex;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The answer of a host's function, and its time.
pub(crate) type Callback =
    Arc<dyn Fn(&str, &Value) -> DelegateFuture<'static, Value> + Send + Sync>;

pub(crate) struct Stage {
    pub(crate) scratch: Scratch,
    pub(crate) hooks: Hooks,
    pub(crate) answers: Arc<Answers>,
    pub(crate) seen: Arc<Seen>,
    /// The replies of asynchronous hooks.
    pub(crate) late: mpsc::UnboundedReceiver<LateReply>,
}

/// Answers in place of models, servers and the host.
pub(crate) struct Answers {
    pub(crate) says: Mutex<Result<String, String>>,
    pub(crate) callback: Mutex<Option<Callback>>,
    /// The requests so far.
    pub(crate) asked: Mutex<Vec<String>>,
}

/// Records the observations of watchers.
pub(crate) struct Seen {
    pub(crate) started: Mutex<Vec<HookStarted>>,
    pub(crate) ended: Mutex<Vec<HookResponse>>,
    late: mpsc::UnboundedSender<LateReply>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with_env(&[])
    }

    pub(crate) fn with_env(variables: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new();
        let answers = Arc::new(Answers {
            says: Mutex::new(Ok(String::new())),
            callback: Mutex::new(None),
            asked: Mutex::default(),
        });
        let (sender, late) = mpsc::unbounded_channel();
        let seen =
            Arc::new(Seen { started: Mutex::default(), ended: Mutex::default(), late: sender });
        let path = std::env::var("PATH").unwrap();
        let variables = variables.iter().copied().chain([("PATH", path.as_str())]);
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let around = Surroundings {
            guard: GuardProgram::new(env!("CARGO_BIN_EXE_centurion-hooks-guard")),
            env: Arc::new(Env::new(variables)),
            project_dir: scratch.project(),
            home: Some(scratch.home()),
            overflow_dir: scratch.root().join("overflow"),
            env_file: Some(scratch.root().join("env.sh")),
            world: Arc::new(SystemWorld),
            delegate: Arc::clone(&answers) as Arc<dyn Delegate>,
            watcher: Arc::clone(&seen) as Arc<dyn HookWatcher>,
        };
        let hooks = Hooks::new(around, HookRules::default());
        Self { scratch, hooks, answers, seen, late }
    }

    /// Puts hooks of a settings file in force for the rest of the test.
    pub(crate) fn settings(&self, level: Level, hooks: &Value) {
        self.keep(HookScope::Session, &HookOrigin::new(HookSource::Settings(level)), hooks);
    }

    pub(crate) fn keep(&self, scope: HookScope, origin: &HookOrigin, hooks: &Value) {
        std::mem::forget(self.add(scope, origin, hooks));
    }

    pub(crate) fn add(&self, scope: HookScope, origin: &HookOrigin, hooks: &Value) -> Registration {
        let set = HookSet::from_value(hooks, origin);
        assert!(set.problems().is_empty(), "{:?}", set.problems());
        self.hooks.add(scope, set)
    }

    /// One command at an event.
    pub(crate) fn command(&self, event: &str, command: &str) {
        let handler = json!({"type": "command", "command": command});
        self.settings(Level::User, &json!({event: [{"hooks": [handler]}]}));
    }

    pub(crate) fn common(&self) -> Common {
        Common {
            session_id: SeededWorld::new(1).session_id(),
            prompt_id: None,
            transcript_path: self.scratch.root().join("transcript.jsonl"),
            cwd: self.scratch.project(),
            permission_mode: None,
            effort: None,
            agent_id: None,
            agent_type: None,
            parent_agent_id: None,
            teammate_name: None,
            team_name: None,
            depth: 0,
        }
    }

    pub(crate) async fn prompt(&self) -> HookResult<centurion_hooks::events::PromptVerdict> {
        let cancel = CancellationToken::new();
        self.hooks.fire(&self.common(), &UserPromptSubmit { prompt: "hi" }, &cancel).await
    }

    pub(crate) async fn stop(&self) -> HookResult<centurion_hooks::events::StopVerdict> {
        let stop = Stop {
            stop_hook_active: false,
            last_assistant_message: "done",
            background_tasks: &[],
            session_crons: &[],
        };
        self.hooks.fire(&self.common(), &stop, &CancellationToken::new()).await
    }

    /// A call of Bash is about to run.
    pub(crate) async fn bash(&self, common: &Common, line: &str) -> HookResult<PreToolVerdict> {
        let input = to_raw_value(&json!({"command": line})).unwrap();
        let id = ToolUseId::new("toolu_1");
        let access = Access::Shell(line.to_owned());
        let call = ToolCall {
            tool: "Bash",
            input: &input,
            id: &id,
            mcp_server: None,
            access: &access,
            named: None,
        };
        self.hooks.fire(common, &PreToolUse { call }, &CancellationToken::new()).await
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.answers.asked.lock().clone()
    }
}

pub(crate) fn plugin(root: PathBuf) -> HookOrigin {
    let source = PluginSource {
        name: "p".to_owned(),
        data: root.join("data"),
        root,
        options: [("api-key".to_owned(), "k e y".to_owned())].into(),
        is_managed: false,
    };
    HookOrigin::new(HookSource::Plugin(Arc::new(source)))
}

impl Answers {
    fn answer(&self, question: String) -> DelegateFuture<'_, String> {
        self.asked.lock().push(question);
        let says = self.says.lock().clone();
        Box::pin(async move { Ok(says?) })
    }

    pub(crate) fn say(&self, text: &str) {
        *self.says.lock() = Ok(text.to_owned());
    }
}

impl Delegate for Answers {
    fn prompt<'a>(&'a self, request: ModelRequest<'a>) -> DelegateFuture<'a, String> {
        let model = request.model.unwrap_or("fast");
        self.answer(format!("{model}: {}", request.prompt))
    }

    fn agent<'a>(&'a self, request: ModelRequest<'a>) -> DelegateFuture<'a, String> {
        self.answer(format!("agent at {}: {}", request.event, request.prompt))
    }

    fn mcp_tool<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Map<String, Value>,
    ) -> DelegateFuture<'a, String> {
        self.answer(format!("{server}/{tool} {}", Value::Object(input)))
    }

    fn callback<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value> {
        let call = call.map_or("-", ToolUseId::as_str);
        self.asked.lock().push(format!("{id} {call}"));
        let callback = self.callback.lock().clone().expect("a callback");
        callback(id, input)
    }
}

impl HookWatcher for Seen {
    fn started(&self, hook: HookStarted) {
        self.started.lock().push(hook);
    }

    fn ended(&self, hook: HookResponse) {
        self.ended.lock().push(hook);
    }

    fn late(&self, reply: LateReply) {
        self.late.send(reply).unwrap();
    }
}
