//! Writing into a settings file: one value is added, and all else stays as it was written.

mod lists;
mod values;

use std::path::{Path, PathBuf};

use serde_json::json;
use thiserror::Error;

use super::document::{Json, Node};
use super::draft::{Draft, InTheWay};
use super::keys::MODES;
use crate::files::{self, FileError, LARGEST_SETTINGS, Readers};

pub use self::lists::{remove_directories, remove_rules, replace_rules};
pub use self::values::{KnownSetting, ValueError, known_settings, read_setting, set_value, unset};

/// A file that may be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    path: PathBuf,
    links: Links,
    readers: Readers,
    /// The most that it may hold.
    limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Links {
    Followed,
    Refused,
}

impl SettingsFile {
    /// A file of the user's own: people keep these elsewhere and link to them.
    pub fn of_user(path: PathBuf) -> Self {
        Self { path, links: Links::Followed, readers: Readers::Owner, limit: LARGEST_SETTINGS }
    }

    /// A file in a project. A link there may have come with the repository and lead anywhere.
    pub fn in_project(path: PathBuf) -> Self {
        Self { links: Links::Refused, ..Self::of_user(path) }
    }

    /// A file in a project that goes into its repository, and that its other users read.
    pub(crate) fn of_repository(path: PathBuf) -> Self {
        Self { readers: Readers::Usual, ..Self::in_project(path) }
    }

    pub(crate) fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself, behind links that may be followed.
    fn target(&self) -> Result<PathBuf, EditError> {
        match self.links {
            Links::Refused if is_linked(&self.path) => {
                Err(EditError::Link { file: self.path.clone() })
            }
            Links::Followed if self.path.is_symlink() => {
                self.path.canonicalize().map_err(|error| self.failed(FileError::Unreadable(error)))
            }
            Links::Refused | Links::Followed => Ok(self.path.clone()),
        }
    }

    /// Something in the file is not what it must be.
    pub(crate) fn shape(&self, line: usize, key: &str, expected: &'static str) -> EditError {
        EditError::Shape { file: self.path.clone(), line, key: key.to_owned(), expected }
    }

    pub(crate) fn failed(&self, error: FileError) -> EditError {
        let place = match error.line() {
            Some(line) => format!("{}:{line}", self.path.display()),
            None => self.path.display().to_string(),
        };
        EditError::File { place, error }
    }
}

/// The list of rules that is edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleList {
    Allow,
    Ask,
    Deny,
}

impl RuleList {
    fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The result of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Written,
    /// The file says so already.
    AlreadyThere,
}

#[derive(Debug, Error)]
pub enum EditError {
    #[error("{place}: {error}; nothing was written")]
    File { place: String, error: FileError },
    #[error(
        "{} is reached through a link, which may have come with the repository; nothing was written",
        file.display()
    )]
    Link { file: PathBuf },
    #[error("{}:{line}: `{key}` is no {expected}; nothing was written", file.display())]
    Shape { file: PathBuf, line: usize, key: String, expected: &'static str },
    #[error("there is nothing to write: the text is empty")]
    Empty,
    #[error("`{mode}` is no permission mode; help: use one of {}", MODES.join(", "))]
    Mode { mode: String },
}

/// Adds a rule to one of the lists of a file, which is made if it is not there.
pub fn add_rule(file: &SettingsFile, list: RuleList, rule: &str) -> Result<Change, EditError> {
    add_item(file, list.name(), rule.trim())
}

/// Adds a directory to those that an agent may work in.
pub fn add_directory(file: &SettingsFile, directory: &str) -> Result<Change, EditError> {
    add_item(file, "additionalDirectories", directory)
}

/// Sets the mode that sessions start in.
pub fn set_default_mode(file: &SettingsFile, mode: &str) -> Result<Change, EditError> {
    if !MODES.contains(&mode) {
        return Err(EditError::Mode { mode: mode.to_owned() });
    }
    change(file, |draft| {
        let permissions = permissions(draft, file)?;
        let current = permissions.and_then(|node| node.get("defaultMode"));
        match (permissions, current) {
            (_, Some(node)) if node.to_value() == mode => Ok(None),
            (_, Some(node)) => Ok(Some(draft.replaced(node, &json!(mode)))),
            (Some(node), None) => Ok(Some(draft.with_member(node, "defaultMode", &json!(mode)))),
            (None, None) => {
                let value = json!({ "defaultMode": mode });
                Ok(Some(draft.with_member(&draft.root, "permissions", &value)))
            }
        }
    })
}

/// Sets a key of a file to a text.
pub fn set_text(file: &SettingsFile, key: &str, text: &str) -> Result<Change, EditError> {
    change(file, |draft| {
        if draft.root.get(key).is_some_and(|node| node.to_value() == text) {
            return Ok(None);
        }
        let changed = draft.with_value_at(&[key], &json!(text));
        changed.map(Some).map_err(|InTheWay { line, key }| file.shape(line, &key, "object"))
    })
}

/// Switches a plugin on or off; `None` says nothing about it any more. What is not there is not made to
/// say nothing.
pub fn switch_plugin(
    file: &SettingsFile,
    id: &str,
    is_on: Option<bool>,
) -> Result<Change, EditError> {
    const KEY: &str = "enabledPlugins";
    if is_on.is_none() && !file.path().exists() {
        return Ok(Change::AlreadyThere);
    }
    change(file, |draft| {
        let plugins = draft.root.get(KEY);
        if let Some(node) = plugins.filter(|node| !matches!(node.json, Json::Object(_))) {
            return Err(file.shape(node.line, KEY, "object"));
        }
        let current = plugins.and_then(|plugins| plugins.get(id));
        match (is_on, plugins, current) {
            (None, Some(plugins), Some(_)) => Ok(draft.without_member(plugins, id)),
            (None, ..) => Ok(None),
            (Some(is_on), _, Some(node)) if node.json == Json::Bool(is_on) => Ok(None),
            (Some(is_on), ..) => draft
                .with_value_at(&[KEY, id], &json!(is_on))
                .map(Some)
                .map_err(|InTheWay { line, key }| file.shape(line, &key, "object")),
        }
    })
}

fn add_item(file: &SettingsFile, list: &'static str, item: &str) -> Result<Change, EditError> {
    if item.is_empty() {
        return Err(EditError::Empty);
    }
    change(file, |draft| {
        let Some(permissions) = permissions(draft, file)? else {
            let value = json!({ list: [item] });
            return Ok(Some(draft.with_member(&draft.root, "permissions", &value)));
        };
        let Some(node) = permissions.get(list) else {
            return Ok(Some(draft.with_member(permissions, list, &json!([item]))));
        };
        let Json::List(items) = &node.json else {
            return Err(file.shape(node.line, list, "list"));
        };
        if items.iter().any(|present| matches!(&present.json, Json::Text(text) if text == item)) {
            return Ok(None);
        }
        Ok(Some(draft.with_item(node, items, &json!(item))))
    })
}

fn permissions<'d>(draft: &'d Draft, file: &SettingsFile) -> Result<Option<&'d Node>, EditError> {
    let Some(node) = draft.root.get("permissions") else { return Ok(None) };
    if matches!(node.json, Json::Object(_)) {
        return Ok(Some(node));
    }
    Err(file.shape(node.line, "permissions", "object"))
}

/// Reads a file, lets `edit` make a new text of it, and puts that in its place. Others who write it
/// the same way wait meanwhile.
pub(crate) fn change<E: From<EditError>>(
    file: &SettingsFile,
    edit: impl Fn(&Draft) -> Result<Option<String>, E>,
) -> Result<Change, E> {
    let target = file.target()?;
    let directory = target.parent().unwrap_or(Path::new("/"));
    let _guard = files::lock_directory(directory).map_err(|error| file.failed(error))?;
    let (_, text) = files::read(&target, file.limit);
    let text = text.map_err(|error| file.failed(error))?.unwrap_or_default();
    let draft = Draft::new(text).map_err(|error| file.failed(error))?;
    if !matches!(draft.root.json, Json::Object(_)) {
        return Err(file.shape(draft.root.line, "the file", "object").into());
    }
    let Some(text) = edit(&draft)? else { return Ok(Change::AlreadyThere) };
    files::replace_for(&target, &text, file.readers).map_err(|error| file.failed(error))?;
    Ok(Change::Written)
}

/// Whether a link leads to a file in a project, itself or by its directory.
fn is_linked(file: &Path) -> bool {
    file.is_symlink() || file.parent().is_some_and(Path::is_symlink)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use serde_json::Value;

    use super::*;

    /// The text after a rule was added to a file with this text.
    fn added(text: &str) -> String {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("settings.json");
        fs::write(&path, text).unwrap();
        let file = SettingsFile::of_user(path.clone());
        assert_eq!(add_rule(&file, RuleList::Allow, "New").unwrap(), Change::Written);
        let after = fs::read_to_string(&path).unwrap();
        assert_eq!(add_rule(&file, RuleList::Allow, " New ").unwrap(), Change::AlreadyThere);
        assert_eq!(fs::read_to_string(&path).unwrap(), after);
        after
    }

    #[test]
    fn a_rule_is_laid_out_like_its_neighbours() {
        let fresh = "{\n  \"permissions\": {\n    \"allow\": [\n      \"New\"\n    ]\n  }\n}\n";
        for (before, after) in [
            ("", fresh),
            (" \n", fresh),
            ("{}\n", fresh),
            ("{\n}\n", fresh),
            (
                "{\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"Old\"\n\t\t]\n\t},\n\t\"x\": 1\n}",
                "{\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"Old\",\n\t\t\t\"New\"\n\t\t]\n\t},\n\t\"x\": 1\n}",
            ),
            (
                "{\r\n    \"permissions\": { \"deny\": [] , \"allow\": [] }\r\n}",
                "{\r\n    \"permissions\": { \"deny\": [] , \"allow\": [\r\n        \"New\"\r\n    ] }\r\n}",
            ),
            (
                "{\n  \"permissions\": {\"allow\": [\"A\", \"B\"]}\n}",
                "{\n  \"permissions\": {\"allow\": [\"A\", \"B\", \"New\"]}\n}",
            ),
            (
                "{\n  \"model\": \"m\",\n  \"permissions\": {\n    \"deny\": [\"X\"]\n  }\n}\n",
                "{\n  \"model\": \"m\",\n  \"permissions\": {\n    \"deny\": [\"X\"],\n    \"allow\": [\n      \"New\"\n    ]\n  }\n}\n",
            ),
            ("{\"a\":1}", "{\"a\":1, \"permissions\": {\"allow\":[\"New\"]}}"),
            (
                "\u{feff}{\n  \"a\": \"ä}\"\n}",
                "\u{feff}{\n  \"a\": \"ä}\",\n  \"permissions\": {\n    \"allow\": [\n      \"New\"\n    ]\n  }\n}",
            ),
        ] {
            assert_eq!(added(before), after, "{before:?}");
        }
    }

    #[test]
    fn modes_and_directories_are_written_too() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("deep/.claude/settings.local.json");
        let file = SettingsFile::in_project(path.clone());
        assert_eq!(set_default_mode(&file, "plan").unwrap(), Change::Written);
        assert_eq!(set_default_mode(&file, "plan").unwrap(), Change::AlreadyThere);
        set_default_mode(&file, "acceptEdits").unwrap();
        add_directory(&file, "../lib \"x\"").unwrap();
        add_rule(&file, RuleList::Deny, "Bash(rm *)").unwrap();
        add_rule(&file, RuleList::Ask, "Write").unwrap();
        let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let permissions = json!({
            "defaultMode": "acceptEdits", "additionalDirectories": ["../lib \"x\""],
            "deny": ["Bash(rm *)"], "ask": ["Write"],
        });
        assert_eq!(value, json!({ "permissions": permissions }));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(set_default_mode(&file, "yolo").unwrap_err().to_string().contains("`yolo` is no"));
        assert!(matches!(add_rule(&file, RuleList::Ask, " "), Err(EditError::Empty)));
    }

    #[test]
    fn a_file_that_is_not_understood_is_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("settings.json");
        let file = SettingsFile::of_user(path.clone());
        for (text, message) in [
            ("{\n  \"a\": 1,\n}", "settings.json:3: is not valid JSON: trailing comma (column 1)"),
            ("[]", "settings.json:1: `the file` is no object"),
            ("{\n\"permissions\": 1}", "settings.json:2: `permissions` is no object"),
            ("{\"permissions\": {\"allow\": \"x\"}}", "settings.json:1: `allow` is no list"),
        ] {
            fs::write(&path, text).unwrap();
            let error = add_rule(&file, RuleList::Allow, "New").unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_repositorys_link_is_not_written_through_but_the_users_is() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("dotfiles")).unwrap();
        fs::write(root.join("dotfiles/s.json"), "{}").unwrap();
        symlink(root.join("dotfiles/s.json"), root.join("settings.json")).unwrap();
        symlink(root.join("dotfiles"), root.join(".claude")).unwrap();
        for name in ["settings.json", ".claude/s.json", ".claude/new.json"] {
            let error = add_rule(&SettingsFile::in_project(root.join(name)), RuleList::Allow, "X");
            assert!(matches!(error, Err(EditError::Link { .. })), "{name}");
        }
        assert_eq!(fs::read_to_string(root.join("dotfiles/s.json")).unwrap(), "{}");
        add_rule(&SettingsFile::of_user(root.join("settings.json")), RuleList::Allow, "X").unwrap();
        assert!(root.join("settings.json").is_symlink());
        assert!(fs::read_to_string(root.join("dotfiles/s.json")).unwrap().contains("\"X\""));
    }

    #[test]
    fn a_plugin_is_switched_in_place() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("settings.json");
        let file = SettingsFile::of_user(path.clone());
        let text = || fs::read_to_string(&path).unwrap();
        assert_eq!(switch_plugin(&file, "p@m", None).unwrap(), Change::AlreadyThere);
        assert!(!path.exists());
        let before =
            "{\n\t\"model\" : \"m\",\n\t\"enabledPlugins\": {\n\t\t\"a.b@c\": true\n\t}\n}";
        fs::write(&path, before).unwrap();
        assert_eq!(switch_plugin(&file, "p@m", Some(true)).unwrap(), Change::Written);
        assert_eq!(switch_plugin(&file, "p@m", Some(true)).unwrap(), Change::AlreadyThere);
        assert!(text().contains("\"a.b@c\": true,\n\t\t\"p@m\": true\n"), "{}", text());
        switch_plugin(&file, "p@m", Some(false)).unwrap();
        assert!(text().contains("\"p@m\": false"), "{}", text());
        switch_plugin(&file, "p@m", None).unwrap();
        assert_eq!(text(), before);
        fs::write(&path, "{\n\"enabledPlugins\": []}").unwrap();
        let error = switch_plugin(&file, "p@m", Some(true)).unwrap_err().to_string();
        assert!(error.contains("settings.json:2: `enabledPlugins` is no object"), "{error}");
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("settings.json");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let file = SettingsFile::of_user(path.clone());
                scope.spawn(move || {
                    for rule in 0..8 {
                        add_rule(&file, RuleList::Allow, &format!("R{writer}_{rule}")).unwrap();
                    }
                });
            }
        });
        let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(value["permissions"]["allow"].as_array().unwrap().len(), 32);
    }
}
