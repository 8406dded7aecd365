//! The names of worktrees.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// Number of characters of an agent's id in the name of its worktree.
const OF_ID: usize = 8;

/// The name of a worktree: of its directory, and behind `worktree-` of its branch.
///
/// Checked when it is made: it is one name of a directory, none that leads elsewhere, and part of a branch's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slug(String);

/// Reasons for which a text names no worktree.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SlugError {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {LONGEST} characters")]
    Long,
    #[error("it is an absolute path")]
    Absolute,
    #[error("`{0}` leads elsewhere")]
    Leads(String),
    #[error("`{0}` has other characters than letters, digits, `.`, `_` and `-`")]
    Characters(String),
    #[error("git allows no branch that ends with `{0}`")]
    Ending(&'static str),
}

impl Slug {
    /// Reads a name. Segments, parted by `/`, become one name, joined by `+`.
    pub fn parse(text: &str) -> Result<Self, SlugError> {
        if text.is_empty() {
            return Err(SlugError::Empty);
        }
        if text.len() > LONGEST {
            return Err(SlugError::Long);
        }
        let has_drive = matches!(text.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic());
        if text.starts_with(['/', '\\']) || has_drive {
            return Err(SlugError::Absolute);
        }
        for segment in text.split('/') {
            if segment == "." || segment.contains("..") {
                return Err(SlugError::Leads(segment.to_owned()));
            }
            let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if segment.is_empty() || !segment.chars().all(is_usual) {
                return Err(SlugError::Characters(segment.to_owned()));
            }
        }
        // A name that begins with a dot is ours: what is being removed lies there.
        if text.starts_with('.') {
            return Err(SlugError::Leads(text.to_owned()));
        }
        for ending in [".lock", "."] {
            if text.ends_with(ending) {
                return Err(SlugError::Ending(ending));
            }
        }
        Ok(Self(text.replace('/', "+")))
    }

    /// The worktree of an agent.
    pub fn of_agent(id: &str) -> Result<Self, SlugError> {
        let id: String = id.chars().take(OF_ID).collect();
        Self::parse(&format!("agent-{id}"))
    }

    /// The same by the whole id, where the short name is taken.
    pub fn of_whole_agent(id: &str) -> Result<Self, SlugError> {
        Self::parse(&format!("agent-{id}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The branch of the worktree.
    pub fn branch(&self) -> String {
        format!("worktree-{}", self.0)
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Slug> for String {
    fn from(slug: Slug) -> Self {
        slug.0
    }
}

impl TryFrom<String> for Slug {
    type Error = SlugError;

    /// A name that was made already, as a record has it.
    fn try_from(text: String) -> Result<Self, SlugError> {
        Self::parse(&text.replace('+', "/"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_agents_worktree_has_the_beginning_of_its_id() {
        // S-292
        let slug = Slug::of_agent("a1b2c3d4e5f60718").unwrap();
        assert_eq!(slug.as_str(), "agent-a1b2c3d4");
        assert_eq!(slug.branch(), "worktree-agent-a1b2c3d4");
        assert_eq!(Slug::of_whole_agent("a1b2c3d4e5").unwrap().as_str(), "agent-a1b2c3d4e5");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        // S-294
        let refused = |text: &str| Slug::parse(text).unwrap_err();
        assert_eq!(refused(""), SlugError::Empty);
        assert_eq!(refused(&"x".repeat(65)), SlugError::Long);
        assert!(Slug::parse(&"x".repeat(64)).is_ok());
        for absolute in ["/etc", "C:\\x", "c:/x", "\\\\server"] {
            assert_eq!(refused(absolute), SlugError::Absolute, "{absolute}");
        }
        for leads in ["..", "../x", "x/..", "x/../y", ".", "x/./y", "a..b", ".hidden"] {
            assert!(matches!(refused(leads), SlugError::Leads(_)), "{leads}");
        }
        for other in ["a b", "a//b", "a/", "a\nb", "ä", "a\\b", "a~1", "a^", "ab:c", "a@{b"] {
            assert!(matches!(refused(other), SlugError::Characters(_)), "{other}");
        }
        assert_eq!(refused("x.lock"), SlugError::Ending(".lock"));
        assert_eq!(refused("x."), SlugError::Ending("."));
    }

    #[test]
    fn segments_become_one_name() {
        // S-295
        let slug = Slug::parse("user/feature").unwrap();
        assert_eq!(slug.as_str(), "user+feature");
        assert_eq!(slug.branch(), "worktree-user+feature");
        let kept = serde_json::to_string(&slug).unwrap();
        assert_eq!(serde_json::from_str::<Slug>(&kept).unwrap(), slug);
    }

    proptest! {
        /// Whatever text comes: what is accepted is one plain name in its directory, and a branch for git.
        #[test]
        fn whatever_is_accepted_is_one_name(text in "[a-c./+:_ \\\\-]{0,12}|\\PC{0,80}") {
            if let Ok(slug) = Slug::parse(&text) {
                let path = Path::new("/top").join(slug.as_str());
                prop_assert_eq!(path.parent(), Some(Path::new("/top")));
                prop_assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(slug.as_str()));
                prop_assert!(slug.as_str().len() <= LONGEST && !slug.as_str().contains(".."));
                let branch = slug.branch();
                prop_assert_ne!(branch.rsplit('.').next(), Some("lock"));
                prop_assert!(!branch.ends_with('.'));
                prop_assert!(branch.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c)));
                // Two names that differ in more than the sign between segments stay apart.
                prop_assert_eq!(slug.as_str().replace('+', "/"), text);
            }
        }
    }
}
