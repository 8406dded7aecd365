//! The stance of an agent; no agent works more freely than the agent that starts it.
//!
//! The one place that decides about the mode of an agent below another one, at its start and later: when a stance
//! changes, its holder computes the stance below it again.

use crate::mode::Mode;

/// The mode of an agent, and its bounds whatever its mode is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stance {
    pub mode: Mode,
    pub bounds: Bounds,
}

/// The bounds of an agent and every agent below it, whatever their modes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// A question becomes a denial: an agent above works in `dontAsk`.
    pub never_asks: bool,
    /// Nothing may be changed, by no tool and no command: an agent above may only look.
    pub only_reads: bool,
    /// File tools reach the working directories alone, whatever rules, modes, hooks and people permit.
    pub stays_inside: bool,
}

/// An agent's own mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OwnMode {
    /// None: it has the mode of the agent above.
    #[default]
    Inherited,
    /// Set by the user: it counts whatever mode the agent above has.
    Given(Mode),
    /// It counts only while it permits at most what the mode of the agent above permits.
    Modest(Mode),
}

impl OwnMode {
    pub fn mode(self) -> Option<Mode> {
        match self {
            Self::Inherited => None,
            Self::Given(mode) | Self::Modest(mode) => Some(mode),
        }
    }

    /// The mode that counts below an agent in this mode; `None` if that one is inherited.
    fn below(self, above: Mode) -> Option<Mode> {
        match self {
            Self::Inherited => None,
            Self::Given(mode) => Some(mode),
            Self::Modest(mode) => Some(mode).filter(|mode| mode.gives_at_most(above)),
        }
    }
}

/// Whether the user enabled `bypassPermissions` for this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipping {
    Enabled,
    Disabled,
}

impl Stance {
    /// The stance of an agent that this one starts, with a mode of its own or an inherited one.
    pub fn below(self, own: OwnMode, skipping: Skipping) -> Self {
        let bounds = Bounds {
            never_asks: self.bounds.never_asks || self.mode == Mode::DontAsk,
            ..self.bounds
        };
        let own = own
            .below(self.mode)
            .filter(|own| *own != Mode::BypassPermissions || skipping == Skipping::Enabled);
        let mode = match (self.mode, own.unwrap_or(self.mode)) {
            (Mode::Plan, _) => Mode::Plan,
            // These permit no more than `dontAsk` does once no question is asked; all others would.
            (_, mode @ (Mode::Plan | Mode::Auto | Mode::Bubble)) => mode,
            _ if bounds.never_asks => Mode::DontAsk,
            (_, mode) => mode,
        };
        Self { mode, bounds }
    }

    /// The same, for an agent that only reads.
    pub fn only_reading(self, only_reads: bool) -> Self {
        let bounds = Bounds { only_reads: self.bounds.only_reads || only_reads, ..self.bounds };
        Self { bounds, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stance(mode: Mode) -> Stance {
        Stance { mode, ..Stance::default() }
    }

    #[test]
    fn an_agent_without_a_mode_inherits_and_one_with_a_mode_stays_below_plan_and_dont_ask() {
        // D-5a
        use Mode::{AcceptEdits, Auto, BypassPermissions, Default, DontAsk, Plan};
        for (parent, own, expected) in [
            (Default, None, Default),
            (AcceptEdits, None, AcceptEdits),
            (Auto, None, Auto),
            (DontAsk, None, DontAsk),
            (BypassPermissions, None, BypassPermissions),
            (Default, Some(AcceptEdits), AcceptEdits),
            (AcceptEdits, Some(Default), Default),
            (BypassPermissions, Some(Default), Default),
            (Plan, None, Plan),
            (Plan, Some(AcceptEdits), Plan),
            (Plan, Some(BypassPermissions), Plan),
            (Plan, Some(DontAsk), Plan),
            (DontAsk, Some(AcceptEdits), DontAsk),
            (DontAsk, Some(Default), DontAsk),
            (DontAsk, Some(BypassPermissions), DontAsk),
            (DontAsk, Some(Plan), Plan),
            (DontAsk, Some(Auto), Auto),
        ] {
            let own = own.map_or(OwnMode::Inherited, OwnMode::Given);
            let below = stance(parent).below(own, Skipping::Enabled);
            assert_eq!(below.mode, expected, "{own:?} below {parent}");
            assert_eq!(below.bounds.never_asks, parent == DontAsk, "{own:?} below {parent}");
            // It stays so at every depth.
            let deeper = below.below(OwnMode::Given(AcceptEdits), Skipping::Enabled);
            if parent == DontAsk {
                assert!(deeper.bounds.never_asks && deeper.mode != AcceptEdits);
            }
        }
    }

    #[test]
    fn a_modest_mode_counts_only_while_it_gives_at_most_what_the_agent_above_has() {
        // D-5a
        use Mode::{AcceptEdits, Bubble, Default, DontAsk, Plan};
        for (parent, own, expected) in [
            (Default, AcceptEdits, Default),
            (AcceptEdits, AcceptEdits, AcceptEdits),
            (AcceptEdits, Default, Default),
            (DontAsk, AcceptEdits, DontAsk),
            (Plan, AcceptEdits, Plan),
            (Default, Plan, Plan),
            (Default, Bubble, Bubble),
            (Bubble, Default, Bubble),
        ] {
            let below = stance(parent).below(OwnMode::Modest(own), Skipping::Enabled);
            assert_eq!(below.mode, expected, "{own} below {parent}");
        }
    }

    #[test]
    fn permissions_are_skipped_only_where_the_user_enabled_it() {
        // D-5a
        let wanted = OwnMode::Given(Mode::BypassPermissions);
        for parent in [Mode::Default, Mode::AcceptEdits, Mode::Auto] {
            assert_eq!(stance(parent).below(wanted, Skipping::Disabled).mode, parent);
            let enabled = stance(parent).below(wanted, Skipping::Enabled);
            assert_eq!(enabled.mode, Mode::BypassPermissions);
        }
    }

    #[test]
    fn a_reader_starts_no_agent_that_does_more() {
        let scout = stance(Mode::AcceptEdits).only_reading(true);
        assert!(
            scout.below(OwnMode::Given(Mode::AcceptEdits), Skipping::Enabled).bounds.only_reads
        );
        assert!(!stance(Mode::Default).only_reading(false).bounds.only_reads);
    }
}
