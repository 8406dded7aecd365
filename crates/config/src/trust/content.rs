//! Content of a folder that grants power: one item for each hook, server, rule or definition.
//!
//! An item counts if exactly this content was accepted. The text that is judged is the text that was
//! parsed, so that nothing can be exchanged between the two.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::commands::commands_of;
use super::programs::{Lookup, NamedFiles};
use super::{Trust, programs};
use crate::settings::RepositoryTrust;

/// Something in a file of a folder that grants power.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerItem {
    pub file: PathBuf,
    pub line: Option<usize>,
    /// Its kind, such as `permissions.allow` or ``agent `scout` ``.
    pub name: String,
    /// Its text, in one normal form.
    pub text: String,
    /// Texts that may name files which it runs.
    commands: Vec<String>,
    /// The directory in which they run, besides the usual places.
    work_tree: Option<PathBuf>,
}

impl PowerItem {
    /// A part of a JSON file. Every text in it may name a file that runs.
    pub(crate) fn of_value(file: &Path, line: Option<usize>, name: String, value: &Value) -> Self {
        let mut commands = Vec::new();
        collect_texts(value, &mut commands);
        Self::of_json(file, line, name, value, commands)
    }

    /// The hooks of a JSON file.
    pub(crate) fn of_hooks(file: &Path, line: Option<usize>, name: String, value: &Value) -> Self {
        let mut commands = Vec::new();
        collect_hook_texts(value, &mut commands);
        Self::of_json(file, line, name, value, commands)
    }

    fn of_json(
        file: &Path,
        line: Option<usize>,
        name: String,
        value: &Value,
        commands: Vec<String>,
    ) -> Self {
        Self {
            file: file.to_owned(),
            line,
            name,
            text: normal_form(value),
            commands,
            work_tree: None,
        }
    }

    /// A whole definition. Its hooks and servers may name files that run.
    pub(crate) fn of_text(
        file: &Path,
        line: Option<usize>,
        name: String,
        text: &str,
        (hooks, servers): (Option<&Value>, Option<&Value>),
    ) -> Self {
        let mut commands = Vec::new();
        if let Some(hooks) = hooks {
            collect_hook_texts(hooks, &mut commands);
        }
        if let Some(servers) = servers {
            collect_texts(servers, &mut commands);
        }
        Self { file: file.to_owned(), line, name, text: text.to_owned(), commands, work_tree: None }
    }

    /// The same with more commands, which may name files in a directory of their own.
    pub(crate) fn with_commands(
        mut self,
        commands: impl Iterator<Item = String>,
        directory: &Path,
    ) -> Self {
        self.commands.extend(commands);
        self.work_tree = Some(directory.to_owned());
        self
    }

    /// The texts in it that may name files which it runs.
    pub(crate) fn commands(&self) -> &[String] {
        &self.commands
    }

    /// The directory whose definitions the file belongs to.
    pub(super) fn base(&self) -> &Path {
        definitions_base(&self.file)
    }

    /// Commands that git runs in a work tree.
    pub(crate) fn of_commands(
        file: &Path,
        name: String,
        commands: &[String],
        work_tree: &Path,
    ) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            name,
            text: commands.join("\n"),
            commands: commands.to_vec(),
            work_tree: Some(work_tree.to_owned()),
        }
    }

    /// The same as data that names nothing that runs.
    pub(crate) fn without_programs(self) -> Self {
        Self { commands: Vec::new(), ..self }
    }

    /// The files within a folder that it runs, as far as its texts name them.
    pub(super) fn programs(
        &self,
        root: &Path,
        start_dir: Option<&Path>,
        home: Option<&Path>,
    ) -> NamedFiles {
        let places: Vec<&Path> = [self.base(), root]
            .into_iter()
            .chain(start_dir)
            .chain(self.work_tree.as_deref())
            .collect();
        programs::named_files(&self.commands, &Lookup { places: &places, root, home })
    }

    pub(super) fn digest(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex().to_string()
    }
}

/// The directory whose definitions a file belongs to: the one with `.claude` or `.mcp.json` in it.
pub(super) fn definitions_base(file: &Path) -> &Path {
    let is_definitions = |directory: &&Path| {
        directory.file_name().is_some_and(|name| name == ".claude" || name == ".centurion")
    };
    let definitions = file.ancestors().skip(1).find(is_definitions);
    definitions.unwrap_or(file).parent().unwrap_or(Path::new("/"))
}

/// Every text in servers, variables and the like: any of them may name a file which runs.
pub fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    collect(value, &[], texts);
}

/// Every text in hooks that may name a file which runs.
pub fn collect_hook_texts(hooks: &Value, texts: &mut Vec<String>) {
    /// Members whose texts are patterns of other things, or words for a model or a person.
    const OTHERS: [&str; 5] = ["matcher", "if", "prompt", "description", "statusMessage"];
    collect(hooks, &OTHERS, texts);
}

/// Collects all texts but those of the members with these names.
fn collect(value: &Value, passed_over: &[&str], texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, passed_over, texts)),
        Value::Object(members) => {
            let command = members.get("command").and_then(Value::as_str);
            let args = members.get("args").and_then(Value::as_array);
            let joined = command.zip(args).map(|(command, args)| {
                let words = std::iter::once(command).chain(args.iter().filter_map(Value::as_str));
                commands_of(&words.collect::<Vec<_>>())
            });
            for (name, item) in members {
                let is_joined = joined.is_some() && (name == "command" || name == "args");
                if !is_joined && !passed_over.contains(&name.as_str()) {
                    collect(item, passed_over, texts);
                }
            }
            texts.extend(joined.into_iter().flatten());
        }
        _ => {}
    }
}

/// A value as text that does not depend on how it was written.
fn normal_form(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(sorted).collect(),
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| *name);
                let members = members.into_iter().map(|(name, it)| (name.clone(), sorted(it)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }
    serde_json::to_string_pretty(&sorted(value)).unwrap_or_default()
}

/// The acceptance that is enough for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// That of the item's own folder.
    Folder,
    /// That of its folder, or of one above it.
    Parent,
}

/// The reason why an item does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unaccepted {
    /// Its folder is not trusted.
    Untrusted,
    /// Its folder is trusted, and no content of it was ever accepted.
    Unrecorded,
    /// It was not there when its folder was trusted.
    New,
    /// It said something else when its folder was trusted.
    Changed,
    /// A file that it runs said something else, or was not there.
    Program(PathBuf),
    /// It names more files than are looked at: what it runs is not known.
    TooManyFiles,
    /// The whole of it cannot be read, and so not compared.
    Unreadable(String),
    /// Only a repository that is not trusted switches its plugin on, for this reason.
    Plugin(String),
}

impl Error for Unaccepted {}

impl fmt::Display for Unaccepted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HELP: &str =
            "help: `centurion trust` shows the difference, `centurion trust grant` accepts it";
        match self {
            Self::Untrusted => formatter.write_str(
                "the repository brings it, and this folder is not trusted; \
                 help: `centurion trust` says more",
            ),
            Self::Unrecorded => formatter.write_str(
                "this folder is trusted, but what its files say was never accepted; \
                 help: `centurion trust` shows it, `centurion trust grant` accepts it",
            ),
            Self::New => write!(formatter, "it is new since this folder was trusted; {HELP}"),
            Self::Changed => {
                write!(formatter, "it has changed since this folder was trusted; {HELP}")
            }
            Self::Program(file) => write!(
                formatter,
                "`{}`, which it runs, is new or has changed since this folder was trusted; {HELP}",
                file.display()
            ),
            Self::TooManyFiles => formatter.write_str(
                "it names more files than are compared with what was accepted; \
                 help: let it run one script that names them",
            ),
            Self::Unreadable(why) => {
                write!(formatter, "it cannot be compared with what was accepted: {why}")
            }
            Self::Plugin(reason) => formatter.write_str(reason),
        }
    }
}

/// Says which contents were accepted. The default accepts nothing.
#[derive(Clone, Default)]
pub struct ContentTrust(ContentJudge);

#[derive(Clone, Default)]
enum ContentJudge {
    #[default]
    Nothing,
    /// Contents count as they are, as far as this reaches.
    AsItIs(RepositoryTrust),
    Answered(Arc<Trust>),
}

impl ContentTrust {
    /// Lets whatever a folder holds count for one run, as far as this reaches.
    pub fn for_this_run(standing: RepositoryTrust) -> Self {
        Self(ContentJudge::AsItIs(standing))
    }

    /// The trust in all folders that are remembered.
    pub fn remembered(trust: Arc<Trust>) -> Self {
        Self(ContentJudge::Answered(trust))
    }

    /// Whether an item counts, and if not, why.
    pub fn judge(&self, item: &PowerItem, reach: Reach) -> Result<(), Unaccepted> {
        match &self.0 {
            ContentJudge::Nothing => Err(Unaccepted::Untrusted),
            ContentJudge::AsItIs(standing) => match (reach, standing) {
                (_, RepositoryTrust::Full) | (Reach::Parent, RepositoryTrust::Partly) => Ok(()),
                _ => Err(Unaccepted::Untrusted),
            },
            ContentJudge::Answered(trust) => trust.judge(item, reach),
        }
    }
}

impl PartialEq for ContentTrust {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (ContentJudge::Nothing, ContentJudge::Nothing) => true,
            (ContentJudge::AsItIs(one), ContentJudge::AsItIs(other)) => one == other,
            (ContentJudge::Answered(one), ContentJudge::Answered(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for ContentTrust {}

impl fmt::Debug for ContentTrust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            ContentJudge::Nothing => "ContentTrust(nothing)",
            ContentJudge::AsItIs(_) => "ContentTrust(as it is)",
            ContentJudge::Answered(_) => "ContentTrust(answered)",
        })
    }
}

/// The trust that the folder of a run has.
#[derive(Clone, Debug, Default)]
pub struct FolderTrust {
    pub standing: RepositoryTrust,
    pub content: ContentTrust,
}

/// Contents count as they are, for one run.
impl From<RepositoryTrust> for FolderTrust {
    fn from(standing: RepositoryTrust) -> Self {
        Self { standing, content: ContentTrust::for_this_run(standing) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn how_a_value_is_written_makes_no_difference() {
        let one: Value = serde_json::from_str(r#"{"b": [1, {"y": 2, "x": 1}], "a": 1}"#).unwrap();
        let other = json!({"a": 1, "b": [1, {"x": 1, "y": 2}]});
        assert_eq!(normal_form(&one), normal_form(&other));
        assert_ne!(normal_form(&one), normal_form(&json!({"a": 1, "b": [{"x": 1, "y": 2}, 1]})));
    }

    #[test]
    fn an_item_belongs_to_the_directory_with_the_definitions() {
        for (file, base) in [
            ("/p/.claude/settings.json", "/p"),
            ("/p/sub/.centurion/agents/deep/x.md", "/p/sub"),
            ("/p/.claude/worktrees/w/.claude/skills/s/SKILL.md", "/p/.claude/worktrees/w"),
            ("/p/sub/.mcp.json", "/p/sub"),
        ] {
            let item = PowerItem::of_value(Path::new(file), None, String::new(), &Value::Null);
            assert_eq!(item.base(), Path::new(base), "{file}");
        }
    }

    #[test]
    fn nothing_is_accepted_unless_the_user_says_so() {
        let item = PowerItem::of_value(Path::new("/p/.mcp.json"), None, "x".into(), &Value::Null);
        let judge = |trust: &ContentTrust, reach| trust.judge(&item, reach).is_ok();
        let nothing = ContentTrust::default();
        assert!(!judge(&nothing, Reach::Folder) && !judge(&nothing, Reach::Parent));
        let partly = ContentTrust::for_this_run(RepositoryTrust::Partly);
        assert!(!judge(&partly, Reach::Folder) && judge(&partly, Reach::Parent));
    }
}
