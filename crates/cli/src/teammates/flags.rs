//! The command line of a member's process: as it is made, and as it is read.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use centurion_config::settings::LevelChoice;
use centurion_protocol::SessionId;
use centurion_team::{MemberCommand, MemberName, TeamName};
use clap::Args;

use crate::args::{RunArgs, session_id};

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

/// The program of a member, and the flags that all members have from their lead.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) program: PathBuf,
    pub(crate) flags: Vec<OsString>,
}

impl Start {
    /// The arguments of one member's process.
    pub(crate) fn args(&self, member: &MemberCommand) -> Vec<OsString> {
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
        args.extend(self.flags.iter().cloned());
        args
    }

    /// The command as a person would type it: every word is quoted that has to be.
    pub(crate) fn shown(&self, member: &MemberCommand) -> String {
        let program = [self.program.as_os_str().to_owned()].into_iter().chain(self.args(member));
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

/// The flags of a lead that hold for its members, too. The permission mode is the one of the moment, the session and what
/// is printed are the lead's own, and its budget is asked for at the lead.
pub(crate) fn inherited(args: &RunArgs) -> Vec<OsString> {
    let mut flags = Inherited::default();
    flags.each("--add-dir", args.add_dir.iter().map(|it| it.as_os_str().to_owned()));
    let root = args.project_config_root.iter();
    flags.each("--project-config-root", root.map(|it| it.as_os_str().to_owned()));
    flags.switch("--bare", args.bare);
    flags.value("--settings", args.settings.settings.as_ref());
    flags.value("--setting-sources", args.settings.setting_sources.map(levels).as_ref());
    let model = &args.model;
    flags.value("--model", model.model.as_ref());
    flags.each("--fallback-model", model.fallback_model.iter().map(OsString::from));
    flags.value("--effort", model.effort.map(|it| it.to_string()).as_ref());
    flags.value(
        "--max-thinking-tokens",
        model.max_thinking_tokens.map(|it| it.to_string()).as_ref(),
    );
    let permissions = &args.permissions;
    flags.each("--allowedTools", permissions.allowed_tools.iter().map(OsString::from));
    flags.each("--disallowedTools", permissions.disallowed_tools.iter().map(OsString::from));
    flags.each("--tools", permissions.tools.iter().flatten().map(OsString::from));
    flags.switch(
        "--allow-dangerously-skip-permissions",
        permissions.allow_dangerously_skip_permissions,
    );
    flags.each("--mcp-config", args.mcp.mcp_config.iter().map(OsString::from));
    flags.switch("--strict-mcp-config", args.mcp.strict_mcp_config);
    let delegation = &args.delegation;
    flags.value("--agents", delegation.definitions.agents.as_ref());
    for dir in &delegation.plugin_dir {
        flags.each("--plugin-dir", [dir.as_os_str().to_owned()].into_iter());
    }
    flags.switch("--disable-slash-commands", delegation.disable_slash_commands);
    flags.value(
        "--append-subagent-system-prompt",
        delegation.append_subagent_system_prompt.as_ref(),
    );
    flags.0
}

/// Levels of settings in the words of their flag.
fn levels(levels: LevelChoice) -> String {
    let LevelChoice { user, project, local } = levels;
    let named = [(user, "user"), (project, "project"), (local, "local")];
    let named = named.into_iter().filter(|(is_read, _)| *is_read).map(|(_, name)| name);
    named.collect::<Vec<_>>().join(",")
}

#[derive(Default)]
struct Inherited(Vec<OsString>);

impl Inherited {
    fn switch(&mut self, flag: &str, is_on: bool) {
        self.0.extend(is_on.then(|| flag.into()));
    }

    fn value(&mut self, flag: &str, value: Option<&String>) {
        // In one word: a value may begin with a hyphen.
        self.0.extend(value.map(|value| format!("{flag}={value}").into()));
    }

    fn each(&mut self, flag: &str, values: impl Iterator<Item = OsString>) {
        for value in values {
            let mut word = OsString::from(format!("{flag}="));
            word.push(value);
            self.0.push(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

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
        let start = Start { program: "/bin/centurion".into(), flags: inherited(&lead) };
        let words = [OsString::from("centurion")].into_iter().chain(start.args(&member("/p")));
        let read = RunArgs::try_parse_from(words).unwrap();
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
    fn the_shown_command_means_the_same_to_a_shell() {
        // S-350
        let start =
            Start { program: "/bin/a b".into(), flags: vec!["--settings={\"it's\": 1}".into()] };
        let member = member("/tmp/it's \u{fc} \"here\"; rm -rf $HOME");
        let shown = start.shown(&member).replacen("cd ", "printf '%s\\n' ", 1);
        let shown = shown.replacen(" && ", " ", 1);
        let printed = std::process::Command::new("bash").args(["-c", &shown]).output().unwrap();
        let words: Vec<String> =
            String::from_utf8(printed.stdout).unwrap().lines().map(str::to_owned).collect();
        let expected: Vec<String> = [member.cwd.display().to_string(), "/bin/a b".to_owned()]
            .into_iter()
            .chain(start.args(&member).into_iter().map(|word| word.into_string().unwrap()))
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
