//! Effort: a request to a model to think more or less.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A named level of effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

/// A text that names no level of effort.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no effort level; use low, medium, high, xhigh or max")]
pub struct EffortError {
    text: String,
}

impl Effort {
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Effort {
    type Err = EffortError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let level = Self::ALL.into_iter().find(|level| level.as_str() == text);
        level.ok_or_else(|| EffortError { text: text.to_owned() })
    }
}

/// Whether and how a model may think before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Thinking {
    /// As the model does by default.
    #[default]
    Auto,
    /// As much as the model finds right.
    Adaptive,
    Disabled,
    /// At most this many tokens of thinking.
    Budget(u32),
}
