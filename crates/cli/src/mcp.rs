//! `centurion mcp`: which MCP servers there are, whether they work, and what is to become of them.

mod browser;
mod edit;
mod login;
mod probe;
mod serve;
mod show;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use centurion_config::mcp::{
    Declared, McpApproval, McpConfiguration, McpFlag, McpPlaces, McpSources,
};
use centurion_config::plugins::PluginCatalog;
use centurion_protocol::Env;
use clap::{Args, Parser, Subcommand};

use crate::configuration::{Configuration, SettingsArgs};
use crate::output::{note, printable};
use crate::surroundings::{MANAGED, Surroundings};

/// Shows, adds and removes MCP servers.
#[derive(Debug, Parser)]
#[command(name = "centurion mcp")]
pub(crate) struct McpCommandArgs {
    #[command(subcommand)]
    action: McpAction,
}

#[derive(Debug, Subcommand)]
enum McpAction {
    /// List the servers, and whether they can be reached
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        sources: ServerSourceArgs,
    },
    /// Show all that is known of a server
    Get {
        name: String,
        /// Print the values of variables, headers and arguments, too
        #[arg(long)]
        show_values: bool,
        #[command(flatten)]
        sources: ServerSourceArgs,
    },
    /// Add a server: `add NAME COMMAND [-- ARGS...]` or `add --transport http NAME URL`
    Add(edit::AddArgs),
    /// Add a server as JSON, such as `{"command": "npx", "args": ["-y", "some-server"]}`
    AddJson(edit::AddJsonArgs),
    /// Remove a server
    Remove(edit::RemoveArgs),
    /// Let a server run in this project
    Enable { name: String },
    /// Keep a server from running in this project
    Disable { name: String },
    /// Forget which servers were enabled and disabled in this project
    ResetProjectChoices,
    /// Log in to a server
    Login { name: String },
    /// Forget what a server gave when you logged in
    Logout { name: String },
    /// Run as a server: offer the tools of this program, and whole agents, to the program that started it
    Serve(Box<serve::ServeArgs>),
}

/// The places in which servers are looked for, besides the files.
#[derive(Debug, Default, Args)]
struct ServerSourceArgs {
    #[command(flatten)]
    mcp: McpArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "MCP servers")]
pub(crate) struct McpArgs {
    /// MCP servers for this run: files, or JSON
    #[arg(long, value_name = "FILE|JSON", num_args = 1..)]
    pub(crate) mcp_config: Vec<String>,

    /// Use only the servers of --mcp-config
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,

    /// The only servers that are wanted, by name; all of them if this is not said.
    #[arg(skip)]
    pub(crate) only: Option<BTreeSet<String>>,
}

/// The servers of a run. What is wrong with the files is among the problems; only what a flag asks for by
/// name and cannot be read is an error.
pub(crate) fn configuration(
    surroundings: &Surroundings,
    configuration: &Configuration,
    args: &McpArgs,
) -> anyhow::Result<McpConfiguration> {
    let cwd = &surroundings.cwd;
    if let Some(origin) = configuration.settings.sideload_disabled()
        && !args.mcp_config.is_empty()
    {
        anyhow::bail!("{origin} does not let --mcp-config be used");
    }
    let flags = args.mcp_config.iter().map(|argument| McpFlag::parse(argument, cwd));
    let env = configuration.settings.overlay(&surroundings.env);
    let mut loaded = McpConfiguration::load(&McpSources {
        managed_dir: Some(PathBuf::from(MANAGED)),
        flags: flags.collect::<Result<_, _>>()?,
        is_strict: args.strict_mcp_config,
        places: McpPlaces::new(&surroundings.dirs, surroundings.project()),
        settings: &configuration.settings,
        approval: McpApproval::Folder,
        env: &env,
        variables: variables(surroundings),
    });
    if let Some(only) = &args.only {
        loaded.servers.retain(|declared| only.contains(&declared.server.name));
    }
    Ok(loaded)
}

/// Adds the servers of plugins, those of the user's own files first where names are the same.
pub(crate) fn add_plugins(
    configuration: &mut McpConfiguration,
    plugins: &PluginCatalog,
    env: &Env,
) {
    for parsed in plugins.enabled.iter().flat_map(|plugin| plugin.servers(env)) {
        configuration.problems.extend(parsed.problems);
        let Some(server) = parsed.server else { continue };
        if configuration.find(&server.name).is_some() {
            continue;
        }
        let standing = configuration.judge(&server);
        let endpoint = parsed.endpoint;
        configuration.servers.push(Declared { server, standing, endpoint, power: None });
    }
}

/// The values of variables in the definitions of servers, besides the environment.
fn variables(surroundings: &Surroundings) -> BTreeMap<String, String> {
    let project = surroundings.project().display().to_string();
    BTreeMap::from([("CLAUDE_PROJECT_DIR".to_owned(), project)])
}

/// The servers as a command of this program sees them.
struct ListedServers {
    surroundings: Surroundings,
    configuration: McpConfiguration,
    /// The environment that they start with.
    env: Env,
}

impl ListedServers {
    fn load(args: &ServerSourceArgs) -> anyhow::Result<Self> {
        let surroundings = Surroundings::observe()?;
        let settings = Configuration::load(&surroundings, &args.settings)?;
        settings.warn();
        let env = settings.settings.overlay(&surroundings.env);
        let configuration = configuration(&surroundings, &settings, &args.mcp)?;
        Ok(Self { surroundings, configuration, env })
    }

    /// Tells the user what is wrong with the files.
    fn warn(&self) {
        for problem in &self.configuration.problems {
            note(&format!("warning: {problem}"));
        }
    }

    /// The server of a name.
    fn find(&self, name: &str) -> anyhow::Result<&Declared> {
        self.configuration.find(name).with_context(|| {
            let problem = format!("server `{name}`");
            let mut problems = self.configuration.problems.iter().map(ToString::to_string);
            match problems.find(|it| it.contains(&problem)) {
                Some(problem) => problem,
                None => format!(
                    "there is no server `{name}`\nhelp: `centurion mcp list` shows those there are"
                ),
            }
        })
    }
}

pub(crate) async fn run(args: McpCommandArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        McpAction::List { json, sources } => {
            let servers = ListedServers::load(&sources)?;
            servers.warn();
            let seen = probe::look(&servers, |_| true).await?;
            show::list(&seen, json);
        }
        McpAction::Get { name, show_values, sources } => {
            let servers = ListedServers::load(&sources)?;
            servers.find(&name)?;
            servers.warn();
            let seen = probe::look(&servers, |declared| declared.server.name == name).await?;
            show::details(&seen, show_values);
        }
        McpAction::Add(args) => edit::add(&args)?,
        McpAction::AddJson(args) => edit::add_json(&args)?,
        McpAction::Remove(args) => edit::remove(&args)?,
        McpAction::Enable { name } => edit::enable(&name)?,
        McpAction::Disable { name } => edit::disable(&name)?,
        McpAction::ResetProjectChoices => edit::reset_choices()?,
        McpAction::Login { name } => login::login(&name).await?,
        McpAction::Logout { name } => login::logout(&name)?,
        McpAction::Serve(args) => return Box::pin(serve::run(*args)).await,
    }
    Ok(ExitCode::SUCCESS)
}

/// The servers and what is wrong with them, in a few lines, without reaching for any.
pub(crate) fn summary(configuration: &McpConfiguration) -> (Vec<String>, Vec<String>) {
    let line = |declared: &Declared| {
        let Declared { server, standing, endpoint, .. } = declared;
        let line = format!("{} ({}) {endpoint}: {standing}", server.name, server.origin.scope);
        printable(&line)
    };
    let problems = configuration.problems.iter().map(ToString::to_string);
    (configuration.servers.iter().map(line).collect(), problems.collect())
}
