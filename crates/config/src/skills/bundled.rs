//! The program's own skills, as Markdown like everybody's.

use std::path::PathBuf;
use std::sync::Arc;

use super::card::read_card;
use super::catalog::SkillEntry;
use super::definition::{SkillKind, SkillOrigin, SkillSource};

/// Each with its name.
const BUNDLED: [(&str, &str); 5] = [
    ("init", include_str!("bundled/init.md")),
    ("new-agent", include_str!("bundled/new-agent.md")),
    ("new-skill", include_str!("bundled/new-skill.md")),
    ("review", include_str!("bundled/review.md")),
    ("verify", include_str!("bundled/verify.md")),
];

/// The skills that come with the program.
pub(super) fn entries() -> impl Iterator<Item = SkillEntry> {
    BUNDLED.iter().filter_map(|(name, text)| {
        let origin = SkillOrigin {
            source: SkillSource::Bundled,
            kind: SkillKind::Skill,
            path: PathBuf::from(format!("bundled/{name}/SKILL.md")),
            plugin: None,
        };
        let (name, card) = read_card(text, &origin).ok()?;
        let card = Arc::new(card);
        Some(SkillEntry { name, card, origin, within: None, stamp: None })
    })
}

/// The text of one of them.
pub(super) fn text(name: &str) -> Option<&'static str> {
    BUNDLED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
