//! Names of task lists. They become directories, so only harmless ones are names.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The name of a list: letters, digits, `_` and `-`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListName(String);

/// A text that names no list.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} is no name: use up to {most} letters, digits, `_` and `-`, and begin with a letter or a digit",
    most = ListName::MOST_BYTES
)]
pub struct ListNameError(String);

impl ListName {
    /// The longest name.
    pub(crate) const MOST_BYTES: usize = 64;

    /// Two plain words of at most 32 letters and digits each.
    pub(crate) fn joined(one: &str, other: &str) -> Self {
        Self(format!("{one}-{other}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ListName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for ListName {
    type Err = ListNameError;

    fn from_str(text: &str) -> Result<Self, ListNameError> {
        let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if begins && text.len() <= Self::MOST_BYTES && text.bytes().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ListNameError(text.chars().take(Self::MOST_BYTES).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_lead_elsewhere_are_none() {
        for good in ["alpha", "session-1a2b3c4d", "0", "a_b", &"x".repeat(64)] {
            assert_eq!(good.parse::<ListName>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "a/b", "-x", "_x", "a b", "ä", "a\0", &"x".repeat(65)] {
            assert!(bad.parse::<ListName>().is_err(), "{bad:?}");
        }
    }
}
