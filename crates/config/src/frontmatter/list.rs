//! Lists of names: `tools: Read, Bash(git add:*)`, or the same as a YAML list.

use super::value::{Shape, Value};

/// The separator between the names of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    Commas,
    /// A text without commas, of several words.
    Blanks,
}

/// The names in a text or list, in their order. Commas and blanks inside round brackets belong to a
/// name; quotes around it do not. `None` where the value can hold no names.
pub fn names(value: &Value) -> Option<(Vec<String>, Separator)> {
    match &value.shape {
        Shape::Text(text) => Some(split(&text.text)),
        Shape::List(items) => {
            let mut names = Vec::with_capacity(items.len());
            for item in items {
                match &item.shape {
                    Shape::Null => {}
                    Shape::Text(text) => names.extend(pieces(&text.text, |it| it == ',')),
                    // `- Bash(git commit: *)` is a map to YAML.
                    Shape::Map(members) => {
                        let [member] = members.as_slice() else { return None };
                        let rest = member.value.as_text()?;
                        let text = format!("{}: {rest}", member.key);
                        names.extend(pieces(&text, |it| it == ','));
                    }
                    Shape::List(_) => return None,
                }
            }
            Some((names, Separator::Commas))
        }
        Shape::Null | Shape::Map(_) => None,
    }
}

/// Splits at commas, or at blanks where there are no commas.
fn split(text: &str) -> (Vec<String>, Separator) {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
    let mut by_commas = pieces(text, |it| it == ',' || it == '\n');
    if let [only] = by_commas.as_slice() {
        let by_blanks = pieces(only, char::is_whitespace);
        if by_blanks.len() > 1 {
            return (by_blanks, Separator::Blanks);
        }
    }
    for name in &mut by_commas {
        if let Some(item) = name.strip_prefix("- ") {
            *name = unquote(item).to_owned();
        }
    }
    (by_commas, Separator::Commas)
}

/// The parts between separators outside of round brackets, without what is empty.
fn pieces(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|it: char| {
        match it {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_separator(it)
    });
    parts.map(unquote).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// A name without blanks and quotes around it, in whatever order they stand.
fn unquote(name: &str) -> &str {
    name.trim_matches(|it: char| it.is_whitespace() || matches!(it, '"' | '\''))
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    fn read(yaml: &str) -> Option<(Vec<String>, Separator)> {
        names(&yaml::parse(yaml, 1).unwrap().members[0].value)
    }

    #[test]
    fn names_are_kept_apart_outside_of_brackets() {
        // S-005, S-007, S-021
        let cases: [(&str, &[&str]); 10] = [
            ("t: Read, Write ,Edit,", &["Read", "Write", "Edit"]),
            ("t: Agent(a, b), Bash(git add:*)", &["Agent(a, b)", "Bash(git add:*)"]),
            ("t: Bash([:[*), Read", &["Bash([:[*)", "Read"]),
            ("t: [Read, 'Write', \"Edit\"]", &["Read", "Write", "Edit"]),
            ("t:\n  - Read\n  - Bash(git log *)\n  -\n", &["Read", "Bash(git log *)"]),
            ("t:\n  - Read, Write\n", &["Read", "Write"]),
            ("t: '[\"Read\", \"Write\"]'", &["Read", "Write"]),
            ("t: \"*\"", &["*"]),
            ("t: []", &[]),
            ("t: |\n  - Read\n  - Write\n", &["Read", "Write"]),
        ];
        for (yaml, expected) in cases {
            let expected = expected.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(read(yaml), Some((expected, Separator::Commas)), "{yaml}");
        }
    }

    #[test]
    fn blanks_keep_names_apart_where_no_comma_does() {
        let (names, separator) = read("t: Read Bash(git add *) Grep").unwrap();
        assert_eq!(names, ["Read", "Bash(git add *)", "Grep"]);
        assert_eq!(separator, Separator::Blanks);
    }

    #[test]
    fn what_holds_no_names_is_none() {
        assert_eq!(read("t:"), None);
        assert_eq!(read("t: {Read: true}"), None);
        assert_eq!(read("t: [[Read]]"), None);
        assert_eq!(read("t:\n  - Bash(git commit: x)\n").unwrap().0, ["Bash(git commit: x)"]);
    }

    #[test]
    fn names_stay_apart_when_a_colon_makes_a_map_of_them() {
        let names = read("t:\n  - Bash(git commit: x), Read\n").unwrap().0;
        assert_eq!(names, ["Bash(git commit: x)", "Read"]);
    }

    #[test]
    fn quotes_within_blanks_within_quotes_are_no_part_of_a_name() {
        assert_eq!(read("t: '\" Read \" , Write'").unwrap().0, ["Read", "Write"]);
        assert_eq!(read("t: [\" 'Read' \"]").unwrap().0, ["Read"]);
    }
}
