//! The command line: what may be typed, checked as far as it can be without looking at anything else.

mod error;
mod ignored_flags;
mod reach;

use std::path::PathBuf;

use centurion_engine::{SetupTrigger, ToolChoice};
use centurion_mcp::tool_name;
use centurion_model::{Beta, RequestExtras, SharedDisplay, ThinkingDisplay};
use centurion_permissions::Mode;
use centurion_protocol::{Effort, RecordId, SessionId, Thinking};
use clap::{Args, Parser, ValueEnum};

pub(crate) use self::error::{FlagConflict, ValueError};
use self::ignored_flags::ForeignArgs;
pub(crate) use self::reach::ReachArgs;
use crate::configuration::SettingsArgs;
use crate::delegation::DelegationArgs;
use crate::mcp::McpArgs;
use crate::teammates::flags::MemberArgs;

/// A multi-agent coding runtime.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "centurion",
    version,
    disable_version_flag = true,
    // The last one counts, as hosts expect that add their flags to a person's.
    args_override_self = true,
    about = "A multi-agent coding runtime",
    after_help = "Commands:\n  \
        centurion                  On a terminal: talk, see and steer every agent; docs/terminal.md\n  \
        centurion demo             Show a real agent at work: no key, no network; --interactive in the terminal\n  \
        centurion init             Write a first CLAUDE.md, and list what is read here\n  \
        centurion sessions         List the sessions of this directory; `sessions show ID` prints one\n  \
        centurion tasks            The task lists that agents share: `tasks show LIST [NUMBER]` prints one\n  \
        centurion worktrees        What agents that worked apart left: list, show, diff, merge, restore, clean\n  \
        centurion agents           List agents, check their files, write new ones\n  \
        centurion skills           List skills, check their files, explain and write them\n  \
        centurion commands         `commands list` shows what can be typed as /name\n  \
        centurion permissions      `permissions explain 'Bash(git push)'` says what would be decided, and why\n  \
        centurion mcp              List, add and remove MCP servers, or be one: `mcp serve`\n  \
        centurion trust            Show, grant or revoke trust in this folder\n  \
        centurion auth             `auth status` says where the key of the models comes from\n  \
        centurion doctor           Show settings, their problems, and what this machine can do\n\n\
        Without a key, a model server on this machine is used where there is one.\n\
        Models: opus, sonnet, haiku, fable, a full name, openai:NAME, script:FILE, cassette:FILE[=MODEL]."
)]
pub(crate) struct RunArgs {
    /// The task. Piped input is added to it
    pub(crate) prompt: Option<String>,

    /// Print the version
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    pub(crate) version: Option<bool>,

    /// Run without a terminal: print the result and exit
    #[arg(short, long)]
    pub(crate) print: bool,

    /// Additional directories that the tools may work in
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// A JSON Schema of an object (text or file) that the answer must fit; it is printed as
    /// `structured_output`
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) json_schema: Option<String>,

    /// Log what happens to standard error, optionally only some targets: `--debug=centurion_model`
    #[arg(short, long, value_name = "FILTER", num_args = 0..=1, require_equals = true, default_missing_value = "debug")]
    pub(crate) debug: Option<String>,

    /// Log to this file instead, all of it unless --debug says otherwise
    #[arg(long, value_name = "FILE", conflicts_with = "debug_to_stderr")]
    pub(crate) debug_file: Option<PathBuf>,

    /// The same as --debug
    #[arg(long)]
    pub(crate) debug_to_stderr: bool,

    /// The checkout that this directory is a worktree of: its settings, servers and definitions count, not those that
    /// the branch here carries
    #[arg(long, value_name = "DIR")]
    pub(crate) project_config_root: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) mcp: McpArgs,
    #[command(flatten)]
    pub(crate) delegation: DelegationArgs,
    #[command(flatten)]
    pub(crate) member: MemberArgs,
    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Input and output")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct FormatArgs {
    /// The form in which the result is printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output_format: OutputFormat,

    /// The form in which input is read: a text, or one JSON message a line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) input_format: InputFormat,

    /// In the terminal: lines in words, one below the other, and numbered answers, for a screen reader
    #[arg(long)]
    pub(crate) ax_screen_reader: bool,

    /// With stream-json: also print pieces of answers as they arrive
    #[arg(long)]
    pub(crate) include_partial_messages: bool,

    /// With stream-json: also print when hooks start and what they say
    #[arg(long)]
    pub(crate) include_hook_events: bool,

    /// With stream-json: also print when agents wait for a slot, a person, a provider or another agent
    #[arg(long)]
    pub(crate) include_wait_events: bool,

    /// With stream-json: also print what the user may say next, after each turn
    #[arg(long)]
    pub(crate) prompt_suggestions: bool,

    /// With stream-json: also print every line that is written to a transcript
    #[arg(long)]
    pub(crate) session_mirror: bool,

    /// With stream-json input: print accepted user messages back
    #[arg(long)]
    pub(crate) replay_user_messages: bool,

    /// With stream-json input: begin nothing before the host's `initialize`, which has to be its first line
    #[arg(long, hide = true)]
    pub(crate) await_initialize: bool,

    /// Show what happens while it happens
    #[arg(long)]
    pub(crate) verbose: bool,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// The model to use
    #[arg(long, value_parser = model_name)]
    pub(crate) model: Option<String>,

    /// Models to go over to when the first is overloaded, separated by commas
    #[arg(long, value_name = "MODEL", value_delimiter = ',', value_parser = model_name)]
    pub(crate) fallback_model: Vec<String>,

    /// The effort of the model: low, medium, high, xhigh or max
    #[arg(long, value_name = "LEVEL")]
    pub(crate) effort: Option<Effort>,

    /// Whether the model thinks before it answers: adaptive, enabled or disabled
    #[arg(long, value_name = "HOW")]
    pub(crate) thinking: Option<ThinkingChoice>,

    /// The most tokens that the model may think with; 0 turns thinking off
    #[arg(long, value_name = "N")]
    pub(crate) max_thinking_tokens: Option<u32>,

    /// The form in which the model shows its thinking: summarized, omitted or highlights
    #[arg(long, value_name = "HOW")]
    pub(crate) thinking_display: Option<DisplayChoice>,

    /// Features of the Messages API to turn on, separated by commas
    #[arg(long, value_name = "NAMES", num_args = 1.., value_delimiter = ',')]
    pub(crate) betas: Vec<Beta>,

    /// The number of tokens that the model is told its task may take
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) task_budget: Option<u64>,

    /// Use this system prompt instead of the default one
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,

    /// Read the system prompt from a file
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Say what differs from user to user (directory, date, git, notes) in the first message, not in the system prompt
    #[arg(long)]
    pub(crate) exclude_dynamic_system_prompt_sections: bool,

    /// Add this to the system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,

    /// Read what is added to the system prompt from a file
    #[arg(long, value_name = "FILE", conflicts_with = "append_system_prompt")]
    pub(crate) append_system_prompt_file: Option<PathBuf>,

    /// By which window conversations are made shorter: tokens, such as 200k, or auto for the model's own
    #[arg(long, value_name = "TOKENS", value_parser = window)]
    pub(crate) autocompact: Option<AutoCompact>,

    /// The most model requests of one run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// The most money that this invocation may spend, in dollars; 0 spends none
    #[arg(long, value_name = "USD", value_parser = money)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Whether there is something to do even if no model can be reached.
    #[arg(skip)]
    pub(crate) is_optional: bool,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Tools and permissions")]
pub(crate) struct PermissionArgs {
    /// Tools that run without asking, such as `Edit` or `Bash(git log *)`
    #[arg(long, visible_alias = "allowed-tools", id = "allowedTools", long = "allowedTools", value_name = "RULES", num_args = 1..)]
    pub(crate) allowed_tools: Vec<String>,

    /// Tools that may not be used; a whole tool is not even offered
    #[arg(long, visible_alias = "disallowed-tools", id = "disallowedTools", long = "disallowedTools", value_name = "RULES", num_args = 1..)]
    pub(crate) disallowed_tools: Vec<String>,

    /// The built-in tools to offer: names, `default`, or "" for none
    #[arg(long, value_name = "NAMES", num_args = 1..)]
    pub(crate) tools: Option<Vec<String>>,

    /// The permission mode, which decides on what runs without asking: default, acceptEdits, plan, auto, dontAsk or
    /// bypassPermissions
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<Mode>,

    /// The same as --permission-mode bypassPermissions, whatever that flag says
    #[arg(long)]
    pub(crate) dangerously_skip_permissions: bool,

    /// Let the host turn permissions off later, without turning them off now
    #[arg(long)]
    pub(crate) allow_dangerously_skip_permissions: bool,

    /// The side that answers questions: host, or none to deny them at once
    #[arg(long, value_name = "WHO", default_value = "host")]
    pub(crate) permission_prompts: PermissionPrompts,

    /// The tool that is asked: one of an MCP server (`mcp__server__tool`), or `stdio` for the host
    #[arg(long, value_name = "TOOL", value_parser = PromptTool::parse)]
    pub(crate) permission_prompt_tool: Option<PromptTool>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Session")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct SessionArgs {
    /// Continue the newest session of this directory
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) continue_last: bool,

    /// Resume the session with this id or name; without one, list the sessions
    #[arg(short, long, value_name = "ID|NAME", num_args = 0..=1, value_parser = named_session)]
    #[expect(clippy::option_option, reason = "a flag whose value may be left out")]
    pub(crate) resume: Option<Option<NamedSession>>,

    /// With --continue or --resume: leave that session as it is and continue in a copy
    #[arg(long)]
    pub(crate) fork_session: bool,

    /// With --resume: continue behind this message, and leave what follows it behind
    #[arg(long, value_name = "MESSAGE", value_parser = record_id, requires = "resume")]
    pub(crate) resume_session_at: Option<RecordId>,

    /// With --resume-session-at: only if nothing but the turn of this prompt is left behind
    #[arg(long, value_name = "PROMPT", value_parser = record_id, requires = "resume_session_at")]
    pub(crate) resume_drops_turn: Option<RecordId>,

    /// The id of the new session
    #[arg(long, value_name = "UUID", value_parser = session_id)]
    pub(crate) session_id: Option<SessionId>,

    /// Work in a git worktree of this name, which is made if there is none
    #[arg(short, long, value_name = "NAME", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "a flag whose value may be left out")]
    pub(crate) worktree: Option<Option<String>>,

    /// Keep no transcript
    #[arg(long)]
    pub(crate) no_session_persistence: bool,

    /// Run the Setup hooks of `init` before the session begins
    #[arg(long)]
    pub(crate) init: bool,

    /// Run the hooks of a beginning, with those of `init`, and end without asking a model
    #[arg(long, conflicts_with_all = ["continue_last", "resume"])]
    pub(crate) init_only: bool,

    /// Run the Setup hooks of `maintenance` before the session begins
    #[arg(long, conflicts_with_all = ["init", "init_only"])]
    pub(crate) maintenance: bool,

    /// The name of the session, for lists of sessions
    #[arg(short, long, value_name = "NAME", value_parser = session_name)]
    pub(crate) name: Option<String>,
}

impl SessionArgs {
    /// The id of the session to continue, where the flag names one by its id.
    pub(crate) fn resumed_id(&self) -> Option<SessionId> {
        match self.resume {
            Some(Some(NamedSession::Id(id))) => Some(id),
            _ => None,
        }
    }

    /// The Setup hooks that a flag asks for.
    pub(crate) fn setup(&self) -> Option<SetupTrigger> {
        match self {
            Self { maintenance: true, .. } => Some(SetupTrigger::Maintenance),
            Self { init: true, .. } | Self { init_only: true, .. } => Some(SetupTrigger::Init),
            _ => None,
        }
    }
}

/// A session as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedSession {
    Id(SessionId),
    /// The name that it was given, as lists of sessions show it.
    Title(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    Text,
    StreamJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PermissionPrompts {
    /// The host or the tool that the other flags name.
    Host,
    /// Questions are denied at once.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingChoice {
    Adaptive,
    Enabled,
    Disabled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DisplayChoice {
    Summarized,
    Omitted,
    /// A title for each stretch, for sessions that the provider hosts: elsewhere nothing is shown.
    Highlights,
}

impl ModelArgs {
    /// The thinking that a flag asks for, if one does.
    pub(crate) fn chosen_thinking(&self) -> Option<Thinking> {
        match (self.thinking, self.max_thinking_tokens) {
            (None, None) => None,
            (Some(ThinkingChoice::Disabled), _) | (_, Some(0)) => Some(Thinking::Disabled),
            (_, Some(tokens)) => Some(Thinking::Budget(tokens)),
            (Some(ThinkingChoice::Adaptive | ThinkingChoice::Enabled), None) => {
                Some(Thinking::Adaptive)
            }
        }
    }

    /// Fields of requests beyond those that all have.
    pub(crate) fn extras(&self) -> RequestExtras {
        RequestExtras {
            betas: self.betas.clone(),
            task_budget: self.task_budget,
            thinking_display: SharedDisplay::new(self.thinking_display.map(
                |display| match display {
                    DisplayChoice::Summarized => ThinkingDisplay::Summarized,
                    DisplayChoice::Omitted | DisplayChoice::Highlights => ThinkingDisplay::Omitted,
                },
            )),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PromptTool {
    /// The host, over standard output and input.
    Stdio,
    /// This tool of a server.
    Tool(String),
}

impl PromptTool {
    fn parse(text: &str) -> Result<Self, ValueError> {
        match text {
            "stdio" => Ok(Self::Stdio),
            tool if tool.starts_with("mcp__") => Ok(Self::Tool(tool.to_owned())),
            other => Err(ValueError::PromptTool(other.to_owned())),
        }
    }

    /// Whether it is a tool of this server.
    pub(crate) fn is_of_server(&self, name: &str) -> bool {
        matches!(self, Self::Tool(tool) if tool.starts_with(&tool_name(name, "")))
    }
}

fn model_name(text: &str) -> Result<String, ValueError> {
    let name = text.trim();
    if name.is_empty() || name.ends_with(':') {
        return Err(ValueError::ModelName);
    }
    Ok(name.to_owned())
}

pub(crate) fn session_id(text: &str) -> Result<SessionId, ValueError> {
    text.parse().map_err(|_| ValueError::SessionId)
}

fn named_session(text: &str) -> Result<NamedSession, ValueError> {
    let title = || session_name(text).map(NamedSession::Title);
    text.trim().parse().map(NamedSession::Id).or_else(|_| title())
}

fn session_name(text: &str) -> Result<String, ValueError> {
    let name = text.trim();
    if name.is_empty() || name.contains('\n') {
        return Err(ValueError::SessionName);
    }
    Ok(name.to_owned())
}

fn record_id(text: &str) -> Result<RecordId, ValueError> {
    text.parse().map_err(|_| ValueError::RecordId)
}

/// By which window conversations are made shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AutoCompact {
    /// By the model's own.
    Auto,
    Window(u64),
}

fn window(text: &str) -> Result<AutoCompact, ValueError> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(AutoCompact::Auto);
    }
    let lower = text.to_ascii_lowercase();
    let (digits, unit) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1_000),
        None => lower.strip_suffix('m').map_or((lower.as_str(), 1), |digits| (digits, 1_000_000)),
    };
    let tokens = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let tokens = tokens.filter(|tokens| *tokens > 0);
    tokens.map(AutoCompact::Window).ok_or(ValueError::Window)
}

fn money(text: &str) -> Result<f64, ValueError> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
        _ => Err(ValueError::Money),
    }
}

impl RunArgs {
    /// Checks the flags together.
    pub(crate) fn check(&self) -> Result<(), FlagConflict> {
        let (format, session) = (&self.format, &self.session);
        let streams = format.output_format == OutputFormat::StreamJson;
        let resumes = session.continue_last || session.resume.is_some();
        let rules = [
            (
                format.input_format == InputFormat::StreamJson && !streams,
                "--input-format stream-json needs --output-format stream-json",
            ),
            (
                format.include_partial_messages && !streams,
                "--include-partial-messages needs --output-format stream-json",
            ),
            (
                format.include_hook_events && !streams,
                "--include-hook-events needs --output-format stream-json",
            ),
            (
                format.include_wait_events && !streams,
                "--include-wait-events needs --output-format stream-json",
            ),
            (
                format.prompt_suggestions && !streams,
                "--prompt-suggestions needs --output-format stream-json",
            ),
            (
                format.session_mirror && !streams,
                "--session-mirror needs --output-format stream-json",
            ),
            (
                format.replay_user_messages && format.input_format != InputFormat::StreamJson,
                "--replay-user-messages needs --input-format stream-json",
            ),
            (
                self.prompt.as_deref().is_some_and(|prompt| !prompt.trim().is_empty())
                    && format.input_format == InputFormat::StreamJson,
                "with --input-format stream-json the prompt comes on standard input, not as an argument",
            ),
            (
                self.permissions.permission_prompt_tool == Some(PromptTool::Stdio)
                    && format.input_format != InputFormat::StreamJson,
                "--permission-prompt-tool stdio needs --input-format stream-json, where answers come from",
            ),
            (
                session.init_only && format.input_format == InputFormat::StreamJson,
                "--init-only asks no model and reads no lines of a host",
            ),
            (
                session.init_only && self.prompt.is_some(),
                "--init-only asks no model, so a prompt has no effect",
            ),
            (session.fork_session && !resumes, "--fork-session needs --continue or --resume"),
            (
                session.session_id.is_some() && resumes && !session.fork_session,
                "--session-id with --continue or --resume needs --fork-session",
            ),
        ];
        match rules.into_iter().find(|(is_broken, _)| *is_broken) {
            Some((_, message)) => Err(FlagConflict(message)),
            None => Ok(()),
        }
    }

    /// The built-in tools that `--tools` asks for.
    pub(crate) fn tool_choice(&self) -> ToolChoice {
        let Some(values) = &self.permissions.tools else { return ToolChoice::All };
        let names: Vec<String> = values
            .iter()
            .flat_map(|value| value.split([',', ' ']))
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        if names == ["default"] { ToolChoice::All } else { ToolChoice::Only(names) }
    }

    /// The filter of the log; `None` logs nothing.
    pub(crate) fn log_filter(&self) -> Option<&str> {
        let is_on = self.debug_to_stderr || self.debug_file.is_some();
        self.debug.as_deref().or_else(|| is_on.then_some("debug"))
    }

    /// The mode that the flags ask for.
    pub(crate) fn mode(&self) -> Option<Mode> {
        if self.permissions.dangerously_skip_permissions {
            return Some(Mode::BypassPermissions);
        }
        self.permissions.permission_mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &[&str]) -> RunArgs {
        RunArgs::try_parse_from([&["centurion"], line].concat()).unwrap()
    }

    #[test]
    fn the_definitions_are_consistent() {
        RunArgs::command().debug_assert();
    }

    #[test]
    fn flags_that_need_each_other_say_so() {
        for line in [
            &["--input-format", "stream-json"][..],
            &["--include-partial-messages"],
            &["--fork-session"],
            &["--permission-prompt-tool", "stdio"],
            &["-c", "--session-id", "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11"],
        ] {
            assert!(parse(line).check().is_err(), "{line:?}");
        }
        assert!(
            parse(&["-p", "hi", "--output-format", "stream-json", "--verbose"]).check().is_ok()
        );
    }

    #[test]
    fn tool_lists_are_read_in_all_their_spellings() {
        assert_eq!(parse(&["hi"]).tool_choice(), ToolChoice::All);
        assert_eq!(parse(&["--tools", "default"]).tool_choice(), ToolChoice::All);
        assert_eq!(parse(&["--tools", ""]).tool_choice(), ToolChoice::Only(vec![]));
        let two = ToolChoice::Only(vec!["Read".into(), "Edit".into()]);
        assert_eq!(parse(&["--tools", "Read,Edit"]).tool_choice(), two);
        assert_eq!(parse(&["--tools", "Read", "Edit", "-p", "x"]).tool_choice(), two);
    }

    #[test]
    fn bad_values_are_refused() {
        for line in [
            &["--max-turns", "0"][..],
            &["--max-budget-usd", "-1"],
            &["--max-budget-usd", "NaN"],
            &["--effort", "normal"],
            &["--permission-mode", "yolo"],
            &["--resume", " "],
            &["--output-format", "xml"],
            &["--frobnicate"],
        ] {
            assert!(RunArgs::try_parse_from([&["centurion"], line].concat()).is_err(), "{line:?}");
        }
    }
}
