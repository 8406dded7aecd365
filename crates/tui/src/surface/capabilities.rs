//! The abilities of a terminal, and the replies that tell of them.

use crate::input::TerminalReply;

/// The abilities of a terminal, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// A frame can be shown at once (mode 2026).
    pub synchronized: bool,
    /// A row that leaves the top of a scroll region at the first row enters the scrollback.
    pub region_feeds_scrollback: bool,
    /// A row that is longer than the window becomes is broken, and not cut.
    pub rewraps: bool,
}

/// The mode in which a frame is shown at once.
const SYNCHRONIZED: u16 = 2026;

/// Names of terminals whose scroll regions are known to feed the scrollback. Any other terminal may lose lines there.
const FEEDING: [&str; 2] = ["kitty", "tmux"];

/// Names of terminals that break rows anew when the window changes. Any other one may cut them: what is taken for a row of
/// the live region there would be a line that was printed.
const REWRAPPING: [&str; 10] = [
    "tmux", "kitty", "VTE", "foot", "WezTerm", "iTerm2", "ghostty", "Konsole", "contour",
    "xterm.js",
];

/// Variables that such terminals set for their programs.
const REWRAPPING_VARIABLES: [&str; 6] = [
    "ALACRITTY_WINDOW_ID",
    "GHOSTTY_RESOURCES_DIR",
    "KITTY_WINDOW_ID",
    "KONSOLE_VERSION",
    "VTE_VERSION",
    "WEZTERM_PANE",
];
/// Values of `TERM_PROGRAM` for the same.
const REWRAPPING_PROGRAMS: [&str; 6] =
    ["tmux", "Apple_Terminal", "iTerm.app", "WezTerm", "ghostty", "vscode"];

impl Capabilities {
    /// The abilities that the environment tells of, until the terminal itself has answered. It may be that of a terminal
    /// around the present one.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_in_screen = variable("STY").is_some();
        let program = variable("TERM_PROGRAM").unwrap_or_default();
        let rewraps = REWRAPPING_PROGRAMS.contains(&program.as_str())
            || REWRAPPING_VARIABLES.iter().any(|name| variable(name).is_some());
        Self { rewraps: rewraps && !is_in_screen, ..Self::default() }
    }

    /// Learns from what the terminal answered.
    pub(super) fn learn(&mut self, reply: &TerminalReply) {
        match reply {
            TerminalReply::Mode { mode: SYNCHRONIZED, known } => self.synchronized = *known,
            TerminalReply::Version(version) => {
                let name = version.split([' ', '(']).next().unwrap_or_default();
                self.region_feeds_scrollback = FEEDING.contains(&name);
                self.rewraps = REWRAPPING.contains(&name);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_tell_of_abilities() {
        let learnt = |reply: TerminalReply| {
            let mut can = Capabilities::default();
            can.learn(&reply);
            can
        };
        let none = Capabilities::default();
        let mode = |mode, known| TerminalReply::Mode { mode, known };
        let version = |name: &str| TerminalReply::Version(name.to_owned());
        let synchronized = Capabilities { synchronized: true, ..none };
        let rewrapping = Capabilities { rewraps: true, ..none };
        let feeding = Capabilities { region_feeds_scrollback: true, ..rewrapping };
        for (reply, expected) in [
            (mode(2026, true), synchronized),
            (mode(2026, false), none),
            (mode(2004, true), none),
            (version("kitty(0.32.2)"), feeding),
            (version("tmux 3.4"), feeding),
            (version("VTE(7600)"), rewrapping),
            (version("WezTerm 20240203"), rewrapping),
            (version("XTerm(390)"), none),
            (version("kittyish 1"), none),
            (version(""), none),
            (TerminalReply::Attributes, none),
        ] {
            assert_eq!(learnt(reply.clone()), expected, "{reply:?}");
        }
    }

    #[test]
    fn the_environment_tells_of_terminals_that_break_rows_anew() {
        let rewraps = |variables: &[(&str, &str)]| {
            let value = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            Capabilities::from_environment(value).rewraps
        };
        assert!(rewraps(&[("TERM_PROGRAM", "vscode")]));
        assert!(rewraps(&[("VTE_VERSION", "7600")]));
        assert!(!rewraps(&[("VTE_VERSION", "7600"), ("STY", "1.pts")]), "screen cuts rows");
        assert!(!rewraps(&[("TERM", "xterm-256color")]));
    }
}
