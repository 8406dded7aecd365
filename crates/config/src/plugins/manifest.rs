//! A plugin's manifest: what it says about itself and where its parts are.
//!
//! A known field of the wrong type is an error, with its line: a plugin that is not what its author meant
//! does not load. An unknown field is reported and otherwise ignored.

use std::path::{Path, PathBuf};

use super::name::check_plugin_name;
use super::options::{UserOption, read_options};
use crate::Problem;
use crate::fields::Located;
use crate::settings::document::{self, Json, JsonMember, Node};
use crate::settings::{closest, printable};

/// The most unknown fields that are told.
const MOST_UNKNOWN: usize = 20;

/// The manifest of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub name: String,
    pub display_name: Option<String>,
    pub version: Option<String>,
    pub description: Option<String>,
    /// The name of who wrote it.
    pub author: Option<String>,
    pub homepage: Option<String>,
    pub repository: Option<String>,
    pub license: Option<String>,
    pub keywords: Vec<String>,
    /// Whether it is on by default.
    pub default_enabled: bool,
    pub(super) parts: NamedParts,
    pub(super) options: Vec<UserOption>,
}

/// The parts that a manifest names, besides those that lie where all plugins have them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NamedParts {
    pub(super) agents: Vec<Located<String>>,
    pub(super) skills: Vec<Located<String>>,
    /// Paths of commands. If it is given, `commands/` does not count.
    pub(super) commands: Option<Vec<Located<String>>>,
    pub(super) hooks: Vec<Reference>,
    pub(super) servers: Vec<Reference>,
    /// The agent that the main conversation runs as.
    pub(super) agent: Option<Located<String>>,
}

/// Something that is in another file or right here.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reference {
    File(Located<String>),
    Inline(Node),
}

/// The shape of a field's value.
#[derive(Clone, Copy)]
enum FieldShape {
    Text,
    TextOrObject,
    Switch,
    Texts,
    /// A path or a list of them.
    Paths,
    /// The same, or an object of names and where each command is.
    Commands,
    /// A path, an object, or a list of either.
    References,
    Object,
    Anything,
}

/// The use that this program makes of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    /// It says nothing that a program would act on.
    Idle,
    /// It asks for something that is not there yet.
    NotYet,
}

const FIELDS: [(&str, FieldShape, Use); 26] = [
    ("$schema", FieldShape::Text, Use::Idle),
    ("name", FieldShape::Text, Use::Read),
    ("displayName", FieldShape::Text, Use::Read),
    ("version", FieldShape::Text, Use::Read),
    ("description", FieldShape::Text, Use::Read),
    ("author", FieldShape::TextOrObject, Use::Read),
    ("homepage", FieldShape::Text, Use::Read),
    ("repository", FieldShape::TextOrObject, Use::Read),
    ("license", FieldShape::Text, Use::Read),
    ("keywords", FieldShape::Texts, Use::Read),
    ("metadata", FieldShape::Anything, Use::Idle),
    ("defaultEnabled", FieldShape::Switch, Use::Read),
    ("agents", FieldShape::Paths, Use::Read),
    ("skills", FieldShape::Paths, Use::Read),
    ("commands", FieldShape::Commands, Use::Read),
    ("hooks", FieldShape::References, Use::Read),
    ("mcpServers", FieldShape::References, Use::Read),
    ("userConfig", FieldShape::Object, Use::Read),
    ("settings", FieldShape::Object, Use::Read),
    ("workflows", FieldShape::Paths, Use::NotYet),
    ("outputStyles", FieldShape::Paths, Use::NotYet),
    ("lspServers", FieldShape::References, Use::NotYet),
    ("experimental", FieldShape::Anything, Use::NotYet),
    ("channels", FieldShape::Anything, Use::NotYet),
    ("dependencies", FieldShape::Anything, Use::NotYet),
    ("monitors", FieldShape::Anything, Use::NotYet),
];

/// The folder of the better place.
pub(super) const PLUGIN_FOLDER: &str = ".claude-plugin";

/// The paths of a manifest, the better one first.
pub(super) const PLACES: [&str; 2] = [".claude-plugin/plugin.json", "plugin.json"];

impl Manifest {
    /// The manifest of a plugin without one.
    pub(super) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            display_name: None,
            version: None,
            description: None,
            author: None,
            homepage: None,
            repository: None,
            license: None,
            keywords: Vec::new(),
            default_enabled: true,
            parts: NamedParts::default(),
            options: Vec::new(),
        }
    }
}

/// Reads the text of a manifest. What is wrong with it is the error; what its author should know besides
/// comes with it.
pub(super) fn read_manifest(
    text: &str,
    path: &Path,
) -> Result<(Manifest, Vec<Problem>), Vec<Problem>> {
    let mut reader =
        ManifestReader { path: path.to_owned(), errors: Vec::new(), remarks: Vec::new() };
    let root = document::parse(text).map_err(|error| {
        vec![Problem { path: path.to_owned(), line: error.line(), message: error.to_string() }]
    })?;
    let manifest = reader.manifest(&root);
    match manifest {
        Some(manifest) if reader.errors.is_empty() => Ok((manifest, reader.remarks)),
        _ => Err(reader.errors),
    }
}

struct ManifestReader {
    path: PathBuf,
    errors: Vec<Problem>,
    remarks: Vec<Problem>,
}

impl ManifestReader {
    fn problem(&self, line: usize, message: String) -> Problem {
        Problem { path: self.path.clone(), line: Some(line), message }
    }

    fn error(&mut self, line: usize, message: String) {
        let problem = self.problem(line, message);
        self.errors.push(problem);
    }

    fn remark(&mut self, line: usize, message: String) {
        let problem = self.problem(line, message);
        self.remarks.push(problem);
    }

    fn manifest(&mut self, root: &Node) -> Option<Manifest> {
        let Json::Object(members) = &root.json else {
            self.error(root.line, format!("must be an object, and is {}", root.kind()));
            return None;
        };
        self.check_fields(members);
        let Some(name) = root.get("name") else {
            self.error(root.line, "has no `name`".to_owned());
            return None;
        };
        let Json::Text(text) = &name.json else { return None };
        if let Err(error) = check_plugin_name(text) {
            self.error(name.line, error.to_string());
            return None;
        }
        if !self.errors.is_empty() {
            return None;
        }
        let text = |key: &str| root.get(key).and_then(text_of);
        let (options, mut errors) = match root.get("userConfig") {
            Some(node) => read_options(node, &self.path),
            None => (Vec::new(), Vec::new()),
        };
        self.errors.append(&mut errors);
        Some(Manifest {
            display_name: text("displayName"),
            version: text("version"),
            description: text("description"),
            author: root.get("author").and_then(|it| text_or_member(it, "name")),
            homepage: text("homepage"),
            repository: root.get("repository").and_then(|it| text_or_member(it, "url")),
            license: text("license"),
            keywords: root.get("keywords").map(texts_of).unwrap_or_default(),
            default_enabled: root
                .get("defaultEnabled")
                .is_none_or(|it| it.json == Json::Bool(true)),
            parts: NamedParts {
                agents: root.get("agents").map(paths_of).unwrap_or_default(),
                skills: root.get("skills").map(paths_of).unwrap_or_default(),
                commands: root.get("commands").map(command_paths),
                hooks: root.get("hooks").map(references_of).unwrap_or_default(),
                servers: root.get("mcpServers").map(references_of).unwrap_or_default(),
                agent: self.agent(root.get("settings")),
            },
            options,
            ..Manifest::named(&text("name").unwrap_or_default())
        })
    }

    /// Tells of fields of the wrong type, and of those that do nothing.
    fn check_fields(&mut self, members: &[JsonMember]) {
        let known = FIELDS.map(|(name, ..)| name);
        let mut unknown = 0;
        for JsonMember { name, node } in members {
            let Some((_, shape, purpose)) = FIELDS.iter().find(|(field, ..)| field == name) else {
                unknown += 1;
                if unknown <= MOST_UNKNOWN {
                    let meant = closest(name, &known).map(|it| format!("; did you mean `{it}`?"));
                    let name = printable(name);
                    let message =
                        format!("`{name}` is unknown and ignored{}", meant.unwrap_or_default());
                    self.remark(node.line, message);
                }
                continue;
            };
            if !fits(*shape, node) {
                let (wanted, found) = (wanted(*shape), node.kind());
                self.error(node.line, format!("`{name}` must be {wanted}, and is {found}"));
            } else if *purpose == Use::NotYet {
                self.remark(node.line, format!("`{name}` does nothing in this version"));
            }
        }
    }

    fn agent(&mut self, settings: Option<&Node>) -> Option<Located<String>> {
        let agent = settings?.get("agent")?;
        let text = text_of(agent);
        if text.is_none() {
            let found = agent.kind();
            self.error(agent.line, format!("`settings.agent` must be text, and is {found}"));
        }
        text.map(|text| Located::new(text, agent.line))
    }
}

fn fits(shape: FieldShape, node: &Node) -> bool {
    let is_text = |node: &Node| matches!(node.json, Json::Text(_));
    let is_object = |node: &Node| matches!(node.json, Json::Object(_));
    let is_reference = |node: &Node| is_text(node) || is_object(node);
    let are_all = |fits: &dyn Fn(&Node) -> bool| match &node.json {
        Json::List(items) => items.iter().all(fits),
        _ => false,
    };
    match shape {
        FieldShape::Anything => true,
        FieldShape::Text => is_text(node),
        FieldShape::TextOrObject => is_reference(node),
        FieldShape::Switch => matches!(node.json, Json::Bool(_)),
        FieldShape::Texts => are_all(&is_text),
        FieldShape::Paths => is_text(node) || are_all(&is_text),
        FieldShape::Commands => match &node.json {
            Json::Object(members) => {
                members.iter().all(|it| it.node.get("source").is_some_and(is_text))
            }
            _ => fits(FieldShape::Paths, node),
        },
        FieldShape::References => is_reference(node) || are_all(&is_reference),
        FieldShape::Object => is_object(node),
    }
}

/// The shape of a field's value, to follow "must be".
fn wanted(shape: FieldShape) -> &'static str {
    match shape {
        FieldShape::Text => "text",
        FieldShape::TextOrObject => "text or an object",
        FieldShape::Switch => "true or false",
        FieldShape::Texts => "a list of texts",
        FieldShape::Paths => "a path or a list of paths",
        FieldShape::Commands => {
            "a path, a list of paths, or an object of commands that each have a `source`"
        }
        FieldShape::References => "a path, an object, or a list of these",
        FieldShape::Object => "an object",
        FieldShape::Anything => "something",
    }
}

pub(super) fn text_of(node: &Node) -> Option<String> {
    match &node.json {
        Json::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn text_or_member(node: &Node, member: &str) -> Option<String> {
    text_of(node).or_else(|| node.get(member).and_then(text_of))
}

fn texts_of(node: &Node) -> Vec<String> {
    paths_of(node).into_iter().map(|text| text.value).collect()
}

fn paths_of(node: &Node) -> Vec<Located<String>> {
    let items = match &node.json {
        Json::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    items.iter().filter_map(|item| Some(Located::new(text_of(item)?, item.line))).collect()
}

/// The files of commands. What a command is called is the name of its file.
fn command_paths(node: &Node) -> Vec<Located<String>> {
    match &node.json {
        Json::Object(members) => {
            let sources = members.iter().filter_map(|member| member.node.get("source"));
            sources.flat_map(paths_of).collect()
        }
        _ => paths_of(node),
    }
}

fn references_of(node: &Node) -> Vec<Reference> {
    let items = match &node.json {
        Json::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let reference = |item: &Node| match text_of(item) {
        Some(text) => Reference::File(Located::new(text, item.line)),
        None => Reference::Inline(item.clone()),
    };
    items.iter().map(reference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Manifest, Vec<Problem>), Vec<Problem>> {
        read_manifest(text, Path::new("/p/plugin.json"))
    }

    fn said(problems: &[Problem]) -> Vec<String> {
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_manifest_is_read_with_all_it_says() {
        // S-078
        let text = r#"{"name": "kit", "version": "1.2.0", "description": "d", "displayName": "Kit",
            "author": {"name": "Ann"}, "repository": {"url": "https://h/r"}, "homepage": "https://h",
            "license": "MIT", "keywords": ["a", "b"], "defaultEnabled": false,
            "agents": "./more", "skills": ["./s"], "commands": ["./c.md"], "hooks": {"Stop": []},
            "mcpServers": ["./m.json", {"x": {}}], "settings": {"agent": "lead"}}"#;
        let (manifest, problems) = read(text).unwrap();
        assert_eq!(problems, []);
        let Manifest {
            name, version, author, repository, keywords, default_enabled, parts, ..
        } = manifest;
        assert_eq!((name.as_str(), version.as_deref()), ("kit", Some("1.2.0")));
        assert_eq!((author.as_deref(), repository.as_deref()), (Some("Ann"), Some("https://h/r")));
        assert_eq!((keywords, default_enabled), (vec!["a".to_owned(), "b".to_owned()], false));
        assert_eq!(parts.agents, [Located::new("./more".to_owned(), 4)]);
        assert_eq!(parts.commands, Some(vec![Located::new("./c.md".to_owned(), 4)]));
        assert!(matches!(parts.hooks.as_slice(), [Reference::Inline(_)]));
        assert!(
            matches!(parts.servers.as_slice(), [Reference::File(_), Reference::Inline(_)]),
            "{:?}",
            parts.servers
        );
        assert_eq!(parts.agent, Some(Located::new("lead".to_owned(), 5)));
    }

    #[test]
    fn a_wrong_type_is_an_error_with_its_line() {
        for (text, message) in [
            ("{\n\"name\": 1}", "/p/plugin.json:2: `name` must be text, and is a number"),
            ("{}", "/p/plugin.json:1: has no `name`"),
            ("[]", "/p/plugin.json:1: must be an object, and is a list"),
            ("{\n\n,}", "/p/plugin.json:3: is not valid JSON: key must be a string (column 1)"),
            (
                "{\"name\": \"kit\",\n\"agents\": {}}",
                "/p/plugin.json:2: `agents` must be a path or a list of paths, and is an object",
            ),
            (
                "{\"name\": \"kit\",\n\"commands\": {\"run\": {}}}",
                "/p/plugin.json:2: `commands` must be a path, a list of paths, or an object of \
                 commands that each have a `source`, and is an object",
            ),
            (
                "{\"name\": \"kit\",\n\"keywords\": [1]}",
                "/p/plugin.json:2: `keywords` must be a list of texts, and is a list",
            ),
            (
                "{\"name\": \"kit\",\n\"hooks\": [1]}",
                "/p/plugin.json:2: `hooks` must be a path, an object, or a list of these, and is a list",
            ),
            (
                "{\"name\": \"kit\", \"settings\": {\n\"agent\": 1}}",
                "/p/plugin.json:2: `settings.agent` must be text, and is a number",
            ),
            (
                "{\"name\": \"../x\"}",
                "/p/plugin.json:1: the name `../x` may hold only letters, digits, `-`, `_` and `.`",
            ),
        ] {
            assert_eq!(said(&read(text).unwrap_err()), [message], "{text}");
        }
    }

    #[test]
    fn commands_may_be_named_with_their_files() {
        let text = "{\"name\": \"kit\", \"commands\": {\"run\":\n{\"source\": \"./c/run.md\"}}}";
        let (manifest, problems) = read(text).unwrap();
        assert_eq!(problems, []);
        let path = Located::new("./c/run.md".to_owned(), 2);
        assert_eq!(manifest.parts.commands, Some(vec![path]));
    }

    #[test]
    fn what_is_unknown_or_not_there_yet_is_told() {
        let (_, problems) = read(
            "{\"name\": \"kit\",\n\"agnets\": [],\n\"tier\": 1,\n\"lspServers\": {}, \"metadata\": 1}",
        )
        .unwrap();
        assert_eq!(
            said(&problems),
            [
                "/p/plugin.json:2: `agnets` is unknown and ignored; did you mean `agents`?",
                "/p/plugin.json:3: `tier` is unknown and ignored",
                "/p/plugin.json:4: `lspServers` does nothing in this version",
            ]
        );
    }
}
