//! The skills and commands of any one directory or file, and what is wrong with them.

use std::path::Path;

use centurion_protocol::World;

use super::definition::{SkillKind, SkillOrigin, SkillSource, read_skill};
use super::reading::ReadSkill;
use crate::Problem;
use crate::agents::is_plugin;
use crate::scan::{FileChoice, Memo, ScanPlace};

/// Findings in a place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillsOfPlace {
    pub skills: Vec<ReadSkill>,
    /// Files that cannot be used, with the reason.
    pub failed: Vec<Problem>,
}

/// Reads a file, or all skills and commands below a directory, as they would be read in a project, or in a
/// plugin if they lie in one. In a directory, Markdown is a command if it lies below `commands`; other Markdown
/// is a part of a skill, or neither. A file that is named is meant to be one or the other.
pub fn read_skills_at(path: &Path, world: &dyn World) -> SkillsOfPlace {
    let place = ScanPlace {
        root: path.to_owned(),
        within: None,
        pick: FileChoice::Markdown,
        owner: "place".to_owned(),
    };
    let is_named = !path.is_dir();
    let visit = Memo::default().visit(&place, world, |file, text| {
        let origin = origin_of(file, is_named)?;
        let read = read_skill(text, origin);
        Some(read.map(|(definition, problems)| ReadSkill { definition, problems }))
    });
    let mut found = SkillsOfPlace::default();
    for refused in visit.refused {
        if is_named || origin_of(&refused.path, is_named).is_some() {
            let (path, message) = (refused.path, refused.reason);
            found.failed.push(Problem { path, line: None, message });
        }
    }
    for file in visit.found {
        match &*file.value {
            Some(Ok(skill)) => found.skills.push(skill.clone()),
            Some(Err(error)) => {
                let (line, message) = (Some(1), error.to_string());
                found.failed.push(Problem { path: file.path, line, message });
            }
            None => {}
        }
    }
    found
}

/// The owner of a file and its kind, by the folders around it; `None` if it is neither a skill nor a command.
fn origin_of(file: &Path, is_named: bool) -> Option<SkillOrigin> {
    let is_skill = file.file_name().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"));
    let kind = if is_skill {
        SkillKind::Skill
    } else if is_named || is_below_commands(file) {
        SkillKind::Command
    } else {
        return None;
    };
    let plugin = plugin_of(file);
    let source = if plugin.is_some() { SkillSource::Plugin } else { SkillSource::Project };
    Some(SkillOrigin { source, kind, path: file.to_owned(), plugin })
}

/// Checks that a file lies below a directory `commands` that is no part of a skill.
fn is_below_commands(file: &Path) -> bool {
    let folders = || file.ancestors().skip(1);
    let is_skill = |folder: &Path| folder.join("SKILL.md").is_file() && !is_plugin(folder);
    folders().any(|folder| folder.ends_with("commands")) && !folders().any(is_skill)
}

/// The name of the plugin that a file lies in.
fn plugin_of(file: &Path) -> Option<String> {
    let is_part = |folder: &&Path| folder.ends_with("skills") || folder.ends_with("commands");
    // A plugin may be a skill itself.
    let own = file.parent();
    let above = file.ancestors().filter(is_part).filter_map(Path::parent);
    let root = own.into_iter().chain(above).find(|root| is_plugin(root))?;
    root.file_name().map(|name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use centurion_protocol::SystemWorld;

    use super::*;

    #[test]
    fn a_directory_or_a_file_is_read_as_a_projects_or_a_plugins() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        for file in [
            "skills/a/SKILL.md",
            "skills/a/notes.md",
            "skills/a/commands/part.md",
            "commands/deep/b.md",
            "README.md",
            "kit/plugin.json",
            "kit/SKILL.md",
            "kit/skills/c/SKILL.md",
            "kit/commands/d.md",
            "skills/-bad/SKILL.md",
        ] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "---\ndescription: d\n---\nText.\n").unwrap();
        }
        fs::write(at("skills/a/large.md"), vec![b'x'; 2 << 20]).unwrap();
        let names = |path: &str| -> Vec<String> {
            let found = read_skills_at(&at(path), &SystemWorld);
            found.skills.into_iter().map(|it| it.definition.name).collect()
        };
        assert_eq!(names("."), ["b", "kit:kit", "kit:d", "kit:c", "a"]);
        assert_eq!(names("skills/a"), ["a"]);
        assert_eq!(names("README.md"), ["README"]);
        assert_eq!(names("kit/commands"), ["kit:d"]);
        let failed = read_skills_at(&at("."), &SystemWorld).failed;
        let [bad] = failed.as_slice() else { panic!("{failed:?}") };
        assert_eq!(bad.message, "the name `-bad` begins with `-`");
        assert_eq!(read_skills_at(&at("skills/a/large.md"), &SystemWorld).failed.len(), 1);
    }
}
