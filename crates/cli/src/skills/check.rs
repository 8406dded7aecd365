//! `centurion skills check`: all that is wrong with files of skills and commands, with file and line.

use std::path::Path;
use std::process::ExitCode;

use anyhow::ensure;
use centurion_config::Problem;
use centurion_config::skills::{SkillCatalog, SkillSource, read_skills_at};
use centurion_protocol::SystemWorld;
use clap::Args;

use super::Skills;
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
        everywhere(&skills.catalog)
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
fn everywhere(catalog: &SkillCatalog) -> Findings {
    let checked = catalog.check();
    let read = checked.active.iter().chain(&checked.shadowed);
    let own = read.filter(|it| it.definition.origin.source != SkillSource::Bundled);
    Findings { good: own.count(), failed: checked.failed, warnings: checked.problems }
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
    findings.warnings.extend(found.skills.into_iter().flat_map(|skill| skill.problems));
}
