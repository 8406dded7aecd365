//! Names of teams and of their members. A name is an address and part of file names, so only plain words are names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::tasks::ListName;

/// The name of the agent that leads a team.
pub const LEAD: &str = "team-lead";

/// Names that no member can have: they address the lead, or could pass for the user or the program.
const RESERVED: [&str; 4] = ["main", LEAD, "user", "system"];

/// The reason that a text is no name of a team or a member.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TeamNameError {
    #[error(
        "{0:?} is no name: use up to 64 letters, digits, `_` and `-`, and begin with a letter or a digit"
    )]
    Form(String),
    #[error("the name {0:?} is reserved: choose another")]
    Reserved(String),
}

/// The name of a team.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TeamName(ListName);

/// The name of a member: unique in its team, for as long as the team exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemberName(String);

fn plain(text: &str) -> Result<ListName, TeamNameError> {
    text.parse().map_err(|_| TeamNameError::Form(text.chars().take(64).collect()))
}

impl TeamName {
    /// The default name of a session's team, by the beginning of the session's id: hex digits.
    pub fn of_session(beginning: &str) -> Self {
        let plain: String =
            beginning.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        Self(ListName::joined("session", &plain))
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl MemberName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This name, or else the first of `name-2`, `name-3`, … that is free.
    #[must_use]
    pub fn or_next_free(self, is_taken: impl Fn(&str) -> bool) -> Self {
        if !is_taken(&self.0) {
            return self;
        }
        let numbered = |number: u64| {
            let suffix = format!("-{number}");
            // Names have one byte for each character.
            let stem = &self.0[..self.0.len().min(ListName::MOST_BYTES - suffix.len())];
            format!("{stem}{suffix}")
        };
        let free = (2..=u64::MAX).map(numbered).find(|name| !is_taken(name));
        Self(free.unwrap_or(self.0))
    }
}

impl FromStr for TeamName {
    type Err = TeamNameError;

    fn from_str(text: &str) -> Result<Self, TeamNameError> {
        plain(text).map(Self)
    }
}

impl FromStr for MemberName {
    type Err = TeamNameError;

    fn from_str(text: &str) -> Result<Self, TeamNameError> {
        plain(text)?;
        if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(text)) {
            return Err(TeamNameError::Reserved(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

macro_rules! as_text {
    ($name:ty) => {
        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl TryFrom<String> for $name {
            type Error = TeamNameError;

            fn try_from(text: String) -> Result<Self, TeamNameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }
    };
}

as_text!(TeamName);
as_text!(MemberName);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reserved_names_are_refused_in_any_case() {
        // D-62
        for name in ["main", "team-lead", "Team-Lead", "user", "SYSTEM"] {
            assert_eq!(
                name.parse::<MemberName>(),
                Err(TeamNameError::Reserved(name.to_owned())),
                "{name}"
            );
        }
        assert!("main".parse::<TeamName>().is_ok(), "a team may have any plain name");
    }

    #[test]
    fn the_same_name_again_is_numbered() {
        let name = |text: &str| text.parse::<MemberName>().unwrap();
        assert_eq!(name("w1").or_next_free(|_| false).as_str(), "w1");
        assert_eq!(name("w1").or_next_free(|taken| taken == "w1").as_str(), "w1-2");
        let taken = ["w1", "w1-2", "w1-3"];
        assert_eq!(name("w1").or_next_free(|it| taken.contains(&it)).as_str(), "w1-4");
    }

    proptest! {
        #[test]
        fn a_free_name_is_a_name_and_free(text in "[A-Za-z0-9][A-Za-z0-9_-]{0,63}", again in 0_usize..200) {
            prop_assume!(!RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(&text)));
            let first = text.parse::<MemberName>().unwrap();
            let mut taken = vec![first.as_str().to_owned()];
            for _ in 0..again {
                let next = first.clone().or_next_free(|name| taken.iter().any(|it| it == name));
                prop_assert!(next.as_str().parse::<MemberName>().is_ok(), "{next}");
                prop_assert!(!taken.iter().any(|it| it == next.as_str()), "{next}");
                taken.push(next.into());
            }
        }

        #[test]
        fn whatever_is_a_name_leads_to_no_other_directory(text in "\\PC{0,80}") {
            if let Ok(name) = text.parse::<MemberName>() {
                let path = std::path::Path::new("inboxes").join(name.as_str());
                prop_assert_eq!(path.components().count(), 2);
            }
        }
    }
}
