//! `centurion agents new`: the file of an agent, to be filled in.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use centurion_config::Located;
use centurion_config::agents::{
    AgentDefinition, AgentModel, AgentOrigin, AgentScope, AgentSource, check_characters,
    check_name, directory_name, read_markdown, write_markdown,
};
use centurion_config::frontmatter::{Value, names};
use centurion_config::paths::repo_root;
use clap::Args;

use super::{AgentSourceArgs, KnownAgents};
use crate::definitions::listing::Form;
use crate::definitions::new_file::{self, DefinitionScope, WrittenFile};
use crate::output::printable;
use crate::surroundings::Surroundings;

#[derive(Debug, Args)]
pub(super) struct NewAgentArgs {
    /// The name of the agent
    name: String,

    /// When to use the agent, and when not
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// The only tools that it has, with commas; all of them if this is not said
    #[arg(long, value_name = "NAMES")]
    tools: Option<String>,

    /// Its model: sonnet, opus, haiku, fable, inherit or a full name
    #[arg(long)]
    model: Option<String>,

    /// The owner of the agent
    #[arg(long, value_enum, default_value = "project")]
    scope: DefinitionScope,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The source of the agents of a scope.
fn source_of(scope: DefinitionScope) -> AgentSource {
    match scope {
        DefinitionScope::Project => AgentSource::Project,
        DefinitionScope::User => AgentSource::User,
    }
}

pub(super) fn run(args: &NewAgentArgs) -> anyhow::Result<ExitCode> {
    let name = args.name.as_str();
    check(name)?;
    let agents = KnownAgents::load(&AgentSourceArgs::default())?;
    let source = source_of(args.scope);
    let same = agents.all().find(|it| it.name.value == name && it.origin.source == source);
    if let Some(existing) = same {
        bail!("there is an agent `{name}` already, in {}", existing.origin.path.display());
    }
    let relative = relative_path(name);
    let path = new_file::locate(&agents.places, args.scope, &relative)?;
    let definition = definition(args, &path)?;
    let text = write_markdown(&definition);
    let scope = AgentScope::Own(source);
    let read = read_markdown(&text, &path, &scope, &agents.places.agents.vocabulary);
    let problems = match read {
        Ok(Some(read)) => read.problems,
        Ok(None) => Vec::new(),
        Err(failed) => bail!("such an agent could not be read again: {}", failed.reason),
    };
    new_file::write(&path, &text)?;
    let written = WrittenFile {
        path: &path,
        purpose: "the text below its `---` is what the agent is told".to_owned(),
        warnings: &problems,
        rival: rival(&agents, name, source),
    };
    written.tell(Form::new(args.json));
    Ok(ExitCode::SUCCESS)
}

fn check(name: &str) -> anyhow::Result<()> {
    match check_name(name).and_then(|()| check_characters(name)) {
        Ok(()) => Ok(()),
        Err(reason) => bail!("the name `{}` {reason}", printable(name)),
    }
}

/// The path of an agent's file below a directory of definitions.
fn relative_path(name: &str) -> PathBuf {
    Path::new("agents").join(format!("{}.md", directory_name(name)))
}

/// Writes the file of a new agent, to be filled in, for a person who sits before a session; its path. Existing files stay.
pub(crate) fn write_new_agent(
    surroundings: &Surroundings,
    name: &str,
    is_own: bool,
) -> anyhow::Result<PathBuf> {
    check(name)?;
    let scope = if is_own { DefinitionScope::User } else { DefinitionScope::Project };
    let repository = repo_root(surroundings.project());
    let relative = relative_path(name);
    let path = new_file::locate_in(surroundings, repository.as_deref(), scope, &relative)?;
    let args = NewAgentArgs {
        name: name.to_owned(),
        description: None,
        tools: None,
        model: None,
        scope,
        json: false,
    };
    new_file::write(&path, &write_markdown(&definition(&args, &path)?))?;
    Ok(path)
}

fn definition(args: &NewAgentArgs, path: &Path) -> anyhow::Result<AgentDefinition> {
    let said = |text: &str| Located::new(text.trim().to_owned(), 1);
    let description = match args.description.as_deref().map(str::trim) {
        Some("") => bail!("--description says nothing: a description says when to use the agent"),
        Some(description) => description,
        None => "Say here when to use this agent, and when not.",
    };
    let origin = AgentOrigin { source: source_of(args.scope), path: path.to_owned(), plugin: None };
    let prompt = format!(
        "You are `{}`. Say here what you are for, and what you see of the work of others.\n\n\
         # Working\n- What to look at first, and how to continue.\n- What to leave alone.\n\n\
         # Handing back\nWhat your last message holds: it is all that the agent which asked you gets to see.",
        args.name
    );
    let mut definition =
        AgentDefinition::new(said(&args.name), said(description), said(&prompt), origin);
    if let Some(list) = &args.tools {
        let tools = names(&Value::plain(1, list.as_str())).map(|(names, _)| names);
        let tools = tools.filter(|tools| !tools.is_empty()).context("--tools names no tool")?;
        definition.tools = Some(Located::new(tools, 1));
    }
    definition.model = match args.model.as_deref().map(str::trim) {
        None => None,
        Some("") => bail!("--model names no model"),
        Some("inherit") => Some(Located::new(AgentModel::Inherit, 1)),
        Some(name) => Some(Located::new(AgentModel::Named(name.to_owned()), 1)),
    };
    Ok(definition)
}

/// A remark about another agent of the same name.
fn rival(agents: &KnownAgents, name: &str, source: AgentSource) -> Option<String> {
    let rival = agents.catalog.active.iter().find(|it| it.definition.name.value == name)?;
    let origin = &rival.definition.origin;
    let place = origin.path.display();
    Some(if origin.source > source {
        format!("`{name}` of {place} goes before it")
    } else {
        format!("it takes the place of `{name}` of {place}")
    })
}
