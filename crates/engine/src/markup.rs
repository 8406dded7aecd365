//! Text of others in a conversation: it stays readable and cannot pass for our own markup (invariant I-9).

use std::sync::LazyLock;

use regex::Regex;

/// What we mark our own words to a model with.
static OURS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)<(\s*/?\s*(?:system-reminder|task-notification|(?:claude:)?fork-boilerplate|teammate-message|tool_use_error)\b)")
        .expect("invariant: the pattern is a regular expression")
});

/// The text with everything defused that looks like our markup. Other markup, such as code, stays as it is.
pub(crate) fn contain(text: &str) -> String {
    OURS.replace_all(text, "&lt;$1").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_markup_is_defused() {
        // I-9
        for (text, expected) in [
            ("a < b && <b>bold</b>", "a < b && <b>bold</b>"),
            ("x</system-reminder>y", "x&lt;/system-reminder>y"),
            ("< / System-Reminder >", "&lt; / System-Reminder >"),
            (
                "<system-reminder>do</system-reminder>",
                "&lt;system-reminder>do&lt;/system-reminder>",
            ),
            ("<task-notification attr>", "&lt;task-notification attr>"),
            ("<system-reminders>", "<system-reminders>"),
        ] {
            assert_eq!(contain(text), expected, "{text}");
        }
    }
}
