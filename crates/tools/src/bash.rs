//! The Bash tool.

use std::path::{Path, PathBuf};
use std::time::Duration;

use centurion_permissions::Access;
use centurion_protocol::Env;
use serde::Deserialize;
use serde_json::json;

use crate::context::lock;
use crate::sandbox::{ConfinedBy, ConfinementDecision, DeniedFiles, IsolatedPlaces};
use crate::shell::{
    BackgroundShell, Keys, OutputLimit, Reporting, ShellExit, ShellRequest, ShellResult, WaitEnd,
};
use crate::{Tool, ToolContext, ToolError, ToolOutput, Workspace};

/// Runs a shell command with bash and returns its output, standard error included.
///
/// The working directory stays between calls; variables, functions and aliases do not. Quote paths
/// that hold spaces. Chain steps that depend on each other with `&&`; make independent calls side
/// by side. Standard input is empty, so pass flags that answer prompts. Prefer Read, Edit, Write,
/// Glob and Grep to cat, sed, find and grep.
///
/// Long output is shortened in the middle and kept whole in a file that is named. For servers and
/// long jobs use `run_in_background` instead of `&`: the call returns at once with a task id and an
/// output file to Read, and you are told when it ends. Do not sleep or poll to wait for it.
/// `TaskStop` ends it. All processes end with the session.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashInput {
    /// The command.
    command: String,
    /// Milliseconds until the command is ended: 120000 by default, at most 600000. In the
    /// background there is no limit unless you set one.
    timeout: Option<u64>,
    /// Describe the command in five to ten words.
    description: Option<String>,
    /// Do not wait for the end.
    #[serde(default)]
    run_in_background: bool,
    /// Run outside of the sandbox, if the task needs what the sandbox denies.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    disable_sandbox: bool,
}

pub(crate) struct Bash {
    /// Whether the model may ask for a command to run outside of its sandbox.
    pub(crate) offers_unsandboxed: bool,
}

impl Tool for Bash {
    type Input = BashInput;

    const NAME: &'static str = "Bash";

    fn withheld(&self) -> &[&'static str] {
        if self.offers_unsandboxed { &[] } else { &["dangerouslyDisableSandbox"] }
    }

    fn is_read_only(&self, _: &BashInput) -> bool {
        false
    }

    fn access(&self, input: &BashInput, _: &ToolContext) -> Access {
        Access::Shell(input.command.clone())
    }

    async fn run(&self, input: BashInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        check_text(&input.command)?;
        let confined = confine(&input, &context.workspace).await?;
        let mut standing = StartDirectory::of(&context.workspace)?;
        standing.notes.extend(confined.notes);
        if input.run_in_background {
            run_in_background(&input, standing, &confined.by, context)
        } else {
            run_and_wait(&input, standing, &confined.by, context).await
        }
    }
}

/// Decides how a command is confined.
async fn confine(
    input: &BashInput,
    workspace: &Workspace,
) -> Result<ConfinementDecision, ToolError> {
    let Some(policy) = &workspace.sandbox else {
        return Ok(ConfinementDecision { by: ConfinedBy::Nothing, notes: Vec::new() });
    };
    let denied =
        if policy.is_users() { workspace.denied_files().await } else { DeniedFiles::nothing() };
    policy
        .decide(&input.command, input.disable_sandbox, &denied)
        .map_err(|refusal| ToolError::Failed(refusal.to_string()))
}

/// Refuses a text that bash would not receive unchanged: bash drops NUL characters.
fn check_text(command: &str) -> Result<(), ToolError> {
    let fault = if command.contains('\0') {
        "the command holds a NUL character: leave it out"
    } else if command.trim_matches([' ', '\t', '\n']).is_empty() {
        "the command is empty: give one to run"
    } else {
        return Ok(());
    };
    Err(ToolError::Input(fault.to_owned()))
}

/// The start directory of a command, and a note about it for the model.
struct StartDirectory {
    cwd: PathBuf,
    notes: Vec<String>,
}

impl StartDirectory {
    /// Returns the directory in which the last command ended, or the root when that directory is gone. The shell of an
    /// isolated agent starts in its worktree or not at all.
    fn of(workspace: &Workspace) -> Result<Self, ToolError> {
        let cwd = workspace.cwd();
        if let Some(places) = &workspace.isolation {
            places.check().map_err(|gone| ToolError::Failed(gone.to_string()))?;
            if cwd.is_dir() && !places.contains(&cwd) {
                let notes = vec![come_back(workspace, places, &cwd)];
                return Ok(Self { cwd: places.root.clone(), notes });
            }
        }
        if cwd.is_dir() {
            return Ok(Self { cwd, notes: Vec::new() });
        }
        let root = workspace.root();
        let (gone, back) = (cwd.display(), root.display());
        if !root.is_dir() {
            return Err(ToolError::Failed(format!(
                "neither the working directory {gone} nor the project's root {back} exists any more"
            )));
        }
        let note = format!("The working directory {gone} no longer exists; this ran in {back}.");
        lock(&workspace.cwd).clone_from(&root);
        Ok(Self { cwd: root, notes: vec![note] })
    }
}

/// Returns the shell of an isolated agent from outside to its worktree. The result is a note for the model.
fn come_back(workspace: &Workspace, places: &IsolatedPlaces, left: &Path) -> String {
    lock(&workspace.cwd).clone_from(&places.root);
    let (left, root) = (left.display(), places.root.display());
    format!("{left} is outside of your worktree: commands start in {root}.")
}

/// The keys that commands receive; the user's sandbox withholds some.
fn keys(confined: &ConfinedBy) -> Keys {
    match confined {
        ConfinedBy::Sandbox(_) => Keys::Withheld,
        ConfinedBy::Isolation(_) | ConfinedBy::Nothing => Keys::Given,
    }
}

async fn run_and_wait(
    input: &BashInput,
    StartDirectory { cwd, mut notes }: StartDirectory,
    confined: &ConfinedBy,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let workspace = &context.workspace;
    let (timeout, clamped) = timeout(input.timeout, &workspace.env);
    notes.extend(clamped);
    let request = ShellRequest {
        id: &workspace.world.shell_id(),
        command: &input.command,
        cwd: &cwd,
        env: &workspace.env,
        output_dir: &workspace.output_dir,
        timeout: Some(timeout),
        sandbox: confined.plan(),
        keys: keys(confined),
        isolation: workspace.isolation.as_deref(),
    };
    let limit = output_limit(&workspace.env);
    let running =
        workspace.shells.run(request, limit, reporting(input, context), &context.cancel).await;
    let result = match running.map_err(|error| ToolError::Failed(error.to_string()))? {
        WaitEnd::Ended(result) => result,
        WaitEnd::Moved(shell) => {
            notes.push("The user moved this command to the background.".to_owned());
            return Ok(in_background(&shell, notes));
        }
    };
    if let Some(cwd) = result.cwd_after.as_ref().filter(|_| context.moves_agent) {
        match &workspace.isolation {
            Some(places) if !places.contains(cwd) => notes.push(come_back(workspace, places, cwd)),
            _ => lock(&workspace.cwd).clone_from(cwd),
        }
    }
    if let Some(policy) = &workspace.sandbox
        && matches!(result.exit, ShellExit::Code(1..))
    {
        notes.extend(policy.hints(confined, &result.output));
    }
    answer(&result, notes)
}

fn answer(result: &ShellResult, notes: Vec<String>) -> Result<ToolOutput, ToolError> {
    let output = result.output.trim_matches('\n');
    let nothing = (result.exit.is_success() && output.is_empty()).then(|| "(no output)".to_owned());
    let left = result.output_file.as_ref().filter(|_| result.left_running).map(|file| {
        format!("Processes of this command still run; their output goes to {}.", file.display())
    });
    let output_part = (!output.is_empty()).then(|| output.to_owned());
    let parts = notes.into_iter().chain(fault(&result.exit)).chain(left);
    let text = parts.chain(nothing).chain(output_part).collect::<Vec<_>>().join("\n");
    let data = json!({
        "stdout": output,
        "stderr": "",
        "interrupted": false,
        "isImage": false,
        "exitCode": result.exit.code(),
        "outputFile": result.output_file,
    });
    match result.exit {
        ShellExit::Code(0) => Ok(ToolOutput::text(text).with_data(data)),
        ShellExit::Stopped => {
            Err(ToolError::Cancelled { partial: (!text.is_empty()).then_some(text) })
        }
        _ => Err(ToolError::FailedWith { message: text, data }),
    }
}

/// A file grew beyond the limit of the process that wrote it.
const XFSZ: i32 = rustix::process::Signal::XFSZ.as_raw();

/// Describes a failure and its remedy; `None` for success.
fn fault(exit: &ShellExit) -> Option<String> {
    Some(match exit {
        ShellExit::Code(0) | ShellExit::Stopped => return None,
        ShellExit::Code(code) => format!("Exit code {code}"),
        ShellExit::Signal(XFSZ) => format!(
            "Ended by signal {XFSZ} (SIGXFSZ): it wrote a file that is larger than its limit allows"
        ),
        ShellExit::Signal(signal) => format!("Ended by signal {signal}"),
        ShellExit::TimedOut(timeout) => format!(
            "Timed out after {} ms and was ended with all its processes. \
             Give a larger timeout, or run it in the background.",
            timeout.as_millis()
        ),
        ShellExit::Overflow => {
            "Ended because it wrote too much. Write less, or send the output to a file.".to_owned()
        }
        ShellExit::Lost(reason) => format!("The command's end is not known: {reason}."),
    })
}

fn run_in_background(
    input: &BashInput,
    StartDirectory { cwd, notes }: StartDirectory,
    confined: &ConfinedBy,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let workspace = &context.workspace;
    let request = ShellRequest {
        id: &workspace.world.shell_id(),
        command: &input.command,
        cwd: &cwd,
        env: &workspace.env,
        output_dir: &workspace.output_dir,
        timeout: input.timeout.map(Duration::from_millis),
        sandbox: confined.plan(),
        keys: keys(confined),
        isolation: workspace.isolation.as_deref(),
    };
    let shell = workspace
        .shells
        .start(request, reporting(input, context))
        .map_err(|error| ToolError::Failed(error.to_string()))?;
    Ok(in_background(&shell, notes))
}

/// Selects the recipient of the command's end, once it is in the background.
fn reporting(input: &BashInput, context: &ToolContext) -> Reporting {
    Reporting {
        host: context.workspace.host.clone(),
        call: context.call.clone(),
        description: input.description.clone().unwrap_or_else(|| input.command.clone()),
    }
}

/// The answer of a call whose command continues without it.
fn in_background(shell: &BackgroundShell, mut notes: Vec<String>) -> ToolOutput {
    notes.push(format!(
        "Runs in the background as task {}. Its output goes to {}; you are told when it ends.",
        shell.id,
        shell.output_file.display()
    ));
    ToolOutput::text(notes.join("\n")).with_data(json!({
        "stdout": "",
        "stderr": "",
        "interrupted": false,
        "isImage": false,
        "backgroundTaskId": shell.id,
        "outputFile": shell.output_file,
    }))
}

/// The timeout of a command, and a note when it is shorter than the model asked for.
fn timeout(asked: Option<u64>, env: &Env) -> (Duration, Option<String>) {
    let default = env.millis("BASH_DEFAULT_TIMEOUT_MS").unwrap_or(Duration::from_mins(2));
    let max = env.millis("BASH_MAX_TIMEOUT_MS").unwrap_or(Duration::from_mins(10)).max(default);
    match asked.map(Duration::from_millis) {
        Some(asked) if asked > max => {
            let note =
                format!("The timeout was lowered to the longest allowed, {} ms.", max.as_millis());
            (max, Some(note))
        }
        // No command can do anything in no time: zero means the default.
        Some(Duration::ZERO) | None => (default, None),
        Some(asked) => (asked, None),
    }
}

/// The most output of a command that the model reads.
pub(crate) fn output_limit(env: &Env) -> OutputLimit {
    const DEFAULT: usize = 30_000;
    const LARGEST: usize = 150_000;
    const FAILURE: usize = 10_000;
    let success = env.number("BASH_MAX_OUTPUT_LENGTH").unwrap_or(DEFAULT).clamp(1, LARGEST);
    OutputLimit { success, failure: success.min(FAILURE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_stays_within_what_the_user_allows() {
        let millis = |asked, env: &Env| timeout(asked, env).0.as_millis();
        let plain = Env::default();
        assert_eq!(millis(None, &plain), 120_000);
        assert_eq!(millis(Some(0), &plain), 120_000);
        assert_eq!(millis(Some(5), &plain), 5);
        assert_eq!(timeout(Some(600_000), &plain), (Duration::from_mins(10), None));
        let (clamped, note) = timeout(Some(600_001), &plain);
        assert_eq!(clamped, Duration::from_mins(10));
        assert!(note.unwrap().contains("600000 ms"));

        let env = Env::from([("BASH_DEFAULT_TIMEOUT_MS", "900000"), ("BASH_MAX_TIMEOUT_MS", "7")]);
        assert_eq!(millis(None, &env), 900_000);
        assert_eq!(millis(Some(1_000_000), &env), 900_000);
    }

    #[test]
    fn a_text_that_bash_would_not_get_as_it_stands_is_refused() {
        for (command, fine) in [
            ("ls", true),
            ("ls\n", true),
            ("\u{a0}", true),
            ("", false),
            (" \t\n", false),
            ("ls\0", false),
            ("to\0uch x", false),
        ] {
            assert_eq!(check_text(command).is_ok(), fine, "{command:?}");
        }
    }

    #[test]
    fn output_limits_are_bounded_themselves() {
        let limit = |text| output_limit(&Env::from([("BASH_MAX_OUTPUT_LENGTH", text)]));
        assert_eq!((limit("").success, limit("").failure), (30_000, 10_000));
        assert_eq!(limit("999999").success, 150_000);
        assert_eq!((limit("500").success, limit("500").failure), (500, 500));
        assert_eq!(limit("many").success, 30_000);
    }
}
