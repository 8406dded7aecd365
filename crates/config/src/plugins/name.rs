//! Names of plugins and marketplaces. They become parts of paths, of the names of tools and of keys in settings, so
//! that little is allowed in them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::settings::printable;

/// Longer names leave no room for what follows them.
const LONGEST: usize = 64;

/// The marketplace of plugins that `--plugin-dir` names.
pub const INLINE: &str = "inline";

/// The marketplace of plugins that were added from a directory.
pub const LOCAL: &str = "local";

/// The marketplace of plugins that lie among skills.
pub const SKILLS_DIR: &str = "skills-dir";

/// Names that no marketplace may give itself.
const RESERVED: [&str; 4] = [INLINE, LOCAL, "builtin", SKILLS_DIR];

/// The reason why a name cannot be a plugin's or a marketplace's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PluginNameError {
    #[error("a name is missing")]
    Empty,
    #[error("the name `{0}` is longer than {LONGEST} letters")]
    TooLong(String),
    #[error("the name `{0}` may hold only letters, digits, `-`, `_` and `.`")]
    Letters(String),
    #[error("the name `{0}` must begin with a letter or digit")]
    Start(String),
    #[error("the name `{0}` is kept for this program")]
    Reserved(String),
    #[error("`{0}` names no plugin: write plugin@marketplace")]
    NoMarketplace(String),
}

/// Checks the name of a plugin, or any other that becomes one part of a path.
pub fn check_plugin_name(name: &str) -> Result<(), PluginNameError> {
    let first = name.chars().next().ok_or(PluginNameError::Empty)?;
    if name.len() > LONGEST {
        return Err(PluginNameError::TooLong(printable(name)));
    }
    let is_good = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if !name.chars().all(is_good) {
        return Err(PluginNameError::Letters(printable(name)));
    }
    if !first.is_ascii_alphanumeric() {
        return Err(PluginNameError::Start(name.to_owned()));
    }
    Ok(())
}

/// Checks the name that a marketplace gives itself.
pub fn check_marketplace_name(name: &str) -> Result<(), PluginNameError> {
    check_plugin_name(name)?;
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        return Err(PluginNameError::Reserved(name.to_owned()));
    }
    Ok(())
}

/// A plugin by its name and where it is from: `plugin@marketplace`. Both names are safe in a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginId {
    name: String,
    marketplace: String,
}

impl PluginId {
    pub fn new(name: &str, marketplace: &str) -> Result<Self, PluginNameError> {
        check_plugin_name(name)?;
        check_plugin_name(marketplace)?;
        Ok(Self { name: name.to_owned(), marketplace: marketplace.to_owned() })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn marketplace(&self) -> &str {
        &self.marketplace
    }

    /// The name of the directory that the plugin keeps its own data in.
    pub(super) fn data_name(&self) -> String {
        let safe = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
        self.to_string().chars().map(safe).collect()
    }
}

impl fmt::Display for PluginId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.name, self.marketplace)
    }
}

impl FromStr for PluginId {
    type Err = PluginNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, marketplace) =
            text.split_once('@').ok_or_else(|| PluginNameError::NoMarketplace(printable(text)))?;
        Self::new(name, marketplace)
    }
}

/// A version as one part of a path, whatever its author wrote.
pub(super) fn version_directory(version: &str) -> String {
    let safe = |it: char| match it {
        it if it.is_ascii_alphanumeric() => it,
        '.' | '+' | '_' => it,
        _ => '-',
    };
    let name: String = version.trim().chars().take(LONGEST).map(safe).collect();
    let name = name.trim_start_matches(['.', '-', '+']);
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_lead_elsewhere() {
        for good in ["my-plugin", "a", "4.1_beta", "Kit"] {
            assert_eq!(check_plugin_name(good), Ok(()), "{good}");
        }
        for bad in ["", "..", ".x", "-x", "_x", "a/b", "a\\b", "a:b", "a b", "a\0", "ä", "a@b"] {
            assert!(check_plugin_name(bad).is_err(), "{bad:?}");
            assert!(PluginId::new(bad, "m").is_err() && PluginId::new("p", bad).is_err());
        }
        assert!(check_plugin_name(&"a".repeat(65)).is_err());
        assert_eq!(check_marketplace_name("tools"), Ok(()));
        for reserved in ["local", "Inline", "builtin", "skills-dir"] {
            let error = PluginNameError::Reserved(reserved.to_owned());
            assert_eq!(check_marketplace_name(reserved), Err(error));
        }
    }

    #[test]
    fn an_id_is_two_names() {
        let id: PluginId = "my.kit@tools".parse().unwrap();
        assert_eq!((id.name(), id.marketplace()), ("my.kit", "tools"));
        assert_eq!(
            (id.to_string().as_str(), id.data_name().as_str()),
            ("my.kit@tools", "my-kit-tools")
        );
        for bad in ["kit", "kit@", "@tools", "../x@tools", "kit@../..", "a@b@c"] {
            assert!(bad.parse::<PluginId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_version_is_one_part_of_a_path() {
        for (version, directory) in [
            ("1.0.0", "1.0.0"),
            ("v2-beta+1", "v2-beta+1"),
            ("../../etc", "etc"),
            ("/abs", "abs"),
            ("..", "unknown"),
            ("", "unknown"),
            ("a/b\0", "a-b-"),
        ] {
            assert_eq!(version_directory(version), directory, "{version:?}");
        }
    }
}
