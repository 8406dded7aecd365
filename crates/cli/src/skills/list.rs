//! Skills and commands in words and in JSON.

use centurion_config::Problem;
use centurion_config::skills::{
    OffSkill, ShadowedSkill, SkillCatalog, SkillEntry, SkillKind, SkillSource,
};
use serde_json::{Value, json};

use crate::definitions::listing::{Form, failed_json, shortened, titled};

/// The sources in the order of a list, with what they are called in it.
pub(crate) const GROUPS: [(SkillSource, &str); 5] = [
    (SkillSource::Managed, "Managed"),
    (SkillSource::User, "User"),
    (SkillSource::Project, "Project"),
    (SkillSource::Plugin, "Plugins"),
    (SkillSource::Bundled, "Bundled"),
];

/// A catalog with what only the whole files show.
struct List<'c> {
    catalog: &'c SkillCatalog,
    active: Vec<Row<'c>>,
    failed: Vec<Problem>,
}

struct Row<'c> {
    entry: &'c SkillEntry,
    /// The reason why the parts of it that act for the user are off, if so.
    withheld: Option<String>,
}

pub(super) fn print(catalog: &SkillCatalog, form: Form) {
    let list = List::new(catalog);
    form.print(|| list.as_text(), || list.as_json());
}

impl<'c> List<'c> {
    fn new(catalog: &'c SkillCatalog) -> Self {
        let (mut active, mut failed) = (Vec::new(), catalog.failed.clone());
        for entry in &catalog.active {
            // Only what a project brings has to be accepted.
            if entry.origin.source != SkillSource::Project {
                active.push(Row { entry, withheld: None });
                continue;
            }
            match catalog.read(entry) {
                Ok(read) => {
                    let withheld = read.definition.withheld.map(|reason| reason.to_string());
                    active.push(Row { entry, withheld });
                }
                Err(error) => {
                    let (path, message) = (entry.origin.path.clone(), error.to_string());
                    failed.push(Problem { path, line: None, message });
                }
            }
        }
        Self { catalog, active, failed }
    }

    fn as_json(&self) -> Value {
        let active = self.active.iter().map(|row| {
            let mut value = skill_json(row.entry);
            value["withheld"] = json!(row.withheld);
            value
        });
        let shadowed = self.catalog.shadowed.iter().map(|skill| {
            let mut value = skill_json(&skill.entry);
            value["shadowedBy"] = json!(skill.by.path);
            value
        });
        let off = self.catalog.off.iter().map(|skill| {
            let mut value = skill_json(&skill.entry);
            value["offBy"] = json!(skill.by.as_str());
            value
        });
        json!({
            "active": active.collect::<Vec<_>>(),
            "shadowed": shadowed.collect::<Vec<_>>(),
            "off": off.collect::<Vec<_>>(),
            "failed": self.failed.iter().map(failed_json).collect::<Vec<_>>(),
        })
    }

    fn as_text(&self) -> String {
        let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
        for (source, title) in GROUPS {
            let of_source = self.active.iter().filter(|row| row.entry.origin.source == source);
            groups.push((title, of_source.flat_map(described).collect()));
        }
        let off = self.catalog.off.iter().map(switched_off).collect();
        groups.push(("Switched off by the settings", off));
        let shadowed = self.catalog.shadowed.iter().map(beaten).collect();
        groups.push(("Another has their name", shadowed));
        groups.push(("Cannot be used", self.failed.iter().map(ToString::to_string).collect()));
        let nothing = || "there are no skills; `centurion skills new` writes one\n".to_owned();
        titled(groups).unwrap_or_else(nothing)
    }
}

fn skill_json(entry: &SkillEntry) -> Value {
    let card = &entry.card;
    json!({
        "name": entry.name,
        "description": card.summary,
        "whenToUse": card.when_to_use,
        "argumentHint": card.argument_hint,
        "kind": kind_name(entry.origin.kind),
        "source": entry.origin.source.as_str(),
        "path": entry.origin.path,
        "userInvocable": card.for_people,
        "modelInvocable": card.for_models,
        "nameOnly": card.name_only,
        "fork": card.is_fork,
        "paths": card.paths,
    })
}

pub(super) fn kind_name(kind: SkillKind) -> &'static str {
    match kind {
        SkillKind::Skill => "skill",
        SkillKind::Command => "command",
    }
}

/// A skill in a few lines.
fn described(row: &Row<'_>) -> Vec<String> {
    let Row { entry, withheld } = row;
    let card = &entry.card;
    let hint = card.argument_hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
    let invoked = match (card.for_people, card.for_models) {
        (true, true) => "people and models",
        (true, false) => "people only",
        (false, true) => "models only",
        (false, false) => "off for people and models",
    };
    let mut facts = vec![kind_name(entry.origin.kind), invoked];
    facts.extend(card.is_fork.then_some("in an agent of its own"));
    facts.extend(card.name_only.then_some("models see its name only"));
    facts.extend(card.paths.is_some().then_some("for some files only"));
    let mut lines = vec![format!("{}{hint} ({})", entry.name, facts.join("; "))];
    lines.extend(card.summary.as_ref().map(|summary| format!("    {}", shortened(summary))));
    if entry.origin.source != SkillSource::Bundled {
        lines.push(format!("    {}", entry.origin.path.display()));
    }
    let off = withheld.as_ref();
    lines.extend(off.map(|reason| format!("    what acts for the user in it is off: {reason}")));
    lines
}

fn switched_off(skill: &OffSkill) -> String {
    let OffSkill { entry, by } = skill;
    format!("{} of {}: `{}`", entry.name, entry.origin.path.display(), by.as_str())
}

fn beaten(skill: &ShadowedSkill) -> String {
    let ShadowedSkill { entry, by } = skill;
    let own = entry.origin.path.display();
    format!("{} of {own}: {} goes before it", entry.name, by.path.display())
}
