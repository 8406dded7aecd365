//! `centurion skills check`: all that is wrong with files of skills and commands, with file and line.

use std::path::Path;
use std::process::ExitCode;

use anyhow::ensure;
use centurion_config::Problem;
use centurion_config::skills::{CheckedSkills, ReadSkill, SkillSource, read_skills_at};
use centurion_protocol::SystemWorld;
use clap::Args;

use super::Skills;
use super::effects::{EffectCheck, own_problems};
use crate::definitions::findings::{CheckedPaths, Findings};
use crate::definitions::places::PlaceArgs;

#[derive(Debug, Args)]
pub(super) struct CheckSkillsArgs {
    #[command(flatten)]
    checked: CheckedPaths,

    #[command(flatten)]
    places: PlaceArgs,
}

pub(super) fn run(args: &CheckSkillsArgs) -> anyhow::Result<ExitCode> {
    let skills = Skills::load(&args.places)?;
    let findings = if args.checked.paths.is_empty() {
        everywhere(&skills)
    } else {
        let mut findings = Findings::default();
        for path in &args.checked.paths {
            let path = skills.places.surroundings.cwd.join(path);
            ensure!(path.exists(), "there is nothing at {}", path.display());
            add(&mut findings, &path);
        }
        findings
    };
    Ok(findings.print("skill", &args.checked))
}

/// All that reading the places that are looked at shows.
fn everywhere(skills: &Skills) -> Findings {
    let CheckedSkills { active, shadowed, failed, problems } = skills.catalog.check();
    let effects = EffectCheck::load(&skills.places);
    let read = active.iter().chain(&shadowed).map(|it| &it.definition);
    let own: Vec<_> = read.filter(|it| it.origin.source != SkillSource::Bundled).collect();
    let without_effect = own.iter().flat_map(|skill| effects.problems(skill));
    let warnings = problems.into_iter().chain(without_effect).collect();
    Findings { good: own.len(), failed, warnings }
}

/// Checks a file or a directory.
fn add(findings: &mut Findings, path: &Path) {
    let found = read_skills_at(path, &SystemWorld);
    if found.skills.is_empty() && found.failed.is_empty() {
        let message = "holds no skill (`NAME/SKILL.md`) and no command (`commands/NAME.md`)";
        let (path, message) = (path.to_owned(), message.to_owned());
        findings.failed.push(Problem { path, line: None, message });
    }
    findings.good += found.skills.len();
    findings.failed.extend(found.failed);
    for ReadSkill { definition, problems } in found.skills {
        findings.warnings.extend(problems);
        findings.warnings.extend(own_problems(&definition));
    }
}
