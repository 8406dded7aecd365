//! The program's own skills are as good as we ask others to make theirs.

use super::*;
use centurion_protocol::{SessionId, World as _};

fn catalog(bundled: bool) -> std::sync::Arc<SkillCatalog> {
    let sources = SkillSources { bundled, ..SkillSources::default() };
    SkillLoader::new().load(&sources, &SystemWorld)
}

#[test]
fn every_bundled_skill_reads_without_problems() {
    let checked = catalog(true).check();
    assert_eq!((checked.failed, checked.problems), (Vec::new(), Vec::new()));
    let names: Vec<_> = checked.active.iter().map(|it| it.definition.name.as_str()).collect();
    assert_eq!(names, ["init", "new-agent", "new-skill", "review", "verify"]);
    for skill in checked.active.iter().map(|it| &it.definition) {
        let name = &skill.name;
        assert!(skill.description.is_some(), "{name}");
        assert!(skill.power_item("").is_none(), "{name} acts for the user");
        assert_eq!(skill.is_for_models(), ["review", "verify"].contains(&name.as_str()), "{name}");
        let invocation = Invocation {
            arguments: "the parser",
            project_dir: Path::new("/p"),
            session: SessionId(SystemWorld.uuid()),
            effort: None,
        };
        let expanded = expand(&skill.template(), &invocation).unwrap();
        let [Piece::Text(text)] = expanded.pieces.as_slice() else { panic!("{name}") };
        let text = &text.text;
        assert!(text.contains(": the parser\n"), "{name}");
        assert!(!text.contains("\\$") && !text.contains("ARGUMENTS: "), "{name}");
    }
}

#[test]
fn bundled_skills_are_switched_off_together() {
    let catalog = catalog(false);
    assert_eq!(catalog.active, []);
    assert_eq!(catalog.off.len(), 5);
    assert!(catalog.off.iter().all(|it| it.by == OffSwitch::BundledSkills));
    assert!(catalog.find("review").is_none());
}
