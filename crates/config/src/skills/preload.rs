//! Skills that an agent knows from the start: their texts, ready for its first message.
//!
//! Nothing is run for them: a command in a skill's text stays text.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use centurion_protocol::SessionId;
use centurion_protocol::markup::contain;

use super::catalog::SkillCatalog;
use super::definition::{SkillDefinition, SkillKind};
use super::expand::{Invocation, fill_variables};
use super::resources::Resources;
use crate::agents::{AgentDefinition, AgentEffort};
use crate::{Located, Problem};

/// Most bytes of the texts of all skills of one agent together.
const MOST_BYTES: usize = 512 * 1024;

/// Surroundings of an agent that is given skills.
#[derive(Clone, Copy, Debug)]
pub struct Preload<'p> {
    pub catalog: &'p SkillCatalog,
    pub project_dir: &'p Path,
    pub session: SessionId,
    /// Effort of the agent. Where this is `None`, a skill that asks for it keeps the variable as it
    /// is.
    pub effort: Option<AgentEffort>,
}

/// The skills of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preloaded {
    /// In the order in which the agent names them, each once.
    pub skills: Vec<SkillText>,
    /// The same as they were read.
    pub definitions: Vec<SkillDefinition>,
    /// Problems for the author of the agent or of a skill.
    pub problems: Vec<Problem>,
}

/// One skill as an agent reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillText {
    pub name: String,
    /// Directory of its files.
    pub directory: PathBuf,
    pub body: String,
    pub resources: Resources,
}

impl Preload<'_> {
    /// The skills that an agent's definition names.
    pub fn for_agent(&self, agent: &AgentDefinition) -> Preloaded {
        match &agent.skills {
            Some(names) => self.load(names, &agent.origin.path, agent.origin.plugin.as_deref()),
            None => Preloaded::default(),
        }
    }

    /// The skills of a list that stands in a file, which may be part of a plugin.
    pub fn load(
        &self,
        names: &Located<Vec<String>>,
        file: &Path,
        plugin: Option<&str>,
    ) -> Preloaded {
        let mut preloaded = Preloaded::default();
        let mut seen = HashSet::new();
        let mut bytes = 0;
        for name in &names.value {
            let mut refuse = |message: String| {
                let (path, line) = (file.to_owned(), Some(names.line));
                preloaded.problems.push(Problem { path, line, message });
            };
            let skill = match self.catalog.resolve(name, plugin) {
                Ok(skill) => skill,
                Err(error) => {
                    refuse(format!("a skill is not loaded: {error}"));
                    continue;
                }
            };
            if !seen.insert(skill.name.clone()) {
                continue;
            }
            let skill = match self.catalog.read(&skill) {
                Ok(read) => read.definition,
                Err(error) => {
                    refuse(error.to_string());
                    continue;
                }
            };
            if !skill.is_for_models() {
                refuse(format!(
                    "the skill `{}` is not loaded: it says `disable-model-invocation`, so that only \
                     people may use it",
                    skill.name
                ));
                continue;
            }
            let text = self.text(&skill);
            bytes += text.body.len();
            if bytes > MOST_BYTES {
                refuse(format!(
                    "the skill `{}` and those after it are not loaded: together the texts are longer \
                     than {} KiB",
                    skill.name,
                    MOST_BYTES / 1024
                ));
                break;
            }
            preloaded.problems.extend(commands_problem(&skill));
            preloaded.skills.push(text);
            preloaded.definitions.push(skill);
        }
        preloaded
    }

    fn text(&self, skill: &SkillDefinition) -> SkillText {
        let Self { project_dir, session, effort, .. } = *self;
        let invocation = Invocation { arguments: "", project_dir, session, effort };
        SkillText::new(skill, fill_variables(&skill.template(), &invocation))
    }
}

impl SkillText {
    /// A skill with the text that it has for one invocation.
    pub fn new(skill: &SkillDefinition, body: String) -> Self {
        Self {
            name: skill.name.clone(),
            // A command lies alone: what is beside it is not its own.
            directory: match skill.origin.kind {
                SkillKind::Skill => skill.origin.directory().to_owned(),
                SkillKind::Command => PathBuf::new(),
            },
            body,
            resources: Resources::of(&skill.origin),
        }
    }

    /// The skill as a model reads it that asked for it.
    pub fn for_model(&self) -> String {
        let [_, text] = self.blocks();
        text
    }

    /// The blocks of text that stand in a person's message for the skill, as it was typed with these arguments.
    pub fn typed_blocks(&self, arguments: &str) -> [String; 2] {
        let [_, text] = self.blocks();
        let (name, arguments) = (escaped(&self.name), escaped(arguments));
        let head = format!(
            "<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n\
             <command-args>{arguments}</command-args>"
        );
        [head, text]
    }

    /// The blocks of text that stand for the skill in the agent's first message: which it is, and what
    /// it says.
    pub fn blocks(&self) -> [String; 2] {
        let name = escaped(&self.name);
        let head = format!(
            "<command-message>{name}</command-message>\n<command-name>{name}</command-name>\n\
             <skill-format>true</skill-format>"
        );
        let directory = self.directory.display().to_string();
        let directory: String = directory.chars().filter(|it| !it.is_control()).collect();
        let mut text = contain(&self.body).into_owned();
        // Commands and the program's own skills have no files.
        if self.directory.is_absolute() {
            text = format!("Base directory for this skill: {}\n\n{text}", contain(&directory));
        }
        let Resources { names, is_cut } = &self.resources;
        if !names.is_empty() {
            text.push_str("\n\nFiles of this skill, to be read when they are needed:");
            for name in names {
                text.push_str("\n- ");
                text.push_str(&contain(name));
            }
            if *is_cut {
                text.push_str("\n- and more");
            }
        }
        [head, text]
    }
}

/// A name between tags.
fn escaped(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Tells that commands in a skill's text are not run.
fn commands_problem(skill: &SkillDefinition) -> Option<Problem> {
    let commands = skill.command_parts();
    let mut lines = commands.iter().map(|command| command.line);
    let first = lines.next()?;
    let others = match lines.count() {
        0 => String::new(),
        1 => ", nor is one further down".to_owned(),
        more => format!(", nor are {more} further down"),
    };
    Some(Problem {
        path: skill.origin.path.clone(),
        line: Some(first),
        message: format!(
            "this command is not run when an agent is given the skill, and stays text{others}"
        ),
    })
}
