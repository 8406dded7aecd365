//! Looking a skill up by its name, and the errors for none or too many.

use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::catalog::{SkillCatalog, SkillEntry};
use super::definition::SkillKind;
use super::reading::read_entry;
use super::sources::SkillPlace;
use crate::Problem;
use crate::agents::check_skill_name;
use crate::settings::{closest, printable};

/// Reasons for which a name means no skill.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SkillLookupError {
    #[error("there is no skill `{name}`{}", hint(.nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    #[error("the skill `{name}` cannot be used: {problem}")]
    Unusable { name: String, problem: Problem },
    #[error("`{name}` may be any of {}; write which", .candidates.join(", "))]
    Ambiguous { name: String, candidates: Vec<String> },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

impl SkillCatalog {
    /// The skills that hosts list: no commands, and of those that a host has chosen among just these. People may type
    /// skills that models may not invoke.
    pub fn for_hosts(&self) -> impl Iterator<Item = &Arc<SkillEntry>> {
        let is_listed = |entry: &&Arc<SkillEntry>| {
            entry.origin.kind == SkillKind::Skill && self.sources.is_chosen(&entry.name)
        };
        self.active.iter().filter(is_listed)
    }

    /// The skill of exactly this name; or else the one of a plugin whose name ends with it, if there is
    /// just one.
    pub fn find(&self, name: &str) -> Option<Arc<SkillEntry>> {
        self.resolve(name, None).ok()
    }

    /// The skill that a name means in a file, which may be part of a plugin: the one of exactly this name,
    /// or else the one of that plugin, or else the only one whose name ends with it.
    pub fn resolve(
        &self,
        name: &str,
        plugin: Option<&str>,
    ) -> Result<Arc<SkillEntry>, SkillLookupError> {
        let exact = |name: &str| self.active.iter().find(|skill| skill.name == name);
        let own = || plugin.and_then(|plugin| exact(&format!("{plugin}:{name}")));
        if let Some(skill) = exact(name).or_else(own) {
            return Ok(Arc::clone(skill));
        }
        if let Some(skill) = self.unlisted(name) {
            return Ok(Arc::new(skill));
        }
        let has_suffix = |skill: &&Arc<SkillEntry>| {
            let before = skill.name.strip_suffix(name).filter(|_| !name.is_empty());
            before.is_some_and(|before| before.ends_with(':'))
        };
        let found: Vec<_> = self.active.iter().filter(has_suffix).collect();
        match found.as_slice() {
            [skill] => Ok(Arc::clone(skill)),
            [] => Err(self.nothing(name)),
            many => Err(SkillLookupError::Ambiguous {
                name: printable(name),
                candidates: many.iter().map(|skill| format!("`{}`", skill.name)).collect(),
            }),
        }
    }

    /// The error for a name that means no skill.
    fn nothing(&self, name: &str) -> SkillLookupError {
        let shown = printable(name);
        if let Some(problem) = self.failure(name).cloned() {
            return SkillLookupError::Unusable { name: shown, problem };
        }
        SkillLookupError::Unknown { name: shown, nearest: self.nearest(name) }
    }

    /// The problem of the file that would be the skill of this name.
    fn failure(&self, name: &str) -> Option<&Problem> {
        self.failed.iter().find(|problem| {
            let path = problem.path.as_path();
            let is_skill = path.file_name().is_some_and(|it| it.eq_ignore_ascii_case("SKILL.md"));
            let named =
                if is_skill { path.parent().and_then(Path::file_name) } else { path.file_stem() };
            named.is_some_and(|it| it == name)
        })
    }

    /// The skill of this name in a directory that has more than are listed.
    fn unlisted(&self, name: &str) -> Option<SkillEntry> {
        if self.unlisted.is_empty() || check_skill_name(name).is_err() {
            return None;
        }
        let is_cut =
            |place: &SkillPlace| self.unlisted.iter().any(|(it, _)| *it == place.place.root);
        let places = self.sources.places().into_iter().chain(self.sources.synced());
        places.filter(is_cut).find_map(|place| {
            let path = match place.kind {
                SkillKind::Skill => place.place.root.join(name).join("SKILL.md"),
                SkillKind::Command => place.place.root.join(format!("{name}.md")),
            };
            read_entry(&place, &path).filter(|entry| entry.name == name)
        })
    }

    /// The skill that was probably meant, with its plugin's name or without.
    fn nearest(&self, name: &str) -> Option<String> {
        let names = self.active.iter().map(|skill| skill.name.as_str());
        let words: Vec<&str> = names.flat_map(|name| [name, bare(name)]).collect();
        let word = closest(name, &words)?;
        let mut meant = self.active.iter();
        let skill = meant.find(|skill| skill.name == word || bare(&skill.name) == word);
        skill.map(|skill| printable(&skill.name))
    }
}

/// A name without that of the plugin.
fn bare(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}
