//! The look of everything: colours, glyphs and motion, as the surroundings allow them.

use crate::frame::{Colour, Style};

/// The colours that a person wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// The terminal's own sixteen colours, which fit its background.
    #[default]
    Terminal,
    /// The same without the pair of red and green.
    Daltonized,
    /// No colours.
    Plain,
}

impl Theme {
    /// The names of all themes, as settings have them. Dark or light is the terminal's own affair.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("auto", Self::Terminal),
        ("dark", Self::Terminal),
        ("light", Self::Terminal),
        ("dark-ansi", Self::Terminal),
        ("light-ansi", Self::Terminal),
        ("dark-daltonized", Self::Daltonized),
        ("light-daltonized", Self::Daltonized),
        ("no-colour", Self::Plain),
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, theme)| *theme)
    }
}

/// The looks that may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The 16 colours; without them a word or a glyph says the same.
    pub colours: bool,
    /// Characters beyond ASCII.
    pub unicode: bool,
    pub theme: Theme,
}

impl Default for Look {
    fn default() -> Self {
        Self { colours: true, unicode: true, theme: Theme::Terminal }
    }
}

impl Look {
    /// The look that the environment asks for. `NO_COLOR` counts when it has a value, whichever.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| value(name));
        let unicode = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        Self { colours: value("NO_COLOR").is_none(), unicode, theme: Theme::Terminal }
    }

    /// The style that may be shown.
    pub(crate) fn style(self, style: Style) -> Style {
        let colour = match (self.theme, style.colour) {
            _ if !self.colours => Colour::Default,
            (Theme::Plain, _) => Colour::Default,
            (Theme::Daltonized, Colour::Red) => Colour::Magenta,
            (Theme::Daltonized, Colour::Green) => Colour::Blue,
            (_, colour) => colour,
        };
        style.coloured(colour)
    }

    /// The grapheme that may be shown, as wide as the one that is asked for.
    pub(crate) fn glyph(self, grapheme: &str, width: u16) -> &str {
        if self.unicode || grapheme.is_ascii() {
            return grapheme;
        }
        let known = GLYPHS.iter().find(|(glyphs, _)| glyphs.contains(grapheme));
        match (known, width) {
            (Some((_, ascii)), 1) => ascii,
            (_, 2) => "??",
            _ => "?",
        }
    }
}

/// The glyphs of the program, with what stands for them in ASCII.
const GLYPHS: [(&str, &str); 19] = [
    ("●◼█", "*"),
    ("◻◌○", "o"),
    ("⧗", "~"),
    ("✗✘", "x"),
    ("✓✔", "+"),
    ("─┄━┈", "-"),
    ("│┃┆", "|"),
    ("╭╮╰╯├┤└┘┌┐┬┴┼", "+"),
    ("▾↓", "v"),
    ("▸❯›→▶", ">"),
    ("←‹", "<"),
    ("↑", "^"),
    ("⠋⠙⠹", "|"),
    ("⠸⠼⠴", "/"),
    ("⠦⠧", "-"),
    ("⠇⠏", "\\"),
    ("…·•", "."),
    ("✉", "m"),
    ("␛", "^"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn look(variables: &[(&str, &str)]) -> Look {
        Look::from_environment(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_decides() {
        assert!(look(&[("LANG", "de_DE.UTF-8")]).unicode);
        assert!(!look(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]).unicode);
        assert!(!look(&[]).unicode);
        assert!(!look(&[("NO_COLOR", "1")]).colours);
        assert!(look(&[("NO_COLOR", "")]).colours);
    }

    #[test]
    fn a_theme_changes_colours_and_no_color_wins() {
        let red = Style::of(Colour::Red).bold();
        let of = |theme, colours| Look { colours, theme, ..Look::default() }.style(red);
        assert_eq!(of(Theme::Terminal, true), red);
        assert_eq!(of(Theme::Daltonized, true), Style::of(Colour::Magenta).bold());
        assert_eq!(of(Theme::Plain, true), Style::BOLD);
        assert_eq!(of(Theme::Daltonized, false), Style::BOLD);
        assert_eq!(Theme::named("light-daltonized"), Some(Theme::Daltonized));
    }

    #[test]
    fn each_glyph_has_a_stand_in_as_wide_as_itself() {
        let ascii = Look { unicode: false, ..Look::default() };
        assert_eq!(ascii.glyph("✓", 1), "+");
        assert_eq!(ascii.glyph("日", 2), "??");
        assert_eq!(ascii.glyph("é", 1), "?");
        assert_eq!(ascii.glyph("a", 1), "a");
        assert_eq!(Look::default().glyph("日", 2), "日");
    }
}
