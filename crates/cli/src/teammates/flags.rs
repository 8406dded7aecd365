//! The command line of a member's process: as it is made, and as it is read.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use centurion_config::settings::{FlagSettings, LevelChoice};
use centurion_protocol::SessionId;
use centurion_team::{MemberCommand, MemberName, TeamName};
use clap::{Args, Parser as _, ValueEnum};

use crate::agents::sources::AgentArgs;
use crate::args::{AutoCompact, ModelArgs, PermissionArgs, ReachArgs, RunArgs, session_id};
use crate::configuration::SettingsArgs;
use crate::delegation::DelegationArgs;
use crate::mcp::McpArgs;
use crate::surroundings::environment;

/// The flags that make a process a member of a team.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MemberArgs {
    /// The member that this process is: `name@team`
    #[arg(long, hide = true, value_name = "ID", requires_all = ["agent_name", "team_name", "parent_session_id"])]
    pub(crate) agent_id: Option<String>,

    /// The member's name
    #[arg(long, hide = true, value_name = "NAME", requires = "agent_id")]
    pub(crate) agent_name: Option<MemberName>,

    /// The name of its team
    #[arg(long, hide = true, value_name = "NAME", requires = "agent_id")]
    pub(crate) team_name: Option<TeamName>,

    /// Its colour
    #[arg(long, hide = true, value_name = "COLOR", requires = "agent_id")]
    pub(crate) agent_color: Option<String>,

    /// The session of its lead
    #[arg(long, hide = true, value_name = "UUID", value_parser = session_id, requires = "agent_id")]
    pub(crate) parent_session_id: Option<SessionId>,

    /// The lead approves its plan before it changes anything
    #[arg(long, hide = true, requires = "agent_id")]
    pub(crate) plan_mode_required: bool,

    /// The type of agent that it is
    #[arg(long, hide = true, value_name = "TYPE", requires = "agent_id")]
    pub(crate) agent_type: Option<String>,
}

impl MemberArgs {
    pub(crate) fn is_member(&self) -> bool {
        self.agent_id.is_some()
    }

    /// The session of the lead of the member that the flags name.
    pub(crate) fn lead_session(&self) -> anyhow::Result<SessionId> {
        let name = self.agent_name.as_ref().context("--agent-name is missing")?;
        let team = self.team_name.as_ref().context("--team-name is missing")?;
        let session = self.parent_session_id.context("--parent-session-id is missing")?;
        let id = format!("{name}@{team}");
        ensure!(
            self.agent_id.as_deref() == Some(id.as_str()),
            "--agent-id does not fit --agent-name and --team-name: {id}"
        );
        Ok(session)
    }

    /// A line for people about the member.
    pub(crate) fn headline(&self) -> String {
        let id = self.agent_id.as_deref().unwrap_or_default();
        let plans = if self.plan_mode_required { "plans first" } else { "" };
        let facts = [self.agent_type.as_deref(), self.agent_color.as_deref(), Some(plans)];
        let facts = facts.into_iter().flatten().filter(|fact| !fact.is_empty());
        [id].into_iter().chain(facts).collect::<Vec<_>>().join(" · ")
    }
}

/// The command line of this process, and what its lead told it of its own.
pub(crate) fn joined(inherited: impl Iterator<Item = OsString>) -> anyhow::Result<RunArgs> {
    let args = RunArgs::try_parse_from(std::env::args_os().chain(inherited));
    Ok(args.context("the flags of the lead cannot be read")?.settle(&environment()))
}

/// The arguments of one member's process.
pub(crate) fn member_args(member: &MemberCommand) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |flag: &str, value: &str| args.extend([flag.into(), value.into()]);
    add("--agent-id", &member.agent_id());
    add("--agent-name", member.name.as_str());
    add("--team-name", member.team.as_str());
    add("--agent-color", &member.color);
    add("--parent-session-id", &member.session.to_string());
    add("--agent-type", &member.agent_type);
    add("--permission-mode", &member.permission_mode);
    if member.plan_mode_required {
        args.push("--plan-mode-required".into());
    }
    args
}

/// The program of all members.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) program: PathBuf,
}

impl Start {
    /// The command as a person would type it: every word is quoted that has to be.
    pub(crate) fn shown(&self, member: &MemberCommand) -> String {
        let program = [self.program.as_os_str().to_owned()].into_iter().chain(member_args(member));
        let words: Vec<String> = program.map(|word| quoted(&word.to_string_lossy())).collect();
        format!("cd {} && {}", quoted(&member.cwd.to_string_lossy()), words.join(" "))
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@%+=:,./-_".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a lead's command line that hold for its members, too. `settings` is what `--settings` says by now.
///
/// Each struct of flags is taken apart without a rest: a new flag does not compile before it stands here, as inherited
/// or with the reason why not.
pub(crate) fn inherited(args: &RunArgs, settings: Option<&FlagSettings>) -> Vec<OsString> {
    let RunArgs {
        // The lead's own: its task, what it prints, its answer, its log, its session.
        prompt: _,
        version: _,
        print: _,
        json_schema: _,
        debug: _,
        debug_file: _,
        debug_to_stderr: _,
        format: _,
        session: _,
        // Each member has its own.
        member: _,
        // These have no effect.
        foreign: _,
        add_dir,
        project_config_root,
        reach,
        model,
        permissions,
        settings: of_settings,
        mcp,
        delegation,
    } = args;
    let mut words = Words::default();
    words.paths("--add-dir", add_dir);
    words.paths("--project-config-root", project_config_root);
    words.reach(reach);
    words.settings(of_settings, settings);
    words.model(model);
    words.permissions(permissions);
    words.mcp(mcp);
    words.delegation(delegation);
    words.0
}

/// Levels of settings in the words of their flag.
fn levels(levels: LevelChoice) -> String {
    let LevelChoice { user, project, local } = levels;
    let named = [(user, "user"), (project, "project"), (local, "local")];
    let named = named.into_iter().filter(|(is_read, _)| *is_read).map(|(_, name)| name);
    named.collect::<Vec<_>>().join(",")
}

/// A choice in the word of its flag.
fn word(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn reach(&mut self, args: &ReachArgs) {
        let ReachArgs { bare, safe_mode, restricted } = args;
        self.switch("--bare", *bare);
        self.switch("--safe-mode", *safe_mode);
        self.switch("--restricted", *restricted);
    }

    fn settings(&mut self, args: &SettingsArgs, now: Option<&FlagSettings>) {
        // A host can have changed those of the flag.
        // `leaves_additions` follows from another flag.
        let SettingsArgs { settings: _, leaves_additions: _, managed_settings, setting_sources } =
            args;
        match now {
            Some(FlagSettings::File(path)) => self.paths("--settings", [path]),
            Some(FlagSettings::Json(text)) => self.each("--settings", [text]),
            None => {}
        }
        self.each("--managed-settings", managed_settings);
        self.each("--setting-sources", setting_sources.map(levels));
    }

    fn model(&mut self, args: &ModelArgs) {
        let ModelArgs {
            // The main agent's prompts, and limits that the lead keeps.
            system_prompt: _,
            system_prompt_file: _,
            append_system_prompt: _,
            append_system_prompt_file: _,
            exclude_dynamic_system_prompt_sections: _,
            max_turns: _,
            max_budget_usd: _,
            // No flag.
            is_optional: _,
            model,
            fallback_model,
            effort,
            thinking,
            max_thinking_tokens,
            thinking_display,
            betas,
            task_budget,
            autocompact,
        } = args;
        self.each("--model", model);
        self.each("--fallback-model", fallback_model);
        self.each("--effort", effort.map(|it| it.to_string()));
        self.each("--thinking", thinking.as_ref().map(word));
        self.each("--max-thinking-tokens", max_thinking_tokens.map(|it| it.to_string()));
        self.each("--thinking-display", thinking_display.as_ref().map(word));
        self.each("--betas", betas.iter().map(|it| it.as_str().to_owned()));
        self.each("--task-budget", task_budget.map(|it| it.to_string()));
        self.each(
            "--autocompact",
            autocompact.map(|it| match it {
                AutoCompact::Auto => "auto".to_owned(),
                AutoCompact::Window(tokens) => tokens.to_string(),
            }),
        );
    }

    fn permissions(&mut self, args: &PermissionArgs) {
        let PermissionArgs {
            // The command of each member has the mode of its moment.
            permission_mode: _,
            // The lead puts the questions of its members.
            permission_prompts: _,
            permission_prompt_tool: _,
            allowed_tools,
            disallowed_tools,
            tools,
            dangerously_skip_permissions,
            allow_dangerously_skip_permissions,
        } = args;
        self.each("--allowedTools", allowed_tools);
        self.each("--disallowedTools", disallowed_tools);
        self.each("--tools", tools.iter().flatten());
        // Whether the mode is in force is the lead's affair, which a member follows.
        self.switch(
            "--allow-dangerously-skip-permissions",
            *allow_dangerously_skip_permissions || *dangerously_skip_permissions,
        );
    }

    fn mcp(&mut self, args: &McpArgs) {
        // No flag: `mcp serve` sets it, and leads no team.
        let McpArgs { only: _, mcp_config, strict_mcp_config } = args;
        self.each("--mcp-config", mcp_config);
        self.switch("--strict-mcp-config", *strict_mcp_config);
    }

    fn delegation(&mut self, args: &DelegationArgs) {
        let DelegationArgs {
            // The main agent alone is what these say, and its members are where it says.
            agent: _,
            teammate_mode: _,
            coordinator: _,
            assistant: _,
            proactive: _,
            definitions: AgentArgs { agents },
            plugin_dir,
            plugin_dir_no_mcp,
            disable_slash_commands,
            append_subagent_system_prompt,
            forward_subagent_text,
        } = args;
        self.each("--agents", agents);
        self.paths("--plugin-dir", plugin_dir);
        self.paths("--plugin-dir-no-mcp", plugin_dir_no_mcp);
        self.switch("--disable-slash-commands", *disable_slash_commands);
        self.each("--append-subagent-system-prompt", append_subagent_system_prompt);
        self.switch("--forward-subagent-text", *forward_subagent_text);
    }

    fn switch(&mut self, flag: &str, is_on: bool) {
        self.0.extend(is_on.then(|| flag.into()));
    }

    /// The flag once for each value, in one word: a value may begin with a hyphen.
    fn each<T: AsRef<OsStr>>(&mut self, flag: &str, values: impl IntoIterator<Item = T>) {
        for value in values {
            let mut word = OsString::from(format!("{flag}="));
            word.push(value);
            self.0.push(word);
        }
    }

    fn paths<'a>(&mut self, flag: &str, paths: impl IntoIterator<Item = &'a PathBuf>) {
        self.each(flag, paths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(cwd: &str) -> MemberCommand {
        MemberCommand {
            name: "w1".parse().unwrap(),
            team: "alpha".parse().unwrap(),
            color: "blue".to_owned(),
            agent_type: "it's a \"type\" $(x)".to_owned(),
            session: "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11".parse().unwrap(),
            plan_mode_required: true,
            permission_mode: "acceptEdits".to_owned(),
            cwd: cwd.into(),
            ticket: "t".to_owned(),
        }
    }

    /// What a member makes of the command line of its lead.
    fn member_of(lead: &RunArgs) -> RunArgs {
        let settings = lead.settings.settings.clone().map(FlagSettings::Json);
        let words = [OsString::from("centurion")].into_iter().chain(member_args(&member("/p")));
        RunArgs::try_parse_from(words.chain(inherited(lead, settings.as_ref()))).unwrap()
    }

    #[test]
    fn what_a_lead_makes_is_what_a_member_reads() {
        // S-349, S-351
        let lead = RunArgs::try_parse_from([
            "centurion",
            "-p",
            "x",
            "--settings",
            "{\"a\": 1}",
            "--plugin-dir",
            "/a b",
            "--allowedTools",
            "Bash(git log *)",
            "Read",
            "--model",
            "haiku",
            "--effort",
            "low",
        ])
        .unwrap();
        let read = member_of(&lead);
        assert_eq!(read.member.lead_session().unwrap(), member("/p").session);
        assert!(read.member.plan_mode_required);
        assert_eq!(read.member.agent_type.as_deref(), Some("it's a \"type\" $(x)"));
        assert_eq!(read.settings.settings.as_deref(), Some("{\"a\": 1}"));
        assert_eq!(read.delegation.plugin_dir, lead.delegation.plugin_dir);
        assert_eq!(read.permissions.allowed_tools, ["Bash(git log *)", "Read"]);
        assert_eq!(
            read.permissions.permission_mode,
            Some(centurion_permissions::Mode::AcceptEdits)
        );
        assert_eq!((read.model.model, read.model.effort), (lead.model.model, lead.model.effort));
        assert_eq!(read.prompt, None, "the first message is the prompt");
    }

    #[test]
    fn no_limit_of_a_lead_is_lost_on_the_way_to_a_member() {
        // Limits of the program that starts the lead, and fields of requests, did not hold in a member's process.
        let lead = RunArgs::try_parse_from([
            "centurion",
            "-p",
            "x",
            "--managed-settings",
            "{\"sandbox\": {\"enabled\": true}}",
            "--betas",
            "one,two",
            "--thinking",
            "disabled",
            "--thinking-display",
            "omitted",
            "--autocompact",
            "200k",
            "--task-budget",
            "7",
            "--max-thinking-tokens",
            "9",
            "--tools",
            "",
            "--dangerously-skip-permissions",
            "--forward-subagent-text",
            "--safe-mode",
            "--restricted",
        ])
        .unwrap();
        let read = member_of(&lead);
        assert!(read.reach.safe_mode && read.reach.restricted);
        assert_eq!(read.settings.managed_settings, lead.settings.managed_settings);
        assert_eq!(read.model.extras().betas, lead.model.extras().betas);
        assert_eq!(read.model.chosen_thinking(), lead.model.chosen_thinking());
        assert_eq!(read.model.thinking_display, lead.model.thinking_display);
        assert_eq!(read.model.autocompact, lead.model.autocompact);
        assert_eq!(read.model.task_budget, lead.model.task_budget);
        assert_eq!(read.model.max_thinking_tokens, lead.model.max_thinking_tokens);
        assert_eq!(read.tool_choice(), lead.tool_choice());
        assert!(read.permissions.allow_dangerously_skip_permissions);
        assert!(!read.permissions.dangerously_skip_permissions, "the mode is the command's");
        assert!(read.delegation.forward_subagent_text);
    }

    #[test]
    fn the_shown_command_means_the_same_to_a_shell() {
        // S-350
        let start = Start { program: "/bin/a b".into() };
        let member = member("/tmp/it's \u{fc} \"here\"; rm -rf $HOME");
        let shown = start.shown(&member).replacen("cd ", "printf '%s\\n' ", 1);
        let shown = shown.replacen(" && ", " ", 1);
        let printed = std::process::Command::new("bash").args(["-c", &shown]).output().unwrap();
        let words: Vec<String> =
            String::from_utf8(printed.stdout).unwrap().lines().map(str::to_owned).collect();
        let expected: Vec<String> = [member.cwd.display().to_string(), "/bin/a b".to_owned()]
            .into_iter()
            .chain(member_args(&member).into_iter().map(|word| word.into_string().unwrap()))
            .collect();
        assert_eq!(words, expected);
    }

    #[test]
    fn a_member_whose_flags_do_not_fit_is_none() {
        for line in [
            &["--agent-id", "w1@alpha"][..],
            &["--agent-name", "w1"],
            &[
                "--agent-id",
                "team-lead@a",
                "--agent-name",
                "team-lead",
                "--team-name",
                "a",
                "--parent-session-id",
                "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11",
            ],
        ] {
            assert!(RunArgs::try_parse_from([&["centurion"], line].concat()).is_err(), "{line:?}");
        }
        let other = RunArgs::try_parse_from([
            "centurion",
            "--agent-id",
            "w2@alpha",
            "--agent-name",
            "w1",
            "--team-name",
            "alpha",
            "--parent-session-id",
            "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11",
        ]);
        assert!(other.unwrap().member.lead_session().is_err());
    }
}
