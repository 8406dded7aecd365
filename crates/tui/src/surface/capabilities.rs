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

impl Capabilities {
    /// Learns from what the terminal answered.
    pub(super) fn learn(&mut self, reply: &TerminalReply) {
        match reply {
            TerminalReply::Mode { mode: SYNCHRONIZED, known } => self.synchronized = *known,
            TerminalReply::Version(version) => {
                let name = version.split([' ', '(']).next().unwrap_or_default();
                self.region_feeds_scrollback = FEEDING.contains(&name);
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
        let feeding = Capabilities { region_feeds_scrollback: true, ..none };
        for (reply, expected) in [
            (mode(2026, true), synchronized),
            (mode(2026, false), none),
            (mode(2004, true), none),
            (version("kitty(0.32.2)"), feeding),
            (version("tmux 3.4"), feeding),
            (version("kittyish 1"), none),
            (version(""), none),
            (TerminalReply::Attributes, none),
        ] {
            assert_eq!(learnt(reply.clone()), expected, "{reply:?}");
        }
    }
}
