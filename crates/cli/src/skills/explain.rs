//! `centurion skills explain`: the text that a skill comes to, and what decides each part. No command of the text
//! is run: it is shown as what would be.

use std::process::ExitCode;

use anyhow::bail;
use centurion_config::Located;
use centurion_config::skills::{
    CommandForm, Expanded, Invocation, Piece, SkillCatalog, SkillCommand, SkillDefinition,
    SkillEntry, expand,
};
use centurion_protocol::SessionId;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::Skills;
use super::effects::EffectCheck;
use super::list::kind_name;
use crate::definitions::explained;
use crate::definitions::listing::Form;
use crate::definitions::places::PlaceArgs;
use crate::output::Output;

/// The id that stands where a session's would: there is none.
const NO_SESSION: &str = "00000000-0000-0000-0000-000000000000";

#[derive(Debug, Args)]
pub(super) struct ExplainSkillArgs {
    /// The skill's name
    name: String,

    /// The text that would stand behind the name; `--` goes before arguments that begin with a dash
    arguments: Vec<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    places: PlaceArgs,
}

/// A value, and what decided it.
#[derive(Debug, Serialize)]
struct Decided {
    value: Value,
    from: String,
}

#[derive(Debug, Serialize)]
struct ExplainedCommand {
    command: String,
    from: String,
}

/// Everything about one skill.
#[derive(Debug, Serialize)]
struct Explanation {
    #[serde(flatten)]
    identity: Identity,
    #[serde(flatten)]
    demands: RunDemands,
    /// The reason why the parts of it that act for the user are off, if so.
    withheld: Option<String>,
    /// Files whose name it takes.
    shadows: Vec<String>,
    commands: Vec<ExplainedCommand>,
    problems: Vec<String>,
    /// The expanded text, with commands as they are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// The name of the skill, and its invokers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: String,
    label: Option<Decided>,
    kind: &'static str,
    source: &'static str,
    path: String,
    description: Option<Decided>,
    when_to_use: Option<Decided>,
    argument_hint: Option<Decided>,
    arguments: Option<Decided>,
    user_invocable: Decided,
    model_invocable: Decided,
    license: Option<Decided>,
    compatibility: Option<Decided>,
    metadata: Option<Decided>,
}

/// The demands of the skill on its run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RunDemands {
    allowed_tools: Option<Decided>,
    disallowed_tools: Option<Decided>,
    model: Option<Decided>,
    effort: Option<Decided>,
    context: Option<Decided>,
    agent: Option<Decided>,
    background: Option<Decided>,
    hooks: Option<Decided>,
    paths: Option<Decided>,
    shell: Option<Decided>,
}

pub(super) fn run(args: &ExplainSkillArgs) -> anyhow::Result<ExitCode> {
    let skills = Skills::load(&args.places)?;
    let catalog = &skills.catalog;
    let name = args.name.strip_prefix('/').unwrap_or(&args.name);
    let entry = match catalog.resolve(name, None) {
        Ok(entry) => entry,
        Err(error) => match catalog.off.iter().find(|skill| skill.entry.name == name) {
            Some(skill) => bail!("`{}` in the settings switches `{name}` off", skill.by.as_str()),
            None => bail!("{error}\nhelp: `centurion skills list` shows all"),
        },
    };
    let read = catalog.read(&entry)?;
    let definition = &read.definition;
    let arguments = args.arguments.join(" ");
    let invocation = Invocation {
        arguments: &arguments,
        project_dir: &skills.places.surroundings.cwd,
        session: NO_SESSION.parse::<SessionId>()?,
        effort: definition.effort.as_ref().map(|effort| effort.value),
    };
    let expanded = expand(&definition.template(), &invocation)?;
    let runs_commands = skills.places.settings.skills().runs_commands;
    let reader = Reader { definition, entry: &entry };
    let mut explanation = reader.explain(catalog, &expanded, runs_commands);
    let without_effect = EffectCheck::load(&skills.places).problems(definition);
    let problems = read.problems.iter().chain(&without_effect);
    explanation.problems.extend(problems.map(ToString::to_string));
    print(explanation, Form::new(args.json))?;
    Ok(ExitCode::SUCCESS)
}

fn print(mut explanation: Explanation, form: Form) -> anyhow::Result<()> {
    let output = Output::default();
    if form == Form::Json {
        output.json_line(&explanation);
        return Ok(());
    }
    // It has many lines and comes last.
    let text = explanation.text.take().unwrap_or_default();
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}\n")).collect();
    output.write_text(&format!("{}text:\n{}", explained::text(&explanation)?, lines.concat()));
    Ok(())
}

/// Reads off a definition what was decided where.
struct Reader<'d> {
    definition: &'d SkillDefinition,
    entry: &'d SkillEntry,
}

impl Reader<'_> {
    fn explain(
        &self,
        catalog: &SkillCatalog,
        expanded: &Expanded,
        runs_commands: bool,
    ) -> Explanation {
        let beaten = catalog.shadowed.iter().filter(|skill| skill.entry.name == self.entry.name);
        Explanation {
            identity: self.identity(),
            demands: self.demands(),
            withheld: self.definition.withheld.as_ref().map(ToString::to_string),
            shadows: beaten.map(|it| it.entry.origin.path.display().to_string()).collect(),
            commands: self.commands(expanded, runs_commands),
            problems: Vec::new(),
            text: Some(shown(expanded)),
        }
    }

    fn identity(&self) -> Identity {
        let Self { definition, entry } = self;
        let origin = &definition.origin;
        let for_people = definition.user_invocable.as_ref();
        let not_for_models = definition.disable_model_invocation.as_ref();
        let mut model_invocable = self.flag(not_for_models, entry.card.for_models);
        if entry.card.for_models != definition.is_for_models() {
            "`skillOverrides` in the settings".clone_into(&mut model_invocable.from);
        }
        Identity {
            name: entry.name.clone(),
            label: self.decided(definition.label.as_ref()),
            kind: kind_name(origin.kind),
            source: origin.source.as_str(),
            path: origin.path.display().to_string(),
            description: self.summary(),
            when_to_use: self.decided(definition.when_to_use.as_ref()),
            argument_hint: self.decided(definition.argument_hint.as_ref()),
            arguments: self.decided(definition.arguments.as_ref()),
            user_invocable: self.flag(for_people, definition.is_for_people()),
            model_invocable,
            license: self.decided(definition.license.as_ref()),
            compatibility: self.decided(definition.compatibility.as_ref()),
            metadata: self.decided(definition.metadata.as_ref()),
        }
    }

    fn demands(&self) -> RunDemands {
        let definition = self.definition;
        let usual_agent = || {
            definition.fork.as_ref().map(|_| Decided {
                value: "general-purpose".into(),
                from: "the default of a fork".to_owned(),
            })
        };
        RunDemands {
            allowed_tools: self.power(definition.allowed_tools.as_ref()),
            disallowed_tools: self.decided(definition.disallowed_tools.as_ref()),
            model: self.decided(definition.model.as_ref()),
            effort: definition.effort.as_ref().map(|it| self.at(it.line, it.to_string().into())),
            context: definition.fork.as_ref().map(|it| self.at(it.line, "fork".into())),
            agent: self.decided(definition.agent.as_ref()).or_else(usual_agent),
            background: self.decided(definition.background.as_ref()),
            hooks: self.power(definition.hooks.as_ref()),
            paths: self.decided(definition.paths.as_ref()),
            shell: definition.shell.as_ref().map(|it| self.at(it.line, it.as_str().into())),
        }
    }

    fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.definition.origin.path.display())
    }

    fn at(&self, line: usize, value: Value) -> Decided {
        Decided { value, from: self.place(line) }
    }

    /// The decision of the frontmatter.
    fn decided<T: Clone + Into<Value>>(&self, said: Option<&Located<T>>) -> Option<Decided> {
        said.map(|said| self.at(said.line, said.value.clone().into()))
    }

    /// The same for what acts for the user, which may be off.
    fn power<T: Clone + Into<Value>>(&self, said: Option<&Located<T>>) -> Option<Decided> {
        let mut decided = self.decided(said)?;
        if self.definition.withheld.is_some() {
            decided.from.push_str("; off, see `withheld`");
        }
        Some(decided)
    }

    fn flag(&self, said: Option<&Located<bool>>, value: bool) -> Decided {
        let from = said.map_or("the default".to_owned(), |said| self.place(said.line));
        Decided { value: value.into(), from }
    }

    fn summary(&self) -> Option<Decided> {
        let line = self.definition.description.as_ref().map(|it| it.line);
        let line = line.unwrap_or(self.definition.body.line);
        self.definition.summary().map(|summary| self.at(line, summary.into()))
    }

    /// The commands, each with its line and why it would not run, if so.
    fn commands(&self, expanded: &Expanded, runs_commands: bool) -> Vec<ExplainedCommand> {
        let note = match (&self.definition.withheld, runs_commands) {
            (_, false) => "; not run: `disableSkillShellExecution` in the settings",
            (Some(_), true) => "; not run, see `withheld`",
            (None, true) => "",
        };
        let explain = |command: &SkillCommand| ExplainedCommand {
            command: command.text.clone(),
            from: format!("{}{note}", self.place(command.line)),
        };
        expanded.commands().map(explain).collect()
    }
}

/// A text with its commands as their author would write them.
fn shown(expanded: &Expanded) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.text.clone(),
        Piece::Command(command) => match command.form {
            CommandForm::Inline => format!("!`{}`", command.text),
            CommandForm::Block => format!("```!\n{}\n```", command.text),
        },
    };
    expanded.pieces.iter().map(piece).collect()
}
