//! The permission modes: which calls run without a question.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The permission mode of an agent, in the public spelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads run, everything else asks.
    #[default]
    #[serde(alias = "manual")]
    Default,
    /// File edits inside the working directories run too.
    AcceptEdits,
    /// Nothing changes until a plan is approved.
    Plan,
    /// Calls that would ask are denied.
    DontAsk,
    /// Every call runs that no deny or ask rule matches.
    BypassPermissions,
    /// As `default`, but rules that allow almost anything do not count.
    Auto,
    /// Every call that does more than read asks, whatever the rules allow.
    Bubble,
}

impl Mode {
    pub const ALL: [Self; 7] = [
        Self::Default,
        Self::AcceptEdits,
        Self::Plan,
        Self::DontAsk,
        Self::BypassPermissions,
        Self::Auto,
        Self::Bubble,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
            Self::Auto => "auto",
            Self::Bubble => "bubble",
        }
    }

    /// Whether this mode permits at most the calls that the other mode permits, with the same rules.
    pub fn gives_at_most(self, other: Self) -> bool {
        use Mode::{AcceptEdits, Auto, Bubble, BypassPermissions, Default, DontAsk, Plan};
        match other {
            // It permits everything; and the bounds of an agent below the two others forbid what they do not permit.
            BypassPermissions | Plan | DontAsk => true,
            AcceptEdits => self != BypassPermissions,
            Default => !matches!(self, AcceptEdits | BypassPermissions),
            // The two others honour rules that do not count here.
            Auto => matches!(self, Auto | Bubble),
            Bubble => self == Bubble,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown mode.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown permission mode `{0}`: use default, acceptEdits, plan, auto, dontAsk or bypassPermissions"
)]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "manual" {
            return Ok(Self::Default);
        }
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_read_back_from_its_name() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
    }

    #[test]
    fn manual_is_default_and_other_spellings_are_refused() {
        assert_eq!("manual".parse(), Ok(Mode::Default));
        for wrong in ["", "Default", "acceptedits", "accept-edits", "bypass", " plan"] {
            assert_eq!(wrong.parse::<Mode>(), Err(UnknownMode(wrong.to_owned())));
        }
    }
}
