//! Reading the whole file of a skill, when it is used: with its plugin's variables, and without what was not
//! accepted.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::bundled;
use super::card::read_card;
use super::catalog::SkillEntry;
use super::definition::{SkillDefinition, SkillFileError, SkillSource, read_skill};
use super::sources::{SkillPlace, SkillSources};
use crate::files::{self, FileError, Stamp};
use crate::frontmatter::decode;
use crate::plugins::adapt_skill;
use crate::trust::Reach;
use crate::{Problem, ReadRules};

/// The text of a skill that is larger than this is something else.
const LARGEST: u64 = 1024 * 1024;

/// A skill, read whole.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadSkill {
    pub definition: SkillDefinition,
    /// Problems for its author and its user.
    pub problems: Vec<Problem>,
}

/// Reasons for which a skill cannot be used.
#[derive(Debug, Error)]
pub enum SkillReadError {
    #[error("the skill `{name}` cannot be used: {} {source}", .path.display())]
    Unreadable { name: String, path: std::path::PathBuf, source: FileError },
    #[error("the skill `{name}` cannot be used: {source}")]
    NoSkill { name: String, source: SkillFileError },
    #[error("the skill `{name}` has changed, and hooks have not let the change count")]
    Changed { name: String },
}

pub(super) fn read(
    entry: &SkillEntry,
    sources: &SkillSources,
) -> Result<ReadSkill, SkillReadError> {
    let unusable = |source| {
        let (name, path) = (entry.name.clone(), entry.origin.path.clone());
        SkillReadError::Unreadable { name, path, source }
    };
    let text = if entry.origin.source == SkillSource::Bundled {
        bundled::text(&entry.name).unwrap_or_default().to_owned()
    } else {
        let bytes = bytes(&entry.origin.path, entry.within.as_deref(), &sources.read_rules)
            .map_err(unusable)?;
        decode(&bytes).into_owned()
    };
    // Looked at after it was read: what changed before or meanwhile is seen.
    if sources.only_as_seen
        && let Some(stamp) = entry.stamp
        && Stamp::of(&entry.origin.path) != Some(stamp)
    {
        return Err(SkillReadError::Changed { name: entry.name.clone() });
    }
    let read = read_skill(&text, entry.origin.clone());
    let no_skill = |source| SkillReadError::NoSkill { name: entry.name.clone(), source };
    let (mut definition, mut problems) = read.map_err(no_skill)?;
    definition.name.clone_from(&entry.name);
    if let Some(plugin) = sources.plugin(&entry.origin) {
        definition = adapt_skill(plugin, definition, &mut problems);
    }
    if entry.origin.source == SkillSource::Project
        && let Some(item) = definition.power_item(&text)
        && let Err(reason) = sources.content.judge(&item, Reach::Folder)
    {
        let message = format!("what acts for the user in it is off: {reason}");
        problems.push(Problem { path: item.file, line: item.line, message });
        definition.withheld = Some(reason);
    }
    Ok(ReadSkill { definition, problems })
}

/// The skill that a file of a place is, if it is one.
pub(super) fn read_entry(place: &SkillPlace, path: &Path, rules: &ReadRules) -> Option<SkillEntry> {
    let within = place.place.within.as_deref();
    let stamp = Stamp::of(path);
    let text = bytes(path, within, rules).ok()?;
    let origin = place.origin(path.to_owned());
    let (name, card) = read_card(&decode(&text), &origin).ok()?;
    let (card, within) = (Arc::new(card), within.map(Arc::from));
    Some(SkillEntry { name, card, origin, within, stamp })
}

/// Reads a file as it is now. The file that was found inside of its bounds is the one that is opened, wherever links lead by then.
fn bytes(path: &Path, within: Option<&Path>, rules: &ReadRules) -> Result<Vec<u8>, FileError> {
    let real = path.canonicalize().map_err(FileError::Unreadable)?;
    if let Some(denial) = rules.denial_of_definition(path, &real) {
        return Err(FileError::Denied(denial));
    }
    let Some(within) = within else {
        let metadata = fs::metadata(path).map_err(FileError::Unreadable)?;
        return files::bytes_of(path, &metadata, LARGEST);
    };
    let within = within.canonicalize().map_err(FileError::Unreadable)?;
    if !real.starts_with(within) {
        return Err(FileError::Unreadable(io::ErrorKind::NotFound.into()));
    }
    files::bytes_at(&real, LARGEST)
}
