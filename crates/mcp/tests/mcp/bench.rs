//! The fixture of the tests: a pool in a scratch directory, and a server of the test's choice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::{McpOrigin, McpRemote, McpScope, McpServer, McpTransport};
use centurion_mcp::{
    CallOptions, Connection, Elicitation, ElicitationAnswer, Elicitor, HostFuture, Pool,
    PoolOptions, State,
};
use centurion_protocol::{Env, SeededWorld, ToolUseId, World as _};
use centurion_tools::guard::GuardProgram;
use centurion_tools::{
    Answer, DynTool, Host, HostFuture as ToolFuture, NoAnswer, PlanModeError, PlanVerdict,
    Question, ReadState, ShellChange, ShellEnd, Shells, ShellsConfig, ToolContext, ToolError,
    ToolOutput, Workspace,
};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Longer than any step takes on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) pool: Arc<Pool>,
}

/// Declines every question.
struct Nobody;

impl Elicitor for Nobody {
    fn elicit(&self, _: Elicitation) -> HostFuture<'_, ElicitationAnswer> {
        Box::pin(std::future::ready(ElicitationAnswer::Decline))
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_env([])
    }

    pub(crate) fn with_env<const N: usize>(variables: [(&str, &str); N]) -> Self {
        Self::with(variables, |_| {})
    }

    pub(crate) fn with<const N: usize>(
        variables: [(&str, &str); N],
        change: impl FnOnce(&mut PoolOptions),
    ) -> Self {
        // Some other test may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("pids")).unwrap();
        let pids = root.join("pids").display().to_string();
        let path = std::env::var("PATH").unwrap();
        let own = [("PATH", path.as_str()), ("PIDS", pids.as_str())];
        let all = own.into_iter().chain(variables);
        let mut options = PoolOptions {
            guard: GuardProgram::new(env!("CARGO_BIN_EXE_centurion-mcp-guard")),
            env: Arc::new(Env::new(all.map(|(name, value)| (name.to_owned(), value.to_owned())))),
            cwd: root.clone(),
            roots: vec![root.join("a b")],
            output_dir: root.join("output"),
            credentials: Some(root.join("tokens.json")),
            client_version: "1.2.3".to_owned(),
            elicitor: Arc::new(Nobody),
            sampler: None,
            sdk: None,
            judge: None,
        };
        change(&mut options);
        Self { dir, pool: Pool::new(options) }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// A ready connection to the test program.
    pub(crate) async fn connect(&self, mode: &str) -> Connection {
        let connection = self.pool.share(program(mode));
        assert_eq!(connection.ready(PATIENCE).await, State::Connected, "{mode}");
        connection
    }

    /// The processes that servers have recorded.
    pub(crate) fn pids(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.root().join("pids")).unwrap();
        files.map(|file| Path::new("/proc").join(file.unwrap().file_name())).collect()
    }

    pub(crate) fn running(&self) -> usize {
        let is_running = |process: &&PathBuf| {
            // A zombie, which its parent has not collected yet, runs no more.
            std::fs::read_to_string(process.join("stat"))
                .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim().starts_with('Z'))
        };
        self.pids().iter().filter(is_running).count()
    }

    /// Runs a tool as an agent does.
    pub(crate) async fn run(
        &self,
        connection: &Connection,
        tool: &str,
        input: Value,
    ) -> Result<ToolOutput, ToolError> {
        let context = self.context(CancellationToken::new());
        run(&find(connection, tool), &context, input).await
    }

    pub(crate) fn context(&self, cancel: CancellationToken) -> ToolContext {
        let root = self.root();
        let world = Arc::new(SeededWorld::new(1));
        let guard = GuardProgram::new("/nonexistent");
        let workspace = Workspace {
            root: Mutex::new(root.clone()),
            cwd: Mutex::new(root.clone()),
            read_state: ReadState::default(),
            files: Arc::default(),
            called: "the main agent".into(),
            todos: Mutex::default(),
            plan: Mutex::default(),
            checkpoints: None,
            shells: Arc::new(Shells::new(ShellsConfig::new(
                guard,
                world.session_id(),
                root.clone(),
            ))),
            output_dir: root.join("output"),
            may_read: Arc::new(|_| true),
            find_denied: Arc::new(centurion_tools::DeniedFiles::nothing),
            host_rule: Arc::new(|_| centurion_permissions::HostRule::Named),
            sandbox: None,
            isolation: None,
            env: Arc::default(),
            world,
            host: Arc::new(NoHost { beat: root.join("beat") }),
        };
        ToolContext {
            workspace: Arc::new(workspace),
            call: ToolUseId::new("toolu_1"),
            cancel,
            decided: None,
            is_approved: false,
            moves_agent: true,
        }
    }
}

/// The tool of a connection with this name at its end.
pub(crate) fn find(connection: &Connection, tool: &str) -> Arc<dyn DynTool> {
    let tools = connection.tools();
    let name = centurion_mcp::tool_name(connection.name(), tool);
    tools.into_iter().find(|known| known.name() == name).expect("the tool is offered")
}

pub(crate) async fn run(
    tool: &Arc<dyn DynTool>,
    context: &ToolContext,
    input: Value,
) -> Result<ToolOutput, ToolError> {
    let input = serde_json::value::to_raw_value(&input).unwrap();
    tool.prepare(&input)?.run(context).await
}

/// Calls a tool and returns its text.
pub(crate) async fn call(connection: &Connection, tool: &str, arguments: Value) -> String {
    let output = connection.call(tool, object(arguments), &CallOptions::default()).await;
    output.unwrap_or_else(|error| panic!("{tool}: {error}")).text()
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// The test program, in one of its modes.
pub(crate) fn program(mode: &str) -> McpServer {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    server(McpTransport::Stdio {
        command: "python3".to_owned(),
        args: vec![script.to_owned(), mode.to_owned()],
        env: BTreeMap::from([("OWN".to_owned(), "yes".to_owned())]),
    })
}

pub(crate) fn server(transport: McpTransport) -> McpServer {
    McpServer {
        name: "test".to_owned(),
        transport,
        timeout: None,
        always_load: false,
        origin: McpOrigin { scope: McpScope::User, file: None, line: None },
        accepted: None,
    }
}

pub(crate) fn remote(url: String) -> McpRemote {
    McpRemote { url, headers: BTreeMap::new(), headers_helper: None, oauth: None }
}

/// Waits for an event in another process.
pub(crate) async fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let waiting = async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{what} did not happen");
}

/// Answers nothing. Writes the progress of running calls to a file.
struct NoHost {
    beat: PathBuf,
}

impl Host for NoHost {
    fn ask<'a>(
        &'a self,
        _: &'a ToolUseId,
        _: Vec<Question>,
    ) -> ToolFuture<'a, Result<Vec<Answer>, NoAnswer>> {
        panic!("no user can answer");
    }

    fn enter_plan_mode<'a>(
        &'a self,
        _: &'a ToolUseId,
    ) -> ToolFuture<'a, Result<(), PlanModeError>> {
        panic!("this test has no plan mode");
    }

    fn propose_plan<'a>(&'a self, _: &'a ToolUseId, _: String) -> ToolFuture<'a, PlanVerdict> {
        panic!("no user can judge a plan");
    }

    fn call_progressed(&self, call: &ToolUseId, tool: &str, _: Duration) {
        std::fs::write(&self.beat, format!("{call} {tool}")).unwrap();
    }

    fn shell_changed(&self, _: ShellChange) {}

    fn report_shell_end(&self, _: ShellEnd) {}
}
