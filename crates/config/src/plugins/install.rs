//! Putting plugins and marketplaces into our directory and taking them out again. A tree appears whole or
//! not at all, and the lists are changed in one step each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use centurion_protocol::World;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::bundle::Bundle;
use super::manifest::PLACES;
use super::marketplace::MarketplaceEntry;
use super::name::{PluginId, PluginNameError, check_marketplace_name, version_directory};
use super::source::MarketplaceSource;
use super::store::{INSTALLED, InstallScope, InstalledPlugin, KNOWN, PluginStores, records_of};
use super::tree::{CopyError, copy_tree};
use crate::Problem;
use crate::files::{self, FileError};
use crate::settings::draft::InTheWay;
use crate::settings::edit::change;
use crate::settings::{Change, EditError, SettingsFile};

/// The number of letters of a commit that stand for a version.
const COMMIT_LETTERS: usize = 12;

/// The reason why something cannot be installed or removed.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("{}", listed(.0))]
    NoPlugin(Vec<Problem>),
    #[error(transparent)]
    Tree(#[from] CopyError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Name(#[from] PluginNameError),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: FileError },
    #[error("{} cannot be changed: {error}", path.display())]
    Change { path: PathBuf, error: io::Error },
}

fn listed(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A plugin that is to be installed.
#[derive(Debug)]
pub struct Installation<'i> {
    pub id: &'i PluginId,
    /// The plugin's directory, which is copied.
    pub from: &'i Path,
    /// The entry of its marketplace.
    pub entry: Option<&'i MarketplaceEntry>,
    /// The commit that it was fetched at.
    pub commit: Option<String>,
    pub scope: InstallScope,
    /// The project it is for, unless it is for all of them.
    pub project: Option<&'i Path>,
}

/// A plugin that was installed.
#[derive(Debug)]
pub struct Installed {
    pub plugin: InstalledPlugin,
    /// Files that were left out, and parts that do not work.
    pub problems: Vec<Problem>,
}

impl PluginStores {
    /// Copies a plugin into our directory and notes that it is there. The same version again takes the
    /// place of what was there.
    pub fn install(
        &self,
        installation: &Installation<'_>,
        world: &dyn World,
    ) -> Result<Installed, StoreError> {
        let id = installation.id;
        let home = self.plugin_home(id);
        let _guard = self.lock()?;
        let staged = StagedDirectory::new(&home)?;
        let mut problems = copy_tree(installation.from, &staged.path)?;
        if let Some(entry) = installation.entry {
            write_manifest(&staged.path, entry)?;
        }
        let bundle = Bundle::read(&staged.path, id.name()).map_err(StoreError::NoPlugin)?;
        let version = version_of(&bundle, installation);
        let root = home.join(version_directory(&version));
        staged.settle(&root)?;
        problems
            .extend(bundle.errors.into_iter().map(|problem| moved(problem, &staged.path, &root)));
        let plugin = InstalledPlugin {
            id: id.clone(),
            scope: installation.scope,
            project: installation.project.map(Path::to_owned),
            root,
            version,
            store: self.ours.clone(),
        };
        self.note_installed(&plugin, installation.commit.as_deref(), world)?;
        Ok(Installed { plugin, problems })
    }

    /// Forgets that a plugin is installed for a scope. If no scope has it any more, its files are deleted,
    /// but not the data that it keeps.
    pub fn uninstall(&self, plugin: &InstalledPlugin) -> Result<(), StoreError> {
        let _guard = self.lock()?;
        let file = self.list(INSTALLED);
        let id = plugin.id.to_string();
        let mut is_last = false;
        edit_member(&file, &["plugins"], &id, |records| {
            let mut records = records.map(records_of).unwrap_or_default();
            records.retain(|record| !is_about(record, plugin));
            (!records.is_empty()).then(|| Value::Array(records))
        })
        .map(|left| is_last = left.is_none())?;
        if is_last {
            remove_tree(&self.plugin_home(&plugin.id))?;
        }
        Ok(())
    }

    /// Puts a marketplace that was fetched into its place among ours, and notes where it came from. What
    /// was there before under its name goes. `fetched` is `None` for one that stays where it is.
    pub fn keep_marketplace(
        &self,
        name: &str,
        source: &MarketplaceSource,
        fetched: Option<&Path>,
        world: &dyn World,
    ) -> Result<PathBuf, StoreError> {
        check_marketplace_name(name)?;
        let _guard = self.lock()?;
        let location = match (fetched, source) {
            (Some(fetched), _) => {
                let place = self.marketplaces().join(name);
                swap(fetched, &place)?;
                place
            }
            (None, MarketplaceSource::Directory(path) | MarketplaceSource::File(path)) => {
                path.clone()
            }
            (None, MarketplaceSource::Git(_)) => self.marketplaces().join(name),
        };
        let record = json!({
            "source": source.to_value(), "installLocation": location,
            "lastUpdated": world.now().to_string(),
        });
        edit_member(&self.list(KNOWN), &[], name, |_| Some(record.clone()))?;
        Ok(location)
    }

    /// Forgets a marketplace, and deletes it if it was fetched.
    pub fn forget_marketplace(&self, name: &str) -> Result<(), StoreError> {
        check_marketplace_name(name)?;
        let _guard = self.lock()?;
        edit_member(&self.list(KNOWN), &[], name, |_| None)?;
        remove_tree(&self.marketplaces().join(name))
    }

    /// A directory of ours for something that is being fetched, on the file system that it will stay on.
    pub fn fetching_place(&self, name: &str) -> Result<PathBuf, StoreError> {
        let directory = self.marketplaces();
        fs::create_dir_all(&directory).map_err(|error| changed(&directory, error))?;
        let place = directory.join(format!(".{name}.{}", std::process::id()));
        remove_tree(&place)?;
        Ok(place)
    }

    fn marketplaces(&self) -> PathBuf {
        self.ours.join("marketplaces")
    }

    /// The directory of all versions of a plugin.
    fn plugin_home(&self, id: &PluginId) -> PathBuf {
        self.ours.join("cache").join(id.marketplace()).join(id.name())
    }

    fn list(&self, name: &str) -> SettingsFile {
        SettingsFile::of_user(self.ours.join(name))
    }

    /// Keeps others out of the trees. The lists have a lock of their own.
    fn lock(&self) -> Result<fs::File, StoreError> {
        let path = self.ours.join("cache");
        files::lock_directory(&path).map_err(|error| StoreError::File { path, error })
    }

    fn note_installed(
        &self,
        plugin: &InstalledPlugin,
        commit: Option<&str>,
        world: &dyn World,
    ) -> Result<(), StoreError> {
        let now = world.now().to_string();
        let mut record = Map::from_iter([
            ("scope".to_owned(), json!(plugin.scope.as_str())),
            ("installPath".to_owned(), json!(plugin.root)),
            ("version".to_owned(), json!(plugin.version)),
            ("installedAt".to_owned(), json!(now)),
            ("lastUpdated".to_owned(), json!(now)),
        ]);
        if let Some(project) = &plugin.project {
            record.insert("projectPath".to_owned(), json!(project));
        }
        if let Some(commit) = commit {
            record.insert("gitCommitSha".to_owned(), json!(commit));
        }
        let file = self.list(INSTALLED);
        let id = plugin.id.to_string();
        edit_member(&file, &["plugins"], &id, |records| {
            let mut records = records.map(records_of).unwrap_or_default();
            records.retain(|known| !is_about(known, plugin));
            records.push(Value::Object(record.clone()));
            Some(Value::Array(records))
        })?;
        Ok(())
    }
}

/// Whether a record is about the same installation.
fn is_about(record: &Value, plugin: &InstalledPlugin) -> bool {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    text("scope").unwrap_or("user") == plugin.scope.as_str()
        && text("projectPath").map(Path::new) == plugin.project.as_deref()
}

/// Changes one member of an object in a list; gives what it is now.
fn edit_member(
    file: &SettingsFile,
    path: &[&str],
    name: &str,
    edit: impl Fn(Option<&Value>) -> Option<Value>,
) -> Result<Option<Value>, StoreError> {
    let after = std::cell::RefCell::new(None);
    let _: Change = change(file, |draft| {
        let holder = path.iter().try_fold(&draft.root, |node, name| node.get(name));
        let current = holder
            .and_then(|holder| holder.get(name))
            .map(crate::settings::document::Node::to_value);
        let new = edit(current.as_ref());
        after.replace(new.clone());
        let text = match (new, holder) {
            (Some(value), _) => {
                let path: Vec<&str> = path.iter().copied().chain([name]).collect();
                let text = draft.with_value_at(&path, &value);
                Some(text.map_err(|InTheWay { line, key }| file.shape(line, &key, "object"))?)
            }
            (None, Some(holder)) => draft.without_member(holder, name),
            (None, None) => None,
        };
        Ok::<_, EditError>(text)
    })?;
    Ok(after.into_inner())
}

/// The version that a plugin is installed as.
fn version_of(bundle: &Bundle, installation: &Installation<'_>) -> String {
    let of_entry = || installation.entry.and_then(|entry| entry.version.clone());
    let of_commit = || {
        let commit = installation.commit.as_deref()?;
        Some(commit.chars().take(COMMIT_LETTERS).collect())
    };
    let version = bundle.manifest.version.clone().filter(|version| !version.trim().is_empty());
    version.or_else(of_entry).or_else(of_commit).unwrap_or_else(|| "unknown".to_owned())
}

/// Writes what the marketplace says for a plugin that says nothing itself.
fn write_manifest(root: &Path, entry: &MarketplaceEntry) -> Result<(), StoreError> {
    if PLACES.iter().any(|place| root.join(place).symlink_metadata().is_ok()) {
        return Ok(());
    }
    let [place, _] = PLACES;
    let path = root.join(place);
    let text = format!("{:#}\n", Value::Object(entry.manifest.clone()));
    let directory = path.parent().unwrap_or(root);
    fs::create_dir_all(directory).map_err(|error| changed(directory, error))?;
    files::replace(&path, &text).map_err(|error| StoreError::File { path, error })
}

/// A problem with something that has been moved since.
fn moved(problem: Problem, from: &Path, to: &Path) -> Problem {
    let path = problem.path.strip_prefix(from).map(|rest| to.join(rest));
    Problem { path: path.unwrap_or_else(|_| problem.path.clone()), ..problem }
}

/// A directory that is being filled, gone if it does not get its place.
struct StagedDirectory {
    path: PathBuf,
}

impl StagedDirectory {
    fn new(home: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(home).map_err(|error| changed(home, error))?;
        let real = home.canonicalize().map_err(|error| changed(home, error))?;
        let path = real.join(format!(".new.{}", std::process::id()));
        remove_tree(&path)?;
        Ok(Self { path })
    }

    fn settle(&self, place: &Path) -> Result<(), StoreError> {
        swap(&self.path, place)
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        // It is not there any more where all went well.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Puts a directory in the place of another.
fn swap(new: &Path, place: &Path) -> Result<(), StoreError> {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let old = place.with_file_name(format!(".{name}.old.{}", std::process::id()));
    remove_tree(&old)?;
    let has_old = place.symlink_metadata().is_ok();
    if has_old {
        fs::rename(place, &old).map_err(|error| changed(place, error))?;
    }
    if let Err(error) = fs::rename(new, place) {
        if has_old {
            // The earlier files come back; the error that matters is the first one.
            let _ = fs::rename(&old, place);
        }
        return Err(changed(place, error));
    }
    remove_tree(&old)
}

fn remove_tree(path: &Path) -> Result<(), StoreError> {
    let result = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if !files::is_absence(&error) => Err(changed(path, error)),
        _ => Ok(()),
    }
}

fn changed(path: &Path, error: io::Error) -> StoreError {
    StoreError::Change { path: path.to_owned(), error }
}
