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

/// How much of what an agent is for stands in lists and news.
const TITLE_BYTES: usize = 200;

/// How many of many things are named.
const NAMED: usize = 20;
/// How much is said about one of them.
const NAMED_BYTES: usize = 500;

/// What somebody says in a few words, on one line and no longer than it needs to be.
pub(crate) fn title(text: &str) -> String {
    line(text, TITLE_BYTES)
}

/// The first of many things, and how many more there are: a reader has only so much room.
pub(crate) fn listed<T: AsRef<str>>(
    things: impl ExactSizeIterator<Item = T>,
    separator: &str,
) -> String {
    let more = things.len().saturating_sub(NAMED);
    let mut named: Vec<String> =
        things.take(NAMED).map(|thing| line(thing.as_ref(), NAMED_BYTES)).collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named.join(separator)
}

fn line(text: &str, bytes: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    if line.len() > bytes {
        line.truncate(line.floor_char_boundary(bytes));
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_and_not_long() {
        assert_eq!(title(" find\n  - bob · running\tit "), "find - bob · running it");
        assert_eq!(title(&"é".repeat(1_000_000)), format!("{}…", "é".repeat(100)));
    }

    #[test]
    fn of_many_things_the_first_are_named() {
        let things = |count: usize| (1..=count).map(|n| format!("t{n}")).collect::<Vec<_>>();
        assert_eq!(listed(things(2).iter(), "; "), "t1; t2");
        assert!(listed(things(20).iter(), ", ").ends_with("t19, t20"));
        assert!(listed(things(500).iter(), ", ").ends_with("t20, and 480 more"));
        assert!(listed(["x".repeat(9_000)].iter(), ", ").len() < 510);
    }

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
