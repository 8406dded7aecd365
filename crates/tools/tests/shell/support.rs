//! A session in a scratch directory, and functions that wait for processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_permissions::HostRule;
use centurion_protocol::{Env, SystemWorld, ToolResultContent, ToolUseId, World as _};
use centurion_tools::guard::GuardProgram;
use centurion_tools::{
    Answer, DeniedFiles, Host, HostFuture, NoAnswer, PlanModeError, PlanVerdict, Question,
    ReadState, ShellChange, ShellEnd, Shells, ShellsConfig, ToolContext, ToolError, ToolOutput,
    Workspace, builtin,
};
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Records the ends that it receives.
#[derive(Default)]
pub(crate) struct Witness(Mutex<Vec<ShellEnd>>);

impl Witness {
    pub(crate) fn ends(&self) -> Vec<ShellEnd> {
        self.0.lock().clone()
    }
}

impl Host for Witness {
    fn ask<'a>(
        &'a self,
        _: &'a ToolUseId,
        _: Vec<Question>,
    ) -> HostFuture<'a, Result<Vec<Answer>, NoAnswer>> {
        unreachable!("no test asks for it")
    }

    fn enter_plan_mode<'a>(
        &'a self,
        _: &'a ToolUseId,
    ) -> HostFuture<'a, Result<(), PlanModeError>> {
        unreachable!("no test asks for it")
    }

    fn propose_plan<'a>(&'a self, _: &'a ToolUseId, _: String) -> HostFuture<'a, PlanVerdict> {
        unreachable!("no test asks for it")
    }

    fn shell_changed(&self, _: ShellChange) {}

    fn report_shell_end(&self, end: ShellEnd) {
        self.0.lock().push(end);
    }
}

pub(crate) struct Session {
    pub(crate) context: ToolContext,
    pub(crate) witness: Arc<Witness>,
    pub(crate) root: PathBuf,
    /// Marks the processes of this session, to find them even without their parents.
    pub(crate) mark: String,
    _scratch: TempDir,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self::with(&[], ShellsConfig::DEFAULT_MAX_OUTPUT)
    }

    pub(crate) fn with(variables: &[(&str, &str)], max_output: u64) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let guard = GuardProgram::new(env!("CARGO_BIN_EXE_centurion-guard"));
        let session = SystemWorld.session_id();
        let config = ShellsConfig {
            max_output,
            environment_files: vec![root.join("environment.sh")],
            ..ShellsConfig::new(guard, session, root.clone())
        };
        let mark = format!("CLAUDE_CODE_SESSION_ID={session}");
        let witness = Arc::new(Witness::default());
        let path = [("PATH", std::env::var("PATH").unwrap())];
        let path = path.iter().map(|(name, value)| (*name, value.as_str()));
        let variables = variables.iter().copied().chain(path);
        let workspace = Workspace {
            root: Mutex::new(root.clone()),
            cwd: Mutex::new(root.clone()),
            read_state: ReadState::default(),
            files: Arc::default(),
            called: "the main agent".into(),
            todos: Mutex::default(),
            plan: Mutex::default(),
            checkpoints: None,
            shells: Arc::new(Shells::new(config)),
            output_dir: root.join("output"),
            may_read: Arc::new(|_| true),
            find_denied: Arc::new(DeniedFiles::nothing),
            host_rule: Arc::new(|_| HostRule::Named),
            sandbox: None,
            isolation: None,
            env: Arc::new(Env::new(variables.map(|(name, value)| (name.into(), value.into())))),
            world: Arc::new(SystemWorld),
            host: Arc::clone(&witness) as Arc<dyn Host>,
        };
        let context = ToolContext {
            workspace: Arc::new(workspace),
            call: ToolUseId::new("toolu_1"),
            cancel: CancellationToken::new(),
            decided: None,
            is_approved: false,
            moves_agent: true,
        };
        Self { context, witness, root, mark, _scratch: scratch }
    }

    /// Runs a tool as the program does.
    pub(crate) async fn call(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let tool = builtin().into_iter().find(|known| known.name() == tool).unwrap();
        let input = serde_json::value::to_raw_value(&input).unwrap();
        tool.prepare(&input)?.run(&self.context).await
    }

    /// Runs a command that must succeed; returns the text for the model.
    pub(crate) async fn bash(&self, command: &str) -> String {
        text(&self.call("Bash", serde_json::json!({ "command": command })).await.unwrap())
    }

    /// Runs a command that must fail; returns the text for the model.
    pub(crate) async fn bash_fails(&self, command: &str) -> String {
        let failed = self.call("Bash", serde_json::json!({ "command": command })).await;
        failed.unwrap_err().to_string()
    }

    /// Starts a command in the background; returns its id.
    pub(crate) async fn start(&self, command: &str) -> String {
        let input = serde_json::json!({ "command": command, "run_in_background": true });
        let output = self.call("Bash", input).await.unwrap();
        output.data["backgroundTaskId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn shells(&self) -> &Shells {
        &self.context.workspace.shells
    }

    /// A path below the root to which a command writes.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The live processes of this session, guards included.
    pub(crate) fn processes(&self) -> Vec<String> {
        processes_with(&self.mark)
    }

    pub(crate) async fn nothing_is_left(&self) {
        eventually("every process is gone", || self.processes().is_empty()).await;
    }
}

/// The command lines of all processes with this text in their environment. A zombie has none.
pub(crate) fn processes_with(mark: &str) -> Vec<String> {
    let read = |entry: &fs::DirEntry, name| {
        let bytes = fs::read(entry.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let marked = entries.filter(|entry| read(entry, "environ").contains(mark));
    marked.map(|entry| read(&entry, "cmdline")).collect()
}

/// Waits for a condition; fails the test when it does not hold in good time.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: has not happened");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Has another test of this program start processes, kills it when so many of them sleep, and waits until none is left.
/// The two variables tell that test the file for its readiness and the mark of its processes.
pub(crate) async fn start_and_kill(test: &str, [ready, mark]: [&str; 2], sleepers: usize) {
    let scratch = tempfile::tempdir().unwrap();
    let (file, value) = (scratch.path().join("ready"), SystemWorld.uuid().to_string());
    let mut starter = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ready, &file)
        .env(mark, &value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    line_in(&file).await;
    eventually("all sleep", || sleepers_with(&value) == sleepers).await;
    starter.kill().unwrap();
    starter.wait().unwrap();
    eventually("every process is gone", || processes_with(&value).is_empty()).await;
}

/// The number of processes with this text in their environment that sleep.
pub(crate) fn sleepers_with(mark: &str) -> usize {
    processes_with(mark).iter().filter(|line| line.starts_with("sleep 600")).count()
}

/// Waits for a file with a whole line in it; returns the line.
pub(crate) async fn line_in(path: &Path) -> String {
    let read = || fs::read_to_string(path).unwrap_or_default();
    eventually(&format!("a line in {}", path.display()), || read().ends_with('\n')).await;
    read().trim().to_owned()
}

pub(crate) fn text(output: &ToolOutput) -> String {
    match output.content.as_slice() {
        [ToolResultContent::Text(text)] => text.clone(),
        other => panic!("not a text: {other:?}"),
    }
}
