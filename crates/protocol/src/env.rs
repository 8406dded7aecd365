//! The environment variables of the process, read once by the binary and handed down.

use std::collections::HashMap;
use std::time::Duration;

/// A snapshot of environment variables. An empty value counts as unset, as shells users expect.
#[derive(Clone, Debug, Default)]
pub struct Env(HashMap<String, String>);

impl Env {
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(variables.into_iter().collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a switch is on: `1`, `true`, `yes` or `on`.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| {
            ["1", "true", "yes", "on"].iter().any(|word| value.eq_ignore_ascii_case(word))
        })
    }

    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name).and_then(|value| value.trim().parse().ok())
    }

    pub fn millis(&self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_millis)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Env {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self::new(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }
}
