//! The commands that write: servers into files, and what the user chose about them.

use anyhow::{Context, bail, ensure};
use centurion_config::mcp::{
    McpChoice, McpDisabled, McpOrigin, McpPlaces, McpScope, McpStanding, McpTarget, McpVariables,
    parse_server,
};
use centurion_config::settings::Change;
use centurion_config::trust::PowerItem;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::{ListedServers, ServerSourceArgs, variables};
use crate::configuration::open_trust;
use crate::output::{Output, note};
use crate::surroundings::Surroundings;
use crate::trust::without_secrets;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ServerScope {
    /// For you, in this project
    Local,
    /// For you, in all projects
    User,
    /// For everybody who has the project, in .mcp.json
    Project,
}

impl ServerScope {
    fn target(self) -> McpTarget {
        match self {
            Self::Local => McpTarget::Local,
            Self::User => McpTarget::User,
            Self::Project => McpTarget::Project,
        }
    }

    fn of(target: McpTarget) -> &'static str {
        match target {
            McpTarget::Local => "local",
            McpTarget::User => "user",
            McpTarget::Project => "project",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    Stdio,
    Http,
    Sse,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The users and projects that have the server
    #[arg(short, long, default_value = "local")]
    scope: ServerScope,
    /// The transport; without this, http for an address and stdio for a command
    #[arg(short, long)]
    transport: Option<Transport>,
    /// A variable for its environment
    #[arg(short, long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A header for every request
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// The name of the server: letters, digits, `_` and `-`
    name: String,
    /// The command with its arguments, or the address
    #[arg(value_name = "COMMAND_OR_URL", required = true, num_args = 1..)]
    words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AddJsonArgs {
    /// The users and projects that have the server
    #[arg(short, long, default_value = "local")]
    scope: ServerScope,
    name: String,
    json: String,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The scope of the server; needed where several have the name
    #[arg(short, long)]
    scope: Option<ServerScope>,
    name: String,
}

pub(crate) fn add(args: &AddArgs) -> anyhow::Result<()> {
    write(args.scope, &args.name, &args.server()?)
}

pub(crate) fn add_json(args: &AddJsonArgs) -> anyhow::Result<()> {
    let server: Value = serde_json::from_str(&args.json).context("the server is no JSON")?;
    write(args.scope, &args.name, &server)
}

impl AddArgs {
    /// The server as a file declares it.
    fn server(&self) -> anyhow::Result<Value> {
        let (first, rest) =
            self.words.split_first().context("a command or an address is needed")?;
        let is_address = ["http://", "https://"].iter().any(|scheme| first.starts_with(scheme));
        let usual = if is_address { Transport::Http } else { Transport::Stdio };
        let kind = match self.transport.unwrap_or(usual) {
            Transport::Stdio => return self.stdio(first, rest),
            Transport::Http => "http",
            Transport::Sse => "sse",
        };
        ensure!(rest.is_empty(), "a server that is reached by an address takes no arguments");
        ensure!(
            self.env.is_empty(),
            "--env is for servers that are started, which this one is not"
        );
        let mut server = json!({"type": kind, "url": first});
        let headers = pairs(&self.header, ':', "--header")?;
        if let (false, Some(server)) = (headers.is_empty(), server.as_object_mut()) {
            server.insert("headers".to_owned(), headers.into());
        }
        Ok(server)
    }

    fn stdio(&self, command: &str, rest: &[String]) -> anyhow::Result<Value> {
        ensure!(self.header.is_empty(), "--header is for servers that are reached by an address");
        let mut server = json!({"type": "stdio", "command": command, "args": rest});
        let env = pairs(&self.env, '=', "--env")?;
        if let (false, Some(server)) = (env.is_empty(), server.as_object_mut()) {
            server.insert("env".to_owned(), env.into());
        }
        Ok(server)
    }
}

/// Names and values that were typed as one word each.
fn pairs(words: &[String], separator: char, flag: &str) -> anyhow::Result<Map<String, Value>> {
    let pair = |word: &String| {
        let (name, value) = word.split_once(separator).with_context(|| {
            format!("{flag}: a name and a value are needed, with `{separator}` between them")
        })?;
        // Space after the colon of a header is no part of it; a variable is as it was typed.
        let value = if separator == ':' { value.trim() } else { value };
        Ok((name.trim().to_owned(), Value::from(value)))
    };
    words.iter().map(pair).collect()
}

/// Checks a server and writes it.
fn write(scope: ServerScope, name: &str, server: &Value) -> anyhow::Result<()> {
    let surroundings = Surroundings::observe()?;
    let known = variables(&surroundings);
    let origin = McpOrigin { scope: origin_scope(scope), file: None, line: None };
    let variables = McpVariables { env: &surroundings.env, known: &known };
    let parsed = parse_server(name, server, &origin, &variables);
    let problems: Vec<&str> = parsed.problems.iter().map(|it| it.message.as_str()).collect();
    ensure!(parsed.server.is_some(), "{}", problems.join("\n"));
    for problem in problems {
        note(&format!("warning: {problem}"));
    }
    if scope == ServerScope::Project && holds_values(server) {
        note(
            "warning: .mcp.json is read by everybody who has the project\n\
             help: write ${NAME} for a secret, and it is taken from the environment of each",
        );
    }
    let places = McpPlaces::new(&surroundings.dirs, &surroundings.cwd);
    let file = places.add_server(scope.target(), name, server)?;
    if scope == ServerScope::Project {
        accept_server(name)?;
    }
    say(&format!("added server `{name}` to {}", file.display()));
    tell_standing(name)
}

/// Whether a variable or header of a server is written out.
fn holds_values(server: &Value) -> bool {
    let maps = ["env", "headers"].into_iter().filter_map(|key| server.get(key)?.as_object());
    maps.flat_map(Map::values).filter_map(Value::as_str).any(|value| !value.contains("${"))
}

fn origin_scope(scope: ServerScope) -> McpScope {
    match scope {
        ServerScope::Local => McpScope::Local,
        ServerScope::User => McpScope::User,
        ServerScope::Project => McpScope::Project,
    }
}

pub(crate) fn remove(args: &RemoveArgs) -> anyhow::Result<()> {
    let surroundings = Surroundings::observe()?;
    let places = McpPlaces::new(&surroundings.dirs, &surroundings.cwd);
    let name = &args.name;
    let target = match (args.scope, places.targets_of(name)?.as_slice()) {
        (Some(scope), _) => scope.target(),
        (None, [target]) => *target,
        (None, []) => {
            bail!("there is no server `{name}`\nhelp: `centurion mcp list` shows those there are")
        }
        (None, several) => {
            let scopes: Vec<&str> = several.iter().map(|target| ServerScope::of(*target)).collect();
            bail!(
                "several servers are called `{name}`\nhelp: --scope {}",
                scopes.join(" or --scope ")
            )
        }
    };
    let file = places.remove_server(target, name)?;
    say(&format!("removed server `{name}` from {}", file.display()));
    Ok(())
}

pub(crate) fn enable(name: &str) -> anyhow::Result<()> {
    let servers = ListedServers::load(&ServerSourceArgs::default())?;
    servers.find(name)?;
    let places = McpPlaces::new(&servers.surroundings.dirs, &servers.surroundings.cwd);
    let ours = places.state_files.last();
    // A word of approval is kept only where one is needed: for what the repository brought, and against
    // another program's word. It would otherwise approve what a repository may bring later.
    let declared = servers.configuration.servers.iter().filter(|it| it.server.name == name);
    let needs_word = declared.into_iter().any(|it| match &it.standing {
        McpStanding::Disabled(McpDisabled::Choice(file)) if Some(file) != ours => true,
        _ => it.server.origin.scope == McpScope::Project,
    });
    places.choose(name, if needs_word { McpChoice::Enabled } else { McpChoice::Unsaid })?;
    accept_server(name)?;
    tell_standing(name)
}

/// Accepts what the project's file says about a server: the user has just named it.
fn accept_server(name: &str) -> anyhow::Result<()> {
    let servers = ListedServers::load(&ServerSourceArgs::default())?;
    let named = servers.configuration.servers.iter().filter(|it| it.server.name == name);
    let items: Vec<PowerItem> = named.filter_map(|it| it.power.clone()).collect();
    let trust = open_trust(&servers.surroundings)?;
    trust.accept(&items, &without_secrets).context("the answer could not be kept")
}

pub(crate) fn disable(name: &str) -> anyhow::Result<()> {
    let servers = ListedServers::load(&ServerSourceArgs::default())?;
    servers.find(name)?;
    let places = McpPlaces::new(&servers.surroundings.dirs, &servers.surroundings.cwd);
    places.choose(name, McpChoice::Disabled)?;
    tell_standing(name)
}

pub(crate) fn reset_choices() -> anyhow::Result<()> {
    let surroundings = Surroundings::observe()?;
    let places = McpPlaces::new(&surroundings.dirs, &surroundings.cwd);
    say(match places.forget_choices()? {
        Change::Written => "forgot which servers were enabled and disabled in this project",
        Change::AlreadyThere => "nothing was enabled or disabled in this project",
    });
    Ok(())
}

/// Says what a server's standing is now.
fn tell_standing(name: &str) -> anyhow::Result<()> {
    let servers = ListedServers::load(&ServerSourceArgs::default())?;
    let standing = &servers.find(name)?.standing;
    say(&format!("server `{name}` is {standing}"));
    Ok(())
}

fn say(line: &str) {
    Output::default().write_text(&format!("{line}\n"));
}
