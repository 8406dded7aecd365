//! The units of a draft: graphemes and chips.

use std::sync::Arc;

use crate::text::graphemes;

/// One thing that the cursor steps over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Grapheme(Box<str>),
    Chip(Arc<Chip>),
}

/// A paste that is too long to be shown, or an attachment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chip {
    pub(super) label: String,
    pub(super) text: String,
    pub(super) attachment: Option<u64>,
}

impl Chip {
    pub(super) fn pasted(number: usize, text: &str) -> Self {
        let lines = text.split('\n').count();
        let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        let size = match text.len() {
            bytes @ 0..1024 => format!("{bytes} bytes"),
            bytes => format!("{} KB", bytes.div_ceil(1024)),
        };
        let label = format!("[paste {number} · {lines} · {size}]");
        Self { label, text: text.to_owned(), attachment: None }
    }

    pub(super) fn attachment(id: u64, label: &str) -> Self {
        let label = format!("[{}]", crate::text::foreign_text(label));
        Self { text: label.clone(), label, attachment: Some(id) }
    }
}

impl Unit {
    pub(super) fn chip(chip: Chip) -> Self {
        Self::Chip(Arc::new(chip))
    }

    pub(super) fn is_chip(&self) -> bool {
        matches!(self, Self::Chip(_))
    }

    pub(super) fn is_line_end(&self) -> bool {
        matches!(self, Self::Grapheme(text) if &**text == "\n")
    }

    pub(super) fn is_word(&self) -> bool {
        match self {
            Self::Grapheme(text) => {
                text.chars().next().is_some_and(|it| it.is_alphanumeric() || it == '_')
            }
            Self::Chip(_) => true,
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Self::Grapheme(text) if &**text == " ")
    }

    /// The text that is sent.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Grapheme(text) => text,
            Self::Chip(chip) => &chip.text,
        }
    }

    /// The text that is shown.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Grapheme(text) => text,
            Self::Chip(chip) => &chip.label,
        }
    }

    /// The text that was typed: a chip is none.
    pub(super) fn typed(&self) -> &str {
        match self {
            Self::Grapheme(text) => text,
            Self::Chip(_) => "",
        }
    }

    pub(super) fn attachment(&self) -> Option<u64> {
        match self {
            Self::Grapheme(_) => None,
            Self::Chip(chip) => chip.attachment,
        }
    }
}

/// The units of a text. A line end is one, however it is written.
pub(super) fn units(text: &str) -> Vec<Unit> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    graphemes(&text).map(|(grapheme, _)| Unit::Grapheme(grapheme.into())).collect()
}

/// The units of a text, in which the labels of chips that were there before stand for these chips.
pub(super) fn with_chips(text: &str, before: &[Unit]) -> Vec<Unit> {
    let chips: Vec<&Arc<Chip>> = before
        .iter()
        .filter_map(|unit| match unit {
            Unit::Chip(chip) => Some(chip),
            Unit::Grapheme(_) => None,
        })
        .collect();
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let next = chips
            .iter()
            .filter_map(|chip| Some((rest.find(&chip.label)?, *chip)))
            .min_by_key(|it| it.0);
        let Some((at, chip)) = next else { break };
        found.extend(units(&rest[..at]));
        found.push(Unit::Chip(Arc::clone(chip)));
        rest = &rest[at + chip.label.len()..];
    }
    found.extend(units(rest));
    found
}
