//! Writing servers, and what the user chose about them, into the files that declare them. All else in
//! these files stays byte for byte.
//!
//! Only files of ours and a project's `.mcp.json` are written; another program's state file is not.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;

use super::name_problem;
use super::sources::{LARGEST_STATE, McpPlaces, SERVERS, is_server, names_of};
use crate::files;
use crate::settings::document::{self, Json, Node};
use crate::settings::draft::{Draft, InTheWay};
use crate::settings::edit::change;
use crate::settings::{Change, EditError, SettingsFile};

const PROJECTS: &str = "projects";
const ENABLED: &str = "enabledMcpServers";
const DISABLED: &str = "disabledMcpServers";

/// The file in which a server is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpTarget {
    /// For the user, in this project.
    Local,
    /// For all users of the project.
    Project,
    /// For the user, in all projects.
    User,
}

/// The choice of a user about a server in this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpChoice {
    /// It runs, though the repository brought it.
    Enabled,
    /// It does not run.
    Disabled,
    /// Nothing: it runs if it would without a word.
    Unsaid,
}

#[derive(Debug, Error)]
pub enum McpEditError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("server `{name}` cannot be added: {why}")]
    Name { name: String, why: String },
    #[error(
        "there is a server `{name}` already, {}:{line}; help: remove it first, or take another name",
        file.display()
    )]
    Exists { name: String, file: PathBuf, line: usize },
    #[error("there is no server `{name}` in {places}")]
    Missing { name: String, places: String },
    #[error(
        "server `{name}` is declared in {}, which is another program's file and is not written; \
         help: `centurion mcp disable {name}` switches it off here",
        file.display()
    )]
    Foreign { name: String, file: PathBuf },
    #[error("the path of this project is not UTF-8, and nothing can be kept about it")]
    ProjectName,
    #[error("there is no file to write to")]
    NoFile,
}

impl McpPlaces {
    /// Declares a server; gives the file that it was written to. A name that is taken there is refused.
    pub fn add_server(
        &self,
        target: McpTarget,
        name: &str,
        server: &Value,
    ) -> Result<PathBuf, McpEditError> {
        if let Some(why) = name_problem(name) {
            return Err(McpEditError::Name { name: name.to_owned(), why });
        }
        let file = self.file(target)?;
        let path = self.path_of_servers(target)?;
        change(&file, |draft| {
            if let Some(node) = declared(draft, &path, target, name) {
                let (file, line) = (file.path().to_owned(), node.line);
                return Err(McpEditError::Exists { name: name.to_owned(), file, line });
            }
            let at_top = target == McpTarget::Project && has_servers_at_top(&draft.root);
            let mut path = if at_top { Vec::new() } else { path.clone() };
            path.push(name);
            put(draft, &file, &path, server).map(Some)
        })?;
        Ok(file.path().to_owned())
    }

    /// Takes a server out of the files of a target; gives the file that it was in.
    pub fn remove_server(&self, target: McpTarget, name: &str) -> Result<PathBuf, McpEditError> {
        let mut files = Vec::new();
        match target {
            McpTarget::Project => {
                files.extend(self.project_files().map(SettingsFile::of_repository));
            }
            McpTarget::Local | McpTarget::User => files.push(self.state_file()?),
        }
        for file in &files {
            for path in self.paths_of_servers(target)? {
                if remove(file, &path, target, name)? == Change::Written {
                    return Ok(file.path().to_owned());
                }
            }
        }
        if let Some(file) = self.foreign(target, name)? {
            return Err(McpEditError::Foreign { name: name.to_owned(), file });
        }
        let places: Vec<String> =
            files.iter().map(|file| file.path().display().to_string()).collect();
        Err(McpEditError::Missing { name: name.to_owned(), places: places.join(", ") })
    }

    /// The targets whose files declare a server, the strongest first.
    pub fn targets_of(&self, name: &str) -> Result<Vec<McpTarget>, McpEditError> {
        let mut targets = Vec::new();
        for target in [McpTarget::Local, McpTarget::Project, McpTarget::User] {
            if self.declares(target, name)? {
                targets.push(target);
            }
        }
        Ok(targets)
    }

    fn declares(&self, target: McpTarget, name: &str) -> Result<bool, McpEditError> {
        let files: Vec<PathBuf> = match target {
            McpTarget::Project => self.project_files().collect(),
            McpTarget::Local | McpTarget::User => self.state_files.clone(),
        };
        for file in files {
            for path in self.paths_of_servers(target)? {
                if reads(&file, &path, target, name) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Notes what the user chose about a server in this project.
    pub fn choose(&self, name: &str, choice: McpChoice) -> Result<Change, McpEditError> {
        let file = self.state_file()?;
        let keys = self.keys()?;
        let (own, others) = keys.split_last().ok_or(McpEditError::ProjectName)?;
        change(&file, |draft| {
            let mut text: Option<String> = None;
            // A choice under another name of the project no longer counts.
            let wanted = others.iter().map(|key| (key, McpChoice::Unsaid));
            for (key, choice) in wanted.chain([(own, choice)]) {
                for (list, on_it) in
                    [(ENABLED, McpChoice::Enabled), (DISABLED, McpChoice::Disabled)]
                {
                    let current = text.as_deref().map(|text| redraft(text, &file)).transpose()?;
                    let draft = current.as_ref().unwrap_or(draft);
                    let path = [PROJECTS, key, list];
                    text = listed(draft, &file, &path, name, choice == on_it)?.or(text);
                }
            }
            Ok(text)
        })
    }

    /// Forgets all that the user chose about servers in this project; says whether there was anything.
    pub fn forget_choices(&self) -> Result<Change, McpEditError> {
        let file = self.state_file()?;
        let keys = self.keys()?;
        if !file.path().exists() {
            return Ok(Change::AlreadyThere);
        }
        change(&file, |draft| {
            let mut text: Option<String> = None;
            for key in &keys {
                for list in [ENABLED, DISABLED] {
                    let current = text.as_deref().map(|text| redraft(text, &file)).transpose()?;
                    let draft = current.as_ref().unwrap_or(draft);
                    let project = draft.root.get(PROJECTS).and_then(|node| node.get(key));
                    let without = project.and_then(|node| draft.without_member(node, list));
                    text = without.or(text);
                }
            }
            Ok(text)
        })
    }

    /// Our own state file.
    fn state_file(&self) -> Result<SettingsFile, McpEditError> {
        let path = self.state_files.last().ok_or(McpEditError::NoFile)?;
        Ok(SettingsFile::of_user(path.clone()).with_limit(LARGEST_STATE))
    }

    fn file(&self, target: McpTarget) -> Result<SettingsFile, McpEditError> {
        match target {
            McpTarget::Project => {
                let root = self.project_files().last().ok_or(McpEditError::NoFile)?;
                Ok(SettingsFile::of_repository(root))
            }
            McpTarget::Local | McpTarget::User => self.state_file(),
        }
    }

    fn keys(&self) -> Result<Vec<&str>, McpEditError> {
        let keys = self.project_keys.iter().map(|key| key.to_str());
        keys.collect::<Option<Vec<_>>>().ok_or(McpEditError::ProjectName)
    }

    /// The path in a file that new servers are written under.
    fn path_of_servers(&self, target: McpTarget) -> Result<Vec<&str>, McpEditError> {
        self.paths_of_servers(target)?.pop().ok_or(McpEditError::ProjectName)
    }

    /// The paths in a file that servers may be under.
    fn paths_of_servers(&self, target: McpTarget) -> Result<Vec<Vec<&str>>, McpEditError> {
        match target {
            McpTarget::Project | McpTarget::User => Ok(vec![vec![SERVERS]]),
            McpTarget::Local => {
                let keys = self.keys()?.into_iter();
                Ok(keys.map(|key| vec![PROJECTS, key, SERVERS]).collect())
            }
        }
    }

    /// Another program's file that declares a server.
    fn foreign(&self, target: McpTarget, name: &str) -> Result<Option<PathBuf>, McpEditError> {
        if target == McpTarget::Project {
            return Ok(None);
        }
        let others = self.state_files.split_last().map(|(_, others)| others).unwrap_or_default();
        for file in others {
            for path in self.paths_of_servers(target)? {
                if reads(file, &path, target, name) {
                    return Ok(Some(file.clone()));
                }
            }
        }
        Ok(None)
    }
}

/// Whether a file declares a server. One that cannot be read declares none.
fn reads(file: &Path, path: &[&str], target: McpTarget, name: &str) -> bool {
    let Ok(Some(text)) = files::read(file, LARGEST_STATE).1 else { return false };
    match target {
        McpTarget::Project => {
            document::parse(&text).is_ok_and(|root| project_container(&root, name).is_some())
        }
        McpTarget::Local | McpTarget::User => document::parse_at(&text, path)
            .is_ok_and(|servers| servers.is_some_and(|servers| servers.get(name).is_some())),
    }
}

/// The server of a name in a file.
fn declared<'d>(
    draft: &'d Draft,
    path: &[&str],
    target: McpTarget,
    name: &str,
) -> Option<&'d Node> {
    container(draft, path, target, name)?.get(name)
}

/// The object that holds a server of this name.
fn container<'d>(
    draft: &'d Draft,
    path: &[&str],
    target: McpTarget,
    name: &str,
) -> Option<&'d Node> {
    if target == McpTarget::Project {
        return project_container(&draft.root, name);
    }
    let servers = path.iter().try_fold(&draft.root, |node, name| node.get(name))?;
    servers.get(name).map(|_| servers)
}

fn project_container<'n>(root: &'n Node, name: &str) -> Option<&'n Node> {
    let wrapped = root.get(SERVERS).filter(|servers| servers.get(name).is_some());
    wrapped.or_else(|| root.get(name).filter(|node| is_server(node)).map(|_| root))
}

/// Whether a file has its servers at the top and nowhere else.
fn has_servers_at_top(root: &Node) -> bool {
    let Json::Object(members) = &root.json else { return false };
    root.get(SERVERS).is_none() && members.iter().any(|member| is_server(&member.node))
}

fn remove(
    file: &SettingsFile,
    path: &[&str],
    target: McpTarget,
    name: &str,
) -> Result<Change, McpEditError> {
    // A file that is not there is not made.
    if !file.path().exists() {
        return Ok(Change::AlreadyThere);
    }
    change(file, |draft| {
        let mut text: Option<String> = None;
        // A name that was written twice goes twice.
        loop {
            let current = text.as_deref().map(|text| redraft(text, file)).transpose()?;
            let draft = current.as_ref().unwrap_or(draft);
            let holder = container(draft, path, target, name);
            match holder.and_then(|holder| draft.without_member(holder, name)) {
                Some(without) => text = Some(without),
                None => return Ok(text),
            }
        }
    })
}

/// The text with a name in a list or out of it; `None` if it is so already.
fn listed(
    draft: &Draft,
    file: &SettingsFile,
    path: &[&str],
    name: &str,
    is_in: bool,
) -> Result<Option<String>, McpEditError> {
    let node = path.iter().try_fold(&draft.root, |node, name| node.get(name));
    let mut names = match node {
        None => Vec::new(),
        Some(node) => names_of(node).ok_or_else(|| {
            file.shape(node.line, path.last().copied().unwrap_or_default(), "list of texts")
        })?,
    };
    if names.iter().any(|it| it == name) == is_in {
        return Ok(None);
    }
    if is_in {
        names.push(name.to_owned());
    } else {
        names.retain(|it| it != name);
    }
    put(draft, file, path, &json!(names)).map(Some)
}

fn put(
    draft: &Draft,
    file: &SettingsFile,
    path: &[&str],
    value: &Value,
) -> Result<String, McpEditError> {
    draft
        .with_value_at(path, value)
        .map_err(|InTheWay { line, key }| file.shape(line, &key, "object").into())
}

fn redraft(text: &str, file: &SettingsFile) -> Result<Draft, McpEditError> {
    Draft::new(text.to_owned()).map_err(|error| file.failed(error).into())
}
