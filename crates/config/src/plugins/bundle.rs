//! The contents of a plugin's directory, also while the plugin is switched off.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::layout::{is_plain, part};
use super::looks::Looks;
use super::manifest::{Manifest, PLACES, Reference, read_manifest, text_of};
use super::name::check_plugin_name;
use super::variables::OPTION;
use crate::Problem;
use crate::fields::Located;
use crate::settings::document::{self, Json, Node};
use crate::settings::{Lines, printable};
use crate::trust::{collect_hook_texts, collect_texts};

const HOOKS: &str = "hooks/hooks.json";
const SERVERS: &str = ".mcp.json";
const SERVERS_KEY: &str = "mcpServers";

/// A plugin's directory, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    pub manifest: Manifest,
    /// The manifest's file, or where it would be.
    pub manifest_file: PathBuf,
    /// Its real path.
    pub root: PathBuf,
    pub(super) agents: Vec<PathBuf>,
    pub(super) skills: Vec<PathBuf>,
    pub(super) commands: Vec<PathBuf>,
    pub(super) hooks: Vec<PluginHooks>,
    pub(super) servers: Vec<BundledServer>,
    pub(super) agent: Option<MainAgent>,
    /// Parts that cannot be used.
    pub errors: Vec<Problem>,
    /// Remarks for its author.
    pub remarks: Vec<Problem>,
}

/// Hooks of a plugin as they were written: events, or an object with the events in `hooks`.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginHooks {
    pub value: Value,
    /// The lines of the parts of the value.
    pub lines: Lines,
    pub file: PathBuf,
    /// The line of the whole value.
    pub line: usize,
}

/// A server as a plugin declares it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BundledServer {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) file: PathBuf,
    pub(super) line: usize,
}

/// The agent that a plugin wants the main conversation to run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MainAgent {
    pub name: String,
    pub file: PathBuf,
    pub line: usize,
}

impl Bundle {
    /// Reads a plugin's directory. `usual_name` is for one that does not say what it is called. An error
    /// says why it is no plugin at all; parts that cannot be used are among its `errors`.
    pub fn read(root: &Path, usual_name: &str) -> Result<Self, Vec<Problem>> {
        Self::look(root, usual_name, &mut Looks::default())
    }

    pub(super) fn look(
        root: &Path,
        usual_name: &str,
        looks: &mut Looks,
    ) -> Result<Self, Vec<Problem>> {
        let refused =
            |message: String| vec![Problem { path: root.to_owned(), line: None, message }];
        looks.exists(root);
        let real =
            root.canonicalize().map_err(|error| refused(format!("cannot be read: {error}")))?;
        if !real.is_dir() {
            return Err(refused("is no directory, and only directories can be plugins".to_owned()));
        }
        let (manifest, manifest_file, remarks) = find_manifest(&real, usual_name, looks)?;
        let mut bundle = Self {
            manifest,
            manifest_file,
            root: real,
            agents: Vec::new(),
            skills: Vec::new(),
            commands: Vec::new(),
            hooks: Vec::new(),
            servers: Vec::new(),
            agent: None,
            errors: Vec::new(),
            remarks,
        };
        bundle.definitions();
        bundle.read_hooks(looks);
        bundle.read_servers(looks);
        bundle.read_settings(looks);
        Ok(bundle)
    }

    /// The texts in its hooks and servers that may name files which run.
    pub(super) fn commands_of_hooks_and_servers(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for hooks in &self.hooks {
            collect_hook_texts(&hooks.value, &mut texts);
        }
        for server in &self.servers {
            collect_texts(&server.value, &mut texts);
        }
        texts
    }

    fn error(&mut self, path: &Path, line: usize, message: String) {
        self.errors.push(Problem { path: path.to_owned(), line: Some(line), message });
    }

    /// Agents and skills add to the usual directories, commands take the place of theirs.
    fn definitions(&mut self) {
        let parts = self.manifest.parts.clone();
        let (agents, skills) = (self.paths(&parts.agents), self.paths(&parts.skills));
        self.agents = std::iter::once(self.root.join("agents")).chain(agents).collect();
        self.skills = std::iter::once(self.root.join("skills")).chain(skills).collect();
        self.commands = match &parts.commands {
            Some(commands) => self.paths(commands),
            None => vec![self.root.join("commands")],
        };
    }

    /// The paths that can be used; the others are told.
    fn paths(&mut self, written: &[Located<String>]) -> Vec<PathBuf> {
        written.iter().filter_map(|path| self.path(path)).collect()
    }

    fn path(&mut self, written: &Located<String>) -> Option<PathBuf> {
        let file = self.manifest_file.clone();
        match part(&self.root, written) {
            Ok(path) => {
                if !is_plain(written) {
                    let message = format!("write `./{0}` instead of `{0}`", printable(written));
                    self.remarks.push(Problem { path: file, line: Some(written.line), message });
                }
                Some(path)
            }
            Err(error) => {
                self.error(&file, written.line, error.to_string());
                None
            }
        }
    }

    /// The JSON of the usual file and of all that the manifest refers to, each once.
    fn documents(
        &mut self,
        usual: &str,
        named: &[Reference],
        looks: &mut Looks,
    ) -> Vec<(PathBuf, Node)> {
        let mut files = Vec::new();
        if looks.exists(&self.root.join(usual)) {
            files.extend(self.path(&Located::new(format!("./{usual}"), 1)));
        }
        let mut inline = Vec::new();
        for reference in named {
            match reference {
                Reference::File(path) => files.extend(self.path(path)),
                Reference::Inline(node) => inline.push((self.manifest_file.clone(), node.clone())),
            }
        }
        let mut seen = HashSet::new();
        let mut documents = Vec::new();
        for file in files {
            if seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone()))
                && let Some(node) = self.document(&file, looks)
            {
                documents.push((file, node));
            }
        }
        documents.extend(inline);
        documents
    }

    fn document(&mut self, file: &Path, looks: &mut Looks) -> Option<Node> {
        let text =
            looks.read(file).and_then(|text| text.as_deref().map(document::parse).transpose());
        let (line, message) = match text {
            Ok(Some(node)) if matches!(node.json, Json::Object(_)) => return Some(node),
            Ok(Some(node)) => {
                (Some(node.line), format!("must be an object, and is {}", node.kind()))
            }
            Ok(None) => return None,
            Err(error) => (error.line(), error.to_string()),
        };
        self.errors.push(Problem { path: file.to_owned(), line, message });
        None
    }

    fn read_hooks(&mut self, looks: &mut Looks) {
        let named = self.manifest.parts.hooks.clone();
        for (file, node) in self.documents(HOOKS, &named, looks) {
            let (value, lines) = (node.to_value(), Lines::of(&node));
            for (pointer, command) in shell_commands(&value) {
                if command.contains(&format!("${{{OPTION}")) {
                    let line = lines.line(&pointer).unwrap_or(node.line);
                    let message = "a command for a shell cannot hold `${user_config.…}`; help: use \
                                   the variable `$CLAUDE_PLUGIN_OPTION_…`, or give the command `args`";
                    self.error(&file, line, message.to_owned());
                }
            }
            self.hooks.push(PluginHooks { value, lines, file, line: node.line });
        }
    }

    fn read_servers(&mut self, looks: &mut Looks) {
        let named = self.manifest.parts.servers.clone();
        for (file, node) in self.documents(SERVERS, &named, looks) {
            let servers = node.get(SERVERS_KEY).unwrap_or(&node);
            let Json::Object(members) = &servers.json else {
                let message =
                    format!("`{SERVERS_KEY}` must be an object, and is {}", servers.kind());
                self.error(&file, servers.line, message);
                continue;
            };
            for member in members.iter().filter(|member| !member.name.starts_with('$')) {
                self.server(&member.name, &member.node, &file);
            }
        }
    }

    fn server(&mut self, name: &str, node: &Node, file: &Path) {
        let helper = node.get("headersHelper").and_then(text_of);
        if helper.is_some_and(|helper| helper.contains(&format!("${{{OPTION}"))) {
            let message = format!(
                "server `{}` is left out: a shell runs its `headersHelper`, which cannot hold \
                 `${{user_config.…}}`",
                printable(name)
            );
            return self.error(file, node.line, message);
        }
        if self.servers.iter().any(|server| server.name == name) {
            let message = format!("server `{}` is declared before, which counts", printable(name));
            let (path, line) = (file.to_owned(), Some(node.line));
            self.remarks.push(Problem { path, line, message });
            return;
        }
        let (name, file) = (name.to_owned(), file.to_owned());
        self.servers.push(BundledServer { name, value: node.to_value(), file, line: node.line });
    }

    /// The plugin's `settings.json` counts before what its manifest holds.
    fn read_settings(&mut self, looks: &mut Looks) {
        let of_manifest = self.manifest.parts.agent.clone().map(|agent| MainAgent {
            name: agent.value,
            file: self.manifest_file.clone(),
            line: agent.line,
        });
        let mut own = None;
        for (file, node) in self.documents("settings.json", &[], looks) {
            let Json::Object(members) = &node.json else { continue };
            for member in members {
                let line = member.node.line;
                match (member.name.as_str(), text_of(&member.node)) {
                    ("agent", Some(name)) => {
                        own = Some(MainAgent { name, file: file.clone(), line });
                    }
                    ("agent", None) => {
                        let found = member.node.kind();
                        self.error(&file, line, format!("`agent` must be text, and is {found}"));
                    }
                    (name, _) => {
                        let name = printable(name);
                        let message = format!("`{name}` does nothing in the settings of a plugin");
                        let problem = Problem { path: file.clone(), line: Some(line), message };
                        self.remarks.push(problem);
                    }
                }
            }
        }
        self.agent = own.or(of_manifest);
    }
}

/// The manifest, in the better of its places or made up; with what its author should know.
fn find_manifest(
    root: &Path,
    usual_name: &str,
    looks: &mut Looks,
) -> Result<(Manifest, PathBuf, Vec<Problem>), Vec<Problem>> {
    for place in PLACES {
        let path = root.join(place);
        let failed = |line, message: String| vec![Problem { path: path.clone(), line, message }];
        if !looks.exists(&path) {
            continue;
        }
        part(root, place).map_err(|error| failed(None, error.to_string()))?;
        let text = looks.read(&path).map_err(|error| failed(error.line(), error.to_string()))?;
        if let Some(text) = text {
            let (manifest, remarks) = read_manifest(&text, &path)?;
            return Ok((manifest, path, remarks));
        }
    }
    let path = root.join(PLACES.first().copied().unwrap_or_default());
    check_plugin_name(usual_name).map_err(|error| {
        let message =
            format!("there is no manifest, and the directory's name will not do: {error}");
        vec![Problem { path: root.to_owned(), line: None, message }]
    })?;
    Ok((Manifest::named(usual_name), path, Vec::new()))
}

/// The commands in hooks that a shell runs, each with where it stands.
fn shell_commands(value: &Value) -> Vec<(String, &str)> {
    let mut commands = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((pointer, value)) = open.pop() {
        match value {
            Value::Object(members) => {
                if let (Some(Value::String(command)), None) =
                    (members.get("command"), members.get("args"))
                {
                    commands.push((format!("{pointer}/command"), command.as_str()));
                }
                open.extend(members.iter().map(|(name, it)| {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    (format!("{pointer}/{name}"), it)
                }));
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(index, it)| (format!("{pointer}/{index}"), it)));
            }
            _ => {}
        }
    }
    commands
}
