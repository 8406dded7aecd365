//! Installed plugins and known marketplaces: the directories that keep them, and their two lists.
//!
//! The last directory is ours. Another program's has the same layout; it is read and never written.

use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use super::looks::Looks;
use super::name::{PluginId, PluginNameError, check_plugin_name, version_directory};
use super::source::{MarketplaceSource, SourceError};
use crate::Problem;
use crate::paths::Dirs;
use crate::settings::document::{self, Json, Node};

pub(super) const INSTALLED: &str = "installed_plugins.json";
pub(super) const KNOWN: &str = "known_marketplaces.json";

/// The directories that keep plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginStores {
    pub(super) ours: PathBuf,
    others: Vec<PathBuf>,
}

/// The scope that a plugin was installed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallScope {
    Managed,
    User,
    Project,
    Local,
}

impl InstallScope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [Self::Managed, Self::User, Self::Project, Self::Local];
        all.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// A plugin that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPlugin {
    pub id: PluginId,
    pub scope: InstallScope,
    /// The project that it was installed for, unless it is for all of them.
    pub project: Option<PathBuf>,
    pub root: PathBuf,
    pub version: String,
    /// The directory that keeps it.
    pub store: PathBuf,
}

impl InstalledPlugin {
    /// Whether it was installed for this project or for all projects.
    pub(super) fn is_for(&self, project: &Path) -> bool {
        match self.scope {
            InstallScope::User | InstallScope::Managed => true,
            InstallScope::Project | InstallScope::Local => self.project.as_deref() == Some(project),
        }
    }
}

/// A marketplace that has been fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownMarketplace {
    pub name: String,
    pub source: MarketplaceSource,
    /// Its directory, or its file.
    pub location: PathBuf,
    /// The directory that keeps it.
    pub store: PathBuf,
}

/// The contents of the directories, ours first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreContents {
    pub plugins: Vec<InstalledPlugin>,
    /// One for each name.
    pub marketplaces: Vec<KnownMarketplace>,
    pub problems: Vec<Problem>,
}

impl PluginStores {
    pub fn new(dirs: &Dirs) -> Self {
        let mut stores: Vec<PathBuf> =
            dirs.config_dirs().iter().map(|directory| directory.join("plugins")).collect();
        let ours = stores.pop().unwrap_or_default();
        Self { ours, others: stores }
    }

    /// The directory that is written to.
    pub fn ours(&self) -> &Path {
        &self.ours
    }

    /// The directory for data of a plugin that outlives its versions.
    pub(super) fn data_dir(&self, id: &PluginId) -> PathBuf {
        self.ours.join("data").join(id.data_name())
    }

    /// The installed plugins and known marketplaces.
    pub fn contents(&self) -> StoreContents {
        self.look(&mut Looks::default())
    }

    pub(super) fn look(&self, looks: &mut Looks) -> StoreContents {
        let mut contents = StoreContents::default();
        for store in std::iter::once(&self.ours).chain(self.others.iter().rev()) {
            contents.read(store, looks);
        }
        contents
    }
}

impl StoreContents {
    /// The installed version of a plugin in this project: its own first, then the one for all projects.
    pub(super) fn installed(&self, id: &PluginId, project: &Path) -> Option<&InstalledPlugin> {
        let all = || self.plugins.iter().filter(|plugin| plugin.id == *id);
        let of_project = all().find(|plugin| plugin.project.is_some() && plugin.is_for(project));
        of_project.or_else(|| all().find(|it| it.is_for(project))).or_else(|| all().next())
    }

    pub fn marketplace(&self, name: &str) -> Option<&KnownMarketplace> {
        self.marketplaces.iter().find(|known| known.name == name)
    }

    fn read(&mut self, store: &Path, looks: &mut Looks) {
        let file = store.join(INSTALLED);
        if let Some(root) = self.document(&file, looks)
            && let Some(Node { json: Json::Object(members), .. }) = root.get("plugins")
        {
            for member in members {
                self.records(&member.name, &member.node, store, &file);
            }
        }
        let file = store.join(KNOWN);
        if let Some(Node { json: Json::Object(members), .. }) = self.document(&file, looks) {
            for member in &members {
                self.known(&member.name, &member.node, store, &file);
            }
        }
    }

    fn document(&mut self, file: &Path, looks: &mut Looks) -> Option<Node> {
        let text =
            looks.read(file).and_then(|text| text.as_deref().map(document::parse).transpose());
        match text {
            Ok(document) => document,
            Err(error) => {
                let (path, line) = (file.to_owned(), error.line());
                self.problems.push(Problem { path, line, message: error.to_string() });
                None
            }
        }
    }

    fn records(&mut self, name: &str, node: &Node, store: &Path, file: &Path) {
        let mut tell = |message: String| {
            let problem = Problem { path: file.to_owned(), line: Some(node.line), message };
            self.problems.push(problem);
        };
        let id: PluginId = match name.parse() {
            Ok(id) => id,
            Err(error) => return tell(format!("an entry is left out: {error}")),
        };
        for record in records_of(&node.to_value()) {
            match read_record(&id, &record, store) {
                Some(plugin) => {
                    let is_new = !self.plugins.iter().any(|known| {
                        (&known.id, known.scope, &known.project)
                            == (&plugin.id, plugin.scope, &plugin.project)
                    });
                    if is_new {
                        self.plugins.push(plugin);
                    }
                }
                None => tell(format!("an entry of `{id}` is not understood and left out")),
            }
        }
    }

    fn known(&mut self, name: &str, node: &Node, store: &Path, file: &Path) {
        let value = node.to_value();
        let read = || -> Result<KnownMarketplace, KnownError> {
            check_plugin_name(name)?;
            let source = value.get("source").cloned().unwrap_or_default();
            let source = MarketplaceSource::from_value(&source, store)
                .map_err(|source| KnownError::Source { name: name.to_owned(), source })?;
            let location = value.get("installLocation").and_then(Value::as_str);
            let kept = || store.join("marketplaces").join(name);
            let location = location.map(|location| store.join(location)).filter(|it| it.exists());
            let location = location.unwrap_or_else(kept);
            Ok(KnownMarketplace {
                name: name.to_owned(),
                source,
                location,
                store: store.to_owned(),
            })
        };
        match read() {
            Ok(known) if self.marketplace(name).is_none() => self.marketplaces.push(known),
            Ok(_) => {}
            Err(error) => {
                let (path, line) = (file.to_owned(), Some(node.line));
                self.problems.push(Problem { path, line, message: error.to_string() });
            }
        }
    }
}

/// The reason that a marketplace is left out.
#[derive(Debug, Error)]
enum KnownError {
    #[error(transparent)]
    Name(#[from] PluginNameError),
    #[error("marketplace `{name}` is left out: {source}")]
    Source { name: String, source: SourceError },
}

/// The records of one plugin: a list, or in older files just one.
pub(super) fn records_of(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(records) => records.clone(),
        other => vec![other.clone()],
    }
}

fn read_record(id: &PluginId, record: &Value, store: &Path) -> Option<InstalledPlugin> {
    let record = record.as_object()?;
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    let scope = text("scope").map_or(Some(InstallScope::User), InstallScope::parse)?;
    let version = text("version").unwrap_or("unknown").to_owned();
    // Directories move with their home; what they hold stays where it is in them.
    let kept = store.join("cache").join(id.marketplace()).join(id.name());
    let kept = kept.join(version_directory(&version));
    let written = text("installPath").map(Path::new).filter(|path| path.is_absolute());
    let root = written.filter(|path| path.is_dir()).map_or(kept, Path::to_owned);
    Some(InstalledPlugin {
        id: id.clone(),
        scope,
        project: text("projectPath").map(PathBuf::from),
        root,
        version,
        store: store.to_owned(),
    })
}
