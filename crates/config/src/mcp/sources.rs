//! Declarations of servers, and the files that hold them. A file that cannot be read is told, and the others count.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use centurion_protocol::Env;
use serde_json::json;
use thiserror::Error;

use super::{McpOrigin, McpScope};
use crate::Problem;
use crate::files::{self, FileError, LARGEST_SETTINGS};
use crate::paths::{Dirs, repo_root};
use crate::settings::document::{self, Json, JsonMember, Node};
use crate::settings::{RepositoryTrust, Settings, closest, printable};
use crate::trust::{PowerItem, TrustKey};

/// Other things are kept in these files, too.
pub(super) const LARGEST_STATE: u64 = 64 * 1024 * 1024;

/// The most problems of one file that are told.
const MOST_PROBLEMS: usize = 50;

pub(super) const SERVERS: &str = "mcpServers";

/// The name of the source in messages where `--mcp-config` held the JSON itself.
pub(super) const FLAG: &str = "--mcp-config";

/// The files of a user and a project that servers are declared in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpPlaces {
    /// The directories that may hold a `.mcp.json`, the nearest first. The last one is the project's root.
    pub project_dirs: Vec<PathBuf>,
    /// See [`Dirs::state_files`].
    pub state_files: Vec<PathBuf>,
    /// Names of the project in the state files, the nearest directory first. New entries are written under the last
    /// name.
    pub project_keys: Vec<PathBuf>,
}

impl McpPlaces {
    /// The places for a program that was started in this directory.
    pub fn new(dirs: &Dirs, start_dir: &Path) -> Self {
        let root = repo_root(start_dir);
        let inside = |directory: &&Path| {
            root.as_ref().map_or(*directory == start_dir, |root| directory.starts_with(root))
        };
        let mut project_keys = vec![start_dir.to_owned()];
        project_keys.extend(root.clone());
        project_keys.push(TrustKey::of(start_dir).path().to_owned());
        project_keys.dedup();
        Self {
            project_dirs: start_dir.ancestors().take_while(inside).map(Path::to_owned).collect(),
            state_files: dirs.state_files().to_vec(),
            project_keys,
        }
    }

    pub(super) fn project_files(&self) -> impl Iterator<Item = PathBuf> {
        self.project_dirs.iter().map(|directory| directory.join(".mcp.json"))
    }
}

/// A value of `--mcp-config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpFlag {
    File(PathBuf),
    Json(String),
}

#[derive(Debug, Error)]
pub enum McpFlagError {
    #[error("{FLAG}: there is no file `{}`", .0.display())]
    NoFile(PathBuf),
    #[error("{FLAG}: {place}{} {error}", line_of(.error))]
    Unusable { place: String, error: FileError },
}

fn line_of(error: &FileError) -> String {
    error.line().map(|line| format!(" line {line}")).unwrap_or_default()
}

impl McpFlag {
    /// Takes one argument of `--mcp-config`: JSON if it begins with a brace, or else a file. What cannot
    /// be read is refused, for it was asked for by name.
    pub fn parse(argument: &str, cwd: &Path) -> Result<Self, McpFlagError> {
        let unusable = |place: String, error| McpFlagError::Unusable { place, error };
        if argument.trim_start().starts_with('{') {
            if argument.len() as u64 > LARGEST_SETTINGS {
                let error = FileError::TooLarge { limit: LARGEST_SETTINGS };
                return Err(unusable("the JSON".to_owned(), error));
            }
            document::parse(argument).map_err(|error| unusable("the JSON".to_owned(), error))?;
            return Ok(Self::Json(argument.to_owned()));
        }
        let path = cwd.join(argument);
        let (_, text) = files::read(&path, LARGEST_SETTINGS);
        match text.and_then(|text| text.as_deref().map(document::parse).transpose()) {
            Ok(Some(_)) => Ok(Self::File(path)),
            Ok(None) => Err(McpFlagError::NoFile(path)),
            Err(error) => Err(unusable(path.display().to_string(), error)),
        }
    }
}

/// The way in which servers of a project's `.mcp.json` are approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpApproval {
    /// The user is asked about the folder only: servers of a trusted folder run.
    #[default]
    Folder,
    /// The user, about each of them: an undecided server is pending.
    EachServer,
}

/// All that decides which servers there are.
#[derive(Clone, Debug)]
pub struct McpSources<'s> {
    /// The directory that the administrator of the machine manages.
    pub managed_dir: Option<PathBuf>,
    /// The values of `--mcp-config`, in order.
    pub flags: Vec<McpFlag>,
    /// `--strict-mcp-config`: only what the flags say counts.
    pub is_strict: bool,
    pub places: McpPlaces,
    /// The levels that are read, the trust of the folder, and the keys about servers.
    pub settings: &'s Settings,
    pub approval: McpApproval,
    pub env: &'s Env,
    /// The values of variables besides the environment, such as `CLAUDE_PROJECT_DIR`.
    pub variables: BTreeMap<String, String>,
}

/// A server as it was found.
#[derive(Debug)]
pub(super) struct ServerEntry {
    pub(super) name: String,
    pub(super) node: Node,
    pub(super) origin: McpOrigin,
}

impl ServerEntry {
    /// The item that has to be accepted before a server of the project runs; `None` for servers of others.
    pub(super) fn power_item(&self) -> Option<PowerItem> {
        let file = self.origin.file.as_ref().filter(|_| self.origin.scope == McpScope::Project)?;
        let name = format!("server `{}`", printable(&self.name));
        let value = json!({ &self.name: self.node.to_value() });
        Some(PowerItem::of_value(file, self.origin.line, name, &value))
    }
}

/// Everything that was found, the strongest first.
#[derive(Debug, Default)]
pub(super) struct FoundServers {
    pub(super) entries: Vec<ServerEntry>,
    pub(super) choices: Vec<Choices>,
    /// The managed file, where there is one: then nothing else counts.
    pub(super) managed: Option<PathBuf>,
    pub(super) problems: Vec<Problem>,
}

/// The choices of a state file about servers of the project, whichever file declares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choices {
    pub(super) file: PathBuf,
    pub(super) enabled: Vec<String>,
    pub(super) disabled: Vec<String>,
}

impl FoundServers {
    pub(super) fn look(sources: &McpSources<'_>) -> Self {
        let mut found = Self::default();
        let levels = sources.settings.sources().definition_levels();
        if let Some(directory) = &sources.managed_dir {
            let path = directory.join("managed-mcp.json");
            if found.file(&McpScope::Managed, &path) {
                found.managed = Some(path);
            }
        }
        for flag in &sources.flags {
            match flag {
                McpFlag::File(path) => {
                    found.file(&McpScope::Flag, path);
                }
                McpFlag::Json(text) => found.text(&McpScope::Flag, Path::new(FLAG), text),
            }
        }
        let states: Vec<(&PathBuf, String)> = sources
            .places
            .state_files
            .iter()
            .rev()
            .filter_map(|path| Some((path, found.read(path, LARGEST_STATE)?)))
            .collect();
        for (path, text) in &states {
            found.project_state(path, text, &sources.places.project_keys, levels.local);
        }
        if levels.project {
            let is_trusted = sources.settings.standing() == RepositoryTrust::Full;
            for path in sources.places.project_files() {
                let directory = path.parent().unwrap_or(&path);
                if !is_trusted && files::leads_out(&path, directory) {
                    let message = files::LEADS_OUT.to_owned();
                    found.problems.push(Problem { path, line: None, message });
                } else {
                    found.file(&McpScope::Project, &path);
                }
            }
        }
        if levels.user {
            for (path, text) in &states {
                if let Some(servers) = found.part(path, text, &[SERVERS]) {
                    found.servers(&McpScope::User, path, servers);
                }
            }
        }
        found
    }

    /// The servers of one `.mcp.json`.
    pub(super) fn of_project_file(path: &Path) -> Self {
        let mut found = Self::default();
        found.file(&McpScope::Project, path);
        found
    }

    /// Reads a file of servers; says whether there is one.
    fn file(&mut self, scope: &McpScope, path: &Path) -> bool {
        let problems = self.problems.len();
        match self.read(path, LARGEST_SETTINGS) {
            Some(text) => {
                self.text(scope, path, &text);
                true
            }
            None => self.problems.len() > problems,
        }
    }

    fn read(&mut self, path: &Path, limit: u64) -> Option<String> {
        match files::read(path, limit).1 {
            Ok(text) => text,
            Err(error) => {
                self.failed(path, &error);
                None
            }
        }
    }

    fn text(&mut self, scope: &McpScope, path: &Path, text: &str) {
        let root = match document::parse(text) {
            Ok(root) => root,
            Err(error) => return self.failed(path, &error),
        };
        let Json::Object(members) = root.json else {
            let message = format!("must be an object, and is {}", root.kind());
            return self.problem(path, root.line, message);
        };
        let has_servers = members.iter().any(|member| member.name == SERVERS);
        let (wrapped, others): (Vec<JsonMember>, Vec<JsonMember>) =
            members.into_iter().partition(|member| member.name == SERVERS);
        if let Some(member) = wrapped.into_iter().next_back() {
            self.servers(scope, path, member.node);
        }
        // Servers may stand at the top, too.
        let mut at_top = Vec::new();
        for member in others {
            let is_other = has_servers && !is_server(&member.node);
            if member.name.starts_with('$') || is_other {
                continue;
            }
            if !is_server(&member.node) && closest(&member.name, &[SERVERS]).is_some() {
                let name = printable(&member.name);
                let message = format!("`{name}` is no known key; perhaps `{SERVERS}` is meant");
                self.problem(path, member.node.line, message);
            } else {
                at_top.push(member);
            }
        }
        self.entries(scope, path, at_top);
    }

    fn servers(&mut self, scope: &McpScope, path: &Path, node: Node) {
        let found = node.kind();
        match node.json {
            Json::Object(members) => self.entries(scope, path, members),
            Json::Null => {}
            _ => {
                let message = format!("`{SERVERS}` must be an object, and is {found}");
                self.problem(path, node.line, message);
            }
        }
    }

    fn entries(&mut self, scope: &McpScope, path: &Path, members: Vec<JsonMember>) {
        let mut seen = HashSet::new();
        let mut entries = Vec::new();
        for JsonMember { name, node } in members.into_iter().rev() {
            if !seen.insert(name.clone()) {
                let name = printable(&name);
                let message =
                    format!("server `{name}` is written again further down, which counts instead");
                self.problem(path, node.line, message);
                continue;
            }
            let origin = McpOrigin {
                scope: scope.clone(),
                file: (path != Path::new(FLAG)).then(|| path.to_owned()),
                line: Some(node.line),
            };
            entries.push(ServerEntry { name, node, origin });
        }
        entries.reverse();
        self.entries.append(&mut entries);
    }

    /// Reads the entries of a state file about this project.
    fn project_state(&mut self, path: &Path, text: &str, keys: &[PathBuf], wants_servers: bool) {
        let mut choices = Choices { file: path.to_owned(), ..Choices::default() };
        for key in keys.iter().filter_map(|key| key.to_str()) {
            let Some(project) = self.part(path, text, &["projects", key]) else { continue };
            choices.enabled.append(&mut self.names(path, &project, "enabledMcpServers"));
            choices.disabled.append(&mut self.names(path, &project, "disabledMcpServers"));
            if let Some(servers) = project.get(SERVERS).filter(|_| wants_servers) {
                self.servers(&McpScope::Local, path, servers.clone());
            }
        }
        self.choices.push(choices);
    }

    fn names(&mut self, path: &Path, project: &Node, key: &str) -> Vec<String> {
        let Some(node) = project.get(key) else { return Vec::new() };
        names_of(node).unwrap_or_else(|| {
            let message = format!("`{key}` must be a list of texts, and is left out");
            self.problem(path, node.line, message);
            Vec::new()
        })
    }

    fn part(&mut self, path: &Path, text: &str, keys: &[&str]) -> Option<Node> {
        match document::parse_at(text, keys) {
            Ok(node) => node,
            Err(error) => {
                self.failed(path, &error);
                None
            }
        }
    }

    fn failed(&mut self, path: &Path, error: &FileError) {
        let line = error.line();
        let problem = Problem { path: path.to_owned(), line, message: error.to_string() };
        // A file that is looked at for several things is told once.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn problem(&mut self, path: &Path, line: usize, message: String) {
        self.problems.push(Problem { path: path.to_owned(), line: Some(line), message });
    }
}

/// Whether something at the top of a file is a server.
pub(super) fn is_server(node: &Node) -> bool {
    let says = |key: &str| node.get(key).is_some_and(|node| matches!(node.json, Json::Text(_)));
    ["command", "url", "type"].iter().any(|key| says(key))
}

/// A list of texts; `None` if it is something else.
pub(super) fn names_of(node: &Node) -> Option<Vec<String>> {
    let Json::List(items) = &node.json else { return None };
    let names = items.iter().map(|item| match &item.json {
        Json::Text(name) => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

/// Keeps of each file only as many problems as a person would read.
pub(super) fn limit_problems(problems: &mut Vec<Problem>) {
    let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
    problems.retain_mut(|problem| {
        let count = counts.entry(problem.path.clone()).or_default();
        *count += 1;
        if *count == MOST_PROBLEMS + 1 {
            problem.line = None;
            "there is more that is wrong with it".clone_into(&mut problem.message);
        }
        *count <= MOST_PROBLEMS + 1
    });
}
