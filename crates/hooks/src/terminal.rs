//! The control sequences that a hook may send to a terminal: titles, notifications and the bell.

const BELL: char = '\u{7}';
const ESCAPE: char = '\u{1b}';

/// The commands for titles (0, 1, 2) and notifications (9, 99, 777).
const COMMANDS: [&str; 6] = ["0", "1", "2", "9", "99", "777"];

/// Whether a text consists of such sequences only.
pub(crate) fn is_harmless(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(BELL) {
            rest = after;
            continue;
        }
        let Some(body) = rest.strip_prefix("\u{1b}]") else { return false };
        let Some(end) = body.find([BELL, ESCAPE]) else { return false };
        let (command, terminator) = body.split_at(end);
        let number = command.split(';').next().unwrap_or_default();
        if !COMMANDS.contains(&number) || command.chars().any(char::is_control) {
            return false;
        }
        let after = terminator.strip_prefix(BELL).or_else(|| terminator.strip_prefix("\u{1b}\\"));
        let Some(after) = after else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_titles_notifications_and_the_bell_pass() {
        for (text, expected) in [
            ("", true),
            ("\u{7}", true),
            ("\u{1b}]0;title\u{7}", true),
            ("\u{1b}]777;notify;a;b\u{1b}\\\u{7}", true),
            ("\u{1b}]9;done\u{1b}\\", true),
            ("text", false),
            ("\u{1b}[2J", false),
            // The clipboard.
            ("\u{1b}]52;c;AAAA\u{7}", false),
            ("\u{1b}]0;unfinished", false),
            ("\u{1b}]0;a\u{1b}[31m\u{7}", false),
            ("\u{1b}]0;a\nb\u{7}", false),
        ] {
            assert_eq!(is_harmless(text), expected, "{text:?}");
        }
    }
}
