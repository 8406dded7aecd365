//! Definitions of skills and commands, as their authors wrote them.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use thiserror::Error;

use crate::Problem;
use crate::agents::{AgentEffort, NameError, check_skill_name};
use crate::fields::{Fields, Located, Weight, WordError};
use crate::frontmatter::{self, Grammar, LineNote, Page, Shape};
use crate::memory::{relative_globs, split_globs};
use crate::plugins::PluginVariables;
use crate::settings::printable;
use crate::trust::Unaccepted;

/// Grammar of frontmatter of skills and commands that is no YAML.
pub const SKILL_GRAMMAR: Grammar<'static> = Grammar { known: &SKILL_KEYS, raw: &["argument-hint"] };

/// The keys that a skill or command may have.
pub const SKILL_KEYS: [&str; 20] = [
    "name",
    "description",
    "when_to_use",
    "argument-hint",
    "arguments",
    "disable-model-invocation",
    "user-invocable",
    "allowed-tools",
    "disallowed-tools",
    "model",
    "effort",
    "context",
    "agent",
    "background",
    "hooks",
    "paths",
    "shell",
    "metadata",
    "license",
    "compatibility",
];

/// Keys from elsewhere, and what to do about them.
const SYNONYMS: [(&str, &str); 3] = [
    ("when-to-use", "write `when_to_use`"),
    ("args", "write `argument-hint`"),
    ("user-invokable", "write `user-invocable`"),
];

/// A skill or command.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillDefinition {
    /// By which it is invoked; that of a plugin's begins with the plugin's name.
    pub name: String,
    /// Its own label, which is only shown.
    pub label: Option<Located<String>>,
    /// Its description; see [`SkillDefinition::summary`].
    pub description: Option<Located<String>>,
    pub when_to_use: Option<Located<String>>,
    pub argument_hint: Option<Located<String>>,
    /// Names for its arguments, in order.
    pub arguments: Option<Located<Vec<String>>>,
    /// Set where only a person may invoke it.
    pub disable_model_invocation: Option<Located<bool>>,
    /// Set where a person may invoke it.
    pub user_invocable: Option<Located<bool>>,
    /// Tools that need not be asked about while it is carried out.
    pub allowed_tools: Option<Located<Vec<String>>>,
    pub disallowed_tools: Option<Located<Vec<String>>>,
    pub model: Option<Located<String>>,
    pub effort: Option<Located<AgentEffort>>,
    /// The agent that carries it out in a context of its own, if it asks for one.
    pub fork: Option<Located<()>>,
    pub agent: Option<Located<String>>,
    pub background: Option<Located<bool>>,
    pub hooks: Option<Located<Json>>,
    /// Globs of the files that it is about.
    pub paths: Option<Located<Vec<String>>>,
    pub shell: Option<Located<Shell>>,
    /// Data for other programs.
    pub metadata: Option<Located<Json>>,
    pub license: Option<Located<Json>>,
    pub compatibility: Option<Located<Json>>,
    pub body: Located<String>,
    /// Reason for which its hooks, its commands and the tools that it allows do not count.
    pub withheld: Option<Unaccepted>,
    /// Variables that the texts of its plugin may name.
    pub plugin_variables: PluginVariables,
    pub origin: SkillOrigin,
}

impl SkillDefinition {
    /// A rule of its lists of tools, with the directories and the values of its plugin that it names, in one pass. What
    /// is put in cannot mean more than itself: a value that has syntax of rules in it is refused.
    pub fn fill_rule(&self, rule: &str, project_dir: &Path) -> Result<String, RuleValueError> {
        let (mut filled, mut rest) = (String::with_capacity(rule.len()), rule);
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let named = after.split_once('}');
            let value = named.and_then(|(name, _)| self.rule_value(name, project_dir));
            let (Some((name, behind)), Some(value)) = (named, value) else {
                filled.push_str("${");
                rest = after;
                continue;
            };
            let is_syntax = |it: char| it.is_control() || RULE_SYNTAX.contains(it);
            if let Some(character) = value.chars().find(|it| is_syntax(*it)) {
                let (rule, name) = (rule.to_owned(), name.to_owned());
                return Err(RuleValueError { rule, name, character });
            }
            filled.push_str(&value);
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// The value of a variable in a rule.
    fn rule_value(&self, name: &str, project_dir: &Path) -> Option<String> {
        match name {
            "CLAUDE_SKILL_DIR" => Some(self.origin.directory().display().to_string()),
            "CLAUDE_PROJECT_DIR" => Some(project_dir.display().to_string()),
            _ => self.plugin_variables.iter().find(|(it, _)| *it == name).map(|it| it.1.to_owned()),
        }
    }

    /// Checks that a model may invoke it.
    pub fn is_for_models(&self) -> bool {
        !self.disable_model_invocation.as_ref().is_some_and(|it| it.value)
    }

    /// Checks that a person may invoke it.
    pub fn is_for_people(&self) -> bool {
        self.user_invocable.as_ref().is_none_or(|it| it.value)
    }

    /// Its purpose: its description, or else the first line of its text.
    pub fn summary(&self) -> Option<&str> {
        let first = || self.body.lines().next().map(|line| line.trim_start_matches('#').trim());
        let summary = self.description.as_ref().map(|it| it.as_str()).or_else(first);
        summary.filter(|summary| !summary.is_empty())
    }
}

/// Characters that mean something in the patterns of rules.
const RULE_SYNTAX: &str = "*?[]{}()\\";

/// The reason why a value cannot stand in a rule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "the rule `{rule}` is off: the value of `{name}` holds {character:?}, which would mean something in a rule"
)]
pub struct RuleValueError {
    rule: String,
    name: String,
    character: char,
}

/// Shell that runs the commands in a skill's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Bash,
    PowerShell,
}

impl Shell {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::PowerShell => "powershell",
        }
    }
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkillKind {
    /// A file that lies alone.
    Command,
    /// A directory with a `SKILL.md`.
    Skill,
}

/// The source of a skill, the weakest first. A person's own goes before a project's, other than with agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkillSource {
    Bundled,
    Plugin,
    Project,
    User,
    Managed,
}

impl SkillSource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundled => "bundled",
            Self::Plugin => "plugin",
            Self::Project => "project",
            Self::User => "user",
            Self::Managed => "managed",
        }
    }
}

/// Origin of a skill or command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillOrigin {
    pub source: SkillSource,
    pub kind: SkillKind,
    pub path: PathBuf,
    /// The plugin that brought it.
    pub plugin: Option<String>,
}

impl SkillOrigin {
    /// The directory with what else belongs to it.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// The name that the place gives: of the directory for a skill, of the file for a command.
    pub(super) fn place_name(&self) -> String {
        let name = match self.kind {
            SkillKind::Skill => self.directory().file_name(),
            SkillKind::Command => self.path.file_stem(),
        };
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// Reasons for which a file is no skill.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SkillFileError {
    #[error("the name `{name}` {reason}")]
    BadName { name: String, reason: NameError },
}

/// Reads a file's text, whose lines end with `\n`. Everything in the frontmatter may be missing.
pub fn read_skill(
    text: &str,
    origin: SkillOrigin,
) -> Result<(SkillDefinition, Vec<Problem>), SkillFileError> {
    // A skill is its text: where the frontmatter cannot be told apart, it has none.
    let (page, failure) = match frontmatter::read(text, &SKILL_GRAMMAR) {
        Ok(page) => (page, None),
        Err(error) => {
            let page = Page { frontmatter: None, body: text.to_owned(), body_line: 1 };
            (page, Some(LineNote { line: 1, message: error.to_string() }))
        }
    };
    let (members, mut notes) =
        page.frontmatter.map(|front| (front.members, front.notes)).unwrap_or_default();
    notes.extend(failure);
    let mut fields = Fields::new(members);
    let label = fields.word("name");
    let name = invocation_name(&mut fields, label.as_ref(), &origin)?;
    let (body, line) = crate::agents::trimmed(&page.body, page.body_line);
    let body = Located::new(body, line);
    let definition = SkillDefinition {
        name,
        label,
        description: fields.text("description"),
        when_to_use: fields.text("when_to_use"),
        argument_hint: fields.word("argument-hint"),
        arguments: fields.names("arguments"),
        disable_model_invocation: fields.flag("disable-model-invocation"),
        user_invocable: fields.flag("user-invocable"),
        allowed_tools: allowed_tools(&mut fields),
        disallowed_tools: fields.names("disallowed-tools"),
        model: fields.word("model"),
        effort: crate::agents::effort(&mut fields),
        fork: fields.one_of("context", |text| match text {
            "fork" => Ok(()),
            _ => Err(WordError::Unknown("fork")),
        }),
        agent: fields.word("agent"),
        background: fields.flag("background"),
        hooks: fields.json("hooks", "a map of events", |it| matches!(it.shape, Shape::Map(_))),
        paths: paths(&mut fields),
        shell: fields.one_of("shell", |text| match text {
            "bash" => Ok(Shell::Bash),
            "powershell" => Ok(Shell::PowerShell),
            _ => Err(WordError::Unknown("bash or powershell")),
        }),
        metadata: fields.json("metadata", "a map", |_| true),
        license: fields.json("license", "text", |_| true),
        compatibility: fields.json("compatibility", "text", |_| true),
        body,
        withheld: None,
        plugin_variables: PluginVariables::default(),
        origin,
    };
    let path = &definition.origin.path;
    let problem = |line, message| Problem { path: path.clone(), line: Some(line), message };
    let remarks = fields.finish(&SKILL_KEYS, &SYNONYMS).into_iter();
    let problems = notes
        .into_iter()
        .map(|note| problem(note.line, note.message))
        .chain(remarks.map(|remark| problem(remark.line, remark.message)))
        .collect();
    Ok((definition, problems))
}

/// The name of the place; a plugin's skill may name itself, and has the plugin's name before it.
fn invocation_name(
    fields: &mut Fields,
    label: Option<&Located<String>>,
    origin: &SkillOrigin,
) -> Result<String, SkillFileError> {
    if let (Some(plugin), Some(label), SkillKind::Skill) = (&origin.plugin, label, origin.kind) {
        match check_skill_name(label) {
            Ok(()) => return Ok(format!("{plugin}:{}", label.value)),
            Err(reason) => {
                let message =
                    format!("the name `{}` {reason}; the directory's is used", label.value);
                fields.remark("name", label.line, Weight::Invalid, &message);
            }
        }
    }
    let name = origin.place_name();
    if let Err(reason) = check_skill_name(&name) {
        return Err(SkillFileError::BadName { name: printable(&name), reason });
    }
    Ok(match &origin.plugin {
        Some(plugin) => format!("{plugin}:{name}"),
        None => name,
    })
}

/// The tools under the name that the key has, or one of those that people give it.
fn allowed_tools(fields: &mut Fields) -> Option<Located<Vec<String>>> {
    let mut tools = fields.names("allowed-tools");
    for key in ["allowed_tools", "tools"] {
        if tools.is_none() {
            tools = fields.names(key);
            if let Some(tools) = &tools {
                let message = format!("`{key}` is read as `allowed-tools`; write that");
                fields.remark(key, tools.line, Weight::Advice, &message);
            }
        }
    }
    tools
}

/// Globs, in which commas inside of braces keep nothing apart.
fn paths(fields: &mut Fields) -> Option<Located<Vec<String>>> {
    let member = fields.take("paths")?;
    let lists: Option<Vec<&str>> = match &member.value.shape {
        Shape::List(items) => items.iter().map(|item| item.as_text()).collect(),
        _ => member.value.as_text().map(|list| vec![list]),
    };
    let Some(lists) = lists else {
        let message = "`paths` must be a list of globs; it is ignored".to_owned();
        fields.remark("paths", member.line, Weight::Invalid, &message);
        return None;
    };
    let globs: Vec<String> =
        lists.iter().flat_map(|list| split_globs(list)).map(str::to_owned).collect();
    if let Err(error) = relative_globs(&globs) {
        let message = format!("`paths` is ignored: {error}");
        fields.remark("paths", member.line, Weight::Invalid, &message);
        return None;
    }
    Some(Located::new(globs, member.line))
}
