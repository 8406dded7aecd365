//! Looking a skill up by its name, and the errors for none or too many.

use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::catalog::{SkillCatalog, SkillEntry};
use super::definition::{SkillKind, SkillSource};
use super::reading::read_entry;
use super::sources::SkillPlace;
use crate::Problem;
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
        let listed = exact(name).or_else(own);
        if let Some(skill) = self.unlisted(name, listed) {
            return Ok(Arc::new(skill));
        }
        if let Some(skill) = listed {
            return Ok(Arc::clone(skill));
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

    /// All names that mean a skill: its own, and each end of that which leads to no other.
    pub fn names_of(&self, skill: &SkillEntry) -> Vec<String> {
        let ends = skill.name.match_indices(':').filter_map(|(at, _)| skill.name.get(at + 1..));
        let leads_there =
            |name: &&str| self.find(name).is_some_and(|found| found.name == skill.name);
        let ends = ends.filter(leads_there).map(str::to_owned);
        std::iter::once(skill.name.clone()).chain(ends).collect()
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

    /// The skill of this name in a directory that has more than are listed, if no stronger one is listed. The settings
    /// and the host count for it as for all.
    fn unlisted(&self, name: &str, listed: Option<&Arc<SkillEntry>>) -> Option<SkillEntry> {
        if self.unlisted.is_empty() {
            return None;
        }
        let sources = &self.sources;
        let is_cut =
            |place: &SkillPlace| self.unlisted.iter().any(|(it, _)| *it == place.place.root);
        let is_of_program = listed.is_some_and(|it| it.origin.source == SkillSource::Bundled);
        let synced = if is_of_program { Vec::new() } else { sources.synced() };
        let is_stronger = |place: &SkillPlace| !listed.is_some_and(|it| place.holds(&it.origin));
        let places = sources.places().into_iter().chain(synced).take_while(is_stronger);
        let found = places.filter(is_cut).find_map(|place| {
            let entry = read_entry(&place, &place.file_of(name)?, &sources.read_rules)?;
            let is_other = place.plugin.is_none() && sources.is_of_plugin(&entry.origin.path);
            (entry.name == name && !is_other).then_some(entry)
        });
        sources.as_set(found?).ok().map(|entry| sources.as_chosen(entry))
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
