//! `centurion agents explain`: everything that an agent would run with, and what decides each part. It is
//! the runtime that is asked: what it says is what a run does.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use centurion_engine::{Explanation, Options, Session};
use centurion_host::Fronts;
use centurion_protocol::{SystemWorld, World};
use clap::{Args, Parser};
use serde_json::Value;

use super::sources::AgentArgs;
use crate::args::{ModelArgs, PermissionArgs, RunArgs};
use crate::configuration::{Configuration, SettingsArgs};
use crate::control::Control;
use crate::mcp::McpArgs;
use crate::output::{self, Output, printable};
use crate::setup;
use crate::slow_servers;
use crate::surroundings::Surroundings;

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The agent's name
    name: String,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// As if the session itself ran as the agent (`--agent`), not as one that the main agent starts
    #[arg(long)]
    as_main: bool,

    /// As if it were started in the background
    #[arg(long, conflicts_with = "as_main")]
    background: bool,

    /// How deep the agent stands that starts it; the main agent is 0
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "as_main")]
    depth: u32,

    #[command(flatten)]
    agents: AgentArgs,

    /// Directories of plugins that are on, too
    #[arg(long, value_name = "DIR")]
    plugin_dir: Vec<PathBuf>,

    /// Additional directories that belong to the project
    #[arg(long, value_name = "DIR", num_args = 1..)]
    add_dir: Vec<PathBuf>,

    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    permissions: PermissionArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    mcp: McpArgs,
}

impl ExplainArgs {
    /// The flags of the run that is asked about.
    fn into_run(self) -> anyhow::Result<RunArgs> {
        let mut run = RunArgs::try_parse_from(["centurion"])?;
        run.add_dir = self.add_dir;
        run.model = self.model;
        // Nothing is asked of a model.
        run.model.is_optional = true;
        run.permissions = self.permissions;
        run.settings = self.settings;
        run.mcp = self.mcp;
        run.session.no_session_persistence = true;
        run.delegation.definitions = self.agents;
        run.delegation.plugin_dir = self.plugin_dir;
        Ok(run)
    }
}

pub(super) async fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let (name, as_json, as_main) = (args.name.clone(), args.json, args.as_main);
    let (background, depth) = (args.background, args.depth);
    let run = args.into_run()?;
    let world: Arc<dyn World> = Arc::new(SystemWorld);
    let surroundings = Surroundings::observe()?;
    let configuration = Configuration::load(&surroundings, &run.settings)?;
    configuration.warn();
    let output = Arc::new(output::queue(&surroundings.dirs));
    let control = Arc::new(Control::new(output, Arc::clone(&world)));
    let view = Arc::new(Fronts::new([]));
    let (options, lasting) =
        setup::options(&run, &surroundings, configuration, world, view, &control).await?;
    let explaining = async |options: Options| {
        let session = Session::open(options).await?;
        let explained = if as_main {
            session.explain_main(&name).await
        } else {
            session.explain(&name, background, depth).await
        };
        anyhow::Ok(explained)
    };
    let servers = options.extensions.servers.clone();
    let explained = slow_servers::beside(servers, Box::pin(explaining(options))).await?;
    lasting.pool.shutdown().await;
    let explained = explained?;
    let output = Output::default();
    if as_json {
        output.json_line(&explained);
    } else {
        output.write_text(&text(&explained)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// For people: a line for each value, with what decided it.
fn text(explained: &Explanation) -> anyhow::Result<String> {
    let Value::Object(fields) = serde_json::to_value(explained)? else { return Ok(String::new()) };
    let mut lines = Vec::new();
    for (name, value) in &fields {
        match value {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(items) if items.is_empty() => {}
            Value::Object(decided) if decided.contains_key("from") => {
                let from = decided.get("from").map(plain).unwrap_or_default();
                let value = decided.get("value").map(plain).unwrap_or_default();
                lines.push(format!("{name}: {}   [{from}]", brief(&value)));
            }
            Value::Array(items) => {
                lines.push(format!("{name}:"));
                lines.extend(items.iter().map(|item| format!("  {}", item_line(item))));
            }
            Value::Object(items) => {
                lines.push(format!("{name}:"));
                let line = |(key, value): (&String, &Value)| format!("  {key}: {}", plain(value));
                lines.extend(items.iter().map(line));
            }
            other => lines.push(format!("{name}: {}", plain(other))),
        }
    }
    Ok(lines.iter().map(|line| printable(line) + "\n").collect())
}

fn item_line(item: &Value) -> String {
    match item.as_object() {
        Some(fields) if fields.contains_key("from") => {
            let rest = fields.iter().filter(|(key, _)| *key != "from");
            let parts: Vec<String> = rest.map(|(_, value)| brief(&plain(value))).collect();
            let from = fields.get("from").map(plain).unwrap_or_default();
            format!("{}   [{from}]", parts.join(", "))
        }
        _ => plain(item),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The first line of a text, and how much more there is.
fn brief(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    match lines.count() {
        0 => first.to_owned(),
        more => format!("{first} … ({more} more lines)"),
    }
}
