//! A plugin that a repository brings: it counts as long as every file of it is as it was when the folder was
//! trusted.

use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use centurion_files::{Directory, Kind};
use thiserror::Error;

use super::bundle::Bundle;
use super::skills_dir::manifest_of;
use crate::agents;
use crate::files::{self, FileError};
use crate::frontmatter::decode;
use crate::settings::printable;
use crate::skills;
use crate::trust::{ContentTrust, PowerItem, Reach, Unaccepted};

const MOST_FILES: usize = 2_000;
const MOST_BYTES: u64 = 32 * 1024 * 1024;
const DEEPEST: usize = 16;

/// The reason why the whole of a plugin cannot be compared with what was accepted.
#[derive(Debug, Error)]
enum PluginTreeError {
    #[error("{} cannot be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{} {error}", path.display())]
    File { path: PathBuf, error: FileError },
    #[error("{} leads out of the plugin", .0.display())]
    LinkOut(PathBuf),
    #[error("{} is no file, directory or link", .0.display())]
    Special(PathBuf),
    #[error(
        "it has more than {MOST_FILES} files, more than {MOST_BYTES} bytes or more than {DEEPEST} folders in each other"
    )]
    TooLarge,
}

/// The directory of a plugin in a repository, with what says whether its content was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedTree {
    pub(super) root: PathBuf,
    pub(super) content: ContentTrust,
}

impl AcceptedTree {
    /// The plugin's directory, by its real path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether all of the plugin is as it was accepted, by a look at every file. Where its folder is not trusted no file
    /// is read: a stranger's repository does not decide how long a start takes.
    pub fn judge(&self) -> Result<(), Unaccepted> {
        let nothing = PowerItem::of_text(
            &manifest_of(&self.root),
            None,
            item_name(&self.root),
            "",
            (None, None),
        );
        let untrusted =
            |reason: &Unaccepted| matches!(reason, Unaccepted::Untrusted | Unaccepted::Unrecorded);
        if let Err(reason) = self.content.judge(&nothing, Reach::Folder)
            && untrusted(&reason)
        {
            return Err(reason);
        }
        match power_item(&self.root) {
            Ok(item) => self.content.judge(&item, Reach::Folder),
            Err(error) => Err(Unaccepted::Unreadable(error.to_string())),
        }
    }
}

/// The plugins among the skills of a project's directory of definitions that have to be accepted.
pub(crate) fn directory_power(directory: &Path) -> Vec<PowerItem> {
    let Ok(entries) = fs::read_dir(directory.join("skills")) else { return Vec::new() };
    let folders = entries.flatten().map(|entry| entry.path());
    let mut plugins: Vec<PathBuf> = folders.filter(|it| manifest_of(it).exists()).collect();
    plugins.sort();
    // One that cannot be accepted stays off, and says why when a session begins.
    plugins.iter().filter_map(|root| power_item(root).ok()).collect()
}

/// The whole of a plugin as one item: its files by their hashes, and the commands that may run others.
fn power_item(root: &Path) -> Result<PowerItem, PluginTreeError> {
    let unreadable = |error| PluginTreeError::Unreadable { path: root.to_owned(), error };
    let root = &root.canonicalize().map_err(unreadable)?;
    let mut tree =
        PluginWalk { root, text: String::new(), commands: Vec::new(), files: 0, bytes: 0 };
    tree.folder(Path::new(""), 0)?;
    let usual_name = root.file_name().unwrap_or_default().to_string_lossy();
    if let Ok(bundle) = Bundle::read(root, &usual_name) {
        tree.commands.extend(bundle.commands_of_hooks_and_servers());
    }
    let (file, name) = (manifest_of(root), item_name(root));
    let item = PowerItem::of_text(&file, None, name, &tree.text, (None, None));
    Ok(item.with_commands(tree.commands.into_iter(), root))
}

/// The name of a plugin among the items that have to be accepted.
fn item_name(root: &Path) -> String {
    format!("plugin `{}`", printable(&root.file_name().unwrap_or_default().to_string_lossy()))
}

/// A walk through all files of a plugin, in the order of their names.
struct PluginWalk<'r> {
    /// Its real path.
    root: &'r Path,
    text: String,
    commands: Vec<String>,
    files: usize,
    bytes: u64,
}

impl PluginWalk<'_> {
    fn folder(&mut self, below: &Path, depth: usize) -> Result<(), PluginTreeError> {
        let path = self.root.join(below);
        let unreadable = |error| PluginTreeError::Unreadable { path: path.clone(), error };
        let listed = Directory::open(&path).and_then(|directory| directory.list(MOST_FILES + 1));
        let mut entries = listed.map_err(unreadable)?;
        self.files += entries.len();
        if self.files > MOST_FILES || depth > DEEPEST {
            return Err(PluginTreeError::TooLarge);
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        for entry in entries {
            let below = below.join(&entry.name);
            let path = self.root.join(&below);
            match entry.kind {
                Kind::Directory => self.folder(&below, depth + 1)?,
                Kind::File => self.file(&below, &path)?,
                Kind::Link => self.link(&below, path)?,
                Kind::Other => return Err(PluginTreeError::Special(path)),
            }
        }
        Ok(())
    }

    fn file(&mut self, below: &Path, path: &Path) -> Result<(), PluginTreeError> {
        let failed = |error| PluginTreeError::File { path: path.to_owned(), error };
        let bytes = files::bytes_at(path, MOST_BYTES).map_err(failed)?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MOST_BYTES {
            return Err(PluginTreeError::TooLarge);
        }
        let _ = writeln!(self.text, "file\t{}\t{}", shown(below), blake3::hash(&bytes).to_hex());
        if below.extension().is_some_and(|it| it.eq_ignore_ascii_case("md")) {
            let text = decode(&bytes);
            self.commands.append(&mut skills::commands_of_text(&text, path));
            self.commands.append(&mut agents::commands_of_text(&text, path));
        }
        Ok(())
    }

    /// A link may lead to another part of the plugin: that is compared by itself.
    fn link(&mut self, below: &Path, path: PathBuf) -> Result<(), PluginTreeError> {
        let unreadable = |error| PluginTreeError::Unreadable { path: path.clone(), error };
        let target = fs::read_link(&path).map_err(unreadable)?;
        if !path.canonicalize().map_err(unreadable)?.starts_with(self.root) {
            return Err(PluginTreeError::LinkOut(path));
        }
        let _ = writeln!(self.text, "link\t{}\t{}", shown(below), shown(&target));
        Ok(())
    }
}

/// A path without a tab or an end of line in it: no name can pretend to be something else.
fn shown(path: &Path) -> impl fmt::Display {
    path.as_os_str().as_encoded_bytes().escape_ascii()
}
