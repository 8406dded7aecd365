//! Text with `*` for any run of characters.

use crate::shell::Shape;

/// A pattern, split at its stars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wildcard {
    /// Literal pieces; a star is between each two.
    pieces: Vec<String>,
}

impl Wildcard {
    /// Parses a pattern in which a backslash escapes a star, a parenthesis or a backslash.
    pub(crate) fn parse(pattern: &str) -> Self {
        let mut pieces = Vec::new();
        let mut piece = String::new();
        let mut characters = pattern.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '*' => pieces.push(std::mem::take(&mut piece)),
                '\\' => piece.push(
                    characters
                        .next_if(|next| matches!(next, '*' | '(' | ')' | '\\'))
                        .unwrap_or('\\'),
                ),
                other => piece.push(other),
            }
        }
        pieces.push(piece);
        Self { pieces }
    }

    pub(crate) fn has_stars(&self) -> bool {
        self.pieces.len() > 1
    }

    /// The literal text before the first star.
    pub(crate) fn start(&self) -> &str {
        self.pieces.first().map(String::as_str).unwrap_or_default()
    }

    /// The texts that match.
    pub(crate) fn to_shape(&self) -> Shape {
        let mut shape = Shape::default();
        for (index, piece) in self.pieces.iter().enumerate() {
            if index > 0 {
                shape.append(&Shape::any());
            }
            shape.push_text(piece);
        }
        shape
    }

    pub(crate) fn fits(&self, text: &str) -> bool {
        let mut pieces = self.pieces.iter().map(String::as_str);
        let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
            return false;
        };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        for piece in pieces {
            let Some((_, after)) = rest.split_once(piece) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, text, fits) in [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a*c", "ac", true),
            ("a*c", "abbc", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("**", "x", true),
            ("a**b", "ab", true),
            ("a**b", "a", false),
            ("*b*", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("*ab", "aab", true),
            (r"a\*c", "a*c", true),
            (r"a\*c", "abc", false),
            (r"a\(b\)", "a(b)", true),
            (r"a\\b", r"a\b", true),
            (r"a\b", r"a\b", true),
            (r"a\", r"a\", true),
        ] {
            assert_eq!(Wildcard::parse(pattern).fits(text), fits, "{pattern} on {text}");
        }
    }
}
