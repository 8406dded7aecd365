//! Flags that narrow what a run uses of its machine, and what its tools reach.

use centurion_config::settings::LevelChoice;
use centurion_engine::ToolChoice;
use centurion_protocol::Env;
use clap::Args;

use super::RunArgs;

/// The tools that run commands or code, or fetch pages.
const RUN_OR_FETCH: [&str; 5] = ["Bash", "Monitor", "PowerShell", "WebFetch", "Workflow"];

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Reach")]
pub(crate) struct ReachArgs {
    /// Use nothing of this machine's users and projects: no settings, hooks, agents, skills, plugins, servers and
    /// instructions but those of flags
    #[arg(long)]
    pub(crate) bare: bool,

    /// Use no instructions, hooks, agents, skills, plugins, servers and styles but those of flags and of this machine's
    /// administrator. Other settings count, such as permissions and the model
    #[arg(long)]
    pub(crate) safe_mode: bool,

    /// Have no tools that run commands or fetch pages unless --tools names them, keep file tools in the working
    /// directories, read no settings of users and projects, and never skip permissions
    #[arg(long)]
    pub(crate) restricted: bool,
}

impl ReachArgs {
    /// Whether the files of instructions of people and projects are left out.
    pub(crate) fn leaves_instructions(&self) -> bool {
        self.bare || self.safe_mode
    }
}

impl RunArgs {
    /// Puts the flags about reach in force, with the variables that stand for them. What other flags name counts more.
    pub(crate) fn settle(mut self, env: &Env) -> Self {
        let reach = &mut self.reach;
        reach.bare |= env.is_on("CLAUDE_CODE_SIMPLE");
        reach.safe_mode |= env.is_on("CLAUDE_CODE_SAFE_MODE");
        reach.restricted |= env.is_on("CLAUDE_CODE_RESTRICTED");
        let ReachArgs { bare, safe_mode, restricted } = *reach;
        if restricted {
            let choice = self.tool_choice();
            let is_named = |tool: &str| matches!(&choice, ToolChoice::Only(names) if names.iter().any(|name| name == tool));
            let taken = RUN_OR_FETCH.into_iter().filter(|tool| !is_named(tool));
            self.permissions.disallowed_tools.extend(taken.map(str::to_owned));
            // No flag brings them back.
            self.settings.setting_sources = Some(LevelChoice::NONE);
        }
        if bare {
            self.settings.setting_sources.get_or_insert(LevelChoice::NONE);
            let tools = || ["Bash", "Read", "Edit"].map(str::to_owned).into();
            self.permissions.tools.get_or_insert_with(tools);
        }
        if self.session.init_only {
            // There is no conversation that could be continued.
            self.session.no_session_persistence = true;
            self.model.is_optional = true;
        }
        self.mcp.strict_mcp_config |= bare || safe_mode;
        self.settings.leaves_additions = safe_mode;
        self
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn settled(line: &[&str], variables: &[(&str, &str)]) -> RunArgs {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        RunArgs::try_parse_from([&["centurion"], line].concat())
            .unwrap()
            .settle(&Env::new(variables))
    }

    #[test]
    fn a_restricted_run_has_only_the_dangerous_tools_that_it_names() {
        let taken = |line: &[&str]| settled(line, &[]).permissions.disallowed_tools;
        assert_eq!(taken(&["--restricted"]), RUN_OR_FETCH);
        assert_eq!(taken(&["--restricted", "--tools", "default"]), RUN_OR_FETCH);
        let named = taken(&["--restricted", "--tools", "Read,Bash", "--disallowedTools", "Edit"]);
        assert_eq!(named, ["Edit", "Monitor", "PowerShell", "WebFetch", "Workflow"]);
        assert_eq!(taken(&["--tools", "Read"]), Vec::<String>::new());
        let levels = settled(&["--restricted", "--setting-sources", "user"], &[]).settings;
        assert_eq!(levels.setting_sources, Some(LevelChoice::NONE));
    }

    #[test]
    fn variables_stand_for_the_flags() {
        for (variable, flag) in [
            ("CLAUDE_CODE_SIMPLE", "--bare"),
            ("CLAUDE_CODE_SAFE_MODE", "--safe-mode"),
            ("CLAUDE_CODE_RESTRICTED", "--restricted"),
        ] {
            let by_flag = format!("{:?}", settled(&[flag], &[]));
            assert_eq!(format!("{:?}", settled(&[], &[(variable, "1")])), by_flag);
            assert_ne!(format!("{:?}", settled(&[], &[(variable, "0")])), by_flag);
        }
    }
}
