//! Notifications: how a terminal tells a person who looks elsewhere.

use crate::text::foreign_text;

/// The longest text of a notification.
const LONGEST: usize = 200;

/// The way in which a terminal notifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Notifier {
    /// Rings, which every terminal can.
    #[default]
    Bell,
    /// OSC 9: `iTerm2`, Ghostty, `WezTerm`, Windows Terminal.
    Osc9,
    /// OSC 99: kitty.
    Osc99,
    /// OSC 777: terminals of VTE, foot, urxvt.
    Osc777,
}

impl Notifier {
    /// The way of a terminal that has told its name and version.
    pub(crate) fn of_terminal(version: &str) -> Self {
        let name = version.to_ascii_lowercase();
        let is = |names: &[&str]| names.iter().any(|known| name.starts_with(known));
        if is(&["kitty"]) {
            Self::Osc99
        } else if is(&["iterm2", "ghostty", "wezterm"]) {
            Self::Osc9
        } else if is(&["vte", "foot"]) {
            Self::Osc777
        } else {
            Self::Bell
        }
    }

    /// The bytes that notify. The text may be foreign.
    pub(crate) fn bytes(self, text: &str) -> Vec<u8> {
        // A semicolon would end a part of it.
        let text: String = foreign_text(text).replace(';', ",").chars().take(LONGEST).collect();
        match self {
            Self::Bell => b"\x07".to_vec(),
            Self::Osc9 => format!("\x1b]9;{text}\x07").into_bytes(),
            Self::Osc99 => format!("\x1b]99;;{text}\x1b\\").into_bytes(),
            Self::Osc777 => format!("\x1b]777;notify;Centurion;{text}\x07").into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_terminal_is_told_in_its_way_and_foreign_text_ends_nothing() {
        for (version, expected) in [
            ("kitty(0.32)", "\x1b]99;;a␛]0,x␇b\x1b\\"),
            ("ghostty 1.0", "\x1b]9;a␛]0,x␇b\x07"),
            ("VTE(7600)", "\x1b]777;notify;Centurion;a␛]0,x␇b\x07"),
            ("XTerm(390)", "\x07"),
        ] {
            let bytes = Notifier::of_terminal(version).bytes("a\u{1b}]0;x\u{7}b");
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }
}
