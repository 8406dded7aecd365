//! `centurion skills new`: the file of a skill, to be filled in.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use centurion_config::agents::{check_characters, check_skill_name};
use centurion_config::frontmatter::{self, Member, Shape, Value, names};
use centurion_config::skills::{SkillCatalog, SkillKind, SkillOrigin, SkillSource, read_skill};
use clap::Args;

use super::Skills;
use crate::definitions::listing::Form;
use crate::definitions::new_file::{self, DefinitionScope, WrittenFile};
use crate::definitions::places::PlaceArgs;
use crate::output::printable;

#[derive(Debug, Args)]
pub(super) struct NewSkillArgs {
    /// The name of the skill, which is typed as /NAME
    name: String,

    /// The description of the skill: what it does, and when to use it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Tools that need not be asked about while the skill is in force, with commas
    #[arg(long, value_name = "NAMES")]
    tools: Option<String>,

    /// Let an agent of its own carry it out
    #[arg(long)]
    fork: bool,

    /// The owner of the skill
    #[arg(long, value_enum, default_value = "project")]
    scope: DefinitionScope,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const BODY: &str = "\
Say here what to do, one rule a line.

What to work on: $ARGUMENTS

# Result
Say here what the result looks like, and how to check it.
";

pub(super) fn run(args: &NewSkillArgs) -> anyhow::Result<ExitCode> {
    let name = args.name.as_str();
    if let Err(reason) = check_skill_name(name).and_then(|()| check_characters(name)) {
        bail!("the name `{}` {reason}", printable(name));
    }
    let skills = Skills::load(&PlaceArgs::default())?;
    let source = match args.scope {
        DefinitionScope::Project => SkillSource::Project,
        DefinitionScope::User => SkillSource::User,
    };
    let relative = Path::new("skills").join(name).join("SKILL.md");
    let path = new_file::locate(&skills.places, args.scope, &relative)?;
    let origin = SkillOrigin { source, kind: SkillKind::Skill, path, plugin: None };
    if let Some(existing) = equal(&skills.catalog, name, &origin) {
        bail!("there is a skill `{name}` already, in {}", existing.path.display());
    }
    let front = frontmatter::write(&members(args)?);
    let text = format!("---\n{front}---\n{BODY}");
    let (_, problems) =
        read_skill(&text, origin.clone()).context("such a skill could not be read again")?;
    new_file::write(&origin.path, &text)?;
    let written = WrittenFile {
        path: &origin.path,
        purpose: format!("the text below its `---` is what `/{name}` comes to"),
        warnings: &problems,
        rival: rival(&skills.catalog, name, &origin),
    };
    written.tell(Form::new(args.json));
    Ok(ExitCode::SUCCESS)
}

fn members(args: &NewSkillArgs) -> anyhow::Result<Vec<Member>> {
    let description = match args.description.as_deref().map(str::trim) {
        Some("") => bail!("--description says nothing: a description says when to use the skill"),
        Some(description) => description,
        None => "Say here what this skill does, and when to use it.",
    };
    let member = |key: &str, value| Member { key: key.to_owned(), line: 1, value };
    let mut members = vec![member("description", Value::quoted(1, description))];
    if let Some(list) = &args.tools {
        let tools = names(&Value::plain(1, list.as_str())).map(|(names, _)| names);
        let tools = tools.filter(|tools| !tools.is_empty()).context("--tools names no tool")?;
        let items = tools.iter().map(|tool| Value::quoted(1, tool)).collect();
        members.push(member("allowed-tools", Value::new(1, Shape::List(items))));
    }
    if args.fork {
        members.push(member("context", Value::plain(1, "fork")));
    }
    Ok(members)
}

/// The skill of the same owner with the same name.
fn equal<'c>(catalog: &'c SkillCatalog, name: &str, new: &SkillOrigin) -> Option<&'c SkillOrigin> {
    let shadowed = catalog.shadowed.iter().map(|skill| &skill.entry);
    let off = catalog.off.iter().map(|skill| &skill.entry);
    let all = catalog.active.iter().chain(shadowed).chain(off);
    all.filter(|entry| entry.name == name)
        .map(|entry| &entry.origin)
        .find(|origin| origin.source == new.source && origin.kind == new.kind)
}

/// A remark about another skill or command of the same name.
fn rival(catalog: &SkillCatalog, name: &str, new: &SkillOrigin) -> Option<String> {
    let rival = catalog.active.iter().find(|entry| entry.name == name)?;
    let place = rival.origin.path.display();
    // A skill goes before all commands.
    let is_stronger = (rival.origin.kind, rival.origin.source) > (new.kind, new.source);
    Some(if is_stronger {
        format!("`{name}` of {place} goes before it")
    } else {
        format!("it takes the place of `{name}` of {place}")
    })
}
