//! Helpers for the tests of tools: a workspace in a scratch directory, whose host no tool may call.

use std::path::Path;
use std::sync::Arc;

use centurion_permissions::HostRule;
use centurion_protocol::{Env, SeededWorld, ToolResultContent, ToolUseId, World as _};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::guard::GuardProgram;
use crate::{
    Answer, DeniedFiles, Host, HostFuture, NoAnswer, PlanModeError, PlanVerdict, Question,
    ReadState, ShellChange, ShellEnd, Shells, ShellsConfig, Tool, ToolContext, ToolError,
    ToolOutput, Workspace, erase,
};

/// A host that fails the test when a tool calls it.
pub(crate) struct NoHost;

impl Host for NoHost {
    fn ask<'a>(
        &'a self,
        _: &'a ToolUseId,
        questions: Vec<Question>,
    ) -> HostFuture<'a, Result<Vec<Answer>, NoAnswer>> {
        panic!("no user can answer {questions:?}");
    }

    fn enter_plan_mode<'a>(
        &'a self,
        _: &'a ToolUseId,
    ) -> HostFuture<'a, Result<(), PlanModeError>> {
        panic!("this test has no plan mode");
    }

    fn propose_plan<'a>(&'a self, _: &'a ToolUseId, plan: String) -> HostFuture<'a, PlanVerdict> {
        panic!("no user can judge the plan {plan:?}");
    }

    fn shell_changed(&self, _: ShellChange) {}

    fn report_shell_end(&self, end: ShellEnd) {
        panic!("unexpected end of {end:?}");
    }
}

/// A call in a workspace at `dir`.
pub(crate) fn context(dir: &Path) -> ToolContext {
    context_with(dir, Arc::new(NoHost))
}

/// The same, with a host of the test.
pub(crate) fn context_with(dir: &Path, host: Arc<dyn Host>) -> ToolContext {
    let dir = dir.canonicalize().unwrap();
    let world = Arc::new(SeededWorld::new(1));
    let workspace = Workspace {
        root: Mutex::new(dir.clone()),
        cwd: Mutex::new(dir.clone()),
        read_state: ReadState::default(),
        files: Arc::default(),
        called: "the main agent".into(),
        todos: Mutex::new(Vec::new()),
        plan: Mutex::default(),
        checkpoints: None,
        shells: Arc::new(Shells::new(ShellsConfig::new(
            GuardProgram::new("/nonexistent"),
            world.session_id(),
            dir.clone(),
        ))),
        output_dir: dir.join(".output"),
        may_read: Arc::new(|_| true),
        find_denied: Arc::new(DeniedFiles::nothing),
        host_rule: Arc::new(|_| HostRule::Named),
        sandbox: None,
        isolation: None,
        env: Arc::new(Env::default()),
        world,
        host,
    };
    ToolContext {
        workspace: Arc::new(workspace),
        call: ToolUseId::new("toolu_test"),
        cancel: CancellationToken::new(),
        decided: None,
        is_approved: false,
        moves_agent: true,
    }
}

/// Decides about a call as the program does: the call may then touch only this.
pub(crate) fn decide<T: Tool>(tool: T, context: &mut ToolContext, input: &serde_json::Value) {
    let raw: Box<RawValue> = serde_json::value::to_raw_value(input).unwrap();
    context.decided = Some(erase(tool).prepare(&raw).unwrap().access(context));
}

/// The same workspace with another answer about readable paths.
pub(crate) fn forbid(context: &mut ToolContext, is_forbidden: fn(&Path) -> bool) {
    let workspace = Arc::get_mut(&mut context.workspace).expect("the workspace has one owner");
    workspace.may_read = Arc::new(move |path| !is_forbidden(path));
}

/// Runs a tool as the program does: from JSON, through its schema type.
pub(crate) async fn call<T: Tool>(
    tool: T,
    context: &ToolContext,
    input: serde_json::Value,
) -> Result<ToolOutput, ToolError> {
    let raw: Box<RawValue> = serde_json::value::to_raw_value(&input).unwrap();
    erase(tool).prepare(&raw)?.run(context).await
}

/// The text for the model.
pub(crate) fn text(output: &ToolOutput) -> String {
    let parts = output.content.iter().filter_map(|part| match part {
        ToolResultContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("\n")
}
