//! What hooks are played with: a host whose functions the hooks are, and a server that lives in it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use centurion_config::mcp::{McpOrigin, McpScope, McpServer, McpTransport};
use centurion_engine::{Elicitations, Extensions, Handle, HookHost, Options, ServerPatience};
use centurion_hooks::{DelegateFuture, Event, HookSet};
use centurion_mcp::{
    Connection, Elicitation, ElicitationKind, Elicitor, HostFuture, Pool, PoolOptions, SdkChannel,
};
use centurion_protocol::{Env, ToolUseId};
use centurion_tools::guard::GuardProgram;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bench::Bench;

type Answer = dyn Fn(&Value) -> Option<Value> + Send + Sync;

/// A host with one function for every event. It keeps what it was told.
pub(crate) struct Stage {
    heard: Mutex<Vec<Value>>,
    /// `None` is no answer, ever.
    answer: Box<Answer>,
    pub(crate) desk: Arc<Desk>,
}

impl Stage {
    /// Hooks that have nothing to say.
    pub(crate) fn silent() -> Arc<Self> {
        Self::new(|_| Some(json!({})))
    }

    /// Hooks that answer one event.
    pub(crate) fn at(event: Event, answer: Value) -> Arc<Self> {
        Self::new(move |told| {
            let is_it = told["hook_event_name"] == event.name();
            Some(if is_it { answer.clone() } else { json!({}) })
        })
    }

    pub(crate) fn new(
        answer: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { heard: Mutex::default(), answer: Box::new(answer), desk: Desk::new() })
    }

    /// Everything that hooks were told so far, and are not to be shown again.
    pub(crate) fn take(&self) -> Vec<Value> {
        std::mem::take(&mut *self.heard.lock())
    }

    pub(crate) fn heard(&self, event: Event) -> Vec<Value> {
        let heard = self.heard.lock();
        heard.iter().filter(|told| told["hook_event_name"] == event.name()).cloned().collect()
    }

    /// Gives a session these functions, and hooks beside them.
    pub(crate) fn extend(self: &Arc<Self>, options: &mut Options, hooks: HookSet) {
        let desk = &self.desk;
        options.extensions = Extensions {
            hooks,
            hook_host: Some(Arc::clone(self) as Arc<dyn HookHost>),
            servers: vec![desk.connection()],
            server_patience: ServerPatience::same(Duration::from_secs(30)),
            elicitations: Arc::clone(&desk.elicitations),
            ..Extensions::default()
        };
    }

    /// A bench on which every event has a hook.
    pub(crate) fn set(self: &Arc<Self>, mut bench: Bench) -> Bench {
        let stage = Arc::clone(self);
        let before = bench.adjust;
        bench.adjust = Box::new(move |options| {
            before(options);
            stage.extend(options, every_event());
        });
        bench
    }
}

impl HookHost for Stage {
    fn call<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value> {
        assert_eq!(input["hook_event_name"], id, "each event has its own function");
        assert_eq!(input["tool_use_id"].as_str(), call.map(ToolUseId::as_str));
        self.heard.lock().push(input.clone());
        let answer = (self.answer)(input);
        Box::pin(async move {
            match answer {
                Some(answer) => Ok(answer),
                None => std::future::pending().await,
            }
        })
    }
}

/// One function of the host for every event that can happen, but for the texts that are shown: there are too many.
pub(crate) fn every_event() -> HookSet {
    let one =
        |event: Event| (event.name().to_owned(), json!([{"hookCallbackIds": [event.name()]}]));
    let all = Event::all().filter(|event| *event != Event::MessageDisplay);
    let set = HookSet::from_host(&Value::Object(all.map(one).collect()));
    assert!(set.problems().is_empty());
    set
}

/// A server that lives in the host: its tools greet, fail, ask a person, and hang.
pub(crate) struct Desk {
    pub(crate) elicitations: Arc<Elicitations>,
    pub(crate) handle: OnceLock<Handle>,
    /// What its tools were called with.
    pub(crate) calls: Mutex<Vec<Value>>,
    /// How long it takes to be there.
    pub(crate) latency: Mutex<Duration>,
    pool: OnceLock<Arc<Pool>>,
}

impl Desk {
    fn new() -> Arc<Self> {
        let desk = Arc::new(Self {
            elicitations: Arc::default(),
            handle: OnceLock::new(),
            calls: Mutex::default(),
            latency: Mutex::default(),
            pool: OnceLock::new(),
        });
        let pool = Pool::new(PoolOptions {
            guard: GuardProgram::new("/nonexistent/guard"),
            env: Arc::new(Env::default()),
            cwd: "/".into(),
            roots: Vec::new(),
            output_dir: "/nonexistent".into(),
            credentials: None,
            client_version: "0".to_owned(),
            elicitor: Arc::clone(&desk.elicitations) as Arc<dyn Elicitor>,
            sampler: None,
            sdk: Some(Arc::new(Channel(Arc::downgrade(&desk)))),
            judge: None,
        });
        assert!(desk.pool.set(pool).is_ok());
        desk
    }

    /// The connection that a session begins with.
    pub(crate) fn connection(&self) -> Connection {
        self.pool.get().unwrap().share(server("desk"))
    }

    /// A connection that ends with its owner.
    pub(crate) fn own(&self, server: McpServer) -> Connection {
        self.pool.get().unwrap().own(server)
    }

    async fn answer(&self, message: &Value) -> Value {
        let params = &message["params"];
        match message["method"].as_str().unwrap() {
            "initialize" => {
                let latency = *self.latency.lock();
                tokio::time::sleep(latency).await;
                json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}, "prompts": {}},
                    "serverInfo": {"name": "desk", "version": "1"},
                })
            }
            "tools/list" => {
                let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
                let tools = ["greet", "fail", "ask", "hang", "judge"].map(tool);
                json!({"tools": tools})
            }
            "prompts/list" => json!({"prompts": [
                {"name": "brief"},
                {"name": "forecast", "description": "The weather\nof a city", "arguments": [
                    {"name": "city", "required": true}, {"name": "days"},
                ]},
                {"name": "nothing"},
            ]}),
            "prompts/get" => {
                let text = match params["name"].as_str().unwrap() {
                    "brief" => "the whole brief".to_owned(),
                    "forecast" => format!("FORECAST {}", params["arguments"]),
                    _ => " ".to_owned(),
                };
                let content = json!({"type": "text", "text": text});
                json!({"messages": [{"role": "user", "content": content}]})
            }
            "tools/call" => self.call(params).await,
            other => panic!("{other} is not expected"),
        }
    }

    async fn call(&self, params: &Value) -> Value {
        self.calls.lock().push(params.clone());
        let is_error = params["name"] == "fail";
        let text = match params["name"].as_str().unwrap() {
            "ask" => {
                let kind =
                    ElicitationKind::Form { schema: json!({"type": "object", "properties": {}}) };
                let (server, message) = ("desk".to_owned(), "which?".to_owned());
                let question = Elicitation { server, message, kind };
                format!("{:?}", self.elicitations.elicit(question).await)
            }
            "hang" => {
                self.handle.get().unwrap().interrupt();
                std::future::pending().await
            }
            "judge" => params["arguments"]["verdict"].to_string(),
            _ => "hello".to_owned(),
        };
        json!({"content": [{"type": "text", "text": text}], "isError": is_error})
    }
}

/// A server of the host, under a name of its own.
pub(crate) fn server(name: &str) -> McpServer {
    McpServer {
        name: name.to_owned(),
        transport: McpTransport::Sdk { name: name.to_owned() },
        timeout: None,
        always_load: true,
        origin: McpOrigin { scope: McpScope::Host, file: None, line: None },
        accepted: None,
    }
}

/// The way to the server.
struct Channel(std::sync::Weak<Desk>);

impl SdkChannel for Channel {
    fn exchange<'a>(
        &'a self,
        _: &'a str,
        message: Value,
    ) -> HostFuture<'a, Result<Option<Value>, centurion_mcp::HostError>> {
        Box::pin(async move {
            let Some(id) = message.get("id").cloned() else { return Ok(None) };
            let desk = self.0.upgrade().ok_or("the host is gone")?;
            let result = desk.answer(&message).await;
            Ok(Some(json!({"jsonrpc": "2.0", "id": id, "result": result})))
        })
    }
}
