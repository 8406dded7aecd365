//! Text of others in few words: titles and lists that fit the room they have.

/// The most bytes of an agent's description in lists and notifications.
const TITLE_BYTES: usize = 200;

/// The most entries of a list that are named.
const NAMED: usize = 20;
/// The most bytes of one entry.
const NAMED_BYTES: usize = 500;

/// A text in a few words, on one line and no longer than it needs to be.
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
}
