//! A marketplace: a file that lists plugins and says where each of them is.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use thiserror::Error;

use super::layout::{PartPathError, part};
use super::name::{PluginNameError, check_marketplace_name, check_plugin_name};
use super::source::{EntrySource, SourceError};
use crate::Problem;
use crate::files::{self, LARGEST_SETTINGS};
use crate::settings::document::{self, Json, Node};
use crate::settings::printable;

/// The path of a marketplace's file in its directory.
pub const MARKETPLACE_FILE: &str = ".claude-plugin/marketplace.json";

/// The fields of an entry that are about the entry, and not about its plugin.
const OF_ENTRIES: [&str; 6] =
    ["source", "category", "tags", "strict", "relevance", "defaultEnabled"];

/// A marketplace, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Marketplace {
    pub name: String,
    pub description: Option<String>,
    pub entries: Vec<MarketplaceEntry>,
    /// Entries that cannot be used.
    pub problems: Vec<Problem>,
    pub file: PathBuf,
    /// The directory that relative paths begin at.
    root: PathBuf,
    /// The directory that goes before a relative path.
    plugin_root: Option<String>,
}

/// A plugin that a marketplace lists.
#[derive(Clone, Debug, PartialEq)]
pub struct MarketplaceEntry {
    pub name: String,
    pub source: EntrySource,
    pub description: Option<String>,
    pub version: Option<String>,
    pub line: usize,
    /// The fields for its plugin, if that has no manifest of its own.
    pub manifest: Map<String, Value>,
}

impl Marketplace {
    /// Reads the marketplace that is in a directory, or is a file.
    pub fn read(location: &Path) -> Result<Self, Problem> {
        let file =
            if location.is_dir() { location.join(MARKETPLACE_FILE) } else { location.to_owned() };
        let failed = |line, message: String| Problem { path: file.clone(), line, message };
        let text = match files::read(&file, LARGEST_SETTINGS).1 {
            Ok(Some(text)) => text,
            Ok(None) => {
                let message = "is not there, so that this is no marketplace".to_owned();
                return Err(failed(None, message));
            }
            Err(error) => return Err(failed(error.line(), error.to_string())),
        };
        let node =
            document::parse(&text).map_err(|error| failed(error.line(), error.to_string()))?;
        let root = root_of(&file).canonicalize();
        let root = root.map_err(|error| failed(None, format!("cannot be read: {error}")))?;
        Self::from_node(&node, file, root)
    }

    fn from_node(node: &Node, file: PathBuf, root: PathBuf) -> Result<Self, Problem> {
        let failed =
            |line, message: String| Problem { path: file.clone(), line: Some(line), message };
        let name = node.get("name").and_then(super::manifest::text_of);
        let name =
            name.ok_or_else(|| failed(node.line, "has no `name` that is text".to_owned()))?;
        check_marketplace_name(&name).map_err(|error| failed(node.line, error.to_string()))?;
        let Some(Node { json: Json::List(items), .. }) = node.get("plugins") else {
            return Err(failed(node.line, "has no `plugins` that are a list".to_owned()));
        };
        let mut entries: Vec<MarketplaceEntry> = Vec::new();
        let mut problems = Vec::new();
        for item in items {
            match read_entry(item) {
                Ok(entry) if entries.iter().any(|known| known.name == entry.name) => {
                    let message = format!("plugin `{}` is listed before, which counts", entry.name);
                    problems.push(failed(item.line, message));
                }
                Ok(entry) => entries.push(entry),
                Err(error) => problems.push(failed(item.line, error.to_string())),
            }
        }
        let text = |node: Option<&Node>| node.and_then(super::manifest::text_of);
        let metadata = node.get("metadata");
        let description = text(node.get("description"))
            .or_else(|| text(metadata.and_then(|metadata| metadata.get("description"))));
        let plugin_root = text(metadata.and_then(|metadata| metadata.get("pluginRoot")));
        Ok(Self { name, description, entries, problems, file, root, plugin_root })
    }

    pub fn find(&self, name: &str) -> Option<&MarketplaceEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The directory that a relative path leads to. It never leads out of the marketplace.
    pub fn directory(&self, relative: &str) -> Result<PathBuf, PartPathError> {
        let is_bare = !relative.starts_with("./");
        match self.plugin_root.as_ref().filter(|_| is_bare) {
            Some(base) => part(&self.root, &format!("{base}/{relative}")),
            None => part(&self.root, relative),
        }
    }
}

/// The directory that a marketplace's file speaks for.
fn root_of(file: &Path) -> &Path {
    let beside = file.parent().unwrap_or(Path::new("/"));
    let is_usual = beside.file_name().is_some_and(|name| name == ".claude-plugin");
    beside.parent().filter(|_| is_usual).unwrap_or(beside)
}

/// The reason that an entry is left out.
#[derive(Debug, Error)]
enum EntryError {
    #[error("an entry of `plugins` is {kind} and no object")]
    NoObject { kind: &'static str },
    #[error("an entry of `plugins` has no `name` that is text")]
    NoName,
    #[error("plugin `{name}` is left out: {source}")]
    Name { name: String, source: PluginNameError },
    #[error("plugin `{name}` is left out: {source}")]
    Source { name: String, source: SourceError },
}

fn read_entry(node: &Node) -> Result<MarketplaceEntry, EntryError> {
    let value = node.to_value();
    let Value::Object(members) = &value else {
        return Err(EntryError::NoObject { kind: node.kind() });
    };
    let text = |key: &str| members.get(key).and_then(Value::as_str).map(str::to_owned);
    let name = text("name").ok_or(EntryError::NoName)?;
    let shown = || printable(&name);
    check_plugin_name(&name).map_err(|source| EntryError::Name { name: shown(), source })?;
    let source = members.get("source").ok_or(SourceError::Missing { key: "source" });
    let source = source.and_then(EntrySource::from_value);
    let source = source.map_err(|source| EntryError::Source { name: shown(), source })?;
    let mut manifest = members.clone();
    manifest.retain(|key, _| !OF_ENTRIES.contains(&key.as_str()) || key == "defaultEnabled");
    Ok(MarketplaceEntry {
        source,
        description: text("description"),
        version: text("version"),
        line: node.line,
        manifest,
        name,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn marketplace(text: &str) -> (tempfile::TempDir, Result<Marketplace, Problem>) {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir_all(scratch.path().join(".claude-plugin")).unwrap();
        fs::create_dir_all(scratch.path().join("plugins/kit")).unwrap();
        fs::write(scratch.path().join(MARKETPLACE_FILE), text).unwrap();
        let read = Marketplace::read(scratch.path());
        (scratch, read)
    }

    #[test]
    fn good_entries_count_and_bad_ones_are_told() {
        let (_scratch, read) = marketplace(
            r#"{"name": "tools", "owner": {"name": "Ann"}, "metadata": {"pluginRoot": "./plugins"},
             "plugins": [
              {"name": "kit", "source": "kit", "version": "2", "strict": false, "skills": ["./a"]},
              {"name": "../evil", "source": "./x"},
              {"name": "shop", "source": {"source": "npm", "package": "shop"}},
              {"name": "kit", "source": "./other"},
              {"name": "lost"}, 7]}"#,
        );
        let read = read.unwrap();
        assert_eq!((read.name.as_str(), read.entries.len()), ("tools", 1));
        let kit = read.find("kit").unwrap();
        assert_eq!((kit.version.as_deref(), kit.line), (Some("2"), 3));
        let manifest = serde_json::json!({"name": "kit", "version": "2", "skills": ["./a"]});
        assert_eq!(Value::Object(kit.manifest.clone()), manifest);
        assert!(read.directory("kit").unwrap().ends_with("plugins/kit"));
        assert!(read.directory("./plugins/kit").unwrap().ends_with("plugins/kit"));
        for bad in ["../..", "/etc", "./plugins/../../x"] {
            assert!(read.directory(bad).is_err(), "{bad}");
        }
        let said: Vec<_> =
            read.problems.iter().map(|it| (it.line.unwrap(), &*it.message)).collect();
        assert_eq!(
            said,
            [
                (
                    4,
                    "plugin `../evil` is left out: the name `../evil` may hold only letters, digits, `-`, `_` and `.`"
                ),
                (
                    5,
                    "plugin `shop` is left out: sources of the kind `npm` are not supported; help: use a git repository or a directory"
                ),
                (6, "plugin `kit` is listed before, which counts"),
                (7, "plugin `lost` is left out: `source` of a source is missing or no text"),
                (7, "an entry of `plugins` is a number and no object"),
            ]
        );
    }

    #[test]
    fn a_marketplace_that_is_none_says_why() {
        for (text, message) in [
            ("{}", "has no `name` that is text"),
            (r#"{"name": "../x", "plugins": []}"#, "may hold only letters"),
            (r#"{"name": "local", "plugins": []}"#, "kept for this program"),
            (r#"{"name": "x"}"#, "has no `plugins`"),
            ("{", "is not valid JSON"),
        ] {
            let error = marketplace(text).1.unwrap_err().to_string();
            assert!(error.contains(".claude-plugin/marketplace.json"), "{error}");
            assert!(error.contains(message), "{error}");
        }
        let empty = tempfile::tempdir().unwrap();
        assert!(Marketplace::read(empty.path()).unwrap_err().message.contains("is not there"));
    }
}
