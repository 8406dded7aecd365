//! The grammar of placeholders: where a text has which, and which are escaped. What they stand for is told
//! elsewhere.
//!
//! A backslash directly before a placeholder is taken away, and the placeholder stays as it is written. All
//! other backslashes stay.

use std::collections::HashMap;

use crate::plugins::PluginVariables;

/// Names that are longer are no placeholders, so that looking for them takes a bounded time.
const MOST_CHARACTERS: usize = 64;

/// Something in a text that a value stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// `$ARGUMENTS`
    Arguments,
    /// `$0` and `$ARGUMENTS[0]`, by index.
    Argument(usize),
    /// `$name`, by the index of the declared name.
    Named(usize),
    /// `${CLAUDE_…}`
    Variable(Variable),
    /// `${CLAUDE_PLUGIN_ROOT}`, `${user_config.…}` and the like, by index.
    Plugin(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    Session,
    Effort,
    SkillDirectory,
    ProjectDirectory,
}

const VARIABLES: [(&str, Variable); 4] = [
    ("${CLAUDE_SESSION_ID}", Variable::Session),
    ("${CLAUDE_EFFORT}", Variable::Effort),
    ("${CLAUDE_SKILL_DIR}", Variable::SkillDirectory),
    ("${CLAUDE_PROJECT_DIR}", Variable::ProjectDirectory),
];

impl Placeholder {
    pub(super) fn is_argument(self) -> bool {
        !matches!(self, Self::Variable(_) | Self::Plugin(_))
    }
}

/// The placeholders that a text may have.
pub(super) struct Placeholders<'n> {
    /// Each declared name with its index; `None` where arguments have no placeholders.
    names: Option<HashMap<&'n str, usize>>,
    /// Variables of a plugin, with their values.
    plugin: Vec<(&'n str, &'n str)>,
}

impl<'n> Placeholders<'n> {
    /// The placeholders of a skill that declares these names for its arguments. A name that is declared twice stands
    /// for the first of its arguments.
    pub(super) fn with_names(names: &'n [String], plugin: &'n PluginVariables) -> Self {
        let pairs = names.iter().enumerate().rev();
        let names = pairs.map(|(index, name)| (name.as_str(), index)).collect();
        Self { names: Some(names), ..Self::variables(plugin) }
    }

    /// The variables of the session and of a plugin only.
    pub(super) fn variables(plugin: &'n PluginVariables) -> Self {
        Self { names: None, plugin: plugin.iter().collect() }
    }

    /// The value of a variable of the plugin.
    pub(super) fn of_plugin(&self, index: usize) -> Option<&'n str> {
        self.plugin.get(index).map(|(_, value)| *value)
    }

    /// Cuts a text into literal parts and placeholders.
    pub(super) fn segments<'t>(&self, text: &'t str) -> Segments<'_, 't> {
        Segments { placeholders: self, rest: text, literal: None }
    }

    /// The placeholder that a text begins with, and its length. The text begins with `$`.
    fn at_start(&self, text: &str) -> Option<(Placeholder, usize)> {
        let variable = VARIABLES.iter().find(|(name, _)| text.starts_with(name));
        if let Some((name, variable)) = variable {
            return Some((Placeholder::Variable(*variable), name.len()));
        }
        let is_of_plugin = |(name, _): &(&str, &str)| {
            let rest = text.strip_prefix("${").and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| rest.starts_with('}'))
        };
        if let Some(index) = self.plugin.iter().position(is_of_plugin) {
            let length = self.plugin.get(index).map_or(0, |(name, _)| name.len() + "${}".len());
            return Some((Placeholder::Plugin(index), length));
        }
        let names = self.names.as_ref()?;
        let after = text.strip_prefix('$')?;
        if let Some((index, length)) = leading_number(after) {
            return Some((Placeholder::Argument(index), 1 + length));
        }
        let arguments = after.strip_prefix("ARGUMENTS").filter(|rest| !continues_name(rest));
        if let Some(rest) = arguments {
            let length = text.len() - rest.len();
            let number = rest.strip_prefix('[').and_then(leading_number);
            let indexed =
                number.filter(|(_, digits)| rest.as_bytes().get(1 + digits) == Some(&b']'));
            return Some(match indexed {
                Some((index, digits)) => (Placeholder::Argument(index), length + digits + 2),
                None => (Placeholder::Arguments, length),
            });
        }
        let (index, length) = longest_name(names, after)?;
        Some((Placeholder::Named(index), 1 + length))
    }
}

/// The number that a text begins with, and how many digits it has. One that is too large to be an index is
/// the index of an argument that is missing.
fn leading_number(text: &str) -> Option<(usize, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text.get(..digits).filter(|number| !number.is_empty())?;
    Some((number.parse().unwrap_or(usize::MAX), digits))
}

/// The index and the length of the longest name that a text begins with.
fn longest_name(names: &HashMap<&str, usize>, text: &str) -> Option<(usize, usize)> {
    if names.is_empty() {
        return None;
    }
    let mut longest = None;
    for (start, character) in text.char_indices().take(MOST_CHARACTERS) {
        if character == '$' || character.is_whitespace() {
            break;
        }
        let (name, rest) = text.split_at(start + character.len_utf8());
        if !continues_name(rest)
            && let Some(index) = names.get(name)
        {
            longest = Some((*index, name.len()));
        }
    }
    longest
}

/// Checks that a name before this text continues in it. Letters beyond ASCII end one: languages that
/// write no blanks between words put them directly behind.
fn continues_name(rest: &str) -> bool {
    rest.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment<'t> {
    Literal(&'t str),
    /// A placeholder and how it is written.
    Placeholder {
        placeholder: Placeholder,
        source: &'t str,
    },
}

/// The segments of a text, in order.
pub(super) struct Segments<'p, 't> {
    placeholders: &'p Placeholders<'p>,
    rest: &'t str,
    /// The length of an escaped placeholder at the beginning of the rest.
    literal: Option<usize>,
}

impl<'t> Iterator for Segments<'_, 't> {
    type Item = Segment<'t>;

    fn next(&mut self) -> Option<Segment<'t>> {
        if let Some(length) = self.literal.take() {
            return Some(Segment::Literal(self.take(length)));
        }
        if self.rest.is_empty() {
            return None;
        }
        let mut dollars = self.rest.match_indices('$');
        let found = dollars.find_map(|(at, _)| {
            let (placeholder, length) = self.placeholders.at_start(self.rest.get(at..)?)?;
            Some((at, placeholder, length))
        });
        let Some((at, placeholder, length)) = found else {
            return Some(Segment::Literal(self.take(self.rest.len())));
        };
        let (before, source) = self.rest.split_at(at);
        if let Some(before) = before.strip_suffix('\\') {
            self.rest = source;
            if before.is_empty() {
                return Some(Segment::Literal(self.take(length)));
            }
            self.literal = Some(length);
            return Some(Segment::Literal(before));
        }
        if at == 0 {
            return Some(Segment::Placeholder { placeholder, source: self.take(length) });
        }
        Some(Segment::Literal(self.take(at)))
    }
}

impl<'t> Segments<'_, 't> {
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}
