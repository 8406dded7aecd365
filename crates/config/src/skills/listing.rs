//! The list of skills that a model is told: bounded, and honest about what it leaves out.

use std::borrow::Cow;
use std::path::Path;

use centurion_protocol::is_hidden;
use centurion_protocol::markup::contain;

use super::catalog::{SkillCatalog, SkillEntry};
use super::definition::SkillSource;
use crate::memory::relative_globs;

/// About how many characters a token stands for.
const CHARACTERS_PER_TOKEN: f64 = 4.0;

/// Size limits of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListingBudget {
    /// Characters of the whole list.
    pub total: usize,
    /// Characters of the text about one skill.
    pub each: usize,
}

impl ListingBudget {
    /// A share of a window.
    pub fn new(window_tokens: u64, fraction: f64, each: usize) -> Self {
        let characters = window_tokens as f64 * CHARACTERS_PER_TOKEN * fraction.clamp(0.0, 1.0);
        // The share of any window that there is fits.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bounded above"
        )]
        let total = characters.min(1e9) as usize;
        Self { total, each }
    }
}

/// The list, and what it does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillListing {
    /// One line for each skill.
    pub lines: Vec<String>,
    /// Skills that are named without what they are for.
    pub shortened: Vec<String>,
    /// Skills that are not named at all.
    pub left_out: Vec<String>,
}

impl SkillListing {
    /// The skills that a model may invoke now. Skills that are about certain files are told of when `touched` has one
    /// of these, relative to the working directory. Those of the user come first, those of the program last.
    pub fn new(catalog: &SkillCatalog, touched: &[&Path], budget: ListingBudget) -> Self {
        let mut listed: Vec<&SkillEntry> = catalog.active.iter().map(|entry| &**entry).collect();
        listed.retain(|entry| entry.card.for_models && is_about(entry, touched));
        listed.sort_by_key(|entry| rank(entry.origin.source));
        // All names first: a skill that is known by its name can be invoked.
        let mut room = budget.total;
        let mut named = Vec::new();
        let mut listing = Self::default();
        for entry in listed {
            let cost = entry.name.len() + 3;
            if cost <= room {
                room -= cost;
                named.push(entry);
            } else {
                listing.left_out.push(entry.name.clone());
            }
        }
        for entry in named {
            let about = about(entry, budget.each, room.saturating_sub(2));
            if let Some(about) = about {
                room -= about.len() + 2;
                listing.lines.push(["- ", &contain(&entry.name), ": ", &about].concat());
                continue;
            }
            listing.lines.push(["- ", &contain(&entry.name)].concat());
            if !entry.card.name_only && entry.card.summary.is_some() {
                listing.shortened.push(entry.name.clone());
            }
        }
        listing
    }

    /// The list leaves something out for want of room.
    pub fn is_cut(&self) -> bool {
        !(self.shortened.is_empty() && self.left_out.is_empty())
    }
}

fn rank(source: SkillSource) -> u8 {
    match source {
        SkillSource::Managed => 0,
        SkillSource::User => 1,
        SkillSource::Project => 2,
        SkillSource::Plugin => 3,
        SkillSource::Bundled => 4,
    }
}

/// Checks that one of the files is among those that a skill is about, or that it is about none in particular.
fn is_about(entry: &SkillEntry, touched: &[&Path]) -> bool {
    let Some(paths) = &entry.card.paths else { return true };
    relative_globs(paths).is_ok_and(|globs| touched.iter().any(|path| globs.is_match(path)))
}

/// Describes a skill and when to use it, in one line of at most so many characters; `None` where there is no room for it.
fn about(entry: &SkillEntry, most: usize, room: usize) -> Option<String> {
    let card = &entry.card;
    if card.name_only {
        return None;
    }
    let summary = card.summary.as_deref()?;
    let text = match &card.when_to_use {
        Some(when) => Cow::Owned(format!("{summary} - {when}")),
        None => Cow::Borrowed(summary),
    };
    let mut line = if is_line(&text) {
        text
    } else {
        // Nothing that a person would not see, or that commands a terminal, reaches a model by the list.
        let is_shown = |it: &char| it.is_whitespace() || !(it.is_control() || is_hidden(*it));
        let shown: String = text.chars().filter(is_shown).collect();
        shown.split_whitespace().collect::<Vec<_>>().join(" ").into()
    };
    if line.len() > most
        && let Some((end, _)) = line.char_indices().nth(most)
    {
        line = format!("{}…", line.get(..end).unwrap_or_default()).into();
    }
    // Most of hundreds find no room: nothing is made of them.
    if line.len() > room {
        return None;
    }
    Some(contain(&line).into_owned()).filter(|line| line.len() <= room)
}

/// Checks that a text is words with one space between each two, as far as that is seen at once.
fn is_line(text: &str) -> bool {
    // Once over hundreds of texts at each start.
    let mut before = b' ';
    for &byte in text.as_bytes() {
        if !matches!(byte, b' '..=b'~') || (byte == b' ' && before == b' ') {
            return false;
        }
        before = byte;
    }
    text.is_empty() || before != b' '
}
